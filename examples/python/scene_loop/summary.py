"""The result of a run as tables."""

from __future__ import annotations

from pathlib import Path

from loop import Outcome
from rich.console import Console
from rich.table import Table
from scene import Scene


def show(scene: Scene, outcome: Outcome, console: Console, verbose: bool) -> None:
    """Print what was loaded, what the loop did, and what a call costs."""
    console.print(facts(scene, outcome, verbose))
    console.print(costs(outcome))


def facts(scene: Scene, outcome: Outcome, verbose: bool) -> Table:
    report, findings = scene.report, outcome.findings
    table = Table(title="Scene loop", title_justify="left", show_header=False)
    table.add_column(style="cyan")
    table.add_column(justify="right")
    table.add_column(style="dim")

    table.add_row("prims", f"{len(report.paths):,}", f"of {Path(report.path).name}")
    table.add_row("columns", f"{report.columns:,}", f"{report.values:,} values")
    table.add_row("bytes", f"{report.bytes:,}", "as loaded")
    for skipped in report.skipped if verbose else ():
        table.add_row("not represented", f"{skipped.count:,}", str(skipped))
    if report.skipped and not verbose:
        table.add_row("not represented", f"{len(report.skipped):,}", "--verbose names them")
    for warning in report.warnings:
        table.add_row("USD warns", "", warning)
    table.add_section()

    table.add_row("moving bodies", f"{len(scene.bodies):,}", f"{128 * len(scene.bodies):,} bytes of poses per tick")
    table.add_row("ticks", f"{outcome.ticks:,}", f"in {outcome.seconds:.2f} s")
    table.add_row("ticks per second", f"{outcome.ticks / outcome.seconds:,.0f}", "with the reader running")
    copied = outcome.after["bytes_copied"] - outcome.before["bytes_copied"]
    table.add_row("bytes copied per tick", f"{copied / outcome.ticks:,.0f}", "at the seal: bodies are part of a column")
    table.add_section()

    readers = ", ".join(f"{name} {count:,}" for name, count in findings.readers.items())
    table.add_row("snapshots checked", f"{findings.snapshots:,}", readers)
    table.add_row("held and checked again", f"{findings.held:,}", f"changed meanwhile: {findings.changed}")
    table.add_row("torn", f"[bold {'red' if findings.torn else 'green'}]{findings.torn}[/]", "")
    return table


def costs(outcome: Outcome) -> Table:
    table = Table(title="Microseconds per call, medians", title_justify="left")
    table.add_column("thread", style="cyan")
    table.add_column("call")
    table.add_column("both running", justify="right")
    table.add_column("one at a time", justify="right")
    for thread, calls in outcome.together.items():
        for call, microseconds in calls.items():
            table.add_row(thread, call, f"{microseconds:,.1f}", f"{outcome.alone[thread][call]:,.1f}")
        table.add_section()
    return table
