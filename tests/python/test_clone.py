"""Copies of a prim and everything below it: created only, all or nothing, with their inner paths moved along."""

from __future__ import annotations

import numpy as np
import pytest

from ovstage import (
    AttributeSemantic,
    DLDataType,
    ErrorCode,
    Filter,
    FilterOp,
    OvstageError,
    Predicate,
    make_dltensor,
)

BOTH_LEVELS = True


@pytest.fixture
def rig(make_table):
    """A rig of three prims, sealed at 1."""
    table = make_table(["/World/Rig", "/World/Rig/arm", "/World/Rig/arm/hand"])
    table.write("mass", np.float32([5, 2, 1]), 1)
    table.seal(1)
    return table


def at(make_table, root):
    return make_table([root, f"{root}/arm", f"{root}/arm/hand"])


def count(stage, path):
    with stage.query(filter=Filter([Predicate("usd-path", FilterOp.IN, [path])])) as query:
        return query.result().total_prim_count


def test_each_target_gets_the_subtree(stage, rig, make_table):
    stage.clone("/World/Rig", ["/World/Env0/Rig", "/World/Env1/Rig"], 2)
    assert count(stage, "/World/Env0/Rig") == 1, "queries see clones at once"
    rig.seal(2)
    for target in ("/World/Env0/Rig", "/World/Env1/Rig"):
        assert at(make_table, target).read("mass", 2) == [5, 2, 1]
    assert count(stage, "/World/Env0") == 0, "nothing is created above a target"
    assert rig.read("mass", 2) == [5, 2, 1]


def test_clones_are_read_as_whole_columns(stage, rig, make_table):
    stage.clone("/World/Rig", [f"/World/Env{i}" for i in range(100)], 2)
    rig.seal(2)
    for target in (*(at(make_table, f"/World/Env{i}") for i in (0, 57, 99)), rig):
        with target.group("mass", 2) as group:
            assert not group.has_data_index_map and group.prim_count == 3
            assert np.from_dlpack(group.dlpack(0)).tolist() == [5, 2, 1]


def test_clones_are_changes_at_their_ordinal(stage, rig, make_table):
    stage.clone("/World/Rig", ["/Copy"], 2)
    rig.seal(2)
    assert at(make_table, "/Copy").changes("mass", 2, 2) == {0: 5, 1: 2, 2: 1}
    assert rig.changes("mass", 2, 2) == {}


def test_the_state_as_of_the_ordinal_counts_sealed_or_not(stage, rig, make_table):
    rig.write("mass", np.float32([6, 6, 6]), 2)
    rig.write("mass", np.float32([9, 9, 9]), 4)
    stage.clone("/World/Rig", ["/Copy"], 3)
    rig.seal(4)
    assert at(make_table, "/Copy").read("mass", 4) == [6, 6, 6]


def test_writes_of_the_same_ordinal_follow_the_clone(stage, rig, make_table):
    stage.clone("/World/Rig", ["/Copy"], 2)
    make_table(["/Copy"]).write("mass", np.float32([7]), 2)
    rig.seal(2)
    assert at(make_table, "/Copy").read("mass", 2) == [7, 2, 1]


def test_inner_paths_move_and_outer_ones_stay(stage, names, rig, make_table):
    path = names.intern_path
    inner = ["/World/Rig", "/World/Rig/arm", "/World/Rig/arm.size", "/World/Rig.size"]
    outer = ["/World/Rig2", "/World", "/Looks/Red"]
    root = make_table(["/World/Rig"])
    targets = np.uint64([path(text) for text in inner + outer])
    root.write("targets", [targets], 2, is_array=True, semantic=AttributeSemantic.RELATIONSHIP_PATH_ID)
    port = names.intern_token("outputs:out")
    pairs = np.uint64([[path("/World/Rig/arm"), port], [path("/World/Rig2"), port]])
    tensor = make_dltensor(pairs, dtype=DLDataType(code=1, bits=64, lanes=2), shape=[2], ndim=1)
    root.write("inputs:in", [tensor], 2, is_array=True, semantic=AttributeSemantic.CONNECTION_PATH_ID)
    stage.clone("/World/Rig", ["/Copy"], 2)
    root.seal(2)
    copy = make_table(["/Copy"])
    (moved,) = copy.read("targets", 2)
    assert [names.path_to_string(id) for id in moved] == [text.replace("/World/Rig", "/Copy") for text in inner] + outer
    (moved,) = copy.read("inputs:in", 2)
    assert np.ravel(moved).tolist() == [path("/Copy/arm"), port, path("/World/Rig2"), port]


def test_arrays_are_copied_and_may_be_rewritten(stage, make_table):
    table = make_table(["/Mesh"])
    table.write("points", [np.float32([[1, 2, 3], [4, 5, 6]])], 1, is_array=True)
    stage.clone("/Mesh", ["/A", "/B"], 1)
    make_table(["/A"]).write("points", [np.float32([7])], 2, is_array=True)
    table.seal(2)
    assert make_table(["/Mesh", "/A", "/B"]).read("points", 2) == [[1, 2, 3, 4, 5, 6], [7], [1, 2, 3, 4, 5, 6]]


def test_moving_a_prim_is_a_clone_and_a_delete(stage, rig, make_table):
    stage.clone("/World/Rig", ["/Moved"], 2)
    stage.delete_attributes(rig.query, [], 2).wait()
    rig.seal(2)
    assert rig.read("mass", 2) == [None] * 3
    assert at(make_table, "/Moved").read("mass", 2) == [5, 2, 1]


def refused(code, text, call):
    with pytest.raises(OvstageError) as failure:
        call()
    assert failure.value.code == code
    assert text in failure.value.message


def test_an_occupied_target_voids_the_batch(stage, rig, make_table):
    stage.clone("/World/Rig", ["/Taken"], 2)  # not sealed, and taken nevertheless
    refused(ErrorCode.OP_FAILED, "already exists", lambda: stage.clone("/World/Rig", ["/Fresh", "/Taken"], 3))
    refused(ErrorCode.OP_FAILED, "/Taken/arm already exists", lambda: stage.clone("/World/Rig", ["/Taken/arm"], 3))
    refused(ErrorCode.OP_FAILED, "/World/Rig already exists", lambda: stage.clone("/World/Rig/arm", ["/World"], 3))
    rig.seal(3)
    assert count(stage, "/Fresh") == 0


def test_what_is_missing_or_sealed_is_named(stage, rig):
    refused(ErrorCode.OP_FAILED, "no prim at or below /Nobody", lambda: stage.clone("/Nobody", ["/T"], 2))
    refused(ErrorCode.WRITE_FLOOR_VIOLATION, "the write floor is 1", lambda: stage.clone("/World/Rig", ["/T"], 1))


@pytest.mark.parametrize(
    ("source", "targets", "text"),
    [
        ("World/Rig", ["/T"], "source_path"),
        ("", ["/T"], "source_path"),
        ("/World/Rig", ["/T/"], "target_paths"),
        ("/World/Rig", ["/T", "/U", "/T"], "target_paths[0] and target_paths[2] are both /T"),
        ("/World/Rig", ["/World/Rig/arm/copy"], "lies inside the source /World/Rig"),
        ("/World/Rig", ["/T", "/T/inner"], "/T/inner lies inside target_paths[0], /T"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_at_the_call(stage, rig, source, targets, text):
    op = stage.clone_async(source, targets, 2)
    assert op.status == ErrorCode.INVALID_ARGUMENT and op.op_id == 0
    assert text in op.error_message()


def test_a_name_instead_of_a_list_is_refused(stage):
    with pytest.raises(TypeError):
        stage.clone("/World/Rig", "/T", 2)


def test_the_async_form_fails_at_the_wait(stage, rig):
    op = stage.clone_async("/World/Rig", ["/World/Rig"], 2)
    assert op.status == 0
    refused(ErrorCode.OP_FAILED, "already exists", op.wait)
