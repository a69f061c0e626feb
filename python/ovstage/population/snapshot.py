"""One reading of a scene, as numbers of a stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from ovstage.dictionary import PathDictionary
from ovstage.population.forms import BOOL, MATRIX, Array, Form
from ovstage.population.transforms import LOCAL, RESET, WORLD, world_matrices

if TYPE_CHECKING:
    from ovstage.population.columns import Scene
    from ovstage.stage import Stage

__all__ = ["Key", "Prims", "Snapshot", "Values", "equal"]

Rows = npt.NDArray[np.int64]


class Key(NamedTuple):
    """A column: the same name in another form is another one."""

    name: str
    form: Form


@dataclass(frozen=True)
class Values:
    """The values of a column for the prims in ``rows``: an array with one row each, or one array each."""

    rows: Rows
    payload: Array | list[Array]

    def take(self, positions: Rows) -> Values:
        """Some of them."""
        if isinstance(self.payload, list):
            return Values(self.rows[positions], [self.payload[at] for at in positions.tolist()])
        return Values(self.rows[positions], self.payload[positions])

    def equals(self, other: Values) -> bool:
        """Whether the same prims have the same values, bit for bit."""
        if isinstance(self.payload, list) and isinstance(other.payload, list):
            same = len(self.payload) == len(other.payload) and all(map(equal, self.payload, other.payload))
        else:
            same = equal(np.asarray(self.payload), np.asarray(other.payload))
        return same and np.array_equal(self.rows, other.rows)

    def with_values(self, positions: Rows, payload: Array | list[Array]) -> Values:
        """The same with other values at some positions."""
        changed = self.payload.copy()
        if isinstance(changed, list):
            for at, value in zip(positions.tolist(), payload, strict=True):
                changed[at] = value
        else:
            changed[positions] = payload
        return Values(self.rows, changed)

    def joined(self, other: Values) -> Values:
        """These values, then those of other prims."""
        rows = np.concatenate([self.rows, other.rows])
        if isinstance(self.payload, list) and isinstance(other.payload, list):
            return Values(rows, self.payload + other.payload)
        return Values(rows, np.concatenate([np.asarray(self.payload), np.asarray(other.payload)]))

    @property
    def nbytes(self) -> int:
        """How large the values are."""
        if isinstance(self.payload, list):
            return sum(row.nbytes for row in self.payload)
        return self.payload.nbytes


@dataclass(frozen=True)
class Prims:
    """The prims of a reading, parents before children."""

    paths: list[str] = field(default_factory=list)

    @cached_property
    def rows(self) -> dict[str, int]:
        """The row of each path."""
        return {path: row for row, path in enumerate(self.paths)}

    @cached_property
    def parents(self) -> Rows:
        """The row of the parent of each prim; -1 where none was read."""
        above = (self.rows.get(path.rpartition("/")[0] or "/", -1) for path in self.paths)
        parents = np.fromiter(above, np.int64, len(self.paths))
        parents[:1] = -1
        return parents

    @cached_property
    def levels(self) -> list[Rows]:
        """The rows by depth: each level has its parents in an earlier one."""
        depth = np.zeros(len(self.paths), np.int64)
        for row, parent in enumerate(self.parents.tolist()):
            if parent >= 0:
                depth[row] = depth[parent] + 1
        order = np.argsort(depth, kind="stable")
        return np.split(order, np.searchsorted(depth[order], np.arange(1, depth.max(initial=0) + 1)))


@dataclass(frozen=True)
class Snapshot:
    """One reading of a scene: its prims, and its values as the stage holds them."""

    prims: Prims = field(default_factory=Prims)
    columns: dict[Key, Values] = field(default_factory=dict)

    @classmethod
    def of(cls, stage: Stage, scene: Scene) -> Snapshot:
        """Intern the texts and paths of a scene, all of them in two calls."""
        names = scene.names
        with PathDictionary(stage) as dictionary:
            names.intern(dictionary.intern_tokens, dictionary.intern_paths)
        columns = {}
        for column in scene.columns:
            assert column.packed is not None
            rows, packed = column.packed
            columns[Key(column.name, column.form)] = Values(rows, packed.payload(names))
        return cls(Prims(scene.paths), columns)

    def with_worlds(self) -> Snapshot:
        """The same with the world matrices that follow from the local ones."""
        local, resets = self.columns.get(_LOCAL), self.columns.get(_RESET)
        columns = {key: values for key, values in self.columns.items() if key != _WORLD}
        if local and resets:
            matrices = np.asarray(local.payload).reshape(-1, 4, 4)
            world = world_matrices(
                self.prims.levels, self.prims.parents, local.rows, matrices, np.asarray(resets.payload)[:, 0]
            )
            columns[_WORLD] = Values(local.rows, world.reshape(-1, 16))
        return Snapshot(self.prims, columns)

    def updated(self, part: Snapshot) -> Snapshot:
        """The same with what ``part`` says of its prims, all of which are here.

        Columns that none of them has, before or now, stay the same objects.
        """
        rows = np.array([self.prims.rows[path] for path in part.prims.paths], np.int64)
        stale = np.zeros(len(self.prims.paths), bool)
        stale[rows] = True
        columns = {}
        for key in dict.fromkeys((*self.columns, *part.columns)):
            if key == _WORLD:  # follows from the others
                columns[key] = self.columns[key]
                continue
            values = _replaced(self.columns.get(key), part.columns.get(key), stale, rows)
            if len(values.rows):
                columns[key] = values
        moved = any(columns.get(key) is not self.columns.get(key) for key in (_LOCAL, _RESET))
        merged = Snapshot(self.prims, columns)
        return merged.with_worlds() if moved else merged


def equal(one: Array, other: Array) -> bool:
    """Whether two arrays are the same, bit for bit."""
    return one is other or (one.shape == other.shape and one.tobytes() == other.tobytes())


_LOCAL, _RESET, _WORLD = Key(LOCAL, MATRIX), Key(RESET, BOOL), Key(WORLD, MATRIX)


def _replaced(old: Values | None, new: Values | None, stale: npt.NDArray[np.bool_], rows: Rows) -> Values:
    """The old values but for the stale prims, which have the new ones. ``rows`` says which prims the new ones mean.

    What stays the same stays the same object, and nothing has to look for a difference in it.
    """
    if new is None:
        assert old is not None
        has = stale[old.rows]
        return old.take(np.flatnonzero(~has)) if has.any() else old
    new = Values(rows[new.rows], new.payload)
    if old is None:
        return new
    at = np.flatnonzero(stale[old.rows])
    if np.array_equal(old.rows[at], new.rows):  # the same prims have it: by far the most common case
        return old if old.take(at).equals(new) else old.with_values(at, new.payload)
    kept = old.take(np.flatnonzero(~stale[old.rows]))
    joined = kept.joined(new)
    return joined.take(np.argsort(joined.rows, kind="stable"))
