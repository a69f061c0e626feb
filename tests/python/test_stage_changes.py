"""Following a stage: items that say what changed since the item before, for consumers that look when they like."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

from ovstage import ErrorCode, OvstageError, PathDictionary, Scope, Stage
from ovstage.changes import Changes, Item

BOTH_LEVELS = True


def seal(stage: Stage, ordinal: int, *attributes: str) -> None:
    scope = Scope.INCLUDE if attributes else Scope.ALL
    stage.advance_write_floor(ordinal, scope, attributes=list(attributes) or None).wait()


def tick(stage: Stage, ordinal: int, **values) -> None:
    for name, by_path in values.items():
        stage.write(list(by_path), name, ordinal, np.float32(list(by_path.values())))
    seal(stage, ordinal)


def told(item: Item | None) -> dict[str, tuple[dict[str, object], list[str]]]:
    """By attribute: the changed values by path, and the prims that lost it."""
    return {
        name: (dict(zip(change.prims, [v for part in change.parts for v in part.column.values.tolist()], strict=True)),
               change.deleted)
        for name, change in (item or {}).items()
    }  # fmt: skip


def take(state: dict[str, dict[str, object]], item: Item) -> None:
    """What a consumer does that keeps a copy."""
    for name, change in item.items():
        known = state.setdefault(name, {})
        if change.resync:
            known.clear()
        for path in change.deleted:
            known.pop(path, None)  # it may have come and gone since the last item
        values, _ = told(item)[name]
        known |= values


def truth(stage: Stage, names) -> dict[str, dict[str, object]]:
    prims = stage.prims()
    columns = stage.read(prims, list(names)) if len(prims) else {}
    return {
        name: {
            path: v
            for path, v, valid in zip(prims, columns[name].values.tolist(), columns[name].valid, strict=True)
            if valid
        }
        if name in columns
        else {}
        for name in names
    }


# --- items ----------------------------------------------------------------------------------------------------------


def test_an_item_has_what_changed_since_the_last(stage):
    changes = stage.changes()
    assert changes.poll() is None
    tick(stage, 1, mass={"/A": 1, "/B": 2}, speed={"/A": 9})
    first = changes.poll()
    assert told(first) == {"mass": ({"/A": 1, "/B": 2}, []), "speed": ({"/A": 9}, [])}
    assert (first.ordinal, first.positions) == (1, {"mass": 1, "speed": 1})
    assert changes.poll() is None

    stage.delete(["/B"], ["mass"], 2)
    tick(stage, 2, mass={"/C": 3})
    item = changes.poll()
    assert told(item) == {"mass": ({"/C": 3}, ["/B"])}
    change = item["mass"]
    assert (change.since, change.until, change.resync, change.values.tolist()) == (1, 2, False, [3])
    assert item.positions == {"mass": 2, "speed": 2}
    assert repr(change) == "<Change 'mass' after 1 up to 2: 1 value, 1 deleted>"
    assert repr(item) == "<Item up to 2: 1 attribute, mass>"


def test_it_begins_with_everything(stage):
    tick(stage, 1, mass={"/A": 1})
    tick(stage, 2, mass={"/B": 2})
    item = stage.changes().poll()
    assert told(item) == {"mass": ({"/A": 1, "/B": 2}, [])}
    assert (item["mass"].since, item["mass"].resync) == (None, True)


def test_it_begins_after_an_ordinal(stage):
    for ordinal in (1, 2, 3):
        tick(stage, ordinal, mass={f"/P{ordinal}": ordinal})
    assert told(stage.changes(since=2).poll()) == {"mass": ({"/P3": 3}, [])}
    assert stage.changes(since=3).poll() is None
    assert stage.changes(since=99).poll() is None  # the future
    assert set(told(stage.changes(since=0).poll())["mass"][0]) == {"/P1", "/P2", "/P3"}


def test_it_goes_on_where_another_one_was(stage):
    tick(stage, 1, mass={"/A": 1}, speed={"/A": 1})
    seal(stage, 5, "mass")
    positions = stage.changes().poll().positions
    assert positions == {"mass": 5, "speed": 1}
    tick(stage, 3, speed={"/A": 2})
    tick(stage, 6, mass={"/A": 3})
    assert told(stage.changes(since=positions).poll()) == {"mass": ({"/A": 3}, []), "speed": ({"/A": 2}, [])}


def test_only_what_is_sealed_is_told(stage):
    changes = stage.changes()
    stage.write(["/A"], "mass", 5, np.float32([1]))
    stage.write(["/A"], "speed", 7, np.float32([2])).wait()
    assert changes.poll() is None
    seal(stage, 5, "mass")
    item = changes.poll()
    assert told(item) == {"mass": ({"/A": 1}, [])}
    assert item.ordinal == 0  # below it the consumer knows everything: of speed it knows nothing yet
    seal(stage, 8)
    assert told(changes.poll()) == {"speed": ({"/A": 2}, [])}


def test_a_slow_consumer_gets_one_item(stage):
    changes = stage.changes(["mass"], since=0)
    for ordinal in range(1, 50):
        tick(stage, ordinal, mass={f"/P{ordinal % 7}": ordinal})
    item = changes.poll()
    assert told(item)["mass"][0] == {f"/P{k % 7}": k for k in range(43, 50)}
    assert changes.poll() is None


def test_some_attributes_of_some_prims(stage):
    changes = stage.changes(["mass", "later"], ["/B", "/A"], since=0)
    tick(stage, 1, mass={"/A": 1, "/B": 2, "/C": 3}, speed={"/A": 4})
    assert told(changes.poll()) == {"mass": ({"/B": 2, "/A": 1}, [])}
    tick(stage, 2, mass={"/C": 3}, later={"/A": 5})
    assert told(changes.poll()) == {"later": ({"/A": 5}, [])}


def test_array_columns_and_lanes(stage):
    changes = stage.changes(since=0)
    stage.write(["/A", "/B"], "ids", 1, [np.int32([1, 2]), np.int32([])], is_array=True)
    stage.write(["/A"], "position", 1, np.float32([[1, 2, 3]]), type_name="point3f").wait()
    seal(stage, 1)
    item = changes.poll()
    ids = item["ids"].column
    assert [ids.row(k).tolist() for k in range(2)] == [[1, 2], []] and item["ids"].prims == ["/A", "/B"]
    assert item["position"].values.tolist() == [[1, 2, 3]] and item["position"].column.type_name == "point3f"
    assert not item["position"].values.flags.writeable


def test_an_attribute_of_several_types(stage):
    changes = stage.changes(since=0)
    stage.write(["/A"], "v", 1, np.float32([1]))
    stage.write(["/B"], "v", 1, np.int32([2])).wait()
    seal(stage, 1)
    change = changes.poll()["v"]
    assert sorted((part.prims, part.column.values.tolist()) for part in change.parts) == [(["/A"], [1]), (["/B"], [2])]
    with pytest.raises(
        ValueError, match=r"^attribute 'v' has changed values of 2 types: take parts, one for each type$"
    ):
        _ = change.values
    stage.delete(["/A"], ["v"], 2).wait()
    seal(stage, 2)
    change = changes.poll()["v"]
    assert (change.prims, change.deleted, list(change.parts)) == ([], ["/A"], [])


def test_prims_of_other_lanes_are_parts_of_their_own(stage):
    """Also arrays of as many numbers, which would make one array."""
    changes = stage.changes(since=0)
    values = {"/A": np.arange(6.0).reshape(2, 3), "/B": np.arange(6.0).reshape(3, 2)}
    for path, rows in values.items():
        stage.write([path], "fixed", 1, rows[:1])
        stage.write([path], "arrays", 1, [rows], is_array=True, lanes=rows.shape[1]).wait()
    seal(stage, 1)
    item = changes.poll()
    for name, count in (("fixed", 1), ("arrays", None)):
        assert {part.prims[0]: part.column.values.tolist() for part in item[name].parts} == {
            path: rows[:count].tolist() for path, rows in values.items()
        }
    assert [part.column.offsets.tolist() for part in item["arrays"].parts] == [[0, 2], [0, 3]]


def test_a_consumer_that_falls_behind_begins_again(stage):
    changes = stage.changes(["v"])
    tick(stage, 1, v={f"/P{k}": k for k in range(200)})
    changes.poll()
    stage.delete([f"/P{k}" for k in range(100)], ["v"], 2)
    seal(stage, 2)
    for ordinal in range(3, 3000):
        tick(stage, ordinal, v={"/P150": ordinal})
    item = changes.poll()
    change = item["v"]
    assert change.resync and change.since == 1 and change.deleted == []
    assert told(item)["v"][0] == {f"/P{k}": k if k != 150 else 2999 for k in range(100, 200)}
    tick(stage, 3000, v={"/P150": 1})
    assert told(changes.poll()) == {"v": ({"/P150": 1}, [])}


def test_attributes_that_come_and_go_are_not_kept_for_ever(stage):
    changes = stage.changes()
    for ordinal in range(1, 200, 2):
        tick(stage, ordinal, **{f"v{ordinal}": {"/A": ordinal}})
        assert told(changes.poll()) == {f"v{ordinal}": ({"/A": ordinal}, [])}
        stage.delete(["/A"], [f"v{ordinal}"], ordinal + 1).wait()
        seal(stage, ordinal + 1)
        assert told(changes.poll()) == {f"v{ordinal}": ({}, ["/A"])}
        assert changes.poll() is None
    assert len(changes._since) <= 1


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ({"attributes": "mass"}, TypeError, "attributes must be a list of attributes"),
        ({"attributes": [1.5]}, TypeError, r"attributes\[0\] must be"),
        ({"since": -1}, ValueError, "since"),
        ({"since": "now"}, TypeError, "since"),
        ({"since": {"mass": -1}}, ValueError, r"since\['mass'\]"),
        ({"query": 3.5}, TypeError, "prims|query"),
    ],
)
def test_bad_arguments(stage, arguments, kind, text):
    with pytest.raises(kind, match=text):
        stage.changes(**arguments)


def test_derived_attributes_have_no_changes(stage):
    with pytest.raises(OvstageError, match="follows from the paths of prims") as failure:
        stage.changes(["usd-parent"]).poll()
    assert failure.value.code == ErrorCode.NOT_SUPPORTED


# --- loops, threads, asyncio ----------------------------------------------------------------------------------------


def test_consumers_beside_writers_know_what_readers_see(stage):
    """Two attributes that one call seals come in one item; two consumers, one of them slow, end with the same state."""
    ticks, problems = 400, []

    def write() -> None:
        random = np.random.default_rng(1)
        for ordinal in range(1, ticks):
            some = [f"/P{k}" for k in np.flatnonzero(random.random(20) < 0.3)] or ["/P0"]
            values = np.full(len(some), ordinal, np.float32)
            stage.write(some, "a", ordinal, values)
            stage.write(some, "b", ordinal, values)
            if ordinal % 5 == 0:
                stage.delete(some[:1], ["a", "b"], ordinal).wait()
            seal(stage, ordinal)

    def consume(pause: int, states: list) -> None:
        state: dict[str, dict[str, object]] = {}
        try:
            for turn, item in enumerate(stage.changes(["a", "b"])):
                take(state, item)
                if state.get("a") != state.get("b"):
                    problems.append(f"torn at {item.ordinal}")
                if item.ordinal == ticks - 1:
                    break
                for _ in range(pause * (turn % 2)):
                    sum(range(1000))
            states.append(state)
        except BaseException as error:
            problems.append(repr(error))

    states: list[dict[str, dict[str, object]]] = []
    threads = [threading.Thread(target=consume, args=(pause, states)) for pause in (0, 50)]
    threads.append(threading.Thread(target=write))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
        assert not thread.is_alive()
    assert problems == []
    assert states == [truth(stage, ["a", "b"])] * 2


def test_asyncio(stage):
    async def consume() -> list[int]:
        seen = []
        async for item in stage.changes(["v"], since=0):
            seen.append(item.ordinal)
            if item.ordinal == 30:
                return seen
        raise AssertionError

    async def write() -> None:
        for ordinal in range(1, 31):
            tick(stage, ordinal, v={"/A": ordinal})
            await asyncio.sleep(0)

    async def main() -> list[int]:
        seen, _ = await asyncio.gather(consume(), write())
        with pytest.raises(asyncio.TimeoutError):  # cancelled while it waits; the consumer can go on
            await asyncio.wait_for(stage.changes(since=30).__aiter__().__anext__(), 0.1)
        return seen

    seen = asyncio.run(main())
    assert seen == sorted(set(seen)) and seen[-1] == 30


def test_the_end_of_the_stage_ends_the_loop():
    stage, begun, ended = Stage(), threading.Event(), []

    def follow() -> None:
        begun.set()
        try:
            for _ in stage.changes():
                pass
        except OvstageError as error:
            ended.append(error.code)

    thread = threading.Thread(target=follow)
    thread.start()
    begun.wait()
    stage.destroy()
    thread.join(60)
    assert not thread.is_alive() and ended == [ErrorCode.INVALID_HANDLE]


def test_nothing_is_left_behind(stage):
    names = PathDictionary(stage)
    del names
    changes = stage.changes()
    for ordinal in range(1, 50):
        tick(stage, ordinal, v={f"/P{ordinal % 3}": ordinal})
        changes.poll()
    counters = stage.counters()
    assert (counters["live_reads"], counters["live_groups"], counters["live_queries"]) == (
        0,
        0,
        counters["live_queries"],
    )
    assert isinstance(changes, Changes) and "attribute" in repr(changes)


@pytest.mark.parametrize("attributes", [None, ["x"]])
def test_a_delete_is_told_of_that_was_not_sealed_when_nothing_had_changed(stage, attributes):
    """All prims have lost the attribute by then, and the consumer looks once before that is sealed."""
    changes = stage.changes(attributes)
    stage.write(["/A"], "x", 1, np.float32([1])).wait()
    stage.advance_write_floor(1).wait()
    assert changes.poll()["x"].prims == ["/A"]
    stage.delete(["/A"], [], 2).wait()
    assert changes.poll() is None
    stage.advance_write_floor(2).wait()
    assert changes.poll()["x"].deleted == ["/A"]
    assert changes.poll() is None


def test_what_is_sealed_is_told_to_a_new_consumer_though_its_delete_waits(stage):
    stage.write(["/A"], "x", 1, np.float32([1])).wait()
    stage.advance_write_floor(1).wait()
    stage.delete(["/A"], [], 2).wait()
    assert stage.attributes() == []
    changes = stage.changes()
    assert changes.poll()["x"].values.tolist() == [1]
    stage.advance_write_floor(2).wait()
    assert changes.poll()["x"].deleted == ["/A"]


def test_a_destroyed_stage_is_not_followed():
    with Stage() as stage:
        pass
    with pytest.raises(OvstageError, match="changes called after Stage was destroyed"):
        stage.changes()
