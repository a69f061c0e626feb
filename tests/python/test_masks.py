"""Masks of truth values, one per prim, wherever a mask goes; and truth values where numbers are meant."""

from __future__ import annotations

import array
import ctypes
import sys
from collections import UserDict
from typing import Any

import numpy as np
import pytest

import ovstage
from ovstage import OrdinalRange, PrimMode, Scope, WriteDesc

BOTH_LEVELS = True

DONES = [False, True, False, False, True, False]


@pytest.fixture
def six(make_table):
    """Six prims with a zero each, sealed."""
    table = make_table(6)
    table.write("v", np.zeros(6, "f4"), 1)
    table.seal(1)
    return table


VALUES = np.float32([1, 2, 3, 4, 5, 6])
CHOSEN = [0, 2, 0, 0, 5, 0]


def write(table, ordinal=2, **options):
    return table.stage.write_attribute(table.query, "v", ordinal, VALUES, **{"is_array": False} | options)


class Array:
    """What NumPy can be asked to make an array of."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.values, dtype)


class Exporter:
    """An array that exports itself by DLPack and does nothing else."""

    def __init__(self, values: Any, device: int = 1) -> None:
        self.values, self.device = np.array(values), device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, **options: Any) -> Any:
        assert self.device == 1, "memory of a device must not even be asked for"
        return self.values.__dlpack__(**options)


class Bytes(Exporter):
    """An older exporter, which has no word for truth values but its dtype."""

    dtype = "bool"

    def __init__(self, values: Any) -> None:
        super().__init__(np.uint8(values))


def warp_array(values: Any, dtype: str) -> Any:
    import warp as wp

    wp.config.quiet = True
    return wp.array(np.array(values), dtype=getattr(wp, dtype), device="cpu")


MASKS = {
    "list": lambda: DONES,
    "tuple": lambda: tuple(DONES),
    "generator": lambda: (done for done in DONES),
    "list of np.bool_": lambda: [np.bool_(done) for done in DONES],
    "list of 0-d arrays": lambda: [np.array(done) for done in DONES],
    "array": lambda: np.array(DONES),
    "strided": lambda: np.repeat(DONES, 3)[::3],
    "reversed": lambda: np.array(DONES[::-1])[::-1],
    "read-only": lambda: np.broadcast_to(DONES, (2, 6))[1],
    "other bytes than 1": lambda: (np.uint8(DONES) * 64).view(np.bool_),
    "memoryview": lambda: memoryview(bytes(DONES)).cast("?"),
    "ctypes": lambda: (ctypes.c_bool * 6)(*DONES),
    "array protocol": lambda: Array(DONES),
    "objects of an array protocol": lambda: Array(np.array(DONES, object)),
    "DLPack": lambda: Exporter(DONES),
    "DLPack of bytes": lambda: Bytes(DONES),
    "masked array that hides nothing": lambda: np.ma.masked_array(DONES),
    "Warp": lambda: warp_array(DONES, "bool"),
    "words": lambda: {"mask": [0b010010], "count": 6},
}


@pytest.mark.parametrize("kind", MASKS)
def test_a_truth_value_per_prim(six, kind):
    made = MASKS[kind]()
    options = made if isinstance(made, dict) else {"mask": made}
    write(six, **options).wait()
    six.seal(2)
    assert six.read("v", 2) == CHOSEN


@pytest.mark.parametrize("kind", MASKS)
def test_count_may_be_told(six, kind):
    made = MASKS[kind]()
    options = made if isinstance(made, dict) else {"mask": made}
    write(six, **options | {"count": 6}).wait()
    six.seal(2)
    assert six.read("v", 2) == CHOSEN


@pytest.mark.parametrize("prims", [1, 7, 8, 9, 63, 64, 65, 1000])
@pytest.mark.parametrize("step", [1, 2])
def test_masks_of_every_length(make_table, prims, step):
    table, mask = make_table(prims), np.random.default_rng(prims).random(prims) < 0.5
    table.write("v", np.zeros(prims, "i4"), 1)
    table.write("v", np.arange(prims, dtype="i4"), 2, mask=np.repeat(mask, step)[::step])
    table.seal(2)
    assert table.read("v", 2) == np.where(mask, np.arange(prims), 0).tolist()


# --- every way to write ---


def test_batches(six):
    writes = [
        WriteDesc("v", VALUES, False, mask=DONES),
        WriteDesc("w", -VALUES, False, mask=np.array(DONES)),
        WriteDesc("x", VALUES[:2], False, mask=DONES[:2], count=2),
    ]
    six.stage.write_attributes(six.query, writes, 2).wait()
    six.seal(2)
    assert six.read("v", 2) == CHOSEN
    assert six.read("w", 2) == [None, -2, None, None, -5, None]
    assert six.read("x", 2) == [None, 2, None, None, None, None]


def test_arrays_per_prim(six):
    rows = [np.arange(n, dtype="i4") for n in range(6)]
    six.stage.write_attribute(six.query, "runs", 2, rows, is_array=True, mask=DONES).wait()
    six.seal(2)
    assert six.read("runs", 2) == [None, [0], None, None, [0, 1, 2, 3], None]


@pytest.mark.parametrize("mode", [PrimMode.INSERT, PrimMode.UPSERT])
def test_only_chosen_prims_are_created(make_table, mode):
    old, table = make_table(["/A", "/C"]), make_table(["/A", "/B", "/C", "/D"])
    old.write("v", np.float32([1, 3]), 1)
    table.write("v", np.float32([0, 20, 0, 40]), 2, prim_mode=mode, mask=[False, True, False, True])
    table.seal(2)
    assert table.read("v", 2) == [1, 20, 3, 40]


def test_insert_is_all_or_nothing_over_the_chosen(six, make_table):
    table = make_table(8)
    op = table.stage.write_attribute(
        table.query, "v", 2, np.zeros(8, "f4"), is_array=False, prim_mode=PrimMode.INSERT, mask=[False] * 5 + [True] * 3
    )
    assert "/World/Prim5 already exists" in op.error_message()


def test_update_writes_the_chosen_that_exist(six, make_table):
    table = make_table(8)
    table.write("v", np.arange(8, dtype="f4"), 2, prim_mode=PrimMode.UPDATE, mask=[False, True] * 4)
    table.seal(2)
    assert table.read("v", 2) == [0, 1, 0, 3, 0, 5, None, None]


def test_memory_that_is_given_away(six):
    write(six, mask=DONES, transfer=True).wait()
    six.seal(2)
    assert six.read("v", 2) == CHOSEN


def test_no_prim_may_be_chosen(six):
    write(six, mask=np.zeros(6, bool)).wait()
    six.seal(2)
    assert six.read("v", 2) == [0] * 6


# --- what a mask must be ---


@pytest.mark.parametrize(
    ("mask", "options", "text"),
    [
        (DONES[:5], {}, "the query lists 6 prims, mask has 5"),
        ([*DONES, True], {}, "the query lists 6 prims, mask has 7"),
        (DONES, {"count": 5}, "count is 5, mask has 6"),
        (np.array(DONES), {"count": 7}, "count is 7, mask has 6"),
        ([], {}, "count must be non-zero when mask is supplied"),
        (np.array(DONES), {"count": 0}, "count must be non-zero when mask is supplied"),
        ([int(done) for done in DONES], {}, "dtype bool"),
        ([int(done) for done in DONES], {"count": 6}, "dtype bool"),
        (np.uint8(DONES), {"count": 6}, "dtype bool"),
        (np.int64(DONES), {"count": 6}, "dtype bool"),
        ([0b010010, 0], {"count": 6}, "dtype bool"),
        (DONES, {"index_map": [0]}, "mutually exclusive"),
    ],
)
def test_masks_that_do_not_fit(six, mask, options, text):
    with pytest.raises(ValueError, match=text):
        write(six, mask=mask, **options)
    six.seal(2)
    assert six.read("v", 2) == [0] * 6


@pytest.mark.parametrize(
    "mask",
    [
        np.float32(DONES),
        np.array(DONES).reshape(6, 1),
        np.array(DONES).reshape(1, 6),
        [[done] for done in DONES],
        [np.array([done]) for done in DONES],
        [True, 0, 1, 0, 1, 0],
        [1, True],
        [True, None, True, True, True, True],
        Array(np.array([True, None, True, True, True, True], object)),
        dict.fromkeys(range(6), True),
        {True, False},
        frozenset([1]),
        "101010",
        b"\1\0\1\0\1\0",
        True,
        np.True_,
        5,
    ],
    ids=str,
)
def test_things_that_are_no_mask(six, mask):
    for call in (
        lambda: write(six, mask=mask, count=6),
        lambda: six.stage.write_attributes(six.query, [WriteDesc("v", VALUES, False, mask=mask)], 2),
    ):
        with pytest.raises(TypeError, match="mask"):
            call()


def test_batches_name_the_entry(six):
    with pytest.raises(ValueError, match=r'writes\[1\] \("w"\): mask must have one truth value per prim'):
        writes = [WriteDesc("v", VALUES, False), WriteDesc("w", VALUES, False, mask=[True])]
        six.stage.write_attributes(six.query, writes, 2)
    six.seal(2)
    assert six.read("v", 2) == [0] * 6


# --- truth values, sets and mappings where numbers are meant ---


def t_read(t, attrs):
    return t.stage.read_attributes(t.query, attrs, OrdinalRange.latest(1)).release().wait()


def mapped(t, sizes):
    t.stage.map_attribute(t.query, "runs", 9, dtype=ovstage.DLDataType(2, 32, 1), element_sizes=sizes).abort()


LISTS = {
    "index_map": lambda t, v: write(t, index_map=v),
    "element_sizes": mapped,
    "attrs": t_read,
    "attrs of read": lambda t, v: t.stage.read(t.query, v),
    "attrs of query": lambda t, v: t.stage.query(None, v).release().wait(),
    "attributes": lambda t, v: t.stage.advance_write_floor(1, Scope.INCLUDE, v),
    "attributes of delete": lambda t, v: t.stage.delete_attributes(t.query, v, 2),
    "primpaths": lambda t, v: t.names.create_path_list(v),
}


@pytest.mark.parametrize("case", LISTS)
@pytest.mark.parametrize(
    "values",
    [
        [True] * 6,
        (1, True),
        np.ones(6, bool),
        [np.True_] * 6,
        lambda: iter(DONES),
        {1, 2},
        frozenset([1]),
        {1: 2},
        UserDict({1: 2}),
        Exporter([True] * 6),
        Array([True] * 6),
    ],
    ids=lambda values: type(values).__name__,
)
def test_truth_values_are_no_numbers(six, case, values):
    with pytest.raises(TypeError, match=rf"\b{case.split()[0]}\b"):
        LISTS[case](six, values() if callable(values) else values)
    six.seal(2)
    assert six.read("v", 2) == [0] * 6


@pytest.mark.parametrize(
    "make", [lambda v: np.array(v), Exporter, Array, lambda v: array.array("l", v), lambda v: warp_array(v, "int64")]
)
def test_every_array_of_numbers_is_a_list_of_numbers(six, make):
    write(six, index_map=make([5, 4, 3, 2, 1, 0])).wait()
    write(six, ordinal=3, mask=make([0b010010]), count=6).wait()
    t_read(six, make([six.token("v")]))
    six.seal(3)
    assert six.read("v", 3) == [6, 2, 4, 3, 5, 1]


@pytest.mark.parametrize("name", ["index_map", "mask"])
@pytest.mark.parametrize("values", [DONES, [0]], ids=["truth values", "numbers"])
def test_memory_of_a_device_is_not_looked_at(six, name, values):
    with pytest.raises(ValueError, match=rf"{name} is on a device \(DLPack type 2\)"):
        write(six, **{name: Exporter(values, device=2)}, count=6 if name == "mask" else None)


def test_what_an_exporter_raises_is_kept(six):
    class Broken(Exporter):
        def __dlpack__(self, **options):
            raise RuntimeError("out of order")

    with pytest.raises(TypeError, match="index_map cannot be read through __dlpack__: out of order") as caught:
        write(six, index_map=Broken([0]))
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_exports_are_given_back(six):
    source = Exporter(DONES)
    before = sys.getrefcount(source.values)
    write(six, mask=source).wait()
    with pytest.raises(TypeError, match="index_map"):
        write(six, index_map=source)
    after = sys.getrefcount(source.values)  # not within the assert, which keeps a reference
    assert after == before
