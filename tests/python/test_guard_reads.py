"""guard_reads: a write through a view of a read ends the process, with a sentence; everything else goes as without."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ovstage import Stage, StageConfig

SENTENCE = "ovstage: sealed values were written to through a view that is read-only"

START = """
import ctypes, sys
import numpy as np
from ovstage import OrdinalRange, PathDictionary, Stage, StageConfig

stage = Stage(config=StageConfig(guard_reads=True))
names = PathDictionary(stage)
query = stage.query_from_path_list(names.create_path_list_from_strings(["/A", "/B"]))

def seal(values, ordinal, **options):
    stage.write_attribute(query, "v", ordinal, values, **{"is_array": False, **options}).wait()
    stage.advance_write_floor(ordinal).wait()

def group(ordinal):
    return stage.read_attributes(query, [names.intern_token("v")], OrdinalRange.latest(ordinal)).fetch_next()

def poke(address):
    ctypes.memset(address, 255, 4)

seal(np.zeros((2, 3), np.float32), 1)
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", START + program], capture_output=True, text=True, timeout=120
    )


def caught(program: str) -> str:
    """What a program that writes to sealed values leaves on stderr."""
    done = run(program + "\nprint('survived')")
    assert "survived" not in done.stdout, done.stdout
    assert done.returncode in (-signal.SIGSEGV, -signal.SIGABRT, 2), done
    assert SENTENCE in done.stderr
    return done.stderr


def test_a_write_through_a_view_ends_the_process_with_a_sentence() -> None:
    said = caught("def culprit():\n    poke(group(1).array(0).ctypes.data)\nculprit()")
    assert "dlpack(i, private=True), column.torch() or column.warp()" in said
    assert "Fatal Python error: Segmentation fault" in said and "in culprit" in said  # where it was


@pytest.mark.parametrize(
    "program",
    [
        'poke(stage.read(query, ["v"])["v"].values.ctypes.data)',
        "poke(np.from_dlpack(group(1).dlpack(0)).ctypes.data)",
        "poke(group(1).tensor(0).data)",
        "held = group(1)\nseal(np.ones((2, 3), np.float32), 2)\npoke(held.array(0).ctypes.data)",
        "view = group(1).array(0)\nstage.destroy()\npoke(view.ctypes.data)",
    ],
    ids=["column", "dlpack", "descriptor", "an older state", "after the stage"],
)
def test_whatever_the_view(program: str) -> None:
    caught(program)


def test_array_columns() -> None:
    caught(
        'stage.write_attribute(query, "a", 2, [np.float32([1, 2]), np.float32([3])], is_array=True).wait()\n'
        "stage.advance_write_floor(2).wait()\n"
        'poke(stage.read_attributes(query, [names.intern_token("a")], OrdinalRange.latest(2)).fetch_next().array(1)'
        ".ctypes.data)"
    )


def test_warp_is_caught() -> None:
    caught("import warp as wp\nwp.init()\nwp.from_dlpack(group(1).dlpack(0)).fill_(7.0)")


def test_what_may_be_written_to_is() -> None:
    done = run(
        """
own = np.from_dlpack(group(1).dlpack(0, private=True))
own[:] = 5
with stage.map_attribute(query, "v", 2) as mapping:
    mapped = mapping.fetch_next().array(0)
    mapped[:] = 6
mapped[:] = 7                      # detached from what was committed
stage.advance_write_floor(2).wait()
held = group(2)
for ordinal in range(3, 40):       # buffers that readers held are used again, and written to
    view = group(ordinal - 1).array(0)
    stage.write_attribute(query, "v", ordinal, np.full((1, 3), ordinal, np.float32), is_array=False, count=1).wait()
    stage.advance_write_floor(ordinal).wait()
    del view
print(held.array(0).ravel().tolist(), group(39).array(0).ravel().tolist())
"""
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[6.0, 6.0, 6.0, 6.0, 6.0, 6.0] [39.0, 39.0, 39.0, 6.0, 6.0, 6.0]\n"
    assert SENTENCE not in done.stderr


def test_other_faults_have_no_sentence() -> None:
    done = run("ctypes.string_at(8)")
    assert done.returncode != 0 and SENTENCE not in done.stderr
    assert "Segmentation fault" in done.stderr or "SIGSEGV" in done.stderr


def test_it_is_off_again_with_the_stage() -> None:
    with Stage(config=StageConfig(guard_reads=True)) as stage:
        stage.write(["/A"], "v", 1, np.zeros(1, np.float32)).wait()
        stage.advance_write_floor(1).wait()
        held = stage.read(["/A"], ["v"])["v"].values
    assert held.tolist() == [0]
    with Stage() as plain:
        plain.write(["/A"], "v", 1, np.zeros(1, np.float32)).wait()
        assert plain.counters()["refused_unasked"] == 0


def test_what_it_must_be() -> None:
    with pytest.raises(TypeError, match=r"^guard_reads must be True or False, got 'yes'$"):
        Stage(config=StageConfig(guard_reads="yes"))  # type: ignore[arg-type]


FIRST = "write_read read_groups columns arrays map_memory model"
REST = "deletes changes history map_attribute map_groups clone hierarchy threads"


@pytest.mark.parametrize("suites", [FIRST, pytest.param(REST, marks=pytest.mark.slow)], ids=["first", "rest"])
def test_the_other_suites_pass_under_it(suites: str) -> None:
    """All but that of transfers, which are copied here."""
    files = [str(Path(__file__).parent / f"test_{suite}.py") for suite in suites.split()]
    environment = {**os.environ, "OVSTAGE_TESTS_GUARD_READS": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow", *files]
    done: Any = subprocess.run(command, capture_output=True, text=True, timeout=400, env=environment)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
