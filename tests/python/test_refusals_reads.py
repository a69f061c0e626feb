"""What reads, deletes, floors and maps refuse, word for word."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from refusals import Row, Scene, check, names_of, released

import ovstage
from ovstage import DLDataType, OrdinalRange, PrimMode, Scope

# --- what some rows need first ---


def one_prim(s: Scene, prim: int) -> ovstage.Query:
    with s.names.create_path_list_from_strings([s.paths[prim]]) as paths:
        return s.stage.query_from_path_list(paths)


def two_types(s: Scene) -> ovstage.Query:
    """The scene's query, over an attribute that is float32 on one prim and int32 on the other."""
    for prim, values in enumerate([np.float32([1]), np.int32([1])]):
        with one_prim(s, prim) as query:
            s.stage.write_attribute(query, "mixed", 6, values, is_array=False).wait()
    s.seal(6)
    return s.query


def neither_type(s: Scene) -> ovstage.Query:
    """A prim that has none of the two."""
    two_types(s)
    with s.names.create_path_list_from_strings(["/World/Other"]) as paths:
        return s.stage.query_from_path_list(paths)


def unsealed(s: Scene, which: OrdinalRange) -> ovstage.Read:
    s.put(np.float32([3, 4]), "late").wait()
    return s.stage.read_attributes(s.query, [s.token("late")], which)


def changed_again(s: Scene) -> ovstage.Read:
    for ordinal in (6, 7):
        s.write("mass", np.float32([3, 4]), ordinal)
    s.seal(7)
    return s.stage.read_attributes(s.query, [s.token("mass")], OrdinalRange.between(6, 6))


def unmap_with(s: Scene, **options: Any) -> ovstage.Operation:
    with s.lent() as (mapping, _):
        return mapping.unmap(**options)


def unmap_group(s: Scene, group: Any) -> ovstage.Operation:
    with s.lent() as (mapping, _):
        return mapping.unmap_group(group)


def unmap_twice(s: Scene) -> ovstage.Operation:
    with s.lent() as (mapping, group):
        mapping.unmap_group(group).wait()
        return mapping.unmap_group(group)


def late_unmap(s: Scene) -> ovstage.Operation:
    with s.lent() as (mapping, _):
        s.seal(6)
        return mapping.unmap()


def fetch_after_unmap(s: Scene) -> object:
    with s.map() as mapping:
        pass
    return mapping.fetch_next()


def abort_after_unmap(s: Scene) -> object:
    with s.map() as mapping:
        pass
    return s.stage._abort(mapping.handle)


def foreign_group(s: Scene) -> ovstage.Operation:
    with s.lent() as (mapping, _), s.lent() as (_, group):
        return mapping.unmap_group(group)


# --- the rows ---

READS: list[Row] = [
    (
        "ValueError: attrs must not be empty: give the attributes to read, by name or token",
        lambda s: s.stage.read_attributes(s.query, [], OrdinalRange.latest(5)),
    ),
    (
        "TypeError: attrs must be ints (tokens) or strs (names), in a list or a 1-D array, got 5 (int)",
        lambda s: s.stage.read_attributes(s.query, 5, OrdinalRange.latest(5)),
    ),
    (
        "TypeError: attrs must be ints (tokens) or strs (names) (got 1.5 (float) at position 1)",
        lambda s: s.stage.read_attributes(s.query, ["mass", 1.5], OrdinalRange.latest(5)),
    ),
    (
        "TypeError: query must be a Query, got ['/A'] (list); make one with stage.query_from_path_list(...)",
        lambda s: s.stage.read_attributes(["/A"], ["mass"], OrdinalRange.latest(5)),
    ),
    (
        "TypeError: attrs must be a list of attributes, got the single string 'mass'; write ['mass']",
        lambda s: s.stage.read_attributes(s.query, "mass", OrdinalRange.latest(5)),
    ),
    (
        "OvstageError: INVALID_ARGUMENT: attrs[0]: 1152921504606846976 is not a token of this stage's "
        "dictionary; intern the attribute name first",
        lambda s: s.stage.read_attributes(s.query, [2**60], OrdinalRange.latest(5)),
    ),
    (
        'OvstageError: NOT_SUPPORTED: attribute "usd-active" can\'t be read; leave it out',
        lambda s: s.stage.read_attributes(s.query, [s.token("usd-active")], OrdinalRange.latest(5)),
    ),
    (
        "TypeError: ordinal_range must be an OrdinalRange, got 5; write OrdinalRange.latest(ordinal)",
        lambda s: s.stage.read_attributes(s.query, [s.token("mass")], 5),
    ),
    (
        "ValueError: start_ordinal 6 must not exceed end_ordinal 5",
        lambda s: s.stage.read_attributes(s.query, [s.token("mass")], OrdinalRange(5, 6)),
    ),
    ("ValueError: start_ordinal 6 must not exceed end_ordinal 5", lambda s: OrdinalRange.between(6, 5)),
    ("ValueError: end_ordinal must be non-negative, got -1", lambda s: OrdinalRange.latest(-1)),
    (
        'OvstageError: WRITE_FLOOR_VIOLATION: attribute "late" of prim /World/Prim0 was written at ordinal 6 '
        "but is not sealed, the write floor is 5; advance the floor first",
        lambda s: unsealed(s, OrdinalRange.latest(9)),
    ),
    (
        'OvstageError: WRITE_FLOOR_VIOLATION: attribute "late" changes at ordinal 6, which is not sealed, the'
        " write floor is 5; end the range at the floor, or advance the floor first",
        lambda s: unsealed(s, OrdinalRange.between(6, 9)),
    ),
    (
        "OvstageError: OUT_OF_RANGE: range [6, 6]: prim /World/Prim0 changed in it and again later, and its "
        "earlier value is no longer kept; end the range at the write floor",
        lambda s: changed_again(s),
    ),
    (
        "TypeError: attrs must be ints (tokens) or strs (names), in a list or a 1-D array, got 5 (int)",
        lambda s: s.stage.read_attributes(s.query, 5, OrdinalRange.latest(5)),
    ),
    (
        "TypeError: attrs must be ints (tokens) or strs (names) (got 1.5 (float) at position 1)",
        lambda s: s.stage.read_attributes(s.query, ["mass", 1.5], OrdinalRange.latest(5)),
    ),
    (
        "TypeError: query must be a Query, got ['/A'] (list); make one with stage.query_from_path_list(...)",
        lambda s: s.stage.read_attributes(["/A"], ["mass"], OrdinalRange.latest(5)),
    ),
    (
        "TypeError: attrs must be a list of attributes, got the single string 'mass'; write ['mass']",
        lambda s: s.stage.read(s.query, "mass"),
    ),
    (
        "TypeError: attrs[0] must be an int (a token) or a str (a name), got 2.5 (float)",
        lambda s: s.stage.read(s.query, [2.5]),
    ),
    (
        "ValueError: attribute 'mixed' is float32 on some prims and int32 on others, which makes no single "
        "array: query those prims apart, or take the groups one by one",
        lambda s: s.stage.read(two_types(s), ["mixed"]),
    ),
    (
        "IndexError: prim 2 is out of range: the query lists 2 prims",
        lambda s: s.stage.read(s.query, ["mass"])["mass"].row(2),
    ),
    (
        "OvstageError: INVALID_HANDLE: read handle 1152921504606846976 is unknown or was released",
        lambda s: s.stage.fetch_read_next(2**60),
    ),
    (
        "OvstageError: INVALID_HANDLE: read handle 1152921504606846976 is unknown or was released",
        lambda s: s.stage.release_read(2**60),
    ),
    (
        "OvstageError: INVALID_HANDLE: Read … has been released",
        lambda s: released(s.stage.read_attributes(s.query, [s.token("mass")], OrdinalRange.latest(5))).fetch_next(),
    ),
]

DELETES: list[Row] = [
    (
        "TypeError: attributes must be a list of attributes, got the single string 'mass'; write ['mass']",
        lambda s: s.stage.delete_attributes(s.query, "mass", 6),
    ),
    (
        'OvstageError: WRITE_FLOOR_VIOLATION: attribute "mass": ordinal 5 is sealed, the write floor is 5; '
        "use an ordinal above it",
        lambda s: s.stage.delete_attributes(s.query, ["mass"], 5),
    ),
    (
        'OvstageError: NOT_SUPPORTED: attribute "usd-path" is derived from the prims and can\'t be deleted',
        lambda s: s.stage.delete_attributes(s.query, ["usd-path"], 6),
    ),
    (
        "OvstageError: INVALID_ARGUMENT: attributes[0]: 1152921504606846976 is not a token of this stage's "
        "dictionary; intern the name first",
        lambda s: s.stage.delete_attributes(s.query, [2**60], 6),
    ),
    (
        "OvstageError: INVALID_ARGUMENT: attributes[0]: there is neither a token nor a name, expected one of them",
        lambda s: s.stage.delete_attributes(s.query, [""], 6),
    ),
    (
        "ValueError: scope must be a valid Scope (ALL=0, INCLUDE=1, EXCLUDE=2), got 3",
        lambda s: s.stage.advance_write_floor(6, 3),
    ),
    (
        "OvstageError: INVALID_ARGUMENT: desc.attributes[0]: 1152921504606846976 is not a token of this "
        "stage's dictionary; intern the attribute name first",
        lambda s: s.stage.advance_write_floor(6, Scope.INCLUDE, [2**60]),
    ),
    ("TypeError: ordinal must be an int, got '6' (str)", lambda s: s.stage.advance_write_floor("6")),
    (
        "OvstageError: INVALID_ARGUMENT: attribute: 1152921504606846976 is not a token of this stage's "
        "dictionary; intern the name first",
        lambda s: s.stage.get_attribute_write_floor(2**60),
    ),
    (
        "OvstageError: INVALID_HANDLE: ordinal query handle 1152921504606846976 is unknown or was released",
        lambda s: s.stage.fetch_ordinal(2**60),
    ),
    (
        "OvstageError: INVALID_HANDLE: ordinal query handle 1152921504606846976 is unknown or was released",
        lambda s: s.stage.release_ordinal_query(2**60),
    ),
]

MAPS: list[Row] = [
    (
        "ValueError: dtype must fit in (uint8, uint8, uint16), got (256, 32, 1)",
        lambda s: s.stage._map(s.query, "new", 6, 0, (256, 32, 1), 0, None, 0, 0),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "new" does not exist yet: pass the dtype of its values to create it',
        lambda s: s.map("new"),
    ),
    (
        'OvstageError: NOT_SUPPORTED: attribute "usd-path" is derived from the prims and can\'t be mapped',
        lambda s: s.map("usd-path"),
    ),
    (
        'OvstageError: WRITE_FLOOR_VIOLATION: attribute "mass": ordinal 5 is sealed, the write floor is 5; '
        "use an ordinal above it",
        lambda s: s.map(ordinal=5),
    ),
    (
        "ValueError: initial must be one of 'current', 'zero', 'discard', got 'none' (str)",
        lambda s: s.map(initial="none"),
    ),
    (
        "TypeError: dtype must be a DLDataType or None, got 'f4'; numpy_to_dldatatype(dtype, lanes) makes one",
        lambda s: s.map(dtype="f4"),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "mass": float64 does not match the existing float32; convert the '
        'values, in NumPy by array.astype("float32"), or delete the attribute first to change its schema',
        lambda s: s.map(dtype=DLDataType(2, 64, 1)),
    ),
    (
        'OvstageError: NOT_SUPPORTED: attribute "new": dtype uint4 has elements smaller than a byte, which '
        "columns do not store: convert it to a byte-sized type first",
        lambda s: s.map("new", dtype=DLDataType(1, 4, 1)),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "runs" is an array column: pass element_sizes, one number '
        "of elements per prim",
        lambda s: s.map("runs"),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "runs": element_sizes has 1 entries, but the query lists 2'
        " prims; pass one per prim",
        lambda s: s.map("runs", element_sizes=[1]),
    ),
    (
        'OvstageError: OUT_OF_MEMORY: attribute "runs": element_sizes[1] is 1152921504606846976, with which '
        "the map would exceed 70368744177664 bytes",
        lambda s: s.map("runs", element_sizes=[1, 2**60]),
    ),
    ("ValueError: element_sizes[1] must be non-negative, got -1", lambda s: s.map("runs", element_sizes=[1, -1])),
    (
        "ValueError: group_rows must be at least 1, got 0; leave it out for one group of all prims",
        lambda s: s.map(group_rows=0),
    ),
    (
        "OvstageError: PRIM_NOT_FOUND: prim_mode INSERT: prim /World/Prim0 already exists; nothing was written",
        lambda s: s.map(prim_mode=PrimMode.INSERT),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "mixed" is float32 on some of the prims and int32 on '
        "others: map them apart",
        lambda s: s.stage.map_attribute(two_types(s), "mixed", 7),
    ),
    (
        'OvstageError: INVALID_ARGUMENT: attribute "mixed" has 2 schemas and none of the prims carries it: '
        "pass the dtype",
        lambda s: s.stage.map_attribute(neither_type(s), "mixed", 7),
    ),
    (
        "OvstageError: INVALID_HANDLE: map handle 1152921504606846976 is unknown or has been unmapped",
        lambda s: s.stage.fetch_map_next(2**60),
    ),
    (
        "OvstageError: INVALID_HANDLE: map handle 1152921504606846976 is unknown or has been unmapped",
        lambda s: s.stage.unmap_attribute(2**60),
    ),
    ("ValueError: commit must be one of 'adopt', 'auto', got 'later' (str)", lambda s: unmap_with(s, commit="later")),
    (
        "OvstageError: NOT_SUPPORTED: write_done_sync.wait_event is 0x1, but CUDA is not loaded: pass 0 for host data",
        lambda s: unmap_with(s, cuda_event=1),
    ),
    (
        "TypeError: expected a map group or its C structure of 88 bytes, got 'mass' (str)",
        lambda s: unmap_group(s, "mass"),
    ),
    (
        "TypeError: group must be a MapGroup of this mapping, got a ReadGroup",
        lambda s: unmap_group(s, s.group("mass", 5)),
    ),
    ("OvstageError: INVALID_HANDLE: unmap_group: the map group has been unmapped", lambda s: unmap_twice(s)),
    (
        'OvstageError: WRITE_FLOOR_VIOLATION: map: attribute "mass": ordinal 6 is sealed, the write floor is '
        "6; use an ordinal above it; nothing was written",
        lambda s: late_unmap(s),
    ),
    ("OvstageError: INVALID_HANDLE: Map … has been unmapped", lambda s: fetch_after_unmap(s)),
    ("OvstageError: INVALID_HANDLE: map handle … is unknown or has been unmapped", lambda s: abort_after_unmap(s)),
    (
        "OvstageError: INVALID_HANDLE: group: data.tensors is …, which is no group of map … that waits to be committed",
        lambda s: foreign_group(s),
    ),
]

ROWS = [*READS, *DELETES, *MAPS]


@pytest.mark.parametrize(("text", "call"), ROWS, ids=names_of(ROWS))
def test_refusal(scene, text, call):
    check(text, call, scene)
