"""What is in a stage, for a person who looks: the tree, the table of attributes, and what two trees differ in."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from ovstage import AttributeSemantic, Stage
from ovstage.population.reading import UNTYPED
from ovstage.tree import UNTYPED as SHOWN_AS_NONE


@pytest.fixture
def stage():
    with Stage("shop") as made:
        made.write(["/W/A", "/W/B"], "mass", 1, np.float32([1.5, math.nan]))
        made.write(["/W/A"], "color", 1, np.float32([[0.5, 0.25, 1]]), type_name="color3f")
        made.write(["/W/B"], "color", 1, np.float64([[0, 0, 1]]))  # of another type
        made.write(["/W/B"], "label", 1, ["a door"], type_name="string")
        made.write(["/W/A", "/W/B"], "ids", 1, [np.arange(9, dtype="i4"), np.zeros(0, "i4")], is_array=True)
        made.write(["/W/A"], "usd-prim-type", 1, ["Cube"], type_name="token")
        made.write(["/W/B"], "omni:xform", 1, np.eye(4).reshape(1, 16), semantic=AttributeSemantic.MATRIX).wait()
        made.advance_write_floor(1).wait()
        yield made


def test_a_stage_is_shown_as_a_tree(stage: Stage) -> None:
    assert stage.tree().text() == (
        "/W\n"
        "  A  Cube\n"
        "    .color  color3f  [0.5, 0.25, 1]\n"
        "    .ids  int32[]  [0, 1, 2, 3, ... 9]\n"
        "    .mass  float32  1.5\n"
        "  B\n"
        "    .color  float64x3  [0, 0, 1]\n"
        "    .ids  int32[]  []\n"
        "    .label  string  'a door'\n"
        "    .mass  float32  nan\n"
        "    .omni:xform  float64x16 (matrix)  [1, 0, 0, 0, ... 16]\n"
        "2 prims, 8 values, as of ordinal 1"
    )


def test_its_prims_are_objects(stage: Stage) -> None:
    tree = stage.tree()
    assert list(tree) == ["/W/A", "/W/B"] and len(tree) == 2
    above = tree["/W"]  # which carries nothing, and is there because of those below it
    assert (above.name, above.type, above.properties, [prim.path for prim in above.children]) == (
        "W", "", {}, ["/W/A", "/W/B"],
    )  # fmt: skip
    prim = tree["/W/A"]
    assert (prim.type, list(prim.properties)) == ("Cube", ["color", "ids", "mass"])
    mass = prim.properties["mass"]
    assert (mass.value, mass.schema, mass.attribute.dtype, mass.prim) == (1.5, "float32", "float32", "/W/A")
    assert prim.properties["ids"].value == list(range(9))
    with pytest.raises(KeyError, match="no prim '/W/C' in the tree"):
        tree["/W/C"]


def test_it_stays_as_it_is(stage: Stage) -> None:
    tree = stage.tree()
    shown = tree.text()
    stage.write(["/W/A"], "mass", 2, np.float32([7])).wait()
    stage.delete(["/W/B"], [], 2).wait()
    stage.advance_write_floor(2).wait()
    assert stage.tree().text() != shown
    stage.destroy()
    assert tree.text() == shown


def test_globs_choose_prims_and_attributes(stage: Stage) -> None:
    tree = stage.tree("*/B", "m*")
    assert tree.text() == "/W\n  B\n    .mass  float32  nan\n1 prim, 1 value, as of ordinal 1"
    assert stage.tree("/none*").text() == "0 prims, 0 values, as of ordinal 1"
    assert [one.value for one in stage.tree("*/A", "ids")["/W/A"].properties.values()] == [list(range(9))]
    for wrong in ({"prims": 3}, {"attributes": None}):
        with pytest.raises(TypeError, match=f"^expected str for {next(iter(wrong))}, got"):
            stage.tree(**wrong)  # type: ignore[arg-type]


def test_attributes_are_shown_as_far_as_each_is_sealed(stage: Stage) -> None:
    stage.write(["/W/A"], "mass", 5, np.float32([2])).wait()
    stage.write(["/W/A"], "late", 9, np.float32([3])).wait()
    stage.advance_write_floor(5, attributes=["mass"]).wait()
    properties = stage.tree()["/W/A"].properties
    assert properties["mass"].value == 2 and "late" not in properties


def test_an_empty_stage() -> None:
    with Stage() as stage:
        assert stage.tree().text() == repr(stage.tree()) == "0 prims, 0 values, as of ordinal 0"
        assert repr(stage.describe()) == (
            "stage: 0 prims, sealed up to 0\nattribute  type  elements  role  prims  bytes  newest  sealed up to"
        )


def test_repr_is_short_and_text_is_whole() -> None:
    with Stage() as stage:
        stage.write([f"/P{i}" for i in range(100)], "v", 1, np.zeros(100)).wait()
        stage.advance_write_floor(1).wait()
        tree = stage.tree()
    assert len(repr(tree).splitlines()) == 42 and "..." in repr(tree).splitlines()
    assert len(tree.text().splitlines()) == 201
    assert repr(tree["/P7"]) == "/P7\n  .v  float64  0"


def test_deep_trees_need_no_recursion() -> None:
    path = "/n" * 3000
    with Stage() as stage:
        stage.write([path], "v", 1, np.zeros(1)).wait()
        stage.advance_write_floor(1).wait()
        assert len(stage.tree().text().splitlines()) == 3002


def test_json_is_for_programs(stage: Stage) -> None:
    shown = json.loads(json.dumps(stage.tree().json(), allow_nan=False))
    a, b = shown["prims"]
    assert (a["path"], a["type"], b["type"], shown["ordinal"]) == ("/W/A", "Cube", "", 1)
    assert a["properties"][0] == {
        "name": "color", "type": "color3f", "dtype": "float32", "lanes": 3, "array": False, "role": "NONE",
        "value": [0.5, 0.25, 1],
    }  # fmt: skip
    assert [one["value"] for one in b["properties"]][2:4] == ["a door", "nan"]


def test_ids_that_name_nothing_are_shown_as_numbers() -> None:
    with Stage() as stage:
        stage.write(["/A"], "v", 1, np.uint64([2**63]), semantic=AttributeSemantic.TOKEN_ID).wait()
        stage.advance_write_floor(1).wait()
        assert f".v  uint64 (token_id)  {2**63}" in stage.tree().text()


def test_prims_without_a_type_are_shown_without_one() -> None:
    assert SHOWN_AS_NONE == UNTYPED


def test_describe_is_a_table(stage: Stage) -> None:
    described = stage.describe()
    assert (described.name, described.floor, described.prims) == ("shop", 1, 2)
    assert [attribute.name for attribute in described.attributes] == [
        "color", "color", "ids", "label", "mass", "omni:xform", "usd-prim-type",
    ]  # fmt: skip
    lines = repr(described).splitlines()
    assert lines[0] == "shop: 2 prims, sealed up to 1"
    assert lines[1].split() == [
        "attribute",
        "type",
        "elements",
        "role",
        "prims",
        "bytes",
        "newest",
        "sealed",
        "up",
        "to",
    ]
    name, *kind, prims, size, newest, floor = lines[7].split()
    assert (name, kind) == ("omni:xform", ["float64", "x", "16", "matrix"])
    assert (prims, newest, floor) == ("1", "1", "1") and int(size.replace(",", "")) >= 128


def test_what_is_not_sealed_is_counted(stage: Stage) -> None:
    stage.write(["/W/A"], "mass", 7, np.float32([1])).wait()
    (mass,) = (attribute for attribute in stage.attributes() if attribute.name == "mass")
    assert (mass.last_ordinal, mass.write_floor, mass.prim_count) == (7, 1, 2) and mass.bytes >= 8


# --- differences ----------------------------------------------------------------------------------------------------


def test_trees_that_are_the_same(stage: Stage) -> None:
    found = stage.tree().difference(stage.tree())
    assert not found and repr(found) == "no difference"  # NaN is the same as NaN


def test_what_was_added_removed_and_changed_and_by_how_much(stage: Stage) -> None:
    before = stage.tree()
    stage.write(["/W/A"], "mass", 2, np.float32([3]))
    stage.write(["/W/A"], "ids", 2, [np.int32([1])], is_array=True)
    stage.write(["/W/C"], "mass", 2, np.float32([1]))
    stage.write(["/W/B"], "label", 2, ["a gate"], type_name="string")
    stage.delete(["/W/A"], ["color"], 2).wait()
    stage.advance_write_floor(2).wait()
    found = before.difference(stage.tree())
    assert (found.added, found.removed) == (["/W/C"], [])
    assert list(found.lines()) == [
        "+ /W/C",
        "- /W/A .color  color3f  [0.5, 0.25, 1]",
        "~ /W/A .ids  int32[]  [0, 1, 2, 3, ... 9] -> [1]",
        "~ /W/A .mass  float32  1.5 -> 3  (by 1.5)",
        "~ /W/B .label  string  'a door' -> 'a gate'",
        "1 prim added, 0 removed, 4 values changed, by at most 1.5",
    ]
    back = stage.tree().difference(before)
    assert (back.removed, len(back.changed)) == (["/W/C"], 4)
    assert json.loads(json.dumps(found.json()))["changed"][2]["size"] == 1.5


def test_an_attribute_of_another_type_is_one_change(stage: Stage) -> None:
    before = stage.tree()
    stage.delete(["/W/B"], ["color"], 2)
    stage.write(["/W/B"], "color", 3, np.float32([[0, 0, 2]])).wait()
    stage.advance_write_floor(3).wait()
    (change,) = before.difference(stage.tree()).changed
    assert (change.prim, change.name, change.size) == ("/W/B", "color", 1.0)
    assert change.before is not None and change.before.schema == "float64x3"
    assert change.after is not None and change.after.schema == "color3f"


def test_types_of_prims_are_compared(stage: Stage) -> None:
    before = stage.tree()
    stage.write(["/W/A"], "usd-prim-type", 2, ["Sphere"], type_name="token").wait()
    stage.advance_write_floor(2).wait()
    assert list(before.difference(stage.tree()).lines()) == [
        "~ /W/A .usd-prim-type  token (token_id)  'Cube' -> 'Sphere'",
        "0 prims added, 0 removed, 1 value changed",
    ]


def test_what_is_no_tree_and_no_ordinal(stage):
    with pytest.raises(TypeError, match=r"after must be a Tree, such as stage.tree\(\) gives, got 3"):
        stage.tree().difference(3)
    with pytest.raises(ValueError, match="ordinal must fit in uint64, got 1000"):
        stage.tree(ordinal=10**30)
    with pytest.raises(TypeError, match="ordinal must be an int, got 'x'"):
        stage.read(["/A"], ["mass"], "x")
