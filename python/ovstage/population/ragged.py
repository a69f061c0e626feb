"""Values of a column: numbers in a row, and for arrays where each begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Flags", "Indices", "Values", "offsets_of"]

Array = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]

_RUN = 16
"""Rows that are copied one by one in the time that it takes to copy a run of them as a slice."""


@dataclass(frozen=True)
class Values:
    """One value for each of some prims."""

    numbers: Array
    """Of shape ``(n, lanes)``."""
    offsets: Indices | None = None
    """Of arrays: the rows of ``numbers`` at which they begin, and the end of the last. Else a row is a value."""

    @classmethod
    def of_arrays(cls, arrays: Sequence[Array]) -> Values:
        """Arrays of shape ``(length, lanes)``."""
        return cls(np.concatenate(arrays), offsets_of([len(array) for array in arrays]))

    @classmethod
    def joined(cls, parts: Sequence[Values]) -> Values:
        """The values of all parts, one part after the other."""
        if len(parts) == 1:
            return parts[0]
        numbers = np.concatenate([part.numbers for part in parts])
        if parts[0].offsets is None:
            return cls(numbers)
        return cls(numbers, offsets_of(np.concatenate([part.lengths for part in parts])))

    def __len__(self) -> int:
        return len(self.numbers) if self.offsets is None else len(self.offsets) - 1

    @property
    def lengths(self) -> Indices:
        """How many rows of ``numbers`` each value has."""
        return np.ones(len(self.numbers), np.int64) if self.offsets is None else np.diff(self.offsets)

    @property
    def nbytes(self) -> int:
        """How large the values are."""
        return self.numbers.nbytes

    def arrays(self) -> list[Array]:
        """Each array by itself."""
        assert self.offsets is not None
        return [self.numbers[start:end] for start, end in pairwise(self.offsets.tolist())]

    def take(self, at: Indices) -> Values:
        """The values at these indices, in their order."""
        if len(at) == len(self) and (at == np.arange(len(at))).all():
            return self
        if self.offsets is None:
            return Values(self.numbers[at])
        offsets = offsets_of(self.lengths[at])
        runs = np.flatnonzero(np.diff(at) != 1) + 1  # where a value is taken that did not follow the one before it
        if len(at) and _RUN * len(runs) < offsets[-1]:
            firsts, lasts = at[np.append(0, runs)], at[np.append(runs, len(at)) - 1]
            bounds = zip(self.offsets[firsts].tolist(), self.offsets[lasts + 1].tolist(), strict=True)
            return Values(np.concatenate([self.numbers[start:end] for start, end in bounds]), offsets)
        return Values(
            self.numbers[np.arange(offsets[-1]) + np.repeat(self.offsets[at] - offsets[:-1], np.diff(offsets))], offsets
        )

    def repeated(self, count: int) -> Values:
        """A single value ``count`` times."""
        return self.take(np.zeros(count, np.int64))

    def replaced(self, at: Indices, values: Values) -> Values:
        """The same with other values at these indices, which ascend."""
        if self.offsets is None:
            numbers = self.numbers.copy()
            numbers[at] = values.numbers
            return Values(numbers)
        pieces, end = [], 0
        for index, array in zip(at.tolist(), values.arrays(), strict=True):
            pieces += [self.numbers[end : self.offsets[index]], array]
            end = self.offsets[index + 1]
        lengths = self.lengths
        lengths[at] = values.lengths
        return Values(np.concatenate([*pieces, self.numbers[end:]]), offsets_of(lengths))

    def any(self, flags: Flags) -> Flags:
        """For each value whether one of its numbers has a flag; ``flags`` has the shape of ``numbers``."""
        return self._with(np.flatnonzero(flags))

    def differ(self, others: Values) -> Flags:
        """For each value whether the one at the same index of ``others`` is another, bit for bit: a NaN is itself."""
        unlike: Flags = self.lengths != others.lengths
        if unlike.any():
            alike = np.flatnonzero(~unlike)
            unlike[alike] = self.take(alike).differ(others.take(alike))
            return unlike
        return self._with(np.flatnonzero(_bits(self.numbers) != _bits(others.numbers)))

    def _with(self, at: Indices) -> Flags:
        """For each value whether it has one of the numbers at these indices."""
        rows = at // self.numbers.shape[1]
        found = np.zeros(len(self), bool)
        found[rows if self.offsets is None else np.searchsorted(self.offsets, rows, "right") - 1] = True
        return found


def offsets_of(lengths: Sequence[int] | Indices) -> Indices:
    """Where values of these lengths begin, and where the last one ends."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _bits(numbers: Array) -> npt.NDArray[np.unsignedinteger[Any]]:
    return np.ascontiguousarray(numbers).ravel().view(f"u{numbers.itemsize}")
