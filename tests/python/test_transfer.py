"""Memory that is given away with a write: kept where it can be, copied where not, and let go of exactly once."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref

import numpy as np
import pytest
from conftest import address

import ovstage
from ovstage import DLDataType, DLDevice, DLTensor, ErrorCode, ManagedDLTensor, OrdinalRange, WriteDesc, make_dltensor

BOTH_LEVELS = True

FLOAT = DLDataType(2, 32, 1)


class Array(np.ndarray):
    """Arrays that a test can see die."""


def aligned(values, dtype="f4", offset=0):
    """An array at an address that is a multiple of 64, plus an offset: NumPy's own are at one of 16."""
    values = np.asarray(values, dtype)
    memory = np.empty(values.nbytes + 128, "u1")
    start = -address(memory) % 64 + offset
    array = memory[start : start + values.nbytes].view(dtype).reshape(values.shape).view(Array)
    array[:] = values
    return array


class Producer:
    """A DLPack producer that counts how often its tensor is deleted, and on which threads."""

    def __init__(self, values, owner=None):
        self.array = aligned(values)
        self.deleted = []

    def __dlpack__(self, **options):
        tensor = make_dltensor(self.array)
        made = ManagedDLTensor(tensor, self.deleted, lambda seen: seen.append(threading.get_ident()))
        return made.__dlpack__(**options)

    def __dlpack_device__(self):
        return 1, 0


def give(table, payload, ordinal, name="x", **options):
    options.setdefault("is_array", False)
    return table.stage.write_attribute(table.query, name, ordinal, payload, transfer=True, **options)


def copied(table):
    return table.stage.counters()["bytes_copied"]


def settle(table):
    """What is let go of waits for the next call."""
    gc.collect()
    table.stage.counters()


@pytest.fixture
def four(make_table):
    return make_table(4)


# --- kept ---


def test_array_becomes_the_column(four):
    array = aligned([1, 2, 3, 4])
    seen, at, before = weakref.ref(array), address(array), copied(four)
    give(four, array, 1).wait()
    four.seal(1)
    del array
    settle(four)
    assert copied(four) == before
    assert seen() is not None
    with four.group("x", 1) as group:
        assert address(group.array(0)) == at
        assert group.array(0).tolist() == [1, 2, 3, 4]
        assert np.from_dlpack(group.dlpack(0)).tolist() == [1, 2, 3, 4]


def test_array_lives_as_long_as_it_is_needed(four):
    array = aligned([1, 2, 3, 4])
    seen = weakref.ref(array)
    give(four, array, 1).wait()
    four.seal(1)
    del array
    with four.group("x", 1) as group:
        view = group.array(0)
    four.write("x", np.float32([5, 6, 7, 8]), 2)
    four.seal(2)
    settle(four)
    assert seen() is not None
    assert view.tolist() == [1, 2, 3, 4]
    del view
    settle(four)
    assert seen() is None


def test_kept_memory_is_never_written_to(four, make_table):
    """Later partial writes and maps go to memory of the stage."""
    array, some = aligned([1, 2, 3, 4]), make_table(["/World/Prim2"])
    give(four, array, 1).wait()
    four.seal(1)
    some.write("x", np.float32([30]), 2)
    four.seal(2)
    with some.stage.map_attribute(some.query, "x", 3) as mapping:
        mapping.fetch_next().array(0)[:] = 300
    four.seal(3)
    with four.stage.map_attribute(four.query, "x", 4) as mapping:
        mapping.fetch_next().array(0)[:] += 1
    four.seal(4)
    assert four.read("x", 4) == [2, 3, 301, 5]
    assert array.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("shape", [(4, 3), (4, 2, 2)])
def test_wide_rows(four, shape):
    values = np.arange(np.prod(shape)).reshape(shape)
    array, before = aligned(values), copied(four)
    give(four, array, 1, semantic=ovstage.AttributeSemantic.VECTOR).wait()
    four.seal(1)
    assert copied(four) == before
    with four.group("x", 1) as group:
        assert address(group.array(0)) == address(array)
        assert group.array(0).ravel().tolist() == values.reshape(-1).tolist()


def test_readonly_array(four):
    array = aligned([1, 2, 3, 4])
    array.flags.writeable = False
    before = copied(four)
    give(four, array, 1).wait()
    four.seal(1)
    assert copied(four) == before
    assert four.read("x", 1) == [1, 2, 3, 4]


def test_producer_is_deleted_once_on_a_python_thread(four):
    producer = Producer([1, 2, 3, 4])
    deleted = producer.deleted
    give(four, producer, 1).wait()
    four.seal(1)
    with four.group("x", 1) as group:
        assert address(group.array(0)) == address(producer.array)
    settle(four)
    assert deleted == []
    four.write("x", np.float32([5, 6, 7, 8]), 2)
    four.seal(2)
    settle(four)
    assert deleted == [threading.get_ident()]


def test_descriptor_of_this_package(four):
    array = aligned(np.arange(12))
    at, before = address(array), copied(four)
    give(four, make_dltensor(array, dtype=DLDataType(2, 32, 3), shape=[4]), 1).wait()
    del array
    settle(four)
    four.seal(1)
    assert copied(four) == before
    with four.group("x", 1) as group:
        assert address(group.array(0)) == at
        assert group.array(0, shaped=True).tolist() == np.arange(12).reshape(4, 3).tolist()


def test_batch(four):
    first, second = aligned([1, 2, 3, 4]), aligned([5, 6, 7, 8], "i4")
    before = copied(four)
    writes = [WriteDesc("a", first, False, transfer=True), WriteDesc("b", second, False, transfer=True)]
    four.stage.write_attributes(four.query, writes, 1).wait()
    four.seal(1)
    assert copied(four) == before
    assert four.read("a", 1) == [1, 2, 3, 4]
    assert four.read("b", 1) == [5, 6, 7, 8]


def test_one_array_for_two_columns(four):
    """Each gift holds the array for itself."""
    array = aligned([1, 2, 3, 4])
    seen = weakref.ref(array)
    writes = [WriteDesc(name, array, False, transfer=True) for name in "ab"]
    four.stage.write_attributes(four.query, writes, 1).wait()
    four.seal(1)
    del array, writes
    for ordinal, name in enumerate("ab", start=2):
        settle(four)
        assert seen() is not None
        assert four.read(name, 1) == [1, 2, 3, 4]
        four.write(name, np.zeros(4, "f4"), ordinal)
        four.seal(ordinal)
    settle(four)
    assert seen() is None


def test_views_outlive_stage_and_array():
    stage = ovstage.Stage()
    names = ovstage.PathDictionary(stage)
    array = aligned([1, 2])
    seen = weakref.ref(array)
    with names.create_path_list_from_strings(["/A", "/B"]) as prims, stage.query_from_path_list(prims) as query:
        stage.write_attribute(query, "x", 1, array, is_array=False, transfer=True).wait()
        stage.advance_write_floor(1).wait()
        with stage.read_attributes(query, [names.intern_token("x")], OrdinalRange.latest(1)) as read:
            with read.fetch_next() as group:
                view = np.from_dlpack(group.dlpack(0))
    stage.destroy()
    del stage, names, query, read, group, array
    gc.collect()
    assert view.tolist() == [1, 2]
    assert seen() is not None
    del view
    ovstage.process_counters()
    assert seen() is None


def test_array_dies_with_the_stage():
    array = aligned([1, 2])
    seen = weakref.ref(array)
    with ovstage.Stage() as stage, ovstage.PathDictionary(stage) as names:
        with names.create_path_list_from_strings(["/A", "/B"]) as prims, stage.query_from_path_list(prims) as query:
            stage.write_attribute(query, "x", 1, array, is_array=False, transfer=True).wait()
    del array
    ovstage.process_counters()
    assert seen() is None


# --- copied ---


def cases():
    """Payloads that cannot become the column of four prims, with the options of their write."""
    yield "not aligned", aligned([1, 2, 3, 4], offset=16), {}
    yield "strided", aligned(np.arange(8))[::2], {}
    yield "reversed", aligned([4, 3, 2, 1])[::-1], {}
    yield "broadcast", np.broadcast_to(aligned([1]), 4), {}
    yield "index_map", aligned([1, 2, 3, 4]), {"index_map": [0, 1, 2, 3]}
    yield "mask", aligned([1, 2, 3, 4]), {"mask": [0b0111], "count": 4}
    yield "count", aligned([1, 2]), {"count": 2}
    yield "array rows", aligned([1, 2, 3, 4]), {"is_array": True}
    yield "no array", [[1.0, 2.0, 3.0, 4.0]], {}


@pytest.mark.parametrize(("payload", "options"), [pytest.param(p, o, id=name) for name, p, o in cases()])
def test_what_cannot_be_kept_is_copied_and_let_go(four, payload, options):
    if options.get("index_map") or options.get("mask") or options.get("count"):
        four.write("x", np.zeros(4, "f4"), 1)
    payload = payload if isinstance(payload, list) else payload.view(Array)
    seen = weakref.ref(payload) if isinstance(payload, np.ndarray) else lambda: None
    count = options.get("count", 4)
    expected = np.asarray(payload).reshape(-1)[:count].tolist() + [0] * (4 - count)
    if "mask" in options:
        expected[3] = 0
    give(four, payload, 2, **options).wait()
    four.seal(2)
    del payload
    settle(four)
    assert seen() is None
    assert four.read("x", 2) == ([[value] for value in expected] if options.get("is_array") else expected)


def test_payload_that_is_not_the_newest(four):
    four.write("x", np.float32([9, 9, 9, 9]), 9)
    array = aligned([1, 2, 3, 4])
    seen = weakref.ref(array)
    give(four, array, 5).wait()
    del array
    settle(four)
    assert seen() is None
    four.seal(5)
    assert four.read("x", 5) == [1, 2, 3, 4]
    four.seal(9)
    assert four.read("x", 9) == [9, 9, 9, 9]


def test_part_of_a_wider_column(four, make_table):
    make_table(8).write("x", np.zeros(8, "f4"), 1)
    array = aligned([1, 2, 3, 4])
    seen = weakref.ref(array)
    give(four, array, 2).wait()
    del array
    settle(four)
    assert seen() is None
    four.seal(2)
    assert four.read("x", 2) == [1, 2, 3, 4]


def test_list_of_rows(four):
    rows = [aligned(np.arange(i + 1), "i4") for i in range(4)]
    seen = [weakref.ref(row) for row in rows]
    give(four, rows, 1, is_array=True).wait()
    del rows
    settle(four)
    assert [ref() for ref in seen] == [None] * 4
    four.seal(1)
    assert four.read("x", 1) == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]]


# --- refused ---


@pytest.mark.parametrize("batch", [False, True])
def test_refused_write_lets_go_once(four, batch):
    producers = [Producer([1, 2, 3]), Producer([1, 2, 3, 4])]
    if batch:
        writes = [WriteDesc(name, p, False, transfer=True) for name, p in zip("ab", producers, strict=True)]
        op = four.stage.write_attributes(four.query, writes, 1)
    else:
        op = give(four, producers[0], 1)
    assert op.status == ErrorCode.INVALID_ARGUMENT
    assert "3 rows" in op.error_message()
    settle(four)
    assert [len(producer.deleted) for producer in producers] == [1, int(batch)]


@pytest.mark.parametrize(
    "wrong", [{"ordinal": 5.0}, {"query": None}, {"prim_mode": 7}, {"index_map": []}, {"semantic": 2**40}], ids=str
)
def test_wrong_argument_lets_go_once(four, wrong):
    producer = Producer([1, 2, 3, 4])
    call = {"query": four.query, "attribute": "x", "ordinal": 1, "tensors": producer, "is_array": False} | wrong
    with pytest.raises((TypeError, ValueError)):
        four.stage.write_attribute(**call, transfer=True)
    settle(four)
    assert len(producer.deleted) == 1


def test_one_bad_row_lets_the_others_go(four):
    producers = [Producer([1]), Producer([2])]
    with pytest.raises(ValueError, match=r"tensors\[2\]"):
        give(four, [*producers, np.array([object()])], 1, is_array=True)
    settle(four)
    assert [len(producer.deleted) for producer in producers] == [1, 1]


def test_destroyed_stage_lets_go_once(four):
    producer = Producer([1, 2, 3, 4])
    four.stage.destroy()
    with pytest.raises(ovstage.OvstageError, match="destroyed"):
        give(four, producer, 1)
    ovstage.process_counters()
    assert len(producer.deleted) == 1


def test_descriptor_that_owns_nothing(four):
    memory, extent = aligned([1, 2, 3, 4]), (ctypes.c_int64 * 1)(4)
    tensor = DLTensor(address(memory), DLDevice(1, 0), 1, FLOAT)
    tensor.shape = ctypes.cast(extent, ctypes.POINTER(ctypes.c_int64))
    with pytest.raises(ValueError, match="tensors cannot be transferred"):
        give(four, tensor, 1)
    with pytest.raises(ValueError, match=r"tensors\[1\] cannot be transferred"):
        give(four, [memory, tensor], 1, is_array=True)
    four.write("x", tensor, 1)
    four.seal(1)
    assert four.read("x", 1) == [1, 2, 3, 4]


# --- for ever ---


def test_thousands_of_gifts_leave_nothing_behind(four):
    blocks = ovstage.process_counters()["live_blocks"]
    seen = []
    for ordinal in range(1, 2000):
        array = aligned(np.full(4, ordinal))
        seen.append(weakref.ref(array))
        give(four, array, ordinal).wait()
        four.seal(ordinal)
    del array
    settle(four)
    assert sum(ref() is not None for ref in seen) <= 2
    assert ovstage.process_counters()["live_blocks"] <= blocks + 4


def test_gifts_at_the_end_of_the_interpreter(fresh_python):
    """A column that is alive at exit holds an array of an interpreter that is gone: it is not touched any more."""
    program = """
import numpy as np, ovstage
class Loud:
    def __init__(self, array):
        self.array = array
    def __dlpack__(self, **options):
        return ovstage.ManagedDLTensor(ovstage.make_dltensor(self.array), self, print).__dlpack__(**options)
memory = np.zeros(1 << 20, "u1")
start = -memory.ctypes.data % 64
stage = ovstage.Stage()
names = ovstage.PathDictionary(stage)
prims = names.create_path_list_from_strings([f"/P{i}" for i in range(1000)])
query = stage.query_from_path_list(prims)
array = memory[start:start + 4000].view("f4")
stage.write_attribute(query, "a", 1, array, is_array=False, transfer=True).wait()
stage.write_attribute(query, "b", 1, Loud(array), is_array=False, transfer=True).wait()
stage.advance_write_floor(1).wait()
with stage.read_attributes(query, [names.intern_token("a")], ovstage.OrdinalRange.latest(1)) as read:
    import builtins
    builtins.kept = [group.array(0) for group in read.groups()]
"""
    done = fresh_python(program)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
