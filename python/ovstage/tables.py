"""Reads as tables of pyarrow and pandas: a row for each prim of a query, a column for each attribute.

They are made of what ``Read.to_numpy`` gives, and hold the same values. The libraries load when a table is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ovstage.columns import Column
from ovstage.enums import AttributeSemantic
from ovstage.errors import OvxError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas
    import pyarrow

Lookup = Callable[[Sequence[int]], Sequence[str]]

PRIM = "usd-path"
"""The column, or index, with the path of each row. No attribute of this name can be written."""


@dataclass(frozen=True)
class Content:
    """What a table shows: columns by the attribute's name, and the prims that their rows are about."""

    columns: Mapping[str, Column]
    paths: Sequence[str]
    missing: Mapping[str, str] = field(default_factory=dict)
    """Why there is no column of an attribute that was asked for."""

    def worded(self, tokens: Lookup, paths: Lookup) -> Content:
        """The same, with names in place of the ids of tokens and paths, and texts in place of the bytes of strings."""
        lookups = {"token": tokens, "path": paths}
        return replace(self, columns={name: _worded(name, c, lookups) for name, c in self.columns.items()})


def package(name: str, purpose: str) -> Any:
    """A library that is not needed otherwise."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        text = f"{purpose} needs the package {name}, which is not installed: pip install {name}"
        raise ModuleNotFoundError(text, name=name) from None


# --- pyarrow --------------------------------------------------------------------------------------------------------


def arrow(pa: Any, content: Content) -> pyarrow.Table:
    """The columns' own memory under Arrow's types, wherever Arrow lays values out as they are."""
    data = {PRIM: pa.array(content.paths, pa.string())}
    for name, column in content.columns.items():
        if name == PRIM:
            continue
        data[name] = _arrow_column(pa, name, column)
        if column.deleted.any():
            data[_deletion(name)] = pa.array(column.deleted)
    table = pa.table(data)
    return table.replace_schema_metadata({"missing": json.dumps(content.missing)}) if content.missing else table


def _arrow_column(pa: Any, name: str, column: Column) -> Any:
    import numpy as np

    values, offsets, rows = column.values, column.offsets, len(column)
    if values.shape[1:] == (0,):
        return pa.nulls(rows)
    outermost = "list" if offsets is not None else "lanes" if values.ndim == 2 else "elements"
    bits: dict[str, Any] = {}  # only a prim as a whole has no value
    if not column.valid.all():
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
        if column.deleted.any():
            parts[_deletion(name)] = column.deleted
        for part in parts.keys() & data.keys():
            raise ValueError(f"two columns would be called {part!r}: read the attributes {part!r} and {name!r} apart")
        data |= parts
    kind = pd.DataFrame
    if content.missing:
        kind = import_module("ovstage.frames").Frame
    made = kind(data, index=pd.Index(content.paths, name=PRIM, dtype=object), copy=True)
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

    if valid.all() or values.dtype == object:
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


def _worded(name: str, column: Column, lookups: Mapping[str, Lookup]) -> Column:
    import numpy as np

    if column.semantic == AttributeSemantic.STRING and column.offsets is not None:
        return replace(column, values=_decoded(name, column), offsets=None)
    lanes = _IDS.get(name) or _IDS.get(column.semantic)
    if lanes is None or column.values.size == 0:
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

    distinct, places = np.unique(ids, return_inverse=True)
    try:
        names = lookup(distinct[distinct != 0].tolist())
    except OvxError as error:
        raise ValueError(f"attribute {name!r} holds ids that name nothing, leave out strings: {error}") from error
    return np.array([zero] * (len(distinct) - len(names)) + list(names), object)[places]


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
    return f"{name} deleted"


def _unfit(name: str, dtype: np.dtype[Any], library: str) -> ValueError:
    return ValueError(f"attribute {name!r} has the element type {dtype}, which {library} lacks: take it by to_numpy()")
