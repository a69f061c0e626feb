"""The loop: a solver, a judge and a reader at the same time, over one handover."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import dataclass
from time import perf_counter, perf_counter_ns

from handover import Locked, Snapshot, Staged
from judge import Judge
from physics import RATE, Ants
from reader import Findings, Reader, checksum

FROZEN = 3  # the second of the snapshot that is shown beside the moving world


@dataclass(frozen=True)
class Outcome:
    """What the loop did, and how fast."""

    name: str
    ticks: int
    seconds: float
    findings: Findings
    copied: tuple[int, int]
    publishing: list[int]
    """Nanoseconds of each tick."""
    sums: dict[int, int]
    """The checksum of each tick."""
    judge: Judge | None

    @property
    def frozen(self) -> Snapshot:
        """The snapshot of second 3, or the last one of a shorter film."""
        film = self.findings.film
        return next((taken for taken in film if taken.tick >= FROZEN * RATE), film[-1])


def run(ants: Ants, way: Staged | Locked, seconds: int, judged: bool = False) -> Outcome:
    """From the first tick to the last. An exception in any thread ends the loop and is raised here.

    ``judged`` has the late writer beside it, and the reader check what that says.
    """
    ants.start()
    ticks, sums, publishing = seconds * RATE, {}, []
    reader = Reader(way, sums, ticks, judged)
    judging = closing(Judge(way)) if judged else nullcontext()
    with ThreadPoolExecutor(1, "reader") as threads:
        reading = threads.submit(reader.run)
        began = perf_counter()
        try:
            with judging as judge:
                for tick in range(1, ticks + 1):
                    ants.step(tick)
                    sums[tick] = checksum(ants.poses, ants.velocities)
                    begin = perf_counter_ns()
                    way.publish(tick, ants.poses, ants.velocities)
                    publishing.append(perf_counter_ns() - begin)
                    if judge:
                        judge.see(tick)
                    if reading.done():
                        break  # it ends after the last tick, so it failed, or this was the last
                spent = perf_counter() - began
        finally:
            reader.closed = True
        findings = reading.result()
    reader.look_again()
    return Outcome(way.name, ticks, spent, findings, way.copied, publishing, sums, judge)


def faults(*outcomes: Outcome) -> list[str]:
    """What must not have happened, one sentence each; empty when all is well."""
    found = []
    for outcome in outcomes:
        seen = outcome.findings
        if not seen.film:
            found.append(f"{outcome.name}: the reader saw no snapshot at all")
        if seen.torn:
            found.append(f"{outcome.name}: {seen.torn} of {len(seen.film)} snapshots mix values of several ticks")
        if seen.changed:
            found.append(f"{outcome.name}: {seen.changed} of {len(seen.film)} snapshots changed while they were held")
        if seen.misplaced:
            found.append(f"{outcome.name}: {seen.misplaced} verdicts are not at the tick of which they speak")
    if any(outcome.sums != outcomes[0].sums for outcome in outcomes):
        found.append("the same physics took another course: the ways to hand it over must have disturbed it")
    return found
