"""A stage with columns to exchange, modules of other languages compiled on demand, and the record of what was seen."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ovstage
from ovstage import OrdinalRange

NUMPY_WRITES = np.from_dlpack(np.zeros(1)).flags.writeable
"""NumPy before 2.2.5 takes every DLPack export as read-only."""

needs_writable_imports = pytest.mark.skipif(not NUMPY_WRITES, reason="this NumPy takes every export as read-only")

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MODULES = Path(os.environ.get("OVSTAGE_INTEROP_BUILD", ROOT / "build/interop/modules"))


# --- columns ---


class Column:
    """One attribute over prims of its own, written at ordinal 1 and sealed."""

    def __init__(self, stage: ovstage.Stage, names: ovstage.PathDictionary, number: int) -> None:
        self.stage, self.names, self.name = stage, names, f"column{number}"
        self.token = names.intern_token(self.name)
        self.list: Any = None
        self.query: Any = None
        self.groups: list[ovstage.ReadGroup] = []

    def write(self, tensors: Any, rows: int, **options: Any) -> Column:
        if self.query is None:
            self.list = self.names.create_path_list_from_strings([f"/{self.name}/p{i}" for i in range(rows)])
            self.query = self.stage.query_from_path_list(self.list)
        ordinal = self.stage_ordinal() + 1
        options.setdefault("is_array", False)
        self.stage.write_attribute(self.query, self.name, ordinal, tensors, **options).wait()
        self.stage.advance_write_floor(ordinal).wait()
        return self

    def stage_ordinal(self) -> int:
        with self.stage.get_attribute_write_floor() as floor:
            return floor.fetch()

    def group(self, query: Any = None) -> ovstage.ReadGroup:
        """The only group; released when the test ends."""
        chosen = query or self.query
        with self.stage.read_attributes(chosen, [self.token], OrdinalRange.latest(self.stage_ordinal())) as read:
            (group,) = read.groups()
        self.groups.append(group)
        return group

    def pick(self, *rows: int) -> Any:
        """A query of some of its prims, in this order; released with the column."""
        paths = self.names.create_path_list_from_strings([f"/{self.name}/p{i}" for i in rows])
        query = self.stage.query_from_path_list(paths)
        self.picked = [*getattr(self, "picked", []), (query, paths)]
        return query

    def map(self) -> Any:
        return self.stage.map_attribute(self.query, self.token, self.stage_ordinal() + 1)

    def close(self) -> None:
        for group in self.groups:
            if not group.released:
                group.release()
        for query, paths in [*getattr(self, "picked", []), (self.query, self.list)]:
            if query is not None:
                query.release().wait()
                paths.release()


@pytest.fixture
def stage() -> Iterator[ovstage.Stage]:
    with ovstage.Stage("interop") as stage:
        yield stage


@pytest.fixture
def column(stage: ovstage.Stage) -> Iterator[Callable[..., Column]]:
    """``column(values)``: what was written, one row per first axis; ``is_array=True`` for a list of arrays."""
    with ovstage.PathDictionary(stage) as names, ExitStack() as columns:
        count = 0

        def make(tensors: Any, rows: int | None = None, **options: Any) -> Column:
            nonlocal count
            count += 1
            made = Column(stage, names, count)
            columns.callback(lambda: made.close() if stage.alive else None)
            return made.write(tensors, len(tensors) if rows is None else rows, **options)

        yield make


# --- modules of other languages ---


def compiler(*names: str) -> list[str] | None:
    """What CC or CXX says, else the first of these that is there."""
    for name in names:
        words = shlex.split(os.environ.get(name, "") if name.isupper() else name)
        if words and shutil.which(words[0]):
            return words
    return None


_modules: dict[Path, ModuleType] = {}


def compiled(name: str, argv: list[str], sources: list[Path]) -> ModuleType:
    """The extension module that this command makes; kept for as long as neither command nor sources change."""
    key = hashlib.sha256(repr((argv, sys.version, [source.read_bytes() for source in sources])).encode()).hexdigest()
    target = MODULES / key[:16] / f"{name}.so"
    if target in _modules:
        return _modules[target]
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_suffix(f".{os.getpid()}")
        done = subprocess.run([*argv, "-o", str(fresh)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        fresh.replace(target)
    spec = importlib.util.spec_from_file_location(name, target)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    _modules[target] = module
    return module


def python_headers() -> list[str]:
    return ["-I", sysconfig.get_path("include")]


def build_probe() -> ModuleType | None:
    """The consumer and producer in C, or None where there is no compiler."""
    cc = compiler("CC", "cc", "gcc", "clang")
    if cc is None:
        return None
    flags = ["-shared", "-fPIC", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-DPy_LIMITED_API=0x030B0000"]
    include = ["-I", str(ROOT / "capi_export/include")]
    source = HERE / "probe.c"
    return compiled("probe", [*cc, *flags, *include, *python_headers(), str(source)], [source])


@pytest.fixture(scope="session")
def probe() -> ModuleType:
    module = build_probe()
    if module is None:
        pytest.skip("there is no C compiler to build the probe with")
    return module


# --- what was seen ---


class Record:
    """Facts about libraries, as the tests find them: ``seen[library][what] = fact``."""

    def __init__(self) -> None:
        self.seen: dict[str, dict[str, str]] = {}

    def __call__(self, library: str, what: str, fact: str) -> None:
        self.seen.setdefault(library, {})[what] = fact


RECORD = Record()


@pytest.fixture
def record() -> Record:
    return RECORD


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", metavar="FILE", help="write what was seen of each library as JSON (see report.py)")


def pytest_sessionfinish(session: pytest.Session) -> None:
    file = session.config.getoption("--record")
    if file:
        Path(file).write_text(json.dumps(RECORD.seen, indent=1, sort_keys=True) + "\n")


# --- shorthand ---


def address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def run_python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter that sees the same packages as this one, and this folder."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    argv = [sys.executable, "-u", "-c", program, *arguments]
    return subprocess.run(argv, capture_output=True, text=True, timeout=100, env=environment)
