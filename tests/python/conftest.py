"""A stage with a fixed list of prims, and shorthand for what nearly every test does with it."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from children import run_python

import ovstage
from ovstage import OrdinalRange

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it starts in the background

NUMPY_WRITES = np.from_dlpack(np.zeros(1)).flags.writeable
"""NumPy before 2.2.5 takes every DLPack export as read-only."""

needs_writable_imports = pytest.mark.skipif(not NUMPY_WRITES, reason="this NumPy takes every export as read-only")


GUARDED = ovstage.StageConfig(guard_reads=True) if os.environ.get("OVSTAGE_TESTS_GUARD_READS") else None
"""Asked for by test_guard_reads.py, which runs suites that way."""

GONE = "gone"


def values_of(group: ovstage.ReadGroup) -> dict[int, Any]:
    """Every value of a group by position in the query, through the accessors that take one prim."""
    values = {}
    for local in range(group.prim_count):
        row = group.data_row_index(local)
        value = group.array(row) if group.is_array else group.array(0, shaped=True)[row]
        values[group.prim_index(local)] = value.tolist() if group.is_array or len(value) > 1 else value.item()
    return values


def stored(tensor: ovstage.DLTensor) -> tuple[int, ovstage.DLDataType]:
    """How many rows a tensor has, and the type of one with all its lanes, which at level 0.3 are axes."""
    rows, *axes = tensor.shape_tuple
    return rows, ovstage.DLDataType(tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes * math.prod(axes))


class Table:
    """Prims in a fixed order over one stage. Calls wait, so that a failure shows where it is caused."""

    def __init__(self, stage: ovstage.Stage, names: ovstage.PathDictionary, paths: list[str]) -> None:
        self.stage, self.names, self.paths = stage, names, paths
        self.list = names.create_path_list_from_strings(paths)
        self.query = stage.query_from_path_list(self.list)

    def token(self, name: str) -> int:
        return self.names.intern_token(name)

    def write(self, name: str, values: Any, ordinal: int, **options: Any) -> None:
        options.setdefault("is_array", False)
        self.stage.write_attribute(self.query, name, ordinal, values, **options).wait()

    def seal(self, ordinal: int) -> None:
        self.stage.advance_write_floor(ordinal).wait()

    def groups(self, name: str, ordinal: int) -> list[ovstage.ReadGroup]:
        """The caller releases them."""
        with self.stage.read_attributes(self.query, [self.token(name)], OrdinalRange.latest(ordinal)) as read:
            read.wait()
            return list(read.groups())

    def group(self, name: str, ordinal: int) -> ovstage.ReadGroup:
        """The only group; the caller releases it."""
        (group,) = self.groups(name, ordinal)
        return group

    def read(self, name: str, ordinal: int) -> list[Any]:
        """One entry per prim in query order: a number, a list of lanes or elements, None where it has no value."""
        values: list[Any] = [None] * len(self.paths)
        for group in self.groups(name, ordinal):
            with group:
                for at, value in values_of(group).items():
                    values[at] = value
        return values

    def changes(self, name: str, start: int, end: int) -> dict[int, Any]:
        """What a range read reports, by position in the query: a value, or GONE."""
        found: dict[int, Any] = {}
        with self.stage.read_attributes(self.query, [self.token(name)], OrdinalRange.between(start, end)) as read:
            read.wait()
            for group in read.groups():
                with group:
                    assert start <= group.ordinal <= end
                    assert found.keys().isdisjoint(group.prim_indices().tolist())
                    found |= dict.fromkeys(group.prim_indices().tolist(), GONE) if group.is_delete else values_of(group)
        return found

    def close(self) -> None:
        self.query.release().wait()
        self.list.release()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A module about values says BOTH_LEVELS: what it does with a stage, it does at each interface level."""
    if getattr(metafunc.module, "BOTH_LEVELS", False) and "level" in metafunc.fixturenames:
        metafunc.parametrize("level", ["0.2", "0.3"])


@pytest.fixture
def level() -> str | None:
    """The interface level of the stage; None: that of the process."""
    return None


@pytest.fixture
def stage(level: str | None) -> Iterator[ovstage.Stage]:
    with ovstage.Stage("test", replace(GUARDED or ovstage.StageConfig(), interface=level)) as stage:
        yield stage


@pytest.fixture
def names(stage: ovstage.Stage) -> Iterator[ovstage.PathDictionary]:
    with ovstage.PathDictionary(stage) as names:
        yield names


@pytest.fixture
def make_table(stage: ovstage.Stage, names: ovstage.PathDictionary) -> Iterator[Callable[..., Table]]:
    """Tables of any size over one stage; prims of the same number are the same in each."""
    with ExitStack() as tables:

        def make(prims: int | list[str]) -> Table:
            paths = [f"/World/Prim{i}" for i in range(prims)] if isinstance(prims, int) else prims
            table = Table(stage, names, paths)
            tables.callback(lambda: table.close() if stage.alive else None)
            return table

        yield make


@pytest.fixture
def table(make_table: Callable[..., Table]) -> Table:
    """Two prims."""
    return make_table(2)


@pytest.fixture
def unraisable(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What Python could only report, not raise."""
    seen: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", seen.append)
    return seen


@pytest.fixture
def fresh_python() -> Callable[..., subprocess.CompletedProcess[str]]:
    return run_python


def invalid_handle(call: Callable[[], object]) -> str:
    """The text with which a call refuses a handle or group that is over."""
    with pytest.raises(ovstage.OvstageError) as caught:
        call()
    assert caught.value.code == ovstage.ErrorCode.INVALID_HANDLE
    return caught.value.message


def address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


@pytest.fixture
def scene(stage: ovstage.Stage, names: ovstage.PathDictionary) -> Iterator[Any]:
    """What the tables of refusals start from."""
    from refusals import Scene

    made = Scene(stage, names)
    yield made
    if stage.alive:
        made.close()
