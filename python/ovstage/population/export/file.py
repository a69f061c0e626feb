"""Write a USD file in one call."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Unpack

from ovstage import guard
from ovstage.population.export import rules
from ovstage.population.export.claims import claim, free
from ovstage.population.export.operation import ExportOperation, named
from ovstage.population.export.report import ExportReport
from ovstage.population.export.rules import ExportDestinationMode, ExportOptions, Options, takes_options
from ovstage.population.requirements import require

if TYPE_CHECKING:
    from ovstage.stage import Stage

__all__ = ["export_to_usd_file", "export_to_usd_file_async"]


@takes_options
def export_to_usd_file(
    stage: Stage, identifier: str | os.PathLike[str], ordinal: int, **options: Unpack[ExportOptions]
) -> ExportReport:
    """Write what the stage holds at its write floor, which ``ordinal`` must be, into a USD file, replacing an old one.

    ``attribute_rules`` say which columns to write and how: a plain string is a name; a dict has the keys ``path``,
    ``path_match``, ``source_attribute_name``, ``source_attribute_name_match`` (GLOB for patterns),
    ``destination_attribute_name``, ``usd_type_name``, ``required_schema_name`` and ``flags``. ``prim_rules``,
    ``api_schema_rules``, ``property_rules`` and ``metadata_rules`` do the same for prims, applied schemas,
    relationships and metadata. ``prim_predicate`` and ``property_predicate`` restrict them; ``None`` selects all.
    ``projection``, ``source_api_schema_policy``, ``layer_mode``, ``transform_policy``, ``unknown_metadata_policy``,
    ``selection`` and ``since_ordinal`` are explained with their enums. Values become default opinions.

    Raises ``ValueError`` for a number outside its enum, ``OvstageError`` for everything else: an ordinal that is not
    the write floor, a required rule without effect, a file that cannot be written.
    """
    judged = rules.options(ordinal, options)
    guard.stage(stage)._begin("export_to_usd_file")
    report: ExportReport = named("export_to_usd_file", _one_shot(stage, str(identifier), judged))
    return report


@takes_options
def export_to_usd_file_async(
    stage: Stage, identifier: str | os.PathLike[str], ordinal: int, **options: Unpack[ExportOptions]
) -> ExportOperation:
    """``export_to_usd_file`` on a thread of its own."""
    judged = rules.options(ordinal, options)
    guard.stage(stage)._begin("export_to_usd_file")
    return ExportOperation(stage, name="export_to_usd_file", work=_one_shot(stage, str(identifier), judged))


def _one_shot(stage: Stage, identifier: str, options: Options) -> Callable[[], ExportReport]:
    def work() -> ExportReport:
        require("an export")
        from ovstage.population.export.storage import Storage  # loads USD, which takes a while

        owner = object()
        claim(identifier, owner)
        try:
            storage = Storage(identifier, ExportDestinationMode.EMPTY)
            report: ExportReport = storage.write(stage, options)
            storage.save()
            return report
        finally:
            free(identifier, owner)

    return work
