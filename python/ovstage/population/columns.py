"""What is read from a scene before it is written: prims, and columns of values over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ovstage.population.report import Skipped

if TYPE_CHECKING:
    from ovstage.population.forms import Form, Names, Packed

__all__ = ["Column", "Scene"]


class Column:
    """One attribute in one form: the prims that carry it, and their values, still as USD hands them out."""

    __slots__ = ("_shared", "form", "name", "rows", "values")

    def __init__(self, name: str, form: Form) -> None:
        self.name = name
        self.form = form
        self.rows: list[int] = []  # indices into Scene.paths, ascending
        self.values: Any = []  # a list, or the array of what was computed
        self._shared: list[tuple[list[int], object]] = []

    def add(self, row: int, value: object) -> None:
        """Record the value of one prim."""
        self.rows.append(row)
        self.values.append(value)

    def share(self, rows: list[int], value: object) -> None:
        """Record one value that many prims have, to be settled with the others."""
        self._shared.append((rows, value))

    def settle(self) -> None:
        """Bring everything that was recorded into the order of the rows."""
        alone = not self.rows and len(self._shared) == 1
        for rows, value in self._shared:
            self.rows.extend(rows)
            self.values.extend([value] * len(rows))
        if self._shared and not alone:
            self.sort()
        self._shared.clear()

    def sort(self) -> None:
        """Bring values that were added late into the order of the rows."""
        order = np.argsort(np.array(self.rows), kind="stable").tolist()
        self.rows = [self.rows[at] for at in order]
        self.values = [self.values[at] for at in order]


class Scene:
    """The prims of a scene in traversal order, and the columns over them."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self._columns: dict[tuple[str, Form], Column] = {}
        self._skipped: dict[tuple[str, str], Skipped] = {}

    @property
    def columns(self) -> list[Column]:
        """Every column that has something to store."""
        return [column for column in self._columns.values() if column.rows]

    @property
    def skipped(self) -> list[Skipped]:
        """What was left out and why."""
        return list(self._skipped.values())

    def settle(self) -> None:
        """Bring every column into the order of the rows."""
        for column in self._columns.values():
            column.settle()

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

    def skip(self, path: str, attribute: str, reason: str) -> None:
        """Note that something is left out."""
        key = (attribute, reason)
        first = self._skipped.get(key)
        self._skipped[key] = Skipped(first.path if first else path, attribute, reason, first.count + 1 if first else 1)

    def pack(self, names: Names) -> dict[Column, Packed]:
        """Every column as numbers. Values that a column cannot hold are left out first."""
        return {column: self._pack(column, names) for column in self.columns}

    def _pack(self, column: Column, names: Names) -> Packed:
        if isinstance(column.values, np.ndarray) or set(map(type, column.values)).issubset(column.form.accepts):
            try:
                return column.form.pack(column.values, names)
            except (TypeError, ValueError, OverflowError):
                pass  # one of them is to blame, and the others are kept
        complaints = [column.form.complaint(value) for value in column.values]
        for row, complaint in zip(column.rows, complaints, strict=True):
            if complaint:
                self.skip(self.paths[row], column.name, complaint)
        column.rows = [row for row, complaint in zip(column.rows, complaints, strict=True) if not complaint]
        column.values = [value for value, complaint in zip(column.values, complaints, strict=True) if not complaint]
        return column.form.pack(column.values, names)
