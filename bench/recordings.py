"""What a recording costs: the loop that is recorded, the bytes on file, and a checkpoint there and back."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np
from measure import Effort, Row, shown, undisturbed

import ovstage

BODIES = 576
STEP = 0.001
"""Seconds that the loop works, which it spends asleep: between two ticks the recorder gets its turn."""


def running(effort: Effort) -> Iterator[Row]:
    """A loop that writes the transforms of 576 bodies, with and without a recorder; then what is on file."""
    with tempfile.TemporaryDirectory() as folder, undisturbed():
        path = Path(folder) / "run.ovr"
        stages = [ovstage.Stage(config=ovstage.StageConfig(history_ordinals=100)) for _ in range(2)]
        paths = [f"/World/Body{i}" for i in range(BODIES)]
        values = np.random.default_rng(1).random((BODIES, 16))
        laps: list[list[float]] = [[], []]
        with stages[0], stages[1], stages[1].record(path) as recorder:
            for ordinal in range(1, 100 * effort.repeats):
                for stage, times in zip(stages, laps, strict=True):
                    time.sleep(STEP)
                    begun = time.perf_counter()
                    stage.write(paths, "omni:xform", ordinal, values)
                    stage.advance_write_floor(ordinal).wait()
                    times.append(STEP + time.perf_counter() - begun)
        plain, recorded = (median(times[len(times) // 4 :]) for times in laps)
        yield Row("tick that is recorded / not", recorded / plain, 1.2, detail=f"{shown(recorded)}, {shown(plain)}")
        recording = ovstage.Recording(path)
        rows = sum(1 for _ in recording.table("omni:xform").column("ordinal"))
        held = sum(file.stat().st_size for file in path.iterdir())
        yield Row(
            f"bytes on file / rows of {BODIES} matrices",
            held / (rows * values.nbytes),
            1.05,
            detail=f"{rows} rows, {recorder.stats.joined} ordinals joined",
        )


def checkpoint(effort: Effort) -> Iterator[Row]:
    """A column of matrices, saved and loaded, against a plain file of its bytes."""
    rows = effort.big // 10
    with ovstage.Stage() as stage, tempfile.TemporaryDirectory() as name, undisturbed():
        paths, folder = [f"/World/P{i}" for i in range(rows)], Path(name)
        values = np.random.default_rng(1).random((rows, 16))
        stage.write(paths, "omni:xform", 1, values).wait()
        stage.advance_write_floor(1).wait()
        laps = []
        for lap in range(max(3, effort.repeats // 3)):
            laps.append((_raw(folder / f"raw{lap}", values), _saved(stage, folder / f"saved{lap}")))
        written, saved = (median(times) for times in zip(*laps, strict=True))
        yield Row(
            "save / write and sync the same bytes", saved / written, None, detail=f"{shown(saved)}, {shown(written)}"
        )
        laps = []
        for lap in range(3):
            begun = time.perf_counter()
            np.fromfile(folder / f"raw{lap}").reshape(values.shape)
            between = time.perf_counter()
            ovstage.Stage.load(folder / f"saved{lap}").destroy()
            laps.append((between - begun, time.perf_counter() - between))
        read, loaded = (median(times) for times in zip(*laps, strict=True))
        yield Row("load / read the same bytes", loaded / read, None, detail=f"{shown(loaded)}, {shown(read)}")


def _raw(file: Path, values: np.ndarray) -> float:
    begun = time.perf_counter()
    with open(file, "wb") as out:
        out.write(values.data)
        os.fsync(out.fileno())
    return time.perf_counter() - begun


def _saved(stage: ovstage.Stage, folder: Path) -> float:
    begun = time.perf_counter()
    stage.save(folder)
    return time.perf_counter() - begun
