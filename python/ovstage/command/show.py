"""``python -m ovstage show FILE`` and ``diff A B``: what is in a scene, and what two scenes differ in."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

from ovstage.command.opened import Unopened, opened

__all__ = ["diff", "show"]


def show(path: str, prims: str, attributes: str, at: int | None, domains: str, *, as_json: bool) -> int:
    """Print the tree; 1 with the reason on stderr when the file cannot be opened."""
    try:
        with opened(path, domains) as stage:
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


def _print(lines: Iterable[str]) -> None:
    """In one write: a scene has ten thousands of lines."""
    sys.stdout.write("\n".join(lines) + "\n")
