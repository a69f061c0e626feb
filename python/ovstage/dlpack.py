"""DLPack descriptors as ctypes structures, and NumPy on either side of them.

The structures have the C layout of DLPack 1.3, so a caller can build one field by field, hand its address to C, or
attach further Python attributes to it. A ``DLTensor`` owns no memory by itself; those made here carry a reference to
what does. Nothing in this module is needed to write NumPy arrays or to read groups: both go past it, natively.

``lanes`` is the width of one row (3 for a point, 16 for a matrix). Between 1 and 255 lanes can be transported.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ovstage import guard

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = [
    "DLPACK_FLAG_BITMASK_READ_ONLY",
    "DLPACK_MAJOR_VERSION",
    "DLPACK_MINOR_VERSION",
    "DLDataType",
    "DLDataTypeCode",
    "DLDevice",
    "DLDeviceType",
    "DLManagedTensor",
    "DLManagedTensorVersioned",
    "DLPackVersion",
    "DLTensor",
    "dltensor_to_numpy",
    "make_dltensor",
    "numpy_to_dldatatype",
]

DLPACK_MAJOR_VERSION = 1
DLPACK_MINOR_VERSION = 3
DLPACK_FLAG_BITMASK_READ_ONLY = 1
DLPACK_FLAG_BITMASK_IS_COPIED = 2
DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED = 4


# --- the structures -------------------------------------------------------------------------------------------------


class DLDeviceType(ctypes.c_int):
    """Kind of memory a tensor lies in. As a field it reads back as an instance: compare it, or use ``.value``."""

    kDLCPU: ClassVar[int] = 1
    kDLCUDA: ClassVar[int] = 2
    kDLCUDAHost: ClassVar[int] = 3
    kDLOpenCL: ClassVar[int] = 4
    kDLVulkan: ClassVar[int] = 7
    kDLMetal: ClassVar[int] = 8
    kDLVPI: ClassVar[int] = 9
    kDLROCM: ClassVar[int] = 10
    kDLROCMHost: ClassVar[int] = 11
    kDLExtDev: ClassVar[int] = 12
    kDLCUDAManaged: ClassVar[int] = 13
    kDLOneAPI: ClassVar[int] = 14
    kDLWebGPU: ClassVar[int] = 15
    kDLHexagon: ClassVar[int] = 16
    kDLMAIA: ClassVar[int] = 17
    kDLTrn: ClassVar[int] = 18

    def __str__(self) -> str:
        named = {1: "CPU", 2: "CUDA", 3: "CUDAHost", 13: "CUDAManaged"}
        return named.get(self.value, f"Device<{self.value}>")

    def __repr__(self) -> str:
        return f"DLDeviceType({self.value})"

    def __int__(self) -> int:
        return self.value

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (int, DLDeviceType)):
            return self.value == int(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.value)


class DLDataTypeCode(ctypes.c_uint8):
    """Base type of an element; the constants are plain ints."""

    kDLInt: ClassVar[int] = 0
    kDLUInt: ClassVar[int] = 1
    kDLFloat: ClassVar[int] = 2
    kDLOpaqueHandle: ClassVar[int] = 3
    kDLBfloat: ClassVar[int] = 4
    kDLComplex: ClassVar[int] = 5
    kDLBool: ClassVar[int] = 6
    kDLFloat8_e3m4: ClassVar[int] = 7
    kDLFloat8_e4m3: ClassVar[int] = 8
    kDLFloat8_e4m3b11fnuz: ClassVar[int] = 9
    kDLFloat8_e4m3fn: ClassVar[int] = 10
    kDLFloat8_e4m3fnuz: ClassVar[int] = 11
    kDLFloat8_e5m2: ClassVar[int] = 12
    kDLFloat8_e5m2fnuz: ClassVar[int] = 13
    kDLFloat8_e8m0fnu: ClassVar[int] = 14


class DLDevice(ctypes.Structure):
    """A device: its kind and its number. Equal by value."""

    _fields_ = [("device_type", DLDeviceType), ("device_id", ctypes.c_int32)]

    if TYPE_CHECKING:
        device_type: DLDeviceType
        device_id: int

    def __repr__(self) -> str:
        return f"DLDevice({self.device_type}, {self.device_id})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DLDevice):
            return (self.device_type, self.device_id) == (other.device_type, other.device_id)
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self.device_type.value, self.device_id))


class DLDataType(ctypes.Structure):
    """An element type: base type code, bits of one lane, lanes of one row. Equal by value.

    As in every ctypes structure, numbers wrap to their field without a word; lanes are judged where a tensor is used.
    """

    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]

    if TYPE_CHECKING:
        code: int
        bits: int
        lanes: int

    def __repr__(self) -> str:
        return f"DLDataType(code={self.code}, bits={self.bits}, lanes={self.lanes})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DLDataType):
            return (self.code, self.bits, self.lanes) == (other.code, other.bits, other.lanes)
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self.code, self.bits, self.lanes))


_MOST_AXES = 64  # OVSTAGE_GO_MOST_AXES of the C headers
_MOST_LANES = 255  # OVSTAGE_GO_MOST_LANES


class DLTensor(ctypes.Structure):
    """A tensor descriptor: where the elements lie, of what type, in what shape. 48 bytes, owns nothing.

    ``strides`` count elements; a null pointer means compact row-major. ``data`` reads as an int, or ``None``.
    """

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]

    if TYPE_CHECKING:
        data: Any
        device: DLDevice
        ndim: int
        dtype: DLDataType
        shape: Any
        strides: Any
        byte_offset: int
        _owner: Any  # what keeps the elements alive
        _extent: int | None  # bytes known to lie behind data
        _readonly: bool  # set where the elements are not to be written to
        _axes: tuple[int, int, int]  # addresses of the arrays for shape and strides, and how many entries each has

    @property
    def shape_tuple(self) -> tuple[int, ...]:
        """The extents, ``()`` when the shape pointer is null. ``ValueError`` for an ndim that no tensor has."""
        if not self.shape:
            return ()
        if not 0 <= self.ndim <= _MOST_AXES:
            raise ValueError(f"ndim must be in [0, {_MOST_AXES}], the tensor has {self.ndim}")
        at, _, entries = getattr(self, "_axes", (0, 0, 0))
        if self.ndim > entries and ctypes.addressof(self.shape.contents) == at:
            raise ValueError(f"ndim is {self.ndim}, but the shape has room for {entries}: set shape to a longer array")
        return tuple(self.shape[: self.ndim])

    @classmethod
    def from_dlpack(cls, obj: Any, stream: int | None = None) -> DLTensor:
        """Describe the memory of any DLPack producer without a copy.

        Versioned and legacy capsules are taken, read-only sources too (writing to a stage only reads them). The
        producer's memory lives until the returned tensor dies. ``stream`` reaches a CUDA producer, as its
        ``__dlpack__`` defines it; for host memory it means nothing.

        Raises ``TypeError`` for an object without ``__dlpack__``, ``ValueError`` for lanes outside 1 .. 255 and axes
        that cannot be read, ``BufferError`` for a foreign major version and for a tensor on another device than
        ``__dlpack_device__`` names; what the producer raises goes through.
        """
        from ovstage._load import native

        if not hasattr(obj, "__dlpack__"):
            raise TypeError(f"{type(obj).__name__} does not support the DLPack protocol: it has no __dlpack__ method")
        return _described(cls(), native.consume_dlpack(obj, stream))

    def __repr__(self) -> str:
        data = "None" if self.data is None else hex(self.data + self.byte_offset)
        shape = self.shape_tuple if 0 <= self.ndim <= _MOST_AXES else f"<ndim {self.ndim}>"
        return f"DLTensor(shape={shape}, dtype={self.dtype}, device={self.device}, data={data})"


class DLPackVersion(ctypes.Structure):
    """Version of a managed tensor's layout."""

    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32)]

    if TYPE_CHECKING:
        major: int
        minor: int


class DLManagedTensor(ctypes.Structure):
    """What a legacy capsule holds."""

    _fields_ = [
        ("dl_tensor", DLTensor),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    ]


class DLManagedTensorVersioned(ctypes.Structure):
    """What a versioned capsule holds; its layout up to ``flags`` never changes."""

    _fields_ = [
        ("version", DLPackVersion),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("flags", ctypes.c_uint64),
        ("dl_tensor", DLTensor),
    ]


# --- data types -----------------------------------------------------------------------------------------------------

_CODES = {
    "float16": (2, 16), "float32": (2, 32), "float64": (2, 64),
    "int8": (0, 8), "int16": (0, 16), "int32": (0, 32), "int64": (0, 64),
    "uint8": (1, 8), "uint16": (1, 16), "uint32": (1, 32), "uint64": (1, 64),
    "bool": (6, 8),
}  # fmt: skip
# What comes out beside these, though it does not go in as the dtype of an array to describe.
_NAMES = {code: name for name, code in _CODES.items()} | {(5, 64): "complex64", (5, 128): "complex128"}
_EXTENSIONS = {
    (4, 16): "bfloat16",
    (7, 8): "float8_e3m4", (8, 8): "float8_e4m3", (9, 8): "float8_e4m3b11fnuz", (10, 8): "float8_e4m3fn",
    (11, 8): "float8_e4m3fnuz", (12, 8): "float8_e5m2", (13, 8): "float8_e5m2fnuz", (14, 8): "float8_e8m0fnu",
}  # fmt: skip
_OF_NAMES = {name: code for code, name in (_NAMES | _EXTENSIONS).items()}


def dtype_name(dtype: DLDataType) -> str:
    """The element type for people, with its lanes: ``float32x3``."""
    name = element_name(int(dtype.code), int(dtype.bits))
    return f"{name}x{dtype.lanes}" if dtype.lanes > 1 else name


def element_name(code: int, bits: int) -> str:
    """The element type for people, without lanes."""
    return _NAMES.get((code, bits)) or _EXTENSIONS.get((code, bits)) or f"code {code} of {bits} bits"


def element_dtype(np_dtype: np.dtype[Any]) -> DLDataType:
    """The element type of an array that was read, which may be one that ``numpy_to_dldatatype`` does not take."""
    code, bits = _OF_NAMES[str(np_dtype)]
    return DLDataType(code=code, bits=bits, lanes=1)


def numpy_to_dldatatype(np_dtype: Any, lanes: int = 1) -> DLDataType:
    """The element type of a NumPy dtype, in any spelling that NumPy knows, with ``lanes`` of them per row.

    Raises ``ValueError`` for a dtype outside the transport table (complex, structured, object, foreign byte order,
    ``None``) and for lanes outside 1 .. 255, ``TypeError`` for lanes that are no integer.
    """
    lanes = _lanes(guard.integer(lanes, "lanes"), "lanes")
    name = str(np_dtype)
    if name not in _CODES and np_dtype is not None:
        name = _spelled(np_dtype, name)
    if name not in _CODES:
        raise ValueError(f"Unsupported numpy dtype {np_dtype!r}: expected one of {', '.join(_CODES)}")
    code, bits = _CODES[name]
    return DLDataType(code=code, bits=bits, lanes=lanes)


def _spelled(np_dtype: Any, name: str) -> str:
    try:
        import numpy as np

        return str(np.dtype(np_dtype))
    except Exception:  # whatever NumPy cannot make a dtype of is unsupported, under the name it came with
        return name


def extension_dtype(name: str) -> np.dtype[Any]:
    """A type that NumPy learns from the package ml_dtypes. ``ValueError`` where that is not there to teach it."""
    import numpy as np

    try:
        import ml_dtypes

        dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    except (ImportError, AttributeError):
        raise ValueError(
            f"Unsupported DLDataType: NumPy has no {name} of its own; install the package ml_dtypes, in a version that "
            f"knows {name}, or pass the tensor on with dlpack()"
        ) from None
    return dtype


def _lanes(lanes: int, side: str) -> int:
    if not 1 <= lanes <= _MOST_LANES:
        raise ValueError(f"{side} must be in [1, 255], got {lanes}")
    return lanes


def _checked(dtype: object) -> DLDataType:
    if not isinstance(dtype, DLDataType):
        raise TypeError(f"dtype must be a DLDataType, got {dtype!r} ({type(dtype).__name__})")
    return dtype


# --- describing memory ----------------------------------------------------------------------------------------------


def _read(array: object) -> bool:
    """Whether it is a column or a group that was read, which NumPy puts in order where DLPack cannot."""
    from ovstage._load import native
    from ovstage.columns import Column

    return isinstance(array, (Column, native.Group))


def make_dltensor(
    array: Any,
    *,
    dtype: DLDataType | None = None,
    shape: Sequence[int] | None = None,
    ndim: int | None = None,
    strides: Sequence[int] | None = None,
    device_type: int = DLDeviceType.kDLCPU,
    device_id: int = 0,
) -> DLTensor:
    """Describe an array, and keep its memory alive as long as the descriptor lives.

    * A C-contiguous NumPy array is described where it lies; any other layout, a list or a scalar is copied first.
      ``dtype``, ``shape``, ``ndim`` and ``strides`` replace what the array says of itself: a flat float32 array of six
      elements becomes two rows of three with ``dtype=DLDataType(2, 32, 3), shape=[2]``.
    * Any other object with ``__dlpack__`` is described where it lies. For it ``dtype`` folds complete trailing axes
      into lanes, ``(N, 3)`` to ``(N,)`` with three lanes, without touching memory; the other overrides only confirm
      the folded layout, and ``device_type`` and ``device_id`` come from the producer.

    Raises ``ValueError`` for a dtype outside the transport table, lanes outside 1 .. 255, a shape that reaches beyond
    the array and a fold that does not come out even; ``TypeError`` for arguments of the wrong kind. Fields that are
    assigned later are judged where the tensor is written or decoded.
    """
    import numpy as np

    if not isinstance(array, np.ndarray) and hasattr(array, "__dlpack__") and not _read(array):
        tensor = DLTensor.from_dlpack(array)
        if dtype is not None or shape is not None or ndim is not None or strides is not None:
            _fold(tensor, dtype, shape, ndim, strides)
        return tensor

    if array is None or isinstance(array, (str, bytes, bytearray)):
        raise TypeError(f"array must be an array, got {array!r} ({type(array).__name__})")
    guard.unmasked(array, "array")
    held = np.ascontiguousarray(array)
    row = numpy_to_dldatatype(held.dtype) if dtype is None else _checked(dtype)
    _lanes(row.lanes, "dtype lanes")
    extents = tuple(held.shape) if shape is None else _extents(shape)
    steps = None if strides is None else _entries(strides, "strides")
    rank = len(extents) if ndim is None else guard.integer(ndim, "ndim")
    if rank < 0:
        raise ValueError(f"ndim must be non-negative, got {rank}")
    if rank > len(extents):
        raise ValueError(f"ndim {rank} exceeds len(shape), which is {len(extents)}")
    if steps is not None and len(steps) < rank:
        raise ValueError(f"strides has {len(steps)} entries, shorter than ndim, which is {rank}")
    seen = extents[:rank], None if steps is None else steps[:rank]
    first, last = _reach(*seen, row.bits * row.lanes)
    if first < 0 or last > held.nbytes:
        raise ValueError(
            f"shape {seen[0]}{'' if steps is None else f' with strides {steps[:rank]}'} of {row} reaches "
            f"over bytes {first} to {last}, but its backing buffer holds {held.nbytes} bytes"
        )

    tensor = DLTensor(held.ctypes.data, DLDevice(device_type, device_id), rank, row)
    _lay_out(tensor, extents, steps)
    tensor._owner = held
    tensor._extent = held.nbytes
    tensor._readonly = not held.flags.writeable
    return tensor


def _described(tensor: DLTensor, consumed: tuple[Any, ...]) -> DLTensor:
    """Fill a descriptor from what the extension read out of a producer's capsule."""
    (data, device_type, device_id, code, bits, lanes, shape, strides, byte_offset, flags), owner = consumed
    _lanes(lanes, "the producer's dtype lanes")
    tensor.data = data
    tensor.device = DLDevice(device_type, device_id)
    tensor.dtype = DLDataType(code, bits, lanes)
    tensor.byte_offset = byte_offset
    if shape:
        tensor.ndim = len(shape)
        _lay_out(tensor, shape, strides)
    tensor._owner = owner
    tensor._readonly = bool(flags & DLPACK_FLAG_BITMASK_READ_ONLY)
    span = _span(shape, strides)
    tensor._extent = None if span is None else byte_offset + span * row_bytes(tensor.dtype)
    return tensor


def _lay_out(tensor: DLTensor, shape: Sequence[int], strides: Sequence[int] | None) -> None:
    """Point a descriptor at shape and strides of its own, which ctypes keeps alive with the fields."""
    tensor.shape = (ctypes.c_int64 * len(shape))(*shape)
    tensor.strides = None if strides is None else (ctypes.c_int64 * len(strides))(*strides)
    measure(tensor, len(shape) if strides is None else min(len(shape), len(strides)))


def measure(tensor: DLTensor, entries: int) -> None:
    """Note how many entries the arrays for shape and strides have, as long as these are the ones."""
    pointers = (tensor.shape, tensor.strides)
    shape, strides = (ctypes.addressof(pointer.contents) if pointer else 0 for pointer in pointers)
    tensor._axes = shape, strides, entries


def row_bytes(dtype: DLDataType) -> int:
    return (dtype.bits * dtype.lanes + 7) // 8


def _span(shape: Sequence[int], strides: Sequence[int] | None) -> int | None:
    """Elements from the first to one past the last, or None where negative numbers leave it open."""
    if any(extent < 0 for extent in shape) or any(stride < 0 for stride in strides or ()):
        return None
    if 0 in shape:
        return 0
    if strides is None:
        return math.prod(shape)
    return 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))


def _reach(shape: Sequence[int], strides: Sequence[int] | None, row_bits: int, offset: int = 0) -> tuple[int, int]:
    """The first byte that a tensor of non-negative extents reads, and the first that it does not."""
    if 0 in shape:
        return offset, offset
    steps = [(extent - 1) * stride for extent, stride in zip(shape, strides or _compact(shape), strict=True)]
    first = sum(step for step in steps if step < 0) * row_bits // 8
    last = ((sum(step for step in steps if step > 0) + 1) * row_bits + 7) // 8
    return offset + first, offset + last


def _compact(shape: Sequence[int]) -> list[int]:
    """Row-major strides of a shape, as plain products, also for axes of extent 0 and 1."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return strides[::-1]


# --- folding trailing axes into lanes -------------------------------------------------------------------------------


def _fold(
    tensor: DLTensor,
    dtype: DLDataType | None,
    shape: Sequence[int] | None,
    ndim: int | None,
    strides: Sequence[int] | None,
) -> None:
    """Re-describe complete trailing axes of a producer's tensor as lanes; memory stays where and as it is."""
    if dtype is None:
        raise ValueError("shape, ndim and strides overrides require dtype for a DLPack producer")
    target = _checked(dtype)
    extents = _source_shape(tensor)
    if tensor.strides and tensor.strides[: tensor.ndim] != _compact(extents):
        raise ValueError(
            f"folding into lanes needs compact row-major source strides {tuple(_compact(extents))}, "
            f"got {tuple(tensor.strides[: tensor.ndim])}; make the source contiguous first"
        )
    factor = _fold_factor(tensor.dtype, target)
    folded = _folded_shape(extents, factor)
    _confirm(folded, shape, ndim, strides)
    tensor.dtype = target
    tensor.ndim = len(folded)
    _lay_out(tensor, folded, strides)


def _source_shape(tensor: DLTensor) -> tuple[int, ...]:
    extents = tensor.shape_tuple
    if any(extent < 0 for extent in extents):
        raise ValueError(f"invalid source shape: {extents} has a negative extent")
    return extents


def _fold_factor(source: DLDataType, target: DLDataType) -> int:
    """How many source rows make one target row."""
    if not source.bits or not target.bits:
        raise ValueError(f"folding needs positive source and requested bit widths, got {source.bits} and {target.bits}")
    if (source.code, source.bits) != (target.code, target.bits):
        raise ValueError(f"dtype must preserve the source base type: the source is {source}, requested was {target}")
    _lanes(target.lanes, "requested dtype lanes")
    if not source.lanes or target.lanes < source.lanes:
        raise ValueError(f"requested lanes {target.lanes} are fewer than the source's {source.lanes}")
    if target.lanes % source.lanes:
        raise ValueError(f"requested lanes {target.lanes} are not a multiple of the source's {source.lanes}")
    factor = target.lanes // source.lanes
    if factor > 1 and source.bits * source.lanes % 8:
        raise ValueError(f"only byte-aligned elements can be folded, got {source.bits * source.lanes} bits")
    return factor


def _folded_shape(extents: tuple[int, ...], factor: int) -> tuple[int, ...]:
    """What remains of a shape when its trailing axes are taken up by ``factor``."""
    product, kept = 1, len(extents)
    while kept and product < factor:
        extent = extents[kept - 1]
        if not extent or factor % (product * extent):
            break
        product *= extent
        kept -= 1
    if product != factor:
        raise ValueError(
            f"lanes of {factor} source elements cannot be formed by folding complete trailing axes of {extents}"
        )
    return extents[:kept] or ((1,) if factor > 1 else ())


def _confirm(
    folded: tuple[int, ...], shape: Sequence[int] | None, ndim: int | None, strides: Sequence[int] | None
) -> None:
    """Overrides beside dtype may only repeat what the fold gives."""
    if shape is not None:
        wanted = _entries(shape, "shape")
        if any(extent < 0 for extent in wanted):
            raise ValueError(f"shape entries must be non-negative, got {wanted}")
        if wanted != folded:
            raise ValueError(f"shape must equal the canonical folded shape {folded}, got {wanted}")
    if ndim is not None:
        rank = guard.integer(ndim, "ndim", "an integer")
        if rank != len(folded):
            raise ValueError(f"ndim must equal the rank of the folded shape {folded}, got {rank}")
    steps = tuple(_compact(folded))
    if strides is not None and (given := _entries(strides, "strides")) != steps:
        raise ValueError(f"strides must equal the compact strides {steps} of the folded shape, got {given}")


def _entries(values: Sequence[int], name: str) -> tuple[int, ...]:
    try:
        entries = tuple(guard.integer(value, name) for value in guard.entries(values, name, "a sequence of integers"))
    except TypeError:
        raise TypeError(f"{name} entries must be integers, got {values!r}") from None
    for at, entry in enumerate(entries):
        if not -(2**63) <= entry < 2**63:
            raise ValueError(f"{name} entries must fit in int64, got {entry} at position {at}")
    return entries


def _extents(shape: Sequence[int]) -> tuple[int, ...]:
    extents = _entries(shape, "shape")
    for at, extent in enumerate(extents):
        if extent < 0:
            raise ValueError(f"shape entries must be non-negative, got {extent} at position {at}")
    return extents


# --- decoding -------------------------------------------------------------------------------------------------------


class _Memory:
    """Foreign memory in NumPy's array interface. As the base of a view it keeps the owner of the memory alive."""

    __slots__ = ("__array_interface__", "_owner")

    def __init__(self, owner: object, address: int, shape: Sequence[int], strides: Any, dtype: Any, readonly: bool):
        self._owner = owner
        self.__array_interface__ = {
            "version": 3,
            "data": (address, readonly),
            "shape": tuple(shape),
            "strides": strides,
            "typestr": dtype.str,
        }


def dltensor_to_numpy(tensor: DLTensor, *, readonly: bool = False) -> npt.NDArray[Any]:
    """The elements of a CPU tensor as a flat NumPy array of base elements, lanes multiplied in.

    A compact tensor gives a view of its memory; one whose strides leave gaps is copied. The view keeps ``tensor``
    alive, and with it the memory a tensor of this package holds; memory behind a hand-built descriptor stays its
    builder's affair. With ``readonly=True``, and for a tensor over memory that may not be written to (a read group's, a
    read-only array's), the result cannot be made writable again.

    bfloat16 and float8 come as the types of the package ml_dtypes. Raises ``NotImplementedError`` for other devices and
    ``ValueError`` for a dtype NumPy lacks, for lanes outside 1 .. 255, and for a shape that reaches past the memory the
    tensor is known to hold.
    """
    import numpy as np

    if not isinstance(tensor, DLTensor):
        raise TypeError(f"tensor must be a DLTensor, got {tensor!r} ({type(tensor).__name__})")
    if tensor.device.device_type != DLDeviceType.kDLCPU:
        raise NotImplementedError(f"dltensor_to_numpy only supports CPU tensors, got one on {tensor.device}")
    stored, dtype = _numpy_types(tensor.dtype)
    lanes = _lanes(tensor.dtype.lanes, "tensor dtype lanes")
    if tensor.ndim > 0 and not tensor.shape:
        raise ValueError(f"the tensor has ndim {tensor.ndim} but a NULL pointer as shape")
    shape = tensor.shape_tuple
    if any(extent < 0 for extent in shape):
        raise ValueError(f"the tensor's shape {shape} has a negative extent")
    readonly = readonly or getattr(tensor, "_readonly", False)
    if tensor.data is None or 0 in shape:
        nothing = np.empty(0, stored)
        if readonly:
            nothing = np.asarray(_Memory(None, nothing.ctypes.data, (0,), None, stored, True))
        return nothing.view(dtype)

    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else tuple(_compact(shape))
    _check_extent(tensor, shape, strides, lanes * dtype.itemsize)
    memory = _Memory(
        tensor,
        tensor.data + tensor.byte_offset,
        (*shape, lanes),
        (*(stride * lanes * dtype.itemsize for stride in strides), dtype.itemsize),
        stored,
        readonly,
    )
    view = np.asarray(memory)
    flat = view.reshape(-1)
    if readonly and not np.may_share_memory(flat, view):
        flat = np.frombuffer(flat.tobytes(), stored)  # bytes as a base are what NumPy never lets anyone write to
    return flat.view(dtype)


def _numpy_types(row: DLDataType) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """The dtype that NumPy can find elements by, and the one that they are."""
    import numpy as np

    kind = row.code, row.bits
    if kind in _NAMES:
        return np.dtype(_NAMES[kind]), np.dtype(_NAMES[kind])
    if kind in _EXTENSIONS:
        return np.dtype(f"u{row.bits // 8}"), extension_dtype(_EXTENSIONS[kind])
    raise ValueError(f"Unsupported DLDataType {row}: NumPy has no such type; pass it on by DLPack instead")


def _check_extent(tensor: DLTensor, shape: tuple[int, ...], strides: tuple[int, ...], row: int) -> None:
    """Refuse a shape that leaves the memory known to lie behind the tensor."""
    held: int | None = getattr(tensor, "_extent", None)
    if held is None:
        return
    first, last = _reach(shape, strides, row * 8, tensor.byte_offset)
    if first < 0 or last > held:
        raise ValueError(f"the tensor reaches over bytes {first} to {last}, but its backing buffer holds {held} bytes")
