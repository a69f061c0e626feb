"""The warning of a finaliser, given after it has released what was forgotten."""

from __future__ import annotations

import sys
import warnings

__all__ = ["warn"]


def warn(text: str) -> None:
    """Emit a ``ResourceWarning``; where warnings are errors, print it, since a finaliser has no caller to raise to."""
    try:
        warnings.warn(text, ResourceWarning, stacklevel=3)
    except ResourceWarning as warning:
        if sys.stderr is not None:
            print(f"ResourceWarning: {warning}", file=sys.stderr)
