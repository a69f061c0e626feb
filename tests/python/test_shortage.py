"""Memory that runs out, at every allocation of every call: a MemoryError or OUT_OF_MEMORY, and the stage goes on."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def shortage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that fails allocations."""
    words = shlex.split(os.environ.get("CC", "")) or [next(filter(shutil.which, ("cc", "gcc", "clang")))]
    built = tmp_path_factory.mktemp("shortage") / "shortage.so"
    source = HERE.parent / "c/shortage.c"
    flags = ["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*words, *flags, str(source), "-ldl", "-o", str(built)], check=True, timeout=100)
    return built


@pytest.mark.parametrize(
    ("options", "least"),
    [([], 300), pytest.param(["--python"], 800, marks=pytest.mark.slow)],
    ids=["library", "python"],
)
def test_every_call_survives_shortage(shortage: Path, options: list[str], least: int) -> None:
    """``least`` attempts met a shortage that they could not do without."""
    environment = {**os.environ, "LD_PRELOAD": str(shortage)}
    argv = [sys.executable, "-X", "faulthandler", str(HERE / "shortages.py"), *options]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=400, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[0]) > least
