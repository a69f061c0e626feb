"""What a stage holds at one ordinal, by prim: the side of an export that reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ovstage.errors import ErrorCode, OvstageError
from ovstage.population.reserved import METADATA, SCHEMAS, TYPE, UNTYPED
from ovstage.values import OrdinalRange

if TYPE_CHECKING:
    from ovstage.groups import ReadGroup
    from ovstage.stage import Stage

__all__ = ["Holdings", "Rows", "hold"]

_STRUCTURE = ("usd-path", "usd-parent", "usd-children", "usd-active")
PROTOTYPES = "/__Prototype_"
"""What the shared contents of instances are called; it belongs to USD's own bookkeeping."""


class Rows:
    """One attribute of one type, on some prims. It holds its own snapshot of the values."""

    def __init__(self, name: str, group: ReadGroup) -> None:
        self.name = name
        self.lost = group.is_delete
        self.is_array = group.is_array
        self.semantic = group.semantic
        self.type_name = group.type_name
        self.prims: Sequence[int] = group.prim_indices().tolist()
        self._rows = group.data_rows()
        self._tensors = [] if self.lost else [group.array(i, shaped=True) for i in range(group.tensor_count)]

    @cached_property
    def schema(self) -> tuple[str, int]:
        """NumPy's name of the element type, and the lanes."""
        return (str(self._tensors[0].dtype), self._tensors[0].shape[1]) if self._tensors else ("", 0)

    def fixed(self) -> np.ndarray[Any, Any]:
        """The value of each prim, one row of lanes per prim."""
        return self._tensors[0][self._rows]

    def arrays(self) -> list[np.ndarray[Any, Any]]:
        """The array of each prim, one row of lanes per element."""
        return [self._tensors[row] for row in self._rows]


@dataclass(frozen=True)
class Prim:
    """What the stage knows about a prim's kind."""

    row: int
    path: str
    type: str
    schemas: tuple[str, ...]
    """Applied schemas, those that USD knows and those that it does not."""

    @property
    def usd_type(self) -> str:
        """The type to write: population calls a prim without one untyped, and says which transforms are instances."""
        return {UNTYPED: "", "XformInstance": "Xform"}.get(self.type, self.type)


class Holdings:
    """A snapshot of a whole stage: its prims in the order of their creation, and its columns."""

    def __init__(self, stage: Stage, paths: list[str], columns: dict[str, list[Rows]]) -> None:
        self._stage = stage
        self._columns = columns
        self._texts: dict[int, str] = {0: ""}
        types = dict(self._texts_of(TYPE))
        schemas: dict[int, list[str]] = {}
        for name in (SCHEMAS, f"{METADATA}apiSchemas"):
            for row, words in self._texts_of(name):
                schemas.setdefault(row, []).extend(words)
        self.prims = [
            Prim(row, path, str(types.get(row, "")), tuple(dict.fromkeys(schemas.get(row, ()))))
            for row, path in enumerate(paths)
            if not path.startswith(PROTOTYPES)
        ]
        self._by_row = {prim.row: prim for prim in self.prims}

    @property
    def names(self) -> Iterable[str]:
        """Every attribute that some prim has."""
        return self._columns

    def by_row(self, row: int) -> Prim | None:
        """The prim of a row; ``None`` for the contents of a prototype."""
        return self._by_row.get(row)

    def rows(self, name: str) -> list[Rows]:
        """An attribute's values; several entries where prims have it with different types."""
        return [rows for rows in self._columns.get(name, ()) if not rows.lost]

    def only(self, changed: dict[str, list[Rows]]) -> Holdings:
        """The same prims with fewer values: those of ``changed``."""
        fewer = Holdings.__new__(Holdings)
        fewer.__dict__.update(self.__dict__)
        fewer._columns = changed
        return fewer

    def texts(self, ids: Iterable[int]) -> list[str]:
        """The texts of token ids."""
        wanted = list(ids)
        missing = list(set(wanted).difference(self._texts))
        self._texts.update(zip(missing, self._stage._token_strings(missing), strict=True))
        return [self._texts[each] for each in wanted]

    def path_texts(self, ids: Iterable[int]) -> list[str]:
        """The texts of path ids."""
        return self._stage._path_strings(list(ids))

    def _texts_of(self, name: str) -> Iterator[tuple[int, Any]]:
        for rows in self.rows(name):
            if rows.is_array:
                values: list[Any] = [self.texts(array.ravel().tolist()) for array in rows.arrays()]
            else:
                values = self.texts(rows.fixed()[:, 0].tolist())
            yield from zip(rows.prims, values, strict=True)


def hold(stage: Stage, ordinal: int, since: int | None) -> tuple[Holdings, Holdings]:
    """All that the stage holds at its write floor, and the part that changed after ``since`` (all with ``None``).

    Raises ``OvstageError`` for another ordinal than the write floor: what lies below it is not kept, what lies above it
    is not final.
    """
    with stage.get_attribute_write_floor() as query:
        floor = query.fetch()
    if ordinal != floor:
        stale = ordinal < floor
        raise OvstageError(
            ErrorCode.OUT_OF_RANGE if stale else ErrorCode.WRITE_FLOOR_VIOLATION,
            f"ordinal {ordinal} is {'stale' if stale else 'not sealed yet'}: an export writes the current state, "
            f"which is that of ordinal {floor}",
        )
    with stage.query() as query_all:
        query_all.wait()
        attributes = stage.fetch_query_result(query_all).attributes
        names = dict(zip(attributes, stage._token_strings(attributes), strict=True))
        paths = _paths(stage, query_all, ordinal)
        whole = Holdings(stage, paths, _columns(stage, query_all, names, OrdinalRange.latest(ordinal)))
        if since is None:
            return whole, whole
        changed = _columns(stage, query_all, names, OrdinalRange.between(since + 1, ordinal)) if since < ordinal else {}
        return whole, whole.only(changed)


def _paths(stage: Stage, query: Any, ordinal: int) -> list[str]:
    token = stage._intern_tokens(("usd-path",))[0]
    with stage.read_attributes(query, [token], OrdinalRange.latest(ordinal)) as read:
        read.wait()
        for group in read.groups():
            with group:
                return stage._path_strings(stage._list_paths(group.prim_list))
    return []


def _columns(stage: Stage, query: Any, names: dict[int, str], window: OrdinalRange) -> dict[str, list[Rows]]:
    tokens = [token for token, name in names.items() if name not in _STRUCTURE]
    columns: dict[str, list[Rows]] = {}
    if not tokens:
        return columns
    with stage.read_attributes(query, tokens, window) as read:
        read.wait()
        for group in read.groups():
            with group:
                name = names[group.attribute]
                columns.setdefault(name, []).append(Rows(name, group))
    return columns
