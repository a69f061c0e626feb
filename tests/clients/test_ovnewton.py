"""ovnewton runs the physics of newton over a stage: it reads a populated scene and writes every frame back."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import newton
import newton.tests
import numpy as np
import ovnewton
import ovnewton.examples
import pytest
import survey
import warp
from oracle import differences, through_newton, through_stage

import ovstage
from ovstage import HierarchyComputationModel, OrdinalRange, PopulationDomain, population

pytestmark = pytest.mark.usefixtures("schemas")

FRAMES = 120
SOLVERS = {
    "xpbd": (newton.solvers.SolverXPBD, {"iterations": 8}),
    "mujoco": (
        newton.solvers.SolverMuJoCo,
        {"integrator": "implicitfast", "njmax": 128, "use_mujoco_contacts": False},
    ),
    "vbd": (newton.solvers.SolverVBD, {"iterations": 40}),
}


STIFF = """#usda 1.0
(
    defaultPrim = "ContactMaterial"
)

def Material "ContactMaterial" (
    prepend apiSchemas = ["NewtonMaterialAPI"]
)
{
    float newton:contactStiffness = 100000
    float newton:contactDamping = 1000
}
"""


def shipped(name: str) -> Path:
    """A scene of ovnewton's own."""
    return Path(ovnewton.examples.get_asset(f"scene_{name}.usda"))


class Simulation:
    """A scene in a stage, and newton simulating it: 60 frames a second, two steps a frame."""

    def __init__(self, stage: ovstage.Stage, scene: Path, solver: str) -> None:
        warp.set_device("cpu")
        self.stage, self.ordinal = stage, 1
        population.open_usd(stage, scene, ordinal=1, domains=PopulationDomain.ALL)
        if solver == "vbd":
            self.edit(STIFF)
        self.seal()
        builder = newton.ModelBuilder()
        kind, settings = SOLVERS[solver]
        kind.register_custom_attributes(builder)
        imported = ovnewton.add_ovstage(builder, stage, ordinal=self.ordinal)
        if solver == "vbd":
            builder.color()
        self.model = builder.finalize(skip_validation_joints=imported.has_orphan_joints)
        self.solver = kind(self.model, **settings)
        self.binding = ovnewton.attach_ovstage(stage, model=self.model, ordinal=self.ordinal)
        self.pipeline = newton.CollisionPipeline(self.model)
        self.contacts = self.pipeline.contacts()
        self.state, self.next = self.model.state(), self.model.state()
        self.control = self.model.control()
        newton.eval_fk(self.model, self.model.joint_q, self.model.joint_qd, self.state)

    def step(self) -> None:
        """One frame, simulated, published and sealed."""
        for _ in range(2):
            self.state.clear_forces()
            self.pipeline.collide(self.state, self.contacts)
            self.solver.step(self.state, self.next, self.control, self.contacts, 1 / 120)
            self.state, self.next = self.next, self.state
        self.ordinal += 1
        self.binding.update_to_ovstage(self.state, ordinal=self.ordinal)
        self.seal()

    def edit(self, usda: str) -> None:
        """Change the material of the scene by a reference; what changed comes with the next ordinal."""
        population.add_usd_reference_from_string(self.stage, usda, "/World/ContactMaterial")
        self.ordinal += 1
        population.apply_usd_changes(self.stage, ordinal=self.ordinal)

    def seal(self) -> None:
        self.stage.advance_write_floor(self.ordinal).wait()

    @property
    def bodies(self) -> list[str]:
        return list(self.model.body_label)

    def read(self, attribute: str) -> np.ndarray:
        """An attribute of every body, as of the last sealed frame."""
        return Reader(self.stage, self.bodies).values(attribute)

    def poses(self) -> np.ndarray:
        """The pose of every body in newton, as a matrix in which vectors are rows."""
        return poses_of(self.state)


class Reader:
    """Attributes of some prims, read again and again over one query."""

    def __init__(self, stage: ovstage.Stage, paths: list[str]) -> None:
        self.stage = stage
        self.names = ovstage.PathDictionary(stage)
        self.paths = self.names.create_path_list_from_strings(paths)
        self.query = stage.query_from_path_list(self.paths)

    def values(self, attribute: str) -> np.ndarray:
        column = self.stage.read(self.query, [attribute])[attribute]
        assert column.valid.all()
        return column.values

    def group(self, attribute: str, ordinal: int) -> ovstage.ReadGroup:
        """The one group of an attribute."""
        token = self.names.intern_token(attribute)
        with self.stage.read_attributes(self.query, [token], OrdinalRange.latest(ordinal)) as read:
            read.wait()
            (group,) = read.groups()
            return group

    def close(self) -> None:
        self.query.release().wait()
        self.names.destroy_path_list(self.paths)


def poses_of(state: newton.State) -> np.ndarray:
    """The poses in a state of newton as matrices; two quaternions mean the same rotation."""
    return np.array([matrix(*np.split(row, [3])) for row in state.body_q.numpy().astype(float)])


def matrix(position: np.ndarray, quaternion: np.ndarray) -> np.ndarray:
    """The pose of a body, with the quaternion as i, j, k, real."""
    x, y, z, w = quaternion / np.linalg.norm(quaternion)
    pose = np.eye(4)
    pose[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w)],
        [2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w)],
        [2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)],
    ]
    pose[3, :3] = position
    return pose


def unscaled(matrices: np.ndarray) -> np.ndarray:
    """The pose in a world matrix, whose rows a scale stretches."""
    poses = matrices.reshape(-1, 4, 4).copy()
    poses[:, :3, :3] /= np.linalg.norm(poses[:, :3, :3], axis=2, keepdims=True)
    return poses


RUNS = [("rigid_bodies", "xpbd"), ("rigid_bodies", "mujoco"), ("cartpole", "xpbd"), ("cartpole", "mujoco")]


@pytest.mark.parametrize(("scene", "solver"), [*RUNS, ("rigid_bodies", "vbd")])
def test_a_simulation_is_in_the_stage(stage: ovstage.Stage, scene: str, solver: str) -> None:
    run = Simulation(stage, shipped(scene), solver)
    reader = Reader(stage, run.bodies)
    start = run.poses()
    run.step()
    early = reader.group("omni:xform", run.ordinal)
    view, kept = early.array(0), early.array(0).copy()
    generation = early.meta.layout_generation
    for _ in range(FRAMES - 1):
        run.step()

    # The published local matrices are world poses, so a pass over the hierarchy makes them the world matrices.
    stage.compute_hierarchy(run.ordinal, run.ordinal, HierarchyComputationModel.DEFAULT_CPU)
    poses = run.poses()
    np.testing.assert_allclose(unscaled(reader.values("omni:fabric:worldMatrix")), poses, atol=1e-6)
    assert reader.values("omni:resetXformStack").all()

    # A view of an early frame still shows that frame, and no row has moved meanwhile.
    np.testing.assert_array_equal(view, kept)
    early.release()
    with reader.group("omni:xform", run.ordinal) as late:
        assert late.meta.layout_generation == generation
        assert not np.array_equal(late.array(0), kept)

    # And back: newton reads from the stage the state that it wrote.
    state = run.model.state()
    run.binding.update_from_ovstage(state, run.control, ordinal=run.ordinal)
    np.testing.assert_allclose(poses_of(state), poses, atol=1e-6)
    np.testing.assert_allclose(state.body_qd.numpy(), run.state.body_qd.numpy(), atol=1e-4)

    heights = poses[:, 3, 2] - start[:, 3, 2]
    if scene == "rigid_bodies":
        assert (heights < -0.1).all(), "every body has fallen"
        assert (poses[:, 3, 2] > 0.2).all(), "and the ground has stopped it"
    else:
        names = dict(zip((path.rsplit("/", 1)[1] for path in run.bodies), range(len(poses)), strict=True))
        assert heights[names["rail"]] == pytest.approx(0, abs=1e-5), "the rail is fixed"
        assert min(heights[names["pole1"]], heights[names["pole2"]]) < -0.2, "the poles fall"
        assert abs(heights[names["cart"]]) < 1e-2 and abs(poses - start)[names["cart"], 3, 1] > 0.01, "the cart slides"
    reader.close()


def test_another_writer_moves_bodies(stage: ovstage.Stage) -> None:
    run = Simulation(stage, shipped("rigid_bodies"), "xpbd")
    run.step()
    moved = run.bodies[2:4]
    other = Reader(stage, moved)
    poses = other.values("omni:xform").reshape(-1, 4, 4).copy()
    poses[:, 3, 2] += 5
    run.ordinal += 1
    stage.write_attribute(
        other.query, "omni:xform", run.ordinal, poses, is_array=False, semantic=ovstage.AttributeSemantic.MATRIX
    ).wait()
    run.seal()
    stage.compute_hierarchy(run.ordinal, run.ordinal)
    state = run.model.state()
    run.binding.update_from_ovstage(state, run.control)
    raised = state.body_q.numpy()[:, 2] - run.state.body_q.numpy()[:, 2]
    np.testing.assert_allclose(raised, [5 if path in moved else 0 for path in run.bodies], atol=1e-5)
    other.close()


def test_simulated_poses_survive_an_edit_of_the_scene(stage: ovstage.Stage) -> None:
    run = Simulation(stage, shipped("rigid_bodies"), "xpbd")
    run.step()
    before = run.read("omni:xform").copy()
    run.edit(STIFF)
    run.seal()
    np.testing.assert_array_equal(run.read("omni:xform"), before)
    assert Reader(stage, ["/World/ContactMaterial"]).values("newton:contactDamping").tolist() == [1000]
    run.step()  # the binding still fits


def test_nothing_is_left_behind(stage: ovstage.Stage) -> None:
    run = Simulation(stage, shipped("cartpole"), "xpbd")

    def live() -> dict[str, int]:
        counters = stage.counters()
        return {name: counters[name] for name in counters if name.startswith("live_") and name != "live_blocks"}

    for _ in range(3):
        run.step()
    before = live()
    for _ in range(20):
        run.step()
    assert live() == before


def test_a_sealed_ordinal_is_refused(stage: ovstage.Stage) -> None:
    run = Simulation(stage, shipped("cartpole"), "xpbd")
    run.step()
    with pytest.raises(ovstage.OvstageError) as refused:
        run.binding.update_to_ovstage(run.state, ordinal=run.ordinal)
    assert refused.value.code == ovstage.ErrorCode.WRITE_FLOOR_VIOLATION
    with pytest.raises(ValueError, match="newer than the sealed write floor"):
        ovnewton.attach_ovstage(stage, model=run.model, ordinal=run.ordinal + 1)


@pytest.mark.parametrize("solver", ["xpbd", "mujoco"])
def test_its_example_runs(solver: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--device", "cpu", "--no-render", "--num-frames", "40", "--solver", solver]
    monkeypatch.setattr(sys, "argv", ["example_ovnewton_basic", *words])
    runpy.run_module("ovnewton.examples.example_ovnewton_basic", run_name="__main__")
    assert "40 frames simulated on cpu" in capsys.readouterr().out


# --- newton's own reader as the judge of the import ---

ASSETS = Path(newton.__file__).parent


def scenes() -> Iterator[Any]:
    """A few of newton's files, different from each other; `run.sh survey` takes all of them."""
    for name in ("cartpole", "rigid_bodies"):
        yield pytest.param(shipped(name), id=f"ovnewton/{name}")
    for file in (
        "examples/assets/cartpole.usda",
        "tests/assets/ant.usda",
        "tests/assets/humanoid.usda",
        "tests/assets/simple_articulation_with_mesh.usda",
        "tests/assets/kamino/basics/boxes_fourbar.usda",
    ):
        yield pytest.param(ASSETS / file, id=f"newton/{file}")


@pytest.mark.parametrize("file", list(scenes()))
def test_a_scene_means_the_same_through_the_stage(file: Path) -> None:
    ours, theirs = through_stage(file), through_newton(file)
    assert ours.body_count == theirs.body_count > 0
    assert differences(ours, theirs) == []


# --- the tables of all scenes ---

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
NEWER = os.environ.get("OVSTAGE_INTERFACE") == "0.3"
SHORT = 60_000  # bytes of a file that is read in a moment


def told() -> Iterator[Any]:
    """The lines of the table of this level that are about short files; `run.sh survey` makes all of them anew."""
    table = (GOLDEN / ("newton_scenes_0.3.txt" if NEWER else "newton_scenes.txt")).read_text().splitlines()
    for line in table[2:-1]:
        file = ASSETS / line.split()[0]
        if file.stat().st_size < SHORT:
            yield pytest.param(file, line, id=line.split()[0])


@pytest.mark.parametrize(("file", "line"), list(told()))
def test_a_scene_is_as_the_table_says(file: Path, line: str) -> None:
    assert line.split(maxsplit=1)[1].strip() == survey.verdict(file).strip()
