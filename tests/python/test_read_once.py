"""What a caller hands in is read once: another thread that writes to an array in the middle of a call changes which of
its values are taken, never whether they are judged.

NumPy copies arrays of this size without the GIL, so that the other thread writes while the call reads. What only C can
hand in, descriptors, structures and texts that change, is in ``tests/c/adversary.c``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import ovstage
from ovstage import DLDataType, OrdinalRange, OvstageError, OvxError, WriteDesc

N = 10_000
ROUNDS = 30


@pytest.fixture
def crowd() -> Iterator[tuple[ovstage.Stage, ovstage.PathDictionary, ovstage.Query]]:
    with ovstage.Stage("crowd") as stage, ovstage.PathDictionary(stage) as names:
        with names.create_path_list_from_strings([f"/P{i}" for i in range(N)]) as prims:
            with stage.query_from_path_list(prims) as query:
                yield stage, names, query


@contextmanager
def swinging(array: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> Iterator[None]:
    """While the block runs a thread fills the array with its own values and with others, in turns."""
    own, stop = array.copy(), threading.Event()

    def swing() -> None:
        while not stop.is_set():
            array[:] = other
            array[:] = own

    thread = threading.Thread(target=swing, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(30)
        assert not thread.is_alive()


def sealed(stage: ovstage.Stage, query: ovstage.Query, ordinal: int) -> np.ndarray[Any, Any]:
    """The values of the prims that have one, as they are sealed."""
    stage.advance_write_floor(ordinal).wait()
    column = stage.read(query, ["values"])["values"]
    return np.unique(column.values)


def mask() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    every = np.full((N + 63) // 64, 2**64 - 1, np.uint64)
    few = every.copy()
    few[len(few) // 2 :] = 0
    return every, few


def fixed(query: ovstage.Query, ordinal: int, stage: ovstage.Stage, **options: Any) -> ovstage.Operation:
    return stage.write_attribute(query, "values", ordinal, np.full(N, ordinal), is_array=False, **options)


def ragged(query: ovstage.Query, ordinal: int, stage: ovstage.Stage, **options: Any) -> ovstage.Operation:
    return stage.write_attribute(query, "values", ordinal, np.full(2 * N, ordinal), is_array=True, **options)


def batch(query: ovstage.Query, ordinal: int, stage: ovstage.Stage, **options: Any) -> ovstage.Operation:
    entry = WriteDesc("values", np.full(N, ordinal), is_array=False, **options)
    other = WriteDesc("others", np.full(N, ordinal), is_array=False, **options)
    return stage.write_attributes(query, [entry, other], ordinal)


WRITES = [fixed, ragged, batch]


@pytest.mark.parametrize("write", WRITES)
def test_masks(crowd: Any, write: Callable[..., ovstage.Operation]):
    stage, _, query = crowd
    write(query, 1, stage).wait()
    array, few = mask()
    with swinging(array, few):
        for ordinal in range(2, ROUNDS):
            write(query, ordinal, stage, mask=array, count=N).wait()
    assert set(sealed(stage, query, ROUNDS)) <= set(range(1, ROUNDS))


@pytest.mark.parametrize("write", WRITES)
def test_index_maps(crowd: Any, write: Callable[..., ovstage.Operation]):
    stage, _, query = crowd
    write(query, 1, stage).wait()
    array = np.arange(N, dtype=np.uint32)
    with swinging(array, np.full(N, 2**31, np.uint32)):
        for ordinal in range(2, ROUNDS):
            operation = write(query, ordinal, stage, index_map=array)
            if not operation.ok:
                with pytest.raises(OvstageError, match=r"source row|divide evenly"):
                    operation.wait()
    assert set(sealed(stage, query, ROUNDS)) <= set(range(1, ROUNDS))


def test_element_sizes(crowd: Any):
    stage, _, query = crowd
    sizes = np.full(N, 3, np.uint64)
    with swinging(sizes, np.full(N, 50, np.uint64)):
        for _ in range(ROUNDS // 2):
            mapping = stage.map_attribute(
                query, "values", 1, dtype=DLDataType(2, 32, 1), element_sizes=sizes, initial="zero"
            )
            group = mapping.fetch_next()
            assert group is not None
            rows = [group.array(k) for k in range(0, N, 997)]
            ends = [row.ctypes.data + row.nbytes for row in rows]
            assert all(end <= row.ctypes.data for end, row in zip(ends, rows[1:], strict=False))
            mapping.abort()


def test_tokens_of_reads_queries_and_floors(crowd: Any):
    stage, names, query = crowd
    fixed(query, 1, stage).wait()
    stage.advance_write_floor(1).wait()
    tokens = np.full(N, names.intern_token("values"), np.uint64)
    unknown = np.full(N, 2**40, np.uint64)
    with swinging(tokens, unknown):
        for _ in range(ROUNDS):
            for call in (
                lambda: stage.read_attributes(query, tokens, OrdinalRange.latest(1)),
                lambda: stage.query(None, tokens),
            ):
                with call() as handle:
                    if not handle.op.ok:
                        with pytest.raises(OvstageError, match="token"):
                            handle.wait()
            operation = stage.advance_write_floor(1, ovstage.Scope.INCLUDE, tokens)
            if not operation.ok:
                with pytest.raises(OvstageError, match="token"):
                    operation.wait()


def test_handles_of_the_dictionary(crowd: Any):
    _, names, _ = crowd
    tokens = np.full(N, names.intern_token("values"), np.uint64)
    paths = np.full(N, names.intern_path("/P1"), np.uint64)
    for array, call, answer in (
        (tokens, lambda: names._live()._token_strings(tokens), "values"),
        (paths, lambda: names._live()._path_strings(paths), "/P1"),
        (paths, lambda: names.create_path_list(paths), None),
    ):
        with swinging(array, np.full(N, 2**40, np.uint64)):
            for _ in range(ROUNDS):
                try:
                    found = call()
                except OvxError:
                    continue
                if answer is None:
                    assert names.get_paths(found) == [names.intern_path("/P1")] * N
                    names.destroy_path_list(found)
                else:
                    assert set(found) == {answer}


def test_rows_of_a_group(crowd: Any):
    stage, _, query = crowd
    stage.write_attribute(query, "values", 1, [np.full(k % 5, k) for k in range(N)], is_array=True).wait()
    stage.advance_write_floor(1).wait()
    rows = np.arange(N, dtype=np.uint32)
    token = stage._intern_tokens(("values",))[0]
    with stage.read_attributes(query, [token], OrdinalRange.latest(1)) as read, read.fetch_next() as group:
        with swinging(rows, np.full(N, 2**31, np.uint32)):
            for _ in range(ROUNDS):
                try:
                    values, lengths = group._pack(rows)
                except IndexError:
                    continue
                assert np.asarray(values).dtype.itemsize * np.frombuffer(lengths, np.int64).sum() >= 0
