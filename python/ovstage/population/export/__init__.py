"""Writing what a stage holds into a USD file.

``export_to_usd_file`` writes what its rules select, ``export_typed_hierarchy_to_usd_file`` a whole subtree by its
schemas; an ``ExportDestination`` gathers several exports before it is saved.

Blocking calls return a report: a dict that counts what was examined, written, skipped and not supported. What fails is
an ``OvstageError`` whose message begins with the name of the call, and has written nothing. Asynchronous twins return
an operation whose ``wait()`` hands over the same, once; they run one after the other, in the order of the calls.

The files in the order in which to read them; a file uses what stands above it:

- report: what an export says about what it did
- rules: what the caller wants written
- constants: the same as plain numbers
- operation: exports under way
- claims: which identifiers are being written

What a stage has, and what USD makes of it:

- holdings: what a stage holds at one ordinal, by prim
- selection: which prims and properties are wanted, and what schemas declare
- types: columns as USD values
- assets: asset paths that lead to the same files from another folder

Writing a layer:

- draft: an export under way, the state that the parts below share
- xform_ops: a matrix as the operations of a prim
- transforms: local matrices
- attributes: columns of values
- schemas: applied schemas
- edges: relationships, bindings, connections
- metadata: metadata of prims and of the layer
- prims: the prims themselves
- authoring: all of these, in their order

The calls:

- storage: the layer of an export, in memory until it is saved
- file: a file in one call
- typed: a subtree as its schemas declare it
- destination: a layer that takes several exports
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
