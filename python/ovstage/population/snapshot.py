"""One reading of a scene, as numbers of a stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ovstage.dictionary import PathDictionary
from ovstage.population.forms import BOOL, MATRIX, Form
from ovstage.population.ragged import Flags, Indices, Values
from ovstage.population.reserved import LOCAL, RESET, WORLD
from ovstage.population.transforms import world_matrices

if TYPE_CHECKING:
    from ovstage.population.columns import Scene
    from ovstage.stage import Stage

__all__ = ["Held", "Key", "Prims", "Snapshot"]


class Key(NamedTuple):
    """A column: the same name in another form is another one."""

    name: str
    form: Form


@dataclass(frozen=True)
class Held:
    """What a column holds: the prims that have a value in it, ascending, and their values."""

    rows: Indices
    values: Values

    def take(self, at: Indices) -> Held:
        """The part at these indices."""
        return Held(self.rows[at], self.values.take(at))


@dataclass(frozen=True)
class Prims:
    """The prims of a reading, parents before children."""

    paths: list[str] = field(default_factory=list)

    @cached_property
    def rows(self) -> dict[str, int]:
        """The row of each path."""
        return {path: row for row, path in enumerate(self.paths)}

    @cached_property
    def parents(self) -> Indices:
        """The row of the parent of each prim; -1 where none was read."""
        above = (self.rows.get(path.rpartition("/")[0] or "/", -1) for path in self.paths)
        parents = np.fromiter(above, np.int64, len(self.paths))
        parents[:1] = -1
        return parents

    @cached_property
    def levels(self) -> list[Indices]:
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
    columns: dict[Key, Held] = field(default_factory=dict)
    read: Flags | None = None
    """Of an update the rows that were read for it; what follows from them may have changed elsewhere."""

    @classmethod
    def of(cls, stage: Stage, scene: Scene) -> Snapshot:
        """Intern the texts and paths of a scene, all of them in two calls."""
        names = scene.names
        with PathDictionary(stage) as dictionary:
            names.intern(dictionary.intern_tokens, dictionary.intern_paths)
        columns = {}
        for column in scene.columns:
            assert column.packed is not None
            rows, values = column.packed
            kinds = column.form.kinds
            columns[Key(column.name, column.form)] = Held(rows, names.ids(kinds, values) if kinds else values)
        return cls(Prims(scene.paths), columns)

    def with_worlds(self) -> Snapshot:
        """The same with the world matrices that follow from the local ones."""
        local, resets = self.columns.get(_LOCAL), self.columns.get(_RESET)
        columns = {key: held for key, held in self.columns.items() if key != _WORLD}
        if local and resets:
            matrices, flags = local.values.numbers.reshape(-1, 4, 4), resets.values.numbers[:, 0]
            world = world_matrices(self.prims.levels, self.prims.parents, local.rows, matrices, flags)
            columns[_WORLD] = Held(local.rows, Values(world.reshape(-1, 16)))
        return Snapshot(self.prims, columns, self.read)

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
            held = _replaced(self.columns.get(key), part.columns.get(key), stale, rows)
            if len(held.rows):
                columns[key] = held
        moved = any(columns.get(key) is not self.columns.get(key) for key in (_LOCAL, _RESET))
        merged = Snapshot(self.prims, columns, stale)
        return merged.with_worlds() if moved else merged


_LOCAL, _RESET, _WORLD = Key(LOCAL, MATRIX), Key(RESET, BOOL), Key(WORLD, MATRIX)


def _replaced(old: Held | None, new: Held | None, stale: Flags, rows: Indices) -> Held:
    """The old values, and for the stale prims the new values. ``rows`` has the prim of each row of the part that was
    read.

    What stays the same stays the same object, and nothing has to look for a difference in it.
    """
    if new is None:
        assert old is not None
        has = stale[old.rows]
        return old.take(np.flatnonzero(~has)) if has.any() else old
    new = Held(rows[new.rows], new.values)
    if old is None:
        return new
    at = np.flatnonzero(stale[old.rows])
    if np.array_equal(old.rows[at], new.rows):  # the same prims have it: by far the most common case
        changes = old.values.take(at).differ(new.values).any()
        return Held(old.rows, old.values.replaced(at, new.values)) if changes else old
    kept = old.take(np.flatnonzero(~stale[old.rows]))
    joined = Held(np.concatenate([kept.rows, new.rows]), Values.joined([kept.values, new.values]))
    return joined.take(np.argsort(joined.rows, kind="stable"))
