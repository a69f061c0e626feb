"""Groups: views that cannot be written, accessors that end with the release, and groups that are forgotten."""

from __future__ import annotations

import gc
import sys
import warnings

import numpy as np
import pytest
from conftest import address, needs_writable_imports

import ovstage
from ovstage import DLDataType, ErrorCode, MapGroup, OrdinalRange, OvstageError, OvxError, ReadGroup

BOTH_LEVELS = True


@pytest.fixture
def sealed(table):
    table.write("mass", np.float32([1, 2]), 1)
    table.seal(1)
    return table


@pytest.fixture
def read(sealed):
    read = sealed.stage.read_attributes(sealed.query, [sealed.token("mass")], OrdinalRange.latest(1))
    read.wait()
    return read


@pytest.fixture
def group(read):
    group = read.fetch_next()
    yield group
    if not group.released:
        group.release()


class Caught(RuntimeError):
    pass


def invalid(call):
    with pytest.raises(OvstageError) as caught:
        call()
    assert caught.value.code == ErrorCode.INVALID_HANDLE
    return str(caught.value)


# --- what a group shows ---


def test_facts(sealed, group):
    assert group.attribute == sealed.token("mass")
    assert group.ordinal == 1
    assert (group.is_array, group.is_delete, group.released) == (False, False, False)
    assert (group.prim_offset, group.prim_count, group.has_prim_index_map) == (0, 2, False)
    assert (group.tensor_count, group.data_count, group.has_data_index_map) == (1, 2, False)
    assert [group.prim_index(i) for i in range(2)] == [group.data_row_index(i) for i in range(2)] == [0, 1]
    assert group.meta.attribute_write_floor_ordinal == 1
    assert "layout_generation=" in repr(group.meta)


def test_raw_is_the_c_structure(sealed, group):
    raw = group.raw
    assert raw.attribute == group.attribute
    assert (raw.ordinal, raw.is_delete, raw.is_array, raw.semantic) == (1, False, False, 0)
    assert (raw.prims.list, raw.prims.count) == (group.prim_list, 2)
    assert (raw.data.tensor_count, raw.data.count) == (1, 2)
    assert raw.data.tensors[0].dtype == DLDataType(2, 32, 1)
    assert not raw.data.cuda_sync.stream
    assert not raw.data.cuda_sync.wait_event
    assert raw.meta.layout_generation == group.meta.layout_generation


def test_raw_keeps_what_it_points_at(sealed, group):
    raw = group.raw
    group.release()
    sealed.write("mass", np.float32([3, 4]), 2)
    sealed.seal(2)
    gc.collect()
    assert ovstage.dltensor_to_numpy(raw.data.tensors[0]).tolist() == [1, 2]


@pytest.mark.parametrize("index", [-1, 1, 2**70])
def test_tensor_index_out_of_range(group, index):
    for accessor in (group.array, group.tensor, group.dlpack):
        with pytest.raises(IndexError):
            accessor(index)


@pytest.mark.parametrize("local", [-1, 2, 2**70])
def test_prim_out_of_range(group, local):
    for accessor in (group.prim_index, group.data_row_index):
        with pytest.raises(IndexError):
            accessor(local)


@pytest.mark.parametrize("wrong", [0.0, "0", None])
def test_index_of_a_wrong_type(group, wrong):
    for accessor in (group.array, group.tensor, group.dlpack, group.prim_index, group.data_row_index):
        with pytest.raises(TypeError):
            accessor(wrong)


def test_array_is_zero_copy_and_readonly_for_good(group):
    tensor, values = group.tensor(0), group.array(0)
    assert address(values) == int(tensor.data) + int(tensor.byte_offset)
    assert not values.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        values[0] = 9
    for view in (values, group.array(0, shaped=True), values.reshape(1, 2), values[:1]):
        with pytest.raises(ValueError, match="WRITEABLE"):
            view.setflags(write=True)
    assert values.tolist() == [1, 2]


@needs_writable_imports
def test_export_is_readonly_unless_asked(group):
    assert not np.from_dlpack(group.dlpack(0)).flags.writeable
    assert np.from_dlpack(group.dlpack(0, readonly=False)).flags.writeable
    assert group.dlpack(0).__dlpack_device__() == (1, 0)


def test_shaped_array_has_one_row_per_prim(sealed, level):
    sealed.write("point", np.arange(6, dtype="f4").reshape(2, 3), 2)
    sealed.seal(2)
    with sealed.group("point", 2) as group:
        assert group.array(0).shape == ((2, 3) if level == "0.3" else (6,))
        assert group.array(0, shaped=True).shape == (2, 3)
        assert address(group.array(0, shaped=True)) == address(group.array(0))
    with sealed.group("mass", 2) as group:
        assert group.array(0, shaped=True).shape == (2, 1)


def test_tensor_is_a_copy_of_the_descriptor(group):
    group.tensor(0).dtype.lanes = 255
    assert group.tensor(0).dtype.lanes == 1
    tensor = group.tensor(0)
    tensor.dtype.lanes = 255
    with pytest.raises(ValueError, match="backing buffer holds"):
        ovstage.dltensor_to_numpy(tensor)


def test_element_type_that_numpy_lacks(sealed, monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)  # which would teach it
    bits = np.uint16([0x3F80, 0x4000])
    sealed.write("half", ovstage.make_dltensor(bits, dtype=DLDataType(ovstage.DLDataTypeCode.kDLBfloat, 16, 1)), 2)
    sealed.seal(2)
    with sealed.group("half", 2) as group:
        with pytest.raises(ValueError, match="dlpack"):
            group.array(0)
        assert group.tensor(0).dtype == DLDataType(4, 16, 1)
        again = ovstage.DLTensor.from_dlpack(group.dlpack(0))
        assert again.dtype == DLDataType(4, 16, 1)


# --- releasing ---


def test_with_block_releases(read):
    with read.fetch_next() as group:
        values = np.array(group.array(0))
    assert values.tolist() == [1, 2]
    assert group.released
    read.release().wait()


def test_with_block_releases_when_the_body_raises(read):
    error = Caught("body")
    with pytest.raises(Caught) as caught, read.fetch_next() as group:
        raise error
    assert caught.value is error
    assert group.released


def test_second_release_is_refused(sealed, group):
    sealed.stage.release_group(group)
    invalid(lambda: sealed.stage.release_group(group))
    invalid(group.release)


def test_accessors_end_with_the_release(group):
    group.release()
    for accessor in (group.array, group.tensor, group.dlpack, group.prim_index, group.data_row_index):
        invalid(lambda accessor=accessor: accessor(0))
    assert (group.prim_count, group.tensor_count, group.ordinal, group.is_delete) == (2, 1, 1, False)
    assert group.raw.semantic == 0


def test_views_do_not_end_with_anything(make_table):
    stage = ovstage.Stage()
    names = ovstage.PathDictionary(stage)
    with names.create_path_list_from_strings(["/A", "/B"]) as prims:
        query = stage.query_from_path_list(prims)
    stage.write_attribute(query, "mass", 1, np.float32([1, 2]), is_array=False).wait()
    stage.advance_write_floor(1).wait()
    read = stage.read_attributes(query, [names.intern_token("mass")], OrdinalRange.latest(1))
    group = read.fetch_next()
    array, exported, tensor, capsule = group.array(0), np.from_dlpack(group.dlpack(0)), group.tensor(0), group.dlpack(0)
    group.release()
    read.release().wait()
    query.release().wait()
    stage.destroy()
    del stage, names, query, read, group
    gc.collect()
    assert array.tolist() == exported.tolist() == ovstage.dltensor_to_numpy(tensor).tolist() == [1, 2]
    assert np.from_dlpack(capsule).tolist() == [1, 2]


def test_group_outlives_its_read(read):
    group = read.fetch_next()
    read.release().wait()
    assert group.array(0).tolist() == [1, 2]
    group.release()


def test_group_survives_collection(group):
    for _ in range(3):
        gc.collect()
        assert group.array(0).tolist() == [1, 2]
    assert not group.released


def test_group_survives_the_stage():
    stage = ovstage.Stage()
    names = ovstage.PathDictionary(stage)
    with names.create_path_list_from_strings(["/A"]) as prims, stage.query_from_path_list(prims) as query:
        stage.write_attribute(query, "mass", 1, np.float32([1]), is_array=False).wait()
        stage.advance_write_floor(1).wait()
        with stage.read_attributes(query, [names.intern_token("mass")], OrdinalRange.latest(1)) as read:
            group = read.fetch_next()
    stage.destroy()
    assert group.array(0).tolist() == [1]


def test_group_built_by_the_caller(sealed, group):
    detached = ReadGroup(group.raw)
    assert not detached.released
    assert detached.array(0).tolist() == [1, 2]
    invalid(detached.release)
    sealed.stage.release_group(detached)
    assert detached.released
    invalid(lambda: sealed.stage.release_group(detached))
    invalid(lambda: detached.tensor(0))
    invalid(lambda: detached.prim_index(0))
    group._claim_release()


@pytest.mark.parametrize("kind", [ReadGroup, MapGroup])
def test_groups_are_built_from_their_structure_only(kind, unraisable):
    for wrong in (None, 5, b"short", object()):
        with pytest.raises((TypeError, ValueError)):
            kind(wrong)
    gc.collect()
    assert not unraisable


def test_things_that_are_no_group(sealed):
    for wrong in (None, 5, "group", object()):
        with pytest.raises(TypeError):
            sealed.stage.release_group(wrong)


# --- forgotten groups ---


def test_dropped_group_is_released_and_reported(sealed, read):
    group = read.fetch_next()
    before = sealed.stage.counters()["live_groups"]
    with pytest.warns(ResourceWarning, match=r"ReadGroup .* was garbage-collected without release\(\)"):
        del group
    assert sealed.stage.counters()["live_groups"] == before - 1
    read.release().wait()


def test_released_group_is_not_reported(read, recwarn):
    group = read.fetch_next()
    group.release()
    del group
    gc.collect()
    assert not recwarn.list


def test_dropped_group_does_not_hold_up_writers(sealed, read):
    group = read.fetch_next()
    read.release().wait()
    with pytest.warns(ResourceWarning, match="garbage-collected"):
        del group
    sealed.write("mass", np.float32([3, 4]), 2)
    sealed.write("mass", np.float32([5, 6]), 3)


def test_open_group_does_not_hold_up_writers(sealed, group):
    sealed.write("mass", np.float32([3, 4]), 2)
    sealed.seal(2)
    assert sealed.read("mass", 2) == [3, 4]
    assert group.array(0).tolist() == [1, 2]


def test_release_comes_before_the_warning(sealed, read, capsys, unraisable):
    before = sealed.stage.counters()["live_groups"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        group = read.fetch_next()
        read.release().wait()
        del group, read
        gc.collect()
    assert sealed.stage.counters()["live_groups"] == before
    assert "ResourceWarning: ReadGroup" in capsys.readouterr().err
    assert not unraisable


def test_dropped_group_of_a_destroyed_stage_is_silent(recwarn):
    stage = ovstage.Stage()
    names = ovstage.PathDictionary(stage)
    with names.create_path_list_from_strings(["/A"]) as prims, stage.query_from_path_list(prims) as query:
        stage.write_attribute(query, "mass", 1, np.float32([1]), is_array=False).wait()
        stage.advance_write_floor(1).wait()
        with stage.read_attributes(query, [names.intern_token("mass")], OrdinalRange.latest(1)) as read:
            group = read.fetch_next()
    stage.destroy()
    del group
    gc.collect()
    assert not recwarn.list


def test_query_outlives_its_path_list(sealed, names):
    path_list = names.create_path_list_from_strings(sealed.paths)
    handle = int(path_list)
    query = sealed.stage.query_from_path_list(handle)
    path_list.release()
    del path_list
    gc.collect()
    with pytest.raises(OvxError):
        names.path_list_count(handle)
    sealed.stage.write_attribute(query, "mass", 9, np.float32([5, 6]), is_array=False).wait()
    query.release().wait()


def test_map_group_has_no_column_facts(sealed):
    with sealed.stage.map_attribute(sealed.query, "mass", 2) as mapping:
        group = mapping.fetch_next()
        assert isinstance(group, MapGroup)
        for name in ("attribute", "ordinal", "is_delete", "is_array", "semantic"):
            with pytest.raises(AttributeError):
                getattr(group, name)
        assert not hasattr(group, "release")
        assert group.raw.data.tensor_count == 1
