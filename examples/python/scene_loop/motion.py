"""The dance: every group of bodies draws a flower around its position at rest, as a Warp kernel on the CPU."""

from __future__ import annotations

import numpy as np
import warp as wp
from bodies import Bodies

# Before anything initialises Warp, which greets on the terminal otherwise: `quiet` up to 1.18, `log_level` since.
wp.config.quiet = True
wp.config.log_level = 40

STEPS = 8  # how many kinds of winding there are along each axis of the scene
OUTER, INNER = wp.constant(wp.float64(0.6)), wp.constant(wp.float64(0.4))  # the two circles of a flower, added up


@wp.kernel
def dance(
    rest: wp.array(dtype=wp.mat44d),
    from_world: wp.array(dtype=wp.mat44d),
    pivot: wp.array(dtype=wp.vec3d),
    winding: wp.array(dtype=wp.vec2d),
    radius: wp.float64,
    across: int,
    angle: wp.float64,
    poses: wp.array2d(dtype=wp.float64),
):
    """Turn each body about its pivot, carry it along its flower, and write its local matrix, 16 numbers in a row."""
    body = wp.tid()
    forward, backward = winding[body][0] * angle, winding[body][1] * angle
    cosine, sine = wp.cos(forward), wp.sin(forward)
    x = radius * (OUTER * cosine + INNER * wp.cos(backward))
    y = radius * (OUTER * sine - INNER * wp.sin(backward))
    ahead = pivot[body][0]
    aside = pivot[body][across]

    turn = wp.identity(n=4, dtype=wp.float64)  # row vectors: the image of axis i is row i
    turn[0, 0] = cosine
    turn[0, across] = sine
    turn[across, 0] = -sine
    turn[across, across] = cosine
    turn[3, 0] = ahead + x - ahead * cosine + aside * sine
    turn[3, across] = aside + y - ahead * sine - aside * cosine

    local = rest[body] * turn * from_world[body]
    for row in range(4):
        for column in range(4):
            poses[body, 4 * row + column] = local[row, column]


class Dance:
    """Poses of all bodies as a function of the tick."""

    def __init__(self, bodies: Bodies, up_axis: str, ticks: int) -> None:
        across = 2 if up_axis == "Y" else 1
        pivots = np.ascontiguousarray(bodies.parent[:, 3, :3])
        ground = pivots[:, [0, across]]
        steps = np.stack([_steps(ground[:, 0]), _steps(ground[:, 1])], axis=1)
        steps //= np.gcd(steps[:, 0], steps[:, 1])[:, None]  # a common factor only draws the same flower again
        extent = float(np.max(np.ptp(ground, axis=0), initial=0.0))
        with wp.ScopedDevice("cpu"):
            self._rest = wp.array(bodies.rest, dtype=wp.mat44d)
            self._from_world = wp.array(np.linalg.inv(bodies.parent), dtype=wp.mat44d)
            self._pivot = wp.array(pivots, dtype=wp.vec3d)
            self._winding = wp.array(steps.astype(np.float64), dtype=wp.vec2d)
            wp.load_module(device="cpu")  # compile now rather than in the first tick
        self._radius = 0.4 * extent / (STEPS - 1) or 1.0
        self._across = across
        self._ticks = ticks

    def pose(self, tick: int, poses: wp.array) -> None:
        """Write the local matrices of ``tick`` into ``poses``, (N, 16)."""
        angle = 2.0 * np.pi * tick / self._ticks
        scene = [self._rest, self._from_world, self._pivot, self._winding, self._radius, self._across]
        wp.launch(dance, dim=len(poses), inputs=[*scene, angle], outputs=[poses], device="cpu")


def _steps(coordinate: np.ndarray) -> np.ndarray:
    """1 .. STEPS along an axis of the scene."""
    low, extent = coordinate.min(), np.ptp(coordinate)
    return 1 + np.rint((STEPS - 1) * (coordinate - low) / (extent or 1.0)).astype(int)
