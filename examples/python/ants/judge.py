"""A writer that is late: it says which ants lay on their backs some ticks ago, not in the order of the ticks.

So it is with whatever takes its time, such as a camera with a network behind it. What it says of a tick belongs to the
ordinal of that tick, and it seals its own attribute as far as it has said everything.
"""

from __future__ import annotations

import queue
import threading

import numpy as np
from handover import POSES, VERDICT, Staged
from physics import BODIES, on_their_backs
from scene import LOADED

from ovstage import Scope

DELAYS = (3, 1, 5, 2, 4)  # ticks, in turn


class Judge:
    """Looks at every tick, on a thread of its own."""

    def __init__(self, way: Staged) -> None:
        self.written = self.out_of_order = self.latest = 0
        self._stage, self._bodies = way.stage, way.bodies
        self._robots = [torso.rpartition("/")[0] for torso in way.bodies[::BODIES]]
        self._ticks: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="judge")
        self._fault: BaseException | None = None
        self._thread.start()

    def see(self, tick: int) -> None:
        """There is another tick."""
        self._ticks.put(tick)

    def close(self) -> None:
        """No tick follows; what is still owed is said. Raises what ended the judge early."""
        self._ticks.put(0)
        self._thread.join()
        if self._fault:
            raise self._fault

    def _run(self) -> None:
        try:
            owed: dict[int, int] = {}  # tick: when it will have been judged
            while tick := self._ticks.get():
                owed[tick] = tick + DELAYS[tick % len(DELAYS)]
                for due in sorted((seen for seen in owed if owed[seen] <= tick), reverse=True):
                    self._say(due, tick)
                    del owed[due]
                self._seal(min(owed, default=tick + 1) - 1)
            for due in sorted(owed, reverse=True):
                self._say(due, max(owed))
            self._seal(max(owed, default=0))
        except BaseException as fault:
            self._fault = fault

    def _say(self, tick: int, now: int) -> None:
        """The verdict on a tick, at its ordinal, from the poses that it had."""
        poses = self._stage.read(self._bodies, [POSES], LOADED + tick)[POSES].values
        verdict = on_their_backs(poses).astype(np.uint8)
        self._stage.write(self._robots, VERDICT, LOADED + tick, verdict).wait()
        self.written += 1
        self.out_of_order += tick < self.latest
        self.latest = max(self.latest, tick)

    def _seal(self, tick: int) -> None:
        if tick > 0:
            self._stage.advance_write_floor(LOADED + tick, Scope.INCLUDE, [VERDICT]).wait()
