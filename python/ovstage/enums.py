"""The enumerations of the interface. Every member is an integer and may be passed as one."""

from __future__ import annotations

from enum import IntEnum, IntFlag

__all__ = [
    "AttributeSemantic",
    "FilterOp",
    "HierarchyComputationModel",
    "HierarchyRelation",
    "LogSeverity",
    "PopulationDomain",
    "PrimMode",
    "Scope",
]


class AttributeSemantic(IntEnum):
    """What the bytes of a column mean, apart from their storage type.

    The first write stamps it and reads give it back. The ``*_ID`` roles fix the storage: uint64, two lanes for
    ``ASSET_PATH_ID`` and ``CONNECTION_PATH_ID``, one for the others; ``STRING`` is an array of uint8.
    """

    NONE = 0
    ASSET_PATH_ID = 1
    TOKEN_ID = 2
    PATH_EXPRESSION_STRING = 3
    RELATIONSHIP_PATH_ID = 4
    POINT = 5
    VECTOR = 6
    NORMAL = 7
    COLOR = 8
    QUATERNION = 9
    MATRIX = 10
    TEXTURE_COORDINATE = 11
    CONNECTION_PATH_ID = 12
    STRING = 13
    TIME_CODE = 14
    FRAME = 15


class PrimMode(IntEnum):
    """What a write or a map may do to the prims it names."""

    UPSERT = 0
    """Create what is absent, update what exists."""
    INSERT = 1
    """Create only; a prim that exists, with whatever attributes, refuses the whole call with ``PRIM_NOT_FOUND``."""
    UPDATE = 2
    """Write only the prims that exist and leave the others alone; a map lends memory for those that exist alone."""
    REQUIRE = 3
    """Every prim must exist; where one does not the whole call is refused with ``PRIM_NOT_FOUND``, which names it."""


class Scope(IntEnum):
    """Which attributes an advance of the write floor seals."""

    ALL = 0
    """Every attribute, and the floor that attributes created later start from."""
    INCLUDE = 1
    """The listed attributes."""
    EXCLUDE = 2
    """Every known attribute but the listed ones; with an empty list the same as ``ALL``."""


class FilterOp(IntEnum):
    """How a predicate compares an attribute with its values."""

    HAS = 0
    IN = 1
    CONTAINS = 2
    PREFIX = 3
    """Byte-wise: ``/World`` also matches ``/Worldwide``; end with ``/`` to mean a subtree."""
    LT = 4
    LE = 5
    GT = 6
    GE = 7


class LogSeverity(IntEnum):
    """Severity of a log record, and threshold below which records are dropped. ``NONE`` drops all of them."""

    VERBOSE = -2
    INFO = -1
    WARNING = 0
    ERROR = 1
    NONE = 3


class PopulationDomain(IntFlag):
    """Which parts of a scene file population publishes."""

    NONE = 0
    RENDERING = 1
    PHYSICS = 2
    ALL = 3


class HierarchyRelation(IntEnum):
    """Which relatives of a prim a hierarchy query lists."""

    PARENT = 0
    CHILDREN = 1
    SIBLINGS = 2


class HierarchyComputationModel(IntEnum):
    """Where and how world transforms are computed."""

    INVALID = 0
    CPU_INCREMENTAL = 1
    GPU_INCREMENTAL = 2
    GPU_GLOBAL = 3
    RUNTIME_DEFAULT = 4
    DEFAULT_CPU = 1
    DEFAULT_GPU = 3
