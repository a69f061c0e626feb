"""The USD side of a populated stage: the layers it reads, the edits above them, and the time at which it reads.

The file itself is the root layer, since USD takes units and up axis from there and nowhere else. Edits lie above it in
layers of their own, one for each reference, so that taking a reference back removes a layer and nothing more.
"""

from __future__ import annotations

import math
import os
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakSet

from pxr import Sdf, Tf, Usd, UsdUtils  # type: ignore # usd-core has no stubs

from ovstage.awaiting import SLICE
from ovstage.errors import ErrorCode, OvstageError
from ovstage.population import files
from ovstage.population.complaints import Refused, refusing, sentences
from ovstage.population.edits import Edited, Edits
from ovstage.population.layers import open_layer, read_again
from ovstage.population.origin import Origin
from ovstage.population.texts import is_prim_path

__all__ = ["Source", "listening"]


class Source:
    """A composed scene that can be edited and read again."""

    def __init__(self, root: Sdf.Layer) -> None:
        self._process = os.getpid()
        self._edits = Sdf.Layer.CreateAnonymous("edits.usda")
        self.stage = Usd.Stage.Open(root, self._edits)
        read_again(self.stage.GetUsedLayers())
        files.note(self.stage.GetUsedLayers())
        self.seconds = math.nan
        self.edits = Edits()
        self._references: dict[int, tuple[Sdf.Layer, Sdf.Layer]] = {}
        _sources.add(self)
        self._listener = Tf.Notice.Register(Usd.Notice.ObjectsChanged, self.edits.hear, self.stage)

    def __del__(self) -> None:
        if os.getpid() != self._process:
            return  # USD would wait for threads that a forked child does not have
        kept = [vars(self).copy()]
        vars(self).clear()
        _dropped.append(kept.pop())  # the only reference now: the scene goes when the queue is emptied
        _let_go()

    @classmethod
    def of(cls, origin: Origin) -> Source:
        """Compose a layer; a failure becomes an ``OvstageError`` that says which layer and why."""
        with refusing(f"cannot {'open' if origin.is_file else 'read'} {origin}"):
            return cls(open_layer(origin))

    @classmethod
    def empty(cls) -> Source:
        """A scene without anything."""
        return cls(Sdf.Layer.CreateAnonymous("empty.usda"))

    @property
    def time(self) -> Usd.TimeCode:
        """The time at which to read."""
        if math.isnan(self.seconds):
            return Usd.TimeCode.Default()
        rate = self.stage.GetTimeCodesPerSecond()
        if not math.isfinite(self.seconds * rate):
            raise Refused(f"time_code {self.seconds} at {rate} time codes per second is no finite time")
        return Usd.TimeCode(self.seconds * rate)

    def add(self, handle: int, origin: Origin, target: str) -> None:
        """Reference the default prim of a layer."""
        with refusing(f"cannot add {origin} at {target!r}"):
            self._add(handle, open_layer(origin), target)

    def remove(self, handle: int) -> None:
        """Undo one ``add``."""
        found = self._references.pop(handle, None)
        if found is None:
            raise OvstageError(
                ErrorCode.INVALID_HANDLE,
                f"reference {handle} is not in the scene: it was removed already, never added, or ended by an open "
                "or a reset",
            )
        self._edits.subLayerPaths.remove(found[0].identifier)

    def read_files_again(self) -> list[str]:
        """Read layers again whose files other programs have saved. Returns what was not read again, in sentences."""
        used = self.stage.GetUsedLayers()
        edited = [layer for layer in used if layer.dirty and not layer.anonymous]
        read_again(used)
        if not edited:
            self.stage.Reload()  # looks for files, too, that were missing
        self.suspect_clips()
        return [f"{layer.identifier} has edits that are not saved, so its file was not read again" for layer in edited]

    def suspect_clips(self) -> None:
        """Read everything with the next update if there are value clips: USD does not report edits of their layers."""
        if len(self.stage.GetUsedLayers(True)) > len(self.stage.GetUsedLayers(False)):
            self.edits.put(Edited(True, set()))

    def require_whole(self) -> None:
        """Refuse what was just read if one of its files was written meanwhile: it may be half of both."""
        used = self.stage.GetUsedLayers()  # also clips, which USD opens when their values are asked for
        files.note(used)
        files.require_whole(used)

    def _add(self, handle: int, layer: Sdf.Layer, target: str) -> None:
        path = _target(target)
        used = set(self.stage.GetUsedLayers())
        edit = Sdf.Layer.CreateAnonymous("reference.usda")
        if path == Sdf.Path.absoluteRootPath:
            edit.subLayerPaths.append(layer.identifier)
        else:
            self._require_editable(path)
            if not layer.HasDefaultPrim():
                raise Refused("it has no defaultPrim, so nothing says which of its prims to put there")
            for prefix in path.GetPrefixes():
                there = self.stage.GetPrimAtPath(prefix)
                spec = Sdf.CreatePrimInLayer(edit, prefix)
                # Also where the prim is defined: what defines it may be an earlier reference, which may go before this.
                spec.specifier = there.GetSpecifier() if there and there.IsDefined() else Sdf.SpecifierDef
            spec.referenceList.Prepend(Sdf.Reference(layer.identifier))
        self._edits.subLayerPaths.insert(0, edit.identifier)
        try:
            self._require_prim(path)
            read_again(set(self.stage.GetUsedLayers()) - used | {layer})
            files.note(self.stage.GetUsedLayers())
        except BaseException:
            self._edits.subLayerPaths.remove(edit.identifier)
            raise
        self._references[handle] = (edit, layer)  # both live as long as the reference

    def _require_editable(self, path: Sdf.Path) -> None:
        for prefix in path.GetPrefixes():
            prim = self.stage.GetPrimAtPath(prefix)
            if prim and prefix != path and prim.IsInstance():
                raise Refused(f"{prefix} is an instance, whose contents USD shares and does not let edit")

    def _require_prim(self, path: Sdf.Path) -> None:
        if not self.stage.GetPrimAtPath(path) or Usd.Prim.IsPathInPrototype(path):
            raise Refused("USD shows no prim there: one above it is inactive, or the name is one that USD reserves")


def _target(target: str) -> Sdf.Path:
    if not is_prim_path(target):
        raise Refused("the target must be '/' or the absolute path of a prim, like '/World/Robot'")
    return Sdf.Path(target)


# --- one at a time ----------------------------------------------------------------------------------------------------

# USD's layers belong to the process: two stages that open one file share its layer, and reading that file again, which
# an open does, recomposes every scene that has it, on the thread of the open. USD crashes when one of these is read or
# dropped meanwhile. So everything that composes, changes, reads or drops a scene holds this lock. It is taken on the
# threads of population calls, before the locks of the engine and never under them, and never while columns are written.
_alone = threading.Lock()

_sources: WeakSet[Source] = WeakSet()

_dropped: deque[dict[str, object]] = deque()
"""What sources held that are gone. It is dropped under the lock, by the thread that has the lock or has it next."""


@contextmanager
def listening(check: Callable[[], None]) -> Iterator[list[str]]:
    """Have USD alone; keep what it says off the terminal and collect it, without repetitions.

    ``check`` is called now and then while another thread has USD, and ends the wait with an exception.

    USD reports through a process-wide list of delegates and prints to stderr when there is none.
    """
    heard: list[str] = []
    while not _alone.acquire(timeout=SLICE):
        check()
    try:
        delegate = UsdUtils.CoalescingDiagnosticDelegate()
        try:
            with refusing("cannot read the scene"):
                if files.read_rewritten():
                    for source in _sources:
                        source.suspect_clips()
            yield heard
        except BaseException as error:
            traceback.clear_frames(error.__traceback__)  # an error that is kept must not keep the scene
            raise
        finally:
            heard.extend(dict.fromkeys(sentences(delegate.TakeUncoalescedDiagnostics())))
            del delegate
    finally:
        _alone.release()
        _let_go()


def _let_go() -> None:
    """Drop what is to be dropped. Another thread that has the lock does it afterwards, for finalisers must not wait."""
    while _dropped and _alone.acquire(blocking=False):
        try:
            _dropped.clear()
        finally:
            _alone.release()
