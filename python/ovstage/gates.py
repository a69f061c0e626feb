"""Deterministic stalls and failures for tests, in builds that are made for it. This one is not."""

from __future__ import annotations

__all__ = ["available"]


def available() -> bool:
    """Whether this build has the gates: it has not."""
    return False
