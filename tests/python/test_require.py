"""PrimMode.REQUIRE: a write or a map that is for prims which exist, all of them."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import ovstage
from ovstage import DLDataType, ErrorCode, OvstageError, PrimMode, WriteDesc

REQUIRE = PrimMode.REQUIRE


def missing(call: object, path: str) -> None:
    """The refusal names the prim, and nothing has been written."""
    with pytest.raises(OvstageError) as caught:
        call()
    assert caught.value.code == ErrorCode.PRIM_NOT_FOUND
    assert f"prim_mode REQUIRE: prim {path} does not exist; nothing was written" in caught.value.message


@pytest.fixture
def table(make_table):
    """Four prims, of which the first two exist, without a value of what the tests write."""
    make_table(2).write("other", np.float32([1, 2]), 1)
    return make_table(4)


def test_prims_that_exist_are_written(table, make_table):
    two = make_table(2)
    two.write("mass", np.float32([5, 6]), 2, prim_mode=REQUIRE)  # the prim has to exist, not the attribute
    two.write("mass", np.float32([7, 8]), 2, prim_mode=3)
    two.seal(2)
    assert table.read("mass", 2) == [7, 8, None, None]


def test_the_first_that_is_missing_is_named(table, make_table):
    missing(lambda: table.write("mass", np.float32([1, 2, 3, 4]), 2, prim_mode=REQUIRE), "/World/Prim2")
    turned = make_table(["/World/Prim3", "/World/Prim0", "/World/Prim2"])
    missing(lambda: turned.write("mass", np.float32([1, 2, 3]), 2, prim_mode=REQUIRE), "/World/Prim3")
    table.seal(2)
    assert table.read("mass", 2) == [None] * 4
    assert table.stage.query().result().total_prim_count == 2
    assert "mass" not in {attribute.name for attribute in table.stage.attributes()}


@pytest.mark.parametrize("mask", [[True, True, False, False], [0b0011]])
def test_a_mask_leaves_out_what_does_not_exist(table, mask):
    options = {} if mask[0] is True else {"count": 4}
    table.write("mass", np.float32([1, 2, 3, 4]), 2, prim_mode=REQUIRE, mask=mask, **options)
    table.write("part", np.float32([1, 2]), 2, prim_mode=REQUIRE, count=2)
    table.seal(2)
    assert table.read("mass", 2) == [1, 2, None, None]
    assert table.read("part", 2) == [1, 2, None, None]
    with pytest.raises(OvstageError, match="Prim3 does not exist"):
        table.write("mass", np.float32([1, 2, 3, 4]), 3, prim_mode=REQUIRE, mask=[True, False, False, True])


def test_a_batch_is_written_whole_or_not_at_all(table):
    writes = [
        WriteDesc("a", np.float32([1, 2, 3, 4]), False, mask=[True, True, False, False]),
        WriteDesc("b", np.float32([1, 2, 3, 4]), False),
    ]
    missing(lambda: table.stage.write_attributes(table.query, writes, 2, prim_mode=REQUIRE).wait(), "/World/Prim2")
    table.seal(2)
    assert table.read("a", 2) == [None] * 4


def test_arrays_and_the_short_form(table, make_table):
    rows = [np.int32([1]), np.int32([2, 3])]
    missing(lambda: table.write("r", [*rows, *rows], 2, is_array=True, prim_mode=REQUIRE), "/World/Prim2")
    table.stage.write(make_table(2).paths, "r", 2, rows, is_array=True, prim_mode=REQUIRE).wait()
    missing(lambda: table.stage.write(["/New"], "r", 2, rows[:1], is_array=True, prim_mode=REQUIRE).wait(), "/New")


def test_a_deleted_prim_is_missing(table, make_table):
    two = make_table(2)
    table.stage.delete_attributes(make_table(["/World/Prim1"]).query, [], 2).wait()
    missing(lambda: two.write("mass", np.float32([1, 2]), 3, prim_mode=REQUIRE), "/World/Prim1")
    two.write("other", np.float32([1, 2]), 3)
    two.write("mass", np.float32([1, 2]), 3, prim_mode=REQUIRE)


def test_a_map_of_prims_that_exist(table, make_table):
    dtype = DLDataType(2, 32, 1)

    def mapped(of, ordinal):
        return of.stage.map_attribute(of.query, "mass", ordinal, dtype=dtype, prim_mode=REQUIRE)

    missing(lambda: mapped(table, 2).wait(), "/World/Prim2")
    assert table.stage.counters()["live_maps"] == 0
    with mapped(make_table(2), 2) as mapping:
        for group in mapping.groups():
            group.array(0)[:] = 4
    table.seal(2)
    assert table.read("mass", 2) == [4, 4, None, None]


def test_no_prims_are_all_there(make_table):
    make_table([]).write("mass", np.empty(0, np.float32), 1, prim_mode=REQUIRE)


def test_a_delete_beside_large_writes(make_table):
    """The copy of a large write leaves the stage to others: what exists is judged when it is recorded, too."""
    many = make_table(300_000)
    many.write("other", np.zeros(300_000, np.float32), 1)
    last = make_table([many.paths[-1]])
    values, stop = np.ones((300_000, 16)), threading.Event()
    written, refusals = 0, []

    def come_and_go() -> None:
        while not stop.is_set():
            many.stage.delete_attributes(last.query, [], 2).wait()
            many.stage.write_attribute(last.query, "other", 2, np.zeros(1, np.float32), is_array=False).wait()

    thread = threading.Thread(target=come_and_go, daemon=True)
    thread.start()
    try:
        for _ in range(12):
            try:
                many.write("mass", values, 2, prim_mode=REQUIRE)
                written += 1
            except OvstageError as error:
                refusals.append(error)
    finally:
        stop.set()
        thread.join(60)
    assert not thread.is_alive()
    assert written + len(refusals) == 12
    for refusal in refusals:
        assert refusal.code == ErrorCode.PRIM_NOT_FOUND
        assert f"{many.paths[-1]} does not exist" in refusal.message


def test_the_mode_has_a_number():
    assert [mode.value for mode in PrimMode] == [0, 1, 2, 3]
    assert ovstage.PrimMode(3) is REQUIRE
