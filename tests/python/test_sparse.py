"""Writes to some prims of a query: count, index_map and mask, and what they leave alone."""

from __future__ import annotations

import numpy as np
import pytest

from ovstage import ErrorCode, PrimMode, WriteDesc

BOTH_LEVELS = True

BIG = 1000


@pytest.fixture
def four(make_table):
    """Four prims with a number each."""
    table = make_table(4)
    table.write("v", np.int32([10, 20, 30, 40]), 1)
    return table


def refused(op, *texts):
    assert (op.status, op.op_id) == (ErrorCode.INVALID_ARGUMENT, 0)
    for text in texts:
        assert str(text) in op.error_message()


def write(table, tensors, ordinal=2, **options):
    return table.stage.write_attribute(table.query, "v", ordinal, tensors, **{"is_array": False} | options)


# --- index_map ---


def test_index_map_gathers(four):
    four.write("v", np.int32([111, 222, 333]), 2, index_map=[1, 2, 0])
    four.seal(2)
    assert four.read("v", 2) == [222, 333, 111, 40]


def test_one_row_for_all(four):
    four.write("v", np.int32([10]), 2, index_map=[0, 0], count=2)
    four.write("all", np.float32([[1, 2, 3]]), 2, index_map=np.zeros(4, "u4"))
    four.seal(2)
    assert four.read("v", 2) == [10, 10, 30, 40]
    assert four.read("all", 2) == [[1, 2, 3]] * 4


def test_payload_may_have_more_rows_than_are_used(four):
    four.write("v", np.arange(100, dtype="i4"), 2, index_map=[99, 0, 50, 50])
    four.seal(2)
    assert four.read("v", 2) == [99, 0, 50, 50]


def test_count_may_be_smaller_than_the_map(four):
    """Entries beyond it are not judged."""
    four.write("v", np.int32([7, 8]), 2, index_map=[1, 0, 2**32 - 1], count=2)
    four.seal(2)
    assert four.read("v", 2) == [8, 7, 30, 40]


@pytest.mark.parametrize("dtype", ["u4", "u8", "i4", "i8", "u1", "list", "tuple", "range", "reversed", "misaligned"])
def test_every_list_of_numbers_is_an_index_map(four, dtype):
    entries = [3, 2, 1, 0]
    maps = {
        "list": entries,
        "tuple": tuple(entries),
        "range": range(3, -1, -1),
        "reversed": np.arange(4, dtype="u4")[::-1],
        "misaligned": np.frombuffer(b"\0" + np.uint32(entries).tobytes(), "u4", offset=1),
    }
    four.write("v", np.int32([1, 2, 3, 4]), 2, index_map=maps[dtype] if dtype in maps else np.array(entries, dtype))
    four.seal(2)
    assert four.read("v", 2) == [4, 3, 2, 1]


@pytest.mark.parametrize(
    "source",
    [
        np.arange(12, dtype="f4").reshape(4, 3)[::-1],
        np.asfortranarray(np.arange(12, dtype="f4").reshape(4, 3)),
        np.arange(24, dtype="f4").reshape(4, 6)[:, ::2],
    ],
    ids=["reversed", "fortran", "strided"],
)
def test_rows_of_any_layout_are_gathered(four, source):
    four.write("p", source, 2, index_map=[3, 3, 0])
    four.seal(2)
    assert four.read("p", 2) == [source[3].tolist(), source[3].tolist(), source[0].tolist(), None]


@pytest.mark.parametrize(
    ("rows", "index_map", "entry"),
    [(1, [1], "index_map[0] is 1"), (3, [0, 2, 2**32 - 1], "index_map[2] is 4294967295")],
)
def test_index_past_the_payload(four, rows, index_map, entry):
    op = write(four, np.zeros(rows, "i4"), index_map=index_map)
    refused(op, entry, f"outside the transported row count {rows}")
    four.seal(2)
    assert four.read("v", 2) == [10, 20, 30, 40]


def test_index_map_for_more_prims_than_the_query_has(four):
    refused(write(four, np.int32([1]), index_map=[0] * 5), "count is 5", "4 prims")


# --- mask ---


def test_mask_selects_targets(four):
    four.write("v", np.int32([0, 0, 0, 44]), 2, mask=[0b1000], count=4)
    four.seal(2)
    assert four.read("v", 2) == [10, 20, 30, 44]


def test_mask_creates_only_what_it_selects(make_table):
    table = make_table(70)
    words = np.uint64([1 << 3, 1 << 5])
    table.write("v", np.arange(70, dtype="i4"), 1, mask=words, count=70)
    table.seal(1)
    assert [i for i, value in enumerate(table.read("v", 1)) if value is not None] == [3, 69]


def test_bits_beyond_the_count_are_ignored(four):
    four.write("v", np.int32([1, 2, 3]), 2, mask=[2**64 - 1], count=3)
    four.seal(2)
    assert four.read("v", 2) == [1, 2, 3, 40]


def test_mask_of_nobody(four):
    four.write("v", np.int32([1, 2, 3, 4]), 2, mask=[0], count=4)
    four.write("fresh", np.int32([1, 2, 3, 4]), 2, mask=[0], count=4)
    four.seal(2)
    assert four.read("v", 2) == [10, 20, 30, 40]
    assert four.groups("fresh", 2) == []
    assert four.changes("v", 2, 2) == {}


@pytest.mark.parametrize("count", [1, 63, 64, 65, 127, 128, 129, BIG])
def test_words_of_64_bits(make_table, count):
    table, rng = make_table(BIG), np.random.default_rng(count)
    flags = rng.integers(2, size=count).astype(bool)
    words = np.packbits(np.resize(flags, -(-count // 64) * 64), bitorder="little").view("u8")
    table.write("v", np.zeros(BIG, "i4"), 1)
    table.write("v", np.arange(1, count + 1, dtype="i4"), 2, mask=words, count=count)
    table.seal(2)
    expected = np.zeros(BIG, "i4")
    expected[:count][flags] = np.arange(1, count + 1)[flags]
    assert table.stage.read(table.query, ["v"])["v"].values.tolist() == expected.tolist()


@pytest.mark.parametrize("rows", [1, 3])
def test_payload_has_a_row_for_every_element_of_a_mask(four, rows):
    refused(write(four, np.zeros(rows, "i4"), mask=[1], count=4), f"{rows} rows", "4 prims")


# --- count ---


def test_count_addresses_the_first_prims(four):
    four.write("v", np.int32([7, 8]), 2, count=2)
    four.seal(2)
    assert four.read("v", 2) == [7, 8, 30, 40]


def test_count_beyond_the_query(four):
    for options in ({}, {"index_map": [0] * 5}, {"mask": [1]}):
        refused(write(four, np.zeros(5, "i4"), count=5, **options), "count is 5", "4 prims", "v")


# --- together ---


def test_forms_may_be_mixed_in_one_batch(four):
    writes = [
        WriteDesc("v", np.int32([1]), False, index_map=[0, 0]),
        WriteDesc("w", np.int32([1, 2, 3, 4]), False, mask=np.uint64([0b0101]), count=4),
        WriteDesc("x", np.int32([9]), False, count=1),
    ]
    four.stage.write_attributes(four.query, writes, 2).wait()
    four.seal(2)
    assert [four.read(name, 2) for name in "vwx"] == [[1, 1, 30, 40], [1, None, 3, None], [9, None, None, None]]


def test_insert_is_judged_by_what_is_selected(make_table):
    old, both = make_table(2), make_table(4)
    old.write("v", np.int32([1, 2]), 1)
    op = write(both, np.int32([1, 2, 3, 4]), mask=[0b1110], count=4, prim_mode=PrimMode.INSERT)
    assert op.status == ErrorCode.PRIM_NOT_FOUND
    both.write("v", np.int32([0, 0, 3, 4]), 2, mask=[0b1100], count=4, prim_mode=PrimMode.INSERT)
    both.seal(2)
    assert both.read("v", 2) == [1, 2, 3, 4]


def test_update_passes_over_absent_prims(make_table):
    old, both = make_table(["/World/Prim1", "/World/Prim3"]), make_table(5)
    old.write("v", np.int32([1, 3]), 1)
    both.write("v", np.int32([10, 11, 12, 13, 14]), 2, prim_mode=PrimMode.UPDATE)
    both.write("new", np.int32([5]), 2, index_map=[0] * 5, prim_mode=PrimMode.UPDATE)
    both.write("masked", np.arange(5, dtype="i4"), 2, mask=[0b00011], count=5, prim_mode=PrimMode.UPDATE)
    both.write("rows", [np.int32([i] * i) for i in range(5)], 2, is_array=True, prim_mode=PrimMode.UPDATE)
    both.seal(2)
    assert both.read("v", 2) == [None, 11, None, 13, None]
    assert both.read("new", 2) == [None, 5, None, 5, None]
    assert both.read("masked", 2) == [None, 1, None, None, None]
    assert both.read("rows", 2) == [None, [1], None, [3, 3, 3], None]


def test_update_of_nobody(make_table):
    table = make_table(2)
    table.write("v", np.int32([1, 2]), 1, prim_mode=PrimMode.UPDATE)
    table.seal(1)
    assert table.groups("v", 1) == []


def test_update_asks_the_newest_state_and_not_the_sealed_one(make_table):
    table = make_table(2)
    table.write("v", np.int32([1, 2]), 5)
    table.write("v", np.int32([3, 4]), 2, prim_mode=PrimMode.UPDATE)
    table.seal(2)
    assert table.read("v", 2) == [3, 4]
    table.seal(5)
    assert table.read("v", 5) == [1, 2]


def test_random_subsets_never_touch_the_others(make_table):
    """Bit for bit, with a reader that holds the snapshot before."""
    table, rng = make_table(BIG), np.random.default_rng(7)
    state = rng.integers(2**32, size=(BIG, 3), dtype="u4")
    table.write("v", state.view("f4"), 1)
    table.seal(1)
    for ordinal in range(2, 40):
        held = table.group("v", ordinal - 1)
        before = held.array(0).view("u4").copy()
        form, fresh = rng.choice(["index", "mask", "query"]), rng.integers(2**32, size=(BIG, 3), dtype="u4")
        count = int(rng.integers(1, BIG))
        if form == "index":
            source = rng.integers(BIG, size=count).astype("u4")
            table.write("v", fresh.view("f4"), ordinal, index_map=source)
            state[:count] = fresh[source]
        elif form == "mask":
            flags = rng.integers(2, size=BIG).astype(bool)
            words = np.packbits(np.resize(flags, 1024), bitorder="little").view("u8")
            table.write("v", fresh.view("f4"), ordinal, mask=words, count=BIG)
            state[flags] = fresh[flags]
        else:
            chosen = rng.permutation(BIG)[:count]
            some = make_table([f"/World/Prim{i}" for i in chosen])
            some.write("v", fresh[:count].view("f4"), ordinal)
            state[chosen] = fresh[:count]
        table.seal(ordinal)
        assert (held.array(0).view("u4") == before).all()
        held.release()
        assert (table.stage.read(table.query, ["v"])["v"].values.view("u4") == state).all()
