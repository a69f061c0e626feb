"""Where layers and assets come from: a file, an address that a resolver of USD understands, or a text."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

__all__ = ["Origin", "is_address", "is_relative"]

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)


@dataclass(frozen=True)
class Origin:
    """Where the caller says that a layer is: the path of a file, or the layer itself as text."""

    content: str
    is_file: bool

    @property
    def path(self) -> str:
        """The file, as the caller named it; empty for a text."""
        return self.content if self.is_file else ""

    def __str__(self) -> str:
        return f"USD file {self.content!r}" if self.is_file else "the USD text"


def is_address(path: str) -> bool:
    """Whether a path is one of a resolver, as ``https://...`` is, and not one of a file."""
    return _SCHEME.match(path) is not None


def is_relative(path: str) -> bool:
    """Whether a path leads elsewhere when its layer moves."""
    return bool(path) and not (os.path.isabs(path) or is_address(path))
