"""A population call that is watched, interrupted, or asked for a time that is none."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ovstage import ErrorCode, FilterOp, OvstageError, Stage

pytest.importorskip("numpy", reason="numpy is not installed")
pytest.importorskip("pxr.Usd", reason="usd-core is not installed")

from scenes import count, read, usda

from ovstage import population
from ovstage.population import operations, publication

CUBE = usda('def Xform "World"\n{\n    def Cube "Cube"\n    {\n        double size = 1\n    }\n}\n')
REFERENCE = usda('def Xform "Ref"\n{\n    def Cube "Box"\n    {\n    }\n}\n', header='defaultPrim = "Ref"')
MOVING = usda('def "A"\n{\n    double height.timeSamples = { 0: 0, 48: 48 }\n}\n', header="timeCodesPerSecond = 24")


# --- interruptions ----------------------------------------------------------------------------------------------------


@pytest.fixture
def ctrl_c(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Presses Ctrl-C, once, and comes back when the call on the main thread has noticed."""
    interrupted = threading.Event()
    cancel = operations.Job.cancel

    def noticed(job: operations.Job) -> None:
        cancel(job)
        interrupted.set()

    def press(*_: object) -> None:
        if not interrupted.is_set():
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)  # here, where it does not wake the main thread
            interrupted.wait()

    monkeypatch.setattr(operations.Job, "cancel", noticed)
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
    yield press
    signal.signal(signal.SIGINT, previous)


def test_ctrl_c_ends_a_call_that_has_written_nothing(stage: Stage, ctrl_c: Callable[..., None]) -> None:
    with pytest.raises(KeyboardInterrupt):
        population.open_usd_from_string(stage, CUBE, progress=ctrl_c)
    assert stage.counters()["bytes_columns"] == 0
    assert population.open_usd_from_string(stage, CUBE).values > 0


def test_ctrl_c_while_it_writes_lets_the_call_finish(
    stage: Stage, ctrl_c: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    population.open_usd_from_string(stage, MOVING, time_code=0.0)

    def publish(*what: Any) -> None:
        ctrl_c()
        publication.publish(*what)

    monkeypatch.setattr("ovstage.population.session.publish", publish)
    with pytest.raises(KeyboardInterrupt):
        population.update_from_usd_time(stage, 2, 1.0)
    stage.advance_write_floor(2).wait()
    assert read(stage, "/A", "height") == 24.0
    population.add_usd_reference_from_string(stage, REFERENCE, "/Ref")
    population.apply_usd_changes(stage, 3)  # at the time that is in the stage
    stage.advance_write_floor(3).wait()
    assert read(stage, "/A", "height") == 24.0


# --- progress ---------------------------------------------------------------------------------------------------------


def test_a_callback_that_fails_when_all_is_written_does_not_undo_the_call(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", told.append)

    def fail_at_the_end(done: int, total: int, label: str) -> None:
        if (done, total, label) == (1, 1, "writing columns"):
            raise RuntimeError("the window is closed")

    report = population.open_usd_from_string(stage, CUBE, progress=fail_at_the_end)
    assert report.values > 0 and count(stage, FilterOp.IN, "/World/Cube") == 1
    assert population.last_error() == ""
    assert str(told[0].exc_value) == "the window is closed" and len(told) == 1
    assert population.apply_usd_changes(stage, 2, progress=fail_at_the_end).values == 0  # it remembers what it wrote
    population.add_usd_reference_from_string(stage, REFERENCE, "/Ref")
    assert population.apply_usd_changes_async(stage, 2, progress=fail_at_the_end).wait().values > 0
    assert len(told) == 2


def test_a_callback_that_fails_before_the_write_ends_the_call(stage: Stage) -> None:
    def fail(done: int, total: int, label: str) -> None:
        if label == "writing columns":
            raise RuntimeError("enough")

    population.open_usd_from_string(stage, CUBE)
    population.add_usd_reference_from_string(stage, REFERENCE, "/Ref")
    before = stage.counters()["bytes_columns"]
    with pytest.raises(RuntimeError, match="enough"):
        population.apply_usd_changes(stage, 2, progress=fail)
    assert stage.counters()["bytes_columns"] == before and count(stage, FilterOp.IN, "/Ref") == 0
    assert population.apply_usd_changes(stage, 2).values > 0


# --- times ------------------------------------------------------------------------------------------------------------

TIMED: dict[str, Callable[[Stage, float], object]] = {
    "open_usd": lambda stage, time: population.open_usd(stage, "none.usda", 1, time),
    "open_usd_async": lambda stage, time: population.open_usd_async(stage, "none.usda", 1, time),
    "text": lambda stage, time: population.open_usd_from_string(stage, MOVING, 1, time),
    "desc": lambda stage, time: population.open_usd_with_desc(stage, "none.usda", 1, time, []),
    "desc text": lambda stage, time: population.open_usd_from_string_with_desc(stage, MOVING, 1, time, []),
    "update": lambda stage, time: population.update_from_usd_time(stage, 2, time),
    "update_async": lambda stage, time: population.update_from_usd_time_async(stage, 2, time),
}


@pytest.mark.parametrize("case", TIMED)
def test_a_time_is_a_finite_number(stage: Stage, case: str) -> None:
    population.open_usd_from_string(stage, MOVING, time_code=0.0)
    for time in (float("inf"), float("-inf")):
        with pytest.raises(ValueError, match=f"time_code must be finite, or nan for USD's default time, got {time}"):
            TIMED[case](stage, time)
    for wrong in (None, "soon", [1.0], 10**400):
        with pytest.raises(TypeError, match=r"time_code.* must be a number of seconds, or nan .*, got "):
            TIMED[case](stage, wrong)  # type: ignore[arg-type]
    stage.advance_write_floor(1).wait()
    assert read(stage, "/A", "height") == 0.0


def test_a_time_that_no_time_code_can_express(stage: Stage) -> None:
    population.open_usd_from_string(stage, MOVING, time_code=0.0)
    with pytest.raises(OvstageError, match=r"time_code 1e\+308 at 24.0 time codes per second is no finite time"):
        population.update_from_usd_time(stage, 2, 1e308)
    population.add_usd_reference_from_string(stage, REFERENCE, "/Ref")
    assert population.apply_usd_changes(stage, 2).values > 0  # still at the earlier time


@pytest.mark.parametrize("which", ["the same stage", "another stage"])
def test_a_progress_callback_cannot_wait_for_a_population(stage: Stage, which: str) -> None:
    """It would wait for the call that it tells of. What it starts without a wait is done afterwards."""
    started, refusals = [], []
    with Stage("another") as another:
        target = stage if which == "the same stage" else another

        def progress(done: int, total: int, label: str) -> None:
            operation = population.open_usd_from_string_async(target, CUBE, 2)
            started.append(operation)
            for wait in (operation.wait, lambda: population.open_usd_from_string(target, CUBE, 2)):
                with pytest.raises(
                    OvstageError, match=r"was called by a progress callback, for which it would wait"
                ) as caught:
                    wait()
                refusals.append(caught.value.code)

        population.open_usd_from_string(stage, CUBE, progress=progress)
        assert started and set(refusals) == {ErrorCode.INVALID_ARGUMENT}
        started[0].wait()
