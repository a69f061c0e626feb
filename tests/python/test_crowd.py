"""Sixteen threads on one stage with every kind of call, and the pattern of one producer and one consumer."""

from __future__ import annotations

import gc
import itertools
import random
import threading

import numpy as np
import pytest
from test_threads import together

from ovstage import (
    DLDataType,
    ErrorCode,
    Filter,
    FilterOp,
    OrdinalRange,
    OvstageError,
    Predicate,
    Stage,
    WriteDesc,
)

THREADS = 16


class Crowd:
    """What 16 threads do to one stage. Each owns some prims, all share the columns, the ordinals and the floor.

    A thread writes the same number into all of its rows, so that whoever reads them sees one number, whole.
    """

    ROWS = 20

    def __init__(self, make_table, count):
        self.tables = [make_table([f"/World/T{at}/P{i}" for i in range(self.ROWS)]) for at in range(count)]
        self.everyone = make_table([path for table in self.tables for path in table.paths])
        self.stage, self.names = self.everyone.stage, self.everyone.names
        self.x, self.a = self.everyone.token("x"), self.everyone.token("a")
        self.ordinals = itertools.count(1)
        self.kept = [{"x": None, "a": None} for _ in range(count)]

    def act(self, number, kind, value):
        """One call; its ordinal may have been sealed by another thread meanwhile, which refuses it and nothing else."""
        try:
            getattr(self, kind)(number, self.tables[number], next(self.ordinals), value)
        except OvstageError as error:
            if error.code != ErrorCode.WRITE_FLOOR_VIOLATION:
                raise

    KINDS = (
        "write",
        "write_arrays",
        "write_batch",
        "write_rows",
        "write_transferred",
        "fill",
        "drop_map",
        "delete",
        "seal",
        "read_groups",
        "read_all",
        "read_changes",
        "filter",
        "floors",
        "intern",
        "other_stage",
        "count",
        "cancel",
    )

    def write(self, number, table, ordinal, value):
        table.write("x", np.full((self.ROWS, 3), value, "f4"), ordinal)
        self.kept[number]["x"] = value

    def write_arrays(self, number, table, ordinal, value):
        table.write("a", [np.full(i % 4, value, "i4") for i in range(self.ROWS)], ordinal, is_array=True)
        self.kept[number]["a"] = value

    def write_batch(self, number, table, ordinal, value):
        writes = [
            WriteDesc("x", np.full((self.ROWS, 3), value, "f4"), False),
            WriteDesc("a", [np.full(i % 4, value, "i4") for i in range(self.ROWS)], True),
        ]
        self.stage.write_attributes(table.query, writes, ordinal).wait()
        self.kept[number] = {"x": value, "a": value}

    def write_rows(self, number, table, ordinal, value):
        table.write("x", np.full((1, 3), value, "f4"), ordinal, index_map=[0] * self.ROWS)
        self.kept[number]["x"] = value

    def write_transferred(self, number, table, ordinal, value):
        table.write("x", np.full((self.ROWS, 3), value, "f4"), ordinal, transfer=True)
        self.kept[number]["x"] = value

    def fill(self, number, table, ordinal, value):
        with self.stage.map_attribute(table.query, "x", ordinal, dtype=DLDataType(2, 32, 3)) as mapping:
            mapping.wait()
            for group in mapping.groups():
                group.array(0)[:] = value
        self.kept[number]["x"] = value

    def drop_map(self, number, table, ordinal, value):
        mapping = self.stage.map_attribute(table.query, "x", ordinal, dtype=DLDataType(2, 32, 3))
        mapping.wait()
        mapping.fetch_next().array(0)[:] = -1
        mapping.abort()

    def delete(self, number, table, ordinal, value):
        self.stage.delete_attributes(table.query, ["x", "a"], ordinal).wait()
        self.kept[number] = {"x": None, "a": None}

    def seal(self, number, table, ordinal, value):
        self.stage.advance_write_floor(max(ordinal - 100, 0)).wait()

    def read_groups(self, number, table, ordinal, value):
        mine = self.tables[value % len(self.tables)]
        with self.stage.read_attributes(mine.query, [self.x], OrdinalRange.latest(ordinal)) as read:
            read.wait()
            seen = set()
            for group in read.groups():
                with group:
                    rows = np.from_dlpack(group.dlpack(0))[group.data_rows()]
                seen |= set(rows.ravel().tolist())
            assert len(seen) <= 1

    def read_all(self, number, table, ordinal, value):
        for column in self.stage.read(self.everyone.query, ["x"], ordinal).values():
            for rows in column.values.reshape(-1, self.ROWS * 3):
                assert (rows == rows[0]).all()

    def read_changes(self, number, table, ordinal, value):
        with self.stage.read_attributes(table.query, [self.x, self.a], OrdinalRange.between(1, ordinal)) as read:
            if read.op.ok:
                for group in read.groups():
                    group.release()
            else:
                assert read.op.status in (ErrorCode.WRITE_FLOOR_VIOLATION, ErrorCode.OUT_OF_RANGE)

    def filter(self, number, table, ordinal, value):
        with self.stage.query(Filter([Predicate("usd-path", FilterOp.PREFIX, [f"/World/T{number}/"])])) as query:
            assert query.result().total_prim_count in (0, self.ROWS)

    def floors(self, number, table, ordinal, value):
        with self.stage.get_oldest_preserved_ordinal() as oldest, self.stage.get_attribute_write_floor("x") as floor:
            assert oldest.fetch() <= floor.fetch() < next(self.ordinals)

    def intern(self, number, table, ordinal, value):
        word = f"name{value % 1000}"
        token = self.names.intern_token(word)
        assert self.names.token_to_string(token) == word
        with self.names.create_path_list_from_strings([f"/Names/{word}"]) as paths:
            assert self.names.get_path_strings(paths) == [f"/Names/{word}"]

    def other_stage(self, number, table, ordinal, value):
        with Stage("other") as other, other.query_from_path_list(table.list) as query:
            other.write_attribute(query, "x", 1, np.zeros(self.ROWS), is_array=False).wait()

    def count(self, number, table, ordinal, value):
        assert self.stage.counters()["bytes_columns"] >= 0

    def cancel(self, number, table, ordinal, value):
        op = self.stage.write_attribute(table.query, "x", ordinal, np.zeros(3), is_array=False)
        with pytest.raises(OvstageError, match='"x"'):
            op.wait()
        assert op.done()


@pytest.mark.parametrize("rounds", [25, pytest.param(1500, marks=pytest.mark.slow)])
def test_every_kind_of_call_from_every_thread(make_table, rounds):
    crowd = Crowd(make_table, THREADS)
    seed = random.randrange(2**32)

    def work(number):
        dice = random.Random(seed + number)
        for at in range(rounds):
            kind = dice.choice(Crowd.KINDS) if at >= len(Crowd.KINDS) else Crowd.KINDS[(at + number) % len(Crowd.KINDS)]
            crowd.act(number, kind, number + THREADS * at)

    together(work, THREADS)
    last = next(crowd.ordinals)
    crowd.everyone.seal(last)
    for table, kept in zip(crowd.tables, crowd.kept, strict=True):
        x, a = kept["x"], kept["a"]
        assert table.read("x", last) == [None if x is None else [x] * 3] * Crowd.ROWS, seed
        assert table.read("a", last) == [None if a is None else [a] * (i % 4) for i in range(Crowd.ROWS)], seed
    gc.collect()
    counters = crowd.stage.counters()
    for name in ("live_groups", "live_reads", "live_maps", "live_operations", "live_exports"):
        assert counters[name] == 0, name


def test_producer_and_consumer_never_see_a_rejection(make_table):
    """The producer writes and seals tick after tick; the consumer holds on to what it reads for a while."""
    table = make_table(2000)
    stage, token, ticks = table.stage, table.token("x"), 300
    sealed, failures = threading.Event(), []

    def produce():
        for ordinal in range(1, ticks + 1):
            for op in (
                stage.write_attribute(table.query, token, ordinal, np.full((2000, 3), ordinal, "f4"), is_array=False),
                stage.advance_write_floor(ordinal),
            ):
                if not op.ok:
                    failures.append(op.error_message())
                op.wait()
            sealed.set()

    producer = threading.Thread(target=produce)
    producer.start()
    sealed.wait()
    held, last = [], 0
    while last < ticks:
        with stage.read_attributes(table.query, [token], OrdinalRange.latest(2**64 - 1)) as read:
            read.wait()
            for group in read.groups():
                values = group.array(0).ravel()
                assert values.min() == values.max() >= last
                last = int(values[0])
                held.append(group)
        while len(held) > 5:
            held.pop(0).release()
    for group in held:
        group.release()
    producer.join()
    assert not failures
