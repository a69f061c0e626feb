"""What a client repeats for ever costs no more the ten thousandth time than the first."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import GONE

import ovstage
from ovstage import DLDataType, Filter, FilterOp, OrdinalRange, OvstageError, Predicate, WriteDesc

ROWS = 256


def held(stage: ovstage.Stage) -> int:
    """The memory of the stage's columns."""
    return stage.counters()["bytes_columns"]


def soak(step: Callable[[int], None], size: Callable[[], int], *, warm: int = 300, slack: int = 0) -> None:
    """Ten times as many steps as before change nothing."""
    for k in range(warm):
        step(k)
    most = 0
    for k in range(warm, 2 * warm):
        step(k)
        most = max(most, size())
    for k in range(2 * warm, 10 * warm):
        step(k)
    assert size() <= most + slack


# --- writes that nobody seals ---


def masks(count: int, seed: int) -> Iterator[list[int]]:
    random_ = random.Random(seed)
    for _ in range(count):
        yield [random_.getrandbits(64) for _ in range(ROWS // 64)]


def test_masked_writes_at_one_ordinal(make_table):
    table = make_table(ROWS)
    values, expected = np.zeros((ROWS, 3), "f4"), np.zeros((ROWS, 3), "f4")
    bits = np.arange(ROWS)
    most = 0
    table.write("a", values, 7)
    for k, mask in enumerate(masks(2000, 1)):
        values[:] = k
        chosen = (np.array(mask, np.uint64)[bits // 64] >> (bits % 64).astype(np.uint64)) & 1 == 1
        expected[chosen] = k
        table.write("a", values, 7, mask=mask, count=ROWS)
        most = max(most, held(table.stage))
    assert most < 64 << 10
    table.seal(7)
    with table.group("a", 7) as group:
        assert (group.array(0, shaped=True) == expected).all()


def test_masked_writes_at_many_ordinals(make_table):
    """Every ordinal keeps what it shows, and no more than a few times as much."""
    table, ordinals = make_table(ROWS), range(1, 11)
    table.write("a", np.zeros((ROWS, 3), "f4"), 1)
    for k, mask in enumerate(masks(3000, 2)):
        table.write("a", np.full((ROWS, 3), k, "f4"), ordinals[k % 10], mask=mask, count=ROWS)
    assert held(table.stage) < len(ordinals) * (64 << 10)
    bits, expected = np.arange(ROWS), np.zeros(ROWS)
    for ordinal in ordinals:
        for k, mask in enumerate(masks(3000, 2)):
            if ordinals[k % 10] == ordinal:
                chosen = (np.array(mask, np.uint64)[bits // 64] >> (bits % 64).astype(np.uint64)) & 1 == 1
                expected[chosen] = k
        table.seal(ordinal)
        with table.group("a", ordinal) as group:
            assert (group.array(0, shaped=True)[:, 0] == expected).all()


def test_arrays_rewritten_at_one_ordinal(make_table):
    table = make_table(ROWS)
    arrays = [np.zeros(100, "f4") for _ in range(ROWS)]
    soak(
        lambda k: table.write("a", arrays, 7, is_array=True, mask=[k % 255 + 1] * 4, count=ROWS),
        lambda: held(table.stage) // (1 << 20),
    )
    assert held(table.stage) < 8 * ROWS * 400


def test_deletes_and_rewrites_at_one_ordinal(make_table):
    table = make_table(ROWS)

    def step(k: int) -> None:
        table.write("a", np.full(ROWS, k, "f4"), 7, mask=[k | 1] * 4, count=ROWS)
        table.stage.delete_attributes(table.query, ["a"], 7).wait()

    soak(step, lambda: held(table.stage) >> 16)
    table.write("a", np.ones(ROWS, "f4"), 7)
    table.seal(7)
    assert table.read("a", 7) == [1] * ROWS


@pytest.mark.parametrize("initial", ["current", "zero", "discard"])
def test_maps_that_commit_at_one_ordinal(make_table, initial):
    table, part = make_table(ROWS), make_table([f"/World/Prim{i}" for i in range(1, ROWS, 2)])

    def step(k: int) -> None:
        of = (table, part)[k % 2]
        with of.stage.map_attribute(of.query, "a", 7, dtype=DLDataType(2, 32, 1), initial=initial) as session:
            for group in session.groups():
                group.array(0)[:] = k

    soak(step, lambda: held(table.stage) >> 14)
    table.seal(7)
    assert table.read("a", 7) == [2998 + i % 2 for i in range(ROWS)]


# --- reads, maps and lists ---


def test_lists_that_are_new_with_every_tick(stage, names, make_table):
    """Random rows of a column, in a list that is made for each write."""
    column, random_, token = make_table(ROWS), random.Random(3), names.intern_token("a")
    column.write("a", np.zeros(ROWS), 1)
    column.seal(1)

    def step(k: int) -> None:
        paths = [f"/World/Prim{i}" for i in random_.sample(range(ROWS), 100)]
        with names.create_path_list_from_strings(paths) as list_, stage.query_from_path_list(list_) as query:
            stage.write_attribute(query, token, k + 2, np.full(100, k, "f8"), is_array=False).wait()
            stage.advance_write_floor(k + 2).wait()
            with stage.read_attributes(query, [token], OrdinalRange.latest(k + 2)) as read, read.fetch_next() as group:
                assert group.prim_count == 100

    soak(step, lambda: held(stage))


def test_reads_maps_and_failures_that_are_released(table):
    """Snapshots, sessions, their aborts, ordinal queries and failed operations leave nothing."""
    stage, query = table.stage, table.query
    table.write("a", np.zeros(2), 1)
    table.seal(1)
    live = [name for name in stage.counters() if name.startswith("live_")]

    def step(k: int) -> None:
        assert table.read("a", 1) == [0, 0]
        stage.map_attribute(query, "a", 2).abort()
        with pytest.raises(ZeroDivisionError), stage.map_attribute(query, "a", 2) as session:
            session.fetch_next().array(0)[:] = 1 / 0
        with pytest.raises(OvstageError):
            table.write("a", np.zeros(2), 1)
        with stage.get_oldest_preserved_ordinal() as oldest:
            assert oldest.fetch() == 0

    soak(step, lambda: held(stage) + sum(stage.counters()[name] for name in live), warm=100)


# --- names that nothing shows any more ---


def test_attributes_that_were_deleted_again(table):
    """Their columns go; what a prim costs follows what it carries."""
    table.write("stays", np.ones(2), 1)
    table.seal(1)
    stage, query, ordinal = table.stage, table.query, 1

    def step(k: int) -> None:
        nonlocal ordinal
        ordinal += 1
        table.write(f"t{k}", np.zeros(2), ordinal)
        table.seal(ordinal)
        ordinal += 1
        stage.delete_attributes(query, [f"t{k}"], ordinal).wait()
        table.seal(ordinal)

    soak(step, lambda: held(stage))
    assert list(query.result().attributes) == [table.token("stays")]
    assert table.changes("t2999", ordinal, ordinal) == {0: GONE, 1: GONE}
    with stage.get_oldest_preserved_ordinal() as oldest:
        assert 0 < oldest.fetch() < ordinal
    assert table.read("stays", ordinal) == [1, 1]


def test_prims_that_come_and_go(stage, names):
    ordinal = 0

    def step(k: int) -> None:
        nonlocal ordinal
        with names.create_path_list_from_strings([f"/Spawn{k}"]) as list_, stage.query_from_path_list(list_) as query:
            ordinal += 1
            stage.write_attribute(query, "a", ordinal, np.ones(1), is_array=False).wait()
            stage.write_attribute(query, "b", ordinal, [np.ones(k % 5)], is_array=True).wait()
            stage.advance_write_floor(ordinal).wait()
            ordinal += 1
            stage.delete_attributes(query, [], ordinal).wait()
            stage.advance_write_floor(ordinal).wait()

    soak(step, lambda: held(stage), warm=600)


def interned() -> int:
    """Blocks of memory: texts take one for each MiB, paths one for some thousand."""
    return ovstage.process_counters()["live_blocks"]


def test_a_hundred_thousand_spawns_under_paths_of_their_own(stage, names):
    """What nothing names goes when it is told to: the lists, their prims, and in time the log of who was deleted."""
    ordinal = 0

    def step(k: int) -> None:
        nonlocal ordinal
        paths = [f"/World/Env{k % 7}/spawned_{k}_{i}/{'long' * (k % 5)}_{k}" for i in range(20)]
        with names.create_path_list_from_strings(paths) as list_, stage.query_from_path_list(list_) as query:
            ordinal += 1
            stage.write_attribute(query, "a", ordinal, np.ones(20), is_array=False).wait()
            stage.advance_write_floor(ordinal).wait()
            ordinal += 1
            stage.delete_attributes(query, [], ordinal).wait()
            stage.advance_write_floor(ordinal).wait()
        if k % 250 == 0:
            names.compact()

    soak(step, interned, warm=1000, slack=8)


def test_a_hundred_thousand_lists_of_fresh_paths(names):
    def step(k: int) -> None:
        names.create_path_list_from_strings([f"/Fresh{k}/{i}" for i in range(100)]).release()
        if k % 50 == 0:
            names.compact()

    soak(step, interned, warm=200, slack=2)


# --- names and paths that only refused calls have used ---


REFUSED = {
    "write": lambda t, name: t.stage.write_attribute(t.query, name, 1, np.zeros(2), is_array=False),
    "wrong shape": lambda t, name: t.stage.write_attribute(t.query, name, 9, np.zeros(3), is_array=False),
    "batch": lambda t, name: t.stage.write_attributes(
        t.query, [WriteDesc(name + end, np.zeros(2), False) for end in "ab"] + [WriteDesc("x", np.zeros(9), False)], 9
    ),
    "type name": lambda t, name: t.stage.write_attribute(t.query, "x", 1, np.zeros(2), is_array=False, type_name=name),
    "map": lambda t, name: t.stage.map_attribute(t.query, name, 1, dtype=DLDataType(2, 32, 1)).op,
    "delete": lambda t, name: t.stage.delete_attributes(t.query, [name], 1),
    "filter": lambda t, name: t.stage.query(Filter([Predicate(name, FilterOp.LT, ["1", "2"])])).op,
    "clone": lambda t, name: t.stage.clone_async("/World/Prim0", ["/" + name], 1),
    "clone of nothing": lambda t, name: t.stage.clone_async("/Nowhere", ["/" + name], 9),
    "clone onto something": lambda t, name: t.stage.clone_async("/World/Prim0", ["/World/Prim1", "/" + name], 9),
}


@pytest.mark.parametrize("call", REFUSED)
def test_names_of_refused_calls_go_again(table, call):
    table.write("x", np.ones(2), 1)
    table.seal(5)

    def step(k: int) -> None:
        with pytest.raises(OvstageError):
            REFUSED[call](table, f"fresh {k} " + "x" * 2000).wait()

    soak(step, interned, warm=400)


def test_names_that_are_only_asked_for(table):
    """Nothing is interned for a delete that finds nothing, or for the floor of a name that nobody wrote."""
    table.write("x", np.ones(2), 1)

    def step(k: int) -> None:
        name = f"unknown {k} " + "x" * 2000
        table.stage.delete_attributes(table.query, [name], 9).wait()
        with table.stage.get_attribute_write_floor(name) as floor:
            assert floor.fetch() == 0
        with pytest.raises(OvstageError, match="timeout"):
            table.stage.wait_floor(1, name, timeout=0)

    soak(step, interned, warm=400)


def test_names_that_only_filters_ask_for(table):
    """The names of a filter, and of the attributes that its result may report, go with the query."""
    table.write("x", np.ones(2), 1)
    table.seal(1)

    def step(k: int) -> None:
        name = f"unknown {k} " + "x" * 2000
        with table.stage.query(Filter([Predicate(name, FilterOp.HAS)]), [name + "y", "x"]) as query:
            query.wait()
            assert table.stage.fetch_query_result(query).total_prim_count == 0
            query.refresh().wait()
        table.stage.query(Filter([Predicate(name, FilterOp.IN, ["1"])])).release()
        assert len(table.stage.prims(Filter([Predicate(name, FilterOp.HAS)]))) == 0

    soak(step, interned, warm=100)


def test_a_filter_finds_what_is_written_later_under_its_names(table):
    """Its name was unknown when it was asked, and may be asked for and forgotten by others meanwhile."""
    stage = table.stage
    query = stage.query(Filter([Predicate("later", FilterOp.HAS)]))
    stage.query(Filter([Predicate("later", FilterOp.HAS)])).release().wait()
    for _ in range(3):
        with pytest.raises(KeyError):
            stage.get("/World/Prim0", "later")
    query.refresh().wait()
    assert stage.fetch_query_result(query).total_prim_count == 0
    table.write("later", np.ones(2), 1)
    query.refresh().wait()
    assert stage.fetch_query_result(query).total_prim_count == 2
    query.release().wait()
    table.seal(1)
    assert stage.get("/World/Prim0", "later") == 1


READS = {
    "read": lambda t, name: t.stage.read(t.query, ["x", name]),
    "read of it alone": lambda t, name: t.stage.read(t.query, [name], 1),
    "read as of the floor": lambda t, name: t.stage.read(t.query, [name]),
    "read that is refused": lambda t, name: t.stage.read(t.query, [name, 1 << 60]),
    "get": lambda t, name: t.stage.get("/World/Prim0", name),
    "read_arrow": lambda t, name: t.stage.read_arrow(t.query, ["x", name]),
    "read_pandas": lambda t, name: t.stage.read_pandas(t.query, ["x", name]),
    "read_attributes": lambda t, name: (
        t.stage.read_attributes(t.query, [name], OrdinalRange.latest(1)).release().wait()
    ),
}


@pytest.mark.parametrize("call", READS)
def test_names_that_are_only_read(table, call):
    """Asking for what nobody wrote does not intern its name."""
    table.write("x", np.ones(2), 1)
    table.seal(1)

    def step(k: int) -> None:
        with contextlib.suppress(KeyError, OvstageError, ModuleNotFoundError):  # tables need packages
            READS[call](table, f"unknown {k} " + "x" * 2000)

    soak(step, interned, warm=100)


PATHS = {
    "read": lambda t, path: t.stage.read([path], ["x"], 1),
    "read beside one that is there": lambda t, path: t.stage.read(["/World/Prim0", path, path], ["x"]),
    "get": lambda t, path: t.stage.get(path, "x"),
    "read_arrow": lambda t, path: t.stage.read_arrow(["/World/Prim0", path], ["x"]),
    "read_pandas": lambda t, path: t.stage.read_pandas([path, "/World/Prim1"], ["x"]),
    "delete": lambda t, path: t.stage.delete([path], ["x"], 2).wait(),
    "delete of prims": lambda t, path: t.stage.delete((path,), [], 2).wait(),
}


@pytest.mark.parametrize("call", PATHS)
def test_paths_that_are_only_asked_for(table, call):
    """Asking for a prim that nobody made does not intern its path."""
    table.write("x", np.ones(2), 1)
    table.seal(1)

    def step(k: int) -> None:
        with contextlib.suppress(KeyError, ModuleNotFoundError):  # tables need packages
            PATHS[call](table, f"/Unknown {k} " + "x" * 2000)

    soak(step, interned, warm=100)


def test_a_path_that_was_only_read_is_written_later(table):
    stage, paths = table.stage, ["/Later", "/World/Prim0", "/Never", "/Later"]
    table.write("x", np.ones(2), 1)
    table.seal(1)
    for _ in range(2):
        column = stage.read(paths, ["x"])["x"]
        assert column.values.tolist() == [0, 1, 0, 0]
        assert column.valid.tolist() == [False, True, False, False]
    with pytest.raises(KeyError, match="none of the prims of the query exists"):
        stage.get("/Later", "x")
    stage.delete(paths[:1], ["x"], 2).wait()
    stage.write(["/Later"], "x", 2, np.full(1, 7.0)).wait()
    table.seal(2)
    column = stage.read(paths, ["x"])["x"]
    assert column.values.tolist() == [7, 1, 0, 7]
    assert column.valid.tolist() == [True, True, False, True]
    assert list(stage.prims()) == ["/World/Prim0", "/World/Prim1", "/Later"]


def test_a_thread_reads_paths_while_another_makes_them(stage):
    """What is sealed when it is read is there, though nobody knew the path when it was asked for."""
    rounds = 200
    found = []

    def read() -> None:
        for k in range(1, rounds):
            rows = [0.0, 0.0]
            while rows[1] < k:  # the one that was there has not got its next value yet
                with contextlib.suppress(KeyError, OvstageError):
                    rows = stage.read([f"/W{k}", "/W"], ["x"], k)["x"].values.tolist()
            found.append(rows)

    stage.write(["/W"], "x", 1, np.zeros(1)).wait()
    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(read)
        for k in range(1, rounds):
            stage.write([f"/W{k}", "/W"], "x", k, np.full(2, float(k))).wait()
            stage.advance_write_floor(k).wait()
        reader.result(timeout=60)
    assert [made for made, _ in found] == list(range(1, rounds))


def test_a_name_that_was_only_read_is_written_later(table):
    with pytest.raises(KeyError, match="did you mean"):
        table.write("later", np.ones(2), 1)
        table.stage.read(table.query, ["later1"])["later1"]
    table.write("later1", np.ones(2), 1)
    table.seal(1)
    assert table.stage.read(table.query, ["later1"])["later1"].values.tolist() == [1, 1]


def test_threads_that_read_and_threads_that_write_the_same_names(make_table):
    """What was written is found under its name, though others asked for it when nobody knew it."""
    tables = [make_table([f"/W{i}"]) for i in range(4)]
    names = [f"shared {k}" for k in range(200)]

    def work(table: object) -> None:
        for name in names:
            table.stage.read(table.query, [name, name + " too"], 1)
            table.write(name, np.ones(1), 1)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, tables))
    tables[0].seal(1)
    for table in tables:
        assert all(table.read(name, 1) == [1] for name in names)


def test_a_name_that_was_refused_is_written_later(table):
    with pytest.raises(OvstageError):
        table.write("later", np.ones(3), 1)
    table.write("later", np.ones(2), 1)
    table.seal(1)
    assert table.read("later", 1) == [1, 1]


def test_threads_that_are_refused_and_threads_that_write_the_same_names(make_table):
    """Every write that went well is read under its name, whatever others tried with it."""
    tables = [make_table([f"/W{i}"]) for i in range(4)]
    names = [f"shared {k}" for k in range(200)]

    def work(table: object) -> None:
        for name in names:
            with pytest.raises(OvstageError):
                table.write(name, np.ones(7), 1)
            table.write(name, np.ones(1), 1)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, tables))
    tables[0].seal(1)
    for table in tables:
        assert all(table.read(name, 1) == [1] for name in names)
