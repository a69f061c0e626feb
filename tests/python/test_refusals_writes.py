"""What a write refuses, word for word."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from children import run_python
from refusals import Row, Scene, axes, check, names_of, tensor

import ovstage
from ovstage import AttributeSemantic, DLDataType, DLDevice, DLTensor, PrimMode, WriteDesc, make_dltensor

# --- what some rows need first ---


class Nullable:
    """Like a column of pandas that has NA where a number could be."""

    class dtype:
        na_value = None

    def isna(self) -> np.ndarray:
        return np.array([False, True])


KEPT = np.float32([8, 9])


def bare(
    data: int | None = KEPT.ctypes.data, shape: tuple[int, ...] = (2,), strides: Any = None, **fields: Any
) -> DLTensor:
    """Two float32 behind a descriptor that was filled in by hand: nobody knows how much memory there is."""
    tensor = DLTensor(data, DLDevice(1, 0), len(shape), DLDataType(2, 32, 1), axes(*shape))
    if strides is not None:
        tensor.strides = axes(*strides)
    for name, value in fields.items():
        setattr(tensor, name, value)
    return tensor


def written_without_numpy() -> None:
    program = """
import sys
sys.modules["numpy"] = None
import ovstage
with ovstage.Stage() as stage, stage.query() as query:
    try:
        stage.write_attribute(query, "mass", 1, [1.5], is_array=False)
    except TypeError as error:
        print(error, end="")
"""
    raise TypeError(run_python(program).stdout)


class Exporter:
    """On some device, and out of order."""

    def __init__(self, device: int) -> None:
        self.device = device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, **_: Any) -> Any:
        raise RuntimeError("out of order")


def below_a_delete(s: Scene) -> ovstage.Operation:
    s.stage.delete_attributes(s.query, ["mass"], 8).wait()
    return s.put(np.zeros(2, "i4"), ordinal=7)


# --- the rows ---

WRITES: list[Row] = [
    (
        'OvstageError: INVALID_ARGUMENT: attribute "mass": the tensor (shape (3,), float32) has 3 rows, but 2'
        " prims are to be written",
        lambda s: s.put(np.zeros(3, "f4")),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "point": the tensor (shape (6,), float32) has 6 rows, but '
        "2 prims are to be written; a flat buffer is not cut into tuples: pass shape (2, 3), or a dtype with "
        "3 lanes and shape (2,)",
        lambda s: s.put(np.zeros(6, "f4"), "point"),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "mass": float64 does not match the existing float32; convert the '
        'values, in NumPy by array.astype("float32"), or delete the attribute first to change its schema',
        lambda s: s.put(np.zeros(2, "f8")),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "point": float32x3 COLOR does not match the existing '
        "float32x3 POINT; delete the attribute first to change its schema",
        lambda s: s.put(np.zeros((2, 3), "f4"), "point", semantic=AttributeSemantic.COLOR),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "new": shape (2, 0): axis 1 is empty, so a row would have '
        "no lanes; only axis 0, the rows, may be 0",
        lambda s: s.put(np.zeros((2, 0), "f4"), "new"),
    ),
    (
        'OvstageError: NOT_SUPPORTED: attribute "new": shape (2, 256) of float32: the axes after the first '
        "fold into more than 255 lanes per row; write it as several attributes, or as an array attribute",
        lambda s: s.put(np.zeros((2, 256), "f4"), "new"),
    ),
    (
        "ValueError: tensors reaches over more than 2**63 bytes, but its backing buffer holds 8 bytes; make "
        "the descriptor anew with make_dltensor(array)",
        lambda s: s.put(tensor(strides=axes(2**61)), "new"),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "new": shape (-2,): axis 0 has the negative extent -2',
        lambda s: s.put(tensor(shape=axes(-2)), "new"),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "new": shape (1099511627776, 1099511627776) of float32 '
        "describes more than 2^63 bytes",
        lambda s: s.put(bare(shape=(2**40, 2**40)), "new"),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "new": data is NULL, but shape (2,) of float32 describes 8 bytes',
        lambda s: s.put(bare(data=None), "new"),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "new": tensors[0].data is 0x10, which is no address',
        lambda s: s.put(bare(data=16), "new"),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "new": strides (4611686018427387904,) over shape (2,) of '
        "float32 reach further than 2^63 bytes",
        lambda s: s.put(bare(strides=(2**62,)), "new"),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "new": data … with byte_offset 18446744073709551615, '
        "strides none and shape (2,) of float32 leaves the address space; strides count elements, not bytes",
        lambda s: s.put(bare(byte_offset=2**64 - 1), "new"),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "new": tensors[0].ndim is 65, expected 0 to 64',
        lambda s: s.put(tensor(ndim=65), "new"),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "new": tensors[0].shape is NULL with ndim 1',
        lambda s: s.put(tensor(shape=None), "new"),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "new": dtype float0 has 0 bits: an element needs a '
        "positive bit width",
        lambda s: s.put(tensor(dtype=DLDataType(2, 0, 1)), "new"),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "new": dtype float32x0 has 0 lanes: lanes must be in [1, 255]',
        lambda s: s.put(tensor(dtype=DLDataType(2, 32, 0)), "new"),
    ),
    (
        'OvstageError: NOT_SUPPORTED: attribute "new": dtype float32x256 has 256 lanes: lanes must be in [1, 255]',
        lambda s: s.put(bare(dtype=DLDataType(2, 32, 256)), "new"),
    ),
    (
        'OvstageError: NOT_SUPPORTED: attribute "new": dtype code 99 (32 bits) is unknown: expected an '
        "integer, float, bfloat, complex, bool or float8 code",
        lambda s: s.put(bare(dtype=DLDataType(99, 32, 1)), "new"),
    ),
    (
        'OvstageError: NOT_SUPPORTED: attribute "new": dtype uint4 has elements smaller than a byte, which '
        "columns do not store: convert it to a byte-sized type first",
        lambda s: s.put(tensor(dtype=DLDataType(1, 4, 1)), "new"),
    ),
    (
        'OvstageError: NOT_SUPPORTED: attribute "new": dtype opaque32 holds handles of another library, which'
        " columns do not store",
        lambda s: s.put(tensor(dtype=DLDataType(3, 32, 1)), "new"),
    ),
    (
        'OvstageError: NOT_SUPPORTED: attribute "new": dtype float24 is not stored: float elements have 16 or'
        " 32 or 64 bits",
        lambda s: s.put(tensor(dtype=DLDataType(2, 24, 1)), "new"),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "new": semantic 99 is unknown: expected 0 (NONE) to 15 (FRAME)',
        lambda s: s.put(np.zeros(2, "u8"), "new", semantic=99),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "new": semantic ASSET_PATH_ID needs uint64x2 elements '
        "(authored and resolved token), got uint64",
        lambda s: s.put(np.zeros(2, "u8"), "new", semantic=AttributeSemantic.ASSET_PATH_ID),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "new": semantic RELATIONSHIP_PATH_ID is an array attribute'
        " (target path): write it with is_array set",
        lambda s: s.put(np.zeros(2, "u8"), "new", semantic=AttributeSemantic.RELATIONSHIP_PATH_ID),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "new": semantic POINT needs numeric elements, got bool8',
        lambda s: s.put(np.zeros(2, "?"), "new", semantic=AttributeSemantic.POINT),
    ),
    (
        "ValueError: semantic must fit in int32, got 1099511627776",
        lambda s: s.put(np.zeros(2, "u8"), "new", semantic=2**40),
    ),
    (
        'OvstageError: NOT_SUPPORTED: attribute "mass": tensors[0].device is CUDA:3, which this build can\'t '
        "read: copy the tensor to the host first",
        lambda s: s.put(make_dltensor(np.zeros(2, "f4"), device_type=2, device_id=3)),
    ),
    (
        'OvstageError: NOT_SUPPORTED: attribute "usd-path" is derived from the prims and can\'t be written',
        lambda s: s.put(np.zeros(2, "f4"), "usd-path"),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "usd-prim-type" holds token ids: expected uint64 TOKEN_ID,'
        " got float32",
        lambda s: s.put(np.zeros(2, "f4"), "usd-prim-type"),
    ),
    (
        'OvstageError: WRITE_FLOOR_VIOLATION: attribute "mass": ordinal 5 is sealed, the write floor is 5; '
        "use an ordinal above it",
        lambda s: s.put(np.zeros(2, "f4"), ordinal=5),
    ),
    ("ValueError: ordinal must be non-negative, got -1", lambda s: s.put(np.zeros(2, "f4"), ordinal=-1)),
    (
        "ValueError: ordinal must fit in uint64, got 18446744073709551616",
        lambda s: s.put(np.zeros(2, "f4"), ordinal=2**64),
    ),
    ("TypeError: ordinal must be an int, got 1.0 (float)", lambda s: s.put(np.zeros(2, "f4"), ordinal=1.0)),
    (
        "OvstageError: INVALID_ARGUMENT: attribute: there is neither a token nor a name, expected one of them",
        lambda s: s.put(np.zeros(2, "f4"), ""),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute: Token string contains embedded NUL (entry 0, "a\\x00b"): '
        "remove the NUL byte",
        lambda s: s.put(np.zeros(2, "f4"), "a\0b"),
    ),
    (
        "OvstageError: INVALID_ARGUMENT: attribute: 1152921504606846976 is not a token of this stage's "
        "dictionary; intern the name first",
        lambda s: s.put(np.zeros(2, "f4"), 2**60),
    ),
    (
        "TypeError: attribute must be an int (a token) or a str (a name), got None (NoneType)",
        lambda s: s.put(np.zeros(2, "f4"), None),
    ),
    (
        "OvstageError: PRIM_NOT_FOUND: prim_mode INSERT: prim /World/Prim0 already exists; nothing was written",
        lambda s: s.put(np.zeros(2, "f4"), prim_mode=PrimMode.INSERT),
    ),
    (
        "ValueError: prim_mode must be a valid PrimMode (UPSERT=0, INSERT=1, UPDATE=2, REQUIRE=3), got 7",
        lambda s: s.put(np.zeros(2, "f4"), prim_mode=7),
    ),
    (
        "TypeError: prim_mode must be an int, got 'UPSERT' (str); write PrimMode.UPSERT",
        lambda s: s.put(np.zeros(2, "f4"), prim_mode="UPSERT"),
    ),
    (
        "TypeError: semantic must be an int, got 'point' (str); write AttributeSemantic.POINT",
        lambda s: s.put(np.zeros(2, "f4"), semantic="point"),
    ),
    (
        "TypeError: semantic must be an int, got 'xyz' (str); write a member of AttributeSemantic",
        lambda s: s.put(np.zeros(2, "f4"), semantic="xyz"),
    ),
    (
        "TypeError: query must be a Query, got '/World/Prim0' (str); make one with stage.query_from_path_list(...)",
        lambda s: s.stage.write_attribute("/World/Prim0", "mass", 6, np.zeros(1, "f4"), is_array=False),
    ),
    (
        "ValueError: tensors is a list of 2 tensors, got [1.0, 2.0] (list); for one value per prim pass one array, "
        "np.float32([...])",
        lambda s: s.put([1.0, 2.0]),
    ),
    (
        "ValueError: tensors is a list of 2 tensors, got [True, False] (list); for one value per prim pass one array, "
        "np.bool_([...])",
        lambda s: s.put([True, False]),
    ),
    (
        "ValueError: tensors has missing values (NA), which are no values: fill them (fillna), and to leave their "
        "prims alone pass mask=values.notna() too",
        lambda s: s.put(Nullable()),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "mass": the tensor (shape (), float32) has 1 rows, but 2 prims are '
        "to be written; for one value for all prims pass an index_map of 2 zeros (np.zeros(2, np.uint32)), or a row "
        "per prim (np.full(2, value, dtype))",
        lambda s: s.put(np.float32(5)),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "point": float32 does not match the existing float32x3 POINT; pass '
        "rows of 3 values, shape (n, 3), or delete the attribute first to change its schema",
        lambda s: s.put(np.zeros(2, "f4"), "point"),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "runs": int32x3[] does not match the existing int32[]; pass arrays '
        "with lanes=1, or delete the attribute first to change its schema",
        lambda s: s.put([np.zeros((2, 3), "i4")] * 2, "runs", is_array=True, lanes=3),
    ),
    (
        "TypeError: is_array must be a bool: True for an array per prim, False for one value per prim; got 1 (int)",
        lambda s: s.put(np.zeros(2, "f4"), is_array=1),
    ),
    (
        "TypeError: transfer must be a bool: True gives the memory of the tensors away, False has it copied; "
        "got 1 (int)",
        lambda s: s.put(np.zeros(2, "f4"), transfer=1),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "mass": a fixed column takes exactly one tensor, got 2; '
        "set is_array for one array per prim",
        lambda s: s.put([np.zeros(1, "f4"), np.zeros(1, "f4")]),
    ),
    ("ValueError: tensors must have at least one entry, got an empty list", lambda s: s.put([])),
    (
        "ValueError: tensors has an unsupported dtype: text is no tensor, got 'text' (str); for texts pass a list of "
        'them to Stage.write with type_name="string" or "token", for the bytes of a string '
        "numpy.frombuffer(text.encode(), dtype=numpy.uint8), for a token PathDictionary.intern_token(text)",
        lambda s: s.put("text"),
    ),
    (
        "ValueError: tensors has dtype >f4, which is not in this machine's byte order: pass "
        "array.astype(array.dtype.newbyteorder('='))",
        lambda s: s.put(np.zeros(2, ">f4")),
    ),
    (
        "ValueError: Unsupported numpy dtype: tensors has dtype object; expected bool, an integer, float or "
        "complex type, bfloat16 or a float8 type",
        lambda s: s.put(np.array([None, 1])),
    ),
    (
        "ValueError: Unsupported numpy dtype: tensors has dtype datetime64[s]; expected bool, an integer, "
        "float or complex type, bfloat16 or a float8 type",
        lambda s: s.put(np.zeros(2, "M8[s]")),
    ),
    (
        "TypeError: tensors must be an array, a DLPack producer or a DLTensor, or a list of them, got <object"
        " object at …> (object)",
        lambda s: s.put(object()),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "mass": count is 3, but the query lists 2 prims; pass at '
        "most that many, or leave count out for all",
        lambda s: s.put(np.zeros(3, "f4"), count=3),
    ),
    (
        "ValueError: count must be non-zero, got count=0; omit it to write every prim of the query",
        lambda s: s.put(np.zeros(2, "f4"), count=0),
    ),
    ("ValueError: count must be non-negative, got -1", lambda s: s.put(np.zeros(2, "f4"), count=-1)),
    ("ValueError: count must fit in uint32, got 4294967296", lambda s: s.put(np.zeros(2, "f4"), count=2**32)),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "mass": index_map[1] is 9, which references a source row '
        "outside the transported row count 2",
        lambda s: s.put(np.zeros(2, "f4"), index_map=[0, 9]),
    ),
    (
        "ValueError: count must be non-zero when index_map is supplied, got an index_map without entries",
        lambda s: s.put(np.zeros(2, "f4"), index_map=[]),
    ),
    (
        "ValueError: count must be non-zero when index_map is supplied, got count=0",
        lambda s: s.put(np.zeros(2, "f4"), index_map=[0, 1], count=0),
    ),
    (
        "ValueError: index_map must have one entry per logical element: count is 2, index_map has 1 entries",
        lambda s: s.put(np.zeros(2, "f4"), index_map=[0], count=2),
    ),
    (
        "ValueError: index_map and mask are mutually exclusive: index_map chooses source rows, mask chooses targets",
        lambda s: s.put(np.zeros(2, "f4"), index_map=[0, 1], mask=[3], count=2),
    ),
    ("ValueError: index_map[1] must be non-negative, got -1", lambda s: s.put(np.zeros(2, "f4"), index_map=[0, -1])),
    (
        "ValueError: index_map[1] must fit in uint32, got 4294967296",
        lambda s: s.put(np.zeros(2, "f4"), index_map=[0, 2**32]),
    ),
    (
        "ValueError: index_map entries must be non-negative, got -1 at position 1",
        lambda s: s.put(np.zeros(2, "f4"), index_map=np.int64([0, -1])),
    ),
    (
        "ValueError: index_map entries must fit in uint32, got 4294967296 at position 1",
        lambda s: s.put(np.zeros(2, "f4"), index_map=np.int64([0, 2**32])),
    ),
    (
        "TypeError: index_map entries must be ints (got '1' (str) at position 1)",
        lambda s: s.put(np.zeros(2, "f4"), index_map=[0, "1"]),
    ),
    (
        "TypeError: index_map entries must be ints (a list or a 1-D integer array of them), got array([0., "
        "1.], dtype=float32) (ndarray)",
        lambda s: s.put(np.zeros(2, "f4"), index_map=np.float32([0, 1])),
    ),
    (
        "TypeError: index_map entries must be ints (a list or a 1-D integer array of them), got 7 (int)",
        lambda s: s.put(np.zeros(2, "f4"), index_map=7),
    ),
    (
        "ValueError: count is required when mask is supplied as words of 64 bits, which do not say how many prims "
        "they are for; for one truth value per prim pass dtype bool, such as numpy.asarray(mask, dtype=bool)",
        lambda s: s.put(np.zeros(2, "f4"), mask=[3]),
    ),
    (
        "ValueError: count must be non-zero when mask is supplied, got a mask of no prims",
        lambda s: s.put(np.zeros(2, "f4"), mask=[]),
    ),
    (
        "ValueError: mask must have one truth value per prim: the query lists 2 prims, mask has 3; for the first "
        "prims alone pass count too",
        lambda s: s.put(np.zeros(2, "f4"), mask=[True, False, True]),
    ),
    (
        "ValueError: mask must have one truth value per logical element: count is 1, mask has 2; leave count out for "
        "all prims of the query",
        lambda s: s.put(np.zeros(1, "f4"), mask=[True, False], count=1),
    ),
    (
        "TypeError: mask must be truth values, one per prim, or words of 64 bits (a list or a 1-D array of bool or of "
        "an integer type), got array([1., 0.], dtype=float32) (ndarray)",
        lambda s: s.put(np.zeros(2, "f4"), mask=np.float32([1, 0])),
    ),
    (
        "TypeError: mask must be truth values (got 0 (int) at position 1)",
        lambda s: s.put(np.zeros(2, "f4"), mask=[True, 0]),
    ),
    (
        "TypeError: mask words must be ints (got True (bool) at position 1); a truth value is no number",
        lambda s: s.put(np.zeros(2, "f4"), mask=[0, True]),
    ),
    (
        "TypeError: mask must be a list of numbers, got {0: True} (dict), which is a mapping",
        lambda s: s.put(np.zeros(2, "f4"), mask={0: True}),
    ),
    (
        "TypeError: index_map must be a list of numbers, got {1} (set), which has no order",
        lambda s: s.put(np.zeros(2, "f4"), index_map={1}),
    ),
    (
        "TypeError: index_map entries must be ints (got True (bool) at position 0); a truth value per prim is a "
        "mask: pass mask=, or the row numbers, numpy.flatnonzero(values)",
        lambda s: s.put(np.zeros(2, "f4"), index_map=[True, False]),
    ),
    (
        "TypeError: index_map entries must be ints (a list or a 1-D integer array of them), got truth values, "
        "array([ True, False]) (ndarray); a truth value per prim is a mask: pass mask=, or the row numbers, "
        "numpy.flatnonzero(values)",
        lambda s: s.put(np.zeros(2, "f4"), index_map=np.array([True, False])),
    ),
    (
        "ValueError: mask is on a device (DLPack type 2), where this build cannot read it: pass a copy in host memory",
        lambda s: s.put(np.zeros(2, "f4"), mask=Exporter(device=2)),
    ),
    (
        "TypeError: mask cannot be read through __dlpack__: out of order",
        lambda s: s.put(np.zeros(2, "f4"), mask=Exporter(device=1)),
    ),
    (
        "ValueError: tensors is a masked array (numpy.ma) that hides elements, which nothing here could keep hidden: "
        "pass array.filled(value), or, to leave prims of a write alone, array.data with mask=",
        lambda s: s.put(np.ma.masked_array(np.float32([1, 2]), [True, False])),
    ),
    (
        "ValueError: count must be non-zero when mask is supplied, got count=0",
        lambda s: s.put(np.zeros(2, "f4"), mask=[3], count=0),
    ),
    (
        "ValueError: mask must have one bit per logical element, in words of 64 bits: expected 2 for count=65, got 1; "
        "for one truth value per prim pass dtype bool, such as numpy.asarray(mask, dtype=bool)",
        lambda s: s.put(np.zeros(65, "f4"), mask=[3], count=65),
    ),
    (
        'OvstageError: NOT_SUPPORTED: attribute "mass": cuda_sync.wait_event is 0x1, but CUDA is not loaded; '
        "pass 0 for host data",
        lambda s: s.put(np.zeros(2, "f4"), cuda_event=1),
    ),
    ("ValueError: cuda_stream must be non-negative, got -1", lambda s: s.put(np.zeros(2, "f4"), cuda_stream=-1)),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "runs": there are 3 tensors, one per prim, but 2 prims are'
        " to be written",
        lambda s: s.put([np.zeros(1, "i4")] * 3, "runs", is_array=True),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "runs": tensor 1 is int64, but tensor 0 is int32; all rows'
        " have one element type",
        lambda s: s.put([np.zeros(1, "i4"), np.zeros(1, "i8")], "runs", is_array=True),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "runs": a packed payload of 3 elements does not divide '
        "evenly across 2 source row(s) (from the number of prims to be written); pass one tensor per row",
        lambda s: s.put(np.zeros(3, "i4"), "runs", is_array=True),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "runs": index_map[1] is 2, which references a source row '
        "outside the transported row count 2",
        lambda s: s.put([np.zeros(1, "i4"), np.zeros(1, "i4")], "runs", is_array=True, index_map=[0, 2]),
    ),
    (
        "ValueError: tensors cannot be transferred: this DLTensor does not own its memory, whose owner could "
        "free it; pass the array itself, or make_dltensor(array)",
        lambda s: s.put(bare(), transfer=True),
    ),
    (
        "ValueError: tensors reaches over bytes 0 to 12, but its backing buffer holds 8 bytes; make the "
        "descriptor anew with make_dltensor(array)",
        lambda s: s.put(tensor(shape=axes(3))),
    ),
    (
        "ValueError: tensors reaches over more than 2**63 bytes, but its backing buffer holds 8 bytes; make "
        "the descriptor anew with make_dltensor(array)",
        lambda s: s.put(tensor(shape=axes(2**62, 2**62), ndim=2)),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "mass" occurs twice in one batch, perhaps under an alias; '
        "write each attribute once",
        lambda s: s.stage.write_attributes(s.query, [WriteDesc("mass", np.zeros(2, "f4"), False)] * 2, 6),
    ),
    (
        "TypeError: writes[0] must be a WriteDesc, got ('mass', array([0., 0.], dtype=float32)) (tuple)",
        lambda s: s.stage.write_attributes(s.query, [("mass", np.zeros(2, "f4"))], 6),
    ),
    (
        "TypeError: writes must be a sequence of WriteDesc, got 5 (int)",
        lambda s: s.stage.write_attributes(s.query, 5, 6),
    ),
    (
        "OvstageError: INVALID_ARGUMENT: writes[0].attribute: there is neither a token nor a name, expected "
        "one of them",
        lambda s: s.stage.write_attributes(s.query, [WriteDesc("", np.zeros(2, "f4"), False)], 6),
    ),
    (
        'ValueError: writes[0] ("mass"): tensors has dtype >f4, which is not in this machine\'s byte order: '
        "pass array.astype(array.dtype.newbyteorder('='))",
        lambda s: s.stage.write_attributes(s.query, [WriteDesc("mass", np.zeros(2, ">f4"), False)], 6),
    ),
    (
        "OvstageError: INVALID_HANDLE: query handle 1152921504606846976 is unknown or was released",
        lambda s: s.stage.write_attribute(2**60, "mass", 6, np.zeros(2, "f4"), is_array=False),
    ),
    (
        "TypeError: query must be a Query, got PathList(…, owned); make one with stage.query_from_path_list(...)",
        lambda s: s.stage.write_attribute(s.list, "mass", 6, np.zeros(2, "f4"), is_array=False),
    ),
    (
        "TypeError: write_attribute() missing required argument: 'tensors'",
        lambda s: s.stage.write_attribute(s.query, "mass", 6),
    ),
    (
        "TypeError: write_attribute() takes at most 4 positional arguments (6 given)",
        lambda s: s.stage.write_attribute(s.query, "mass", 6, np.zeros(2), False, "extra"),
    ),
    (
        "TypeError: write_attribute() got an unexpected keyword argument 'is_arry'",
        lambda s: s.stage.write_attribute(s.query, "mass", 6, np.zeros(2), is_array=False, is_arry=True),
    ),
    (
        "TypeError: write_attribute() got multiple values for argument 'ordinal'",
        lambda s: s.stage.write_attribute(s.query, "mass", 6, np.zeros(2), is_array=False, ordinal=7),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "mass": int32 at ordinal 7 lies below a delete of the '
        "float32; write it above the delete",
        lambda s: below_a_delete(s),
    ),
]

SHORT_FORM: list[Row] = [
    (
        "TypeError: name must be an int (a token) or a str (a name), got 1.5 (float)",
        lambda s: s.stage.write(s.query, 1.5, 6, np.zeros(1)),
    ),
    (
        "TypeError: name must be an int (a token) or a str (a name), got 1.5 (float)",
        lambda s: s.stage.map(s.query, 1.5, 6),
    ),
    (
        "TypeError: name must be an int (a token) or a str (a name), got 1.5 (float)",
        lambda s: s.stage.get("/A", 1.5),
    ),
    (
        "TypeError: attrs[0] must be an int (a token) or a str (a name), got 1.5 (float)",
        lambda s: s.stage.delete(["/A"], [1.5], 6),
    ),
    (
        "ValueError: values must have at least one entry, got an empty list",
        lambda s: s.stage.write(s.query, "mass", 6, []),
    ),
    (
        "ValueError: values is a list of 2 tensors, got [1.0, 2.0] (list); for one value per prim pass one array, "
        "np.float32([...])",
        lambda s: s.stage.write(s.query, "mass", 6, [1.0, 2.0]),
    ),
    (
        "TypeError: values[1] must be an array, a DLPack producer or a DLTensor, or a list of them, got None "
        "(NoneType)",
        lambda s: s.stage.write(s.query, "mass", 6, [np.zeros(1), None], is_array=True),
    ),
]

WITHOUT_NUMPY: list[Row] = [
    (
        "ValueError: tensors must be compact, with trailing axes that make tuples of lanes=3, such as shape (n, 3), "
        "got shape (2, 4); for other strides pass numpy.ascontiguousarray(array)",
        lambda s: s.put(np.zeros((2, 4), "f4"), lanes=3),
    ),
    ("TypeError: tensors[0] is no tensor, and making one of it needs NumPy", lambda s: written_without_numpy()),
]

ROWS = [*WRITES, *SHORT_FORM, *WITHOUT_NUMPY]


@pytest.mark.parametrize(("text", "call"), ROWS, ids=names_of(ROWS))
def test_refusal(scene, text, call):
    check(text, call, scene)
