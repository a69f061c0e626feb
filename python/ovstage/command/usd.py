"""``python -m ovstage usd FILE``: load a scene into a stage and say what came of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ovstage.errors import OvstageError

if TYPE_CHECKING:
    from ovstage.population import Progress, Report

__all__ = ["run"]


def run(path: str, domains: str, time_code: float) -> int:
    """Load the file; 0, or 1 with the reason on stderr when it cannot be loaded."""
    from ovstage import PopulationDomain, Stage, population

    with Stage("usd") as stage:
        try:
            with _bar() as progress:
                report = population.open_usd(
                    stage, path, 1, time_code, PopulationDomain[domains.upper()], progress=progress
                )
        except (OvstageError, ValueError) as error:
            print(error.message if isinstance(error, OvstageError) else error, file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("interrupted: nothing was loaded", file=sys.stderr)
            return 130
    for line in _lines(report):
        print(line)
    return 0


@contextmanager
def _bar() -> Iterator[Progress | None]:
    """A progress bar on stderr, where rich is installed and somebody looks."""
    if find_spec("rich") is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("")

        def progress(done: int, total: int, label: str) -> None:
            bar.update(task, description=label, completed=done, total=total)

        yield progress


def _lines(report: Report) -> Iterator[str]:
    yield report.path
    seconds = ", ".join(f"{phase} {spent:.3f}" for phase, spent in report.seconds.items())
    for name, value in (
        ("prims", f"{len(report.paths):,}"),
        ("columns", f"{report.columns:,}"),
        ("values", f"{report.values:,}"),
        ("bytes", f"{report.bytes:,}"),
        ("seconds", f"{sum(report.seconds.values()):.3f} ({seconds})"),
        ("skipped", f"{len(report.skipped):,}"),
    ):
        yield f"  {name:8} {value}"
    for entry in report.skipped:
        yield f"    {entry}"
    for warning in report.warnings:
        yield f"  warning  {warning}"
