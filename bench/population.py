"""Populating a stage from USD, against usd-core itself."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from measure import Effort, Row, shown, timed, undisturbed


def populating(effort: Effort) -> Iterator[Row]:
    """Reading and writing a scene of meshes, against asking usd-core for every value that arrives in the stage."""
    if not find_spec("pxr"):
        return
    from pxr import Usd

    from ovstage import PopulationDomain, Stage
    from ovstage.population import open_usd

    count, repeats = (2000, 3) if effort.quick else (10**5, 3)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "meshes.usdc")
        author(path, count)
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
    detail = f"{shown(median(ours))}, {shown(median(theirs))}"
    yield Row(f"populate {count:.0e} meshes: stage / usd-core", median(ours) / median(theirs), 1.5, detail=detail)


def author(path: str, count: int) -> None:
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
        world = layer.GetPrimAtPath("/World")
        for prim in (world, *world.nameChildren):
            prim.specifier, prim.typeName = Sdf.SpecifierDef, "Xform"
    layer.Save()
