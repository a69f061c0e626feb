"""Ctrl-C at any moment: what the engine holds has a Python owner before an interrupt can come, and the owner ends it.

A timer raises KeyboardInterrupt somewhere inside the calls, some hundred times each. Afterwards nothing is alive that
was not alive before. Finalisers do their work in the extension, so that not even an interrupt inside one leaves
anything open.
"""

from __future__ import annotations

import gc
import random
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import ovstage
from ovstage import OrdinalRange, instancing

SECONDS, FEWEST = 0.6, 200
"""How long each is interrupted, and on a busy machine longer, until it was so often."""


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[], Any]], int]]:
    """Runs something again and again under interrupts, and answers how many there were."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def run(body: Callable[[], Any]) -> int:
        count, chance, until = 0, random.Random(5), time.monotonic() + SECONDS
        while time.monotonic() < until or count < FEWEST:
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, 20e-6 + chance.random() * 200e-6)
                    for _ in range(50):
                        body()
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                count += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        return count

    monkeypatch.setattr("sys.unraisablehook", lambda _: None)  # one that came in a finaliser
    before = signal.signal(signal.SIGALRM, interrupt)
    yield run
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def bodies(stage: ovstage.Stage, names: ovstage.PathDictionary, query: ovstage.Query) -> dict[str, Callable[[], Any]]:
    token = names.intern_token("values")
    prims = names.create_path_list_from_strings(["/P1", "/P2"])

    def commit() -> None:
        with stage.map_attribute(query, "values", 10) as mapping:
            for group in mapping.groups():
                group.array(0)[:] = 1

    def give_up() -> None:
        mapping = stage.map_attribute(query, "values", 10)
        mapping.fetch_next()
        mapping.abort()

    def read() -> None:
        with stage.read_attributes(query, [token], OrdinalRange.latest(5)) as read:
            for group in read.groups():
                with group:
                    group.array(0)

    def ask() -> None:
        with stage.query(None) as asked:
            asked.result()

    def floor() -> None:
        with stage.get_attribute_write_floor(token) as asked:
            asked.fetch()

    def listed() -> None:
        with names.create_path_list_from_strings(["/P1", "/P2"]) as made, stage.query_from_path_list(made):
            pass

    def dropped() -> None:
        stage.query(None)
        stage.read_attributes(query, [token], OrdinalRange.latest(5))
        stage.map_attribute(query, "values", 10)
        names.create_path_list_from_strings(["/P1"])

    return {
        "map": commit, "abort": give_up, "read": read, "query": ask, "floor": floor, "list": listed, "dropped": dropped,
        "relatives": lambda: stage.get_hierarchy(prims, 1, 0),
        "prototypes": lambda: instancing.get_prototype_roots(stage),
        "short form": lambda: stage.read(["/P3", "/P4"], ["values"]),
        "paths that are none": lambda: stage.read(["/Nowhere"], ["values"]),
        "part": lambda: query.where([True] * 100),
        "write": lambda: stage.write_attribute(query, token, 20, np.zeros(100), is_array=False).wait(),
        "delete": lambda: stage.delete_attributes(query, ["nothing"], 20).wait(),
    }  # fmt: skip


@pytest.mark.parametrize("name", bodies(*[type("Nothing", (), {"__getattr__": lambda *_: lambda *_: 0})()] * 3))
def test_interrupts_leave_nothing_open(interrupted, name):
    with ovstage.Stage("interrupted") as stage, ovstage.PathDictionary(stage) as names:
        prims = names.create_path_list_from_strings([f"/P{i}" for i in range(100)])
        query = stage.query_from_path_list(prims)
        stage.write_attribute(query, "values", 1, np.zeros(100), is_array=False).wait()
        stage.advance_write_floor(1).wait()
        body = bodies(stage, names, query)[name]
        body()

        def alive() -> dict[str, int]:
            gc.collect()
            counters = stage.counters()
            held = ("exports", "groups", "maps", "operations", "queries", "reads")
            return {name: counters[f"live_{name}"] for name in held} | {"lists": len(stage._path_list_refs)}

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            before = alive()
            count = interrupted(body)
            assert alive() == before
        assert count >= FEWEST
        prims.release()
