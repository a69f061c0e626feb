"""Local matrices from transform ops, and world matrices from local ones, for all prims of a scene at once.

Row vectors: local = last op x ... x first op, world = local x world of the parent. A prim that resets the stack starts
anew; one without a transform hands on what it is under.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
from pxr import Gf, Usd, UsdGeom  # type: ignore # usd-core has no stubs

from ovstage.population.complaints import Complaint, reason
from ovstage.population.forms import BOOL, MATRIX, TOKENS
from ovstage.population.ragged import Array, Flags, Indices
from ovstage.population.reserved import LOCAL, RESET

if TYPE_CHECKING:
    from ovstage.population.columns import Column, Scene

__all__ = ["publish_transforms", "world_matrices"]

_RESET = "!resetXformStack!"
_SHORTEST = 1e-10  # GF_MIN_VECTOR_LENGTH: a shorter imaginary part turns nothing
_VECTORS = (Gf.Vec3d, Gf.Vec3f, Gf.Vec3h)
_OPS = {
    "translate": _VECTORS,
    "scale": _VECTORS,
    "orient": (Gf.Quatd, Gf.Quatf, Gf.Quath),
    "transform": (Gf.Matrix4d,),
    **dict.fromkeys(("rotateX", "rotateY", "rotateZ"), (float,)),
    **{"rotate" + "".join(axes): _VECTORS for axes in permutations("XYZ")},
}
"""The ops that are computed here, and the values that they take. USD computes a transform with any other."""

_NONE = np.empty(0, np.int64)
_quietly = np.errstate(over="ignore", invalid="ignore")  # a scene may be full of infinities


def publish_transforms(
    scene: Scene, stage: Usd.Stage, time: Usd.TimeCode, movable: list[int], moved: list[int]
) -> None:
    """Make the columns of the local transforms, when the columns of ``scene`` are settled.

    Rows, ascending: the prims that have a transform, and those of them that have an order of ops; the matrix of the
    others is the identity.
    """
    if not movable:
        return
    rows = np.array(movable, np.int64)
    local = np.tile(np.eye(4), (len(rows), 1, 1))
    resets = np.zeros(len(rows), bool)
    left = np.zeros(len(scene.paths), bool)  # to compute
    left[moved] = True
    known_here = left.copy()
    known_here[scene.column("xformOpOrder", TOKENS).converted] = False  # USD takes no texts for an order
    values = _OpValues(scene)
    for order, having in _orders(scene):
        known, matrices = values.matrices(order, having[known_here[having]])
        at = np.searchsorted(rows, known)
        local[at], resets[at] = matrices, order[:1] == (_RESET,)
        left[known] = False
    _ask(scene, stage, time, rows, left, local, resets)
    scene.column(LOCAL, MATRIX).put(rows, local)
    scene.column(RESET, BOOL).put(rows, resets)


def _ask(
    scene: Scene,
    stage: Usd.Stage,
    time: Usd.TimeCode,
    rows: Indices,
    left: Flags,
    local: Array,
    resets: Flags,
) -> None:
    """Let USD compute what is left."""
    cache = UsdGeom.XformCache(time)
    for row in np.flatnonzero(left).tolist():
        at = int(np.searchsorted(rows, row))
        try:
            local[at], resets[at] = cache.GetLocalTransformation(stage.GetPrimAtPath(scene.paths[row]))
        except Complaint as error:
            complaint = f"the transform is taken for the identity: {reason(error)}"
            scene.skip((row,), "xformOpOrder", complaint)


def _orders(scene: Scene) -> Iterator[tuple[tuple[str, ...], Indices]]:
    """Each order of ops that prims have, and their rows."""
    found = scene.column("xformOpOrder", TOKENS).packed
    if found is None:
        return
    rows, packed = found
    texts = list(scene.names.tokens)
    assert packed.offsets is not None
    tokens, lengths, starts = packed.numbers[:, 0], packed.lengths, packed.offsets
    for length in sorted(set(lengths.tolist())):  # np.unique would import numpy.ma, 40 ms
        having = np.flatnonzero(lengths == length)
        table = tokens[starts[having, None] + np.arange(length)]
        by_order = np.lexsort(table.T) if length else np.arange(len(having))
        table = table[by_order]
        changes = np.flatnonzero((table[1:] != table[:-1]).any(axis=1)) + 1
        for members in np.split(by_order, changes):
            order = tokens[starts[having[members[0]]] :][:length].tolist()
            yield tuple(texts[token] for token in order), rows[having[members]]


class _OpValues:
    """The values of the ops of a scene."""

    def __init__(self, scene: Scene) -> None:
        self._columns: dict[str, list[Column]] = {}
        for column in scene.columns:
            if column.name.startswith("xformOp:"):
                self._columns.setdefault(column.name, []).append(column)
        self._read: dict[str, tuple[Indices, Array]] = {}

    @_quietly
    def matrices(self, order: tuple[str, ...], rows: Indices) -> tuple[Indices, Array]:
        """Those of ``rows``, which have the same ops, for which USD need not be asked, and their local matrices."""
        names = order[1:] if order[:1] == (_RESET,) else order
        read = [self._of(name) for name in names]
        for known, _ in read:
            rows = rows[np.isin(rows, known, assume_unique=True)]
        local = np.tile(np.eye(4), (len(rows), 1, 1))
        if not len(rows):  # one of the ops is none that is known here
            return rows, local
        for name, (known, numbers) in zip(reversed(names), reversed(read), strict=True):
            local = _after(local, name.split(":")[1], numbers[np.searchsorted(known, rows)])
        return rows, local

    def _of(self, name: str) -> tuple[Indices, Array]:
        """The rows that have an op, ascending, and its numbers as doubles; none if USD has to be asked for it."""
        if name not in self._read:
            accepted = _OPS.get(":".join(name.split(":")[1:2]), ()) if name.startswith("xformOp:") else ()
            columns = self._columns.get(name, [])
            read = [each.packed for each in columns if each.packed and each.form.accepts[0] in accepted]
            rows = np.concatenate([_NONE, *(rows for rows, _ in read)])
            numbers = [packed.numbers.astype(np.float64) for _, packed in read]
            by_row = np.argsort(rows, kind="stable")
            self._read[name] = rows[by_row], np.concatenate(numbers)[by_row] if numbers else _NONE
        return self._read[name]


def _after(local: Array, kind: str, numbers: Array) -> Array:
    """``local`` times the matrix of an op."""
    if kind == "translate":
        local[:, :, :3] += local[:, :, 3:] * numbers[:, None, :]
        return local
    if kind == "scale":
        local[:, :, :3] *= numbers[:, None, :]
        return local
    for factor in _factors(kind, numbers):
        local = local @ factor
    return local


def _factors(kind: str, numbers: Array) -> list[Array]:
    if kind == "transform":
        return [numbers.reshape(-1, 4, 4)]
    if kind == "orient":
        return [_rotations(numbers)]
    axes = ["XYZ".index(axis) for axis in kind.removeprefix("rotate")]
    return [_turns(axis, numbers[:, axis if len(axes) > 1 else 0]) for axis in axes]


def _turns(axis: int, degrees: Array) -> Array:
    """The matrices of turns about an axis, 0 for x.

    Sine and cosine are computed by C: NumPy's may round differently at another index of the array.
    """
    radians = np.where(np.isfinite(degrees), degrees, np.nan) * (math.pi / 180)
    sine, cosine = (np.array([function(angle) for angle in radians.tolist()]) for function in (math.sin, math.cos))
    first, second = (axis + 1) % 3, (axis + 2) % 3
    matrices = np.tile(np.eye(4), (len(degrees), 1, 1))
    matrices[:, first, first] = matrices[:, second, second] = cosine
    matrices[:, first, second] = sine
    matrices[:, second, first] = -sine
    return matrices


def _rotations(quaternions: Array) -> Array:
    """The matrices of quaternions i, j, k, real of any length.

    As USD does it: the real part is the cosine of half the angle, the imaginary one gives the axis alone. Square roots
    and products only, so that a prim has the same bits whatever other prims the scene has.
    """
    length = np.sqrt((quaternions[:, :3] ** 2).sum(axis=1))
    real = np.where(length > _SHORTEST, np.clip(quaternions[:, 3], -1, 1), 1)
    sine = np.sqrt((1 - real) * (1 + real))
    i, j, k = (quaternions[:, :3] / np.maximum(length, _SHORTEST)[:, None] * sine[:, None]).T
    matrices = np.tile(np.eye(4), (len(quaternions), 1, 1))
    matrices[:, 0, 0] = 1 - 2 * (j * j + k * k)
    matrices[:, 0, 1] = 2 * (i * j + k * real)
    matrices[:, 0, 2] = 2 * (k * i - j * real)
    matrices[:, 1, 0] = 2 * (i * j - k * real)
    matrices[:, 1, 1] = 1 - 2 * (k * k + i * i)
    matrices[:, 1, 2] = 2 * (j * k + i * real)
    matrices[:, 2, 0] = 2 * (k * i + j * real)
    matrices[:, 2, 1] = 2 * (j * k - i * real)
    matrices[:, 2, 2] = 1 - 2 * (j * j + i * i)
    return matrices


@_quietly
def world_matrices(levels: list[Indices], parents: Indices, rows: Indices, local: Array, resets: Flags) -> Array:
    """The world matrix of each prim in ``rows``, which have the matrices ``local`` (n, 4, 4) and the flags ``resets``.

    ``parents`` gives the row of every prim's parent, -1 for none; ``levels`` lists all rows, parents before children.
    """
    world = np.tile(np.eye(4), (len(parents), 1, 1))
    own = np.full(len(parents), -1, np.int64)
    own[rows] = np.arange(len(rows))
    for level in levels:
        under = parents[level]
        inherited = np.where((under >= 0)[:, None, None], world[np.maximum(under, 0)], np.eye(4))
        moved = np.flatnonzero(own[level] >= 0)
        at = own[level[moved]]
        joined = ~resets[at] & (inherited[moved] != np.eye(4)).any(axis=(1, 2))  # infinity times 0 is no number
        inherited[moved[~joined]] = local[at[~joined]]
        inherited[moved[joined]] = local[at[joined]] @ inherited[moved[joined]]
        world[level] = inherited
    return world[rows]
