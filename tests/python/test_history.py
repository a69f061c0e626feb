"""Values as of earlier sealed ordinals: what ``StageConfig(history_ordinals=...)`` keeps and what it does not."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ovstage import Column, ErrorCode, OrdinalRange, OvstageError, PathDictionary, Stage, StageConfig
from ovstage._native import ImplicitQuery

BOTH_LEVELS = True


def written(history: int, ordinals: int) -> tuple[Stage, ImplicitQuery, int]:
    """A stage with one prim whose ``value`` is the ordinal at which it was written, every one of them sealed."""
    stage = Stage("history", StageConfig(history_ordinals=history))
    with PathDictionary(stage) as paths, paths.create_path_list_from_strings(["/A"]) as prims:
        query = ImplicitQuery(stage, prims)
        token = paths.intern_token("value")
    for ordinal in range(1, ordinals + 1):
        stage.write_attribute(query, token, ordinal, np.array([ordinal], np.float32), is_array=False).wait()
        stage.advance_write_floor(ordinal).wait()
    return stage, query, token


def value(stage: Stage, query: ImplicitQuery, token: int, wanted: OrdinalRange) -> float:
    with stage.read_attributes(query, [token], wanted) as read:
        group = read.fetch_next()
        assert group is not None
        with group:
            return float(group.array(0)[0])


def test_values_as_of_the_last_sealed_ordinals() -> None:
    stage, query, token = written(history=3, ordinals=10)
    with stage:
        assert [value(stage, query, token, OrdinalRange.latest(n)) for n in (10, 9, 8)] == [10, 9, 8]
        assert value(stage, query, token, OrdinalRange.latest(2)) == 8, "older than what is kept: the oldest"
        assert value(stage, query, token, OrdinalRange.between(8, 9)) == 9, "changed again later, but kept"
        with pytest.raises(OvstageError) as refused:
            stage.read_attributes(query, [token], OrdinalRange.between(3, 5)).wait()
        assert refused.value.code == ErrorCode.OUT_OF_RANGE


def test_without_history_a_read_gets_the_newest() -> None:
    stage, query, token = written(history=0, ordinals=5)
    with stage:
        assert value(stage, query, token, OrdinalRange.latest(2)) == 5


def test_history_does_not_pile_up() -> None:
    stage, query, token = written(history=4, ordinals=30)
    with stage:
        size = stage.counters()["bytes_columns"]
        for ordinal in range(31, 300):
            stage.write_attribute(query, token, ordinal, np.array([ordinal], np.float32), is_array=False).wait()
            stage.advance_write_floor(ordinal).wait()
        assert stage.counters()["bytes_columns"] <= size


@pytest.mark.parametrize(("history", "error"), [(-1, ValueError), (2.0, TypeError), ("3", TypeError)])
def test_history_is_a_count(history: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="history_ordinals"):
        Stage("refused", StageConfig(history_ordinals=history))  # type: ignore[arg-type]


ROWS = 2000


class Kept:
    """A column of which at each ordinal some prims change, and what it held at each."""

    def __init__(self, stage: Stage, ragged: bool) -> None:
        self.stage, self.ragged, self.ordinal = stage, ragged, 0
        self.prims = [f"/World/P{i}" for i in range(ROWS)]
        self.random = np.random.default_rng(7)
        self.held: dict[int, np.ndarray] = {0: np.zeros(ROWS)}
        self.change(np.arange(ROWS))

    def change(self, rows: np.ndarray) -> None:
        """Each changed prim gets the ordinal as its value, or an array of it as long as its number says."""
        self.ordinal += 1
        paths = [self.prims[row] for row in rows]
        if self.ragged:
            values: object = [np.full(row % 3, self.ordinal, np.float32) for row in rows]
        else:
            values = np.full(len(rows), self.ordinal, np.float32)
        self.stage.write(paths, "v", self.ordinal, values, is_array=self.ragged).wait()
        self.stage.advance_write_floor(self.ordinal).wait()
        now = self.held[self.ordinal - 1].copy()
        now[rows] = self.ordinal
        self.held[self.ordinal] = now

    def check(self, rows: np.ndarray, ordinal: int) -> Column:
        column = self.stage.read([self.prims[row] for row in rows], ["v"], ordinal)["v"]
        self.compare(column, rows, ordinal)
        return column

    def compare(self, column: Column, rows: np.ndarray, ordinal: int) -> None:
        then = self.held[ordinal][rows]
        assert column.values.tolist() == (np.repeat(then, rows % 3) if self.ragged else then).tolist()


@pytest.mark.parametrize("ragged", [False, True], ids=["values", "arrays"])
def test_few_and_many_rows_of_old_ordinals(ragged: bool) -> None:
    """Rows in any order, in a run, all of them; what was read stays as it was while its ordinal goes."""
    with Stage("history", StageConfig(history_ordinals=20)) as stage:
        kept = Kept(stage, ragged)
        lists = [np.array([1999, 3, 700, 3]), np.arange(500, 520), np.arange(ROWS), np.arange(ROWS)[::-1]]
        held = []
        for _ in range(60):
            kept.change(kept.random.permutation(ROWS)[: kept.random.integers(1, 40)])
            for age in (0, 1, 7, 19):
                if (ordinal := kept.ordinal - age) > 0:
                    rows = lists[kept.random.integers(len(lists))]
                    held.append((kept.check(rows, ordinal), rows, ordinal))
        for column, rows, ordinal in held:
            kept.compare(column, rows, ordinal)


def test_few_old_rows_do_not_make_the_column() -> None:
    with Stage("history", StageConfig(history_ordinals=100)) as stage:
        kept = Kept(stage, ragged=False)
        for _ in range(110):
            kept.change(kept.random.permutation(ROWS)[:20])
        before = stage.counters()["bytes_columns"]
        few = kept.check(np.array([1999, 3, 700]), kept.ordinal - 99)
        with_few = stage.counters()["bytes_columns"]
        whole = kept.check(np.arange(ROWS), kept.ordinal - 99)
        assert with_few - before < 4 * ROWS <= stage.counters()["bytes_columns"] - with_few
        del few, whole
        kept.change(np.arange(20))
        assert stage.counters()["bytes_columns"] <= before, "what was made goes when the column is sealed again"


def test_readers_of_old_ordinals_beside_a_writer() -> None:
    """Three threads read what is kept, few rows or all, while the writer seals and old ordinals go."""
    with Stage("history", StageConfig(history_ordinals=30)) as stage:
        kept = Kept(stage, ragged=False)
        done = threading.Event()

        def follow(rows: np.ndarray) -> int:
            compared = 0
            while not done.is_set() or compared == 0:
                ordinal = max(kept.ordinal - 10, 1)
                column = stage.read([kept.prims[row] for row in rows], ["v"], ordinal)["v"]
                if column.ordinal <= ordinal:  # else the writer has left it behind
                    kept.compare(column, rows, ordinal)
                    compared += 1
            return compared

        with ThreadPoolExecutor(3) as pool:
            followers = [
                pool.submit(follow, rows) for rows in (np.array([5, 1]), np.arange(ROWS), np.arange(ROWS)[::-7])
            ]
            try:
                for _ in range(200):
                    kept.change(kept.random.permutation(ROWS)[:30])
            finally:
                done.set()
            assert all(follower.result(timeout=30) > 0 for follower in followers)
