"""A subtree of a populated stage written as a scene of its own, and read again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pxr import Sdf, Usd, UsdGeom, UsdShade

import ovstage
from ovstage import ErrorCode, Filter, FilterOp, OvstageError, PopulationDomain, Predicate, population
from ovstage.population import PrimPredicate, PropertyPredicate

PROPS = """#usda 1.0
(
    metersPerUnit = 0.5
    upAxis = "Z"
)
def Xform "World"
{
    def Xform "Props"
    {
        def Sphere "Ball" (
            prepend apiSchemas = ["PhysicsCollisionAPI"]
        )
        {
            double radius = 1.5
            bool physics:collisionEnabled = 1
            float simulation:heat = 20
            float other:heat = 30
            double3 xformOp:translate = (1, 2, 3)
            float3 xformOp:rotateXYZ = (0, 0, 30)
            uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateXYZ"]
        }
        def Cube "Crate" (
            prepend apiSchemas = ["PhysicsRigidBodyAPI"]
        )
        {
            double size = 2
            bool physics:rigidBodyEnabled = 1
            rel proxyPrim = </World/Props/Ball>
        }
    }
    def Sphere "Outside"
    {
    }
}
"""

MESHES = """#usda 1.0
def "World"
{
    def Xform "SimulatedMeshes"
    {
        def Mesh "Floor" (
            prepend apiSchemas = ["PhysicsCollisionAPI"]
        )
        {
            int[] faceVertexCounts = [3]
            int[] faceVertexIndices = [0, 1, 2]
            point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0)]
            bool physics:collisionEnabled = 1
        }
        def Mesh "Dynamic" (
            prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsRigidBodyAPI"]
        )
        {
            int[] faceVertexCounts = [3]
            int[] faceVertexIndices = [0, 1, 2]
            point3f[] points = [(0, 0, 1), (1, 0, 1), (0, 1, 1)]
            bool physics:collisionEnabled = 1
            bool physics:rigidBodyEnabled = 1
        }
    }
    def Sphere "Outside"
    {
    }
}
"""


@pytest.fixture
def props() -> Iterator[ovstage.Stage]:
    with ovstage.Stage("props") as stage:
        yield populated(stage, PROPS)


def populated(stage: ovstage.Stage, scene: str | Path) -> ovstage.Stage:
    load = population.open_usd if isinstance(scene, Path) else population.open_usd_from_string
    load(stage, scene, 1, domains=PopulationDomain.ALL)
    stage.advance_write_floor(1).wait()
    return stage


def count(stage: ovstage.Stage, *predicates: tuple[str, FilterOp, list[str]]) -> int:
    with stage.query(Filter([Predicate(*each) for each in predicates])) as query:
        query.wait()
        return stage.fetch_query_result(query).total_prim_count


def test_a_subtree_keeps_types_schemas_and_values(props: ovstage.Stage, tmp_path: Path) -> None:
    file = tmp_path / "props.usda"
    report = population.export_typed_hierarchy_to_usd_file(props, file, "/World/Props", 1)
    assert report["prims_exported"] == 3 + report["attributes_exported"]
    assert report["attributes_exported"] >= 4 and report["api_schemas_applied"] == 2
    text = file.read_text()
    for fragment in (
        'def Sphere "Ball"',
        'def Cube "Crate"',
        "double radius = 1.5",
        "PhysicsRigidBodyAPI",
        "Collision",
    ):
        assert fragment in text
    assert "Outside" not in text and "heat" not in text
    scene = Usd.Stage.Open(str(file))
    assert UsdGeom.GetStageMetersPerUnit(scene) == 0.5 and UsdGeom.GetStageUpAxis(scene) == "Z"
    ball, original = (
        np.array(UsdGeom.Xformable(each.GetPrimAtPath("/World/Props/Ball")).GetLocalTransformation())
        for each in (scene, Usd.Stage.Open(str(written(tmp_path))))
    )
    np.testing.assert_allclose(ball, original, atol=1e-12)
    assert scene.GetPrimAtPath("/World/Props/Crate").GetRelationship("proxyPrim").GetTargets() == ["/World/Props/Ball"]


def written(folder: Path, scene: str = PROPS) -> Path:
    file = folder / "original.usda"
    file.write_text(scene)
    return file


def test_custom_namespaces_by_name(props: ovstage.Stage, tmp_path: Path) -> None:
    file = tmp_path / "props.usda"
    report = population.export_typed_hierarchy_to_usd_file(
        props, file, "/World/Props", 1, include_custom_namespaces=["simulation"]
    )
    assert report["custom_attributes_inferred"] == 1
    assert "float simulation:heat = 20" in file.read_text() and "other:heat" not in file.read_text()


def test_a_written_subtree_can_be_populated_again(tmp_path: Path) -> None:
    with ovstage.Stage() as first, ovstage.Stage() as second:
        populated(first, MESHES)
        root = "/World/SimulatedMeshes"
        report = population.export_typed_hierarchy_to_usd_file(first, tmp_path / "out.usda", root, 1)
        assert report["api_schemas_applied"] == 3 and report["attributes_exported"] >= 8
        populated(second, tmp_path / "out.usda")
        meshes = ("usd-prim-type", FilterOp.IN, ["Mesh"])
        below = ("usd-path", FilterOp.PREFIX, [root])
        assert count(second, meshes, below) == count(first, meshes, below) == 2
        assert count(second, ("usd-prim-type", FilterOp.IN, ["Sphere"])) == 0
        assert count(second, below, ("usd-schemas", FilterOp.CONTAINS, ["PhysicsCollisionAPI"])) == 2
        body = ("usd-schemas", FilterOp.CONTAINS, ["PhysicsRigidBodyAPI"])
        assert count(second, body) == count(second, body, ("usd-path", FilterOp.IN, [f"{root}/Dynamic"])) == 1


def test_the_asynchronous_twin(props: ovstage.Stage, tmp_path: Path) -> None:
    file = tmp_path / "props.usdc"
    export = population.export_typed_hierarchy_to_usd_file_async(props, file, "/", 1)
    assert export.wait()["prims_exported"] >= 5
    scene = Usd.Stage.Open(str(file))
    assert [str(prim.GetPath()) for prim in scene.Traverse()][:2] == ["/World", "/World/Props"]


def test_both_go_through_the_rules_of_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, ...]] = []
    for name in ("export_to_usd_file", "export_to_usd_file_async"):
        monkeypatch.setattr(
            population, name, lambda *what, name=name, **options: calls.append((what, options)) or {"by": name}
        )
    stage: Any = object()
    for call in (population.export_typed_hierarchy_to_usd_file, population.export_typed_hierarchy_to_usd_file_async):
        call(stage, "x.usda", "/", 7, include_custom_namespaces=["simulation"])
    for what, options in calls:
        assert what == (stage, "x.usda", 7)
        assert options["source_api_schema_policy"] == population.SourceApiSchemaPolicy.APPLY_RECORDED
        assert options["projection"] == population.ExportProjection.SCHEMA_DECLARED
        assert options["prim_predicate"].kind.name == "IS_UNDER_PATH"
        assert tuple(options["prim_predicate"].strings) == ("/",)
        assert options["attribute_rules"][0]["source_attribute_name"] == "simulation:*"
    assert len(calls) == 2


WHOLE = """#usda 1.0
(
    defaultPrim = "World"
    kilogramsPerUnit = 0.001
    metersPerUnit = 0.01
    timeCodesPerSecond = 60
)
def Xform "World"
{
    def Xform "Source" (
        apiSchemas = ["MaterialBindingAPI"]
    )
    {
        double3 xformOp:translate = (1, 2, 3)
        uniform token[] xformOpOrder = ["xformOp:translate"]
        custom string mine:text = "words"
        custom string[] mine:texts = ["", "more"]
        custom uint64 mine:number = 7
        rel material:binding = </World/Paint>
        rel material:binding:physics = </World/Paint>
    }
    def Xform "Copy" (
        instanceable = true
        references = </World/Source>
    )
    {
    }
    def Xform "Sheared"
    {
        matrix4d xformOp:transform = ((1, 0, 0, 0), (0.5, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1))
        uniform token[] xformOpOrder = ["xformOp:transform"]
    }
    def Material "Paint"
    {
    }
}
"""


def test_what_the_stage_tells_otherwise_than_usd_comes_back(tmp_path: Path) -> None:
    file = tmp_path / "whole.usda"
    with ovstage.Stage() as stage:
        populated(stage, WHOLE)
        report = population.export_typed_hierarchy_to_usd_file(stage, file, "/", 1, include_custom_namespaces=["mine"])
    scene = Usd.Stage.Open(str(file))
    for path in ("/World/Source", "/World/Copy"):
        prim = scene.GetPrimAtPath(path)
        assert prim.GetTypeName() == "Xform"
        assert UsdGeom.Xformable(prim).GetLocalTransformation().ExtractTranslation() == (1, 2, 3)
        assert prim.GetAttribute("mine:text").Get() == "words"
        assert list(prim.GetAttribute("mine:texts").Get()) == ["", "more"]
        assert prim.GetAttribute("mine:number").Get() == 7
        assert prim.GetRelationship("material:binding").GetTargets() == ["/World/Paint"]
        assert prim.GetRelationship("material:binding:physics").GetTargets() == ["/World/Paint"]
    assert scene.GetDefaultPrim().GetPath() == "/World"
    assert scene.GetMetadata("kilogramsPerUnit") == 0.001
    assert scene.GetTimeCodesPerSecond() == 60
    assert report["attributes_unsupported"] == 1  # the shear, of whose operations nothing is left
    assert "xformOpOrder" not in scene.GetPrimAtPath("/World/Sheared").GetAuthoredPropertyNames()


NETWORK = """#usda 1.0
def Material "Paint"
{
    color3f inputs:tint = (1, 0, 0)
    token outputs:surface.connect = </Paint/Graph.outputs:out>
    token outputs:mdl:surface.connect = </Paint/Mdl.outputs:out>
    def NodeGraph "Graph"
    {
        float inputs:nowhere.connect = </Paint.inputs:valueless>
        token outputs:out.connect = </Paint/Graph/Surface.outputs:surface>
        def Shader "Surface"
        {
            uniform token info:id = "UsdPreviewSurface"
            color3f inputs:diffuseColor.connect = </Paint.inputs:tint>
            asset inputs:file = @wood.png@
            float inputs:roughness = 0.25
            token outputs:surface
        }
    }
    def Shader "Mdl"
    {
        token outputs:out
    }
}
def Sphere "Ball"
{
    double radius.connect = </Other.size>
    custom float mine:heat = 3
    float mine:heat.connect = </Other.heat>
    custom float other:heat = 3
    float other:heat.connect = </Other.heat>
}
"""


def connections(scene: Usd.Stage) -> dict[str, tuple[str, list[str]]]:
    return {
        str(attribute.GetPath()): (str(attribute.GetTypeName()), [str(path) for path in attribute.GetConnections()])
        for prim in scene.Traverse()
        for attribute in prim.GetAttributes()
        if attribute.HasAuthoredConnections()
    }


def test_connections_go_along(tmp_path: Path) -> None:
    file = tmp_path / "network.usda"
    with ovstage.Stage() as stage:
        populated(stage, written(tmp_path, NETWORK))
        report = population.export_typed_hierarchy_to_usd_file(stage, file, "/", 1, include_custom_namespaces=["mine"])
    scene, original = Usd.Stage.Open(str(file)), Usd.Stage.Open(str(tmp_path / "original.usda"))
    expected = connections(original)
    del expected["/Ball.other:heat"]  # of a namespace that nobody asked for
    del expected["/Paint/Graph.inputs:nowhere"]  # neither end has a value: the stage never learned the type
    assert connections(scene) == expected
    assert report["property_edges_exported"] == len(expected) == 6 and report["property_edges_skipped"] == 1
    surface = scene.GetPrimAtPath("/Paint/Graph/Surface")
    assert surface.GetAttribute("inputs:roughness").Get() == 0.25
    assert surface.GetAttribute("inputs:file").Get().path == "wood.png"
    assert not surface.GetAttribute("inputs:roughness").IsCustom()
    for context in ("", "mdl"):  # the networks hold together: what a renderer asks for is found
        sources = [UsdShade.Material.Get(each, "/Paint").ComputeSurfaceSource(context)[0] for each in (scene, original)]
        assert sources[0].GetPath() == sources[1].GetPath()


def test_shaders_that_usd_knows_have_types_without_values(tmp_path: Path) -> None:
    network = """#usda 1.0
def Material "Wood"
{
    token outputs:surface.connect = </Wood/Surface.outputs:surface>
    def Shader "Surface"
    {
        uniform token info:id = "UsdPreviewSurface"
        color3f inputs:diffuseColor.connect = </Wood/Texture.outputs:rgb>
        float inputs:glitter.connect = </Wood/Texture.outputs:sparkle>
        token outputs:surface
    }
    def Shader "Texture"
    {
        uniform token info:id = "UsdUVTexture"
        asset inputs:file = @wood.png@
        float3 outputs:rgb
        float outputs:sparkle
    }
}
"""
    file = tmp_path / "wood.usda"
    with ovstage.Stage() as stage:
        populated(stage, written(tmp_path, network))
        report = population.export_typed_hierarchy_to_usd_file(stage, file, "/", 1)
    scene = Usd.Stage.Open(str(file))
    colour = UsdShade.Shader.Get(scene, "/Wood/Surface").GetInput("diffuseColor")
    assert colour.GetTypeName() == Sdf.ValueTypeNames.Color3f
    sources, _ = colour.GetConnectedSources()
    assert [(str(source.source.GetPath()), source.sourceName) for source in sources] == [("/Wood/Texture", "rgb")]
    assert scene.GetPrimAtPath("/Wood/Texture").GetAttribute("outputs:rgb").GetTypeName() == Sdf.ValueTypeNames.Float3
    assert report["property_edges_skipped"] == 1  # the one that neither shader has


def test_a_rule_for_a_connection_beats_what_is_declared(tmp_path: Path) -> None:
    file = tmp_path / "ball.usda"
    with ovstage.Stage() as stage:
        populated(stage, written(tmp_path, NETWORK))
        rule = {"source_property_name": "mine:heat", "destination_property_name": "radius", "property_kind": 2}
        population.export_to_usd_file(
            stage, file, 1, property_rules=[rule], projection=population.ExportProjection.SCHEMA_DECLARED
        )
        attributes_only = population.export_to_usd_file(
            stage,
            tmp_path / "none.usda",
            1,
            projection=population.ExportProjection.SCHEMA_DECLARED,
            property_predicate=PropertyPredicate.has_name("size"),
        )
    layer = Sdf.Layer.FindOrOpen(str(file))
    assert list(layer.GetAttributeAtPath("/Ball.radius").connectionPathList.explicitItems) == ["/Other.heat"]
    assert attributes_only["property_edges_examined"] == 0


@pytest.mark.parametrize(
    ("root", "spaces", "error"),
    [
        ("World", None, ValueError),
        (7, None, TypeError),
        ("/World", "simulation", TypeError),
        ("/World", ["omni:thing"], ValueError),
        ("/World", ["usd"], ValueError),
        ("/World", ["no good"], ValueError),
        ("/World", [7], TypeError),
    ],
)
def test_arguments_of_the_typed_route(
    props: ovstage.Stage, tmp_path: Path, root: Any, spaces: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        population.export_typed_hierarchy_to_usd_file(
            props, tmp_path / "x.usda", root, 1, include_custom_namespaces=spaces
        )


# --- predicates, judged by what the stage holds ---

BALL, CRATE, OUTSIDE = "/World/Props/Ball", "/World/Props/Crate", "/World/Outside"
TYPES = {
    "has_type": (PrimPredicate.has_type("Sphere"), {BALL, OUTSIDE}),
    "is_a_type": (PrimPredicate.is_a_type("Gprim"), {BALL, CRATE, OUTSIDE}),
    "has_schema": (PrimPredicate.has_schema("Cube", "PhysicsCollisionAPI"), {BALL, CRATE}),
    "has_applied_schema": (PrimPredicate.has_applied_schema("PhysicsRigidBodyAPI"), {CRATE}),
    "namespace": (PrimPredicate.has_applied_schema_in_namespace("PhysicsRigidBodyAPI"), {CRATE}),
    "has_path": (PrimPredicate.has_path(OUTSIDE, "/World/Nothing"), {OUTSIDE}),
    "is_under_path": (PrimPredicate.is_under_path("/World/Props"), {"/World/Props", BALL, CRATE}),
    "and, not": (
        PrimPredicate.and_(PrimPredicate.has_type("Sphere"), PrimPredicate.not_(PrimPredicate.has_path(BALL))),
        {OUTSIDE},
    ),
    "or": (PrimPredicate.or_(PrimPredicate.has_type("Cube"), PrimPredicate.has_path(BALL)), {BALL, CRATE}),
    "none": (PrimPredicate.none(), set()),
}


@pytest.mark.parametrize("case", TYPES)
def test_prim_predicates(props: ovstage.Stage, tmp_path: Path, case: str) -> None:
    predicate, expected = TYPES[case]
    file = tmp_path / "out.usda"
    rule = {"path": "/", "path_match": population.OVSTAGE_POPULATION_EXPORT_PATH_MATCH_PREFIX}
    population.export_to_usd_file(props, file, 1, prim_predicate=predicate, prim_rules=[rule])
    scene = Usd.Stage.Open(str(file))
    everywhere = {str(prim.GetPath()) for prim in scene.TraverseAll()}
    assert {path for path in everywhere if not any(other.startswith(f"{path}/") for other in everywhere)} == {
        path for path in expected if not any(other.startswith(f"{path}/") for other in expected)
    }


NAMES = {
    "has_name": (PropertyPredicate.has_name("radius"), {"radius"}),
    "in_namespace": (PropertyPredicate.in_namespace("simulation"), {"simulation:heat"}),
    "declared_by_schema": (PropertyPredicate.declared_by_schema("PhysicsCollisionAPI"), {"physics:collisionEnabled"}),
    "and": (
        PropertyPredicate.and_(PropertyPredicate.is_attribute(), PropertyPredicate.has_name("radius", "proxyPrim")),
        {"radius"},
    ),
}


@pytest.mark.parametrize("case", NAMES)
def test_property_predicates(props: ovstage.Stage, tmp_path: Path, case: str) -> None:
    predicate, expected = NAMES[case]
    file = tmp_path / "out.usda"
    everything = {"source_attribute_name": "*", "source_attribute_name_match": 1, "flags": 8, "path": BALL}
    population.export_to_usd_file(props, file, 1, property_predicate=predicate, attribute_rules=[everything])
    scene = Usd.Stage.Open(str(file))
    assert {each.GetName() for each in scene.GetPrimAtPath(BALL).GetAuthoredProperties()} == expected


def test_a_predicate_that_asks_the_usd_source(props: ovstage.Stage, tmp_path: Path) -> None:
    for options in (
        {"prim_predicate": PrimPredicate.has_kind("component")},
        {"prim_predicate": PrimPredicate.not_(PrimPredicate.has_metadata("kind"))},
        {"property_predicate": PropertyPredicate.is_custom()},
    ):
        with pytest.raises(OvstageError, match="asks the USD source") as refused:
            population.export_to_usd_file(props, tmp_path / "x.usda", 1, attribute_rules=["radius"], **options)
        assert refused.value.code == ErrorCode.NOT_SUPPORTED
    assert not (tmp_path / "x.usda").exists()
