"""What was read, as numbers of a stage; how two readings differ; and the writes that bring one to the other."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from ovstage.dictionary import PathDictionary
from ovstage.dlpack import numpy_to_dldatatype
from ovstage.errors import ErrorCode, OvstageError
from ovstage.population.forms import Array, Form
from ovstage.values import WriteDesc

if TYPE_CHECKING:
    from ovstage.handles import Query
    from ovstage.population.columns import Scene
    from ovstage.stage import Stage

__all__ = ["Changes", "Key", "Snapshot", "difference", "publish"]

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

    @property
    def nbytes(self) -> int:
        """How large the values are."""
        if isinstance(self.payload, list):
            return sum(row.nbytes for row in self.payload)
        return self.payload.nbytes


@dataclass(frozen=True)
class Snapshot:
    """One reading of a scene: its prims, and its values as the stage holds them."""

    paths: list[str] = field(default_factory=list)
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
        return cls(scene.paths, columns)


@dataclass(frozen=True)
class Changes:
    """What turns one reading into another. ``writes`` are in terms of the rows of the new one."""

    writes: dict[Key, Values]
    removed_prims: list[str]
    removed_values: dict[str, list[str]]
    """Prims that stay and lose an attribute, by attribute."""

    @property
    def values(self) -> int:
        """How many values are written."""
        return sum(len(values.rows) for values in self.writes.values())

    @property
    def nbytes(self) -> int:
        """How large they are."""
        return sum(values.nbytes for values in self.writes.values())


# --- difference -------------------------------------------------------------------------------------------------------


def difference(old: Snapshot, new: Snapshot, *, rewrite: bool = False) -> Changes:
    """What is new, different or gone. ``rewrite`` writes what is the same too.

    Readings are compared with each other and never with the stage, so what a simulation wrote survives an edit
    elsewhere.
    """
    places = {path: row for row, path in enumerate(old.paths)}
    before = np.fromiter((places.get(path, -1) for path in new.paths), np.int64, len(new.paths))
    remaining = set(new.paths)
    writes = {}
    for key, values in new.columns.items():
        earlier = old.columns.get(key)
        if earlier is None or rewrite:
            writes[key] = values
            continue
        changed = _changed(earlier, values, before, len(old.paths))
        if len(changed):
            writes[key] = values if len(changed) == len(values.rows) else values.take(changed)
    return Changes(
        writes=writes,
        removed_prims=[path for path in old.paths if path not in remaining],
        removed_values=_removed_values(old, new, before, remaining),
    )


def _changed(old: Values, new: Values, before: Rows, old_count: int) -> Rows:
    """Positions of new values that are not the old ones of the same prims."""
    at = np.full(old_count + 1, -1, np.int64)
    at[old.rows] = np.arange(len(old.rows))
    earlier = at[before[new.rows]]  # -1, the prim is new, leads to the last entry, which nobody has
    known = np.flatnonzero(earlier >= 0)
    if isinstance(new.payload, list):
        assert isinstance(old.payload, list)
        pairs = zip(known.tolist(), earlier[known].tolist(), strict=True)
        same = [now for now, then in pairs if _equal(new.payload[now], old.payload[then])]
        kept = np.array(same, np.int64)
    else:
        assert not isinstance(old.payload, list)
        kept = known[(_bytes(new.payload)[known] == _bytes(old.payload)[earlier[known]]).all(axis=1)]
    return np.setdiff1d(np.arange(len(new.rows)), kept, assume_unique=True)


def _equal(one: Array, other: Array) -> bool:
    return one is other or (one.shape == other.shape and one.tobytes() == other.tobytes())


def _bytes(payload: Array) -> npt.NDArray[np.uint8]:
    """Bit for bit, so that a NaN equals itself."""
    return np.ascontiguousarray(payload).view(np.uint8).reshape(len(payload), -1)


def _removed_values(old: Snapshot, new: Snapshot, before: Rows, remaining: set[str]) -> dict[str, list[str]]:
    """A value that comes back in another form is removed first."""
    after = np.full(len(old.paths) + 1, -1, np.int64)
    after[before] = np.arange(len(new.paths))
    removed: dict[str, list[str]] = {}
    for key, values in old.columns.items():
        now = after[values.rows]
        has = np.zeros(len(new.paths) + 1, bool)
        if key in new.columns:
            has[new.columns[key].rows] = True
        gone = values.rows[(now >= 0) & ~has[now]]
        if len(gone):
            removed.setdefault(key.name, []).extend(old.paths[row] for row in gone.tolist())
    return removed


# --- writes -----------------------------------------------------------------------------------------------------------


def publish(stage: Stage, changes: Changes, paths: list[str], ordinal: int) -> None:
    """Apply changes at an ordinal, removals first. ``paths`` are the prims that the rows of the writes mean.

    What the stage would refuse is refused before anything is removed or written.
    """
    _require_open_columns(stage, {key.name for key in changes.writes} | changes.removed_values.keys(), ordinal)
    with PathDictionary(stage) as dictionary, ExitStack() as held:
        ids = dictionary.intern_paths(paths)
        batches = [
            (held.enter_context(_query(stage, dictionary, [ids[row] for row in rows.tolist()])), keys)
            for rows, keys in _batches(changes).values()
        ]
        for query, keys in batches:
            for key in keys:
                if key.name in changes.removed_values:  # where another form goes first there is nothing to fit
                    reformed = set(changes.removed_values[key.name])
                    others = [row for row in changes.writes[key].rows.tolist() if paths[row] not in reformed]
                    with _query(stage, dictionary, [ids[row] for row in others]) as narrower:
                        _require_fit(stage, narrower, len(others), key, changes.writes[key], ordinal)
                else:
                    _require_fit(stage, query, len(changes.writes[key].rows), key, changes.writes[key], ordinal)
        if changes.removed_prims:
            _delete(stage, dictionary, changes.removed_prims, [], ordinal)
        for name, prims in changes.removed_values.items():
            _delete(stage, dictionary, prims, [name], ordinal)
        for query, keys in batches:
            stage.write_attributes(query, [_write(key, changes.writes[key]) for key in keys], ordinal).wait()


def _require_open_columns(stage: Stage, names: Iterable[str], ordinal: int) -> None:
    """Refuse before the first write what a single attribute's floor would refuse in the middle."""
    for name in sorted(names):
        with stage.get_attribute_write_floor(name) as query:
            floor = query.fetch()
        if ordinal <= floor:
            raise OvstageError(
                ErrorCode.WRITE_FLOOR_VIOLATION,
                f"the scene cannot be written at ordinal {ordinal}: attribute {name!r} is sealed up to {floor}",
            )


def _require_fit(stage: Stage, query: Query, count: int, key: Key, values: Values, ordinal: int) -> None:
    """Refuse values that do not fit what the stage holds for these prims, such as a column that a client wrote.

    A map asks what the write will ask; one that is given back leaves no trace.
    """
    sample, form = values.payload[0], key.form
    try:
        mapping = stage.map_attribute(
            query,
            key.name,
            ordinal,
            dtype=numpy_to_dldatatype(sample.dtype, form.lanes),
            semantic=form.semantic,
            element_sizes=np.zeros(count, np.uint64).data if form.is_array else None,
            initial="discard",
        )
        mapping.wait()
        mapping.abort()
    except OvstageError as error:
        raise OvstageError(error.code, f"the scene cannot be written: {error.message}") from None


def _query(stage: Stage, dictionary: PathDictionary, ids: list[int]) -> Query:
    with dictionary.create_path_list(ids) as covered:
        return stage.query_from_path_list(covered)


def _write(key: Key, values: Values) -> WriteDesc:
    form = key.form
    return WriteDesc(key.name, values.payload, form.is_array, semantic=form.semantic, lanes=form.lanes)


def _batches(changes: Changes) -> dict[bytes, tuple[Rows, list[Key]]]:
    """Columns by the prims they cover, the widest first: later, narrower ones find their rows laid out."""
    batches: dict[bytes, tuple[Rows, list[Key]]] = {}
    for key, values in sorted(changes.writes.items(), key=lambda item: -len(item[1].rows)):
        batches.setdefault(values.rows.tobytes(), (values.rows, []))[1].append(key)
    return batches


def _delete(stage: Stage, names: PathDictionary, prims: Iterable[str], attributes: list[str], ordinal: int) -> None:
    with names.create_path_list_from_strings(list(prims)) as paths, stage.query_from_path_list(paths) as query:
        stage.delete_attributes(query, attributes, ordinal).wait()
