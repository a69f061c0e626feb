"""What population and export need besides this package, and how to say that it is not there."""

from __future__ import annotations

from importlib import metadata
from importlib.util import find_spec

from ovstage.errors import ErrorCode, OvstageError

__all__ = ["available", "require"]

OLDEST = (26, 5)
"""The first usd-core that tells what abstract schemas declare."""


def available() -> bool:
    """Whether usd-core and NumPy are installed; neither is imported to find out."""
    return not _missing()


def require(call: str) -> None:
    """Refuse a call that cannot be made here."""
    if missing := _missing():
        raise OvstageError(
            ErrorCode.NOT_SUPPORTED,
            f"{call} needs packages that are missing or too old: pip install {' '.join(missing)}",
        )


def _missing() -> list[str]:
    """The packages that are wanted, as pip takes them."""
    missing = [] if _found("pxr.Usd") and not _is_old() else [f"'usd-core>={OLDEST[0]}.{OLDEST[1]}'"]
    return missing if _found("numpy") else [*missing, "numpy"]


def _found(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:
        return False


def _is_old() -> bool:
    try:
        version = metadata.version("usd-core")
    except metadata.PackageNotFoundError:  # USD comes from elsewhere
        return False
    return tuple(map(int, version.split(".")[:2])) < OLDEST
