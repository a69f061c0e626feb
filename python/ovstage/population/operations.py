"""Population calls under way: one queue for each stage, whose calls run one after the other.

Blocking calls wait for it, so that Ctrl-C interrupts the wait and
never a write: what has begun to write is finished, what has not writes nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from ovstage import guard
from ovstage.awaiting import settled
from ovstage.errors import ErrorCode, OvstageError
from ovstage.guard import TIMEOUT_INFINITE
from ovstage.population.background import Job, Queue
from ovstage.unasked import Outcome, text_of

if TYPE_CHECKING:
    from ovstage.stage import Stage

Result = TypeVar("Result")

__all__ = ["Call", "Operation", "last_error", "telling"]


class Calls:
    """The calls of one stage, by number. Those that have succeeded are forgotten."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a finaliser, which may run anywhere in here, may make a call
        self._queue = Queue("ovstage population")
        self._open: dict[int, Job] = {}  # not done, or failed and not reported
        self._issued = 0

    def add(self, name: str, work: Callable[[Job], Any], outcome: Outcome | None = None) -> tuple[int, Job]:
        """Queue a call; its number."""
        with self._lock:
            self._issued += 1
            number = self._issued

            def then_forget(job: Job) -> Any:
                result = work(job)
                self.forget(number)
                return result

            self._open[number] = job = Job(name, then_forget, outcome)
            try:
                return number, self._queue.add(job)
            except BaseException:
                self.forget(number)
                raise

    def find(self, number: int) -> Job | None:
        """A call that is not done, or that failed before any wait has told it."""
        with self._lock:
            return self._open.get(number)

    def issued(self, number: int) -> bool:
        """Whether a call of that number was ever made."""
        with self._lock:
            return 0 < number <= self._issued

    def report(self, upto: int) -> list[Job]:
        """The failures up to a number that no wait has reported; they are reported now."""
        with self._lock:
            failed = {at: job for at, job in self._open.items() if at <= upto and job.error is not None}
            for at, job in failed.items():
                del self._open[at]
                job.told()
        return list(failed.values())

    def forget(self, number: int) -> None:
        """How a call ended is known to its caller."""
        with self._lock:
            self._open.pop(number, None)


_calls: WeakKeyDictionary[Stage, Calls] = WeakKeyDictionary()
_calls_lock = threading.RLock()  # as above


def _calls_of(stage: Stage) -> Calls:
    stage._refuse_fork("population")
    with _calls_lock:
        return _calls.setdefault(stage, Calls())


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
        self._job = _calls_of(stage).find(self._op_id)
        self._refusal = stage.last_error() if self._status else ""

    @property
    def status(self) -> int:
        """0, or the ``ErrorCode`` of a refusal, or of a failure once a wait has told it."""
        self._ask()
        return self._status

    @property
    def op_id(self) -> int:
        """The number of the call among the calls of its stage."""
        self._ask()
        return self._op_id

    @property
    def ok(self) -> bool:
        """Whether the call was accepted."""
        return self.status == ErrorCode.OK

    def error_message(self) -> str:
        """Why the call was refused or failed; empty while nothing is known to have gone wrong."""
        self._ask()
        error = self._job.error if self._job and self._job.done else None
        return self._refusal or (text_of(error) if error else "")

    def wait(self, timeout: int = TIMEOUT_INFINITE) -> Any:
        """The value when it is done, ``None`` when it is not done in time; ``OvstageError`` when it failed.

        A failure of an earlier call that no wait has told is reported here, once. May be called again.
        """
        limit = guard.timeout(timeout)
        self._stage._refuse_fork(self._name or "population")
        if not self.ok:
            raise OvstageError(self._status, self._named(self._refusal))
        if self._job is None and not _calls_of(self._stage).issued(self._op_id):
            text = f"op_id {self._op_id} is no population call of this stage"
            raise OvstageError(ErrorCode.INVALID_ARGUMENT, self._named(text))
        if self._job is not None and not self._job.done:
            _refuse_in_progress(self._name or "wait")
        if self._job is not None and not self._job.wait(limit):
            return None
        self._keepalive = None
        failed = _calls_of(self._stage).report(self._op_id)
        if self._job is not None and self._job.error is not None:
            self._raise(self._job.error)
        if failed:
            texts = "; ".join(f"{job.name}: {text_of(job.error)}" for job in failed if job.error is not None)
            raise _noted(OvstageError(ErrorCode.OP_FAILED, f"an earlier call that nobody waited for failed: {texts}"))
        result = self._job.result if self._job is not None and self._value is None else self._value
        return True if result is None else result

    def done(self) -> bool:
        """Whether ``wait()`` would not wait. Consumes nothing."""
        return not self.ok or self._job is None or self._job.done

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
        number, job = self._calls().add(self.name, self._work, outcome)
        operation = Operation(self.stage, ErrorCode.OK, number, value=None, name=self.name)
        operation._job = job  # it may have succeeded by now, and is forgotten then
        operation._outcome = outcome
        return operation

    def run(self) -> Result:
        """Queue it and wait for it alone. An interruption ends it if it has not begun to write, and is raised either
        way."""
        _refuse_in_progress(self.name)
        calls = self._calls()
        number, job = calls.add(self.name, self._work)
        try:
            job.wait()
        except BaseException:
            job.cancel()
            job.wait()
            raise
        finally:
            calls.forget(number)
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

    def _calls(self) -> Calls:
        if not self.stage.alive:
            raise OvstageError(ErrorCode.INVALID_HANDLE, f"{self.name} called after Stage was destroyed")
        return _calls_of(self.stage)


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
