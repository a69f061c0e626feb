"""A USD file opened into a stage: what arrives, in which form, and what happens when it cannot be opened."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from children import run_python

import ovstage
from ovstage import AttributeSemantic, ErrorCode, OrdinalRange, OvstageError, PathDictionary, Stage
from ovstage.population import requirements, usd

np = pytest.importorskip("numpy", reason="numpy is not installed")
pytest.importorskip("pxr.Usd", reason="usd-core is not installed")

SCENE = """#usda 1.0
(
    metersPerUnit = 1
    timeCodesPerSecond = 24
    upAxis = "Z"
)

def Xform "World"
{
    double3 xformOp:translate = (1, 2, 3)
    uniform token[] xformOpOrder = ["xformOp:translate"]

    def Sphere "Ball" (
        prepend apiSchemas = ["PhysicsRigidBodyAPI"]
    )
    {
        double radius = 2.5
        quatf xformOp:orient = (0.5, 0.1, 0.2, 0.3)
        double3 xformOp:translate = (10, 0, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
        rel friend = </World/Typeless>
    }

    def "Typeless"
    {
        double moving.timeSamples = { 0: 0, 24: 240 }
    }

    def Xform "Detached"
    {
        double3 xformOp:translate = (5, 5, 5)
        uniform token[] xformOpOrder = ["!resetXformStack!", "xformOp:translate"]
    }
}
"""

TYPELESS = "/World/Typeless"


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    path = tmp_path / "scene.usda"
    path.write_text(SCENE)
    return path


def column(stage: Stage, prims: list[str], name: str, ordinal: int = 1) -> dict[str, tuple[np.ndarray, int]]:
    """Value and semantic of one attribute by path."""
    found = {}
    with (
        PathDictionary(stage) as names,
        names.create_path_list_from_strings(prims) as paths,
        stage.query_from_path_list(paths) as query,
        stage.read_attributes(query, [names.intern_token(name)], OrdinalRange.latest(ordinal)) as read,
    ):
        for group in read.groups():
            with group:
                listed = names.get_path_strings(group.prim_list)
                rows = np.from_dlpack(group.dlpack(0))
                for prim, row in zip(group.prim_indices(), group.data_rows(), strict=True):
                    found[listed[prim]] = (rows[row].copy(), group.semantic)
    return found


def value(stage: Stage, path: str, name: str) -> np.ndarray:
    return column(stage, [path], name)[path][0]


def text(stage: Stage, path: str, name: str) -> str:
    with PathDictionary(stage) as names:
        return names.token_to_string(int(value(stage, path, name)))


@pytest.fixture
def opened(stage: Stage, scene: Path) -> tuple[Stage, usd.Report]:
    report = usd.open_usd(stage, scene, domains=ovstage.PopulationDomain.ALL)
    stage.advance_write_floor(1).wait()
    return stage, report


def test_every_prim_becomes_a_row_with_its_type(opened: tuple[Stage, usd.Report]) -> None:
    stage, report = opened
    assert list(report.paths) == ["/", "/World", "/World/Ball", TYPELESS, "/World/Detached"]
    types = {path: text(stage, path, "usd-prim-type") for path in report.paths[1:]}
    assert types == {
        "/World": "Xform",
        "/World/Ball": "Sphere",
        TYPELESS: "__ovstage_population_untyped__",
        "/World/Detached": "Xform",
    }


def test_transforms_are_local_and_world_matrices(opened: tuple[Stage, usd.Report]) -> None:
    stage, _ = opened
    moved = {"/World": (1, 2, 3), "/World/Ball": (10, 0, 0), "/World/Detached": (5, 5, 5)}
    local = column(stage, [*moved, TYPELESS], "omni:xform")
    assert {path: tuple(matrix.reshape(4, 4)[3, :3]) for path, (matrix, _) in local.items()} == moved
    assert {role for _, role in local.values()} == {AttributeSemantic.MATRIX}
    world = column(stage, list(moved), "omni:fabric:worldMatrix")
    assert tuple(world["/World/Ball"][0].reshape(4, 4)[3, :3]) == (11, 2, 3)
    assert tuple(world["/World/Detached"][0].reshape(4, 4)[3, :3]) == (5, 5, 5)
    resets = column(stage, list(moved), "omni:resetXformStack")
    assert {path: bool(flag) for path, (flag, _) in resets.items()} == {path: "Detached" in path for path in moved}


def test_schemas_give_their_fallbacks(opened: tuple[Stage, usd.Report]) -> None:
    stage, _ = opened
    assert value(stage, "/World/Ball", "radius") == 2.5
    velocity, role = column(stage, ["/World", "/World/Ball"], "physics:velocity")["/World/Ball"]
    assert (velocity.tolist(), role) == ([0, 0, 0], AttributeSemantic.VECTOR)
    assert list(column(stage, ["/World", "/World/Ball"], "physics:rigidBodyEnabled")) == ["/World/Ball"]


def test_one_name_may_have_several_types(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "two.usda"
    path.write_text('#usda 1.0\ndef "A"\n{\n    float size2 = 1\n}\n\ndef "B"\n{\n    double size2 = 2\n}\n')
    usd.open_usd(stage, path)
    stage.advance_write_floor(1).wait()
    found = column(stage, ["/A", "/B"], "size2")
    assert {path: (number.dtype.name, float(number)) for path, (number, _) in found.items()} == {
        "/A": ("float32", 1.0),
        "/B": ("float64", 2.0),
    }


def test_units_lie_on_the_root(opened: tuple[Stage, usd.Report]) -> None:
    stage, _ = opened
    assert value(stage, "/", "usd-metadata:metersPerUnit") == 1.0
    assert text(stage, "/", "usd-metadata:upAxis") == "Z"


def test_nothing_of_the_scene_is_left_out(opened: tuple[Stage, usd.Report]) -> None:
    _, report = opened
    assert report.skipped == []


def test_what_cannot_be_represented_is_reported_once(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "odd.usda"
    path.write_text(
        '#usda 1.0\ndef Sphere "S"\n{\n    token radius = "big"\n}\n\ndef Sphere "T"\n{\n    token radius = "big"\n'
        '    float3[] extent = [(0, 0, 0)]\n}\n\ndef Sphere "U" (\n    apiSchemas = ["MadeUpAPI"]\n)\n{\n}\n'
    )
    report = usd.open_usd(stage, path)
    assert sorted((str(skipped.path), skipped.attribute, skipped.count) for skipped in report.skipped) == [
        ("/S", "radius", 2),
        ("/T", "extent", 1),
        ("/U", "", 1),
    ]
    text = str(report)
    assert "/S.radius (and 1 more): its value is a str, not a double" in text
    assert "MadeUpAPI, which is not registered" in text


def test_names_of_computed_columns_are_left_to_population(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "computed.usda"
    path.write_text(
        '#usda 1.0\ndef Xform "A"\n{\n    custom token omni:xform = "mine"\n    custom double size = 1\n'
        "    custom matrix4d omni:fabric:localMatrix = ((2,0,0,0), (0,2,0,0), (0,0,2,0), (0,0,0,1))\n"
        "    custom rel omni:fabric:worldMatrix = </A>\n}\n"
    )
    report = usd.open_usd(stage, path)
    assert {(skipped.path, skipped.attribute) for skipped in report.skipped} == {
        ("/A", "omni:xform"),
        ("/A", "omni:fabric:localMatrix"),
        ("/A", "omni:fabric:worldMatrix"),
    }
    stage.advance_write_floor(1).wait()
    assert value(stage, "/A", "omni:xform").reshape(4, 4).tolist() == np.eye(4).tolist()
    assert value(stage, "/A", "size") == 1


def test_a_transform_that_usd_cannot_compute_is_reported(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "transform.usda"
    path.write_text(
        '#usda 1.0\ndef Xform "A"\n{\n    uniform token[] xformOpOrder = ["xformOp:nonsense"]\n}\n\ndef Xform "B"\n{\n'
        '    double3 xformOp:translate = (1, 2, 3)\n    uniform token[] xformOpOrder = ["xformOp:translate"]\n}\n'
    )
    report = usd.open_usd(stage, path)
    assert [str(skipped) for skipped in report.skipped] == [
        "/A.xformOpOrder: the transform is taken for the identity: Invalid xform opType token 'nonsense'."
    ]
    stage.advance_write_floor(1).wait()
    assert value(stage, "/A", "omni:xform").reshape(4, 4).tolist() == np.eye(4).tolist()
    assert value(stage, "/B", "omni:xform").reshape(-1)[12:15].tolist() == [1, 2, 3]


def test_a_property_of_another_kind_than_declared_is_reported(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "kinds.usda"
    path.write_text(
        '#usda 1.0\ndef Mesh "A" (\n    apiSchemas = ["PhysicsCollisionAPI"]\n)\n{\n    rel points = </A>\n'
        '    rel xformOpOrder = </A>\n    token material:binding:physics = "x"\n    custom double mine = 1\n}\n\n'
        'def PointInstancer "B"\n{\n    token prototypes = "x"\n    int[] protoIndices = [0]\n}\n\n'
        'def Cube "C" (\n    apiSchemas = ["PhysicsCollisionAPI", "MaterialBindingAPI"]\n)\n{\n'
        "    rel material:binding:physics = </M>\n}\n\n"
        'def Material "M" (\n    apiSchemas = ["PhysicsMaterialAPI"]\n)\n{\n}\n'
    )
    report = usd.open_usd(stage, path, domains=ovstage.PopulationDomain.ALL)
    assert {("/A", "points"), ("/B", "prototypes")} <= {(each.path, each.attribute) for each in report.skipped}
    stage.advance_write_floor(1).wait()
    assert value(stage, "/A", "mine") == 1
    for domain in (ovstage.PopulationDomain.RENDERING, ovstage.PopulationDomain.PHYSICS):
        with Stage() as other:
            assert "/A" in usd.open_usd(other, path, domains=domain).paths
    with PathDictionary(stage) as names, names.create_path_list_from_strings(["/C"]) as paths:
        with stage.query_from_path_list(paths) as query:
            bound = stage.read(query, ["material:binding:physics"])["material:binding:physics"].row(0)
        assert names.path_to_string(int(bound[0])) == "/M"


def test_time_is_in_seconds(stage: Stage, scene: Path) -> None:
    usd.open_usd(stage, scene, time_code=0.5)
    stage.advance_write_floor(1).wait()
    assert value(stage, TYPELESS, "moving") == 120.0


def test_prims_inside_instances_are_rows(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "instances.usda"
    path.write_text(
        '#usda 1.0\ndef Xform "Part"\n{\n    def Cube "Box"\n    {\n    }\n}\n\n'
        'def Xform "Copy" (\n    instanceable = true\n    references = </Part>\n)\n{\n'
        '    double3 xformOp:translate = (0, 0, 4)\n    uniform token[] xformOpOrder = ["xformOp:translate"]\n}\n'
    )
    report = usd.open_usd(stage, path)
    stage.advance_write_floor(1).wait()
    assert [path for path in report.paths if "Prototype" in path] == ["/__Prototype_1"]
    assert text(stage, "/Copy", "usd-prim-type") == "XformInstance"
    world, _ = column(stage, ["/Copy/Box"], "omni:fabric:worldMatrix")["/Copy/Box"]
    assert tuple(world.reshape(4, 4)[3, :3]) == (0, 0, 4)


def test_no_domain_populates_nothing(stage: Stage, scene: Path) -> None:
    assert not usd.open_usd(stage, scene, domains=ovstage.PopulationDomain.NONE).paths
    assert not usd.open_usd(stage, scene, domains=0).columns


def test_progress_runs_to_the_end(stage: Stage, scene: Path) -> None:
    seen: list[tuple[int, int, str]] = []
    usd.open_usd(stage, scene, progress=lambda *step: seen.append(step))
    last = {label: (done, total) for done, total, label in seen}
    assert list(last) == ["composing scene", "reading prims", "writing columns"]
    assert all(done == total > 0 for done, total in last.values())


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "no such file"),
        ('#usda 1.0\ndef Xform "a"\n{\n    broken\n}\n', r"broken.usda:4:\d+: Expected"),
        ("not a scene", "broken.usda"),
    ],
)
def test_a_file_that_cannot_be_opened_says_why(stage: Stage, tmp_path: Path, content: str | None, reason: str) -> None:
    path = tmp_path / "broken.usda"
    if content is not None:
        path.write_text(content)
    with pytest.raises(OvstageError, match=reason) as caught:
        usd.open_usd(stage, path)
    assert str(path) in str(caught.value)
    assert "pxr" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.code == ErrorCode.OP_FAILED
    assert stage.counters()["bytes_columns"] == 0


@pytest.mark.parametrize(
    ("usda", "reason"),
    [
        ("", "does not begin with '#usda 1.0'"),
        ("def Cube", "does not begin with '#usda 1.0'"),
        ("#usda 1.0\ndef {", ":2:1: does not parse at 'def {'"),
        ('#usda 1.0\ndef "A"\n{\n    asset a = @b\n}\n', ":4:17: does not parse at ''"),
    ],
)
def test_a_text_that_is_no_scene_says_why(stage: Stage, usda: str, reason: str) -> None:
    with pytest.raises(OvstageError, match=reason) as caught:
        usd.open_usd_from_string(stage, usda)
    assert "pxr" not in str(caught.value)


@pytest.mark.parametrize("name", ["damaged.usd", "damaged.usdz"])
def test_a_damaged_file_is_named(stage: Stage, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"PK not what it says")
    with pytest.raises(OvstageError, match=rf"{name}'.* may be damaged"):
        usd.open_usd(stage, tmp_path / name)


def test_usd_stays_off_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "dangling.usda"
    path.write_text('#usda 1.0\ndef Xform "a" (\n    references = @absent.usda@\n)\n{\n}\n')
    program = (
        "import sys; from ovstage import Stage, OvstageError; from ovstage.population.usd import open_usd\n"
        "stage = Stage(); print(*open_usd(stage, sys.argv[1]).warnings)\n"
        "try: open_usd(stage, 'absent.usda')\nexcept OvstageError: pass\n"
    )
    child = run_python(program, str(path))
    assert (child.returncode, child.stderr) == (0, "")
    assert "absent.usda" in child.stdout
    assert "0x" not in child.stdout


def test_a_sealed_ordinal_is_refused_before_anything_is_read(stage: Stage, scene: Path) -> None:
    stage.advance_write_floor(3).wait()
    with pytest.raises(OvstageError, match="lowest open ordinal is 4") as caught:
        usd.open_usd(stage, scene, ordinal=3, progress=lambda *_: pytest.fail("the scene was read"))
    assert caught.value.code == ErrorCode.WRITE_FLOOR_VIOLATION


@pytest.mark.parametrize("label", ["composing scene", "reading prims", "writing columns"])
def test_an_interruption_before_the_first_write_leaves_the_stage_as_it_was(
    stage: Stage, scene: Path, label: str
) -> None:
    def interrupt(done: int, total: int, current: str) -> None:
        if current == label:
            raise KeyboardInterrupt

    before = stage.counters()
    with pytest.raises(KeyboardInterrupt):
        usd.open_usd(stage, scene, progress=interrupt)
    after = stage.counters()
    for name in ("bytes_columns", "live_queries", "live_operations"):
        assert after[name] == before[name], name


def test_arguments_are_named(stage: Stage, scene: Path) -> None:
    with pytest.raises(TypeError, match="path"):
        usd.open_usd(stage, b"scene.usda")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="domains"):
        usd.open_usd(stage, scene, domains=1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="domains"):
        usd.open_usd(stage, scene, domains=-1)
    with pytest.raises(ValueError, match="ordinal"):
        usd.open_usd(stage, scene, ordinal=-1)


def test_without_usd_core_it_says_what_to_install(stage: Stage, scene: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "find_spec", lambda name: None)
    assert not usd.available()
    assert not usd.descs_available()
    assert not ovstage.population.export_available()
    with pytest.raises(OvstageError, match=r"missing or too old: pip install 'usd-core>=26.5' numpy$") as caught:
        usd.open_usd(stage, scene, time_code=math.nan)
    assert caught.value.code == ErrorCode.NOT_SUPPORTED
    with pytest.raises(OvstageError, match=r"an export needs packages that are missing or too old: pip install 'usd"):
        ovstage.population.export_to_usd_file(stage, "out.usda", 1)


@pytest.mark.parametrize(("version", "fits"), [("24.11", False), ("25.2.post1", False), ("26.5", True), ("27.1", True)])
def test_an_old_usd_core_is_no_usd_core(monkeypatch: pytest.MonkeyPatch, version: str, fits: bool) -> None:
    monkeypatch.setattr(requirements.metadata, "version", lambda name: version)
    assert usd.available() == fits


def test_usd_from_elsewhere_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise requirements.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(requirements.metadata, "version", missing)
    assert usd.available()
