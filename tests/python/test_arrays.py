"""Array columns: each prim has an array of its own length, some of them none at all."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from conftest import address, needs_writable_imports, stored, values_of

import ovstage
from ovstage import (
    AttributeSemantic,
    DLDataType,
    DLDataTypeCode,
    DLTensor,
    ErrorCode,
    OrdinalRange,
    WriteDesc,
    make_dltensor,
)

BOTH_LEVELS = True

FLOAT3 = DLDataType(DLDataTypeCode.kDLFloat, 32, 3)
ROWS = [np.float32([1, 2]), np.float32([3, 4, 5]), np.float32([6])]
VALUES = [[1, 2], [3, 4, 5], [6]]


@pytest.fixture
def three(make_table):
    return make_table(3)


@pytest.fixture
def sealed(three):
    three.write("a", ROWS, 1, is_array=True)
    three.seal(1)
    return three


def write(table, tensors, ordinal=2, name="a", **options):
    return table.stage.write_attribute(table.query, name, ordinal, tensors, is_array=True, **options)


def refused(op, *texts):
    assert (op.status, op.op_id) == (ErrorCode.INVALID_ARGUMENT, 0)
    for text in texts:
        assert str(text) in op.error_message()


# --- one tensor per prim ---


def test_rows_of_any_length(sealed):
    assert sealed.read("a", 1) == VALUES
    with sealed.group("a", 1) as group:
        assert group.is_array
        assert (group.tensor_count, group.prim_count, group.data_count) == (3, 3, 3)
        assert not group.has_data_index_map
        assert [group.tensor(i).shape_tuple for i in range(3)] == [(2,), (3,), (1,)]
        assert {group.tensor(i).dtype for i in range(3)} == {DLDataType(2, 32, 1)}
        assert not any(group.tensor(i).strides for i in range(3))
        assert [np.from_dlpack(group.dlpack(i)).tolist() for i in range(3)] == VALUES
        with pytest.raises(IndexError, match="3 tensors"):
            group.array(3)


def test_rows_lie_in_one_buffer_and_are_not_copied(sealed):
    before = sealed.stage.counters()
    with sealed.group("a", 1) as group:
        starts = [address(group.array(i)) for i in range(3)]
        assert starts == [group.tensor(i).data for i in range(3)]
        assert np.diff(starts).tolist() == [8, 12]
        assert [address(np.from_dlpack(group.dlpack(i))) for i in range(3)] == starts
    after = sealed.stage.counters()
    assert (after["bytes_copied"], after["bytes_columns"]) == (before["bytes_copied"], before["bytes_columns"])


def test_an_empty_row_is_a_value(make_table):
    table = make_table(4)
    nothing = np.empty(0, "f4")
    table.write("a", [nothing, np.float32([1]), nothing, nothing], 1, is_array=True, mask=[0b0111], count=4)
    table.seal(1)
    assert table.read("a", 1) == [[], [1], [], None]
    with table.group("a", 1) as group:
        assert group.array(0).dtype == np.float32
        assert group.tensor(0).data is not None
        assert np.from_dlpack(group.dlpack(2)).shape == (0,)
    table.write("a", nothing, 2, is_array=True, count=2)
    table.seal(2)
    assert table.read("a", 2) == [[], [], [], None]


def test_nothing_but_empty_rows(make_table):
    twice = make_table(["/A", "/A", "/B"])
    twice.write("a", np.empty(0, "i4"), 1, is_array=True)
    twice.seal(1)
    assert twice.read("a", 1) == [[], [], []]
    with twice.group("a", 1) as group:
        assert group.array(2).dtype == np.int32
        assert group.tensor(0).data is not None
        assert np.from_dlpack(group.dlpack(0)).shape == (0,)


def test_one_row_for_one_prim_with_and_without_a_list(make_table):
    one = make_table(1)
    for ordinal, tensors in enumerate((np.float32([1, 2]), [np.float32([3, 4, 5])], (np.float32([6]),)), start=1):
        one.write("a", tensors, ordinal, is_array=True)
        one.seal(ordinal)
        assert one.read("a", ordinal) == [tensors.tolist() if ordinal == 1 else tensors[0].tolist()]


@pytest.mark.parametrize(
    "dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "?", "c8", "c16"], ids=str
)
def test_every_numpy_type_comes_back_as_itself(table, dtype):
    rows = [np.array([0, 1, 1], dtype), np.array([1], dtype)]
    table.write("a", rows, 1, is_array=True)
    table.seal(1)
    with table.group("a", 1) as group:
        for i, row in enumerate(rows):
            assert group.array(i).dtype == row.dtype
            assert group.array(i).tolist() == row.tolist()


def test_lanes_make_tuples_of_the_trailing_axes(three):
    rows = [np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((0, 3), np.float32), np.float32([])]
    write(three, rows, 1, name="points", lanes=3, semantic=AttributeSemantic.POINT).wait()
    frames = [np.tile(np.eye(4), (count, 1, 1)) for count in (2, 1, 0)]
    three.stage.write_attributes(
        three.query, [WriteDesc("frames", frames, True, semantic=AttributeSemantic.MATRIX, lanes=16)], 1
    ).wait()
    three.seal(1)
    found = three.stage.read(three.query, ["points", "frames"])
    assert np.array_equal(found["points"].row(0), rows[0])
    assert found["points"].offsets.tolist() == [0, 2, 2, 2]
    assert found["frames"].values.shape == (3, 16)


def test_lanes_of_tensors_that_were_read(three):
    """The same call writes back what a group shows at either interface level."""
    rows = [np.arange(6.0).reshape(2, 3), np.zeros((0, 3)), np.arange(3.0).reshape(1, 3)]
    write(three, rows, 1, lanes=3).wait()
    three.seal(1)
    with three.group("a", 1) as group:
        write(three, [group.tensor(i) for i in range(3)], 2, name="b", lanes=3).wait()
    three.seal(2)
    found = three.stage.read(three.query, ["b"])["b"]
    assert [found.row(i).tolist() for i in range(3)] == [each.tolist() for each in rows]


def test_lanes_of_what_other_producers_export(three):
    """Their capsules have strides that say no more than the shape does."""
    rows = [np.arange(6.0).reshape(2, 3), np.zeros((0, 3)), np.arange(3.0).reshape(1, 3)]
    write(three, rows, 1, lanes=3).wait()
    three.seal(1)
    with three.group("a", 1) as group:
        write(three, [group.dlpack(i) for i in range(3)], 2, lanes=3).wait()
        described = [DLTensor.from_dlpack(group.dlpack(i)) for i in range(3)]
    write(three, described, 3, name="b", lanes=3).wait()
    three.seal(3)
    found = three.stage.read(three.query, ["a", "b"])
    for name in ("a", "b"):
        assert [found[name].row(i).tolist() for i in range(3)] == [each.tolist() for each in rows]


@pytest.mark.parametrize(
    ("rows", "lanes", "text"),
    [
        ([np.zeros((2, 4), np.float32)] * 3, 3, r"tensors\[0\] must be compact.*lanes=3"),
        ([np.zeros((4, 3), np.float32)[::2]] * 3, 3, "ascontiguousarray"),
        ([np.zeros((2, 3), np.float32)] * 3, 0, "lanes must be in 1..255, got 0"),
        ([np.zeros((2, 3), np.float32)] * 3, 256, "lanes must be in 1..255, got 256"),
        ([make_dltensor(np.zeros((2, 3), np.float32), dtype=FLOAT3, shape=[2])] * 3, 2, "trailing axes"),
    ],
    ids=["width", "strides", "none", "many", "tuples"],
)
def test_lanes_that_do_not_fit_are_refused(three, rows, lanes, text):
    with pytest.raises(ValueError, match=text):
        write(three, rows, lanes=lanes)


def test_lanes_are_taken_as_they_are_sent(table):
    """Trailing axes are more elements; tuples are said by the lanes of the dtype."""
    points = np.arange(9, dtype="f4").reshape(3, 3)
    table.write("flat", [points, points[:1]], 1, is_array=True)
    table.write(
        "points", [make_dltensor(part, dtype=FLOAT3, shape=[len(part)]) for part in (points, points[:1])], 1,
        is_array=True, semantic=AttributeSemantic.POINT,
    )  # fmt: skip
    table.seal(1)
    with table.group("flat", 1) as group:
        assert [group.tensor(i).shape_tuple for i in range(2)] == [(9,), (3,)]
        assert group.tensor(0).dtype.lanes == 1
    with table.group("points", 1) as group:
        assert [stored(group.tensor(i)) for i in range(2)] == [(3, FLOAT3), (1, FLOAT3)]
        assert group.semantic is AttributeSemantic.POINT
        assert group.array(0, shaped=True).tolist() == points.tolist()
        assert np.from_dlpack(group.dlpack(1)).tolist() == points[:1].tolist()


@pytest.mark.parametrize(
    "row",
    [
        np.arange(12, dtype="f4")[::3],
        np.arange(4, dtype="f4")[::-1],
        np.asfortranarray(np.arange(4, dtype="f4").reshape(2, 2)),
        np.broadcast_to(np.float32(7), (2, 2)),
        np.arange(9, dtype="f4").reshape(3, 3)[1:, 1:],
    ],
    ids=["strided", "reversed", "fortran", "broadcast", "offset"],
)
def test_any_memory_layout_gives_its_values(table, row):
    table.write("a", [row, np.float32([1])], 1, is_array=True)
    table.seal(1)
    assert table.read("a", 1) == [row.reshape(-1).tolist(), [1]]


def test_strings_are_rows_of_bytes(three):
    texts = ["wheel", "", "größe"]
    three.write(
        "label", [np.frombuffer(text.encode(), "u1") for text in texts], 1, is_array=True,
        semantic=AttributeSemantic.STRING,
    )  # fmt: skip
    three.seal(1)
    with three.group("label", 1) as group:
        assert [bytes(group.array(i)).decode() for i in range(3)] == texts
        assert group.semantic is AttributeSemantic.STRING


def test_many_short_rows_stay_compact(make_table):
    rows = 200_000
    table = make_table(rows)
    packed = np.arange(2 * rows, dtype="i4")
    table.write("a", packed, 1, is_array=True)
    table.seal(1)
    assert table.stage.counters()["bytes_columns"] <= 40 * rows
    with table.group("a", 1) as group:
        assert group.tensor_count == rows
        assert group.array(rows - 1).tolist() == [2 * rows - 2, 2 * rows - 1]
    column = table.stage.read(table.query, ["a"])["a"]
    assert (column.values == packed).all()


# --- one tensor that is cut ---


def test_uniform_rows_in_one_tensor(three):
    three.write("a", np.arange(6, dtype="i4"), 1, is_array=True)
    three.write("b", make_dltensor(np.arange(18, dtype="f4"), dtype=FLOAT3, shape=[6]), 1, is_array=True)
    three.seal(1)
    assert three.read("a", 1) == [[0, 1], [2, 3], [4, 5]]
    with three.group("b", 1) as group:
        assert [stored(group.tensor(i)) for i in range(3)] == [(2, FLOAT3)] * 3
        assert group.array(2, shaped=True).tolist() == [[12, 13, 14], [15, 16, 17]]


def test_the_highest_index_says_into_how_many_rows(three):
    three.write("a", np.arange(8, dtype="i4"), 1, is_array=True, index_map=[3, 0, 0])
    three.seal(1)
    assert three.read("a", 1) == [[6, 7], [0, 1], [0, 1]]


def test_nothing_for_everybody(three):
    three.write("a", np.empty(0, "i4"), 1, is_array=True)
    three.seal(1)
    assert three.read("a", 1) == [[], [], []]


@pytest.mark.parametrize(
    ("elements", "options", "texts"),
    [
        (7, {}, ["7 elements", "does not divide evenly across 3 source row(s)"]),
        (7, {"count": 2}, ["does not divide evenly across 2 source row(s)"]),
        (7, {"index_map": [1, 0, 0]}, ["does not divide evenly across 2 source row(s)", "index_map"]),
    ],
)
def test_rows_that_do_not_come_out_even(sealed, elements, options, texts):
    refused(write(sealed, np.zeros(elements, "f4"), **options), *texts)
    assert sealed.read("a", 1) == VALUES


# --- which prims ---


def test_index_map_gathers_rows(make_table):
    table = make_table(4)
    table.write("a", [np.int32([i] * i) for i in range(4)], 1, is_array=True)
    table.write("a", [np.int32([11]), np.int32([22, 22]), np.int32([])], 2, is_array=True, index_map=[1, 2, 0])
    table.seal(2)
    assert table.read("a", 2) == [[22, 22], [], [11], [3, 3, 3]]
    table.write("a", [np.int32([7, 8]), np.int32([9])], 3, is_array=True, index_map=np.uint32([0, 0]))
    table.seal(3)
    assert table.read("a", 3) == [[7, 8], [7, 8], [11], [3, 3, 3]]


def test_mask_and_count(make_table):
    table = make_table(4)
    table.write("a", [np.int32([i] * i) for i in range(4)], 1, is_array=True)
    table.write("a", [np.int32([50 + i]) for i in range(4)], 2, is_array=True, mask=[0b1010], count=4)
    table.write("a", [np.int32([60, 61])], 3, is_array=True, count=1)
    table.seal(3)
    assert table.read("a", 3) == [[60, 61], [51], [2, 2], [53]]


def test_subset_leaves_the_others(make_table):
    table, some = make_table(5), make_table([f"/World/Prim{i}" for i in (4, 1)])
    table.write("a", [np.int32([i] * (i + 1)) for i in range(5)], 1, is_array=True)
    table.seal(1)
    some.write("a", [np.int32([40] * 9), np.int32([])], 2, is_array=True)
    assert table.read("a", 2)[4] == [4] * 5
    table.seal(2)
    assert table.read("a", 2) == [[0], [], [2] * 3, [3] * 4, [40] * 9]
    assert some.read("a", 2) == [[40] * 9, []]


def test_prims_listed_twice(make_table):
    twice = make_table(["/A", "/B", "/A"])
    twice.write("a", [np.int32([1]), np.int32([2, 2]), np.int32([3, 3, 3])], 1, is_array=True)
    twice.seal(1)
    assert twice.read("a", 1) == [[3, 3, 3], [2, 2], [3, 3, 3]]


def test_every_second_prim(make_table):
    table, some = make_table(6), make_table([f"/World/Prim{i}" for i in (1, 3, 5)])
    table.write("a", [np.int32([i] * i) for i in range(6)], 1, is_array=True)
    table.seal(1)
    with some.group("a", 1) as group:
        assert values_of(group) == {0: [1], 1: [3] * 3, 2: [5] * 5}


# --- what is refused ---


@pytest.mark.parametrize(
    ("tensors", "options", "texts"),
    [
        (ROWS[:2], {}, ["2 tensors", "3 prims"]),
        ([*ROWS, ROWS[0]], {}, ["4 tensors", "3 prims"]),
        (ROWS, {"index_map": [0, 3, 1]}, ["index_map[1] is 3", "outside the transported row count 3"]),
        ([ROWS[0], np.float64([1]), ROWS[2]], {}, ["tensor 1 is float64", "tensor 0 is float32"]),
        ([row.astype("i4") for row in ROWS], {}, ["int32[]", "float32[]"]),
        ([make_dltensor(np.zeros(3, "f4"), dtype=FLOAT3, shape=[1])] * 3, {}, ["float32x3[]", "float32[]"]),
        (ROWS, {"count": 4}, ["count is 4", "3 prims"]),
    ],
    ids=["too few", "too many", "index", "mixed", "type", "lanes", "count"],
)
def test_rows_that_do_not_fit(sealed, tensors, options, texts):
    refused(write(sealed, tensors, **options), *texts)
    sealed.seal(2)
    assert sealed.read("a", 2) == VALUES


def test_kind_of_an_existing_column(sealed):
    op = sealed.stage.write_attribute(sealed.query, "a", 2, np.float32([1, 2, 3]), is_array=False)
    refused(op, '"a"', "float32 ", "float32[]")
    sealed.write("fixed", np.float32([1, 2, 3]), 2)
    refused(write(sealed, ROWS, name="fixed"), '"fixed"', "float32[] ", "float32;")


def test_more_tensors_than_a_fixed_column_has(three):
    op = three.stage.write_attribute(three.query, "a", 1, ROWS, is_array=False)
    refused(op, "exactly one tensor, got 3", "is_array")


# --- snapshots, batches, ownership ---


def test_views_keep_their_bytes(sealed):
    with sealed.group("a", 1) as group:
        arrays = [group.array(i) for i in range(3)]
        exports = [np.from_dlpack(group.dlpack(i)) for i in range(3)]
        tensor = group.tensor(1)
    for ordinal in range(2, 8):
        sealed.write("a", [np.float32([ordinal] * ordinal)] * 3, ordinal, is_array=True)
        sealed.seal(ordinal)
    gc.collect()
    for kept in (arrays, exports):
        assert [row.tolist() for row in kept] == VALUES
    assert ovstage.dltensor_to_numpy(tensor).tolist() == VALUES[1]


def test_views_outlive_the_stage():
    stage = ovstage.Stage()
    names = ovstage.PathDictionary(stage)
    with names.create_path_list_from_strings(["/A", "/B"]) as prims, stage.query_from_path_list(prims) as query:
        stage.write_attribute(query, "a", 1, [np.int32([1]), np.int32([2, 3])], is_array=True).wait()
        stage.advance_write_floor(1).wait()
        with stage.read_attributes(query, [names.intern_token("a")], OrdinalRange.latest(1)) as read:
            with read.fetch_next() as group:
                array, export = group.array(1), group.dlpack(0)
    stage.destroy()
    del stage, names, query, read, group
    gc.collect()
    assert array.tolist() == [2, 3]
    assert np.from_dlpack(export).tolist() == [1]


def test_ordinals_decide_and_not_the_order_of_submission(table):
    table.write("a", [np.int32([7]), np.int32([7, 7])], 7, is_array=True)
    table.write("a", [np.int32([5] * 4), np.int32([])], 5, is_array=True)
    table.seal(5)
    assert table.read("a", 5) == [[5] * 4, []]
    table.seal(7)
    assert table.read("a", 7) == [[7], [7, 7]]


def test_kinds_may_be_mixed_in_one_batch(table):
    writes = [
        WriteDesc("a", [np.int32([1]), np.int32([2, 3])], True),
        WriteDesc("b", np.int32([4, 5]), False),
        WriteDesc("c", np.int32([6, 7, 8]), True, index_map=[0, 0], count=2),
    ]
    table.stage.write_attributes(table.query, writes, 1).wait()
    table.seal(1)
    assert table.read("a", 1) == [[1], [2, 3]]
    assert table.read("b", 1) == [4, 5]
    assert table.read("c", 1) == [[6, 7, 8], [6, 7, 8]]


def test_memory_follows_the_rows(table):
    for ordinal in range(1, 400):
        table.write("a", [np.zeros(ordinal % 50, "f4"), np.zeros(1000, "f4")], ordinal, is_array=True)
        table.seal(ordinal)
    assert table.stage.counters()["bytes_columns"] < 1 << 17


# --- maps ---


def test_map_of_an_array_column(sealed):
    with sealed.stage.map_attribute(sealed.query, "a", 2, element_sizes=[3, 1, 0]) as mapping:
        (group,) = mapping.groups()
        assert (group.tensor_count, group.prim_count, group.data_count) == (3, 3, 3)
        assert [group.tensor(i).shape_tuple for i in range(3)] == [(3,), (1,), (0,)]
        assert [group.array(i).tolist() for i in range(3)] == [[1, 2, 0], [3], []]
        for local in range(3):
            values = group.array(group.data_row_index(local))
            values[:] = np.arange(len(values)) + 10 * local
    sealed.seal(2)
    assert sealed.read("a", 2) == [[0, 1, 2], [10], []]


def test_map_creates_an_array_column(three):
    with three.stage.map_attribute(
        three.query, "p", 1, dtype=FLOAT3, element_sizes=np.uint64([1, 0, 2]), semantic=AttributeSemantic.POINT
    ) as mapping:
        group = mapping.fetch_next()
        assert [group.array(i, shaped=True).shape for i in range(3)] == [(1, 3), (0, 3), (2, 3)]
        group.array(2, shaped=True)[1] = [1, 2, 3]
    three.seal(1)
    with three.group("p", 1) as group:
        assert group.is_array
        assert group.semantic is AttributeSemantic.POINT
        assert group.array(2).ravel().tolist() == [0, 0, 0, 1, 2, 3]


@pytest.mark.parametrize("initial", ["zero", "discard"])
def test_array_map_without_the_current_values(sealed, initial):
    with sealed.stage.map_attribute(sealed.query, "a", 2, element_sizes=[2, 2, 2], initial=initial) as mapping:
        for group in mapping.groups():
            if initial == "zero":
                assert [group.array(i).tolist() for i in range(3)] == [[0, 0]] * 3
            for i in range(3):
                group.array(i)[:] = i
    sealed.seal(2)
    assert sealed.read("a", 2) == [[0, 0], [1, 1], [2, 2]]


@pytest.mark.parametrize("make_view", ["array", pytest.param("dlpack", marks=needs_writable_imports)])
def test_rows_of_a_map_are_detached_at_unmap(sealed, make_view):
    with sealed.stage.map_attribute(sealed.query, "a", 2, element_sizes=[2, 2, 2]) as mapping:
        group = mapping.fetch_next()
        views = [group.array(i) if make_view == "array" else np.from_dlpack(group.dlpack(i)) for i in range(3)]
        for i, view in enumerate(views):
            view[:] = i
    sealed.seal(2)
    for view in views:
        view[:] = -1
    assert sealed.read("a", 2) == [[0, 0], [1, 1], [2, 2]]


def test_array_map_that_is_given_up(sealed):
    mapping = sealed.stage.map_attribute(sealed.query, "a", 2, element_sizes=[1, 1, 1])
    mapping.fetch_next().array(0)[:] = 9
    mapping.abort()
    sealed.seal(2)
    assert sealed.read("a", 2) == VALUES


@pytest.mark.parametrize("sizes", [[1, 2], [1, 2, 3, 4], []])
def test_sizes_are_one_per_prim(sealed, sizes):
    mapping = sealed.stage.map_attribute(sealed.query, "a", 2, element_sizes=sizes)
    refused(mapping.op, "element_sizes", len(sizes), 3)


def test_sizes_belong_to_array_columns(sealed):
    refused(sealed.stage.map_attribute(sealed.query, "a", 2).op, '"a"')
    sealed.write("fixed", np.float32([1, 2, 3]), 2)
    refused(sealed.stage.map_attribute(sealed.query, "fixed", 3, element_sizes=[1, 1, 1]).op, '"fixed"')


def test_sizes_beyond_memory(sealed):
    mapping = sealed.stage.map_attribute(sealed.query, "a", 2, element_sizes=[1, 2**60, 1])
    assert mapping.op.status == ErrorCode.OUT_OF_MEMORY
    assert "element_sizes[1]" in mapping.op.error_message()
