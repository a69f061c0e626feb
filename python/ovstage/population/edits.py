"""What was edited in a scene since it was read: everything, or the properties of some prims."""

from __future__ import annotations

import re
import threading
from typing import NamedTuple

from pxr import Sdf, Usd  # type: ignore # usd-core has no stubs

__all__ = ["Edited", "Edits"]

# Properties whose edit may change how other prims are read: bindings are inherited, and made of collections; a point
# instancer is physical if a prototype is.
_REACHING = re.compile(r"(material:binding|collection|prototypes)\b")


class Edited(NamedTuple):
    """Which part of a scene was edited."""

    everything: bool
    """Whether more was edited than properties of some prims."""
    prims: set[str]

    def __bool__(self) -> bool:
        return self.everything or bool(self.prims)


class Edits:
    """The edits that USD has reported and no update has read yet. USD reports on the thread that edits."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a leaf; a finaliser, which may run under it, may edit
        self._edited = Edited(True, set())

    def __bool__(self) -> bool:
        return bool(self._edited)

    def take(self) -> Edited:
        """All edits so far; none are left."""
        with self._lock:
            edited, self._edited = self._edited, Edited(False, set())
        return edited

    def put(self, edited: Edited) -> None:
        """Add edits, such as those that were taken by an update that failed."""
        with self._lock:
            edited.prims.update(self._edited.prims)
            self._edited = Edited(edited.everything or self._edited.everything, edited.prims)

    def hear(self, notice: Usd.Notice.ObjectsChanged, _: Usd.Stage) -> None:
        """Add what a notice tells. Edits of properties stay with their prims."""
        if self._edited.everything:
            return
        resynced = list(notice.GetResyncedPaths())
        paths = [*resynced, *notice.GetChangedInfoOnlyPaths()]
        with self._lock:
            if all(map(_stays, paths)) and all(path.IsPropertyPath() for path in resynced):
                self._edited.prims.update(path.GetPrimPath().pathString for path in paths)
            else:
                self._edited = Edited(True, self._edited.prims)


def _stays(path: Sdf.Path) -> bool:
    """Whether what happened at a path concerns one prim alone."""
    return (
        path != Sdf.Path.absoluteRootPath
        and not Usd.Prim.IsPathInPrototype(path)
        and not (path.IsPropertyPath() and _REACHING.match(path.name))
    )
