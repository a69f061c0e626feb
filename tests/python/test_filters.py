"""Filters, alone and combined: random ones against a model in plain Python, and what is refused."""

from __future__ import annotations

import enum
import gc
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ovstage
from ovstage import AttributeSemantic, ErrorCode, Filter, FilterOp, OvstageError, Predicate

NAMES = ["a", "b", "ab", "World", "Worldwide", "é"]
PATHS = sorted({f"/{x}" for x in NAMES} | {f"/{x}/{y}" for x in NAMES for y in NAMES} | {"/a/b/a", "/a/b/ab/b", "/"})
TYPES = ["Mesh", "Xform", "Cube"]
SCHEMAS = ["MassAPI", "JointAPI", "LightAPI"]
NUMBERS = {
    "i1": [-128, -1, 0, 7, 127],
    "u4": [0, 1, 7, 2**32 - 1],
    "i8": [-(2**63), 0, 2**53 + 1, 2**63 - 1],
    "?": [0, 1],
}
NUMBERS |= {"u8": [0, 7, 2**64 - 1], "f4": [-0.5, 0, 7, 0.25], "f8": [-0.5, 0.1, 1e300], "u1": [0, 255], "i2": [-7, 7]}


@dataclass
class Scene:
    """Every prim with what it carries, in the order of creation."""

    prims: dict[str, dict[str, Any]] = field(default_factory=dict)

    def write(self, path: str, name: str, value: Any) -> None:
        self.prims.setdefault(path, {})[name] = value

    def delete(self, path: str, name: str) -> None:
        if self.prims.get(path, {}).pop(name, None) is not None and not self.prims[path]:
            del self.prims[path]


def parent(path: str) -> str | None:
    return None if path == "/" else path.rpartition("/")[0] or "/"


def holds(item: Filter | Predicate, scene: Scene, path: str) -> bool:
    """What a condition means, without a thought about speed."""
    if isinstance(item, Filter):
        met = [holds(below, scene, path) for below in item.predicates]
        return {"": all(met), ".any_of": any(met), ".none_of": not any(met)}[repr(item).partition("(")[0][6:]]
    name, op, values, carried = item.attribute, item.op, list(item.values), scene.prims[path]
    match name, op:
        case "usd-path", FilterOp.IN:
            return path in values
        case "usd-path", FilterOp.PREFIX:
            return any(path.encode().startswith(value.encode()) for value in values)
        case "usd-parent", FilterOp.IN:
            return parent(path) in values
        case "usd-children", FilterOp.CONTAINS:
            return any(child in scene.prims and parent(child) == path for child in values)
        case _, FilterOp.HAS:
            return name in carried
        case "usd-schemas", FilterOp.CONTAINS:
            return name in carried and any(value in carried[name] for value in values)
        case "usd-prim-type" | "kind", FilterOp.IN:
            return name in carried and carried[name] in values
    if name not in carried:
        return False
    mine = Fraction(carried[name])
    limits = [Fraction(float(np.float32(value)) if name == "f4" else value) for value in values]
    return {
        FilterOp.IN: mine in limits,
        FilterOp.LT: mine < limits[0],
        FilterOp.LE: mine <= limits[0],
        FilterOp.GT: mine > limits[0],
        FilterOp.GE: mine >= limits[0],
    }[op]


def several(values: list[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=3)


def numeric(name: str) -> st.SearchStrategy[Predicate]:
    values = NUMBERS[name] if name == "?" else [*NUMBERS[name], -1, 0.5, 7, 2**64]
    orders = st.sampled_from([FilterOp.LT, FilterOp.LE, FilterOp.GT, FilterOp.GE])
    return st.one_of(
        st.builds(Predicate, st.just(name), st.just(FilterOp.IN), several(values)),
        st.builds(Predicate, st.just(name), orders, st.lists(st.sampled_from(values), min_size=1, max_size=1)),
    )


somewhere = several([*PATHS, "/never", "/a/never"])
beginnings = st.lists(
    st.sampled_from(PATHS).flatmap(lambda path: st.integers(0, len(path)).map(lambda end: path[:end])),
    min_size=1,
    max_size=2,
)
COLUMNS = ["usd-prim-type", "usd-schemas", "kind", *NUMBERS]
predicates = st.one_of(
    st.builds(Predicate, st.sampled_from([*COLUMNS, "unknown"]), st.just(FilterOp.HAS)),
    st.builds(Predicate, st.just("usd-path"), st.just(FilterOp.IN), somewhere),
    st.builds(Predicate, st.just("usd-path"), st.just(FilterOp.PREFIX), beginnings),
    st.builds(Predicate, st.just("usd-parent"), st.just(FilterOp.IN), somewhere),
    st.builds(Predicate, st.just("usd-children"), st.just(FilterOp.CONTAINS), somewhere),
    st.builds(Predicate, st.sampled_from(["usd-prim-type", "kind"]), st.just(FilterOp.IN), several([*TYPES, "Never"])),
    st.builds(Predicate, st.just("usd-schemas"), st.just(FilterOp.CONTAINS), several([*SCHEMAS, "Never"])),
    st.sampled_from(list(NUMBERS)).flatmap(numeric),
)
filters = st.recursive(
    predicates,
    lambda below: st.builds(
        lambda make, items: make(items),
        st.sampled_from([Filter, Filter.any_of, Filter.none_of]),
        st.lists(below, min_size=1, max_size=3),
    ),
    max_leaves=8,
).map(lambda item: item if isinstance(item, Filter) else Filter([item]))
changes = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "write", "delete"]),
        st.lists(st.sampled_from(PATHS), min_size=1, max_size=6, unique=True),
        st.sampled_from(COLUMNS),
        st.integers(0, 100),
    ),
    max_size=8,
)


class Stage:
    """A stage and its model, changed together."""

    def __init__(self, stage: ovstage.Stage, names: ovstage.PathDictionary) -> None:
        self.stage, self.names, self.scene, self.ordinal = stage, names, Scene(), 0

    def apply(self, kind: str, paths: list[str], name: str, seed: int) -> None:
        self.ordinal += 1
        with (
            self.names.create_path_list_from_strings(paths) as listed,
            self.stage.query_from_path_list(listed) as query,
        ):
            if kind == "delete":
                self.stage.delete_attributes(query, [name], self.ordinal).wait()
                for path in paths:
                    self.scene.delete(path, name)
                return
            values = [self.value(name, seed + at) for at in range(len(paths))]
            payload, options = self.payload(name, values)
            self.stage.write_attribute(query, name, self.ordinal, payload, **options).wait()
            for path, value in zip(paths, values, strict=True):
                self.scene.write(path, name, value)

    @staticmethod
    def value(name: str, seed: int) -> Any:
        if name == "usd-schemas":
            return SCHEMAS[: seed % 4]
        choices = NUMBERS.get(name, TYPES)
        return choices[seed % len(choices)]

    def payload(self, name: str, values: list[Any]) -> tuple[Any, dict[str, Any]]:
        if name == "usd-schemas":
            return [np.array(self.names.intern_tokens(row), np.uint64) for row in values], {"is_array": True}
        if name in NUMBERS:
            return np.array(values, name), {"is_array": False}
        semantic = AttributeSemantic.TOKEN_ID if name == "kind" else AttributeSemantic.NONE
        return np.array(self.names.intern_tokens(values), np.uint64), {"is_array": False, "semantic": semantic}

    def found(self, query: ovstage.Query) -> list[str]:
        with self.stage.read_attributes(
            query, [self.names.intern_token("usd-path")], ovstage.OrdinalRange.latest(0)
        ) as read:
            paths = []
            for group in read.groups():
                with group:
                    paths += self.names.get_path_strings(group.prim_list)
            assert len(paths) == query.result().total_prim_count
            return paths

    def expected(self, chosen: Filter) -> list[str]:
        return [path for path in self.scene.prims if holds(chosen, self.scene, path)]


@settings(max_examples=300, deadline=None)
@given(changes, filters, changes)
def test_filters_mean_what_they_say(before, chosen, after):
    with ovstage.Stage("filters") as stage, ovstage.PathDictionary(stage) as names:
        play = Stage(stage, names)
        for change in before:
            play.apply(*change)
        with stage.query(chosen) as query:
            query.wait()
            assert play.found(query) == play.expected(chosen)
            for change in after:
                play.apply(*change)
            query.refresh().wait()
            assert play.found(query) == play.expected(chosen)


# --- combining ---


def count(stage: ovstage.Stage, chosen: Filter | None) -> int:
    with stage.query(chosen) as query:
        return query.result().total_prim_count


def test_and_or_not(make_table):
    table = make_table(["/World", "/World/A", "/World/B", "/Lamp"])
    table.write("mass", np.float32([1, 2, 3, 4]), 1)
    inside = Predicate("usd-path", FilterOp.PREFIX, ["/World/"])
    heavy = Predicate("mass", FilterOp.GT, ["2"])
    for chosen, expected in {
        Filter([inside, heavy]): ["/World/B"],
        Filter.any_of([inside, heavy]): ["/World/A", "/World/B", "/Lamp"],
        Filter.none_of([inside, heavy]): ["/World"],
        Filter([inside, Filter.none_of([heavy])]): ["/World/A"],
        Filter.none_of([Filter([inside, heavy])]): ["/World", "/World/A", "/Lamp"],
        Filter([]): table.paths,
    }.items():
        with (
            table.stage.query(chosen) as query,
            table.stage.read_attributes(query, [table.token("usd-path")], ovstage.OrdinalRange.latest(0)) as read,
        ):
            (group,) = read.groups()
            with group:
                assert table.names.get_path_strings(group.prim_list) == expected, chosen
    assert repr(Filter.any_of([heavy])) == f"Filter.any_of([{heavy!r}])"


def test_not_asks_prims_that_exist(table):
    table.write("mass", np.float32([1, 2]), 1)
    without_friction = Filter.none_of([Predicate("friction", FilterOp.HAS)])
    assert count(table.stage, without_friction) == 2
    table.stage.delete_attributes(table.query, [], 2).wait()
    assert count(table.stage, without_friction) == 0


def test_a_filter_can_be_used_again_and_changed(table):
    table.write("mass", np.float32([1, 2]), 1)
    heavy = Predicate("mass", FilterOp.GT, [1])
    chosen = Filter([heavy])
    assert count(table.stage, chosen) == 1
    heavy.values = [0]
    assert count(table.stage, chosen) == 2
    chosen.predicates.append(Filter.none_of([heavy]))
    assert count(table.stage, chosen) == 0


class Named:
    """Like a path object of another library."""

    def __str__(self) -> str:
        return "/World/Prim1"


class Level(enum.IntEnum):
    HIGH = 2


@pytest.mark.parametrize(
    "value", ["2", 2, 2.0, np.float32(2), np.int64(2), np.array(2), Level.HIGH, Fraction(2)], ids=repr
)
def test_numbers_are_values(table, value):
    table.write("mass", np.float32([1, 2]), 1)
    assert count(table.stage, Filter([Predicate("mass", FilterOp.IN, [value])])) == 1


def test_what_is_meant_as_its_text_is_a_value(table):
    table.write("flag", np.array([True, False]), 1)
    assert count(table.stage, Filter([Predicate("flag", FilterOp.IN, [True])])) == 1
    assert count(table.stage, Filter([Predicate("flag", FilterOp.IN, [np.False_, "true"])])) == 2
    assert count(table.stage, Filter([Predicate("usd-path", FilterOp.IN, (Named(),))])) == 1


# --- refusals ---


Table = Any
WRONG_CALLS: dict[str, tuple[type[Exception], str, Callable[[], Filter]]] = {
    "no list": (TypeError, r"predicates must be a list of Predicates, got 5", lambda: Filter.any_of(5)),
    "a string": (TypeError, r"predicates must be .* the single string 'mass'", lambda: Filter.none_of("mass")),
    "an item": (TypeError, r"Predicates and Filters, got 'mass' as predicates\[1\]", lambda: Filter([MASS, "mass"])),
    "a nested item": (TypeError, r"got None as predicates\[0\]", lambda: Filter([MASS, Filter.any_of([None])])),
    "an operator": (
        ValueError,
        r"op must be a valid FilterOp \(HAS=0, IN=1, .*\), got 8",
        lambda: Filter([Predicate("mass", 8, ["1"])]),
    ),
    "a string for values": (
        TypeError,
        r"values must be a list of strings or numbers, got the single string '/A'; write \['/A'\]",
        lambda: Filter([Predicate("usd-path", FilterOp.IN, "/A")]),
    ),
    "a number for values": (
        TypeError,
        r"values must be a list .* got 5",
        lambda: Filter([Predicate("mass", FilterOp.GT, 5)]),
    ),
    "None as a value": (
        TypeError,
        r"values\[1\] must be a string or a number, got None",
        lambda: Filter([Predicate("mass", FilterOp.IN, ["1", None])]),
    ),
    "bytes as a value": (
        TypeError,
        r"values\[0\] must be a string or a number, got b'/A'",
        lambda: Filter([Predicate("usd-path", FilterOp.IN, [b"/A"])]),
    ),
    "a list as a value": (
        TypeError,
        r"values\[0\] must be a string or a number, got \['1'\]",
        lambda: Filter([Predicate("mass", FilterOp.IN, [["1"]])]),
    ),
    "an attribute": (TypeError, r"attribute must be .*1\.5", lambda: Filter([Predicate(1.5, FilterOp.HAS)])),
}
MASS = Predicate("mass", FilterOp.HAS)


@pytest.mark.parametrize("case", WRONG_CALLS)
def test_refused_before_the_stage_is_asked(table, case):
    kind, text, make = WRONG_CALLS[case]
    with pytest.raises(kind, match=text):
        table.stage.query(make())
    assert table.stage.counters()["live_queries"] == 1


def test_filters_as_the_c_interface_has_them():
    named = Predicate("usd-path", FilterOp.IN, ["/Ä", "/B"])
    raw, keepalive = Filter([named, Predicate(7, FilterOp.HAS)]).to_c()
    gc.collect()
    assert raw.count == 2
    first, second = raw.predicates[0], raw.predicates[1]
    texts = [first.attribute.string, *(first.values[at] for at in range(first.value_count))]
    assert [text.ptr[: text.length].decode() for text in texts] == ["usd-path", "/Ä", "/B"]
    assert (first.attribute.token, first.op) == (0, FilterOp.IN)
    assert (second.attribute.token, second.op, second.value_count) == (7, FilterOp.HAS, 0)
    assert keepalive
    with pytest.raises(ValueError, match=r"Predicates that all hold, got Filter.any_of"):
        Filter.any_of([named]).to_c()
    with pytest.raises(ValueError, match=r"op.*99"):
        Filter([Predicate("a", 99)]).to_c()


def test_filters_too_deep(table):
    chosen = Filter([MASS])
    for _ in range(63):
        chosen = Filter.none_of([chosen])
    assert count(table.stage, chosen) == 0
    chosen.predicates.append(chosen)
    with pytest.raises(ValueError, match="filters lie more than 64 levels deep in each other"):
        table.stage.query(chosen)


REFUSED = {
    "IN of nothing": (1, Predicate("mass", FilterOp.IN), r'"mass": IN needs at least one value, got none'),
    "PREFIX of nothing": (
        1,
        Predicate("usd-path", FilterOp.PREFIX, []),
        r'"usd-path": PREFIX needs at least one value',
    ),
    "LT of nothing": (1, Predicate("mass", FilterOp.LT), r'"mass": LT takes exactly one value, got 0'),
    "GE of two": (1, Predicate("mass", FilterOp.GE, [1, 2]), r'"mass": GE takes exactly one value, got 2'),
    "a word for a number": (1, Predicate("mass", FilterOp.IN, ["1", "x"]), r'"mass": values\[1\]: "x" is not a number'),
    "nan": (1, Predicate("mass", FilterOp.LT, [float("nan")]), r'"mass": values\[0\]: "nan" is not a number'),
    "a relative path": (
        1,
        Predicate("usd-parent", FilterOp.IN, ["/A", "B"]),
        r'"usd-parent", values: .* must start with "/" \(entry 1, "B"\)',
    ),
    "an unknown token": (1, Predicate(2**60, FilterOp.HAS), rf"attribute: {2**60} is not a token"),
    "any of nothing": (1, Filter.any_of([]), r"ANY needs at least one condition, got none"),
    "none of nothing": (1, Filter.none_of([]), r"NONE needs at least one condition, got none"),
    "a wrong operator": (
        6,
        Predicate("mass", FilterOp.PREFIX, ["1"]),
        r'"mass" can\'t be filtered with PREFIX; supported are',
    ),
    "usd-active": (6, Predicate("usd-active", FilterOp.HAS), r'"usd-active" can\'t be filtered with HAS'),
    "lanes": (6, Predicate("point", FilterOp.LT, ["1"]), r'"point" holds float32x3, which LT can\'t compare'),
    "arrays": (6, Predicate("list", FilterOp.IN, ["1"]), r'"list" holds float32\[\], which IN can\'t compare'),
    "tokens in order": (
        6,
        Predicate("kind", FilterOp.GE, ["a"]),
        r'"kind" holds .*TOKEN_ID.*, which GE can\'t compare',
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_the_stage(table, case):
    code, item, text = REFUSED[case]
    table.write("mass", np.float32([1, 2]), 1)
    table.write("point", np.zeros((2, 3), np.float32), 1)
    table.write("list", [np.float32([1]), np.float32([])], 1, is_array=True)
    table.write(
        "kind", np.array(table.names.intern_tokens(["a", "b"]), np.uint64), 1, semantic=AttributeSemantic.TOKEN_ID
    )
    for chosen, place in {
        Filter([item]): "",
        Filter([MASS, item]): "predicate 1: ",
        Filter.any_of([MASS, Filter.none_of([MASS, MASS, item])]): r"predicate 1\.2: ",
    }.items():
        query = table.stage.query(chosen)
        assert query.op.status == code
        with pytest.raises(OvstageError, match=(place if "token" not in case else "") + ".*" + text) as failure:
            query.wait()
        assert failure.value.code == ErrorCode(code)
        with pytest.raises(OvstageError, match="Query was never opened: ") as failure:
            query.result()
        assert failure.value.code == ErrorCode(code)
    assert table.stage.counters()["live_queries"] == 1
