"""What objects say of themselves in ``repr``: for a person who looks, in a line, and never an exception.

Much of it has to be asked of the stage, which may be closed, or belong to the process that this one was forked from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["FEW", "counted", "few", "shown"]

FEW = 3
"""How many names are listed before the rest is a number."""


def shown(describe: Callable[[], str]) -> str:
    """What a description says, or that it cannot be had."""
    try:
        return describe()
    except Exception as error:
        return f", not to be asked: {str(error).splitlines()[0] if str(error) else type(error).__name__}"


def counted(number: int, noun: str) -> str:
    """``1 prim``, ``2 prims``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def few(names: Sequence[str], total: int) -> str:
    """The first few of ``total`` names, as they end a sentence."""
    listed = "".join(f", {name}" for name in names[:FEW])
    return f"{listed}, ..." if total > FEW else listed
