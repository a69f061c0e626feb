"""Claims of identifiers: one export or destination of the process writes under an identifier at a time."""

from __future__ import annotations

import os

from ovstage import guard
from ovstage.errors import ErrorCode, OvstageError
from ovstage.population.origin import is_address

__all__ = ["claim", "free"]

_FORMATS = (".usd", ".usda", ".usdc")

_active: dict[str, object] = {}
"""The identifiers that are being written, and the owner of each claim. Single operations of a dict are atomic, so that
a finaliser may use it."""


def canonical(identifier: str) -> str:
    """One spelling for all that mean the same file."""
    return identifier if is_address(identifier) else os.path.realpath(identifier)


def claim(identifier: str, owner: object) -> None:
    """Reserve an identifier; ``OvstageError`` when another export writes there or its format is not USD."""
    _require_text(identifier)
    guard.path(identifier, "identifier")
    name = os.path.basename(identifier).lower()
    if not name.endswith(_FORMATS) or name in _FORMATS:  # USD takes .usda alone for a name without an extension
        raise OvstageError(
            ErrorCode.INVALID_ARGUMENT,
            f"the extension of {identifier!r} says no USD format: use {', '.join(_FORMATS)}",
        )
    if _active.setdefault(canonical(identifier), owner) is not owner:
        raise OvstageError(
            ErrorCode.OP_FAILED,
            f"another export writes to {identifier!r}: close its ExportDestination first",
        )


def _require_text(identifier: str) -> None:
    """USD's names of files are UTF-8; Python's may stand for any bytes."""
    try:
        name = os.fsencode(identifier)
        name.decode()
    except UnicodeDecodeError:
        raise OvstageError(
            ErrorCode.INVALID_ARGUMENT,
            f"identifier {name!r} is no UTF-8, which USD needs: rename the folder or the file",
        ) from None
    except UnicodeEncodeError:
        return  # no name of a file at all, as the next guard says


def free(identifier: str, owner: object) -> None:
    """End a claim."""
    if _active.get(canonical(identifier)) is owner:
        del _active[canonical(identifier)]
