"""The layers and files of a scene: which can be opened, what happens when they change, and when they are let go."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
import weakref
from pathlib import Path

import pytest

from ovstage import OvstageError, Stage

np = pytest.importorskip("numpy", reason="numpy is not installed")
pytest.importorskip("pxr.Usd", reason="usd-core is not installed")

from pxr import Gf, Sdf, Usd, UsdGeom, UsdUtils, Vt  # type: ignore # noqa: E402
from scenes import read, usda, write  # noqa: E402

from ovstage import population  # noqa: E402

CUBE = usda('def Xform "World"\n{\n    def Cube "Cube"\n    {\n        double size = 1\n    }\n}\n')


def mesh(path: Path, count: int, value: float) -> None:
    """A binary layer with points of one value, and half more at time 1."""
    layer = Sdf.Layer.CreateNew(str(path))
    scene = Usd.Stage.Open(layer)
    points = UsdGeom.Mesh.Define(scene, "/World/Mesh").CreatePointsAttr()
    for more, time in ((0.0, Usd.TimeCode.Default()), (0.5, Usd.TimeCode(1))):
        points.Set(Vt.Vec3fArray.FromNumpy(np.full((count, 3), value + more, np.float32)), time)
    layer.Save()


def write_in_place(path: Path, contents: bytes) -> None:
    """As ``cp`` does it: the file stays the same one."""
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(contents)


def points(stage: Stage, ordinal: int) -> tuple[float, int]:
    """The first number and the count of the points."""
    stage.advance_write_floor(ordinal).wait()
    found = read(stage, "/World/Mesh", "points")
    assert found is not None
    return float(np.ravel(found)[0]), len(found)


# --- files that change ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [10, 200_000])
@pytest.mark.parametrize("call", ["open", "apply", "retime", "edit", "open elsewhere"])
def test_a_binary_file_written_in_place_is_followed(stage: Stage, tmp_path: Path, call: str, count: int) -> None:
    scene, other = tmp_path / "scene.usdc", tmp_path / "other.usdc"
    mesh(scene, 200_000, 1.0)
    mesh(other, count, 100.0)
    population.open_usd(stage, scene)
    assert points(stage, 1) == (1.0, 200_000)
    write_in_place(scene, other.read_bytes())  # whoever has it mapped has lost the pages behind its new end
    assert points(stage, 1) == (1.0, 200_000)
    if call == "open":
        population.open_usd(stage, scene, 2)
    elif call == "retime":
        population.update_from_usd_time(stage, 2, 1 / 24)
    else:
        if call == "edit":
            population.add_usd_reference_from_string(stage, CUBE.replace("(", '(defaultPrim = "World"', 1), "/New")
        elif call == "open elsewhere":
            with Stage("elsewhere") as elsewhere:
                population.open_usd(elsewhere, scene)
                assert points(elsewhere, 1) == (100.0, count)
        report = population.apply_usd_changes(stage, 2)
        assert "/World/Mesh" in report.paths
    assert points(stage, 2) == (100.5 if call == "retime" else 100.0, count)


def test_a_binary_file_that_was_cut_off_is_refused_until_it_is_whole(stage: Stage, tmp_path: Path) -> None:
    scene = tmp_path / "scene.usdc"
    mesh(scene, 200_000, 1.0)
    whole = scene.read_bytes()
    population.open_usd(stage, scene)
    write_in_place(scene, whole[:100])
    for _ in range(2):
        with pytest.raises(OvstageError, match=r"scene\.usdc was written in place, and USD cannot read what it is now"):
            population.update_from_usd_time(stage, 2, 1 / 24)
    write_in_place(scene, whole)
    population.update_from_usd_time(stage, 2, 1 / 24)
    assert points(stage, 2) == (1.5, 200_000)


@pytest.mark.parametrize("mended", ["in place", "replaced", "as it was"])
def test_a_file_that_was_cut_off_is_refused_to_its_scenes_alone(tmp_path: Path, mended: str) -> None:
    scene, fine = tmp_path / "scene.usdc", tmp_path / "fine.usda"
    mesh(scene, 200_000, 1.0)
    fine.write_text(CUBE)
    whole, times = scene.read_bytes(), scene.stat()
    with Stage("cut off") as broken, Stage("other") as other, Stage("late") as late:
        population.open_usd(broken, scene)
        population.open_usd(other, fine)
        write_in_place(scene, whole[:100])
        population.apply_usd_changes(other, 2)
        population.add_usd_reference_from_string(other, CUBE.replace("(", '(defaultPrim = "World"', 1), "/New")
        assert "/New/Cube" in population.apply_usd_changes(other, 3).paths
        for refused in (lambda: population.apply_usd_changes(broken, 2), lambda: population.open_usd(late, scene)):
            with pytest.raises(OvstageError, match="and USD cannot read what it is now"):
                refused()
        with pytest.raises(Exception, match="saving not allowed"):  # an empty layer must not take the place of the file
            Sdf.Layer.Find(str(scene)).Save()
        assert points(broken, 1) == (1.0, 200_000)
        population.open_usd(late, fine)

        if mended == "replaced":
            (tmp_path / "new.usdc").write_bytes(whole)
            (tmp_path / "new.usdc").replace(scene)
        else:
            write_in_place(scene, whole)
        if mended == "as it was":
            os.utime(scene, ns=(times.st_atime_ns, times.st_mtime_ns))
        population.update_from_usd_time(broken, 2, 1 / 24)
        assert points(broken, 2) == (1.5, 200_000)
        assert Sdf.Layer.Find(str(scene)).permissionToSave


def test_files_are_read_again_while_other_threads_drop_layers(stage: Stage, tmp_path: Path) -> None:
    scene = tmp_path / "scene.usdc"
    mesh(scene, 10, 1.0)
    population.open_usd(stage, scene)
    done = threading.Event()

    def export() -> None:
        while not done.is_set():
            Sdf.Layer.CreateAnonymous("export.usda")

    exporters = [threading.Thread(target=export) for _ in range(3)]
    for thread in exporters:
        thread.start()
    try:
        for at in range(60):
            os.utime(scene, ns=(at, at))
            population.apply_usd_changes(stage, 2)
    finally:
        done.set()
        for thread in exporters:
            thread.join()
    assert points(stage, 2) == (1.0, 10)


def test_a_stage_whose_file_was_cut_off_takes_another_scene(stage: Stage, tmp_path: Path) -> None:
    scene = tmp_path / "scene.usdc"
    mesh(scene, 200_000, 1.0)
    population.open_usd(stage, scene)
    write_in_place(scene, scene.read_bytes()[:100])
    population.open_usd_from_string(stage, CUBE, 2)
    stage.advance_write_floor(2).wait()
    assert read(stage, "/World/Cube", "size") == 1


def test_a_file_written_in_place_under_edits_is_refused(stage: Stage, tmp_path: Path) -> None:
    scene = tmp_path / "scene.usdc"
    mesh(scene, 10, 1.0)
    population.open_usd(stage, scene)
    layer = Sdf.Layer.FindOrOpen(str(scene))
    Sdf.CreatePrimInLayer(layer, "/New").specifier = Sdf.SpecifierDef
    mesh(tmp_path / "other.usdc", 20, 3.0)
    write_in_place(scene, (tmp_path / "other.usdc").read_bytes())
    with pytest.raises(OvstageError, match="has edits that are not saved; reload the layer, which drops them"):
        population.apply_usd_changes(stage, 2)
    layer.Reload(force=True)
    population.apply_usd_changes(stage, 2)
    assert points(stage, 2) == (3.0, 20)


def test_a_file_written_while_it_is_read_is_refused(stage: Stage, tmp_path: Path) -> None:
    scene = tmp_path / "scene.usdc"
    mesh(scene, 10, 1.0)
    whole = scene.read_bytes()

    def meddle(done: int, total: int, label: str) -> None:
        if label == "reading prims" and done == total:
            os.utime(scene)

    with pytest.raises(OvstageError, match=r"scene\.usdc was written while it was read; call again"):
        population.open_usd(stage, scene, progress=meddle)
    assert scene.read_bytes() == whole
    population.open_usd(stage, scene)
    assert points(stage, 1) == (1.0, 10)


def test_a_binary_file_that_is_replaced_or_saved_is_followed_when_asked(stage: Stage, tmp_path: Path) -> None:
    scene, other = tmp_path / "scene.usdc", tmp_path / "other.usdc"
    mesh(scene, 10, 1.0)
    mesh(other, 20, 3.0)
    population.open_usd(stage, scene)
    other.replace(scene)
    assert population.apply_usd_changes(stage, 2).paths == ()
    assert list(population.apply_usd_changes(stage, 3, reload=True).paths) == ["/World/Mesh"]
    assert points(stage, 3) == (3.0, 20)
    layer = Sdf.Layer.FindOrOpen(str(scene))
    layer.GetAttributeAtPath("/World/Mesh.points").default = [(7, 7, 7)]
    layer.Save()
    population.apply_usd_changes(stage, 4)
    assert points(stage, 4) == (7.0, 1)
    mesh(other, 5, 9.0)
    write_in_place(scene, other.read_bytes())
    population.apply_usd_changes(stage, 5)
    assert points(stage, 5) == (9.0, 5)


def test_a_text_file_saved_by_another_program_is_followed_when_asked(stage: Stage, tmp_path: Path) -> None:
    scene, missing = tmp_path / "scene.usda", tmp_path / "missing.usda"
    scene.write_text(usda('def Cube "Cube"\n{\n    double size = 1\n}\n', header="subLayers = [@./missing.usda@]"))
    population.open_usd(stage, scene)
    scene.write_text(scene.read_text().replace("size = 1", "size = 25"))
    missing.write_text(usda('def Cube "Late"\n{\n}\n'))
    assert population.apply_usd_changes(stage, 2).values == 0
    report = population.apply_usd_changes(stage, 2, reload=True)
    assert sorted(report.paths) == ["/Cube", "/Late"]
    stage.advance_write_floor(2).wait()
    assert read(stage, "/Cube", "size") == 25


@pytest.mark.parametrize("edit", ["in memory", "in place"])
def test_the_layer_of_a_value_clip_is_followed(stage: Stage, tmp_path: Path, edit: str) -> None:
    clip, manifest = (Sdf.Layer.CreateNew(str(tmp_path / name)) for name in ("clip.usdc", "manifest.usda"))
    for layer in (clip, manifest):
        size = Sdf.AttributeSpec(Sdf.CreatePrimInLayer(layer, "/Cube"), "size", Sdf.ValueTypeNames.Double)
    clip.SetTimeSample(size.path, 0, 5.0)
    clip.Save()
    manifest.Save()
    clips = """clips = {
        dictionary default = {
            double2[] active = [(0, 0)]
            double2[] times = [(0, 0), (24, 24)]
            asset[] assetPaths = [@./clip.usdc@]
            asset manifestAssetPath = @./manifest.usda@
            string primPath = "/Cube"
        }
    }"""
    (tmp_path / "scene.usda").write_text(usda(f'def Cube "Cube" (\n    {clips}\n)\n{{\n}}\n'))
    population.open_usd(stage, tmp_path / "scene.usda", time_code=0.0)
    if edit == "in memory":  # USD tells nobody
        clip.SetTimeSample(size.path, 0, 7.0)
        assert population.apply_usd_changes(stage, 2).values == 0
    else:
        other = Sdf.Layer.CreateAnonymous(".usdc")
        other.TransferContent(clip)
        other.SetTimeSample(size.path, 0, 7.0)
        other.Export(str(tmp_path / "other.usdc"))
        write_in_place(tmp_path / "clip.usdc", (tmp_path / "other.usdc").read_bytes())
    assert population.apply_usd_changes(stage, 3, reload=edit == "in memory").values == 1
    stage.advance_write_floor(3).wait()
    assert read(stage, "/Cube", "size") == 7


def test_edits_that_are_not_saved_survive_a_reload_which_says_so(stage: Stage, tmp_path: Path) -> None:
    scene = tmp_path / "scene.usda"
    scene.write_text(CUBE)
    population.open_usd(stage, scene)
    Sdf.Layer.FindOrOpen(str(scene)).GetAttributeAtPath("/World/Cube.size").default = 7.0
    scene.write_text(CUBE.replace("size = 1", "size = 25"))
    report = population.apply_usd_changes(stage, 2, reload=True)
    assert report.warnings == (f"{scene} has edits that are not saved, so its file was not read again",)
    stage.advance_write_floor(2).wait()
    assert read(stage, "/World/Cube", "size") == 7


# --- the end ----------------------------------------------------------------------------------------------------------


def test_a_destroyed_stage_has_let_go_of_its_scene(tmp_path: Path) -> None:
    scene = tmp_path / "scene.usdc"
    mesh(scene, 200_000, 1.0)
    stage = Stage("destroyed")
    report = population.open_usd(stage, scene)
    layer = Sdf.Layer.Find(str(scene))
    kept = weakref.ref(layer)
    del layer
    stage.destroy()
    gc.collect()
    assert kept() is None
    assert not Sdf.Layer.Find(str(scene))
    assert str(scene) not in Path("/proc/self/maps").read_text()
    assert list(report.paths) == ["/", "/World", "/World/Mesh"]


def test_an_error_that_somebody_keeps_does_not_keep_the_scene(tmp_path: Path) -> None:
    scene = tmp_path / "scene.usdc"
    mesh(scene, 200_000, 1.0)
    kept: list[BaseException] = []
    conflict = Stage("conflict")
    write(conflict, "/World/Mesh", "points", np.array([[1, 2, 3]]), 1)
    with pytest.raises(OvstageError, match="cannot be written") as refused:
        population.open_usd(conflict, scene)
    kept.append(refused.value)
    interrupted = Stage("interrupted")
    operation = population.open_usd_async(interrupted, scene, progress=lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError) as raised:
        operation.wait()
    kept.append(raised.value)
    del refused, raised
    conflict.destroy()
    interrupted.destroy()
    gc.collect()
    assert str(scene) not in Path("/proc/self/maps").read_text()


def test_a_forked_child_leaves_the_scene_alone(tmp_path: Path) -> None:
    scene = tmp_path / "scene.usdc"
    mesh(scene, 10, 1.0)
    code = f"""
        import os, sys
        from ovstage import Stage, population
        stage = Stage("parent")
        population.open_usd(stage, {str(scene)!r})
        children = []
        for _ in range(8):
            child = os.fork()
            if not child:
                del stage
                os._exit(0)
            children.append(child)
        sys.exit(any(os.waitpid(child, 0)[1] for child in children))
    """
    subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)], check=True, timeout=60)


# --- chains -----------------------------------------------------------------------------------------------------------


def test_a_chain_deeper_than_the_recursion_limit_is_edited_and_retimed(stage: Stage, tmp_path: Path) -> None:
    deep = sys.getrecursionlimit() + 200
    layer, path = Sdf.Layer.CreateAnonymous(".usda"), Sdf.Path("/L")
    with Sdf.ChangeBlock():
        for level in range(deep):
            link = Sdf.CreatePrimInLayer(layer, path)
            link.specifier, link.typeName = Sdf.SpecifierDef, "Xform"
            if level in (0, deep - 1):
                moved = Sdf.AttributeSpec(link, "xformOp:translate", Sdf.ValueTypeNames.Double3)
                layer.SetTimeSample(moved.path, 0, Gf.Vec3d(0, 0, 1))
                layer.SetTimeSample(moved.path, 24, Gf.Vec3d(0, 0, 3))
                Sdf.AttributeSpec(link, "xformOpOrder", Sdf.ValueTypeNames.TokenArray).default = ["xformOp:translate"]
            last, path = path, path.AppendChild("L")
    scene = tmp_path / "deep.usdc"
    layer.Export(str(scene))
    population.open_usd(stage, scene, time_code=0.0)
    assert len(population.update_from_usd_time(stage, 2, 0.5).paths) == deep  # all are below the first link
    Sdf.Layer.Find(str(scene)).GetPrimAtPath(last).attributes["xformOpOrder"].default = []
    assert list(population.apply_usd_changes(stage, 3).paths) == [str(last)]
    stage.advance_write_floor(3).wait()
    world = read(stage, str(last), "omni:fabric:worldMatrix")
    assert world is not None
    assert np.ravel(world)[14] == 2


# --- names of layers and assets ---------------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of one layer, a file of the same beside it in a folder, and tiles of a texture."""
    folder = tmp_path / "assets"
    folder.mkdir()
    (folder / "cube.usda").write_text(usda('def Cube "Cube"\n{\n}\n', header='defaultPrim = "Cube"'))
    UsdUtils.CreateNewUsdzPackage(str(folder / "cube.usda"), str(tmp_path / "cube.usdz"))
    return tmp_path


@pytest.mark.parametrize("name", ["cube.usdz[cube.usda]", "assets/cube.usda:SDF_FORMAT_ARGS:target=usd"])
@pytest.mark.parametrize("absolute", [True, False])
def test_a_layer_may_be_named_as_usd_names_it(
    stage: Stage, package: Path, monkeypatch: pytest.MonkeyPatch, name: str, absolute: bool
) -> None:
    monkeypatch.chdir(package)
    name = str(package / name) if absolute else name
    assert list(population.open_usd(stage, name).paths) == ["/", "/Cube"]
    population.add_usd_reference(stage, name, "/More")
    assert list(population.apply_usd_changes(stage, 2).paths) == ["/More"]


def test_a_layer_on_the_search_path_of_the_resolver_opens(package: Path) -> None:
    code = f"""
        from pxr import Ar
        from ovstage import Stage, population
        Ar.DefaultResolver.SetDefaultSearchPath([{str(package / "assets")!r}])
        print(*population.open_usd(Stage(), "cube.usda").paths)
        print(*population.open_usd(Stage(), "cube.usda:SDF_FORMAT_ARGS:target=usd").paths)
        population.open_usd(Stage(), "nothing.usda")
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60)
    assert ran.stdout == "/ /Cube\n/ /Cube\n"
    assert "cannot open USD file 'nothing.usda': there is no such file" in ran.stderr


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("cube.usdz[none.usda]", "USD finds no 'none.usda' that it can read in the package"),
        ("cube.usdz[cube.png]", "its extension says no USD format"),
        ("none.usdz[cube.usda]", "there is no such file"),
        ("none.usda:SDF_FORMAT_ARGS:target=usd", "there is no such file"),
        ("assets:SDF_FORMAT_ARGS:target=usd", "it is a directory"),
    ],
)
def test_a_name_that_leads_nowhere_says_why(stage: Stage, package: Path, name: str, reason: str) -> None:
    with pytest.raises(OvstageError, match=reason):
        population.open_usd(stage, package / name)


def test_paths_that_mean_something_only_where_they_are_written_are_named_with_the_place(
    stage: Stage, tmp_path: Path
) -> None:
    look = tmp_path / "look.usda"
    (tmp_path / "there.png").touch()
    assets = {
        "tiles": "@./a.<UDIM>.png@",
        "unknown": '@`"./${NOPE}.png"`@',
        "several": "[@there.png@, @a.<UVTILE0>.png@]",
        "known": '@`"./${NAME}.png"`@',
        "missing": "@./none.png@",
        "absolute": "@/a.<UDIM>.png@",
    }
    lines = "".join(f"    asset{'[]' * (path[0] == '[')} {name} = {path}\n" for name, path in assets.items())
    variables = 'defaultPrim = "Look"\nexpressionVariables = { string NAME = "there" }'
    look.write_text(usda(f'def "Look"\n{{\n{lines}}}\n', header=variables))
    scene = tmp_path / "scene.usda"
    number = 'def "B"\n{\n    float tiles = 1\n}\n'
    scene.write_text(usda('def "A" (references = @./look.usda@)\n{\n}\n', number))
    report = population.open_usd(stage, scene)
    assert {str(said) for said in report.skipped} == {
        f"/A.{name}: its path is not resolved; it is published as written, relative to {look}"
        for name in ("tiles", "unknown", "several")
    }


# --- the report -------------------------------------------------------------------------------------------------------


def test_the_report_of_a_big_scene_is_short_to_print_and_complete_to_ask(stage: Stage) -> None:
    cubes = [f'def Cube "C{i}" (\n    prepend apiSchemas = ["Unknown{i}API"]\n)\n{{\n}}\n' for i in range(500)]
    report = population.open_usd_from_string(stage, usda(*cubes))
    assert len(report.paths) == 501
    assert len(report.skipped) == 500
    assert len(str(report)) < 600
    assert str(report).endswith("; and 497 more in .skipped")
    assert len(repr(report)) < 200
