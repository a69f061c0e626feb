"""Maps of several groups, and maps that lend only prims that exist."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import invalid_handle

from ovstage import DLDataType, ErrorCode, OvstageError, PrimMode

BOTH_LEVELS = True

FLOAT = DLDataType(2, 32, 1)


def test_groups_are_committed_one_by_one_while_others_are_filled(make_table):
    five = make_table(5)
    five.write("x", np.float32([1, 2, 3, 4, 5]), 1)
    five.seal(1)
    with five.stage.map_attribute(five.query, "x", 2, group_rows=2) as mapping:
        first, second, third = mapping.groups()
        assert [group.prim_indices().tolist() for group in (first, second, third)] == [[0, 1], [2, 3], [4]]
        second.array(0)[:] = [30, 40]
        mapping.unmap_group(second).wait()
        invalid_handle(lambda: second.array(0))
        invalid_handle(lambda: mapping.unmap_group(second).wait())
        assert five.read("x", 2) == [1, 2, 3, 4, 5], "nothing shows before the ordinal is sealed"
        first.array(0)[:] = [10, 20]
        mapping.unmap_group(first).wait()
        third.array(0)[:] += 45
    five.seal(2)
    assert five.read("x", 2) == [10, 20, 30, 40, 50]


def test_groups_of_arrays(make_table):
    three = make_table(3)
    with three.stage.map_attribute(
        three.query, "a", 1, dtype=FLOAT, element_sizes=[1, 0, 2], group_rows=2, initial="zero"
    ) as mapping:
        first, last = mapping.groups()
        assert (first.tensor_count, last.tensor_count) == (2, 1)
        last.array(0)[:] = [5, 6]
        mapping.unmap_group(last).wait()
        first.array(0)[:] = 4
    three.seal(1)
    assert three.read("a", 1) == [[4], [], [5, 6]]


def test_abort_keeps_the_groups_that_were_committed(make_table):
    three = make_table(3)
    three.write("x", np.float32([1, 2, 3]), 1)
    mapping = three.stage.map_attribute(three.query, "x", 2, group_rows=1)
    first, second, _ = mapping.groups()
    first.array(0)[:], second.array(0)[:] = 10, 20
    mapping.unmap_group(first).wait()
    mapping.abort()
    invalid_handle(lambda: second.array(0))
    three.seal(2)
    assert three.read("x", 2) == [10, 2, 3]


def test_failed_group_leaves_the_session_usable(make_table):
    two = make_table(2)
    two.write("x", np.float32([1, 2]), 1)
    mapping = two.stage.map_attribute(two.query, "x", 2, group_rows=1)
    first, second = mapping.groups()
    two.seal(2)
    with pytest.raises(OvstageError) as caught:
        mapping.unmap_group(first).wait()
    assert caught.value.code == ErrorCode.WRITE_FLOOR_VIOLATION
    first.array(0)[:], second.array(0)[:] = 5, 6  # both are the caller's still
    mapping.abort()
    invalid_handle(lambda: first.array(0))
    assert two.read("x", 2) == [1, 2]
    assert two.stage.counters()["live_maps"] == 0


@pytest.mark.parametrize("group_rows", [0, -1, 2**64])
def test_group_rows_out_of_range(table, group_rows):
    with pytest.raises(ValueError, match="group_rows"):
        table.stage.map_attribute(table.query, "mass", 2, group_rows=group_rows)
    with pytest.raises(TypeError, match="group_rows"):
        table.stage.map_attribute(table.query, "mass", 2, group_rows=1.5)


def test_update_maps_the_prims_that_exist(make_table):
    some, every = make_table(["/World/B", "/World/D"]), make_table([f"/World/{name}" for name in "ABCDE"])
    some.write("x", np.float32([2, 4]), 1)
    some.write("y", np.float32([0, 0]), 1)
    with every.stage.map_attribute(
        every.query, "y", 2, prim_mode=PrimMode.UPDATE, dtype=FLOAT, element_sizes=None
    ) as mapping:
        (group,) = mapping.groups()
        assert group.has_prim_index_map
        assert group.prim_indices().tolist() == [1, 3]
        assert group.prim_count == group.data_count == 2
        group.array(0)[:] = [20, 40]
    every.seal(2)
    assert every.read("y", 2) == [None, 20, None, 40, None]
    with every.stage.map_attribute(
        every.query, "a", 3, prim_mode=PrimMode.UPDATE, dtype=FLOAT, element_sizes=[9, 1, 9, 2, 9]
    ) as mapping:
        (group,) = mapping.groups()
        assert [len(group.array(i)) for i in range(2)] == [1, 2]
    every.seal(3)
    assert every.read("a", 3) == [None, [0], None, [0, 0], None]


def test_update_map_of_prims_that_do_not_exist_has_no_group(table):
    with table.stage.map_attribute(table.query, "x", 1, prim_mode=PrimMode.UPDATE, dtype=FLOAT) as mapping:
        assert mapping.fetch_next() is None
    table.seal(1)
    assert table.read("x", 1) == [None, None]


def test_groups_filled_and_committed_by_several_threads(make_table):
    rows, step = 10_000, 1000
    table = make_table(rows)
    table.write("x", np.zeros(rows, "f4"), 1)
    with table.stage.map_attribute(table.query, "x", 2, group_rows=step, initial="discard") as mapping:

        def fill(group):
            group.array(0)[:] = group.prim_indices()
            mapping.unmap_group(group).wait()

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(fill, mapping.groups()))
    table.seal(2)
    with table.group("x", 2) as served:
        assert served.array(0).tolist() == list(range(rows))


@pytest.mark.parametrize("initial", ["zero", "discard"])
def test_split_map_is_copied_once(make_table, initial):
    rows = 100_000
    table = make_table(rows)
    table.write("x", np.zeros(rows, "f4"), 1)
    table.seal(1)
    with table.group("x", 1):  # a reader keeps the values of before
        before = table.stage.counters()["bytes_copied"]
        with table.stage.map_attribute(table.query, "x", 2, group_rows=30_000, initial=initial) as mapping:
            for group in mapping.groups():
                group.array(0)[:] = 7
                mapping.unmap_group(group).wait()
        table.seal(2)
        assert table.stage.counters()["bytes_copied"] - before == 4 * rows
    with table.group("x", 2) as served:
        assert (served.array(0) == 7).all()


def test_prims_that_are_new_lie_in_the_order_of_the_commits(make_table):
    table = make_table(4)
    with table.stage.map_attribute(table.query, "x", 1, dtype=FLOAT, group_rows=2) as mapping:
        first, second = mapping.groups()
        first.array(0)[:], second.array(0)[:] = [1, 2], [3, 4]
        mapping.unmap_group(second).wait()
    table.seal(1)
    assert table.read("x", 1) == [1, 2, 3, 4]
