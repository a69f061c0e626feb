"""Prims are read together, and values become numbers, some thousands at a time: where the cuts fall changes nothing."""

from __future__ import annotations

from random import Random

import pytest

np = pytest.importorskip("numpy", reason="numpy is not installed")
pytest.importorskip("pxr.Usd", reason="usd-core is not installed")

from scenes import contents, usda  # noqa: E402

from ovstage import PopulationDomain, Stage  # noqa: E402
from ovstage.population import open_usd_from_string, reading, session  # noqa: E402

BODIES = (
    'custom token label = "a"\n    custom token[] labels = ["a", "b"]',
    'custom double label = 2\n    custom token[] labels = []\n    custom string note = "said"',
    "float3[] extent = [(0, 0, 0), (1, 1, 1)]\n    float[] widths = [1, 2, 3]",
    "float3[] extent = [(0, 0, 0)]\n    float[] widths = []",
    "rel friend = [</P0>, </P1>]\n    custom asset file = @a.png@\n    custom timecode[] times = [1, 2]",
    "custom float x = 3\n    custom float y.connect = </P0.x>\n    custom float y = 1",
    'double3 xformOp:translate = (1, 2, 3)\n    uniform token[] xformOpOrder = ["xformOp:translate"]',
    'float xformOp:rotateY = 30\n    uniform token[] xformOpOrder = ["!resetXformStack!", "xformOp:rotateY"]',
    "custom opaque nothing",
    "double size = 2\n    token visibility = None",
    "rel points = </P0>\n    token visibility = None",
    "point3f[] points = [(1, 2, 3)]\n    token visibility = None",
    "custom float mixed = 1\n    custom float other.connect = </P0.x>",
    "custom double mixed = 2\n    custom float other = 1",
    "custom rel mixed = </P1>\n    custom quatf other = (1, 0, 0, 0)",
    'custom opaque mixed\n    custom token other = "said"\n    custom token other.connect = </P0.label>',
)
SCHEMAS = ('prepend apiSchemas = ["PhysicsRigidBodyAPI", "UnknownAPI"]', "")
CHOOSE = Random(1)  # the same scene each time; many of its prims have the same names of other kinds
SCENE = usda(
    *(
        f'def {CHOOSE.choice(("Cube", "Points", "Xform", ""))} "P{number}" (\n    customData = {{ int n = {number} }}\n'
        f"    {CHOOSE.choice(SCHEMAS)}\n)"
        f"\n{{\n    {CHOOSE.choice(BODIES)}\n}}\n"
        for number in range(200)
    )
)


@pytest.mark.parametrize(("every", "least"), [(1, 1), (2, 1), (7, 2), (25, 3), (59, 1)])
def test_cuts_change_nothing(monkeypatch: pytest.MonkeyPatch, every: int, least: int) -> None:
    with Stage() as whole, Stage() as cut:
        expected = open_usd_from_string(whole, SCENE, domains=PopulationDomain.ALL)
        monkeypatch.setattr(reading, "_TOGETHER", every)
        monkeypatch.setattr(reading, "_PACK_LEAST", least)
        report = open_usd_from_string(cut, SCENE, domains=PopulationDomain.ALL)
        for stage in (whole, cut):
            stage.advance_write_floor(1).wait()
        assert contents(cut, 1) == contents(whole, 1)
        assert sorted(map(str, report.skipped)) == sorted(map(str, expected.skipped))
        for reason in ("does not fit", "it is a relationship where", "is not registered"):
            assert any(reason in str(skipped) for skipped in report.skipped)
        assert (report.columns, report.values, report.bytes) == (expected.columns, expected.values, expected.bytes)


def test_columns_are_in_the_order_of_the_prims(monkeypatch: pytest.MonkeyPatch) -> None:
    gathered = []

    def kept(*arguments: object) -> object:
        gathered.append(gather(*arguments))
        return gathered[-1]

    gather = session.gather
    monkeypatch.setattr(session, "gather", kept)
    with Stage() as stage:
        open_usd_from_string(stage, SCENE, domains=PopulationDomain.ALL)
    (scene,) = gathered
    assert len(scene.columns) > 20
    for column in scene.columns:
        rows, _ = column.packed
        assert (np.diff(rows) > 0).all(), column.name
