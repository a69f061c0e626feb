"""What a stage refuses about names and queries, word for word."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from refusals import Row, check, destroyed, names_of, released

import ovstage
from ovstage import FilterOp

# --- what some rows need first ---


def closed(dictionary: ovstage.PathDictionary) -> ovstage.PathDictionary:
    dictionary.destroy()
    return dictionary


def orphaned_dictionary() -> ovstage.PathDictionary:
    return ovstage.PathDictionary(destroyed())


def orphaned_list() -> ovstage.PathList:
    stage = ovstage.Stage("gone")
    paths = ovstage.PathDictionary(stage).create_path_list([])
    stage.destroy()
    return paths


# --- the rows ---

NAMES: list[Row] = [
    (
        "OvxError: ovx error 1: Token string must be non-empty (entry 0): token 0 stands for the empty string",
        lambda s: s.names.intern_token(""),
    ),
    (
        'OvxError: ovx error 1: Token string contains embedded NUL (entry 0, "a\\x00b"): remove the NUL byte',
        lambda s: s.names.intern_token("a\0b"),
    ),
    ("TypeError: expected str for string, got 5 (int)", lambda s: s.names.intern_token(5)),
    (
        "ValueError: string must be text that UTF-8 can express, got '\\ud800', which has a lone surrogate",
        lambda s: s.names.intern_token("\ud800"),
    ),
    (
        "TypeError: strings must be a list of strings, got the single string 'abc'; write ['abc']",
        lambda s: s.names.intern_tokens("abc"),
    ),
    ("TypeError: strings must be a list of strings, got 5 (int)", lambda s: s.names.intern_tokens(5)),
    ("TypeError: expected str for strings[1], got 5 (int)", lambda s: s.names.intern_tokens(["a", 5])),
    (
        "ValueError: strings[1] must be text that UTF-8 can express, got '\\ud800', which has a lone surrogate",
        lambda s: s.names.intern_tokens(["a", "\ud800"]),
    ),
    (
        'OvxError: ovx error 1: Path string must be non-empty (entry 0): the root is "/"',
        lambda s: s.names.intern_path(""),
    ),
    (
        'OvxError: ovx error 1: Path string contains embedded NUL (entry 0, "/a\\x00b"): remove the NUL byte',
        lambda s: s.names.intern_path("/a\0b"),
    ),
    (
        'OvxError: ovx error 1: Path string must start with "/" (entry 0, "World"): paths are absolute, as '
        '"/World/Cube" is',
        lambda s: s.names.intern_path("World"),
    ),
    (
        'OvxError: ovx error 1: Path string must not have an empty component (entry 0, "/A//B"): write "/" '
        "once between components",
        lambda s: s.names.intern_path("/A//B"),
    ),
    (
        'OvxError: ovx error 1: Path string must not end with "/" (entry 0, "/A/"): remove the trailing slash',
        lambda s: s.names.intern_path("/A/"),
    ),
    (
        'OvxError: ovx error 1: Path string must not have "." or ".." components (entry 0, "/A/../B"): write '
        "the path they lead to",
        lambda s: s.names.intern_path("/A/../B"),
    ),
    (
        "OvxError: ovx error 1: Path string must have at most 65536 components (entry 0, "
        '"/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a"..., 131074 '
        "bytes): it has 65537",
        lambda s: s.names.intern_path("/a" * 65537),
    ),
    (
        "OvxError: ovx error 1: Token string must have at most 16777215 bytes (entry 0, "
        f'"{"x" * 80}"..., 16777216 bytes)',
        lambda s: s.names.intern_token("x" * 2**24),
    ),
    (
        "OvxError: ovx error 1: Path string must have at most 1048576 bytes (entry 0, "
        f'"/{"x" * 79}"..., 1048577 bytes)',
        lambda s: s.names.intern_path("/" + "x" * 2**20),
    ),
    (
        "OvstageError: INVALID_ARGUMENT: attribute: the name has 4097 bytes, expected at most 4096",
        lambda s: s.put(np.zeros(2, "f4"), "x" * 4097).wait(),
    ),
    (
        "OvstageError: INVALID_ARGUMENT: attribute[0]: the name has 4097 bytes, expected at most 4096",
        lambda s: s.put(np.zeros(2, "f4"), s.token("x" * 4097)).wait(),
    ),
    (
        "OvxError: ovx error 1: Token handle was not found in this dictionary (entry 0): 1152921504606846976",
        lambda s: s.names.token_to_string(2**60),
    ),
    ("ValueError: token must be non-negative, got -1", lambda s: s.names.token_to_string(-1)),
    (
        "OvxError: ovx error 1: Prim path handle was not found in this dictionary (handle 1152921504606846976)",
        lambda s: s.names.path_to_string(2**60),
    ),
    (
        "OvxError: ovx error 1: Prim path handle was not found in this dictionary (handle 0)",
        lambda s: s.names.path_to_string(0),
    ),
    ("TypeError: primpath must be an int, got 'x' (str)", lambda s: s.names.path_to_string("x")),
    (
        "OvxError: ovx error 1: Path list handle was not found (handle 3735928559): it was released, or never created",
        lambda s: s.names.path_list_count(0xDEADBEEF),
    ),
    (
        "OvxError: ovx error 1: Prim path handle was not found in this dictionary (entry 0, handle "
        "1152921504606846976): intern the path first",
        lambda s: s.names.create_path_list([2**60]),
    ),
    ("TypeError: primpaths must be ints (got 1.5 (float) at position 0)", lambda s: s.names.create_path_list([1.5])),
    ("ValueError: primpaths[0] must be non-negative, got -1", lambda s: s.names.create_path_list([-1])),
    (
        "ValueError: primpaths[0] must fit in uint64, got 18446744073709551616",
        lambda s: s.names.create_path_list([2**64]),
    ),
    (
        "ValueError: primpaths must be non-negative, got -1 at position 0",
        lambda s: s.names.create_path_list(np.int32([-1])),
    ),
    (
        "TypeError: primpaths must be ints (a list or a 1-D integer array of them), got 5 (int)",
        lambda s: s.names.create_path_list(5),
    ),
    (
        "TypeError: paths must be a list of strings, got the single string '/World'; write ['/World']",
        lambda s: s.names.create_path_list_from_strings("/World"),
    ),
    (
        "OvxError: ovx error 1: path list … has already been released",
        lambda s: released(s.names.create_path_list([])).release(),
    ),
    (
        "OvxError: ovx error 1: Path list handle was not found (handle 3735928559): it was released, or never created",
        lambda s: s.names.destroy_path_list(0xDEADBEEF),
    ),
    (
        "OvxError: ovx error 1: Path list handle was not found (handle 3735928559): it was released, or never created",
        lambda s: s.names.add_path_list_reference(0xDEADBEEF),
    ),
    (
        "OvxError: ovx error 1: the PathDictionary has been destroyed",
        lambda s: closed(ovstage.PathDictionary(s.stage)).intern_token("a"),
    ),
    (
        "OvxError: ovx error 1: the Stage of this PathDictionary has been destroyed",
        lambda s: orphaned_dictionary().intern_token("a"),
    ),
    ("OvxError: ovx error 1: the Stage of path list … has been destroyed", lambda s: orphaned_list().release()),
    ("TypeError: stage must be a Stage or None, got 'stage' (str)", lambda s: ovstage.PathDictionary("stage")),
    ("TypeError: a PathDictionary cannot be copied or pickled", lambda s: copy.copy(s.names)),
    ("TypeError: a Query cannot be copied or pickled", lambda s: copy.copy(s.query)),
]

QUERIES: list[Row] = [
    (
        "TypeError: filter must be a Filter or None, got 'filter'; write Filter([...])",
        lambda s: s.stage.query("filter"),
    ),
    (
        "TypeError: a Filter holds Predicates and Filters, got 'mass' as predicates[0]",
        lambda s: s.stage.query(ovstage.Filter(["mass"])),
    ),
    (
        "TypeError: predicates must be a list of Predicates, got the single string 'mass'; write ['mass']",
        lambda s: ovstage.Filter("mass"),
    ),
    ("TypeError: predicates must be a list of Predicates, got 5 (int); write [5]", lambda s: ovstage.Filter(5)),
    (
        "ValueError: op must be a valid FilterOp (HAS=0, IN=1, CONTAINS=2, PREFIX=3, LT=4, LE=5, GT=6, GE=7), got 99",
        lambda s: s.ask("mass", 99),
    ),
    ("TypeError: op must be an int, got 'HAS' (str); write FilterOp.HAS", lambda s: s.ask("mass", "HAS")),
    (
        "TypeError: values must be a list of strings or numbers, got the single string '1'; write ['1']",
        lambda s: s.ask("mass", FilterOp.IN, "1"),
    ),
    (
        "TypeError: attribute must be an int (a token) or a str (a name), got 5.5 (float)",
        lambda s: s.ask(5.5, FilterOp.HAS),
    ),
    (
        "OvstageError: INVALID_ARGUMENT: condition.conditions[0].predicate.attribute: there is neither a token nor a "
        "name, expected one of them",
        lambda s: s.ask("", FilterOp.HAS),
    ),
    (
        "OvstageError: INVALID_ARGUMENT: condition.conditions[0].predicate.attribute: 1152921504606846976 is not a "
        "token of this stage's dictionary; intern the name first",
        lambda s: s.ask(2**60, FilterOp.HAS),
    ),
    (
        'OvstageError: NOT_SUPPORTED: attribute "usd-active" can\'t be filtered with IN; supported are …',
        lambda s: s.ask("usd-active", FilterOp.IN, ["true"]),
    ),
    (
        'OvstageError: NOT_SUPPORTED: attribute "usd-path" can\'t be filtered with LT; supported are …',
        lambda s: s.ask("usd-path", FilterOp.LT, ["/World"]),
    ),
    (
        'OvstageError: NOT_SUPPORTED: attribute "point" holds float32x3 POINT, which GT can\'t compare; '
        "supported are …",
        lambda s: s.ask("point", FilterOp.GT, ["1"]),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "mass": GT takes exactly one value, got 2',
        lambda s: s.ask("mass", FilterOp.GT, ["1", "2"]),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "mass": values[0]: "heavy" is not a number, but the '
        "attribute holds numbers",
        lambda s: s.ask("mass", FilterOp.GT, ["heavy"]),
    ),
    (
        "OvstageError: INVALID_ARGUMENT: attrs[0]: 1152921504606846976 is not a token of this stage's "
        "dictionary; intern the attribute name first",
        lambda s: s.stage.query(attrs=[2**60]),
    ),
    ("ValueError: attrs[0] must be non-negative, got -1", lambda s: s.stage.query(attrs=[-1])),
    (
        "OvstageError: INVALID_HANDLE: path_list: Path list handle was not found (handle "
        "1152921504606846976): it was released, or never created",
        lambda s: s.stage.query_from_path_list(2**60),
    ),
    (
        "TypeError: path_list must be a PathList or its number, got '/World' (str); make one with "
        "PathDictionary(stage).create_path_list_from_strings([...])",
        lambda s: s.stage.query_from_path_list("/World"),
    ),
    (
        "TypeError: path_list must be a PathList or its number, got ['/World'] (list); make one with "
        "PathDictionary(stage).create_path_list_from_strings([...])",
        lambda s: s.names.destroy_path_list(["/World"]),
    ),
    (
        "TypeError: primpaths must be ints (got '/World' (str) at position 0); create_path_list_from_strings takes "
        "texts",
        lambda s: s.names.create_path_list(["/World"]),
    ),
    (
        "TypeError: op must be an int, got '>' (str); write a member of FilterOp",
        lambda s: s.ask("mass", ">", [1]),
    ),
    (
        "TypeError: values must be a list of strings or numbers, got 1 (int); write [1]",
        lambda s: s.ask("mass", ovstage.FilterOp.GT, 1),
    ),
    (
        "TypeError: values must be a list of strings or numbers, got {'a': 1} (dict), which is a mapping",
        lambda s: s.ask("mass", ovstage.FilterOp.IN, {"a": 1}),
    ),
    (
        "TypeError: filter must be a Filter or None, got []; write Filter([...])",
        lambda s: s.stage.query([]),
    ),
    (
        "TypeError: query must be a Query, got '/World' (str); make one with stage.query_from_path_list(...)",
        lambda s: s.stage.fetch_query_result("/World"),
    ),
    (
        "OvstageError: INVALID_HANDLE: query handle 1152921504606846976 is unknown or was released",
        lambda s: s.stage.fetch_query_result(2**60),
    ),
    (
        "TypeError: query must be a Query, got PathList(…, owned); make one with stage.query_from_path_list(...)",
        lambda s: s.stage.fetch_query_result(s.list),
    ),
    (
        "TypeError: prims must be a query or a list of paths, got the single string '/World/Prim0'; write "
        "['/World/Prim0']",
        lambda s: s.stage.read("/World/Prim0", ["mass"]),
    ),
    (
        "TypeError: prims must be a Query, a PathList or a list of paths, which have an order, got set",
        lambda s: s.stage.write({"/World/Prim0"}, "mass", 6, np.float32([1])),
    ),
    (
        "TypeError: prims must be a Query, a PathList or a list of paths, which have an order, got NoneType",
        lambda s: s.stage.read(None, ["mass"]),
    ),
    ("TypeError: expected str for paths[1], got 5 (int)", lambda s: s.stage.read(["/A", 5], ["mass"])),
    ("TypeError: expected str for paths[0], got ['/A'] (list)", lambda s: s.stage.read([["/A"]], ["mass"])),
    ("TypeError: expected str for prim, got 5 (int)", lambda s: s.stage.get(5, "mass")),
    (
        "ValueError: timeout must be non-negative, got -1; pass TIMEOUT_INFINITE to wait without a limit",
        lambda s: s.stage.fetch_query_result(s.query, -1),
    ),
    (
        "TypeError: timeout must be an int, a number of nanoseconds, got 0.5 (float)",
        lambda s: s.stage.fetch_query_result(s.query, 0.5),
    ),
    (
        "ValueError: timeout must fit in uint64, got 18446744073709551616",
        lambda s: s.stage.fetch_query_result(s.query, 2**64),
    ),
    ("OvstageError: INVALID_HANDLE: Query … has been released", lambda s: released(s.stage.query()).result()),
    (
        'OvstageError: NOT_SUPPORTED: Query was never opened: attribute "usd-active" can\'t be filtered with '
        "IN; supported are …",
        lambda s: s.ask("usd-active", FilterOp.IN, ["x"]).result(),
    ),
    (
        "OvstageError: INVALID_HANDLE: query handle 1152921504606846976 is unknown or was released",
        lambda s: s.stage.release_query(2**60),
    ),
]

ROWS = [*NAMES, *QUERIES]


@pytest.mark.parametrize(("text", "call"), ROWS, ids=names_of(ROWS))
def test_refusal(scene, text, call):
    check(text, call, scene)
