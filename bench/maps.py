"""Maps: whole columns without a copy, what each way to commit copies, and sessions that are given up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter

import numpy as np
from measure import Effort, Row, shown, undisturbed
from stages import Column

from ovstage import MapGroup

PAGE = 4096  # bytes
WARM_UP = 4  # rounds until every buffer that a hot column needs has been used


def whole(effort: Effort) -> Iterator[Row]:
    """Mapping and committing all rows without copying them; filling is not counted."""
    with Column(1000) as short, Column(effort.big) as long:
        short_bare, short_seen = (_mapped(short, effort, live) for live in (False, True))
        long_bare, long_seen = (_mapped(long, effort, live) for live in (False, True))
        rows = f"{effort.big:.0e} rows"
        yield Row(f"map (discard) and unmap, {rows}", long_bare * 1e6, 25, "µs", f"1e+03 rows: {shown(short_bare)}")
        yield Row(f"the same, {rows} / 1e+03 rows", long_bare / short_bare, 3)
        detail = f"1e+03 rows: {shown(short_seen)}"
        yield Row(f"the same with a live view, {rows}", long_seen * 1e6, 200, "µs", detail)


def copies(effort: Effort) -> Iterator[Row]:
    """Payload bytes that the stage copies for each byte that is committed and sealed, filling excluded."""
    with Column(100_000) as column:
        few = column.select(slice(None, None, 100))
        row = column.values.itemsize * column.values.shape[1]

        def committed(initial: str, group_rows: int | None = None, only_few: bool = False) -> float:
            query = few if only_few else column.query
            before = column.stage.counters()["bytes_copied"]
            with column.stage.map_attribute(
                query, column.token, column.ordinal + 1, initial=initial, group_rows=group_rows
            ) as mapping:
                sizes = [_filled(group) for group in mapping.groups()]
            column.seal()
            return (column.stage.counters()["bytes_copied"] - before) / (row * sum(sizes))

        def after_a_sparse_write() -> float:
            with column.read(column.query):  # a reader holds the snapshot: the write goes to another buffer
                column.write(few, column.values[::100])
                column.seal()
            return committed("current")

        ways: list[tuple[str, Callable[[], float], float]] = [
            ("discard", lambda: committed("discard"), 0),
            ("current", lambda: committed("current"), 1),
            ("current, after 1 % of the rows changed", after_a_sparse_write, 0.02),
            ("discard, 4 groups", lambda: committed("discard", group_rows=25_000), 1),
            ("current, every 100th row", lambda: committed("current", only_few=True), 2),
        ]
        for what, way, limit in ways:
            way()
            yield Row(f"bytes copied per committed byte: {what}", way(), limit)


def given_up(effort: Effort) -> Iterator[Row]:
    """Sessions that end without a commit leave nothing behind."""
    sessions = 20_000 if effort.quick else 1_000_000
    with Column(1000) as column, undisturbed():
        laps = []
        for at in range(sessions + sessions // 10):
            if at == sessions // 10:
                before = column.stage.counters()
            start = perf_counter()
            mapping = column.map()
            mapping.fetch_next()
            mapping.abort()
            laps.append(perf_counter() - start)
        after = column.stage.counters()
    grown = sum(after[name] - before[name] for name in ("bytes_columns", "bytes_pooled"))
    detail = f"{shown(median(laps))} each"
    yield Row(f"{sessions:,} maps given up: growth of the stage", grown / 1024, 0, "KiB", detail)
    left = sum(after[name] for name in ("live_maps", "live_groups", "live_exports", "live_operations"))
    yield Row(f"{sessions:,} maps given up: handles left", left, 0, "")


def _filled(group: MapGroup) -> int:
    group.array(0)[:] = 1
    return group.prim_count


def _mapped(column: Column, effort: Effort, live: bool) -> float:
    """Median seconds of map, fetch and unmap, with or without a view that outlives the map.

    Filling megabytes leaves cold caches behind, and these would be all that is measured. So the first rounds fill the
    buffers, and later ones write as little as the case allows: with a view, something in every page, since pages that
    are not there cost nothing to move.
    """
    laps = []
    with undisturbed():
        for lap in range(effort.repeats + WARM_UP):
            start = perf_counter()
            mapping = column.map()
            group = mapping.fetch_next()
            mapped = perf_counter() - start
            view = np.from_dlpack(group.dlpack(0))
            step = 1 if lap < WARM_UP else PAGE // view.itemsize if live else view.size
            view.reshape(-1)[::step] = 1
            if not live:
                del view
            start = perf_counter()
            mapping.unmap().wait()
            laps.append(mapped + perf_counter() - start)
            column.seal()
    return median(laps[WARM_UP:])
