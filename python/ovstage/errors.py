"""Failures, and the codes that name them.

A call that cannot be carried out raises at once when its arguments are wrong (``TypeError``, ``ValueError``) or when it
answers synchronously. A call that only enqueues work never raises for a refusal: it returns an ``Operation`` whose
``status`` holds the code, and ``Operation.wait()`` raises ``OvstageError`` with the reason.
"""

from __future__ import annotations

from enum import IntEnum
from operator import index

__all__ = ["OVX_API_ERROR", "OVX_API_SUCCESS", "ErrorCode", "OvstageError", "OvstageWarning", "OvxError"]

OVX_API_SUCCESS = 0
"""Status of a path dictionary call that succeeded."""

OVX_API_ERROR = 1
"""Status of a path dictionary call that failed; the only code an ``OvxError`` of this package carries."""


class ErrorCode(IntEnum):
    """Status of a stage call. Members compare equal to the plain integers in ``Operation.status``."""

    OK = 0
    INVALID_ARGUMENT = 1
    INVALID_HANDLE = 2
    NOT_FOUND = 3
    PRIM_NOT_FOUND = 4
    """Also the code of an INSERT over a prim that exists."""
    WRITE_FLOOR_VIOLATION = 5
    NOT_SUPPORTED = 6
    QUEUE_FULL = 7
    """65,536 operations of a stage are pending: wait for some. On a host none ever is."""
    END_OF_ITERATION = 8
    OUT_OF_MEMORY = 9
    LAYOUT_CHANGED = 10
    TIMEOUT = 11
    OP_FAILED = 12
    OUT_OF_RANGE = 13
    INTERNAL = 99


class _CodedError(RuntimeError):
    """A failure with an integer code and a sentence about it."""

    def __init__(self, code: int, message: str = "") -> None:
        try:
            self.code = index(code)
        except TypeError:
            raise TypeError(f"code must be an int, got {code!r} ({type(code).__name__})") from None
        self.message = message or ""
        super().__init__(self.code, self.message)  # as args, so that a pickled error keeps both


class OvstageError(_CodedError):
    """A stage call failed. ``code`` is a plain int to compare with ``ErrorCode``; ``message`` says what was wrong."""

    def __str__(self) -> str:
        try:
            name = ErrorCode(self.code).name
        except ValueError:
            name = f"ERROR_{self.code}"
        return f"{name}: {self.message}" if self.message else name


class OvstageWarning(RuntimeWarning):
    """An operation was refused or failed, and was dropped before anybody asked what became of it.

    A program has asked once it calls ``wait()``, ``done()`` or ``error_message()``, awaits it, takes ``status``, ``ok``
    or ``op_id``, or reads ``Stage.last_error()`` of that call. The first of each call, attribute and code warns, then
    one a second, which says how many were held back; ``Stage.counters()["refused_unasked"]`` has them all.
    """


class OvxError(_CodedError):
    """A path dictionary or path list call failed. Unrelated to ``OvstageError`` by inheritance, as its codes are."""

    def __str__(self) -> str:
        return f"ovx error {self.code}: {self.message}" if self.message else f"ovx error {self.code}"
