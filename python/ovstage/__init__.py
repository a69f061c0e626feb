"""An in-process attribute stage: rows are prims, columns are attributes, values cross as DLPack tensors without copies.

    robots = ["/World/A", "/World/B"]
    with ovstage.Stage() as stage:
        stage.write(robots, "mass", 1, np.float32([1, 2])).wait()
        stage.advance_write_floor(1).wait()
        print(stage.read(robots, ["mass"])["mass"].values)

Every such call stands on a longer one that C has as well (``write_attribute``, ``read_attributes``), which says more.

Importing the package loads neither NumPy nor the native library: every name below is resolved when it is first used.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if "t" in getattr(sys, "abiflags", ""):
    raise ImportError(
        "ovstage needs an ordinary build of CPython: the free-threaded build has no stable ABI and would crash in the "
        "extension. Use the interpreter without the suffix 't'."
    )
if os.path.exists(os.path.join(__path__[0], "bin")):
    raise ImportError(
        f"the folder {__path__[0]} also holds files of another distribution of this package: uninstall 'ovstage' and "
        f"'ovstage-go', then install the one you want. They cannot share an environment. 'ovstage-go' is on no package "
        f"index: it is installed from a checkout (`pip install .`), or from a wheel file that was built there."
    )

if TYPE_CHECKING:
    from ovstage import gates as gates
    from ovstage import instancing, population
    from ovstage._version import __version__
    from ovstage.columns import Column as Column
    from ovstage.dictionary import PathDictionary, PathList
    from ovstage.dlpack import (
        DLDataType,
        DLDataTypeCode,
        DLDevice,
        DLDeviceType,
        DLTensor,
        dltensor_to_numpy,
        make_dltensor,
        numpy_to_dldatatype,
    )
    from ovstage.enums import (
        AttributeSemantic,
        FilterOp,
        HierarchyComputationModel,
        HierarchyRelation,
        LogSeverity,
        PopulationDomain,
        PrimMode,
        Scope,
    )
    from ovstage.errors import OVX_API_ERROR, OVX_API_SUCCESS, ErrorCode, OvstageError, OvstageWarning, OvxError
    from ovstage.groups import ManagedDLTensor, MapGroup, ReadGroup
    from ovstage.guard import OVSTAGE_TIMEOUT_INFINITE, TIMEOUT_INFINITE
    from ovstage.handles import Hierarchy, Map, Operation, OrdinalQuery, Query, Read
    from ovstage.library import flush_log, library_version, set_log_callback
    from ovstage.library import process_counters as process_counters
    from ovstage.recording import Recorder as Recorder
    from ovstage.recording import Recording as Recording
    from ovstage.stage import Stage
    from ovstage.values import Attribute as Attribute
    from ovstage.values import (
        AttributeMeta,
        Filter,
        HierarchyComputationModelDesc,
        HierarchyItem,
        HierarchyResult,
        OrdinalRange,
        Predicate,
        QueryResult,
        StageConfig,
        WriteDesc,
    )
    from ovstage.viewer import View as View
    from ovstage.viewer import view as view

_NAMES = {
    "_version": "__version__",
    "columns": "Column",
    "dictionary": "PathDictionary PathList",
    "dlpack": (
        "DLDataType DLDataTypeCode DLDevice DLDeviceType DLTensor dltensor_to_numpy make_dltensor numpy_to_dldatatype"
    ),
    "enums": (
        "AttributeSemantic FilterOp HierarchyComputationModel HierarchyRelation LogSeverity "
        "PopulationDomain PrimMode Scope"
    ),
    "errors": "OVX_API_ERROR OVX_API_SUCCESS ErrorCode OvstageError OvstageWarning OvxError",
    "groups": "ManagedDLTensor MapGroup ReadGroup",
    "guard": "OVSTAGE_TIMEOUT_INFINITE TIMEOUT_INFINITE",
    "handles": "Hierarchy Map Operation OrdinalQuery Query Read",
    "library": "flush_log library_version process_counters set_log_callback",
    "recording": "Recorder Recording",
    "stage": "Stage",
    "values": (
        "Attribute AttributeMeta Filter HierarchyComputationModelDesc HierarchyItem HierarchyResult OrdinalRange "
        "Predicate QueryResult StageConfig WriteDesc"
    ),
    "viewer": "View view",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}
_MODULES = {"gates", "instancing", "population"}

__all__ = [
    "OVSTAGE_TIMEOUT_INFINITE",
    "OVX_API_ERROR",
    "OVX_API_SUCCESS",
    "TIMEOUT_INFINITE",
    "AttributeMeta",
    "AttributeSemantic",
    "DLDataType",
    "DLDataTypeCode",
    "DLDevice",
    "DLDeviceType",
    "DLTensor",
    "ErrorCode",
    "Filter",
    "FilterOp",
    "Hierarchy",
    "HierarchyComputationModel",
    "HierarchyComputationModelDesc",
    "HierarchyItem",
    "HierarchyRelation",
    "HierarchyResult",
    "LogSeverity",
    "ManagedDLTensor",
    "Map",
    "MapGroup",
    "Operation",
    "OrdinalQuery",
    "OrdinalRange",
    "OvstageError",
    "OvstageWarning",
    "OvxError",
    "PathDictionary",
    "PathList",
    "PopulationDomain",
    "Predicate",
    "PrimMode",
    "Query",
    "QueryResult",
    "Read",
    "ReadGroup",
    "Scope",
    "Stage",
    "StageConfig",
    "WriteDesc",
    "__version__",
    "dltensor_to_numpy",
    "flush_log",
    "instancing",
    "library_version",
    "make_dltensor",
    "numpy_to_dldatatype",
    "population",
    "set_log_callback",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"ovstage.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'ovstage' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"ovstage.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_HOME, *_MODULES})
