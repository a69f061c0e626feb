"""A run that is killed in the middle, and goes on from its recording with the same bits.

The stage has all that the solver reads, so that the last recorded ordinal is where another process goes on.

    python resume.py LAYER FOLDER    # the run that is to be killed: it prints its ticks, and does not end
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from handover import POSES, VELOCITIES, Staged
from physics import RATE, Ants
from reader import checksum
from scene import HISTORY, LOADED

from ovstage import Recording, Stage, StageConfig


@dataclass(frozen=True)
class Resumed:
    """How it went on."""

    killed: int
    """The tick at which the run was killed."""
    recorded: int
    """The last tick that its recording has."""
    ticks: int
    """How many were made from there on."""
    different: int
    """How many of these, and of the recorded one, have other bits than a run that nobody killed."""


def resume(ants: Ants, layer: Path, folder: Path, sums: dict[int, int]) -> Resumed:
    """Kill a run at five sixths of another one, go on from its recording, and compare by the sums of the other."""
    last = max(sums)
    at = kill(layer, folder, last * 5 // 6)
    recording = Recording(folder)
    with recording.at(recording.last) as stage:
        state = stage.read(ants.paths, [POSES, VELOCITIES])
        ants.resume(state[POSES].values, state[VELOCITIES].values)
        recorded = state[POSES].ordinal - LOADED
    different = int(checksum(ants.poses, ants.velocities) != sums[recorded])
    for tick in range(recorded + 1, last + 1):
        ants.step(tick)
        different += checksum(ants.poses, ants.velocities) != sums[tick]
    return Resumed(at, recorded, last - recorded, different)


def kill(layer: Path, folder: Path, tick: int) -> int:
    """Run this file in a process of its own, and kill it at a tick: the tick that it printed last."""
    shutil.rmtree(folder, ignore_errors=True)
    argv, said = [sys.executable, __file__, layer, folder], []
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        for line in run.stdout or ():
            if line.strip().isdecimal() and int(line) >= tick:
                run.kill()
                return int(line)
            said.append(line)
    raise RuntimeError(f"the run that was to be killed ended by itself: {''.join(said[-20:])}")


def be_killed(layer: Path, folder: Path) -> None:
    """Move ants and record them until somebody ends it."""
    ants = Ants(layer)
    stage = Stage("killed", config=StageConfig(history_ordinals=HISTORY))
    way = Staged(stage, ants.paths)
    with stage.record(folder):
        began = time.monotonic()
        for tick in itertools.count(1):
            ants.step(tick)
            way.publish(tick, ants.poses, ants.velocities)
            print(tick, flush=True)
            time.sleep(max(0, began + tick / RATE - time.monotonic()))


if __name__ == "__main__":
    be_killed(Path(sys.argv[1]), Path(sys.argv[2]))
