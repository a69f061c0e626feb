"""Random programs of everything that changes or reads values, against a dictionary of what every key ever was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import Table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ovstage
from ovstage import DLDataType, ErrorCode, OrdinalRange, OvstageError, PrimMode, WriteDesc, make_dltensor

PRIMS = 5
PATHS = [f"/P{i}" for i in range(PRIMS)]
TYPES = {"x": DLDataType(2, 32, 3), "n": DLDataType(0, 16, 1), "a": DLDataType(1, 32, 1), "p": DLDataType(2, 64, 2)}
NAMES = list(TYPES)
ARRAYS = {"a", "p"}
GONE = None

FLOOR = ErrorCode.WRITE_FLOOR_VIOLATION

some = st.lists(st.integers(0, PRIMS - 1), min_size=1, max_size=PRIMS)
each = st.lists(st.integers(0, PRIMS - 1), min_size=1, max_size=PRIMS, unique=True)
ahead = st.sampled_from([1, 1, 1, 2, 2, 3, 5, 0])  # ordinals, counted from the floor; 0 is refused
around = st.sampled_from([-4, -3, -2, -2, -1, -1, 0, 0, 1, 3])
names = st.sampled_from(["x", "x", "x", "a", "a", "n", "p"])
seeds = st.integers(0, 2**16)
modes = st.sampled_from([PrimMode.UPSERT, PrimMode.UPSERT, PrimMode.UPSERT, PrimMode.INSERT, PrimMode.UPDATE])
steps = st.one_of(
    st.tuples(st.just("write"), some, st.lists(names, min_size=1, max_size=3, unique=True), ahead, modes, seeds),
    st.tuples(st.just("write"), some, st.lists(names, min_size=1, max_size=1), ahead, modes, seeds),
    st.tuples(st.just("write"), each, st.lists(names, min_size=1, max_size=1), ahead, modes, seeds),
    st.tuples(st.just("delete"), each, st.lists(names, max_size=2, unique=True), ahead),
    st.tuples(st.just("map"), each, names, ahead, modes, st.sampled_from(["current", "zero", "discard"]), seeds),
    st.tuples(st.sampled_from(["commit", "unmap", "unmap", "abort"]), seeds),
    st.tuples(st.just("seal"), st.sampled_from([1, 1, 1, 2, 3])),
    st.tuples(st.just("read"), some, around),
    st.tuples(st.just("changes"), some, around, around),
    st.tuples(st.just("hold"), each),
)


class Model:
    """What each key, an attribute of a prim, was from which ordinal on: bytes, or GONE."""

    def __init__(self, keeps: int = 0) -> None:
        self.history: dict[tuple[str, int], dict[int, bytes | None]] = {}
        self.floor = 0
        self.keeps = keeps  # of how many sealed ordinals the values are kept

    @property
    def oldest(self) -> int:
        """The lowest ordinal that is served as of itself."""
        return self.floor - min(self.floor, max(self.keeps, 1) - 1)

    def at(self, name: str, prim: int, ordinal: int) -> bytes | None:
        known = self.history.get((name, prim), {})
        upto = [at for at in known if at <= ordinal]
        return known[max(upto)] if upto else GONE

    def exists(self, prim: int) -> bool:
        return any(self.at(name, prim, 2**64) is not GONE for name in NAMES)

    def set(self, name: str, prim: int, ordinal: int, value: bytes | None) -> None:
        self.history.setdefault((name, prim), {})[ordinal] = value

    def latest(self, prims: list[int], end: int) -> dict[tuple[str, int], bytes] | ErrorCode:
        """Served values by attribute and position, or what the read fails with."""
        for name in NAMES:
            for prim in prims:
                known = self.history.get((name, prim), {})
                if known and min(known) > self.floor and min(known) <= end:
                    return FLOOR
        as_of = min(max(end, self.oldest), self.floor)
        found = {(name, at): self.at(name, prim, as_of) for name in NAMES for at, prim in enumerate(prims)}
        return {key: value for key, value in found.items() if value is not GONE}

    def changes(self, prims: list[int], start: int, end: int) -> dict[tuple[str, int], bytes | None] | ErrorCode:
        found: dict[tuple[str, int], bytes | None] = {}
        outcome = None
        for name in NAMES:
            for at, prim in enumerate(prims):
                known = self.history.get((name, prim), {})
                if not any(start <= ordinal <= end for ordinal in known):
                    continue
                if any(max(start, self.floor + 1) <= ordinal <= end for ordinal in known):
                    outcome = FLOOR
                elif end < self.oldest and any(end < ordinal <= self.floor for ordinal in known):
                    outcome = ErrorCode.OUT_OF_RANGE
                found[name, at] = self.at(name, prim, end)
        return found if outcome is None else outcome


def element(name: str) -> np.dtype:
    return np.dtype({(2, 32): "f4", (0, 16): "i2", (1, 32): "u4", (2, 64): "f8"}[TYPES[name].code, TYPES[name].bits])


class Payload:
    """Random bits for some of a query's prims, in one of the forms that a write can have."""

    def __init__(self, name: str, prims: int, rng: np.random.Generator) -> None:
        lanes, kind = TYPES[name].lanes, element(name)
        form = rng.choice(["dense", "count", "index", "mask"])
        count = prims if form in ("dense", "mask") else int(rng.integers(1, prims + 1))
        rows = int(rng.integers(1, 5)) if form == "index" else count
        source = rng.integers(rows, size=count).astype("u4") if form == "index" else np.arange(count, dtype="u4")
        chosen = rng.integers(2, size=count).astype(bool) if form == "mask" else np.ones(count, bool)
        if name in ARRAYS and rng.integers(2):
            self.is_packed = True
            rows = int(source.max()) + 1
            lengths = [int(rng.integers(4))] * rows
        else:
            self.is_packed = False
            lengths = rng.integers(4, size=rows).tolist() if name in ARRAYS else [1] * rows
        parts = [np.frombuffer(rng.bytes(n * lanes * kind.itemsize), kind) for n in lengths]
        self.values = {i: parts[source[i]].tobytes() for i in range(count) if chosen[i]}
        self.tensors: Any
        if name not in ARRAYS:
            self.tensors = np.concatenate(parts).reshape(rows, lanes)
        elif self.is_packed:
            self.tensors = make_dltensor(np.concatenate(parts), dtype=TYPES[name], shape=[sum(lengths)])
        else:
            self.tensors = [
                make_dltensor(part, dtype=TYPES[name], shape=[n]) for part, n in zip(parts, lengths, strict=True)
            ]
        self.selection: dict[str, Any] = {}
        if form == "index":
            self.selection = {"index_map": source}
        elif form == "mask":
            self.selection = {"mask": [int(sum(1 << i for i in range(count) if chosen[i]))], "count": count}
        elif form == "count":
            self.selection = {"count": count}


class Play:
    """A stage and a model that go through the same program."""

    def __init__(self, stage: ovstage.Stage, names: ovstage.PathDictionary, keeps: int = 0) -> None:
        self.stage, self.names, self.model = stage, names, Model(keeps)
        self.maps: list[Any] = []
        self.held: list[Any] = []
        self.last = 0  # the highest ordinal that anything was done at

    def after(self, steps: int) -> int:
        """An ordinal, counted from the floor."""
        ordinal = max(0, self.model.floor + steps)
        self.last = max(self.last, ordinal)
        return ordinal

    def table(self, prims: list[int]) -> Table:
        return Table(self.stage, self.names, [PATHS[prim] for prim in prims])

    def write(self, prims: list[int], names: list[str], steps: int, mode: PrimMode, seed: int) -> None:
        table, rng, ordinal = self.table(prims), np.random.default_rng(seed), self.after(steps)
        payloads = {name: Payload(name, len(prims), rng) for name in names}
        if len(names) == 1 and seed % 2:
            (payload,) = payloads.values()
            op = self.stage.write_attribute(
                table.query, names[0], ordinal, payload.tensors, is_array=names[0] in ARRAYS, prim_mode=mode,
                transfer=seed % 4 == 1, **payload.selection,
            )  # fmt: skip
        else:
            writes = [WriteDesc(n, p.tensors, n in ARRAYS, **p.selection) for n, p in payloads.items()]
            op = self.stage.write_attributes(table.query, writes, ordinal, prim_mode=mode)
        table.close()
        touched = {prims[i] for payload in payloads.values() for i in payload.values}
        refusals = set()
        if ordinal <= self.model.floor:
            refusals.add(FLOOR)
        if mode is PrimMode.INSERT and any(map(self.model.exists, touched)):
            refusals.add(ErrorCode.PRIM_NOT_FOUND)
        if refusals:
            assert op.status in refusals, (op, refusals)
            return
        op.wait()
        passed = {prim for prim in touched if mode is PrimMode.UPDATE and not self.model.exists(prim)}
        for name, payload in payloads.items():
            for i, value in payload.values.items():
                if prims[i] not in passed:
                    self.model.set(name, prims[i], ordinal, value)

    def delete(self, prims: list[int], names: list[str], steps: int) -> None:
        if not names and steps <= 0:
            return  # judged by what the prims have: see test_deletes.py
        table, ordinal = self.table(prims), self.after(steps)
        op = self.stage.delete_attributes(table.query, names, ordinal)
        table.close()
        if ordinal <= self.model.floor:
            assert op.status == FLOOR
            return
        op.wait()
        for name in names or NAMES:
            for prim in prims:
                if self.model.at(name, prim, ordinal) is not GONE:
                    self.model.set(name, prim, ordinal, GONE)

    def map(self, prims: list[int], name: str, steps: int, mode: PrimMode, initial: str, seed: int) -> None:
        ordinal, rng = self.after(steps), np.random.default_rng(seed)
        sizes = rng.integers(4, size=len(prims)).astype("u8") if name in ARRAYS else None
        table = self.table(prims)
        mapping = self.stage.map_attribute(
            table.query, name, ordinal, prim_mode=mode, dtype=TYPES[name], element_sizes=sizes, initial=initial,
            group_rows=int(rng.integers(1, 4)) if seed % 2 else None,
        )  # fmt: skip
        table.close()
        refusals = {FLOOR} if ordinal <= self.model.floor else set()
        if mode is PrimMode.INSERT and any(map(self.model.exists, prims)):
            refusals.add(ErrorCode.PRIM_NOT_FOUND)
        if refusals:
            assert mapping.op.status in refusals
            return
        expected = [at for at, prim in enumerate(prims) if mode is not PrimMode.UPDATE or self.model.exists(prim)]
        groups, lent = [], []
        for group in mapping.groups():
            assert group.prim_count == group.data_count
            lent += group.prim_indices().tolist()
            groups.append((group, *self.fill(group, prims, name, ordinal, sizes, initial, rng)))
        assert lent == expected
        self.maps.append((mapping, name, ordinal, groups))

    def fill(
        self, group: Any, prims: list[int], name: str, ordinal: int, sizes: Any, initial: str, rng: np.random.Generator
    ) -> tuple[dict[int, bytes], list[Any]]:
        """Write to some of a group's rows. What it commits then, and views of it, which may stay behind."""
        values, views, width = {}, [], TYPES[name].lanes * element(name).itemsize
        for local in range(group.prim_count):
            at, row = group.prim_index(local), group.data_row_index(local)
            lent = group.array(row) if name in ARRAYS else group.array(0, shaped=True)[row]
            size = width * (1 if sizes is None else int(sizes[at]))
            assert lent.nbytes == size
            before = (self.model.at(name, prims[at], ordinal) or b"") if initial == "current" else b""
            assert initial == "discard" or lent.tobytes() == before[:size].ljust(size, b"\0")
            if rng.integers(4) or initial == "discard":
                lent.reshape(-1).view("u1")[:] = rng.integers(256, size=size, dtype="u1")  # a view, whatever the axes
            values[prims[at]] = lent.tobytes()
            views.append(lent)
        return values, views if rng.integers(2) else []

    def commit(self, seed: int) -> None:
        """One group of a map that goes on."""
        if not self.maps:
            return
        mapping, name, ordinal, groups = self.maps[seed % len(self.maps)]
        if groups:
            one = groups[seed % len(groups)]
            if self.committed(mapping.unmap_group(one[0]), name, ordinal, [one]):
                groups.remove(one)

    def unmap(self, seed: int) -> None:
        if self.maps:
            mapping, name, ordinal, groups = self.maps.pop(seed % len(self.maps))
            self.committed(mapping.unmap(), name, ordinal, groups)

    def committed(self, op: Any, name: str, ordinal: int, groups: list[Any]) -> bool:
        if groups and ordinal <= self.model.floor:
            try:
                op.wait()
            except OvstageError as error:
                assert error.code == FLOOR  # noqa: PT017
                return False
            raise AssertionError("a map was committed below the floor")
        op.wait()
        for _, values, views in groups:
            for prim, value in values.items():
                self.model.set(name, prim, ordinal, value)
            for view in views:
                view.view("u1")[:] = 0xAA  # what is left of the buffer is not the column's any more
        return True

    def abort(self, seed: int) -> None:
        if self.maps:
            self.maps.pop(seed % len(self.maps))[0].abort()

    def seal(self, steps: int) -> None:
        ordinal = self.after(steps)
        self.stage.advance_write_floor(ordinal).wait()
        self.model.floor = ordinal

    def read(self, prims: list[int], steps: int) -> None:
        end = self.after(steps)
        self.compare(prims, OrdinalRange.latest(end), self.model.latest(prims, end))

    def changes(self, prims: list[int], one: int, other: int) -> None:
        start, end = sorted((self.after(one), self.after(other)))
        self.compare(prims, OrdinalRange.between(start, end), self.model.changes(prims, start, end))

    def compare(self, prims: list[int], span: OrdinalRange, expected: Any) -> None:
        """Once by groups, once by columns."""
        table = self.table(prims)
        try:
            assert by_groups(table, span) == expected
            assert by_columns(table, span) == expected
        except OvstageError as error:
            assert error.code == expected, error  # noqa: PT017
        table.close()

    def hold(self, prims: list[int]) -> None:
        table = self.table(prims)
        for name in NAMES:
            for group in table.groups(name, self.model.floor):
                arrays = [group.array(i) for i in range(group.tensor_count)]
                self.held.append((group, arrays, [array.tobytes() for array in arrays]))
        table.close()

    def end(self) -> None:
        """Seal one ordinal after the other, and give everything back."""
        everything = list(range(PRIMS))
        while self.maps:
            self.unmap(0)
        while self.model.floor < self.last:
            self.seal(1)
            self.read(everything, 0)
            self.changes(everything, 0, 0)
        self.changes(everything, -self.last, 0)
        for group, arrays, then in self.held:
            assert [array.tobytes() for array in arrays] == then
            group.release()
        counters = self.stage.counters()
        live = {name: n for name, n in counters.items() if name.startswith("live_") and name != "live_blocks" and n}
        assert live == {}


def by_groups(table: Table, span: OrdinalRange) -> dict[tuple[str, int], bytes | None]:
    found: dict[tuple[str, int], bytes | None] = {}
    tokens = {table.token(name): name for name in NAMES}
    with table.stage.read_attributes(table.query, list(tokens), span) as read:
        read.wait()
        for group in read.groups():
            with group:
                name = tokens[group.attribute]
                for local in range(group.prim_count):
                    key = name, group.prim_index(local)
                    assert key not in found
                    if group.is_delete:
                        found[key] = GONE
                        continue
                    row = group.data_row_index(local)
                    value = group.array(row) if group.is_array else group.array(0, shaped=True)[row]
                    found[key] = value.tobytes()
    return found


def by_columns(table: Table, span: OrdinalRange) -> dict[tuple[str, int], bytes | None]:
    found: dict[tuple[str, int], bytes | None] = {}
    for name, column in table.stage.read(table.query, NAMES, span).items():
        assert not (column.valid & column.deleted).any()
        found |= {(str(name), int(i)): column.row(i).tobytes() for i in np.flatnonzero(column.valid)}
        found |= {(str(name), int(i)): GONE for i in np.flatnonzero(column.deleted)}
    return found


@pytest.mark.parametrize("level", ["0.2", "0.3"])
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(program=st.lists(steps, min_size=10, max_size=40), keeps=st.sampled_from([0, 0, 1, 2, 3, 100]))
def test_programs_agree_with_the_model(program, keeps, level):
    config = ovstage.StageConfig(history_ordinals=keeps, interface=level)
    with ovstage.Stage(config=config) as stage, ovstage.PathDictionary(stage) as names:
        play = Play(stage, names, keeps)
        for what, *arguments in program:
            getattr(play, what)(*arguments)
        play.end()
