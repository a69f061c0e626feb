"""What is installed and where: the first thing to send with a question."""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import platform
import sys
from collections.abc import Iterator

import ovstage

__all__ = ["cuda", "run"]

PARTNERS = {
    "numpy": "arrays in and out",
    "usd-core": "USD scenes",
    "warp-lang": "exchange",
    "torch": "exchange",
    "jax": "exchange",
    "cupy-cuda12x": "exchange",
    "ml-dtypes": "bfloat16 and float8 arrays",
    "pyarrow": "tables",
    "pandas": "tables",
}
"""Distributions that the package works with when they are installed, and what for."""


def run() -> int:
    """Print it. The status is 1 when the native library cannot be loaded."""
    library, loaded = _library()
    rows = [
        ("ovstage-go", f"{ovstage.__version__}, interface level {loaded or 'unknown'}"),
        ("package", os.path.dirname(ovstage.__file__)),
        ("library", library),
        ("Python", f"{platform.python_version()} ({platform.python_implementation()}), {sys.executable}"),
        ("system", _system()),
        ("CUDA", cuda()),
        *_partners(),
    ]
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        print(f"{name:{width}}  {text}")
    return 0 if loaded else 1


def _library() -> tuple[str, str]:
    """Which file the engine comes from, or why it cannot; and its interface level."""
    try:
        level = ".".join(map(str, ovstage.library_version()))
    except RuntimeError as error:
        return str(error), ""
    path = os.path.join(os.path.dirname(ovstage.__file__), "libovstage.so")
    return f"{path} ({os.path.getsize(path) / 1e6:.1f} MB)", level


def _system() -> str:
    libc, version = platform.libc_ver()
    words = [platform.system(), platform.release(), platform.machine(), libc, version]
    return f"{' '.join(filter(None, words))}, {len(os.sched_getaffinity(0))} CPUs"


def cuda() -> str:
    """The driver and its devices, or why there is none. Asks the driver alone: no CUDA toolkit is needed."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no driver (libcuda.so.1)"
    version, count = ctypes.c_int(), ctypes.c_int()
    if (code := driver.cuInit(0)) or driver.cuDriverGetVersion(ctypes.byref(version)):
        return f"a driver that does not start (cuInit answers {code})"
    driver.cuDeviceGetCount(ctypes.byref(count))
    names = []
    for device in range(count.value):
        name = ctypes.create_string_buffer(256)
        driver.cuDeviceGetName(name, len(name), device)
        names.append(name.value.decode(errors="replace"))
    major, minor = divmod(version.value, 1000)
    return f"driver {major}.{minor // 10}, {count.value} devices{': ' if names else ''}{', '.join(names)}"


def _partners() -> Iterator[tuple[str, str]]:
    for name, purpose in PARTNERS.items():
        try:
            yield name, f"{importlib.metadata.version(name)} ({purpose})"
        except importlib.metadata.PackageNotFoundError:
            yield name, f"not installed ({purpose})"
