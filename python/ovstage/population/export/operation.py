"""Exports under way: what the asynchronous calls return."""

from __future__ import annotations

from collections.abc import Callable, Generator
from itertools import count
from typing import TYPE_CHECKING, Any

from ovstage import guard
from ovstage.awaiting import settled
from ovstage.errors import ErrorCode, OvstageError
from ovstage.guard import TIMEOUT_INFINITE
from ovstage.population.background import Job, Queue
from ovstage.unasked import Outcome

if TYPE_CHECKING:
    from ovstage.population.export.destination import ExportDestination
    from ovstage.stage import Stage

__all__ = ["DestinationCreateOperation", "DestinationOperation", "ExportOperation", "named"]


_queue = Queue("ovstage export")
"""One for the process, so that exports happen in the order of the calls, whatever their stages."""


class _ExportCall:
    """A call under way. Its outcome is handed over by exactly one ``wait()``, a time-out hands over nothing."""

    _ids = count(1)

    def __init__(
        self,
        stage: Stage,
        *,
        name: str,
        work: Callable[[], Any],
        value: Any = None,
    ) -> None:
        self._status: int = ErrorCode.OK
        self._op_id = next(self._ids)
        self._stage = stage
        self._name = name
        self._value = value
        self._refusal = ""
        self._consumed = False
        self._outcome = Outcome(stage, name)
        self._job = _queue.add(Job(name, lambda _: named(name, work), self._outcome))

    @property
    def status(self) -> int:
        """0, or the ``ErrorCode`` of a failure once a wait has told it."""
        self._outcome.asked = True
        return self._status

    @property
    def op_id(self) -> int:
        """The number of the export."""
        self._outcome.asked = True
        return self._op_id

    @property
    def ok(self) -> bool:
        """Whether the call was accepted, and has not been found to have failed."""
        return self.status == ErrorCode.OK

    def error_message(self) -> str:
        """Why it failed; empty before a ``wait()`` has said so."""
        self._outcome.asked = True
        return self._refusal

    def wait(self, timeout: int = TIMEOUT_INFINITE) -> Any:
        """The outcome, or ``None`` when it is not there after ``timeout`` nanoseconds."""
        limit = guard.timeout(timeout)
        self._outcome.asked = True
        if self._consumed:
            raise RuntimeError(f"the result of this {self._name} has already been consumed")
        if not self._job.wait(limit):
            return None
        error = self._job.error
        if error is not None and not isinstance(error, OvstageError):
            raise error
        self._consumed = True
        if error is not None:
            self._status, self._refusal = error.code, error.message
            raise error
        return self._job.result if self._value is None else self._value

    def done(self) -> bool:
        """Whether ``wait()`` would not wait. Consumes nothing."""
        self._outcome.asked = True
        return self._consumed or self._job.done

    def __await__(self) -> Generator[Any, None, Any]:
        """``await operation`` does what ``wait()`` does, without holding up the event loop."""
        return settled(self)


class ExportOperation(_ExportCall):
    """An export under way; ``wait()`` returns the report."""


class DestinationOperation(_ExportCall):
    """A save or a close under way; ``wait()`` returns ``True``."""

    def __init__(self, stage: Stage, *, name: str, work: Callable[[], Any], value: Any = True) -> None:
        super().__init__(stage, name=name, work=work, value=value)


class DestinationCreateOperation(DestinationOperation):
    """A creation under way; ``wait()`` returns the destination, which may be used at once."""

    def __init__(self, stage: Stage, *, name: str, work: Callable[[], Any], destination: ExportDestination) -> None:
        super().__init__(stage, name=name, work=work, value=destination)
        self.destination = destination


def named(name: str, work: Callable[[], Any]) -> Any:
    """Do it; a failure carries the name of the call."""
    try:
        return work()
    except OvstageError as error:
        raise OvstageError(error.code, f"{name} failed: {error.message}") from error.__cause__
