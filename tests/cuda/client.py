"""A CUDA client for the tests, made of NVIDIA's own ``cuda.bindings``, on whatever libcuda.so.1 the loader finds."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from cuda.bindings import driver

fake = ctypes.CDLL("libcuda.so.1")
"""What the fake tells a test. It is the library that ``cuda.bindings`` calls."""

for name, restype, argtypes in (
    ("races", ctypes.c_long, []),
    ("faults", ctypes.c_long, []),
    ("report", ctypes.c_char_p, []),
    ("begin", None, [ctypes.c_uint]),
    ("calls", ctypes.c_long, [ctypes.c_char_p]),
    ("live", ctypes.c_long, [ctypes.c_int]),
    ("fail", None, [ctypes.c_char_p, ctypes.c_long, ctypes.c_int]),
    ("peek", None, [ctypes.c_void_p, ctypes.c_ulonglong, ctypes.c_size_t]),
):
    function = getattr(fake, f"fakecuda_{name}")
    function.restype, function.argtypes = restype, argtypes

LEGACY, PER_THREAD = 1, 2
DEVICE, PINNED, MANAGED, EVENTS, STREAMS, MODULES = 1, 2, 3, 10, 11, 12


class DriverError(Exception):
    """A call of the driver that did not answer CUDA_SUCCESS; ``str`` is the name of its code."""


def call(name: str, *arguments: Any) -> Any:
    """Call an entry point, and return what it returns beside its code."""
    code, *rest = getattr(driver, name)(*arguments)
    if code != driver.CUresult.CUDA_SUCCESS:
        raise DriverError(code.name)
    return rest[0] if len(rest) == 1 else rest or None


def start(device: int = 0) -> None:
    """Have the primary context of a device in this thread."""
    call("cuInit", 0)
    call("cuCtxSetCurrent", call("cuDevicePrimaryCtxRetain", device))


def stream(blocking: bool = False) -> Any:
    return call("cuStreamCreate", 0 if blocking else 1)


def event() -> Any:
    return call("cuEventCreate", 2)


def recorded(on: Any) -> Any:
    """An event that stands behind what the stream has been given so far."""
    made = event()
    call("cuEventRecord", made, on)
    return made


def device(size: int) -> int:
    return int(call("cuMemAlloc", size))


def pinned(array: np.ndarray) -> np.ndarray:
    """A copy in pinned memory, whose address is ``made.ctypes.data``."""
    address = int(call("cuMemHostAlloc", max(array.nbytes, 1), 0))
    memory = (ctypes.c_char * array.nbytes).from_address(address)
    made = np.frombuffer(memory, array.dtype).reshape(array.shape)
    made[...] = array
    return made


def upload(to: int, array: np.ndarray, on: Any) -> None:
    """From pinned memory, so that the copy is queued, and late."""
    source = pinned(np.ascontiguousarray(array))
    call("cuMemcpyHtoDAsync", to, source.ctypes.data, source.nbytes, on)


def copied(to: int, source: int, size: int, on: Any) -> None:
    call("cuMemcpyDtoDAsync", to, source, size, on)


def uploaded(array: np.ndarray) -> int:
    """Device memory that holds the array, and is known to."""
    made = device(array.nbytes)
    call("cuMemcpyHtoD", made, np.ascontiguousarray(array).ctypes.data, array.nbytes)
    return made


def download(address: int, like: np.ndarray, on: Any) -> np.ndarray:
    """What lies there when the stream has come to it."""
    target = pinned(np.zeros_like(like))
    call("cuMemcpyDtoHAsync", target.ctypes.data, address, target.nbytes, on)
    call("cuStreamSynchronize", on)
    return target.copy()


class Kernels:
    """The entries of a PTX text. ``launch(name, threads, stream, 7, np.uint32(3), ...)``; ints are addresses."""

    def __init__(self, text: str) -> None:
        self.module = call("cuModuleLoadData", text.encode() + b"\0")

    def launch(self, name: str, threads: int, on: Any, *values: Any, block: int = 32) -> None:
        entry = call("cuModuleGetFunction", self.module, name.encode())
        kept = [np.array([v], np.uint64) if isinstance(v, int) else np.array([v]) for v in values]
        addresses = np.array([v.ctypes.data for v in kept], np.uint64)
        grid = -(-threads // block)
        call("cuLaunchKernel", entry, grid, 1, 1, block, 1, 1, 0, on, addresses.ctypes.data, 0)


def judged(scenario: Callable[[], object], seed: int) -> tuple[int, int]:
    """The races and faults of a scenario in the order of a seed."""
    fake.fakecuda_begin(seed)
    scenario()
    return fake.fakecuda_races(), fake.fakecuda_faults()
