"""World matrices from local ones, one level of the hierarchy after the other.

Row vectors: world = local x world of the parent. A prim that resets the stack starts anew; one without a transform
hands on what it is under.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["world_matrices"]


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
