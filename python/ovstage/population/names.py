"""The texts and paths of a scene as numbers, which become ids of a stage when all are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ovstage.population.ragged import Array, Values
from ovstage.population.texts import checked

__all__ = ["Names", "Numbers"]


class Numbers(dict[str, int]):
    """Texts by the order in which they were met; 0 is the empty one, which the stage knows as id 0 too."""

    def __init__(self) -> None:
        super().__init__({"": 0})

    def __missing__(self, text: str) -> int:
        self[checked(text)] = number = len(self)
        return number


class Names:
    """The texts and the paths of a scene as numbers, and, once ``intern`` was called, as the ids of a stage."""

    def __init__(self) -> None:
        self.tokens = Numbers()
        self.paths = Numbers()
        self._ids: dict[str, Array] = {}

    def intern(self, tokens: Callable[[list[str]], list[int]], paths: Callable[[list[str]], list[int]]) -> None:
        """Ask for the ids of everything met so far, in one call for texts and one for paths."""
        for kind, numbers, ask in (("token", self.tokens, tokens), ("path", self.paths, paths)):
            self._ids[kind] = np.array([0, *ask(list(numbers)[1:])], np.uint64)

    def ids(self, kinds: Sequence[str], values: Values) -> Values:
        """Values whose lanes are numbers of these kinds as ids."""
        lanes = [self._ids[kind][values.numbers[:, lane]] for lane, kind in enumerate(kinds)]
        return Values(np.stack(lanes, axis=1), values.offsets)
