"""The producing side of the loop: move every body, then seal the tick."""

from __future__ import annotations

import numpy as np
import warp as wp
from clock import Clock
from ledger import Ledger, checksum
from motion import Dance

from ovstage import AttributeSemantic, Query, Stage


class Producer:
    """Writes tick after tick. Poses go through a map, the number of the tick through an ordinary write."""

    def __init__(self, stage: Stage, query: Query, dance: Dance, ledger: Ledger, bodies: int, loaded: int) -> None:
        self.clock = Clock()
        self._stage, self._query, self._dance, self._ledger = stage, query, dance, ledger
        self._loaded = loaded
        self._stamp = np.zeros(bodies, np.int64)

    def tick(self, tick: int) -> None:
        """One ordinal: every pose, every stamp, sealed together."""
        ordinal, clock = self._loaded + tick, self.clock
        clock.start()
        with self._stage.map_attribute(
            self._query, "omni:xform", ordinal, semantic=AttributeSemantic.MATRIX, initial="discard"
        ) as mapping:
            group = mapping.fetch_next()
            clock.lap("map the poses")
            poses = wp.from_dlpack(group.dlpack(0, shape=(-1, 16)))  # the mapped bytes themselves
            clock.lap("see them from Warp")
            self._dance.pose(tick, poses)
            clock.lap("run the kernel")
            self._ledger.checksums[tick] = checksum(poses.numpy())
            del poses  # no view of the buffer is left, and the stage can adopt it
            clock.start()
        clock.lap("unmap")
        self._stamp[:] = tick
        self._stage.write_attribute(self._query, "demo:tick", ordinal, self._stamp, is_array=False).wait()
        clock.lap("write the stamps")
        self._stage.advance_write_floor(ordinal).wait()
        clock.lap("seal")
        self._ledger.news.set()
