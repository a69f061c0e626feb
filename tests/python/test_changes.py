"""Range reads: which prims changed, with what they are now, and how far back that is known."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import GONE, Table

from ovstage import ErrorCode, OrdinalRange, OvstageError, PathDictionary, Scope, Stage, StageConfig

BOTH_LEVELS = True


@pytest.fixture
def some(make_table):
    return make_table(["/World/Prim1", "/World/Prim3"])


@pytest.fixture
def ticks(make_table, some):
    """Four prims: all written at 1, two of them at 3, one of those deleted at 4; all sealed."""
    table, last = make_table(4), make_table(["/World/Prim3"])
    table.write("x", np.int32([10, 11, 12, 13]), 1)
    some.write("x", np.int32([31, 33]), 3)
    last.stage.delete_attributes(last.query, ["x"], 4).wait()
    table.seal(5)
    return table


def raises(code, call, *texts):
    with pytest.raises(OvstageError) as caught:
        call()
    assert caught.value.code == code
    for text in texts:
        assert text in caught.value.message


def oldest(table):
    with table.stage.get_oldest_preserved_ordinal() as query:
        return query.fetch()


@pytest.mark.parametrize(
    ("start", "end", "changes"),
    [
        (1, 5, {0: 10, 1: 31, 2: 12, 3: GONE}),
        (2, 5, {1: 31, 3: GONE}),
        (3, 4, {1: 31, 3: GONE}),
        (4, 4, {3: GONE}),
        (5, 5, {}),
        (2, 2, {}),
    ],
)
def test_both_ends_are_included(ticks, start, end, changes):
    assert ticks.changes("x", start, end) == changes


def test_only_the_queried_prims_are_reported(ticks, some, make_table):
    assert some.changes("x", 2, 5) == {0: 31, 1: GONE}
    assert make_table(["/World/Prim0", "/Nobody"]).changes("x", 1, 5) == {0: 10}
    assert make_table(["/World/Prim0"]).changes("x", 2, 5) == {}


def test_attributes_that_did_not_change(ticks):
    assert ticks.changes("never written", 1, 5) == {}
    ticks.write("y", np.int32([1, 2, 3, 4]), 6)
    ticks.seal(6)
    assert ticks.changes("x", 6, 6) == {}
    assert ticks.changes("y", 6, 6) == {0: 1, 1: 2, 2: 3, 3: 4}


def test_several_attributes_in_one_range(ticks, some):
    ticks.write("y", np.int32([1, 2, 3, 4]), 6)
    some.write("z", [np.int32([5]), np.int32([])], 7, is_array=True)
    ticks.seal(7)
    tokens = [ticks.token(name) for name in "xyz"]
    with ticks.stage.read_attributes(ticks.query, tokens, OrdinalRange.between(4, 7)) as read:
        seen = {}
        for group in read.groups():
            with group:
                seen[ticks.names.token_to_string(group.attribute), group.is_delete] = (
                    group.ordinal,
                    group.prim_indices().tolist(),
                )
    assert seen == {("x", True): (4, [3]), ("y", False): (6, [0, 1, 2, 3]), ("z", False): (7, [1, 3])}


def test_a_key_that_changed_again_after_the_end(ticks):
    raises(ErrorCode.OUT_OF_RANGE, lambda: ticks.changes("x", 1, 2), "[1, 2]", "/World/Prim1", "write floor")
    raises(ErrorCode.OUT_OF_RANGE, lambda: ticks.changes("x", 3, 3), "/World/Prim3")
    ticks.write("x", np.int32([1, 2, 3, 4]), 9)
    assert ticks.changes("x", 4, 5) == {3: GONE}, "what is not sealed yet has replaced nothing"
    ticks.seal(9)
    raises(ErrorCode.OUT_OF_RANGE, lambda: ticks.changes("x", 4, 5))


def test_a_change_that_is_not_sealed(ticks, some):
    some.write("x", np.int32([61, 63]), 6)
    assert ticks.changes("x", 5, 5) == {}
    raises(ErrorCode.WRITE_FLOOR_VIOLATION, lambda: ticks.changes("x", 5, 6), '"x"', "6", "5")
    raises(ErrorCode.WRITE_FLOOR_VIOLATION, lambda: ticks.changes("x", 6, 2**64 - 1))
    ticks.seal(6)
    assert ticks.changes("x", 5, 6) == {1: 61, 3: 63}


def test_refusal_shows_in_the_operation_too(ticks):
    ticks.write("x", np.int32([1, 2, 3, 4]), 6)
    read = ticks.stage.read_attributes(ticks.query, [ticks.token("x")], OrdinalRange.between(6, 6))
    assert read.op.status == ErrorCode.WRITE_FLOOR_VIOLATION
    raises(ErrorCode.WRITE_FLOOR_VIOLATION, read.wait)


def test_range_over_a_floor_of_one_attribute(ticks):
    ticks.write("x", np.int32([1, 2, 3, 4]), 6)
    ticks.write("y", np.int32([1, 2, 3, 4]), 6)
    ticks.stage.advance_write_floor(6, Scope.INCLUDE, [ticks.token("y")]).wait()
    assert ticks.changes("y", 6, 6) == {0: 1, 1: 2, 2: 3, 3: 4}
    raises(ErrorCode.WRITE_FLOOR_VIOLATION, lambda: ticks.changes("x", 6, 6))


def test_an_equal_value_is_a_change(ticks):
    ticks.write("x", np.int32([10, 31, 12, 0]), 6)
    ticks.seal(6)
    assert set(ticks.changes("x", 6, 6)) == {0, 1, 2, 3}


def test_unselected_prims_keep_their_record(make_table):
    table = make_table(4)
    table.write("x", np.int32([1, 2, 3, 4]), 1)
    table.write("x", np.int32([0, 22, 0, 44]), 2, mask=[0b1010], count=4)
    table.write("x", np.int32([7]), 3, count=1)
    table.seal(3)
    assert table.changes("x", 2, 3) == {0: 7, 1: 22, 3: 44}
    assert table.changes("x", 3, 3) == {0: 7}


def test_a_column_that_changed_as_a_whole_is_one_group_as_it_lies(ticks, make_table):
    ticks.write("x", np.arange(len(ticks.paths), dtype="i4"), 6)
    ticks.seal(6)
    every_second = make_table(ticks.paths[::2])
    for table, in_order in ((ticks, True), (make_table(ticks.paths[1:3]), True), (every_second, False)):
        with table.stage.read_attributes(table.query, [table.token("x")], OrdinalRange.between(6, 6)) as read:
            (group,) = read.groups()
            with group:
                assert (group.has_prim_index_map, group.has_data_index_map) == (False, not in_order)
                assert group.prim_indices().tolist() == list(range(len(table.paths)))
                assert table.changes("x", 6, 6) == dict(enumerate(table.read("x", 6)))


def test_map_commits_are_changes(ticks, some):
    with some.stage.map_attribute(some.query, "x", 6) as mapping:
        mapping.fetch_next().array(0)[:] = [61, 63]
    mapping = ticks.stage.map_attribute(ticks.query, "x", 7)
    mapping.abort()
    ticks.seal(7)
    assert ticks.changes("x", 6, 7) == {1: 61, 3: 63}


def test_delta_consumer_sees_every_change_once(make_table):
    rng = np.random.default_rng(1)
    table, state, seen, cursor = make_table(20), {}, {}, 0
    parts = [make_table([f"/World/Prim{i}" for i in np.sort(rng.permutation(20)[: 1 + k % 7])]) for k in range(12)]
    for ordinal in range(1, 120):
        part = parts[rng.integers(len(parts))]
        prims = [table.paths.index(path) for path in part.paths]
        if rng.random() < 0.3:
            part.stage.delete_attributes(part.query, ["x"], ordinal).wait()
            for prim in prims:
                state.pop(prim, None)
        else:
            values = rng.integers(1000, size=len(prims)).astype("i4")
            part.write("x", values, ordinal)
            state |= dict(zip(prims, values.tolist(), strict=True))
        if rng.random() < 0.4:
            table.seal(ordinal)
            for prim, value in table.changes("x", cursor + 1, ordinal).items():
                if value == GONE:
                    seen.pop(prim, None)
                else:
                    seen[prim] = value
            cursor = ordinal
            assert seen == state


# --- how far back ---


def test_frontier_of_a_fresh_stage(table):
    assert oldest(table) == 0
    table.write("x", np.int32([1, 2]), 1)
    table.seal(1)
    assert oldest(table) == 0


def test_records_are_bounded_and_the_frontier_tells(make_table):
    """A million ordinals would need a million records. Old ones are merged, and membership from the frontier on stays
    exact."""
    table = make_table(64)
    parts = [make_table([f"/World/Prim{i}" for i in range(k, 64, 8)]) for k in range(8)]
    last = 6000
    for ordinal in range(1, last + 1):
        parts[ordinal % 8].write("x", np.full(8, ordinal, "i4"), ordinal)
        if ordinal % 50 == 0:
            table.seal(ordinal)
    frontier = oldest(table)
    assert 0 < frontier < last
    for start in {frontier, (frontier + last) // 2, last - 3}:
        expected = {i: o for o in range(max(start, last - 7), last + 1) for i in range(o % 8, 64, 8)}
        assert table.changes("x", start, last) == expected
    assert table.stage.counters()["bytes_columns"] < 1 << 20


def test_fetching_the_frontier_twice_and_releasing_it(table):
    query = table.stage.get_oldest_preserved_ordinal()
    query.wait()
    assert query.fetch() == query.fetch() == 0
    query.release().wait()
    raises(ErrorCode.INVALID_HANDLE, query.fetch)


@pytest.mark.parametrize(
    ("history", "ranges"),
    [
        (0, {(1, 4): GONE, (4, 4): GONE, (1, 2): None, (2, 2): None, (3, 3): None}),
        (4, {(1, 4): GONE, (4, 4): GONE, (1, 2): GONE, (2, 2): GONE, (3, 3): 3, (1, 1): 1}),
    ],
)
def test_a_prim_that_changed_its_schema_is_one_prim(history, ranges):
    """It is a float at 1, nothing at 2, an integer at 3 and nothing at 4. None is for what is refused."""
    with Stage(config=StageConfig(history_ordinals=history)) as stage:
        with PathDictionary(stage) as names:
            table = Table(stage, names, ["/A"])
            for ordinal, value in ((1, np.float32([1])), (3, np.int32([3]))):
                table.write("x", value, ordinal)
                table.seal(ordinal)
                stage.delete_attributes(table.query, ["x"], ordinal + 1).wait()
                table.seal(ordinal + 1)
            for (start, end), change in ranges.items():
                if change is None:
                    raises(ErrorCode.OUT_OF_RANGE, lambda s=start, e=end: table.changes("x", s, e), "/A")
                else:
                    assert table.changes("x", start, end) == {0: change}
            table.close()
