"""The scene: some ants of a file that has 64, dropped from a height, and what the stage says of them."""

from __future__ import annotations

import importlib.metadata
import math
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ovstage import PopulationDomain, Stage, StageConfig
from ovstage.population import open_usd

SHIPPED = "ant_multi.usda"
SPACING = 2.2  # metres between ants
LOADED = 1  # the ordinal of the scene as it was loaded; ticks follow
LOCAL, WORLD = "omni:xform", "omni:fabric:worldMatrix"
HISTORY = 64  # ordinals: how far back the judge and the reader may look

OVER = """\
    over "env_{number}"
    {{
      double3 xformOp:translate = ({x:.3f}, {y:.3f}, {z:.3f})
      quatd xformOp:orient = ({w:.6f}, {i:.6f}, {j:.6f}, 0)
    }}
"""
LAYER = """\
#usda 1.0
(
    subLayers = [@{file}@]
    defaultPrim = "World"
    metersPerUnit = 1
    upAxis = "Z"
)

over "World"
{{
  over "envs"
  {{
{overs}  }}
}}
"""


class SceneError(Exception):
    """A scene that cannot be used; the text says why, in one line."""


@dataclass(frozen=True)
class Shape:
    """A sphere or a capsule that is drawn, on one of the bodies."""

    body: int
    kind: str
    radius: float
    height: float
    """Of a capsule, without its caps."""
    axis: str
    local: np.ndarray
    """Its transform on the body, 4 by 4, for row vectors as in USD."""


def compose(layer: Path, ants: int) -> Path:
    """Write a layer over the shipped file: the first ants near each other, tilted, at different heights; no others.

    The stage and the solver both read this layer, so that they begin with the same.
    """
    chance, side = random.Random(4), math.ceil(ants**0.5)
    overs = []
    for number in range(ants):
        axis, half = chance.uniform(0, math.tau), chance.uniform(0, 0.45)
        overs.append(
            OVER.format(
                number=number,
                x=(number % side - (side - 1) / 2) * SPACING,
                y=(number // side - (side - 1) / 2) * SPACING,
                z=chance.uniform(0.5, 2.5),
                w=math.cos(half),
                i=math.sin(half) * math.cos(axis),
                j=math.sin(half) * math.sin(axis),
            )
        )
    overs += [f'    over "env_{number}" (active = false) {{}}\n' for number in range(ants, 64)]
    layer.parent.mkdir(parents=True, exist_ok=True)
    layer.write_text(LAYER.format(file=shipped_scene(), overs="".join(overs)))
    return layer


def shipped_scene() -> str:
    """The path of the file inside the installed newton package."""
    for file in importlib.metadata.files("newton") or []:
        if file.name == SHIPPED:
            return str(file.locate())
    raise SceneError(f"the installed newton package has no {SHIPPED}: pip install --no-deps 'newton>=1.8'")


class Scene:
    """A stage that holds the scene."""

    def __init__(self, layer: Path) -> None:
        self.stage = Stage("ants", config=StageConfig(history_ordinals=HISTORY))
        self.report = open_usd(self.stage, layer, LOADED, domains=PopulationDomain.ALL)
        self.stage.advance_write_floor(LOADED).wait()

    def __enter__(self) -> Scene:
        return self

    def __exit__(self, *_: object) -> None:
        self.stage.destroy()

    def parents(self, bodies: list[str]) -> np.ndarray:
        """Where the parents of the bodies are, (N, 4, 4): what stands still."""
        worlds = self._worlds()
        return np.stack([worlds[body.rpartition("/")[0]] for body in bodies])

    def shapes(self, bodies: list[str]) -> list[Shape]:
        """What is drawn of each body: spheres and capsules that are no guides."""
        tree, worlds = self.stage.tree(ordinal=LOADED), self._worlds()
        shapes = []
        for number, body in enumerate(bodies):
            to_body = np.linalg.inv(worlds[body])
            for path, prim in tree.items():
                if not path.startswith(f"{body}/") or prim.type not in ("Sphere", "Capsule"):
                    continue
                values = {name: prim.properties[name].value for name in prim.properties}
                if values.get("purpose") == "guide":
                    continue
                height, axis = float(values.get("height", 0)), values.get("axis", "Z")
                local = worlds[path] @ to_body
                shapes.append(Shape(number, prim.type, float(values["radius"]), height, axis, local))
        return shapes

    def _worlds(self) -> dict[str, np.ndarray]:
        """World transforms of all prims as they were loaded."""
        column = self.stage.read(self.stage.prims(), [WORLD], LOADED)[WORLD]
        matrices = column.values.reshape(-1, 4, 4)
        return {path: matrices[row] for row, path in enumerate(self.stage.prims()) if column.valid[row]}
