"""Writing what a stage holds into a USD file.

``export_to_usd_file`` writes what its rules select, ``export_typed_hierarchy_to_usd_file`` a whole subtree by its
schemas; an ``ExportDestination`` gathers several exports before it is saved.

Blocking calls return a report: a dict that counts what was examined, written, skipped and not supported. What fails is
an ``OvstageError`` whose message begins with the name of the call, and has written nothing. Asynchronous twins return
an operation whose ``wait()`` hands over the same, once; they run one after the other, in the order of the calls.
"""

from ovstage.population.export import constants
from ovstage.population.export.constants import *  # noqa: F403 # all of them, and nothing else
from ovstage.population.export.destination import (
    ExportDestination,
    create_export_destination,
    create_export_destination_async,
    export_to_destination,
    export_to_destination_async,
)
from ovstage.population.export.file import export_to_usd_file, export_to_usd_file_async
from ovstage.population.export.operation import DestinationCreateOperation, DestinationOperation, ExportOperation
from ovstage.population.export.report import ExportReport
from ovstage.population.export.rules import ExportDestinationMode, ExportProjection, SourceApiSchemaPolicy
from ovstage.population.export.typed import (
    export_typed_hierarchy_to_usd_file,
    export_typed_hierarchy_to_usd_file_async,
)
from ovstage.population.requirements import available as export_available

__all__ = [
    "ExportReport",
    "DestinationCreateOperation",
    "DestinationOperation",
    "ExportDestination",
    "ExportDestinationMode",
    "ExportOperation",
    "ExportProjection",
    "SourceApiSchemaPolicy",
    "create_export_destination",
    "create_export_destination_async",
    "export_available",
    "export_to_destination",
    "export_to_destination_async",
    "export_to_usd_file",
    "export_to_usd_file_async",
    "export_typed_hierarchy_to_usd_file",
    "export_typed_hierarchy_to_usd_file_async",
    *constants.__all__,
]
