"""What a read serves and what a map lends: the values of one attribute for some prims, as tensors.

Arrays and DLPack exports hold the memory they show. They stay valid after the group is released, after the unmap, and
after the stage is closed; only the group's own accessors end then, with ``INVALID_HANDLE``.
"""

from __future__ import annotations

import ctypes
import math
from typing import TYPE_CHECKING, Any, Self

from ovstage import leak
from ovstage._load import native
from ovstage.dlpack import DLDataType, DLTensor, dtype_name, extension_dtype, measure, row_bytes
from ovstage.enums import AttributeSemantic
from ovstage.errors import ErrorCode, OvstageError
from ovstage.layout import MapGroupStruct, ReadGroupStruct
from ovstage.shown import counted, shown
from ovstage.values import AttributeMeta

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ovstage._native import ManagedDLTensor
    from ovstage.stage import Stage
else:
    ManagedDLTensor = native.ManagedDLTensor

__all__ = ["ManagedDLTensor", "MapGroup", "ReadGroup"]


class _Group(native.Group):
    """What read and map groups share. Rows are found through ``data_row_index``, prims through ``prim_index``."""

    _readonly = True

    @property
    def meta(self) -> AttributeMeta:
        """Write floor and layout generation of the column as served."""
        return AttributeMeta(self)

    @property
    def type_name(self) -> str:
        """What the values are called where they come from, such as the USD type ``color3f``; empty: it is not known.

        It is asked of the stage, and empty once that is closed.
        """
        stage: Any = self.stage
        if not self._type_token or stage is None or not stage._usable:
            return ""
        name: str = stage._token_strings([self._type_token])[0]
        return name

    def __repr__(self) -> str:
        return f"<{type(self).__name__}{shown(self._described)}>"

    def _described(self) -> str:
        return f": {counted(self.prim_count, 'prim')}{self._layout()}"

    def _layout(self) -> str:
        """What the values are, while there are any."""
        if self.released:
            return ", released"
        if self.tensor_count == 0:
            return ", attribute deleted"
        return f", {'arrays of ' if self._ragged() else ''}{dtype_name(self._dtype())}"

    def _dtype(self) -> DLDataType:
        """The type of a value as it is stored, with its lanes at every interface level. There must be a tensor."""
        dtype = DLTensor.from_address(self._tensor_address(0)).dtype
        return DLDataType(dtype.code, dtype.bits, dtype.lanes * math.prod(self._axes()))

    def _axes(self) -> tuple[int, ...]:
        """The axes of one value: none at interface level 0.2, whose values are lanes. There must be a tensor."""
        return DLTensor.from_address(self._tensor_address(0)).shape_tuple[1:]

    def tensor(self, index: int) -> DLTensor:
        """The descriptor of tensor ``index``: strides null, byte offset 0.

        At interface level 0.2 it has ndim 1 and all lanes in the dtype; at 0.3 one lane, and behind the axis of rows
        the components of a value: ``(N,)``, ``(N, 3)``, ``(N, 4, 4)`` for matrices. It is a copy whose memory stays
        valid as long as the copy lives. Raises ``IndexError`` out of range.
        """
        tensor = DLTensor.from_buffer_copy(ctypes.string_at(self._tensor_address(index), ctypes.sizeof(DLTensor)))
        tensor._owner = self._hold(index)
        tensor._readonly = self._readonly
        tensor._extent = math.prod(tensor.shape_tuple) * row_bytes(tensor.dtype)
        measure(tensor, tensor.ndim)
        return tensor

    def array(self, index: int, shaped: bool = False) -> npt.NDArray[Any]:
        """The elements of tensor ``index`` as NumPy sees them, without a copy.

        At interface level 0.2 flat, lanes multiplied in; at 0.3 with the axes of ``tensor(index)``. At either one row
        per data row, ``(N, L)``, with ``shaped=True``. Read-only and for good in a read group, writable in a map
        group. bfloat16 and float8 need the package ml_dtypes. Raises ``ValueError`` for an element type that NumPy
        lacks: pass those on by ``dlpack(index)``; ``IndexError`` out of range.
        """
        import numpy as np

        buffer = self._buffer(index, self._readonly)
        values = np.asarray(buffer)
        if buffer.extension:
            values = values.view(extension_dtype(buffer.extension))
        return values.reshape(-1, buffer.lanes) if shaped else values

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """The value of each prim, in the order of the group: ``(N,)``, or ``(N, L)`` for values of L lanes.

        For ``np.asarray(group)`` and everything that calls it. A view, where rows and prims are in the same order; a
        copy, where ``data_rows`` reorders them, which ``copy=False`` refuses, and a map group, too, unless it is asked
        for: what is written to a copy would be lost. Raises ``ValueError`` for a deletion and for an array column,
        whose prims have arrays of their own: see ``array(i)``.
        """
        import numpy as np

        if not self.released and self.tensor_count == 0:
            raise ValueError("these prims lost the attribute: the group has no values")
        if self._ragged():
            raise ValueError("an array column has one array per prim, not one for the group: use array(i)")
        values = self.array(0, shaped=True)
        if values.shape[1] == 1:
            values = values.reshape(-1)
        table = self._data_index_buffer()
        wanted = values.dtype if dtype is None else np.dtype(dtype)
        if copy is False and wanted != values.dtype:
            raise ValueError(f"values of dtype {values.dtype} cannot be viewed as {wanted} without a copy")
        if table is None:
            return values.astype(wanted, copy=bool(copy))
        if copy is False or (copy is None and not self._readonly):
            raise ValueError(
                "the rows of this group are not in the order of its prims: they cannot be viewed as one array without "
                "a copy; use array(0) with data_rows()"
            )
        placed: np.ndarray[Any, np.dtype[Any]] = values[np.asarray(table)].astype(wanted, copy=False)
        return placed

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """The value of each prim, in the order of the group: ``torch.from_dlpack(group)``. As ``dlpack(0)``.

        Refused with a ``BufferError`` where that is no single tensor in the order of the query: a deletion, an array
        column, rows or prims in another order, a part of the prims.
        """
        if why := self._never_tensor():
            raise BufferError(why)
        export = self.dlpack(0)
        return export.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Host memory, as DLPack writes it."""
        return 1, 0

    def _never_tensor(self) -> str:
        """Why the group is not one tensor of what the query lists; empty where it is."""
        if self.released:
            return ""  # the accessor says it
        if self.tensor_count == 0:
            return "these prims lost the attribute: the group has no tensor; stage.read tells what others have"
        if self._ragged():
            return "an array column has a tensor per prim, not one for the group: use array(i), dlpack(i) or stage.read"
        if self.has_data_index_map or self.has_prim_index_map:
            return (
                "an index map orders this group, a tensor would be in another order than the prims: use array(0) with "
                "data_rows(), or stage.read, which puts rows in the order of the query"
            )
        return ""

    def _ragged(self) -> bool:
        """True where each prim has a tensor of its own. A map group tells by its shape only."""
        if self.tensor_count != 1:
            return True
        tensor = DLTensor.from_address(self._tensor_address(0))
        return not self.has_data_index_map and tensor.shape_tuple[:1] != (self.data_count,)

    def prim_indices(self) -> npt.NDArray[np.uint32]:
        """``prim_index`` of every prim of the group, as an array."""
        import numpy as np

        table = self._prim_index_buffer()
        if table is None:
            return np.arange(self.prim_offset, self.prim_offset + self.prim_count, dtype=np.uint32)
        return np.asarray(table)

    def data_rows(self) -> npt.NDArray[np.uint32]:
        """``data_row_index`` of every prim of the group, as an array."""
        import numpy as np

        table = self._data_index_buffer()
        if table is None:
            return np.arange(self.data_count, dtype=np.uint32)
        return np.asarray(table)

    def _held(self) -> object:
        if self.tensor_count == 0:
            return self  # the index map of a deletion is the group's own
        return None if self.released else self._hold(0)


_SEMANTICS = {int(semantic): semantic for semantic in AttributeSemantic}


class ReadGroup(_Group):
    """Sealed values of one attribute. Release it when done: with ``with``, ``release()`` or ``Stage.release_group``.

    Dropped without, it is released by its finaliser, followed by a ``ResourceWarning``. A group never keeps writers
    from writing.
    """

    if TYPE_CHECKING:

        @property
        def stage(self) -> Stage | None: ...

    @property
    def semantic(self) -> AttributeSemantic:
        """What the values mean."""
        number = super().semantic
        found = _SEMANTICS.get(number)  # an enum takes four times as long
        return AttributeSemantic(number) if found is None else found

    def _ragged(self) -> bool:
        return self.is_array

    def _described(self) -> str:
        name = f" {self._name()!r}" if self._name() else f" of attribute {self.attribute}"
        return f"{name}{super()._described()}, ordinal {self.ordinal}"

    def _never_tensor(self) -> str:
        why = super()._never_tensor()
        if why or self.released or self.stage is None or not self.stage._usable:
            return why
        listed = self.stage._list_count(self.prim_list)
        if self.prim_count == listed:
            return ""
        return (
            f"{listed - self.prim_count} of {listed} prims have no row in this group: use array(0), whose rows belong "
            f"to the prims of prim_indices(), or stage.read, which marks those without a value"
        )

    def __arrow_c_schema__(self) -> object:
        """The Arrow type of the values, under the attribute's name."""
        return self._arrow_schema(self._name())

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """The value of each prim as an Arrow array: ``pyarrow.array(group)``, ``polars.Series(group)``.

        Values of L lanes are fixed-size lists, arrays are lists, prims that lost the attribute are nulls. Arrow reads
        the column's own bytes, read-only and for good, unless rows or arrays lie in another order than the prims, or
        are truth values, which Arrow packs into bits. A schema that is asked for is not converted to, as the protocol
        allows. Raises ``ValueError`` for an element type that Arrow lacks: bfloat16, float8, complex.
        """
        return self.__arrow_c_schema__(), self._arrow_array()

    def _name(self) -> str:
        """The attribute's name while there is a stage to ask, else nothing."""
        if self.stage is None or not self.stage._usable:
            return ""
        return self.stage._token_strings([self.attribute])[0]

    @property
    def raw(self) -> ReadGroupStruct:
        """A copy of the C structure, which keeps the memory behind its pointers alive."""
        raw = ReadGroupStruct.from_buffer_copy(self._raw())
        raw._owner = self._held()
        return raw

    def release(self) -> None:
        """Give the group back. Arrays and exports made from it stay valid; a second release is ``INVALID_HANDLE``."""
        if self.stage is None:
            raise OvstageError(ErrorCode.INVALID_HANDLE, "this ReadGroup has no Stage; use Stage.release_group(group)")
        self.stage.release_group(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self.released:
            return
        try:
            self.release()
        except OvstageError:
            if error is None:
                raise

    def _forgotten(self) -> None:
        """What the finaliser of a group that was not released does."""
        assert self.stage is not None
        try:
            self.stage.release_group(self)
        except OvstageError:
            return
        leak.warn(f"ReadGroup of attribute {self.attribute} was garbage-collected without release()")


class MapGroup(_Group):
    """Writable values of one attribute, committed when their map is unmapped.

    The buffer starts as ``map_attribute(initial=...)`` says. After its commit, and after an abort, the payload
    accessors raise ``INVALID_HANDLE``; arrays and exports made before stay valid memory that no longer belongs to the
    stage.
    """

    _readonly = False

    @property
    def raw(self) -> MapGroupStruct:
        """A copy of the C structure, which keeps the memory behind its pointers alive."""
        raw = MapGroupStruct.from_buffer_copy(self._raw())
        raw._owner = self._held()
        return raw
