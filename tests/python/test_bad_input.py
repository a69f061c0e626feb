"""Mistakes that people make: each is refused with a sentence that names it, and changes nothing."""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path

import numpy as np
import pytest
from conftest import address

import ovstage
from ovstage import (
    AttributeSemantic,
    DLDataType,
    DLDevice,
    DLDeviceType,
    DLTensor,
    ErrorCode,
    Filter,
    FilterOp,
    ManagedDLTensor,
    OrdinalRange,
    OvstageError,
    OvxError,
    Predicate,
    Scope,
    WriteDesc,
    dlpack,
    make_dltensor,
)


@pytest.fixture
def sealed(table):
    """Two floats per prim in one column, three in another; the test must leave both as they are."""
    table.write("mass", np.float32([1, 2]), 5)
    table.write("point", np.arange(6, dtype="f4").reshape(2, 3), 5, semantic=AttributeSemantic.POINT)
    table.seal(5)
    gc.collect()  # blocks are counted for the process: other tests must be done with theirs
    before = table.stage.counters()
    yield table
    if not table.stage.alive:
        return
    after = table.stage.counters()
    assert [after[name] for name in before if name.startswith("live_")] == [
        before[name] for name in before if name.startswith("live_")
    ]
    assert after["bytes_columns"] == before["bytes_columns"]
    assert table.read("mass", 5) == [1, 2]
    table.write("mass", np.float32([3, 4]), 6)
    table.seal(6)
    assert table.read("mass", 6) == [3, 4]
    assert table.read("point", 6) == [[0, 1, 2], [3, 4, 5]]


def write(table, tensors, attribute="mass", ordinal=6, **options):
    return table.stage.write_attribute(table.query, attribute, ordinal, tensors, **{"is_array": False} | options)


def refused(op, code, *texts):
    """The operation was refused at once, and says why."""
    assert (op.status, op.op_id) == (code, 0)
    for text in texts:
        assert str(text) in op.error_message()
    with pytest.raises(OvstageError) as caught:
        op.wait()
    assert (caught.value.code, caught.value.message) == (code, op.error_message())


def raises(call, code, *texts):
    with pytest.raises(OvstageError) as caught:
        call()
    assert caught.value.code == code
    for text in texts:
        assert str(text) in caught.value.message


# --- payloads ---


def test_flat_payload_for_a_wide_column(sealed):
    refused(write(sealed, np.arange(6, dtype="f4"), "point"), ErrorCode.INVALID_ARGUMENT, "6", "2")


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_row_count(sealed, rows):
    refused(write(sealed, np.zeros(rows, "f4")), ErrorCode.INVALID_ARGUMENT, rows, 2)


def test_count_beyond_the_query(sealed):
    refused(write(sealed, np.zeros(3, "f4"), count=3), ErrorCode.INVALID_ARGUMENT, "count", 3, 2)


@pytest.mark.parametrize(
    ("payload", "texts"),
    [
        (np.zeros(2, "f8"), ["float32", "float64"]),
        (np.zeros(2, "i4"), ["float32", "int32"]),
        (np.zeros((2, 3), "f4"), ["float32", "float32x3"]),
    ],
    ids=["width", "type", "lanes"],
)
def test_type_of_an_existing_column(sealed, payload, texts):
    refused(write(sealed, payload), ErrorCode.INVALID_ARGUMENT, "mass", *texts)


def test_role_of_an_existing_column(sealed):
    op = write(sealed, np.zeros((2, 3), "f4"), "point", semantic=AttributeSemantic.COLOR)
    refused(op, ErrorCode.INVALID_ARGUMENT, "point", "POINT", "COLOR")


NO_LANES = [(0, ErrorCode.INVALID_ARGUMENT), (256, ErrorCode.NOT_SUPPORTED), (65535, ErrorCode.NOT_SUPPORTED)]


@pytest.mark.parametrize(("lanes", "code"), NO_LANES)
def test_lanes_of_a_descriptor(sealed, lanes, code):
    values, extent = np.zeros(2, "f4"), (ctypes.c_int64 * 1)(2)
    tensor = DLTensor()
    tensor.data, tensor.ndim, tensor.device = address(values), 1, DLDevice(1, 0)
    tensor.dtype = DLDataType(code=2, bits=32, lanes=lanes)
    tensor.shape = ctypes.cast(extent, ctypes.POINTER(ctypes.c_int64))
    refused(write(sealed, tensor), code, "lanes", lanes)


def test_more_lanes_than_can_be_transported(sealed):
    refused(write(sealed, np.zeros((2, 256), "f4"), "wide"), ErrorCode.NOT_SUPPORTED, 256)


@pytest.mark.parametrize(
    ("payload", "name"),
    [
        (np.zeros(2, ">f4"), ">f4"),
        (np.array([None, 1]), "object"),
        (np.zeros(2, "f4,f4"), "f0"),
        (np.array(["a", "b"]), "U1"),
        (np.zeros(2, "M8[s]"), "M8"),
    ],
    ids=["big-endian", "object", "structured", "text", "datetime"],
)
@pytest.mark.parametrize("batch", [False, True])
def test_arrays_that_are_no_tensor(sealed, payload, name, batch):
    def call():
        if batch:
            return sealed.stage.write_attributes(sealed.query, [WriteDesc("mass", payload, False)], 6)
        return write(sealed, payload)

    with pytest.raises((TypeError, ValueError), match="tensors") as caught:
        call()
    assert name in str(caught.value) or str(payload.dtype) in str(caught.value)


@pytest.mark.parametrize("payload", [None, "1, 2", object(), {}, {1, 2}])
def test_objects_that_are_no_tensor(sealed, payload):
    with pytest.raises((TypeError, ValueError)):
        write(sealed, payload)


@pytest.mark.parametrize("kind", [DLDeviceType.kDLCUDA, DLDeviceType.kDLROCM])
def test_tensor_on_another_device(sealed, kind):
    tensor = make_dltensor(np.float32([8, 9]), device_type=kind, device_id=3)
    refused(write(sealed, tensor), ErrorCode.NOT_SUPPORTED, "3", {2: "CUDA", 10: "ROCM"}[kind])


def test_cuda_event_on_host_data(sealed):
    refused(write(sealed, np.float32([8, 9]), cuda_event=1), ErrorCode.NOT_SUPPORTED, "event")
    mapping = sealed.stage.map_attribute(sealed.query, "mass", 6)
    mapping.fetch_next().array(0)[:] = 9
    refused(mapping.unmap(cuda_event=1), ErrorCode.NOT_SUPPORTED, "event")
    mapping.abort()


def test_stream_means_nothing_on_host_data(table):
    table.write("mass", np.float32([1, 2]), 1, cuda_stream=1)
    with table.stage.map_attribute(table.query, "mass", 2) as mapping:
        mapping.unmap(cuda_stream=1).wait()


def test_sub_byte_types(sealed):
    tensor = make_dltensor(np.zeros(1, "u1"), dtype=DLDataType(1, 4, 1), shape=[2])
    refused(write(sealed, tensor, "nibbles"), ErrorCode.NOT_SUPPORTED, "4")


def test_descriptor_that_points_nowhere(sealed):
    tensor = make_dltensor(np.float32([1, 2]))
    tensor.data = None
    refused(write(sealed, tensor), ErrorCode.INVALID_ARGUMENT, "data")


def test_negative_extent(sealed):
    tensor = make_dltensor(np.float32([1, 2]))
    tensor.shape = (ctypes.c_int64 * 1)(-2)
    refused(write(sealed, tensor), ErrorCode.INVALID_ARGUMENT, "-2")


def axes(*numbers):
    return (ctypes.c_int64 * len(numbers))(*numbers)


REACH_TOO_FAR = [
    ({"shape": axes(3)}, "bytes 0 to 12"),
    ({"shape": axes(2, 10**7), "ndim": 2}, "bytes 0 to 80000000"),
    ({"shape": axes(2, 2**62), "ndim": 2}, "more than 2**63 bytes"),
    ({"shape": axes(2**62, 2**62), "ndim": 2}, "more than 2**63 bytes"),
    ({"strides": axes(2)}, "bytes 0 to 12"),
    ({"strides": axes(-1)}, "bytes -4 to 4"),
    ({"strides": axes(2**63 - 1)}, "more than 2**63 bytes"),
    ({"byte_offset": 4}, "bytes 4 to 12"),
    ({"dtype": DLDataType(2, 32, 3)}, "bytes 0 to 24"),
    ({"ndim": 0, "byte_offset": 8}, "bytes 8 to 12"),
    ({"shape": axes(*[1] * 10, 3), "ndim": 11}, "bytes 0 to 12"),
]


@pytest.mark.parametrize(("fields", "reach"), REACH_TOO_FAR)
@pytest.mark.parametrize("transfer", [False, True])
def test_descriptor_that_was_made_to_reach_too_far(sealed, fields, reach, transfer):
    tensor = make_dltensor(np.float32([8, 9]))
    for name, value in fields.items():
        setattr(tensor, name, value)
    with pytest.raises(ValueError, match=r"tensors reaches over .*, but its backing buffer holds 8 bytes") as caught:
        write(sealed, tensor, transfer=transfer)
    assert reach in str(caught.value)
    with pytest.raises(ValueError, match=r"tensors\[1\] reaches over"):
        write(sealed, [make_dltensor(np.float32([8, 9])), tensor], "runs", is_array=True)


@pytest.mark.parametrize(("fields", "reach"), REACH_TOO_FAR)
@pytest.mark.parametrize("options", [{}, {"max_version": (1, 3)}, {"copy": True}], ids=str)
def test_export_of_a_descriptor_that_was_made_to_reach_too_far(fields, reach, options):
    tensor = make_dltensor(np.float32([8, 9]))
    export = ManagedDLTensor(tensor, manager_ctx=None)
    for name, value in fields.items():
        setattr(tensor, name, value)
    with pytest.raises(BufferError, match=r"^dl_tensor (reaches over .* holds 8 bytes|cannot be exported)"):
        export.__dlpack__(**options)
    with pytest.raises((BufferError, ValueError)):
        make_dltensor(export)


def test_python_knows_the_most_axes_of_the_headers():
    header = Path(__file__).parents[2] / "capi_export/include/ovstage/ovstage_go.h"
    assert f"#define OVSTAGE_GO_MOST_AXES {dlpack._MOST_AXES}\n" in header.read_text()


@pytest.mark.parametrize("ndim", [-1, 65, 2**31 - 1])
def test_descriptor_with_axes_that_are_not_there(sealed, ndim):
    tensor = make_dltensor(np.float32([8, 9]))
    tensor.ndim = ndim
    refused(write(sealed, tensor), ErrorCode.INVALID_ARGUMENT, "ndim", ndim)


@pytest.mark.parametrize("ndim", [2, 7, 33, 64])
def test_axes_raised_beyond_the_arrays_of_a_descriptor(sealed, ndim):
    tensor = make_dltensor(np.float32([8, 9]))
    export = ManagedDLTensor(tensor, manager_ctx=None)
    tensor.ndim = ndim
    with pytest.raises(ValueError, match=f"^tensors has ndim {ndim}, but its arrays .* have room for 1;"):
        write(sealed, tensor)
    with pytest.raises(BufferError, match=f"^dl_tensor has ndim {ndim}, but its arrays"):
        export.__dlpack__()
    with pytest.raises(ValueError, match=f"^ndim is {ndim}, but the shape has room for 1"):
        _ = tensor.shape_tuple
    tensor.shape = (ctypes.c_int64 * ndim)(2, *[1] * (ndim - 1))  # a longer array makes it a tensor again
    assert tensor.shape_tuple == (2, *[1] * (ndim - 1))
    assert np.from_dlpack(export).shape == tensor.shape_tuple


def test_axes_raised_on_a_descriptor_of_a_group(sealed):
    with sealed.group("mass", 5) as group:
        tensor = group.tensor(0)
    tensor.ndim = 2
    with pytest.raises(ValueError, match="has room for 1"):
        _ = tensor.shape_tuple
    with pytest.raises(ValueError, match=r"^tensors has ndim 2,"):
        write(sealed, tensor)


def test_descriptor_within_its_memory(table):
    tensor = make_dltensor(np.float32([1, 2, 3, 4]))
    tensor.shape, tensor.strides, tensor.byte_offset = axes(2), axes(-2), 12
    table.write("mass", tensor, 1)
    table.seal(1)
    assert table.read("mass", 1) == [4, 2]


@pytest.mark.parametrize("name", ["usd-path", "usd-parent", "usd-children", "usd-active"])
def test_attributes_that_are_derived(sealed, name):
    refused(write(sealed, np.uint64([1, 2]), name), ErrorCode.NOT_SUPPORTED, name)
    mapping = sealed.stage.map_attribute(sealed.query, name, 6, dtype=DLDataType(1, 64, 1))
    refused(mapping.op, ErrorCode.NOT_SUPPORTED, name)


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_attribute_names(sealed, name):
    op = write(sealed, np.float32([1, 2]), name)
    assert op.status == ErrorCode.INVALID_ARGUMENT
    assert op.error_message()


def test_unknown_attribute_token(sealed):
    op = write(sealed, np.float32([1, 2]), 2**40)
    assert op.status == ErrorCode.INVALID_ARGUMENT
    assert str(2**40) in op.error_message()


# --- ordinals ---


@pytest.mark.parametrize("ordinal", [0, 3, 5])
def test_ordinal_at_or_below_the_floor(sealed, ordinal):
    refused(write(sealed, np.float32([8, 9]), ordinal=ordinal), ErrorCode.WRITE_FLOOR_VIOLATION, "mass", ordinal, 5)
    mapping = sealed.stage.map_attribute(sealed.query, "mass", ordinal)
    raises(mapping.wait, ErrorCode.WRITE_FLOOR_VIOLATION, ordinal, 5)


@pytest.mark.parametrize(
    ("ordinal", "error"), [(5.0, TypeError), ("5", TypeError), (-1, ValueError), (None, TypeError)]
)
def test_ordinal_that_is_none(sealed, ordinal, error):
    for call in (
        lambda: write(sealed, np.float32([8, 9]), ordinal=ordinal),
        lambda: sealed.stage.write_attributes(sealed.query, [], ordinal),
        lambda: sealed.stage.map_attribute(sealed.query, "mass", ordinal),
        lambda: sealed.stage.advance_write_floor(ordinal),
        lambda: OrdinalRange.latest(ordinal),
    ):
        with pytest.raises(error, match="ordinal"):
            call()


# --- handles ---


@pytest.mark.parametrize("handle", [0, 10**9, 2**64 - 1])
def test_unknown_handles(sealed, handle):
    stage, token = sealed.stage, sealed.token("mass")
    op = stage.write_attribute(handle, "mass", 6, np.float32([8, 9]), is_array=False)
    refused(op, ErrorCode.INVALID_HANDLE, "query", handle)
    refused(stage.read_attributes(handle, [token], OrdinalRange.latest(5)).op, ErrorCode.INVALID_HANDLE, handle)
    refused(stage.map_attribute(handle, token, 6).op, ErrorCode.INVALID_HANDLE, handle)
    raises(lambda: stage.fetch_query_result(handle), ErrorCode.INVALID_HANDLE, handle)
    raises(lambda: stage.fetch_read_next(handle), ErrorCode.INVALID_HANDLE, handle)
    raises(lambda: stage.fetch_map_next(handle), ErrorCode.INVALID_HANDLE, handle)
    raises(lambda: stage.fetch_ordinal(handle), ErrorCode.INVALID_HANDLE, handle)
    for release in (stage.release_query, stage.release_read, stage.release_ordinal_query, stage.unmap_attribute):
        refused(release(handle), ErrorCode.INVALID_HANDLE, handle)
    with pytest.raises((OvstageError, OvxError)):
        stage.query_from_path_list(handle)


def test_handle_of_another_kind(sealed):
    stage, token = sealed.stage, sealed.token("mass")
    with stage.read_attributes(sealed.query, [token], OrdinalRange.latest(5)) as read:
        op = stage.write_attribute(read, "mass", 6, np.float32([8, 9]), is_array=False)
        refused(op, ErrorCode.INVALID_HANDLE)
        refused(stage.release_query(read.handle), ErrorCode.INVALID_HANDLE)
        refused(stage.unmap_attribute(read.handle), ErrorCode.INVALID_HANDLE)
    raises(lambda: stage.fetch_read_next(sealed.query.handle), ErrorCode.INVALID_HANDLE)


def test_released_numbers(sealed):
    query = sealed.stage.query_from_path_list(sealed.list)
    number = query.handle
    query.release().wait()
    op = sealed.stage.write_attribute(number, "mass", 6, np.float32([8, 9]), is_array=False)
    refused(op, ErrorCode.INVALID_HANDLE, number)
    refused(sealed.stage.release_query(number), ErrorCode.INVALID_HANDLE, number)


def test_released_path_list(sealed, names):
    path_list = names.create_path_list_from_strings(["/A"])
    path_list.release()
    with pytest.raises((OvstageError, OvxError), match="Path list handle was not found"):
        sealed.stage.query_from_path_list(path_list)


def test_unmapping_twice(sealed):
    mapping = sealed.stage.map_attribute(sealed.query, "mass", 6)
    mapping.abort()
    raises(mapping.unmap, ErrorCode.INVALID_HANDLE, "aborted")
    refused(sealed.stage.unmap_attribute(mapping.handle), ErrorCode.INVALID_HANDLE, mapping.handle)


def test_group_of_another_map(sealed):
    first, second = (sealed.stage.map_attribute(sealed.query, "mass", 6) for _ in range(2))
    group = first.fetch_next()
    refused(second.unmap_group(group), ErrorCode.INVALID_HANDLE)
    group.array(0)[:] = 9
    first.abort()
    second.abort()
    raises(lambda: sealed.stage.unmap_group(second.handle, group).wait(), ErrorCode.INVALID_HANDLE)


def test_group_of_a_wrong_kind(sealed):
    mapping = sealed.stage.map_attribute(sealed.query, "mass", 6)
    with sealed.group("mass", 5) as group:
        for wrong in (group, None, 5, "group"):
            with pytest.raises(TypeError):
                mapping.unmap_group(wrong)
    with pytest.raises(TypeError, match="unmap_group"):
        sealed.stage.release_group(mapping.fetch_next())
    mapping.abort()


def test_path_list_for_a_handle(sealed):
    stage, paths = sealed.stage, sealed.list
    wanted = rf"query must be a Query, got PathList\({int(paths)}, owned.*\); make one with stage.query_from_path_list"
    for call in (
        lambda: stage.write_attribute(paths, "mass", 6, np.float32([8, 9]), is_array=False),
        lambda: stage.write_attributes(paths, [], 6),
        lambda: stage.map_attribute(paths, "mass", 6),
        lambda: stage.delete_attributes(paths, ["mass"], 6),
        lambda: stage.release_query(paths),
    ):
        with pytest.raises(TypeError, match=wanted):
            call()
    with pytest.raises(TypeError, match="read must be a Read, got PathList"):
        stage.fetch_read_next(paths)
    with pytest.raises(TypeError, match="mapping must be a Map, got PathList"):
        stage.fetch_map_next(paths)


# --- lists ---


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_bytes_are_no_list(sealed, names, kind):
    stage, text = sealed.stage, kind(b"mass")
    for name, call in {
        "attributes": lambda: stage.delete_attributes(sealed.query, text, 6),
        "attrs": lambda: stage.read_attributes(sealed.query, text, OrdinalRange.latest(5)),
        "primpaths": lambda: names.create_path_list(text),
        "paths": lambda: names.create_path_list_from_strings(text),
        "strings": lambda: names.intern_tokens(text),
        "target_paths": lambda: stage.clone("/World/Prim0", text, 6),
        "values": lambda: stage.query(Filter([Predicate("mass", FilterOp.IN, text)])),
        "predicates": lambda: Filter(text),
        "writes": lambda: stage.write_attributes(sealed.query, text, 6),
        "index_map": lambda: write(sealed, np.float32([8, 9]), index_map=text),
    }.items():
        with pytest.raises(TypeError, match=rf"^{name}\b"):
            call()
    for call in (
        lambda: stage.advance_write_floor(9, Scope.INCLUDE, text),
        lambda: stage.read(sealed.query, text),
        lambda: stage.query(None, text),
    ):
        with pytest.raises(TypeError, match=r"^attr"):
            call()


@pytest.mark.parametrize("wrong", [None, 5])
def test_what_is_no_list_is_named(sealed, wrong):
    stage = sealed.stage
    for name, call in {
        "attributes must be a list of attributes": lambda: stage.delete_attributes(sealed.query, wrong, 6),
        "attrs must be a list of attributes": lambda: stage.read(sealed.query, wrong),
        "predicates must be a list of Predicates": lambda: Filter(wrong),
        "writes must be a sequence of WriteDesc": lambda: stage.write_attributes(sealed.query, wrong, 6),
    }.items():
        with pytest.raises(TypeError, match=rf"^{name}, got {wrong}"):
            call()


def test_wrong_items_are_told_by_their_position(sealed, names):
    for text, call in {
        r"attributes\[1\] must be": lambda: sealed.stage.delete_attributes(sealed.query, ["mass", None], 6),
        r"attrs\[1\] must be": lambda: sealed.stage.read(sealed.query, ["mass", None]),
        r"expected str for strings\[1\]": lambda: names.intern_tokens(["a", 5]),
        r"expected str for paths\[1\]": lambda: names.intern_paths(["/a", 5]),
    }.items():
        with pytest.raises(TypeError, match=text):
            call()
    with pytest.raises(ValueError, match=r"primpaths\[1\] must be non-negative, got -1"):
        names.create_path_list([1, -1])


def test_entry_of_a_batch_is_named(sealed):
    good, bad = WriteDesc("mass", np.float32([8, 9]), False), np.zeros(2, ">f4")
    for attribute, name in (("new", '"new"'), (sealed.token("new"), "int")):
        with pytest.raises(ValueError, match=rf"^writes\[1\] \(.*{name}.*\): tensors has dtype >f4"):
            sealed.stage.write_attributes(sealed.query, [good, WriteDesc(attribute, bad, False)], 6)


# --- maps ---


def test_map_of_a_column_that_is_not_there(sealed):
    refused(sealed.stage.map_attribute(sealed.query, "new", 6).op, ErrorCode.INVALID_ARGUMENT, "new", "dtype")


@pytest.mark.parametrize("dtype", [DLDataType(2, 64, 1), DLDataType(2, 32, 3), DLDataType(0, 32, 1)])
def test_map_of_a_column_of_another_type(sealed, dtype):
    mapping = sealed.stage.map_attribute(sealed.query, "mass", 6, dtype=dtype)
    refused(mapping.op, ErrorCode.INVALID_ARGUMENT, "mass", "float32")


@pytest.mark.parametrize(("lanes", "code"), NO_LANES)
def test_map_with_lanes_that_cannot_be_transported(sealed, lanes, code):
    mapping = sealed.stage.map_attribute(sealed.query, "new", 6, dtype=DLDataType(code=2, bits=32, lanes=lanes))
    refused(mapping.op, code, "lanes", lanes)


# --- paths ---


@pytest.mark.parametrize("path", ["", "World/A", "/World/A\0", "/World/", "/World//A"])
def test_paths_that_are_none(sealed, names, path):
    with pytest.raises(OvxError):
        names.create_path_list_from_strings(["/World/Prim0", path])
    assert len(sealed.stage._path_list_refs) == 1


# --- after the end ---


def test_use_after_close(sealed):
    stage, query, mapping = sealed.stage, sealed.query, sealed.stage.map_attribute(sealed.query, "mass", 6)
    read = stage.read_attributes(query, [sealed.token("mass")], OrdinalRange.latest(5))
    group = read.fetch_next()
    stage.destroy()
    for call in (
        lambda: write(sealed, np.float32([8, 9])),
        lambda: stage.read_attributes(query, [1], OrdinalRange.latest(5)),
        lambda: stage.map_attribute(query, "mass", 6),
        lambda: stage.advance_write_floor(6),
        lambda: stage.query_from_path_list(1),
        read.fetch_next,
        read.release,
        mapping.fetch_next,
        mapping.unmap,
        query.release,
        query.result,
        group.release,
    ):
        raises(call, ErrorCode.INVALID_HANDLE, "destroyed")
    with pytest.raises(OvxError, match="destroyed"):
        sealed.names.intern_token("mass")
    assert group.array(0).tolist() == [1, 2]


def test_attributes_of_the_module_itself():
    with pytest.raises(AttributeError):
        _ = ovstage.not_there


@pytest.mark.parametrize("ndim", [-1, 65, 2**31 - 1])
def test_descriptor_with_axes_that_are_not_there_can_be_shown(ndim):
    tensor = make_dltensor(np.float32([8, 9]))
    tensor.ndim = ndim
    assert f"shape=<ndim {ndim}>" in repr(tensor)
    assert f"shape=<ndim {ndim}>" in repr(ManagedDLTensor(tensor, manager_ctx=None))
