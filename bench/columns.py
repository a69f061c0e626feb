"""Whole columns: writing and reading all rows."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from statistics import median

import numpy as np
from measure import Effort, Row, shown, side_by_side, timed, undisturbed
from stages import Column

MATRIX = 16 * 8  # bytes
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


def read_whole(effort: Effort) -> Iterator[Row]:
    """Reading is handing out memory, so it costs the same at any size."""
    with Column(1000) as short, Column(effort.big) as long:
        ours, theirs, ratio = side_by_side(
            lambda: long.look(long.query), lambda: short.look(short.query), effort.repeats
        )
        detail = f"{shown(ours)}, {shown(theirs)}"
        yield Row(f"read a column, {effort.big:.0e} / 1e+03 rows", ratio, 1.5, detail=detail)
        most, half = long.select(slice(1, None)), short.select(slice(500, None))
        ours, theirs, ratio = side_by_side(lambda: long.look(most), lambda: short.look(half), effort.repeats)
        detail = f"{shown(ours)}, {shown(theirs)}"
        yield Row(f"read a slice of a column, {effort.big:.0e} / 5e+02 rows", ratio, 1.5, detail=detail)


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
