"""Every public call with arguments that nobody should pass: no crash, an exception with a text, nothing left behind.

Calls start from good arguments, of which one or two are replaced by hostile ones: wrong types, numbers beyond every
range, broken text, and objects that raise, lie or destroy the stage while they are being looked at. Plays are random,
and repeat themselves: the seed names one.
"""

from __future__ import annotations

import ctypes
import gc
import math
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from refusals import Scene, axes, tensor

import ovstage
from ovstage import DLDataType, DLTensor, Filter, ManagedDLTensor, OrdinalRange, Predicate, WriteDesc

SANE = (
    TypeError, ValueError, IndexError, AttributeError, BufferError, NotImplementedError, MemoryError, RuntimeError,
)  # fmt: skip


class Hostility(Exception):
    """What hostile objects raise. Whoever looks at one may let it through."""


class Hostile:
    """An object whose every question is answered by an action. An action that returns gives the answer."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self.act = act

    def __index__(self) -> int:
        return self.act()

    def __len__(self) -> int:
        self.act()
        return 1

    def __iter__(self) -> Any:
        return iter([self.act()])

    def __getitem__(self, _: object) -> Any:
        return self.act()

    def __bool__(self) -> bool:
        return self.act()

    def __dlpack__(self, **_: Any) -> Any:
        return self.act()

    def __dlpack_device__(self) -> Any:
        return self.act()

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self.act()

    def __eq__(self, other: object) -> bool:
        return self.act()

    def __hash__(self) -> int:
        return 1

    @property
    def handle(self) -> Any:
        return self.act()

    @property
    def raw(self) -> Any:
        return self.act()

    @property
    def dtype(self) -> Any:
        return self.act()

    def _ensure_active(self) -> None:
        self.act()


class HostileText(str):
    def __eq__(self, other: object) -> bool:
        raise Hostility

    def __hash__(self) -> int:
        raise Hostility


def raise_hostility() -> Any:
    raise Hostility("looked at")


def hostile_values(scene: Scene) -> list[Any]:
    """One of each kind, over the stage that they may turn against."""

    def destroy() -> Any:
        scene.stage.destroy()
        return 1

    def collect() -> Any:
        gc.collect()
        return 0

    def write() -> Any:
        scene.put(np.float32([1, 2]), ordinal=100)
        return 2

    def release() -> Any:
        scene.query.release()
        return scene.query.handle

    cyclic: list[Any] = []
    cyclic.append(cyclic)
    return [
        None, True, 0, -1, 1, 2, 2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**200),
        10**30, 0.0, 1.5, math.nan, math.inf, 1j, "", "a", "mass", "a\0b", "\ud800", "/A", "/A//", "/" * 1000,
        "é" * 5000,
        HostileText("mass"), b"", b"abc", bytearray(b"xyz"), memoryview(b"abcd"), [], [None], [-1], [2**64], [1.5],
        ["a"], [[]], (), {}, {1: 2}, set(), range(3), cyclic, object(), object, print, NotImplemented, ..., iter(()),
        np.float32(1), np.uint64(2**64 - 1), np.int8(-1), np.zeros(0, "f4"), np.zeros(2, "f4"), np.zeros((2, 0)),
        np.zeros(2, ">f4"), np.zeros(2, "O"), np.zeros(2, "U3"), np.zeros((2, 3), "f4")[::-1, ::-1], np.array(7),
        np.zeros((1,) * 33), np.full(3, np.nan), np.zeros(2, "M8[s]"), np.ma.masked_array([1.0, 2.0], [0, 1]),
        np.lib.stride_tricks.as_strided(np.zeros(1, "f4"), (2**20,), (0,)),
        tensor(ndim=-1), tensor(ndim=2**31 - 1), tensor(shape=None), tensor(shape=axes(-1)), tensor(shape=axes(2**62)),
        tensor(data=None), tensor(dtype=DLDataType(99, 255, 65535)), tensor(byte_offset=2**64 - 1),
        tensor(strides=axes(2**62)), DLTensor(), ManagedDLTensor(tensor(ndim=7), None),
        ManagedDLTensor.__new__(ManagedDLTensor), DLDataType(0, 0, 0),
        ovstage.Operation.__new__(ovstage.Operation), ovstage.ReadGroup.__new__(ovstage.ReadGroup),
        ovstage.Stage.__new__(ovstage.Stage), ovstage.PathList(5), scene.list, scene.query, scene.stage, scene.names,
        OrdinalRange(-1, 5), OrdinalRange(2**64, None), Predicate(None, None, None), Filter([]),
        WriteDesc("mass", [], False), WriteDesc(None, None, None), ctypes.c_int(5),
        Hostile(raise_hostility), Hostile(destroy), Hostile(collect), Hostile(write), Hostile(release),
        Hostile(lambda: "text"), Hostile(lambda: 2**70), Hostile(lambda: -1), Hostile(lambda: None), Hostile(list),
        Hostile(lambda: np.zeros(2, "f4")), Hostile(lambda: tensor()), Hostile(lambda: Hostile(destroy)),
    ]  # fmt: skip


def good_calls(scene: Scene) -> list[tuple[Callable[..., Any], dict[str, Any]]]:
    """Every public call with arguments that it takes."""
    s, n, q, mass = scene.stage, scene.names, scene.query, scene.token("mass")
    floats = np.float32([1, 2])
    read = s.read_attributes(q, [mass], OrdinalRange.latest(5))
    group = read.fetch_next()
    mapping = s.map_attribute(q, "mass", 50)
    lent = mapping.fetch_next()
    floor = s.get_attribute_write_floor(mass)
    op = s.advance_write_floor(0)
    column = s.read(q, ["mass"])["mass"]
    write: dict[str, Any] = {
        "query": q, "attribute": "mass", "ordinal": 60, "tensors": floats, "is_array": False, "prim_mode": 0,
        "semantic": 0, "index_map": None, "mask": None, "count": 2, "cuda_event": 0, "cuda_stream": 0,
        "transfer": False,
    }  # fmt: skip
    return [
        (s.write_attribute, write),
        (s.write_attribute, write | {"index_map": [1, 0]}),
        (s.write_attribute, write | {"mask": [3]}),
        (s.write_attribute, write | {"attribute": "runs", "tensors": [np.int32([1]), np.int32([2])], "is_array": True}),
        (s.write_attributes, {"query": q, "writes": [WriteDesc("mass", floats, False)], "ordinal": 61, "prim_mode": 0}),
        (WriteDesc, {"attribute": "mass", "tensors": floats, "is_array": False}),
        (lambda **w: s.write_attributes(q, [WriteDesc(**w)], 62),
         {"attribute": "mass", "tensors": floats, "is_array": False}),
        (s.query, {"filter": Filter([Predicate("mass", 0)]), "attrs": [mass]}),
        (lambda **p: s.query(Filter([Predicate(**p)])), {"attribute": "mass", "op": 6, "values": ["1"]}),
        (s.query_from_path_list, {"path_list": scene.list}),
        (s.fetch_query_result, {"query": q, "timeout": 0}),
        (s.release_query, {"query": s.query()}),
        (s.read_attributes, {"query": q, "attrs": [mass], "ordinal_range": OrdinalRange.latest(5)}),
        (lambda **r: s.read_attributes(q, [mass], OrdinalRange(**r)), {"end_ordinal": 5, "start_ordinal": 1}),
        (s.read, {"query": q, "attrs": ["mass"], "ordinal": 5}),
        (s.fetch_read_next, {"read": read, "timeout": 0}),
        (s.release_group, {"group": group}),
        (s.release_read, {"read": read}),
        (s.delete_attributes, {"query": q, "attributes": ["mass"], "ordinal": 70}),
        (s.clone, {"source_path": "/World/Prim0", "target_paths": ["/B"], "ordinal": 70}),
        (s.map_attribute, {"query": q, "attribute": "mass", "ordinal": 70, "prim_mode": 0,
                           "dtype": DLDataType(2, 32, 1), "semantic": 0, "element_sizes": None, "initial": "zero"}),
        (s.map_attribute, {"query": q, "attribute": "runs", "ordinal": 70, "element_sizes": [1, 2]}),
        (s.fetch_map_next, {"mapping": mapping, "timeout": 0}),
        (s.unmap_group, {"mapping": mapping, "group": lent, "cuda_event": 0, "cuda_stream": 0, "commit": "auto"}),
        (s.unmap_attribute, {"mapping": mapping, "cuda_event": 0, "cuda_stream": 0, "commit": "auto"}),
        (s.advance_write_floor, {"ordinal": 5, "scope": 1, "attributes": [mass]}),
        (s.get_attribute_write_floor, {"attribute": mass}),
        (s.fetch_ordinal, {"ordinal_query": floor, "timeout": 0}),
        (s.release_ordinal_query, {"ordinal_query": floor}),
        (s.wait_op, {"op_id": op.op_id, "timeout": 0}),
        (op.wait, {"timeout": 0}),
        (ovstage.Stage, {"name": "another", "config": ovstage.StageConfig(history_ordinals=2)}),
        (lambda **c: ovstage.Stage("x", ovstage.StageConfig(**c)), {"history_ordinals": 1}),
        (ovstage.PathDictionary, {"stage": s}),
        (n.intern_token, {"string": "a"}), (n.intern_tokens, {"strings": ["a"]}), (n.token_to_string, {"token": mass}),
        (n.intern_path, {"path": "/A"}), (n.intern_paths, {"paths": ["/A"]}), (n.path_to_string, {"primpath": 1}),
        (n.create_path_list, {"primpaths": []}), (n.create_path_list_from_strings, {"paths": ["/A"]}),
        (n.add_path_list_reference, {"path_list": 0}), (n.destroy_path_list, {"path_list": 0}),
        (n.path_list_count, {"path_list": scene.list}), (n.get_paths, {"path_list": scene.list}),
        (n.get_path_strings, {"path_list": scene.list}),
        (group.array, {"index": 0, "shaped": True}), (group.tensor, {"index": 0}), (group.prim_index, {"local": 0}),
        (group.data_row_index, {"local": 0}), (group.dlpack, {"index": 0, "readonly": True, "shape": [2]}),
        (lent.array, {"index": 0, "shaped": True}), (lent.dlpack, {"index": 0, "readonly": False, "shape": [2, 1]}),
        (group.__array__, {"dtype": "f4", "copy": None}), (group.__arrow_c_array__, {"requested_schema": None}),
        (column.row, {"prim": 0}),
        (group.dlpack(0).__dlpack__, {"stream": None, "max_version": (1, 0), "dl_device": (1, 0), "copy": True}),
        (ovstage.make_dltensor, {"array": floats, "dtype": None, "shape": [2], "ndim": 1, "strides": [1]}),
        (ovstage.make_dltensor, {"array": group.dlpack(0), "dtype": DLDataType(2, 32, 2), "shape": [1], "ndim": 1}),
        (ovstage.dltensor_to_numpy, {"tensor": tensor(), "readonly": True}),
        (ovstage.numpy_to_dldatatype, {"np_dtype": "f4", "lanes": 3}),
        (DLTensor.from_dlpack, {"obj": floats, "stream": None}),
        (ManagedDLTensor, {"dl_tensor": tensor(), "manager_ctx": None, "deleter_callback": print, "readonly": True}),
        (lambda dl_tensor: np.from_dlpack(ManagedDLTensor(dl_tensor, None)), {"dl_tensor": tensor()}),
        (ovstage.ReadGroup, {"raw": group.raw, "stage": s}), (ovstage.MapGroup, {"raw": lent.raw, "stage": s}),
        (ovstage.set_log_callback, {"callback": None, "severity": 0, "channel_filter": ""}),
        (ovstage.flush_log, {"timeout": 0}),
        (ovstage.OvstageError, {"code": 1, "message": "x"}), (ovstage.OvxError, {"code": 1, "message": "x"}),
    ]  # fmt: skip


def judge(call: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Make one call, and let go of what it gives."""
    try:
        answer = call(**arguments)
        if hasattr(type(answer), "wait"):
            answer.wait(10**9)
    except Hostility:
        return
    except SANE as error:
        if not str(error):
            pytest.fail(f"{call} raised {type(error).__name__} without a text")


def play(seed: int, steps: int) -> None:
    rng = random.Random(seed)
    with ovstage.Stage("hostile") as stage, ovstage.PathDictionary(stage) as names:
        scene = Scene(stage, names)
        calls, values = good_calls(scene), hostile_values(scene)
        for _ in range(steps):
            call, good = rng.choice(calls)
            arguments = dict(good)
            for name in rng.sample(sorted(good), min(len(good), rng.choice([1, 1, 1, 2]))):
                arguments[name] = rng.choice(values)
            judge(call, arguments)
            if not stage.alive:
                break


def live() -> dict[str, int]:
    gc.collect()
    return {name: count for name, count in ovstage.process_counters().items() if name.startswith("live_")}


@pytest.mark.parametrize("seed", range(8))
def test_hostile_arguments(seed, unraisable):
    before = live()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        play(seed, 300)
        ovstage.set_log_callback(None)
        after = live()
    assert after == before
    assert unraisable == []
