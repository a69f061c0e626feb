"""The files that USD has mapped, and what was written into them since.

USD does not read a binary layer but maps it, and fetches values from the file when they are asked for. A program that
writes such a file in place changes the values of the layer, or takes them away, which ends the process. Therefore
columns own their bytes; and before USD is asked for anything, layers whose file was written in place are read again. A
file that is replaced by another file of its name stays mapped as it was.

USD may be unable to read what was written, as with half a file. The layer is emptied then, so that no read touches what
is not there any more, and cannot be saved. Every call tries again to read it; scenes that have the layer are refused
meanwhile, and no others.

All of this is done by the thread that has USD alone (``source.listening``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from pxr import Ar, Sdf  # type: ignore # usd-core has no stubs

from ovstage.population.complaints import Complaint, Refused

__all__ = ["note", "read_rewritten", "require_whole"]


class _Stamp(NamedTuple):
    device: int
    inode: int
    size: int
    written: int


_stamps: dict[str, _Stamp] = {}
"""Each mapped file as it was when its layer was last seen to agree with it."""

_layers: dict[str, set[str]] = {}
"""The identifiers of the layers of each file. USD is never asked for all its layers: an export may drop one at any
time, and a layer that goes while USD hands it to Python is an error."""

_broken: dict[str, bool] = {}
"""Files whose layers are empty since USD could not read them, and whether these could be saved before."""


def note(layers: Iterable[Sdf.Layer]) -> None:
    """Remember the files of layers that were just read."""
    for layer in layers:
        if not (path := _mapped(layer)):
            continue
        _layers.setdefault(path, set()).add(layer.identifier)
        if path not in _stamps and (stamp := _stamp(path)):
            _stamps[path] = stamp


def require_whole(layers: Iterable[Sdf.Layer]) -> None:
    """``Refused`` if a file of layers that were just read was written since, or USD makes nothing of it."""
    if not (found := {path for layer in layers if (path := _mapped(layer))} & (_rewritten() | _broken.keys())):
        return
    path = min(found)
    if path in _broken:
        raise Refused(f"{path} was written in place, and USD cannot read what it is now")
    raise Refused(f"{path} was written while it was read; call again when it is complete")


def read_rewritten() -> bool:
    """Read again what was written in place; whether anything was. ``Refused`` for a file whose layer has edits that
    would be lost."""
    if not (paths := _rewritten()):
        return False
    for path in paths:
        stamp, is_whole = _stamp(path), True
        for layer in _loaded(path):
            if layer.dirty and path not in _broken:
                raise Refused(
                    f"{path} was written in place while its layer has edits that are not saved; reload the layer, "
                    "which drops them, and call again"
                )
            is_whole = _read_or_empty(layer, path) and is_whole
        if is_whole:
            _broken.pop(path, None)
            _stamps[path] = stamp or _stamps[path]
    for path in [path for path in _stamps if not _loaded(path)]:
        del _stamps[path], _layers[path]
    return True


def _rewritten() -> set[str]:
    """The files that were written in place since they were read."""
    found = set()
    for path, known in _stamps.items():
        stamp = _stamp(path)
        if stamp is None or (stamp == known and path not in _broken):
            continue
        if stamp[:2] == known[:2] or path in _broken:
            found.add(path)
        else:
            _stamps[path] = stamp  # if the layer has been saved or read again, this is its file now
    return found


def _read_or_empty(layer: Sdf.Layer, path: str) -> bool:
    """Read a layer again; whether USD could."""
    try:
        layer.Reload(force=True)
    except Complaint:
        if path not in _broken:
            _broken[path] = bool(layer.permissionToSave)
        layer.TransferContent(Sdf.Layer.CreateAnonymous("empty.usda"))
        layer.SetPermissionToSave(False)
        return False
    if path in _broken:
        layer.SetPermissionToSave(_broken[path])
    return True


def _loaded(path: str) -> list[Sdf.Layer]:
    """The layers of a file that are still open."""
    return [layer for identifier in _layers[path] if (layer := Sdf.Layer.Find(identifier))]


def _mapped(layer: Sdf.Layer) -> str:
    """The file of a layer that fetches its values from it; empty for other layers."""
    if not layer.StreamsData() or not layer.realPath:
        return ""
    return str(Ar.SplitPackageRelativePathOuter(layer.realPath)[0])


def _stamp(path: str) -> _Stamp | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return _Stamp(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
