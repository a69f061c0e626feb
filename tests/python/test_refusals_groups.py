"""What groups refuse, word for word."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from refusals import Row, Scene, axes, check, names_of, tensor

from ovstage import DLDataType, DLDevice, DLTensor, MapGroup, OrdinalRange, ReadGroup, make_dltensor
from ovstage.layout import ReadGroupStruct

# --- what some rows need first ---


def built(described: DLTensor | None = None, count: int = 1) -> ReadGroup:
    """A read group that the caller built over a structure of their own."""
    raw = ReadGroupStruct(is_array=True)
    raw.data.tensor_count = count
    if described is not None:
        raw.data.tensors = ctypes.pointer(described)
    return ReadGroup(raw)


def in_group(s: Scene, call: Callable[[ReadGroup], object], attribute: str = "mass") -> object:
    with s.served(attribute) as group:
        return call(group)


def after_release(s: Scene, call: Callable[[ReadGroup], object]) -> object:
    with s.served() as group:
        pass
    return call(group)


def in_map(s: Scene, call: Callable[[MapGroup], object]) -> object:
    with s.lent() as (_, group):
        return call(group)


def after_unmap(s: Scene, call: Callable[[MapGroup], object]) -> object:
    with s.lent() as (mapping, group):
        mapping.unmap().wait()
    return call(group)


def deleted(s: Scene) -> ReadGroup:
    s.stage.delete_attributes(s.query, ["mass"], 6).wait()
    s.seal(6)
    read = s.stage.read_attributes(s.query, [s.token("mass")], OrdinalRange.between(6, 6))
    with read:
        return read.fetch_next()


def of_type(s: Scene, code: int, bits: int) -> ReadGroup:
    """The group of an attribute of a type that NumPy has no name for."""
    width = np.zeros(2, f"u{bits // 8}") if bits <= 64 else np.zeros(2, "c16")
    s.write("odd", make_dltensor(width, dtype=DLDataType(code, bits, 1)), 6)
    s.seal(6)
    return s.group("odd", 6)


def reordered(s: Scene) -> ReadGroup:
    """A group whose rows lie in another order than its prims."""
    with s.names.create_path_list_from_strings(s.paths[::-1]) as paths, s.stage.query_from_path_list(paths) as query:
        with s.stage.read_attributes(query, [s.token("mass")], OrdinalRange.latest(5)) as read:
            return read.fetch_next()


def take_writable(buffer: Any) -> object:
    view, writable = ctypes.create_string_buffer(128), 1
    return ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(buffer), view, writable)


# --- the rows ---

GROUPS: list[Row] = [
    (
        "TypeError: raw must be the C structure of a read group (120 bytes) or a map group (88), got b'' (bytes)",
        lambda s: ReadGroup(b""),
    ),
    ("TypeError: stage must be a Stage or None, got 5", lambda s: ReadGroup(ReadGroupStruct(), 5)),
    ("RuntimeError: a group cannot be initialised twice", lambda s: in_group(s, lambda g: g.__init__(g.raw))),
    ("ValueError: this group was never initialised", lambda s: ReadGroup.__new__(ReadGroup).array(0)),
    ("IndexError: index 1 is out of range: the group has 1 tensors", lambda s: in_group(s, lambda g: g.array(1))),
    ("TypeError: index must be an int, got '0' (str)", lambda s: in_group(s, lambda g: g.array("0"))),
    ("IndexError: index -1 is out of range: the group has 1 tensors", lambda s: in_group(s, lambda g: g.dlpack(-1))),
    ("IndexError: local 2 is out of range: the group has 2 prims", lambda s: in_group(s, lambda g: g.prim_index(2))),
    (
        "IndexError: local 2 is out of range: the group has 2 elements",
        lambda s: in_group(s, lambda g: g.data_row_index(2)),
    ),
    (
        "ValueError: shape must be a sequence of extents with as many elements as the tensor, at most one of "
        "them -1, got (3,) for 2 rows of 1 elements",
        lambda s: in_group(s, lambda g: g.dlpack(0, shape=[3])),
    ),
    (
        "TypeError: shape must be a sequence of ints, got 5",
        lambda s: in_group(s, lambda g: g.dlpack(0, shape=5)),
    ),
    (
        "TypeError: shape must be a sequence of ints, got [2.0]",
        lambda s: in_group(s, lambda g: g.dlpack(0, shape=[2.0])),
    ),
    (
        "BufferError: these bytes belong to a snapshot and are read-only; copy them in order to change them",
        lambda s: in_group(s, lambda g: take_writable(g._buffer(0, True))),
    ),
    (
        "ValueError: an array column has one array per prim, not one for the group: use array(i)",
        lambda s: in_group(s, lambda g: np.asarray(g), "runs"),
    ),
    ("IndexError: rows[0] is 5, but the group has 2 tensors", lambda s: in_group(s, lambda g: g._pack([5]), "runs")),
    (
        "ValueError: values of dtype float32 cannot be viewed as float64 without a copy",
        lambda s: in_group(s, lambda g: np.array(g, "f8", copy=False)),
    ),
    (
        "ValueError: the rows of this group are not in the order of its prims: they cannot be viewed as one "
        "array without a copy; use array(0) with data_rows()",
        lambda s: np.array(reordered(s), copy=False),
    ),
    ("ValueError: these prims lost the attribute: the group has no values", lambda s: np.asarray(deleted(s))),
    ("ValueError: the group has no tensors", lambda s: deleted(s)._pack(None)),
    (
        "OvstageError: INVALID_HANDLE: array: the read group has been released",
        lambda s: after_release(s, lambda g: g.array(0)),
    ),
    (
        "OvstageError: INVALID_HANDLE: release_group: the read group has been released",
        lambda s: after_release(s, lambda g: g.release()),
    ),
    (
        "OvstageError: INVALID_HANDLE: release_group: the read group has been released",
        lambda s: after_release(s, lambda g: s.stage.release_group(g)),
    ),
    ("AttributeError: a map group has no attribute 'attribute'", lambda s: in_map(s, lambda g: g.attribute)),
    (
        "TypeError: a MapGroup is not released: pass it to unmap_group",
        lambda s: in_map(s, lambda g: s.stage.release_group(g)),
    ),
    (
        "OvstageError: INVALID_HANDLE: array: the map group has been unmapped",
        lambda s: after_unmap(s, lambda g: g.array(0)),
    ),
    (
        "TypeError: expected a read group or its C structure of 120 bytes, got 5 (int)",
        lambda s: s.stage.release_group(5),
    ),
    (
        "OvstageError: INVALID_HANDLE: group: read_group_id 99 is unknown or has been released",
        lambda s: s.stage.release_group(ReadGroupStruct(read_group_id=99)),
    ),
    (
        "OvstageError: INVALID_HANDLE: this ReadGroup has no Stage; use Stage.release_group(group)",
        lambda s: built().release(),
    ),
    ("ValueError: the group's tensors are a NULL pointer", lambda s: built().array(0)),
    (
        "NotImplementedError: only supports CPU tensors, this one is on device type 2; use dlpack()",
        lambda s: built(tensor(device=DLDevice(2, 0))).array(0),
    ),
    (
        "ValueError: the tensor has ndim -1 and a shape: expected 0 to 64 axes and their extents",
        lambda s: built(tensor(ndim=-1)).array(0),
    ),
    (
        "ValueError: the tensor's shape is not valid: axis 0 has the extent -2",
        lambda s: built(tensor(shape=axes(-2))).array(0),
    ),
    (
        "NotImplementedError: the tensor has strides and is no flat run of elements; use dlpack()",
        lambda s: built(tensor(strides=axes(2))).array(0),
    ),
    (
        "ValueError: the tensor has 2 elements and a data pointer that is NULL",
        lambda s: built(tensor(data=None)).array(0),
    ),
    (
        "ValueError: Unsupported DLDataType: NumPy has no counterpart of opaque32; use dlpack()",
        lambda s: built(tensor(dtype=DLDataType(3, 32, 1))).array(0),
    ),
    (
        "ValueError: only a group that was fetched from a read is offered to Arrow readers",
        lambda s: built().__arrow_c_array__(),
    ),
    (
        "ValueError: Arrow has no type for bfloat16: take the group's values through dlpack() or array()",
        lambda s: of_type(s, 4, 16).__arrow_c_schema__(),
    ),
    ("TypeError: cls must be Group or a subclass of it, got <class 'int'>", lambda s: s.stage._fetch_map(1, 0, int)),
]

ROWS = [*GROUPS]


@pytest.mark.parametrize(("text", "call"), ROWS, ids=names_of(ROWS))
def test_refusal(scene, text, call):
    check(text, call, scene)
