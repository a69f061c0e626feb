"""Some rows of a column: the cost must follow the rows that are touched, not the size of the column."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from statistics import median

import numpy as np
from measure import Effort, Row, shown, side_by_side, timed, undisturbed
from scatter import scatter
from stages import Column

from ovstage import OrdinalRange

ROWS = 10**6
SETS = 8  # different sets of random rows, taken in turn


def every_second_row(effort: Effort) -> Iterator[Row]:
    """A query of every second prim, used again and again."""
    chosen = np.arange(0, ROWS, 2, dtype=np.uint32)
    with Column(ROWS) as column, Column(1000) as short:
        query, few = column.select(slice(0, None, 2)), short.select(slice(0, None, 2))
        ours, theirs, ratio = side_by_side(lambda: column.look(query), lambda: short.look(few), effort.repeats)
        yield Row("read every 2nd, 1e+06 / 1e+03 rows", ratio, 1.5, detail=f"{shown(ours)}, {shown(theirs)}")

        values, bare = np.ascontiguousarray(column.values[::2]), column.values.copy()

        def write_and_seal() -> None:
            column.write(query, values)
            column.seal()

        laps = []
        with undisturbed():
            for _ in range(effort.repeats + 2):
                laps.append((timed(write_and_seal), timed(lambda: scatter(bare, values, chosen))))
        yield _ratio("write and seal every 2nd of 1e+06 / bare scatter", laps[2:], 1.5)


def changes(effort: Effort) -> Iterator[Row]:
    """Ask what changed: all rows of a long column, or one in a hundred, and as many of a short one."""
    count = ROWS // 100
    everything, few = _changes(ROWS, count, effort)
    _, same = _changes(ROWS // 10, count, effort)
    yield Row("what changed, all of 1e+06", everything * 1e6, None, "µs")
    yield Row("what changed, 1 % of 1e+06", few * 1e6, None, "µs")
    yield Row("the same 1e+04 rows, of 1e+06 / of 1e+05", few / same, 3, detail=f"{shown(few)}, {shown(same)}")


def _changes(rows: int, count: int, effort: Effort) -> tuple[float, float]:
    """Seconds of a range read after all rows changed, and after some did."""
    chosen = np.sort(np.random.default_rng(3).choice(rows, count, replace=False)).astype(np.uint32)
    with Column(rows) as column, undisturbed():
        part = column.select(chosen)

        def look() -> None:
            span = OrdinalRange.between(column.ordinal, column.ordinal)
            with column.stage.read_attributes(column.query, [column.token], span) as read:
                for group in read.groups():
                    group.release()

        laps = []
        for _ in range(2 + 4 * effort.repeats):
            column.write(column.query, column.values)
            column.seal()
            everything = timed(look)
            column.write(part, column.values[chosen])
            column.seal()
            laps.append((everything, timed(look)))
    return median(a for a, _ in laps[2:]), median(b for _, b in laps[2:])


def random_rows(effort: Effort) -> Iterator[Row]:
    """One row in a hundred, other ones every tick, while a reader holds the snapshot before."""
    million = _sparse(ROWS, ROWS // 100, effort)
    yield _ratio("write and seal 1 % of 1e+06, reader holding / bare scatter", million, 4)
    other = _sparse(ROWS // 10, ROWS // 100, effort)
    # Relative to the scatter: rows that lie further apart cost more cache misses, whoever writes them.
    ratio = median(a / b for a, b in million) / median(a / b for a, b in other)
    detail = f"{shown(median(a for a, _ in million))}, {shown(median(a for a, _ in other))}"
    yield Row("the same 1e+04 rows, of 1e+06 / of 1e+05", ratio, 1.5, detail=detail)


def subsets(effort: Effort) -> Iterator[Row]:
    """What part of a column is written, how it lies, and whether somebody holds the snapshot before."""
    for share in (0.0001, 0.01, 0.5):
        for scattered in (True, False):
            for held in (False, True):
                laps = _sparse(ROWS, round(ROWS * share), effort, scattered=scattered, held=held)
                how = f"{'random' if scattered else 'contiguous'}{', reader holding' if held else ''}"
                yield _ratio(f"write and seal {share:.2%} of 1e+06, {how} / bare scatter", laps, None)


def _sparse(
    rows: int, count: int, effort: Effort, *, scattered: bool = True, held: bool = True
) -> list[tuple[float, float]]:
    """Seconds of write and seal, and of the bare scatter of the same rows, tick by tick."""
    random = np.random.default_rng(2)
    with Column(rows) as column:
        if scattered:
            sets = [random.choice(rows, count, replace=False).astype(np.uint32) for _ in range(SETS)]
        else:
            starts = random.integers(0, rows - count, SETS)
            sets = [np.arange(start, start + count, dtype=np.uint32) for start in starts]
        queries = [column.select(chosen) for chosen in sets]
        values, bare = random.random((count, 3), np.float32), column.values.copy()
        laps = []
        snapshot = column.read(column.query) if held else None
        turns = cycle(zip(sets, queries, strict=True))

        def write_and_seal(query) -> None:
            column.write(query, values)
            column.seal()

        with undisturbed():
            for _ in range(2 * SETS + 4 * effort.repeats):
                chosen, query = next(turns)
                ours = timed(lambda query=query: write_and_seal(query))
                if snapshot is not None:
                    now = column.read(column.query)
                    snapshot.release()
                    snapshot = now
                laps.append((ours, timed(lambda chosen=chosen: scatter(bare, values, chosen))))
        if snapshot is not None:
            snapshot.release()
    return laps[2 * SETS :]


def _ratio(what: str, laps: list[tuple[float, float]], limit: float | None) -> Row:
    detail = f"{shown(median(a for a, _ in laps))}, {shown(median(b for _, b in laps))}"
    return Row(what, median(a / b for a, b in laps), limit, detail=detail)
