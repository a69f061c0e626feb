"""Arguments whose conversion takes away what the call is about.

``__index__``, ``__bool__``, ``__iter__`` and ``__dlpack__`` may be anybody's code. It may release the group of the very
call, end its map, destroy its stage, or wait for its operation. Arguments are converted before anything is asked of the
object, so that the call finds what is left: a value, or a refusal, but never memory that is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ovstage
from ovstage import DLDataType, ErrorCode, ManagedDLTensor, OrdinalRange, OvstageError, WriteDesc, make_dltensor


class Turning:
    """An argument that does something when it is looked at, in whichever way, and then is `value`."""

    def __init__(self, act: Callable[[], object], value: Any = 0) -> None:
        self.act, self.value, self.done = act, value, False

    def look(self) -> Any:
        if not self.done:
            self.done = True
            self.act()
        return self.value

    def __index__(self) -> int:
        return int(self.look())

    def __bool__(self) -> bool:
        return bool(self.look())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.look())

    def __len__(self) -> int:
        return len(self.look())

    def __getitem__(self, at: int) -> Any:
        return self.look()[at]


class TurningTensor(Turning):
    """The same as a producer of DLPack."""

    def __dlpack__(self, **wishes: Any) -> Any:
        return self.look().__dlpack__(**wishes)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


@pytest.fixture
def stage() -> Iterator[ovstage.Stage]:
    with ovstage.Stage("turning") as stage:
        yield stage


@pytest.fixture
def query(stage: ovstage.Stage) -> ovstage.Query:
    names = ovstage.PathDictionary(stage)
    prims = names.create_path_list_from_strings([f"/P{i}" for i in range(2000)])
    query = stage.query_from_path_list(prims)
    stage.write_attribute(query, "values", 1, np.arange(2000.0), is_array=False).wait()
    stage.write_attribute(query, "runs", 1, [np.arange(k % 3, dtype="f4") for k in range(2000)], is_array=True).wait()
    stage.advance_write_floor(1).wait()
    return query


def read_group(stage: ovstage.Stage, query: ovstage.Query, name: str = "values") -> ovstage.ReadGroup:
    with stage.read_attributes(query, stage._intern_tokens((name,)), OrdinalRange.latest(1)) as read:
        group = read.fetch_next()
    assert group is not None
    return group


def other_bytes(stage: ovstage.Stage, query: ovstage.Query) -> None:
    """Memory that was given back gets other contents."""
    for ordinal in range(2, 6):
        stage.write_attribute(query, "values", ordinal, np.full(2000, -1.0), is_array=False).wait()
        stage.advance_write_floor(ordinal).wait()


ACCESSORS: dict[str, Callable[[Any, Turning], object]] = {
    "array": lambda g, i: g.array(i),
    "tensor": lambda g, i: g.tensor(i),
    "dlpack": lambda g, i: g.dlpack(i),
    "dlpack readonly": lambda g, i: g.dlpack(0, readonly=i),
    "dlpack shape": lambda g, i: g.dlpack(0, shape=(-1, i)),
    "prim_index": lambda g, i: g.prim_index(i),
    "data_row_index": lambda g, i: g.data_row_index(i),
    "_tensor_address": lambda g, i: g._tensor_address(i),
    "_hold": lambda g, i: g._hold(i),
    "_buffer": lambda g, i: g._buffer(0, i),
    "_pack": lambda g, i: g._pack([i]),
}


@pytest.mark.parametrize("name", ACCESSORS)
@pytest.mark.parametrize("column", ["values", "runs"])
def test_read_group_that_is_released_meanwhile(stage, query, name, column):
    group = read_group(stage, query, column)

    def act() -> None:
        group.release()
        other_bytes(stage, query)

    argument = Turning(act, 1 if name == "dlpack shape" else 0)
    with pytest.raises(OvstageError, match="the read group has been released") as caught:
        ACCESSORS[name](group, argument)
    assert argument.done
    assert caught.value.code == ErrorCode.INVALID_HANDLE


@pytest.mark.parametrize("name", ACCESSORS)
@pytest.mark.parametrize("ending", ["unmap", "abort", "group"])
def test_map_group_that_is_committed_meanwhile(stage, query, name, ending):
    mapping = stage.map_attribute(query, "values", 7)
    group = mapping.fetch_next()
    ends: dict[str, Callable[[], object]] = {
        "unmap": mapping.unmap, "abort": mapping.abort, "group": lambda: mapping.unmap_group(group)
    }  # fmt: skip

    def act() -> None:
        ends[ending]()
        other_bytes(stage, query)

    with pytest.raises(OvstageError, match="the map group has been unmapped"):
        ACCESSORS[name](group, Turning(act, 1 if name == "dlpack shape" else 0))
    if ending == "group":
        mapping.unmap().wait()


@pytest.mark.parametrize("name", ACCESSORS)
def test_group_whose_stage_is_destroyed_meanwhile(stage, query, name):
    group = read_group(stage, query)
    argument = Turning(stage.destroy, 1 if name == "dlpack shape" else 0)
    ACCESSORS[name](group, argument)  # a group outlives its stage
    assert argument.done


def calls_of_a_stage(
    s: ovstage.Stage, q: ovstage.Query, turn: Callable[..., Turning]
) -> Iterator[tuple[str, Callable[[], Any]]]:
    token = s._intern_tokens(("values",))[0]
    values = np.arange(2000.0)
    row = DLDataType(2, 64, 1)
    tokens = np.full(1, token, np.uint64)
    yield "write tensors", lambda: s.write_attribute(q, token, 8, turn(TurningTensor, values), is_array=False)
    yield "write count", lambda: s.write_attribute(q, token, 8, values, is_array=False, count=turn(Turning, 2000))
    yield (
        "write index_map",
        lambda: s.write_attribute(q, token, 8, values, is_array=False, index_map=turn(Turning, [0])),
    )
    yield (
        "write mask",
        lambda: s.write_attribute(q, token, 8, values[:64], is_array=False, mask=turn(Turning, [3]), count=64),
    )
    yield (
        "write mask by DLPack",
        lambda: s.write_attribute(
            q, token, 8, values[:64], is_array=False, mask=turn(TurningTensor, np.full(1, 3, np.uint64)), count=64
        ),
    )
    yield "read by DLPack", lambda: s.read_attributes(q, turn(TurningTensor, tokens), OrdinalRange.latest(1))
    yield "write ordinal", lambda: s.write_attribute(q, token, turn(Turning, 8), values, is_array=False)
    yield (
        "write given away",
        lambda: s.write_attribute(q, token, 8, turn(TurningTensor, values), is_array=False, transfer=True),
    )
    yield "batch", lambda: s.write_attributes(q, [WriteDesc(token, turn(TurningTensor, values), is_array=False)], 8)
    yield "batch list", lambda: s.write_attributes(q, turn(Turning, [WriteDesc(token, values, is_array=False)]), 8)
    yield "delete", lambda: s.delete_attributes(q, turn(Turning, [token]), 8)
    yield "floor", lambda: s.advance_write_floor(turn(Turning, 8))
    yield "floor list", lambda: s.advance_write_floor(8, ovstage.Scope.INCLUDE, turn(Turning, [token]))
    yield "asked floor", lambda: s.get_attribute_write_floor(turn(Turning, token))
    yield "read", lambda: s.read_attributes(q, turn(Turning, [token]), OrdinalRange.latest(1))
    yield "query", lambda: s.query(None, turn(Turning, [token]))
    yield "query of a list", lambda: s.query_from_path_list(turn(Turning, 5))
    yield "map", lambda: s.map_attribute(q, token, turn(Turning, 8), dtype=row)
    yield "map sizes", lambda: s.map_attribute(q, "new", 8, dtype=row, element_sizes=turn(Turning, [1] * 2000))
    yield "clone", lambda: s.clone_async("/P1", turn(Turning, ["/Q"]), 8)
    yield "hierarchy", lambda: s.get_hierarchy_async(turn(Turning, 5), 8, 0)
    yield "compute", lambda: s.compute_hierarchy_async(turn(Turning, 8), 8)
    yield "result", lambda: s.fetch_query_result(q, turn(Turning, 5))
    yield "wait_op", lambda: s.wait_op(turn(Turning, 1), 0)
    yield "history", lambda: s._keep_history(turn(Turning, 3))
    yield "tokens", lambda: s._token_strings(turn(Turning, [token]))
    yield "names", lambda: s._intern_tokens(turn(Turning, ["a"]))
    yield "list", lambda: s._list_paths(turn(Turning, 5))


NAMELESS: Any = SimpleNamespace(_intern_tokens=lambda names: [1])
CALLS = [name for name, _ in calls_of_a_stage(NAMELESS, NAMELESS, lambda kind, value: kind(list, value))]


@pytest.mark.parametrize("name", CALLS)
def test_stage_that_is_destroyed_by_an_argument(stage, query, name):
    turned: list[Turning] = []

    def turn(kind: type[Turning], value: Any) -> Turning:
        turned.append(kind(stage.destroy, value))
        return turned[-1]

    call = dict(calls_of_a_stage(stage, query, turn))[name]
    with pytest.raises(OvstageError, match="after Stage was destroyed") as caught:
        call()
    assert turned[0].done
    assert caught.value.code == ErrorCode.INVALID_HANDLE


def test_operation_that_is_waited_for_by_its_timeout(stage, query):
    operation = stage.write_attribute(query, "values", 8, np.zeros(2000), is_array=False)
    with pytest.raises(OvstageError, match="has already been waited and released"):
        operation.wait(Turning(operation.wait, 5))


def test_handle_that_is_released_by_its_timeout(stage, query):
    read = stage.read_attributes(query, stage._intern_tokens(("values",)), OrdinalRange.latest(1))
    with pytest.raises(OvstageError, match="unknown or was released"):
        read.fetch_next(Turning(read.release, 5))


def test_descriptor_that_is_initialised_by_its_own_argument():
    array = np.arange(4.0)
    managed = ManagedDLTensor.__new__(ManagedDLTensor)
    other = make_dltensor(np.zeros(2))
    with pytest.raises(RuntimeError, match="a ManagedDLTensor cannot be initialised twice"):
        managed.__init__(make_dltensor(array), None, None, Turning(lambda: managed.__init__(other, None)))
    assert managed.shape == (2,)


def test_export_whose_wishes_initialise_it_again():
    array = np.arange(4.0)
    managed = ManagedDLTensor(make_dltensor(array), None)

    def again() -> None:
        with pytest.raises(RuntimeError, match="cannot be initialised twice"):
            managed.__init__(make_dltensor(np.zeros(2)), None)

    for wish in (
        {"copy": Turning(again, True)},
        {"max_version": (Turning(again, 1), 3)},
        {"dl_device": (Turning(again, 1), 0)},
    ):
        capsule = managed.__dlpack__(**wish)
        assert "dltensor" in repr(capsule)
