"""Reads as whole arrays: the values of an attribute in the order of a query, in one piece.

Groups say what lies where in the column's own memory. A program that does not care takes a ``Column``: row
``k`` belongs to prim ``k`` of the query, whatever the groups look like. Where one group covers the query in order the
values are that group's own memory; otherwise they are gathered once, by NumPy, without a step per prim.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ovstage import guard
from ovstage.enums import AttributeSemantic

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ovstage.groups import ReadGroup

__all__ = ["Column", "Columns", "MissingColumn"]

Key = TypeVar("Key", bound=int | str)


@dataclass(frozen=True, eq=False)
class Column:
    """The values of one attribute for every prim of a query, in its order. All arrays are read-only.

    A fixed-size column has one row per prim in ``values``, ``(N,)`` or ``(N, lanes)``. An array column has the elements
    of all prims one behind the other, and ``offsets``: those of prim ``k`` are ``values[offsets[k]:offsets[k + 1]]``,
    which ``row(k)`` gives. The arrays are memory of their own, or of the snapshot: they stay as they are, whatever is
    written, released or closed later.
    """

    values: npt.NDArray[Any]
    """Zero, or empty, where a prim has no value."""
    valid: npt.NDArray[np.bool_]
    """Which prims have a value; in a range read, which have a changed one."""
    deleted: npt.NDArray[np.bool_]
    """Which prims a range read found to have lost the attribute; none in a latest read."""
    offsets: npt.NDArray[np.int64] | None
    """``N + 1`` positions in ``values`` where the column holds an array per prim, else ``None``."""
    semantic: AttributeSemantic
    """What the values mean."""
    ordinal: int
    """No change above it is contained."""
    type_name: str = ""
    """What the values are called where they come from, such as ``color3f``; empty where it is not known, or where the
    prims have several."""
    axes: tuple[int, ...] | None = None
    """The axes of one value as DLPack consumers get it, from a stage of interface level 0.3: ``(4, 4)`` for a matrix.
    ``None``: as in ``values``."""

    @classmethod
    def _whole(cls, fields: dict[str, Any]) -> Column:
        """A column with a value for each of so many prims, ``_prims``. Its masks are made for the first who asks."""
        made = object.__new__(cls)
        made.__dict__.update(fields)
        return made

    def __getattr__(self, name: str) -> Any:
        if name not in ("valid", "deleted") or "_prims" not in self.__dict__:
            return object.__getattribute__(self, name)  # which says that there is none
        mask = self.__dict__[name] = _all(name == "valid", self.__dict__["_prims"])
        return mask

    def __len__(self) -> int:
        return len(self.valid)

    def row(self, prim: int) -> npt.NDArray[Any]:
        """The value of the prim at a position of the query: a 0-d array, its lanes, or the elements of its array."""
        prim = guard.integer(prim, "prim")
        if not 0 <= prim < len(self):
            raise IndexError(f"prim {prim} is out of range: the query lists {len(self)} prims")
        if self.offsets is None:
            return self.values[prim, ...]
        return self.values[self.offsets[prim] : self.offsets[prim + 1]]

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """``values``, for NumPy's functions. Refused where that would pass off a missing value as a zero."""
        import numpy as np

        if self.offsets is not None:
            raise TypeError("a column of arrays is no single array: take values and offsets, or row(k)")
        if missing := len(self) - np.count_nonzero(self.valid):
            raise ValueError(
                f"{missing} of {len(self)} prims have no value: take values, zero there, with the mask valid"
            )
        return np.asarray(self.values, dtype) if copy is None else np.array(self.values, dtype, copy=copy)

    # --- other libraries ---

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """``values`` for DLPack consumers: ``torch.from_dlpack(column)``, without a copy and marked as read-only.

        From a stage of interface level 0.3 matrices are ``(N, 4, 4)``, as in the exports of its groups.
        PyTorch and Warp ignore that mark: what they write changes the values of every reader of the snapshot. See
        ``torch()`` and ``warp()``. Refused with a ``BufferError`` where prims have no value, or have arrays.
        """
        from ovstage.dlpack import element_dtype, make_dltensor
        from ovstage.groups import ManagedDLTensor

        if self.offsets is not None:
            raise BufferError(
                "a column of arrays is no single tensor: take values and offsets, or the array of a prim by row(k)"
            )
        if missing := len(self) - int(self.valid.sum()):
            raise BufferError(
                f"{missing} of {len(self)} prims have no value, for which a tensor has no mark: take values, an array "
                f"that is zero there, with the mask valid, or stage.read those prims that have one"
            )
        values = self.values if self.axes is None else self.values.reshape(len(self), *self.axes)
        tensor = ManagedDLTensor(make_dltensor(values, dtype=element_dtype(values.dtype)), None, readonly=True)
        return tensor.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Host memory, as DLPack writes it."""
        return 1, 0

    def torch(self) -> Any:
        """``values`` as a ``torch.Tensor`` of its own: a copy, since PyTorch writes through what is read-only."""
        from ovstage.tables import package

        return package("torch", "Column.torch").from_dlpack(_Private(self))

    def warp(self, dtype: Any = None) -> Any:
        """``values`` as a ``warp.array`` of its own, after ``wp.init()``: a copy, since Warp writes through what is
        read-only. ``dtype`` is that of ``wp.from_dlpack``, such as ``wp.vec3``.
        """
        from ovstage.tables import package

        return package("warp", "Column.warp", "warp-lang").from_dlpack(_Private(self), dtype)

    def jax(self) -> Any:
        """``values`` as a ``jax.Array``, without a copy where JAX takes them as they lie. JAX never writes to them."""
        from ovstage.tables import package

        return package("jax", "Column.jax").dlpack.from_dlpack(self)


class _Private:
    """A column for consumers that write: every export is a copy of their own."""

    def __init__(self, column: Column) -> None:
        self._column = column

    def __dlpack__(self, **options: Any) -> Any:
        return self._column.__dlpack__(**{**options, "copy": True})

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._column.__dlpack_device__()


class MissingColumn(KeyError):
    """A read has no column of this name; the text says why."""

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError shows its argument as code


class Columns(dict[Key, Column]):
    """What a read found: a dict, whose missing keys say why they are missing, as it was when the read was made."""

    def __init__(self, found: Mapping[Key, Column] | Iterable[tuple[Key, Column]], missing: Mapping[Key, str]) -> None:
        super().__init__(found)
        self.missing = dict(missing)
        """Why there is no column of an attribute that was asked for."""

    def __missing__(self, key: Key) -> NoReturn:
        raise MissingColumn(missing_text(key, self.missing, self))

    def copy(self) -> Columns[Key]:
        """A copy that says the same of missing keys."""
        return type(self)(self, self.missing)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (dict(self), self.missing)


def missing_text(key: object, missing: Mapping[Any, str], found: Iterable[object]) -> str:
    """What an error says about a key that a read has no column of."""
    if key in missing:
        return f"{_quoted(key)}: {missing[key]}"
    asked = ", ".join(str(name) for name in (*found, *missing))
    return f"{_quoted(key)} was not asked for: the read was of {asked or 'nothing'}"


def _quoted(key: object) -> str:
    return f'"{key}"' if isinstance(key, str) else repr(key)


def column(groups: Sequence[ReadGroup], prims: int) -> Column:
    """The column that the groups of one attribute, at least one, make for a query of ``prims`` prims."""
    first = groups[0]
    semantic, type_name, ordinal = first.semantic, first.type_name if first._type_token else "", first.ordinal
    plain = len(groups) == 1 and not (first.is_delete or first.is_array or first.has_data_index_map)
    if plain and _in_order(first, prims):
        return Column._whole(  # the usual case: the group's memory as it lies
            {
                "_prims": prims,
                "values": _flat_if_single(first.array(0, shaped=True)),
                "offsets": None,
                "semantic": semantic,
                "ordinal": ordinal,
                "type_name": type_name,
                "axes": _axes(groups) if semantic is AttributeSemantic.MATRIX else None,
            }
        )
    kept, lost = [g for g in groups if not g.is_delete], [g for g in groups if g.is_delete]
    values, offsets = _values(kept, prims)
    for group in groups[1:]:
        if group.semantic != semantic:
            semantic = AttributeSemantic.NONE
        if group._type_token != first._type_token:
            type_name = ""
        ordinal = max(ordinal, group.ordinal)
    return Column(
        values=_frozen(values),
        valid=_frozen(_covered(kept, prims)),
        deleted=_frozen(_covered(lost, prims)),
        offsets=None if offsets is None else _frozen(offsets),
        semantic=semantic,
        ordinal=ordinal,
        type_name=type_name,
        axes=_axes(kept) if semantic == AttributeSemantic.MATRIX else None,
    )


def rows_of(groups: Sequence[ReadGroup]) -> tuple[Column, list[int]]:
    """The values of groups of one type, one behind the other, as a column of the prims that they are about alone, and
    where in the query's list each of these prims is. It costs what the groups hold."""
    import numpy as np

    first = groups[0]
    positions = [at for group in groups for at in group.prim_indices().tolist()]
    offsets = None
    if first.is_array:
        packed = [group._pack(group.data_rows() if group.has_data_index_map else None) for group in groups]
        lengths = np.concatenate([np.frombuffer(each, np.int64) for _, each in packed])
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        flat = np.concatenate([np.frombuffer(elements, first.array(0).dtype) for elements, _ in packed])
        values = _flat_if_single(flat.reshape(-1, first.array(0, shaped=True).shape[1]))
    else:
        parts = [_rows(group) for group in groups]
        values = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return Column(
        values=_frozen(values),
        valid=_all(True, len(positions)),
        deleted=_all(False, len(positions)),
        offsets=None if offsets is None else _frozen(offsets),
        semantic=first.semantic,
        ordinal=max(group.ordinal for group in groups),
        type_name=first.type_name if first._type_token else "",
    ), positions


def every(mask: npt.NDArray[np.bool_]) -> bool:
    """Whether a mask of prims is all true. One byte that is seen many times is looked at once."""
    return bool(mask[:1].all() if mask.strides == (0,) else mask.all())


def some(mask: npt.NDArray[np.bool_]) -> bool:
    """Whether any of a mask of prims is true."""
    return bool(mask[:1].any() if mask.strides == (0,) else mask.any())


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array


# --- which prims ----------------------------------------------------------------------------------------------------


def _in_order(group: ReadGroup, prims: int) -> bool:
    return group.prim_count == prims and not group.has_prim_index_map


def _all(truth: bool, prims: int) -> npt.NDArray[np.bool_]:
    """A mask that says the same of all prims: one byte that is seen ``prims`` times."""
    import numpy as np

    return np.ndarray((prims,), np.bool_, b"\1" if truth else b"\0", strides=(0,))


def _covered(groups: Sequence[ReadGroup], prims: int) -> npt.NDArray[np.bool_]:
    """A mask of the prims that groups are about."""
    import numpy as np

    several = len(groups) > 1
    whole = any(_in_order(group, prims) for group in groups) if several else groups and _in_order(groups[0], prims)
    if whole or not groups:
        return _all(bool(whole), prims)
    mask = np.zeros(prims, np.bool_)
    for group in groups:
        mask[group.prim_indices()] = True
    return mask


def _axes(groups: Sequence[ReadGroup]) -> tuple[int, ...] | None:
    """Those of one value, where they are more than a row of ``values`` has. Groups of one kind have the same."""
    axes = groups[0]._axes() if groups else ()
    return axes if len(axes) > 1 else None


# --- which values ---------------------------------------------------------------------------------------------------


def _values(groups: Sequence[ReadGroup], prims: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64] | None]:
    """Values and, for an array column, offsets."""
    import numpy as np

    kinds = list(dict.fromkeys(map(_kind, groups))) if len(groups) > 1 else []
    if len(kinds) > 1:
        raise ValueError(
            f"attribute {groups[0]._name()!r} is {' on some prims and '.join(kinds)} on others, which makes no single "
            f"array: query those prims apart, or take the groups one by one"
        )
    if not groups:
        return np.zeros((prims, 0)), None  # lost by all that changed: nothing says of what type it was
    return _ragged(groups, prims) if groups[0].is_array else (_fixed(groups, prims), None)


def _kind(group: ReadGroup) -> str:
    rows = group.array(0, shaped=True)
    lanes = f"x{rows.shape[1]}" if rows.shape[1] > 1 else ""
    return f"{'arrays of ' if group.is_array else ''}{rows.dtype}{lanes}"


def _fixed(groups: Sequence[ReadGroup], prims: int) -> npt.NDArray[Any]:
    import numpy as np

    parts = [_rows(group) for group in groups]
    if _in_order(groups[0], prims):
        return parts[0]
    values = np.zeros((prims, *parts[0].shape[1:]), parts[0].dtype)
    for group, rows in zip(groups, parts, strict=True):
        values[group.prim_indices()] = rows
    return values


def _rows(group: ReadGroup) -> npt.NDArray[Any]:
    """The value of each prim of a group: its own memory, unless an index map reorders it."""
    rows = _flat_if_single(group.array(0, shaped=True))
    return rows[group.data_rows()] if group.has_data_index_map else rows


def _flat_if_single(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return rows.reshape(-1) if rows.shape[1] == 1 else rows


def _ragged(groups: Sequence[ReadGroup], prims: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    import numpy as np

    parts, counts = [], np.zeros(prims, np.int64)
    for group in groups:
        elements, lengths = group._pack(group.data_rows() if group.has_data_index_map else None)
        parts.append(np.frombuffer(elements, group.array(0).dtype))
        counts[group.prim_indices()] = np.frombuffer(lengths, np.int64)
    offsets = np.zeros(prims + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    lanes = groups[0].array(0, shaped=True).shape[1]
    values = _flat_if_single((parts[0] if len(parts) == 1 else np.concatenate(parts)).reshape(-1, lanes))
    order = np.concatenate([group.prim_indices() for group in groups])
    if (order[1:] < order[:-1]).any():
        values = _moved(values, counts[order], offsets[order])
    return values, offsets


def _moved(values: npt.NDArray[Any], counts: npt.NDArray[Any], targets: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Runs of ``counts`` elements that lie one behind the other, each moved to its target."""
    import numpy as np

    starts = np.cumsum(counts) - counts
    moved = np.empty_like(values)
    moved[np.arange(len(values)) + np.repeat(targets - starts, counts)] = values
    return moved
