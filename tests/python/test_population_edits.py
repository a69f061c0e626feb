"""The scene changes, the stage follows: references, edits of layers, time, reset, another open."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ovstage import ErrorCode, FilterOp, OvstageError, PathDictionary, PopulationDomain, Stage

np = pytest.importorskip("numpy", reason="numpy is not installed")
pytest.importorskip("pxr.Usd", reason="usd-core is not installed")

from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from pxr import Gf, Sdf, Tf, Usd, UsdGeom  # type: ignore # noqa: E402
from scenes import contents, count, read, usda, write  # noqa: E402

from ovstage import population  # noqa: E402
from ovstage.population import reading  # noqa: E402

ALL = PopulationDomain.ALL
CUBE = usda('def Xform "World"\n{\n    def Cube "Cube"\n    {\n        double size = 1\n    }\n}\n')
REFERENCE = usda('def Xform "Ref"\n{\n    def Cube "Box"\n    {\n    }\n}\n', header='defaultPrim = "Ref"')


# --- references -------------------------------------------------------------------------------------------------------


def test_a_reference_comes_with_the_next_apply_and_goes_with_its_handle(stage: Stage) -> None:
    population.open_usd_from_string(stage, CUBE)
    assert count(stage, FilterOp.IN, "/World/Cube") == 1
    handle = population.add_usd_reference_from_string(stage, REFERENCE, "/World/Props/Deep")
    assert count(stage, FilterOp.PREFIX, "/World/Props") == 0
    report = population.apply_usd_changes(stage, 2)
    assert report.values > 0
    assert count(stage, FilterOp.PREFIX, "/World/Props") == 3
    population.remove_usd(stage, handle)
    assert population.apply_usd_changes(stage, ordinal=3).removed == 3
    assert count(stage, FilterOp.PREFIX, "/World/Props") == 0
    with pytest.raises(OvstageError, match=rf"reference {handle} is not in the scene") as caught:
        population.remove_usd(stage, handle)
    assert caught.value.code == ErrorCode.INVALID_HANDLE


def test_a_reference_to_an_existing_prim_keeps_what_it_has(stage: Stage) -> None:
    population.open_usd_from_string(stage, CUBE)
    population.add_usd_reference_from_string(stage, REFERENCE, "/World")
    population.apply_usd_changes(stage, 2)
    stage.advance_write_floor(2).wait()
    assert count(stage, FilterOp.IN, "/World/Box") == 1
    assert read(stage, "/World/Cube", "size") == 1
    handles = [population.add_usd_reference_from_string(stage, REFERENCE, "/World/Cube") for _ in range(2)]
    population.remove_usd(stage, handles[0])
    population.apply_usd_changes(stage, 3)
    assert count(stage, FilterOp.IN, "/World/Cube/Box") == 1


def test_a_reference_stays_when_an_earlier_one_that_made_its_prim_goes(stage: Stage) -> None:
    population.open_usd_from_string(stage, CUBE)
    targets = ["/Props/Deep", "/Props/Deep", "/Props/Deep/Box/Top"]
    handles = [population.add_usd_reference_from_string(stage, REFERENCE, target) for target in targets]
    population.apply_usd_changes(stage, 2)
    population.remove_usd(stage, handles[0])
    population.apply_usd_changes(stage, 3)
    assert count(stage, FilterOp.IN, "/Props/Deep/Box") == 1
    population.remove_usd(stage, handles[1])
    population.apply_usd_changes(stage, 4)
    assert count(stage, FilterOp.IN, "/Props/Deep/Box/Top/Box") == 1
    population.remove_usd(stage, handles[2])
    population.apply_usd_changes(stage, 5)
    assert count(stage, FilterOp.PREFIX, "/Props") == 0


def test_the_root_merges_prims_and_keeps_the_units(stage: Stage, tmp_path: Path) -> None:
    population.open_usd_from_string(
        stage, usda('def Xform "World"\n{\n}\n', header='metersPerUnit = 0.5\nupAxis = "Z"')
    )
    extra = tmp_path / "extra.usda"
    extra.write_text(usda('def Cube "Extra"\n{\n}\n', header='metersPerUnit = 2\nupAxis = "Y"'))
    handle = population.add_usd_reference(stage, extra, "/")
    population.apply_usd_changes(stage, 2)
    stage.advance_write_floor(2).wait()
    assert count(stage, FilterOp.IN, "/Extra") == 1
    assert read(stage, "/", "usd-metadata:metersPerUnit") == 0.5
    population.remove_usd(stage, handle)
    population.apply_usd_changes(stage, 3)
    assert count(stage, FilterOp.IN, "/Extra") == 0


@pytest.mark.parametrize(
    ("content", "target", "reason"),
    [
        (REFERENCE, "World", "must be '/' or the absolute path of a prim"),
        (REFERENCE, "/World.size", "must be '/' or the absolute path of a prim"),
        (CUBE, "/World/New", "has no defaultPrim"),
        ("no usd", "/World/New", "cannot add the USD text at '/World/New'"),
        (REFERENCE, "/Copy/Box/Deep", "/Copy is an instance"),
        (REFERENCE, "/World{look=red}Box", "must be '/' or the absolute path of a prim"),
        (REFERENCE, "/Off/Box", "one above it is inactive"),
        (REFERENCE, "/__Prototype_1/Box", "the name is one that USD reserves"),
    ],
)
def test_a_reference_that_cannot_be_added_says_why(stage: Stage, content: str, target: str, reason: str) -> None:
    scene = usda(
        'def Xform "World"\n{\n    def Cube "Box"\n    {\n    }\n}\n',
        'def Xform "Copy" (\n    instanceable = true\n    references = </World>\n)\n{\n}\n',
        'def "Off" (\n    active = false\n)\n{\n}\n',
    )
    population.open_usd_from_string(stage, scene)
    with pytest.raises(OvstageError, match=reason) as caught:
        population.add_usd_reference_from_string(stage, content, target)
    assert caught.value.code == ErrorCode.OP_FAILED
    assert population.apply_usd_changes(stage, 2).values == 0


def test_a_missing_reference_file_says_so(stage: Stage) -> None:
    population.open_usd_from_string(stage, CUBE)
    with pytest.raises(OvstageError, match=r"'/nowhere/a\.usda' at '/World/A': there is no such file"):
        population.add_usd_reference(stage, "/nowhere/a.usda", "/World/A")


# --- following --------------------------------------------------------------------------------------------------------


def test_nothing_pending_writes_nothing(stage: Stage) -> None:
    population.open_usd_from_string(stage, CUBE)
    stage.advance_write_floor(1).wait()
    before = contents(stage, 1)
    report = population.apply_usd_changes(stage, 2)
    assert (report.values, report.removed) == (0, 0)
    assert list(report.paths) == []
    stage.advance_write_floor(2).wait()
    assert contents(stage, 2) == before


def test_what_a_simulation_wrote_survives_an_edit_elsewhere(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "scene.usda"
    path.write_text(CUBE)
    population.open_usd(stage, path)
    moved = np.eye(4)[None] * 2
    write(stage, "/World/Cube", "omni:xform", moved, 2)
    layer = Sdf.Layer.FindOrOpen(str(path))
    layer.GetAttributeAtPath("/World/Cube.size").default = 5.0
    assert population.apply_usd_changes(stage, 3).values == 1
    stage.advance_write_floor(3).wait()
    assert read(stage, "/World/Cube", "size") == 5
    assert np.array_equal(read(stage, "/World/Cube", "omni:xform"), moved.ravel())


def test_an_update_that_adds_no_row_leaves_the_layout(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "scene.usda"
    path.write_text(CUBE)
    population.open_usd(stage, path)
    stage.advance_write_floor(1).wait()
    population.add_usd_reference_from_string(stage, usda('def "Other"\n{\n    float mine = 1\n}\n'), "/")
    with PathDictionary(stage) as names, names.create_path_list_from_strings(["/World/Cube"]) as paths:

        def generation(ordinal: int) -> int:
            from ovstage import OrdinalRange

            with stage.query_from_path_list(paths) as query:
                token = names.intern_token("size")
                with stage.read_attributes(query, [token], OrdinalRange.latest(ordinal)) as found:
                    return int(found.fetch_next().meta.layout_generation)

        before = generation(1)
        population.apply_usd_changes(stage, 2)
        stage.advance_write_floor(2).wait()
        assert generation(2) == before


def test_transforms_follow_an_edit_down_the_hierarchy(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "scene.usda"
    path.write_text(CUBE)
    population.open_usd(stage, path)
    scene = Usd.Stage.Open(Sdf.Layer.FindOrOpen(str(path)))
    UsdGeom.Xformable(scene.GetPrimAtPath("/World")).AddTranslateOp().Set(Gf.Vec3d(1, 2, 3))
    population.apply_usd_changes(stage, 2)
    stage.advance_write_floor(2).wait()
    assert read(stage, "/World/Cube", "omni:fabric:worldMatrix")[12:15].tolist() == [1, 2, 3]
    assert np.array_equal(read(stage, "/World/Cube", "omni:xform"), np.eye(4).ravel())


def test_a_value_may_come_back_in_another_form(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "scene.usda"
    path.write_text(usda('def "A"\n{\n    custom float mine = 1\n}\n'))
    population.open_usd(stage, path)
    Sdf.Layer.FindOrOpen(str(path)).ImportFromString(usda('def "A"\n{\n    custom double3[] mine = [(1, 2, 3)]\n}\n'))
    population.apply_usd_changes(stage, 2)
    stage.advance_write_floor(2).wait()
    assert read(stage, "/A", "mine").tolist() == [[1, 2, 3]]


def test_reset_empties_the_stage_and_another_open_fills_it(stage: Stage) -> None:
    population.open_usd_from_string(stage, CUBE)
    handle = population.add_usd_reference_from_string(stage, REFERENCE, "/World/Props")
    population.reset_usd(stage)
    population.apply_usd_changes(stage, 2)
    assert count(stage, FilterOp.PREFIX, "/World") == 0
    with pytest.raises(OvstageError, match="ended by an open or a reset"):
        population.remove_usd(stage, handle)
    population.open_usd_from_string(stage, CUBE, ordinal=3)
    assert count(stage, FilterOp.PREFIX, "/World") == 2


def test_another_open_replaces_the_scene(stage: Stage) -> None:
    population.open_usd_from_string(stage, CUBE)
    write(stage, "/World/Cube", "size", np.array([7.0]), 2)
    population.open_usd_from_string(stage, CUBE.replace('Cube"', 'Box"'), ordinal=3)
    assert count(stage, FilterOp.IN, "/World/Cube") == 0
    assert count(stage, FilterOp.IN, "/World/Box") == 1
    population.open_usd_from_string(stage, CUBE, ordinal=4)
    stage.advance_write_floor(4).wait()
    assert read(stage, "/World/Cube", "size") == 1


def test_an_open_that_fails_leaves_the_scene_before_it(stage: Stage) -> None:
    population.open_usd_from_string(stage, CUBE)
    with pytest.raises(OvstageError, match="cannot read the USD text"):
        population.open_usd_from_string(stage, "no usd", ordinal=2)
    population.add_usd_reference_from_string(stage, REFERENCE, "/World/Props")
    population.apply_usd_changes(stage, 2)
    assert count(stage, FilterOp.PREFIX, "/World") == 4


def test_a_file_that_changed_is_read_again(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "scene.usda"
    path.write_text(CUBE)
    population.open_usd(stage, path)
    path.write_text(CUBE.replace("size = 1", "size = 25"))
    population.open_usd(stage, path, ordinal=2)
    stage.advance_write_floor(2).wait()
    assert read(stage, "/World/Cube", "size") == 25


def test_files_below_that_changed_are_read_again(stage: Stage, tmp_path: Path) -> None:
    for name in ("under.usda", "robot.usda"):
        (tmp_path / name).write_text(REFERENCE)
    path = tmp_path / "scene.usda"
    path.write_text(usda('def "A" (\n    references = @robot.usda@\n)\n{\n}\n', header="subLayers = [@under.usda@]"))
    population.open_usd(stage, path)
    for name in ("under.usda", "robot.usda"):
        (tmp_path / name).write_text(REFERENCE.replace("Box", "Ball"))
    population.open_usd(stage, path, ordinal=2)
    assert [count(stage, FilterOp.IN, path) for path in ("/A/Ball", "/Ref/Ball", "/A/Box", "/Ref/Box")] == [1, 1, 0, 0]


def test_a_reference_to_files_that_changed_reads_them_again(stage: Stage, tmp_path: Path) -> None:
    robot = tmp_path / "robot.usda"
    robot.write_text(REFERENCE)
    cell = usda(f'def "Cell" (\n    references = @{robot}@\n)\n{{\n}}\n', header='defaultPrim = "Cell"')
    with Stage() as other:
        population.open_usd(other, robot)
        population.open_usd_from_string(stage, CUBE)
        robot.write_text("#usda 1.0\n(")
        with pytest.raises(OvstageError, match=r"cannot add the USD text at '/A': .*robot.usda:2:2: Expected \)"):
            population.add_usd_reference_from_string(stage, cell, "/A")
        assert population.apply_usd_changes(stage, 2).values == 0
        robot.write_text(REFERENCE.replace("Box", "Ball"))
        population.add_usd_reference_from_string(stage, cell, "/A")
        population.apply_usd_changes(stage, 3)
        assert count(stage, FilterOp.IN, "/A/Ball") == 1


def test_time_may_go_forth_and_back(stage: Stage) -> None:
    clip = usda(
        'def Xform "Belt"\n{\n    double3 xformOp:translate.timeSamples = { 0: (0, 1, 0), 12: (120, 1, 0) }\n'
        '    uniform token[] xformOpOrder = ["xformOp:translate"]\n    def Cube "Crate"\n    {\n    }\n}\n',
        header="timeCodesPerSecond = 16",
    )
    population.open_usd_from_string(stage, clip, time_code=0.0)
    expected = [(2, 0.125, 20), (3, 0.25, 40), (4, 0.75, 120), (5, 0.125, 20)]
    for ordinal, seconds, x in expected:
        population.update_from_usd_time(stage, ordinal, seconds)
        stage.advance_write_floor(ordinal).wait()
        for path in ("/Belt", "/Belt/Crate"):
            assert read(stage, path, "omni:fabric:worldMatrix")[12] == pytest.approx(x)
    assert population.apply_usd_changes(stage, 6).values == 0  # it reads at the same time


def test_clips_move_what_the_scene_does_not_author(stage: Stage, tmp_path: Path) -> None:
    values = (
        "double size.timeSamples = { 0: 1, 24: 4 }\n        float3[] extent.timeSamples = { 0: [(0, 0, 0), (1, 1, 1)] }"
    )
    (tmp_path / "clip.usda").write_text(
        usda(f'def Xform "Source"\n{{\n    def Cube "Box"\n    {{\n        {values}\n    }}\n}}\n')
    )
    clips = """clips = {
        dictionary default = {
            asset[] assetPaths = [@clip.usda@]
            string primPath = "/Source"
            asset manifestAssetPath = @clip.usda@
            double2[] active = [(0, 0)]
            double2[] times = [(0, 0), (24, 24)]
        }
    }"""
    path = tmp_path / "scene.usda"
    path.write_text(usda(f'def Xform "Top" (\n    {clips}\n)\n{{\n    def Cube "Box"\n    {{\n    }}\n}}\n'))
    population.open_usd(stage, path, time_code=0.0)
    stage.advance_write_floor(1).wait()
    assert read(stage, "/Top/Box", "size") == 1
    assert read(stage, "/Top/Box", "extent").tolist() == [0, 0, 0, 1, 1, 1]
    assert population.update_from_usd_time(stage, 2, 0.5).values == 1
    stage.advance_write_floor(2).wait()
    assert read(stage, "/Top/Box", "size") == 2.5
    scene = Usd.Stage.Open(str(path))
    scene.GetPrimAtPath("/Top/Box").GetAttribute("visibility").Set("invisible")
    population.apply_usd_changes(stage, 3)
    stage.advance_write_floor(3).wait()
    assert read(stage, "/Top/Box", "size") == 2.5


def test_only_prims_that_move_are_read_at_another_time(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    still = "".join(f'def Cube "C{number}"\n{{\n}}\n' for number in range(20))
    moving = 'def Xform "Belt"\n{\n    custom double at.timeSamples = { 0: 0, 24: 2 }\n}\n'
    counts = [0]
    read_prims = reading.Reader.read

    def counted(reader: reading.Reader, prims: Sequence[Usd.Prim], *rest: Any) -> None:
        counts[-1] += len(prims)
        read_prims(reader, prims, *rest)

    monkeypatch.setattr(reading.Reader, "read", counted)
    population.open_usd_from_string(stage, usda(still, moving))
    for ordinal, seconds in ((2, 0.0), (3, 0.5), (4, 1.0), (5, math.nan), (6, 0.5)):
        counts.append(0)
        population.update_from_usd_time(stage, ordinal, seconds)
    assert counts == [21, 21, 1, 1, 21, 21]  # defaults are not the values at any time


# --- incremental equals fresh -----------------------------------------------------------------------------------------

NAMES = ["A", "B", "C"]
PATHS = [f"/{a}" for a in NAMES] + [f"/{a}/{b}" for a in NAMES for b in NAMES]
TYPES = ["Xform", "Cube", "Mesh", "Scope", ""]
VALUES = [
    ("float", 1.5), ("float", 2.5), ("double", 1.5), ("token", "x"), ("token", "y"), ("string", ""),
    ("float3[]", Sdf.ValueTypeNames.Float3Array.type.pythonClass([(1, 2, 3)])),
    ("float3[]", Sdf.ValueTypeNames.Float3Array.type.pythonClass([(1, 2, 3), (4, 5, 6)])),
    ("token[]", ["x", "y"]), ("asset", Sdf.AssetPath("a.png")),
]  # fmt: skip

paths = st.sampled_from(PATHS)
of_properties = st.one_of(
    st.tuples(st.just("value"), paths, st.sampled_from(["mine", "yours"]), st.sampled_from(VALUES)),
    st.tuples(st.just("clear"), paths, st.sampled_from(["mine", "yours"])),
    st.tuples(st.just("move"), paths, st.integers(0, 3)),
    st.tuples(st.just("bind"), paths, paths),
)
of_prims = st.one_of(
    st.tuples(st.just("define"), paths, st.sampled_from(TYPES)),
    st.tuples(st.just("remove"), paths),
    st.tuples(st.just("apply"), paths, st.sampled_from(["PhysicsRigidBodyAPI", "PhysicsMassAPI", "UnknownAPI"])),
    st.tuples(st.just("active"), paths, st.booleans()),
    st.tuples(st.just("instance"), paths, paths),
    st.tuples(st.just("units"), st.sampled_from([0.01, 1.0])),
)
edits = st.one_of(
    st.lists(of_properties, min_size=1, max_size=6),
    st.lists(st.one_of(of_properties, of_prims), min_size=1, max_size=6),
)


def edit(scene: Usd.Stage, change: tuple) -> None:
    kind, *rest = change
    if kind == "units":
        UsdGeom.SetStageMetersPerUnit(scene, rest[0])
        return
    path = rest[0]
    if kind == "define":
        scene.DefinePrim(path, rest[1])
        return
    prim = scene.GetPrimAtPath(path)
    if not prim or prim.IsInstanceProxy():
        return
    if kind == "remove":
        scene.RemovePrim(path)
    elif kind == "value":
        name, (type_name, value) = rest[1], rest[2]
        if type_name == "string":  # has no role, and would take that of a token
            name += "Text"
        if prim.HasAttribute(name):
            prim.RemoveProperty(name)
        prim.CreateAttribute(name, Sdf.ValueTypeNames.Find(type_name)).Set(value)
    elif kind == "clear":
        prim.RemoveProperty(rest[1])
        prim.RemoveProperty(rest[1] + "Text")
    elif kind == "move" and prim.IsA(UsdGeom.Xformable):
        UsdGeom.XformCommonAPI(prim).SetTranslate(Gf.Vec3d(rest[1], 0, 0))
    elif kind == "apply":
        prim.AddAppliedSchema(rest[1])
    elif kind == "bind":
        prim.CreateRelationship("friend").SetTargets([rest[1]])
    elif kind == "active":
        prim.SetActive(rest[1])
    elif (
        kind == "instance" and not (rest[1] + "/").startswith(path + "/") and not (path + "/").startswith(rest[1] + "/")
    ):
        prim.GetReferences().AddInternalReference(rest[1])
        prim.SetInstanceable(True)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rounds=st.lists(edits, min_size=1, max_size=4),
    domains=st.sampled_from([PopulationDomain.RENDERING, PopulationDomain.PHYSICS, PopulationDomain.ALL]),
)
def test_following_edits_equals_opening_afresh(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[tuple]], domains: PopulationDomain
) -> None:
    path = tmp_path_factory.mktemp("edits") / "scene.usda"
    inner = "".join(f'    def Cube "{name}"\n    {{\n    }}\n' for name in NAMES)
    path.write_text(usda(*(f'def Xform "{name}"\n{{\n{inner}}}\n' for name in NAMES)))
    with Stage() as following:
        population.open_usd(following, path, domains=domains)
        layer = Sdf.Layer.FindOrOpen(str(path))
        scene = Usd.Stage.Open(layer)
        for ordinal, changes in enumerate(rounds, start=2):
            for change in changes:
                with contextlib.suppress(Tf.ErrorException):  # what USD refuses changes nothing
                    edit(scene, change)
            text = layer.ExportToString()
            if shown(scene) != shown(Usd.Stage.Open(layer_of(text))):
                return  # USD does not follow a reference whose target comes back
            population.apply_usd_changes(following, ordinal)
            following.advance_write_floor(ordinal).wait()
            with Stage() as fresh:
                population.open_usd_from_string(fresh, text, domains=domains)
                fresh.advance_write_floor(1).wait()
                assert readable(contents(following, ordinal)) == readable(contents(fresh, 1))


def shown(scene: Usd.Stage) -> set[tuple[str, bool]]:
    prims = Usd.PrimRange.Stage(scene, Usd.TraverseInstanceProxies())
    return {(str(prim.GetPath()), prim.IsInstance()) for prim in prims}


def layer_of(text: str) -> Sdf.Layer:
    layer = Sdf.Layer.CreateAnonymous("afresh.usda")
    layer.ImportFromString(text)
    return layer


SECONDS = st.sampled_from([math.nan, 0.0, 0.5, 1.0, 2.0])
samples = st.lists(
    st.one_of(
        st.tuples(st.just("sample"), paths, st.sampled_from(["mine", "yours"]), SECONDS, st.integers(0, 9)),
        st.tuples(st.just("turn"), paths, SECONDS, st.integers(0, 9)),
        st.tuples(st.just("block"), paths, st.sampled_from(["mine", "yours"])),
        st.tuples(st.just("define"), paths, st.sampled_from(["Xform", "Cube"])),
    ),
    max_size=5,
)


def animate(scene: Usd.Stage, change: tuple) -> None:
    kind, path, *rest = change
    if kind == "define":
        scene.DefinePrim(path, rest[0])
        return
    prim = scene.GetPrimAtPath(path)
    if not prim:
        return
    if kind == "block":
        prim.CreateAttribute(rest[0], Sdf.ValueTypeNames.Double).Block()
        return
    *names, seconds, value = rest
    time = Usd.TimeCode.Default() if math.isnan(seconds) else Usd.TimeCode(seconds * scene.GetTimeCodesPerSecond())
    if kind == "sample":
        prim.CreateAttribute(names[0], Sdf.ValueTypeNames.Double).Set(value, time)
    elif prim.IsA(UsdGeom.Xformable):
        operations = UsdGeom.Xformable(prim).GetOrderedXformOps()
        (operations[0] if operations else UsdGeom.Xformable(prim).AddRotateZOp()).Set(value * 10, time)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rounds=st.lists(st.tuples(samples, SECONDS), min_size=2, max_size=6), first=SECONDS)
def test_following_the_time_equals_opening_at_that_time(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[tuple[list[tuple], float]], first: float
) -> None:
    path = tmp_path_factory.mktemp("times") / "scene.usda"
    path.write_text(usda('def Xform "A"\n{\n    def Cube "B"\n    {\n    }\n}\n'))
    with Stage() as following:
        population.open_usd(following, path, domains=PopulationDomain.ALL, time_code=first)
        layer = Sdf.Layer.FindOrOpen(str(path))
        scene = Usd.Stage.Open(layer)
        for ordinal, (changes, seconds) in enumerate(rounds, start=2):
            for change in changes:
                with contextlib.suppress(Tf.ErrorException):
                    animate(scene, change)
            population.update_from_usd_time(following, ordinal, seconds)
            following.advance_write_floor(ordinal).wait()
            with Stage() as fresh:
                text = layer.ExportToString()
                population.open_usd_from_string(fresh, text, domains=PopulationDomain.ALL, time_code=seconds)
                fresh.advance_write_floor(1).wait()
                assert readable(contents(following, ordinal)) == readable(contents(fresh, 1))


def readable(found: dict) -> dict:
    """Prototypes are numbered anew whenever a scene is composed."""
    return {
        key: value
        for key, value in found.items()
        if not key[0].startswith("/__Prototype_") and key[1] != "usd-prototype"
    }


def test_only_prims_that_were_edited_are_read_again(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "scene.usda"
    frames = "".join(
        f'    def Xform "F{number}"\n    {{\n        def Cube "C"\n        {{\n        }}\n    }}\n'
        for number in range(50)
    )
    path.write_text(usda(f'def Xform "World"\n{{\n{frames}}}\n'))
    population.open_usd(stage, path)
    scene = Usd.Stage.Open(str(path))

    def read_again(ordinal: int) -> tuple[int, int]:
        totals = []
        report = population.apply_usd_changes(stage, ordinal, progress=lambda done, total, label: totals.append(total))
        stage.advance_write_floor(ordinal).wait()
        return totals[0], report.values

    scene.GetPrimAtPath("/World/F7/C").GetAttribute("size").Set(5)
    assert read_again(2) == (1, 1)
    assert read(stage, "/World/F7/C", "size") == 5
    UsdGeom.XformCommonAPI(scene.GetPrimAtPath("/World/F3")).SetTranslate(Gf.Vec3d(1, 2, 3))
    assert read_again(3)[0] == 1
    assert read(stage, "/World/F3/C", "omni:fabric:worldMatrix")[12:15].tolist() == [1, 2, 3]
    scene.GetPrimAtPath("/World/F3").GetAttribute("visibility").Set("inherited")  # what it is anyway
    assert read_again(4) == (1, 0)
    assert read(stage, "/World/F3", "omni:fabric:worldMatrix")[12:15].tolist() == [1, 2, 3]
    scene.DefinePrim("/World/New", "Cube")
    assert read_again(5)[0] == 102


# --- calls ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda stage: population.apply_usd_changes_async(stage, 2),
        lambda stage: population.update_from_usd_time_async(stage, 2, 0.0),
        lambda stage: population.add_usd_reference_async(stage, "a.usda", "/A"),
        lambda stage: population.add_usd_reference_from_string_async(stage, CUBE, "/A"),
        lambda stage: population.remove_usd_async(stage, 1),
        lambda stage: population.reset_usd_async(stage),
        lambda stage: population.reset_usd(stage),
    ],
)
def test_what_needs_a_scene_is_refused_without_one(stage: Stage, call: Callable[[Stage], object]) -> None:
    with pytest.raises(OvstageError, match="no USD scene was opened") as caught:
        call(stage)
    assert caught.value.code == ErrorCode.NOT_FOUND


def test_a_destroyed_stage_is_named_by_the_call() -> None:
    with Stage() as stage:
        population.open_usd_from_string(stage, CUBE)
    for name, call in {
        "open_usd": lambda: population.open_usd(stage, "scene.usda"),
        "apply_usd_changes": lambda: population.apply_usd_changes(stage, 2),
        "reset_usd": lambda: population.reset_usd(stage),
    }.items():
        with pytest.raises(OvstageError, match=f"{name} called after Stage was destroyed") as caught:
            call()
        assert caught.value.code == ErrorCode.INVALID_HANDLE


def test_calls_can_be_queued_behind_each_other(stage: Stage) -> None:
    opened = population.open_usd_from_string_async(stage, CUBE)
    added = population.add_usd_reference_from_string_async(stage, REFERENCE, "/World/Props")
    applied = population.apply_usd_changes_async(stage, 2)
    assert (opened.op_id, added.op_id, applied.op_id) == (1, 2, 3)
    assert applied.wait().values > 0
    assert (opened.wait().ordinal, added.wait(), added.wait()) == (1, 1, 1)
    assert population.remove_usd_async(stage, added.wait()).wait() is True
    assert population.reset_usd_async(stage).wait() is True


def test_a_failure_nobody_waited_for_is_reported_once(stage: Stage) -> None:
    failed = population.open_usd_async(stage, "/nowhere/scene.usda")
    good = population.open_usd_from_string_async(stage, CUBE)
    with pytest.raises(
        OvstageError, match=r"earlier call.*open_usd: cannot open USD file '/nowhere/scene.usda'"
    ) as caught:
        good.wait()
    assert caught.value.code == ErrorCode.OP_FAILED
    assert good.wait().ordinal == 1
    with pytest.raises(OvstageError, match="no such file"):
        failed.wait()
    assert "no such file" in failed.error_message()
    assert "no such file" in population.last_error()


def test_a_wait_that_times_out_consumes_nothing(stage: Stage) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def hold(done: int, total: int, label: str) -> None:
        entered.set()
        go_on.wait()

    operation = population.open_usd_from_string_async(stage, CUBE, progress=hold)
    entered.wait()
    assert operation.wait(timeout=0) is None
    assert operation.wait(timeout=1) is None
    assert operation.error_message() == ""
    go_on.set()
    assert len(operation.wait().paths) == 3


@pytest.mark.parametrize("number", [0, 7])
def test_an_operation_that_was_never_made_is_refused(stage: Stage, number: int) -> None:
    with pytest.raises(OvstageError, match=f"op_id {number} is no population call of this stage") as caught:
        population.Operation(stage, 0, number).wait()
    assert caught.value.code == ErrorCode.INVALID_ARGUMENT


def test_a_stage_that_is_destroyed_while_it_is_filled() -> None:
    stage = Stage()
    with pytest.raises(OvstageError, match="open_usd_from_string: Stage was destroyed while the call ran") as caught:
        population.open_usd_from_string(stage, CUBE, progress=lambda *_: stage.destroy())
    assert caught.value.code == ErrorCode.INVALID_HANDLE
