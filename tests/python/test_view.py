"""A stage in rerun's viewer, without a window: the file that it writes is read back and compared with the stage."""

from __future__ import annotations

import itertools
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from children import run_python

import ovstage
from ovstage import AttributeSemantic, Stage

rerun = pytest.importorskip("rerun", reason="not installed: rerun-sdk, the viewer")

XFORM = "omni:xform"
SCENE = """#usda 1.0
(
    upAxis = "Z"
)
def Xform "W"
{
    double3 xformOp:translate = (0, 0, 1)
    uniform token[] xformOpOrder = ["xformOp:translate"]

    def Cube "Crate"
    {
        double size = 0.6
        color3f[] primvars:displayColor = [(1, 0, 0)]
        double3 xformOp:scale = (1, 2, 0.5)
        uniform token[] xformOpOrder = ["xformOp:scale"]
    }
    def Cube "Box"
    {
    }
    def Sphere "Ball"
    {
        double radius = 0.3
    }
    def Capsule "Leg"
    {
        double radius = 0.2
        double height = 0.8
        uniform token axis = "X"
    }
    def Cylinder "Can"
    {
        uniform token axis = "Y"
    }
    def Sphere "Hidden"
    {
        token visibility = "invisible"
    }
    def Xform "Unseen"
    {
        token visibility = "invisible"

        def Sphere "Too"
        {
        }
    }
    def Cube "Guide"
    {
        uniform token purpose = "guide"
    }
    def Mesh "One"
    {
        point3f[] points = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1)]
        int[] faceVertexCounts = [4, 3]
        int[] faceVertexIndices = [3, 2, 1, 0, 0, 1, 4]
    }
    def Mesh "Same"
    {
        point3f[] points = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1)]
        int[] faceVertexCounts = [4, 3]
        int[] faceVertexIndices = [3, 2, 1, 0, 0, 1, 4]
    }
    def Points "Cloud"
    {
        point3f[] points = [(3, 2, 0), (4, 2, 0)]
        float[] widths = [0.2, 0.4]
    }
    def PointInstancer "Wood"
    {
        point3f[] positions = [(0, 4, 0), (1, 4, 0), (2, 4, 0)]
        int[] protoIndices = [0, 1, 0]
        quath[] orientations = [(1, 0, 0, 0), (1, 0, 0, 0), (0, 0, 0, 1)]
        float3[] scales = [(1, 1, 1), (1, 1, 1), (2, 2, 2)]
        rel prototypes = [</W/Wood/Tree>, </W/Wood/Bush>]

        def Cube "Tree"
        {
            double3 xformOp:translate = (1, 0, 0)
            uniform token[] xformOpOrder = ["xformOp:translate"]
        }
        def Xform "Bush"
        {
            def Sphere "Leaves"
            {
            }
        }
    }
}
"""


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage("view") as stage:
        yield stage


def cubes(stage: Stage, count: int) -> list[str]:
    """Cubes that have a transform, sealed at ordinal 1."""
    paths = [f"/W/Cube{number}" for number in range(count)]
    stage.write(paths, "usd-prim-type", 1, ["Cube"] * count, type_name="token").wait()
    move(stage, paths, 1, at(np.zeros((count, 3))))
    return paths


def move(stage: Stage, paths: list[str], ordinal: int, matrices: np.ndarray) -> None:
    stage.write(paths, XFORM, ordinal, matrices, semantic=AttributeSemantic.MATRIX).wait()
    stage.advance_write_floor(ordinal).wait()


def at(places: np.ndarray) -> np.ndarray:
    """Transforms that do nothing but move."""
    matrices = np.tile(np.eye(4), (len(places), 1, 1))
    matrices[:, 3, :3] = places
    return matrices


def read_back(file: Path) -> dict[str, dict[int, dict[str, Any]]]:
    """What a file says: by entity and ordinal, -1 for what holds always, the components by name."""
    from rerun.chunk import RrdReader

    said: dict[str, dict[int, dict[str, Any]]] = {}
    for chunk in RrdReader(file).stream():
        batch = chunk.to_record_batch()
        timed = "ordinal" in batch.schema.names
        for row in range(batch.num_rows):
            ordinal = batch.column("ordinal")[row].as_py() if timed else -1
            here = said.setdefault(chunk.entity_path.lstrip("/"), {}).setdefault(ordinal, {})
            if timed:
                here["seconds"] = batch.column("seconds")[row].value / 1e9
            for name in batch.schema.names:
                if ":" in name or name in ("prims", "is_recursive"):
                    value = batch.column(name)[row].as_py()
                    if value is not None:
                        here[name.rpartition(":")[2]] = value
    return said


def test_what_is_read_back_is_what_the_stage_had_though_its_buffer_was_refilled(stage: Stage, tmp_path: Path) -> None:
    paths, places = cubes(stage, 1000), np.zeros((1000, 3))
    matrices = at(places)
    with ovstage.view(stage, save=tmp_path / "run.rrd", rate=0, seconds=0.5) as view:
        for ordinal in range(2, 12):
            matrices[:, 3, :3] = np.arange(3000).reshape(1000, 3) + ordinal  # the one array, again and again
            move(stage, paths, ordinal, matrices)
            assert view.update() == view.ordinal == ordinal
        assert view.update() is None
    said = read_back(tmp_path / "run.rrd")
    assert {name for name in said if name.startswith("world/")} == {"world/Cube"}, "one entity for all"
    rows = said["world/Cube"]
    assert set(rows) == set(range(2, 12))
    assert rows[2]["prims"] == paths
    for ordinal in range(2, 12):
        assert np.array_equal(rows[ordinal]["translations"], np.arange(3000).reshape(1000, 3) + ordinal)
        assert np.array_equal(rows[ordinal]["quaternions"], [[0, 0, 0, 1]] * 1000)
        assert "scales" not in rows[ordinal]
        assert rows[ordinal]["seconds"] == ordinal / 2


def test_a_thread_follows_a_writer_that_does_not_wait_and_shows_no_torn_ordinal(stage: Stage, tmp_path: Path) -> None:
    paths = cubes(stage, 10_000)
    begun, last = threading.Event(), 0
    with ovstage.view(stage, save=tmp_path / "run.rrd", rate=500) as view:
        for ordinal in itertools.count(2):
            move(stage, paths, ordinal, at(np.full((10_000, 3), ordinal)))
            last = ordinal
            if view.ordinal >= 2 and not begun.is_set():
                begun.set()
                stop = ordinal + 100
            if begun.is_set() and ordinal >= stop:
                break
    assert view.trouble is None
    rows = {k: row["translations"] for k, row in read_back(tmp_path / "run.rrd")["world/Cube"].items()}
    assert len(rows) > 1
    assert max(rows) == last, "closing shows what is left"
    for ordinal, places in rows.items():
        assert np.all(np.array(places) == (ordinal if ordinal > 1 else 0)), f"torn at {ordinal}"


def test_kinds_are_drawn_with_their_sizes_and_colours_and_what_is_hidden_is_not(tmp_path: Path) -> None:
    pytest.importorskip("pxr", reason="not installed: usd-core")
    from ovstage.population import open_usd_from_string

    with Stage("kinds") as stage:
        open_usd_from_string(stage, SCENE, 1)
        stage.advance_write_floor(1).wait()
        ovstage.view(stage, save=tmp_path / "run.rrd", rate=0).close()
    said = {name.removeprefix("world/"): rows for name, rows in read_back(tmp_path / "run.rrd").items()}
    shown = {name: rows[1] for name, rows in said.items() if 1 in rows}
    copies = {"PointInstancer/W/Wood/Tree", "PointInstancer/W/Wood/Bush/Leaves"}
    assert set(shown) == {"Cube", "Sphere", "Capsule", "Cylinder", "Mesh/0", "Points"} | copies
    cube = shown["Cube"]
    assert cube["prims"] == ["/W/Crate", "/W/Box"]
    np.testing.assert_allclose(cube["half_sizes"], [[0.3] * 3, [1] * 3], rtol=1e-6)
    np.testing.assert_allclose(cube["scales"], [[1, 2, 0.5], [1, 1, 1]])
    np.testing.assert_allclose(cube["translations"], [[0, 0, 1]] * 2)
    assert cube["colors"][0] == 0xFF0000FF
    assert shown["Sphere"]["prims"] == ["/W/Ball"]
    np.testing.assert_allclose(shown["Sphere"]["half_sizes"], [[0.3] * 3], rtol=1e-6)
    np.testing.assert_allclose(shown["Capsule"]["lengths"], [0.8], rtol=1e-6)
    assert shown["Mesh/0"]["prims"] == ["/W/One", "/W/Same"], "equal meshes are one"
    assert shown["Mesh/0"]["triangle_indices"] == [[3, 2, 1], [0, 1, 4], [3, 1, 0]]
    np.testing.assert_allclose(shown["Points"]["positions"], [[3, 2, 1], [4, 2, 1]])
    np.testing.assert_allclose(shown["Points"]["radii"], [0.1, 0.2])
    tree = shown["PointInstancer/W/Wood/Tree"]
    np.testing.assert_allclose(tree["translations"], [[1, 4, 1], [0, 4, 1]], atol=1e-6)  # the second is turned half
    np.testing.assert_allclose(tree["scales"], [[1, 1, 1], [2, 2, 2]], rtol=1e-6)
    np.testing.assert_allclose(shown["PointInstancer/W/Wood/Bush/Leaves"]["translations"], [[1, 4, 1]])


def test_of_too_many_meshes_the_rest_is_boxes(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ovstage.viewer.scene.MESHES", 1)
    paths = ["/A", "/B", "/C"]
    corners = [np.float32([[0, 0, 0], [size, 0, 0], [0, 2 * size, 0]]) for size in (1, 2, 3)]
    stage.write(paths, "usd-prim-type", 1, ["Mesh"] * 3, type_name="token").wait()
    stage.write(paths, "points", 1, corners, is_array=True).wait()
    stage.write(paths, "faceVertexCounts", 1, [np.int32([3])] * 3, is_array=True).wait()
    stage.write(paths, "faceVertexIndices", 1, [np.int32([0, 1, 2])] * 3, is_array=True).wait()
    move(stage, paths, 1, at(np.zeros((3, 3))))
    ovstage.view(stage, save=tmp_path / "run.rrd", rate=0).close()
    said = read_back(tmp_path / "run.rrd")
    assert said["world/Mesh/0"][1]["vertex_positions"] == corners[0].tolist()
    boxes = said["world/Mesh/boxes"][1]
    assert boxes["prims"] == ["/B", "/C"]
    assert boxes["half_sizes"] == [[1, 2, 0], [1.5, 3, 0]]
    assert boxes["centers"] == [[1, 2, 0], [1.5, 3, 0]]


def test_prims_that_come_and_go(stage: Stage, tmp_path: Path) -> None:
    paths = cubes(stage, 3)
    with ovstage.view(stage, save=tmp_path / "run.rrd", rate=0) as view:
        view.update()
        stage.write(["/W/Ball"], "usd-prim-type", 2, ["Sphere"], type_name="token").wait()
        move(stage, ["/W/Ball"], 2, at(np.ones((1, 3))))
        view.update()
        stage.delete([paths[1]], [XFORM, "usd-prim-type"], 3).wait()
        stage.advance_write_floor(3).wait()
        view.update()
        stage.delete(["/W/Ball"], [XFORM, "usd-prim-type"], 4).wait()
        stage.advance_write_floor(4).wait()
        view.update()
    said = read_back(tmp_path / "run.rrd")
    assert said["world/Cube"][1]["prims"] == paths
    assert said["world/Cube"][3]["prims"] == [paths[0], paths[2]]
    assert len(said["world/Cube"][3]["translations"]) == 2
    assert said["world/Sphere"][2]["translations"] == [[1, 1, 1]]
    assert said["world/Sphere"][4]["is_recursive"] is not None, "the ball is cleared"


def test_a_prim_that_was_written_when_it_looked_and_sealed_later(stage: Stage, tmp_path: Path) -> None:
    with ovstage.view(stage, save=tmp_path / "run.rrd", rate=0) as view:
        cube = at(np.ones((1, 3)))
        stage.write(["/A"], XFORM, 1, cube, semantic=AttributeSemantic.MATRIX).wait()
        stage.write(["/B"], "mass", 1, np.float32([1])).wait()
        stage.advance_write_floor(1, ovstage.Scope.INCLUDE, ["mass"]).wait()
        view.update()
        stage.advance_write_floor(1).wait()
        view.update()
    assert read_back(tmp_path / "run.rrd")["world/untyped"][1]["translations"] == [[1, 1, 1]]


def test_every_ordinal_of_a_recording(tmp_path: Path) -> None:
    pytest.importorskip("xxhash", reason="not installed: xxhash, which recordings take")
    with Stage("recorded", ovstage.StageConfig(history_ordinals=16)) as stage:
        paths = cubes(stage, 3)
        with stage.record(tmp_path / "run.ovr"):
            for ordinal in range(2, 8):
                move(stage, paths, ordinal, at(np.full((3, 3), ordinal)))
    run = ovstage.Recording(tmp_path / "run.ovr")
    view = ovstage.view(run, save=tmp_path / "run.rrd")
    assert view.ordinal == 7
    view.close()
    rows = read_back(tmp_path / "run.rrd")["world/Cube"]
    assert {k: row["translations"][0][0] for k, row in rows.items()} == {1: 0, **{k: k for k in range(2, 8)}}
    seconds = [rows[k]["seconds"] for k in range(1, 8)]
    assert seconds == sorted(seconds) and seconds[-1] < 60


def test_numbers_are_drawn_as_curves(stage: Stage, tmp_path: Path) -> None:
    prims = ["/A", "/B"]
    with ovstage.view(stage, save=tmp_path / "run.rrd", rate=0, plots={"mass": prims}) as view:
        for ordinal in (1, 2):
            stage.write(prims, "mass", ordinal, np.float32([ordinal, 5])).wait()
            stage.advance_write_floor(ordinal).wait()
            view.update()
    said = read_back(tmp_path / "run.rrd")["plots/mass"]
    assert {k: row["scalars"] for k, row in said.items() if k > 0} == {1: [1, 5], 2: [2, 5]}
    assert said[-1]["names"] == prims


def test_rotations_come_back_half_turns_and_mirrors_too() -> None:
    from ovstage.viewer.poses import matrices, poses

    turns = np.random.default_rng(3).normal(size=(2000, 4))
    turns[:100] = np.round(turns[:100])  # many of these are half turns, or nothing at all
    turns = turns[np.linalg.norm(turns, axis=1) > 0]
    turns = np.concatenate([turns, np.eye(4), [[1, 1, 0, 0], [0, 1, -1, 0], [1, 0, 0, 1e-9]]])
    scales = np.random.default_rng(4).uniform(0.5, 2, (len(turns), 3))
    scales[::3, 1] *= -1
    places = np.arange(3 * len(turns), dtype=float).reshape(-1, 3)
    given = matrices(places, turns, scales)
    found = poses(given)
    back = matrices(found["translations"], found["quaternions"].astype(float), found["scales"].astype(float))
    np.testing.assert_allclose(back, given, atol=3e-6)
    assert "scales" not in poses(matrices(places, turns, None))
    flat = poses(np.zeros((1, 4, 4)))  # squeezed to nothing
    assert np.isfinite(np.concatenate([part.ravel() for part in flat.values()])).all()


# --- what can go wrong --------------------------------------------------------------------------------------------


def test_a_stage_that_is_destroyed_while_it_is_watched(tmp_path: Path) -> None:
    stage = Stage("gone")
    cubes(stage, 3)
    view = ovstage.view(stage, save=tmp_path / "run.rrd", rate=1000)
    while view.ordinal < 1:
        threading.Event().wait(0.005)
    stage.destroy()
    assert view._thread is not None
    view._thread.join(60)
    assert view.trouble == "the stage was destroyed"
    view.close()
    view.close()
    assert len(read_back(tmp_path / "run.rrd")["world/Cube"][1]["translations"]) == 3


def test_what_view_refuses(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"give save=, a file to write, or port=, where viewers may ask"):
        ovstage.view(stage)
    with pytest.raises(TypeError, match=r"stage must be a Stage or a Recording, got str"):
        ovstage.view("run.ovr", save=tmp_path / "run.rrd")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"rate must be a number of looks per second from 0 to 1000, got -1"):
        ovstage.view(stage, save=tmp_path / "run.rrd", rate=-1)
    with pytest.raises(ValueError, match=r"seconds must be how long an ordinal is, a number above 0, got -1"):
        ovstage.view(stage, save=tmp_path / "run.rrd", seconds=-1)
    with pytest.raises(ValueError, match=r"port must be a number from 0 to 65535, .* got 70000"):
        ovstage.view(stage, port=70000)
    with pytest.raises(
        ValueError, match=r"plots must name attributes with a list of prims each, .* got \{'mass': '/A'\}"
    ):
        ovstage.view(stage, save=tmp_path / "run.rrd", plots={"mass": "/A"})
    with pytest.raises(OSError, match=r"rerun cannot write '/dev/full': .*No space left"):
        ovstage.view(stage, save="/dev/full")
    with pytest.raises(FileNotFoundError, match=r"none/run\.rrd"):
        ovstage.view(stage, save=tmp_path / "none" / "run.rrd")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=rf"cannot listen on port {port} of 127\.0\.0\.1: Address already in use"):
            ovstage.view(stage, port=port)
    monkeypatch.setitem(sys.modules, "rerun", None)
    with pytest.raises(ModuleNotFoundError, match=r"view needs the package rerun, .* pip install rerun-sdk"):
        ovstage.view(stage, save=tmp_path / "run.rrd")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_is_told(tmp_path: Path) -> None:
    program = """
import resource, sys, numpy as np, ovstage
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
stage, paths = ovstage.Stage(), [f"/Prim{number}" for number in range(5000)]
try:
    with ovstage.view(stage, save=sys.argv[1], rate=0) as view:
        for ordinal in range(1, 10):
            places = np.tile(np.eye(4), (5000, 1, 1))
            places[:, 3, :3] = np.random.default_rng(ordinal).random((5000, 3))
            stage.write(paths, "omni:xform", ordinal, places, semantic=ovstage.AttributeSemantic.MATRIX).wait()
            stage.advance_write_floor(ordinal).wait()
            view.update()
except OSError as error:
    print(error)
"""
    run = run_python(program, str(tmp_path / "run.rrd"))
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("rerun did not write all that was shown: ")


def test_what_ends_the_thread_is_raised_by_close(stage: Stage, tmp_path: Path) -> None:
    view = ovstage.view(stage, save=tmp_path / "run.rrd", plots={"mass": ["A"]}, rate=1000)
    stage.write(["/A"], "mass", 1, np.float32([1])).wait()
    stage.advance_write_floor(1).wait()
    assert view._thread is not None
    view._thread.join(60)
    assert view.trouble is not None and "must start with" in view.trouble
    with pytest.raises(ovstage.OvxError, match='must start with "/"'):
        view.close()


def test_it_listens_on_the_loopback_only(stage: Stage) -> None:
    before = listening()
    with ovstage.view(stage, port=0) as view:
        assert view.url is not None
        port = int(view.url.split(":")[2].split("/")[0])
        while not (opened := listening() - before):
            threading.Event().wait(0.01)
    assert opened == {("0100007F", port)}  # 127.0.0.1


def listening() -> set[tuple[str, int]]:
    """Addresses, as the kernel writes them, and ports at which this process listens."""
    own = {link.readlink().name for link in Path("/proc/self/fd").iterdir() if link.is_symlink()}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
            local, state, inode = (line.split()[word] for word in (1, 3, 9))
            if state == "0A" and f"socket:[{inode}]" in own:
                address, _, port = local.partition(":")
                found.add((address, int(port, 16)))
    return found


def test_nothing_of_rerun_is_imported_unasked() -> None:
    run = run_python("import sys, ovstage; ovstage.Stage().tree(); ovstage.view; sys.exit('rerun' in sys.modules)")
    assert run.returncode == 0, run.stderr


def test_a_view_that_is_never_closed_is_complete_all_the_same(tmp_path: Path) -> None:
    program = """
import sys, numpy as np, ovstage
stage = ovstage.Stage()
view = ovstage.view(stage, save=sys.argv[1])
stage.write(["/A"], "omni:xform", 1, np.eye(4)[None], semantic=ovstage.AttributeSemantic.MATRIX).wait()
stage.advance_write_floor(1).wait()
"""
    run = run_python(program, str(tmp_path / "run.rrd"))
    assert run.returncode == 0, run.stderr
    assert read_back(tmp_path / "run.rrd")["world/untyped"][1]["translations"] == [[0, 0, 0]]
