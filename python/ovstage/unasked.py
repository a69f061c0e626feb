"""Failures on another thread of Python, that are not asked about: they warn as those of the stage's operations do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovstage.errors import ErrorCode, OvstageError

if TYPE_CHECKING:
    from ovstage.stage import Stage

__all__ = ["Outcome"]


class Outcome:
    """What became of one call.

    The thread that does the work holds it until it is done, the caller's operation as long as it lives. When both have
    let go and nobody has asked, a failure is told: by the finaliser, so that a warning that is an error is reported as
    Python reports those.
    """

    def __init__(self, stage: Stage, name: str) -> None:
        self.asked = False
        self._failure: tuple[int, str] | None = None  # not the exception: its traceback leads back to here
        self._stage = stage
        self._name = name

    def fail(self, error: BaseException) -> None:
        """Note how it ended."""
        self._failure = error.code if isinstance(error, OvstageError) else ErrorCode.INTERNAL, text_of(error)

    def __del__(self) -> None:
        if self._failure is not None and not self.asked:
            self._stage._tell_unasked(self._name, None, *self._failure)


def text_of(error: BaseException) -> str:
    """What a failure says."""
    return error.message if isinstance(error, OvstageError) else f"{type(error).__name__}: {error}"
