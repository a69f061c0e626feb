"""Publishing USD scenes into a stage.

``available()`` says whether what it takes is installed, ``open_usd`` does it. ``Operation`` is what the asynchronous
calls return; unlike ``ovstage.Operation`` its ``wait`` hands over a value, can be repeated, and answers a timeout with
``None``.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ovstage import guard
from ovstage.awaiting import settled
from ovstage.errors import ErrorCode, OvstageError
from ovstage.guard import TIMEOUT_INFINITE
from ovstage.population import export
from ovstage.population.export import *  # noqa: F403 # its names are names of this module, too
from ovstage.population.usd import Progress, Report, available, open_usd

if TYPE_CHECKING:
    from ovstage.stage import Stage

__all__ = ["Operation", "Progress", "Report", "available", "open_usd", *export.__all__]


class Operation:
    """A population call under way on a stage; ``value`` is what a successful ``wait()`` returns.

    It holds the stage, and ``keepalive`` until it is done. There is nothing to release.
    """

    def __init__(
        self, stage: Stage, status: int, op_id: int, *, value: Any = True, keepalive: object = None, name: str = ""
    ) -> None:
        self.status = guard.integer(status, "status")
        self.op_id = guard.uint64(op_id, "op_id")
        self._stage = stage
        self._value = value
        self._keepalive = keepalive
        self._name = name
        self._done = False
        self._refusal = stage.last_error() if self.status else ""

    @property
    def ok(self) -> bool:
        """Whether the call was accepted."""
        return self.status == ErrorCode.OK

    def error_message(self) -> str:
        """Why the call was refused or failed; empty while nothing is known to have gone wrong."""
        return self._refusal or (self._stage.op_error(self.op_id) if self.ok else "")

    def wait(self, timeout: int = TIMEOUT_INFINITE) -> Any:
        """The value when it is done, ``None`` when it is not done in time; ``OvstageError`` when it failed."""
        limit = guard.timeout(timeout)
        if not self.ok:
            raise OvstageError(self.status, self._named(self._refusal))
        if not self._done:
            code, failed, _ = self._stage.wait_op(self.op_id, limit)
            if code == ErrorCode.TIMEOUT:
                return None
            self._keepalive = None
            if code or failed:
                text = self._stage.op_error(failed[0] if failed else self.op_id)
                self.status, self._refusal = code or ErrorCode.OP_FAILED, text
                raise OvstageError(self.status, self._named(text))
            self._done = True
        return self._value

    def done(self) -> bool:
        """Whether ``wait()`` would not wait. Consumes nothing."""
        return not self.ok or self._done or self._stage.wait_op_raw(self.op_id, 0) != ErrorCode.TIMEOUT

    def __await__(self) -> Generator[Any, None, Any]:
        """``await operation`` does what ``wait()`` does, without holding up the event loop."""
        return settled(self)

    def _named(self, text: str) -> str:
        return f"{self._name}: {text}" if self._name else text
