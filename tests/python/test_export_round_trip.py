"""USD to a stage, to USD, to a stage: nothing is lost on the way, whatever the type of the value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ovstage
from ovstage import OrdinalRange, population

pytest.importorskip("pxr")
from pxr import Sdf, Usd

GLOB = population.OVSTAGE_POPULATION_EXPORT_NAME_MATCH_GLOB
INFER = population.OVSTAGE_POPULATION_EXPORT_RULE_INFER_CUSTOM_TYPE

NUMBERS = {
    "bool": (np.bool_, 1),
    "uchar": (np.uint8, 1),
    "int": (np.int32, 1),
    "uint": (np.uint32, 1),
    "int64": (np.int64, 1),
    "uint64": (np.uint64, 1),
    "int2": (np.int32, 2),
    "int3": (np.int32, 3),
    "int4": (np.int32, 4),
    "timecode": (np.float64, 1),
    "matrix2d": (np.float64, 4),
    "matrix3d": (np.float64, 9),
    "matrix4d": (np.float64, 16),
    "frame4d": (np.float64, 16),
    **{
        f"{name}{suffix}": (dtype, lanes)
        for name, lanes in (("quat", 4), ("point3", 3), ("vector3", 3), ("normal3", 3), ("color3", 3), ("color4", 4))
        for suffix, dtype in (("h", np.float16), ("f", np.float32), ("d", np.float64))
    },
    **{
        f"texCoord{lanes}{suffix}": (dtype, lanes)
        for lanes in (2, 3)
        for suffix, dtype in (("h", np.float16), ("f", np.float32), ("d", np.float64))
    },
    **{
        f"{name}{lanes if lanes > 1 else ''}": (dtype, lanes)
        for lanes in (1, 2, 3, 4)
        for name, dtype in (("half", np.float16), ("float", np.float32), ("double", np.float64))
    },
}
TEXTS = ("token", "string", "asset", "pathExpression")
WORDS = ["", "red", "a b", "größe", "textures/wood.png"]
EXPRESSIONS = ["", "//", "/World//", "/World/{isa:Mesh}"]


@st.composite
def values(draw: st.DrawFn, kind: str, array: bool) -> Any:
    """A USD value of that type."""
    many = draw(st.integers(0, 3)) if array else 1
    if kind in NUMBERS:
        dtype, lanes = NUMBERS[kind]
        raw = draw(
            st.binary(
                min_size=many * lanes * np.dtype(dtype).itemsize, max_size=many * lanes * np.dtype(dtype).itemsize
            )
        )
        numbers = np.frombuffer(raw, np.uint8 if dtype is np.bool_ else dtype).reshape(many, lanes)
        numbers = numbers % 2 == 1 if dtype is np.bool_ else np.nan_to_num(numbers)
        side = int(lanes**0.5)
        shape = (many, side, side) if kind.startswith(("matrix", "frame")) else (many, lanes) if lanes > 1 else (many,)
        packed = Sdf.ValueTypeNames.Find(f"{kind}[]").type.pythonClass.FromBuffer(
            np.ascontiguousarray(numbers.reshape(shape))
        )
    else:
        words = draw(
            st.lists(st.sampled_from(EXPRESSIONS if kind == "pathExpression" else WORDS), min_size=many, max_size=many)
        )
        make = {"asset": Sdf.AssetPath, "pathExpression": Sdf.PathExpression}.get(kind, str)
        packed = Sdf.ValueTypeNames.Find(f"{kind}[]").type.pythonClass([make(word) for word in words])
    return packed if array else packed[0]


@st.composite
def scenes(draw: st.DrawFn) -> dict[str, dict[str, Any]]:
    """For some prims, custom attributes of some types with values; the name of an attribute tells its type."""
    kinds = draw(
        st.lists(st.tuples(st.sampled_from([*NUMBERS, *TEXTS]), st.booleans()), min_size=1, max_size=6, unique=True)
    )
    scene: dict[str, dict[str, Any]] = {}
    for path in ("/A", "/A/B", "/C"):
        chosen = draw(st.lists(st.sampled_from(kinds), unique=True))
        scene[path] = {f"{kind}{'[]' if array else ''}": draw(values(kind, array)) for kind, array in chosen}
    return scene


def author(scene: dict[str, dict[str, Any]], file: Path) -> None:
    """A USD file with these attributes, and a relationship between the prims."""
    made = Usd.Stage.CreateInMemory()
    for path, attributes in scene.items():
        prim = made.DefinePrim(path)
        for kind, value in attributes.items():
            prim.CreateAttribute(f"x:{kind.replace('[]', 'Array')}", Sdf.ValueTypeNames.Find(kind)).Set(value)
        prim.CreateRelationship("x:near").SetTargets(["/C", "/A"][: len(attributes)])
    made.GetRootLayer().Export(str(file))


def columns(stage: ovstage.Stage) -> dict[str, dict[str, Any]]:
    """Everything in a stage by attribute and prim, with ids as texts."""
    found: dict[str, dict[str, Any]] = {}
    with stage.query() as query, ovstage.PathDictionary(stage) as names:
        query.wait()
        attributes = stage.fetch_query_result(query).attributes
        with stage.read_attributes(query, attributes, OrdinalRange.latest(1)) as read:
            read.wait()
            for group in read.groups():
                with group:
                    name = names.token_to_string(group.attribute)
                    paths = names.get_path_strings(group.prim_list)
                    for at in range(group.prim_count):
                        row = group.data_row_index(at)
                        tensor = group.array(row, True) if group.is_array else group.array(0, True)[row]
                        said = readable(names, group.semantic, name, tensor)
                        found.setdefault(name, {})[paths[group.prim_index(at)]] = (group.semantic.name, said)
    return found


def readable(names: ovstage.PathDictionary, role: Any, name: str, values: np.ndarray) -> Any:
    if role.name == "RELATIONSHIP_PATH_ID":
        return [names.path_to_string(each) for each in values.ravel().tolist()]
    if role.name in ("TOKEN_ID", "ASSET_PATH_ID", "PATH_EXPRESSION_STRING") or name.startswith("x:string"):
        return [names.token_to_string(each) for each in values.ravel().tolist()]
    return str(values.dtype), values.shape, values.tobytes()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(scene=scenes())
def test_what_comes_back_is_what_went_in(tmp_path: Path, scene: dict[str, dict[str, Any]]) -> None:
    author(scene, tmp_path / "in.usda")
    text = [
        {"source_attribute_name": f"x:string{array}", "usd_type_name": f"string{brackets}"}
        for array, brackets in (("", ""), ("Array", "[]"))
    ]
    out = tmp_path / "out.usda"
    with ovstage.Stage() as first, ovstage.Stage() as second:
        population.open_usd(first, tmp_path / "in.usda", 1, domains=3)
        first.advance_write_floor(1).wait()
        report = population.export_to_usd_file(
            first,
            out,
            1,
            layer_mode=population.OVSTAGE_POPULATION_EXPORT_LAYER_MODE_DEF,
            prim_rules=[{"path": "/", "path_match": population.OVSTAGE_POPULATION_EXPORT_PATH_MATCH_PREFIX}],
            attribute_rules=[
                *text,
                {"source_attribute_name": "x:*", "source_attribute_name_match": GLOB, "flags": INFER},
            ],
            property_rules=[
                {
                    "source_property_name": "x:near",
                    "property_kind": population.OVSTAGE_POPULATION_EXPORT_PROPERTY_RELATIONSHIP,
                }
            ],
        )
        assert report["attributes_unsupported"] == report["property_edges_unsupported"] == 0
        assert report["attributes_exported"] == sum(map(len, scene.values()))
        population.open_usd(second, out, 1, domains=3)
        second.advance_write_floor(1).wait()
        assert columns(second) == columns(first)
