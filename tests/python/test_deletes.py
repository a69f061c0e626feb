"""Deleting attributes and prims: what is gone, from which ordinal on, and what may come after it."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from conftest import GONE, stored

import ovstage
from ovstage import DLDataType, ErrorCode, Filter, FilterOp, OrdinalRange, OvstageError, Predicate, PrimMode, ReadGroup

BOTH_LEVELS = True


@pytest.fixture
def sealed(make_table):
    """Four prims with a float, and an array each."""
    table = make_table(4)
    table.write("mass", np.float32([1, 2, 3, 4]), 1)
    table.write("a", [np.int32([i] * i) for i in range(4)], 1, is_array=True)
    table.seal(1)
    return table


@pytest.fixture
def some(make_table):
    """The second and the fourth of them."""
    return make_table(["/World/Prim1", "/World/Prim3"])


def delete(table, names, ordinal):
    table.stage.delete_attributes(table.query, names, ordinal).wait()


def refused(op, code, *texts):
    assert (op.status, op.op_id) == (code, 0)
    for text in texts:
        assert str(text) in op.error_message()


# --- attributes ---


@pytest.mark.parametrize("by", ["name", "token"])
def test_attribute_of_some_prims(sealed, some, by):
    delete(some, ["mass" if by == "name" else sealed.token("mass")], 2)
    assert sealed.read("mass", 2) == [1, 2, 3, 4]
    sealed.seal(2)
    assert sealed.read("mass", 2) == [1, None, 3, None]
    assert some.groups("mass", 2) == []
    assert sealed.read("a", 2) == [[], [1], [2, 2], [3, 3, 3]]
    assert sealed.changes("mass", 2, 2) == {1: GONE, 3: GONE}
    assert sealed.changes("a", 2, 2) == {}


def test_attribute_of_all_prims(sealed):
    delete(sealed, ["mass"], 2)
    sealed.seal(2)
    assert sealed.groups("mass", 2) == []
    assert sealed.changes("mass", 2, 2) == dict.fromkeys(range(4), GONE)
    assert sealed.query.result().attributes == [sealed.token("a")]


def test_array_rows(sealed, some):
    delete(some, ["a"], 2)
    sealed.seal(2)
    assert sealed.read("a", 2) == [[], None, [2, 2], None]
    assert sealed.changes("a", 1, 2) == {0: [], 1: GONE, 2: [2, 2], 3: GONE}


def test_several_attributes_and_tuples_of_names(sealed, some):
    delete(some, ("mass", sealed.token("a")), 2)
    sealed.seal(2)
    assert sealed.read("mass", 2) == [1, None, 3, None]
    assert sealed.read("a", 2) == [[], None, [2, 2], None]


def test_what_is_absent_is_left_alone(sealed, make_table):
    other = make_table(["/Other", "/World/Prim0"])
    delete(other, ["never written"], 2)
    delete(other, ["mass"], 2)
    delete(other, ["mass"], 2)
    sealed.seal(2)
    assert other.changes("mass", 2, 2) == {1: GONE}
    delete(other, ["mass"], 3)
    delete(other, [], 3)
    sealed.seal(3)
    assert other.changes("mass", 3, 3) == {}
    assert other.changes("a", 3, 3) == {1: GONE}


def test_delete_below_a_value_takes_nothing(sealed):
    sealed.write("mass", np.float32([10, 20, 30, 40]), 5)
    delete(sealed, ["mass"], 4)
    sealed.seal(4)
    assert sealed.groups("mass", 4) == []
    sealed.seal(5)
    assert sealed.read("mass", 5) == [10, 20, 30, 40]


# --- prims ---


def test_whole_prims(sealed, some):
    delete(some, [], 2)
    sealed.seal(2)
    assert sealed.read("mass", 2) == [1, None, 3, None]
    assert sealed.read("a", 2) == [[], None, [2, 2], None]
    assert sealed.changes("mass", 2, 2) == sealed.changes("a", 2, 2) == {1: GONE, 3: GONE}


def test_prim_is_gone_with_its_last_attribute(sealed, some):
    delete(some, ["mass"], 2)
    op = some.stage.write_attribute(
        some.query, "mass", 3, np.float32([5, 6]), is_array=False, prim_mode=PrimMode.INSERT
    )
    refused(op, ErrorCode.PRIM_NOT_FOUND, "/World/Prim1", "already exists")
    delete(some, ["a"], 3)
    some.write("mass", np.float32([5, 6]), 4, prim_mode=PrimMode.INSERT)
    sealed.seal(4)
    assert sealed.read("mass", 4) == [1, 5, 3, 6]


def test_update_passes_over_deleted_prims(sealed, some):
    delete(some, [], 2)
    sealed.write("mass", np.float32([10, 20, 30, 40]), 3, prim_mode=PrimMode.UPDATE)
    sealed.seal(3)
    assert sealed.read("mass", 3) == [10, None, 30, None]


def test_filters_forget_what_is_deleted(make_table):
    table, first, second = make_table(2), make_table(["/World/Prim0"]), make_table(["/World/Prim1"])
    table.write("mass", np.float32([1, 2]), 1)
    table.seal(1)

    def count():
        with table.stage.query(Filter([Predicate(table.token("mass"), FilterOp.HAS)])) as found:
            return found.result().total_prim_count

    assert count() == 2
    delete(second, [table.token("mass")], 2)
    table.seal(2)
    assert count() == 1
    delete(first, [], 3)
    table.seal(3)
    assert count() == 0


def test_handles_over_deleted_prims_still_work(sealed, some):
    read = some.stage.read_attributes(some.query, [some.token("mass")], OrdinalRange.latest(1))
    delete(some, [], 2)
    sealed.seal(2)
    with read, read.fetch_next() as group:
        assert group.array(0)[group.data_rows()].tolist() == [2, 4]
    assert some.query.result().total_prim_count == 2


# --- and then ---


@pytest.mark.parametrize("ordinal", [2, 3])
def test_rewrite_at_the_same_and_at_a_later_ordinal(sealed, some, ordinal):
    delete(sealed, ["mass"], 2)
    some.write("mass", np.float32([20, 40]), ordinal)
    sealed.seal(ordinal)
    assert sealed.read("mass", ordinal) == [None, 20, None, 40]
    assert sealed.changes("mass", 2, ordinal) == {0: GONE, 1: 20, 2: GONE, 3: 40}


def test_delete_after_a_write_at_the_same_ordinal(sealed, some):
    sealed.write("mass", np.float32([10, 20, 30, 40]), 2)
    delete(some, ["mass"], 2)
    sealed.seal(2)
    assert sealed.read("mass", 2) == [10, None, 30, None]
    assert sealed.changes("mass", 2, 2) == {0: 10, 1: GONE, 2: 30, 3: GONE}


def test_schema_is_forgotten(sealed):
    op = sealed.stage.write_attribute(sealed.query, "mass", 2, np.zeros((4, 3), "f8"), is_array=False)
    refused(op, ErrorCode.INVALID_ARGUMENT, "mass", "float64x3", "float32", "delete the attribute first")
    delete(sealed, ["mass"], 2)
    sealed.write("mass", np.arange(12, dtype="f8").reshape(4, 3), 3, semantic=ovstage.AttributeSemantic.POINT)
    sealed.seal(3)
    with sealed.group("mass", 3) as group:
        assert stored(group.tensor(0))[1] == DLDataType(2, 64, 3)
        assert group.semantic is ovstage.AttributeSemantic.POINT
    delete(sealed, ["mass"], 4)
    sealed.write("mass", [np.int8([1])] * 4, 4, is_array=True)
    sealed.seal(4)
    assert sealed.read("mass", 4) == [[1]] * 4
    assert sealed.changes("mass", 4, 4) == {prim: [1] for prim in range(4)}


def test_a_prim_changes_its_schema_alone(sealed, some):
    delete(some, ["mass"], 2)
    some.write("mass", np.int64([7, 8]), 3)
    sealed.seal(3)
    assert sealed.read("mass", 3) == [1, 7, 3, 8]
    groups = sealed.groups("mass", 3)
    assert sorted(str(group.array(0).dtype) for group in groups) == ["float32", "int64"]
    for group in groups:
        group.release()


def test_write_below_a_delete_with_another_schema(sealed):
    delete(sealed, ["mass"], 5)
    op = sealed.stage.write_attribute(sealed.query, "mass", 4, np.int32([1, 2, 3, 4]), is_array=False)
    refused(op, ErrorCode.INVALID_ARGUMENT, "mass", "4", "delete")
    sealed.write("mass", np.float32([10, 20, 30, 40]), 4)
    sealed.seal(4)
    assert sealed.read("mass", 4) == [10, 20, 30, 40]
    sealed.seal(5)
    assert sealed.groups("mass", 5) == []


def test_deleted_rows_are_used_again(make_table):
    keep = make_table(["/Keep"])
    keep.write("mass", np.float32([1]), 1)
    keep.seal(1)
    for i in range(300):
        spawned = make_table([f"/Spawn{i}/{k}" for k in range(10)])
        spawned.write("mass", np.full(10, i, "f4"), 2 * i + 2)
        keep.seal(2 * i + 2)
        assert spawned.read("mass", 2 * i + 2) == [i] * 10
        delete(spawned, [], 2 * i + 3)
        keep.seal(2 * i + 3)
    assert keep.read("mass", 700) == [1]
    assert keep.stage.counters()["bytes_columns"] < 1 << 16


def test_generation_rises_when_rows_go(sealed, some):
    with sealed.group("mass", 1) as group:
        before = group.meta.layout_generation
    delete(some, ["mass"], 2)
    sealed.seal(2)
    with sealed.group("mass", 2) as group:
        assert group.meta.layout_generation > before


def test_held_group_keeps_what_is_deleted(sealed):
    with sealed.group("mass", 1) as group:
        delete(sealed, [], 2)
        sealed.seal(2)
        assert group.array(0).tolist() == [1, 2, 3, 4]


# --- maps ---


def test_map_over_deleted_prims_starts_from_zeros(sealed, some):
    delete(some, ["mass"], 2)
    with sealed.stage.map_attribute(sealed.query, "mass", 3) as mapping:
        assert mapping.fetch_next().array(0).tolist() == [1, 0, 3, 0]
    sealed.seal(3)
    assert sealed.read("mass", 3) == [1, 0, 3, 0]


def test_delete_beside_an_open_map(sealed, some):
    mapping = sealed.stage.map_attribute(sealed.query, "mass", 2)
    delete(some, ["mass"], 2)
    mapping.fetch_next().array(0)[:] = [10, 20, 30, 40]
    mapping.unmap().wait()
    sealed.seal(2)
    assert sealed.read("mass", 2) == [10, 20, 30, 40]
    mapping = sealed.stage.map_attribute(sealed.query, "mass", 3)
    delete(some, ["mass"], 4)
    mapping.unmap().wait()
    sealed.seal(4)
    assert sealed.read("mass", 4) == [10, None, 30, None]


# --- refusals ---


def test_deletes_below_the_floor(sealed, some):
    for names in (["mass"], ["mass", "a"], []):
        refused(
            some.stage.delete_attributes(some.query, names, 1), ErrorCode.WRITE_FLOOR_VIOLATION, "1", "write floor is 1"
        )
    sealed.seal(1)
    assert sealed.read("mass", 1) == [1, 2, 3, 4]


def test_a_late_delete_below_another_schema_takes_nobody_away(table):
    stage = table.stage
    table.write("x", np.int32([1, 2]), 2)
    stage.delete_attributes(table.query, ["x"], 5).wait()
    table.write("x", np.float32([3, 4]), 5)
    stage.delete_attributes(table.query, ["x"], 3).wait()
    with stage.query(Filter([Predicate("x", FilterOp.HAS)])) as carriers:
        assert carriers.result().total_prim_count == 2
    stage.clone(table.paths[0], ["/Copy"], 6)
    table.seal(6)
    assert table.read("x", 6) == [3, 4]
    stage.delete_attributes(table.query, [], 7).wait()
    table.seal(7)
    assert table.read("x", 7) == [None, None]


def test_a_sealed_attribute_is_judged_where_the_prim_lacks_it(sealed, make_table):
    other = make_table(["/Other"])
    refused(other.stage.delete_attributes(other.query, ["mass"], 1), ErrorCode.WRITE_FLOOR_VIOLATION, "mass")
    other.stage.delete_attributes(other.query, [], 1).wait()


@pytest.mark.parametrize("name", ["usd-path", "usd-parent", "usd-children", "usd-active"])
def test_derived_attributes_are_not_deleted(sealed, name):
    refused(sealed.stage.delete_attributes(sealed.query, ["mass", name], 2), ErrorCode.NOT_SUPPORTED, name)
    sealed.seal(2)
    assert sealed.read("mass", 2) == [1, 2, 3, 4]


def test_names_that_are_none(sealed):
    refused(sealed.stage.delete_attributes(sealed.query, [2**40], 2), ErrorCode.INVALID_ARGUMENT, 2**40)
    for wrong in ([5.0], [None], [b"mass"]):
        with pytest.raises(TypeError, match="attribute"):
            sealed.stage.delete_attributes(sealed.query, wrong, 2)


# --- tombstone groups ---


@pytest.fixture
def tombstones(sealed, some):
    delete(some, ["mass"], 2)
    sealed.seal(2)
    read = sealed.stage.read_attributes(sealed.query, [sealed.token("mass")], OrdinalRange.between(2, 2))
    group = read.fetch_next()
    assert read.fetch_next() is None
    read.release().wait()
    yield group
    if sealed.stage.alive and not group.released:
        group.release()


def test_tombstones_have_prims_and_nothing_else(sealed, tombstones):
    assert (tombstones.is_delete, tombstones.attribute, tombstones.ordinal) == (True, sealed.token("mass"), 2)
    assert (tombstones.tensor_count, tombstones.data_count, tombstones.has_data_index_map) == (0, 0, False)
    assert tombstones.prim_indices().tolist() == [1, 3]
    assert [tombstones.prim_index(i) for i in range(2)] == [1, 3]
    assert tombstones.data_rows().tolist() == []
    assert tombstones.meta.attribute_write_floor_ordinal == 2
    assert not tombstones.raw.data.tensors
    for accessor in (tombstones.array, tombstones.tensor, tombstones.dlpack, tombstones.data_row_index):
        with pytest.raises(IndexError):
            accessor(0)
    with pytest.raises(IndexError, match="2 prims"):
        tombstones.prim_index(2)


def test_tombstones_outlive_the_stage(sealed, tombstones):
    raw = tombstones.raw
    sealed.stage.destroy()
    assert tombstones.prim_indices().tolist() == [1, 3]
    assert tombstones.prim_index(1) == 3
    assert raw.prims.index_map[1] == 3
    built = ReadGroup(raw)
    assert built.prim_indices().tolist() == [1, 3]


def test_raw_tombstone_keeps_its_prims(tombstones):
    raw = tombstones.raw
    tombstones.release()
    del tombstones
    gc.collect()
    assert [raw.prims.index_map[i] for i in range(raw.prims.count)] == [1, 3]


def test_released_tombstones(tombstones):
    tombstones.release()
    assert tombstones.prim_count == 2
    for call in (lambda: tombstones.prim_index(0), tombstones.prim_indices, tombstones.data_rows):
        with pytest.raises(OvstageError) as caught:
            call()
        assert caught.value.code == ErrorCode.INVALID_HANDLE


def test_dropped_tombstones_are_reported(sealed, some):
    delete(some, ["mass"], 2)
    sealed.seal(2)
    with sealed.stage.read_attributes(sealed.query, [sealed.token("mass")], OrdinalRange.between(2, 2)) as read:
        group = read.fetch_next()
        with pytest.warns(ResourceWarning, match="garbage-collected"):
            del group
    assert sealed.stage.counters()["live_groups"] == 0
