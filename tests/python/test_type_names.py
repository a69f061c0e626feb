"""Names of types beside columns: what element type and role do not say, above all which numbers are texts."""

from __future__ import annotations

import numpy as np
import pytest

import ovstage
from ovstage import AttributeSemantic, OvstageError, Stage, WriteDesc

A, B = ["/World/A"], ["/World/B"]
BOTH = A + B

BOTH_LEVELS = True


def ids(stage: Stage, *texts: str) -> np.ndarray:
    return np.array(stage._intern_tokens(texts), np.uint64)


def types(stage: Stage, name: str) -> list[str]:
    return [attribute.type_name for attribute in stage.attributes() if attribute.name == name]


def test_texts_are_written_as_texts(stage):
    stage.write(BOTH, "note", 1, ["x", ""], type_name="string").wait()
    stage.write(BOTH, "mark", 1, ["m", "n"], type_name="token").wait()
    stage.write(BOTH, "words", 1, [["a", "größe"], []], type_name="string[]").wait()
    stage.advance_write_floor(1).wait()
    assert [stage.get(prim, "note") for prim in BOTH] == ["x", ""]
    assert [stage.get(prim, "words") for prim in BOTH] == [["a", "größe"], []]
    assert stage.read(BOTH, ["mark"])["mark"].values.tolist() == ids(stage, "m", "n").tolist()
    roles = {attribute.name: attribute.semantic for attribute in stage.attributes()}
    assert roles == {
        "note": AttributeSemantic.NONE,
        "mark": AttributeSemantic.TOKEN_ID,
        "words": AttributeSemantic.NONE,
    }
    with pytest.raises(TypeError, match=r"expected str for values\[1\], got 5 \(int\)"):
        stage.write(BOTH, "note", 2, [["x"], [5]], type_name="string[]")
    stage.write(BOTH, "words", 2, [[], []], type_name="string[]").wait()
    stage.write(BOTH, "words", 3, [ids(stage, "b"), ids(stage)], type_name="string[]").wait()
    assert not stage.write(BOTH, "note", 2, ["only one"], type_name="string").ok


@pytest.mark.parametrize("kind", ["U2", object])
def test_arrays_of_texts_are_texts(stage, kind):
    stage.write(BOTH, "note", 1, np.array(["x", "yz"], kind), type_name="string").wait()
    stage.advance_write_floor(1).wait()
    assert [stage.get(prim, "note") for prim in BOTH] == ["x", "yz"]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (["x", 1], r"expected str for values\[1\], got 1 \(int\)"),
        (["x", None], r"expected str for values\[1\], got None"),
        ([["x"], {"y", "z"}], r"values\[1\] must be a list of texts, got .*, which has no order"),
        (["x", b"y"], r"values\[1\] must be a list of texts, got the single string b'y'"),
    ],
)
def test_what_is_no_text_beside_texts(stage, values, text):
    with pytest.raises(TypeError, match=text):
        stage.write(BOTH, "note", 1, values, type_name="string[]")
    assert stage.attributes() == []


def test_a_name_makes_no_texts_of_other_numbers(stage):
    stage.write(BOTH, "weight", 1, np.float32([1, 2]), type_name="string").wait()
    stage.advance_write_floor(1).wait()
    assert stage.get(BOTH[1], "weight") == 2


def test_attributes_say_what_there_is(stage):
    stage.write(BOTH, "color", 1, np.zeros((2, 3), np.float32), type_name="color3f", semantic=AttributeSemantic.COLOR)
    stage.write(A, "runs", 2, [np.int64([1, 2])], is_array=True).wait()
    stage.advance_write_floor(1).wait()
    color, runs = stage.attributes()
    assert (color.name, color.type_name, color.semantic) == ("color", "color3f", AttributeSemantic.COLOR)
    assert (color.dtype, color.lanes, color.is_array, color.prim_count, color.write_floor) == (
        "float32",
        3,
        False,
        2,
        1,
    )
    assert (runs.name, runs.type_name, runs.dtype, runs.is_array, runs.prim_count) == ("runs", "", "int64", True, 1)
    stage.delete(A, ["runs"], 3).wait()
    assert [attribute.name for attribute in stage.attributes()] == ["color"]


def test_many_attributes_are_all_listed(stage):
    stage.write_attributes(
        _query(stage), [WriteDesc(f"a{at:03}", np.float32([1]), False) for at in range(200)], 1
    ).wait()
    assert [attribute.name for attribute in stage.attributes()] == [f"a{at:03}" for at in range(200)]


def _query(stage: Stage, prims: list[str] = A) -> ovstage.Query:
    with ovstage.PathDictionary(stage) as names, names.create_path_list_from_strings(prims) as paths:
        return stage.query_from_path_list(paths)


def test_groups_and_columns_have_the_name(stage):
    stage.write(BOTH, "note", 1, ids(stage, "x", "y"), type_name="string").wait()
    stage.advance_write_floor(1).wait()
    assert stage.read(BOTH, ["note"])["note"].type_name == "string"
    with (
        stage.query() as every,
        stage.read_attributes(every, stage._intern_tokens(["note"]), ovstage.OrdinalRange.latest(1)) as read,
    ):
        with read.fetch_next() as group:
            assert group.type_name == "string"
        assert group.type_name == "string"  # like other scalars, beyond the release
    stage.destroy()
    assert group.type_name == ""


def test_map_groups_have_the_name_of_their_column(stage):
    stage.write(BOTH, "size", 1, np.float32([1, 2]), type_name="float").wait()
    with stage.map(BOTH, "size", 2) as mapping:
        assert next(mapping.groups()).type_name == "float"
    with stage.map(BOTH, "other", 2, dtype=ovstage.DLDataType(2, 32, 1)) as mapping:
        assert next(mapping.groups()).type_name == ""


def test_batches_have_a_name_for_each_write(stage):
    with _query(stage) as query:
        writes = [WriteDesc("a", np.float32([1]), False, type_name="float"), WriteDesc("b", np.float32([1]), False)]
        stage.write_attributes(query, writes, 1).wait()
    assert (types(stage, "a"), types(stage, "b")) == (["float"], [""])


def test_values_without_a_name_go_where_the_others_are(stage):
    stage.write(BOTH, "speed", 1, np.float32([1, 2]), type_name="float").wait()
    stage.write(A, "speed", 2, np.float32([3])).wait()
    stage.write(["/World/C"], "speed", 2, np.float32([4])).wait()
    assert types(stage, "speed") == ["float"]


def test_a_column_without_a_name_takes_the_first_that_it_gets(stage):
    stage.write(BOTH, "speed", 1, np.float32([1, 2])).wait()
    stage.write(A, "speed", 2, np.float32([3]), type_name="float").wait()
    assert types(stage, "speed") == ["float"]


def test_another_type_is_deleted_first(stage):
    stage.write(A, "c", 1, np.zeros((1, 3), np.float32), type_name="color3f").wait()
    with pytest.raises(OvstageError, match=r"float32x3 \(float3\) does not match the existing float32x3 \(color3f\)"):
        stage.write(A, "c", 1, np.zeros((1, 3), np.float32), type_name="float3").wait()
    stage.write(B, "c", 1, np.zeros((1, 3), np.float32), type_name="float3").wait()  # another prim
    assert types(stage, "c") == ["color3f", "float3"]
    stage.delete(A, ["c"], 2).wait()
    stage.write(A, "c", 3, np.zeros((1, 3), np.float32), type_name="float3").wait()
    assert types(stage, "c") == ["float3"]


def test_numbers_of_other_prims_do_not_become_texts(stage):
    stage.write(A, "n", 1, np.uint64([7])).wait()
    stage.write(B, "n", 1, ids(stage, "seven"), type_name="string").wait()
    stage.advance_write_floor(1).wait()
    assert stage.read(A, ["n"])["n"].type_name == ""
    assert stage.read(B, ["n"])["n"].type_name == "string"
    with pytest.raises(OvstageError, match="without a type name; delete the attribute first"):
        stage.write(A, "n", 2, ids(stage, "eight"), type_name="string").wait()


def test_texts_of_other_prims_do_not_become_numbers(stage):
    stage.write(B, "n", 1, ids(stage, "seven"), type_name="string").wait()
    stage.write(A, "n", 1, np.uint64([7])).wait()
    stage.write(B, "n", 2, ids(stage, "eight")).wait()  # the same prim's text
    stage.advance_write_floor(2).wait()
    assert stage.read(A, ["n"])["n"].type_name == ""
    assert stage.read(B, ["n"])["n"].type_name == "string"
    assert sorted(types(stage, "n")) == ["", "string"]


def test_a_whole_column_may_turn_out_to_be_texts(stage):
    stage.write(BOTH, "n", 1, ids(stage, "x", "y")).wait()
    stage.write(BOTH, "n", 2, ids(stage, "x", "y"), type_name="string").wait()
    assert types(stage, "n") == ["string"]


def test_a_token_role_does_not_make_tokens_of_texts(stage):
    stage.write(A, "n", 1, ids(stage, "x"), type_name="string").wait()
    stage.write(A, "n", 2, ids(stage, "y"), semantic=AttributeSemantic.TOKEN_ID).wait()
    (found,) = stage.attributes()
    assert (found.type_name, found.semantic) == ("string", AttributeSemantic.NONE)


def test_a_refused_write_names_nothing(stage):
    stage.write(A, "n", 1, np.float32([1])).wait()
    stage.advance_write_floor(1).wait()
    assert not stage.write(A, "n", 1, np.float32([1]), type_name="float").ok
    assert types(stage, "n") == [""]
    with pytest.raises(TypeError, match="type_name"):
        stage.write(A, "n", 2, np.float32([1]), type_name=5)


def test_clones_keep_the_name(stage):
    stage.write(A, "n", 1, ids(stage, "x"), type_name="string").wait()
    stage.clone("/World/A", ["/World/Z"], 2)
    stage.advance_write_floor(2).wait()
    assert stage.read(["/World/Z"], ["n"])["n"].type_name == "string"


SCENE = """#usda 1.0
def "A" {
    custom string note = "x"
    custom string[] words = ["a", "b"]
    custom token mark = "y"
    custom uint64 number = 3
    custom float3 tint = (1, 2, 3)
}
def "B" {
    custom token note = "z"
    custom token[] words = ["c"]
    custom color3f tint = (1, 0, 0)
}
"""


def test_a_scene_brings_its_types(stage):
    pytest.importorskip("pxr")
    from ovstage import population

    population.open_usd_from_string(stage, SCENE, ordinal=1)
    stage.advance_write_floor(1).wait()
    names = ["note", "words", "mark", "number", "tint"]
    on_a, on_b = stage.read(["/A"], names), stage.read(["/B"], names)
    assert [on_a[name].type_name for name in names] == ["string", "string[]", "token", "uint64", "float3"]
    assert [on_b[name].type_name for name in ("note", "words", "tint")] == ["token", "token[]", "color3f"]


BODIES = """#usda 1.0
def "A" {
    custom float3 v = (1, 2, 3)
}
def "B" {
    custom color3f v = (1, 0, 0)
}
"""


def test_values_without_a_name_go_where_each_prim_has_its_own(stage):
    pytest.importorskip("pxr")
    from ovstage import population

    population.open_usd_from_string(stage, BODIES, ordinal=1)
    bodies = ["/B", "/C", "/A"]
    stage.write(bodies, "v", 2, np.float32([[4, 4, 4], [5, 5, 5], [6, 6, 6]])).wait()
    with _query(stage, bodies) as query:
        sevens = np.full((3, 3), 7, np.float32)
        stage.write_attribute(query, "v", 3, sevens, is_array=False, mask=np.uint64([0b101]), count=3).wait()
    stage.advance_write_floor(3).wait()
    assert [stage.get(prim, "v").tolist() for prim in bodies] == [[7] * 3, [5] * 3, [7] * 3]
    columns = [stage.read([prim], ["v"])["v"].type_name for prim in bodies]
    assert columns == ["color3f", "float3", "float3"]  # one without a value goes where most of the others are
    with pytest.raises(OvstageError, match="float32x3 does not match the existing float32x3 COLOR"):
        stage.write(bodies, "v", 4, np.zeros((3, 3), np.float32), type_name="float3").wait()


def test_a_map_has_a_group_for_each_column(stage):
    stage.write(A, "v", 1, np.float32([1]), type_name="float").wait()
    stage.write(B, "v", 1, np.float32([2]), type_name="other").wait()
    with stage.map(BOTH, "v", 2) as mapping:
        for group in mapping.groups():
            np.from_dlpack(group.dlpack(0))[:] += 10
    stage.advance_write_floor(2).wait()
    assert [stage.get(prim, "v") for prim in BOTH] == [11, 12]
    assert types(stage, "v") == ["float", "other"]


def test_texts_and_tokens_go_back_to_usd_as_what_they_were(stage, tmp_path):
    pytest.importorskip("pxr")
    from pxr import Sdf

    from ovstage import population

    population.open_usd_from_string(stage, SCENE, ordinal=1)
    stage.write(["/A"], "later", 1, ids(stage, "by hand"), type_name="string").wait()
    stage.advance_write_floor(1).wait()
    target = tmp_path / "out.usda"
    rule = {
        "source_attribute_name": "*",
        "source_attribute_name_match": population.OVSTAGE_POPULATION_EXPORT_NAME_MATCH_GLOB,
        "flags": population.OVSTAGE_POPULATION_EXPORT_RULE_INFER_CUSTOM_TYPE,
    }
    population.export_to_usd_file(stage, str(target), ordinal=1, attribute_rules=[rule])
    layer = Sdf.Layer.FindOrOpen(str(target))
    written = {
        "/A": {"note": "string", "words": "string[]", "mark": "token", "number": "uint64", "tint": "float3"},
        "/B": {"note": "token", "words": "token[]", "tint": "color3f"},
    }
    for path, names in written.items():
        for name, kind in names.items():
            assert str(layer.GetAttributeAtPath(f"{path}.{name}").typeName) == kind, (path, name)
    assert str(layer.GetAttributeAtPath("/A.later").typeName) == "string"
    assert layer.GetAttributeAtPath("/A.later").default == "by hand"
