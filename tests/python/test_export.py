"""Writing a stage to USD files, and what comes back when they are opened."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pxr import Gf, Sdf, Usd, UsdGeom

import ovstage
from ovstage import AttributeSemantic, ErrorCode, OvstageError, population
from ovstage.population import ExportDestination

GLOB = population.OVSTAGE_POPULATION_EXPORT_NAME_MATCH_GLOB
INFER = population.OVSTAGE_POPULATION_EXPORT_RULE_INFER_CUSTOM_TYPE
REQUIRED = population.OVSTAGE_POPULATION_EXPORT_RULE_REQUIRED
PREFIX = population.OVSTAGE_POPULATION_EXPORT_PATH_MATCH_PREFIX
DEF = population.OVSTAGE_POPULATION_EXPORT_LAYER_MODE_DEF


@pytest.fixture
def stage() -> Iterator[ovstage.Stage]:
    with ovstage.Stage("export") as made:
        yield made


def put(stage: ovstage.Stage, values: dict[str, Any], attribute: str, ordinal: int = 1, **options: Any) -> None:
    """Write one value per path and seal the ordinal."""
    with ovstage.PathDictionary(stage) as names, names.create_path_list_from_strings(list(values)) as prims:
        with stage.query_from_path_list(prims) as query:
            options.setdefault("is_array", False)
            rows = list(values.values()) if options["is_array"] else np.asarray(list(values.values()))
            stage.write_attribute(query, attribute, ordinal, rows, **options).wait()
    seal(stage, ordinal)


def seal(stage: ovstage.Stage, ordinal: int) -> None:
    stage.advance_write_floor(ordinal).wait()


def tokens(stage: ovstage.Stage, *texts: str) -> list[int]:
    with ovstage.PathDictionary(stage) as names:
        return names.intern_tokens(texts)


def put_types(stage: ovstage.Stage, types: dict[str, str], ordinal: int = 1) -> None:
    ids = dict(zip(types, tokens(stage, *types.values()), strict=True))
    put(stage, {path: np.uint64(each) for path, each in ids.items()}, "usd-prim-type", ordinal, semantic=2)


def moved(x: float, y: float = 0, z: float = 0) -> np.ndarray:
    matrix = np.eye(4)
    matrix[3, :3] = x, y, z
    return matrix


# --- arguments ---


@pytest.mark.parametrize("path", ["/World/a-b", "/1st", "/two words", "/World.size"])
def test_a_path_that_usd_does_not_take(
    stage: ovstage.Stage, tmp_path: Path, path: str, capfd: pytest.CaptureFixture[str]
) -> None:
    put(stage, {"/World/Fine": 1.0, path: 2.0}, "size")
    rule = {"source_attribute_name": "size", "flags": INFER}
    with pytest.raises(ovstage.OvstageError, match=f"USD takes no prim of the path '{path}'"):
        population.export_to_usd_file(stage, tmp_path / "out.usda", 1, attribute_rules=[rule])
    fine = population.PrimPredicate.is_under_path("/World/Fine")
    report = population.export_to_usd_file(stage, tmp_path / "out.usda", 1, attribute_rules=[rule], prim_predicate=fine)
    assert report["attributes_exported"] == 1
    assert "Ill-formed" not in capfd.readouterr().err


def test_a_predicate_of_another_kind(stage: ovstage.Stage, tmp_path: Path) -> None:
    for name, given in {
        "prim_predicate": population.PropertyPredicate.all(),
        "property_predicate": population.PrimPredicate.all(),
    }.items():
        with pytest.raises(TypeError, match=f"{name} must be a P"):
            population.export_to_usd_file(stage, tmp_path / "out.usda", 0, **{name: given})


def test_the_path_of_a_rule_is_absolute(stage: ovstage.Stage, tmp_path: Path) -> None:
    with pytest.raises(ovstage.OvstageError, match=r"attribute_rules\[0\]\['path'\] must be '/' or the absolute path"):
        population.export_to_usd_file(stage, tmp_path / "out.usda", 0, attribute_rules=[{"path": "World"}])


# --- values ---


def test_local_transforms_become_operations(stage: ovstage.Stage, tmp_path: Path) -> None:
    put(stage, {f"/World/{n}": moved(x) for n, x in (("Red", 0), ("Green", 2), ("Blue", 4))}, "omni:xform", semantic=10)
    file = tmp_path / "out.usda"
    report = population.export_to_usd_file(stage, file, ordinal=1, attribute_rules=["omni:xform"])
    assert report["prims_exported"] == report["attributes_exported"] == report["transforms_exported"] == 3
    assert 'over "Red"' in file.read_text()
    scene = Usd.Stage.Open(str(file))
    blue = scene.GetPrimAtPath("/World/Blue")
    assert blue.GetAttribute("xformOp:translate").Get() == Gf.Vec3d(4, 0, 0)
    assert list(blue.GetAttribute("xformOpOrder").Get()) == ["xformOp:translate"]


def test_custom_names_by_pattern(stage: ovstage.Stage, tmp_path: Path) -> None:
    put(stage, {"/A": np.float32(21.5), "/B": np.float32(22)}, "userProperties:temperature")
    put(stage, {"/A": np.float32(0.9), "/B": np.float32(0.8)}, "userProperties:confidence", 2)
    file = tmp_path / "out.usda"
    rule = {
        "source_attribute_name": "userProperties:*",
        "source_attribute_name_match": GLOB,
        "flags": INFER | REQUIRED,
    }
    report = population.export_to_usd_file(stage, file, ordinal=2, attribute_rules=[rule])
    assert report["prims_exported"] == report["attributes_exported"] == 4
    assert report["custom_attributes_inferred"] == 2
    assert "float userProperties:temperature" in file.read_text()
    assert "float userProperties:confidence" in file.read_text()


def test_a_column_takes_the_name_and_type_of_a_schema(stage: ovstage.Stage, tmp_path: Path) -> None:
    put(stage, {"/World/Ball": 2.5}, "solver:collisionRadius")
    put_types(stage, {"/World/Ball": "Sphere"}, 2)
    file = tmp_path / "out.usda"
    rule = {
        "source_attribute_name": "solver:collisionRadius",
        "destination_attribute_name": "radius",
        "usd_type_name": "double",
        "flags": REQUIRED,
    }
    report = population.export_to_usd_file(stage, file, ordinal=2, layer_mode=DEF, attribute_rules=[rule])
    assert report["attributes_exported"] == 1
    text = file.read_text()
    assert 'def Sphere "Ball"' in text and "double radius = 2.5" in text and "solver:collisionRadius" not in text
    scene = Usd.Stage.Open(str(file))
    assert UsdGeom.Sphere(scene.GetPrimAtPath("/World/Ball")).GetRadiusAttr().Get() == 2.5


def test_only_what_changed_since_an_ordinal(stage: ovstage.Stage, tmp_path: Path) -> None:
    put(stage, {"/SensorA": np.float32(20), "/SensorB": np.float32(21), "/SensorC": np.float32(22)}, "temperature")
    rule = {"source_attribute_name": "temperature", "usd_type_name": "float", "flags": REQUIRED}
    base = population.export_to_usd_file(stage, tmp_path / "base.usda", ordinal=1, attribute_rules=[rule])
    assert base["attributes_exported"] == 3
    put(stage, {"/SensorB": np.float32(24.5)}, "temperature", 2)
    put(stage, {"/SensorB": np.float32(25.5)}, "temperature", 3)
    file = tmp_path / "changed.usda"
    changed = population.export_to_usd_file(
        stage,
        file,
        ordinal=3,
        since_ordinal=1,
        selection=population.OVSTAGE_POPULATION_EXPORT_SELECTION_CHANGED_PROPERTIES_SINCE_ORDINAL,
        attribute_rules=[rule],
    )
    assert changed["attributes_exported"] == changed["prims_exported"] == 1
    text = file.read_text()
    assert 'over "SensorB"' in text and "25.5" in text and "24.5" not in text
    assert "SensorA" not in text and "SensorC" not in text


def test_tokens_texts_assets_and_expressions(stage: ovstage.Stage, tmp_path: Path) -> None:
    red, green, asset, query = tokens(stage, "red", "green", "a.png", "//World//")
    put(stage, {"/A": np.uint64(red)}, "shade", 1, semantic=AttributeSemantic.TOKEN_ID)
    put(stage, {"/A": np.array([red, 0, green], np.uint64)}, "shades", 2, is_array=True, semantic=2)
    put(stage, {"/A": np.uint64(green)}, "label", 3)
    put(stage, {"/A": np.array([asset, 0], np.uint64)}, "picture", 4, semantic=AttributeSemantic.ASSET_PATH_ID)
    put(stage, {"/A": np.uint64(query)}, "which", 5, semantic=AttributeSemantic.PATH_EXPRESSION_STRING)
    file = tmp_path / "out.usda"
    report = population.export_to_usd_file(
        stage,
        file,
        ordinal=5,
        attribute_rules=[
            {"source_attribute_name": "label", "usd_type_name": "string"},
            {"source_attribute_name": "*", "source_attribute_name_match": GLOB, "flags": INFER},
        ],
    )
    scene = Usd.Stage.Open(str(file))
    prim = scene.GetPrimAtPath("/A")
    assert prim.GetAttribute("shade").Get() == "red"
    assert list(prim.GetAttribute("shades").Get()) == ["red", "", "green"]
    assert prim.GetAttribute("label").Get() == "green" and prim.GetAttribute("label").GetTypeName() == "string"
    assert prim.GetAttribute("picture").Get().path == "a.png"
    assert prim.GetAttribute("which").Get().GetText() == "//World//"
    assert report["custom_attributes_inferred"] == 4


def test_texts_that_a_client_wrote_as_bytes(stage: ovstage.Stage, tmp_path: Path) -> None:
    words = {path: np.frombuffer(text.encode(), np.uint8) for path, text in (("/A", "größe"), ("/B", ""))}
    put(stage, words, "label", is_array=True, semantic=AttributeSemantic.STRING)
    file = tmp_path / "out.usda"
    rule = {"source_attribute_name": "label", "flags": INFER}
    population.export_to_usd_file(stage, file, ordinal=1, attribute_rules=[rule])
    scene = Usd.Stage.Open(str(file))
    assert [scene.GetPrimAtPath(path).GetAttribute("label").Get() for path in words] == ["größe", ""]


def test_patterns_pass_over_what_is_derived(stage: ovstage.Stage, tmp_path: Path) -> None:
    put(stage, {"/A": moved(1)}, "omni:fabric:worldMatrix", semantic=AttributeSemantic.MATRIX)
    everything = {"source_attribute_name": "*", "source_attribute_name_match": GLOB, "flags": INFER}
    report = population.export_to_usd_file(stage, tmp_path / "a.usda", ordinal=1, attribute_rules=[everything])
    assert report["attributes_exported"] == 0
    derived = population.OVSTAGE_POPULATION_EXPORT_RULE_DERIVED_ALLOWED
    rule = {"source_attribute_name": "omni:fabric:worldMatrix", "destination_attribute_name": "measured:pose"}
    for flags, written in ((INFER, 0), (INFER | derived, 1)):
        rules = [{**rule, "flags": flags}]
        report = population.export_to_usd_file(stage, tmp_path / "a.usda", ordinal=1, attribute_rules=rules)
        assert report["attributes_exported"] == written


def test_a_value_that_the_type_cannot_hold_is_counted_or_refused(stage: ovstage.Stage, tmp_path: Path) -> None:
    put(stage, {"/A": 1.0 + 2**-50}, "x")
    file = tmp_path / "out.usda"
    rule = {"source_attribute_name": "x", "usd_type_name": "float"}
    report = population.export_to_usd_file(stage, file, ordinal=1, attribute_rules=[rule])
    assert report["attributes_unsupported"] == 1 and report["attributes_exported"] == 0
    with pytest.raises(OvstageError, match=r"export_to_usd_file failed: .*'x', float64, cannot be written as 'float'"):
        population.export_to_usd_file(stage, file, ordinal=1, attribute_rules=[{**rule, "flags": REQUIRED}])


def test_a_type_that_nobody_knows_must_be_given_or_inferred(stage: ovstage.Stage, tmp_path: Path) -> None:
    put(stage, {"/A": 1.0}, "x")
    report = population.export_to_usd_file(stage, tmp_path / "a.usda", ordinal=1, attribute_rules=["x"])
    assert report["attributes_unsupported"] == 1
    with pytest.raises(OvstageError, match="INFER_CUSTOM_TYPE"):
        rule = {"source_attribute_name": "x", "flags": REQUIRED}
        population.export_to_usd_file(stage, tmp_path / "a.usda", ordinal=1, attribute_rules=[rule])


def test_a_required_rule_must_match(stage: ovstage.Stage, tmp_path: Path) -> None:
    put(stage, {"/A": 1.0}, "x")
    file = tmp_path / "out.usda"
    rule = {"source_attribute_name": "nothing", "usd_type_name": "double"}
    assert population.export_to_usd_file(stage, file, ordinal=1, attribute_rules=[rule])["attributes_exported"] == 0
    before = file.read_bytes()
    with pytest.raises(OvstageError) as refused:
        population.export_to_usd_file(stage, file, ordinal=1, attribute_rules=[{**rule, "flags": REQUIRED}])
    assert refused.value.code == ErrorCode.NOT_FOUND
    assert file.read_bytes() == before


# --- transforms ---


def turned(degrees: float, scale: tuple[float, float, float], place: tuple[float, float, float]) -> np.ndarray:
    rotation = np.array(Gf.Matrix4d().SetRotate(Gf.Rotation(Gf.Vec3d(1, 2, 3), degrees)))
    return np.diag([*scale, 1.0]) @ rotation @ moved(*place)


@pytest.mark.parametrize("scale", [(1, 1, 1), (2, 0.5, 3), (1, 1, -1), (-2, 3, 4)])
def test_operations_make_the_same_matrix(
    stage: ovstage.Stage, tmp_path: Path, scale: tuple[float, float, float]
) -> None:
    matrix = turned(70, scale, (1, 2, 3))
    put(stage, {"/A": matrix}, "omni:xform", semantic=10)
    put_types(stage, {"/A": "Xform"}, 2)
    file = tmp_path / "out.usda"
    population.export_to_usd_file(stage, file, ordinal=2, layer_mode=DEF, attribute_rules=["omni:xform"])
    scene = Usd.Stage.Open(str(file))
    prim = UsdGeom.Xformable(scene.GetPrimAtPath("/A"))
    np.testing.assert_allclose(np.array(prim.GetLocalTransformation()), matrix, atol=1e-14)


def test_a_shear_is_never_approximated(stage: ovstage.Stage, tmp_path: Path) -> None:
    sheared = moved(1, 2, 3)
    sheared[0, 1] = 0.1
    put(stage, {"/A": sheared, "/B": moved(1)}, "omni:xform", semantic=10)
    file = tmp_path / "out.usda"
    report = population.export_to_usd_file(stage, file, ordinal=1, attribute_rules=["omni:xform"])
    assert (report["transforms_exported"], report["attributes_unsupported"]) == (1, 1)
    with pytest.raises(OvstageError, match="the transform of /A has a shear"):
        rule = {"source_attribute_name": "omni:xform", "flags": REQUIRED}
        population.export_to_usd_file(stage, file, ordinal=1, attribute_rules=[rule])
    matrix_op = population.OVSTAGE_POPULATION_EXPORT_TRANSFORM_USD_MATRIX_OP
    population.export_to_usd_file(stage, file, ordinal=1, attribute_rules=["omni:xform"], transform_policy=matrix_op)
    scene = Usd.Stage.Open(str(file))
    prim = scene.GetPrimAtPath("/A")
    np.testing.assert_array_equal(np.array(prim.GetAttribute("xformOp:transform").Get()), sheared)


def test_transforms_may_be_left_out(stage: ovstage.Stage, tmp_path: Path) -> None:
    put(stage, {"/A": moved(1)}, "omni:xform", semantic=10)
    none = population.OVSTAGE_POPULATION_EXPORT_TRANSFORM_NONE
    report = population.export_to_usd_file(
        stage, tmp_path / "a.usda", ordinal=1, attribute_rules=["omni:xform"], transform_policy=none
    )
    assert (report["transforms_examined"], report["transforms_exported"]) == (1, 0)


def test_the_reset_of_the_stack_goes_along(stage: ovstage.Stage, tmp_path: Path) -> None:
    put(stage, {"/A": moved(1), "/B": moved(2)}, "omni:xform", semantic=10)
    put(stage, {"/A": True, "/B": False}, "omni:resetXformStack", 2)
    file = tmp_path / "out.usda"
    population.export_to_usd_file(stage, file, ordinal=2, attribute_rules=["omni:xform"])
    scene = Usd.Stage.Open(str(file))
    assert UsdGeom.Xformable(scene.GetPrimAtPath("/A")).GetResetXformStack()
    assert not UsdGeom.Xformable(scene.GetPrimAtPath("/B")).GetResetXformStack()


# --- relationships, schemas, metadata, prims ---


def test_relationships_and_material_bindings(stage: ovstage.Stage, tmp_path: Path) -> None:
    with ovstage.PathDictionary(stage) as names:
        one, two = names.intern_paths(["/World/One", "/World/Two"])
    put(
        stage,
        {"/A": np.array([two, one], np.uint64), "/B": np.empty(0, np.uint64)},
        "targets",
        is_array=True,
        semantic=4,
    )
    put(stage, {"/A": np.array([one], np.uint64)}, "material:binding", 2, is_array=True, semantic=4)
    file = tmp_path / "out.usda"
    report = population.export_to_usd_file(
        stage,
        file,
        ordinal=2,
        property_rules=[
            {"source_property_name": "targets", "property_kind": 1, "destination_property_name": "links"},
            {"source_property_name": "material:binding", "property_kind": 3, "flags": REQUIRED},
        ],
    )
    assert report["property_edges_exported"] == 3
    scene = Usd.Stage.Open(str(file))
    assert scene.GetPrimAtPath("/A").GetRelationship("links").GetTargets() == [
        Sdf.Path("/World/Two"),
        Sdf.Path("/World/One"),
    ]
    assert scene.GetPrimAtPath("/B").GetRelationship("links").HasAuthoredTargets()
    assert scene.GetPrimAtPath("/A").GetAppliedSchemas() == ["MaterialBindingAPI"]


def test_connections(stage: ovstage.Stage, tmp_path: Path) -> None:
    with ovstage.PathDictionary(stage) as names:
        source, output = names.intern_path("/Shader"), names.intern_token("outputs:rgb")
    pair = ovstage.DLDataType(ovstage.DLDataTypeCode.kDLUInt, 64, 2)
    link = ovstage.make_dltensor(np.array([source, output], np.uint64), dtype=pair, shape=[1], ndim=1)
    put(stage, {"/Material": link}, "inputs:color.connect", is_array=True, semantic=12)
    file = tmp_path / "out.usda"
    rule = {"source_property_name": "inputs:color", "property_kind": 2, "usd_type_name": "color3f", "flags": REQUIRED}
    population.export_to_usd_file(stage, file, ordinal=1, property_rules=[rule])
    scene = Usd.Stage.Open(str(file))
    color = scene.GetPrimAtPath("/Material").GetAttribute("inputs:color")
    assert color.GetConnections() == [Sdf.Path("/Shader.outputs:rgb")]


def test_prim_rules_define_typed_prims(stage: ovstage.Stage, tmp_path: Path) -> None:
    put(stage, {"/World/A": 1.0, "/World/B": 1.0}, "x")
    file = tmp_path / "out.usda"
    rule = {"path": "/World", "path_match": PREFIX, "usd_type_name": "Xform"}
    report = population.export_to_usd_file(stage, file, ordinal=1, layer_mode=DEF, prim_rules=[rule])
    assert report["prims_exported"] == 2
    scene = Usd.Stage.Open(str(file))
    assert [str(prim.GetPath()) for prim in scene.Traverse()] == ["/World", "/World/A", "/World/B"]


def test_applied_schemas_by_rule_and_as_recorded(stage: ovstage.Stage, tmp_path: Path) -> None:
    put_types(stage, {"/A": "Sphere"})
    names = tokens(stage, "PhysicsCollisionAPI", "PhysicsMassAPI", "SomebodysAPI")
    put(stage, {"/A": np.array(names, np.uint64)}, "usd-schemas", 2, is_array=True, semantic=2)
    file = tmp_path / "out.usda"
    rule = {"schema_name": "PhysicsDriveAPI", "instance_name": "angular"}
    recorded = population.SourceApiSchemaPolicy.APPLY_RECORDED
    report = population.export_to_usd_file(
        stage, file, ordinal=2, api_schema_rules=[rule], source_api_schema_policy=recorded
    )
    assert (report["api_schemas_applied"], report["api_schemas_skipped"]) == (3, 1)
    assert list(map(str, report.skipped)) == ["/A.apiSchemas: USD knows no schema 'SomebodysAPI' to apply"]
    scene = Usd.Stage.Open(str(file))
    prim = scene.GetPrimAtPath("/A")
    assert prim.GetAppliedSchemas() == ["PhysicsDriveAPI:angular", "PhysicsCollisionAPI", "PhysicsMassAPI"]
    file = tmp_path / "kept.usda"
    kept = population.export_to_usd_file(
        stage,
        file,
        ordinal=2,
        source_api_schema_policy=recorded,
        unknown_metadata_policy=population.OVSTAGE_POPULATION_EXPORT_UNKNOWN_METADATA_PRESERVE,
    )
    assert kept["unknown_metadata_preserved"] == 1
    key = population.OVSTAGE_POPULATION_EXPORT_UNKNOWN_APPLIED_API_SCHEMAS_CUSTOM_DATA_KEY
    scene = Usd.Stage.Open(str(file))
    assert list(scene.GetPrimAtPath("/A").GetCustomDataByKey(key)) == ["SomebodysAPI"]
    with pytest.raises(OvstageError, match="/A has the applied schema 'SomebodysAPI', which USD lacks"):
        population.export_to_usd_file(
            stage,
            file,
            ordinal=2,
            source_api_schema_policy=recorded,
            unknown_metadata_policy=population.OVSTAGE_POPULATION_EXPORT_UNKNOWN_METADATA_FAIL,
        )


def test_metadata_of_prims_and_of_the_layer(stage: ovstage.Stage, tmp_path: Path) -> None:
    kind, up, note = tokens(stage, "component", "Z", "measured")
    put(stage, {"/A": np.uint64(kind)}, "usd-metadata:kind", 1, semantic=AttributeSemantic.TOKEN_ID)
    put(stage, {"/": 0.5}, "usd-metadata:metersPerUnit", 2)
    put(stage, {"/": np.uint64(up)}, "usd-metadata:upAxis", 3, semantic=AttributeSemantic.TOKEN_ID)
    put(stage, {"/A": np.uint64(note)}, "usd-metadata:customData:lab:origin", 4)
    file = tmp_path / "out.usda"
    report = population.export_to_usd_file(
        stage,
        file,
        ordinal=4,
        metadata_rules=[
            {"source_metadata_name": "kind"},
            {"source_metadata_name": "usd-metadata:customData:lab:origin"},
            {"source_metadata_name": "metersPerUnit", "metadata_kind": 3},
            {"source_metadata_name": "upAxis", "metadata_kind": 3},
            {"source_metadata_name": "metersPerUnit", "destination_metadata_name": "was:scale", "metadata_kind": 1},
            {"source_metadata_name": "kind", "destination_metadata_name": "noSuchField"},
        ],
    )
    assert (report["metadata_exported"], report["metadata_unsupported"]) == (5, 1)
    scene = Usd.Stage.Open(str(file))
    assert UsdGeom.GetStageMetersPerUnit(scene) == 0.5 and UsdGeom.GetStageUpAxis(scene) == "Z"
    assert scene.GetRootLayer().customLayerData == {"was": {"scale": 0.5}}
    assert scene.GetPrimAtPath("/A").GetMetadata("kind") == "component"
    assert scene.GetPrimAtPath("/A").GetCustomDataByKey("lab:origin") == "measured"


# --- ordinals ---


@pytest.mark.parametrize(("ordinal", "code"), [(1, ErrorCode.OUT_OF_RANGE), (3, ErrorCode.WRITE_FLOOR_VIOLATION)])
def test_only_the_current_state_can_be_exported(
    stage: ovstage.Stage, tmp_path: Path, ordinal: int, code: ErrorCode
) -> None:
    put(stage, {"/A": 1.0}, "x", 1)
    put(stage, {"/A": 2.0}, "x", 2)
    with pytest.raises(OvstageError, match=f"export_to_usd_file failed: ordinal {ordinal} is .* ordinal 2") as refused:
        population.export_to_usd_file(stage, tmp_path / "a.usda", ordinal=ordinal, attribute_rules=["x"])
    assert refused.value.code == code
    assert not list(tmp_path.iterdir())


def test_what_is_not_sealed_stays_out(stage: ovstage.Stage, tmp_path: Path) -> None:
    put(stage, {"/A": 1.0}, "x", 1)
    with ovstage.PathDictionary(stage) as names, names.create_path_list_from_strings(["/A", "/New"]) as prims:
        with stage.query_from_path_list(prims) as query:
            stage.write_attribute(query, "x", 2, np.float64([5, 6]), is_array=False).wait()
    file = tmp_path / "out.usda"
    rule = {"source_attribute_name": "x", "flags": INFER}
    assert population.export_to_usd_file(stage, file, ordinal=1, attribute_rules=[rule])["attributes_exported"] == 1
    assert "New" not in file.read_text() and "= 1" in file.read_text()


# --- destinations ---


TEMPERATURE = [{"source_attribute_name": "temperature", "usd_type_name": "float"}]


def of(path: str) -> list[dict[str, Any]]:
    """The temperature of one prim."""
    return [{**TEMPERATURE[0], "path": path}]


def test_a_destination_gathers_exports(stage: ovstage.Stage, tmp_path: Path) -> None:
    put(stage, {"/World/Red": np.float32(21.5), "/World/Blue": np.float32(22)}, "temperature")
    file = tmp_path / "out.usda"
    with ExportDestination.create(stage, file) as destination:
        destination.export(1, attribute_rules=of("/World/Red"))
        destination.export(1, attribute_rules=of("/World/Blue"))
        assert not file.exists()
        destination.save()
    text = file.read_text()
    assert 'over "Red"' in text and 'over "Blue"' in text


def test_a_failed_export_leaves_a_destination_as_it_was(stage: ovstage.Stage, tmp_path: Path) -> None:
    put(stage, {"/A": np.float32(1)}, "temperature")
    file = tmp_path / "out.usda"
    with ExportDestination.create(stage, file) as destination:
        destination.export(1, attribute_rules=TEMPERATURE)
        rules = [
            {"source_attribute_name": "temperature", "destination_attribute_name": "other", "usd_type_name": "float"}
        ]
        with pytest.raises(OvstageError, match="export_to_destination failed"):
            destination.export(1, attribute_rules=[*rules, {"source_attribute_name": "no", "flags": REQUIRED}])
        destination.save()
    assert "temperature" in file.read_text() and "other" not in file.read_text()


def test_a_file_can_be_gone_on_with(stage: ovstage.Stage, tmp_path: Path) -> None:
    file = tmp_path / "out.usda"
    file.write_text('#usda 1.0\nover "A"\n{\n    int kept = 3\n    double temperature = 1\n}\n')
    opened = Sdf.Layer.FindOrOpen(str(file))  # the caller's own, which nobody touches
    put(stage, {"/A": np.float32(7)}, "temperature")
    with ExportDestination.create(stage, file, population.ExportDestinationMode.OPEN_EXISTING) as destination:
        destination.export(1, attribute_rules=["temperature"])  # the file says of what type it is
        destination.save()
    assert "kept = 3" in file.read_text() and "double temperature = 7" in file.read_text()
    assert opened.GetAttributeAtPath("/A.temperature").default == 1
    with pytest.raises(OvstageError, match="no file"):
        ExportDestination.create(stage, tmp_path / "none.usda", population.ExportDestinationMode.OPEN_EXISTING)


def test_one_writer_for_a_file(stage: ovstage.Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with ExportDestination.create(stage, tmp_path / "out.usda"):
        for spelling in ("out.usda", "./out.usda", str(tmp_path / "x/../out.usda")):
            with pytest.raises(OvstageError, match="another export writes to"):
                ExportDestination.create(stage, spelling)
        with pytest.raises(OvstageError, match="another export writes to"):
            population.export_to_usd_file(stage, "out.usda", ordinal=0)
    ExportDestination.create(stage, "out.usda").close()


def test_a_forgotten_destination_warns_and_gives_its_file_back(stage: ovstage.Stage, tmp_path: Path) -> None:
    file = tmp_path / "out.usda"

    def forget() -> None:
        ExportDestination.create(stage, file)
        gc.collect()

    with pytest.warns(ResourceWarning, match="ExportDestination was garbage-collected"):
        forget()
    assert not file.exists()
    ExportDestination.create(stage, file).close()


def test_a_closed_destination_is_silent_and_takes_nothing(stage: ovstage.Stage, tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        destination = ExportDestination.create(stage, tmp_path / "out.usda")
        destination.close()
        destination.close()
        assert destination.closed
        with pytest.raises(RuntimeError, match="closing or closed"):
            destination.save()
        with pytest.raises(RuntimeError, match="closing or closed"):
            destination.export(1)
        del destination
        gc.collect()
    assert not [each for each in heard if issubclass(each.category, ResourceWarning)]
    assert not list(tmp_path.iterdir())


def test_a_destination_belongs_to_its_stage(stage: ovstage.Stage, tmp_path: Path) -> None:
    with ovstage.Stage() as other, ExportDestination.create(stage, tmp_path / "out.usda") as destination:
        with pytest.raises(ValueError, match="another Stage"):
            population.export_to_destination(other, destination, 1)
        with pytest.raises(TypeError, match="ExportDestination"):
            population.export_to_destination(stage, "out.usda", 1)  # type: ignore[arg-type]


def test_a_file_that_cannot_be_written(stage: ovstage.Stage, tmp_path: Path) -> None:
    put(stage, {"/A": 1.0}, "x")
    with pytest.raises(OvstageError, match="there is no directory"):
        population.export_to_usd_file(stage, tmp_path / "no/where.usda", ordinal=1)
    with pytest.raises(OvstageError, match="no USD format"):
        population.export_to_usd_file(stage, tmp_path / "scene.txt", ordinal=1)


# --- asynchronous ---


def test_an_export_under_way_hands_its_report_over_once(stage: ovstage.Stage, tmp_path: Path) -> None:
    put(stage, {"/A": moved(1)}, "omni:xform", semantic=10)
    file = tmp_path / "out.usdc"
    export = population.export_to_usd_file_async(stage, file, ordinal=1, attribute_rules=["omni:xform"])
    assert export.ok
    report = export.wait()
    assert report["attributes_exported"] == report["transforms_exported"] == 1
    assert file.exists()
    with pytest.raises(RuntimeError, match="already been consumed"):
        export.wait()


def test_a_failure_under_way_is_raised_by_its_wait(stage: ovstage.Stage, tmp_path: Path) -> None:
    export = population.export_to_usd_file_async(stage, tmp_path / "a.usda", ordinal=4)
    with pytest.raises(OvstageError, match="export_to_usd_file failed: ordinal 4"):
        export.wait()
    assert not export.ok and "ordinal 4" in export.error_message()


def test_a_destination_without_waiting_in_between(stage: ovstage.Stage, tmp_path: Path) -> None:
    put(stage, {"/A": np.float32(1)}, "temperature")
    file = tmp_path / "out.usda"
    creation = population.create_export_destination_async(stage, file)
    destination = creation.destination
    steps = [
        destination.export_async(1, attribute_rules=TEMPERATURE),
        destination.save_async(),
        destination.close_async(),
    ]
    assert creation.wait() is destination
    report, *others = [step.wait() for step in steps]
    assert report["attributes_exported"] == 1 and others == [True, True]
    assert "temperature" in file.read_text() and destination.closed


# --- arguments ---


@pytest.mark.parametrize(
    "name",
    [
        "selection",
        "layer_mode",
        "transform_policy",
        "unknown_metadata_policy",
        "source_api_schema_policy",
        "projection",
    ],
)
def test_numbers_outside_an_enum(stage: ovstage.Stage, tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=name):
        population.export_to_usd_file(stage, tmp_path / "a.usda", ordinal=1, **{name: 99})


@pytest.mark.parametrize(
    ("table", "rule"),
    [
        ("attribute_rules", {"path_match": 99}),
        ("attribute_rules", {"source_attribute_name_match": 99}),
        ("property_rules", {"property_kind": 1, "path_match": 99}),
        ("property_rules", {"property_kind": 99}),
        ("property_rules", {"source_property_name": "x"}),
        ("prim_rules", {"path_match": 99}),
        ("api_schema_rules", {"path_match": 99}),
        ("metadata_rules", {"path_match": 99}),
        ("metadata_rules", {"metadata_kind": 99}),
    ],
)
def test_numbers_outside_an_enum_in_a_rule(
    stage: ovstage.Stage, tmp_path: Path, table: str, rule: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=table):
        population.export_to_usd_file(stage, tmp_path / "a.usda", ordinal=1, **{table: [rule]})


def test_more_rules_than_an_export_takes(stage: ovstage.Stage, tmp_path: Path) -> None:
    with pytest.raises(OvstageError, match="4097 rules"):
        population.export_to_usd_file(stage, tmp_path / "a.usda", ordinal=1, attribute_rules=["x"] * 4097)


def test_an_option_that_does_not_exist(stage: ovstage.Stage, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="no option 'layermode'"):
        population.export_to_usd_file(stage, tmp_path / "a.usda", ordinal=1, layermode=1)
