"""Parts of queries: the prims that a mask chooses, as a query of their own."""

from __future__ import annotations

import contextlib
import gc
import threading
import warnings

import numpy as np
import pytest

import ovstage
from ovstage import ErrorCode, Filter, FilterOp, OrdinalRange, OvstageError, Predicate

BOTH_LEVELS = True

DONES = np.array([False, True, False, False, True, False])


@pytest.fixture
def six(make_table):
    table = make_table(6)
    table.write("v", np.arange(6, dtype="f4"), 1)
    table.seal(1)
    return table


@pytest.mark.parametrize("mask", [DONES, DONES.tolist(), DONES[::-1][::-1]], ids=["array", "list", "strided"])
def test_a_query_of_the_chosen(six, mask):
    with six.query.where(mask) as part:
        assert part.result().total_prim_count == 2
        six.stage.write_attribute(part, "v", 2, np.float32([10, 40]), is_array=False).wait()
        six.seal(2)
        assert six.stage.read(part, ["v"])["v"].values.tolist() == [10, 40]
    assert six.read("v", 2) == [0, 10, 2, 3, 40, 5]


def test_words_need_their_count(six):
    with six.query.where([0b010010], count=6) as part:
        assert part.result().total_prim_count == 2
    with pytest.raises(ValueError, match="count is required"):
        six.query.where([0b010010])


def test_parts_have_parts(six):
    with six.query.where([True] * 4 + [False] * 2) as four, four.where([False, True, True, False]) as two:
        assert six.stage.read(two, ["v"])["v"].values.tolist() == [1, 2]


def test_nobody_and_everybody(six):
    with six.query.where(np.zeros(6, bool)) as nobody:
        assert nobody.result().total_prim_count == 0
        six.stage.write_attribute(nobody, "v", 2, np.zeros(0, "f4"), is_array=False).wait()
    with six.query.where(np.ones(6, bool)) as everybody:
        assert six.stage.read(everybody, ["v"])["v"].values.tolist() == list(range(6))
    with six.query.where([False] * 6) as nobody, nobody.where([]) as none_of_them:
        assert none_of_them.result().total_prim_count == 0


def test_a_part_of_what_a_filter_found_stays(six, make_table):
    with six.stage.query(Filter([Predicate("v", FilterOp.GE, [4])])) as query, query.where([False, True]) as part:
        six.write("v", np.full(6, 9, "f4"), 2)
        query.refresh().wait()
        assert query.result().total_prim_count == 6
        assert part.result().total_prim_count == 1
        six.seal(2)
        query.release().wait()
        assert six.stage.read(part, ["v"])["v"].values.tolist() == [9]


@pytest.mark.parametrize(
    ("mask", "options", "error", "text"),
    [
        (DONES[:5], {}, ValueError, "mask is for 5 prims, but the query lists 6"),
        ([*DONES, True], {}, ValueError, "mask is for 7 prims, but the query lists 6"),
        (DONES, {"count": 5}, ValueError, "count is 5, mask has 6"),
        ([1], {"count": 5}, ValueError, "mask is for 5 prims, but the query lists 6"),
        (np.uint8(DONES), {"count": 6}, ValueError, "dtype bool"),
        (np.float32(DONES), {}, TypeError, "mask must be truth values"),
        ({0: True}, {}, TypeError, "mask must be a list"),
        (None, {}, TypeError, "mask must be"),
        (DONES, {"count": True}, TypeError, "count must be an int"),
    ],
    ids=str,
)
def test_masks_that_do_not_fit(six, mask, options, error, text):
    before = six.stage.counters()["live_queries"]
    with pytest.raises(error, match=text):
        six.query.where(mask, **options)
    assert six.stage.counters()["live_queries"] == before


def test_released_and_closed(six):
    part = six.query.where(DONES)
    part.release().wait()
    with pytest.raises(OvstageError) as caught:
        part.where([True, True])
    assert caught.value.code == ErrorCode.INVALID_HANDLE


def test_dropping_one_is_no_mistake(six):
    before = six.stage.counters()["live_queries"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        six.stage.write_attribute(six.query.where(DONES), "v", 2, np.float32([1, 2]), is_array=False).wait()
        gc.collect()
    assert six.stage.counters()["live_queries"] == before


def test_what_came_of_a_part_outlives_it(six):
    with six.query.where(DONES) as part:
        read = six.stage.read_attributes(part, ["v"], OrdinalRange.latest(1))
    with read, read.fetch_next() as group:
        paths = six.names.get_path_strings(group.prim_list)
        assert [paths[at] for at in group.prim_indices()] == ["/World/Prim1", "/World/Prim4"]


def test_resets_by_masks_in_a_loop_do_not_grow(make_table):
    """Masks that recur are told by content; those that do not are forgotten."""
    table, rng = make_table(1000), np.random.default_rng(1)
    table.write("v", np.zeros(1000, "f4"), 1)
    recurring = [rng.random(1000) < 0.1 for _ in range(8)]

    def rounds(first, masks):
        for tick, mask in enumerate(masks, first):
            part = table.query.where(mask)
            table.stage.write_attribute(part, "v", tick, np.ones(mask.sum(), "f4"), is_array=False).wait()
            table.seal(tick)

    rounds(2, recurring)
    before = table.stage.counters()
    rounds(10, recurring * 10)
    after = table.stage.counters()
    assert after["rows_resolved"] == before["rows_resolved"]
    rounds(100, [rng.random(1000) < 0.1 for _ in range(500)])
    after = table.stage.counters()
    for name in ("live_queries", "live_operations", "live_reads", "live_groups"):
        assert after[name] == before[name]
    assert after["bytes_columns"] <= 2 * before["bytes_columns"]


def test_a_refresh_meanwhile(six, make_table):
    """A part is all of one state of the query: its mask fits, or it is refused."""
    query = six.stage.query(Filter([Predicate("v", FilterOp.HAS)]))
    wide, ended, failures = make_table(12), threading.Event(), []

    def refresh():
        try:
            for ordinal in range(2, 200):
                if ordinal % 2:
                    wide.stage.delete_attributes(last.query, ["v"], ordinal).wait()
                else:
                    last.write("v", np.zeros(6, "f4"), ordinal)
                query.refresh().wait()
        except BaseException as error:
            failures.append(error)
        finally:
            ended.set()

    last = make_table([f"/World/Prim{i}" for i in range(6, 12)])
    thread = threading.Thread(target=refresh)
    thread.start()
    seen = set()
    while not ended.is_set():
        for count in (6, 12):
            with contextlib.suppress(ValueError), query.where([True] * count) as part:  # it had another length
                seen.add((count, part.result().total_prim_count))
    thread.join()
    assert not failures
    assert seen <= {(6, 6), (12, 12)}
    query.release().wait()


def test_typed_as_a_query(six):
    with six.query.where(DONES) as part:
        assert isinstance(part, ovstage.Query)
        assert "2 prims" in repr(part)
