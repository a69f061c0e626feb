"""What of a stage is drawn: one ``Entity`` for all cubes, one for all spheres, never one for each prim.

rerun's viewer gives out at some thousand entities, and draws any number of instances of one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ovstage.viewer.poses import matrices

if TYPE_CHECKING:
    import numpy.typing as npt

    from ovstage.columns import Column
    from ovstage.tree import Tree

    Array = npt.NDArray[Any]

WORLD, LOCAL = "omni:fabric:worldMatrix", "omni:xform"
TYPE = "usd-prim-type"
SHAPE = (
    *(TYPE, "purpose", "visibility", "primvars:displayColor", "radius", "height", "axis", "size"),
    *("points", "widths", "faceVertexCounts", "faceVertexIndices", "orientation"),
    *("positions", "orientations", "scales", "protoIndices", "prototypes"),
)
"""A change of one of these attributes changes what is drawn. All else moves it."""

MESHES = 500
"""Of how many meshes that differ each is drawn. Equal ones are one. Of the others the boxes around are."""

COLOUR = "primvars:displayColor"
GAMMA = 2.2

PLAIN = (150, 165, 185)
"""The colour of what has none."""

DOT = 0.05
"""The radius of the sphere that stands for a prim with a transform and no type."""

_UPRIGHT = {"X": (0, 0.5**0.5, 0, 0.5**0.5), "Y": (-(0.5**0.5), 0, 0, 0.5**0.5), "Z": (0, 0, 0, 1)}
"""What turns the z axis, along which rerun has its capsules and cylinders, to the axis that USD names."""
_ALONG = {"X": (1, 0, 0), "Y": (0, 1, 0), "Z": (0, 0, 1)}


@dataclass
class Entity:
    """Prims that are drawn as one: their shapes, and where each gets its place from."""

    name: str
    prims: list[str]
    shape: Callable[[Any], Any]
    """Given the module ``rerun``: the archetype with a row per prim, or with one row for all."""
    offset: Array | None = None
    """A transform of each before that of the prim which moves it; ``None`` where there is none."""
    carriers: list[str] = field(default_factory=list)
    """The prim whose transform places each: itself, or the nearest one above that has a transform."""


@dataclass
class Cloud:
    """The points of one prim, which have no poses: they are shown where they are in the world."""

    carrier: str
    points: Array
    radii: Array | None
    colour: Array


def entities(tree: Tree) -> list[Entity]:
    """What is drawn of a stage that looks like this."""
    seen = _Seen(tree)
    found = [make(seen, paths) for kind, make in _KINDS.items() if (paths := seen.kinds.get(kind))]
    found += _meshes(seen, seen.kinds.get("Mesh", []))
    for instancer in seen.kinds.get("PointInstancer", ()):
        found += _instanced(seen, instancer)
    if not found and (paths := [path for path in seen.kinds.get("", ()) if seen.carrier(path) == path]):
        found.append(_dots(seen, paths))
    for entity in found:
        entity.carriers = entity.carriers or [seen.carrier(path) for path in entity.prims]
    return found


def clouds(tree: Tree) -> list[Cloud]:
    """The prims that are points."""
    seen = _Seen(tree)
    found = []
    for path in seen.kinds.get("Points", ()):
        places, widths = seen.triples("points", path), seen.array("widths", path)
        radii = None if widths is None or len(widths) != len(places) else widths.astype(np.float32) / 2
        found.append(Cloud(seen.carrier(path), places, radii, seen.colours([path])[0]))
    return found


def placed(tree: Tree) -> set[str]:
    """The prims that have a transform."""
    columns = [column for attribute, column in tree.columns if attribute.name in (WORLD, LOCAL)]
    return {tree.rows[row] for column in columns for row in column.valid.nonzero()[0].tolist()}


# --- the prims of a tree --------------------------------------------------------------------------------------------


class _Seen:
    """A tree, asked for what drawing needs."""

    def __init__(self, tree: Tree) -> None:
        self._columns: dict[str, list[Column]] = {}
        for attribute, column in tree.columns:
            self._columns.setdefault(attribute.name, []).append(column)
        self._row = {path: row for row, path in enumerate(tree.rows)}
        self._placed = np.zeros(len(self._row), bool)
        for name in (WORLD, LOCAL):
            for column in self._columns.get(name, ()):
                self._placed |= column.valid
        hidden = self._saying("visibility", "invisible") | self._saying("purpose", "guide", "proxy")
        kinds = {path: tree[path].type for path in self._row if not _within(path, hidden)}
        instancers = {path for path, kind in kinds.items() if kind == "PointInstancer"}
        self.kinds: dict[str, list[str]] = {}
        """The prims of each type that are shown where they are."""
        self.prototypes: dict[str, str] = {}
        """The types of prims below instancers, which are shown where the instancers say."""
        for path, kind in kinds.items():
            if instancers and _within(path.rpartition("/")[0], instancers):
                self.prototypes[path] = kind
            else:
                self.kinds.setdefault(kind, []).append(path)

    def carrier(self, path: str) -> str:
        """The prim itself or the nearest one above that has a transform; an empty text where none has."""
        while path and not ((row := self._row.get(path, -1)) >= 0 and self._placed[row]):
            path = path.rpartition("/")[0]
        return path

    def array(self, name: str, path: str) -> Array | None:
        """The values of one prim, or nothing."""
        row = self._row.get(path, -1)
        for column in self._columns.get(name, ()) if row >= 0 else ():
            if column.valid[row]:
                return np.atleast_1d(column.values[row] if column.offsets is None else column.row(row))
        return None

    def numbers(self, name: str, paths: Sequence[str], default: float) -> Array:
        """One number of each prim."""
        found = np.full(len(paths), default, np.float32)
        for at, path in enumerate(paths) if name in self._columns else ():
            if (value := self.array(name, path)) is not None and value.size:
                found[at] = value.flat[0]
        return found

    def colours(self, paths: Sequence[str]) -> Array:
        """Of each prim the first of its colours, as rerun has them."""
        found = np.tile(np.array(PLAIN, np.uint8), (len(paths), 1))
        for at, path in enumerate(paths) if COLOUR in self._columns else ():
            if (rgb := self.array(COLOUR, path)) is not None and rgb.size >= 3:
                found[at] = np.round(255 * np.clip(rgb.ravel()[:3].astype(float), 0, 1) ** (1 / GAMMA))
        return found

    def text(self, name: str, path: str, default: str = "") -> str:
        """One name of one prim."""
        value = self.array(name, path)
        return default if value is None or not value.size else str(value.flat[0])

    def triples(self, name: str, path: str) -> Array:
        """Points of one prim, ``(N, 3)``."""
        value = self.array(name, path)
        return np.zeros((0, 3), np.float32) if value is None else value.reshape(-1, 3).astype(np.float32)

    def world(self, path: str) -> Array:
        """Where a prim is: the transform of its carrier."""
        for name in (WORLD, LOCAL):
            if (value := self.array(name, self.carrier(path))) is not None:
                return value.astype(float).reshape(4, 4)
        return np.eye(4)

    def _saying(self, name: str, *texts: str) -> set[str]:
        """The prims that have one of these names as a value."""
        paths = list(self._row) if name in self._columns else []
        return {path for path in paths if self.text(name, path) in texts}


def _within(path: str, some: set[str]) -> bool:
    """Whether a prim is one of some, or below one."""
    while some and path:
        if path in some:
            return True
        path = path.rpartition("/")[0]
    return False


# --- the kinds ------------------------------------------------------------------------------------------------------


def _cubes(seen: _Seen, paths: list[str]) -> Entity:
    halves = np.repeat(seen.numbers("size", paths, 2)[:, None] / 2, 3, axis=1)
    colours = seen.colours(paths)
    return Entity("Cube", paths, lambda rr: rr.Boxes3D(half_sizes=halves, colors=colours, fill_mode="solid"))


def _spheres(seen: _Seen, paths: list[str]) -> Entity:
    radii, colours = seen.numbers("radius", paths, 1), seen.colours(paths)
    return Entity("Sphere", paths, lambda rr: rr.Ellipsoids3D(radii=radii, colors=colours, fill_mode="solid"))


def _dots(seen: _Seen, paths: list[str]) -> Entity:
    radii, colours = np.full(len(paths), DOT, np.float32), seen.colours(paths)
    return Entity("untyped", paths, lambda rr: rr.Ellipsoids3D(radii=radii, colors=colours, fill_mode="solid"))


def _cylinders(seen: _Seen, paths: list[str]) -> Entity:
    lengths, radii = seen.numbers("height", paths, 2), seen.numbers("radius", paths, 1)
    colours, turns = seen.colours(paths), _turned([seen.text("axis", path, "Z") for path in paths])
    return Entity(
        "Cylinder",
        paths,
        lambda rr: rr.Cylinders3D(lengths=lengths, radii=radii, colors=colours, quaternions=turns, fill_mode="solid"),
    )


def _capsules(seen: _Seen, paths: list[str]) -> Entity:
    """rerun's begin at the origin, USD's have it in their middle."""
    lengths, radii = seen.numbers("height", paths, 1), seen.numbers("radius", paths, 0.5)
    colours, axes = seen.colours(paths), [seen.text("axis", path, "Z") for path in paths]
    turns = _turned(axes)
    ends = np.array([_ALONG.get(axis, _ALONG["Z"]) for axis in axes], np.float32) * (-lengths / 2)[:, None]
    return Entity(
        "Capsule",
        paths,
        lambda rr: rr.Capsules3D(
            lengths=lengths, radii=radii, colors=colours, translations=ends, quaternions=turns, fill_mode="solid"
        ),
    )


def _turned(axes: Sequence[str]) -> Array:
    return np.array([_UPRIGHT.get(axis, _UPRIGHT["Z"]) for axis in axes], np.float32)


_KINDS: Mapping[str, Callable[[_Seen, list[str]], Entity]] = {
    "Cube": _cubes,
    "Sphere": _spheres,
    "Cylinder": _cylinders,
    "Capsule": _capsules,
}


def _meshes(seen: _Seen, paths: list[str]) -> list[Entity]:
    """One entity for all meshes that are the same, however many prims they are."""
    same: dict[tuple[bytes, ...], list[str]] = {}
    for path in paths:
        parts = [seen.array(name, path) for name in ("points", "faceVertexCounts", "faceVertexIndices")]
        if any(part is None or not part.size for part in parts):
            continue
        colour = seen.colours([path]).tobytes()
        said = seen.text("orientation", path).encode()
        same.setdefault((*(part.tobytes() for part in parts if part is not None), colour, said), []).append(path)
    alike = list(same.values())
    drawn = [_mesh(seen, f"Mesh/{number}", paths) for number, paths in enumerate(alike[:MESHES])]
    boxed = [path for paths in alike[MESHES:] for path in paths]
    return [*drawn, _boxes(seen, boxed)] if boxed else drawn


def _mesh(seen: _Seen, name: str, paths: list[str]) -> Entity:
    first = paths[0]
    vertices, colour = seen.triples("points", first), seen.colours([first])[0]
    counts, indices = seen.array("faceVertexCounts", first), seen.array("faceVertexIndices", first)
    assert counts is not None and indices is not None
    triangles = triangulated(counts.ravel().astype(np.int64), indices.ravel().astype(np.int64), len(vertices))
    if seen.text("orientation", first) == "leftHanded":
        triangles = triangles[:, ::-1].copy()
    return Entity(
        name,
        paths,
        lambda rr: rr.Mesh3D(vertex_positions=vertices, triangle_indices=triangles, albedo_factor=colour.tolist()),
    )


def _boxes(seen: _Seen, paths: list[str]) -> Entity:
    """The boxes around meshes, as one entity."""
    corners = [seen.triples("points", path) for path in paths]
    low = np.stack([points.min(axis=0, initial=np.inf) for points in corners])
    high = np.stack([points.max(axis=0, initial=-np.inf) for points in corners])
    middles, halves, colours = (low + high) / 2, (high - low) / 2, seen.colours(paths)
    return Entity(
        "Mesh/boxes",
        paths,
        lambda rr: rr.Boxes3D(centers=middles, half_sizes=halves, colors=colours, fill_mode="solid"),
    )


def triangulated(counts: Array, indices: Array, vertices: int) -> Array:
    """Faces as fans of triangles. Faces that are not there, or name points that are not, are left out."""
    begin = np.cumsum(counts) - counts
    fits = (begin + counts <= len(indices)) & (counts >= 3)
    begin, counts = begin[fits], counts[fits]
    fans = []
    for corner in range(1, int(counts.max(initial=2)) - 1):
        start = begin[counts > corner + 1]
        fans.append(np.stack([indices[start], indices[start + corner], indices[start + corner + 1]], axis=1))
    triangles = np.concatenate(fans) if fans else np.zeros((0, 3), np.int64)
    return triangles[((triangles >= 0) & (triangles < vertices)).all(axis=1)].astype(np.uint32)


def _instanced(seen: _Seen, instancer: str) -> list[Entity]:
    """The copies of one instancer: an entity for each shape of its prototypes."""
    at = seen.triples("positions", instancer).astype(float)
    which = seen.array("protoIndices", instancer)
    if which is None or len(which) != len(at):
        return []
    turns, scales = seen.array("orientations", instancer), seen.array("scales", instancer)
    places = matrices(
        at,
        turns.reshape(-1, 4).astype(float) if turns is not None and turns.size == 4 * len(at) else None,
        scales.reshape(-1, 3).astype(float) if scales is not None and scales.size == 3 * len(at) else None,
    )
    roots = seen.array("prototypes", instancer)
    made = []
    for number, root in enumerate([] if roots is None else roots.tolist()):
        here = places[which == number]
        above = np.linalg.inv(seen.world(root.rpartition("/")[0]))
        for path in [path for path in seen.prototypes if _within(path, {root})] if len(here) else ():
            made += _copies(seen, instancer, path, seen.world(path) @ above @ here)
    return made


def _copies(seen: _Seen, instancer: str, path: str, offset: Array) -> list[Entity]:
    """One shape at many places; none where it is no shape."""
    kind, name = seen.prototypes[path], f"PointInstancer{path}"
    if kind in _KINDS:
        one = _KINDS[kind](seen, [path])
    elif kind == "Mesh" and seen.array("points", path) is not None:
        one = _mesh(seen, name, [path])
    else:
        return []
    count = len(offset)
    return [Entity(name, [instancer] * count, one.shape, offset, [seen.carrier(instancer)] * count)]
