"""The bridge from what USD complains of to ``OvstageError``. Population and export both cross it here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pxr import Tf  # type: ignore # usd-core has no stubs

from ovstage.errors import ErrorCode, OvstageError
from ovstage.population.texts import NO_TEXT

__all__ = ["NO_REASON", "Complaint", "Refused", "reason", "refusing", "sentences"]

NO_REASON = "USD gave no reason"

Complaint = Tf.ErrorException
"""What USD raises instead of an answer. Where a scene has no other answer, ``refusing`` tells it."""

# USD ends some sentences with the address of the stage object, which tells a reader nothing.
_ADDRESS = re.compile(r"\s*\((?:instantiating|recomposing) stage on stage @.*?\)\s*$")
# The names of the rules of USD's grammar tell a reader nothing either.
_GRAMMAR = re.compile(r"parse error matching .*?(?= at ')")


class Refused(Exception):
    """A reason in plain words, of something that USD would refuse with worse ones, or not at all."""


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Make an ``OvstageError`` of what USD raises: ``what`` was to be done, and why USD does not do it."""
    try:
        yield
    except Refused as error:
        raise OvstageError(ErrorCode.OP_FAILED, f"{what}: {error}") from None
    except Complaint as error:
        raise OvstageError(ErrorCode.OP_FAILED, f"{what}: {reason(error)}") from None
    except UnicodeDecodeError as error:
        text = f"{what}: USD has a text there that is no UTF-8, {error.object!r}"
        raise OvstageError(ErrorCode.OP_FAILED, text) from None


def reason(error: Tf.ErrorException) -> str:
    """All that USD says about one error, on one line."""
    return "; ".join(sentences(error.args)) or NO_REASON


def sentences(diagnostics: Iterable[Tf.DiagnosticBase]) -> list[str]:
    """What USD says, each on one line."""
    told = (_ADDRESS.sub("", " ".join(_commentary(entry).split())) for entry in diagnostics)
    return [_GRAMMAR.sub("does not parse", text) for text in told]


def _commentary(entry: Tf.DiagnosticBase) -> str:
    try:
        return str(entry.commentary)
    except UnicodeDecodeError:  # USD quotes the file
        return NO_TEXT
