"""An export under way: what is to be written, the layer it goes to, and what has been counted."""

from __future__ import annotations

from typing import Any

from pxr import Sdf  # type: ignore # usd-core has no stubs

from ovstage.errors import ErrorCode, OvstageError
from ovstage.population.export.assets import anchored
from ovstage.population.export.holdings import Holdings, Prim, Rows
from ovstage.population.export.report import ExportReport
from ovstage.population.export.rules import Options
from ovstage.population.export.selection import prim_test, property_test
from ovstage.population.texts import is_prim_path

__all__ = ["Draft", "failure", "placed"]


class Draft:
    """The state that the parts of an export share."""

    def __init__(self, layer: Sdf.Layer, folder: str, held: Holdings, selected: Holdings, options: Options) -> None:
        self.layer = layer
        self.folder = folder
        """Where the layer will be: what relative asset paths in it are relative to; empty where that is no folder."""
        self.held = held
        """All that the stage has: it answers what a prim is."""
        self.selected = selected
        """The values to write."""
        self.options = options
        self.report = ExportReport()
        wanted = prim_test(options.prim_predicate)
        self.wanted_property = property_test(options.property_predicate)
        self.prims = {prim.row: prim for prim in held.prims if prim.path != "/" and wanted(prim)}
        self.by_path = {prim.path: prim for prim in held.prims}
        self.transformed: set[str] = set()
        """Paths whose transform operations come from ``omni:xform``."""
        self.types: dict[str, str] = {}
        """Types of prims to which the stage gives none, for what was written to them."""
        self.touched: dict[str, None] = {}
        """Paths that something was written to, in order."""
        self.written: set[tuple[str, str]] = set()
        """Paths and names of the properties that were written; the first rule that writes one decides."""
        self.inferred: set[tuple[str, str]] = set()
        """Columns and the types that nothing but their values suggested."""
        self.report["prims_examined"] = len(held.prims)
        self.report["prims_skipped"] = len(held.prims) - len(self.prims)

    def chosen(self, rows: Rows) -> list[tuple[int, Prim]]:
        """The prims of a column that the export is about, each with the index of its value."""
        return [(at, self.prims[row]) for at, row in enumerate(rows.prims) if row in self.prims]

    def anchored(self, authored: str, resolved: str) -> str:
        """An asset path as the layer needs it."""
        return anchored(authored, resolved, self.folder)

    def spec(self, prim: Prim) -> Sdf.PrimSpec:
        """What the layer has for a prim, made if need be."""
        _require_spelling(prim)
        self.touched.setdefault(prim.path)
        return self.layer.GetPrimAtPath(prim.path) or Sdf.CreatePrimInLayer(self.layer, prim.path)

    def attribute(self, prim: Prim, name: str) -> Sdf.AttributeSpec | None:
        """What the layer has for an attribute; ``None`` where it has nothing."""
        _require_spelling(prim)
        return self.layer.GetAttributeAtPath(f"{prim.path}.{name}")


def _require_spelling(prim: Prim) -> None:
    """A stage takes more names than USD does."""
    if not is_prim_path(prim.path):
        raise failure(
            ErrorCode.INVALID_ARGUMENT,
            f"USD takes no prim of the path {prim.path!r}: leave it out with a prim_predicate, or clone it to another "
            "path",
        )


def placed(tree: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A nested dictionary with the value at a ``:``-joined path."""
    name, _, rest = path.partition(":")
    branch = tree.get(name)
    return {**tree, name: placed(branch if isinstance(branch, dict) else {}, rest, value) if rest else value}


def failure(code: ErrorCode, text: str) -> OvstageError:
    """What ends an export."""
    return OvstageError(code, text)
