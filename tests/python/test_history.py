"""Values as of earlier sealed ordinals: what ``StageConfig(history_ordinals=...)`` keeps and what it does not."""

from __future__ import annotations

import numpy as np
import pytest

from ovstage import ErrorCode, OrdinalRange, OvstageError, PathDictionary, Stage, StageConfig
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
