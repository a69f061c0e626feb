"""Groups as NumPy sees them: ``np.asarray(group)``, element types, arrays with one row per prim."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from conftest import address, needs_writable_imports

from ovstage import (
    DLDataType,
    DLDataTypeCode,
    DLTensor,
    ErrorCode,
    OrdinalRange,
    OvstageError,
    dltensor_to_numpy,
    make_dltensor,
)

NUMPY_2 = int(np.__version__.split(".")[0]) >= 2
needs_copy_keyword = pytest.mark.skipif(not NUMPY_2, reason="copy=False means something since NumPy 2")


# --- __array__ ---


@pytest.mark.parametrize("shape", [(4,), (4, 3), (4, 4, 4)])
def test_value_of_each_prim(column, shape):
    values = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    group = column(values).group()
    array = np.asarray(group)
    assert array.shape == (4,) if len(shape) == 1 else (4, -1)
    assert np.array_equal(array, values.reshape(array.shape))
    assert address(array) == address(group.array(0))
    assert not array.flags.writeable
    with pytest.raises(ValueError, match="WRITEABLE"):
        array.setflags(write=True)


@needs_copy_keyword
def test_copy_on_request_only(column):
    group = column(np.arange(4, dtype="f4")).group()
    assert address(np.asarray(group, copy=False)) == address(group.array(0))
    copy = np.array(group)
    copy[:] = 9
    assert group.array(0).tolist() == [0, 1, 2, 3]
    assert np.asarray(group, dtype="f4", copy=False).tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="float32 cannot be viewed as float64 without a copy"):
        np.asarray(group, dtype="f8", copy=False)


def test_other_dtype_is_a_copy(column):
    group = column(np.arange(4, dtype="f4")).group()
    array = np.asarray(group, dtype="i8")
    assert (array.dtype, array.tolist()) == (np.int64, [0, 1, 2, 3])
    array[:] = 9
    assert group.array(0).tolist() == [0, 1, 2, 3]


def test_arithmetic(column):
    group = column(np.arange(4, dtype="f4")).group()
    assert np.add(group, 1).tolist() == [1, 2, 3, 4]
    assert np.concatenate([group, group]).shape == (8,)


@pytest.mark.parametrize("values", [np.arange(4, dtype="f4"), np.arange(12, dtype="f4").reshape(4, 3)])
def test_values_are_in_the_order_of_the_prims(column, values):
    scattered = column(values)
    group = scattered.group(scattered.pick(3, 0, 2))
    array = np.asarray(group)
    assert np.array_equal(array, values[[3, 0, 2]])
    array[:] = 9
    assert np.array_equal(group.array(0).reshape(-1), values.reshape(-1))
    if NUMPY_2:
        with pytest.raises(ValueError, match="not in the order of its prims"):
            np.asarray(group, copy=False)


def test_mapped_values_can_be_written(column, stage):
    with (mapped := column(np.zeros((4, 3)))).map() as mapping:
        array = np.asarray(mapping.fetch_next())
        array[2] = 5
        del array
    stage.advance_write_floor(2).wait()
    assert np.asarray(mapped.group())[2].tolist() == [5, 5, 5]


def test_groups_without_one_array(column, stage):
    ragged = column([np.arange(n, dtype="i4") for n in (3, 2)], is_array=True)
    with pytest.raises(ValueError, match="one array per prim"):
        np.asarray(ragged.group())
    assert ragged.group().array(1).tolist() == [0, 1]
    single = column([np.arange(1, dtype="i4")], is_array=True)
    with pytest.raises(ValueError, match="one array per prim"):
        np.asarray(single.group())
    stage.delete_attributes(single.query, [single.token], 9).wait()
    stage.advance_write_floor(9).wait()
    with stage.read_attributes(single.query, [single.token], OrdinalRange.between(9, 9)) as read:
        (lost,) = read.groups()
    with lost, pytest.raises(ValueError, match="lost the attribute"):
        np.asarray(lost)


def test_released_group(column):
    group = column(np.zeros(2)).group()
    group.release()
    with pytest.raises(OvstageError) as caught:
        np.asarray(group)
    assert caught.value.code == ErrorCode.INVALID_HANDLE


def test_group_is_a_payload(column):
    """What is read can be written, without a detour."""
    group = column(np.arange(6, dtype="f8").reshape(2, 3)).group()
    assert np.asarray(column(group, rows=2).group()).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert np.asarray(column(group.dlpack(0), rows=2).group()).tolist() == [[0, 1, 2], [3, 4, 5]]


# --- one row per prim ---


def test_shaped_array(column):
    group = column(np.arange(12, dtype="f4").reshape(4, 3)).group()
    assert group.array(0, shaped=True).shape == (4, 3)
    assert address(group.array(0, shaped=True)) == address(group.array(0))
    assert column(np.zeros(4)).group().array(0, shaped=True).shape == (4, 1)


# --- element types ---

PLAIN = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]


@pytest.mark.parametrize("dtype", PLAIN)
@pytest.mark.parametrize("lanes", [1, 3])
def test_types_come_back_as_themselves(column, dtype, lanes):
    values = np.arange(2 * lanes).reshape(2, lanes).astype(dtype)
    group = column(values if lanes > 1 else values.reshape(-1)).group()
    for array in (group.array(0), np.asarray(group), dltensor_to_numpy(group.tensor(0))):
        assert array.dtype == values.dtype
        assert array.reshape(-1).tolist() == values.reshape(-1).tolist()
        assert address(array) == address(group.array(0))
        assert not array.flags.writeable
    assert np.from_dlpack(group.dlpack(0)).dtype == values.dtype


EXTENSIONS = [
    ("bfloat16", DLDataTypeCode.kDLBfloat, 16),
    ("float8_e3m4", DLDataTypeCode.kDLFloat8_e3m4, 8),
    ("float8_e4m3", DLDataTypeCode.kDLFloat8_e4m3, 8),
    ("float8_e4m3b11fnuz", DLDataTypeCode.kDLFloat8_e4m3b11fnuz, 8),
    ("float8_e4m3fn", DLDataTypeCode.kDLFloat8_e4m3fn, 8),
    ("float8_e4m3fnuz", DLDataTypeCode.kDLFloat8_e4m3fnuz, 8),
    ("float8_e5m2", DLDataTypeCode.kDLFloat8_e5m2, 8),
    ("float8_e5m2fnuz", DLDataTypeCode.kDLFloat8_e5m2fnuz, 8),
    ("float8_e8m0fnu", DLDataTypeCode.kDLFloat8_e8m0fnu, 8),
]


@pytest.mark.parametrize(("name", "code", "bits"), EXTENSIONS)
def test_types_of_ml_dtypes(column, name, code, bits):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    values = np.array([1, 2, 0.5, 4], np.float32).astype(getattr(ml_dtypes, name))
    group = column(values).group()
    assert group.tensor(0).dtype == DLDataType(code, bits, 1)
    for array in (group.array(0), np.asarray(group), dltensor_to_numpy(group.tensor(0))):
        assert array.dtype == values.dtype
        assert array.tobytes() == values.tobytes()
        assert address(array) == group.tensor(0).data
        assert not array.flags.writeable
    assert len(dltensor_to_numpy(make_dltensor(np.empty(0, "u1"), dtype=DLDataType(code, bits, 1)))) == 0
    again = DLTensor.from_dlpack(group.dlpack(0))
    assert again.dtype == DLDataType(code, bits, 1)


@pytest.mark.parametrize(("name", "code", "bits"), EXTENSIONS[:2])
def test_types_of_ml_dtypes_without_it(column, monkeypatch, name, code, bits):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    stored = np.arange(3).astype(f"u{bits // 8}")
    group = column(make_dltensor(stored, dtype=DLDataType(code, bits, 1)), rows=3).group()
    for decode in (lambda: group.array(0), lambda: np.asarray(group), lambda: dltensor_to_numpy(group.tensor(0))):
        with pytest.raises(ValueError, match=f"Unsupported DLDataType: NumPy has no {name} .*ml_dtypes.*dlpack"):
            decode()


# --- memory that nobody may write to ---


def test_descriptor_of_a_snapshot_decodes_read_only(column):
    view = dltensor_to_numpy(column(np.zeros(3)).group().tensor(0))
    with pytest.raises(ValueError, match="WRITEABLE"):
        view.setflags(write=True)


def test_descriptor_of_a_mapped_buffer_decodes_writable(column):
    with column(np.zeros(3)).map() as mapping:
        assert dltensor_to_numpy(mapping.fetch_next().tensor(0)).flags.writeable
        mapping.abort()


def test_descriptor_of_a_read_only_array_decodes_read_only():
    values = np.zeros(3)
    values.flags.writeable = False
    assert not dltensor_to_numpy(make_dltensor(values)).flags.writeable
    assert dltensor_to_numpy(make_dltensor(np.zeros(3))).flags.writeable


@needs_writable_imports
def test_writes_reach_a_map_through_dlpack(column, stage):
    with (mapped := column(np.zeros((4, 3)))).map() as mapping:
        np.from_dlpack(mapping.fetch_next().dlpack(0))[1] = 7
    stage.advance_write_floor(2).wait()
    assert mapped.group().array(0).reshape(-1).tolist() == [0, 0, 0, 7, 7, 7, 0, 0, 0, 0, 0, 0]


# --- what is read of NumPy arrays ---


@pytest.mark.parametrize(
    "source",
    [
        np.arange(12, dtype="f4").reshape(4, 3),
        np.asfortranarray(np.arange(12, dtype="f4").reshape(4, 3)),
        np.arange(24, dtype="f4").reshape(4, 6)[:, ::2],
        np.arange(12, dtype="f4").reshape(4, 3)[::-1],
        np.arange(12, dtype="f4").reshape(4, 3)[:, ::-1],
        np.arange(32, dtype="f4").reshape(8, 4)[2:6, 1:],
        np.broadcast_to(np.arange(3, dtype="f4"), (4, 3)),
        np.broadcast_to(np.float32(5), (4, 3)),
        np.lib.stride_tricks.as_strided(np.arange(12, dtype="f4"), (4, 1, 3), (12, 99999, 4)),
        np.lib.stride_tricks.as_strided(np.arange(3, dtype="f4"), (4, 3), (0, 4)),
    ],
    ids=["compact", "fortran", "strided", "reversed", "mirrored", "offset", "rows", "scalar", "odd", "zero stride"],
)
@pytest.mark.parametrize("protocol", ["buffer", "dlpack", "descriptor"])
@pytest.mark.parametrize("frozen", [False, True])
def test_any_memory_layout_gives_its_values(column, source, protocol, frozen):
    if frozen:
        source = source.view()
        source.flags.writeable = False
        if protocol == "dlpack" and not NUMPY_2:
            pytest.skip("NumPy 1 does not export read-only arrays")
    if protocol == "dlpack" and not source.flags.writeable and not NUMPY_2:
        pytest.skip("NumPy 1 does not export read-only arrays")
    expected = np.array(source).reshape(4, 3)
    payload = {
        "buffer": lambda: source,
        "dlpack": lambda: Producer(source),
        "descriptor": lambda: DLTensor.from_dlpack(Producer(source)) if NUMPY_2 else make_dltensor(source),
    }[protocol]()
    assert np.array_equal(np.asarray(column(payload, rows=4).group()), expected)


class Producer:
    """Nothing but the protocol."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("protocol", [lambda array: array, Producer])
def test_zero_dimensions_are_one_row(column, protocol):
    assert column(protocol(np.array(5.0)), rows=1).group().array(0).tolist() == [5]
    assert column(protocol(np.arange(3.0)[1:2].reshape(())), rows=1).group().array(0).tolist() == [1]
