"""Which prims a call means: a query, a path list, or simply their paths.

Paths are made a query of their own, which need not be released. A stage keeps the ones that it made last, by
content, so that a loop which names the same paths again pays for looking them up and nothing else.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from operator import index
from typing import TYPE_CHECKING, ClassVar, SupportsIndex, TypeAlias

from ovstage._load import native
from ovstage.cache import drop_oldest
from ovstage.dictionary import PathList, minted
from ovstage.handles import Query

if TYPE_CHECKING:
    from ovstage.stage import Stage

__all__ = ["Prims"]

Prims: TypeAlias = Query | PathList | Iterable[str] | int
"""What the short calls take: a ``Query`` (or its number), a ``PathList``, or paths, such as ``["/A", "/B"]``."""

MOST_LISTS = 64
MOST_PATHS = 1 << 20
"""What a stage keeps at most: so many lists, and so many paths in all of them, unless the newest alone has more."""

MOST_RECENT = 8
"""How many list objects are known by sight."""


class Implicit(native.ImplicitQuery):
    """A query that was made in passing. It ends with its last user, without a warning: there is nothing to forget."""

    __slots__ = ()


class Asked(Implicit):
    """The query of paths that are only asked for, some of which have never been made: a stand-in has their index."""

    __slots__ = ("_unknown", "paths")

    def __init__(self, stage: Stage, path_list: PathList, paths: tuple[str, ...]) -> None:
        super().__init__(stage, path_list)
        self._unknown = path_list._unknown
        self.paths = paths

    def outdated(self, stage: Stage) -> bool:
        """Whether a path was made since: what was read may lack it."""
        with minted(stage, stage._list_of_known, self.paths, implicit=True) as path_list:
            return path_list._unknown != self._unknown


class Selections:
    """The implicit queries of one stage, by their paths.

    Threads share it without a lock, which a fork could leave held: two that name new paths at once may each make a
    query, of which one is kept.
    """

    _all: ClassVar[weakref.WeakSet[Selections]] = weakref.WeakSet()

    def __init__(self) -> None:
        self._all.add(self)
        self._known: dict[tuple[str, ...], Implicit] = {}
        self._recent: dict[int, tuple[list[str] | tuple[str, ...], Implicit]] = {}

    @classmethod
    def forget_all(cls) -> None:
        """Forget what every stage keeps, so that nothing but what a program holds names a path."""
        for kept in list(cls._all):
            kept._known.clear()
            kept._recent.clear()

    def of_paths(self, stage: Stage, paths: Iterable[str], *, asked: bool = False) -> Implicit:
        """The query of some paths, made if need be. Raises what ``create_path_list_from_strings`` raises.

        Paths that are only ``asked`` for are not made; with such ones the query is not kept either.
        """
        # A list that is named again is told by its content: 1 to 2 ns a path, where hashing takes several times that.
        kept, found = self._recent.get(id(paths), _NEVER)
        if found is not None and (kept is paths or kept == paths):
            return found
        content = tuple(paths)
        found = self._of_content(stage, content, asked)
        if type(found) is Asked:
            return found
        if type(paths) is list or type(paths) is tuple:
            self._recent[id(paths)] = paths if type(paths) is tuple else list(content), found
            drop_oldest(self._recent, MOST_RECENT)
        return found

    def _of_content(self, stage: Stage, paths: tuple[str, ...], asked: bool) -> Implicit:
        try:
            found = self._known.get(paths)
        except TypeError:  # what cannot be hashed is no text, and is refused below
            found = None
        if found is None:
            make = stage._list_of_known if asked else stage._list_from_strings
            with minted(stage, make, paths, implicit=True) as path_list:
                if path_list._unknown:
                    return Asked(stage, path_list, paths)
                found = Implicit(stage, path_list)  # the query keeps the list
            self._known[paths] = found
            drop_oldest(self._known, MOST_LISTS, MOST_PATHS)
            self._forget_recent()
        return found

    def _forget_recent(self) -> None:
        """A list that is not kept any more is not known by sight either: its object may be gone for long."""
        kept = set(map(id, list(self._known.values())))
        for at, (_, query) in list(self._recent.items()):
            if id(query) not in kept:
                self._recent.pop(at, None)


_NEVER: tuple[None, None] = (None, None)


def select(stage: Stage, prims: Prims, *, asked: bool = False) -> Query | Implicit | int:
    """What to give to the library as the query: hold it until the call is done. ``asked``: it makes no new prims."""
    if type(prims) is list:
        return stage._selections.of_paths(stage, prims, asked=asked)
    if isinstance(prims, Query):
        return prims
    if isinstance(prims, PathList):
        return _of_list(stage, prims)
    if isinstance(prims, SupportsIndex) and not isinstance(prims, bool) and not hasattr(prims, "__len__"):
        return index(prims)  # the number of a query
    if isinstance(prims, (str, bytes, bytearray)):
        raise TypeError(f"prims must be a query or a list of paths, got the single string {prims!r}; write [{prims!r}]")
    if isinstance(prims, (set, frozenset, dict)) or not isinstance(prims, Iterable):
        raise TypeError(
            f"prims must be a Query, a PathList or a list of paths, which have an order, got {type(prims).__name__}"
        )
    return stage._selections.of_paths(stage, prims, asked=asked)


def _of_list(stage: Stage, prims: PathList) -> Implicit:
    """The list remembers its query, as long as it is not given back."""
    known = prims._query
    if known is None or not known.of(stage) or prims.released:
        known = Implicit(stage, int(prims))
        prims._query = known
    return known
