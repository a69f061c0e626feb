"""The memory that a map lends: zero copy, who may write to it, and what becomes of views that stay behind."""

from __future__ import annotations

import ctypes
import gc
import threading
import warnings

import numpy as np
import pytest
import warp as wp
from conftest import address, invalid_handle, needs_writable_imports

import ovstage
from ovstage import DLDataType

BOTH_LEVELS = True

FLOAT = DLDataType(2, 32, 1)
BIG = 300_000  # rows of a column that is large enough for its pages to be moved

wp.config.quiet = True
wp.config.log_level = 40


@pytest.fixture
def big(make_table):
    table = make_table(BIG)
    table.write("x", np.arange(BIG, dtype="f4"), 1)
    table.seal(1)
    return table


# --- zero copy ---


@pytest.mark.parametrize("initial", ["current", "zero", "discard"])
@pytest.mark.parametrize("commit", ["auto", "adopt"])
def test_mapped_buffer_becomes_the_column(big, initial, commit):
    before = big.stage.counters()
    mapping = big.stage.map_attribute(big.query, "x", 2, initial=initial)
    group = mapping.fetch_next()
    group.array(0)[:] = 7
    lent = address(group.array(0))
    opened = big.stage.counters()["bytes_copied"]
    mapping.unmap(commit=commit).wait()
    big.seal(2)
    with big.group("x", 2) as served:
        assert address(served.array(0)) == lent
        assert (served.array(0) == 7).all()
    after = big.stage.counters()
    assert after["maps_adopted"] == before["maps_adopted"] + 1
    assert after["bytes_copied"] == opened


def test_committed_group_becomes_the_column(big):
    with big.stage.map_attribute(big.query, "x", 2, initial="discard") as mapping:
        group = mapping.fetch_next()
        group.array(0)[:] = 7
        lent = address(group.array(0))
        mapping.unmap_group(group).wait()
    big.seal(2)
    with big.group("x", 2) as served:
        assert address(served.array(0)) == lent


# --- views that stay behind ---


@pytest.mark.parametrize("make_view", ["array", pytest.param("dlpack", marks=needs_writable_imports), "tensor"])
@pytest.mark.parametrize("rows", [2, BIG])
def test_view_alive_at_unmap_cannot_change_what_was_committed(make_table, make_view, rows):
    table = make_table(rows)
    table.write("x", np.zeros(rows, "f4"), 1)
    table.seal(1)
    with table.stage.map_attribute(table.query, "x", 2, initial="discard") as mapping:
        before = table.stage.counters()
        group = mapping.fetch_next()
        group.array(0)[:] = np.arange(rows)
        view = {
            "array": lambda: group.array(0),
            "dlpack": lambda: np.from_dlpack(group.dlpack(0)),
            "tensor": lambda: ovstage.dltensor_to_numpy(group.tensor(0)),
        }[make_view]()
        lent = address(view)
    after = table.stage.counters()
    table.seal(2)
    view[:] = -1
    with table.group("x", 2) as served:
        assert address(served.array(0)) != lent
        assert (served.array(0) == np.arange(rows)).all()
        view[:] = -2
        assert (served.array(0) == np.arange(rows)).all()
    assert address(view) == lent
    counted = {name: after[name] - before[name] for name in after}
    if rows == 2:  # copying is cheaper than moving pages
        assert (counted["detach_moves"], counted["detach_copies"]) == (0, 1)
    else:  # moved, or copied where the kernel can't
        assert counted["detach_moves"] + counted["detach_copies"] == 1
    assert counted["bytes_copied"] == counted["detach_copies"] * rows * 4
    assert counted["maps_adopted"] == 1 - counted["detach_copies"]


def test_adopt_is_the_callers_promise(big):
    mapping = big.stage.map_attribute(big.query, "x", 2, initial="discard")
    view = mapping.fetch_next().array(0)
    view[:] = 7
    mapping.unmap(commit="adopt").wait()
    big.seal(2)
    with big.group("x", 2) as served:
        assert address(served.array(0)) == address(view)


@needs_writable_imports
def test_view_stays_valid_after_everything_is_gone():
    stage = ovstage.Stage()
    names = ovstage.PathDictionary(stage)
    with names.create_path_list_from_strings(["/A", "/B"]) as prims:
        query = stage.query_from_path_list(prims)
    mapping = stage.map_attribute(query, "mass", 1, dtype=FLOAT)
    group = mapping.fetch_next()
    view, exported, capsule = group.array(0), np.from_dlpack(group.dlpack(0)), group.dlpack(0)
    mapping.unmap().wait()
    query.release().wait()
    stage.destroy()
    del stage, names, query, mapping, group
    gc.collect()
    for array in (view, exported, np.from_dlpack(capsule)):
        array[:] = [3, 4]
        assert array.tolist() == [3, 4]


def test_view_of_an_open_map_outlives_the_stage():
    stage = ovstage.Stage()
    names = ovstage.PathDictionary(stage)
    with names.create_path_list_from_strings(["/A", "/B"]) as prims, stage.query_from_path_list(prims) as query:
        mapping = stage.map_attribute(query, "mass", 1, dtype=FLOAT)
        view = mapping.fetch_next().array(0)
    stage.destroy()
    view[:] = 1
    assert view.tolist() == [1, 1]
    invalid_handle(mapping.unmap)


@needs_writable_imports
def test_dropped_views_leave_nothing_behind(big):
    exports = ovstage.process_counters()["live_exports"]
    for ordinal in range(2, 30):
        with big.stage.map_attribute(big.query, "x", ordinal, initial="discard") as mapping:
            view = np.from_dlpack(mapping.fetch_next().dlpack(0))
            view[:] = ordinal
        big.seal(ordinal)
    del view
    gc.collect()
    assert ovstage.process_counters()["live_exports"] == exports
    assert big.stage.counters()["bytes_columns"] <= 4 * BIG * 4


@needs_writable_imports
def test_many_exports_of_one_buffer(big):
    before = big.stage.counters()
    with big.stage.map_attribute(big.query, "x", 2) as mapping:
        group = mapping.fetch_next()
        views = [group.array(0), *(np.from_dlpack(group.dlpack(0)) for _ in range(3))]
        unused = group.dlpack(0)
        for at, view in enumerate(views):
            view[at] = 100 + at
        assert all(view[:4].tolist() == [100, 101, 102, 103] for view in views)
    after = big.stage.counters()
    assert after["detach_moves"] + after["detach_copies"] == before["detach_moves"] + before["detach_copies"] + 1
    big.seal(2)
    for view in views:
        view[:] = -1
    with big.group("x", 2) as served:
        assert served.array(0)[:5].tolist() == [100, 101, 102, 103, 4]
    np.from_dlpack(unused)[:] = -2
    assert views[0][0] == -2, "what is left of the buffer is theirs together"


# --- who writes to it ---


@wp.kernel
def double(values: wp.array2d(dtype=wp.float32)):
    row, lane = wp.tid()
    values[row, lane] = 2.0 * values[row, lane]


def test_warp_kernel_computes_in_place(make_table):
    wp.init()
    table = make_table(1000)
    table.write("p", np.arange(3000, dtype="f4").reshape(1000, 3), 1)
    table.seal(1)
    with table.stage.map_attribute(table.query, "p", 2) as mapping:
        group = mapping.fetch_next()
        values = wp.from_dlpack(group.dlpack(0))
        assert values.ptr == address(group.array(0))
        wp.launch(double, dim=values.shape, inputs=[values], device="cpu")
        del values
    assert table.stage.counters()["maps_adopted"] == 1
    table.seal(2)
    with table.group("p", 2) as served:
        assert (served.array(0).ravel() == 2 * np.arange(3000)).all()


def test_thread_without_the_interpreter_writes(big):
    with big.stage.map_attribute(big.query, "x", 2, initial="discard") as mapping:
        group = mapping.fetch_next()
        source = np.arange(BIG, dtype="f4") + 1
        copy = threading.Thread(target=ctypes.memmove, args=(group.tensor(0).data, source.ctypes.data, 4 * BIG))
        copy.start()
        copy.join()
    big.seal(2)
    with big.group("x", 2) as served:
        assert (served.array(0) == source).all()


# --- sessions that come and go ---


def resident():
    """Bytes of this process in memory."""
    with open("/proc/self/status") as status:
        return 1024 * int(next(line for line in status if line.startswith("VmRSS")).split()[1])


@pytest.mark.slow
def test_a_million_sessions_that_are_given_up_leave_nothing(table):
    table.write("x", np.float32([1, 2]), 1)
    table.seal(1)

    def give_up(sessions):
        for i in range(sessions):
            mapping = table.stage.map_attribute(table.query, "x", 2, initial=["current", "zero", "discard"][i % 3])
            group = mapping.fetch_next() if i % 5 else None
            if i % 2:
                mapping.abort()
            del mapping, group

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # half of them are dropped
        give_up(50_000)
        gc.collect()
        counters, memory = table.stage.counters(), resident()
        give_up(1_000_000)
        gc.collect()
    after = table.stage.counters()
    moving = ("bytes_copied", "rows_resolved")
    assert {k: v for k, v in after.items() if k not in moving} == {k: v for k, v in counters.items() if k not in moving}
    assert resident() - memory < 8 << 20
    assert table.read("x", 1) == [1, 2]
