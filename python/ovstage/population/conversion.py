"""Numbers of one type as numbers of another: which of them survive, which are rounded, which are lost.

USD lets a layer author a value of another type than the schema declares, and hands it out as it is. A column has one
type, so it is converted where that changes nothing, or only precision.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ovstage.population.ragged import Array, Flags

__all__ = ["Converted", "converted"]


class Converted(NamedTuple):
    """Numbers of another type, and what has become of each."""

    numbers: Array
    lost: Flags
    """An integer or a bool that cannot say it, or a float that made infinity of it."""
    rounded: Flags
    """A float that is near it."""


def converted(numbers: Array, dtype: npt.DTypeLike) -> Converted:
    """``numbers`` as ``dtype``."""
    target = np.dtype(dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        if target.kind == "f":
            return _to_floats(numbers, target)
        if numbers.dtype.kind == "f":
            return _whole(numbers.astype(np.float64), target)
        result = numbers.astype(target)
        survived = (result.astype(numbers.dtype) == numbers) & ((result < 0) == (numbers < 0))
    return Converted(result, ~survived, np.zeros(numbers.shape, bool))


def _to_floats(numbers: Array, target: np.dtype[Any]) -> Converted:
    result = numbers.astype(target)
    if numbers.dtype.kind == "f":
        same = (result == numbers) | (np.isnan(result) & np.isnan(numbers))
        lost = np.isinf(result) & ~np.isinf(numbers)
    else:
        lost = np.isinf(result)
        back = _whole(result.astype(np.float64), numbers.dtype)
        same = ~back.lost & (back.numbers == numbers)
    return Converted(result, lost, ~same & ~lost)


def _whole(numbers: Array, target: np.dtype[Any]) -> Converted:
    """Doubles as integers or bools: those that are whole and within the range."""
    least, most = (0, 1) if target.kind == "b" else (np.iinfo(target).min, np.iinfo(target).max)
    fits = (numbers >= float(least)) & (numbers < float(most + 1)) & (np.floor(numbers) == numbers)
    result = np.where(fits, numbers, 0.0).astype(target)
    return Converted(result, ~fits, np.zeros(numbers.shape, bool))
