"""Stages that share what USD has once in a process: layers, and the scenes on top of them."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from children import run_python

from ovstage import Stage

pytest.importorskip("numpy", reason="numpy is not installed")
pytest.importorskip("pxr.Usd", reason="usd-core is not installed")

from pxr import Sdf
from scenes import usda

from ovstage import population
from ovstage.population import source

CUBE = usda('def Xform "World"\n{\n    def Cube "Cube"\n    {\n        double size = 1\n    }\n}\n')


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    path = tmp_path / "scene.usda"
    path.write_text(CUBE)
    return path


@pytest.fixture
def default_sigint() -> Iterator[None]:
    """Ctrl-C is an exception, whatever the shell left."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


class Watched:
    """A lock that tells when somebody wants it."""

    def __init__(self, wanted: threading.Event) -> None:
        self._lock = threading.Lock()
        self._wanted = wanted
        self.release = self._lock.release

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if blocking:
            self._wanted.set()
        return self._lock.acquire(blocking, timeout)


def test_a_file_is_not_read_again_while_another_stage_reads_it(
    stage: Stage, scene: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived = threading.Event()  # the other stage waits for its turn, or did not wait and has composed its scene
    monkeypatch.setattr(source, "_alone", Watched(arrived))
    composed: list[str] = []
    others: list[population.Operation] = []

    def other(done: int, total: int, label: str) -> None:
        if done:
            composed.append(label)
            arrived.set()

    def reading(done: int, total: int, label: str) -> None:
        if label == "reading prims" and not others:
            arrived.clear()
            scene.write_text(CUBE.replace("World", "Planet"))
            others.append(population.open_usd_async(second, scene, progress=other))
            arrived.wait()
            assert not composed

    with Stage("second") as second:
        report = population.open_usd(stage, scene, progress=reading)
        assert list(report.paths) == ["/", "/World", "/World/Cube"]
        assert list(others[0].wait().paths) == ["/", "/Planet", "/Planet/Cube"]


def test_ctrl_c_ends_the_wait_for_another_stage(
    stage: Stage, scene: Path, monkeypatch: pytest.MonkeyPatch, default_sigint: None
) -> None:
    wanted, reading, ended = threading.Event(), threading.Event(), threading.Event()
    monkeypatch.setattr(source, "_alone", Watched(wanted))

    def hold(done: int, total: int, label: str) -> None:
        if label == "reading prims" and not reading.is_set():
            wanted.clear()
            reading.set()
            wanted.wait()
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)
            assert ended.wait(60)

    with Stage("first") as first:
        holding = population.open_usd_async(first, scene, progress=hold)
        reading.wait()
        with pytest.raises(KeyboardInterrupt):
            population.open_usd(stage, scene)
        ended.set()
        assert len(holding.wait().paths) == 3
    assert population.open_usd(stage, scene).values > 0


def test_a_scene_that_is_dropped_while_another_is_read_goes_afterwards(stage: Stage, scene: Path) -> None:
    dropped = scene.with_name("dropped.usda")
    dropped.write_text(CUBE)
    stages = [Stage("dropped")]
    population.open_usd(stages[0], dropped)
    seen: list[bool] = []

    def reading(done: int, total: int, label: str) -> None:
        if label == "reading prims" and stages:
            stages.pop().destroy()
            gc.collect()
            seen.append(bool(Sdf.Layer.Find(str(dropped))))

    population.open_usd(stage, scene, progress=reading)
    assert seen == [True]
    assert not Sdf.Layer.Find(str(dropped))


def test_a_scene_goes_with_its_stage(scene: Path) -> None:
    stage = Stage("short")
    population.open_usd(stage, scene)
    assert Sdf.Layer.Find(str(scene))
    stage.destroy()
    del stage
    gc.collect()
    assert not Sdf.Layer.Find(str(scene))


def test_an_error_that_is_kept_keeps_no_scene(stage: Stage, scene: Path) -> None:
    def stop(done: int, total: int, label: str) -> None:
        if label == "reading prims":
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough") as kept:
        population.open_usd(stage, scene, progress=stop)
    frames = []
    trace = kept.value.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    gathering = next(frame for frame in frames if frame.f_code.co_name == "gather")
    assert not gathering.f_locals


@pytest.mark.slow
def test_many_stages_open_one_file_that_keeps_changing(scene: Path) -> None:
    child = run_python(CROWD, str(scene))
    assert (child.returncode, child.stdout.strip()) == (0, "450"), child.stderr


CROWD = """
import os, sys, threading
from ovstage import Stage, population

path, opened = sys.argv[1], []

CUBE = 'def Xform "P%d"\\n{\\n    def Cube "C"\\n    {\\n    }\\n}\\n'

def rewrite(prims):
    text = "".join(CUBE % at for at in range(prims))
    other = f"{path}.{threading.get_ident()}"
    with open(other, "w") as file:
        file.write("#usda 1.0\\n" + text)
    os.replace(other, path)

def work():
    with Stage() as stage:
        for ordinal in range(1, 151):
            rewrite((5, 20, 40, 100)[ordinal % 4])
            tops = [name for name in population.open_usd(stage, path, ordinal).paths if name.count("/") == 1]
            assert len(tops) - 1 in (5, 20, 40, 100)
            opened.append(ordinal)

threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(opened))
"""
