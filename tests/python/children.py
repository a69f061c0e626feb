"""Other processes that a test starts. One that hangs fails the test and shows where every thread of it stands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LIMIT = 150.0
"""Seconds. Well below pytest's own limit for a test, so that it is the child that is seen to hang."""


def run_child(
    argv: Sequence[str | Path], *, limit: float = LIMIT, input: str = "", **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, as `subprocess.run` does with captured text.

    After `limit` seconds it and all that it started get SIGABRT, at which a Python prints its stacks, and the test
    fails with them. `input` is its standard input.
    """
    options["env"] = {"PYTHONFAULTHANDLER": "1", **(options.get("env") or os.environ)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([str(word) for word in argv], start_new_session=True, **{**pipes, **options}) as child:
        try:
            out, err = child.communicate(input, timeout=limit)
        except subprocess.TimeoutExpired:
            out, err = last_words(child)
            raise AssertionError(f"not done after {limit:g} s: {argv}\n{out}\n{err}") from None
        except BaseException:
            os.killpg(child.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(argv, child.returncode, out, err)


def run_python(program: str, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """A program text in a fresh interpreter that sees the same packages as this one."""
    return run_child([sys.executable, "-u", "-c", program, *arguments], **options)


def last_words(child: subprocess.Popen[str]) -> tuple[str, str]:
    """What a child, and whatever it started, says when it is told to abort."""
    os.killpg(child.pid, signal.SIGABRT)
    try:
        return child.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        return child.communicate()
