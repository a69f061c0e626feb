"""Whole attributes as arrays: where a group's values belong, and reads that put them there."""

from __future__ import annotations

import copy
import dataclasses
import gc
import pickle
import sys

import numpy as np
import pytest
from conftest import address, values_of

import ovstage
from ovstage import (
    AttributeSemantic,
    Column,
    ErrorCode,
    Filter,
    FilterOp,
    OrdinalRange,
    OvstageError,
    Predicate,
    Scope,
)

BOTH_LEVELS = True


@pytest.fixture
def six(make_table):
    return make_table(6)


@pytest.fixture
def some(make_table):
    """Three of the six prims, not in their order."""
    return make_table([f"/World/Prim{i}" for i in (5, 0, 3)])


def column(table, name="x", ordinal=None):
    return table.stage.read(table.query, [name], ordinal)[name]


def as_list(column):
    """One entry per prim, None where there is no value."""
    return [column.row(i).tolist() if ok else None for i, ok in enumerate(column.valid)]


# --- where the values of a group belong ---


def placed(group, prims):
    """The group's values in the order of the query, by the vectorised helpers."""
    values = np.full(prims, -1, group.array(0).dtype)
    values[group.prim_indices()] = group.array(0)[group.data_rows()]
    return values.tolist()


def test_dense_group(six):
    six.write("x", np.arange(6, dtype="i4"), 1)
    six.seal(1)
    with six.group("x", 1) as group:
        assert group.prim_indices().dtype == group.data_rows().dtype == np.uint32
        assert placed(group, 6) == [0, 1, 2, 3, 4, 5]


def test_scattered_rows(six, some):
    six.write("x", np.arange(6, dtype="i4"), 1)
    six.seal(1)
    with some.group("x", 1) as group:
        assert placed(group, 3) == [5, 0, 3]
        assert not group.data_rows().flags.writeable


def test_prims_without_the_attribute(six, some):
    some.write("x", np.int32([50, 0, 30]), 1)
    six.seal(1)
    with six.group("x", 1) as group:
        assert group.has_prim_index_map
        assert group.prim_indices().tolist() == [0, 3, 5]
        assert placed(group, 6) == [0, -1, -1, 30, -1, 50]
    with six.group("x", 1) as group:
        assert values_of(group) == {0: 0, 3: 30, 5: 50}


def test_helpers_agree_with_the_accessors_of_one_prim(six, some, make_table):
    some.write("x", np.int32([50, 0, 30]), 1)
    make_table(["/World/Prim1", "/World/Prim0"]).write("x", np.int32([10, 1]), 2)
    six.seal(2)
    for table in (six, some, make_table(["/World/Prim3", "/Nobody", "/World/Prim1"])):
        for group in table.groups("x", 2):
            with group:
                prims = range(group.prim_count)
                assert group.prim_indices().tolist() == [group.prim_index(i) for i in prims]
                assert group.data_rows().tolist() == [group.data_row_index(i) for i in prims]


def test_helpers_of_a_map_group(some, six):
    six.write("x", np.arange(6, dtype="i4"), 1)
    six.seal(1)
    with some.stage.map_attribute(some.query, "x", 2) as mapping:
        for group in mapping.groups():
            assert placed(group, 3) == [5, 0, 3]
            group.array(0)[group.data_rows()] = np.int32([100, 200, 300])[group.prim_indices()]
    six.seal(2)
    assert six.read("x", 2) == [200, 1, 2, 300, 4, 100]


def test_helpers_end_with_the_release(six):
    six.write("x", np.arange(6, dtype="i4"), 1)
    six.seal(1)
    group = six.group("x", 1)
    group.release()
    for helper in (group.prim_indices, group.data_rows):
        with pytest.raises(OvstageError) as caught:
            helper()
        assert caught.value.code == ErrorCode.INVALID_HANDLE


# --- reading in one call ---


def test_whole_column_is_not_copied(six):
    six.write("x", np.arange(18, dtype="f4").reshape(6, 3), 1, semantic=AttributeSemantic.POINT)
    six.seal(1)
    before = six.stage.counters()["bytes_copied"]
    found = column(six)
    assert isinstance(found, Column)
    assert found.values.tolist() == np.arange(18).reshape(6, 3).tolist()
    assert (found.values.dtype, found.values.shape, len(found)) == (np.float32, (6, 3), 6)
    assert found.valid.tolist() == [True] * 6
    assert found.deleted.tolist() == [False] * 6
    assert (found.offsets, found.semantic, found.ordinal) == (None, AttributeSemantic.POINT, 1)
    with six.group("x", 1) as group:
        assert address(found.values) == address(group.array(0))
    assert six.stage.counters()["bytes_copied"] == before


def test_part_of_a_column_is_not_copied(six, make_table):
    six.write("x", np.arange(6, dtype="f4"), 1)
    six.seal(1)
    middle = make_table([f"/World/Prim{i}" for i in (2, 3, 4)])
    assert column(middle).values.tolist() == [2, 3, 4]
    assert address(column(middle).values) == address(column(six).values) + 8


def test_values_come_in_the_order_of_the_query(six, some):
    six.write("x", np.arange(6, dtype="f4"), 1)
    six.seal(1)
    assert column(some).values.tolist() == [5, 0, 3]


def test_prims_without_a_value_are_marked(six, some):
    some.write("x", np.float32([50, 1, 30]), 1)
    some.write("wide", np.float32([[50, 51], [1, 2], [30, 31]]), 1)
    six.seal(1)
    assert column(six).values.tolist() == [1, 0, 0, 30, 0, 50]
    assert column(six).valid.tolist() == [True, False, False, True, False, True]
    assert as_list(column(six)) == [1, None, None, 30, None, 50]
    assert column(six, "wide").values.tolist() == [[1, 2], [0, 0], [0, 0], [30, 31], [0, 0], [50, 51]]


def test_columns_are_arrays_to_numpy(six, some):
    some.write("x", np.int32([50, 0, 30]), 1)
    six.seal(1)
    whole = column(some)
    assert np.shares_memory(np.asarray(whole), whole.values)
    assert np.array(whole, "f8").tolist() == [50, 0, 30]
    assert np.maximum(whole, 10).tolist() == [50, 10, 30]
    with pytest.raises(ValueError, match=r"3 of 6 prims have no value: take values, zero there, with the mask valid"):
        np.asarray(column(six))
    some.write("lists", [np.int32([1]), np.int32([2, 3]), np.int32([])], 2, is_array=True)
    six.seal(2)
    with pytest.raises(TypeError, match=r"no single array: take values and offsets"):
        np.asarray(column(some, "lists"))


def test_arrays_of_a_column(six):
    rows = [np.int32(range(i)) for i in range(6)]
    six.write("x", rows, 1, is_array=True)
    six.seal(1)
    found = column(six)
    assert found.offsets.tolist() == [0, 0, 1, 3, 6, 10, 15]
    assert found.values.tolist() == [k for i in range(6) for k in range(i)]
    assert as_list(found) == [list(range(i)) for i in range(6)]
    with six.group("x", 1) as group:
        assert address(found.values) == address(group.array(1))
    six.write("fixed", np.zeros(6), 2)
    six.seal(2)
    for wrong in (-1, 6):
        for which in (found, column(six, "fixed")):
            with pytest.raises(IndexError, match="6 prims"):
                which.row(wrong)


def test_arrays_that_lie_apart(six, some):
    six.write("x", [np.int32(range(i)) for i in range(6)], 1, is_array=True)
    some.write("x", [np.int32([-5] * 3), np.int32([]), np.int32([-3])], 2, is_array=True)
    six.seal(2)
    assert as_list(column(six)) == [[], [0], [0, 1], [-3], [0, 1, 2, 3], [-5] * 3]
    assert as_list(column(some)) == [[-5] * 3, [], [-3]]


def test_arrays_of_some_prims(six, some):
    some.write("x", [np.float32([[5, 5]] * 2), np.float32([]), np.float32([3])], 1, is_array=True)
    six.seal(1)
    assert as_list(column(six)) == [[], None, None, [3], None, [5] * 4]


def test_arrays_of_tuples(six):
    points = np.arange(36, dtype="f4")
    row = ovstage.make_dltensor(points, dtype=ovstage.DLDataType(2, 32, 3), shape=[12])
    six.write("x", row, 1, is_array=True)
    six.seal(1)
    found = column(six)
    assert found.values.shape == (12, 3)
    assert found.row(5).tolist() == [[30, 31, 32], [33, 34, 35]]


def test_empty_arrays(six):
    six.write("x", np.empty(0, "f8"), 1, is_array=True)
    six.seal(1)
    found = column(six)
    assert (found.values.shape, found.values.dtype) == ((0,), np.float64)
    assert as_list(found) == [[]] * 6


@pytest.mark.parametrize("is_array", [False, True])
def test_roles_on_different_prims_make_one_column(six, make_table, is_array):
    """Several groups, whose prims may lie between each other's."""
    even, odd = (make_table([f"/World/Prim{i}" for i in range(start, 6, 2)]) for start in (0, 1))
    rows = [[i] * (i + 1) if is_array else [i] * 3 for i in range(6)]
    for table, start, role in ((odd, 1, AttributeSemantic.COLOR), (even, 0, AttributeSemantic.POINT)):
        values = [np.float32(row) for row in rows[start::2]]
        table.write("x", values if is_array else np.stack(values), 1, is_array=is_array, semantic=role)
    six.seal(1)
    assert len(six.groups("x", 1)) == 2
    found = column(six)
    assert as_list(found) == rows
    assert found.semantic is AttributeSemantic.NONE
    gc.collect()


def test_types_on_different_prims_make_none(six, some, make_table):
    some.write("x", np.float32([1, 2, 3]), 1)
    make_table(["/World/Prim1"]).write("x", [np.float64([1, 2])], 1, is_array=True)
    six.seal(1)
    with pytest.raises(ValueError, match=r"'x' is (float32|arrays of float64) on some prims and"):
        column(six)
    assert column(some).values.tolist() == [1, 2, 3]
    assert six.stage.counters()["live_groups"] == 0


def test_prims_listed_twice(make_table):
    twice = make_table(["/A", "/B", "/A"])
    twice.write("x", np.float32([1, 2, 3]), 1)
    twice.write("a", [np.int32([1]), np.int32([2, 2]), np.int32([3, 3, 3])], 1, is_array=True)
    twice.seal(1)
    assert column(twice).values.tolist() == [3, 2, 3]
    assert as_list(column(twice, "a")) == [[3, 3, 3], [2, 2], [3, 3, 3]]


def test_query_by_a_filter(six, some):
    some.write("x", np.float32([50, 1, 30]), 1)
    six.write("y", np.arange(6, dtype="f4"), 1)
    six.seal(1)
    with six.stage.query(Filter([Predicate("x", FilterOp.HAS)])) as found:
        columns = six.stage.read(found, ["x", "y", "z"])
    assert list(columns) == ["x", "y"]
    assert sorted(zip(columns["x"].values.tolist(), columns["y"].values.tolist(), strict=True)) == [
        (1, 0),
        (30, 3),
        (50, 5),
    ]


def test_query_of_no_prims(make_table):
    empty = make_table([])
    assert empty.stage.read(empty.query, ["x"]) == {}


def test_columns_stay_as_they_are(six):
    six.write("x", np.arange(6, dtype="f4"), 1)
    six.write("a", [np.int32([i]) for i in range(6)], 1, is_array=True)
    six.seal(1)
    columns = six.stage.read(six.query, ["x", "a"])
    for ordinal in range(2, 6):
        six.write("x", np.full(6, ordinal, "f4"), ordinal)
        six.write("a", [np.int32([ordinal] * ordinal)] * 6, ordinal, is_array=True)
        six.seal(ordinal)
    for found in columns.values():
        assert found.values.tolist() == [0, 1, 2, 3, 4, 5]
        for array in (found.values, found.valid, found.deleted):
            assert not array.flags.writeable
    assert six.stage.counters()["live_groups"] == six.stage.counters()["live_reads"] == 0


def test_columns_outlive_the_stage():
    stage = ovstage.Stage()
    names = ovstage.PathDictionary(stage)
    with names.create_path_list_from_strings(["/A", "/B"]) as prims, stage.query_from_path_list(prims) as query:
        stage.write_attribute(query, "x", 1, np.float32([1, 2]), is_array=False).wait()
        stage.advance_write_floor(1).wait()
        found = stage.read(query, ["x"])["x"]
    stage.destroy()
    del stage, names, query
    gc.collect()
    assert found.values.tolist() == [1, 2]


# --- what is asked for ---


def test_names_and_tokens(six):
    six.write("x", np.arange(6, dtype="f4"), 1)
    six.seal(1)
    token = six.token("x")
    found = six.stage.read(six.query, ["x", token, "never written"])
    assert list(found) == ["x", token]
    assert found["x"] is found[token]
    assert list(six.stage.read(six.query.handle, np.uint64([token]))) == [token]


def test_one_snapshot_for_all(six):
    for ordinal in (1, 2):
        six.write("x", np.full(6, ordinal, "f4"), ordinal)
        six.write("y", np.full(6, ordinal, "i8"), ordinal)
    six.seal(2)
    found = six.stage.read(six.query, ["x", "y"])
    assert {name: (c.ordinal, c.values.tolist()) for name, c in found.items()} == {
        "x": (2, [2] * 6),
        "y": (2, [2] * 6),
    }


def test_by_default_what_is_sealed(six, some):
    six.write("x", np.zeros(6, "f4"), 1)
    six.write("y", np.zeros(6, "f4"), 5)
    six.seal(1)
    six.write("x", np.ones(6, "f4"), 2)
    some.write("new", np.ones(3, "f4"), 2)
    assert list(six.stage.read(six.query, ["x", "y", "new"])) == ["x"]
    assert column(six).values.tolist() == [0] * 6
    with pytest.raises(OvstageError) as caught:
        six.stage.read(six.query, ["new"], 2)
    assert caught.value.code == ErrorCode.WRITE_FLOOR_VIOLATION
    six.stage.advance_write_floor(2, Scope.INCLUDE, [six.token("new")]).wait()
    assert list(six.stage.read(six.query, ["new"])) == ["new"]
    found = six.stage.read(six.query, ["x", "new"])
    assert {name: c.ordinal for name, c in found.items()} == {"x": 1, "new": 2}, "the oldest that is kept"


def test_at_an_ordinal_and_in_a_range(six, some):
    six.write("x", np.arange(6, dtype="i4"), 1)
    six.seal(1)
    some.write("x", np.int32([50, 1, 30]), 2)
    six.stage.delete_attributes(some.query, ["x"], 3).wait()
    some.write("x", np.int32([60]), 4, count=1)
    six.seal(4)
    assert column(six, ordinal=2**64 - 1).valid.tolist() == [False, True, True, False, True, True]
    changes = column(six, ordinal=OrdinalRange.between(2, 4))
    assert as_list(changes) == [None] * 5 + [60]
    assert changes.deleted.tolist() == [True, False, False, True, False, False]
    six.stage.delete_attributes(six.query, ["x"], 5).wait()
    six.seal(5)
    gone = column(six, ordinal=OrdinalRange.between(5, 5))
    assert not gone.valid.any()
    assert gone.deleted.tolist() == [False, True, True, False, True, True]
    assert len(gone.values) == 6
    assert six.stage.read(six.query, ["x"], OrdinalRange.between(6, 9)) == {}
    assert six.stage.read(six.query, ["x"]) == {}


@pytest.mark.parametrize(
    ("attrs", "ordinal", "error"),
    [
        ([], None, ValueError),
        ("x", None, TypeError),
        ([1.5], None, TypeError),
        (["x"], 1.5, TypeError),
        (["x"], -1, ValueError),
    ],
)
def test_wrong_arguments(six, attrs, ordinal, error):
    with pytest.raises(error):
        six.stage.read(six.query, attrs, ordinal)
    assert six.stage.counters()["live_reads"] == 0


def test_query_that_is_none(six):
    with pytest.raises(OvstageError) as caught:
        six.stage.read(10**9, ["x"])
    assert caught.value.code == ErrorCode.INVALID_HANDLE


# --- an open read ---


def test_the_rest_of_a_read(six):
    for name in "xyz":
        six.write(name, np.arange(6, dtype="f4"), 1)
    six.seal(1)
    tokens = [six.token(name) for name in "xyz"]
    with six.stage.read_attributes(six.query, tokens, OrdinalRange.latest(1)) as read:
        with read.fetch_next() as first:
            rest = read.to_numpy()
        assert set(rest) == set(tokens) - {first.attribute}
        assert read.to_numpy() == {}
    assert six.stage.counters()["live_groups"] == 0


@pytest.mark.parametrize("kind", ["bfloat16", "float8_e5m2", "complex64"])
def test_columns_of_every_element_type_are_producers(six, kind):
    dtype = np.dtype(kind) if kind == "complex64" else np.dtype(getattr(pytest.importorskip("ml_dtypes"), kind))
    values = np.arange(6).astype(dtype)
    six.write("v", values, 1)
    six.seal(1)
    column = six.stage.read(six.query, ["v"])["v"]
    tensor = ovstage.DLTensor.from_dlpack(column)
    assert ovstage.dltensor_to_numpy(tensor).tobytes() == values.tobytes()
    six.stage.write_attribute(six.query, "w", 2, column, is_array=False).wait()
    six.seal(2)
    assert six.stage.read(six.query, ["w"])["w"].values.dtype == dtype
    assert six.stage.read(six.query, ["w"])["w"].values.tobytes() == values.tobytes()


def test_element_type_that_numpy_lacks(six, monkeypatch):
    """The groups are released all the same."""
    bits = ovstage.make_dltensor(np.zeros(6, "u2"), dtype=ovstage.DLDataType(ovstage.DLDataTypeCode.kDLBfloat, 16, 1))
    six.write("x", bits, 1)
    six.seal(1)
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    with pytest.raises(ValueError, match="bfloat16"):
        column(six)
    assert six.stage.counters()["live_groups"] == 0


# --- tables ---


@pytest.mark.parametrize(("package", "method"), [("pyarrow", "arrow"), ("pandas", "pandas")])
def test_table_without_the_library(six, monkeypatch, package, method):
    six.write("x", np.arange(6, dtype="i4"), 1)
    six.seal(1)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, package, raising=False)
    with six.stage.read_attributes(six.query, [six.token("x")], OrdinalRange.latest(1)) as read:
        read.wait()
        with pytest.raises(
            ModuleNotFoundError, match=rf"Read\.to_{method} needs the package {package}, .* pip install"
        ):
            getattr(read, f"to_{method}")()
        assert read.to_numpy()[six.token("x")].values.tolist() == [0, 1, 2, 3, 4, 5]  # nothing was fetched


@pytest.mark.parametrize(("library", "pip"), [("torch", "torch"), ("warp", "warp-lang"), ("jax", "jax")])
def test_columns_name_the_package_that_is_missing(table, monkeypatch, library, pip):
    table.write("mass", np.float32([1, 2]), 1)
    table.seal(1)
    column = table.stage.read(table.query, ["mass"])["mass"]
    monkeypatch.setitem(sys.modules, library, None)
    text = rf"^Column\.{library} needs the package {library}, .*pip install {pip}$"
    with pytest.raises(ModuleNotFoundError, match=text):
        getattr(column, library)()


def test_masks_that_nobody_asked_for_are_there(six):
    """A column that has a value for each prim makes its masks for the first who asks, in copies too."""
    six.write("v", np.arange(6, dtype=np.float32), 1)
    six.stage.advance_write_floor(1).wait()
    read = six.stage.read(six.query, ["v"])["v"]
    for each in (read, copy.copy(read), pickle.loads(pickle.dumps(read)), dataclasses.replace(read, ordinal=7)):
        assert (len(each), each.valid.tolist(), each.deleted.tolist()) == (6, [True] * 6, [False] * 6)
        assert each.valid is each.valid
        assert not each.valid.flags.writeable
        assert "deleted=array" in repr(each)
    with pytest.raises(AttributeError, match="no attribute 'masks'"):
        _ = read.masks


def test_a_read_of_one_attribute_leaves_nothing_open(six):
    six.write("v", np.arange(6, dtype=np.float32), 1)
    six.stage.advance_write_floor(1).wait()
    before = six.stage.counters()
    for ordinal in (None, 1, OrdinalRange.latest(1)):
        assert six.stage.read(six.query, ["v"], ordinal)["v"].values.tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(KeyError, match="never"):
        six.stage.read(six.query, ["never"])["never"]
    after = six.stage.counters()
    live = [name for name in before if name.startswith("live_")]
    assert {name: after[name] for name in live} == {name: before[name] for name in live}
