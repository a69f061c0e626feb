"""Writing attributes in place: what is lent, what is committed, and what happens to views that stay behind."""

from __future__ import annotations

import gc
import warnings

import numpy as np
import pytest
from conftest import address, invalid_handle, needs_writable_imports, stored

from ovstage import (
    AttributeSemantic,
    DLDataType,
    DLDataTypeCode,
    ErrorCode,
    Filter,
    FilterOp,
    MapGroup,
    OrdinalRange,
    OvstageError,
    Predicate,
    PrimMode,
    Scope,
)

BOTH_LEVELS = True

FLOAT = DLDataType(DLDataTypeCode.kDLFloat, 32, 1)
FLOAT3 = DLDataType(DLDataTypeCode.kDLFloat, 32, 3)


@pytest.fixture
def sealed(table):
    """Two prims with one float each."""
    table.write("mass", np.float32([1, 2]), 1)
    table.seal(1)
    return table


class Caught(RuntimeError):
    pass


def fill(mapping, values):
    for group in mapping.groups():
        rows = group.array(0, shaped=True)
        for local in range(group.prim_count):
            rows[group.data_row_index(local)] = values[group.prim_index(local)]


# --- the lifecycle ---


@needs_writable_imports
def test_writing_one_element_in_a_with_block_keeps_the_others(make_table):
    plane = make_table(["/World/Plane"])
    before = np.arange(16, dtype="f8").reshape(1, 4, 4)
    plane.write("omni:xform", before, 1, semantic=AttributeSemantic.MATRIX)
    plane.seal(1)
    with plane.stage.map_attribute(plane.query, plane.token("omni:xform"), ordinal=2) as mapping:
        mapping.wait()
        group = mapping.fetch_next()
        matrices = np.from_dlpack(group.dlpack(0)).reshape(1, 4, 4)
        matrices[0, 3, 0] = 10.0
    plane.stage.advance_write_floor(2, Scope.ALL).wait()
    expected = before.copy()
    expected[0, 3, 0] = 10.0
    with plane.group("omni:xform", 2) as group:
        assert group.array(0).ravel().tolist() == expected.reshape(-1).tolist()
        assert group.semantic is AttributeSemantic.MATRIX


@needs_writable_imports
def test_explicit_unmap_is_an_operation(make_table):
    plane = make_table(["/World/Plane"])
    plane.write("omni:xform", np.eye(4).reshape(1, 4, 4), 1)
    plane.seal(1)
    mapping = plane.stage.map_attribute(plane.query, "omni:xform", ordinal=2)
    mapping.wait()
    group = mapping.fetch_next()
    matrices = np.from_dlpack(group.dlpack(0)).reshape(1, 4, 4)
    matrices[0, 3, 0] = 9.0
    op = mapping.unmap()
    op.wait()
    plane.stage.advance_write_floor(2, Scope.ALL).wait()
    with plane.group("omni:xform", 2) as group:
        assert group.array(0).ravel()[12] == 9.0
        assert group.array(0).sum() == 4.0 + 9.0


def test_streaming_commit_while_the_iteration_goes_on(sealed):
    with sealed.stage.map_attribute(sealed.query, "mass", 2) as mapping:
        mapping.wait()
        for group in mapping.groups():
            for local in range(group.prim_count):
                group.array(0)[group.data_row_index(local)] = [10, 20][group.prim_index(local)]
            mapping.unmap_group(group).wait()
    sealed.seal(2)
    assert sealed.read("mass", 2) == [10, 20]


def test_fresh_column(sealed):
    with sealed.stage.map_attribute(sealed.query, "point", 3, dtype=FLOAT3) as mapping:
        for group in mapping.groups():
            buffer = group.array(0).reshape(-1)
            assert stored(group.tensor(0))[1] == FLOAT3
            assert buffer.tolist() == [0] * 6
            for local in range(group.prim_count):
                row = group.data_row_index(local)
                buffer[row * 3 : row * 3 + 3] = [[1, 2, 3], [4, 5, 6]][group.prim_index(local)]
    sealed.seal(3)
    assert sealed.read("point", 3) == [[1, 2, 3], [4, 5, 6]]
    assert sealed.read("mass", 3) == [1, 2]


def test_fresh_column_takes_the_role(sealed):
    with sealed.stage.map_attribute(sealed.query, "p", 2, dtype=FLOAT3, semantic=AttributeSemantic.POINT) as mapping:
        fill(mapping, [[1, 2, 3], [4, 5, 6]])
    sealed.seal(2)
    with sealed.group("p", 2) as group:
        assert group.semantic is AttributeSemantic.POINT


def test_map_creates_prims(table):
    with table.stage.map_attribute(table.query, "mass", 1, dtype=FLOAT) as mapping:
        fill(mapping, [1, 2])
    table.seal(1)
    assert table.read("mass", 1) == [1, 2]


def test_group_shows_the_canonical_layout(sealed):
    with sealed.stage.map_attribute(sealed.query, "mass", 2) as mapping:
        group = mapping.fetch_next()
        assert isinstance(group, MapGroup)
        tensor = group.tensor(0)
        assert (tensor.ndim, tensor.shape_tuple, tensor.dtype, group.tensor_count) == (1, (2,), FLOAT, 1)
        assert not tensor.strides
        assert tensor.data % 256 == 0
        assert (group.prim_count, group.data_count, group.has_data_index_map) == (2, 2, False)
        assert mapping.fetch_next() is None


def test_buffers_start_as_asked(sealed):
    for ordinal, (initial, values) in enumerate([("current", [1, 2]), ("zero", [0, 0])], start=2):
        with sealed.stage.map_attribute(sealed.query, "mass", ordinal, initial=initial) as mapping:
            group = mapping.fetch_next()
            assert group.array(0).tolist() == values
            group.array(0)[:] = [1, 2]
        sealed.seal(ordinal)


def test_buffer_starts_with_the_newest_value_sealed_or_not(sealed):
    sealed.write("mass", np.float32([3, 4]), 2)
    sealed.write("mass", np.float32([9, 9]), 9)
    with sealed.stage.map_attribute(sealed.query, "mass", 5) as mapping:
        assert mapping.fetch_next().array(0).tolist() == [3, 4]


def test_buffer_starts_when_the_map_was_opened(sealed):
    mapping = sealed.stage.map_attribute(sealed.query, "mass", 2)
    sealed.write("mass", np.float32([9, 9]), 2)
    assert mapping.fetch_next().array(0).tolist() == [1, 2]
    mapping.abort()


def test_discarded_buffer_holds_nothing_of_another_column(make_table):
    table = make_table(5000)
    secret = np.full(5000, 0x5EC2E7, dtype="u4")
    for ordinal in range(1, 6):
        table.write("secret", secret, ordinal)
        table.seal(ordinal)
    table.write("mine", np.zeros(5000, "u4"), 6)
    table.seal(6)
    for ordinal in range(7, 12):
        with table.stage.map_attribute(table.query, "mine", ordinal, initial="discard") as mapping:
            values = mapping.fetch_next().array(0)
            assert not (values == 0x5EC2E7).any()
            values[:] = ordinal
        table.seal(ordinal)


def test_unfetched_groups_commit_what_they_hold(sealed):
    with sealed.stage.map_attribute(sealed.query, "mass", 2, initial="zero"):
        pass
    sealed.seal(2)
    assert sealed.read("mass", 2) == [0, 0]
    with sealed.stage.map_attribute(sealed.query, "mass", 3, initial="discard"):
        pass
    sealed.seal(3)
    assert sealed.read("mass", 3) == [0, 0]


def test_values_show_after_unmap_and_seal_only(sealed):
    mapping = sealed.stage.map_attribute(sealed.query, "mass", 2)
    mapping.fetch_next().array(0)[:] = [8, 9]
    sealed.seal(1)
    assert sealed.read("mass", 1) == [1, 2]
    mapping.unmap().wait()
    assert sealed.read("mass", 2) == [1, 2]
    sealed.seal(2)
    assert sealed.read("mass", 2) == [8, 9]


def test_prims_outside_the_map_keep_their_values(make_table):
    table, some = make_table(6), make_table([f"/World/Prim{i}" for i in (4, 1)])
    table.write("x", np.arange(6, dtype="f4"), 1)
    table.seal(1)
    with some.stage.map_attribute(some.query, "x", 2) as mapping:
        group = mapping.fetch_next()
        assert [float(group.array(0)[group.data_row_index(i)]) for i in range(2)] == [4, 1]
        fill_rows = group.array(0)
        fill_rows[group.data_row_index(0)], fill_rows[group.data_row_index(1)] = 40, 10
    table.seal(2)
    assert table.read("x", 2) == [0, 10, 2, 3, 40, 5]


def test_finished_map_pins_nothing(sealed, names):
    with names.create_path_list_from_strings(sealed.paths) as prims:
        query = sealed.stage.query_from_path_list(prims)
        with sealed.stage.map_attribute(query, "mass", 2) as mapping:
            fill(mapping, [3, 4])
        query.release().wait()
    assert sealed.stage.counters()["live_maps"] == 0


def test_insert_map_over_existing_prims(sealed):
    mapping = sealed.stage.map_attribute(sealed.query, "mass", 2, prim_mode=PrimMode.INSERT)
    with pytest.raises(OvstageError) as caught:
        mapping.wait()
    assert caught.value.code == ErrorCode.PRIM_NOT_FOUND


def test_ending_a_map_twice_is_refused(sealed):
    mapping = sealed.stage.map_attribute(sealed.query, "mass", 2)
    group = mapping.fetch_next()
    mapping.unmap().wait()
    assert "has been unmapped" in invalid_handle(mapping.unmap)
    invalid_handle(mapping.abort)
    invalid_handle(mapping.fetch_next)
    invalid_handle(lambda: mapping.unmap_group(group))
    invalid_handle(lambda: sealed.stage.unmap_attribute(mapping))


def test_committing_a_group_twice_is_refused(sealed):
    with sealed.stage.map_attribute(sealed.query, "mass", 2) as mapping:
        group = mapping.fetch_next()
        mapping.unmap_group(group).wait()
        invalid_handle(lambda: mapping.unmap_group(group).wait())


def test_accessors_of_a_committed_group_are_over(sealed):
    with sealed.stage.map_attribute(sealed.query, "mass", 2) as mapping:
        group = mapping.fetch_next()
    for accessor in (group.array, group.tensor, group.dlpack, group.prim_index, group.data_row_index):
        invalid_handle(lambda accessor=accessor: accessor(0))
    assert group.prim_count == 2


# --- exports ---


@needs_writable_imports
def test_readonly_export_is_refused_by_the_consumer_and_changes_nothing(sealed, unraisable):
    with sealed.stage.map_attribute(sealed.query, "mass", 2) as mapping:
        for group in mapping.groups():
            np.from_dlpack(group.dlpack(0, readonly=False))[:] = 5.0
            with pytest.raises(ValueError, match="read-only") as caught:
                np.from_dlpack(group.dlpack(0, readonly=True))[:] = 1.0
            assert type(caught.value) is ValueError
            assert group.array(0).tolist() == [5, 5]
            mapping.unmap_group(group).wait()
    sealed.seal(2)
    assert sealed.read("mass", 2) == [5, 5]
    gc.collect()
    assert not unraisable


@needs_writable_imports
def test_array_and_export_show_the_same_memory(sealed):
    with sealed.stage.map_attribute(sealed.query, "mass", 2) as mapping:
        group = mapping.fetch_next()
        exported = np.from_dlpack(group.dlpack(0))
        assert exported.flags.writeable
        assert address(exported) == address(group.array(0)) == group.tensor(0).data
        exported[:] = [6, 7]
        assert group.array(0).tolist() == [6, 7]


# --- several maps at once ---


def test_outstanding_maps_apply_in_unmap_order(sealed):
    first, second = (sealed.stage.map_attribute(sealed.query, "mass", 2) for _ in range(2))
    first.fetch_next().array(0)[:] = [10, 10]
    second.fetch_next().array(0)[:] = [20, 20]
    second.unmap().wait()
    first.unmap().wait()
    sealed.seal(2)
    assert sealed.read("mass", 2) == [10, 10]


def test_maps_of_different_prims_do_not_touch_each_other(make_table):
    table = make_table(6)
    even, odd = (make_table([f"/World/Prim{i}" for i in range(start, 6, 2)]) for start in (0, 1))
    table.write("x", np.zeros(6, "f4"), 1)
    table.seal(1)
    a = even.stage.map_attribute(even.query, "x", 2)
    b = odd.stage.map_attribute(odd.query, "x", 2)
    a.fetch_next().array(0)[:] = 1
    b.fetch_next().array(0)[:] = 2
    table.write("x", np.float32([9] * 6), 2)
    b.unmap().wait()
    table.seal(1)
    a.unmap().wait()
    table.seal(2)
    assert table.read("x", 2) == [1, 2, 1, 2, 1, 2]


def test_map_and_write_at_one_ordinal_last_one_wins(sealed):
    with sealed.stage.map_attribute(sealed.query, "mass", 2) as mapping:
        fill(mapping, [3, 4])
    sealed.write("mass", np.float32([5, 6]), 2)
    sealed.seal(2)
    assert sealed.read("mass", 2) == [5, 6]
    sealed.write("mass", np.float32([7, 8]), 3)
    with sealed.stage.map_attribute(sealed.query, "mass", 3) as mapping:
        fill(mapping, [9, 10])
    sealed.seal(3)
    assert sealed.read("mass", 3) == [9, 10]


def test_late_write_below_an_adopted_ordinal(make_table):
    """The map's buffer became the column at 5; a write at 3 comes later: it shows at 3 and not at 5."""
    table, one = make_table(4), make_table(["/World/Prim1"])
    table.write("x", np.float32([0, 0, 0, 0]), 1)
    table.seal(1)
    with table.stage.map_attribute(table.query, "x", 5, initial="discard") as mapping:
        mapping.fetch_next().array(0)[:] = 5
    one.write("x", np.float32([3]), 3)
    table.seal(4)
    assert table.read("x", 4) == [0, 3, 0, 0]
    table.seal(5)
    assert table.read("x", 5) == [5, 5, 5, 5]


# --- giving up ---


def test_exception_in_the_block_writes_nothing(sealed):
    error = Caught("body")
    mapping = sealed.stage.map_attribute(sealed.query, "mass", 2)
    group = mapping.fetch_next()
    group.array(0)[:] = 9
    with pytest.raises(Caught) as caught, mapping:
        raise error
    assert caught.value is error
    assert "has been aborted" in invalid_handle(mapping.unmap)
    invalid_handle(lambda: group.array(0))
    sealed.seal(2)
    assert sealed.read("mass", 2) == [1, 2]
    assert sealed.stage.counters()["live_maps"] == 0


def test_exception_keeps_groups_that_were_committed(sealed):
    mapping = sealed.stage.map_attribute(sealed.query, "mass", 2)
    group = mapping.fetch_next()
    group.array(0)[:] = 9
    mapping.unmap_group(group).wait()
    with pytest.raises(Caught), mapping:
        raise Caught
    sealed.seal(2)
    assert sealed.read("mass", 2) == [9, 9]


def test_abort(sealed):
    mapping = sealed.stage.map_attribute(sealed.query, "mass", 2)
    group = mapping.fetch_next()
    view = group.array(0)
    view[:] = 9
    mapping.abort()
    mapping.abort()
    invalid_handle(mapping.unmap)
    invalid_handle(lambda: group.array(0))
    view[:] = 8
    sealed.seal(2)
    assert sealed.read("mass", 2) == [1, 2]


def test_aborted_map_of_a_fresh_column_leaves_no_column(table):
    mapping = table.stage.map_attribute(table.query, "mass", 1, dtype=FLOAT)
    fill(mapping, [1, 2])
    with pytest.raises(Caught), mapping:
        raise Caught
    table.seal(1)
    assert table.groups("mass", 1) == []
    table.write("mass", np.int32([1, 2]), 2)


def test_abort_inside_the_block_ends_it(sealed):
    with sealed.stage.map_attribute(sealed.query, "mass", 2) as mapping:
        fill(mapping, [8, 9])
        mapping.abort()
    sealed.seal(2)
    assert sealed.read("mass", 2) == [1, 2]


def test_dropped_map_writes_nothing_and_is_reported(sealed):
    mapping = sealed.stage.map_attribute(sealed.query, "mass", 2)
    group = mapping.fetch_next()
    group.array(0)[:] = 9
    with pytest.warns(ResourceWarning, match=r"Map \d+ was garbage-collected without unmap\(\)"):
        del mapping
    invalid_handle(lambda: group.array(0))
    assert sealed.stage.counters()["live_maps"] == 0
    sealed.seal(2)
    assert sealed.read("mass", 2) == [1, 2]


def test_dropped_map_is_ended_where_warnings_are_errors(sealed, capsys, unraisable):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        mapping = sealed.stage.map_attribute(sealed.query, "mass", 7)
        mapping.wait()
        del mapping
        gc.collect()
    assert "ResourceWarning: Map" in capsys.readouterr().err
    assert not unraisable
    sealed.write("mass", np.float32([3, 4]), 7)
    assert sealed.stage.counters()["live_maps"] == 0


def test_refused_map_says_why_and_is_silent(sealed, recwarn):
    mapping = sealed.stage.map_attribute(sealed.query, "never written", 2)
    assert mapping.op.status == ErrorCode.INVALID_ARGUMENT
    assert "never written" in mapping.op.error_message()
    with pytest.raises(OvstageError) as caught:
        mapping.fetch_next()
    assert caught.value.code == ErrorCode.INVALID_ARGUMENT
    assert mapping.op.error_message() in caught.value.message
    with pytest.raises(OvstageError, match="never opened"), sealed.stage.map_attribute(sealed.query, "other", 2):
        pass
    del mapping
    gc.collect()
    assert not recwarn.list


@pytest.mark.parametrize("ordinal", [0, 1])
def test_map_at_or_below_the_floor_is_refused_by_the_call(sealed, ordinal):
    words = f'attribute "mass": ordinal {ordinal} is sealed, the write floor is 1; use an ordinal above it'
    mapping = sealed.stage.map_attribute(sealed.query, "mass", ordinal)
    assert mapping.op.status == ErrorCode.WRITE_FLOOR_VIOLATION
    assert mapping.op.error_message() == words
    for use in (mapping.wait, mapping.fetch_next, mapping.unmap, mapping.abort, lambda: list(mapping.groups())):
        with pytest.raises(OvstageError, match=words) as caught:
            use()
        assert caught.value.code == ErrorCode.WRITE_FLOOR_VIOLATION
    with pytest.raises(OvstageError) as caught, sealed.stage.map_attribute(sealed.query, "mass", ordinal):
        pass
    assert caught.value.code == ErrorCode.WRITE_FLOOR_VIOLATION
    assert sealed.stage.counters()["live_maps"] == 0


def test_refused_handles_show_the_code_of_the_cause(sealed):
    stage, query = sealed.stage, sealed.query
    token = sealed.token("mass")
    sealed.write("mass", np.float32([3, 4]), 9)
    refused = {
        ErrorCode.INVALID_ARGUMENT: stage.read_attributes(query, [2**60], OrdinalRange.latest(1)).fetch_next,
        ErrorCode.WRITE_FLOOR_VIOLATION: stage.read_attributes(query, [token], OrdinalRange.between(1, 9)).fetch_next,
        ErrorCode.NOT_SUPPORTED: stage.query(Filter([Predicate("usd-active", FilterOp.HAS, [])])).result,
        ErrorCode.INVALID_HANDLE: stage.map_attribute(2**60, "mass", 10).fetch_next,
        ErrorCode.OUT_OF_MEMORY: stage.map_attribute(
            query, "runs", 10, dtype=DLDataType(2, 64, 1), element_sizes=[2**46, 1]
        ).fetch_next,
    }
    for code, use in refused.items():
        with pytest.raises(OvstageError, match="was never opened: ") as caught:
            use()
        assert caught.value.code == code


def test_floor_that_overtakes_one_group_of_a_map(sealed):
    mapping = sealed.stage.map_attribute(sealed.query, "mass", 2, group_rows=1)
    first, second = mapping.groups()
    first.array(0)[:] = 8
    second.array(0)[:] = 9
    mapping.unmap_group(first).wait()
    sealed.seal(3)
    for commit in (lambda: mapping.unmap_group(second), mapping.unmap):
        with pytest.raises(OvstageError, match="ordinal 2 is sealed, the write floor is 3") as caught:
            commit().wait()
        assert caught.value.code == ErrorCode.WRITE_FLOOR_VIOLATION
    assert sealed.read("mass", 3) == [8, 2]
    assert "has been unmapped" in invalid_handle(mapping.fetch_next)


def test_floor_that_overtakes_a_map(sealed):
    mapping = sealed.stage.map_attribute(sealed.query, "mass", 2)
    fill(mapping, [8, 9])
    sealed.seal(4)
    with pytest.raises(OvstageError) as caught:
        mapping.unmap().wait()
    assert caught.value.code == ErrorCode.WRITE_FLOOR_VIOLATION
    for text in ("mass", "2", "4"):
        assert text in caught.value.message
    assert sealed.read("mass", 4) == [1, 2]
    del mapping
    gc.collect()
    assert sealed.stage.counters()["live_maps"] == 0


def test_thousands_of_maps_half_of_them_aborted(sealed):
    for i in range(2000):
        mapping = sealed.stage.map_attribute(sealed.query, "mass", 2 + i)
        fill(mapping, [i, i])
        if i % 2:
            mapping.abort()
        else:
            mapping.unmap().wait()
            sealed.seal(2 + i)
    counters = sealed.stage.counters()
    assert (counters["live_maps"], counters["live_operations"]) == (0, 0)


# --- readers and writers side by side ---


@pytest.mark.parametrize("order", [(2, 3), (3, 2)], ids=["rising", "falling"])
@pytest.mark.parametrize("how", ["dense", "partial", "mapped", "mapped partly"])
def test_unsealed_ordinals_beside_a_held_snapshot(make_table, order, how):
    table, some = make_table(8), make_table([f"/World/Prim{i}" for i in (1, 6)])
    table.write("x", np.zeros(8, "f4"), 1)
    table.seal(1)
    held = table.group("x", 1)
    snapshot, generation = held.array(0), held.meta.layout_generation
    part = how in ("partial", "mapped partly")
    target = some if part else table
    for ordinal in order:
        if how.startswith("mapped"):
            with target.stage.map_attribute(target.query, "x", ordinal) as mapping:
                mapping.fetch_next().array(0)[:] = ordinal
        else:
            target.write("x", np.full(len(target.paths), ordinal, "f4"), ordinal)
        assert table.read("x", ordinal) == [0] * 8
    for ordinal in (2, 3):
        table.seal(ordinal)
        expected = [ordinal if not part or i in (1, 6) else 0 for i in range(8)]
        assert table.read("x", ordinal) == expected
        assert snapshot.tolist() == [0] * 8
    assert held.meta.layout_generation == generation
    held.release()


def test_prims_inserted_above_the_floor_do_not_show_in_sealed_reads(make_table):
    old = make_table(3)
    old.write("x", np.float32([1, 2, 3]), 1)
    old.seal(1)
    both = make_table(5)
    with old.group("x", 1) as group:
        generation = group.meta.layout_generation
    open_read = both.stage.read_attributes(both.query, [both.token("x")], OrdinalRange.latest(1))
    make_table(["/World/Prim3", "/World/Prim4"]).write("x", np.float32([4, 5]), 2, prim_mode=PrimMode.INSERT)
    with open_read:
        (group,) = open_read.groups()
        with group:
            assert group.array(0).tolist() == [1, 2, 3]
            assert group.meta.layout_generation == generation
    with old.group("x", 1) as group:
        assert (group.array(0).tolist(), group.meta.layout_generation) == ([1, 2, 3], generation)
    old.seal(2)
    assert both.read("x", 2) == [1, 2, 3, 4, 5]
    with old.group("x", 2) as group:
        assert group.array(0).tolist() == [1, 2, 3]
        assert group.meta.layout_generation > generation


def test_selected_prim_that_is_written_but_not_sealed(make_table):
    old, both = make_table(2), make_table(3)
    old.write("x", np.float32([1, 2]), 1)
    old.seal(1)
    make_table(["/World/Prim2"]).write("x", np.float32([3]), 2)
    assert both.read("x", 1) == [1, 2, None]
    with pytest.raises(OvstageError) as caught:
        both.read("x", 2)
    assert caught.value.code == ErrorCode.WRITE_FLOOR_VIOLATION
    assert old.read("x", 2) == [1, 2]


@pytest.mark.parametrize("how", ["write", "map"])
def test_fresh_query_and_list_every_tick_resolve_no_rows(make_table, names, how):
    everything = make_table(1000)
    everything.write("x", np.zeros(1000, "f4"), 1)
    everything.seal(1)
    paths = everything.paths[::2]
    token = everything.token("x")
    stage = everything.stage
    resolved = []
    for ordinal in range(2, 8):
        with names.create_path_list_from_strings(paths) as prims, stage.query_from_path_list(prims) as query:
            if how == "write":
                stage.write_attribute(query, token, ordinal, np.full(500, ordinal, "f4"), is_array=False).wait()
            else:
                with stage.map_attribute(query, token, ordinal) as mapping:
                    mapping.fetch_next().array(0)[:] = ordinal
            stage.advance_write_floor(ordinal).wait()
            with stage.read_attributes(query, [token], OrdinalRange.latest(ordinal)) as read:
                for group in read.groups():
                    with group:
                        assert (group.array(0)[group.data_rows()] == ordinal).all()
        resolved.append(stage.counters()["rows_resolved"])
    assert len(set(resolved)) == 1
