"""Random programs of writes, maps, seals and reads against a model that fits on a page."""

from __future__ import annotations

import numpy as np
from conftest import Table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ovstage
from ovstage import ErrorCode, OvstageError

PRIMS = 7
PATHS = [f"/P{i}" for i in range(PRIMS)]

subsets = st.lists(st.integers(0, PRIMS - 1), min_size=1, max_size=PRIMS, unique=True)
ordinals = st.integers(1, 12)
steps = st.one_of(
    st.tuples(st.just("write"), subsets, ordinals),
    st.tuples(st.sampled_from(["current", "zero", "discard"]), subsets, ordinals),
    st.tuples(st.just("abort"), subsets, ordinals),
    st.tuples(st.just("seal"), ordinals),
    st.tuples(st.just("read"), subsets),
    st.tuples(st.just("hold"), subsets),
)


class Model:
    """Every value ever written, by prim and ordinal; the last submission of an ordinal replaces what was there."""

    def __init__(self) -> None:
        self.values: list[dict[int, list[float]]] = [{} for _ in range(PRIMS)]
        self.floor = 0

    def at(self, prim: int, ordinal: int) -> list[float] | None:
        known = [at for at in self.values[prim] if at <= ordinal]
        return self.values[prim][max(known)] if known else None


def write(table: Table, model: Model, prims: list[int], ordinal: int, rows: np.ndarray) -> None:
    op = table.stage.write_attribute(table.query, "x", ordinal, rows, is_array=False)
    if ordinal <= model.floor:
        assert op.status == ErrorCode.WRITE_FLOOR_VIOLATION
        return
    op.wait()
    for prim, row in zip(prims, rows.tolist(), strict=True):
        model.values[prim][ordinal] = row


def map_rows(table: Table, model: Model, how: str, prims: list[int], ordinal: int, rows: np.ndarray) -> None:
    dtype = ovstage.DLDataType(2, 32, 3)
    initial = "current" if how == "abort" else how
    mapping = table.stage.map_attribute(table.query, "x", ordinal, dtype=dtype, initial=initial)
    if ordinal <= model.floor:
        assert mapping.op.status == ErrorCode.WRITE_FLOOR_VIOLATION
        return
    for group in mapping.groups():
        lent = group.array(0, shaped=True)
        for local in range(group.prim_count):
            at = group.prim_index(local)
            before = {"zero": [0.0] * 3, "discard": None}.get(how, model.at(prims[at], ordinal) or [0.0] * 3)
            if before is not None:
                assert lent[group.data_row_index(local)].tolist() == before
            lent[group.data_row_index(local)] = rows[at]
    if how == "abort":
        mapping.abort()
        return
    mapping.unmap().wait()
    for prim, row in zip(prims, rows.tolist(), strict=True):
        model.values[prim][ordinal] = row
    lent[:] = -1


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(program=st.lists(steps, min_size=3, max_size=25))
def test_programs_agree_with_the_model(program):
    model, held, number = Model(), [], 0.0
    with ovstage.Stage() as stage, ovstage.PathDictionary(stage) as names:
        for step in program:
            if step[0] == "seal":
                stage.advance_write_floor(step[1]).wait()
                model.floor = max(model.floor, step[1])
                continue
            prims = step[1]
            table = Table(stage, names, [PATHS[prim] for prim in prims])
            rows = np.arange(number, number + 3 * len(prims), dtype="f4").reshape(-1, 3)
            number += 3 * len(prims)
            if step[0] == "write":
                write(table, model, prims, step[2], rows)
            elif step[0] in ("read", "hold"):
                expected = [model.at(prim, model.floor) for prim in prims]
                assert table.read("x", model.floor) == expected
                if step[0] == "hold":
                    held += [(group, group.array(0), group.array(0).copy()) for group in table.groups("x", model.floor)]
            else:
                map_rows(table, model, step[0], prims, step[2], rows)
            table.close()
        everything = Table(stage, names, PATHS)
        if any(model.at(p, model.floor) is None and model.at(p, 12) is not None for p in range(PRIMS)):
            try:
                everything.read("x", 12)
            except OvstageError as error:
                assert error.code == ErrorCode.WRITE_FLOOR_VIOLATION  # noqa: PT017
            else:
                raise AssertionError("a prim that is written but not sealed was read")
        for ordinal in range(model.floor, 13):
            stage.advance_write_floor(ordinal).wait()
            assert everything.read("x", ordinal) == [model.at(prim, ordinal) for prim in range(PRIMS)]
        for group, view, bytes_then in held:
            assert (view == bytes_then).all()
            group.release()
        everything.close()
        counters = stage.counters()
        assert {name: n for name, n in counters.items() if name in ("live_groups", "live_maps") and n} == {}
