"""Timing: medians of calls that are too short to time alone, and of pairs that are measured in turn."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from time import perf_counter

Call = Callable[[], object]


@dataclass(frozen=True)
class Effort:
    """How much to spend on a measurement."""

    quick: bool

    @property
    def repeats(self) -> int:
        return 5 if self.quick else 15

    @property
    def big(self) -> int:
        """Rows of the largest column: enough that one hidden step per row shows."""
        return 10**6 if self.quick else 10**7


@dataclass(frozen=True)
class Row:
    """One number and the limit that it is to keep, if there is one."""

    what: str
    measured: float
    limit: float | None
    unit: str = "x"
    detail: str = ""
    at_least: bool = False

    @property
    def ok(self) -> bool:
        if self.limit is None:
            return True
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit

    @property
    def text(self) -> str:
        return f"{self.measured:,.2f} {self.unit}"

    @property
    def limit_text(self) -> str:
        if self.limit is None:
            return ""
        return f"{'>=' if self.at_least else '<='} {self.limit:,g} {self.unit}"


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
