"""A test or a program that hangs fails, and its stacks are seen."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from children import run_child, run_python

ROOT = Path(__file__).resolve().parents[2]

HANGS = """
import threading
def stuck_for_ever(): threading.Event().wait()
stuck_for_ever()
"""


def test_a_child_that_hangs_shows_where() -> None:
    with pytest.raises(AssertionError, match=r"(?s)not done after 5 s.*in stuck_for_ever"):
        run_python(HANGS, limit=5)


def test_a_grandchild_that_hangs_shows_where() -> None:
    program = (
        "import faulthandler, subprocess, sys\n"
        "faulthandler.disable()  # two at once on one pipe would mix their lines\n"
        f"subprocess.run([sys.executable, '-c', {HANGS!r}])\n"
    )
    with pytest.raises(AssertionError, match=r"(?s)not done after 5 s.*in stuck_for_ever"):
        run_python(program, limit=5)


def test_a_test_that_hangs_ends_the_run_and_shows_where(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import threading\ndef test_stuck(): threading.Event().wait()\n")
    pytest_here = [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "-o", "faulthandler_timeout=1"]
    done = run_child([*pytest_here, "-p", "no:cacheprovider", tmp_path])
    assert done.returncode != 0
    assert "in test_stuck" in done.stderr


def test_a_program_that_hangs_ends(tmp_path: Path) -> None:
    done = run_child([ROOT / "tests/within.sh", "1", sys.executable, "-c", HANGS])
    assert done.returncode != 0
    assert "not done after 1 s" in done.stderr


def test_a_program_within_its_limit_keeps_its_exit_code() -> None:
    assert run_child([ROOT / "tests/within.sh", "60", "sh", "-c", "exit 7"]).returncode == 7
