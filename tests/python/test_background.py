"""The queue under the operations of population and export: order, threads that do not start, and the end of Python."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, NoReturn

import pytest
from children import run_python

from ovstage import Stage, population
from ovstage.population.background import Job, Queue


def refuse(self: threading.Thread) -> NoReturn:
    raise RuntimeError("can't start new thread")


def test_jobs_of_many_threads_run_one_at_a_time_and_each_thread_s_in_order() -> None:
    queue, alone, overlapping = Queue("test"), threading.Lock(), []
    done: list[tuple[int, int]] = []

    def work(client: int, number: int) -> None:
        if not alone.acquire(blocking=False):
            overlapping.append(number)
        else:
            done.append((client, number))
            alone.release()

    def add(client: int) -> None:
        jobs = [queue.add(Job("test", lambda _, at=at: work(client, at))) for at in range(100)]
        assert jobs[-1].wait()
        assert all(job.done and job.error is None for job in jobs)

    clients = [threading.Thread(target=add, args=(client,)) for client in range(4)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert not overlapping
    for client in range(4):
        assert [number for who, number in done if who == client] == list(range(100))


def test_a_job_may_add_another_one() -> None:
    queue, second = Queue("test"), Job("second", lambda _: "done")
    first = queue.add(Job("first", lambda _: queue.add(second)))
    assert first.wait() and second.wait()
    assert second.result == "done"


def test_a_job_that_fails_does_not_end_those_after_it() -> None:
    queue = Queue("test")
    failing, after = queue.add(Job("failing", lambda _: 1 / 0)), queue.add(Job("after", lambda _: 2))
    assert after.wait() and after.result == 2
    assert isinstance(failing.error, ZeroDivisionError)


def test_a_thread_that_does_not_start_leaves_no_job_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    queue, done = Queue("test"), []
    with monkeypatch.context() as without_threads:
        without_threads.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            queue.add(Job("first", lambda _: done.append("first")))
    assert queue.add(Job("second", lambda _: done.append("second"))).wait()
    assert done == ["second"]


def test_a_population_without_a_thread_has_written_nothing_and_may_be_made_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pxr.Usd", reason="usd-core is not installed")

    def opened(name: str) -> Any:
        return population.open_usd_from_string(stage, f'#usda 1.0\ndef "{name}"\n{{\n}}\n', 1)

    with monkeypatch.context() as without_threads:
        without_threads.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            opened("A")
    assert list(opened("B").paths) == ["/", "/B"]
    assert list(stage.prims()) == ["/", "/B"]


def test_python_ends_after_the_exports_that_were_started(tmp_path: Path) -> None:
    pytest.importorskip("pxr.Usd", reason="usd-core is not installed")
    program = """
import sys
from ovstage import Stage, population
stage = Stage("exit")
population.open_usd_from_string(stage, '#usda 1.0\\ndef Cube "C"\\n{\\n}\\n', 1)
stage.advance_write_floor(1).wait()
started = [population.export_to_usd_file_async(stage, f"{sys.argv[1]}/{at}.usda", 1) for at in range(5)]
"""
    ran = run_python(program, str(tmp_path))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{at}.usda" for at in range(5)]
