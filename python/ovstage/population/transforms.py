"""Local matrices from transform ops, and world matrices from local ones, for all prims of a scene at once.

Row vectors: local = last op x ... x first op, world = local x world of the parent. A prim that resets the stack starts
anew; one without a transform hands on what it is under.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from pxr import Gf, Tf, Usd, UsdGeom, Vt  # type: ignore # usd-core has no stubs

from ovstage.population.forms import BOOL, MATRIX, TOKENS, Names, unpacked
from ovstage.population.source import sentences

if TYPE_CHECKING:
    from ovstage.population.columns import Column, Scene

__all__ = ["Transforms", "world_matrices"]

_RESET = "!resetXformStack!"
_SHORTEST = 1e-10  # GF_MIN_VECTOR_LENGTH: a shorter imaginary part turns nothing
_VECTORS = (Gf.Vec3d, Gf.Vec3f, Gf.Vec3h)
_OPS = {
    "translate": _VECTORS,
    "scale": _VECTORS,
    "orient": (Gf.Quatd, Gf.Quatf, Gf.Quath),
    "transform": (Gf.Matrix4d,),
}
"""The ops that are computed here, and the values that they take. USD computes a transform with any other."""


class Transforms:
    """The prims that have a transform, as they are met; their matrices when all values are known."""

    def __init__(self, time: Usd.TimeCode) -> None:
        self._cache = UsdGeom.XformCache(time)
        self._rows: list[int] = []
        self._moved: list[tuple[int, Usd.Prim]] = []  # those whose matrix is not the identity, by position in _rows

    def add(self, row: int, prim: Usd.Prim, has_order: bool) -> None:
        """Record a prim. Without an authored order of ops its local matrix is the identity."""
        if has_order:
            self._moved.append((len(self._rows), prim))
        self._rows.append(row)

    def publish(self, scene: Scene, parents: list[int]) -> None:
        """Make the three columns of a transform, when the columns of ``scene`` are settled."""
        if not self._rows:
            return
        rows = np.array(self._rows)
        local = np.tile(np.eye(4), (len(rows), 1, 1))
        resets = np.zeros(len(rows), bool)
        rest = self._compute(scene, rows, local, resets)
        for position, prim in rest:
            try:
                local[position], resets[position] = self._cache.GetLocalTransformation(prim)
            except Tf.ErrorException as error:
                complaint = f"the transform is taken for the identity: {'; '.join(sentences(error.args))}"
                scene.skip(scene.paths[self._rows[position]], "xformOpOrder", complaint)
        world = world_matrices(np.array(parents), rows, local, resets)
        for name, form, values in (
            ("omni:xform", MATRIX, local),
            ("omni:resetXformStack", BOOL, resets),
            ("omni:fabric:worldMatrix", MATRIX, world),
        ):
            column = scene.column(name, form)
            column.rows, column.values = self._rows, values

    def _compute(
        self, scene: Scene, rows: npt.NDArray[np.int64], local: npt.NDArray[Any], resets: npt.NDArray[np.bool_]
    ) -> list[tuple[int, Usd.Prim]]:
        """Fill in what follows from the values that were read, order by order; return what does not."""
        column = scene.column("xformOpOrder", TOKENS)
        read = [pair for pair in zip(column.rows, column.values, strict=True) if isinstance(pair[1], Vt.TokenArray)]
        orders = dict(zip((row for row, _ in read), map(tuple, unpacked(value for _, value in read)), strict=True))
        groups: dict[tuple[str, ...] | None, list[tuple[int, Usd.Prim]]] = {}
        for position, prim in self._moved:
            order = orders.get(self._rows[position])
            groups.setdefault(order, []).append((position, prim))
        values = _OpValues(scene)
        rest: list[tuple[int, Usd.Prim]] = []
        for order, members in groups.items():
            positions = np.array([position for position, _ in members])
            matrices = None if order is None else values.matrices(order, rows[positions])
            if order is None or matrices is None:
                rest.extend(members)
                continue
            local[positions] = matrices
            resets[positions] = order[:1] == (_RESET,)
        return rest


class _OpValues:
    """The values of the ops of a scene."""

    def __init__(self, scene: Scene) -> None:
        self._columns: dict[str, list[Column]] = {}
        for column in scene.columns:
            if column.name.startswith("xformOp:"):
                self._columns.setdefault(column.name, []).append(column)
        self._read: dict[str, tuple[npt.NDArray[np.int64], npt.NDArray[Any]] | None] = {}

    def matrices(self, order: tuple[str, ...], rows: npt.NDArray[np.int64]) -> npt.NDArray[Any] | None:
        """The local matrices of the prims in ``rows``, which have the same ops; None if USD has to be asked."""
        local = np.tile(np.eye(4), (len(rows), 1, 1))
        for name in reversed(order[1:] if order[:1] == (_RESET,) else order):
            if name not in self._read:
                self._read[name] = self._of(name)
            read = self._read[name]
            if read is None:
                return None
            known, numbers = read
            places = np.minimum(np.searchsorted(known, rows), len(known) - 1)
            if (known[places] != rows).any():
                return None
            local = _after(local, name.split(":")[1], numbers[places])
        return local

    def _of(self, name: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]] | None:
        """The rows that have an op, ascending, and its numbers as doubles."""
        accepted = _OPS.get(":".join(name.split(":")[1:2])) if name.startswith("xformOp:") else None
        columns = self._columns.get(name, [])
        if accepted is None or not columns or any(not set(map(type, each.values)) <= {*accepted} for each in columns):
            return None
        numbers = [np.asarray(each.form.elements(each.values, Names()), np.float64) for each in columns]
        rows = np.concatenate([np.array(each.rows, np.int64) for each in columns])
        order = np.argsort(rows, kind="stable")
        return rows[order], np.concatenate(numbers)[order]


def _after(local: npt.NDArray[Any], kind: str, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """``local`` times the matrix of an op."""
    if kind == "translate":
        local[:, :, :3] += local[:, :, 3:] * numbers[:, None, :]
        return local
    if kind == "scale":
        local[:, :, :3] *= numbers[:, None, :]
        return local
    product: npt.NDArray[Any] = local @ (numbers.reshape(-1, 4, 4) if kind == "transform" else _rotations(numbers))
    return product


def _rotations(quaternions: npt.NDArray[Any]) -> npt.NDArray[Any]:
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


def world_matrices(
    parents: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], local: npt.NDArray[Any], resets: npt.NDArray[np.bool_]
) -> npt.NDArray[Any]:
    """The world matrix of each prim in ``rows``, which have the matrices ``local`` (n, 4, 4) and the flags ``resets``.

    ``parents`` gives the row of every prim's parent, -1 for none; a parent comes before its children.
    """
    world = np.tile(np.eye(4), (len(parents), 1, 1))
    own = np.full(len(parents), -1, np.int64)
    own[rows] = np.arange(len(rows))
    for level in _levels(parents):
        under = parents[level]
        inherited = np.where((under >= 0)[:, None, None], world[np.maximum(under, 0)], np.eye(4))
        moved = own[level] >= 0
        at = own[level[moved]]
        above = np.where(resets[at][:, None, None], np.eye(4), inherited[moved])
        inherited[moved] = local[at] @ above
        world[level] = inherited
    return world[rows]


def _levels(parents: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    """The rows by their depth."""
    depth = np.zeros(len(parents), np.int64)
    for row, parent in enumerate(parents.tolist()):
        if parent >= 0:
            depth[row] = depth[parent] + 1
    order = np.argsort(depth, kind="stable")
    return np.split(order, np.searchsorted(depth[order], np.arange(1, depth.max(initial=0) + 1)))
