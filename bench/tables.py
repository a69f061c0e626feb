"""What a convenience costs over what it stands on: tables over reads, paths over a query made by hand."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec

import numpy as np
from measure import Effort, Row, shown, side_by_side
from stages import Column

from ovstage import OrdinalRange

ROWS = 36864


def whole(effort: Effort) -> Iterator[Row]:
    """`stage.read` of one attribute against the read, the fetch and the view that it stands for."""
    for rows in (24, 10**6):
        with Column(rows) as column:
            ours, theirs, ratio = side_by_side(
                lambda: column.stage.read(column.query, ["value"]),
                partial(_by_hand, column, OrdinalRange.latest(column.ordinal)),
                effort.repeats,
            )
            detail = f"{shown(ours)}, {shown(theirs)}"
            yield Row(f"stage.read of {rows:,} x float3 / read and fetch by hand", ratio, 2, detail=detail)


def _by_hand(column: Column, span: OrdinalRange) -> np.ndarray:
    with column.stage.read_attributes(column.query, [column.token], span) as read, read.fetch_next() as group:
        return group.array(0, shaped=True)


def tables(effort: Effort) -> Iterator[Row]:
    """A table of one attribute against the read under it, where pyarrow is installed."""
    if find_spec("pyarrow") is None:
        return
    with Column(ROWS) as column:
        ours, theirs, ratio = side_by_side(
            lambda: column.stage.read_arrow(column.query, ["value"]),
            lambda: column.stage.read(column.query, ["value"]),
            effort.repeats,
        )
        yield Row(f"read_arrow of {ROWS:,} x float3 / read", ratio, 5, detail=f"{shown(ours)}, {shown(theirs)}")


def paths(effort: Effort) -> Iterator[Row]:
    """Writing by paths against writing through a query."""
    yield by_paths(effort, 4, 3)
    yield by_paths(effort, ROWS, 4)


def by_paths(effort: Effort, rows: int, limit: float) -> Row:
    with Column(rows) as column:
        prims, values = list(column.stage.prims()), np.zeros((rows, 3), np.float32)
        ours, theirs, ratio = side_by_side(
            lambda: column.stage.write(prims, column.token, 10**6, values),
            lambda: column.stage.write_attribute(column.query, column.token, 10**6, values, is_array=False),
            effort.repeats,
        )
        what = f"write {rows:,} rows by paths / by a query"
        return Row(what, ratio, limit, detail=f"{shown(ours)}, {shown(theirs)}")
