"""How two readings of a scene differ, and the writes that bring a stage from one to the other."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ovstage.dictionary import PathDictionary, PathList
from ovstage.errors import OvstageError
from ovstage.population.ragged import Flags, Indices
from ovstage.population.reserved import WORLD
from ovstage.population.snapshot import Held, Key, Prims, Snapshot
from ovstage.values import WriteDesc

if TYPE_CHECKING:
    from ovstage.handles import Query
    from ovstage.stage import Stage

__all__ = ["Changes", "difference", "publish"]


@dataclass(frozen=True)
class Changes:
    """What turns one reading into another. ``writes`` are in terms of the rows of the new one."""

    writes: dict[Key, Held]
    removed_prims: list[str]
    removed_values: dict[str, list[str]]
    """Prims that stay and lose an attribute, by attribute."""

    @property
    def values(self) -> int:
        """How many values are written."""
        return sum(len(held.rows) for held in self.writes.values())

    @property
    def nbytes(self) -> int:
        """How large they are."""
        return sum(held.values.nbytes for held in self.writes.values())

    def written(self, count: int) -> Flags:
        """For each of ``count`` rows of the new reading, whether anything is written for it."""
        written = np.zeros(count, bool)
        for held in self.writes.values():
            written[held.rows] = True
        return written

    def paths(self, prims: Prims) -> list[str]:
        """The prims of the new reading that are not as they were."""
        changed = self.written(len(prims.paths))
        for paths in self.removed_values.values():
            changed[[prims.rows[path] for path in paths]] = True
        return prims.paths if changed.all() else [prims.paths[row] for row in np.flatnonzero(changed).tolist()]


# --- difference -------------------------------------------------------------------------------------------------------


def difference(old: Snapshot, new: Snapshot, *, rewrite: bool = False) -> Changes:
    """What is new, different or gone. ``rewrite`` writes what is the same too.

    Readings are compared with each other and never with the stage, so what a simulation wrote survives an edit
    elsewhere.
    """
    old_paths, new_paths = old.prims.paths, new.prims.paths
    if old.prims is new.prims:
        before = np.arange(len(new_paths))
    else:
        before = np.fromiter((old.prims.rows.get(path, -1) for path in new_paths), np.int64, len(new_paths))
    read = new.read if old.prims is new.prims else None
    writes = {}
    for key, held in new.columns.items():
        earlier = old.columns.get(key)
        if earlier is None or rewrite:
            writes[key] = held
        elif len(changed := _changed(earlier, held, before, len(old_paths), None if key.name == WORLD else read)):
            writes[key] = held.take(changed)
    return Changes(
        writes=writes,
        removed_prims=[path for path in old_paths if path not in new.prims.rows],
        removed_values=_removed_values(old, new, before),
    )


def _changed(old: Held, new: Held, before: Indices, old_count: int, read: Flags | None) -> Indices:
    """The indices of new values that are not the old ones of the same prims. ``read``: the prims that may have some."""
    if new is old:  # an update of some prims keeps the columns that they do not have
        return np.empty(0, np.int64)
    at = np.full(old_count + 1, -1, np.int64)
    at[old.rows] = np.arange(len(old.rows))
    earlier = at[before[new.rows]]  # -1, the prim is new, leads to the last entry, which no prim has
    changed = np.ones(len(new.rows), bool) if read is None else read[new.rows]
    known = np.flatnonzero(changed & (earlier >= 0))
    changed[known] = new.values.take(known).differ(old.values.take(earlier[known]))
    return np.flatnonzero(changed)


def _removed_values(old: Snapshot, new: Snapshot, before: Indices) -> dict[str, list[str]]:
    """A value that comes back in another form is removed first."""
    old_paths, count = old.prims.paths, len(new.prims.paths)
    after = np.full(len(old_paths) + 1, -1, np.int64)
    after[before] = np.arange(count)
    removed: dict[str, list[str]] = {}
    for key, held in old.columns.items():
        if new.columns.get(key) is held:
            continue
        now = after[held.rows]
        has = np.zeros(count + 1, bool)
        if key in new.columns:
            has[new.columns[key].rows] = True
        gone = held.rows[(now >= 0) & ~has[now]]
        if len(gone):
            removed.setdefault(key.name, []).extend(old_paths[row] for row in gone.tolist())
    return removed


# --- writes -----------------------------------------------------------------------------------------------------------


def publish(stage: Stage, changes: Changes, paths: list[str], ordinal: int) -> None:
    """Apply changes at an ordinal, removals first: all of them, or none where the stage refuses any. ``paths`` are the
    prims that the rows of the writes mean."""
    with PathDictionary(stage) as dictionary, ExitStack() as held:

        def over(prims: PathList) -> Query:
            with prims:
                return held.enter_context(stage.query_from_path_list(prims))

        removed = [(changes.removed_prims, []), *((prims, [name]) for name, prims in changes.removed_values.items())]
        deletes = [(over(dictionary.create_path_list_from_strings(prims)), names) for prims, names in removed if prims]
        ids = _ids(dictionary, changes, paths)
        batches = [
            (over(dictionary.create_path_list(ids[rows].tolist())), [_write(key, changes.writes[key]) for key in keys])
            for rows, keys in _batches(changes).values()
        ]
        try:
            stage._publish(deletes, batches, ordinal).wait()
        except OvstageError as error:
            raise OvstageError(error.code, f"the scene cannot be written: {error.message}") from None


def _ids(dictionary: PathDictionary, changes: Changes, paths: list[str]) -> npt.NDArray[np.uint64]:
    """The path ids of the prims that are written, by row."""
    rows = np.flatnonzero(changes.written(len(paths)))
    ids = np.zeros(len(paths), np.uint64)
    ids[rows] = dictionary.intern_paths([paths[row] for row in rows.tolist()])
    return ids


def _write(key: Key, held: Held) -> WriteDesc:
    form = key.form
    payload = held.values.arrays() if form.is_array else held.values.numbers
    return WriteDesc(
        key.name, payload, form.is_array, semantic=form.semantic, lanes=form.lanes, type_name=form.type_name
    )


def _batches(changes: Changes) -> dict[bytes, tuple[Indices, list[Key]]]:
    """Columns by the prims that they cover, the widest first, which gives the prims of narrower columns their rows."""
    batches: dict[bytes, tuple[Indices, list[Key]]] = {}
    for key, held in sorted(changes.writes.items(), key=lambda item: -len(item[1].rows)):
        batches.setdefault(held.rows.tobytes(), (held.rows, []))[1].append(key)
    return batches
