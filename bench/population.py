"""Populating a stage from USD, against usd-core itself."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from measure import Effort, Row, shown, timed, undisturbed

if TYPE_CHECKING:
    from pxr.Sdf import Layer


def populating(effort: Effort) -> Iterator[Row]:
    """Reading and writing a scene, against asking usd-core for every value that arrives in the stage."""
    if not find_spec("pxr"):
        return
    share = 5 if effort.quick else 1
    for what, count, author in (
        ("simple prims", 10**5 // share, author_simple),
        ("meshes", 10**4 // share, author_meshes),
    ):
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "scene.usdc")
            author(path, count)
            ours, theirs = compare(path, 3)
            detail = f"{shown(median(ours))}, {shown(median(theirs))}"
            ratio = median(ours) / median(theirs)
            yield Row(f"populate {count:.0e} {what}: stage / usd-core", ratio, 1.5, detail=detail)
            if author is author_simple:
                yield following(path, count)
    yield from articulations()


def following(path: str, count: int) -> Row:
    """An edit of one prim, followed by the stage, against opening the scene."""
    from pxr import Gf, Usd

    from ovstage import PopulationDomain, Stage
    from ovstage.population import apply_usd_changes, open_usd

    with Stage("bench") as stage:
        opening = sum(open_usd(stage, path, domains=PopulationDomain.ALL).seconds.values())
        scene = Usd.Stage.Open(path)
        moved = scene.GetPrimAtPath(f"/World/G{count // 200}/P{count // 2}")
        edits = []
        for ordinal in range(2, 9):
            moved.GetAttribute("xformOp:translate").Set(Gf.Vec3d(ordinal, 0, 0))
            with undisturbed():
                edits.append(timed(lambda at=ordinal: apply_usd_changes(stage, at)))
    detail = f"{shown(median(edits))}, {shown(opening)}"
    return Row(f"follow an edit of one of {count:.0e} prims: apply / open", median(edits) / opening, 0.1, detail=detail)


def articulations() -> Iterator[Row]:
    """The largest scene of robots that newton ships, where newton is installed."""
    from ovstage import PopulationDomain, Stage
    from ovstage.population import open_usd

    found = find_spec("newton")
    if not (found and found.submodule_search_locations):
        return
    path = str(Path(found.submodule_search_locations[0]) / "tests" / "assets" / "ant_multi.usda")
    times = []
    for _ in range(7):
        with Stage("bench") as stage, undisturbed():
            times.append(timed(lambda on=stage: open_usd(on, path, domains=PopulationDomain.ALL)))
    yield Row("open ant_multi.usda of newton", median(times), 0.4, unit="s", detail=f"fastest {shown(min(times))}")


def compare(path: str, repeats: int) -> tuple[list[float], list[float]]:
    """Seconds of the stage and of usd-core, in turn."""
    from pxr import Usd

    from ovstage import PopulationDomain, Stage
    from ovstage.population import open_usd

    scene = Usd.Stage.Open(path)

    def ask() -> None:
        for prim in scene.Traverse():
            for attribute in prim.GetAttributes():
                attribute.Get()

    ours, theirs = [], []
    for _ in range(repeats):
        with undisturbed():
            theirs.append(timed(ask))
        with Stage("bench") as stage:
            seconds = open_usd(stage, path, domains=PopulationDomain.ALL).seconds
            ours.append(seconds["read"] + seconds["write"])
    return ours, theirs


def author_simple(path: str, count: int) -> None:
    """A layer of cubes and empty frames that are moved, turned and scaled, a hundred to a group."""
    from pxr import Gf, Sdf

    layer = Sdf.Layer.CreateNew(path)
    types = Sdf.ValueTypeNames
    order = ["xformOp:translate", "xformOp:orient", "xformOp:scale"]
    with Sdf.ChangeBlock():
        for i in range(count):
            prim = Sdf.CreatePrimInLayer(layer, f"/World/G{i // 100}/P{i}")
            prim.specifier, prim.typeName = Sdf.SpecifierDef, ("Xform", "Cube")[i % 2]
            for name, type_name, value in (
                ("xformOp:translate", types.Double3, (i, 0, 0)),
                ("xformOp:orient", types.Quatf, Gf.Quatf(0.5, 0.5, 0.5, 0.5)),
                ("xformOp:scale", types.Float3, (1, 2, 3)),
                ("xformOpOrder", types.TokenArray, order),
            ):
                Sdf.AttributeSpec(prim, name, type_name).default = value
        define_groups(layer)
    layer.Save()


def author_meshes(path: str, count: int) -> None:
    """A layer of meshes with eight attributes each, a hundred to a group."""
    from pxr import Sdf

    layer = Sdf.Layer.CreateNew(path)
    types = Sdf.ValueTypeNames
    with Sdf.ChangeBlock():
        for i in range(count):
            prim = Sdf.CreatePrimInLayer(layer, f"/World/G{i // 100}/P{i}")
            prim.specifier, prim.typeName = Sdf.SpecifierDef, "Mesh"
            for name, type_name, value in (
                ("points", types.Point3fArray, [(0, 0, 0)] * 8),
                ("faceVertexCounts", types.IntArray, [4] * 6),
                ("faceVertexIndices", types.IntArray, list(range(24))),
                ("xformOp:translate", types.Double3, (i, 0, 0)),
                ("xformOpOrder", types.TokenArray, ["xformOp:translate"]),
                ("mass", types.Float, 1.0),
                ("color", types.Color3f, (1, 0, 0)),
                ("label", types.Token, f"label{i % 50}"),
            ):
                Sdf.AttributeSpec(prim, name, type_name).default = value
        define_groups(layer)
    layer.Save()


def define_groups(layer: Layer) -> None:
    """Make frames of the prims above those that were authored."""
    from pxr import Sdf

    world = layer.GetPrimAtPath("/World")
    for prim in (world, *world.nameChildren):
        prim.specifier, prim.typeName = Sdf.SpecifierDef, "Xform"
