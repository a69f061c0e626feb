"""Asset paths that lead to the same files from where an export puts them."""

from __future__ import annotations

import os

from pxr import Sdf  # type: ignore # usd-core has no stubs

from ovstage.population.origin import is_relative

__all__ = ["LOOSE", "anchored", "leads_astray"]

LOOSE = "a relative path that leads to no file from here; the stage knows none for it"


def anchored(authored: str, resolved: str, folder: str) -> str:
    """The path to write into a layer of ``folder`` for an asset that ``authored`` led to from its own layer.

    A relative path stays as it is where it leads to the same file from ``folder``; else it becomes the absolute path
    of that file, as `Usd.Stage.Flatten` has it. What the stage knows no file for stays as it is.
    """
    if not resolved or not is_relative(authored):
        return authored
    same = bool(folder) and os.path.normpath(os.path.join(folder, authored)) == resolved
    return authored if same else resolved


def leads_astray(value: object, folder: str) -> bool:
    """Whether one of the asset paths in a value that was written leads to no file from ``folder``."""
    if isinstance(value, Sdf.AssetPath):
        paths = [value.path]
    else:
        paths = [each.path for each in value] if isinstance(value, Sdf.AssetPathArray) else []
    return any(is_relative(path) and not (folder and os.path.exists(os.path.join(folder, path))) for path in paths)
