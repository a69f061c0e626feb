"""The libraries that tensors are exchanged with: how each takes one, makes one, and says where it lies.

What a library cannot do is written here as an expectation, so that the day on which it can is noticed, too.
"""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from conftest import NUMPY_WRITES, address, build_probe, compiled, compiler, python_headers

NUMPY = tuple(int(part) for part in np.__version__.split(".")[:2])

PLAIN = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
EXTENSIONS = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
TYPES = (*PLAIN, *EXTENSIONS)


def dtype_of(name: str) -> np.dtype[Any]:
    """NumPy's type of that name, with the help of ml_dtypes; ImportError without it."""
    return np.dtype(getattr(importlib.import_module("ml_dtypes"), name) if name in EXTENSIONS else name)


class ImmutableError(Exception):
    """The library has no arrays that can be written to."""


class Library:
    """One partner. Attributes are what the tests expect of it; the defaults are what a perfect one does."""

    name = ""
    package = ""
    asks = "versioned (1, 0)"
    """The form that it asks us for: the `table`, `versioned` with the version that it knows, or `legacy`."""
    writing = "refused"
    """What comes of writing to its view of a read group: `refused`, `immutable`, or `written through`."""
    reaches_maps = True
    """What is written to its view of a mapped buffer is committed."""
    aligned = 1
    """It copies what does not begin at a multiple of this."""
    refuses: ClassVar[frozenset[str]] = frozenset()
    """Element types that it does not take."""
    lacks: ClassVar[frozenset[str]] = frozenset()
    """Element types that it has no arrays of, or does not give away."""
    makes: ClassVar[tuple[str, ...]] = TYPES
    """Element types that the module of these tests makes arrays of; the others are not tried."""

    def __init__(self) -> None:
        """ImportError, with the reason, where it is not there."""
        self.module: Any = importlib.import_module(self.package.replace("-", "_"))

    @property
    def version(self) -> str:
        return importlib.metadata.version(self.package)

    def take(self, export: Any) -> Any:
        return self.module.from_dlpack(export)

    def make(self, values: np.ndarray) -> tuple[Any, int]:
        """An array of its own, compact, with these values, which count from 0; and its address."""
        array = self.module.asarray(values.copy())
        return array, self.address(array)

    def address(self, array: Any) -> int:
        raise NotImplementedError

    def shape(self, array: Any) -> tuple[int, ...]:
        return tuple(int(extent) for extent in array.shape)

    def write(self, array: Any) -> None:
        """Write 1 to the first element, or raise."""
        array[(0,) * len(self.shape(array))] = 1

    views: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}
    """Views of a (4, 6) array that are not compact."""


STRIDED: Mapping[str, Callable[[Any], Any]] = {
    "transposed": lambda array: array.T,
    "every second": lambda array: array[:, ::2],
    "reversed": lambda array: array[::-1, :],
    "offset": lambda array: array[1:, 2:],
}


class NumPy(Library):
    name = "NumPy"
    package = "numpy"
    asks = "versioned (1, 0)" if NUMPY >= (2, 1) else "legacy"
    reaches_maps = NUMPY_WRITES
    refuses = frozenset(EXTENSIONS)
    lacks = refuses
    views: ClassVar[Mapping[str, Callable[[Any], Any]]] = STRIDED

    def address(self, array: Any) -> int:
        return address(array)


class ArrayApiStrict(Library):
    name = "array-api-strict"
    package = "array-api-strict"
    refuses = frozenset(("float16", *EXTENSIONS))
    lacks = refuses
    views: ClassVar[Mapping[str, Callable[[Any], Any]]] = STRIDED

    def address(self, array: Any) -> int:
        return address(array._array)

    def make(self, values: np.ndarray) -> tuple[Any, int]:
        array = self.module.asarray(values.tolist(), dtype=getattr(self.module, values.dtype.name))
        return array, self.address(array)


class Jax(Library):
    name = "JAX"
    package = "jax"
    asks = "legacy"
    writing = "immutable"
    reaches_maps = False
    aligned = 64

    def __init__(self) -> None:
        super().__init__()
        self.module.config.update("jax_enable_x64", True)
        self.module = importlib.import_module("jax.numpy")

    def make(self, values: np.ndarray) -> tuple[Any, int]:
        array = self.module.array(values)
        return array, self.address(array)

    def address(self, array: Any) -> int:
        return int(array.unsafe_buffer_pointer())

    def write(self, array: Any) -> None:
        raise ImmutableError


class Warp(Library):
    name = "Warp"
    package = "warp-lang"
    asks = "legacy"
    writing = "written through"
    refuses = frozenset(("complex64", "complex128", "float8_e4m3fn", "float8_e5m2"))
    lacks = refuses
    views: ClassVar[Mapping[str, Callable[[Any], Any]]] = {
        "transposed": lambda array: array.transpose(),
        "every second": lambda array: array[:, ::2],
        "offset": lambda array: array[1:, 2:],
    }

    def __init__(self) -> None:
        self.module = importlib.import_module("warp")
        self.module.config.quiet = True
        self.module.init()

    def make(self, values: np.ndarray) -> tuple[Any, int]:
        array = self.module.array(values, device="cpu")
        return array, self.address(array)

    def address(self, array: Any) -> int:
        return int(array.ptr)

    def write(self, array: Any) -> None:
        array.fill_(1)


class TvmFfi(Library):
    name = "tvm-ffi"
    package = "apache-tvm-ffi"
    asks = "table"
    writing = "written through"
    lacks = frozenset(EXTENSIONS)

    def __init__(self) -> None:
        self.module = importlib.import_module("tvm_ffi")

    def make(self, values: np.ndarray) -> tuple[Any, int]:
        """It has no arrays of its own making: it wraps those of others."""
        array = self.module.from_dlpack(values.copy())
        return array, self.address(array)

    def address(self, array: Any) -> int:
        return int(array.data_ptr())

    def write(self, array: Any) -> None:
        np.from_dlpack(array)[(0,) * len(self.shape(array))] = 1


class Torch(Library):
    """Its own environment, see run.sh: it is large, and so is what it wants to have beside it."""

    name = "PyTorch"
    package = "torch"
    writing = "written through"
    views: ClassVar[Mapping[str, Callable[[Any], Any]]] = {
        "transposed": lambda array: array.T,
        "every second": lambda array: array[:, ::2],
        "offset": lambda array: array[1:, 2:],
    }

    def make(self, values: np.ndarray) -> tuple[Any, int]:
        if values.dtype.name in EXTENSIONS:  # which it does not know as types of NumPy
            bits = self.module.from_numpy(values.copy().view(f"u{values.itemsize}"))
            array = bits.view(getattr(self.module, values.dtype.name))
        else:
            array = self.module.from_numpy(values.copy())
        return array, self.address(array)

    def address(self, array: Any) -> int:
        return int(array.data_ptr())


class Nanobind(Library):
    """A module made with nanobind, whose arguments may be written to."""

    name = "nanobind"
    package = "nanobind"
    asks = "versioned (1, 1)"
    makes = ("float64",)

    def __init__(self) -> None:
        nanobind: Any = importlib.import_module("nanobind")
        cxx = compiler("CXX", "c++", "g++", "clang++")
        if cxx is None:
            raise ImportError("there is no C++ compiler to build a nanobind module with")
        include, source = Path(nanobind.include_dir()), Path(nanobind.source_dir())
        folders = [include, source, include.parent / "ext/robin_map/include"]
        sources = [Path(__file__).with_name("nanobind_arrays.cpp"), source / "nb_combined.cpp"]
        flags = ["-std=c++17", "-shared", "-fPIC", "-O1", "-fvisibility=hidden", "-fno-strict-aliasing"]
        searched = [word for folder in folders for word in ("-I", str(folder))]
        argv = [*cxx, *flags, "-DNB_COMPACT_ASSERTIONS", *searched, *python_headers(), *map(str, sources)]
        self.module = compiled("nanobind_arrays", argv, sources)

    def take(self, export: Any) -> Any:
        return self.module.take(export)

    def make(self, values: np.ndarray) -> tuple[Any, int]:
        where, array = self.module.make(len(values), values[0].size, False)
        return array, where

    def address(self, array: Any) -> int:
        return int(array.address())

    def write(self, array: Any) -> None:
        array.write(1)


class NanobindConst(Nanobind):
    """The same, whose arguments are constants."""

    name = "nanobind, nb::ro"
    asks = "legacy"
    writing = "immutable"
    reaches_maps = False

    def take(self, export: Any) -> Any:
        return self.module.take_read_only(export)

    def make(self, values: np.ndarray) -> tuple[Any, int]:
        where, array = self.module.make(len(values), values[0].size, True)
        return array, where

    def write(self, array: Any) -> None:
        raise ImmutableError


class C(Library):
    """An extension in C that goes through the exchange table, and hands out capsules."""

    name = "C extension"
    asks = "table"
    makes = ("float64",)
    version = "DLPack 1.3"

    def __init__(self) -> None:
        self.module: Any = build_probe()
        if self.module is None:
            raise ImportError("there is no C compiler to build the probe with")

    def take(self, export: Any) -> Any:
        return self.module.from_object(type(export), export)

    def make(self, values: np.ndarray) -> tuple[Any, int]:
        capsule = self.module.produce(shape=values.shape, ndim=values.ndim)
        producer = type("Producer", (), {"__dlpack__": lambda self, **options: capsule})()
        return producer, self.module.address(capsule)

    def address(self, array: Any) -> int:
        return int(self.module.look(array)["data"])

    def shape(self, array: Any) -> tuple[int, ...]:
        return tuple(self.module.look(array)["shape"])

    def write(self, array: Any) -> None:
        if self.module.look(array)["flags"] & 1:
            raise PermissionError("the flag says that the tensor is read-only")
        self.module.write(array, 1)


class PyArrow(Library):
    """Arrow arrays of numbers give themselves by DLPack; they take groups by Arrow's own protocol."""

    name = "pyarrow"
    package = "pyarrow"
    lacks = frozenset(("bool", "complex64", "complex128", *EXTENSIONS))

    def make(self, values: np.ndarray) -> tuple[Any, int]:
        array = self.module.array(values.reshape(-1).copy())
        return array, array.buffers()[1].address


CONSUMERS: tuple[type[Library], ...] = (
    *(NumPy, ArrayApiStrict, Jax, Warp, TvmFfi, Torch),
    *(Nanobind, NanobindConst, C),
)
PRODUCERS: tuple[type[Library], ...] = (*CONSUMERS, PyArrow)

_opened: dict[type[Library], Library | ImportError] = {}


def opened(kind: type[Library]) -> Library:
    """The library, imported once; ImportError where it is not there."""
    if kind not in _opened:
        try:
            _opened[kind] = kind()
        except ImportError as error:
            _opened[kind] = error
        gc.collect()
        gc.freeze()  # the tests collect a lot, and what these libraries made at their import is not what they look for
    found = _opened[kind]
    if isinstance(found, ImportError):
        raise found
    return found
