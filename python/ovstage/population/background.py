"""Work on a thread of its own: what stands under the operations of population and of export.

A queue does its jobs one after the other. Its thread lives as long as there is something to do, and the interpreter
waits for it at exit.
"""

from __future__ import annotations

import threading
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any
from weakref import ReferenceType, ref

from ovstage.awaiting import waited
from ovstage.guard import TIMEOUT_INFINITE
from ovstage.unasked import Outcome

__all__ = ["Cancelled", "Job", "Queue"]


class Cancelled(Exception):
    """The call was interrupted before it wrote anything."""


class Job:
    """One call: what it does, and how it ended."""

    def __init__(self, name: str, work: Callable[[Job], Any], outcome: Outcome | None = None) -> None:
        self.name = name
        self.result: Any = None
        self.error: BaseException | None = None
        self._ended = threading.Event()
        self._work: Callable[[Job], Any] | None = work
        self._outcome = outcome
        self._watched: ReferenceType[Outcome] | None = ref(outcome) if outcome is not None else None
        self._cancelled = False

    @property
    def done(self) -> bool:
        """Whether it has ended, one way or the other."""
        return self._ended.is_set()

    def wait(self, timeout: int = TIMEOUT_INFINITE) -> bool:
        """Whether it has ended within ``timeout`` nanoseconds. Ctrl-C ends the wait and not the job."""
        return waited(self._ended.wait, timeout)

    def cancel(self) -> None:
        """Ask the call to end at its next ``check``."""
        self._cancelled = True

    def check(self) -> None:
        """End the call here if it is not wanted any more."""
        if self._cancelled:
            raise Cancelled(f"{self.name} was interrupted")

    def perform(self) -> None:
        """Do the work. Whatever goes wrong is for the thread that waits."""
        work, self._work = self._work, None
        outcome, self._outcome = self._outcome, None
        try:
            assert work is not None
            self.result = work(self)
        except BaseException as error:
            self.error = error
            _clear_frames(error)
            if outcome is not None:
                outcome.fail(error)
        self._ended.set()
        del outcome, work  # which the traceback of the error would keep

    def told(self) -> None:
        """The caller knows how it ended."""
        outcome = self._watched() if self._watched is not None else None
        if outcome is not None:
            outcome.asked = True


def _clear_frames(error: BaseException | None) -> None:
    """An error that is kept must not keep the scene that its frames were about."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


class Queue:
    """Jobs that are done one after the other, in the order in which they were added."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.RLock()  # a finaliser, which may run anywhere in here, may add a job
        self._pending: deque[Job] = deque()
        self._running = False

    def add(self, job: Job) -> Job:
        """Do a job when those before it have ended."""
        with self._lock:
            self._pending.append(job)
            if not self._running:
                self._running = True
                try:
                    threading.Thread(target=self._drain, name=self._name).start()
                except (RuntimeError, MemoryError):  # there is no thread; at a Ctrl-C there may be one
                    self._running = False
                    self._pending.remove(job)
                    raise
        return job

    def _drain(self) -> None:
        while True:
            with self._lock:
                if not self._pending:
                    self._running = False
                    return
                job = self._pending.popleft()
            job.perform()
            del job  # or the thread keeps it, and what it made, while it waits for the lock
