"""Values of a column in a row, against lists of arrays that say the same."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="numpy is not installed")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from ovstage.population.ragged import Values  # noqa: E402

NUMBERS = (0.0, -0.0, 1.0, float("nan"))
ROW = st.tuples(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS))
RAGGED = st.lists(st.lists(ROW, max_size=40), min_size=1, max_size=12)
FIXED = st.lists(st.lists(ROW, min_size=1, max_size=1), min_size=1, max_size=12)
KINDS = st.one_of(st.tuples(st.just(True), RAGGED), st.tuples(st.just(False), FIXED))


def made(ragged: bool, lists: list[list[Any]]) -> Values:
    arrays = [np.array(each, np.float32).reshape(-1, 2) for each in lists]
    return Values.of_arrays(arrays) if ragged else Values(np.concatenate(arrays))


def told(values: Values) -> list[bytes]:
    arrays = values.numbers[:, None] if values.offsets is None else values.arrays()
    return [array.tobytes() for array in arrays]


@given(KINDS, st.data())
def test_values_are_taken_joined_and_replaced_as_lists_are(
    kind: tuple[bool, list[list[Any]]], data: st.DataObject
) -> None:
    ragged, lists = kind
    values, expected = made(ragged, lists), told(made(ragged, lists))
    indices = st.integers(0, len(lists) - 1)
    at = np.array(data.draw(st.lists(indices)), np.int64)
    assert told(values.take(at)) == [expected[each] for each in at]
    assert (
        told(Values.joined([values, values.take(at), values])) == expected + [expected[each] for each in at] + expected
    )
    assert told(values.take(np.array([0])).repeated(3)) == expected[:1] * 3
    some = np.array(sorted(data.draw(st.sets(indices))), np.int64)
    others = made(ragged, lists[::-1])
    if len(some):
        replaced = values.replaced(some, others.take(some))
        assert told(replaced) == [told(others)[at] if at in some else expected[at] for at in range(len(lists))]
        assert told(values) == expected
    differ = [one != other for one, other in zip(expected, told(others), strict=True)]
    assert values.differ(others).tolist() == differ
    flags = np.isnan(values.numbers)
    assert values.any(flags).tolist() == [bool(np.isnan(np.array(each)).any()) for each in lists]
