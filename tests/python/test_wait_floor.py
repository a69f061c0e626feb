"""Waiting until something is sealed, on other threads, under asyncio, and beside the end of the stage."""

from __future__ import annotations

import asyncio
import os
import threading
import time

import numpy as np
import pytest
from children import run_python

from ovstage import ErrorCode, OvstageError, Stage
from ovstage.enums import Scope


@pytest.fixture
def stage():
    with Stage() as made:
        yield made


def seal(stage: Stage, ordinal: int, *attributes: str) -> None:
    scope = Scope.INCLUDE if attributes else Scope.ALL
    stage.advance_write_floor(ordinal, scope, attributes=list(attributes) or None).wait()


def timed_out(call) -> str:
    with pytest.raises(OvstageError) as failure:
        call()
    assert failure.value.code == ErrorCode.TIMEOUT
    return failure.value.message


def test_a_floor_that_is_there_is_no_wait(stage):
    seal(stage, 5)
    for ordinal in (0, 4, 5):
        assert stage.wait_floor(ordinal) is None
        stage.wait_floor(ordinal, "mass", timeout=0)
        stage.wait_floor(ordinal, attributes=["mass", "speed"], timeout=0)


def test_the_text_of_a_timeout_says_where_the_floors_are(stage):
    assert timed_out(lambda: stage.wait_floor(1, timeout=0)) == (
        "timeout: the global write floor is 0, ordinal 1 was waited for; "
        "no attribute is sealed further than the global floor"
    )
    seal(stage, 2)
    seal(stage, 9, "b", "a")
    seal(stage, 7, "c")
    assert timed_out(lambda: stage.wait_floor(10, attributes=["a", "c"], timeout=10**6)) == (
        'timeout: the write floor of attribute "c" is 7, ordinal 10 was waited for; '
        'sealed further than the global floor 2: "a" up to 9, "b" up to 9, "c" up to 7'
    )
    seal(stage, 8, *"defgh")
    assert timed_out(lambda: stage.wait_floor(10, timeout=0)).endswith('"f" up to 8, and 3 more')


def test_the_lowest_of_several_counts(stage):
    seal(stage, 4, "a")
    seal(stage, 6, "b")
    stage.wait_floor(4, attributes=["b", "a"], timeout=0)
    timed_out(lambda: stage.wait_floor(5, attributes=["b", "a"], timeout=0))
    timed_out(lambda: stage.wait_floor(1, attributes=["b", "unknown"], timeout=0))  # which has the global floor


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ({"ordinal": -1}, ValueError, "ordinal"),
        ({"ordinal": "3"}, TypeError, "ordinal"),
        ({"ordinal": 1, "attribute": 1.5}, TypeError, "attribute must be"),
        ({"ordinal": 1, "attributes": "mass"}, TypeError, "attributes must be a list"),
        ({"ordinal": 1, "attributes": []}, ValueError, "attributes must not be empty: list some, or leave it out"),
        ({"ordinal": 1, "attribute": "a", "attributes": ["b"]}, TypeError, "are both given"),
        ({"ordinal": 1, "timeout": -1}, ValueError, "timeout must be non-negative"),
    ],
)
def test_bad_arguments(stage, arguments, kind, text):
    for call in (stage.wait_floor, lambda **given: asyncio.run(stage.await_floor(**given))):
        with pytest.raises(kind, match=text):
            call(**arguments)


def test_readers_follow_a_writer(stage):
    """Each reader waits for each tick, and finds what was sealed with it."""
    ticks, wrong = 200, []

    def follow() -> None:
        try:
            for tick in range(1, ticks):
                stage.wait_floor(tick, "v", timeout=60 * 10**9)
                if stage.read(["/A"], ["v"])["v"].values[0] < tick:
                    wrong.append(tick)
        except BaseException as error:
            wrong.append(error)

    readers = [threading.Thread(target=follow) for _ in range(4)]
    for reader in readers:
        reader.start()
    for tick in range(1, ticks):
        stage.write(["/A"], "v", tick, np.int64([tick])).wait()
        seal(stage, tick, *(["v"] if tick % 2 else []))
    for reader in readers:
        reader.join(60)
        assert not reader.is_alive()
    assert not wrong


def test_the_end_of_the_stage_ends_the_wait():
    for _ in range(20):
        stage, codes, begun = Stage(), [], threading.Barrier(5)

        def wait(stage=stage, codes=codes, begun=begun) -> None:
            begun.wait()
            try:
                stage.wait_floor(1)
            except OvstageError as error:
                codes.append(error.code)

        threads = [threading.Thread(target=wait) for _ in range(4)]
        for thread in threads:
            thread.start()
        begun.wait()
        start = time.perf_counter()
        stage.destroy()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        assert codes == [ErrorCode.INVALID_HANDLE] * 4
        assert time.perf_counter() - start < 30


def test_waiting_keeps_nothing_from_being_done(stage):
    """No lock is held, of the stage or of the interpreter: the thread that seals is not the one that waits."""
    waiter = threading.Thread(target=stage.wait_floor, args=(1000,))
    waiter.start()
    for ordinal in range(1, 1001):
        stage.write(["/A"], "v", ordinal, np.int64([ordinal])).wait()
        seal(stage, ordinal)
    waiter.join(60)
    assert not waiter.is_alive()


def test_ctrl_c_ends_the_wait():
    done = run_python(
        "import _thread, threading, time\n"
        "from ovstage import Stage\n"
        "stage = Stage()\n"
        "threading.Timer(0.3, _thread.interrupt_main).start()\n"
        "try: stage.wait_floor(1)\n"
        "except KeyboardInterrupt: print('interrupted')\n"
        "stage.destroy()\n"
    )
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr


def test_a_forked_child_is_refused(stage):
    child = os.fork()
    if child == 0:
        try:
            stage.wait_floor(1, timeout=0)
            os._exit(1)
        except OvstageError as error:
            os._exit(0 if error.code == ErrorCode.NOT_SUPPORTED else 2)
    assert os.waitpid(child, 0)[1] == 0


# --- asyncio --------------------------------------------------------------------------------------------------------


def test_asyncio_goes_on_meanwhile(stage):
    async def main() -> int:
        waits = [asyncio.create_task(stage.await_floor(ordinal, "v")) for ordinal in (1, 2, 3)]
        turns = 0
        for ordinal in (1, 2, 3):
            await asyncio.sleep(0.01)
            turns += 1
            seal(stage, ordinal, "v")
        await asyncio.gather(*waits)
        return turns

    assert asyncio.run(main()) == 3


def test_an_await_times_out_and_can_be_cancelled(stage):
    async def main() -> None:
        with pytest.raises(OvstageError, match="the global write floor is 0, ordinal 1 was waited for"):
            await stage.await_floor(1, timeout=50 * 10**6)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(stage.await_floor(1), 0.05)

    asyncio.run(main())  # ends: no thread of the executor is left waiting
