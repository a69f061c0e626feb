"""The reading side: take snapshots while the next tick is being made, keep every one, and trust nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter_ns

import numpy as np
from handover import POSES, VERDICT, Locked, Snapshot, Staged
from physics import BODIES, on_their_backs
from scene import LOADED


@dataclass
class Findings:
    """What the reader saw."""

    film: list[Snapshot] = field(default_factory=list)
    """Every snapshot that it took, and still holds."""
    torn: int = 0
    changed: int = 0
    """Snapshots that were not at the end what they were when they were taken."""
    verdicts: dict[int, np.ndarray] = field(default_factory=dict)
    """By tick."""
    misplaced: int = 0
    """Verdicts that do not fit the poses of their ordinal."""
    nanoseconds: list[int] = field(default_factory=list)
    """What taking each of them cost."""


class Reader:
    """Follows one handover from the first tick to the last."""

    def __init__(self, way: Staged | Locked, sums: dict[int, int], ticks: int, judged: bool = False) -> None:
        self.findings, self.closed = Findings(), False
        self._way, self._sums, self._ticks, self._judged = way, sums, ticks, judged

    def run(self) -> Findings:
        """A slow reader misses ticks and loses nothing by it."""
        seen = judged = 0
        while seen < self._ticks:
            if not self._way.wait(seen):
                if self.closed:
                    break
                continue
            begin = perf_counter_ns()
            taken = self._way.take()
            self.findings.nanoseconds.append(perf_counter_ns() - begin)
            seen = taken.tick
            self.findings.torn += checksum(taken.poses, taken.velocities) != self._sums[seen]
            self.findings.film.append(taken)
            if self._judged:
                judged = self._check_verdicts(judged)
        return self.findings

    def look_again(self) -> None:
        """At everything that it holds: hundreds of ticks were written since, and it must say what it said."""
        for taken in self.findings.film:
            self.findings.changed += checksum(taken.poses, taken.velocities) != self._sums[taken.tick]
        if self._judged:
            self._check_verdicts(max(self.findings.verdicts, default=0))

    def _check_verdicts(self, judged: int) -> int:
        """Of each tick that the judge has sealed since: does its verdict fit the poses of that ordinal?"""
        way = self._way
        with way.stage.get_attribute_write_floor(VERDICT) as floor:
            sealed = floor.fetch() - LOADED
        robots = [torso.rpartition("/")[0] for torso in way.bodies[::BODIES]]
        for tick in range(judged + 1, sealed + 1):
            verdict = way.stage.read(robots, [VERDICT], LOADED + tick)[VERDICT]
            poses = way.stage.read(way.bodies, [POSES], LOADED + tick)[POSES]
            if verdict.ordinal != LOADED + tick or poses.ordinal != LOADED + tick:
                continue  # so slow that the stage has dropped the states of that ordinal
            self.findings.verdicts[tick] = verdict.values
            self.findings.misplaced += bool(np.any(verdict.values != on_their_backs(poses.values)))
        return max(judged, sealed)


def checksum(poses: np.ndarray, velocities: np.ndarray) -> int:
    """The sum of all bits. States that mix two ticks have another one."""
    return sum(int(np.ascontiguousarray(part).view(np.uint32).sum(dtype=np.uint64)) for part in (poses, velocities))
