"""ovfmi couples simulation models to a stage: it reads their inputs from columns and writes their outputs back.

Its own host, parser and routing run here. Only the runtime of compiled models is replaced, by a Python class.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import ovfmi
import pytest
from ovfmi.routing import write_stage_group

import ovstage
from ovstage import AttributeSemantic

SCENE = """#usda 1.0
def Xform "Lift"
{
    double3 xformOp:translate = (1, 2, 3)
    uniform token[] xformOpOrder = ["xformOp:translate"]
    float motor:torque = 4
    float2 motor:state = (0, 0)
}
def Xform "Fan"
{
    float motor:torque = 6
    float2 motor:state = (0, 0)
}
def FmuInstance "Model"
{
    asset fmi:fmu = @model.fmu@
    def FmuConnection "Motors"
    {
        rel fmi:targets = [</Lift>, </Fan>]
        def FmuMapping "Torque"
        {
            string fmi:fmuAttribute = "torque"
            string fmi:usdAttribute = "motor:torque"
            token fmi:direction = "input"
            int2 fmi:usdMapping = (0, 1)
        }
        def FmuMapping "State"
        {
            string fmi:fmuAttribute = "state"
            string fmi:usdAttribute = "motor:state"
            token fmi:direction = "output"
            int2 fmi:usdMapping = (0, 2)
        }
    }
    def FmuConnection "Cabin"
    {
        rel fmi:targets = [</Lift>]
        def FmuMapping "Height"
        {
            string fmi:fmuAttribute = "height"
            string fmi:usdAttribute = "xformOp:translate"
            token fmi:direction = "output"
            int2 fmi:usdMapping = (2, 1)
        }
    }
}
"""


class Model:
    """A stand-in for a compiled model: speed is the integral of the torque, height the integral of the speed."""

    RESULT = np.dtype([("state", np.float64, 2), ("height", np.float64)])

    def __init__(self, inputs: Any, outputs: Any) -> None:
        self.inputs, self.outputs = inputs, outputs
        self.time = self.speed = self.height = 0.0

    def get_parser_instance(self) -> Any:
        return self.parsed

    def populate(self, instances: dict[str, Any]) -> None:
        (self.parsed,) = instances.values()
        self.inputs.cache_connections(self)
        self.outputs.cache_connections(self)

    def step(self, target: float) -> None:
        self.torque = self.inputs.get_inputs_for(self)["torque"]
        self.speed += self.torque * (target - self.time)
        self.height += self.speed * (target - self.time)
        self.time = target
        result = np.array(([self.torque, self.speed], self.height), self.RESULT)
        self.outputs.write_outputs(self, self.outputs.get_outputs_for(self), result)

    def release(self) -> None:
        pass


@pytest.fixture
def host(stage: ovstage.Stage, tmp_path: Path) -> Iterator[ovfmi.FmiHost]:
    scene = tmp_path / "scene.usda"
    scene.write_text(SCENE)
    (tmp_path / "model.fmu").touch()
    with ovfmi.FmiHost(_backend_factory=Model) as made:
        report = made.attach_ovstage(stage, source_asset=scene)
        assert [instance.prim_path for instance in report.instances] == ["/Model"]
        yield made


def seal(stage: ovstage.Stage, ordinal: int) -> None:
    stage.advance_write_floor(ordinal).wait()


def write(stage: ovstage.Stage, paths: list[str], attribute: str, values: Any, ordinal: int) -> None:
    with ovstage.PathDictionary(stage) as names, names.create_path_list_from_strings(paths) as prims:
        with stage.query_from_path_list(prims) as query:
            stage.write_attribute(query, attribute, ordinal, np.asarray(values), is_array=False).wait()
    seal(stage, ordinal)


def read(stage: ovstage.Stage, paths: list[str], attribute: str) -> np.ndarray:
    with ovstage.PathDictionary(stage) as names, names.create_path_list_from_strings(paths) as prims:
        with stage.query_from_path_list(prims) as query:
            return stage.read(query, [attribute])[attribute].values


def test_inputs_come_from_the_stage(stage: ovstage.Stage, host: ovfmi.FmiHost) -> None:
    write(stage, ["/Fan", "/Other", "/Lift"], "motor:torque", np.float32([6, 7, 12]), 1)
    host.update_from_ovstage(0, 1)
    host.step_sync(0.5)
    (state,) = host.read(attribute_names=["motor:state"]).groups
    # Both motors drive the one input; the one that is connected last decides.
    assert state.prim_paths == ("/Lift", "/Fan")
    np.testing.assert_array_equal(state.tensors[0], np.float32([[6, 3], [6, 3]]))


def test_what_is_not_in_the_stage_keeps_its_start_value(stage: ovstage.Stage, host: ovfmi.FmiHost) -> None:
    write(stage, ["/Lift"], "motor:torque", np.float32([12]), 1)
    host.update_from_ovstage(0, 1)
    host.step_sync(1.0)
    (state,) = host.read(["/Fan"], ["motor:state"]).groups
    np.testing.assert_array_equal(state.tensors[0], np.float32([[6, 6]]))  # the scene's torque of the fan


def test_outputs_go_to_several_columns(stage: ovstage.Stage, host: ovfmi.FmiHost) -> None:
    for ordinal in range(1, 6):
        host.step_sync(0.5)
        assert host.write_to_ovstage(ordinal) == 2
        seal(stage, ordinal)
    np.testing.assert_array_equal(read(stage, ["/Fan", "/Lift"], "motor:state"), np.float32([[6, 15], [6, 15]]))
    # What ovfmi calls a translation is, for the stage, the whole local matrix.
    expected = np.eye(4)
    expected[3, 2] = 22.5
    np.testing.assert_array_equal(read(stage, ["/Lift"], "omni:xform").reshape(4, 4), expected)


def test_the_local_matrix_carries_its_role(stage: ovstage.Stage, host: ovfmi.FmiHost) -> None:
    host.step_sync(0.5)
    host.write_to_ovstage(1, ["/Lift"], ["xformOp:translate"])
    seal(stage, 1)
    with ovstage.PathDictionary(stage) as names, names.create_path_list_from_strings(["/Lift"]) as prims:
        with stage.query_from_path_list(prims) as query:
            token = names.intern_token("omni:xform")
            with stage.read_attributes(query, [token], ovstage.OrdinalRange.latest(1)) as result:
                result.wait()
                (group,) = result.groups()
                with group:
                    assert group.semantic == AttributeSemantic.MATRIX and group.prim_count == 1


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "u1", "u8", "?"])
@pytest.mark.parametrize("shape", [(3,), (3, 2), (3, 2, 2)])
def test_every_shape_that_it_routes(stage: ovstage.Stage, dtype: str, shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    paths = tuple(f"/P{i}" for i in range(3))
    write_stage_group(stage, ovfmi.ReadGroup(paths, "column", (values,), is_array=False), 1)
    seal(stage, 1)
    np.testing.assert_array_equal(read(stage, list(paths), "column").reshape(shape), values)


def test_a_whole_run_leaves_nothing_behind(stage: ovstage.Stage, host: ovfmi.FmiHost) -> None:
    def frame(ordinal: int) -> dict[str, int]:
        host.update_from_ovstage(0, ordinal - 1)
        host.step_sync(0.01)
        host.write_to_ovstage(ordinal)
        seal(stage, ordinal)
        counters = stage.counters()
        return {name: counters[name] for name in ("live_queries", "live_groups", "live_exports", "live_operations")}

    frame(1)
    before = frame(2)
    for ordinal in range(3, 40):
        after = frame(ordinal)
    assert after == before
