"""Memory of the consumer's own, for libraries that write through what is read-only; DLPack on columns and groups."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import numpy as np
import pytest
from conftest import address

import ovstage
from ovstage import OrdinalRange

BOTH_LEVELS = True

IS_COPIED = 2


@pytest.fixture
def column(make_table: Any) -> Any:
    table = make_table(4)
    table.write("position", np.arange(12, dtype=np.float32).reshape(4, 3), 1)
    table.seal(1)
    return table


class Consumer:
    """One that takes the capsule and what it says."""

    def __init__(self, **options: Any) -> None:
        self.options = options

    def take(self, producer: Any) -> np.ndarray:
        options = self.options

        class Handed:
            def __dlpack__(self, **asked: Any) -> Any:
                return producer.__dlpack__(**{**asked, **options})

            def __dlpack_device__(self) -> Any:
                return producer.__dlpack_device__()

        return np.from_dlpack(Handed())


def flags(capsule: Any) -> int | None:
    """Of a versioned capsule; None for one of the old form."""
    valid = ctypes.pythonapi.PyCapsule_IsValid
    valid.argtypes = [ctypes.py_object, ctypes.c_char_p]
    if not valid(capsule, b"dltensor_versioned"):
        return None
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.c_uint64.from_address(pointer(capsule, b"dltensor_versioned") + 24).value


def test_a_private_export_is_the_consumers_own(column: Any) -> None:
    with column.group("position", 1) as group:
        export = group.dlpack(0, private=True)
        assert not export.readonly
        first, second = np.from_dlpack(export), np.from_dlpack(export)
        assert first.flags.writeable and address(first) not in (address(second), address(group.array(0)))
        first[:] = -1
        assert second.tolist() == group.array(0, shaped=True).tolist() == np.arange(12).reshape(4, 3).tolist()
        assert flags(export.__dlpack__(max_version=(1, 3))) == IS_COPIED
        assert flags(export.__dlpack__()) is None
    assert first.tolist() == [[-1] * 3] * 4  # it outlives the group


def test_private_memory_comes_from_the_pool_and_goes_back(column: Any) -> None:
    gc.collect()  # what earlier tests left
    before = ovstage.process_counters()["live_blocks"]
    with column.group("position", 1) as group:
        held = np.from_dlpack(group.dlpack(0, private=True))
        assert column.stage.counters()["live_exports"] == 1
        copied = address(held)
        del held
        assert column.stage.counters()["live_exports"] == 0
        assert address(np.from_dlpack(group.dlpack(0, private=True, shape=(2, 6)))) == copied
    assert ovstage.process_counters()["live_blocks"] == before


def test_what_private_does_not_go_with(column: Any) -> None:
    with column.group("position", 1) as group:
        with pytest.raises(ValueError, match=r"^private=True gives memory to write to: leave out readonly=True$"):
            group.dlpack(0, private=True, readonly=True)
        assert not group.dlpack(0, private=True, readonly=False).readonly
        with pytest.raises(
            BufferError, match=r"^private=True gives every consumer a copy, and copy=False forbids one$"
        ):
            group.dlpack(0, private=True).__dlpack__(copy=False)
    with column.stage.map_attribute(column.query, "position", 2) as mapping:
        with pytest.raises(
            ValueError,
            match=r"^private=True is not for a map group: what a consumer writes to a copy is not committed$",
        ):
            mapping.fetch_next().dlpack(0, private=True)


# --- columns and groups as DLPack producers ---------------------------------------------------------------------------


def test_a_column_is_a_producer(column: Any) -> None:
    read = column.stage.read(column.query, ["position"])["position"]
    view = np.from_dlpack(read)
    assert address(view) == address(read.values) and not view.flags.writeable
    assert view.tolist() == np.arange(12).reshape(4, 3).tolist()
    own = Consumer(copy=True).take(read)
    assert own.flags.writeable and address(own) != address(view)
    assert read.__dlpack_device__() == (1, 0)


def test_a_group_is_a_producer(column: Any) -> None:
    with column.group("position", 1) as group:
        view = np.from_dlpack(group)
        assert address(view) == address(group.array(0)) and not view.flags.writeable
    with column.stage.map_attribute(column.query, "position", 2) as mapping:
        np.from_dlpack(mapping.fetch_next())[:] = 7
    column.seal(2)
    assert column.stage.read(column.query, ["position"])["position"].values.tolist() == [[7] * 3] * 4


def refusal(producer: Any) -> str:
    with pytest.raises(BufferError) as caught:
        np.from_dlpack(producer)
    return str(caught.value)


def read_groups(table: Any, name: str, paths: list[str]) -> list[Any]:
    with table.names.create_path_list_from_strings(paths) as prims, table.stage.query_from_path_list(prims) as query:
        with table.stage.read_attributes(query, [table.token(name)], OrdinalRange.latest(9)) as read:
            return list(read.groups())


def test_rows_in_another_order_are_no_tensor(column: Any) -> None:
    (group,) = read_groups(column, "position", ["/World/Prim1", "/World/Prim0"])
    with group:
        assert "index map" in refusal(group) and "array(0)" in refusal(group) and "stage.read" in refusal(group)
    read = column.stage.read(["/World/Prim1", "/World/Prim0"], ["position"])["position"]
    assert np.from_dlpack(read).tolist() == [[3, 4, 5], [0, 1, 2]]  # in the order of the query


def test_missing_rows_are_no_tensor(column: Any) -> None:
    paths = ["/World/Prim0", "/World/Nobody"]
    (group,) = read_groups(column, "position", paths)
    with group:
        assert refusal(group).startswith("1 of 2 prims have no row in this group: use array(0)")
    read = column.stage.read(paths, ["position"])["position"]
    assert refusal(read).startswith("1 of 2 prims have no value") and "stage.read" in refusal(read)
    with pytest.raises(BufferError):
        read.warp()


def test_arrays_and_deletions_are_no_tensor(column: Any) -> None:
    column.write("contacts", [np.int32([i]) for i in range(4)], 2, is_array=True)
    column.seal(2)
    with column.group("contacts", 2) as group:
        assert "array(i)" in refusal(group) and "stage.read" in refusal(group)
    assert refusal(column.stage.read(column.query, ["contacts"])["contacts"]) == (
        "a column of arrays is no single tensor: take values and offsets, or the array of a prim by row(k)"
    )
    column.stage.delete_attributes(column.query, ["position"], 3).wait()
    column.seal(3)
    with column.stage.read_attributes(column.query, [column.token("position")], OrdinalRange.between(3, 3)) as read:
        with read.fetch_next() as tombstone:
            assert "lost the attribute" in refusal(tombstone) and "stage.read" in refusal(tombstone)


def test_a_group_in_another_order_can_still_be_written(column: Any) -> None:
    (group,) = read_groups(column, "position", ["/World/Prim3", "/World/Prim0"])
    with group:
        column.stage.write(["/World/A", "/World/B"], "copy", 2, group).wait()
    column.seal(2)
    assert column.stage.read(["/World/A", "/World/B"], ["copy"])["copy"].values.tolist() == [[9, 10, 11], [0, 1, 2]]


def test_warp_gets_memory_of_its_own(column: Any) -> None:
    wp = pytest.importorskip("warp")
    wp.init()
    read = column.stage.read(column.query, ["position"])["position"]
    own = read.warp(dtype=wp.vec3)
    own.fill_(wp.vec3(-1.0, -1.0, -1.0))
    assert own.numpy().tolist() == [[-1] * 3] * 4
    assert read.values.tolist() == np.arange(12).reshape(4, 3).tolist()
