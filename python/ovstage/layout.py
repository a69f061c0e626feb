"""The C structures that ``raw`` and ``to_c()`` show, with the interface's 64-bit layout.

They are copies for reading: changing one changes nothing in the stage.
"""

from __future__ import annotations

import ctypes

from ovstage.dlpack import DLTensor

__all__ = [
    "CudaSync",
    "Data",
    "FilterStruct",
    "MapGroupStruct",
    "Meta",
    "OrdinalRangeStruct",
    "PredicateStruct",
    "Prims",
    "ReadGroupStruct",
    "String",
    "StringOrToken",
]


class CudaSync(ctypes.Structure):
    """GPU synchronisation of a payload; both zero for host data."""

    _fields_ = [("stream", ctypes.c_void_p), ("wait_event", ctypes.c_void_p)]


class Prims(ctypes.Structure):
    """Which prims of a path list a group covers."""

    _fields_ = [
        ("list", ctypes.c_uint64),
        ("offset", ctypes.c_uint32),
        ("count", ctypes.c_uint32),
        ("index_map", ctypes.POINTER(ctypes.c_uint32)),
    ]


class Data(ctypes.Structure):
    """The payload of a group."""

    _fields_ = [
        ("tensors", ctypes.POINTER(DLTensor)),
        ("tensor_count", ctypes.c_uint32),
        ("count", ctypes.c_uint32),
        ("index_map", ctypes.POINTER(ctypes.c_uint32)),
        ("mask", ctypes.POINTER(ctypes.c_uint64)),
        ("cuda_sync", CudaSync),
    ]


class Meta(ctypes.Structure):
    """Floor and layout generation of the snapshot a group was served from."""

    _fields_ = [("attribute_write_floor_ordinal", ctypes.c_uint64), ("layout_generation", ctypes.c_uint64)]


class ReadGroupStruct(ctypes.Structure):
    """What a read fetches."""

    _fields_ = [
        ("read_group_id", ctypes.c_uint64),
        ("attribute", ctypes.c_uint64),
        ("ordinal", ctypes.c_uint64),
        ("is_delete", ctypes.c_bool),
        ("is_array", ctypes.c_bool),
        ("semantic", ctypes.c_int),
        ("prims", Prims),
        ("data", Data),
        ("meta", Meta),
    ]


class MapGroupStruct(ctypes.Structure):
    """What a map fetches."""

    _fields_ = [("prims", Prims), ("data", Data), ("meta", Meta)]


class OrdinalRangeStruct(ctypes.Structure):
    """The ordinals a read asks for."""

    _fields_ = [
        ("start_ordinal", ctypes.c_uint64),
        ("end_ordinal", ctypes.c_uint64),
        ("has_start_ordinal", ctypes.c_bool),
    ]


class String(ctypes.Structure):
    """Text by its bytes in UTF-8, without a NUL at the end."""

    _fields_ = [("ptr", ctypes.c_char_p), ("length", ctypes.c_size_t)]


class StringOrToken(ctypes.Structure):
    """A name by its token, or, with token 0, by its text."""

    _fields_ = [("token", ctypes.c_uint64), ("string", String)]


class PredicateStruct(ctypes.Structure):
    """One condition of a filter."""

    _fields_ = [
        ("attribute", StringOrToken),
        ("op", ctypes.c_int),
        ("values", ctypes.POINTER(String)),
        ("value_count", ctypes.c_size_t),
    ]


class FilterStruct(ctypes.Structure):
    """Conditions that a prim has to meet, all of them."""

    _fields_ = [("predicates", ctypes.POINTER(PredicateStruct)), ("count", ctypes.c_size_t)]
