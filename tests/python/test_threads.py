"""Calls from many threads at once."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ovstage import ErrorCode, OrdinalRange, OvstageError, OvxError, Scope, make_dltensor

THREADS = 8


def together(work, count=THREADS):
    """Run `work(number)` on several threads that start at the same moment; the first exception is raised here."""
    start = threading.Barrier(count)

    def one(number):
        start.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


class Meddling:
    """The token of an attribute, which costs the caller of a write its descriptor's memory."""

    def __init__(self, token, meddle):
        self.token, self.meddle = token, meddle

    def __index__(self):
        self.meddle()
        return self.token


@pytest.mark.parametrize("transfer", [False, True])
def test_descriptor_that_loses_its_memory_during_the_write(make_table, transfer):
    table, rows = make_table(1000), 1000
    tensor = make_dltensor(np.full((rows, 64), 7, "f4"))

    def meddle():
        tensor._owner = None
        tensor.shape = (ctypes.c_int64 * 2)(1, 1)
        gc.collect()
        np.full((rows, 64), 9, "f4")  # takes the memory that was free

    token = Meddling(table.token("wide"), meddle)
    table.stage.write_attribute(table.query, token, 1, tensor, is_array=False, transfer=transfer).wait()
    table.seal(1)
    with table.group("wide", 1) as group:
        assert group.array(0, shaped=True).shape == (rows, 64)
        assert (group.array(0) == 7).all()


def test_descriptor_that_another_thread_lays_out_anew(make_table):
    table = make_table(3)
    tensor, done = make_dltensor(np.ones((3, 3), "f4")), threading.Event()

    def lay_out():
        while not done.is_set():
            tensor.shape = (ctypes.c_int64 * 2)(3, 3)
            tensor.strides = (ctypes.c_int64 * 2)(3, 1)

    other = threading.Thread(target=lay_out)
    other.start()
    try:
        for ordinal in range(1, 2000):
            table.write("wide", tensor, ordinal)
    finally:
        done.set()
        other.join()
    table.seal(1999)
    assert table.read("wide", 1999) == [[1, 1, 1]] * 3


def test_writers_of_different_columns(make_table):
    table = make_table(100)

    def write(number):
        for ordinal in range(1, 40):
            table.write(f"column{number}", np.full(100, number * 1000 + ordinal, "i4"), ordinal)

    together(write)
    table.seal(39)
    for number in range(THREADS):
        assert table.read(f"column{number}", 39) == [number * 1000 + 39] * 100


def test_writers_of_one_column(make_table):
    tables = [make_table([f"/World/T{number}/P{i}" for i in range(50)]) for number in range(THREADS)]

    def write(number):
        for ordinal in range(1, 40):
            tables[number].write("shared", np.full(50, number * 1000 + ordinal, "i4"), ordinal)

    together(write)
    tables[0].seal(39)
    for number, table in enumerate(tables):
        assert table.read("shared", 39) == [number * 1000 + 39] * 50


def test_writers_that_give_their_memory_away(make_table):
    """Each array dies when its column has moved on, whichever thread drops the last view of it."""
    table, alive = make_table(500), []
    views = [None] * THREADS

    class Array(np.ndarray):
        pass

    def write(number):
        name = f"column{number}"
        for ordinal in range(1, 60):
            memory = np.empty(2000 + 64, "u1")
            start = -memory.ctypes.data % 64
            array = memory[start : start + 2000].view("i4").view(Array)
            array[:] = number * 1000 + ordinal
            alive.append(weakref.ref(array))
            table.stage.write_attribute(table.query, name, ordinal, array, is_array=False, transfer=True).wait()
            table.stage.advance_write_floor(ordinal, Scope.INCLUDE, [table.token(name)]).wait()
            column = table.stage.read(table.query, [name], ordinal)[name]
            assert (column.values == number * 1000 + ordinal).all()
            views[(number + ordinal) % THREADS] = column.values

    together(write)
    table.seal(59)
    for number in range(THREADS):
        assert table.read(f"column{number}", 59) == [number * 1000 + 59] * 500
    views.clear()
    gc.collect()
    table.stage.counters()
    assert sum(ref() is not None for ref in alive) <= 2 * THREADS


def test_arrays_beside_readers_and_deletes(make_table):
    table = make_table(50)
    token = table.token("a")

    def work(number):
        for ordinal in range(1, 60):
            if number == 0:
                rows = [np.full(i % 5, ordinal, "i4") for i in range(50)]
                table.write("a", rows, ordinal, is_array=True)
                table.seal(ordinal)
                continue
            if number == 1 and ordinal % 10 == 0:
                table.stage.delete_attributes(table.query, ["b"], 1000 + ordinal).wait()
                continue
            with table.stage.read_attributes(table.query, [token], OrdinalRange.latest(2**64 - 1)) as read:
                if not read.op.ok:
                    continue  # written for the first time, and not sealed yet
                for column in read.to_numpy().values():
                    assert len(set(column.values.tolist())) <= 1
                    assert np.diff(column.offsets).tolist() == [i % 5 for i in range(50)]

    together(work, 4)
    assert table.read("a", 59) == [[59] * (i % 5) for i in range(50)]


def test_readers_beside_a_writer_see_whole_ticks(make_table):
    table = make_table(500)
    token = table.token("x")
    table.write("x", np.zeros(500, "i4"), 1)
    table.seal(1)
    done = threading.Event()

    def work(number):
        if number == 0:
            for ordinal in range(2, 200):
                table.write("x", np.full(500, ordinal, "i4"), ordinal)
                table.seal(ordinal)
            done.set()
            return 0
        seen, last = 0, 0
        while not done.is_set():
            with table.stage.read_attributes(table.query, [token], OrdinalRange.latest(2**64 - 1)) as read:
                for group in read.groups():
                    with group:
                        values = group.array(0)
                        assert (values == values[0]).all()
                        assert values[0] >= last
                        last = int(values[0])
                        seen += 1
        return seen

    assert sum(together(work, 4)) > 0
    assert table.read("x", 200) == [199] * 500


def test_one_read_shows_one_tick_of_several_attributes(make_table):
    """Two threads write an attribute each, a third one an array column in halves; a tick is sealed when all are in."""
    table, halves = make_table(400), [make_table([f"/World/Prim{i}" for i in range(k, 400, 2)]) for k in range(2)]
    names, ticks = ["x", "y", "a"], 120
    tokens = [table.token(name) for name in names]
    written, sealed, done = threading.Barrier(3, timeout=60), threading.Barrier(3, timeout=60), threading.Event()

    def tick(number, ordinal):
        if number < 2:
            table.write(names[number], np.full((400, 3), ordinal, "f4"), ordinal)
        for half in halves if number == 2 else ():
            half.write("a", [np.full(ordinal % 4 + 1, ordinal, "i4")] * 200, ordinal, is_array=True)
        if written.wait() == 0:
            table.seal(ordinal)
        sealed.wait()

    for ordinal in (1, 2, 3):  # buffers of their later sizes
        together(lambda number, ordinal=ordinal: tick(number, ordinal), 3)
    before = table.stage.counters()

    def work(number):
        if number < 3:
            try:
                for ordinal in range(4, ticks):
                    tick(number, ordinal)
            finally:
                done.set()
            return 0
        seen, held = 0, []
        while not done.is_set():
            with table.stage.read_attributes(table.query, tokens, OrdinalRange.latest(2**64 - 1)) as read:
                groups = list(read.groups())
            assert {group.attribute for group in groups} == set(tokens)
            shown = {
                int(value) for group in groups for i in range(group.tensor_count) for value in group.array(i).flat[:1]
            }
            assert len(shown) == 1, "one read, one tick"
            held.append((groups, shown))
            seen += 1
            if len(held) > 3:  # what was read three reads ago is still what it was
                groups, shown = held.pop(0)
                assert {
                    int(value) for group in groups for i in range(group.tensor_count) for value in group.array(i).flat
                } == shown
                for group in groups:
                    group.release()
        for groups, _ in held:
            for group in groups:
                group.release()
        return seen

    assert sum(together(work, 5)) > 0
    after = table.stage.counters()
    assert (after["live_groups"], after["live_reads"]) == (0, 0)
    assert after["bytes_columns"] <= 3 * before["bytes_columns"]


def test_maps_on_many_threads(make_table):
    tables = [make_table([f"/World/T{number}/P{i}" for i in range(50)]) for number in range(THREADS)]
    for table in tables:
        table.write("x", np.zeros(50, "i4"), 1)
    tables[0].seal(1)

    def work(number):
        table = tables[number]
        for ordinal in range(2, 30):
            with table.stage.map_attribute(table.query, "x", ordinal) as mapping:
                mapping.fetch_next().array(0)[:] = number * 1000 + ordinal

    together(work)
    tables[0].seal(29)
    for number, table in enumerate(tables):
        assert table.read("x", 29) == [number * 1000 + 29] * 50
    assert tables[0].stage.counters()["live_maps"] == 0


def test_names_from_many_threads(names):
    def intern(number):
        return names.intern_tokens([f"name{i}" for i in range(500)]), names.intern_paths([f"/P{i}" for i in range(500)])

    results = together(intern)
    assert all(result == results[0] for result in results)


def test_one_reference_is_given_back_once(stage, names):
    before = len(stage._path_list_refs)
    for _ in range(50):
        path_list = names.create_path_list_from_strings(["/A"])

        def release(number, path_list=path_list):
            try:
                path_list.release()
            except OvxError:
                return 0
            return 1

        assert sum(together(release, 4)) == 1
    assert len(stage._path_list_refs) == before


@pytest.mark.parametrize("kind", ["query", "read", "group", "map", "operation"])
def test_one_handle_ends_once(table, kind):
    table.write("mass", np.float32([1, 2]), 1)
    table.seal(1)
    stage, token = table.stage, table.token("mass")
    for ordinal in range(2, 22):
        read = stage.read_attributes(table.query, [token], OrdinalRange.latest(1))
        query = stage.query_from_path_list(table.list)
        group, mapping = read.fetch_next(), stage.map_attribute(table.query, token, ordinal)
        op = stage.write_attribute(table.query, "mass", ordinal, np.float32([1, 2]), is_array=False)
        ends = {
            "query": lambda query=query: query.release().wait(),
            "read": lambda read=read: read.release().wait(),
            "group": group.release,
            "map": lambda mapping=mapping: mapping.unmap().wait(),
            "operation": op.wait,
        }
        end = ends.pop(kind)

        def once(number, end=end):
            try:
                end()
            except OvstageError as error:
                return error.code
            return ErrorCode.OK

        invalid = ErrorCode.INVALID_HANDLE
        assert sorted(together(once, 4)) == [ErrorCode.OK, invalid, invalid, invalid]
        for other in ends.values():
            other()
    gc.collect()
    counters = stage.counters()
    assert [counters[name] for name in ("live_groups", "live_reads", "live_maps", "live_operations")] == [0, 0, 0, 0]


def test_views_die_on_any_thread(make_table):
    table = make_table(1000)
    table.write("x", np.arange(1000, dtype="i4"), 1)
    table.seal(1)

    def work(number):
        for _ in range(100):
            with table.group("x", 1) as group:
                views = [group.array(0), np.from_dlpack(group.dlpack(0)), group.tensor(0)]
            assert views[0].sum() == views[1].sum()

    together(work)
    gc.collect()
    assert table.stage.counters()["live_exports"] == 0


def test_destroy_beside_calls(fresh_python):
    """Destroying a stage while others use it ends their calls with an error, never with a crash."""
    program = """
import threading, numpy as np, ovstage
for _ in range(30):
    stage = ovstage.Stage()
    names = ovstage.PathDictionary(stage)
    prims = names.create_path_list_from_strings(["/A", "/B"])
    query = stage.query_from_path_list(prims)
    started = threading.Barrier(4)

    def work():
        started.wait()
        ordinal = 0
        try:
            while True:
                ordinal += 1
                stage.write_attribute(query, "mass", ordinal, np.float32([1, 2]), is_array=False).wait()
        except ovstage.OvstageError as error:
            assert error.code in (ovstage.ErrorCode.INVALID_HANDLE,), error

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    started.wait()
    stage.destroy()
    for thread in threads:
        thread.join()
print("done")
"""
    done = fresh_python(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
