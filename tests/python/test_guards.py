"""Every number of every call: what passes, what is a TypeError, what is a ValueError, and that nothing is consumed."""

from __future__ import annotations

from decimal import Decimal
from enum import IntEnum

import numpy as np
import pytest

import ovstage
from ovstage import (
    FilterOp,
    LogSeverity,
    Operation,
    OrdinalRange,
    OvstageError,
    OvxError,
    Predicate,
    PrimMode,
    Scope,
    Stage,
    StageConfig,
    WriteDesc,
)

# What is refused is looked at where it is refused: by its exception, or by the stage, which stays as it is.
pytestmark = pytest.mark.filterwarnings("ignore::ovstage.OvstageWarning")


class One(IntEnum):
    ONE = 1


ONES = [1, np.int64(1), np.uint8(1), np.array(1), One.ONE]
NOBODYS = [10**9, np.int64(10**9), np.array(10**9)]  # handles that no test has open
FRACTIONS = [5.0, 5.25, np.float32(5), Decimal(5), b"5", [5], object()]
ROW = np.float32([1, 2])


def write(table, **changed):
    call = {"query": table.query, "attribute": "mass", "ordinal": 1, "tensors": ROW, "is_array": False} | changed
    return table.stage.write_attribute(**call)


def mapped(table, **changed):
    call = {"query": table.query, "attribute": "mass", "ordinal": 9, "dtype": ovstage.DLDataType(2, 32, 1)} | changed
    mapping = table.stage.map_attribute(**call)
    if mapping.handle:
        mapping.abort()


def floor(table, timeout):
    with table.stage.get_attribute_write_floor() as query:
        return query.fetch(timeout)


def queried(table, *arguments):
    query = table.stage.query(*arguments)
    if query.handle:
        query.release().wait()


def fetched(table, timeout):
    with table.stage.read_attributes(table.query, [table.token("x")], OrdinalRange.latest(1)) as read:
        return read.fetch_next(timeout)


def fetched_map(table, timeout):
    mapping = table.stage.map_attribute(table.query, "mass", 9, dtype=ovstage.DLDataType(2, 32, 1))
    try:
        mapping.fetch_next(timeout)
    finally:
        mapping.abort()


# name of the argument in the message, the call, the widest value in bits, and what else the call is known to refuse
NUMBERS = {
    "write ordinal": ("ordinal", lambda t, v: write(t, ordinal=v), 64),
    "batch ordinal": ("ordinal", lambda t, v: t.stage.write_attributes(t.query, [], v), 64),
    "delete ordinal": ("ordinal", lambda t, v: t.stage.delete_attributes(t.query, [], v), 64),
    "map ordinal": ("ordinal", lambda t, v: mapped(t, ordinal=v), 64),
    "clone ordinal": ("ordinal", lambda t, v: t.stage.clone_async("/A", ["/B"], v), 64),
    "floor ordinal": ("ordinal", lambda t, v: t.stage.advance_write_floor(v, Scope.INCLUDE, []), 64),
    "hierarchy ordinal": ("ordinal", lambda t, v: t.stage.get_hierarchy_async(1, v, 0), 64),
    "input ordinal": ("input_ordinal", lambda t, v: t.stage.compute_hierarchy_async(v, 1), 64),
    "output ordinal": ("output_ordinal", lambda t, v: t.stage.compute_hierarchy_async(1, v), 64),
    "latest": ("end_ordinal", lambda t, v: OrdinalRange.latest(v), 64),
    "between end": ("end_ordinal", lambda t, v: OrdinalRange.between(0, v), 64),
    "range end": ("end_ordinal", lambda t, v: OrdinalRange(v).to_c(), 64),
    "read range end": (
        "end_ordinal",
        lambda t, v: t.stage.read_attributes(t.query, [1], OrdinalRange(v)).release().wait(),
        64,
    ),
    "attribute": ("attribute", lambda t, v: write(t, attribute=v), 64),
    "map attribute": ("attribute", lambda t, v: mapped(t, attribute=v), 64),
    "delete attributes": ("attributes", lambda t, v: t.stage.delete_attributes(t.query, [v], 1), 64),
    "batch attribute": (
        "attribute",
        lambda t, v: t.stage.write_attributes(t.query, [WriteDesc(v, ROW, False)], 1),
        64,
    ),
    "predicate attribute": ("attribute", lambda t, v: queried(t, ovstage.Filter([Predicate(v, FilterOp.HAS)])), 64),
    "read attrs": (
        "attrs",
        lambda t, v: t.stage.read_attributes(t.query, [v], OrdinalRange.latest(1)).release().wait(),
        64,
    ),
    "query attrs": ("attrs", lambda t, v: queried(t, None, [v]), 64),
    "floor attributes": ("attributes", lambda t, v: t.stage.advance_write_floor(1, Scope.INCLUDE, [v]), 64),
    "query handle": ("query", lambda t, v: write(t, query=v), 64),
    "query of a read": ("query", lambda t, v: t.stage.read_attributes(v, [1], OrdinalRange.latest(1)), 64),
    "query result handle": ("query", lambda t, v: t.stage.fetch_query_result(v, 0), 64),
    "query release handle": ("query", lambda t, v: t.stage.release_query(v), 64),
    "read handle": ("read", lambda t, v: t.stage.fetch_read_next(v, 0), 64),
    "read release handle": ("read", lambda t, v: t.stage.release_read(v), 64),
    "mapping": ("mapping", lambda t, v: t.stage.fetch_map_next(v, 0), 64),
    "unmap handle": ("mapping", lambda t, v: t.stage.unmap_attribute(v), 64),
    "ordinal query handle": ("ordinal_query", lambda t, v: t.stage.fetch_ordinal(v, 0), 64),
    "operation id": ("op_id", lambda t, v: t.stage.wait_op(v, 0), 64),
    "released operation id": ("op_id", lambda t, v: t.stage.release_op(v), 64),
    "path list of a query": ("path_list", lambda t, v: t.stage.query_from_path_list(v), 64),
    "path list": ("path_list", lambda t, v: t.names.path_list_count(v), 64),
    "added path list": ("path_list", lambda t, v: t.names.add_path_list_reference(v), 64),
    "destroyed path list": ("path_list", lambda t, v: t.names.destroy_path_list(v), 64),
    "token": ("token", lambda t, v: t.names.token_to_string(v), 64),
    "path": ("primpath", lambda t, v: t.names.path_to_string(v), 64),
    "paths": ("primpaths", lambda t, v: t.names.create_path_list([v]), 64),
    "count": ("count", lambda t, v: write(t, count=v), 32),
    "index_map": ("index_map", lambda t, v: write(t, index_map=[v]), 32),
    "mask": ("mask", lambda t, v: write(t, mask=[v], count=2), 64),
    "element_sizes": ("element_sizes", lambda t, v: mapped(t, element_sizes=[v, 1]), 64),
    "cuda_stream": ("cuda_stream", lambda t, v: write(t, cuda_stream=v), 64),
    "cuda_event": ("cuda_event", lambda t, v: write(t, cuda_event=v), 64),
    "unmap event": ("cuda_event", lambda t, v: t.stage.unmap_attribute(10**9, v), 64),
    "unmap stream": ("cuda_stream", lambda t, v: t.stage.unmap_attribute(10**9, None, v), 64),
    "operation timeout": ("timeout", lambda t, v: write(t).wait(v), 64),
    "query timeout": ("timeout", lambda t, v: t.query.result(v), 64),
    "query wait timeout": ("timeout", lambda t, v: t.query.wait(v), 64),
    "read timeout": ("timeout", fetched, 64),
    "map timeout": ("timeout", fetched_map, 64),
    "ordinal timeout": ("timeout", floor, 64),
    "poll timeout": ("timeout", lambda t, v: t.stage.wait_op(1, v), 64),
    "flush timeout": ("timeout", lambda t, v: ovstage.flush_log(v), 64),
    "operation's own id": ("op_id", lambda t, v: Operation(t.stage, 0, v), 64),
}
NAMES_TOO = {
    "attribute",
    "map attribute",
    "delete attributes",
    "batch attribute",
    "predicate attribute",
    "read attrs",
    "query attrs",
    "floor attributes",
}
OPTIONAL = {"count", "cuda_stream", "cuda_event", "unmap event", "unmap stream"}


def accepted(call, *arguments):
    """The guards let it pass; whether the call then succeeds is another matter."""
    try:
        call(*arguments)
    except (OvstageError, OvxError):
        return True
    return True


@pytest.mark.parametrize("case", NUMBERS)
class TestNumbers:
    def test_integers_of_every_kind_pass(self, table, case):
        _, call, _ = NUMBERS[case]
        values = NOBODYS if case in ("destroyed path list", "query release handle") else ONES
        assert all(accepted(call, table, value) for value in values)

    def test_other_types_are_refused(self, table, case):
        name, call, _ = NUMBERS[case]
        wrong = [*FRACTIONS, *([] if case in NAMES_TOO else ["5"]), *([] if case in OPTIONAL else [None])]
        for value in wrong:
            with pytest.raises(TypeError, match=rf"\b{name}\b"):
                call(table, value)

    def test_truth_values_are_no_numbers(self, table, case):
        name, call, _ = NUMBERS[case]
        if case == "mask":
            return  # test_sparse.py
        for truth in (True, False, np.True_, np.array(True)):
            with pytest.raises(TypeError, match=rf"\b{name}\b"):
                call(table, truth)

    def test_numbers_out_of_range_are_refused(self, table, case):
        name, call, bits = NUMBERS[case]
        with pytest.raises(ValueError, match=rf"\b{name}\b.* must be non-negative, got -1"):
            call(table, -1)
        with pytest.raises(ValueError, match=rf"\b{name}\b.* must fit in uint{bits}, got {2**bits}"):
            call(table, 2**bits)

    def test_refusals_leave_no_trace(self, table, case):
        _, call, bits = NUMBERS[case]
        before = table.stage.counters()
        for value in (5.0, -1, 2**bits):
            with pytest.raises((TypeError, ValueError)):
                call(table, value)
        after = table.stage.counters()
        live = ("live_operations", "live_queries", "live_reads", "live_maps")
        assert [after[name] for name in live] == [before[name] for name in live]
        write(table, ordinal=1).wait()
        table.seal(1)
        assert table.read("mass", 1) == [1, 2]


@pytest.mark.parametrize("limit", [0, 2**32 - 1])
def test_largest_numbers_pass(table, limit):
    accepted(lambda: write(table, index_map=[limit], count=1).wait())
    accepted(lambda: OrdinalRange.latest(2**64 - 1).to_c())
    accepted(lambda: write(table, ordinal=2**64 - 1).wait())
    assert OrdinalRange.latest(2**64 - 1).to_c().end_ordinal == 2**64 - 1


# --- enums ---


ENUMS = {
    "prim_mode": (PrimMode, lambda t, v: write(t, prim_mode=v)),
    "map prim_mode": (PrimMode, lambda t, v: mapped(t, prim_mode=v)),
    "scope": (Scope, lambda t, v: t.stage.advance_write_floor(1, v)),
    "severity": (LogSeverity, lambda t, v: ovstage.set_log_callback(None, v)),
    "op": (FilterOp, lambda t, v: queried(t, ovstage.Filter([Predicate("a", v)]))),
    "runtime_default_hierarchy_computation_model": (
        ovstage.HierarchyComputationModel,
        lambda t, v: Stage("s", StageConfig(v)),
    ),
}


@pytest.mark.parametrize("case", ENUMS)
def test_enums_take_their_members_only(table, case):
    enum, call = ENUMS[case]
    name = case.split()[-1]
    for value in (99, -99, 2**80):
        with pytest.raises(ValueError, match=rf"{name} must be a valid {enum.__name__} \(.*=0.*\), got {value}"):
            call(table, value)
    for value in (1.0, "1", b"1"):
        with pytest.raises(TypeError, match=rf"{name} must be an int"):
            call(table, value)
    assert accepted(call, table, list(enum)[-2])


def test_invalid_is_no_model():
    with pytest.raises(ValueError, match="must name a model, got INVALID"):
        Stage("s", StageConfig(ovstage.HierarchyComputationModel.INVALID))


@pytest.mark.parametrize(
    "call",
    [
        lambda t, v: write(t, semantic=v),
        lambda t, v: mapped(t, semantic=v),
        lambda t, v: t.stage.write_attributes(t.query, [WriteDesc("a", ROW, False, semantic=v)], 1),
        lambda t, v: t.stage.compute_hierarchy_async(1, 1, v),
        lambda t, v: t.stage.get_hierarchy_async(1, 1, v),
    ],
)
def test_open_enums_take_any_int32(table, call):
    for value in (2**31, -(2**31) - 1):
        with pytest.raises(ValueError, match="must fit in int32"):
            call(table, value)
    for value in (1.0, "1", None, True):
        with pytest.raises(TypeError, match="must be an int"):
            call(table, value)
    for value in (77, -(2**31), 2**31 - 1):
        assert accepted(call, table, value)


# --- ranges ---


def test_range_is_judged_when_it_is_used():
    chosen = OrdinalRange.between(2, 5)
    assert (chosen.start_ordinal, chosen.end_ordinal) == (2, 5)
    assert chosen.to_c().has_start_ordinal
    assert OrdinalRange.latest(12).to_c().end_ordinal == 12
    assert not OrdinalRange.latest(12).to_c().has_start_ordinal
    chosen.end_ordinal = 5.0
    with pytest.raises(TypeError, match="end_ordinal must be an int"):
        chosen.to_c()
    chosen.end_ordinal = 1
    with pytest.raises(ValueError, match="start_ordinal 2 must not exceed end_ordinal 1"):
        chosen.to_c()


@pytest.mark.parametrize("wrong", [5.0, "5", -1, 2**64])
def test_range_start(wrong):
    with pytest.raises((TypeError, ValueError), match="start_ordinal"):
        OrdinalRange.between(wrong, 9)


def test_range_that_ends_before_it_starts(table):
    with pytest.raises(ValueError, match="must not exceed"):
        OrdinalRange.between(5, 4)
    with pytest.raises(ValueError, match="must not exceed"):
        table.stage.read_attributes(table.query, [1], OrdinalRange(4, 5))


# --- lists and payloads ---


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.stage.read_attributes(t.query, "mass", OrdinalRange.latest(1)),
        lambda t: t.stage.query(None, "mass"),
        lambda t: t.stage.read(t.query, "mass"),
        lambda t: t.stage.advance_write_floor(1, Scope.INCLUDE, "mass"),
        lambda t: t.stage.delete_attributes(t.query, "mass", 1),
        lambda t: t.stage.clone_async("/A", "/B", 1),
        lambda t: t.stage.query(ovstage.Filter([Predicate("usd-path", FilterOp.IN, "/A")])),
        lambda t: t.names.create_path_list_from_strings("/A"),
        lambda t: t.names.create_path_list("/A"),
        lambda t: write(t, index_map="10"),
        lambda t: write(t, mask="10", count=2),
        lambda t: mapped(t, element_sizes="12"),
    ],
)
def test_single_string_is_no_list(table, call):
    with pytest.raises(TypeError):
        call(table)


@pytest.mark.parametrize("attrs", [[], (), np.empty(0, "u8")], ids=str)
def test_read_of_nothing(table, attrs):
    with pytest.raises(ValueError, match="attrs must not be empty"):
        t_read(table, attrs)


@pytest.mark.parametrize("wrong", [5, None, 1.5])
def test_things_that_are_no_list(table, wrong):
    for call in (
        lambda: t_read(table, wrong),
        lambda: table.names.create_path_list(wrong),
        lambda: table.names.create_path_list_from_strings(wrong),
        lambda: table.stage.delete_attributes(table.query, wrong, 1),
    ):
        with pytest.raises(TypeError):
            call()


def t_read(table, attrs):
    return table.stage.read_attributes(table.query, attrs, OrdinalRange.latest(1))


@pytest.mark.parametrize("dtype", ["u8", "i8", "u4", "i4"])
def test_arrays_of_numbers_are_lists_of_numbers(table, dtype):
    write(table).wait()
    table.seal(1)
    token = table.token("mass")
    wide = dtype if token <= np.iinfo(dtype).max else dtype[0] + "8"  # after a compaction, in the same process
    with t_read(table, np.array([token], wide)) as read, read.fetch_next() as group:
        assert group.attribute == token
    write(table, ordinal=2, index_map=np.array([1, 0], dtype)).wait()
    write(table, ordinal=3, mask=np.array([1], dtype), count=2).wait()
    table.seal(3)
    assert table.read("mass", 3) == [1, 1]


@pytest.mark.parametrize("attrs", [["mass"], ("mass",), np.array(["mass"]), np.array(["mass"], object)])
def test_lists_of_attributes_take_names(table, attrs):
    write(table).wait()
    table.seal(1)
    with t_read(table, attrs) as read, read.fetch_next() as group:
        assert group.attribute == table.token("mass")
    with table.stage.query(None, attrs) as query:
        assert query.result().attributes == [table.token("mass")]
    table.stage.advance_write_floor(7, Scope.INCLUDE, attrs).wait()
    with table.stage.get_attribute_write_floor("mass") as floor:
        assert floor.fetch() == 7
    with table.stage.get_attribute_write_floor() as floor:
        assert floor.fetch() == 1


def test_names_and_tokens_may_be_mixed(table):
    table.stage.advance_write_floor(7, Scope.INCLUDE, ["mass", table.token("drag")]).wait()
    for name in ("mass", "drag"):
        with table.stage.get_attribute_write_floor(name) as floor:
            assert floor.fetch() == 7


def test_one_bad_entry_names_the_list(table):
    token = table.token("mass")
    with pytest.raises(TypeError, match="attrs must be ints"):
        t_read(table, [token, token + 0.75])
    with pytest.raises(TypeError, match="attrs must be ints"):
        t_read(table, np.array([token + 0.75]))
    with pytest.raises(TypeError, match="index_map entries must be ints"):
        write(table, index_map=[0, 1.0])
    with pytest.raises(ValueError, match="index_map"):
        write(table, index_map=np.int64([0, -1]))


@pytest.mark.parametrize("is_array", [1, 0, None, "yes", np.True_])
def test_kind_is_a_bool(table, is_array):
    with pytest.raises(TypeError, match="is_array"):
        write(table, is_array=is_array)
    with pytest.raises(TypeError, match="is_array"):
        table.stage.write_attributes(table.query, [WriteDesc("mass", ROW, is_array)], 1)


@pytest.mark.parametrize("transfer", [1, 0, None, "yes", np.True_])
def test_giving_away_is_a_bool(table, transfer):
    with pytest.raises(TypeError, match="transfer"):
        write(table, transfer=transfer)
    with pytest.raises(TypeError, match="transfer"):
        table.stage.write_attributes(table.query, [WriteDesc("mass", ROW, False, transfer=transfer)], 1)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"index_map": [0], "mask": [1], "count": 1}, "mutually exclusive"),
        ({"tensors": []}, "must have at least one entry"),
        ({"tensors": ()}, "must have at least one entry"),
        ({"index_map": []}, "index_map"),
        ({"index_map": [0, 1], "count": 0}, "count"),
        ({"index_map": [0], "count": 2}, "one entry per logical element"),
        ({"mask": [1]}, "count"),
        ({"mask": [1], "count": 0}, "count"),
        ({"mask": [1], "count": 65}, "mask"),
        ({"count": 0}, "count"),
        ({"count": 2**32}, "count"),
        ({"count": -1}, "count"),
        ({"index_map": [2**32, 0]}, "index_map"),
    ],
)
def test_sparse_payloads_are_judged_at_the_call(table, options, text):
    with pytest.raises(ValueError, match=text):
        write(table, **options)
    write(table, ordinal=1).wait()
    table.seal(1)
    assert table.read("mass", 1) == [1, 2]


def test_batches_hold_descriptions(table):
    for wrong in ([ROW], [None], ["mass"], [("mass", ROW, False)]):
        with pytest.raises(TypeError, match="WriteDesc"):
            table.stage.write_attributes(table.query, wrong, 1)


def test_objects_of_a_wrong_kind(table):
    for call, text in (
        (lambda: Stage("s", config={}), "config must be a StageConfig or None"),
        (lambda: Stage(5), "str"),
        (lambda: table.stage.query("usd-path"), "filter must be a Filter or None"),
        (lambda: table.stage.query(ovstage.Filter(["usd-path"])), "a Filter holds Predicates"),
        (lambda: table.stage.read_attributes(table.query, [1], 5), "ordinal_range must be an OrdinalRange"),
        (lambda: mapped(table, dtype=np.float32), "dtype must be a DLDataType or None"),
        (lambda: ovstage.set_log_callback(5), "callback must be callable or None"),
    ):
        with pytest.raises(TypeError, match=text):
            call()


def test_options_know_their_words(table):
    for call, text in (
        (lambda: mapped(table, initial="zeros"), "initial must be one of 'current', 'zero', 'discard', got 'zeros'"),
        (lambda: table.stage.unmap_attribute(1, commit="copy"), "commit must be one of 'adopt', 'auto', got 'copy'"),
        (lambda: table.stage.unmap_attribute(1, commit=None), "commit must be one of"),
    ):
        with pytest.raises(ValueError, match=text):
            call()


def test_places_and_extents_are_numbers(table):
    write(table).wait()
    table.seal(1)
    column = table.stage.read(table.query, ["mass"])["mass"]
    with table.group("mass", 1) as group:
        for call in (
            lambda: group.array(False),
            lambda: group.tensor(False),
            lambda: group.dlpack(False),
            lambda: group.prim_index(True),
            lambda: group.data_row_index(np.True_),
            lambda: group.dlpack(0, shape=(True, 2)),
            lambda: group.dlpack(0, shape={2}),
            lambda: column.row(True),
            lambda: ovstage.make_dltensor(ROW, shape=[True]),
            lambda: ovstage.make_dltensor(ROW, shape={2}),
            lambda: ovstage.make_dltensor(ROW, strides={1: 1}),
            lambda: ovstage.make_dltensor(ROW, ndim=True),
            lambda: ovstage.numpy_to_dldatatype("float32", True),
        ):
            with pytest.raises(TypeError, match=r"\b(index|local|shape|prim|strides|ndim|lanes)\b"):
                call()
