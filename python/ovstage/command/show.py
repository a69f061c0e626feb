"""``python -m ovstage show FILE``, ``diff A B``, ``record-info PATH``: what scenes and recordings have, and how they
differ."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

from ovstage.command.opened import Unopened, opened

__all__ = ["diff", "record_info", "show"]


def show(path: str, prims: str, attributes: str, at: int | None, domains: str, *, as_json: bool) -> int:
    """Print the tree; 1 with the reason on stderr when the file cannot be opened."""
    try:
        with opened(path, domains, at=at) as stage:
            tree = stage.tree(prims, attributes, at)
            _print([json.dumps(tree.json())] if as_json else [*tree.lines(), tree.summary()])
    except Unopened as reason:
        print(reason, file=sys.stderr)
        return 1
    return 0


def diff(before: str, after: str, prims: str, attributes: str, domains: str, *, as_json: bool) -> int:
    """Print what differs; 0 when nothing does, 1 when something does, 2 when a file cannot be opened."""
    trees = []
    try:
        for path in (before, after):
            with opened(path, domains) as stage:
                trees.append(stage.tree(prims, attributes))
    except Unopened as reason:
        print(reason, file=sys.stderr)
        return 2
    found = trees[0].difference(trees[1])
    _print([json.dumps(found.json())] if as_json else found.lines())
    return 1 if found else 0


def record_info(path: str) -> int:
    """Print what a recording has; 1 with the reason on stderr when it cannot be read."""
    from ovstage import OvstageError, Recording

    try:
        recording = Recording(path)
        lines = [repr(recording)[1:-1], f"{'attribute':24} {'type':16} {'rows':>8} {'keyframes':>10} {'bytes':>14}"]
        for name, kind, rows, keyframes, size in recording._content():
            lines.append(f"{name:24} {kind:16} {rows:8,} {keyframes:10,} {size:14,}")
    except (OvstageError, ModuleNotFoundError) as error:
        print(error.message if isinstance(error, OvstageError) else error, file=sys.stderr)
        return 1
    _print([*lines, *([f"left out: {recording.damage}"] if recording.damage else [])])
    return 0


def _print(lines: Iterable[str]) -> None:
    """In one write: a scene has ten thousands of lines."""
    sys.stdout.write("\n".join(lines) + "\n")
