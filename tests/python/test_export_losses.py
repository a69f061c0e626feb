"""What an export must not lose, and how it names what it leaves out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from pxr import Sdf, Usd, UsdGeom
from test_export import DEF, GLOB, INFER, moved, put, put_types, turned

import ovstage
from ovstage import ErrorCode, OvstageError, population

EVERYTHING = {"source_attribute_name": "*", "source_attribute_name_match": GLOB, "flags": INFER}


@pytest.fixture
def stage() -> Iterator[ovstage.Stage]:
    with ovstage.Stage("export") as made:
        yield made


def opened(text: str) -> ovstage.Stage:
    stage = ovstage.Stage("losses")
    population.open_usd_from_string(stage, text, 1, domains=ovstage.PopulationDomain.ALL)
    stage.advance_write_floor(1).wait()
    return stage


def local(file: Path, path: str) -> np.ndarray:
    scene = Usd.Stage.Open(str(file))
    return np.array(UsdGeom.Xformable(scene.GetPrimAtPath(path)).GetLocalTransformation())


def named(entries: list[population.Skipped]) -> set[tuple[str, str]]:
    return {(entry.path, entry.attribute) for entry in entries}


# --- transforms ---


@pytest.mark.parametrize("scale", [s for s in product((0, 1, -2), (0, 3), (0, -1, 4)) if 0 in s])
def test_a_scale_of_zero_is_a_scale(stage: ovstage.Stage, tmp_path: Path, scale: tuple[float, float, float]) -> None:
    matrix = turned(70, scale, (1, 2, 3))
    put(stage, {"/A": matrix}, "omni:xform", semantic=10)
    put_types(stage, {"/A": "Xform"}, 2)
    file = tmp_path / "out.usda"
    report = population.export_to_usd_file(stage, file, 2, layer_mode=DEF, attribute_rules=["omni:xform"])
    assert (report["transforms_exported"], report.skipped) == (1, [])
    np.testing.assert_allclose(local(file, "/A"), matrix, atol=1e-14)


@pytest.mark.parametrize("scale", [(1e-9, 1, 1), (1e-300, 1e-300, 1e-300), (1e150, 1, 1)])
def test_a_scale_near_zero_is_written_or_named(
    stage: ovstage.Stage, tmp_path: Path, scale: tuple[float, float, float]
) -> None:
    matrix = turned(70, scale, (1, 2, 3))
    put(stage, {"/A": matrix}, "omni:xform", semantic=10)
    put_types(stage, {"/A": "Xform"}, 2)
    file = tmp_path / "out.usda"
    report = population.export_to_usd_file(stage, file, 2, layer_mode=DEF, attribute_rules=["omni:xform"])
    if report["transforms_exported"]:
        np.testing.assert_allclose(local(file, "/A"), matrix, rtol=1e-6, atol=1e-6 * max(scale))
    else:
        assert named(report.skipped) == {("/A", "omni:xform")}


def test_a_shear_beside_a_zero_scale_is_named(stage: ovstage.Stage, tmp_path: Path) -> None:
    sheared = moved(1)
    sheared[:3, :3] = [[1, 0, 0], [0.5, 1, 0], [0, 0, 0]]
    put(stage, {"/A": sheared, "/B": moved(1)}, "omni:xform", semantic=10)
    report = population.export_to_usd_file(stage, tmp_path / "out.usda", 1, attribute_rules=["omni:xform"])
    (entry,) = report.skipped
    assert str(entry).startswith("/A.omni:xform: has a shear")


OPERATIONS = """#usda 1.0
def Xform "World"
{
    float3 xformOp:rotateXYZ = (10, 20, 30)
    double3 xformOp:translate = (1, 2, 3)
    double3 xformOp:translate:pivot = (4, 5, 6)
    uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:translate:pivot", "xformOp:rotateXYZ",
        "!invert!xformOp:translate:pivot"]
    def Xform "Still"
    {
        float xformOp:rotateX = 30
        uniform token[] xformOpOrder = ["!resetXformStack!", "xformOp:rotateX"]
    }
}
"""


def test_everything_keeps_operations_that_make_the_matrix(tmp_path: Path) -> None:
    file = tmp_path / "out.usda"
    with opened(OPERATIONS) as stage:
        report = population.export_to_usd_file(
            stage, file, 1, layer_mode=DEF, attribute_rules=["omni:xform", EVERYTHING]
        )
    source = Sdf.Layer.CreateAnonymous(".usda")
    source.ImportFromString(OPERATIONS)
    written = Sdf.Layer.FindOrOpen(str(file))
    for path in ("/World", "/World/Still"):
        for attribute in source.GetPrimAtPath(path).attributes:
            assert written.GetAttributeAtPath(attribute.path).default == attribute.default
    assert (report["transforms_exported"], report.skipped) == (2, [])


def test_operations_of_an_earlier_matrix_give_way_to_the_matrix(tmp_path: Path) -> None:
    file = tmp_path / "out.usda"
    with opened(OPERATIONS) as stage:
        put(stage, {"/World": moved(7, 8, 9)}, "omni:xform", 2, semantic=10)
        population.export_to_usd_file(stage, file, 2, layer_mode=DEF, attribute_rules=["omni:xform", EVERYTHING])
        assert local(file, "/World").tolist() == moved(7, 8, 9).tolist()

        report = population.export_to_usd_file(stage, file, 2, layer_mode=DEF, attribute_rules=[EVERYTHING])
        assert named(report.skipped) == {("/World", "omni:xform")}
        assert "add the rule 'omni:xform'" in str(report.skipped[0])


# --- assets ---


def textured(folder: Path) -> Path:
    (folder / "assets/tex").mkdir(parents=True)
    (folder / "assets/tex/a.png").write_text("picture")
    (folder / "assets/part.usda").write_text(
        '#usda 1.0\n(\n    defaultPrim = "M"\n)\ndef Material "M"\n{\n    def Shader "T"\n    {\n'
        '        uniform token info:id = "UsdUVTexture"\n        asset inputs:file = @./tex/a.png@\n'
        "        asset[] inputs:many = [@./tex/a.png@, @./tex/none.png@, @@]\n    }\n}\n"
    )
    root = folder / "root.usda"
    root.write_text('#usda 1.0\ndef "L" (\n    references = @./assets/part.usda@\n)\n{\n}\n')
    return root


def test_asset_paths_lead_to_the_same_files_from_another_folder(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    file = tmp_path / "out/o.usda"
    with ovstage.Stage("assets") as stage:
        population.open_usd(stage, textured(tmp_path), 1, domains=ovstage.PopulationDomain.ALL)
        seal_one(stage)
        report = population.export_typed_hierarchy_to_usd_file(stage, file, "/L", 1)
    scene = Usd.Stage.Open(str(file))
    prim = scene.GetPrimAtPath("/L/T")
    assert prim.GetAttribute("inputs:file").Get().resolvedPath == str(tmp_path / "assets/tex/a.png")
    assert prim.GetAttribute("inputs:many").Get()[0].resolvedPath == str(tmp_path / "assets/tex/a.png")
    (lost,) = report.warnings
    assert (lost.path, lost.attribute) == ("/L/T", "inputs:many")
    assert "leads to no file from here" in lost.reason


def test_an_asset_path_beside_the_same_files_stays_relative(tmp_path: Path) -> None:
    root = textured(tmp_path)
    file = tmp_path / "assets/o.usda"
    with ovstage.Stage("assets") as stage:
        population.open_usd(stage, root, 1, domains=ovstage.PopulationDomain.ALL)
        seal_one(stage)
        population.export_typed_hierarchy_to_usd_file(stage, file, "/L", 1)
    scene = Usd.Stage.Open(str(file))
    assert scene.GetAttributeAtPath("/L/T.inputs:file").Get().path == "./tex/a.png"


def seal_one(stage: ovstage.Stage) -> None:
    stage.advance_write_floor(1).wait()


# --- typed exports ---

NESTED = """#usda 1.0
def Xform "World"
{
    def Xform "Props"
    {
        def Sphere "Ball"
        {
            double radius = 2
            float lab:heat = 20
            rel lab:near = </World>
        }
    }
}
"""


def test_asset_paths_of_metadata_that_lead_nowhere_are_named(tmp_path: Path) -> None:
    text = '#usda 1.0\ndef "A" (\n customData = {\n  asset[] a = [@./no.png@]\n  asset b = @/no.png@\n }\n)\n{\n}\n'
    asked = population.Selector(
        population.PrimPredicate.all(), population.PropertyPredicate.all(), prim_metadata_paths=["customData"]
    )
    with ovstage.Stage("losses") as stage:
        population.open_usd_from_string_with_desc(stage, text, 1, float("nan"), population.Desc(selectors=[asked]))
        stage.advance_write_floor(1).wait()
        rules = [{"source_metadata_name": f"customData:{key}"} for key in "ab"]
        report = population.export_to_usd_file(stage, tmp_path / "out.usda", 1, metadata_rules=rules)
        assert report["metadata_exported"] == 2
        assert named(report.warnings) == {("/A", "usd-metadata:customData:a")}


@pytest.mark.parametrize("root", ["/World", "/World/Props"])
def test_a_written_subtree_can_be_referenced(tmp_path: Path, root: str) -> None:
    file = tmp_path / "out.usda"
    with opened(NESTED) as stage:
        population.export_typed_hierarchy_to_usd_file(stage, file, root, 1)
    scene = Usd.Stage.Open(str(file))
    assert str(scene.GetDefaultPrim().GetPath()) == root
    with opened("#usda 1.0\n") as stage:
        population.add_usd_reference(stage, file, "/Env/Props")
        population.apply_usd_changes(stage, 9)
        ball = "/Env/Props/Props/Ball" if root == "/World" else "/Env/Props/Ball"
        stage.advance_write_floor(9).wait()
        assert stage.read([ball], ["radius"])["radius"].values.tolist() == [2.0]


def test_a_default_prim_that_the_layer_has_stays(tmp_path: Path) -> None:
    file = tmp_path / "out.usda"
    file.write_text('#usda 1.0\n(\n    defaultPrim = "Mine"\n)\ndef "Mine"\n{\n}\n')
    existing = population.ExportDestinationMode.OPEN_EXISTING
    with opened(NESTED) as stage, population.ExportDestination.create(stage, file, existing) as destination:
        destination.export(1, layer_mode=DEF, projection=population.ExportProjection.SCHEMA_DECLARED)
        destination.save()
    assert Sdf.Layer.FindOrOpen(str(file)).defaultPrim == "Mine"


def test_what_no_schema_declares_is_named(tmp_path: Path) -> None:
    with opened(NESTED) as stage:
        report = population.export_typed_hierarchy_to_usd_file(stage, tmp_path / "out.usda", "/", 1)
        assert named(report.skipped) == {("/World/Props/Ball", "lab:heat"), ("/World/Props/Ball", "lab:near")}
        report = population.export_typed_hierarchy_to_usd_file(
            stage, tmp_path / "out.usda", "/", 1, include_custom_namespaces=["lab"]
        )
        assert named(report.skipped) == {("/World/Props/Ball", "lab:near")}


@pytest.mark.parametrize("how", ["typed", "pattern"])
def test_which_prototype_an_instance_shows_is_no_loss(tmp_path: Path, how: str) -> None:
    text = """#usda 1.0
        class "Tree"
        {
            def Sphere "Crown"
            {
            }
        }
        def Xform "A" (
            instanceable = true
            inherits = </Tree>
        )
        {
        }
        def "B" (
            instanceable = true
            inherits = </Tree>
        )
        {
        }
        """
    file = tmp_path / "out.usda"
    with opened(text) as stage:
        assert "usd-prototype" in stage.read(["/A"], ["usd-prototype"])
        if how == "typed":
            report = population.export_typed_hierarchy_to_usd_file(stage, file, "/", 1)
        else:
            report = population.export_to_usd_file(stage, file, 1, attribute_rules=[EVERYTHING])
    assert not [entry for entry in report.skipped if entry.attribute == "usd-prototype"]


def test_prims_without_a_type_keep_transforms_and_attributes(stage: ovstage.Stage, tmp_path: Path) -> None:
    put(stage, {"/Robot/arm": moved(1, 2, 3)}, "omni:xform", semantic=10)
    put(stage, {"/Robot/arm": np.float32(0.5)}, "mass", 2)
    file = tmp_path / "out.usda"
    report = population.export_typed_hierarchy_to_usd_file(stage, file, "/Robot", 2)
    scene = Usd.Stage.Open(str(file))
    arm = scene.GetPrimAtPath("/Robot/arm")
    assert (arm.GetTypeName(), arm.GetAttribute("mass").Get()) == ("Xform", 0.5)
    assert local(file, "/Robot/arm").tolist() == moved(1, 2, 3).tolist()
    assert (report["transforms_exported"], report.skipped) == (1, [])


# --- what is named ---


def test_prims_without_a_type_keep_edges_and_the_order_of_operations(tmp_path: Path) -> None:
    stage = opened(
        """#usda 1.0
def "U"
{
    double a = 3
    double a.connect = </U.b>
    double b.connect = </U.a>
    rel r = </V>
    double3 xformOp:translate = (1, 2, 3)
    uniform token[] xformOpOrder = ["xformOp:translate"]
}
def "V"
{
}
"""
    )
    file = tmp_path / "out.usda"
    report = population.export_typed_hierarchy_to_usd_file(stage, file, "/", 1)
    assert (report.skipped, report["attributes_unsupported"]) == ([], 0)
    scene = Usd.Stage.Open(str(file))
    prim = scene.GetPrimAtPath("/U")
    assert prim.GetRelationship("r").GetTargets() == ["/V"]
    assert prim.GetAttribute("a").GetConnections() == ["/U.b"]
    assert prim.GetAttribute("b").GetConnections() == ["/U.a"]
    assert list(prim.GetAttribute("xformOpOrder").Get()) == ["xformOp:translate"]


def test_connections_that_are_not_written_are_named(tmp_path: Path) -> None:
    stage = opened('#usda 1.0\ndef Cube "C"\n{\n    double lab:x = 1\n    double lab:x.connect = </C.size>\n}\n')
    out = tmp_path / "out.usda"
    report = population.export_typed_hierarchy_to_usd_file(stage, out, "/", 1)
    assert named(report.skipped) == {("/C", "lab:x"), ("/C", "lab:x.connect")}

    report = population.export_to_usd_file(stage, out, 1, attribute_rules=["omni:xform", EVERYTHING])
    assert named(report.skipped) == {("/C", "lab:x.connect")}

    connections = {"source_property_name": "lab:x", "property_kind": 2}
    rules = ["omni:xform", EVERYTHING]
    report = population.export_to_usd_file(stage, out, 1, attribute_rules=rules, property_rules=[connections])
    assert report.skipped == []


def test_a_relationship_under_a_pattern_is_named_unless_another_rule_writes_it(tmp_path: Path) -> None:
    with opened(NESTED) as stage:
        report = population.export_to_usd_file(stage, tmp_path / "a.usda", 1, attribute_rules=[EVERYTHING])
        assert ("/World/Props/Ball", "lab:near") in named(report.skipped)
        edge = {"source_property_name": "lab:near", "property_kind": 1}
        report = population.export_to_usd_file(
            stage, tmp_path / "a.usda", 1, attribute_rules=[EVERYTHING], property_rules=[edge]
        )
        assert ("/World/Props/Ball", "lab:near") not in named(report.skipped)


def test_a_value_that_no_type_suits_is_named(stage: ovstage.Stage, tmp_path: Path) -> None:
    put(stage, {"/A": 1.0}, "x")
    report = population.export_to_usd_file(stage, tmp_path / "a.usda", 1, attribute_rules=["x"])
    (entry,) = report.skipped
    assert str(entry) == "/A.x: float64 cannot be written without a type: give usd_type_name or INFER_CUSTOM_TYPE"


def test_bytes_that_are_no_text_are_named(stage: ovstage.Stage, tmp_path: Path) -> None:
    texts = {"/A": np.frombuffer(b"plain", np.uint8), "/B": np.frombuffer(b"caf\xe9", np.uint8)}
    put(stage, texts, "note", is_array=True, semantic=ovstage.AttributeSemantic.STRING)
    file = tmp_path / "a.usda"
    report = population.export_to_usd_file(stage, file, 1, attribute_rules=[EVERYTHING])
    assert 'string note = "plain"' in file.read_text()
    assert list(map(str, report.skipped)) == ["/B.note: the bytes of the text are no UTF-8"]


def test_a_report_is_still_a_dictionary_of_counters(stage: ovstage.Stage, tmp_path: Path) -> None:
    put(stage, {"/A": 1.0}, "x")
    report = population.export_to_usd_file(stage, tmp_path / "a.usda", 1)
    assert isinstance(report, dict) and len(report) == 23 and set(map(type, report.values())) == {int}


# --- destinations ---


def test_a_destination_whose_name_is_no_utf8_is_refused(stage: ovstage.Stage, tmp_path: Path) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.usda")
    for call in (population.export_to_usd_file, lambda *a: population.ExportDestination.create(*a[:2])):
        with pytest.raises(OvstageError, match=r"caf\\xe9.usda' is no UTF-8") as refused:
            call(stage, name, 0)
        assert refused.value.code == ErrorCode.INVALID_ARGUMENT


def test_a_destination_that_is_an_extension_alone_is_refused(stage: ovstage.Stage, tmp_path: Path) -> None:
    put(stage, {"/A": np.float64(1)}, "mass")
    with pytest.raises(OvstageError, match="says no USD format"):
        population.export_to_usd_file(stage, tmp_path / ".usda", 1)
    assert not list(tmp_path.iterdir())
    population.export_to_usd_file(stage, tmp_path / ".a.usda", 1)


def test_a_destination_that_holds_a_text_that_is_no_utf8(tmp_path: Path) -> None:
    """USD reads such a file, and its Python cannot tell what it says."""
    file = tmp_path / "odd.usdc"
    layer = Sdf.Layer.CreateAnonymous(".usda")
    layer.ImportFromString('#usda 1.0\ndef "World" (\n    prepend apiSchemas = ["cafQQ"]\n)\n{\n}\n')
    layer.Export(str(file))
    file.write_bytes(file.read_bytes().replace(b"cafQQ", b"caf\xe9Q"))
    existing = population.ExportDestinationMode.OPEN_EXISTING
    with opened(NESTED) as stage:
        before = file.read_bytes()
        with pytest.raises(OvstageError, match="no UTF-8"):
            with population.ExportDestination.create(stage, file, existing) as destination:
                destination.export(1, api_schema_rules=[{"schema_name": "MaterialBindingAPI", "path": "/World"}])
    assert file.read_bytes() == before
