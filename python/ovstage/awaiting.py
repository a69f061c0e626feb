"""``await operation``: the event loop goes on while an operation is pending, and no thread is spent on the wait."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Protocol, TypeVar

__all__ = ["settled"]

Value = TypeVar("Value", covariant=True)

LONGEST_PAUSE = 0.01
"""Seconds between two looks at an operation that takes long; the first looks follow each other closely."""


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
