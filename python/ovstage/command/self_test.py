"""What works on this machine: each promise tried once, in about ten seconds.

A check is a function that raises when something is wrong, raises ``Missing`` when what it needs is not installed, and
otherwise returns a few words about what it saw.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import io
import os
import random
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter
from typing import TYPE_CHECKING, Any

import ovstage
from ovstage import ErrorCode, OrdinalRange, OvstageError, PathDictionary, Query, Stage, population
from ovstage.command.timing import shown

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["CHECKS", "Check", "Missing", "Wrong", "run"]


class Missing(Exception):
    """What a check needs is not installed; the text says how to get it."""


class Wrong(Exception):
    """The check saw something that must not be; the text says what."""


Check = Callable[[float], str]
"""Gets the seconds that it may spend where more time finds more."""


def run(quick: bool) -> int:
    """Run every check and print a line for each. The status is 1 when one fails."""
    print(f"ovstage {ovstage.__version__} self-test")
    start = perf_counter()
    results = [_line(name, check, 0.1 if quick else 2.0) for name, check in CHECKS.items()]
    works, missing, failed = (results.count(kind) for kind in ("ok", "missing", "FAILED"))
    print(f"{works} work, {missing} not installed, {failed} failed, in {shown(perf_counter() - start)}")
    return 1 if failed else 0


def _line(name: str, check: Check, seconds: float) -> str:
    try:
        result, text = "ok", check(seconds)
    except Missing as missing:
        result, text = "missing", str(missing)
    except Wrong as wrong:
        result, text = "FAILED", str(wrong)
    except Exception:  # whatever is wrong here is what was asked for
        result, text = "FAILED", traceback.format_exc()
    print(f"  {result:8}{name:22}{text}", flush=True)
    return result


# --- what the checks stand on ---------------------------------------------------------------------------------------


def _expect(true: object, otherwise: str) -> None:
    """An assertion that ``python -O`` keeps."""
    if not true:
        raise Wrong(otherwise)


def _require(module: str, package: str) -> Any:
    if find_spec(module.split(".")[0]) is None:
        raise Missing(f"{package} is not installed")
    return import_module(module)


class _Table:
    """A stage with a column of its own and the prims to write it for."""

    def __init__(self, stage: Stage, names: PathDictionary, query: Query) -> None:
        self.stage, self.names, self.query = stage, names, query
        self.token = names.intern_token("value")

    def write(self, ordinal: int, values: Any, is_array: bool = False) -> None:
        self.stage.write_attribute(self.query, self.token, ordinal, values, is_array=is_array).wait()

    def seal(self, ordinal: int) -> None:
        self.stage.advance_write_floor(ordinal).wait()

    def read(self, ordinal: int) -> npt.NDArray[Any]:
        return self.stage.read(self.query, [self.token], ordinal)[self.token].values

    @contextlib.contextmanager
    def group(self, ordinal: int) -> Iterator[ovstage.ReadGroup]:
        with self.stage.read_attributes(self.query, [self.token], OrdinalRange.latest(ordinal)) as read:
            for group in read.groups():  # one
                with group:
                    yield group


@contextlib.contextmanager
def _table(prims: int) -> Iterator[_Table]:
    with Stage("self-test") as stage, PathDictionary(stage) as names:
        with names.create_path_list_from_strings([f"/World/Prim{i}" for i in range(prims)]) as paths:
            with stage.query_from_path_list(paths) as query:
                yield _Table(stage, names, query)


# --- the checks -----------------------------------------------------------------------------------------------------


def _library(seconds: float) -> str:
    level = ovstage.library_version()
    with Stage("self-test") as stage:
        _expect(stage.alive, "a new stage is not alive")
    return f"interface level {'.'.join(map(str, level))}"


def _names(seconds: float) -> str:
    paths = [f"/World/Group{i % 100}/Prim{i}" for i in range(100_000)]
    with PathDictionary() as names:
        start = perf_counter()
        handles = names.intern_paths(paths)
        spent = perf_counter() - start
        with names.create_path_list(handles) as path_list:
            _expect(names.get_path_strings(path_list) == paths, "paths come back changed")
    return f"{len(paths):,} paths in {shown(spent)}"


def _write_and_read(seconds: float) -> str:
    np = _require("numpy", "numpy")
    with _table(1000) as table:
        values = np.random.default_rng(1).random((1000, 3), dtype=np.float32)
        table.write(1, values)
        table.seal(1)
        table.write(2, values + 1)
        _expect((table.read(2) == values).all(), "an unsealed value was served")
        table.seal(2)
        _expect((table.read(2) == values + 1).all(), "a sealed value was not served")
    return "1,000 rows of three floats"


def _order_of_ordinals(seconds: float) -> str:
    """Random writes at random ordinals against a plain model: the largest ordinal wins, ties by submission."""
    np = _require("numpy", "numpy")
    dice, writes, end = random.Random(1), 0, perf_counter() + seconds
    with _table(20) as table:
        floor, model = 0, np.zeros((20, 2), np.int64)  # of each prim: ordinal, value
        while perf_counter() < end or writes < 100:
            ahead = []
            for _ in range(dice.randrange(1, 10)):
                writes += 1
                ordinal, mask = floor + dice.randrange(1, 5), dice.randrange(1, 1 << 20) if floor else (1 << 20) - 1
                rows = [i for i in range(20) if mask >> i & 1]
                payload = np.full(20, writes)
                table.stage.write_attribute(
                    table.query, table.token, ordinal, payload, is_array=False, count=20, mask=[mask]
                ).wait()
                ahead.append((ordinal, writes, rows))
            floor += 4
            for ordinal, value, rows in sorted(ahead):
                model[rows] = (ordinal, value)
            table.seal(floor)
            _expect((table.read(floor) == model[:, 1]).all(), f"differs from the model at ordinal {floor}")
    return f"{writes:,} writes in random order, as a plain model has them"


def _arrays(seconds: float) -> str:
    np = _require("numpy", "numpy")
    rows = [np.arange(i % 7, dtype=np.int32) for i in range(1000)]
    with _table(1000) as table:
        table.write(1, rows, is_array=True)
        table.seal(1)
        column = table.stage.read(table.query, [table.token], 1)[table.token]
        _expect(all((column.row(i) == row).all() for i, row in enumerate(rows)), "arrays come back changed")
    return "1,000 arrays of different lengths"


def _maps(seconds: float) -> str:
    np = _require("numpy", "numpy")
    with _table(100_000) as table:
        table.write(1, np.zeros(100_000, np.float32))
        for ordinal in (2, 3):
            with table.stage.map_attribute(table.query, table.token, ordinal, initial="discard") as mapping:
                for group in mapping.groups():
                    view = group.array(0)
                    view[:] = ordinal
                if ordinal == 2:
                    del view, group
        table.seal(3)
        view[:] = -1
        _expect((table.read(3) == 3).all(), "a view of a committed map changed the column")
        adopted = table.stage.counters()["maps_adopted"]
    return f"committed without a copy, {adopted} of 2 by pointer; a view left behind changes nothing"


def _threads(seconds: float) -> str:
    """A writer and two readers: each snapshot is one tick, whole, and none is refused."""
    np = _require("numpy", "numpy")
    reads, failures, done = [0, 0], list[BaseException](), threading.Event()
    with _table(5000) as table:
        table.write(1, np.full(5000, 1))
        table.seal(1)

        def read(number: int) -> None:
            last = 1
            try:
                while not done.is_set():
                    values = table.read(2**64 - 1)
                    _expect(values.min() == values.max() >= last, "a torn snapshot")
                    last = values[0]
                    reads[number] += 1
            except BaseException as error:
                failures.append(error)

        readers = [threading.Thread(target=read, args=(number,)) for number in range(2)]
        for reader in readers:
            reader.start()
        ordinal, end = 1, perf_counter() + seconds
        try:
            while perf_counter() < end:
                ordinal += 1
                table.write(ordinal, np.full(5000, ordinal))
                table.seal(ordinal)
        finally:
            done.set()
            for reader in readers:
                reader.join()
    if failures:
        raise failures[0]
    return f"{ordinal:,} ticks beside {sum(reads):,} reads, none torn, none refused"


def _lifetime(seconds: float) -> str:
    np = _require("numpy", "numpy")
    with _table(1000) as table:
        table.write(1, np.arange(1000))
        table.seal(1)
        with table.group(1) as group:
            view, export = group.array(0), np.from_dlpack(group.dlpack(0))
    _expect((view == np.arange(1000)).all() and (export == view).all(), "a view changed when its stage went")
    return "views and exports outlive group and stage"


def _memory(seconds: float) -> str:
    np = _require("numpy", "numpy")
    with _table(1000) as table:
        values, ordinal, before = np.zeros((1000, 3), np.float32), 0, 0
        end = perf_counter() + seconds
        while perf_counter() < end or ordinal < 2000:
            ordinal += 1
            table.write(ordinal, values)
            table.seal(ordinal)
            with table.group(ordinal) as group:
                group.array(0)
            if ordinal == 1000:
                before = _resident()
        grown = _resident() - before
        live = {name: n for name, n in table.stage.counters().items() if name.startswith("live_") and n > 0}
    _expect(grown < 16 << 20, f"{ordinal} ticks took {grown >> 10} KiB")
    _expect(not live.keys() & {"live_groups", "live_reads", "live_operations", "live_exports"}, f"left: {live}")
    return f"{ordinal:,} ticks, {max(grown, 0) >> 10} KiB more"


def _resident() -> int:
    with open("/proc/self/statm") as sizes:
        return int(sizes.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _refusals(seconds: float) -> str:
    np = _require("numpy", "numpy")
    with _table(2) as table:
        op = table.stage.write_attribute(table.query, "value", 1, np.zeros(3), is_array=False)
        _expect(op.status == ErrorCode.INVALID_ARGUMENT, f"three values for two prims: status {op.status}")
        try:
            op.wait()
            raised = ""
        except OvstageError as error:
            raised = error.message
        _expect('"value"' in raised, f"three values for two prims: {raised or 'no error'}")
    return "name what was wrong, and change nothing"


def _event_loop(seconds: float) -> str:
    with _table(2) as table:

        async def seal() -> None:
            await asyncio.gather(*(table.stage.advance_write_floor(ordinal) for ordinal in range(1, 100)))

        asyncio.run(seal())
        with table.stage.get_attribute_write_floor() as floor:
            _expect(floor.fetch() == 99, "awaited operations were not carried out")
    return "operations can be awaited"


def _fork(seconds: float) -> str:
    with Stage("self-test") as stage, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # what Python thinks of fork beside threads
        child = os.fork()
        if child == 0:
            try:
                stage.advance_write_floor(1).wait()
            except OvstageError as error:
                os._exit(0 if "spawn" in error.message else 1)
            except BaseException:
                os._exit(2)
            os._exit(3)
        _expect(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "a forked child was not refused")
        stage.advance_write_floor(1).wait()
    return "a forked child is refused, its parent goes on"


def _scenes(seconds: float) -> str:
    if not population.available():
        raise Missing("usd-core is not installed: pip install 'usd-core>=26.5' numpy")
    scene = '#usda 1.0\ndef Xform "World" {\n  def Cube "Box" {\n    double size = 2\n  }\n}\n'
    with tempfile.TemporaryDirectory() as folder, Stage("self-test") as stage:
        path = os.path.join(folder, "scene.usda")
        with open(path, "w") as file:
            file.write(scene)
        report = population.open_usd(stage, path)
        stage.advance_write_floor(1).wait()
        _expect({"/World", "/World/Box"} <= set(report.paths), f"populated {list(report.paths)}")
    return f"{len(report.paths)} prims, {report.values} values from a USD file"


def _exchange(module: str, package: str, pointer: Callable[[Any], int]) -> Check:
    """A check that another library reads a column's own memory, and that its tensors can be written."""

    def check(seconds: float) -> str:
        np = _require("numpy", "numpy")
        library = _require(module, package)
        if module == "warp":
            with contextlib.redirect_stdout(io.StringIO()):
                library.init()  # which greets
        with _table(100) as table:
            table.write(1, np.arange(300, dtype=np.float32).reshape(100, 3))
            table.seal(1)
            with table.group(1) as group:
                tensor = library.from_dlpack(group.dlpack(0))
                address = group.array(0).__array_interface__["data"][0]
            table.write(2, tensor)
            table.seal(2)
            _expect((table.read(2) == np.arange(300).reshape(100, 3)).all(), "values come back changed")
        same = "the column's own memory" if pointer(tensor) == address else "a copy"
        return f"{importlib.metadata.version(package)}: reads {same}, writes"

    return check


CHECKS: dict[str, Check] = {
    "library": _library,
    "names": _names,
    "write, seal, read": _write_and_read,
    "order of ordinals": _order_of_ordinals,
    "arrays": _arrays,
    "maps": _maps,
    "threads": _threads,
    "lifetime": _lifetime,
    "memory": _memory,
    "refusals": _refusals,
    "event loop": _event_loop,
    "fork": _fork,
    "USD scenes": _scenes,
    "exchange with NumPy": _exchange("numpy", "numpy", lambda array: array.__array_interface__["data"][0]),
    "exchange with Warp": _exchange("warp", "warp-lang", lambda array: array.ptr),
    "exchange with PyTorch": _exchange("torch", "torch", lambda tensor: tensor.data_ptr()),
    "exchange with JAX": _exchange("jax.dlpack", "jax", lambda array: array.unsafe_buffer_pointer()),
}
"""Every check by its name, in the order in which they run."""
