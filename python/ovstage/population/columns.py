"""What is read from a scene before it is written: prims, and columns of values over them.

Values become numbers while the scene is read, a few thousand at a time: a whole scene as Python objects would cost many
times its memory, and what allocating that costs in time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ovstage.population.names import Names
from ovstage.population.ragged import Indices, Values
from ovstage.population.report import Skipped
from ovstage.population.texts import is_too_long

if TYPE_CHECKING:
    from ovstage.population.forms import Form

__all__ = ["Column", "Scene"]


class Column:
    """One attribute in one form: the prims that carry it, and their values."""

    __slots__ = ("_parts", "_shared", "converted", "form", "name", "rows", "values")

    def __init__(self, name: str, form: Form) -> None:
        self.name = name
        self.form = form
        self.rows: list[int] = []  # indices into Scene.paths
        self.values: list[Any] = []  # as USD hands them out, until the next ``pack``
        self.converted: list[int] = []  # the prims whose value is of another type than the column
        self._parts: list[tuple[Indices, Values]] = []
        self._shared: list[tuple[list[int], object]] = []

    def add(self, row: int, value: object) -> None:
        """Record the value of one prim."""
        self.rows.append(row)
        self.values.append(value)

    def extend(self, rows: Sequence[int], values: Sequence[Any]) -> None:
        """Record the values of several prims."""
        self.rows.extend(rows)
        self.values.extend(values)

    def share(self, rows: list[int], value: object) -> None:
        """Record one value for all prims that ``rows`` names when the column is settled."""
        self._shared.append((rows, value))

    def put(self, rows: Indices, values: npt.NDArray[Any]) -> None:
        """Record computed values instead of all others."""
        self._parts = [(rows, Values(values.reshape(len(values), self.form.lanes)))]

    def append(self, rows: Indices, values: Values, converted: bool) -> None:
        """Record values that are numbers already."""
        self._parts.append((rows, values))
        if converted:
            self.converted += rows.tolist()

    def pack(self, names: Names) -> None:
        """Turn the values into numbers."""
        rows, values = np.array(self.rows, np.int64), self.values
        if (rows[1:] < rows[:-1]).any():  # to bring objects into order takes less than to copy what they hold
            order = np.argsort(rows, kind="stable")
            rows, values = rows[order], [values[at] for at in order.tolist()]
        self._parts.append((rows, self.form.pack(values, names)))
        self.rows.clear()
        self.values.clear()

    def settle(self, names: Names) -> None:
        """Turn what all prims together share into numbers, and bring everything into the order of the rows."""
        for sharing, value in self._shared:
            if sharing:
                part = self.form.pack([value], names).repeated(len(sharing))
                self._parts.append((np.array(sharing, np.int64), part))
        self._shared.clear()
        if len(self._parts) > 1:
            rows = np.concatenate([rows for rows, _ in self._parts])
            self._parts = [(rows, Values.joined([part for _, part in self._parts]))]
        for rows, packed in self._parts:
            if len(rows) > 1 and (rows[1:] < rows[:-1]).any():
                order = np.argsort(rows, kind="stable")
                self._parts = [(rows[order], packed.take(order))]

    def drop(self) -> list[int]:
        """Forget the values of a settled column; the prims that had one."""
        rows = [row for rows, _ in self._parts for row in rows.tolist()]
        self._parts.clear()
        return rows

    @property
    def packed(self) -> tuple[Indices, Values] | None:
        """The rows of a settled column, ascending, and their values; None without any."""
        return self._parts[0] if self._parts and len(self._parts[0][0]) else None


class Scene:
    """The prims of a scene in traversal order, and the columns over them."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.varying: list[str] = []
        """The prims that may be different at another time; known of a reading at a time, not of one of defaults."""
        self.names = Names()
        """The texts and paths that the columns mean."""
        self._columns: dict[tuple[str, Form], Column] = {}
        self._skipped: defaultdict[tuple[str, str], set[int]] = defaultdict(set)  # the rows, by attribute and reason

    @property
    def columns(self) -> list[Column]:
        """Every column that has something to store."""
        return [column for column in self._columns.values() if column.packed]

    @property
    def skipped(self) -> list[Skipped]:
        """What was left out and why, in the order of the prims."""
        found = [(sorted(rows), key) for key, rows in self._skipped.items()]
        found.sort(key=lambda each: each[0][0])
        return [
            Skipped(self.paths[rows[0]], *key, len(rows), tuple(self.paths[row] for row in rows)) for rows, key in found
        ]

    def new_row(self, path: str) -> int:
        """Give the next prim its row."""
        self.paths.append(path)
        return len(self.paths) - 1

    def column(self, name: str, form: Form) -> Column:
        """The column of that name and form, made when it is asked for first."""
        key = (name, form)
        found = self._columns.get(key)
        if found is None:
            found = self._columns[key] = Column(name, form)
        return found

    def skip(self, rows: Iterable[int], attribute: str, reason: str) -> None:
        """Note that something of some prims is left out, or not exact."""
        if found := set(rows):
            self._skipped[attribute, reason] |= found

    def pack(self, least: int = 1) -> None:
        """Turn what was read into numbers, in every column with at least that many values."""
        for column in self._columns.values():
            if len(column.rows) >= least:
                self._pack(column)

    def settle(self) -> None:
        """Turn all that was read into numbers, in the order of the rows."""
        self.pack()
        for column in self._columns.values():
            column.settle(self.names)
            if is_too_long(column.name):
                self.skip(column.drop(), column.name, "its name is longer than that of an attribute of a stage can be")

    def _pack(self, column: Column) -> None:
        """Values of another type are converted first; what a column cannot hold is left out."""
        if set(map(type, column.values)).issubset(column.form.accepts):
            try:
                column.pack(self.names)
                return
            except (TypeError, ValueError, OverflowError):
                pass  # one of them is to blame, and the others are kept
        alike: defaultdict[type, list[tuple[int, Any]]] = defaultdict(list)
        for row, value in zip(column.rows, column.values, strict=True):
            alike[type(value)].append((row, value))
        column.rows.clear()
        column.values.clear()
        for pairs in alike.values():
            self._fit(column, *zip(*pairs, strict=True))

    def _fit(self, column: Column, rows: Sequence[int], values: Sequence[Any]) -> None:
        """Convert values of one class, all at once if that goes well."""
        form = column.form
        try:
            packed, lost, rounded = form.fitted(values, self.names)
        except (TypeError, ValueError, OverflowError) as error:
            if len(values) == 1:
                self.skip(rows, column.name, form.complaint(values[0], error))
                return
            for row, value in zip(rows, values, strict=True):
                self._fit(column, (row,), (value,))
            return
        for row, value in compress(zip(rows, values, strict=True), lost):
            self.skip((row,), column.name, form.complaint(value))
        self.skip(compress(rows, rounded & ~lost), column.name, f"its value is rounded to a {form.type_name}")
        kept = np.flatnonzero(~lost)
        column.append(np.array(rows, np.int64)[kept], packed.take(kept), type(values[0]) not in form.accepts)
