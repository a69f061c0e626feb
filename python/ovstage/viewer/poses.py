"""Matrices as rerun takes them: translations, quaternions and scales, in arrays that nobody writes to again.

rerun keeps the memory of the arrays that it is given, and looks at it later. Its own way to take matrices is a loop in
Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]

SAME = 1e-6
"""By how much a scale may differ from 1 and is left out."""


def poses(matrices: Array) -> dict[str, Array]:
    """Of transforms ``(N, 4, 4)`` for row vectors ``translations``, ``quaternions`` xyzw, ``scales`` if any is not 1.

    A transform that mirrors has a negative scale. What shears has no such form, and is shown without its shear.
    """
    rows = matrices[:, :3, :3]
    scales = np.sqrt(np.einsum("nij,nij->ni", rows, rows))
    mirrored = np.einsum("ni,ni->n", np.cross(rows[:, 0], rows[:, 1]), rows[:, 2]) < 0
    scales[mirrored, 0] *= -1
    found = {"translations": matrices[:, 3, :3].astype(np.float32)}
    if np.abs(scales - 1).max(initial=0) > SAME:
        rows = rows / np.where(scales == 0, 1, scales)[:, :, None]
        found["scales"] = scales.astype(np.float32)
    found["quaternions"] = quaternions(rows)
    return found


def quaternions(rows: Array) -> Array:
    """Rotations ``(N, 3, 3)`` for row vectors as quaternions xyzw.

    All products of two components of a quaternion q make a matrix, of which each row is q times one component: the row
    of the largest component is taken, so that nothing is divided by a small number, half turns included.
    """
    x, y, z = rows[:, 0, 0], rows[:, 1, 1], rows[:, 2, 2]
    products = np.empty((len(rows), 4, 4))  # each four times
    diagonal = (1 + x - y - z, 1 - x + y - z, 1 - x - y + z, 1 + x + y + z)
    for at, values in enumerate(diagonal):
        products[:, at, at] = values
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        products[:, i, j] = products[:, j, i] = rows[:, i, j] + rows[:, j, i]
        products[:, k, 3] = products[:, 3, k] = rows[:, i, j] - rows[:, j, i]
    largest = np.argmax(np.stack(diagonal, axis=1), axis=1)
    chosen = products[np.arange(len(rows)), largest]
    length = np.sqrt(np.einsum("ni,ni->n", chosen, chosen))
    none = ~(length > 0)  # nothing that turns, such as a prim that is squeezed to a point
    chosen[none], length[none] = (0, 0, 0, 1), 1
    turns: Array = (chosen / length[:, None]).astype(np.float32)
    return turns


def matrices(translations: Array, quaternions: Array | None, scales: Array | None) -> Array:
    """The way back, for instances whose places are written as such: ``(N, 4, 4)`` for row vectors."""
    made = np.tile(np.eye(4), (len(translations), 1, 1))
    if quaternions is not None:
        q = quaternions / np.maximum(np.linalg.norm(quaternions, axis=1, keepdims=True), 1e-30)
        twice = 2 * q[:, :, None] * q[:, None, :]
        for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            made[:, i, i] = 1 - twice[:, j, j] - twice[:, k, k]
            made[:, i, j] = twice[:, i, j] + twice[:, k, 3]
            made[:, j, i] = twice[:, i, j] - twice[:, k, 3]
    if scales is not None:
        made[:, :3, :3] *= scales[:, :, None]
    made[:, 3, :3] = translations
    return made
