"""The physics: Newton's XPBD solver over the composed scene.

All that the solver carries from one tick to the next is ``poses`` and ``velocities``.
"""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import warp as wp

RATE = 60  # ticks a second
STEPS = 4  # steps of the solver in a tick; even, so that the two states end where they began
BODIES, FREE, HINGES = 9, 6, 8  # bodies of an ant, degrees of freedom of its torso, and of its legs
KICK = 0.45  # newton metres


class Ants:
    """The ants, from the moment when they are let go."""

    def __init__(self, layer: Path) -> None:
        wp.config.log_level = wp.LOG_ERROR  # which kernels it compiles is of no interest here
        wp.init()
        wp.set_device("cpu")
        import newton  # compiles and warns on import; Warp has been told to be quiet by now

        self._newton = newton
        builder = newton.ModelBuilder()
        logging.getLogger("newton").setLevel(logging.ERROR)  # the file has attributes of other engines
        builder.add_usd(str(layer))
        builder.add_ground_plane()
        self._model = builder.finalize()
        self.paths = list(builder.body_label)
        self.count = len(self.paths) // BODIES
        self._solver = newton.solvers.SolverXPBD(self._model, iterations=4)
        self._collisions = newton.CollisionPipeline(self._model)
        self._contacts = self._collisions.contacts()
        self._control = self._model.control()
        self.start()

    def start(self) -> None:
        """Back to the beginning."""
        self._now, self._next = self._model.state(), self._model.state()

    def resume(self, poses: np.ndarray, velocities: np.ndarray) -> None:
        """Go on from these."""
        self.start()
        self._now.body_q.assign(poses)
        self._now.body_qd.assign(velocities)

    def step(self, tick: int) -> None:
        """The ``tick``-th sixtieth of a second. What the legs push depends on nothing but the tick."""
        self._control.joint_f.assign(kick(self.count, tick))
        self._collisions.collide(self._now, self._contacts)
        for _ in range(STEPS):
            self._now.clear_forces()
            self._solver.step(self._now, self._next, self._control, self._contacts, 1 / (RATE * STEPS))
            self._now, self._next = self._next, self._now

    @property
    def poses(self) -> np.ndarray:
        """Position and quaternion xyzw of each body, (N, 7): the solver's own memory, until the next step."""
        return self._now.body_q.numpy()

    @property
    def velocities(self) -> np.ndarray:
        """Of each body, linear and angular, (N, 6), as the poses."""
        return self._now.body_qd.numpy()


def kick(ants: int, tick: int) -> np.ndarray:
    """The torques of all hinges: each ant waves in a rhythm of its own."""
    torques = np.zeros((ants, FREE + HINGES), np.float32)
    rhythm = 0.25 + 0.1 * np.sin(np.arange(ants))[:, None]
    torques[:, FREE:] = KICK * np.sin(tick * rhythm + np.arange(HINGES) * 1.7 + np.arange(ants)[:, None])
    return torques.ravel()


def transforms(poses: np.ndarray) -> np.ndarray:
    """Poses as USD has them: (N, 4, 4), for row vectors."""
    x, y, z, w = poses[:, 3:].astype(float).T
    found = np.zeros((len(poses), 4, 4))
    found[:, 0, :3] = np.stack([1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w)], axis=1)
    found[:, 1, :3] = np.stack([2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w)], axis=1)
    found[:, 2, :3] = np.stack([2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)], axis=1)
    found[:, 3, :3], found[:, 3, 3] = poses[:, :3], 1
    return found


def on_their_backs(poses: np.ndarray) -> np.ndarray:
    """Which ants lie on their backs: the torso's own up points down in the world."""
    x, y = poses.reshape(-1, BODIES, 7)[:, 0, 3:5].T
    return (1 - 2 * (x * x + y * y)) < 0
