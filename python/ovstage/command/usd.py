"""``python -m ovstage usd FILE``: load a scene into a stage and say what came of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ovstage.command.opened import bar
from ovstage.errors import OvstageError

if TYPE_CHECKING:
    from ovstage.population import Report

__all__ = ["run"]


def run(path: str, domains: str, time_code: float) -> int:
    """Load the file; 0, or 1 with the reason on stderr when it cannot be loaded."""
    from ovstage import PopulationDomain, Stage, population

    with Stage("usd") as stage:
        try:
            with bar() as progress:
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
