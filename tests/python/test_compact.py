"""Paths that nothing names any more go when they are told to; what names a path keeps it."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from conftest import GONE, Table

import ovstage
from ovstage import AttributeSemantic, DLDataType, Filter, FilterOp, OrdinalRange, OvxError, Predicate

UNKNOWN = "Prim path handle was not found in this dictionary"
PATH = "/World/somewhere/here"
RELATION = AttributeSemantic.RELATIONSHIP_PATH_ID


def number(names: ovstage.PathDictionary, path: str = PATH) -> int:
    """The handle of a path that only lists have brought in, as a number."""
    with names.create_path_list_from_strings([path]) as paths:
        return names.get_paths(paths)[0]


def known(call: Callable[[], Any]) -> Any:
    """What a call answers, or None where a path is unknown to it."""
    try:
        return call()
    except OvxError as error:
        if UNKNOWN not in str(error):
            raise
    return None


def gone(names: ovstage.PathDictionary, handle: int) -> bool:
    return known(lambda: names.path_to_string(handle)) is None


def written(stage: ovstage.Stage, names: ovstage.PathDictionary, ordinal: int, path: str = PATH) -> None:
    with names.create_path_list_from_strings([path]) as paths, stage.query_from_path_list(paths) as query:
        stage.write_attribute(query, "x", ordinal, np.ones(1), is_array=False).wait()


# --- what names a path ---

Holder = Callable[[ovstage.Stage, ovstage.PathDictionary], "Iterator[None]"]


def by_a_list(stage, names):
    with names.create_path_list_from_strings(["/Other", PATH]):
        yield


def by_a_list_with_a_reference(stage, names):
    with names.create_path_list_from_strings([PATH]) as paths:
        names.add_path_list_reference(paths)
        handle = int(paths)
    yield
    names.destroy_path_list(handle)


def by_a_query(stage, names):
    with names.create_path_list_from_strings([PATH]) as paths:
        query = stage.query_from_path_list(paths)
    yield
    query.release().wait()


def by_a_path_below(stage, names):
    with names.create_path_list_from_strings([PATH + "/below/it"]):
        yield


def by_a_prim_that_is_not_sealed(stage, names):
    written(stage, names, 9)
    yield
    stage.delete([PATH], [], 9).wait()
    stage.advance_write_floor(9).wait()


def by_a_filter(stage, names):
    written(stage, names, 1)
    stage.advance_write_floor(1).wait()
    query = stage.query(Filter([Predicate("x", FilterOp.HAS)]))
    stage.delete([PATH], [], 2).wait()
    stage.advance_write_floor(2).wait()
    yield
    query.release().wait()


def by_a_relationship(stage, names):
    table = Table(stage, names, ["/Source"])
    table.write("to", [np.uint64([number(names)])], 1, is_array=True, semantic=RELATION)
    yield
    table.write("to", [np.uint64([])], 1, is_array=True, semantic=RELATION)
    table.seal(1)
    table.close()


def by_a_sealed_relationship(stage, names):
    table = Table(stage, names, ["/Source"])
    table.write("to", [np.uint64([number(names)])], 1, is_array=True, semantic=RELATION)
    table.seal(1)
    yield
    stage.delete(["/Source"], [], 2).wait()
    stage.advance_write_floor(2).wait()
    table.close()


def by_a_number_without_a_role(stage, names):
    table = Table(stage, names, ["/Source"])
    table.write("to", np.uint64([number(names)]), 1)
    table.seal(1)
    yield
    table.write("to", np.uint64([0]), 2)
    table.seal(2)
    table.close()


def by_a_group(stage, names):
    table = Table(stage, names, ["/Source"])
    table.write("to", np.uint64([number(names)]), 1)
    table.seal(1)
    group = table.group("to", 1)
    table.write("to", np.uint64([0]), 2)
    table.seal(2)
    yield
    group.release()
    table.close()


def by_the_prims_of_a_group(stage, names):
    table = Table(stage, names, [PATH])
    table.write("x", np.ones(1), 1)
    table.seal(1)
    group = table.group("x", 1)
    stage.delete([PATH], [], 2).wait()
    table.seal(2)
    table.close()
    yield
    group.release()


def by_an_open_map(stage, names):
    table = Table(stage, names, ["/Source"])
    with stage.map_attribute(table.query, "to", 3, dtype=DLDataType(1, 64, 1)) as session:
        session.fetch_next().array(0)[0] = number(names)
        yield
        session.abort()
    table.close()


def by_its_own_handle(stage, names):
    names.intern_path(PATH)
    yield


def by_history(stage, names):
    table = Table(stage, names, ["/Source"])
    table.write("to", np.uint64([number(names)]), 5)
    table.seal(5)
    table.write("to", np.uint64([0]), 6)
    table.seal(6)
    yield
    for ordinal in (7, 8, 9):
        table.write("to", np.uint64([0]), ordinal)
        table.seal(ordinal)
    table.close()


HOLDERS = [value for name, value in list(globals().items()) if name.startswith("by_")]
STAYS = [by_its_own_handle, by_a_prim_that_is_not_sealed, by_a_filter, by_the_prims_of_a_group]
"""Afterwards something else names the path: itself, or the log of changes, which tells that the prim was deleted."""


@pytest.mark.parametrize("holder", HOLDERS, ids=lambda holder: holder.__name__)
def test_a_path_stays_as_long_as_it_is_named(holder):
    config = ovstage.StageConfig(history_ordinals=3) if holder is by_history else None
    with ovstage.Stage("compact", config=config) as stage, ovstage.PathDictionary(stage) as names:
        with contextmanager(holder)(stage, names):
            handle = number(names)
            names.compact()
            assert names.path_to_string(handle) == PATH
            assert number(names) == handle
        names.compact()
        assert gone(names, handle) == (holder not in STAYS)


@pytest.mark.parametrize("is_array", [False, True])
def test_values_stay_that_lie_where_a_block_has_grown_in_place(stage, names, is_array):
    """Blocks have room beyond the bytes that were asked for, which rows and arrays take that come later."""
    groups = []
    for ordinal in range(1, 80):
        with names.create_path_list_from_strings([f"/To{ordinal}"]) as to:
            value = np.uint64(names.get_paths(to))
            source = f"/Source{ordinal % 5 if is_array else ordinal}"
            values = [value] if is_array else value
            stage.write([source], "to", ordinal, values, is_array=is_array).wait()
        stage.advance_write_floor(ordinal).wait()
        with stage.query() as query, stage.read_attributes(query, ["to"], OrdinalRange.latest(ordinal)) as read:
            groups.append(read.fetch_next())
    held = [[int(to) for i in range(group.tensor_count) for to in group.array(i)] for group in groups]
    texts = [[names.path_to_string(to) for to in each] for each in held]
    stage.delete(stage.prims(), [], 80).wait()
    stage.advance_write_floor(80).wait()
    names.compact()
    assert [[names.path_to_string(to) for to in each] for each in held] == texts
    for group in groups:
        group.release()


def test_values_stay_of_a_map_whose_buffer_had_room(stage, names):
    """It is one that the column had when it was shorter."""
    for rows in range(1, 40):
        sources = [f"/Source{i}" for i in range(rows)]
        for ordinal in (2 * rows - 1, 2 * rows):
            stage.write(sources, "to", ordinal, np.zeros(rows, np.uint64)).wait()
            stage.advance_write_floor(ordinal).wait()
        with stage.map(sources, "to", 100) as session:
            handle = session.fetch_next().array(0)[-1] = number(names)
            names.compact()
            assert names.path_to_string(handle) == PATH
            session.abort()


def test_another_stage_names_paths_too(stage, names):
    with ovstage.Stage("other") as other, ovstage.PathDictionary(other) as others:
        written(other, others, 1)
        handle = number(names)
        assert names.compact() == 0
        assert names.path_to_string(handle) == PATH
    assert names.compact() == 3
    assert gone(names, handle)


def test_what_has_gone_is_unknown_for_ever(stage, names):
    handle = number(names)
    assert names.compact() == 3
    assert names.compact() == 0
    for call in (lambda: names.path_to_string(handle), lambda: names.create_path_list([handle])):
        with pytest.raises(OvxError, match=UNKNOWN):
            call()
    again = number(names)
    assert again != handle
    assert names.path_to_string(again) == PATH
    assert gone(names, handle)
    others = [number(names, f"/Other{i}") for i in range(100)]
    assert handle not in others


def test_a_prim_under_the_index_of_another_is_itself(stage, names):
    """Nothing of one is seen at the other: values, changes, filters by name and by token."""
    letters = names.intern_tokens(["a", "b"])
    ordinal = dropped = 0
    for k in range(1200):
        ordinal += 2
        paths = [f"/World/of_round_{k}_{i}" for i in range(10)]
        table = Table(stage, names, paths)
        table.write("x", np.full(10, k, "f4"), ordinal)
        table.write("letter", np.uint64(letters * 5), ordinal, semantic=AttributeSemantic.TOKEN_ID)
        table.seal(ordinal)
        assert table.read("x", ordinal) == [k] * 10
        assert table.changes("x", ordinal, ordinal) == dict.fromkeys(range(10), k)
        for predicate, expected in (
            (Predicate("letter", FilterOp.IN, ["b"]), paths[1::2]),
            (Predicate("usd-path", FilterOp.PREFIX, [f"/World/of_round_{k}_1"]), [p for p in paths if f"_{k}_1" in p]),
            (Predicate("x", FilterOp.IN, [str(k)]), paths),
        ):
            with stage.query(Filter([predicate])) as found:
                assert listed(stage, names, found, ordinal) == expected
        stage.delete(paths, [], ordinal + 1).wait()
        table.seal(ordinal + 1)
        assert table.read("x", ordinal + 1) == [None] * 10
        assert table.changes("x", ordinal + 1, ordinal + 1) == dict.fromkeys(range(10), GONE)
        table.close()
        if k % 50 == 49:
            dropped += names.compact()
    assert dropped > 5000


def listed(stage: ovstage.Stage, names: ovstage.PathDictionary, query: ovstage.Query, ordinal: int) -> list[str]:
    with stage.read_attributes(query, ["x"], ovstage.OrdinalRange.latest(ordinal)) as read, read.fetch_next() as group:
        return names.get_path_strings(group.prim_list)


# --- with others at work ---


def test_others_go_on_meanwhile(stage, names):
    """Prims come and go, lists are made and read, and numbers are asked for whose lists have gone."""
    stop, failures = threading.Event(), []
    ordinals, lock = iter(range(1, 1 << 30)), threading.Lock()

    def others(work: Callable[[random.Random, int], None], seed: int) -> None:
        chance = random.Random(seed)
        try:
            k = 0
            while not stop.is_set():
                work(chance, k)
                k += 1
        except BaseException as error:
            failures.append(error)
            stop.set()

    def spawn(chance: random.Random, k: int) -> None:
        paths = [f"/W/{chance.randrange(50)}/{chance.randrange(10_000)}" for _ in range(40)]
        with names.create_path_list_from_strings(paths) as made, stage.query_from_path_list(made) as query:
            with lock:
                at = next(ordinals)
                stage.write_attribute(query, "x", at, np.full(40, at, "f8"), is_array=False).wait()
                stage.advance_write_floor(at).wait()
                values = stage.read(query, ["x"], at)["x"].values
            assert (values == at).all()
            with lock:
                at = next(ordinals)
                stage.delete_attributes(query, [], at).wait()
                stage.advance_write_floor(at).wait()
            assert names.get_path_strings(made) == paths

    def numbers(chance: random.Random, k: int) -> None:
        paths = [f"/W/{chance.randrange(50)}/{chance.randrange(10_000)}" for _ in range(5)]
        with names.create_path_list_from_strings(paths) as made:
            held = names.get_paths(made)
        for path, handle in zip(paths, held, strict=True):
            assert known(lambda handle=handle: names.path_to_string(handle)) in (path, None)
        if (made := known(lambda: names.create_path_list(held))) is not None:
            with made:
                assert names.get_path_strings(made) == paths

    def clone(chance: random.Random, k: int) -> None:
        root = f"/C/{chance.randrange(1000)}"
        with lock:
            at = next(ordinals)
            written(stage, names, at, root)
            stage.clone(root, [f"{root}_{k}"], at)
            stage.delete([root, f"{root}_{k}"], [], next(ordinals)).wait()

    def asked(chance: random.Random, k: int) -> None:
        kept = names.intern_path(f"/Kept/{k % 100}")
        assert names.path_to_string(kept) == f"/Kept/{k % 100}"
        assert "x" not in stage.read([f"/Nowhere/{k}"], ["x"])

    works = [spawn, spawn, numbers, clone, asked]
    threads = [threading.Thread(target=others, args=(work, seed), daemon=True) for seed, work in enumerate(works)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        names.compact()
    stop.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


def test_stages_come_and_go_meanwhile(names):
    stop, failures = threading.Event(), []

    def others() -> None:
        try:
            while not stop.is_set():
                with ovstage.Stage("brief") as stage, ovstage.PathDictionary(stage) as own:
                    table = Table(stage, own, ["/Brief/a", "/Brief/b"])
                    table.write("to", np.uint64([7, 8]), 1)
                    table.seal(1)
                    group = table.group("to", 1)
                    assert group.array(0).tolist() == [7, 8]
                    table.close()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=others, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        names.compact()
    stop.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if failures:
        raise failures[0]
