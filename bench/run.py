"""Measure the stage against the plainest way to move the same bytes, and print each number beside its limit.

    python bench/run.py [--quick] [--json FILE] [--only WORD]

Every ratio compares two things measured in turn within this run, so that a busy machine slows both. Times are medians.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import sys
from dataclasses import asdict
from pathlib import Path

import calls
import columns
import feed
import filters
import footprint
import history
import maps
import names
import partial
import population
import recordings
import scenes
import tables
from measure import Effort, Row
from rich.console import Console
from rich.table import Table

import ovstage

SUBJECTS = {
    "export": calls.export,
    "ingest": calls.ingest,
    "write": calls.small_write,
    "tick": calls.tick,
    "levels": calls.levels,
    "dense": columns.dense_write,
    "map": maps.whole,
    "map copies": maps.copies,
    "maps given up": maps.given_up,
    "read": columns.read_whole,
    "whole": tables.whole,
    "tables": tables.tables,
    "paths": tables.paths,
    "usd": columns.against_usd,
    "population": population.populating,
    "subset": partial.every_second_row,
    "changes": partial.changes,
    "feed": feed.range_reads,
    "feed items": feed.changes,
    "feed behind": feed.behind,
    "feed deletes": feed.deletes,
    "history": history.history,
    "recording": recordings.running,
    "checkpoint": recordings.checkpoint,
    "sparse": partial.random_rows,
    "shares": partial.subsets,
    "names": names.interning,
    "filters": filters.answers,
    "upkeep": filters.upkeep,
    "hierarchy": scenes.world_transforms,
    "clones": scenes.clones,
    "memory": footprint.steady_rewriting,
    "soak": calls.soak,
}


def main() -> None:
    options = parse()
    effort = Effort(options.quick)
    console = Console(width=None if sys.stdout.isatty() else 130)  # a file or a pipe has no width to fit into
    table = Table(title=f"ovstage {ovstage.__version__}, Python {platform.python_version()}", title_justify="left")
    for heading in ("what", "measured", "limit", "detail"):
        table.add_column(heading, justify="right" if heading in ("measured", "limit") else "left")
    rows: list[Row] = []
    for name, subject in SUBJECTS.items():
        if options.only and options.only not in name:
            continue
        with console.status(f"Measuring {name}"):
            for row in subject(effort):
                rows.append(row)
                colour = ("green" if row.ok else "red") if row.limit is not None else "default"
                table.add_row(row.what, f"[{colour}]{row.text}[/]", row.limit_text, row.detail)
        table.add_section()
        gc.collect()  # the columns of this subject, before the next one makes its own
    console.print(table)
    limited = [row for row in rows if row.limit is not None]
    console.print(f"{sum(row.ok for row in limited)} of {len(limited)} within their limit")
    if options.json:
        options.json.write_text(json.dumps([{**asdict(row), "ok": row.ok} for row in rows], indent=2) + "\n")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="smaller columns and fewer repeats: under a minute")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the rows as JSON, too")
    parser.add_argument("--only", metavar="WORD", help=f"measure only what matches: {', '.join(SUBJECTS)}")
    options = parser.parse_args()
    if options.only and not any(options.only in name for name in SUBJECTS):
        parser.error(f"--only {options.only} matches nothing: give a part of {', '.join(SUBJECTS)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
