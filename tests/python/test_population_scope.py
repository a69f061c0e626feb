"""What of a scene is populated: domains, selectors with their predicates, metadata, bindings, instances."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ovstage import ErrorCode, OvstageError, PathDictionary, PopulationDomain, Stage, instancing

np = pytest.importorskip("numpy", reason="numpy is not installed")
pytest.importorskip("pxr.Usd", reason="usd-core is not installed")

from scenes import contents, usda  # noqa: E402

from ovstage import population  # noqa: E402
from ovstage.population import Desc, PrimPredicateKind, PropertyPredicateKind, Selector  # noqa: E402
from ovstage.population import PrimPredicate as Prim  # noqa: E402
from ovstage.population import PropertyPredicate as Property  # noqa: E402

SCENE = usda(
    """
def Xform "World" (
    kind = "assembly"
    customData = {
        string note = "hello"
        dictionary tool = {
            int version = 3
            bool beta = true
        }
    }
)
{
    def Cube "Body" (
        prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsDriveAPI:linear", "UnknownAPI"]
    )
    {
        double size = 4
        custom float mine:own = 1
        token unknown:word = "x"
    }

    def Cube "Prop" (
        kind = "component"
    )
    {
        double size = 2
        rel friend = </World/Body>
        token purpose = "proxy"
        float3[] points = [(0, 0, 0)] (
            interpolation = "vertex"
        )

        def Sphere "Deep"
        {
        }
    }

    def Sphere "Ball"
    {
        double radius = 1
    }

    def "Plain"
    {
        float x = 1
    }
}

def Cube "Outside"
{
    double size = 9
}

def Cube "World2"
{
}
""",
    header='customLayerData = {\n    dictionary tool = {\n        string name = "t"\n    }\n}',
)


def select(
    stage: Stage, prims: Prim | None = None, properties: Property | None = None, scene: str = SCENE, **options: object
) -> dict[str, set[str]]:
    """The attributes of each prim that a selector populates."""
    desc = Desc(selectors=[Selector(prims, properties, **options)])
    population.open_usd_from_string_with_desc(stage, scene, 1, float("nan"), desc)
    return attributes(stage)


def attributes(stage: Stage, ordinal: int = 1) -> dict[str, set[str]]:
    stage.advance_write_floor(ordinal).wait()
    found: dict[str, set[str]] = {}
    for path, attribute in contents(stage, ordinal):
        found.setdefault(path, set()).add(attribute)
    return found


TRANSFORM = {"omni:xform", "omni:resetXformStack", "omni:fabric:worldMatrix"}
BARE = {"usd-prim-type"} | TRANSFORM


def test_a_schema_selects_prims_and_its_properties_with_fallbacks(stage: Stage) -> None:
    found = select(stage, Prim.has_schema("PhysicsRigidBodyAPI"), Property.declared_by_schema("PhysicsRigidBodyAPI"))
    assert set(found) == {"/", "/World", "/World/Body"}
    assert found["/World"] == BARE
    assert "physics:velocity" in found["/World/Body"]
    assert "size" not in found["/World/Body"]
    assert found["/World/Body"] >= {"usd-schemas", "usd-prim-type", "omni:xform"}


def test_reserved_columns_do_not_depend_on_the_property_predicate(stage: Stage) -> None:
    found = select(stage, Prim.has_type("Cube"))
    assert found["/World/Prop"] == BARE
    assert found["/World/Body"] == BARE | {"usd-schemas"}


def test_domains_and_selectors_add_up(stage: Stage) -> None:
    selector = Selector(Prim.has_schema("PhysicsRigidBodyAPI"), Property.declared_by_schema("PhysicsRigidBodyAPI"))
    descs = [Desc(PopulationDomain.RENDERING), Desc(selectors=[selector])]
    population.open_usd_from_string_with_desc(stage, SCENE, 1, float("nan"), descs)
    found = attributes(stage)
    assert {"physics:velocity", "size"} <= found["/World/Body"]
    assert "physics:velocity" not in found["/World/Prop"]
    assert "drive:linear:physics:stiffness" not in found["/World/Body"]


WORLD = ["/World", "/World/Ball", "/World/Body", "/World/Plain", "/World/Prop", "/World/Prop/Deep"]
DRIVE = {"damping", "maxForce", "stiffness", "targetPosition", "targetVelocity", "type"}
PRIMS = [
    (Prim.none(), []),
    (Prim.all(), ["/Outside", *WORLD, "/World2"]),
    (Prim.has_type("Sphere"), ["/World/Ball", "/World/Prop/Deep"]),
    (Prim.has_type("Gprim", "NoSuchType"), []),
    (Prim.is_a_type("Gprim"), ["/Outside", "/World/Ball", "/World/Body", "/World/Prop", "/World/Prop/Deep", "/World2"]),
    (Prim.is_a_type("NoSuchType"), []),
    (Prim.has_schema("Sphere", "PhysicsRigidBodyAPI"), ["/World/Ball", "/World/Body", "/World/Prop/Deep"]),
    (Prim.has_applied_schema("PhysicsDriveAPI"), []),
    (Prim.has_applied_schema("PhysicsDriveAPI:linear", "Sphere"), ["/World/Body"]),
    (Prim.has_applied_schema("UnknownAPI"), ["/World/Body"]),
    (Prim.has_applied_schema_in_namespace("PhysicsDriveAPI"), ["/World/Body"]),
    (Prim.has_applied_schema_in_namespace("PhysicsDrive"), []),
    (Prim.has_path("/World/Ball", "/World/No"), ["/World/Ball"]),
    (Prim.is_under_path("/World/Prop"), ["/World/Prop", "/World/Prop/Deep"]),
    (Prim.is_under_path("/World"), WORLD),
    (Prim.and_(Prim.has_type("Cube"), Prim.is_under_path("/World")), ["/World/Body", "/World/Prop"]),
    (Prim.or_(Prim.has_path("/Outside"), Prim.has_path("/World2")), ["/Outside", "/World2"]),
    (Prim.not_(Prim.is_under_path("/World")), ["/Outside", "/World2"]),
    (Prim.has_parent(Prim.has_type("Cube")), ["/World/Prop/Deep"]),
    (Prim.has_parent(Prim.has_path("/")), []),
    (Prim.has_ancestor(Prim.has_type("Xform")), WORLD[1:]),
    (Prim.has_kind("component"), ["/World/Prop"]),
    (Prim.has_kind("model"), []),
    (Prim.has_purpose("proxy"), ["/World/Prop", "/World/Prop/Deep"]),
    (Prim.has_metadata("kind"), ["/World", "/World/Prop"]),
    (Prim.has_metadata("customData:tool:version"), ["/World"]),
    (Prim.has_metadata("customData:tool:none"), []),
    (Prim.has_metadata("apiSchemas"), ["/World/Body"]),
    (Prim.has_property(Property.has_name("mine:own")), ["/World/Body"]),
    (Prim.has_property(Property.has_name("radius")), ["/World/Ball", "/World/Prop/Deep"]),
    (Prim.has_property(Property.and_(Property.has_name("radius"), Property.is_authored())), ["/World/Ball"]),
]  # fmt: skip


@pytest.mark.parametrize(("predicate", "expected"), PRIMS, ids=[repr(predicate) for predicate, _ in PRIMS])
def test_prim_predicates(stage: Stage, predicate: Prim, expected: list[str]) -> None:
    found = select(stage, predicate, prim_metadata_paths=["specifier"])
    assert sorted(path for path, names in found.items() if "usd-metadata:specifier" in names) == expected


PROPERTIES = [
    (Property.none(), set()),
    (Property.has_name("size", "friend"), {"size", "friend"}),
    (Property.in_namespace("mine"), set()),
    (Property.is_relationship(), {"friend"}),
    (Property.is_authored(), {"size", "friend", "purpose", "points"}),
    (Property.has_metadata("interpolation"), {"points"}),
    (Property.and_(Property.is_attribute(), Property.is_authored()), {"size", "purpose", "points"}),
    (Property.and_(Property.is_authored(), Property.not_(Property.has_name("size"))), {"friend", "purpose", "points"}),
    (Property.or_(Property.has_name("size"), Property.has_name("purpose")), {"size", "purpose"}),
    (Property.declared_by_schema("Imageable"), {"visibility", "purpose"}),
    (Property.and_(Property.declared_by_schema("Cube"), Property.is_authored()), {"size", "purpose"}),
    (Property.declared_by_schema("NoSuchSchema"), set()),
]  # fmt: skip


@pytest.mark.parametrize(("predicate", "expected"), PROPERTIES, ids=[repr(predicate) for predicate, _ in PROPERTIES])
def test_property_predicates(stage: Stage, predicate: Property, expected: set[str]) -> None:
    assert select(stage, Prim.has_path("/World/Prop"), predicate)["/World/Prop"] - BARE == expected


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (Property.in_namespace("mine", "unknown"), {"mine:own", "unknown:word"}),
        (Property.is_custom(), {"mine:own"}),
        (Property.and_(Property.declared_by_schema("PhysicsDriveAPI"), Property.in_namespace("drive:linear")),
         {f"drive:linear:physics:{name}" for name in DRIVE}),
        (Property.declared_by_schema("PhysicsDriveAPI:angular"), set()),
    ],
    ids=["namespace", "custom", "template", "instance"],
)  # fmt: skip
def test_property_predicates_of_applied_schemas(stage: Stage, predicate: Property, expected: set[str]) -> None:
    assert select(stage, Prim.has_path("/World/Body"), predicate)["/World/Body"] - BARE - {"usd-schemas"} == expected


def test_instance_names_of_schemas_may_have_several_parts(stage: Stage) -> None:
    scene = usda(
        'def "A" (\n    apiSchemas = ["CollectionAPI:mine:first"]\n)\n'
        "{\n    rel collection:mine:first:includes = </A>\n}\n",
        'def "B" (\n    apiSchemas = ["CollectionAPI:mineral"]\n)\n{\n}\n',
    )
    selector = Prim.has_applied_schema_in_namespace("CollectionAPI:mine", "Collection")
    found = select(stage, selector, Property.declared_by_schema("CollectionAPI"), scene=scene)
    assert set(found) == {"/", "/A"}
    assert "collection:mine:first:includes" in found["/A"]


def test_path_predicates_never_match_inside_an_instance(stage: Stage) -> None:
    scene = usda(
        'def Xform "Part"\n{\n    def Cube "Box"\n    {\n    }\n}\n',
        'def Xform "Copy" (\n    instanceable = true\n    references = </Part>\n)\n{\n}\n',
    )
    found = select(stage, Prim.has_path("/Copy/Box", "/Copy", "/Part/Box"), scene=scene)
    assert set(found) == {"/", "/Copy", "/Part", "/Part/Box", "/__Prototype_1"}
    with Stage() as other:
        assert "/Copy/Box" not in select(other, Prim.is_under_path("/"), scene=scene)


# --- domains ----------------------------------------------------------------------------------------------------------

PHYSICS = usda("""
def Xform "World" (
    prepend apiSchemas = ["MaterialBindingAPI"]
)
{
    rel material:binding:physics = </World/Rubber>

    def PhysicsScene "Physics"
    {
    }

    def Material "Rubber" (
        prepend apiSchemas = ["PhysicsMaterialAPI"]
    )
    {
    }

    def Material "Paint"
    {
        token outputs:surface.connect = </World/Paint/Shader.outputs:surface>

        def Shader "Shader"
        {
            token outputs:surface
        }
    }

    def Xform "Robot" (
        prepend apiSchemas = ["PhysicsRigidBodyAPI"]
    )
    {
        def Mesh "Skin"
        {
        }

        def Mesh "Hull" (
            prepend apiSchemas = ["PhysicsCollisionAPI", "MaterialBindingAPI"]
        )
        {
            rel material:binding = </World/Paint>

            def GeomSubset "Side"
            {
                int[] indices = [0]
            }
        }

        def Mesh "Painted" (
            prepend apiSchemas = ["PhysicsCollisionAPI", "MaterialBindingAPI"]
        )
        {
            rel material:binding:physics = </World/Paint>
        }
    }

    def PhysicsRevoluteJoint "Joint"
    {
        rel physics:body0 = </World/Robot>
    }
}
""")


def domain(stage: Stage, domains: int, scene: str = PHYSICS) -> dict[str, set[str]]:
    population.open_usd_from_string(stage, scene, domains=domains)
    return attributes(stage)


def test_physics_takes_physics_and_what_is_above_it(stage: Stage) -> None:
    found = domain(stage, PopulationDomain.PHYSICS)
    assert set(found) == {
        "/", "/World", "/World/Physics", "/World/Rubber", "/World/Robot", "/World/Robot/Hull", "/World/Robot/Hull/Side",
        "/World/Robot/Painted", "/World/Joint",
    }  # fmt: skip
    assert found["/World"] == BARE | {"usd-schemas"}
    assert {"physics:velocity", "physics:angularVelocity"} <= found["/World/Robot"]
    assert "indices" in found["/World/Robot/Hull/Side"]
    assert {"usd-metadata:metersPerUnit", "usd-metadata:upAxis"} <= found["/"]
    assert "omni:fabric:worldMatrix" in found["/World/Robot/Hull"]


def test_physics_takes_the_instancers_of_bodies(stage: Stage) -> None:
    scene = usda(
        'def "Parts"\n{\n    def Cube "Body" (\n        apiSchemas = ["PhysicsRigidBodyAPI"]\n    )\n    {\n    }\n'
        '    def Cube "Stone"\n    {\n    }\n}\n',
        'def PointInstancer "Bodies"\n{\n    rel prototypes = [</Parts/Body>, </Gone>]\n'
        "    int[] protoIndices = [0]\n}\n",
        'def PointInstancer "Stones"\n{\n    rel prototypes = </Parts/Stone>\n    int[] protoIndices = [0]\n}\n',
    )
    found = domain(stage, PopulationDomain.PHYSICS, scene)
    assert set(found) == {"/", "/Parts", "/Parts/Body", "/Bodies"}
    assert {"prototypes", "protoIndices"} <= found["/Bodies"]


def test_rendering_leaves_physics_out(stage: Stage) -> None:
    found = domain(stage, PopulationDomain.RENDERING)
    assert "/World/Physics" not in found
    assert "/World/Joint" not in found
    assert not [name for names in found.values() for name in names if "physics:" in name or name.endswith(":physics")]
    assert "outputs:surface.connect" in found["/World/Paint"]
    assert "material:binding" in found["/World/Robot/Hull"]


def test_all_is_both_and_has_drives_only_where_they_are_applied(stage: Stage) -> None:
    found = domain(stage, PopulationDomain.ALL)
    both = [domain_of(PopulationDomain.RENDERING), domain_of(PopulationDomain.PHYSICS)]
    for path, names in found.items():
        assert names - {"material:binding:physics"} == set().union(*(each.get(path, set()) for each in both)) - {
            "material:binding:physics"  # of what only carries the binding: authored there, and bare under PHYSICS
        }
    assert not [name for name in found["/World/Joint"] if name.startswith("drive:")]


def domain_of(domains: int) -> dict[str, set[str]]:
    with Stage() as stage:
        return domain(stage, domains)


def test_colliders_have_the_material_that_holds_for_physics(stage: Stage) -> None:
    found = domain(stage, PopulationDomain.PHYSICS)
    assert [path for path, names in found.items() if "material:binding:physics" in names] == [
        "/World/Robot", "/World/Robot/Hull"
    ]  # fmt: skip
    with PathDictionary(stage) as names, names.create_path_list_from_strings(["/World/Robot/Hull"]) as paths:
        with stage.query_from_path_list(paths) as query:
            target = stage.read(query, ["material:binding:physics"])["material:binding:physics"].row(0)
        assert names.path_to_string(int(target[0])) == "/World/Rubber"


@pytest.mark.parametrize("domains", [PopulationDomain.NONE, 1 << 20], ids=["none", "unknown"])
def test_no_domain_and_no_selector_populate_nothing(stage: Stage, domains: int) -> None:
    assert domain(stage, domains) == {}


# --- metadata ---------------------------------------------------------------------------------------------------------


def value(stage: Stage, path: str, attribute: str) -> object:
    with PathDictionary(stage) as names, names.create_path_list_from_strings([path]) as paths:
        with stage.query_from_path_list(paths) as query:
            found = stage.read(query, [attribute])[attribute].row(0)
        is_text = found.dtype == np.uint64
        return [names.token_to_string(int(each)) for each in found.ravel()] if is_text else found.tolist()


def test_prim_metadata_is_flattened_below_a_dictionary(stage: Stage) -> None:
    found = select(stage, Prim.all(), prim_metadata_paths=["kind", "customData", "apiSchemas"])
    assert {name for name in found["/World"] if name.startswith("usd-metadata:")} == {
        "usd-metadata:kind", "usd-metadata:customData:note", "usd-metadata:customData:tool:version",
        "usd-metadata:customData:tool:beta",
    }  # fmt: skip
    assert value(stage, "/World", "usd-metadata:kind") == ["assembly"]
    assert value(stage, "/World", "usd-metadata:customData:note") == ["hello"]
    assert value(stage, "/World", "usd-metadata:customData:tool:version") == 3
    assert value(stage, "/World", "usd-metadata:customData:tool:beta") is True
    assert value(stage, "/World/Body", "usd-metadata:apiSchemas") == [
        "PhysicsRigidBodyAPI", "PhysicsDriveAPI:linear", "UnknownAPI"
    ]  # fmt: skip
    assert value(stage, "/World/Body", "usd-schemas") == ["PhysicsRigidBodyAPI", "PhysicsDriveAPI:linear"]


def test_property_metadata_belongs_to_the_properties_of_the_selector(stage: Stage) -> None:
    found = select(
        stage, Prim.has_path("/World/Prop"), Property.has_name("points"), property_metadata_paths=["interpolation"]
    )
    assert found["/World/Prop"] - BARE == {"points", "points:usd-metadata:interpolation"}
    assert value(stage, "/World/Prop", "points:usd-metadata:interpolation") == ["vertex"]


def test_stage_metadata_lies_on_the_root(stage: Stage) -> None:
    desc = Desc(stage_metadata_paths=["timeCodesPerSecond", "customLayerData", "nonsense"])
    population.open_usd_from_string_with_desc(stage, SCENE, 1, float("nan"), [desc])
    assert attributes(stage) == {"/": {"usd-metadata:timeCodesPerSecond", "usd-metadata:customLayerData:tool:name"}}
    assert value(stage, "/", "usd-metadata:timeCodesPerSecond") == 24


def test_units_are_published_with_their_fallbacks(stage: Stage) -> None:
    select(stage, Prim.none())
    assert value(stage, "/", "usd-metadata:metersPerUnit") == 0.01
    assert value(stage, "/", "usd-metadata:upAxis") == ["Y"]


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selector", "code", "text"),
    [
        (Selector(Prim.has_path("World")), ErrorCode.INVALID_ARGUMENT, "'World' is not the path of a prim"),
        (Selector(Prim.is_under_path("/A.size")), ErrorCode.INVALID_ARGUMENT, "'/A.size' is not the path of a prim"),
        (Selector(Prim.has_path("/A{v=x}B")), ErrorCode.INVALID_ARGUMENT, "is not the path of a prim"),
        (Selector(Prim.has_metadata("a::b")), ErrorCode.INVALID_ARGUMENT, "'a::b' has an empty component"),
        (Selector(prim_metadata_paths=[":a"]), ErrorCode.INVALID_ARGUMENT, "':a' has an empty component"),
        (Selector(property_metadata_paths=["a:"]), ErrorCode.INVALID_ARGUMENT, "'a:' has an empty component"),
    ],
)
def test_what_a_description_cannot_mean_is_refused_at_once(
    stage: Stage, selector: Selector, code: ErrorCode, text: str
) -> None:
    with pytest.raises(OvstageError, match=text) as caught:
        population.open_usd_from_string_with_desc_async(stage, SCENE, 1, 0.0, Desc(selectors=[selector]))
    assert caught.value.code == code


def test_deep_and_wide_predicates_are_refused(stage: Stage) -> None:
    deep = Prim.all()
    for _ in range(70):
        deep = Prim.not_(deep)
    wide = Prim.or_(*[Prim.all()] * 5000)
    for predicate, text in ((deep, "64 deep"), (wide, "4096 are followed")):
        with pytest.raises(OvstageError, match=text) as caught:
            select(stage, predicate)
        assert caught.value.code == ErrorCode.NOT_SUPPORTED


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Prim(99), ValueError, "PrimPredicateKind"),
        (lambda: Prim(PropertyPredicateKind.ALL), TypeError, "kind must be a PrimPredicateKind"),
        (lambda: Property(PrimPredicateKind.ALL), TypeError, "kind must be a PropertyPredicateKind"),
        (lambda: Prim(PrimPredicateKind.HAS_TYPE), TypeError, "takes strings, got none"),
        (lambda: Prim(PrimPredicateKind.ALL, ["a"]), TypeError, "takes no operands, got strings"),
        (lambda: Prim(PrimPredicateKind.NOT, (), [Prim.all()] * 2), TypeError, "takes one of subpredicates"),
        (lambda: Prim.has_type(), ValueError, "at least one string"),
        (lambda: Prim.has_type(""), ValueError, "non-empty"),
        (lambda: Prim.has_type(3), TypeError, "takes strings, got 3"),
        (lambda: Prim.and_(), ValueError, "at least one PrimPredicate"),
        (lambda: Prim.and_(Property.all()), TypeError, "takes PrimPredicates"),
        (lambda: Prim.has_property(Prim.all()), TypeError, "takes a PropertyPredicate"),
        (lambda: Selector(Property.all()), TypeError, "prim_predicate must be a PrimPredicate"),
        (lambda: Selector(prim_metadata_paths="kind"), TypeError, "single string"),
        (lambda: Selector(prim_metadata_paths=[""]), ValueError, "non-empty"),
        (lambda: Desc(selectors=[Prim.all()]), TypeError, r"selectors\[0\] must be a Selector"),
        (lambda: Desc(-1), ValueError, "domains"),
        (lambda: Desc(1.0), TypeError, "domains"),
        (lambda: Desc(2**32), ValueError, "uint32"),
        (lambda: setattr(Prim.all(), "kind", 1), AttributeError, "is immutable"),
        (lambda: delattr(Desc(), "domains"), AttributeError, "is immutable"),
    ],
)
def test_descriptions_judge_their_arguments(make: Callable[[], object], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()


def test_a_description_that_is_none_is_named(stage: Stage) -> None:
    with pytest.raises(TypeError, match=r"descs\[0\] must be a Desc"):
        population.open_usd_from_string_with_desc(stage, SCENE, 1, 0.0, [Prim.all()])
    with pytest.raises(TypeError, match="descs"):
        population.open_usd_from_string_with_desc(stage, SCENE, 1, 0.0, 5)


def test_predicates_show_what_they_ask() -> None:
    assert repr(Prim.and_(Prim.has_type("A", "B"), Prim.all())) == (
        "PrimPredicate.AND(PrimPredicate.HAS_TYPE('A', 'B'), PrimPredicate.ALL())"
    )
    assert Prim.has_schema("A", "B").strings == ("A", "B")
    assert Prim.has_schema("A").kind is PrimPredicateKind.HAS_SCHEMA


# --- instances --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("domains", [PopulationDomain.RENDERING, PopulationDomain.ALL])
def test_instances_know_their_prototype_and_follow_edits(stage: Stage, domains: PopulationDomain) -> None:
    scene = usda(
        'def Xform "Source"\n{\n    def Cube "Box"\n    {\n    }\n}\n',
        *(
            f'def Xform "Instance{name}" (\n    instanceable = true\n    references = </Source>\n)\n{{\n}}\n'
            for name in "AB"
        ),
    )
    population.open_usd_from_string(stage, scene, domains=domains)
    (root,) = instancing.get_prototype_roots(stage)
    assert root.startswith("/__Prototype_")
    assert instancing.get_prototype_root(stage, "/InstanceA") == root
    assert sorted(instancing.get_instance_roots(stage, root)) == ["/InstanceA", "/InstanceB"]
    population.reset_usd(stage)
    population.apply_usd_changes(stage, 2)
    assert instancing.get_prototype_roots(stage) == []
