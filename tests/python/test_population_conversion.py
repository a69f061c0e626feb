"""Values of another type than the declared one, and texts that are none: what survives, and what is said of others."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from ovstage import OvstageError, OvxError, PathDictionary, PopulationDomain, Stage

np = pytest.importorskip("numpy", reason="numpy is not installed")
pytest.importorskip("pxr.Usd", reason="usd-core is not installed")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from pxr import Gf, Sdf, Usd, UsdGeom, Vt  # type: ignore # noqa: E402
from scenes import read, usda  # noqa: E402

from ovstage import population  # noqa: E402
from ovstage.population.conversion import converted  # noqa: E402
from ovstage.population.texts import MOST_BYTES, MOST_BYTES_OF_NAME  # noqa: E402

ALL = PopulationDomain.ALL
T = Sdf.ValueTypeNames
DECLARED = {  # attribute: the prim that declares it
    "size": "Cube",  # double
    "fieldIndex": "OpenVDBAsset",  # int
    "startTime": "SpatialAudio",  # timecode
    "doubleSided": "Mesh",  # bool
    "purpose": "Mesh",  # token
    "faceVertexCounts": "Mesh",  # int[]
    "widths": "Points",  # float[]
    "points": "Points",  # point3f[]
    "ids": "Points",  # int64[]
    "extent": "Points",  # float3[], six doubles in the stage
    "primvars:displayColor": "Points",  # color3f[]
    "focalLength": "Camera",  # float
    "clippingRange": "Camera",  # float2
    "physics:localRot0": "PhysicsJoint",  # quatf
}


def authored(tmp_path: Path, name: str, type_name: Sdf.ValueTypeName, value: Any) -> tuple[Path, Any]:
    """A scene whose prim /P authors an attribute with a type of its own, and what USD hands out."""
    layer = Sdf.Layer.CreateNew(str(tmp_path / "scene.usdc"))
    prim = Sdf.CreatePrimInLayer(layer, "/P")
    prim.specifier, prim.typeName = Sdf.SpecifierDef, DECLARED[name]
    Sdf.AttributeSpec(prim, name, type_name).default = value
    layer.Save()
    scene = Usd.Stage.Open(layer)
    return tmp_path / "scene.usdc", scene.GetPrimAtPath("/P").GetAttribute(name).Get()


def flat(value: Any) -> list[float]:
    if isinstance(value, (Gf.Quatd, Gf.Quath)):
        return [*value.GetImaginary(), value.GetReal()]
    return [float(number) for number in np.ravel(np.array(value))]


@pytest.mark.parametrize(
    ("name", "type_name", "value"),
    [
        ("size", T.Float, 0.1),
        ("size", T.Half, 0.1),
        ("size", T.Int, -3),
        ("size", T.UInt64, 2**53),
        ("size", T.Bool, True),
        ("size", T.TimeCode, Sdf.TimeCode(0.1)),
        ("startTime", T.Double, 0.1),
        ("fieldIndex", T.Int64, -(2**31)),
        ("fieldIndex", T.Double, 3.0),
        ("doubleSided", T.Int, 1),
        ("focalLength", T.Double, 0.5),
        ("focalLength", T.Double, math.inf),
        ("focalLength", T.Double, math.nan),
        ("clippingRange", T.Double2, Gf.Vec2d(0.5, 2)),
        ("clippingRange", T.Int2, Gf.Vec2i(1, 2)),
        ("physics:localRot0", T.Quatd, Gf.Quatd(0.5, 1, 2, 3)),
        ("faceVertexCounts", T.UCharArray, Vt.UCharArray([3, 4])),
        ("faceVertexCounts", T.DoubleArray, Vt.DoubleArray([3, 4])),
        ("ids", T.IntArray, Vt.IntArray([-1, 7])),
        ("widths", T.HalfArray, Vt.HalfArray([0.1, 2])),
        ("widths", T.DoubleArray, Vt.DoubleArray([0.5, math.nan])),
        ("widths", T.DoubleArray, Vt.DoubleArray()),
        ("points", T.Double3Array, Vt.Vec3dArray([(1, 2, 3), (4, 5, 6)])),
        ("extent", T.Double3Array, Vt.Vec3dArray([(0.1, 2, 3), (4, 5, 6)])),
        ("primvars:displayColor", T.Color3hArray, Vt.Vec3hArray([(0.1, 1, 0)])),
    ],
)
def test_a_value_that_survives_is_published_as_the_declared_type(
    stage: Stage, tmp_path: Path, name: str, type_name: Sdf.ValueTypeName, value: Any
) -> None:
    path, handed_out = authored(tmp_path, name, type_name, value)
    report = population.open_usd(stage, path, domains=ALL)
    assert report.skipped == []
    stage.advance_write_floor(1).wait()
    found = read(stage, "/P", name)
    assert found is not None
    handed_out = handed_out.GetValue() if isinstance(handed_out, Sdf.TimeCode) else handed_out
    assert np.array_equal(np.ravel(found).astype(float), flat(handed_out), equal_nan=True)


@pytest.mark.parametrize(
    ("name", "type_name", "value", "rounded"),
    [
        ("focalLength", T.Double, 0.1, np.float32(0.1)),
        ("focalLength", T.Double, 1e-300, np.float32(0)),
        ("focalLength", T.Int, 2**24 + 1, np.float32(2**24)),
        ("size", T.Int64, 2**53 + 1, np.float64(2**53)),
        ("size", T.UInt64, 2**64 - 1, np.float64(2**64)),
        ("widths", T.DoubleArray, Vt.DoubleArray([0.5, 0.1]), np.float32([0.5, 0.1])),
    ],
)
def test_a_value_that_is_rounded_is_published_and_said_once(
    stage: Stage, tmp_path: Path, name: str, type_name: Sdf.ValueTypeName, value: Any, rounded: Any
) -> None:
    path, _ = authored(tmp_path, name, type_name, value)
    [said] = population.open_usd(stage, path, domains=ALL).skipped
    assert (said.path, said.attribute) == ("/P", name)
    assert "its value is rounded to a" in said.reason
    stage.advance_write_floor(1).wait()
    found = read(stage, "/P", name)
    assert found is not None
    assert np.array_equal(np.ravel(found), np.ravel(rounded))


@pytest.mark.parametrize(
    ("name", "type_name", "value", "reason"),
    [
        ("fieldIndex", T.Int64, 2**31, "its value 2147483648 does not fit int"),
        ("fieldIndex", T.UInt64, 2**64 - 1, "its value 18446744073709551615 does not fit int"),
        ("fieldIndex", T.Double, 1.5, "its value 1.5 does not fit int"),
        ("fieldIndex", T.Double, math.nan, "its value nan does not fit int"),
        ("fieldIndex", T.Float, -math.inf, "its value -inf does not fit int"),
        ("doubleSided", T.Int, 2, "its value 2 does not fit bool"),
        ("focalLength", T.Double, 1e300, "its value 1e+300 does not fit float"),
        ("faceVertexCounts", T.Int64Array, Vt.Int64Array([1, 2**40]), "does not fit int[]"),
        ("ids", T.FloatArray, Vt.FloatArray([1, math.nan]), "does not fit int64[]"),
        ("points", T.Double3Array, Vt.Vec3dArray([(1e300, 0, 0)]), "does not fit point3f[]"),
        ("size", T.DoubleArray, Vt.DoubleArray([1]), "its value is a DoubleArray, not a double"),
        ("widths", T.Double, 1.0, "its value is a float, not a float[]"),
        ("clippingRange", T.Double3, Gf.Vec3d(1, 2, 3), "its value is a Vec3d, not a float2"),
        ("physics:localRot0", T.Float4, Gf.Vec4f(1, 2, 3, 4), "its value is a Vec4f, not a quatf"),
        ("size", T.String, "large", "its value is a str, not a double"),
        ("purpose", T.Asset, Sdf.AssetPath("a"), "its value is a AssetPath, not a token"),
    ],
)
def test_a_value_that_is_lost_is_left_out_and_named(
    stage: Stage, tmp_path: Path, name: str, type_name: Sdf.ValueTypeName, value: Any, reason: str
) -> None:
    path, _ = authored(tmp_path, name, type_name, value)
    [said] = population.open_usd(stage, path, domains=ALL).skipped
    assert (said.path, said.attribute) == ("/P", name)
    assert reason in said.reason
    stage.advance_write_floor(1).wait()
    assert read(stage, "/P", name) is None
    assert read(stage, "/P", "usd-prim-type") is not None


def test_texts_and_tokens_become_each_other(stage: Stage) -> None:
    scene = usda('def Xform "P"\n{\n    string purpose = "proxy"\n    string[] xformOpOrder = ["xformOp:translate"]\n'
                 "    double3 xformOp:translate = (1, 2, 3)\n}\n")  # fmt: skip
    assert population.open_usd_from_string(stage, scene).skipped == []
    stage.advance_write_floor(1).wait()
    with PathDictionary(stage) as names:
        assert [
            names.token_to_string(int(np.ravel(read(stage, "/P", name))[0])) for name in ("purpose", "xformOpOrder")
        ] == [
            "proxy",
            "xformOp:translate",
        ]
    layer = Sdf.Layer.CreateAnonymous(".usda")
    layer.ImportFromString(scene)
    prim = Usd.Stage.Open(layer).GetPrimAtPath("/P")
    world = UsdGeom.XformCache().GetLocalToWorldTransform(prim)  # to USD, an order of texts is none
    assert np.array_equal(np.ravel(read(stage, "/P", "omni:fabric:worldMatrix")), np.ravel(np.array(world)))


def test_what_holds_for_many_prims_is_said_once_with_all_their_paths(stage: Stage) -> None:
    prims = [f'def Camera "C{i}"\n{{\n    double focalLength = {i}.1\n}}\n' for i in range(300)]
    [said] = population.open_usd_from_string(stage, usda(*prims)).skipped
    assert said.count == 300
    assert list(said.paths) == [f"/C{i}" for i in range(300)]
    assert str(said) == "/C0.focalLength (and 299 more): its value is rounded to a float"


def test_odd_values_among_fitting_ones_cost_nobody_else(stage: Stage) -> None:
    odd = {3: "double focalLength = 1e300", 7: 'string focalLength = "x"', 11: "int focalLength = 5"}
    prims = [f'def Camera "C{i}"\n{{\n    {odd.get(i, f"float focalLength = {i}")}\n}}\n' for i in range(20)]
    report = population.open_usd_from_string(stage, usda(*prims))
    assert {said.path for said in report.skipped} == {"/C3", "/C7"}
    stage.advance_write_floor(1).wait()
    for i in range(20):
        found = read(stage, f"/C{i}", "focalLength")
        assert (found is None) if i in (3, 7) else (found is not None and found[()] == (5 if i == 11 else i))


def integers(kind: str) -> st.SearchStrategy[int]:
    least, most = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
    return st.integers(least, most) | st.sampled_from([0, 1, least, most])


NUMBERS = {
    "bool": st.booleans(),
    **{kind: integers(kind) for kind in ("uint8", "int32", "uint32", "int64", "uint64")},
    **{f"float{bits}": st.floats(width=bits) | st.integers(-(2**15), 2**15).map(float) for bits in (16, 32, 64)},
}


@given(st.data(), st.sampled_from(sorted(NUMBERS)), st.sampled_from(sorted(NUMBERS)))
def test_every_number_survives_is_rounded_or_is_lost(data: st.DataObject, source: str, target: str) -> None:
    number = data.draw(NUMBERS[source])
    numbers, lost, rounded = (each[0] for each in converted(np.array([number], source), target))
    exact, result = np.array([number], source)[0].item(), numbers.item()
    if not (lost or rounded):  # Python compares numbers of every type by value
        assert result == exact or (result != result and exact != exact)
    elif lost:
        if target.startswith("float"):
            assert math.isinf(result) and math.isfinite(exact)
        else:
            limits = (0, 1) if target == "bool" else (np.iinfo(target).min, np.iinfo(target).max)
            assert not (math.isfinite(exact) and exact == int(exact) and limits[0] <= exact <= limits[1])
    else:
        assert target.startswith("float") and math.isfinite(result) and result != exact


# --- texts ------------------------------------------------------------------------------------------------------------


def foreign(tmp_path: Path, text: str) -> Path:
    """A binary layer in which ``cafQQ`` is a word in Latin-1, as programs write it that never heard of UTF-8."""
    layer = Sdf.Layer.CreateAnonymous(".usda")
    layer.ImportFromString(text)
    path = tmp_path / "foreign.usdc"
    layer.Export(str(path))
    contents = path.read_bytes()
    assert b"cafQQ" in contents
    path.write_bytes(contents.replace(b"cafQQ", b"caf\xe9Q"))
    return path


TEXTS = {
    "string": ('string s = "cafQQ"', "s", "it has bytes that are not UTF-8 text"),
    "token": ('token s = "cafQQ"', "s", "it has bytes that are not UTF-8 text"),
    "sample": ('token s.timeSamples = { 0: "cafQQ" }', "s", "it has bytes that are not UTF-8 text"),
    "string[]": ('string[] s = ["ok", "cafQQ"]', "s", "it has bytes that are not UTF-8 text"),
    "token[]": ('token[] s = ["ok", "cafQQ"]', "s", "it has bytes that are not UTF-8 text"),
    "asset[]": ("asset[] s = [@cafQQ@]", "s", "USD does not hand it out: Invalid asset path string"),
    "pathExpression": ('pathExpression s = "/cafQQ"', "s", "it has bytes that are not UTF-8 text"),
    "declared token": ('token visibility = "cafQQ"', "visibility", "it has bytes that are not UTF-8 text"),
    "schema": ("", "", "the name of a schema that it applies is left out: it has bytes that are not UTF-8 text"),
    "type": ("", "", "the name of its type is left out: it has bytes that are not UTF-8 text"),
}


@pytest.mark.parametrize("seconds", [math.nan, 0.0])
@pytest.mark.parametrize("what", TEXTS)
@pytest.mark.filterwarnings("ignore")
def test_bytes_that_are_no_text_cost_their_value_alone(stage: Stage, tmp_path: Path, what: str, seconds: float) -> None:
    line, name, reason = TEXTS[what]
    schemas = '"PhysicsRigidBodyAPI", "cafQQ"' if what == "schema" else '"PhysicsRigidBodyAPI"'
    kind = "cafQQ" if what == "type" else "Cube"
    head = f'def {kind} "C" (\n    prepend apiSchemas = [{schemas}]\n)'
    scene = f'#usda 1.0\n{head}\n{{\n    {line}\n    double size = 3\n}}\ndef Cube "D"\n{{\n    double size = 4\n}}\n'
    path = foreign(tmp_path, scene)
    report = population.open_usd(stage, path, time_code=seconds, domains=ALL)
    assert [(said.path, said.attribute) for said in report.skipped] == (
        [("/C", name)] if what != "sample" or seconds == 0 else []
    )
    assert all(reason in said.reason for said in report.skipped)
    stage.advance_write_floor(1).wait()
    assert read(stage, "/C", "size") == 3
    assert read(stage, "/C", "s") is None
    assert read(stage, "/D", "size") == 4
    assert read(stage, "/C", "physics:velocity") is not None or what == "schema"
    layer = Sdf.Layer.FindOrOpen(str(path))
    layer.GetAttributeAtPath("/C.size").default = 5.0
    population.apply_usd_changes(stage, 2)
    layer.GetAttributeAtPath("/D.size").default = 6.0
    assert list(population.apply_usd_changes(stage, 3).paths) == ["/D"]
    stage.advance_write_floor(3).wait()
    assert (read(stage, "/C", "size"), read(stage, "/D", "size")) == (5, 6)


def test_texts_and_names_that_are_too_long_cost_their_value_alone(stage: Stage) -> None:
    text, name = "x" * 2**24, "n" * 4097
    scene = usda(f'def Cube "C"\n{{\n    string s = "{text}"\n    int {name} = 1\n    double size = 3\n}}\n')
    report = population.open_usd_from_string(stage, scene)
    assert {(said.attribute, said.reason) for said in report.skipped} == {
        ("s", f"its text '{text[:57]}...' is longer than 16777215 bytes, the most that a stage takes"),
        (name, "its name is longer than that of an attribute of a stage can be"),
    }
    stage.advance_write_floor(1).wait()
    assert read(stage, "/C", "size") == 3


def test_the_longest_text_and_the_longest_name_are_those_of_the_engine(stage: Stage) -> None:
    text, name = "x" * MOST_BYTES, "n" * MOST_BYTES_OF_NAME
    with PathDictionary(stage) as dictionary:
        assert dictionary.token_to_string(dictionary.intern_token(text)) == text
        with pytest.raises(OvxError, match=f"at most {MOST_BYTES} bytes"):
            dictionary.intern_token(text + "x")
    stage.write(["/C"], name, 1, np.float32([1])).wait()
    with pytest.raises(OvstageError, match=f"at most {MOST_BYTES_OF_NAME}"):
        stage.write(["/C"], name + "n", 1, np.float32([1])).wait()


@pytest.mark.parametrize("line", ['string s = "a\\x00b"', 'string[] s = ["ok", "a\\x00b"]'])
def test_a_nul_in_a_text_costs_its_value_alone(stage: Stage, tmp_path: Path, line: str) -> None:
    path = tmp_path / "scene.usda"
    path.write_text(f'#usda 1.0\ndef Cube "C"\n{{\n    {line}\n    double size = 3\n}}\n')
    [said] = population.open_usd(stage, path).skipped
    assert str(said) == r"/C.s: its text 'a\x00b' has a NUL, which no text of a stage can have"
    layer = Sdf.Layer.FindOrOpen(str(path))
    layer.GetAttributeAtPath("/C.size").default = 5.0
    assert list(population.apply_usd_changes(stage, 2).paths) == ["/C"]
    stage.advance_write_floor(2).wait()
    assert read(stage, "/C", "size") == 5


def test_an_edit_to_a_text_that_is_none_does_not_hold_up_later_ones(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "scene.usda"
    path.write_text('#usda 1.0\ndef Cube "C"\n{\n    string s = "fine"\n    double size = 3\n}\n')
    population.open_usd(stage, path)
    layer = Sdf.Layer.FindOrOpen(str(path))
    layer.GetAttributeAtPath("/C.s").default = "a\0b"
    report = population.apply_usd_changes(stage, 2)
    assert (len(report.skipped), report.removed) == (1, 1)
    layer.GetAttributeAtPath("/C.size").default = 5.0
    assert population.apply_usd_changes(stage, 3).values == 1
    layer.GetAttributeAtPath("/C.s").default = "fine again"
    assert population.apply_usd_changes(stage, 4).values == 1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("dictionary", "name", "reason"),
    [
        ('string k = "cafQQ"\n int ok = 1', "usd-metadata:customData:k", "it has bytes that are not UTF-8 text"),
        ("int cafQQ = 1\n int ok = 1", "usd-metadata:customData", "it has bytes that are not UTF-8 text"),
        ('string k = "a\\x00b"\n int ok = 1', "usd-metadata:customData:k", "has a NUL"),
        ('string "a\\x00b" = "k"\n int ok = 1', "usd-metadata:customData:a\0b", "has a NUL"),
    ],
)
def test_a_text_that_is_none_in_metadata_is_named(
    stage: Stage, tmp_path: Path, dictionary: str, name: str, reason: str
) -> None:
    text = f'#usda 1.0\ndef Cube "C" (\n    customData = {{\n {dictionary}\n }}\n)\n{{\n}}\n'
    path = tmp_path / "scene.usda"
    path.write_text(text)
    if "cafQQ" in text:
        path = foreign(tmp_path, text)
    everything = population.Selector(
        population.PrimPredicate.all(), population.PropertyPredicate.all(), prim_metadata_paths=["customData"]
    )
    [said] = population.open_usd_with_desc(stage, path, 1, math.nan, population.Desc(selectors=[everything])).skipped
    assert (said.path, said.attribute) == ("/C", name)
    assert reason in said.reason
    stage.advance_write_floor(1).wait()
    assert read(stage, "/C", "size") == 2
    if "int cafQQ" not in text:  # without its keys, USD hands out nothing of a dictionary
        assert read(stage, "/C", "usd-metadata:customData:ok") == 1


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("asset a = @./a.<UDIM>.png@", True),
        ("asset[] a = [@./a.png@, @./a.<UDIM>.png@]", True),
        ('asset a = @`"./${X}.png"`@', True),
        ("asset a = @/a.<UDIM>.png@", False),
        ("asset a = @./a.png@", False),
    ],
)
def test_an_asset_path_in_metadata_that_needs_its_place_is_named(stage: Stage, value: str, named: bool) -> None:
    text = f'#usda 1.0\ndef Cube "C" (\n    customData = {{\n {value}\n }}\n)\n{{\n}}\n'
    everything = population.Selector(
        population.PrimPredicate.all(), population.PropertyPredicate.all(), prim_metadata_paths=["customData"]
    )
    desc = population.Desc(selectors=[everything])
    report = population.open_usd_from_string_with_desc(stage, text, 1, math.nan, desc)
    found = [(said.path, said.attribute, said.reason) for said in report.skipped]
    reason = "its path is not resolved; it is published as written"
    assert found == ([("/C", "usd-metadata:customData:a", reason)] if named else [])
