"""Matrices are those of USD, whichever ops a prim has; the collector is left as it was."""

from __future__ import annotations

import gc
import random
from itertools import permutations

import pytest

np = pytest.importorskip("numpy", reason="numpy is not installed")
pytest.importorskip("pxr.Usd", reason="usd-core is not installed")

from pxr import Gf, Sdf, Usd, UsdGeom  # noqa: E402

from ovstage import PathDictionary, PopulationDomain, Stage  # noqa: E402
from ovstage.population import open_usd_from_string  # noqa: E402
from ovstage.population.collector import paused  # noqa: E402

TYPES = Sdf.ValueTypeNames
RESET = "!resetXformStack!"


def vector(chance: random.Random, kind: type) -> object:
    return kind(*(chance.uniform(-3, 3) for _ in range(3)))


def quaternion(chance: random.Random, kind: type) -> object:
    """Of any length, the zero and those without an imaginary part included."""
    size = chance.choice([0, 0.2, 1, 4])
    imaginary = chance.choice([0, 1e-12, 1]) * size
    return kind(chance.uniform(-1, 1) * size, *(chance.uniform(-1, 1) * imaginary for _ in range(3)))


def matrix(chance: random.Random) -> Gf.Matrix4d:
    return Gf.Matrix4d(*(chance.uniform(-2, 2) for _ in range(16)))


OPS = {
    "xformOp:translate": [
        (TYPES.Double3, lambda chance: vector(chance, Gf.Vec3d)),
        (TYPES.Float3, lambda chance: vector(chance, Gf.Vec3f)),
        (TYPES.Color3f, lambda chance: vector(chance, Gf.Vec3f)),
    ],
    "xformOp:translate:pivot": [(TYPES.Double3, lambda chance: vector(chance, Gf.Vec3d))],
    "xformOp:scale": [
        (TYPES.Float3, lambda chance: vector(chance, Gf.Vec3f)),
        (TYPES.Half3, lambda chance: vector(chance, Gf.Vec3h)),
    ],
    "xformOp:orient": [
        (TYPES.Quatd, lambda chance: quaternion(chance, Gf.Quatd)),
        (TYPES.Quatf, lambda chance: quaternion(chance, Gf.Quatf)),
        (TYPES.Quath, lambda chance: quaternion(chance, Gf.Quath)),
    ],
    "xformOp:transform": [(TYPES.Matrix4d, matrix)],
    "xformOp:rotateX": [(TYPES.Float, lambda chance: chance.uniform(-400, 400))],
    "xformOp:rotateY:spin": [(TYPES.Double, lambda chance: chance.uniform(-400, 400))],
    "xformOp:rotateZ": [(TYPES.Half, lambda chance: chance.choice([0, 90, 180, -90, 450, 12.5]))],
    **{
        f"xformOp:rotate{''.join(axes)}": [
            (TYPES.Float3, lambda chance: vector(chance, Gf.Vec3f) * 90),
            (TYPES.Double3, lambda chance: vector(chance, Gf.Vec3d) * 90),
        ]
        for axes in permutations("XYZ")
    },
    "xformOp:translateX": [(TYPES.Double, lambda chance: chance.uniform(-3, 3))],
}


def scene(chance: random.Random, prims: int) -> Usd.Stage:
    """Prims with every sort of order: empty, inverse, reset, with ops that are missing or listed twice."""
    stage = Usd.Stage.CreateInMemory()
    paths = ["/P0"]
    for number in range(1, prims):
        paths.append(f"{chance.choice(['', paths[chance.randrange(len(paths))]])}/P{number}")
    for path in paths:
        prim = stage.DefinePrim(path, chance.choice(["Xform", "Cube", "Scope"]))
        order = chance.choices(list(OPS), k=chance.randrange(4))
        for name in order:
            type_name, value = chance.choice(OPS[name])
            if chance.random() < 0.95 and not prim.HasAttribute(name):
                prim.CreateAttribute(name, type_name, custom=False).Set(value(chance))
        if chance.random() < 0.1 and order:
            order.append("!invert!" + order[0])
        if chance.random() < 0.2:
            order.insert(chance.choice([0, 0, len(order)]), RESET)
        if chance.random() < 0.9:
            prim.CreateAttribute("xformOpOrder", TYPES.TokenArray, custom=False).Set(order)
    return stage


@pytest.mark.parametrize("seed", range(8))
def test_matrices_are_those_of_usd(stage: Stage, seed: int) -> None:
    usd = scene(random.Random(seed), 120)
    open_usd_from_string(stage, usd.GetRootLayer().ExportToString(), domains=PopulationDomain.ALL)
    stage.advance_write_floor(1).wait()
    cache = UsdGeom.XformCache()
    for prim in usd.Traverse():
        if not prim.IsA("Xformable"):
            continue
        local, resets = cache.GetLocalTransformation(prim)
        world = cache.GetLocalToWorldTransform(prim)
        with PathDictionary(stage) as names, names.create_path_list_from_strings([str(prim.GetPath())]) as paths:
            with stage.query_from_path_list(paths) as query:
                found = stage.read(query, ["omni:xform", "omni:resetXformStack", "omni:fabric:worldMatrix"])
        np.testing.assert_allclose(found["omni:xform"].row(0).reshape(4, 4), np.array(local), rtol=1e-12, atol=1e-12)
        assert bool(found["omni:resetXformStack"].row(0)) == resets
        size = max(1.0, float(np.abs(np.array(world)).max()))
        np.testing.assert_allclose(
            found["omni:fabric:worldMatrix"].row(0).reshape(4, 4) / size, np.array(world) / size, atol=1e-12
        )


@pytest.mark.filterwarnings("error")
def test_infinite_values_stay_with_the_numbers_that_they_concern(stage: Stage) -> None:
    usd = """#usda 1.0
def Xform "Top"
{
    double3 xformOp:translate = (inf, 2, 3)
    uniform token[] xformOpOrder = ["xformOp:translate"]
    def Xform "Own"
    {
        double3 xformOp:translate = (1, -inf, 3)
        uniform token[] xformOpOrder = ["!resetXformStack!", "xformOp:translate"]
    }
    def Xform "Under"
    {
        double xformOp:rotateX = inf
        uniform token[] xformOpOrder = ["xformOp:rotateX"]
    }
}
"""
    open_usd_from_string(stage, usd)
    stage.advance_write_floor(1).wait()
    with PathDictionary(stage) as names, names.create_path_list_from_strings(["/Top", "/Top/Own"]) as paths:
        with stage.query_from_path_list(paths) as query:
            found = stage.read(query, ["omni:xform", "omni:fabric:worldMatrix"])
    local, world = found["omni:xform"], found["omni:fabric:worldMatrix"]
    for row in (0, 1):
        np.testing.assert_array_equal(world.row(row), local.row(row))
    assert local.row(0)[12:].tolist() == [np.inf, 2, 3, 1]


def test_the_collector_runs_again_after_the_last_of_several_readings() -> None:
    assert gc.isenabled()
    with paused():
        with paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_collector_stays_off_where_the_caller_turned_it_off() -> None:
    gc.disable()
    try:
        with paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
