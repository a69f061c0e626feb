"""Waiting for work on another thread of Python: ``await operation``, which spends no thread, and waits that end with
Ctrl-C."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from typing import Any, Protocol, TypeVar

from ovstage.errors import ErrorCode, OvstageError
from ovstage.guard import TIMEOUT_INFINITE

__all__ = ["elsewhere", "settled", "waited"]

Value = TypeVar("Value", covariant=True)

LONGEST_PAUSE = 0.01
"""Seconds between two looks at an operation that takes long; the first looks follow each other closely."""

SLICE = 0.02
"""Seconds that a wait may keep Ctrl-C waiting."""


class Waitable(Protocol[Value]):
    """What can be waited for: the operations of this package."""

    def done(self) -> bool: ...
    def wait(self, timeout: int) -> Value: ...


def settled(operation: Waitable[Value]) -> Generator[Any, None, Value]:
    """The ``__await__`` of an operation: what its ``wait()`` returns or raises.

    One that is done is answered at once, under any event loop or none. A pending one is looked at again and again by
    asyncio's clock. A cancelled ``await`` consumes nothing: the operation can be waited for again.
    """
    pause = 0.0
    while not operation.done():
        import asyncio  # not by every program that imports this package

        yield from asyncio.sleep(pause).__await__()
        pause = min(pause + LONGEST_PAUSE / 16, LONGEST_PAUSE)
    return operation.wait(0)


def waited(wait: Callable[[float], bool], timeout: int = TIMEOUT_INFINITE) -> bool:
    """Whether ``wait(seconds)`` came true within ``timeout`` nanoseconds.

    It is called in slices: no lock of Python wakes for a Ctrl-C that comes just before the wait, or that the system
    hands to another thread.
    """
    deadline = None if timeout == TIMEOUT_INFINITE else time.monotonic() + timeout / 1e9
    while True:
        left = SLICE if deadline is None else deadline - time.monotonic()
        if wait(max(0.0, min(left, SLICE))):
            return True
        if left <= 0:
            return False


async def elsewhere(wait: Callable[[int], None], timeout: int) -> None:
    """``wait(nanoseconds)`` on a thread of the event loop's executor, in slices: a cancelled ``await`` soon frees it.

    ``wait`` raises an ``OvstageError`` of code ``TIMEOUT``, or a ``TimeoutError``, as long as what it waits for is not
    there.
    """
    import asyncio  # not by every program that imports this package

    cancelled = threading.Event()
    deadline = None if timeout == TIMEOUT_INFINITE else time.monotonic() + timeout / 1e9

    def run() -> None:
        while not cancelled.is_set():
            left = SLICE if deadline is None else deadline - time.monotonic()
            try:
                return wait(int(max(0.0, min(left, SLICE)) * 1e9))
            except OvstageError as error:
                if error.code != ErrorCode.TIMEOUT or (left <= SLICE and deadline is not None):
                    raise
            except TimeoutError:
                if left <= SLICE and deadline is not None:
                    raise

    try:
        await asyncio.get_running_loop().run_in_executor(None, run)
    finally:
        cancelled.set()
