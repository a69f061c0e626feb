"""What a consumer pays that follows a stage: what changed, whatever the size of the column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from statistics import median

import numpy as np
from measure import Effort, Row, shown, side_by_side, timed, undisturbed
from stages import Column

from ovstage import Filter, FilterOp, OrdinalRange, Predicate, Query

CHANGED = 24


def range_reads(effort: Effort) -> Iterator[Row]:
    """A range read of a few changed prims of a long column, against one of a short column, by what is asked."""
    with Column(100) as short, Column(10**6) as long, ExitStack() as stack:
        few, many = _ask(short, stack), _ask(long, stack)
        for what in few:
            ours, theirs, ratio = side_by_side(many[what], few[what], effort.repeats)
            detail = f"{shown(ours)}, {shown(theirs)}"
            yield Row(f"{CHANGED} changed, {what}, of 1e+06 / of 1e+02", ratio, 1.5, detail=detail)


def _ask(column: Column, stack: ExitStack) -> Mapping[str, Callable[[], None]]:
    """A range read for each way to ask for the prims of a column of which a few have changed."""
    turned = np.arange(len(column.paths))[::-1]
    asked = {
        "those prims": _changing(column),
        "all prims": column.query,
        "in another order": _reversed(column),
        "listed twice": column.select(np.concatenate([turned, turned])),
        "by a filter": stack.enter_context(column.stage.query(Filter([Predicate("value", FilterOp.HAS)]))),
    }
    for _ in range(20):
        _change(column, asked["those prims"])
    return {what: _range_read(column, query) for what, query in asked.items()}


def changes(effort: Effort) -> Iterator[Row]:
    """An item of `stage.changes()`, of all prims and of a list of them in another order."""
    with Column(100) as short, Column(10**6) as long, undisturbed():
        for what, listed in (("of all prims", False), ("of a list", True)):
            few, many = (_feed(column, _reversed(column) if listed else None) for column in (short, long))
            laps = [(many(), few()) for _ in range(20 * effort.repeats)]
            ours, theirs = (median(times) for times in zip(*laps, strict=True))
            detail = f"{shown(ours)}, {shown(theirs)}"
            yield Row(f"changes(), {CHANGED} {what}, of 1e+06 / of 1e+02", ours / theirs, 1.5, detail=detail)


def _feed(column: Column, query: Query | None) -> Callable[[], float]:
    """Seconds of the item that follows a change."""
    writer = _changing(column)
    followed = column.stage.changes(attributes=["value"], query=query, since=column.ordinal)

    def lap() -> float:
        _change(column, writer)
        return timed(followed.poll)

    lap()
    return lap


def _reversed(column: Column) -> Query:
    return column.select(np.arange(len(column.paths))[::-1])


def _changing(column: Column) -> Query:
    """A query of prims that lie all over a column."""
    return column.select(np.arange(CHANGED) * len(column.paths) // CHANGED)


def _change(column: Column, query: Query) -> None:
    column.write(query, column.values[:CHANGED])
    column.seal()


def _range_read(column: Column, query: Query) -> Callable[[], None]:
    stage, tokens = column.stage, [column.token]
    span = OrdinalRange.between(column.ordinal, column.ordinal)

    def look() -> None:
        with stage.read_attributes(query, tokens, span) as read:
            read.fetch_next().release()

    return look
