"""Open a USD file and keep what USD says about it off the terminal."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from pxr import Tf, Usd, UsdUtils  # type: ignore # usd-core has no stubs

from ovstage.errors import ErrorCode, OvstageError

__all__ = ["Composition", "compose"]

_URI = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)
# USD ends some sentences with the address of the stage object, which tells a reader nothing.
_ADDRESS = re.compile(r"\s*\((?:instantiating|recomposing) stage on stage @.*?\)\s*$")


@dataclass(frozen=True)
class Composition:
    """A composed scene, the time at which to read it, and the ears that listen to USD meanwhile.

    USD reports through a process-wide list of delegates and prints to stderr when there is none. The delegate
    collects for as long as this object lives, so that reading is as quiet as opening.
    """

    stage: Usd.Stage
    time: Usd.TimeCode
    diagnostics: UsdUtils.CoalescingDiagnosticDelegate
    heard: list[str]

    def warnings(self) -> tuple[str, ...]:
        """All that USD remarked so far, without repetitions."""
        self.heard.extend(_sentences(self.diagnostics.TakeUncoalescedDiagnostics()))
        return tuple(dict.fromkeys(self.heard))


def compose(path: str, seconds: float) -> Composition:
    """Open ``path`` as root layer; a failure becomes an ``OvstageError`` that says which file and why."""
    if not _URI.match(path):
        if not os.path.exists(path):
            raise _refusal(path, "there is no such file")
        if os.path.isdir(path):
            raise _refusal(path, "it is a directory")
        if not os.access(path, os.R_OK):
            raise _refusal(path, "it may not be read by this user")
    diagnostics = UsdUtils.CoalescingDiagnosticDelegate()
    try:
        stage = Usd.Stage.Open(path)
    except Tf.ErrorException as error:
        # The last entry only repeats that the layer did not open; the ones before it say why.
        reasons = _sentences(error.args)
        raise _refusal(path, "; ".join(reasons[:-1] or reasons) or "USD gave no reason") from None
    time = Usd.TimeCode.Default() if math.isnan(seconds) else Usd.TimeCode(seconds * stage.GetTimeCodesPerSecond())
    return Composition(stage, time, diagnostics, [])


def _refusal(path: str, reason: str) -> OvstageError:
    return OvstageError(ErrorCode.OP_FAILED, f"cannot open USD file {path!r}: {reason}")


def _sentences(diagnostics: Iterable[Tf.DiagnosticBase]) -> list[str]:
    return [_ADDRESS.sub("", " ".join(entry.commentary.split())) for entry in diagnostics]
