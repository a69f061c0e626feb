"""Write what a stage holds into a USD layer: the side of an export that authors."""

from __future__ import annotations

from pxr import Sdf  # type: ignore # usd-core has no stubs

from ovstage.population.export.attributes import author_attributes
from ovstage.population.export.draft import Draft
from ovstage.population.export.edges import author_edges
from ovstage.population.export.holdings import Holdings
from ovstage.population.export.metadata import author_metadata
from ovstage.population.export.prims import author_default_prim, author_prims
from ovstage.population.export.report import ExportReport
from ovstage.population.export.rules import Options
from ovstage.population.export.schemas import author_schemas

__all__ = ["author"]


def author(layer: Sdf.Layer, folder: str, held: Holdings, selected: Holdings, options: Options) -> ExportReport:
    """Write into ``layer``, which will be in ``folder``, what the options ask for and report it.

    ``held`` answers what a prim is, ``selected`` has the values to write. An exception leaves the layer half written:
    the caller gives a scratch one.
    """
    draft = Draft(layer, folder, held, selected, options)
    with Sdf.ChangeBlock():
        author_attributes(draft)
        author_edges(draft)
        author_schemas(draft)
        author_metadata(draft)
        author_prims(draft)  # late: it defines what the others touched
        author_default_prim(draft)
    draft.report.settle(draft.written)
    draft.report["custom_attributes_inferred"] = len(draft.inferred)
    return draft.report
