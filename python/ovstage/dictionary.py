"""Names as numbers: tokens, prim paths, and reference-counted lists of paths.

Tokens and paths live until the last stage of the process ends, or ``compact`` drops a path that nothing names; equal
strings give equal handles. A path list is created with one reference, which its ``PathList`` owns and must give back.
What Python answers for is kept per handle in the stage's ``_path_list_refs``, so that every wrapper over a stage and a
plain-int copy of a list agree about it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

from ovstage import guard, leak
from ovstage.errors import OVX_API_ERROR, OvstageError, OvxError
from ovstage.shown import FEW, counted, few, shown

if TYPE_CHECKING:
    from ovstage.selection import Implicit
    from ovstage.stage import Stage

__all__ = ["PathDictionary", "PathList"]


class References:
    """The references to one path list that Python code still has to give back.

    Each is a token in a list, which the extension takes together with giving the reference back: two threads cannot
    give back the same one, no interrupt comes between, and there is no lock for a fork to leave held.
    """

    __slots__ = ("added", "owner")

    def __init__(self) -> None:
        self.owner: list[None] = []
        self.added: list[None] = []


def _give_back(stage: Stage, handle: int, references: References, *order: list[None]) -> bool:
    """Release one reference, the first that ``order`` still has. False when it has none."""
    return any(stage._list_give_back(handle, references, tokens) for tokens in order)


class PathList(int):
    """The handle of a path list, and the owner of the reference it was created with.

    It is a number where a number is wanted, and a sequence of paths where paths are: ``len(prims)``, ``prims[0]`` and
    ``for path in prims`` read them as text. Copies, pickles and arithmetic give plain ints that own nothing.

    Release it with ``release()``, by leaving its ``with`` block or with ``PathDictionary.destroy_path_list``; dropped
    without, the reference is given back with a ``ResourceWarning``. A list that ``Stage.prims`` made needs none of
    that: it is given back without a word.
    """

    _references = References()  # one that PathDictionary did not make owns nothing
    _stage: Callable[[], Stage | None] = staticmethod(lambda: None)
    _implicit = False
    _unknown = 0  # paths that have never been made, in a list of what is only asked for
    _query: Implicit | None = None  # once a call has named the prims by this list

    def __len__(self) -> int:
        return self._live()._list_count(int(self))

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts())

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        stage = self._live()
        paths = stage._list_paths(int(self))
        if isinstance(index, slice):
            return stage._path_strings(paths[index])
        return stage._path_strings([paths[guard.integer(index, "index")]])[0]

    def __contains__(self, path: object) -> bool:
        return path in self._texts()

    def __bool__(self) -> bool:
        return True  # a handle, also of an empty list: asking takes no call

    def _texts(self) -> list[str]:
        stage = self._live()
        return stage._path_strings(stage._list_paths(int(self)))

    def _live(self) -> Stage:
        stage = self._stage()
        if stage is None or not stage.alive:
            raise OvxError(OVX_API_ERROR, f"the Stage of path list {int(self)} has been destroyed")
        return stage

    @property
    def released(self) -> bool:
        """Whether the reference from creation has been given back."""
        return not self._references.owner

    def release(self) -> None:
        """Give back the reference from creation; ``OvxError`` when that has happened already."""
        self._release(self._references.owner)

    def _release(self, *order: list[None]) -> None:
        stage = self._live()
        self._query = None
        if not _give_back(stage, int(self), self._references, *order):
            raise OvxError(OVX_API_ERROR, f"path list {int(self)} has already been released")

    def __enter__(self) -> PathList:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self.released:
            return
        try:
            self.release()
        except OvxError:
            if error is None:
                raise

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)

    __str__ = int.__repr__

    def __repr__(self) -> str:
        state = "released" if self.released else f"owned{shown(self._described)}"
        return f"PathList({int(self)}, {state})"

    def _described(self) -> str:
        stage = self._live()
        paths = stage._list_paths(int(self))
        return f": {counted(len(paths), 'prim')}{few(stage._path_strings(paths[:FEW]), len(paths))}"


def forgotten(handle: int) -> None:
    """What is said of a list that was dropped without ``release()``, after it has been given back."""
    leak.warn(f"PathList {handle} was garbage-collected without release()")


Paths = TypeVar("Paths")


def minted(
    stage: Stage,
    make: Callable[[Paths, type[PathList], dict[str, Any]], PathList],
    paths: Paths,
    *,
    implicit: bool = False,
) -> PathList:
    """A list that a method of the stage makes, with its owner; an implicit one is dropped without a warning."""
    references = References()
    references.owner.append(None)
    return make(paths, PathList, {"_stage": weakref.ref(stage), "_implicit": implicit, "_references": references})


class PathDictionary:
    """Interns names and makes path lists.

    Over a stage it uses that stage's dictionary; without one it makes a private stage and destroys it with itself.
    Several wrappers over one stage are interchangeable. Closing a wrapper leaves the stage, its tokens and the lists
    made through it as they are. Calls are safe from any thread. Failures of the dictionary are ``OvxError``; a string
    that is not a ``str`` is a ``TypeError``.
    """

    def __init__(self, stage: Stage | None = None) -> None:
        from ovstage.stage import Stage

        if "_stage" in self.__dict__:
            raise RuntimeError("a PathDictionary cannot be initialised twice: make another one for another stage")
        if stage is not None and not isinstance(stage, Stage):
            raise TypeError(f"stage must be a Stage or None, got {stage!r} ({type(stage).__name__})")
        self._private = stage is None
        self._stage: Stage | None = Stage("path dictionary") if stage is None else stage

    def destroy(self) -> None:
        """Close this wrapper. May be called again."""
        stage, self._stage = self._stage, None
        if stage is not None and self._private:
            stage.destroy()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise guard.uncopied(self)  # the copy would destroy a private stage under the original

    def __enter__(self) -> PathDictionary:
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()

    def __del__(self) -> None:
        if getattr(self, "_stage", None) is not None:
            try:
                self.destroy()
            except OvstageError:
                return

    # --- names ---

    def intern_token(self, string: str) -> int:
        """The token of a non-empty string."""
        return self._live()._intern_tokens((guard.string(string, "string"),))[0]

    def intern_tokens(self, strings: Sequence[str]) -> list[int]:
        """The tokens of many strings, in one call: all of them are interned, or none."""
        return self._live()._intern_tokens(strings)

    def token_to_string(self, token: int) -> str:
        """The string of a token; token 0 is the empty string."""
        return self._live()._token_strings((guard.uint64(token, "token"),))[0]

    def intern_path(self, path: str) -> int:
        """The handle of a prim path: ``/``, or absolute without trailing slash, empty, ``.`` or ``..`` components."""
        return self._live()._intern_paths((guard.string(path, "path"),))[0]

    def intern_paths(self, paths: Sequence[str]) -> list[int]:
        """The handles of many prim paths, in one call: all of them are interned, or none."""
        return self._live()._intern_paths(paths)

    def path_to_string(self, primpath: int) -> str:
        """The text of a prim path."""
        return self._live()._path_strings((guard.uint64(primpath, "primpath"),))[0]

    def compact(self) -> int:
        """Drop the paths that nothing names any more, and return how many went.

        Paths stay interned when their prims are deleted. Where prims come and go under ever new paths, call this now
        and then: it takes some 60 ns for each path that there is, and other threads go on meanwhile. A path is
        named by a path list that is alive, and so by queries, maps and groups; by a prim that carries something in a
        state that can be read; by a value of an attribute, of an open map or of a group that is held; by a path below
        it; and by itself, when it was interned with ``intern_path`` or ``intern_paths``.

        A handle that is held as a number alone names nothing. That of a path which was dropped is unknown from then
        on, and never becomes that of another path. All stages of the process share the paths.
        """
        from ovstage.selection import Selections  # which is made of this module

        stage = self._live()
        Selections.forget_all()
        return stage._compact()

    # --- path lists ---

    def create_path_list(self, primpaths: Sequence[int]) -> PathList:
        """A new list of interned paths. Every call makes a handle of its own, for equal input too."""
        stage = self._live()
        return minted(stage, stage._list_from_paths, primpaths)

    def create_path_list_from_strings(self, paths: Sequence[str]) -> PathList:
        """A new list of paths given as text."""
        stage = self._live()
        return minted(stage, stage._list_from_strings, paths)

    def add_path_list_reference(self, path_list: int) -> None:
        """Take one more reference, which the caller gives back with ``destroy_path_list``."""
        stage, handle = self._live(), guard.path_list(path_list)
        references = stage._path_list_refs.get(handle) or References()
        stage._list_add(handle, references.added)
        stage._path_list_refs.setdefault(handle, references)

    def destroy_path_list(self, path_list: int) -> None:
        """Give back one reference.

        A ``PathList`` gives back its own first and an added one when that is gone; a plain int gives back an added one
        first and the owner's when there is none. A list that Python has no record of goes to the dictionary as it is.
        """
        stage, handle = self._live(), guard.path_list(path_list)
        if isinstance(path_list, PathList):
            path_list._release(path_list._references.owner, path_list._references.added)
            return
        tracked = stage._path_list_refs.get(handle)
        if tracked is None or not _give_back(stage, handle, tracked, tracked.added, tracked.owner):
            stage._list_release(handle)

    def path_list_count(self, path_list: int) -> int:
        """How many paths a list has."""
        return self._live()._list_count(path_list)

    def get_paths(self, path_list: int) -> list[int]:
        """The paths of a list, in order."""
        return self._live()._list_paths(path_list)

    def get_path_strings(self, path_list: int) -> list[str]:
        """The paths of a list as text, in order."""
        stage = self._live()
        return stage._path_strings(stage._list_paths(path_list))

    def _live(self) -> Stage:
        stage = self._stage
        if stage is None or not stage.alive:
            what = "PathDictionary" if stage is None else "Stage of this PathDictionary"
            raise OvxError(OVX_API_ERROR, f"the {what} has been destroyed")
        return stage
