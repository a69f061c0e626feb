"""Refusals as tables: what is done wrong, and the sentence that answers it, word for word.

A row is a text and a call that provokes it. ``…`` in a text stands for what differs from run to run: tokens, addresses.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from conftest import Table

import ovstage
from ovstage import AttributeSemantic, OrdinalRange


class Scene(Table):
    """Two prims, floor 5, four attributes: mass, point, runs (arrays) and link (a token each)."""

    def __init__(self, stage: ovstage.Stage, names: ovstage.PathDictionary) -> None:
        super().__init__(stage, names, ["/World/Prim0", "/World/Prim1"])
        self.write("mass", np.float32([1, 2]), 5)
        self.write("point", np.zeros((2, 3), "f4"), 5, semantic=AttributeSemantic.POINT)
        self.write("runs", [np.int32([1]), np.int32([2, 3])], 5, is_array=True)
        self.write("link", np.uint64([self.token("a"), self.token("b")]), 5, semantic=AttributeSemantic.TOKEN_ID)
        self.seal(5)

    def live(self) -> dict[str, int]:
        """What has been given out. Some rows write first, so that bytes may have come."""
        counters = self.stage.counters().items()
        return {name: count for name, count in counters if name.startswith("live_") and name != "live_blocks"}

    def put(self, tensors: Any, attribute: int | str = "mass", ordinal: int = 6, **options: Any) -> ovstage.Operation:
        """A write that the row is about; nobody has waited for it."""
        return self.stage.write_attribute(self.query, attribute, ordinal, tensors, **{"is_array": False} | options)

    def map(self, attribute: int | str = "mass", ordinal: int = 6, **options: Any) -> ovstage.Map:
        return self.stage.map_attribute(self.query, attribute, ordinal, **options)

    def ask(self, attribute: int | str, op: Any, values: Any = ()) -> ovstage.Query:
        return self.stage.query(ovstage.Filter([ovstage.Predicate(attribute, op, values)]))

    @contextmanager
    def served(self, attribute: str = "mass") -> Iterator[ovstage.ReadGroup]:
        """The group of an attribute, released at the end."""
        read = self.stage.read_attributes(self.query, [self.token(attribute)], OrdinalRange.latest(5))
        with read, read.fetch_next() as group:
            yield group

    @contextmanager
    def lent(self, **options: Any) -> Iterator[tuple[ovstage.Map, ovstage.MapGroup]]:
        """A map of mass with its group, aborted at the end."""
        mapping = self.map(**options)
        try:
            yield mapping, mapping.fetch_next()
        finally:
            if mapping._open:
                mapping.abort()


Row = tuple[str, Callable[[Scene], object]]


def check(text: str, call: Callable[[Scene], object], scene: Scene) -> None:
    """Ask for the text, and that nothing is left behind."""
    before = scene.live()
    answer = said(call, scene)
    assert agree(text, answer), answer
    if scene.stage.alive:
        assert scene.live() == before


def said(call: Callable[[Scene], object], scene: Scene) -> str:
    """The kind and the words of the exception that a call raises, or that waiting for what it returns raises."""
    try:
        answer = call(scene)
        if hasattr(answer, "wait"):
            answer.wait()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return f"not refused: {answer!r}"


def agree(expected: str, text: str) -> bool:
    """Whether a text is the expected one."""
    return re.fullmatch(".*".join(map(re.escape, expected.split("…"))), text, re.DOTALL) is not None


# --- what rows of several tables need -------------------------------------------------------------------------------


def axes(*numbers: int) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * len(numbers))(*numbers)


def tensor(**fields: Any) -> ovstage.DLTensor:
    """Two float32 that this package described, and fields that were assigned later."""
    made = ovstage.make_dltensor(np.float32([8, 9]))
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def released(handle: Any) -> Any:
    op = handle.release()
    if op is not None:
        op.wait()
    return handle


def destroyed() -> ovstage.Stage:
    stage = ovstage.Stage("gone")
    stage.destroy()
    return stage


def names_of(rows: Sequence[Row]) -> list[str]:
    return [re.sub(r"\W+", "-", text.split(": ", 1)[-1])[:60] for text, _ in rows]
