"""A read that finds nothing says why: the missing key's KeyError has the reason, as it was when the read was made."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import ovstage
from ovstage import Column, OrdinalRange, Stage, StageConfig

PRIMS = ["/A", "/B"]


def values(n: int = 2) -> np.ndarray:
    return np.zeros(n, np.float32)


@pytest.fixture
def stage() -> Any:
    with Stage() as stage:
        stage.write(PRIMS, "mass", 1, values()).wait()
        stage.write(PRIMS, "velocity", 1, np.zeros((2, 3), np.float32)).wait()
        stage.advance_write_floor(1).wait()
        yield stage


def why(read: Any, key: Any) -> str:
    with pytest.raises(KeyError) as caught:
        read[key]
    return str(caught.value)


def test_nothing_of_this_name(stage: Stage) -> None:
    read = stage.read(PRIMS, ["velo"])
    assert why(read, "velo") == (
        '"velo": no prim has it; there are mass, velocity (unknown attribute; did you mean velocity?)'
    )


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("Mass", "mass"), ("masss", "mass"), ("velocty", "velocity"), ("velo", "velocity"), ("colour", None), ("x", None)],
)
def test_what_was_meant(stage: Stage, wrong: str, meant: str | None) -> None:
    text = why(stage.read(PRIMS, [wrong]), wrong)
    assert text.endswith(f"did you mean {meant}?)" if meant else "(unknown attribute)")


def test_not_sealed(stage: Stage) -> None:
    stage.write(PRIMS, "charge", 3, values()).wait()
    stage.write(PRIMS, "charge", 5, values()).wait()
    assert why(stage.read(PRIMS, ["charge"]), "charge") == (
        '"charge": not sealed: newest write 5, floor 1; advance the floor first'
    )


def test_the_first_thing_that_everybody_forgets() -> None:
    with Stage() as stage:
        stage.write(PRIMS, "velocity", 1, values()).wait()
        assert why(stage.read(PRIMS, ["velocity"]), "velocity") == (
            '"velocity": not sealed: newest write 1, floor 0; advance the floor first'
        )


def test_deleted(stage: Stage) -> None:
    stage.delete(PRIMS, ["mass"], 3).wait()
    stage.advance_write_floor(4).wait()
    assert why(stage.read(PRIMS, ["mass"]), "mass") == '"mass": deleted at 3'
    stage.write(["/A"], "mass", 6, values(1)).wait()
    assert why(stage.read(PRIMS, ["mass"]), "mass") == (
        '"mass": deleted at 3, and written again but not sealed: newest write 6, floor 4; advance the floor first'
    )


def test_on_other_prims(stage: Stage) -> None:
    stage.write(["/C"], "charge", 2, values(1)).wait()
    stage.advance_write_floor(2).wait()
    assert why(stage.read(PRIMS, ["charge"]), "charge") == '"charge": no prim has it; there are mass, velocity'
    assert why(stage.read(["/C"], ["mass"]), "mass") == '"mass": no prim has it; there are charge'


def test_prims_that_are_none(stage: Stage) -> None:
    read = stage.read(["/World/A"], ["mass"])
    assert why(read, "mass") == '"mass": no prim has it; none of the prims of the query exists'
    assert why(stage.read(["/World/A"], ["usd-path"]), "usd-path") == (
        '"usd-path": no prim has it; none of the prims of the query exists'
    )
    assert why(stage.read([], ["mass"]), "mass") == '"mass": the query lists no prims'


def test_many_attributes_are_not_all_named(stage: Stage) -> None:
    for i in range(10):
        stage.write(PRIMS, f"a{i}", 2, values()).wait()
    stage.advance_write_floor(2).wait()
    assert "there are a0, a1, a2, a3, a4, a5 and 6 more (" in why(stage.read(PRIMS, ["nothing"]), "nothing")


def test_ranges(stage: Stage) -> None:
    stage.delete(["/A"], ["mass"], 3).wait()
    stage.advance_write_floor(5).wait()
    read = stage.read(["/B"], ["mass"], OrdinalRange.between(4, 5))
    assert why(read, "mass") == '"mass": no prim of the query changed it in [4, 5]; the floor is 5'
    read = stage.read(["/A"], ["mass"], OrdinalRange.between(4, 5))
    assert why(read, "mass") == '"mass": deleted at 3, which is not in the range [4, 5]'


def test_values_that_came_later() -> None:
    with Stage(config=StageConfig(history_ordinals=10)) as stage:
        stage.write(PRIMS, "mass", 2, values()).wait()
        stage.write(PRIMS, "charge", 5, values()).wait()
        stage.advance_write_floor(5).wait()
        assert why(stage.read(PRIMS, ["charge"], 3), "charge") == (
            '"charge": no value as of ordinal 3: the prims got it later, the floor is 5'
        )


def test_the_reason_is_that_of_the_read(stage: Stage) -> None:
    stage.write(PRIMS, "charge", 3, values()).wait()
    read = stage.read(PRIMS, ["charge"])
    stage.advance_write_floor(3).wait()
    stage.destroy()
    assert why(read, "charge") == '"charge": not sealed: newest write 3, floor 1; advance the floor first'


def test_keys_that_were_not_asked_for(stage: Stage) -> None:
    read = stage.read(PRIMS, ["mass", "velo"])
    assert why(read, "velocity") == '"velocity" was not asked for: the read was of mass, velo'


def test_tokens(stage: Stage) -> None:
    with ovstage.PathDictionary(stage) as names:
        token = names.intern_token("charge")
        assert why(stage.read(PRIMS, [token]), token).startswith(f"{token}: no prim has it; there are")


def test_it_is_a_dict(stage: Stage) -> None:
    read = stage.read(PRIMS, ["mass", "velo"])
    assert isinstance(read, dict) and list(read) == ["mass"] and len(read) == 1
    assert "mass" in read and "velo" not in read
    assert isinstance(read["mass"], Column) and read.get("velo") is None and read.get("velo", 3) == 3
    assert [name for name, _ in read.items()] == ["mass"]
    assert read.pop("velo", None) is None
    empty = stage.read(PRIMS, ["velo"])
    assert not empty and empty == {} and repr(empty) == "{}"
    for twin in (copy.deepcopy(empty), pickle.loads(pickle.dumps(empty))):
        assert why(twin, "velo") == why(empty, "velo")


def test_one_prim(stage: Stage) -> None:
    with pytest.raises(KeyError, match="no prim has it; there are mass, velocity"):
        stage.get("/A", "charge")
    stage.delete(["/A"], ["mass"], 2).wait()
    stage.advance_write_floor(2).wait()
    with pytest.raises(KeyError, match='"mass": deleted within the range'):
        stage.get("/A", "mass", OrdinalRange.between(2, 2))


def test_a_copy_says_the_same(stage: Stage) -> None:
    copied = stage.read(["/A"], ["mass", "charge"]).copy()
    assert list(copied) == ["mass"]
    with pytest.raises(KeyError, match="no prim has it"):
        copied["charge"]


def test_the_long_form(stage: Stage) -> None:
    with ovstage.PathDictionary(stage) as names, names.create_path_list_from_strings(PRIMS) as prims:
        token = names.intern_token("charge")
        with stage.query_from_path_list(prims) as query:
            with stage.read_attributes(query, [token], OrdinalRange.latest(1)) as read:
                assert "there are mass, velocity" in why(read.to_numpy(), token)
                assert read.fetch_next() is None
