"""Publishing USD scenes into a stage, and keeping the stage up with them.

``available()`` says whether what it takes is installed, ``open_usd`` does it. ``Desc``, ``Selector`` and the predicates
choose what of a scene is wanted. ``Operation`` is what the asynchronous calls return; unlike ``ovstage.Operation`` its
``wait`` hands over a value, can be repeated, and answers a timeout with ``None``.
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
