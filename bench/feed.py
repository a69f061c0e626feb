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


def behind(effort: Effort) -> Iterator[Row]:
    """A range read that begins so long ago that the changes of its first ordinals are kept by row only."""
    with Column(100) as short, Column(10**6) as long:
        ours, theirs, ratio = side_by_side(_long_ago(long), _long_ago(short), effort.repeats)
        detail = f"{shown(ours)}, {shown(theirs)}"
        yield Row(f"{CHANGED} changed, from below the frontier, of 1e+06 / of 1e+02", ratio, 1.5, detail=detail)


def _long_ago(column: Column) -> Callable[[], None]:
    writer = _changing(column)
    for _ in range(2000):
        _change(column, writer)
    with column.stage.get_oldest_preserved_ordinal() as asked:
        return _range_read(column, column.query, asked.fetch() - 100)


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


def deletes(effort: Effort) -> Iterator[Row]:
    """A few prims that are deleted and come back, and the latest read of all after their delete."""
    with Column(100) as short, Column(10**6) as long, undisturbed():
        few, many = _coming_and_going(short), _coming_and_going(long)
        laps = [(*many(), *few()) for _ in range(20 * effort.repeats)]
        sealed, read, *theirs = (median(times) for times in zip(*laps, strict=True))
        detail = f"{shown(sealed)}, {shown(theirs[0])}"
        yield Row(f"delete of {CHANGED}, sealed, of 1e+06 / of 1e+02", sealed / theirs[0], 1.5, detail=detail)
        copy = median(timed(lambda: np.arange(10**6, dtype=np.uint32)) for _ in range(20 * effort.repeats))
        detail = f"{shown(read)}, {shown(copy)}; of 1e+02: {shown(theirs[1])}"
        yield Row("latest read after it / the list of prims that are left", read / copy, 3, detail=detail)


def _coming_and_going(column: Column) -> Callable[[], tuple[float, float]]:
    """Seconds of a delete and its seal, and of the read after it."""
    chosen = _changing(column)

    def delete() -> None:
        column.stage.delete_attributes(chosen, [column.token], column.ordinal + 1).wait()
        column.seal()

    def lap() -> tuple[float, float]:
        took = timed(delete), timed(lambda: column.read(column.query).release())
        _change(column, chosen)
        return took

    for _ in range(3):
        lap()
    return lap


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


def _range_read(column: Column, query: Query, since: int | None = None) -> Callable[[], None]:
    stage, tokens = column.stage, [column.token]
    span = OrdinalRange.between(since or column.ordinal, column.ordinal)

    def look() -> None:
        with stage.read_attributes(query, tokens, span) as read:
            read.fetch_next().release()

    return look
