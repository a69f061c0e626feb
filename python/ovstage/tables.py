"""Reads as tables of pyarrow and pandas: a row for each prim of a query, a column for each attribute.

They are made of what ``Read.to_numpy`` gives, and hold the same values. The libraries load when a table is asked for.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ovstage.cache import drop_oldest
from ovstage.columns import Column, every, some
from ovstage.columns import column as gathered
from ovstage.dlpack import element_name
from ovstage.enums import AttributeSemantic
from ovstage.errors import OvxError
from ovstage.values import Attribute

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas
    import pyarrow

    from ovstage.groups import ReadGroup
    from ovstage.stage import Stage

Lookup = Callable[[Sequence[int]], Sequence[str]]

PRIM = "usd-path"
"""The column, or index, with the path of each row. No attribute of this name can be written."""

DELETED = " deleted"
"""How the column of truth values is called, behind the name of an attribute, that tells which prims have lost it."""


class Listed:
    """The paths of a list as texts, and as a column of each library once that is asked for."""

    __slots__ = ("columns", "texts")

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self.columns: dict[str, Any] = {}

    def column(self, library: str, make: Callable[[Sequence[str]], Any]) -> Any:
        """The column of a library, which cannot be changed."""
        made = self.columns.get(library)
        if made is None:
            made = self.columns[library] = make(self.texts)
        return made


class Lists:
    """The paths of the lists that were shown last. To make texts of them costs a thousand times what a read costs.

    A list is known by its handle, and one whose handle is new by its content, since every query has a handle of its
    own. Threads share it without a lock: of two that make the same, one is kept.
    """

    MOST = 16
    MOST_PATHS = 1 << 20

    def __init__(self) -> None:
        self._by_handle: dict[int, Listed] = {}
        self._by_content: dict[bytes, Listed] = {}

    def of(self, stage: Stage, handle: int) -> Listed:
        """The paths of a list."""
        found = self._by_handle.get(handle)
        if found is None:
            paths = stage._list_paths(handle)
            content = array("Q", paths).tobytes()
            found = self._by_content.get(content)
            if found is None:
                found = self._by_content[content] = Listed(stage._path_strings(paths))
                drop_oldest(self._by_content, self.MOST, 8 * self.MOST_PATHS)
            self._by_handle[handle] = found
            drop_oldest(self._by_handle, self.MOST)
        return found


@dataclass(frozen=True)
class Content:
    """What a table shows: columns by the attribute's name, and the prims that their rows are about."""

    columns: Mapping[str, Column]
    paths: Listed
    fields: Mapping[str, Mapping[str, str]]
    """What a column is beyond its type in the table: role, element type, lanes, and the name of its type."""
    missing: Mapping[str, str]
    """Why there is no column of an attribute that was asked for."""

    @classmethod
    def of(cls, columns: Mapping[str, Column], paths: Listed, missing: Mapping[str, str]) -> Content:
        """Columns as they were read."""
        return cls(columns, paths, {name: _field(column) for name, column in columns.items()}, missing)

    def worded(self, tokens: Lookup, paths: Lookup, *, strings: bool) -> Content:
        """The same with texts where the type is one; with ``strings`` also names in place of the ids of tokens and
        paths, and texts in place of the bytes of strings."""
        lookups = {"token": tokens, "path": paths}
        worded = {
            name: _worded(name, column, lookups)
            for name, column in self.columns.items()
            if strings or column.type_name in _TEXTS
        }
        return replace(self, columns={**self.columns, **worded}) if worded else self


def whole(pa: Any, stage: Stage, groups: Sequence[ReadGroup]) -> dict[Attribute, pyarrow.Table]:
    """A table for each attribute and schema of groups that one query serves, of the prims that have a value."""
    found = {}
    for attribute, content in contents(stage, groups):
        table = arrow(pa, content.worded(stage._token_strings, stage._path_strings, strings=False))
        (values,) = content.columns.values()
        found[attribute] = table if every(values.valid) else table.filter(pa.array(values.valid))
    return found


def contents(stage: Stage, groups: Sequence[ReadGroup]) -> Iterator[tuple[Attribute, Content]]:
    """Each attribute and schema of groups that one query serves, with its one column."""
    by_schema: dict[tuple[object, ...], list[ReadGroup]] = {}
    for group in groups:
        dtype = group._dtype()
        schema = group.attribute, dtype.code, dtype.bits, dtype.lanes, group.is_array, group.semantic, group._type_token
        by_schema.setdefault(schema, []).append(group)
    for parts in by_schema.values():
        listed = stage._lists.of(stage, parts[0].prim_list)
        name = parts[0]._name()
        yield _attribute(name, parts), Content.of({name: gathered(parts, len(listed.texts))}, listed, {})


def _attribute(name: str, groups: Sequence[ReadGroup]) -> Attribute:
    first, dtype = groups[0], groups[0]._dtype()
    return Attribute(
        name,
        first.type_name,
        first.semantic,
        element_name(int(dtype.code), int(dtype.bits)),
        int(dtype.lanes),
        first.is_array,
        sum(group.prim_count for group in groups),
        first.attribute_write_floor_ordinal,
    )


def package(name: str, purpose: str, distribution: str = "") -> Any:
    """A library that is not needed otherwise. ``distribution`` is what pip calls it, where that is not its name."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        text = f"{purpose} needs the package {name}, which is not installed: pip install {distribution or name}"
        raise ModuleNotFoundError(text, name=name) from None


# --- pyarrow --------------------------------------------------------------------------------------------------------


def arrow(pa: Any, content: Content) -> pyarrow.Table:
    """The columns' own memory under Arrow's types, wherever Arrow lays values out as they are."""
    paths = content.paths.column("pyarrow", lambda texts: pa.array(texts, pa.string()))
    arrays, fields = [paths], [_PRIM_FIELD.get(pa) or _PRIM_FIELD.setdefault(pa, pa.field(PRIM, pa.string()))]
    for name, column in content.columns.items():
        if name == PRIM:
            continue
        arrays.append(_arrow_column(pa, name, column))
        fields.append(pa.field(name, arrays[-1].type, metadata=content.fields[name]))
        if some(column.deleted):
            arrays.append(pa.array(column.deleted))
            fields.append(pa.field(_deletion(name), pa.bool_()))
    said = {"missing": json.dumps(content.missing)} if content.missing else None
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, said))


_PRIM_FIELD: dict[Any, Any] = {}


def _field(column: Column) -> Mapping[str, str]:
    lanes = column.values.shape[1] if column.values.ndim == 2 else 1
    return _said(column.semantic, column.values.dtype, lanes, column.type_name)


@lru_cache(256)  # to name a dtype costs as much as to read the column
def _said(semantic: AttributeSemantic, dtype: np.dtype[Any], lanes: int, type_name: str) -> Mapping[str, str]:
    said = {"role": semantic.name, "dtype": str(dtype), "lanes": str(lanes)}
    return said | {"type": type_name} if type_name else said


def _arrow_column(pa: Any, name: str, column: Column) -> Any:
    import numpy as np

    values, offsets, rows = column.values, column.offsets, len(column)
    if values.shape[1:] == (0,):
        return pa.nulls(rows)
    outermost = "list" if offsets is not None else "lanes" if values.ndim == 2 else "elements"
    bits: dict[str, Any] = {}  # only a prim as a whole has no value
    if not every(column.valid):
        bits[outermost] = pa.py_buffer(np.packbits(column.valid, bitorder="little"))
    array = _arrow_elements(pa, name, values.reshape(-1), bits.get("elements"))
    if values.ndim == 2:
        kind = pa.list_(array.type, values.shape[1])
        array = pa.Array.from_buffers(kind, len(values), [bits.get("lanes")], children=[array])
    if offsets is not None:
        wide = offsets[-1] > np.iinfo(np.int32).max
        kind, ends = (pa.large_list, offsets) if wide else (pa.list_, offsets.astype(np.int32))
        array = pa.Array.from_buffers(kind(array.type), rows, [bits.get("list"), pa.py_buffer(ends)], children=[array])
    return array


def _arrow_elements(pa: Any, name: str, flat: npt.NDArray[Any], valid: Any) -> Any:
    import numpy as np

    if flat.dtype == object:
        return pa.array(flat, pa.string())
    try:
        kind = pa.from_numpy_dtype(flat.dtype)
    except (TypeError, pa.ArrowNotImplementedError):
        raise _unfit(name, flat.dtype, "Arrow") from None
    values = np.packbits(flat, bitorder="little") if flat.dtype == bool else flat
    return pa.Array.from_buffers(kind, len(flat), [valid, pa.py_buffer(values)])


# --- pandas ---------------------------------------------------------------------------------------------------------


def frame(pd: Any, content: Content) -> pandas.DataFrame:
    """A copy. Every lane is a column of its own, an array is one object."""
    data: dict[str, Any] = {}
    for name, column in content.columns.items():
        if name == PRIM:
            continue
        parts = _frame_columns(pd, name, column)
        if some(column.deleted):
            parts[_deletion(name)] = column.deleted
        for part in parts.keys() & data.keys():
            raise ValueError(f"two columns would be called {part!r}: read the attributes {part!r} and {name!r} apart")
        data |= parts
    kind = pd.DataFrame
    if content.missing:
        kind = import_module("ovstage.frames").Frame
    index = content.paths.column("pandas", lambda texts: pd.Index(texts, name=PRIM, dtype=object))
    made = kind(data, index=index, copy=True)
    if content.missing:
        made.attrs["missing"] = dict(content.missing)
    return made


def _frame_columns(pd: Any, name: str, column: Column) -> dict[str, Any]:
    import numpy as np

    values, valid, rows = column.values, column.valid, len(column)
    if values.shape[1:] == (0,):
        return {name: np.full(rows, None)}
    if values.dtype != object and values.dtype.isbuiltin != 1:
        raise _unfit(name, values.dtype, "pandas")
    if column.offsets is not None:
        cells = (column.row(i) if valid[i] else None for i in range(rows))
        return {name: np.fromiter(cells, object, rows)}
    if values.ndim == 1:
        return {name: _cells(pd, values, valid)}
    return {f"{name}.{lane}": _cells(pd, values[:, lane], valid) for lane in range(values.shape[1])}


def _cells(pd: Any, values: npt.NDArray[Any], valid: npt.NDArray[np.bool_]) -> Any:
    """Missing floats are NaN; integers and truth values, which have none, become pandas' nullable types."""
    import numpy as np

    if every(valid) or values.dtype == object:
        return values
    if values.dtype.kind in "fc":
        return np.where(valid, values, values.dtype.type("nan"))
    kind = pd.arrays.BooleanArray if values.dtype == bool else pd.arrays.IntegerArray
    return kind(np.ascontiguousarray(values), ~valid)


# --- words ----------------------------------------------------------------------------------------------------------


_IDS = {
    AttributeSemantic.TOKEN_ID: ("token",),
    AttributeSemantic.PATH_EXPRESSION_STRING: ("token",),
    AttributeSemantic.ASSET_PATH_ID: ("token", "token"),
    AttributeSemantic.RELATIONSHIP_PATH_ID: ("path",),
    AttributeSemantic.CONNECTION_PATH_ID: ("path", "token"),
    "usd-prim-type": ("token",),
    "usd-schemas": ("token",),
    "usd-parent": ("path",),
    "usd-children": ("path",),
}
"""Of what each lane is the id, by role, or by name for the attributes whose meaning is their name."""

_TEXTS = ("string", "string[]")
"""The types whose values are ids of texts without a role that says so."""

_IDS_OF_TYPES = {
    "string": ("token",),
    "token": ("token",),
    "pathExpression": ("token",),
    "asset": ("token", "token"),
    "relationship": ("path",),
    "connection": ("path", "token"),
}


def are_texts(column: Column) -> bool:
    """Whether the values are ids of texts by their type alone."""
    by_type = column.type_name in _TEXTS and column.semantic == AttributeSemantic.NONE
    return by_type and bool(column.values.dtype == "uint64")


def ids_of(name: str, type_name: str, role: AttributeSemantic) -> Sequence[str]:
    """Of what each lane of an attribute is the id: ``token`` or ``path``; nothing where lanes are numbers."""
    return _IDS.get(name) or _IDS_OF_TYPES.get(type_name.removesuffix("[]")) or _IDS.get(role, ())


def _worded(name: str, column: Column, lookups: Mapping[str, Lookup]) -> Column:
    import numpy as np

    if column.semantic == AttributeSemantic.STRING and column.offsets is not None:
        return replace(column, values=_decoded(name, column), offsets=None)
    lanes = ids_of(name, column.type_name, column.semantic)
    if not lanes or column.values.dtype != np.uint64 or column.values.size % len(lanes):
        return column
    ids = column.values.reshape(-1, len(lanes))
    values = np.empty(ids.shape, object)
    for lane, kind in enumerate(lanes):
        values[:, lane] = _named(name, ids[:, lane], lookups[kind], "" if kind == "token" else None)
    if column.offsets is None:
        values[~column.valid] = None
    return replace(column, values=values.reshape(column.values.shape))


def _named(name: str, ids: npt.NDArray[Any], lookup: Lookup, zero: str | None) -> npt.NDArray[Any]:
    """The name of each id. Id 0 cannot be looked up: it is the empty token, and no path."""
    import numpy as np

    distinct, which = np.unique(ids, return_inverse=True)
    try:
        names = lookup(distinct[distinct != 0].tolist())
    except OvxError as error:
        raise ValueError(
            f"attribute {name!r} holds ids that name nothing, leave out strings, or take it by to_numpy(): {error}"
        ) from error
    return np.array([zero] * (len(distinct) - len(names)) + list(names), object)[which]


def _decoded(name: str, column: Column) -> npt.NDArray[Any]:
    import numpy as np

    rows = range(len(column))
    try:
        texts = (column.row(i).tobytes().decode() if column.valid[i] else None for i in rows)
        return np.fromiter(texts, object, len(rows))
    except UnicodeDecodeError as error:
        raise ValueError(f"attribute {name!r} holds bytes that are no UTF-8, leave out strings: {error}") from error


# --- what both have -------------------------------------------------------------------------------------------------


def _deletion(name: str) -> str:
    return name + DELETED


def _unfit(name: str, dtype: np.dtype[Any], library: str) -> ValueError:
    return ValueError(f"attribute {name!r} has the element type {dtype}, which {library} lacks: take it by to_numpy()")
