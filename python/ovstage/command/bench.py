"""The numbers that matter, each as a ratio of two things measured in turn, so that a busy machine slows both.

The repository's ``bench/`` measures more, and against limits. This is what an installed package can say by itself.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import ovstage
from ovstage import Map, OrdinalRange, PathDictionary, Query, ReadGroup, Stage
from ovstage.command.timing import Call, per_call, shown, side_by_side, timed

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["run"]


class Row(NamedTuple):
    """One line: what was measured, the number, and the times behind it."""

    what: str
    number: str
    detail: str = ""


def run(quick: bool) -> int:
    """Measure and print. The status is 1 when NumPy, which everything is compared with, is not installed."""
    if find_spec("numpy") is None:
        print("the bench compares with NumPy, which is not installed: pip install 'numpy>=1.26'")
        return 1
    print(f"ovstage {ovstage.__version__}, Python {platform.python_version()}, medians")
    repeats, many = (3, 10**5) if quick else (9, 10**6)
    for subject in (_views, _calls, _dense, _maps, _reads, _sparse, _names):
        for row in subject(repeats, many):
            print(f"  {row.what:62}{row.number:>10}   {row.detail}", flush=True)
    return 0


def _ratio(what: str, ours: Call, theirs: Call, repeats: int) -> Row:
    first, second, ratio = side_by_side(ours, theirs, repeats)
    return Row(what, f"{ratio:.2f} x", f"{shown(first)}, {shown(second)}")


# --- a column to measure on -----------------------------------------------------------------------------------------


class _Column:
    """Some floats for each prim, written and sealed; ``values`` is what it was written with."""

    def __init__(self, stage: Stage, names: PathDictionary, query: Query, values: npt.NDArray[Any]) -> None:
        self.stage, self.query, self.values = stage, query, values
        self.token, self.ordinal = names.intern_token("value"), 0
        self.write(query, values)

    def write(self, query: Query, values: npt.NDArray[Any]) -> None:
        """Write and seal the next ordinal."""
        self.ordinal += 1
        self.stage.write_attribute(query, self.token, self.ordinal, values, is_array=False).wait()
        self.stage.advance_write_floor(self.ordinal).wait()

    def map(self) -> Map:
        return self.stage.map_attribute(self.query, self.token, self.ordinal + 1, initial="discard")

    def read(self) -> ReadGroup:
        """The caller releases it."""
        with self.stage.read_attributes(self.query, [self.token], OrdinalRange.latest(self.ordinal)) as read:
            (group,) = read.groups()
            return group


@contextmanager
def _column(rows: int, part: slice | npt.NDArray[Any] = slice(0), lanes: int = 3) -> Iterator[tuple[_Column, Query]]:
    """The column, and a query of a part of its prims."""
    import numpy as np

    with ExitStack() as stack:
        stage = stack.enter_context(Stage("bench"))
        names = stack.enter_context(PathDictionary(stage))
        paths = np.array(names.intern_paths([f"/World/Prim{i}" for i in range(rows)]), np.uint64)
        whole, some = (
            stack.enter_context(
                stage.query_from_path_list(stack.enter_context(names.create_path_list(listed.tolist())))
            )
            for listed in (paths, paths[part])
        )
        yield _Column(stage, names, whole, np.random.default_rng(1).random((rows, lanes), np.float32)), some


# --- what is measured -----------------------------------------------------------------------------------------------


def _views(repeats: int, many: int) -> Iterator[Row]:
    import numpy as np

    with _column(1000) as (column, _), column.read() as group:
        yield _ratio(
            "np.from_dlpack(group.dlpack(0)) / np.from_dlpack(ndarray)",
            lambda: np.from_dlpack(group.dlpack(0)),
            lambda: np.from_dlpack(column.values),
            repeats,
        )


def _calls(repeats: int, many: int) -> Iterator[Row]:
    with _column(4) as (column, _):

        def tick() -> None:
            column.write(column.query, column.values)
            with column.read() as group:
                group.array(0)

        yield Row("a tick of 4 rows: write, seal, read, view, release", shown(per_call(tick, repeats, 0.05)))


def _dense(repeats: int, many: int) -> Iterator[Row]:
    import numpy as np

    with _column(many // 2, lanes=32) as (column, _):
        copy = np.empty_like(column.values)
        yield _ratio(
            f"dense write of {copy.nbytes / 1e6:g} MB / np.copyto of the same",
            lambda: column.write(column.query, column.values),
            lambda: np.copyto(copy, column.values),
            repeats,
        )


def _maps(repeats: int, many: int) -> Iterator[Row]:
    def mapped(column: _Column) -> None:
        mapping = column.map()
        mapping.fetch_next()
        mapping.unmap().wait()
        column.ordinal += 1
        column.stage.advance_write_floor(column.ordinal).wait()

    with _column(many) as (long, _), _column(1000) as (short, _):
        yield _ratio(f"map and unmap of {many:,} rows / of 1,000", lambda: mapped(long), lambda: mapped(short), repeats)


def _reads(repeats: int, many: int) -> Iterator[Row]:
    with _column(many) as (long, _), _column(1000) as (short, _):
        yield _ratio(
            f"read of {many:,} rows / of 1,000", lambda: long.read().release(), lambda: short.read().release(), repeats
        )


def _sparse(repeats: int, many: int) -> Iterator[Row]:
    import numpy as np

    rows = np.sort(np.random.default_rng(2).choice(many, many // 100, replace=False))
    with _column(many, rows) as (column, some):
        values, plain = column.values[rows], column.values.copy()

        def scatter() -> None:
            plain[rows] = values

        yield _ratio(
            f"write and seal of 1 % of {many:,} rows / plain[rows] = values",
            lambda: column.write(some, values),
            scatter,
            repeats,
        )


def _names(repeats: int, many: int) -> Iterator[Row]:
    paths = [f"/World/Group{i % 1000}/Prim{i}" for i in range(many)]
    with PathDictionary() as names:
        spent = timed(lambda: names.intern_paths(paths))
    yield Row(f"interning {many:,} paths, each", shown(spent / many))
