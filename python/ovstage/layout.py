"""The C structures that ``raw`` and ``to_c()`` show, with the interface's 64-bit layout.

They are copies for reading: changing one changes nothing in the stage.
"""

from __future__ import annotations

import ctypes

from ovstage.dlpack import DLTensor

__all__ = ["CudaSync", "Data", "MapGroupStruct", "Meta", "OrdinalRangeStruct", "Prims", "ReadGroupStruct"]


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
