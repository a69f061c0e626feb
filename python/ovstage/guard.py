"""Argument guards for what does not go straight to the extension, which judges its own arguments by the same rules.

Integers go through ``operator.index``: enum members, NumPy integers and 0-d integer arrays pass; floats (5.0 too),
strings, ``None`` and truth values, which are no numbers, are a ``TypeError`` that names the argument. A number that
does not fit is a ``ValueError``. Arguments are judged before anything is changed or consumed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from operator import index
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ovstage.stage import Stage

__all__ = ["OVSTAGE_TIMEOUT_INFINITE", "TIMEOUT_INFINITE"]

Kind = TypeVar("Kind", bound=IntEnum)
Item = TypeVar("Item")

TIMEOUT_INFINITE = 2**64 - 1
"""Wait until the answer is there. Every other timeout is a number of nanoseconds; 0 polls."""

OVSTAGE_TIMEOUT_INFINITE = TIMEOUT_INFINITE
"""The same, under the name that the C interface gives it."""


def integer(value: object, name: str, expected: str = "an int", hint: str = "") -> int:
    """An integer of any size."""
    try:
        number = None if is_truth(value) else index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None:
        raise TypeError(f"{name} must be {expected}, got {_shown(value)}{hint}")
    return number


def uint64(value: object, name: str) -> int:
    """An integer in 0 .. 2**64-1."""
    if type(value) is int and 0 <= value <= TIMEOUT_INFINITE:
        return value  # a shortcut, for what every tick needs
    number = integer(value, name)
    if number < 0:
        raise ValueError(f"{name} must be non-negative, got {number}")
    if number >> 64:
        raise ValueError(f"{name} must fit in uint64, got {number}")
    return number


def path_list(value: object) -> int:
    """The handle of a path list."""
    hint = "; make one with PathDictionary(stage).create_path_list_from_strings([...])"
    return uint64(integer(value, "path_list", "a PathList or its number", hint), "path_list")


def int32(value: object, name: str) -> int:
    """An integer in -2**31 .. 2**31-1: the range of an enum that may grow members this package does not know."""
    number = integer(value, name)
    if not -(2**31) <= number < 2**31:
        raise ValueError(f"{name} must fit in int32, got {number}")
    return number


def ordinal(value: object, name: str = "ordinal") -> int:
    """An ordinal: the application's own count of ticks, 0 .. 2**64-1."""
    return uint64(value, name)


def timeout(value: object) -> int:
    """A timeout in nanoseconds."""
    number = integer(value, "timeout", "an int, a number of nanoseconds")
    if number < 0:
        raise ValueError(f"timeout must be non-negative, got {number}; pass TIMEOUT_INFINITE to wait without a limit")
    return uint64(number, "timeout")


def member(value: object, enum: type[Kind], name: str) -> Kind:
    """A declared member of an enum, given as itself or as its value."""
    number = integer(value, name, hint=_member_hint(value, enum))
    try:
        return enum(number)
    except ValueError:
        members = ", ".join(f"{item.name}={item.value}" for item in enum)
        raise ValueError(f"{name} must be a valid {enum.__name__} ({members}), got {number}") from None


def _member_hint(value: object, enum: type[IntEnum]) -> str:
    if not isinstance(value, str):
        return ""
    known = value.upper() in enum.__members__
    return f"; write {enum.__name__}.{value.upper()}" if known else f"; write a member of {enum.__name__}"


def string(value: object, name: str) -> str:
    """A real string."""
    if not isinstance(value, str):
        raise TypeError(f"expected str for {name}, got {_shown(value)}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError(
                f"{name} must be text that UTF-8 can express, got {value!a}, which has a lone surrogate"
            ) from None
    return value


def stage(value: object) -> Stage:
    """A stage, for the functions that take one as their first argument."""
    from ovstage.stage import Stage

    if not isinstance(value, Stage):
        raise TypeError(f"stage must be an ovstage.Stage, got {_shown(value)}")
    return value


def path(value: object, name: str) -> str:
    """The name of a file: a string, or what stands for one."""
    try:
        text = os.fspath(value)  # type: ignore[call-overload]
    except TypeError:
        text = None
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a str or an os.PathLike of str, got {_shown(value)}")
    if "\0" in text:
        raise ValueError(f"{name} must be the name of a file, which has no NUL in it, got {text!r}")
    return string(text, name)


def attribute(value: str | int, name: str) -> str | int:
    """The name of an attribute, or its token."""
    if isinstance(value, str):
        return string(value, name)
    return uint64(integer(value, name, "an int (a token) or a str (a name)"), name)


def attributes(values: Iterable[str | int], name: str) -> list[str | int]:
    """A list of names or tokens of attributes."""
    listed = entries(values, name, "a list of attributes")
    return [attribute(item, f"{name}[{at}]") for at, item in enumerate(listed)]


def entries(values: Iterable[Item], name: str, expected: str, *, ordered: bool = True) -> list[Item]:
    """What a list holds. A single string is refused, though it could be iterated; sets, unless order means nothing."""
    if type(values) is list:
        return values.copy()  # a shortcut, for what every tick needs
    if isinstance(values, (str, bytes, bytearray)):
        raise TypeError(f"{name} must be {expected}, got the single string {values!r}; write [{values!r}]")
    if isinstance(values, Mapping):
        raise TypeError(f"{name} must be {expected}, got {_shown(values)}, which is a mapping")
    if ordered and isinstance(values, (set, frozenset)):
        raise TypeError(f"{name} must be {expected}, got {_shown(values)}, which has no order")
    try:
        return list(values)
    except TypeError:
        hint = "" if values is None else f"; write [{_shown(values, of_type=False)}]"
        raise TypeError(f"{name} must be {expected}, got {_shown(values)}{hint}") from None


def unmasked(values: object, name: str) -> None:
    """Refuse a masked array of ``numpy.ma`` that hides elements, also in lists."""
    ma = sys.modules.get("numpy.ma")  # where it has not been imported there can be none
    if ma is not None and _hides(values, ma):
        raise ValueError(
            f"{name} is a masked array (numpy.ma) that hides elements, which nothing here could keep hidden: pass "
            f"array.filled(value)"
        )


def unmissing(values: Any, name: str) -> None:
    """Refuse a column of pandas with ``NA``, of which NumPy makes NaN, and floats of the integers beside it."""
    if hasattr(getattr(values, "dtype", None), "na_value") and values.isna().any():
        raise ValueError(
            f"{name} has missing values (NA), which are no values: fill them (fillna), and to leave their prims alone "
            f"pass mask=values.notna() too"
        )


def _hides(values: object, ma: Any) -> bool:
    if isinstance(values, (list, tuple)):
        return any(_hides(item, ma) for item in values)
    return isinstance(values, ma.MaskedArray) and bool(ma.is_masked(values))


def choice(value: object, words: Sequence[str], name: str) -> int:
    """The position of a word among the words an option knows."""
    if isinstance(value, str) and value in words:
        return words.index(value)
    raise ValueError(f"{name} must be one of {', '.join(map(repr, words))}, got {_shown(value)}")


def uncopied(value: object) -> TypeError:
    """The answer to a copy of what stands for one native resource."""
    name = type(value).__name__
    return TypeError(f"{'an' if name[0] in 'AEIOU' else 'a'} {name} cannot be copied or pickled")


def is_truth(value: object) -> bool:
    """Whether a value is a bool of Python, NumPy or a tensor library."""
    return isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool")


def _shown(value: object, *, of_type: bool = True) -> str:
    text = repr(value)
    short = text if len(text) <= 80 else text[:77] + "..."
    return f"{short} ({type(value).__name__})" if of_type else short
