"""What descriptors, DLPack producers and exports refuse, word for word."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np
import pytest
from refusals import Row, axes, check, names_of, tensor

from ovstage import (
    DLDataType,
    DLDevice,
    DLTensor,
    ManagedDLTensor,
    dltensor_to_numpy,
    make_dltensor,
    numpy_to_dldatatype,
)
from ovstage.dlpack import DLManagedTensor, DLManagedTensorVersioned, DLPackVersion

# --- what some rows need first ---


FLOAT, FLOAT3 = DLDataType(2, 32, 1), DLDataType(2, 32, 3)


def export(**fields: Any) -> ManagedDLTensor:
    return ManagedDLTensor(tensor(**fields), None)


class Producer:
    """A DLPack producer whose tensor is whatever it is made of."""

    def __init__(self, answer: Any, device: Any = (1, 0)) -> None:
        self.answer, self.device = answer, device

    def __dlpack__(self, **_: Any) -> Any:
        return self.answer() if callable(self.answer) else self.answer

    def __dlpack_device__(self) -> Any:
        return self.device


KEPT: list[Any] = []  # what the capsules of this file point at


def capsule(managed: Any, name: bytes) -> Any:
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    KEPT.append((managed, name))
    return make(ctypes.addressof(managed), name, None)


def legacy(**fields: Any) -> Any:
    return capsule(DLManagedTensor(tensor(**fields)), b"dltensor")


def versioned(major: int, minor: int = 0) -> Any:
    return capsule(
        DLManagedTensorVersioned(version=DLPackVersion(major, minor), dl_tensor=tensor()), b"dltensor_versioned"
    )


def exchange() -> Any:
    """The C exchange table, as another extension finds it."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return (ctypes.c_void_p * 8).from_address(get(ManagedDLTensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))


def export_by_table(obj: object) -> object:
    out = ctypes.c_void_p()
    call = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(exchange()[3])
    return call(obj, ctypes.addressof(out))


def import_by_table(major: int) -> object:
    managed, out = DLManagedTensorVersioned(version=DLPackVersion(major, 0), dl_tensor=tensor()), ctypes.c_void_p()
    KEPT.append(managed)
    call = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(exchange()[4])
    return call(ctypes.addressof(managed), ctypes.addressof(out))


def allocate_by_table(prototype: DLTensor) -> object:
    said_by_table: list[str] = []
    report = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)(
        lambda _, kind, text: said_by_table.append(f"{text.decode()}")
    )
    out = ctypes.c_void_p()
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, type(report))
    kind(exchange()[2])(ctypes.addressof(prototype), ctypes.addressof(out), None, report)
    raise BufferError(*said_by_table)


def without_ml_dtypes(bfloats: DLTensor) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "ml_dtypes", None)
        return dltensor_to_numpy(bfloats)


class Fickle:
    """Has a tensor when it is asked whether, and none when it is asked for it."""

    asked = False

    def __getattr__(self, name: str) -> Any:
        if name != "__dlpack__" or self.asked:
            raise AttributeError(name)
        self.asked = True
        return print

    def __repr__(self) -> str:
        return "Fickle()"


# --- the rows ---

TYPES: list[Row] = [
    (
        "ValueError: Unsupported numpy dtype <class 'numpy.complex64'>: expected one of float16, float32, "
        "float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64, bool",
        lambda s: numpy_to_dldatatype(np.complex64),
    ),
    (
        "ValueError: Unsupported numpy dtype None: expected one of float16, float32, float64, int8, int16, "
        "int32, int64, uint8, uint16, uint32, uint64, bool",
        lambda s: numpy_to_dldatatype(None),
    ),
    ("ValueError: lanes must be in [1, 255], got 0", lambda s: numpy_to_dldatatype(np.float32, 0)),
]

DESCRIPTORS: list[Row] = [
    ("TypeError: array must be an array, got None (NoneType)", lambda s: make_dltensor(None)),
    ("TypeError: array must be an array, got 'text' (str)", lambda s: make_dltensor("text")),
    (
        "ValueError: array is a masked array (numpy.ma) that hides elements, which nothing here could keep hidden: "
        "pass array.filled(value)",
        lambda s: make_dltensor(np.ma.masked_array([1.0, 2.0], [True, False])),
    ),
    (
        "ValueError: Unsupported numpy dtype dtype('>f4'): expected one of float16, float32, float64, int8, "
        "int16, int32, int64, uint8, uint16, uint32, uint64, bool",
        lambda s: make_dltensor(np.zeros(2, ">f4")),
    ),
    ("TypeError: dtype must be a DLDataType, got 'f4' (str)", lambda s: make_dltensor(np.zeros(6, "f4"), dtype="f4")),
    (
        "ValueError: dtype lanes must be in [1, 255], got 256",
        lambda s: make_dltensor(np.zeros(6, "f4"), dtype=DLDataType(2, 32, 256)),
    ),
    (
        "ValueError: shape entries must be non-negative, got -1 at position 1",
        lambda s: make_dltensor(np.zeros(6, "f4"), shape=[3, -1]),
    ),
    ("TypeError: shape entries must be integers, got [2.5]", lambda s: make_dltensor(np.zeros(6, "f4"), shape=[2.5])),
    (
        "ValueError: shape entries must fit in int64, got 9223372036854775808 at position 0",
        lambda s: make_dltensor(np.zeros(6, "f4"), shape=[2**63]),
    ),
    (
        "ValueError: shape (7,) of DLDataType(code=2, bits=32, lanes=1) reaches over bytes 0 to 28, but its "
        "backing buffer holds 24 bytes",
        lambda s: make_dltensor(np.zeros(6, "f4"), shape=[7]),
    ),
    (
        "ValueError: shape (3,) with strides (3,) of DLDataType(code=2, bits=32, lanes=1) reaches over bytes "
        "0 to 28, but its backing buffer holds 24 bytes",
        lambda s: make_dltensor(np.zeros(6, "f4"), shape=[3], strides=[3]),
    ),
    ("ValueError: ndim must be non-negative, got -1", lambda s: make_dltensor(np.zeros(6, "f4"), ndim=-1)),
    ("ValueError: ndim 2 exceeds len(shape), which is 1", lambda s: make_dltensor(np.zeros(6, "f4"), ndim=2)),
    (
        "ValueError: strides has 1 entries, shorter than ndim, which is 2",
        lambda s: make_dltensor(np.zeros((3, 2), "f4"), strides=[1]),
    ),
    (
        "ValueError: shape, ndim and strides overrides require dtype for a DLPack producer",
        lambda s: make_dltensor(export(), shape=[2]),
    ),
    (
        "ValueError: folding needs positive source and requested bit widths, got 32 and 0",
        lambda s: make_dltensor(export(), dtype=DLDataType(2, 0, 1)),
    ),
    (
        "ValueError: dtype must preserve the source base type: the source is DLDataType(code=2, bits=32, "
        "lanes=1), requested was DLDataType(code=1, bits=32, lanes=1)",
        lambda s: make_dltensor(export(), dtype=DLDataType(1, 32, 1)),
    ),
    (
        "ValueError: lanes of 2 source elements cannot be formed by folding complete trailing axes of (0, 3)",
        lambda s: make_dltensor(export(dtype=FLOAT3, shape=axes(0)), dtype=DLDataType(2, 32, 2)),
    ),
    (
        "ValueError: requested lanes 1 are fewer than the source's 2",
        lambda s: make_dltensor(Producer(lambda: legacy(dtype=DLDataType(2, 32, 2), shape=axes(1))), dtype=FLOAT),
    ),
    (
        "ValueError: requested lanes 3 are not a multiple of the source's 2",
        lambda s: make_dltensor(Producer(lambda: legacy(dtype=DLDataType(2, 32, 2), shape=axes(1))), dtype=FLOAT3),
    ),
    (
        "ValueError: only byte-aligned elements can be folded, got 4 bits",
        lambda s: make_dltensor(Producer(lambda: legacy(dtype=DLDataType(1, 4, 1))), dtype=DLDataType(1, 4, 2)),
    ),
    (
        "ValueError: lanes of 3 source elements cannot be formed by folding complete trailing axes of (2,)",
        lambda s: make_dltensor(export(), dtype=FLOAT3),
    ),
    (
        "ValueError: folding into lanes needs compact row-major source strides (1,), got (2,); make the "
        "source contiguous first",
        lambda s: make_dltensor(Producer(lambda: legacy(strides=axes(2), shape=axes(1))), dtype=DLDataType(2, 32, 2)),
    ),
    (
        "ValueError: invalid source shape: (-2,) has a negative extent",
        lambda s: make_dltensor(Producer(lambda: legacy(shape=axes(-2))), dtype=FLOAT),
    ),
    (
        "ValueError: shape must equal the canonical folded shape (1,), got (2,)",
        lambda s: make_dltensor(export(), dtype=DLDataType(2, 32, 2), shape=[2]),
    ),
    (
        "ValueError: shape entries must be non-negative, got (-1,)",
        lambda s: make_dltensor(export(), dtype=DLDataType(2, 32, 2), shape=[-1]),
    ),
    (
        "ValueError: ndim must equal the rank of the folded shape (1,), got 2",
        lambda s: make_dltensor(export(), dtype=DLDataType(2, 32, 2), ndim=2),
    ),
    (
        "TypeError: ndim must be an integer, got '1' (str)",
        lambda s: make_dltensor(export(), dtype=DLDataType(2, 32, 2), ndim="1"),
    ),
    (
        "ValueError: strides must equal the compact strides (1,) of the folded shape, got (2,)",
        lambda s: make_dltensor(export(), dtype=DLDataType(2, 32, 2), strides=[2]),
    ),
    (
        "TypeError: int does not support the DLPack protocol: it has no __dlpack__ method",
        lambda s: DLTensor.from_dlpack(5),
    ),
    (
        "ValueError: obj: __dlpack__ returned an invalid PyCapsule object: 'no capsule' (str)",
        lambda s: DLTensor.from_dlpack(Producer("no capsule")),
    ),
    (
        "ValueError: obj: __dlpack__ returned a capsule with the incorrect name 'tensor': expected 'dltensor'"
        " or 'dltensor_versioned', and a capsule can be consumed only once",
        lambda s: DLTensor.from_dlpack(Producer(lambda: capsule(tensor(), b"tensor"))),
    ),
    (
        "ValueError: obj: the producer's tensor has ndim 65 and a shape: expected 0 to 64 axes and their extents",
        lambda s: DLTensor.from_dlpack(Producer(lambda: legacy(ndim=65))),
    ),
    (
        "ValueError: obj: lanes must be in [1, 255], the producer's tensor has 0",
        lambda s: DLTensor.from_dlpack(Producer(lambda: legacy(dtype=DLDataType(2, 32, 0)))),
    ),
    (
        "BufferError: obj: __dlpack_device__ says device type 2, but the tensor of __dlpack__ is on device type 1",
        lambda s: DLTensor.from_dlpack(Producer(legacy, (2, 0))),
    ),
    (
        "BufferError: obj: the producer answered with DLPack 2.7, which has another layout; at most 1.x can be read",
        lambda s: DLTensor.from_dlpack(Producer(lambda: versioned(2, 7))),
    ),
    (
        "BufferError: tensors: the producer answered with DLPack 2.7, which has another layout; at most 1.x "
        "can be read",
        lambda s: s.put(Producer(lambda: versioned(2, 7))),
    ),
    (
        "ValueError: tensors: __dlpack__ returned an invalid PyCapsule object: 'no capsule' (str)",
        lambda s: s.put(Producer("no capsule")),
    ),
    (
        "TypeError: tensors does not support the DLPack protocol: it has no __dlpack__, got Fickle() (Fickle)",
        lambda s: s.put(Fickle()),
    ),
]

DECODING: list[Row] = [
    ("ValueError: ndim must be in [0, 64], the tensor has 65", lambda s: tensor(ndim=65).shape_tuple),
    ("ValueError: ndim must be in [0, 64], the tensor has -1", lambda s: export(ndim=-1).shape),
    (
        "ValueError: Unsupported DLDataType: NumPy has no bfloat16 of its own; install the package ml_dtypes, in a "
        "version that knows bfloat16, or pass the tensor on with dlpack()",
        lambda s: without_ml_dtypes(tensor(dtype=DLDataType(4, 16, 1))),
    ),
    ("TypeError: tensor must be a DLTensor, got array([0., 0.]) (ndarray)", lambda s: dltensor_to_numpy(np.zeros(2))),
    (
        "NotImplementedError: dltensor_to_numpy only supports CPU tensors, got one on DLDevice(CUDA, 0)",
        lambda s: dltensor_to_numpy(tensor(device=DLDevice(2, 0))),
    ),
    (
        "ValueError: Unsupported DLDataType DLDataType(code=1, bits=4, lanes=1): NumPy has no such type; pass"
        " it on by DLPack instead",
        lambda s: dltensor_to_numpy(tensor(dtype=DLDataType(1, 4, 1))),
    ),
    (
        "ValueError: tensor dtype lanes must be in [1, 255], got 0",
        lambda s: dltensor_to_numpy(tensor(dtype=DLDataType(2, 32, 0))),
    ),
    ("ValueError: the tensor has ndim 1 but a NULL pointer as shape", lambda s: dltensor_to_numpy(tensor(shape=None))),
    ("ValueError: the tensor's shape (-2,) has a negative extent", lambda s: dltensor_to_numpy(tensor(shape=axes(-2)))),
    (
        "ValueError: the tensor reaches over bytes 0 to 12, but its backing buffer holds 8 bytes",
        lambda s: dltensor_to_numpy(tensor(shape=axes(3))),
    ),
]

EXPORTS: list[Row] = [
    ("BufferError: out of memory for a tensor", lambda s: allocate_by_table(tensor(shape=axes(2**55)))),
    (
        "TypeError: dl_tensor must be a DLTensor, got array([0., 0.]) (ndarray)",
        lambda s: ManagedDLTensor(np.zeros(2), None),
    ),
    (
        "TypeError: deleter_callback must be callable or None, got 'callback'",
        lambda s: ManagedDLTensor(tensor(), None, "callback"),
    ),
    (
        "ValueError: this ManagedDLTensor was never initialised",
        lambda s: ManagedDLTensor.__new__(ManagedDLTensor).shape,
    ),
    (
        "BufferError: dl_tensor cannot be exported: it has ndim 65 and a shape, expected 0 to 64 axes and "
        "their extents",
        lambda s: export(ndim=65).__dlpack__(),
    ),
    (
        "BufferError: dl_tensor cannot be exported: its shape is (-2,) with 1 lanes, expected extents that "
        "memory holds",
        lambda s: export(shape=axes(-2)).__dlpack__(),
    ),
    (
        "BufferError: dl_tensor reaches over bytes 0 to 12, but its backing buffer holds 8 bytes; make the "
        "descriptor anew with make_dltensor(array)",
        lambda s: export(shape=axes(3)).__dlpack__(),
    ),
    (
        "BufferError: dl_tensor cannot be exported: its data is NULL, expected the address of 8 bytes",
        lambda s: export(data=None).__dlpack__(),
    ),
    (
        "BufferError: dl_tensor cannot be copied: it has strides and elements of 4 bits, expected whole bytes",
        lambda s: export(dtype=DLDataType(1, 4, 1), strides=axes(2)).__dlpack__(copy=True),
    ),
    (
        "TypeError: max_version must be a (major, minor) tuple or None, got 1 (int)",
        lambda s: export().__dlpack__(max_version=1),
    ),
    (
        "TypeError: dl_device must be a (device_type, device_id) tuple of ints or None, got 'cpu' (str)",
        lambda s: export().__dlpack__(dl_device="cpu"),
    ),
    (
        "BufferError: dl_device (2, 0) does not match tensor device (1, 0)",
        lambda s: export().__dlpack__(dl_device=(2, 0)),
    ),
    (
        "BufferError: dl_device (1, 0) does not match tensor device (3, 0) without a copy, and copy=False forbids one",
        lambda s: export(device=DLDevice(3, 0)).__dlpack__(dl_device=(1, 0), copy=False),
    ),
    (
        "BufferError: copy=True is not supported for memory of device type 2",
        lambda s: export(device=DLDevice(2, 1)).__dlpack__(copy=True),
    ),
    ("TypeError: expected a ManagedDLTensor, got 5 (int)", lambda s: export_by_table(5)),
    ("BufferError: the tensor is laid out by DLPack 2.0, expected major version 1", lambda s: import_by_table(2)),
    (
        "BufferError: prototype has device type 2 and ndim 1: expected host memory (1) and valid extents",
        lambda s: allocate_by_table(tensor(device=DLDevice(2, 0))),
    ),
]

ROWS = [*TYPES, *DESCRIPTORS, *DECODING, *EXPORTS]


@pytest.mark.parametrize(("text", "call"), ROWS, ids=names_of(ROWS))
def test_refusal(scene, text, call):
    check(text, call, scene)
