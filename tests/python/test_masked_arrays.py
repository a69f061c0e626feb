"""Masked arrays of numpy.ma: what they hide is no value, so they are refused by name where they hide something."""

from __future__ import annotations

import numpy as np
import pytest

import ovstage
from ovstage import DLTensor, Filter, FilterOp, Predicate, WriteDesc, make_dltensor


class Recorded(np.ma.MaskedArray):
    """A masked array by inheritance."""


class Wrapped:
    """What gives a masked array to whoever asks for one."""

    def __array__(self, dtype=None, copy=None):
        return HIDING


HIDING = np.ma.masked_array(np.float32([1, 1e20]), mask=[False, True])
WHOLE = np.ma.masked_array(np.float32([1, 2]))

PAYLOADS = {
    "array": HIDING,
    "rows": np.ma.masked_array(np.zeros((2, 3), "f4"), mask=[[0, 0, 0], [0, 1, 0]]),
    "subclass": HIDING.view(Recorded),
    "slice": HIDING[::-1],
    "bools": np.ma.masked_array([True, False], mask=[True, False]),
    "through the array protocol": Wrapped(),
    "list": [HIDING],
    "tuple of one row each": (HIDING[:1], HIDING[1:]),
    "nested list": [[HIDING[0], HIDING[1]]],
    "deeply nested": [[[1.0], [np.ma.masked]]],
}


@pytest.mark.parametrize("kind", PAYLOADS)
@pytest.mark.parametrize("options", [{}, {"transfer": True}, {"mask": [True, False]}, {"index_map": [0, 0]}], ids=str)
def test_payloads(table, kind, options):
    tensors = PAYLOADS[kind]
    for call in (
        lambda: table.stage.write_attribute(
            table.query, "v", 1, tensors, is_array=isinstance(tensors, list), **options
        ),
        lambda: table.stage.write_attributes(
            table.query, [WriteDesc("w", np.zeros(2), False), WriteDesc("v", tensors, True, **options)], 1
        ),
    ):
        with pytest.raises(ValueError, match=r"tensors(\[\d\])? is a masked array \(numpy.ma\) that hides elements"):
            call()
    table.seal(1)
    assert table.groups("v", 1) == table.groups("w", 1) == []


def test_what_hides_nothing_is_written(table):
    table.write("v", WHOLE, 1)
    table.write("w", np.ma.masked_invalid(np.float32([3, 4])), 1)
    table.write("runs", [WHOLE, WHOLE[:1]], 1, is_array=True)
    table.seal(1)
    assert table.read("v", 1) == [1, 2]
    assert table.read("w", 1) == [3, 4]
    assert table.read("runs", 1) == [[1, 2], [1]]


ROWS = np.ma.masked_array([0, 1], mask=[0, 1])
LISTS = {
    "index_map": lambda t, v: t.stage.write_attribute(t.query, "v", 1, np.zeros(2, "f4"), is_array=False, index_map=v),
    "mask": lambda t, v: t.stage.write_attribute(t.query, "v", 1, np.zeros(2, "f4"), is_array=False, mask=v == 1),
    "mask words": lambda t, v: t.stage.write_attribute(
        t.query, "v", 1, np.zeros(2, "f4"), is_array=False, mask=v, count=2
    ),
    "element_sizes": lambda t, v: t.stage.map_attribute(
        t.query, "v", 1, dtype=ovstage.DLDataType(2, 32, 1), element_sizes=v
    ),
    "attrs": lambda t, v: t.stage.read_attributes(t.query, v, ovstage.OrdinalRange.latest(1)),
    "primpaths": lambda t, v: t.names.create_path_list(v),
}


@pytest.mark.parametrize("case", LISTS)
@pytest.mark.parametrize("values", [ROWS, ROWS.view(Recorded), ROWS.astype("u8")], ids=["plain", "subclass", "u8"])
def test_lists_of_numbers(table, case, values):
    with pytest.raises(ValueError, match=f"{case.split()[0]} is a masked array"):
        LISTS[case](table, values)


@pytest.mark.parametrize("values", [ROWS, [np.ma.masked]], ids=["array", "constant"])
def test_values_of_conditions(table, values):
    with pytest.raises(ValueError, match="values is a masked array"):
        table.stage.query(Filter([Predicate("v", FilterOp.IN, values)]))


def test_single_numbers(table):
    hidden = np.ma.masked_array(5, mask=True)
    with pytest.raises(ValueError, match="ordinal is a masked array"):
        table.stage.write_attribute(table.query, "v", hidden, np.zeros(2, "f4"), is_array=False)


def test_descriptors():
    for made in (
        lambda: make_dltensor(HIDING),
        lambda: make_dltensor([[HIDING]]),
        lambda: DLTensor.from_dlpack(HIDING),
    ):
        with pytest.raises(ValueError, match="is a masked array"):
            made()
    assert make_dltensor(WHOLE).shape_tuple == (2,)
