"""Two ways to hand a tick from the solver to whoever reads: through a stage, and with a lock and copies.

Both have ``publish``, ``wait``, ``take`` and ``copied``; the loop does not know which it has.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
from physics import transforms
from scene import LOADED, LOCAL, WORLD

from ovstage import AttributeSemantic, DLDataType, ErrorCode, OvstageError, Scope, Stage

POSES, VELOCITIES, VERDICT = "newton:body_q", "newton:body_qd", "ant:on_its_back"
PATIENCE = 50_000_000  # nanoseconds until a reader looks whether there will be more


@dataclass(frozen=True)
class Snapshot:
    """The state of one tick."""

    tick: int
    poses: np.ndarray
    velocities: np.ndarray


class Staged:
    """Through the stage: the solver's state goes into mapped buffers, which become the columns."""

    name = "through the stage"

    def __init__(self, stage: Stage, bodies: list[str], parents: np.ndarray | None = None) -> None:
        """With ``parents``, where the parents of the bodies are, the transforms of the scene follow, for viewers."""
        self.stage, self.bodies, self._parents = stage, bodies, parents
        self._sealed = [POSES, VELOCITIES] if parents is None else [POSES, VELOCITIES, LOCAL, WORLD]
        self._filled = 0
        self._before = self.stage.counters()["bytes_copied"]

    def publish(self, tick: int, poses: np.ndarray, velocities: np.ndarray) -> None:
        """Both columns at one ordinal, then sealed together: no reader sees one without the other."""
        for name, values in ((POSES, poses), (VELOCITIES, velocities)):
            dtype = DLDataType(2, 32, values.shape[1])
            with self.stage.map(self.bodies, name, LOADED + tick, dtype=dtype, initial="discard") as mapping:
                mapping.fetch_next().array(0, shaped=True)[:] = values
            self._filled += values.nbytes
        if self._parents is not None:
            local = transforms(poses) @ np.linalg.inv(self._parents)
            self.stage.write(self.bodies, LOCAL, LOADED + tick, local, semantic=AttributeSemantic.MATRIX).wait()
            self.stage.compute_hierarchy(LOADED + tick, LOADED + tick)
        self.stage.advance_write_floor(LOADED + tick, Scope.INCLUDE, self._sealed).wait()

    def wait(self, after: int) -> bool:
        """Whether there is a tick past ``after`` by now, or soon."""
        try:
            self.stage.wait_floor(LOADED + after + 1, POSES, timeout=PATIENCE)
        except OvstageError as error:
            if error.code != ErrorCode.TIMEOUT:
                raise
            return False
        return True

    def take(self) -> Snapshot:
        """The newest state. No byte is copied: the arrays are the columns' own memory, for as long as they are held."""
        columns = self.stage.read(self.bodies, [POSES, VELOCITIES])
        poses = columns[POSES]
        return Snapshot(poses.ordinal - LOADED, poses.values, columns[VELOCITIES].values)

    @property
    def copied(self) -> tuple[int, int]:
        """Bytes that went into maps, and bytes that the stage copied."""
        return self._filled, self.stage.counters()["bytes_copied"] - self._before


class Locked:
    """What one would write without a stage: arrays, a lock, and a copy on either side of it."""

    name = "a lock and copies"

    def __init__(self, bodies: list[str]) -> None:
        self._news = threading.Condition()
        self._tick = 0
        self._poses = np.zeros((len(bodies), 7), np.float32)
        self._velocities = np.zeros((len(bodies), 6), np.float32)
        self._in = self._out = 0

    def publish(self, tick: int, poses: np.ndarray, velocities: np.ndarray) -> None:
        with self._news:
            self._poses[:], self._velocities[:] = poses, velocities
            self._tick = tick
            self._in += poses.nbytes + velocities.nbytes
            self._news.notify_all()

    def wait(self, after: int) -> bool:
        with self._news:
            return self._news.wait_for(lambda: self._tick > after, PATIENCE / 1e9)

    def take(self) -> Snapshot:
        with self._news:
            taken = Snapshot(self._tick, self._poses.copy(), self._velocities.copy())
            self._out += taken.poses.nbytes + taken.velocities.nbytes
            return taken

    @property
    def copied(self) -> tuple[int, int]:
        """Bytes that were copied in, and out."""
        return self._in, self._out
