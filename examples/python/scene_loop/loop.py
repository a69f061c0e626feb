"""The loop: a producer and a consumer over one stage, at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter

from clock import Clock
from consumer import Consumer, Findings
from ledger import Ledger
from motion import Dance
from producer import Producer
from rich.console import Console
from scene import LOADED, Scene

from ovstage import PathDictionary

ALONE = 100  # ticks after the loop proper, to see what a call costs when no other thread wants the interpreter


@dataclass(frozen=True)
class Outcome:
    """What the loop did, and how fast."""

    ticks: int
    seconds: float
    findings: Findings
    before: dict[str, int]
    after: dict[str, int]
    """Counters of the stage before and after the loop."""
    together: dict[str, dict[str, float]]
    """Median microseconds by thread and kind of call, while both threads run."""
    alone: dict[str, dict[str, float]]
    """The same calls, one thread after the other."""


def run(scene: Scene, ticks: int, console: Console) -> Outcome:
    """Run ``ticks`` ticks. An exception in either thread ends both and is raised here."""
    with console.status("Compiling the kernel (a few seconds, the first time only)"):
        dance = Dance(scene.bodies, scene.up_axis, ticks)
    stage, ledger = scene.stage, Ledger()
    with (
        PathDictionary(stage) as dictionary,
        dictionary.create_path_list_from_strings(scene.bodies.paths) as prims,
        stage.query_from_path_list(prims) as query,
        ThreadPoolExecutor(1, "consumer") as threads,
    ):
        producer = Producer(stage, query, dance, ledger, len(scene.bodies), LOADED)
        consumer = Consumer(stage, query, dictionary, ledger, scene.bodies, LOADED, ticks)
        before = stage.counters()
        started = perf_counter()
        reading = threads.submit(consumer.run)
        try:
            for tick in range(1, ticks + 1):
                producer.tick(tick)
                if reading.done():
                    break  # it never returns before the ledger is closed, so it failed
        finally:
            ledger.close()
        seconds = perf_counter() - started
        findings = reading.result()
        after = stage.counters()
        together = medians(producer, consumer)

        producer.clock, consumer = Clock(), Consumer(stage, query, dictionary, ledger, scene.bodies, LOADED, ALONE)
        for tick in range(ticks + 1, ticks + 1 + ALONE):
            producer.tick(tick)
        for _ in range(ALONE):
            consumer.look(LOADED + ticks + ALONE)
        return Outcome(ticks, seconds, findings, before, after, together, medians(producer, consumer))


def medians(producer: Producer, consumer: Consumer) -> dict[str, dict[str, float]]:
    """What both have measured so far."""
    return {"producer": producer.clock.medians(), "consumer": consumer.clock.medians()}
