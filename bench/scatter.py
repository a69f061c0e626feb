"""The bare scatter that partial writes are measured against, in C: NumPy's own indexing is several times slower."""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
from functools import cache
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).with_name("scatter.c")
BUILD = SOURCE.parents[1] / "build" / "bench"


def scatter(target: np.ndarray, source: np.ndarray, rows: np.ndarray) -> None:
    """``target[rows[i]] = source[i]`` for float3 rows."""
    _compiled().scatter(target.ctypes.data, source.ctypes.data, rows.ctypes.data, len(rows))


@cache
def _compiled() -> ctypes.CDLL:
    BUILD.mkdir(parents=True, exist_ok=True)
    library = BUILD / "scatter.so"
    compiler = shlex.split(os.environ.get("CC", "cc"))
    try:
        subprocess.run([*compiler, "-O3", "-shared", "-fPIC", "-o", library, SOURCE], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"bench: the C compiler {compiler[0]!r} cannot build {SOURCE.name}: {error}; set CC") from None
    loaded = ctypes.CDLL(str(library))
    loaded.scatter.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    loaded.scatter.restype = None
    return loaded
