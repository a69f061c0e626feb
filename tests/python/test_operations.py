"""Operations and handles: waiting, refusing, releasing, forgetting."""

from __future__ import annotations

import gc
import os
import signal
import threading
import warnings

import numpy as np
import pytest
from conftest import Table

import ovstage
from ovstage import (
    DLDeviceType,
    ErrorCode,
    Filter,
    FilterOp,
    Operation,
    OrdinalRange,
    OvstageError,
    Predicate,
    Stage,
    make_dltensor,
)


def raises(code, call, text=""):
    with pytest.raises(OvstageError) as caught:
        call()
    assert caught.value.code == code
    assert text in caught.value.message
    return caught.value.message


def good(table, ordinal=1):
    return table.stage.write_attribute(table.query, "mass", ordinal, np.float32([1, 2]), is_array=False)


def bad(table, rows=3):
    return table.stage.write_attribute(table.query, "mass", 1, np.zeros(rows, "f4"), is_array=False)


# --- operations ---


def test_accepted_operation(table):
    op = good(table)
    assert (op.status, op.ok, op.error_message()) == (0, True, "")
    assert op.op_id > 0
    assert op.wait() is None
    assert op.done()


def test_second_wait_is_refused(table):
    op = good(table)
    op.wait()
    raises(ErrorCode.INVALID_HANDLE, op.wait, "already been waited and released")


def test_polling_consumes_nothing(table):
    op = good(table)
    while not op.done():
        pass
    assert op.done()
    op.wait(0)


def test_refused_operation_keeps_its_own_text(table):
    first, second = bad(table, 3), bad(table, 5)
    assert (first.status, first.op_id, first.ok, first.done()) == (ErrorCode.INVALID_ARGUMENT, 0, False, True)
    assert "3" in first.error_message()
    assert "5" in second.error_message()
    texts = {raises(ErrorCode.INVALID_ARGUMENT, first.wait) for _ in range(2)}
    assert texts == {first.error_message()}
    assert first.error_message() != second.error_message()


def test_refusal_does_not_fail_what_comes_after(table):
    assert not bad(table).ok
    good(table).wait()
    table.seal(1)
    assert table.read("mass", 1) == [1, 2]


def test_bad_timeout_consumes_nothing(table):
    op = good(table)
    for wrong, error in ((1.0, TypeError), ("1", TypeError), (None, TypeError), (-1, ValueError), (2**64, ValueError)):
        with pytest.raises(error, match="timeout"):
            op.wait(wrong)
    op.wait()


def test_wait_after_the_stage_is_destroyed(table):
    op, refused = good(table), bad(table)
    table.stage.destroy()
    raises(ErrorCode.INVALID_HANDLE, op.wait, "destroyed")
    raises(ErrorCode.INVALID_ARGUMENT, refused.wait)


def test_operation_can_be_built_by_hand(table):
    raises(ErrorCode.INVALID_HANDLE, Operation(table.stage, 0, 0).wait, "no valid op id")
    op = Operation(table.stage, ErrorCode.NOT_FOUND, 0)
    raises(ErrorCode.NOT_FOUND, op.wait)
    for wrong in (1.0, "1", None):
        with pytest.raises(TypeError, match="status must be an int"):
            Operation(table.stage, wrong, 0)
        with pytest.raises(TypeError, match="op_id must be an int"):
            Operation(table.stage, 0, wrong)


def test_polling_through_the_stage(table):
    op = good(table)
    code, failed, _ = table.stage.wait_op(op.op_id)
    assert (code, failed) == (ErrorCode.OK, [])
    assert table.stage.wait_op_raw(op.op_id, 0) == ErrorCode.OK
    assert table.stage.op_status(op.op_id) == ErrorCode.OK
    assert table.stage.release_op(op.op_id) == ErrorCode.OK


def test_unknown_operation(stage):
    assert stage.wait_op(10**9)[0] == ErrorCode.INVALID_HANDLE
    assert stage.release_op(10**9) == ErrorCode.INVALID_HANDLE


@pytest.mark.filterwarnings("ignore::ovstage.OvstageWarning")
def test_dropped_operations_leave_nothing_behind(table):
    table.stage.release_query(table.stage.query_from_path_list(table.list)).wait()
    before = table.stage.counters()["live_operations"]
    for ordinal in range(1, 200):
        good(table, ordinal)
        bad(table)
    gc.collect()
    assert table.stage.counters()["live_operations"] == before


@pytest.mark.parametrize("count", [50_000, pytest.param(10**6, marks=pytest.mark.slow)])
def test_submissions_without_a_wait_are_never_refused_and_take_no_memory(fresh_python, count):
    """Operations are done when their call returns: however many are submitted, nothing queues up."""
    program = f"""
import numpy as np, ovstage
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
with ovstage.Stage() as stage, ovstage.PathDictionary(stage) as names:
    with names.create_path_list_from_strings(["/A", "/B"]) as prims, stage.query_from_path_list(prims) as query:
        values, mass = np.float32([1, 2]), names.intern_token("mass")
        def submit(ordinals):
            for ordinal in ordinals:
                op = stage.write_attribute(query, mass, ordinal, values, is_array=False)
                assert op.ok and op.op_id  # whose id was read is not released with the object
                if ordinal % 100 == 0:
                    assert stage.advance_write_floor(ordinal).ok
        submit(range(1, 20_000))
        before = resident()
        submit(range(20_000, 20_000 + {count}))
        grown = resident() - before
        assert grown < 8 << 20, grown
        assert stage.counters()["live_operations"] == 0
"""
    done = fresh_python(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def failing(table, ordinal):
    """The unmap of a map whose ordinal was sealed meanwhile: accepted, and then failed."""
    mapping = table.stage.map_attribute(table.query, "mass", ordinal)
    table.seal(ordinal)
    op = mapping.unmap()
    assert op.ok
    return op


def test_failure_is_told_by_its_own_operation_alone(table):
    good(table).wait()
    failed, fine = failing(table, 2), good(table, 3)
    stage, failed_id, fine_id = table.stage, failed.op_id, fine.op_id
    assert stage.wait_op(fine_id) == (ErrorCode.OK, [], 0)
    fine.wait()
    for timeout in (0, 1_000_000, ovstage.TIMEOUT_INFINITE):
        assert stage.wait_op(failed_id, timeout) == (ErrorCode.OK, [failed_id], 0)
    assert stage.op_status(failed_id) == ErrorCode.WRITE_FLOOR_VIOLATION
    text = raises(ErrorCode.WRITE_FLOOR_VIOLATION, failed.wait, '"mass"')
    assert failed.error_message() == text
    assert fine.error_message() == ""


def test_text_of_a_failure_survives_its_release(table):
    good(table).wait()
    op = failing(table, 2).op_id
    assert table.stage.wait_op(op)[1] == [op]
    assert table.stage.release_op(op) == ErrorCode.OK
    assert "floor" in table.stage.op_error(op)
    good(table, 3).wait()  # the next wait of this thread ends it
    assert table.stage.op_error(op) == ""
    assert table.stage.wait_op(op)[0] == ErrorCode.INVALID_HANDLE


def test_failure_is_the_same_on_every_thread(table):
    good(table).wait()
    op = failing(table, 2)
    seen = []
    other = threading.Thread(target=lambda: seen.append(table.stage.wait_op(op.op_id)[1]))
    other.start()
    other.join()
    assert seen == [[op.op_id]]
    raises(ErrorCode.WRITE_FLOOR_VIOLATION, op.wait, "floor")


def test_one_wait_at_the_end_of_many_ordinals(table):
    """A pipeline: each write with a buffer of its own, one wait for the last floor."""
    ops = []
    for ordinal in range(1, 100):
        ops.append(table.stage.write_attribute(table.query, "mass", ordinal, np.full(2, ordinal, "f4"), is_array=False))
        ops.append(table.stage.advance_write_floor(ordinal))
    ops[-1].wait()
    assert all(op.done() and not op.error_message() for op in ops)
    assert table.read("mass", 99) == [99, 99]


def test_failures_that_nobody_releases_are_bounded(fresh_python):
    program = """
import numpy as np, ovstage
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
with ovstage.Stage() as stage, ovstage.PathDictionary(stage) as names:
    with names.create_path_list_from_strings(["/A", "/B"]) as prims, stage.query_from_path_list(prims) as query:
        stage.write_attribute(query, "mass", 1, np.float32([1, 2]), is_array=False).wait()
        def fail(ordinals):
            for ordinal in ordinals:
                mapping = stage.map_attribute(query, "mass", ordinal)
                stage.advance_write_floor(ordinal)
                failed = mapping.unmap().op_id
            assert stage.wait_op(failed)[1] == [failed]
        fail(range(2, 10_000))
        before = resident()
        fail(range(10_000, 20_000))
        grown = resident() - before
        assert grown < 4 << 20, grown  # they are remembered as failures, a few dozen bytes each
"""
    done = fresh_python(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def write_for_ever(table):
    while True:
        good(table).wait()


def test_ctrl_c_ends_a_loop_of_calls(table):
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            write_for_ever(table)
    finally:
        signal.signal(signal.SIGINT, previous)


def test_ctrl_c_ends_a_wait_for_the_log(stage):
    """The wait that can last: for a callback that does not come back."""
    entered, leave = threading.Event(), threading.Event()

    def stuck(*record):
        entered.set()
        leave.wait()

    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    ovstage.set_log_callback(stuck, ovstage.LogSeverity.VERBOSE)
    try:
        with Stage("another"):
            pass
        entered.wait()
        for wait in (ovstage.flush_log, lambda: ovstage.set_log_callback(None)):
            threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
            with pytest.raises(KeyboardInterrupt):
                wait()
        assert ovstage.flush_log(0) is False  # it is still installed, and still at it
        assert ovstage.flush_log(1_000_000) is False
    finally:
        leave.set()
        ovstage.set_log_callback(None)
        signal.signal(signal.SIGINT, previous)
    assert ovstage.flush_log(0) is True


@pytest.mark.parametrize("rows", [3, 500_000])
def test_ctrl_c_during_a_write_loses_nothing(make_table, rows):
    """The write ends first: it is there as a whole or not at all, and nothing of it stays behind."""
    table = make_table(rows)
    values, writing = np.zeros((rows, 8), "f4"), threading.Event()

    class Source:
        def __dlpack__(self, **options):
            writing.set()
            return values.__dlpack__(**options)

        def __dlpack_device__(self):
            return values.__dlpack_device__()

    def interrupt():
        writing.wait()
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    previous, last = signal.signal(signal.SIGINT, signal.default_int_handler), 0
    try:
        table.write("wide", values, 1)
        for ordinal in range(2, 12):
            values[:] = ordinal
            writing.clear()
            other = threading.Thread(target=interrupt)
            with pytest.raises(KeyboardInterrupt):
                other.start()
                table.stage.write_attribute(table.query, "wide", ordinal, Source(), is_array=False).wait()
                other.join()
            other.join()
            table.seal(ordinal)
            with table.group("wide", ordinal) as group:
                seen = group.array(0).ravel()
                assert (seen == seen[0]).all()
                assert seen[0] in (last, ordinal)
                last = int(seen[0])
                del seen
    finally:
        signal.signal(signal.SIGINT, previous)
    counters = table.stage.counters()
    assert (counters["live_operations"], counters["live_exports"]) == (0, 0)


# --- queries ---


def test_path_list_query_is_there_at_once(table):
    query = table.stage.query_from_path_list(table.list)
    assert query.op is None
    assert int(query) == query.handle > 0
    query.wait()
    result = query.result()
    assert (result.total_prim_count, result.all_handle) == (2, query.handle)
    assert table.stage.fetch_query_result(query) == result
    query.release().wait()


def test_query_reports_the_attributes_of_its_prims(table):
    table.write("mass", np.float32([1, 2]), 1)
    table.write("size", np.float32([1, 2]), 1)
    assert sorted(table.query.result().attributes) == sorted([table.token("mass"), table.token("size")])


def test_raw_handles_do_for_objects(table):
    table.write("mass", np.float32([1, 2]), 1)
    table.seal(1)
    stage, token = table.stage, table.token("mass")
    query = stage._query_path_list(table.list)
    stage.write_attribute(query, token, 2, np.float32([3, 4]), is_array=False).wait()
    stage.advance_write_floor(2).wait()
    read = stage.read_attributes(query, [token], OrdinalRange.latest(2))
    group = stage.fetch_read_next(read.handle)
    assert group.array(0).tolist() == [3, 4]
    stage.release_group(group)
    mapping = stage.map_attribute(query, token, 3)
    assert stage.fetch_map_next(mapping.handle).array(0).tolist() == [3, 4]
    mapping.unmap().wait()
    read.release().wait()
    stage.release_query(query).wait()


# --- handles ---


def open_handles(table):
    table.write("mass", np.float32([1, 2]), 1)
    table.seal(1)
    stage = table.stage
    return {
        "Query": stage.query_from_path_list(table.list),
        "Read": stage.read_attributes(table.query, [table.token("mass")], OrdinalRange.latest(1)),
        "OrdinalQuery": stage.get_attribute_write_floor(),
        "Map": stage.map_attribute(table.query, "mass", 5),
    }


KINDS = ["Query", "Read", "OrdinalQuery", "Map"]


def end(handle):
    return handle.unmap() if isinstance(handle, ovstage.Map) else handle.release()


def close(handles):
    for handle in handles.values():
        end(handle).wait()


@pytest.mark.parametrize("kind", KINDS)
def test_second_end_is_refused(table, kind):
    handles = open_handles(table)
    handle = handles.pop(kind)
    close(handles)
    end(handle).wait()
    message = raises(ErrorCode.INVALID_HANDLE, lambda: end(handle))
    assert f"{kind} {handle.handle} has been {'unmapped' if kind == 'Map' else 'released'}" in message


def test_use_after_release_is_refused(table):
    handles = open_handles(table)
    close(handles)
    query, read, floor, mapping = (handles[kind] for kind in KINDS)
    stage, token, latest = table.stage, table.token("mass"), OrdinalRange.latest(1)
    for call in (
        query.result,
        read.fetch_next,
        floor.fetch,
        mapping.fetch_next,
        lambda: next(read.groups()),
        lambda: next(mapping.groups()),
        lambda: stage.read_attributes(query, [token], latest),
        lambda: stage.write_attribute(query, "mass", 9, np.float32([1, 2]), is_array=False),
        lambda: stage.write_attributes(query, [], 9),
        lambda: stage.map_attribute(query, "mass", 9),
        lambda: stage.delete_attributes(query, ["mass"], 9),
        lambda: stage.fetch_query_result(query),
    ):
        raises(ErrorCode.INVALID_HANDLE, call, "has been")


@pytest.mark.parametrize("kind", KINDS)
def test_with_block_ends_the_handle(table, kind):
    handles = open_handles(table)
    with handles[kind] as handle:
        assert handle is handles[kind]
    raises(ErrorCode.INVALID_HANDLE, lambda: end(handle))
    del handles[kind]
    close(handles)


@pytest.mark.parametrize("kind", KINDS)
def test_with_block_lets_the_bodys_exception_through(table, kind):
    error = RuntimeError("body")
    handles = open_handles(table)
    with pytest.raises(RuntimeError) as caught, handles[kind]:
        raise error
    assert caught.value is error
    del handles[kind]
    close(handles)


@pytest.mark.parametrize("kind", KINDS)
def test_block_may_end_the_handle_itself(table, kind):
    handles = open_handles(table)
    with handles.pop(kind) as handle:
        end(handle).wait()
    close(handles)


COUNTERS = {"Query": "live_queries", "Read": "live_reads", "Map": "live_maps"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strict", [False, True], ids=["warning", "error"])
def test_dropped_handle_is_released_and_reported(table, kind, strict, capsys, unraisable):
    handles = open_handles(table)
    counter = COUNTERS.get(kind)
    before = table.stage.counters().get(counter, 0)
    number = handles[kind].handle
    with warnings.catch_warnings(record=not strict) as caught:
        warnings.simplefilter("error" if strict else "always", ResourceWarning)
        del handles[kind]
        gc.collect()
    text = f"{kind} {number} was garbage-collected without {'unmap()' if kind == 'Map' else 'release()'}"
    assert text in (capsys.readouterr().err if strict else str(caught[0].message))
    assert not unraisable
    if counter:
        assert table.stage.counters()[counter] == before - 1
    close(handles)


def test_handles_of_a_destroyed_stage_are_silent(table, recwarn):
    handles = open_handles(table)
    table.stage.destroy()
    raises(ErrorCode.INVALID_HANDLE, handles["Query"].release, "destroyed")
    handles.clear()
    gc.collect()
    assert not recwarn.list


def test_refused_release_leaves_the_handle_open(table):
    query = table.stage.query_from_path_list(table.list)
    with Stage("other") as other:
        raises(ErrorCode.INVALID_HANDLE, other.release_query(query).wait)
    query.release().wait()


def test_handle_objects_are_only_as_good_as_their_stage(table):
    with Stage("other") as other:
        op = other.write_attribute(table.query, "mass", 1, np.float32([1, 2]), is_array=False)
        assert op.status == ErrorCode.INVALID_HANDLE


# --- what this build does not do says so ---


def test_filters_are_refused_by_the_operation(table, recwarn):
    query = table.stage.query(Filter([Predicate("usd-active", FilterOp.IN, ["1"])]))
    assert query.op.status == ErrorCode.NOT_SUPPORTED
    assert query.op.error_message()
    raises(ErrorCode.NOT_SUPPORTED, query.wait)
    with query:
        pass
    del query
    gc.collect()
    assert not recwarn.list


def test_unsupported_calls_name_themselves(table):
    stage = table.stage
    on_gpu = stage.write_attribute(
        table.query, "mass", 1, make_dltensor(np.float32([1, 2]), device_type=DLDeviceType.kDLCUDA), is_array=False
    )
    raises(ErrorCode.NOT_SUPPORTED, on_gpu.wait, "CUDA:0")
    good(table)


# --- the stage itself ---


def test_stage_is_a_context_manager():
    with Stage("name") as stage:
        assert stage.alive
    assert not stage.alive


def test_destroy_twice():
    stage = Stage()
    stage.destroy()
    stage.destroy()


def test_calls_on_a_destroyed_stage(table):
    table.stage.destroy()
    for call in (
        lambda: good(table),
        lambda: table.stage.advance_write_floor(1),
        lambda: table.stage.query_from_path_list(table.list),
        lambda: table.stage.query(),
        lambda: table.stage.counters(),
        lambda: table.stage.wait_op(1),
        table.stage.get_oldest_preserved_ordinal,
    ):
        raises(ErrorCode.INVALID_HANDLE, call, "destroyed")


def test_stages_do_not_share_data(table):
    table.write("mass", np.float32([1, 2]), 1)
    table.seal(1)
    with Stage("other") as other, ovstage.PathDictionary(other) as names:
        same = Table(other, names, table.paths)
        with other.get_attribute_write_floor() as floor:
            assert floor.fetch() == 0
        same.seal(1)
        assert same.groups("mass", 1) == []
        same.close()


def test_counters_return_to_zero(table):
    close(open_handles(table))
    table.query.release().wait()
    gc.collect()
    counters = table.stage.counters()
    live = {name: value for name, value in counters.items() if name.startswith("live_") and name != "live_blocks"}
    assert set(live.values()) == {0}, live
    assert {"bytes_columns", "bytes_pooled", "bytes_copied", "live_exports"} <= set(counters)
    table.query = table.stage.query_from_path_list(table.list)


def test_stage_of_many_ticks_stays_small(table):
    with table.stage.get_attribute_write_floor():
        pass
    for ordinal in range(1, 2000):
        table.write("mass", np.float32([ordinal, 0]), ordinal)
        table.seal(ordinal)
        assert table.read("mass", ordinal)[0] == np.float32(ordinal)
    counters = table.stage.counters()
    assert (counters["live_operations"], counters["live_groups"], counters["live_reads"]) == (0, 0, 0)
    assert counters["bytes_columns"] < 1 << 20
