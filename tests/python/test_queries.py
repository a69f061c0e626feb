"""Queries as objects: what they found, asking again, what they report of attributes, and how they end."""

from __future__ import annotations

import gc
import threading
import warnings

import numpy as np
import pytest

from ovstage import DLDataType, ErrorCode, Filter, FilterOp, OrdinalRange, OvstageError, Predicate

HAS_MASS = Filter([Predicate("mass", FilterOp.HAS)])


def paths_of(table, query, ordinal=0):
    with table.stage.read_attributes(query, [table.token("usd-path")], OrdinalRange.latest(ordinal)) as read:
        paths = []
        for group in read.groups():
            with group:
                paths += table.names.get_path_strings(group.prim_list)
        return paths


def attributes(table, query):
    return sorted(table.names.token_to_string(token) for token in query.result().attributes)


# --- results ---


def test_result(table):
    table.write("mass", np.float32([1, 2]), 1)
    with table.stage.query(HAS_MASS) as query:
        result = query.result()
        assert result.total_prim_count == 2
        assert result.all_handle == query.handle == int(query)
        assert result.attributes == [table.token("mass")]
        assert query.result(0) == table.stage.fetch_query_result(query.handle, timeout=10**9) == result


def test_the_result_of_a_path_list_counts_what_is_listed(make_table):
    table = make_table(["/A", "/Nobody", "/A"])
    assert table.query.result().total_prim_count == 3
    assert table.query.result().attributes == []


@pytest.mark.parametrize(
    ("timeout", "kind"), [(-1, ValueError), (1.5, TypeError), (2**64, ValueError), (None, TypeError)]
)
def test_timeouts_of_a_result(table, timeout, kind):
    with pytest.raises(kind, match="timeout"):
        table.query.result(timeout)


# --- discovery ---


def test_a_new_column_is_discovered_at_once(table):
    table.write("mass", np.float32([1, 2]), 1)
    with table.stage.query(HAS_MASS) as query, table.stage.query(None, [table.token("friction")]) as scoped:
        assert attributes(table, query) == ["mass"]
        assert attributes(table, scoped) == []
        table.write("friction", np.float32([1, 2]), 1)
        assert attributes(table, query) == attributes(table, table.query) == ["friction", "mass"]
        assert attributes(table, scoped) == ["friction"]
        with table.stage.map_attribute(table.query, "color", 1, dtype=DLDataType(2, 32, 3)):
            assert attributes(table, query) == ["friction", "mass"], "a map creates nothing until it commits"
        assert attributes(table, query) == ["color", "friction", "mass"]
        table.stage.delete_attributes(table.query, ["mass"], 2).wait()
        assert attributes(table, query) == ["color", "friction"]


def test_discovery_reports_what_the_prims_of_the_query_carry(make_table):
    first, second = make_table(["/A"]), make_table(["/B"])
    first.write("mass", np.float32([1]), 1)
    second.write("friction", np.float32([1]), 1)
    with first.stage.query(HAS_MASS) as query:
        assert attributes(first, query) == attributes(first, first.query) == ["mass"]
    with first.stage.query() as everything:
        assert attributes(first, everything) == ["friction", "mass"], "and no derived attribute"
    scope = [first.token(name) for name in ("mass", "usd-path", "never", "mass")]
    with first.stage.query(None, scope) as scoped:
        assert attributes(first, scoped) == ["mass"]
    with first.stage.query(None, np.array(scope, np.uint64)) as scoped:
        assert attributes(first, scoped) == ["mass"]
    assert first.stage.query(None, [2**50]).op.status == ErrorCode.INVALID_ARGUMENT


# --- refreshing ---


def test_refresh(make_table):
    table, other = make_table(["/A", "/B"]), make_table(["/C"])
    table.write("mass", np.float32([1, 2]), 1)
    table.seal(1)
    with table.stage.query(HAS_MASS) as query:
        handle = query.handle
        other.write("mass", np.float32([3]), 2)
        table.stage.delete_attributes(table.query, [], 2).wait()
        assert query.result().total_prim_count == 2, "what was found stays found"
        query.refresh().wait()
        assert query.handle == handle
        assert paths_of(table, query) == ["/C"]
        table.stage.refresh_query(handle).wait()
        assert query.result().total_prim_count == 1


def test_open_reads_and_maps_keep_their_prims(make_table):
    table, other = make_table(["/A", "/B"]), make_table(["/C"])
    table.write("mass", np.float32([1, 2]), 1)
    table.seal(1)
    mass = table.token("mass")
    with table.stage.query(HAS_MASS) as query:
        with table.stage.read_attributes(query, [mass], OrdinalRange.latest(1)) as read:
            with table.stage.map_attribute(query, mass, 3) as session:
                other.write("mass", np.float32([3]), 2)
                query.refresh().wait()
                assert query.result().total_prim_count == 3
                (group,) = session.groups()
                group.array(0)[:] = [10, 20]
            with read.fetch_next() as group:
                assert group.array(0).tolist() == [1, 2]
                assert table.names.get_path_strings(group.prim_list) == ["/A", "/B"]
        table.seal(3)
        assert table.stage.read(query, ["mass"])["mass"].values.tolist() == [10, 20, 3]


def test_the_list_keeps_its_handle_while_the_prims_stay_the_same(make_table):
    table, other = make_table(2), make_table(["/C"])
    table.write("mass", np.float32([1, 2]), 1)
    table.seal(1)

    def listed(query):
        with table.stage.read_attributes(query, [table.token("mass")], OrdinalRange.latest(1)) as read:
            with read.fetch_next() as group:
                return group.prim_list

    with table.stage.query(HAS_MASS) as query:
        first = listed(query)
        query.refresh().wait()
        assert listed(query) == first
        other.write("friction", np.float32([3]), 1 + 1)
        query.refresh().wait()
        assert listed(query) == first
        other.write("mass", np.float32([3]), 2)
        table.seal(2)
        query.refresh().wait()
        assert listed(query) != first


def test_a_refresh_that_is_refused_changes_nothing(make_table):
    table, other = make_table(2), make_table(["/C"])
    table.write("mass", np.float32([1, 2]), 1)
    with table.stage.query(Filter([Predicate("mass", FilterOp.GT, [1])])) as query:
        other.write("mass", [np.float32([1, 2])], 1, is_array=True)
        op = query.refresh()
        assert op.status == ErrorCode.NOT_SUPPORTED
        with pytest.raises(OvstageError, match=r'"mass" holds float32\[\], which GT can\'t compare'):
            op.wait()
        assert paths_of(table, query) == ["/World/Prim1"]


def test_a_path_list_query_stays_what_it_is(table):
    table.query.refresh().wait()
    assert table.query.result().total_prim_count == 2


def test_refreshing_costs_nothing_that_stays(make_table):
    table, other = make_table(2), make_table(["/C"])
    table.write("mass", np.float32([1, 2]), 1)
    with table.stage.query(HAS_MASS) as query:
        before = table.stage.counters()["live_queries"]
        for ordinal in range(2, 200, 2):
            other.write("mass", np.float32([3]), ordinal)
            query.refresh().wait()
            assert query.result().total_prim_count == 3
            table.stage.delete_attributes(other.query, ["mass"], ordinal + 1).wait()
            query.refresh().wait()
            assert query.result().total_prim_count == 2
        assert table.stage.counters()["live_queries"] == before
        assert table.stage.counters()["live_operations"] == 0


def test_refreshing_while_others_read(make_table):
    """A reader sees the prims of one refresh or of another, never a mixture."""
    table, other = make_table(["/A", "/B"]), make_table(["/C", "/D"])
    table.write("mass", np.float32([1, 2]), 1)
    table.seal(1)
    done, seen, failures = threading.Event(), set(), []
    with table.stage.query(HAS_MASS) as query:

        def read():
            try:
                while not done.is_set():
                    seen.add(tuple(paths_of(table, query)))
            except Exception as failure:
                failures.append(failure)

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        for ordinal in range(2, 100, 2):
            other.write("mass", np.float32([3, 4]), ordinal)
            query.refresh().wait()
            table.stage.delete_attributes(other.query, ["mass"], ordinal + 1).wait()
            query.refresh().wait()
        done.set()
        for reader in readers:
            reader.join()
    assert not failures
    # The read of usd-path leaves out who is gone by now, but its list is that of a refresh.
    assert seen <= {("/A", "/B"), ("/A", "/B", "/C", "/D")}


# --- the end ---


def test_use_after_release(table):
    table.write("mass", np.float32([1, 2]), 1)
    query = table.stage.query(HAS_MASS)
    query.release().wait()
    for use in (
        query.result,
        query.refresh,
        query.release,
        lambda: table.stage.fetch_query_result(query),
        lambda: table.stage.read_attributes(query, [table.token("mass")], OrdinalRange.latest(1)),
        lambda: table.stage.write_attribute(query, "mass", 2, np.float32([1, 2]), is_array=False),
    ):
        with pytest.raises(OvstageError, match=f"Query {query.handle} has been released") as failure:
            use()
        assert failure.value.code == ErrorCode.INVALID_HANDLE
    assert table.stage.refresh_query(query.handle).status == ErrorCode.INVALID_HANDLE
    with pytest.raises(OvstageError, match=f"query handle {query.handle} is unknown or was released"):
        table.stage.fetch_query_result(query.handle)


def test_a_refused_query_has_nothing_to_release(table):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        query = table.stage.query(Filter([Predicate("usd-active", FilterOp.HAS)]))
        assert query.handle == 0 and not query.op.ok
        del query
        gc.collect()


def test_a_query_ends_with_its_stage(names, stage):
    query = stage.query()
    stage.destroy()
    with pytest.raises(OvstageError, match="destroyed"):
        query.result()
    with pytest.raises(OvstageError, match="destroyed"):
        query.refresh()
