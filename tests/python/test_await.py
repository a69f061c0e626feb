"""``await operation``: what ``wait()`` does, for programs that live in an event loop."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

from ovstage import ErrorCode, OvstageError, population
from ovstage.awaiting import settled


def write(table, ordinal, rows=2):
    return table.stage.write_attribute(table.query, "mass", ordinal, np.arange(rows, dtype="f4"), is_array=False)


class Later:
    """An operation that is pending for the first few looks."""

    def __init__(self, looks, answer=None, error=None):
        self.looks, self.answer, self.error = looks, answer, error

    def done(self):
        self.looks -= 1
        return self.looks < 0

    def wait(self, timeout):
        assert timeout == 0 and self.looks < 0
        if self.error:
            raise self.error
        return self.answer

    __await__ = settled


def test_await_waits(table):
    async def tick():
        assert await write(table, 1) is None
        await table.stage.advance_write_floor(1)

    asyncio.run(tick())
    assert table.read("mass", 1) == [0, 1]


def test_await_consumes_the_operation_as_wait_does(table):
    async def twice():
        op = write(table, 1)
        await op
        with pytest.raises(OvstageError, match="already been waited and released"):
            await op
        with pytest.raises(OvstageError, match="already been waited and released"):
            op.wait()

    asyncio.run(twice())


def test_await_raises_what_wait_raises(table):
    async def refused():
        for _ in range(2):
            with pytest.raises(OvstageError, match="3") as caught:
                await op
            assert caught.value.code == ErrorCode.INVALID_ARGUMENT

    op = write(table, 1, rows=3)
    asyncio.run(refused())


def test_await_raises_for_an_operation_that_was_accepted_and_failed(table):
    write(table, 1).wait()
    mapping = table.stage.map_attribute(table.query, "mass", 2)
    table.seal(2)

    async def commit():
        await mapping.unmap()

    with pytest.raises(OvstageError, match="floor") as caught:
        asyncio.run(commit())
    assert caught.value.code == ErrorCode.WRITE_FLOOR_VIOLATION


def test_group_of_operations(table):
    async def many():
        return await asyncio.gather(*(write(table, ordinal) for ordinal in range(1, 200)))

    assert asyncio.run(many()) == [None] * 199
    assert table.stage.counters()["live_operations"] == 0


def test_group_with_failures(table):
    async def some():
        rows = [2, 3, 2, 5]
        return await asyncio.gather(*(write(table, 1 + at, n) for at, n in enumerate(rows)), return_exceptions=True)

    first, second, third, fourth = asyncio.run(some())
    assert first is third is None
    assert "3" in second.message and "5" in fourth.message


def test_no_event_loop_is_needed_for_what_is_done(table):
    async def tick():
        await write(table, 1)
        return "done"

    coroutine = tick()
    with pytest.raises(StopIteration, match="done"):
        coroutine.send(None)


def test_many_pending_operations_take_no_threads_and_leave_the_loop_free():
    beats = []

    async def heart():
        while True:
            beats.append(threading.active_count())
            await asyncio.sleep(0)

    async def wait_for_all():
        pulse = asyncio.ensure_future(heart())
        answers = await asyncio.gather(*(Later(looks, looks) for looks in range(40)))
        pulse.cancel()
        return answers

    before = threading.active_count()
    assert asyncio.run(wait_for_all()) == list(range(40))
    assert len(beats) > 40
    assert set(beats) == {before}


def test_pending_operation_that_fails():
    async def wait():
        await Later(3, error=OvstageError(ErrorCode.OP_FAILED, "why"))

    with pytest.raises(OvstageError, match="why"):
        asyncio.run(wait())


def test_cancelled_await_consumes_nothing():
    async def give_up():
        op = Later(1_000_000, "answer")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(op, 0.005)
        assert op.looks > 0
        op.looks = 0
        return await op

    assert asyncio.run(give_up()) == "answer"


def test_operation_of_a_population(table):
    pytest.importorskip("pxr.Usd", reason="usd-core is not installed")
    op_id = population.open_usd_from_string_async(table.stage, "#usda 1.0\n").op_id

    async def wait():
        op = population.Operation(table.stage, 0, op_id, value="report")
        assert await op == "report"
        assert op.done()
        assert await op == op.wait() == "report"
        failed = population.Operation(table.stage, 0, 10**9, name="open_usd")
        with pytest.raises(OvstageError, match="open_usd"):
            await failed
        assert failed.done()

    asyncio.run(wait())


def test_exports_under_way(table, tmp_path):
    """They run on a thread of their own, and are pending for as long as that takes."""
    write(table, 1).wait()
    table.seal(1)

    async def export(ordinal):
        files = [tmp_path / f"scene{at}.usda" for at in range(5)]
        return await asyncio.gather(*(population.export_to_usd_file_async(table.stage, f, ordinal) for f in files))

    reports = asyncio.run(export(1))
    assert len(reports) == 5 and None not in reports
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"scene{at}.usda" for at in range(5)]
    with pytest.raises(OvstageError, match="export_to_usd_file failed: "):
        asyncio.run(export(7))

    done = population.export_to_usd_file_async(table.stage, tmp_path / "last.usda", 1)
    done.wait()
    assert done.done()
    with pytest.raises(RuntimeError, match="already been consumed"):
        asyncio.run(settle(done))


async def settle(op):
    return await op


def test_operation_that_was_never_initialised():
    from ovstage import Operation

    with pytest.raises(ValueError, match="never initialised"):
        Operation.__new__(Operation).__await__()
