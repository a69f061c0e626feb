"""Population calls under way: one queue per stage, whose calls run one after the other on a thread of their own.

The thread lives as long as there is something to do. Blocking calls wait for it, so that Ctrl-C interrupts the wait and
never a write: what has begun to write is finished, what has not writes nothing.
"""

from __future__ import annotations

import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import ReferenceType, WeakKeyDictionary, ref

from ovstage import guard
from ovstage.awaiting import settled, waited
from ovstage.errors import ErrorCode, OvstageError
from ovstage.guard import TIMEOUT_INFINITE
from ovstage.unasked import Outcome, text_of

if TYPE_CHECKING:
    from ovstage.stage import Stage

Result = TypeVar("Result")

__all__ = ["Call", "Cancelled", "Job", "Operation", "last_error"]


class Cancelled(Exception):
    """The call was interrupted before it wrote anything."""


class Job:
    """One call: what it does, and how it ended."""

    def __init__(self, number: int, name: str, work: Callable[[Job], Any], outcome: Outcome | None) -> None:
        self.number = number
        self.name = name
        self.done = threading.Event()
        self.result: Any = None
        self.error: BaseException | None = None
        self._work: Callable[[Job], Any] | None = work
        self._outcome = outcome
        self._watched: ReferenceType[Outcome] | None = ref(outcome) if outcome is not None else None
        self._cancelled = False

    def cancel(self) -> None:
        """Ask the call to end at its next ``check``."""
        self._cancelled = True

    def check(self) -> None:
        """End the call here if it is not wanted any more."""
        if self._cancelled:
            raise Cancelled(f"{self.name} was interrupted")

    def perform(self) -> None:
        """Do the work. Whatever goes wrong belongs to whoever waits."""
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
        self.done.set()
        del outcome, work  # which the traceback of the error would keep

    def told(self) -> None:
        """Somebody was told how it ended."""
        outcome = self._watched() if self._watched is not None else None
        if outcome is not None:
            outcome.asked = True


def _clear_frames(error: BaseException | None) -> None:
    """Whoever keeps an error must not keep the scene that its frames were about."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


class Queue:
    """The calls of one stage, in their order."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a finaliser, which may run anywhere in here, may make a call
        self._pending: deque[Job] = deque()
        self._running = False
        self._open: dict[int, Job] = {}  # not done, or failed and not reported, by number
        self._issued = 0

    def add(self, name: str, work: Callable[[Job], Any], outcome: Outcome | None = None) -> Job:
        """Queue a call."""
        with self._lock:
            self._issued += 1
            job = self._open[self._issued] = Job(self._issued, name, work, outcome)
            self._pending.append(job)
            if not self._running:
                self._running = True
                threading.Thread(target=self._drain, name="ovstage population").start()
        return job

    def find(self, number: int) -> Job | None:
        """A call that is not done, or that failed and nobody has waited for."""
        with self._lock:
            return self._open.get(number)

    def issued(self, number: int) -> bool:
        """Whether a call of that number was ever made."""
        with self._lock:
            return 0 < number <= self._issued

    def report(self, upto: int) -> list[Job]:
        """The failures up to a number that no wait has reported; they are reported now."""
        with self._lock:
            failed = [job for number, job in self._open.items() if number <= upto and job.error is not None]
            for job in failed:
                del self._open[job.number]
                job.told()
        return failed

    def forget(self, job: Job) -> None:
        """The failure of a call is known to its caller."""
        with self._lock:
            self._open.pop(job.number, None)

    def _drain(self) -> None:
        while True:
            with self._lock:
                if not self._pending:
                    self._running = False
                    return
                job = self._pending.popleft()
            job.perform()
            if job.error is None:
                self.forget(job)


_queues: WeakKeyDictionary[Stage, Queue] = WeakKeyDictionary()
_queues_lock = threading.RLock()  # as above


def _queue(stage: Stage) -> Queue:
    stage._refuse_fork("population")
    with _queues_lock:
        return _queues.setdefault(stage, Queue())


class Operation:
    """A population call under way on a stage; ``value`` is what a successful ``wait()`` returns.

    Calls of one stage run in the order in which they were made. It holds the stage, and ``keepalive`` until it is done.
    There is nothing to release.
    """

    def __init__(
        self, stage: Stage, status: int, op_id: int, *, value: Any = True, keepalive: object = None, name: str = ""
    ) -> None:
        guard.stage(stage)
        self._status = guard.integer(status, "status")
        self._op_id = guard.uint64(op_id, "op_id")
        self._outcome: Outcome | None = None  # of a call that this package made
        self._stage = stage
        self._value = value
        self._keepalive = keepalive
        self._name = name
        self._job = _queue(stage).find(self._op_id)
        self._refusal = stage.last_error() if self._status else ""

    @property
    def status(self) -> int:
        """0, or the ``ErrorCode`` of a refusal, or of a failure once a wait has told it."""
        self._ask()
        return self._status

    @property
    def op_id(self) -> int:
        """The number of the call among those of its stage."""
        self._ask()
        return self._op_id

    @property
    def ok(self) -> bool:
        """Whether the call was accepted."""
        return self.status == ErrorCode.OK

    def error_message(self) -> str:
        """Why the call was refused or failed; empty while nothing is known to have gone wrong."""
        self._ask()
        error = self._job.error if self._job and self._job.done.is_set() else None
        return self._refusal or (text_of(error) if error else "")

    def wait(self, timeout: int = TIMEOUT_INFINITE) -> Any:
        """The value when it is done, ``None`` when it is not done in time; ``OvstageError`` when it failed.

        A failure of an earlier call that nobody waited for is reported here, once. May be called again.
        """
        limit = guard.timeout(timeout)
        self._stage._refuse_fork(self._name or "population")
        if not self.ok:
            raise OvstageError(self._status, self._named(self._refusal))
        if self._job is None and not _queue(self._stage).issued(self._op_id):
            text = f"op_id {self._op_id} is no population call of this stage"
            raise OvstageError(ErrorCode.INVALID_ARGUMENT, self._named(text))
        if self._job is not None and not self._job.done.is_set():
            _refuse_in_progress(self._name or "wait")
        if self._job is not None and not waited(self._job.done.wait, limit):
            return None
        self._keepalive = None
        failed = _queue(self._stage).report(self._op_id)
        if self._job is not None and self._job.error is not None:
            self._raise(self._job.error)
        if failed:
            texts = "; ".join(f"{job.name}: {text_of(job.error)}" for job in failed if job.error is not None)
            raise _noted(OvstageError(ErrorCode.OP_FAILED, f"an earlier call that nobody waited for failed: {texts}"))
        result = self._job.result if self._job is not None and self._value is None else self._value
        return True if result is None else result

    def done(self) -> bool:
        """Whether ``wait()`` would not wait. Consumes nothing."""
        return not self.ok or self._job is None or self._job.done.is_set()

    def __await__(self) -> Generator[Any, None, Any]:
        """``await operation`` does what ``wait()`` does, without holding up the event loop."""
        return settled(self)

    def _ask(self) -> None:
        if self._outcome is not None:
            self._outcome.asked = True

    def _raise(self, error: BaseException) -> None:
        if not isinstance(error, OvstageError):
            raise _noted(error)
        self._status, self._refusal = ErrorCode(error.code), error.message
        raise _noted(OvstageError(error.code, self._named(error.message))) from error

    def _named(self, text: str) -> str:
        return f"{self._name}: {text}" if self._name and not text.startswith(self._name) else text


@dataclass(frozen=True)
class Call(Generic[Result]):
    """A call that is ready to be made, one way or the other."""

    stage: Stage
    name: str
    work: Callable[[Job], Result]

    def start(self) -> Operation:
        """Queue it; ``wait`` returns what ``work`` returned."""
        outcome = Outcome(self.stage, self.name)
        job = self._queue().add(self.name, self._work, outcome)
        operation = Operation(self.stage, ErrorCode.OK, job.number, value=None, name=self.name)
        operation._job = job  # it may be done by now, and then the queue does not know it any more
        operation._outcome = outcome
        return operation

    def run(self) -> Result:
        """Queue it and wait for it alone. An interruption ends it if it has not begun to write, and is raised either
        way."""
        _refuse_in_progress(self.name)
        queue = self._queue()
        job = queue.add(self.name, self._work)
        try:
            waited(job.done.wait)
        except BaseException:
            job.cancel()
            waited(job.done.wait)
            raise
        finally:
            queue.forget(job)
        if job.error is not None:
            raise _noted(job.error)
        _thread.error = ""
        result: Result = job.result
        return result

    def _work(self, job: Job) -> Result:
        try:
            return self.work(job)
        except Exception as error:
            if self.stage.alive:
                raise
            text = f"{self.name}: Stage was destroyed while the call ran"
            raise OvstageError(ErrorCode.INVALID_HANDLE, text) from error

    def _queue(self) -> Queue:
        if not self.stage.alive:
            raise OvstageError(ErrorCode.INVALID_HANDLE, f"{self.name} called after Stage was destroyed")
        return _queue(self.stage)


def last_error() -> str:
    """Why the last blocking call or wait of this thread failed; empty when it did not."""
    return str(getattr(_thread, "error", ""))


_thread = threading.local()


@contextmanager
def telling() -> Iterator[None]:
    """Around a progress callback. What it waits for may wait for the call that it tells of, for USD or for its turn."""
    _thread.telling = True
    try:
        yield
    finally:
        _thread.telling = False


def _refuse_in_progress(name: str) -> None:
    if getattr(_thread, "telling", False):
        text = f"{name} was called by a progress callback, for which it would wait: start it without a wait"
        raise OvstageError(ErrorCode.INVALID_ARGUMENT, text)


def _noted(error: BaseException) -> BaseException:
    _thread.error = text_of(error)
    return error
