"""Asset paths that lead to the same files from where an export puts them."""

from __future__ import annotations

import os
import re

__all__ = ["anchored", "loose"]

_ABSOLUTE = re.compile(r"/|[a-z][a-z0-9+.-]+:", re.IGNORECASE)


def anchored(authored: str, resolved: str, folder: str) -> str:
    """The path to write into a layer of ``folder`` for an asset that ``authored`` led to from its own layer.

    A relative path stays as it is where it leads to the same file from ``folder``; else it becomes the absolute path
    of that file, as `Usd.Stage.Flatten` has it. What the stage knows no file for stays as it is.
    """
    if not authored or not resolved or _ABSOLUTE.match(authored):
        return authored
    same = bool(folder) and os.path.normpath(os.path.join(folder, authored)) == resolved
    return authored if same else resolved


def loose(written: str) -> bool:
    """Whether a path that was written depends on the place of its layer."""
    return bool(written) and not _ABSOLUTE.match(written)
