"""Arrow arrays and tables as what a write takes: the way back of ``tables``.

A field's metadata says what Arrow's types do not: ``role``, ``type`` and, for names, of what they are the ids. Values
cross without a copy where Arrow lays them out as NumPy does; truth values are unpacked, names are interned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ovstage import guard, tables
from ovstage.enums import AttributeSemantic
from ovstage.values import WriteDesc

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ovstage.stage import Stage

    Array = npt.NDArray[Any]


NAMES = {
    "string": AttributeSemantic.NONE,
    "string[]": AttributeSemantic.NONE,
    "token": AttributeSemantic.TOKEN_ID,
    "token[]": AttributeSemantic.TOKEN_ID,
}
"""The types whose values can be given as texts, and the role of the ids that they become."""


def listed(values: Any) -> Any:
    """Texts in an array of NumPy or a column of pandas, as a list. All else stays as it is."""
    kind = getattr(getattr(values, "dtype", None), "kind", None)
    return values.tolist() if kind in ("U", "T", "O") else values


def interned(stage: Stage, values: Sequence[Any], argument: str) -> Any:
    """Texts, or a list of texts for each prim, as the ids that are written. What holds no texts stays as it is."""
    import numpy as np

    rows = [value if isinstance(value, Iterable) and not isinstance(value, str) else [value] for value in values]
    if not any(isinstance(text, str) for row in rows if isinstance(row, (list, tuple)) for text in row):
        return [np.zeros(0, np.uint64) if isinstance(row, (list, tuple)) and not row else row for row in values]
    lists = [guard.entries(row, f"{argument}[{at}]", "a list of texts") for at, row in enumerate(rows)]
    texts = [guard.string(text, f"{argument}[{at}]") for at, row in enumerate(lists) for text in row]
    distinct = [text for text in dict.fromkeys(texts) if text]
    known = {"": 0} | dict(zip(distinct, stage._intern_tokens(distinct), strict=True))
    ids = np.array([known[text] for text in texts], np.uint64)
    if all(isinstance(value, str) for value in values):
        return ids
    return np.split(ids, np.cumsum([len(row) for row in lists])[:-1])


def tensor(array: Any, argument: str) -> Array | None:
    """An Arrow array as NumPy's, where DLPack cannot carry it: tuples and truth values. ``None``: DLPack can."""
    pa = tables.package("pyarrow", f"{argument}, an Arrow array,")
    found = array if isinstance(array, pa.Array) else pa.array(array)
    if found.null_count:
        raise ValueError(
            f"{argument} has {found.null_count} nulls, which are no values: fill them (fill_null), or write the prims "
            f"that have a value"
        )
    kind = found.type
    if pa.types.is_boolean(kind) or pa.types.is_fixed_size_list(kind):
        return _numbers(pa, found, argument)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return None
    raise TypeError(
        f"{argument} is an Arrow array of {kind}, which is no tensor: write a table of it by write_arrow, or pass a "
        f"list of arrays with is_array=True"
    )


def _numbers(pa: Any, array: Any, argument: str) -> Array:
    """The values of an array without nulls: ``(n,)``, or ``(n, L)`` for tuples."""
    kind = array.type
    if pa.types.is_fixed_size_list(kind):
        inner = _numbers(pa, array.flatten(), argument)
        return inner.reshape(len(array), kind.list_size, *inner.shape[1:])
    if not (pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise TypeError(f"{argument} is an Arrow array of {kind}, which no tensor holds")
    if array.null_count:
        raise ValueError(f"{argument} has {array.null_count} nulls inside its tuples, which are no values")
    numbers: Array = array.to_numpy(zero_copy_only=not pa.types.is_boolean(kind))
    return numbers


# --- tables ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """What a table says of one attribute: of which rows, with which values, and which rows have lost it."""

    name: str
    rows: npt.NDArray[np.int64]
    write: WriteDesc | None
    lost: npt.NDArray[np.int64]


def check(table: Any) -> None:
    """Refuse what is no table, or has two columns of one name."""
    pa = tables.package("pyarrow", "Stage.write_arrow")
    if not isinstance(table, pa.Table):
        raise TypeError(
            f"table must be a pyarrow.Table, got {type(table).__name__}; pyarrow.table(...) makes one of a dict or a "
            f"DataFrame"
        )
    for name in table.column_names:
        if table.column_names.count(name) > 1:
            raise ValueError(f"table has several columns {name!r}: rename or drop all but one")


def paths(table: Any) -> list[str]:
    """The prims of a table's rows."""
    if tables.PRIM not in table.column_names:
        raise ValueError(
            f"table has no column {tables.PRIM!r} with the paths of its rows, it has {', '.join(table.column_names)}: "
            f"add one, or pass prims"
        )
    found: list[str] = table.column(tables.PRIM).to_pylist()
    return found


def parts(stage: Stage, table: Any) -> Iterator[Part]:
    """What a table says of each attribute."""
    import numpy as np

    pa = tables.package("pyarrow", "Stage.write_arrow")
    names = table.column_names
    for name in names:
        if name == tables.PRIM or (name.endswith(tables.DELETED) and name.removesuffix(tables.DELETED) in names):
            continue
        field, column = table.schema.field(name), table.column(name).combine_chunks()
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        lost = _lost(pa, table, name)
        rows = np.flatnonzero(np.asarray(column.is_valid().to_numpy(zero_copy_only=False)))
        if len(both := np.intersect1d(lost, rows)):
            raise ValueError(
                f"table column {name!r} has a value in row {both[0]}, which {name + tables.DELETED!r} marks as "
                f"deleted: make it null, or the mark false"
            )
        write = _write(stage, pa, name, field, column.drop_null()) if len(rows) else None
        yield Part(name, rows, write, lost)


def _lost(pa: Any, table: Any, name: str) -> npt.NDArray[np.int64]:
    """The rows that have lost an attribute."""
    import numpy as np

    marks = name + tables.DELETED
    if marks not in table.column_names:
        return np.zeros(0, np.int64)
    column = table.column(marks)
    if not pa.types.is_boolean(column.type) or column.null_count:
        raise TypeError(
            f"table column {marks!r} must be truth values without nulls, which mark the rows that have lost {name!r}; "
            f"got {column.type}{f' with {column.null_count} nulls' if column.null_count else ''}"
        )
    return np.flatnonzero(column.to_numpy())


def _write(stage: Stage, pa: Any, name: str, field: Any, column: Any) -> WriteDesc:
    said = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
    role, kind = _role(name, said), said.get("type") or None
    is_array = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    argument = f"table column {name!r}"
    if role == AttributeSemantic.STRING and _is_text(pa, column.type):
        import numpy as np

        texts = [np.frombuffer(text.encode(), np.uint8) for text in column.to_pylist()]
        return WriteDesc(name, texts, True, semantic=role, type_name=kind)
    flat = column.flatten() if is_array else column
    ids = tables.ids_of(name, kind or "", role)
    if _is_text(pa, _innermost(pa, flat.type)):
        if not ids:
            raise ValueError(
                f"{argument} has texts, and nothing says what they are: give the field the metadata type='string' or "
                f"type='token'"
            )
        numbers = _interned(stage, pa, flat, ids)
    else:
        numbers = _numbers(pa, flat, argument)
    lanes = numbers.shape[1] if numbers.ndim == 2 else 1
    if not is_array:
        return WriteDesc(name, numbers, False, semantic=role, type_name=kind)
    ends = column.offsets.to_numpy() - column.offsets[0].as_py()
    rows = [numbers[start:end] for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
    return WriteDesc(name, rows, True, semantic=role, type_name=kind, lanes=lanes if lanes > 1 else None)


def _role(name: str, said: Mapping[str, str]) -> AttributeSemantic:
    role = said.get("role", "NONE")
    if role not in AttributeSemantic.__members__:
        roles = ", ".join(AttributeSemantic.__members__)
        raise ValueError(f"table column {name!r} has the role {role!r} in its metadata, expected one of {roles}")
    return AttributeSemantic[role]


def _is_text(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _innermost(pa: Any, kind: Any) -> Any:
    return kind.value_type if pa.types.is_fixed_size_list(kind) else kind


def _interned(stage: Stage, pa: Any, column: Any, ids: Sequence[str]) -> Array:
    """The id of each name; of none, or of an empty one, 0."""
    import numpy as np

    flat = column.flatten() if pa.types.is_fixed_size_list(column.type) else column
    texts = np.array(flat.to_pylist(), object).reshape(-1, len(ids))
    numbers = np.zeros(texts.shape, np.uint64)
    for lane, kind in enumerate(ids):
        distinct = list(dict.fromkeys(text for text in texts[:, lane].tolist() if text))
        intern = stage._intern_tokens if kind == "token" else stage._intern_paths
        known = dict(zip(distinct, intern(distinct), strict=True)) if distinct else {}
        numbers[:, lane] = [known[text] if text else 0 for text in texts[:, lane].tolist()]
    return numbers.reshape(-1) if len(ids) == 1 else numbers
