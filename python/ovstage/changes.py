"""What changes in a stage, item by item, for consumers that keep up with it: viewers, loggers, learners, other stages.

An item has what changed since the one before it, of each attribute up to where that is sealed. Nothing is queued for a
slow consumer: it gets one item in which everything is joined that happened meanwhile. What changed, and up to where, is
looked at in one step, so that no writer that seals in between is missed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ovstage import guard
from ovstage.awaiting import elsewhere
from ovstage.columns import Column, rows_of
from ovstage.guard import TIMEOUT_INFINITE
from ovstage.shown import counted, few
from ovstage.tables import Listed

if TYPE_CHECKING:
    import numpy.typing as npt

    from ovstage.groups import ReadGroup
    from ovstage.handles import Query
    from ovstage.selection import Implicit
    from ovstage.stage import Stage

__all__ = ["Change", "Changes", "Item"]


@dataclass(frozen=True, eq=False)
class Part:
    """The changed values of one attribute that are of one type: row ``k`` of the column belongs to prim ``k``."""

    column: Column
    _listed: Listed = field(repr=False)
    _positions: Sequence[int] = field(repr=False)

    @property
    def prims(self) -> list[str]:
        """The paths of the prims, in the order of the column."""
        return [self._listed.texts[at] for at in self._positions]


@dataclass(frozen=True, eq=False)
class Change:
    """What happened to one attribute between two ordinals."""

    name: str
    """The attribute's name."""
    since: int | None
    """After which ordinal; ``None`` where the consumer knew nothing."""
    until: int
    """Up to which ordinal: the attribute's write floor when the item was made."""
    resync: bool
    """The values are all that there are at ``until``, and a prim without one has none, whatever was told before: the
    consumer has just begun, or fell behind what the stage keeps of changes."""
    parts: Sequence[Part]
    """The changed values, by type. Nearly always there is one part, or none where prims only lost the attribute."""
    _lost: Sequence[tuple[Listed, Sequence[int]]] = field(repr=False)

    @property
    def prims(self) -> list[str]:
        """The paths of the prims with a changed value, in the order of ``values``."""
        return [path for part in self.parts for path in part.prims]

    @property
    def column(self) -> Column:
        """The changed values as a ``Column``, with a row for each of ``prims``."""
        if len(self.parts) != 1:
            raise ValueError(
                f"attribute {self.name!r} has changed values of {len(self.parts)} types: take parts, one for each type"
            )
        return self.parts[0].column

    @property
    def values(self) -> npt.NDArray[Any]:
        """The changed values as one array, ``(N,)`` or ``(N, lanes)``; of arrays the elements, see ``column``."""
        return self.column.values

    @property
    def deleted(self) -> list[str]:
        """The paths of prims that lost the attribute, those that came and went meanwhile too; none in a resync."""
        return [listed.texts[at] for listed, positions in self._lost for at in positions]

    def __repr__(self) -> str:
        lost = sum(len(positions) for _, positions in self._lost)
        said = [counted(sum(len(part._positions) for part in self.parts), "value")]
        said += [f"{lost:,} deleted"] * bool(lost) + ["resync"] * self.resync
        return f"<Change {self.name!r} after {self.since} up to {self.until}: {', '.join(said)}>"


class Item(Mapping[str, Change]):
    """What changed since the item before: a ``Change`` by the name of each attribute that has one."""

    def __init__(self, changes: Mapping[str, Change], positions: Mapping[str, int]) -> None:
        self._changes = changes
        self.positions = positions
        """Up to which ordinal each followed attribute is known with this item: what ``since=`` takes to go on from."""
        self.ordinal = min(positions.values(), default=0)
        """The lowest of ``positions``: up to it the consumer knows everything that it follows."""

    def __getitem__(self, name: str) -> Change:
        return self._changes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._changes)

    def __len__(self) -> int:
        return len(self._changes)

    def __repr__(self) -> str:
        return f"<Item up to {self.ordinal}: {counted(len(self), 'attribute')}{few(list(self), len(self))}>"


class Changes:
    """The items of one consumer: ``for item in stage.changes(...)``, ``async for``, or ``poll()`` when it likes.

    It belongs to one thread. Several consumers of a stage do not know of each other. There is nothing to release. When
    the stage is destroyed, what waits or asks raises ``OvstageError`` with code ``INVALID_HANDLE``.
    """

    def __init__(
        self,
        stage: Stage,
        attributes: Sequence[str | int] | None,
        query: Query | Implicit | int | None,
        since: int | Mapping[str, int] | None,
    ) -> None:
        self._stage, self._query, self._moves = stage, query, 0
        self._trials: list[object] = []  # names that were never written yet, for as long as they are followed
        self._asked = None
        if attributes is not None:
            self._asked = list(dict.fromkeys(stage._tokens(attributes, self._trials, "attributes")[1]))
        self._since: dict[int, int | None] = {}
        self._again: set[int] = set()  # attributes that are told anew
        self._begin: int | None = None  # where an attribute begins that has no position of its own
        if isinstance(since, Mapping):
            self._begin = 0
            for name, at in since.items():
                self._since[stage._token(name, "since", self._trials)] = guard.ordinal(at, f"since[{name!r}]")
        elif since is not None:
            self._begin = guard.ordinal(since, "since")

    def poll(self) -> Item | None:
        """What changed since the last item, or ``None``: it does not wait."""
        return self._poll(None)

    def _poll(self, limit: int | None) -> Item | None:
        """``poll`` up to an ordinal, as of which the stage keeps values."""
        self._moves = self._stage._floor_moves(0, 0)
        tokens, there = self._followed()
        while tokens:
            since = [self._since.get(token, self._begin) for token in tokens]
            read, ends = self._stage._read_since(self._query, tokens, since, limit)
            with read:
                read.wait()
                told = list(read.groups())
            try:
                later, still = self._followed()
                if later == tokens:
                    return self._item(tokens, there, since, ends, told)
            finally:
                for group in told:
                    group.release()
            tokens, there = later, still  # one more came meanwhile, and may have been sealed together with these
        return None

    def __iter__(self) -> Iterator[Item]:
        while True:
            if (item := self.poll()) is not None:
                yield item
            else:
                self._stage._floor_moves(self._moves, TIMEOUT_INFINITE)

    async def __aiter__(self) -> AsyncIterator[Item]:
        while True:
            if (item := self.poll()) is not None:
                yield item
            else:
                await elsewhere(self._wait, TIMEOUT_INFINITE)

    def _forget(self, name: str) -> None:
        """The next item has a resync of an attribute, also where it has no values any more."""
        token = self._stage._token(name, "name", self._trials)
        self._since[token] = None
        self._again.add(token)

    def __repr__(self) -> str:
        return f"<Changes of {counted(len(self._since), 'attribute')} of {self._stage!r}>"

    # --- steps ---

    def _followed(self) -> tuple[list[int], Collection[int]]:
        """The attributes to ask for: those that were named, or all that there are, and those that were told of.

        Then those of them that are not to be forgotten.
        """
        if self._asked is not None:
            return self._asked, self._asked
        there = {row[0]: None for row in self._stage._attributes()}
        return list(dict.fromkeys([*self._since, *there])), there

    def _item(
        self,
        tokens: Sequence[int],
        there: Collection[int],
        since: Sequence[int | None],
        ends: Sequence[tuple[int, bool]],
        groups: Sequence[ReadGroup],
    ) -> Item | None:
        changes = self._changes(tokens, since, ends, groups)
        known = {token: until for token, (until, _) in zip(tokens, ends, strict=True)}
        self._since.update(known)
        self._again.difference_update(known)
        if self._asked is None and not changes:
            # What was gone before the read, of the sealed state too, has been told to be so: it is asked for no more.
            self._since = {token: until for token, until in self._since.items() if token in there}
        if not changes:
            return None
        return Item(changes, dict(zip(self._stage._token_strings(tokens), known.values(), strict=True)))

    def _wait(self, timeout: int) -> None:
        """Until a floor has moved."""
        if self._stage._floor_moves(self._moves, timeout) == self._moves:
            raise TimeoutError

    def _changes(
        self,
        tokens: Sequence[int],
        since: Sequence[int | None],
        ends: Sequence[tuple[int, bool]],
        groups: Sequence[ReadGroup],
    ) -> dict[str, Change]:
        of: dict[int, list[ReadGroup]] = {}
        for group in groups:
            of.setdefault(group.attribute, []).append(group)
        told = [
            (token, known, until, resync)
            for token, known, (until, resync) in zip(tokens, since, ends, strict=True)
            if token in of or (resync and (known is not None or self._asked is not None or token in self._again))
        ]
        names = self._stage._token_strings([token for token, *_ in told])
        return {
            name: self._change(name, known, until, resync, of.get(token, []))
            for name, (token, known, until, resync) in zip(names, told, strict=True)
        }

    def _change(self, name: str, since: int | None, until: int, resync: bool, groups: Sequence[ReadGroup]) -> Change:
        kept, lost = [g for g in groups if not g.is_delete], [g for g in groups if g.is_delete]
        parts = [self._part(list(same)) for _, same in groupby(kept, _type_of)]
        gone = [(self._listed(group), group.prim_indices().tolist()) for group in lost]
        return Change(name, since, until, resync, parts, gone)

    def _part(self, groups: Sequence[ReadGroup]) -> Part:
        column, positions = rows_of(groups)
        return Part(column, self._listed(groups[0]), positions)

    def _listed(self, group: ReadGroup) -> Listed:
        return self._stage._lists.of(self._stage, group.prim_list)


def _type_of(group: ReadGroup) -> tuple[object, ...]:
    rows = group.array(0, shaped=True)  # with the lanes as its last axis at each interface level
    return rows.dtype, rows.shape[1], group.is_array, group.semantic, group._type_token
