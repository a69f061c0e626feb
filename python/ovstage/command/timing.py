"""Timing: medians of calls that are too short to time alone, and of pairs that are measured in turn."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter

__all__ = ["Call", "per_call", "shown", "side_by_side", "timed", "undisturbed"]

Call = Callable[[], object]


def timed(call: Call) -> float:
    """Seconds of one call."""
    start = perf_counter()
    call()
    return perf_counter() - start


def per_call(call: Call, repeats: int, spend: float = 0.01) -> float:
    """Median seconds of a short call, over loops of about ``spend`` seconds each."""
    call()
    number = max(1, round(spend / max(timed(call), 1e-7)))
    with undisturbed():
        return median(_loop(call, number) for _ in range(repeats))


def side_by_side(ours: Call, theirs: Call, repeats: int, spend: float = 0.01) -> tuple[float, float, float]:
    """Median seconds of two calls measured in turn, and the median of the ratios of neighbours."""
    pairs = []
    numbers = []
    for call in (ours, theirs):
        call()
        numbers.append(max(1, round(spend / max(timed(call), 1e-7))))
    with undisturbed():
        for _ in range(repeats):
            pairs.append((_loop(ours, numbers[0]), _loop(theirs, numbers[1])))
    return median(a for a, _ in pairs), median(b for _, b in pairs), median(a / b for a, b in pairs)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Without Python's cycle collector, which would fall on an arbitrary call."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def shown(seconds: float) -> str:
    """A time for people: three digits and a fitting unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _loop(call: Call, number: int) -> float:
    start = perf_counter()
    for _ in range(number):
        call()
    return (perf_counter() - start) / number
