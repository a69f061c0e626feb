"""What is in a stage, for a person who looks: its prims as a tree, each with its properties and their values.

A ``Tree`` is made of one read, as of one ordinal, and keeps what it shows when the stage moves on. Values are looked at
when they are asked for.
"""

from __future__ import annotations

import contextlib
import fnmatch
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ovstage import tables
from ovstage.columns import Column
from ovstage.shown import counted
from ovstage.values import Attribute

if TYPE_CHECKING:
    from ovstage.differences import Differences
    from ovstage.groups import ReadGroup
    from ovstage.stage import Stage

__all__ = ["Prim", "Property", "Tree"]

TYPE = "usd-prim-type"
"""The attribute that holds the type of a prim. It is shown beside the path, and is no property of its own."""

UNTYPED = "__ovstage_population_untyped__"
"""What population writes as the type of a prim that has none."""

_HEAD = 40
"""How many lines ``repr`` shows."""

_FEW = 4
"""How many numbers of a value a line shows."""

_WIDE = 60
"""How many characters of a text a line shows."""


@dataclass(frozen=True)
class Property:
    """One attribute of one prim."""

    prim: str
    attribute: Attribute
    """Name, type, element type, lanes and role."""
    value: Any
    """As ``stage.get`` has it, in Python's own types: a number, a text, a list of lanes or of elements. Names
    stand in place of the ids of tokens and paths."""

    @property
    def name(self) -> str:
        """The attribute's name."""
        return self.attribute.name

    @property
    def schema(self) -> str:
        """The type's name, or the element type where it has no name: ``color3f``, ``float32x3``, ``int32[]``."""
        return _schema(self.attribute)

    def json(self) -> dict[str, Any]:
        """What ``json.dumps`` takes; numbers that JSON lacks are the texts ``nan`` and ``inf``."""
        of = self.attribute
        return {
            "name": of.name,
            "type": of.type_name,
            "dtype": of.dtype,
            "lanes": of.lanes,
            "array": of.is_array,
            "role": of.semantic.name,
            "value": _plain(self.value),
        }

    def __repr__(self) -> str:
        return f".{self.name}  {_kind(self.attribute)}  {_text(self.value)}"


@dataclass(frozen=True, eq=False)
class Prim:
    """One prim of a tree: its type, what it carries, and what lies below it."""

    tree: Tree
    path: str
    row: int
    """Its row in what was read, or -1: a path that is there because of those below it."""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2] or "/"

    @property
    def type(self) -> str:
        """The type that the prim was given in a scene; an empty text where it has none."""
        return self.tree._type(self.row)

    @property
    def properties(self) -> dict[str, Property]:
        """By name, in alphabetical order."""
        return self.tree._properties(self)

    @property
    def children(self) -> list[Prim]:
        """Those right below it, in the order of their creation."""
        below = self.tree._children.get("" if self.path == "/" else self.path, ())
        return [self.tree[path] for path in below if path != "/"]

    def __repr__(self) -> str:
        return "\n".join(_cut(self.tree._lines(self.path, 0), _HEAD))


class Tree(Mapping[str, Prim]):
    """The prims of a stage by path, as of one ordinal: ``tree["/World"].properties``, ``for path in tree``.

    ``repr`` shows the first lines, ``text()`` all of them, ``json()`` what programs want.
    """

    def __init__(self, paths: Sequence[str], columns: Sequence[tuple[Attribute, Column]], ordinal: int) -> None:
        self.ordinal = ordinal
        """As of which ordinal."""
        self.columns = columns
        """Each attribute and type with its values; a row per prim of ``rows``."""
        self.rows = paths
        """The paths behind the rows of ``columns``."""
        self._carried: dict[int, list[int]] = {}
        self._types: list[str | None] = []
        for at, (attribute, column) in enumerate(columns):
            if attribute.name == TYPE:
                self._types = column.values.tolist()
                continue
            for row in column.valid.nonzero()[0].tolist():
                self._carried.setdefault(row, []).append(at)
        self._at = {path: row for row, path in enumerate(paths)}
        self._children = _children(paths)

    def __getitem__(self, path: str) -> Prim:
        row = self._at.get(path, -1)
        if row < 0 and path not in self._children:
            raise KeyError(f"no prim {path!r} in the tree")
        return Prim(self, path, row)

    def __iter__(self) -> Iterator[str]:
        return iter(self._at)

    def __len__(self) -> int:
        return len(self._at)

    def __repr__(self) -> str:
        return "\n".join([*_cut(self.lines(), _HEAD), self.summary()])

    def text(self) -> str:
        """All of it, a line for each prim and each property."""
        return "\n".join([*self.lines(), self.summary()])

    def lines(self) -> Iterator[str]:
        """The lines of ``text()`` but the last, one by one."""
        for path in sorted(self._children.get("", ()), key=lambda path: path != "/"):
            yield from self._lines(path, 0)

    def summary(self) -> str:
        """How much it is, in a line."""
        shown = sum(map(len, self._carried.values()))
        return f"{counted(len(self), 'prim')}, {counted(shown, 'value')}, as of ordinal {self.ordinal}"

    def json(self) -> dict[str, Any]:
        """All of it as what ``json.dumps`` takes, with values as ``Property.json`` has them."""
        return {
            "ordinal": self.ordinal,
            "prims": [
                {"path": prim.path, "type": prim.type, "properties": [p.json() for p in prim.properties.values()]}
                for prim in self.values()
            ],
        }

    def difference(self, after: Tree) -> Differences:
        """What has to happen to this tree to become another one."""
        from ovstage.differences import Differences

        if not isinstance(after, Tree):
            raise TypeError(f"after must be a Tree, such as stage.tree() gives, got {after!r}")
        return Differences(self, after)

    # --- what prims ask ---

    def _type(self, row: int) -> str:
        found = self._types[row] if self._types and row >= 0 else None
        return "" if found is None or found == UNTYPED else found

    def _properties(self, prim: Prim) -> dict[str, Property]:
        found = (self.columns[at] for at in self._carried.get(prim.row, ()))
        made = [Property(prim.path, attribute, value_of(column, prim.row)) for attribute, column in found]
        return {one.name: one for one in sorted(made, key=lambda one: one.name)}

    def _lines(self, top: str, depth: int) -> Iterator[str]:
        """Of a prim and what is below it; without recursion, since scenes are deeper than Python goes."""
        waiting = [(top, depth)]
        while waiting:
            path, deep = waiting.pop()
            indent, row = "  " * deep, self._at.get(path, -1)
            name = path if deep == depth else path.rpartition("/")[2]
            yield f"{indent}{name}{'  ' * bool(self._type(row))}{self._type(row)}"
            carried = sorted(self._carried.get(row, ()), key=lambda at: self.columns[at][0].name)
            for attribute, column in (self.columns[at] for at in carried):
                shown = _text(value_of(column, row, _FEW))
                yield f"{indent}  .{attribute.name}  {_kind(attribute)}  {shown}"
            waiting += [(below, deep + 1) for below in reversed(self._children.get(path, ()))]


def grown(stage: Stage, groups: Sequence[ReadGroup], prims: str, attributes: str) -> Tree:
    """The tree of the groups that one query of the whole stage serves. ``prims`` and ``attributes`` are globs."""
    ordinal = max((group.ordinal for group in groups), default=0)
    paths: Sequence[str] = ()
    columns = []
    for attribute, content in tables.contents(stage, groups):
        if attribute.name == TYPE or fnmatch.fnmatchcase(attribute.name, attributes):
            columns.append((attribute, _worded(stage, content)))
            paths = content.paths.texts
    if prims == "*":
        return Tree(paths, columns, ordinal)
    rows = [row for row, path in enumerate(paths) if fnmatch.fnmatchcase(path, prims)]
    return Tree([paths[row] for row in rows], [(a, _taken(column, rows)) for a, column in columns], ordinal)


def value_of(column: Column, row: int, most: int | None = None) -> Any:
    """The value of a row as Python has it. With ``most``, of longer ones the first so many and ``...`` are given."""
    value = column.values[row] if column.offsets is None else column.row(row)
    if not hasattr(value, "tolist"):
        return value
    if most is None or value.ndim == 0 or value.size <= most:
        return value.tolist()
    flat = value.reshape(-1)
    return [*flat[:most].tolist(), ..., value.shape[0]]


# --- steps ---


def _worded(stage: Stage, content: tables.Content) -> Column:
    """Names in place of ids, but where an id names nothing: then a person sees the numbers."""
    with contextlib.suppress(ValueError):
        content = content.worded(stage._token_strings, stage._path_strings, strings=True)
    return next(iter(content.columns.values()))


def _taken(column: Column, rows: Sequence[int]) -> Column:
    """Some rows of a column."""
    import numpy as np

    if column.offsets is None:
        return replace(column, values=column.values[rows], valid=column.valid[rows], deleted=column.deleted[rows])
    parts = [column.row(row) for row in rows]
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.int64)]).astype(np.int64)
    values = np.concatenate([column.values[:0], *parts])
    return replace(column, values=values, valid=column.valid[rows], deleted=column.deleted[rows], offsets=offsets)


def _children(paths: Sequence[str]) -> dict[str, list[str]]:
    """The paths right below each path, the empty one for the roots; paths that only others need are there, too."""
    found: dict[str, list[str]] = {}
    seen = set()
    for path in paths:
        while path and path not in seen:
            seen.add(path)
            above = path.rpartition("/")[0]
            found.setdefault(above, []).append(path)
            path = above
    return found


def _schema(attribute: Attribute) -> str:
    if attribute.type_name:
        return attribute.type_name
    lanes = f"x{attribute.lanes}" if attribute.lanes != 1 else ""
    return f"{attribute.dtype}{lanes}{'[]' if attribute.is_array else ''}"


def _kind(attribute: Attribute) -> str:
    role = attribute.semantic.name.lower()
    return _schema(attribute) if role == "none" else f"{_schema(attribute)} ({role})"


def _text(value: Any) -> str:
    match value:
        case str():
            return repr(value if len(value) <= _WIDE else f"{value[:_WIDE]}...")
        case float():
            return f"{value:.6g}"
        case list() if len(value) > _FEW:
            total = value[-1] if value[-2] is ... else len(value)
            return f"[{', '.join(map(_text, value[:_FEW]))}, ... {total}]"
        case list():
            return f"[{', '.join(map(_text, value))}]"
    return str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if isinstance(value, complex):
        return [_plain(value.real), _plain(value.imag)]
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)


def _cut(lines: Iterator[str], most: int) -> list[str]:
    """The first lines, and a line that says that there are more."""
    head = [line for _, line in zip(range(most), lines, strict=False)]
    return head if next(lines, None) is None else [*head, "..."]
