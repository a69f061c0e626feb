"""What Arrow readers see of a group: its values, one a prim, in the column's own bytes where the layouts agree."""

from __future__ import annotations

import ctypes
import gc
import importlib.metadata

import numpy as np
import pytest
from conftest import address

import ovstage
from ovstage import DLDataType, ErrorCode, OrdinalRange, OvstageError, make_dltensor

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")


def values_address(array):
    """Where the elements lie, below whatever lists."""
    while pa.types.is_nested(array.type):
        array = array.values
    return array.buffers()[1].address


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        ("i1", pa.int8()),
        ("i2", pa.int16()),
        ("i4", pa.int32()),
        ("i8", pa.int64()),
        ("u1", pa.uint8()),
        ("u2", pa.uint16()),
        ("u4", pa.uint32()),
        ("u8", pa.uint64()),
        ("f2", pa.float16()),
        ("f4", pa.float32()),
        ("f8", pa.float64()),
    ],
)
def test_numbers_are_the_columns_own_bytes(column, dtype, kind):
    values = np.arange(5).astype(dtype)
    group = column(values).group()
    array = pa.array(group)
    assert array.type == kind
    assert array.null_count == 0
    assert array.to_pylist() == values.tolist()
    assert values_address(array) == address(group.array(0))


def test_lanes_are_a_fixed_size_list(column):
    values = np.arange(32, dtype="f8").reshape(2, 4, 4)
    group = column(values).group()
    array = pa.array(group)
    assert array.type == pa.list_(pa.float64(), 16)
    assert array.to_pylist() == values.reshape(2, 16).tolist()
    assert values_address(array) == address(group.array(0))
    array.validate(full=True)


@pytest.mark.parametrize("shape", [(9,), (3, 3)])
def test_truth_values_are_packed(column, shape):
    values = np.arange(9).reshape(shape) % 3 == 0
    array = pa.array(column(values).group())
    assert array.to_pylist() == values.tolist()
    array.validate(full=True)


def test_arrays_are_lists(column):
    rows = [np.arange(n, dtype="i4") for n in (3, 0, 2, 5)]
    group = column(rows, is_array=True).group()
    array = pa.array(group)
    assert array.type == pa.list_(pa.int32())
    assert array.to_pylist() == [row.tolist() for row in rows]
    assert values_address(array) == address(group.array(0))
    array.validate(full=True)


def test_arrays_of_points_are_lists_of_lists(column):
    rows = [make_dltensor(np.arange(3 * n, dtype="f4"), dtype=DLDataType(2, 32, 3), shape=[n]) for n in (2, 1)]
    group = column(rows, is_array=True).group()
    array = pa.array(group)
    assert array.type == pa.list_(pa.list_(pa.float32(), 3))
    assert array.to_pylist() == [[[0, 1, 2], [3, 4, 5]], [[0, 1, 2]]]
    assert values_address(array) == address(group.array(0))


def test_arrays_of_truth_values(column):
    rows = [np.array(row, dtype=bool) for row in ([1, 0, 1], [], [1] * 9, [0])]
    array = pa.array(column(rows, is_array=True).group())
    assert array.to_pylist() == [row.tolist() for row in rows]
    array.validate(full=True)


def test_only_empty_arrays(column):
    array = pa.array(column([np.empty(0, "f4")] * 3, is_array=True).group())
    assert array.to_pylist() == [[], [], []]
    array.validate(full=True)


def test_arrays_that_lie_apart_are_gathered(column, stage):
    ragged = column([np.arange(n, dtype="i4") for n in (3, 1, 2)], is_array=True)
    query = ragged.pick(1)
    stage.write_attribute(query, ragged.token, 2, [np.arange(4, dtype="i4")], is_array=True).wait()
    stage.advance_write_floor(2).wait()
    array = pa.array(ragged.group())
    assert array.to_pylist() == [[0, 1, 2], [0, 1, 2, 3], [0, 1]]
    array.validate(full=True)


@pytest.mark.parametrize(
    "values",
    [np.arange(4, dtype="f4"), np.arange(12, dtype="f4").reshape(4, 3), np.array([True, False, True, True])],
    ids=["numbers", "lanes", "bits"],
)
def test_entries_are_in_the_order_of_the_prims(column, values):
    scattered = column(values)
    group = scattered.group(scattered.pick(3, 0, 2))
    assert group.has_data_index_map
    assert pa.array(group).to_pylist() == values[[3, 0, 2]].tolist()


def test_arrays_are_in_the_order_of_the_prims(column):
    ragged = column([np.arange(n, dtype="i4") for n in (3, 0, 2)], is_array=True)
    assert pa.array(ragged.group(ragged.pick(2, 0))).to_pylist() == [[0, 1], [0, 1, 2]]


def test_part_of_a_column_is_not_copied(column):
    whole = column(np.arange(10, dtype="f8"))
    group = whole.group(whole.pick(4, 5, 6))
    array = pa.array(group)
    assert array.to_pylist() == [4, 5, 6]
    assert values_address(array) == address(group.array(0))


def test_prims_that_lost_the_attribute_are_nulls(column, stage):
    lost = column(np.arange(3, dtype="f4"))
    stage.delete_attributes(lost.query, [lost.token], 2).wait()
    stage.advance_write_floor(2).wait()
    with stage.read_attributes(lost.query, [lost.token], OrdinalRange.between(2, 2)) as read:
        (group,) = read.groups()
    with group:
        assert group.is_delete
        assert pa.array(group).to_pylist() == [None] * 3


def test_field_has_the_name_of_the_attribute(column, stage):
    named = column(np.zeros(3))
    group = named.group()
    assert pa.field(group).name == named.name
    assert pa.schema([pa.field(group)]).names == [named.name]
    stage.destroy()
    assert pa.field(group).name == ""
    assert pa.array(group).to_pylist() == [0, 0, 0]


def test_wish_for_another_type_is_not_granted(column):
    group = column(np.arange(3, dtype="f4")).group()
    capsules = group.__arrow_c_array__(requested_schema=pa.float64().__arrow_c_schema__())
    assert pa.Array._import_from_c_capsule(*capsules).type == pa.float32()  # casting is the consumer's affair


@pytest.mark.parametrize(
    ("dtype", "name"),
    [(DLDataType(5, 64, 1), "complex64"), (DLDataType(4, 16, 1), "bfloat16"), (DLDataType(10, 8, 1), "float8_e4m3fn")],
)
def test_types_that_arrow_lacks(column, dtype, name):
    source = np.zeros(2, {64: "u8", 16: "u2", 8: "u1"}[dtype.bits])
    group = column(make_dltensor(source, dtype=dtype), rows=2).group()
    for export in (group.__arrow_c_schema__, group.__arrow_c_array__):
        with pytest.raises(ValueError, match=f"Arrow has no type for {name}"):
            export()


def test_released_and_foreign_groups_have_nothing_to_offer(column):
    group = column(np.zeros(2)).group()
    built = ovstage.ReadGroup(group.raw)
    with pytest.raises(ValueError, match="only a group that was fetched"):
        built.__arrow_c_array__()
    group.release()
    for export in (group.__arrow_c_schema__, group.__arrow_c_array__):
        with pytest.raises(OvstageError) as caught:
            export()
        assert caught.value.code == ErrorCode.INVALID_HANDLE


def test_mapped_buffers_are_not_offered(column):
    with column(np.zeros(2)).map() as mapping:
        assert not hasattr(mapping.fetch_next(), "__arrow_c_array__")


# --- ownership ---


class ArrowArray(ctypes.Structure):
    pass


ArrowArray._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowArray))),
    ("private_data", ctypes.c_void_p),
]


def structure(capsule):
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ArrowArray.from_address(pointer(capsule, b"arrow_array"))


def blocks():
    gc.collect()
    counters = ovstage.process_counters()
    return counters["live_exports"], counters["live_blocks"]


@pytest.mark.parametrize("is_array", [False, True])
def test_child_outlives_the_parent_it_was_moved_from(column, is_array):
    values = np.arange(6, dtype="f4").reshape(2, 3)
    group = column(list(values) if is_array else values, is_array=is_array, rows=2).group()
    before = blocks()
    _, capsule = group.__arrow_c_array__()
    parent, child = structure(capsule), ArrowArray()
    ctypes.memmove(ctypes.byref(child), parent.children[0], ctypes.sizeof(child))
    parent.children[0].contents.release = type(child.release)()
    parent.release(ctypes.byref(parent))
    assert not parent.release
    del parent, capsule
    assert child.length == 6
    assert np.frombuffer((ctypes.c_float * 6).from_address(child.buffers[1]), "f4").tolist() == list(range(6))
    assert blocks()[0] == before[0] + 1
    child.release(ctypes.byref(child))
    assert blocks() == before


def test_capsules_that_nobody_takes_give_everything_back(column):
    group = column(np.zeros((3, 3))).group()
    before = blocks()
    for _ in range(100):
        group.__arrow_c_array__()
        group.__arrow_c_schema__()
    assert blocks() == before


def test_array_keeps_its_bytes(column, stage):
    kept = column(np.arange(1000, dtype="f8"))
    array = pa.array(kept.group())
    kept.write(np.zeros(1000), 1000)
    kept.write(np.ones(1000), 1000)
    assert array.to_pylist() == list(range(1000))


# --- the readers ---


def in_pyarrow(group):
    array = pa.array(group)
    return array.to_pylist(), values_address(array)


def in_polars(group):
    pl = pytest.importorskip("polars", reason="polars is not installed")
    series = pl.Series(group)
    return series.to_list(), values_address(series.to_arrow())


def in_pandas(group):
    pd = pytest.importorskip("pandas", minversion="3", reason="pandas 3 is not installed")
    series = pd.Series.from_arrow(group)
    values = [row.tolist() if isinstance(row, np.ndarray) else row for row in series]
    return values, address(series.to_numpy()) if series.dtype.kind == "f" else 0


def sealed_lists(column):
    rows = [np.arange(n, dtype="f8") for n in (3, 0, 2, 5)]
    return column(rows, is_array=True).group(), [row.tolist() for row in rows]


def sealed_values(values):
    return lambda column: (column(values).group(), values.tolist())


def reordered(column):
    values = np.arange(4, dtype="f8")
    scattered = column(values)
    return scattered.group(scattered.pick(3, 0, 2)), [3.0, 0.0, 2.0]


CASES = {
    "numbers": sealed_values(np.arange(4, dtype="f8")),
    "lanes": sealed_values(np.arange(12, dtype="f8").reshape(4, 3)),
    "arrays": sealed_lists,
    "truth values": sealed_values(np.array([True, False, True])),
    "reordered": reordered,
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("reader", [in_pyarrow, in_polars, in_pandas], ids=lambda reader: reader.__name__[3:])
def test_reader(column, record, reader, case):
    group, expected = CASES[case](column)
    values, where = reader(group)
    assert values == expected
    name = reader.__name__[3:]
    seen = "view" if where == address(group.array(0)) else "copy"
    record(name, "version", importlib.metadata.version(name))
    record(name, f"arrow {case}", seen)
    assert seen == ("copy" if name == "pandas" or case in ("truth values", "reordered") else "view")


def test_polars(column):
    pl = pytest.importorskip("polars", reason="polars is not installed")
    points = np.arange(12, dtype="f8").reshape(4, 3)
    group = column(points).group()
    series = pl.Series(group)
    assert series.dtype == pl.Array(pl.Float64, 3)
    assert series.to_list() == points.tolist()
    numbers = column(np.arange(4, dtype="f8")).group()
    assert address(pl.Series(numbers).to_numpy(allow_copy=False)) == address(numbers.array(0))
    ragged = column([np.arange(n, dtype="i4") for n in (3, 0, 2)], is_array=True).group()
    assert pl.Series("lists", ragged).to_list() == [[0, 1, 2], [], [0, 1]]
    assert pl.DataFrame([series, pl.Series(numbers)]).shape == (4, 2)


def test_pandas(column):
    pd = pytest.importorskip("pandas", minversion="3", reason="pandas 3 is not installed")
    numbers = column(np.arange(4, dtype="f8")).group()
    series = pd.Series.from_arrow(numbers)
    assert series.tolist() == [0, 1, 2, 3]
    points = column(np.arange(12, dtype="f8").reshape(4, 3)).group()
    assert [list(row) for row in pd.Series.from_arrow(points)] == np.arange(12.0).reshape(4, 3).tolist()
