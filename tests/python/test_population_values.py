"""Every USD value type, scalar and array: which column it becomes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from children import run_python

from ovstage import AttributeSemantic, PathDictionary, PopulationDomain, Stage
from ovstage.columns import Column
from ovstage.population import open_usd

np = pytest.importorskip("numpy", reason="numpy is not installed")
pytest.importorskip("pxr.Usd", reason="usd-core is not installed")

NONE, POINT, NORMAL, VECTOR = (AttributeSemantic[name] for name in ("NONE", "POINT", "NORMAL", "VECTOR"))
COLOR, TEXTURE, QUATERNION = AttributeSemantic.COLOR, AttributeSemantic.TEXTURE_COORDINATE, AttributeSemantic.QUATERNION
ROWS4 = "((1, 2, 3, 4), (5, 6, 7, 8), (9, 10, 11, 12), (13, 14, 15, 16))"
NUMBERS = [
    ("bool", "true", "bool", True, NONE),
    ("uchar", "200", "uint8", 200, NONE),
    ("int", "-7", "int32", -7, NONE),
    ("int64", "-5000000000", "int64", -5_000_000_000, NONE),
    ("uint", "4000000000", "uint32", 4_000_000_000, NONE),
    ("uint64", "18446744073709551615", "uint64", 2**64 - 1, NONE),
    ("half", "0.5", "float16", 0.5, NONE),
    ("float", "1.5", "float32", 1.5, NONE),
    ("double", "0.1", "float64", 0.1, NONE),
    ("timecode", "12", "float64", 12, AttributeSemantic.TIME_CODE),
    *[(f"half{n}", str((1.0, 2.0, 3.0, 4.0)[:n]), "float16", [1, 2, 3, 4][:n], NONE) for n in (2, 3, 4)],
    *[(f"float{n}", str((1.0, 2.0, 3.0, 4.0)[:n]), "float32", [1, 2, 3, 4][:n], NONE) for n in (2, 3, 4)],
    *[(f"double{n}", str((1.0, 2.0, 3.0, 4.0)[:n]), "float64", [1, 2, 3, 4][:n], NONE) for n in (2, 3, 4)],
    *[(f"int{n}", str((1, -2, 3, -4)[:n]), "int32", [1, -2, 3, -4][:n], NONE) for n in (2, 3, 4)],
    *[
        (f"{role}3{letter}", "(1, 2, 3)", dtype, [1, 2, 3], semantic)
        for role, semantic in (("point", POINT), ("normal", NORMAL), ("vector", VECTOR), ("color", COLOR))
        for letter, dtype in (("h", "float16"), ("f", "float32"), ("d", "float64"))
    ],
    *[
        (f"{role}{n}{letter}", str((1, 2, 3, 4)[:n]), dtype, [1, 2, 3, 4][:n], semantic)
        for role, n, semantic in (("color", 4, COLOR), ("texCoord", 2, TEXTURE), ("texCoord", 3, TEXTURE))
        for letter, dtype in (("h", "float16"), ("f", "float32"), ("d", "float64"))
    ],
    # USD writes the real part first, and stores it last
    *[
        (f"quat{letter}", "(4, 1, 2, 3)", dtype, [1, 2, 3, 4], QUATERNION)
        for letter, dtype in (("h", "float16"), ("f", "float32"), ("d", "float64"))
    ],
    ("matrix2d", "((1, 2), (3, 4))", "float64", [1, 2, 3, 4], AttributeSemantic.MATRIX),
    ("matrix3d", "((1, 2, 3), (4, 5, 6), (7, 8, 9))", "float64", list(range(1, 10)), AttributeSemantic.MATRIX),
    ("matrix4d", ROWS4, "float64", list(range(1, 17)), AttributeSemantic.MATRIX),
    ("frame4d", ROWS4, "float64", list(range(1, 17)), AttributeSemantic.FRAME),
]
TEXTS = """
    token word = "hello"
    token nothing = ""
    token silent
    token[] words = ["a", "", "b", "a"]
    token[] wordless = []
    string text = "hello"
    string[] texts = ["b", "a"]
    asset picture = @./picture.png@
    asset blank = @@
    asset[] pictures = [@./picture.png@, @@, @here.txt@]
    pathExpression where = "/World//"
    pathExpression[] wheres = ["/World//", "/Other"]
    rel friend = </World/B>
    rel friends = [</World/B>, </World/Gone>, </World/B.spot>, </World>]
    rel friendless = []
    rel unset
    float wired = 3
    float wired.connect = </World/B.spot>
    float3[] plugged.connect = [</World/B.spot>, </World/A.wired>]
"""


DEVIATING = """#usda 1.0
def Mesh "Mesh"
{
    float3[] extent = [(-1, -2, -3), (1, 2, 3)]
    normal3f[] normals = [(0, 0, 1)]
}

def Points "Points"
{
    normal3f[] normals = [(0, 0, 1)]
}

def BasisCurves "Curves"
{
    normal3f[] normals = [(0, 0, 1)]
}

def SphereLight "Light" (
    prepend apiSchemas = ["ShadowAPI"]
)
{
    color3f inputs:color = (1, 0.5, 0)
}

def Scope "Plain"
{
    color3f inputs:color = (1, 0.5, 0)
    color3f inputs:shadow:color = (1, 0.5, 0)
}

def "Bare"
{
    float3[] extent = [(-1, -2, -3), (1, 2, 3)]
}
"""


def values_scene() -> str:
    lines = [f"{kind} one:{kind} = {literal}" for kind, literal, *_ in NUMBERS]
    lines += [f"{kind}[] many:{kind} = [{literal}, {literal}]" for kind, literal, *_ in NUMBERS]
    lines += [f"{kind}[] no:{kind} = []" for kind, *_ in NUMBERS]
    body = "\n".join(lines) + TEXTS
    return f'#usda 1.0\ndef Scope "World"\n{{\ndef "A"\n{{\n{body}\n}}\ndef "B"\n{{\npoint3f spot = (1, 2, 3)\n}}\n}}\n'


class Opened:
    """A populated, sealed stage that is asked about one attribute of one prim."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.names = PathDictionary(stage)

    def column(self, path: str, attribute: str) -> Column | None:
        with (
            self.names.create_path_list_from_strings([path]) as paths,
            self.stage.query_from_path_list(paths) as query,
        ):
            return self.stage.read(query, [attribute]).get(attribute)

    def texts(self, ids: np.ndarray) -> list[str]:
        return [self.names.token_to_string(int(number)) for number in ids.ravel()]

    def paths(self, ids: np.ndarray) -> list[str]:
        return [self.names.path_to_string(int(number)) for number in ids.ravel()]


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    yield from opened(tmp_path_factory.mktemp("values"), values_scene())


@pytest.fixture(scope="module")
def deviating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    yield from opened(tmp_path_factory.mktemp("deviating"), DEVIATING)


def opened(folder: Path, content: str) -> Iterator[Opened]:
    path = folder / "scene.usda"
    path.write_text(content)
    with Stage() as stage:
        report = open_usd(stage, path, domains=PopulationDomain.ALL)
        assert not report.skipped
        stage.advance_write_floor(1).wait()
        yield Opened(stage)


@pytest.mark.parametrize(("kind", "literal", "dtype", "expected", "semantic"), NUMBERS)
def test_a_number_keeps_type_value_and_role(
    values: Opened, kind: str, literal: str, dtype: str, expected: object, semantic: AttributeSemantic
) -> None:
    found = values.column("/World/A", f"one:{kind}")
    assert (found.values.dtype, found.offsets, found.semantic) == (dtype, None, semantic)
    assert np.array_equal(found.row(0), expected)


@pytest.mark.parametrize(("kind", "literal", "dtype", "expected", "semantic"), NUMBERS)
def test_an_array_has_the_type_and_the_role_of_its_elements(
    values: Opened, kind: str, literal: str, dtype: str, expected: object, semantic: AttributeSemantic
) -> None:
    found = values.column("/World/A", f"many:{kind}")
    assert (found.values.dtype, found.offsets.tolist(), found.semantic) == (dtype, [0, 2], semantic)
    assert np.array_equal(found.row(0), [expected, expected])


@pytest.mark.parametrize("kind", [kind for kind, *_ in NUMBERS])
def test_an_empty_array_is_a_value(values: Opened, kind: str) -> None:
    found = values.column("/World/A", f"no:{kind}")
    many = values.column("/World/A", f"many:{kind}")
    assert found.offsets.tolist() == [0, 0]
    assert (found.values.dtype, found.values.shape[1:]) == (many.values.dtype, many.values.shape[1:])


@pytest.mark.parametrize(
    ("attribute", "expected", "semantic"),
    [
        ("word", ["hello"], AttributeSemantic.TOKEN_ID),
        ("nothing", [""], AttributeSemantic.TOKEN_ID),
        ("words", ["a", "", "b", "a"], AttributeSemantic.TOKEN_ID),
        ("wordless", [], AttributeSemantic.TOKEN_ID),
        ("text", ["hello"], NONE),
        ("texts", ["b", "a"], NONE),
        ("where", ["/World//"], AttributeSemantic.PATH_EXPRESSION_STRING),
        ("wheres", ["/World//", "/Other"], AttributeSemantic.PATH_EXPRESSION_STRING),
    ],
)
def test_texts_are_token_ids(values: Opened, attribute: str, expected: list[str], semantic: AttributeSemantic) -> None:
    found = values.column("/World/A", attribute)
    assert found.values.dtype == np.uint64
    assert values.texts(found.row(0)) == expected
    assert found.semantic == semantic


def test_the_empty_text_is_id_0_and_nothing_authored_is_no_row(values: Opened) -> None:
    assert values.column("/World/A", "nothing").row(0) == 0
    assert values.column("/World/A", "words").row(0)[1] == 0
    assert values.column("/World/A", "silent") is None


def test_an_asset_is_what_was_written_and_what_it_resolves_to(values: Opened, tmp_path: Path) -> None:
    found = values.column("/World/A", "picture")
    assert found.semantic == AttributeSemantic.ASSET_PATH_ID
    assert values.texts(found.row(0)) == ["./picture.png", ""]
    assert values.column("/World/A", "blank").row(0).tolist() == [0, 0]
    many = values.column("/World/A", "pictures")
    assert many.semantic == AttributeSemantic.ASSET_PATH_ID
    assert values.texts(many.row(0)) == ["./picture.png", "", "", "", "here.txt", ""]


def test_an_asset_that_exists_resolves(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "here.txt").write_text("here")
    path = tmp_path / "scene.usda"
    path.write_text('#usda 1.0\ndef "A"\n{\n    asset file = @./here.txt@\n}\n')
    open_usd(stage, path)
    stage.advance_write_floor(1).wait()
    opened = Opened(stage)
    assert opened.texts(opened.column("/A", "file").row(0)) == ["./here.txt", str(tmp_path / "here.txt")]


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ("friend", ["/World/B"]),
        ("friends", ["/World/B", "/World/Gone", "/World/B.spot", "/World"]),
        ("friendless", []),
    ],
)
def test_a_relationship_names_its_targets_as_authored(values: Opened, attribute: str, expected: list[str]) -> None:
    found = values.column("/World/A", attribute)
    assert found.semantic == AttributeSemantic.RELATIONSHIP_PATH_ID
    assert values.paths(found.row(0)) == expected


def test_a_relationship_that_was_only_declared_has_no_row(values: Opened) -> None:
    assert values.column("/World/A", "unset") is None


def test_a_connection_is_a_column_beside_the_value(values: Opened) -> None:
    assert values.column("/World/A", "wired").row(0) == 3
    found = values.column("/World/A", "wired.connect")
    assert found.semantic == AttributeSemantic.CONNECTION_PATH_ID
    assert (values.paths(found.row(0)[:, 0]), values.texts(found.row(0)[:, 1])) == (["/World/B"], ["spot"])
    several = values.column("/World/A", "plugged.connect").row(0)
    assert (values.paths(several[:, 0]), values.texts(several[:, 1])) == (["/World/B", "/World/A"], ["spot", "wired"])
    assert values.column("/World/A", "plugged") is None


def test_an_extent_is_six_doubles_where_it_bounds_something(deviating: Opened) -> None:
    found = deviating.column("/Mesh", "extent")
    assert (found.values.dtype, found.offsets, found.semantic) == (np.float64, None, NONE)
    assert found.row(0).tolist() == [-1, -2, -3, 1, 2, 3]
    plain = deviating.column("/Bare", "extent")
    assert (plain.values.dtype, plain.offsets.tolist()) == (np.float32, [0, 2])


@pytest.mark.parametrize(
    ("path", "attribute", "semantic"),
    [
        ("/Mesh", "normals", NORMAL),
        ("/Points", "normals", POINT),
        ("/Curves", "normals", POINT),
        ("/Light", "inputs:color", VECTOR),
        ("/Light", "inputs:shadow:color", VECTOR),
        ("/Plain", "inputs:color", COLOR),
        ("/Plain", "inputs:shadow:color", COLOR),
    ],
)
def test_a_few_schemas_choose_another_role(
    deviating: Opened, path: str, attribute: str, semantic: AttributeSemantic
) -> None:
    assert deviating.column(path, attribute).semantic == semantic


def test_registered_schemas_give_their_fallbacks(tmp_path: Path) -> None:
    """In a process of its own: schemas are registered before USD reads their definitions, and stay."""
    plugin = tmp_path / "resources"
    plugin.mkdir()
    (plugin / "plugInfo.json").write_text(
        """{"Plugins": [{"Name": "stageTest", "Type": "resource", "Root": ".", "ResourcePath": ".", "LibraryPath": "",
        "Info": {"Types": {"UsdStageTestAPI": {"alias": {"UsdSchemaBase": "StageTestAPI"},
        "autoGenerated": true, "bases": ["UsdAPISchemaBase"], "schemaKind": "singleApplyAPI"}}}}]}"""
    )
    (plugin / "generatedSchema.usda").write_text(
        '#usda 1.0\n(\n)\n\nclass "StageTestAPI" (\n    customData = {\n'
        '        token apiSchemaType = "singleApply"\n    }\n)\n{\n    uniform float stageTest:strength = 1.5\n}\n'
    )
    scene = tmp_path / "scene.usda"
    scene.write_text('#usda 1.0\ndef Cube "Body" (\n    apiSchemas = ["StageTestAPI"]\n)\n{\n}\n')
    program = (
        "import sys\n"
        "from ovstage import Filter, FilterOp, OvstageError, Predicate, Stage\n"
        "from ovstage.population import open_usd, register_usd_schemas\n"
        "register_usd_schemas([])\n"
        "for _ in range(2): register_usd_schemas([sys.argv[1]])\n"
        "stage = Stage()\n"
        "print(open_usd(stage, sys.argv[2]).skipped)\n"
        "stage.advance_write_floor(1).wait()\n"
        "body = Filter([Predicate('usd-path', FilterOp.IN, ['/Body'])])\n"
        "with stage.query(body) as query: found = stage.read(query, ['stageTest:strength'])\n"
        "print(found['stageTest:strength'].row(0))\n"
        "register_usd_schemas(sys.argv[1] + '/plugInfo.json')\n"
        "for wrong in ([sys.argv[3]], ['']):\n"
        "    try: register_usd_schemas(wrong)\n"
        "    except OvstageError as error: print(error.code, error.message)\n"
    )
    late = tmp_path / "late"
    late.mkdir()
    ran = run_python(program, str(plugin), str(scene), str(late))
    assert ran.returncode == 0, ran.stderr
    skipped, value, *refusals = ran.stdout.splitlines()
    assert (skipped, value) == ("[]", "1.5")
    assert "no readable plugin descriptor" in refusals[0]
    assert "paths[0] is empty" in refusals[1]


def test_schemas_that_come_too_late_are_refused(tmp_path: Path) -> None:
    (tmp_path / "plugInfo.json").write_text('{"Plugins": [{"Name": "lateOne", "Type": "resource", "Info": {}}]}')
    scene = tmp_path / "scene.usda"
    scene.write_text('#usda 1.0\ndef Cube "Body"\n{\n}\n')
    program = (
        "import sys\n"
        "from ovstage import OvstageError, Stage\n"
        "from ovstage.population import open_usd, register_usd_schemas\n"
        "open_usd(Stage(), sys.argv[1])\n"
        "try: register_usd_schemas(sys.argv[2])\n"
        "except OvstageError as error: print(error.code, error.message)\n"
    )
    ran = run_python(program, str(scene), str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    assert "came too late for lateOne" in ran.stdout
