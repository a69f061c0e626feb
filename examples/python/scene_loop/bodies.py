"""Where bodies are: their rest poses, and how a local pose becomes a position in the world.

Matrices are USD's: row vectors, translation in the last row, ``world = local @ parent``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import numpy as np


class Bodies:
    """The prims that move, in the order in which the loop addresses them."""

    def __init__(
        self,
        paths: Sequence[str],
        local: Mapping[str, np.ndarray],
        world: Mapping[str, np.ndarray],
        detached: Set[str],
    ) -> None:
        self.paths = list(paths)
        rest_local = np.array([local[path] for path in self.paths]).reshape(-1, 4, 4)
        self.rest = np.array([world[path] for path in self.paths]).reshape(-1, 4, 4)
        self.parent = np.linalg.inv(rest_local) @ self.rest
        """World matrix of each body's parent at rest."""
        self._anchor = self._nearest_moving_ancestors(detached)
        self._between = self.parent.copy()
        """From a body's parent up to its nearest moving ancestor, or to the world."""
        for body, anchor in enumerate(self._anchor):
            if anchor >= 0:
                self._between[body] = self.parent[body] @ np.linalg.inv(self.rest[anchor])
        self._levels = self._by_depth()

    def __len__(self) -> int:
        return len(self.paths)

    def positions(self, local: np.ndarray) -> np.ndarray:
        """World positions, (N, 3), of bodies with these local matrices. Bodies may hang on bodies that move too."""
        world = local @ self._between
        for level in self._levels[1:]:
            world[level] = world[level] @ world[self._anchor[level]]
        return world[:, 3, :3]

    def _nearest_moving_ancestors(self, detached: Set[str]) -> np.ndarray:
        """Index of each body's nearest ancestor among the bodies; -1 where there is none or it is not followed."""
        index = {path: body for body, path in enumerate(self.paths)}
        anchors = np.full(len(self.paths), -1)
        for body, path in enumerate(self.paths):
            parent = path.rpartition("/")[0]
            while parent and path not in detached:
                if parent in index:
                    anchors[body] = index[parent]
                    break
                parent = parent.rpartition("/")[0]
        return anchors

    def _by_depth(self) -> list[np.ndarray]:
        """The bodies, level by level, each behind its anchor."""
        depth = np.zeros(len(self.paths), int)
        for body in sorted(range(len(self.paths)), key=lambda body: self.paths[body].count("/")):
            if self._anchor[body] >= 0:
                depth[body] = depth[self._anchor[body]] + 1
        return [np.flatnonzero(depth == level) for level in range(depth.max() + 1)]
