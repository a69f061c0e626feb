"""What texts may be: those of a stage, the paths of prims, and those that USD does not hand out.

Binary layers may hold bytes which are no UTF-8, of programs that wrote the encoding of their machine. USD keeps them
and cannot hand them to Python: it raises ``UnicodeDecodeError``, or returns ``None`` for a value and prints the error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pxr import Sdf, Usd  # type: ignore # usd-core has no stubs

__all__ = [
    "MOST_BYTES",
    "MOST_BYTES_OF_NAME",
    "NO_TEXT",
    "Unfit",
    "applied_schemas",
    "checked",
    "is_prim_path",
    "is_too_long",
    "readable",
    "type_name",
]

NO_TEXT = "it has bytes that are not UTF-8 text"

# What the engine takes; a test compares. Asked here, so that one text costs its value and not the scene.
MOST_BYTES = 2**24 - 1
MOST_BYTES_OF_NAME = 4096

Answer = TypeVar("Answer")


class Unfit(ValueError):
    """Why a value cannot be held, in plain words."""


def checked(text: str) -> str:
    """A text that the stage can intern; ``Unfit`` for others."""
    if "\0" in text:
        shown = text if len(text) <= 60 else text[:57] + "..."
        raise Unfit(f"its text {shown!r} has a NUL, which no text of a stage can have")
    if _is_longer(text, MOST_BYTES):
        raise Unfit(f"its text {text[:57] + '...'!r} is longer than {MOST_BYTES} bytes, the most that a stage takes")
    return text


def is_too_long(name: str) -> bool:
    """Whether no attribute of a stage can have such a name."""
    return _is_longer(name, MOST_BYTES_OF_NAME)


def _is_longer(text: str, most: int) -> bool:
    return 4 * len(text) > most and len(text.encode()) > most


def is_prim_path(text: str) -> bool:
    """Whether a text is ``/`` or the absolute path of a prim."""
    if not Sdf.Path.IsValidPathString(text):
        return False
    path = Sdf.Path(text)
    return bool(path.IsAbsolutePath() and path.IsAbsoluteRootOrPrimPath() and not path.ContainsPrimVariantSelection())


def readable(ask: Callable[[], Answer], otherwise: Answer) -> Answer:
    """What USD answers, or something else where that is no text."""
    try:
        return ask()
    except UnicodeDecodeError:
        return otherwise


def type_name(prim: Usd.Prim) -> str:
    """The type of a prim; empty where it has none or one whose name is no text."""
    return readable(lambda: str(prim.GetTypeName()), "")


def applied_schemas(prim: Usd.Prim) -> tuple[str, ...]:
    """What is applied to a prim: what the registry knows, and what else is authored, unless that is no text."""
    authored: tuple[str, ...] = readable(lambda: tuple(prim.GetPrimTypeInfo().GetAppliedAPISchemas()), ())
    return (*prim.GetAppliedSchemas(), *authored)
