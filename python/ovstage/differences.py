"""What differs between two trees: prims, properties, and values, with how much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ovstage.columns import Column
from ovstage.shown import counted
from ovstage.tree import TYPE, Property, Tree, value_of
from ovstage.values import Attribute

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Change", "Differences"]

_HEAD = 40
"""How many lines ``repr`` shows."""


@dataclass(frozen=True)
class Change:
    """One value that is not the same: ``before`` is ``None`` where it was added, ``after`` where it was removed."""

    prim: str
    before: Property | None
    after: Property | None
    size: float | None
    """The largest difference between numbers at the same index; ``None`` where they cannot be subtracted."""

    @property
    def name(self) -> str:
        """The attribute's name."""
        one = self.before or self.after
        return one.name if one else ""

    def __repr__(self) -> str:
        if self.before is None:
            return f"+ {self.prim} {self.after!r}"
        if self.after is None:
            return f"- {self.prim} {self.before!r}"
        by = "" if self.size is None else f"  (by {self.size:.6g})"
        return f"~ {self.prim} {self.before!r} -> {repr(self.after).rpartition('  ')[2]}{by}"


class Differences:
    """What has to happen to one tree to become another. Empty, and false, where they are the same."""

    def __init__(self, before: Tree, after: Tree) -> None:
        self.added: Sequence[str] = [path for path in after if path not in before]
        """Prims that only the second has."""
        self.removed: Sequence[str] = [path for path in before if path not in after]
        """Prims that only the first has."""
        self.changed: Sequence[Change] = sorted(_changes(before, after), key=lambda change: (change.prim, change.name))
        """Values that differ, of prims that both have, types of prims among them."""

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)

    def lines(self) -> Iterator[str]:
        """A line for each difference: ``+`` was added, ``-`` was removed, ``~`` was changed; then how many."""
        yield from (f"+ {path}" for path in self.added)
        yield from (f"- {path}" for path in self.removed)
        yield from map(repr, self.changed)
        yield self.summary()

    def summary(self) -> str:
        """How much differs, in a line."""
        if not self:
            return "no difference"
        sizes = [change.size for change in self.changed if change.size is not None]
        most = f", by at most {max(sizes):.6g}" if sizes else ""
        return (
            f"{counted(len(self.added), 'prim')} added, {len(self.removed):,} removed, "
            f"{counted(len(self.changed), 'value')} changed{most}"
        )

    def __repr__(self) -> str:
        lines = list(self.lines())
        return "\n".join(lines if len(lines) <= _HEAD else [*lines[: _HEAD - 1], "...", lines[-1]])

    def json(self) -> dict[str, Any]:
        """All of it as what ``json.dumps`` takes."""
        return {
            "added": list(self.added),
            "removed": list(self.removed),
            "changed": [
                {
                    "path": change.prim,
                    "name": change.name,
                    "before": change.before and change.before.json(),
                    "after": change.after and change.after.json(),
                    "size": change.size,
                }
                for change in self.changed
            ],
        }


# --- steps ---


def _changes(before: Tree, after: Tree) -> Iterator[Change]:
    import numpy as np

    old, new = _by_schema(before), _by_schema(after)
    rows = {path: row for row, path in enumerate(after.rows)}
    both = [(row, rows[path]) for row, path in enumerate(before.rows) if path in rows]
    at = np.array(both, np.int64).reshape(-1, 2)
    seen: set[tuple[str, str]] = set()
    for schema in dict.fromkeys([*old, *new]):
        first, second = old.get(schema), new.get(schema)
        for row, other in at[_differ(first, second, at)].tolist():
            path, name = before.rows[row], schema.name
            if (path, name) in seen:  # of another type before: one change, not two
                continue
            seen.add((path, name))
            yield _change(path, name, before, after, row, other)


Found = dict[Attribute, Column]


def _by_schema(tree: Tree) -> Found:
    return {_schema(attribute): column for attribute, column in tree.columns}


def _schema(attribute: Attribute) -> Attribute:
    """Without what belongs to the stage as a whole."""
    return replace(attribute, prim_count=0, write_floor=0)


def _differ(first: Column | None, second: Column | None, at: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which pairs of rows differ. Two NaNs are the same."""
    import numpy as np

    has = [np.zeros(len(at), bool) if c is None else c.valid[at[:, k]] for k, c in enumerate((first, second))]
    found: npt.NDArray[np.bool_] = has[0] != has[1]
    if first is None or second is None:
        return found
    both = np.flatnonzero(has[0] & has[1])
    if first.offsets is not None or second.offsets is not None:
        for k in both.tolist():
            found[k] = not _same(first.row(int(at[k, 0])), second.row(int(at[k, 1])))
        return found
    one, other = first.values[at[both, 0]], second.values[at[both, 1]]
    unequal = one != other
    if one.dtype.kind in "fc":
        unequal &= ~((one != one) & (other != other))
    found[both] = unequal.reshape(len(both), -1).any(axis=1) if len(both) else False
    return found


def _same(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    import numpy as np

    return one.shape == other.shape and bool(np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"))


def _change(path: str, name: str, before: Tree, after: Tree, row: int, other: int) -> Change:
    first, second = _property(before, path, name, row), _property(after, path, name, other)
    return Change(path, first, second, _size(first, second))


def _property(tree: Tree, path: str, name: str, row: int) -> Property | None:
    for attribute, column in tree.columns:
        if attribute.name == name and column.valid[row]:
            return Property(path, attribute, value_of(column, row))
    return None


def _size(first: Property | None, second: Property | None) -> float | None:
    import numpy as np

    if first is None or second is None or first.name == TYPE:
        return None
    one, other = np.asarray(first.value), np.asarray(second.value)
    if one.shape != other.shape or one.dtype.kind not in "biuf" or other.dtype.kind not in "biuf" or one.size == 0:
        return None
    return float(np.max(np.abs(one.astype(float) - other.astype(float))))
