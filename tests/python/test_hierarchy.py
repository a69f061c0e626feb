"""World transforms follow from local ones, on ordinals that are sealed already or not yet; relatives from paths."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import stored

import ovstage
from ovstage import (
    AttributeSemantic,
    ErrorCode,
    Filter,
    FilterOp,
    HierarchyComputationModel,
    HierarchyRelation,
    OvstageError,
    Predicate,
)

BOTH_LEVELS = True

LOCAL, RESET, WORLD = "omni:xform", "omni:resetXformStack", "omni:fabric:worldMatrix"


def moved(x: float, y: float, z: float) -> np.ndarray:
    matrix = np.eye(4)
    matrix[3, :3] = x, y, z
    return matrix


def turned(degrees: float) -> np.ndarray:
    """About z, for row vectors."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return np.array([[c, s, 0, 0], [-s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=np.float64)


def place(table, ordinal, *matrices):
    table.write(LOCAL, np.stack(matrices), ordinal, semantic=AttributeSemantic.MATRIX)


def world(table, ordinal):
    return [None if row is None else np.reshape(row, (4, 4)) for row in table.read(WORLD, ordinal)]


@pytest.fixture
def arm(make_table):
    return make_table(["/Arm", "/Arm/Elbow", "/Arm/Elbow/Hand"])


def test_world_is_local_times_parent(stage, arm):
    locals_ = turned(30) @ moved(1, 2, 3), turned(40) @ moved(4, 0, 0), moved(0, 5, 0)
    place(arm, 1, *locals_)
    arm.seal(1)
    stage.compute_hierarchy(1, 1)
    shoulder, elbow, hand = world(arm, 1)
    np.testing.assert_allclose(shoulder, locals_[0])
    np.testing.assert_allclose(elbow, locals_[1] @ locals_[0])
    np.testing.assert_allclose(hand, locals_[2] @ locals_[1] @ locals_[0], atol=1e-15)


def test_the_column_is_made_as_clients_expect_it(stage, arm):
    place(arm, 1, np.eye(4), np.eye(4), np.eye(4))
    arm.seal(1)
    stage.compute_hierarchy(1, 1)
    with arm.group(WORLD, 1) as group:
        _, dtype = stored(group.tensor(0))
        assert (dtype.code, dtype.bits, dtype.lanes) == (2, 64, 16)
        assert group.raw.semantic == AttributeSemantic.MATRIX
        assert not group.is_array and not group.has_data_index_map and group.prim_count == 3


def test_reset_cuts_the_chain(stage, arm, make_table):
    place(arm, 1, moved(1, 0, 0), moved(0, 1, 0), moved(0, 0, 1))
    make_table(["/Arm/Elbow"]).write(RESET, np.array([True]), 1)
    arm.seal(1)
    stage.compute_hierarchy(1, 1)
    assert world(arm, 1)[1][3].tolist() == [0, 1, 0, 1]
    assert world(arm, 1)[2][3].tolist() == [0, 1, 1, 1]


def test_local_and_world_come_together_when_computed_before_the_seal(stage, arm):
    place(arm, 1, moved(1, 0, 0), moved(0, 1, 0), moved(0, 0, 1))
    stage.compute_hierarchy(1, 1)
    with pytest.raises(OvstageError, match="is not sealed"):
        world(arm, 1)
    arm.seal(1)
    assert world(arm, 1)[2][3].tolist() == [1, 1, 1, 1]


def test_ranges_report_what_moved_and_the_layout_stands_still(stage, arm, make_table):
    place(arm, 1, moved(1, 0, 0), moved(0, 1, 0), moved(0, 0, 1))
    arm.seal(1)
    stage.compute_hierarchy(1, 1)
    held = arm.group(WORLD, 1)
    before = held.array(0).copy()
    hand = make_table(["/Arm/Elbow/Hand"])
    place(hand, 2, moved(0, 0, 9))
    arm.seal(2)
    stage.compute_hierarchy(2, 2)
    assert list(arm.changes(WORLD, 2, 2)) == [2]
    assert (held.array(0) == before).all()
    with arm.group(WORLD, 2) as group:
        assert group.ordinal == 2
        assert group.meta.layout_generation == held.meta.layout_generation
    held.release()
    stage.compute_hierarchy(2, 2)
    assert list(arm.changes(WORLD, 2, 2)) == [2], "a second pass finds nothing to do"


def test_local_matrix_is_another_name(stage, arm):
    arm.write("omni:fabric:localMatrix", np.stack([moved(1, 0, 0)] * 3), 1, semantic=AttributeSemantic.MATRIX)
    arm.seal(1)
    stage.compute_hierarchy(1, 1)
    assert world(arm, 1)[2][3].tolist() == [3, 0, 0, 1]
    assert arm.read(LOCAL, 1) == arm.read("omni:fabric:localMatrix", 1)
    with stage.query(Filter([Predicate("omni:fabric:localMatrix", FilterOp.HAS)])) as carriers:
        assert carriers.result().total_prim_count == 3


def test_deleted_transforms_leave_the_chain(stage, arm, make_table):
    place(arm, 1, moved(1, 0, 0), moved(0, 1, 0), moved(0, 0, 1))
    arm.seal(1)
    stage.compute_hierarchy(1, 1)
    elbow = make_table(["/Arm/Elbow"])
    stage.delete_attributes(elbow.query, [], 2).wait()
    arm.seal(2)
    stage.compute_hierarchy(2, 2)
    _, gone, hand = world(arm, 2)
    assert gone is None
    assert hand[3].tolist() == [1, 0, 1, 1]


def test_models(stage):
    models = stage.get_hierarchy_computation_models()
    assert [(model.model_id, model.name) for model in models] == [
        (1, "cpu-incremental"),
        (2, "gpu-incremental"),
        (3, "gpu-global"),
        (4, "runtime-default"),
    ]
    assert all(model.description for model in models)


@pytest.mark.parametrize("model", [HierarchyComputationModel.GPU_INCREMENTAL, HierarchyComputationModel.DEFAULT_GPU])
def test_gpu_models_say_what_they_lack(stage, model):
    with pytest.raises(OvstageError, match="needs CUDA") as failure:
        stage.compute_hierarchy(1, 1, model)
    assert failure.value.code == ErrorCode.OP_FAILED


@pytest.mark.parametrize("model", [HierarchyComputationModel.INVALID, 5, -1])
def test_what_is_no_model_is_refused(stage, model):
    op = stage.compute_hierarchy_async(1, 1, model)
    assert op.status == ErrorCode.INVALID_ARGUMENT
    assert "expected CPU_INCREMENTAL (1)" in op.error_message()


def test_runtime_default_is_that_of_the_process(fresh_python):
    program = """if True:
        from ovstage import HierarchyComputationModel as Model, OvstageError, Stage, StageConfig

        with Stage("cpu", StageConfig(Model.CPU_INCREMENTAL)) as stage:
            stage.compute_hierarchy(input_ordinal=1, output_ordinal=1, model=Model.RUNTIME_DEFAULT)
        with Stage("gpu", StageConfig(Model.GPU_GLOBAL)) as stage:
            try:
                stage.compute_hierarchy(1, 1, Model.RUNTIME_DEFAULT)
            except OvstageError as refusal:
                print(refusal)
    """
    child = fresh_python(program)
    assert child.returncode == 0, child.stderr
    assert "GPU_GLOBAL (3) needs CUDA" in child.stdout


def test_another_type_is_named(stage, make_table):
    table = make_table(["/A"])
    table.write(LOCAL, np.eye(4, dtype=np.float32)[None], 1)
    table.seal(1)
    with pytest.raises(OvstageError, match='"omni:xform" of prim /A holds float32x16, expected float64x16') as failure:
        stage.compute_hierarchy(1, 1)
    assert failure.value.code == ErrorCode.OP_FAILED


def test_an_ordinal_in_the_past_is_refused(stage, arm):
    place(arm, 3, np.eye(4), np.eye(4), np.eye(4))
    arm.seal(3)
    stage.compute_hierarchy(3, 3)
    with pytest.raises(OvstageError, match="output ordinal 2 is older than the world transforms"):
        stage.compute_hierarchy(2, 2)


def test_a_destroyed_stage_is_named():
    stage = ovstage.Stage("gone")
    stage.destroy()
    with pytest.raises(OvstageError) as failure:
        stage.compute_hierarchy_async(1, 1)
    assert failure.value.code == ErrorCode.INVALID_HANDLE


# --- who is related to whom ---

PARENT, CHILDREN, SIBLINGS = HierarchyRelation


@pytest.fixture
def family(make_table):
    """A parent that carries nothing stands between /World and the sisters."""
    table = make_table(["/World", "/World/Home/Ann", "/World/Home/Bea", "/World/Home/Bea/Cat", "/Alone"])
    table.write("age", np.arange(5.0), 1)
    return table


def relatives(stage, table, relation):
    answer = stage.get_hierarchy(table.list, 7, relation)
    assert answer.ordinal == 7 and answer.input_count == len(table.paths)
    assert all(item.ok for item in answer.items)
    return [list(item.paths) for item in answer.items]


def test_relatives(stage, family):
    cat = "/World/Home/Bea/Cat"
    assert relatives(stage, family, PARENT) == [[], [], [], ["/World/Home/Bea"], []]
    assert relatives(stage, family, CHILDREN) == [[], [], [cat], [], []]
    assert relatives(stage, family, SIBLINGS) == [["/Alone"], ["/World/Home/Bea"], ["/World/Home/Ann"], [], ["/World"]]


def test_they_are_those_of_the_derived_attributes(stage, names, family):
    for relation, attribute in ((PARENT, "usd-parent"), (CHILDREN, "usd-children")):
        derived = [
            [] if row is None else [names.path_to_string(int(path)) for path in np.atleast_1d(row)]
            for row in family.read(attribute, 1)
        ]
        assert relatives(stage, family, relation) == derived


def test_who_is_missing_is_told_for_each(stage, family, make_table):
    table = make_table(["/World/Home", "/Nobody", "/World", "/"])
    answer = stage.get_hierarchy(table.list, 1, CHILDREN)
    assert [item.status for item in answer.items] == [ErrorCode.NOT_FOUND, ErrorCode.NOT_FOUND, 0, ErrorCode.NOT_FOUND]
    assert answer.items[1].paths == () and answer.item_paths(2) == ()


def test_an_answer_stays_as_it_was(stage, family, make_table):
    with stage.get_hierarchy_async(family.list, 1, CHILDREN) as question:
        question.wait()
        make_table(["/World/New"]).write("age", np.float64([1]), 1)
        assert question.result().item_paths(0) == ()
        assert question.result() == question.result()
    assert stage.get_hierarchy(family.list, 1, CHILDREN).item_paths(0) == ("/World/New",)


def test_questions_end_once(stage, family):
    question = stage.get_hierarchy_async(family.list, 1, PARENT)
    handle = question.handle
    question.release().wait()
    for call in (question.result, question.release, lambda: stage.fetch_hierarchy_result(handle)):
        with pytest.raises(OvstageError) as failure:
            call()
        assert failure.value.code == ErrorCode.INVALID_HANDLE
    assert stage.release_hierarchy(handle).status == ErrorCode.INVALID_HANDLE
    assert stage.fetch_query_result(family.query).total_prim_count == 5


def test_a_dropped_question_is_given_back(stage, family):
    question = stage.get_hierarchy_async(family.list, 1, PARENT)
    handle = question.handle
    questions = [question]
    del question
    with pytest.warns(ResourceWarning, match="garbage-collected without release"):
        questions.clear()
    assert stage.release_hierarchy(handle).status == ErrorCode.INVALID_HANDLE


def test_bad_questions(stage, family):
    question = stage.get_hierarchy_async(family.list, 1, 3)
    assert (question.op.status, question.handle) == (ErrorCode.INVALID_ARGUMENT, 0)
    assert "expected PARENT (0), CHILDREN (1) or SIBLINGS (2)" in question.op.error_message()
    with pytest.raises(OvstageError, match="prim_paths 4711"):
        stage.get_hierarchy(4711, 1, PARENT)
