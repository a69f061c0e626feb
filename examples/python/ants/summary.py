"""What happened, as a few lines and a table."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from loop import Outcome
from resume import Resumed
from rich.console import Console
from rich.table import Table
from scene import SHIPPED, Scene


def loaded(scene: Scene, console: Console, verbose: bool) -> None:
    """What came in, and what of it could not."""
    report = scene.report
    console.print(f"{SHIPPED}: {len(report.paths):,} prims, {report.values:,} values in {report.columns} columns")
    if verbose:
        for skipped in report.skipped:
            console.print(f"not represented: {skipped}", markup=False, soft_wrap=True)
    elif report.skipped:
        console.print(f"not represented: {len(report.skipped)} kinds of things, which --verbose names")


def shown(outcome: Outcome, console: Console) -> None:
    """The loop that the page shows."""
    judge, seen = outcome.judge, outcome.findings
    console.print(
        f"{outcome.ticks} ticks at {outcome.ticks / outcome.seconds:,.0f} a second; "
        f"a reader took {len(seen.film)} snapshots, holds them all, torn {seen.torn}, changed since {seen.changed}.\n"
        f"A writer 1 to 5 ticks late gave {judge.written} verdicts, {judge.out_of_order} of them out of order; "
        f"{len(seen.verdicts) - seen.misplaced} of {len(seen.verdicts)} lie at the tick of which they speak.",
        soft_wrap=True,
    )


def compared(stage: Outcome, lock: Outcome, console: Console) -> None:
    """The same loop, both ways."""
    console.print(
        "The same loop without that writer, and with a lock and copies in place of the stage:", soft_wrap=True
    )
    table = Table()
    table.add_column()
    rows: dict[str, list[str]] = {}
    for way in (stage, lock):
        table.add_column(way.name, justify="right")
        seen = way.findings
        put, other = way.copied
        again = "by the stage" if way is stage else "out"
        for title, text in {
            "ticks per second": f"{way.ticks / way.seconds:,.0f}",
            "hand over a tick, median": microseconds(way.publishing),
            "take a snapshot, median": microseconds(seen.nanoseconds),
            "bytes copied per tick": f"{put / way.ticks:,.0f} in, {other / way.ticks:,.0f} {again}",
            "ticks that the reader took": f"{len(seen.film)}",
            "held to the end, changed": f"{seen.changed}",
            "torn": f"[bold {'red' if seen.torn else 'green'}]{seen.torn}[/]",
        }.items():
            rows.setdefault(title, []).append(text)
    for title, texts in rows.items():
        table.add_row(title, *texts)
    console.print(table)
    if stage.sums == lock.sums:
        console.print("The physics had the same bits at every tick.")


def resumed(done: Resumed, console: Console) -> None:
    """The run that was killed."""
    same = "bit for bit as in the run that was not killed" if not done.different else f"{done.different} of them differ"
    console.print(
        f"A run was killed at tick {done.killed}; its recording goes up to tick {done.recorded}. "
        f"{done.ticks} ticks from there: {same}.",
        soft_wrap=True,
    )


def page(written: bool, file: Path, console: Console) -> None:
    """Where to look."""
    if written:
        console.print(f"Look at them in a browser: [bold]{file}[/]", soft_wrap=True)
    else:
        console.print("There is no page: it takes npm, which is neither on this machine nor on its package index.")


def microseconds(times: list[int]) -> str:
    return f"{median(times) / 1e3:,.0f} µs" if times else "-"
