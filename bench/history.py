"""What kept ordinals cost: the seals, the memory, and the reads of what was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from statistics import median

import numpy as np
from measure import Effort, Row, shown, timed, undisturbed
from stages import Column

from ovstage import OrdinalRange, Query

KEPT = 100
ROWS = 36_864
CHANGED = ROWS // 100


def history(effort: Effort) -> Iterator[Row]:
    """A column of matrices of which a hundredth changes at each ordinal, with and without the last hundred ordinals."""
    with Column(ROWS, 16, np.float64) as bare, Column(ROWS, 16, np.float64, history=KEPT) as kept, undisturbed():
        plain, costly = _changing(bare), _changing(kept)
        before = kept.stage.counters()["bytes_columns"]
        for _ in range(2 * KEPT):
            plain(), costly()
        laps = [(costly(), plain()) for _ in range(20 * effort.repeats)]
        ours, theirs = (median(times) for times in zip(*laps, strict=True))
        yield Row(
            f"write and seal 1 %, {KEPT} ordinals kept / none",
            ours / theirs,
            3,
            detail=f"{shown(ours)}, {shown(theirs)}",
        )
        changed = KEPT * CHANGED * 16 * 8
        held = kept.stage.counters()["bytes_columns"] - before
        yield Row(f"memory of {KEPT} ordinals / changed bytes", held / changed, 1.2, detail=f"{held / 2**20:.1f} MiB")
        few = kept.select(np.arange(24) * ROWS // 24)
        whole = _median(lambda: np.copyto(np.empty_like(kept.values), kept.values), effort)
        for age in (1, KEPT - 1):
            took = _median(partial(_look, kept, few, age), effort)
            detail = f"{shown(took)}, {shown(whole)}"
            yield Row(f"24 rows at age {age} / a copy of the column", took / whole, 1, detail=detail)


def _median(call: Callable[[], None], effort: Effort) -> float:
    return median(timed(call) for _ in range(20 * effort.repeats))


def _changing(column: Column) -> Callable[[], float]:
    """Seconds of a write of some prims, in no order, and its seal."""
    random = np.random.default_rng(2)
    lists = cycle([column.select(random.permutation(ROWS)[:CHANGED]) for _ in range(16)])
    values = column.values[:CHANGED]

    def change() -> None:
        column.write(next(lists), values)
        column.seal()

    return lambda: timed(change)


def _look(column: Column, query: Query, age: int) -> None:
    with column.stage.read_attributes(query, [column.token], OrdinalRange.latest(column.ordinal - age)) as read:
        read.fetch_next().release()
