"""Publishing USD scenes into a stage, and keeping the stage up with them.

``available()`` says whether what it takes is installed, ``open_usd`` does it. ``Desc``, ``Selector`` and the predicates
choose what of a scene is wanted. ``Operation`` is what the asynchronous calls return; unlike ``ovstage.Operation`` its
``wait`` hands over a value, can be repeated, and answers a timeout with ``None``.

The files in the order in which to read them; a file uses what stands above it:

- requirements: which packages it takes, and whether they are there
- report: what a call says about what it did
- predicates: which prims and properties are wanted, as the caller says it
- reserved: names of columns that population fills
- origin: where a layer comes from: a file, an address, a text
- collector: reading without pauses of the garbage collector
- background: jobs on a thread of their own, under the operations here and in export
- operations: the calls of a stage, blocking and asynchronous

What USD says, as numbers:

- texts: what texts may be
- complaints: the bridge from USD's complaints to ``OvstageError``
- ragged: the values of a column
- conversion: numbers of one type as numbers of another
- names: texts and paths as numbers
- forms: how a USD value lies in a column
- columns: a scene as columns

Reading a scene:

- bindings: the material that holds for physics
- schemas: what the schemas of a prim declare
- metadata: metadata as columns
- matching: predicates against the prims of a USD stage
- scope: what is wanted of each prim
- authored: what prims have authored
- transforms: local and world matrices
- reading: one traversal of a scene, into columns
- snapshot: one reading of a scene, as the stage has it
- publication: the difference of two readings, and the writes that make it

Keeping a stage up with its scene:

- edits: what was edited since the scene was read
- files: which mapped files were written meanwhile
- layers: opening layers
- source: a composed scene that can be edited and read again
- session: the steps of every call
- usd: the calls themselves

``export`` is the way back and uses all of them.
"""

from __future__ import annotations

from ovstage.population import export
from ovstage.population import predicates as _predicates
from ovstage.population import usd as _usd
from ovstage.population.export import *  # noqa: F403 # its names are names of this module, too
from ovstage.population.operations import Operation
from ovstage.population.predicates import *  # noqa: F403
from ovstage.population.report import Progress, Report, Skipped
from ovstage.population.usd import *  # noqa: F403
from ovstage.population.usd import descs_available as descs_available

__all__ = ["Operation", "Progress", "Report", "Skipped", *_predicates.__all__, *_usd.__all__, *export.__all__]
