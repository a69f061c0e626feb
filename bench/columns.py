"""Whole columns: writing, mapping and reading all rows."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from statistics import median
from time import perf_counter

import numpy as np
from measure import Effort, Row, shown, side_by_side, timed, undisturbed
from stages import Column

MATRIX = 16 * 8  # bytes
PAGE = 4096  # bytes
WARM_UP = 4  # rounds until every buffer that a hot column needs has been used


def dense_write(effort: Effort) -> Iterator[Row]:
    """64 MB in steady state against a bare copy of the same bytes into memory that exists."""
    with Column((64 << 20) // MATRIX, lanes=16, dtype=np.float64) as column:
        target = np.empty_like(column.values)
        ours, theirs = [], []
        with undisturbed():
            for _ in range(effort.repeats + WARM_UP):
                ours.append(timed(lambda: column.write(column.query, column.values)))
                column.seal()
                theirs.append(timed(lambda: np.copyto(target, column.values)))
        ratio = median(a / b for a, b in zip(ours[WARM_UP:], theirs[WARM_UP:], strict=True))
        yield Row(
            "write 64 MB / np.copyto",
            ratio,
            1.1,
            detail=f"{shown(median(ours[WARM_UP:]))}, {shown(median(theirs[WARM_UP:]))}",
        )


def map_whole(effort: Effort) -> Iterator[Row]:
    """Mapping and committing all rows without copying them; filling is not counted."""
    with Column(1000) as short, Column(effort.big) as long:
        short_bare, short_seen = (_mapped(short, effort, live) for live in (False, True))
        long_bare, long_seen = (_mapped(long, effort, live) for live in (False, True))
        rows = f"{effort.big:.0e} rows"
        yield Row(f"map (discard) and unmap, {rows}", long_bare * 1e6, 25, "µs", f"1e+03 rows: {shown(short_bare)}")
        yield Row(f"the same, {rows} / 1e+03 rows", long_bare / short_bare, 3)
        detail = f"1e+03 rows: {shown(short_seen)}"
        yield Row(f"the same with a live view, {rows}", long_seen * 1e6, 200, "µs", detail)


def read_whole(effort: Effort) -> Iterator[Row]:
    """Reading is handing out memory, so it costs the same at any size."""
    with Column(1000) as short, Column(effort.big) as long:
        ours, theirs, ratio = side_by_side(
            lambda: long.look(long.query), lambda: short.look(short.query), effort.repeats
        )
        detail = f"{shown(ours)}, {shown(theirs)}"
        yield Row(f"read a column, {effort.big:.0e} / 1e+03 rows", ratio, 1.5, detail=detail)


def against_usd(effort: Effort) -> Iterator[Row]:
    """The same values through usd-core, one prim at a time, where it is installed."""
    if find_spec("pxr") is None:
        return
    from pxr import Gf, Sdf, Usd

    with Column(10**4) as column:
        scene = Usd.Stage.CreateInMemory()
        attributes = [
            scene.DefinePrim(f"/World/Prim{i}").CreateAttribute("value", Sdf.ValueTypeNames.Float3)
            for i in range(len(column.values))
        ]
        values = [Gf.Vec3f(*map(float, value)) for value in column.values]

        def through_usd() -> None:
            for attribute, value in zip(attributes, values, strict=True):
                attribute.Set(value)
            for attribute in attributes:
                attribute.Get()

        def through_the_stage() -> None:
            column.write(column.query, column.values)
            column.seal()
            column.look(column.query)

        theirs, ours, ratio = side_by_side(through_usd, through_the_stage, min(effort.repeats, 7))
        detail = f"{shown(theirs)}, {shown(ours)}"
        yield Row("1e+04 float3 set and read: usd-core / stage", ratio, 2000, detail=detail, at_least=True)


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
