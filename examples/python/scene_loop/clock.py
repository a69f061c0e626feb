"""How long each kind of call takes."""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from time import perf_counter_ns


class Clock:
    """Splits the work of one thread into laps, each charged to a kind of call."""

    def __init__(self) -> None:
        self._laps: defaultdict[str, list[int]] = defaultdict(list)
        self._since = perf_counter_ns()

    def start(self) -> None:
        """Forget the time since the last lap."""
        self._since = perf_counter_ns()

    def lap(self, kind: str) -> None:
        """Charge the time since the last lap to ``kind``."""
        now = perf_counter_ns()
        self._laps[kind].append(now - self._since)
        self._since = now

    def medians(self) -> dict[str, float]:
        """Median microseconds by kind."""
        return {kind: median(laps) / 1e3 for kind, laps in self._laps.items()}
