"""Descriptors, NumPy on either side of them, and exports that a caller builds. No stage is needed for any of it."""

from __future__ import annotations

import ctypes
import gc
import sys

import numpy as np
import pytest
from conftest import address, needs_writable_imports

import ovstage
from ovstage import (
    DLDataType,
    DLDataTypeCode,
    DLDevice,
    DLDeviceType,
    DLTensor,
    ManagedDLTensor,
    dltensor_to_numpy,
    make_dltensor,
    numpy_to_dldatatype,
)

FLOAT3 = DLDataType(code=DLDataTypeCode.kDLFloat, bits=32, lanes=3)


class Producer:
    """Any object of another library: nothing but the protocol."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def raw_tensor(array: np.ndarray, dtype: DLDataType, shape: tuple[int, ...]) -> DLTensor:
    """A descriptor that nothing but its fields describes, as a C caller would fill it."""
    extents = np.array(shape, dtype=np.int64)
    tensor = DLTensor()
    tensor.data = address(array)
    tensor.device = DLDevice(DLDeviceType.kDLCPU, 0)
    tensor.dtype = dtype
    tensor.ndim = len(shape)
    tensor.shape = ctypes.cast(address(extents), ctypes.POINTER(ctypes.c_int64))
    tensor.strides = None
    tensor.byte_offset = 0
    tensor._shape_storage = extents
    return tensor


# --- structures ---


def test_structures_have_the_c_layout():
    assert ctypes.sizeof(DLTensor) == 48
    fields = ("data", "device", "ndim", "dtype", "shape", "strides", "byte_offset")
    assert [getattr(DLTensor, field).offset for field in fields] == [0, 8, 16, 20, 24, 32, 40]


def test_structures_can_be_built_field_by_field():
    values = np.float32([1, 2])
    tensor = raw_tensor(values, DLDataType(2, 32, 1), (2,))
    assert int(tensor.data) == address(values)
    assert int(tensor.byte_offset) == 0
    assert not tensor.strides
    assert tensor.device.device_type.value == DLDeviceType.kDLCPU
    tensor.dtype.lanes = 255
    assert tensor.dtype.lanes == 255


def test_empty_descriptor_has_no_shape():
    assert DLTensor().shape_tuple == ()
    assert DLTensor().data is None


def test_data_type_wraps_as_a_c_field_does():
    assert DLDataType(code=2, bits=288, lanes=65537) == DLDataType(2, 32, 1)
    assert DLDataType(2, 32, -1).lanes == 65535


def test_types_and_devices_are_equal_and_hash_by_value():
    assert DLDataType(2, 32, 3) == FLOAT3
    assert DLDataType(2, 32, 1) != FLOAT3
    assert len({DLDataType(2, 32, 3), FLOAT3}) == 1
    assert DLDevice(DLDeviceType.kDLCUDA, 1) == DLDevice(2, 1)
    assert DLDevice(1, 0) != DLDevice(2, 0)
    assert len({DLDevice(1, 0), DLDevice(1, 0)}) == 1
    assert DLDevice(1, 0).device_type == DLDeviceType.kDLCPU
    assert FLOAT3 != "float32x3"


def test_representations_can_be_read():
    assert repr(FLOAT3) == "DLDataType(code=2, bits=32, lanes=3)"
    assert repr(DLDevice(2, 1)) == "DLDevice(CUDA, 1)"
    assert [str(DLDeviceType(n)) for n in (1, 2, 3, 13, 9)] == ["CPU", "CUDA", "CUDAHost", "CUDAManaged", "Device<9>"]
    assert "shape=(2,)" in repr(make_dltensor(np.float32([1, 2])))
    assert repr(DLTensor()).startswith("DLTensor(shape=(), ")


# --- data types ---


@pytest.mark.parametrize("lanes", [1, 3, 255])
def test_lanes_that_can_be_transported(lanes):
    assert numpy_to_dldatatype(np.float32, lanes) == DLDataType(2, 32, lanes)


def test_one_lane_is_the_default():
    assert numpy_to_dldatatype(np.float32) == DLDataType(2, 32, 1)


@pytest.mark.parametrize(
    ("spelling", "code", "bits"),
    [
        (np.float32, DLDataTypeCode.kDLFloat, 32),
        (np.float64, DLDataTypeCode.kDLFloat, 64),
        (np.int32, DLDataTypeCode.kDLInt, 32),
        (np.uint8, DLDataTypeCode.kDLUInt, 8),
        (np.bool_, DLDataTypeCode.kDLBool, 8),
        ("f4", DLDataTypeCode.kDLFloat, 32),
        (float, DLDataTypeCode.kDLFloat, 64),
        ("float32", DLDataTypeCode.kDLFloat, 32),
        (np.dtype("float32"), DLDataTypeCode.kDLFloat, 32),
        (np.float16, DLDataTypeCode.kDLFloat, 16),
        (np.int64, DLDataTypeCode.kDLInt, 64),
        (np.uint64, DLDataTypeCode.kDLUInt, 64),
    ],
)
def test_dtype_spellings(spelling, code, bits):
    assert numpy_to_dldatatype(spelling) == DLDataType(code, bits, 1)


@pytest.mark.parametrize(
    "dtype",
    [np.dtype([("a", "f4"), ("b", "f4")]), np.complex128, object(), None, ">f4", "M8[s]", "U4", object, np.longdouble],
    ids=str,
)
def test_dtypes_that_cannot_be_transported(dtype):
    with pytest.raises(ValueError, match="Unsupported numpy dtype"):
        numpy_to_dldatatype(dtype)


@pytest.mark.parametrize("lanes", [-1, 0, 256, 65536])
def test_lanes_out_of_range(lanes):
    with pytest.raises(ValueError, match=rf"lanes must be in \[1, 255\], got {lanes}"):
        numpy_to_dldatatype(np.float32, lanes)


@pytest.mark.parametrize("lanes", [1.5, "3", None])
def test_lanes_of_a_wrong_type(lanes):
    with pytest.raises(TypeError):
        numpy_to_dldatatype(np.float32, lanes)


# --- describing NumPy arrays ---


def test_contiguous_array_is_described_where_it_lies():
    values = np.float32([1, 2, 3])
    tensor = make_dltensor(values)
    assert tensor.data == address(values)
    assert (tensor.shape_tuple, tensor.ndim, tensor.dtype) == ((3,), 1, DLDataType(2, 32, 1))
    assert not tensor.strides
    assert dltensor_to_numpy(tensor).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("array", "flat"),
    [
        (np.asfortranarray(np.arange(6, dtype="f4").reshape(2, 3)), [0, 1, 2, 3, 4, 5]),
        (np.arange(6, dtype="i4")[::2], [0, 2, 4]),
        (np.arange(3, dtype="i4")[::-1], [2, 1, 0]),
        (np.broadcast_to(np.uint8(7), (3,)), [7, 7, 7]),
        (np.array(5.0), [5]),
        (np.empty((0, 3), "f4"), []),
        (np.array([True, False]), [True, False]),
        (np.float16([0.5, 2]), [0.5, 2]),
        ([1.5, 2.5], [1.5, 2.5]),
        (7, [7]),
    ],
    ids=["fortran", "strided", "reversed", "broadcast", "0-d", "empty", "bool", "half", "list", "scalar"],
)
def test_any_layout_keeps_its_values(array, flat):
    assert dltensor_to_numpy(make_dltensor(array)).tolist() == flat


def test_zero_dimensions_become_one_row():
    assert make_dltensor(np.array(5.0)).shape_tuple == (1,)


def test_readonly_array_is_a_source_like_any_other():
    values = np.float32([1, 2])
    values.flags.writeable = False
    assert make_dltensor(values).data == address(values)


@pytest.mark.parametrize(
    "array", [np.zeros(2, ">f4"), np.zeros(2, "c8"), np.zeros(2, "f4,f4"), np.array([None]), np.array("text")]
)
def test_arrays_that_cannot_be_described(array):
    with pytest.raises(ValueError, match="Unsupported numpy dtype"):
        make_dltensor(array)


def test_lanes_describe_a_flat_array_and_flatten_on_decode():
    values = np.arange(6, dtype="f4")
    tensor = make_dltensor(values, dtype=FLOAT3, shape=[2])
    assert (tensor.shape_tuple, tensor.dtype) == ((2,), FLOAT3)
    assert dltensor_to_numpy(tensor).tolist() == values.tolist()


def test_overrides_are_judged():
    values = np.arange(6, dtype="f4")
    assert make_dltensor(values, shape=[2, 3], ndim=1).shape_tuple == (2,)
    with pytest.raises(ValueError, match=r"ndim 3 exceeds len\(shape\), which is 2"):
        make_dltensor(values, shape=[2, 3], ndim=3)
    with pytest.raises(ValueError, match="shorter than ndim"):
        make_dltensor(values, shape=[2, 3], strides=[1])
    with pytest.raises(TypeError, match="dtype must be a DLDataType"):
        make_dltensor(values, dtype=np.float32)
    with pytest.raises(TypeError):
        make_dltensor(values, shape=["2"])
    with pytest.raises(TypeError):
        make_dltensor(values, device_type="cpu")


@pytest.mark.parametrize(
    ("overrides", "error", "text"),
    [
        (
            {"shape": [3, 200]},
            ValueError,
            r"shape \(3, 200\) .* bytes 0 to 2400, but its backing buffer holds 24 bytes",
        ),
        ({"shape": [2], "strides": [9]}, ValueError, r"strides \(9,\) .* bytes 0 to 40"),
        ({"shape": [2], "strides": [-1]}, ValueError, "bytes -4 to 4"),
        ({"dtype": FLOAT3}, ValueError, "bytes 0 to 72"),
        ({"shape": [-1]}, ValueError, "shape entries must be non-negative, got -1 at position 0"),
        ({"shape": [1, 2**63]}, ValueError, "shape entries must fit in int64, got 9223372036854775808 at position 1"),
        ({"shape": [1], "strides": [2**63]}, ValueError, "strides entries must fit in int64"),
        ({"shape": "ab"}, TypeError, "shape entries must be integers, got 'ab'"),
        ({"shape": [2.0]}, TypeError, r"shape entries must be integers, got \[2.0\]"),
        ({"shape": 6}, TypeError, "shape entries must be integers, got 6"),
        ({"shape": [1], "strides": [1.0]}, TypeError, "strides entries must be integers"),
    ],
)
def test_layout_of_an_array_stays_within_it(overrides, error, text):
    with pytest.raises(error, match=text):
        make_dltensor(np.zeros(6, "f4"), **overrides)


def test_layouts_that_fit_exactly():
    values = np.arange(6, dtype="f4")
    assert make_dltensor(values, shape=[2, 10**9], ndim=1).ndim == 1
    assert make_dltensor(values, shape=[0, 10**9]).shape_tuple == (0, 10**9)
    assert dltensor_to_numpy(make_dltensor(values, shape=[2], strides=[5])).tolist() == [0, 5]
    assert make_dltensor(np.zeros(1, "u1"), dtype=DLDataType(DLDataTypeCode.kDLUInt, 4, 1), shape=[2]).ndim == 1


@pytest.mark.parametrize("wrong", [None, "ab", b"ab"])
def test_what_is_no_array_is_named(wrong):
    with pytest.raises(TypeError, match="array must be an array, got"):
        make_dltensor(wrong)


def test_only_descriptors_are_decoded():
    with pytest.raises(TypeError, match=r"tensor must be a DLTensor, got 5 \(int\)"):
        dltensor_to_numpy(5)


@pytest.mark.parametrize("lanes", [0, 256, 65535])
def test_explicit_lanes_out_of_range(lanes):
    with pytest.raises(ValueError, match=r"lanes must be in \[1, 255\]"):
        make_dltensor(np.float32([1]), dtype=DLDataType(code=2, bits=32, lanes=lanes))


def test_descriptor_keeps_its_array_and_nothing_else_does():
    values = np.float32([1, 2])
    before = sys.getrefcount(values)
    tensor = make_dltensor(values)
    assert sys.getrefcount(values) == before + 1
    del tensor
    assert sys.getrefcount(values) == before


# --- decoding ---


def test_view_of_a_temporary_descriptor_keeps_the_memory():
    views = [dltensor_to_numpy(make_dltensor(np.full(1000, i, "i8"))) for i in range(50)]
    gc.collect()
    assert all((view == i).all() for i, view in enumerate(views))


def test_strides_are_honoured():
    values = np.arange(12, dtype="f4").reshape(3, 4)
    every_second = make_dltensor(values, shape=[6], strides=[2])
    assert dltensor_to_numpy(every_second).tolist() == [0, 2, 4, 6, 8, 10]
    assert address(dltensor_to_numpy(every_second)) == address(values)
    transposed = make_dltensor(values, shape=[4, 3], strides=[1, 4])
    assert dltensor_to_numpy(transposed).tolist() == values.T.reshape(-1).tolist()
    two_lanes = make_dltensor(values, dtype=DLDataType(2, 32, 2), shape=[3], strides=[2])
    assert dltensor_to_numpy(two_lanes).tolist() == [0, 1, 4, 5, 8, 9]


@pytest.mark.parametrize("strides", [None, [1], [2]])
def test_readonly_view_cannot_be_made_writable(strides):
    tensor = make_dltensor(np.arange(4, dtype="f4"), shape=[2], strides=strides)
    view = dltensor_to_numpy(tensor, readonly=True)
    assert not view.flags.writeable
    with pytest.raises(ValueError, match="WRITEABLE"):
        view.setflags(write=True)


def test_readonly_copy_of_gaps_cannot_be_made_writable():
    transposed = make_dltensor(np.arange(4, dtype="f4"), shape=[2, 2], strides=[1, 2])
    view = dltensor_to_numpy(transposed, readonly=True)
    assert view.tolist() == [0, 2, 1, 3]
    with pytest.raises(ValueError, match="WRITEABLE"):
        view.setflags(write=True)


def test_readonly_empty_view_cannot_be_made_writable():
    view = dltensor_to_numpy(make_dltensor(np.empty(0, "f4")), readonly=True)
    assert (view.shape, view.dtype, view.flags.writeable) == ((0,), np.float32, False)
    with pytest.raises(ValueError, match="WRITEABLE"):
        view.setflags(write=True)


def test_writable_view_writes_through():
    values = np.float32([1, 2])
    dltensor_to_numpy(make_dltensor(values))[:] = 5
    assert values.tolist() == [5, 5]


def test_byte_offset_is_honoured_and_bounded():
    values = np.arange(4, dtype="f4")
    tensor = make_dltensor(values, shape=[2])
    tensor.byte_offset = 8
    assert dltensor_to_numpy(tensor).tolist() == [2, 3]
    tensor.byte_offset = 12
    with pytest.raises(ValueError, match="its backing buffer holds 16 bytes"):
        dltensor_to_numpy(tensor)


@pytest.mark.parametrize(("shape", "strides"), [([5], None), ([2], [4]), ([2], [-1]), ([2, 3], [1, 2])])
def test_view_beyond_the_array_is_refused(shape, strides):
    with pytest.raises(ValueError, match="backing buffer holds"):
        dltensor_to_numpy(make_dltensor(np.arange(4, dtype="f4"), shape=shape, strides=strides))


def test_view_beyond_what_a_producer_gave_is_refused():
    tensor = DLTensor.from_dlpack(Producer(np.float32([1])))
    tensor.dtype.lanes = 255
    with pytest.raises(ValueError, match="backing buffer holds"):
        dltensor_to_numpy(tensor)


@pytest.mark.parametrize("lanes", [0, 256, 65535])
def test_raw_descriptor_with_lanes_out_of_range(lanes):
    values = np.zeros(1, "f4")
    with pytest.raises(ValueError, match=r"lanes must be in \[1, 255\]"):
        dltensor_to_numpy(raw_tensor(values, DLDataType(2, 32, lanes), (1,)))


def test_raw_descriptor_with_the_most_lanes():
    values = np.arange(255, dtype="f4")
    assert len(dltensor_to_numpy(raw_tensor(values, DLDataType(2, 32, 255), (1,)))) == 255


def test_scalar_descriptor_is_one_row():
    values = np.float32([1, 2, 3])
    tensor = raw_tensor(values, FLOAT3, ())
    assert dltensor_to_numpy(tensor).tolist() == [1, 2, 3]


def test_descriptors_that_cannot_be_decoded():
    values = np.zeros(4, "f4")
    other = raw_tensor(values, DLDataType(2, 32, 1), (4,))
    other.device = DLDevice(DLDeviceType.kDLCUDAHost, 0)
    with pytest.raises(NotImplementedError, match=r"only supports CPU tensors, got one on DLDevice\(CUDAHost, 0\)"):
        dltensor_to_numpy(other)
    for dtype in (DLDataType(DLDataTypeCode.kDLOpaqueHandle, 64, 1), DLDataType(17, 4, 1), DLDataType(2, 128, 1)):
        with pytest.raises(ValueError, match="Unsupported DLDataType"):
            dltensor_to_numpy(raw_tensor(values, dtype, (1,)))
    with pytest.raises(ValueError, match="negative extent"):
        dltensor_to_numpy(raw_tensor(values, DLDataType(2, 32, 1), (-1,)))
    pointless = raw_tensor(values, DLDataType(2, 32, 1), (4,))
    pointless.shape = None
    with pytest.raises(ValueError, match="NULL pointer"):
        dltensor_to_numpy(pointless)


@pytest.mark.parametrize(("dtype", "bits"), [(np.complex64, 64), (np.complex128, 128)])
def test_complex_numbers_are_decoded(dtype, bits):
    values = np.array([1 + 2j, 3 - 4j], dtype)
    tensor = make_dltensor(values.view("u1"), dtype=DLDataType(DLDataTypeCode.kDLComplex, bits, 1), shape=[2])
    assert dltensor_to_numpy(tensor).tolist() == values.tolist()
    assert dltensor_to_numpy(tensor).dtype == dtype


@pytest.mark.parametrize(
    ("name", "code"),
    [("bfloat16", DLDataTypeCode.kDLBfloat), ("float8_e4m3fn", DLDataTypeCode.kDLFloat8_e4m3fn)],
)
def test_types_of_ml_dtypes_are_decoded_where_it_is_installed(monkeypatch, name, code):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.array([1, 2, 0.5], np.float32).astype(getattr(ml_dtypes, name))
    dtype = DLDataType(code, 8 * values.itemsize, 1)
    tensor = make_dltensor(values.view(f"u{values.itemsize}"), dtype=dtype)
    decoded = dltensor_to_numpy(tensor)
    assert decoded.dtype == values.dtype
    assert decoded.tobytes() == values.tobytes()
    assert address(decoded) == address(values)
    assert dltensor_to_numpy(make_dltensor(np.empty(0, "u1"), dtype=dtype), readonly=True).dtype == values.dtype
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(ValueError, match=f"NumPy has no {name} .*install the package ml_dtypes"):
        dltensor_to_numpy(tensor)


def test_memory_that_nobody_may_write_to_stays_so():
    values = np.float32([1, 2])
    values.flags.writeable = False
    view = dltensor_to_numpy(make_dltensor(values))
    with pytest.raises(ValueError, match="WRITEABLE"):
        view.setflags(write=True)
    assert dltensor_to_numpy(make_dltensor(np.float32([1, 2]))).flags.writeable


# --- taking from producers ---


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype="f4").reshape(2, 3),
        np.arange(6, dtype="i8")[::2],
        np.arange(6, dtype="u2")[::-1],
        np.asfortranarray(np.arange(6, dtype="f8").reshape(2, 3)),
        np.array(5.0),
        np.empty((0, 3), "f4"),
    ],
    ids=["compact", "strided", "reversed", "fortran", "0-d", "empty"],
)
def test_producer_is_described_where_it_lies(array):
    tensor = DLTensor.from_dlpack(Producer(array))
    assert tensor.data + tensor.byte_offset == address(array) or not array.size
    assert tensor.shape_tuple == array.shape
    assert dltensor_to_numpy(tensor).tolist() == array.reshape(-1).tolist()


def test_producer_lives_as_long_as_the_tensor():
    values = np.arange(1000, dtype="f4")
    before = sys.getrefcount(values)
    tensor = DLTensor.from_dlpack(Producer(values))
    assert sys.getrefcount(values) > before
    view = dltensor_to_numpy(tensor)
    del tensor
    assert sys.getrefcount(values) > before
    del view
    assert sys.getrefcount(values) == before


@needs_writable_imports  # the NumPys before do not export read-only arrays either
def test_readonly_producer_is_accepted():
    values = np.float32([1, 2])
    values.flags.writeable = False
    assert dltensor_to_numpy(DLTensor.from_dlpack(Producer(values))).tolist() == [1, 2]


def test_legacy_producer_is_asked_again_without_version():
    class Legacy(Producer):
        def __dlpack__(self, stream=None):
            return self.array.__dlpack__()

    assert dltensor_to_numpy(DLTensor.from_dlpack(Legacy(np.float32([1, 2])))).tolist() == [1, 2]


def test_things_that_are_no_producer():
    with pytest.raises(TypeError, match="does not support the DLPack protocol"):
        DLTensor.from_dlpack([1.0])

    class Once:
        def __init__(self, capsule):
            self.capsule = capsule

        def __dlpack__(self, **options):
            return self.capsule

    capsule = np.float32([1]).__dlpack__()
    assert dltensor_to_numpy(DLTensor.from_dlpack(Once(capsule))).tolist() == [1]
    with pytest.raises(ValueError, match="incorrect name"):
        DLTensor.from_dlpack(Once(capsule))
    with pytest.raises(ValueError, match="invalid PyCapsule object"):
        DLTensor.from_dlpack(Once("capsule"))


def test_exceptions_of_a_producer_go_through():
    class Failing(Producer):
        def __dlpack__(self, **options):
            raise BufferError("not today")

    with pytest.raises(BufferError, match="not today"):
        DLTensor.from_dlpack(Failing(np.float32([1])))


# --- folding ---


@pytest.mark.parametrize(
    ("shape", "lanes", "folded"),
    [
        ((2, 3), 3, (2,)),
        ((2, 4), 4, (2,)),
        ((2, 2, 2), 4, (2,)),
        ((2, 3, 1), 3, (2,)),
        ((2, 1, 3), 3, (2, 1)),
    ],
)
def test_trailing_axes_of_a_producer_fold_into_lanes(shape, lanes, folded):
    source = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    tensor = make_dltensor(Producer(source), dtype=DLDataType(2, 32, lanes))
    assert tensor.data == address(source)
    assert (tensor.shape_tuple, tensor.dtype) == (folded, DLDataType(2, 32, lanes))
    assert dltensor_to_numpy(tensor).tolist() == source.reshape(-1).tolist()


def test_fold_by_one_is_a_description_of_the_same():
    source = np.arange(6, dtype="f4").reshape(2, 3)
    tensor = make_dltensor(Producer(source), dtype=DLDataType(2, 32, 1), shape=(2, 3), ndim=2, strides=[3, 1])
    assert (tensor.shape_tuple, tensor.strides[:2]) == ((2, 3), [3, 1])


def test_fold_that_takes_every_axis_leaves_one_row():
    source = np.float32([1, 2, 3])
    tensor = make_dltensor(Producer(source), dtype=FLOAT3)
    assert (tensor.data, tensor.ndim, tensor.shape_tuple, tensor.dtype) == (address(source), 1, (1,), FLOAT3)
    assert dltensor_to_numpy(tensor).tolist() == [1, 2, 3]
    same = make_dltensor(Producer(source), dtype=FLOAT3, shape=[1], ndim=1, strides=[1])
    assert same.shape_tuple == (1,)
    with pytest.raises(ValueError, match="canonical folded shape"):
        make_dltensor(Producer(source), dtype=FLOAT3, shape=[], ndim=0, strides=[])


def test_own_export_is_a_producer():
    tensor = make_dltensor(np.arange(6, dtype="f4"), dtype=FLOAT3, shape=[2])
    folded = make_dltensor(ManagedDLTensor(tensor, manager_ctx=None), dtype=FLOAT3)
    assert (folded.shape_tuple, folded.data) == ((2,), tensor.data)


def test_fold_needs_positive_bit_widths():
    empty_bits = make_dltensor(np.zeros(3, "u1"), dtype=DLDataType(DLDataTypeCode.kDLUInt, 0, 1))
    source = ManagedDLTensor(empty_bits, manager_ctx=empty_bits)
    for producer, dtype in [
        (source, DLDataType(DLDataTypeCode.kDLUInt, 8, 3)),
        (source, DLDataType(DLDataTypeCode.kDLUInt, 0, 3)),
        (Producer(np.zeros(3, "u1")), DLDataType(DLDataTypeCode.kDLUInt, 0, 3)),
    ]:
        with pytest.raises(ValueError, match="positive source and requested bit widths"):
            make_dltensor(producer, dtype=dtype)


@pytest.mark.parametrize(
    ("array", "overrides", "error", "text"),
    [
        (np.zeros((2, 3), "f4"), {"shape": [2]}, ValueError, "overrides require dtype"),
        (np.zeros((2, 3), "f4"), {"dtype": "float32"}, TypeError, "dtype must be a DLDataType"),
        (np.zeros((2, 3), "f4").T, {"dtype": DLDataType(2, 32, 2)}, ValueError, "compact row-major source strides"),
        (np.zeros((2, 3), "f4"), {"dtype": DLDataType(2, 64, 3)}, ValueError, "preserve the source base type"),
        (np.zeros((2, 3), "f4"), {"dtype": DLDataType(0, 32, 3)}, ValueError, "preserve the source base type"),
        (np.zeros((2, 256), "f4"), {"dtype": DLDataType(2, 32, 256)}, ValueError, r"lanes must be in \[1, 255\]"),
        (np.zeros((2, 4), "f4"), {"dtype": DLDataType(2, 32, 2)}, ValueError, "cannot be formed by folding complete"),
        (np.zeros((2, 3), "f4"), {"dtype": DLDataType(2, 32, 2)}, ValueError, "cannot be formed by folding complete"),
        (np.zeros((2, 3), "f4"), {"dtype": FLOAT3, "shape": ["2"]}, TypeError, "shape entries must be integers"),
        (np.zeros((2, 3), "f4"), {"dtype": FLOAT3, "shape": [-2]}, ValueError, "non-negative"),
        (np.zeros((2, 3), "f4"), {"dtype": FLOAT3, "shape": [2, 3]}, ValueError, "canonical folded shape"),
        (np.zeros((2, 3), "f4"), {"dtype": FLOAT3, "ndim": 2}, ValueError, "ndim must equal the rank"),
        (np.zeros((2, 3), "f4"), {"dtype": FLOAT3, "ndim": 1.0}, TypeError, "ndim must be an integer"),
        (np.zeros((2, 3), "f4"), {"dtype": FLOAT3, "strides": [3]}, ValueError, "compact strides"),
        (np.zeros((2, 3), "f4"), {"dtype": FLOAT3, "strides": [1.0]}, TypeError, "strides entries must be integers"),
    ],
)
def test_folds_that_do_not_come_out(array, overrides, error, text):
    with pytest.raises(error, match=text):
        make_dltensor(Producer(array), **overrides)


def test_axis_without_extent_does_not_fold():
    with pytest.raises(ValueError, match=r"folding complete|compact"):
        make_dltensor(Producer(np.zeros((2, 0), "f4")), dtype=FLOAT3)


def test_device_arguments_do_not_relabel_a_producer():
    tensor = make_dltensor(Producer(np.float32([1])), device_type=DLDeviceType.kDLCUDA, device_id=3)
    assert tensor.device == DLDevice(DLDeviceType.kDLCPU, 0)


# --- exports that a caller builds ---


def managed(array: np.ndarray, **options) -> ManagedDLTensor:
    return ManagedDLTensor(make_dltensor(array), manager_ctx=array, **options)


def test_export_describes_its_tensor():
    values = np.float32([1, 2])
    export = managed(values)
    assert (export.shape, export.ndim, export.data) == ((2,), 1, address(values))
    assert (export.dtype, export.device) == (DLDataType(2, 32, 1), DLDevice(1, 0))
    assert export.__dlpack_device__() == (1, 0)
    assert repr(export).startswith("ManagedDLTensor(shape=(2,), ")
    assert export.numpy().tolist() == [1, 2]


def test_lanes_become_one_trailing_axis():
    tensor = make_dltensor(np.arange(32, dtype="f8"), dtype=DLDataType(2, 64, 16), shape=[2])
    assert np.from_dlpack(ManagedDLTensor(tensor, manager_ctx=tensor)).shape == (2, 16)


@pytest.mark.parametrize(
    ("max_version", "name"),
    [
        (None, "dltensor"),
        ((0, 8), "dltensor"),
        ((1, 0), "dltensor_versioned"),
        ((1, 3), "dltensor_versioned"),
    ],
)
def test_consumer_gets_the_capsule_it_can_read(max_version, name):
    capsule = managed(np.float32([1])).__dlpack__(max_version=max_version)
    assert f'"{name}"' in repr(capsule)


@needs_writable_imports
def test_copy_is_writable_and_independent():
    values = np.float32([1, 2])
    copy = np.from_dlpack(managed(values), copy=True)
    copy[:] = 9
    assert values.tolist() == [1, 2]


def test_requests_that_an_export_refuses():
    export = managed(np.float32([1]))
    with pytest.raises(BufferError):
        export.__dlpack__(dl_device=(2, 0))
    for malformed in ({}, (1,), (1.0, 0)):
        with pytest.raises(TypeError, match=r"\(device_type, device_id\) tuple"):
            export.__dlpack__(dl_device=malformed)
    with pytest.raises(TypeError):
        export.__dlpack__(1)
    assert export.__dlpack__(stream=1, dl_device=(1, 0), copy=False)


def test_readonly_export_is_refused_by_the_consumer(unraisable):
    values = np.float32([1, 2])
    view = np.from_dlpack(managed(values, readonly=True))
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 9
    assert values.tolist() == [1, 2]
    del view
    gc.collect()
    assert not unraisable


@needs_writable_imports
def test_writable_export_writes_through():
    values = np.float32([1, 2])
    np.from_dlpack(managed(values, readonly=False))[:] = 5
    assert values.tolist() == [5, 5]


def test_cleanup_survives_a_callback_that_raises(unraisable):
    values = np.float32([1, 2])
    called = []

    def callback(context):
        called.append(context is values)
        raise RuntimeError("no")

    gc.collect()
    before = sys.getrefcount(values)
    for _ in range(5):
        export = ManagedDLTensor(make_dltensor(values), manager_ctx=values, deleter_callback=callback)
        capsule = export.__dlpack__(max_version=(1, 0))
        del capsule, export
    unraisable.clear()  # what it recorded holds the context through its traceback
    gc.collect()
    ovstage.process_counters()
    assert called.count(True) == len(called) >= 5
    assert sys.getrefcount(values) == before


def test_capsule_can_die_while_an_error_is_pending():
    class Owner:
        pass

    owner = Owner()
    gc.collect()
    before = sys.getrefcount(owner)
    export = ManagedDLTensor(make_dltensor(np.float32([1])), manager_ctx=owner)
    with pytest.raises((TypeError, SystemError)):
        "".join([export.__dlpack__(max_version=(1, 0))])
    del export
    gc.collect()
    ovstage.process_counters()
    assert sys.getrefcount(owner) == before


def test_consumer_view_keeps_the_context():
    values = np.arange(1000, dtype="f4")
    gc.collect()
    before = sys.getrefcount(values)
    view = np.from_dlpack(managed(values))
    assert sys.getrefcount(values) > before
    assert view.sum() == values.sum()
    del view
    gc.collect()
    ovstage.process_counters()
    assert sys.getrefcount(values) == before
