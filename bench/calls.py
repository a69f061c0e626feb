"""What one call costs, whatever the size of the column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from statistics import median
from time import perf_counter

import numpy as np
from measure import Effort, Row, per_call, shown, side_by_side, undisturbed
from stages import Column

from ovstage import OrdinalRange


def export(effort: Effort) -> Iterator[Row]:
    """A view of a column against NumPy's view of its own array, and of a long column against a short one."""
    with (
        Column(1000) as short,
        Column(effort.big) as long,
        short.read(short.query) as few,
        long.read(long.query) as many,
    ):
        ours, theirs, ratio = side_by_side(
            lambda: np.from_dlpack(few.dlpack(0)), lambda: np.from_dlpack(short.values), effort.repeats
        )
        yield Row("np.from_dlpack(group.dlpack(0)) / (ndarray)", ratio, 2, detail=f"{shown(ours)}, {shown(theirs)}")
        ours, theirs, ratio = side_by_side(
            lambda: np.from_dlpack(many.dlpack(0)), lambda: np.from_dlpack(few.dlpack(0)), effort.repeats
        )
        yield Row(f"the same, {effort.big:.0e} / 1e+03 rows", ratio, 1.5, detail=f"{shown(ours)}, {shown(theirs)}")


def ingest(effort: Effort) -> Iterator[Row]:
    """Taking in a small array: many are given to a write that is refused for its ordinal, before any is copied."""
    arrays = [np.arange(3, dtype=np.float32) for _ in range(2000)]
    with Column(len(arrays)) as column:

        def refused() -> None:
            assert not column.stage.write_attribute(column.query, "arrays", 0, arrays, is_array=True).ok

        yield Row("ingest of an ndarray of 3 floats", per_call(refused, effort.repeats) / len(arrays) * 1e6, 0.5, "µs")


def small_write(effort: Effort) -> Iterator[Row]:
    """Four rows in and waited for, each time at a new ordinal."""
    with Column(4) as column, undisturbed():
        write, query, token, values = column.stage.write_attribute, column.query, column.token, column.values
        laps = []
        for _ in range(300 * effort.repeats):
            ordinal = column.ordinal + 1
            start = perf_counter()
            write(query, token, ordinal, values, is_array=False).wait()
            laps.append(perf_counter() - start)
            column.seal()
        yield Row("write 4 rows float3, wait", median(laps) * 1e6, 4, "µs")


def tick(effort: Effort) -> Iterator[Row]:
    """A whole tick of a small column: write, wait, seal, wait, read, fetch, view, release."""
    with Column(4) as column:
        yield Row(
            "tick: write, seal, read, view, release",
            per_call(_tick(column), effort.repeats, spend=0.05) * 1e6,
            15,
            "µs",
        )


def levels(effort: Effort) -> Iterator[Row]:
    """A tick and an export at interface level 0.3 against those at 0.2."""
    with Column(4, 16, level="0.3") as newer, Column(4, 16, level="0.2") as older:
        ours, theirs, ratio = side_by_side(_tick(newer), _tick(older), effort.repeats)
        yield Row("tick at level 0.3 / 0.2", ratio, 1.1, detail=f"{shown(ours)}, {shown(theirs)}")
        with newer.read(newer.query) as axes, older.read(older.query) as lanes:
            ours, theirs, ratio = side_by_side(
                lambda: np.from_dlpack(axes.dlpack(0)), lambda: np.from_dlpack(lanes.dlpack(0)), effort.repeats
            )
            yield Row("np.from_dlpack at level 0.3 / 0.2", ratio, 1.1, detail=f"{shown(ours)}, {shown(theirs)}")


def soak(effort: Effort) -> Iterator[Row]:
    """Many ticks: the last ones must cost what the first ones did, in time and in memory."""
    ticks = 20_000 if effort.quick else 1_000_000
    tenth = ticks // 10
    with Column(4) as column, undisturbed():
        step = _tick(column)
        step()
        before = column.stage.counters()
        laps = np.empty(ticks)
        for i in range(ticks):
            start = perf_counter()
            step()
            laps[i] = perf_counter() - start
        after = column.stage.counters()
        first, last = (float(np.median(part)) for part in (laps[:tenth], laps[-tenth:]))
        yield Row(f"{ticks:,} ticks: last / first tenth", last / first, 1.1, detail=f"{shown(last)}, {shown(first)}")
        grown = sum(after[name] - before[name] for name in ("bytes_columns", "bytes_pooled"))
        yield Row(f"{ticks:,} ticks: growth of the stage", grown / 1024, 64, "KiB")


def _tick(column: Column) -> Callable[[], None]:
    stage, query, token, values = column.stage, column.query, column.token, column.values
    ordinals = count(column.ordinal + 1)

    def step() -> None:
        ordinal = next(ordinals)
        stage.write_attribute(query, token, ordinal, values, is_array=False).wait()
        stage.advance_write_floor(ordinal).wait()
        read = stage.read_attributes(query, [token], OrdinalRange.latest(ordinal))
        group = read.fetch_next()
        np.from_dlpack(group.dlpack(0))
        group.release()
        read.release().wait()

    return step
