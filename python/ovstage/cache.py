"""Dicts of what was made last, which stay small."""

from __future__ import annotations

from typing import Any

__all__ = ["drop_oldest"]


def drop_oldest(kept: dict[Any, Any], most: int, most_length: int | None = None) -> None:
    """Drop the first entries of what is kept until there are few enough, of keys short enough; the last one stays.

    Threads may share what is kept: a thread that uses an entry which another drops holds it until it is done.
    """
    keys = list(kept)
    length = sum(map(len, keys)) if most_length is not None else 0
    for at, key in enumerate(keys[:-1]):
        if len(keys) - at <= most and (most_length is None or length <= most_length):
            return
        length -= len(key) if most_length is not None else 0
        kept.pop(key, None)
