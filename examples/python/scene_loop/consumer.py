"""The consuming side of the loop: read sealed snapshots while the next tick is being written, and trust nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np
from bodies import Bodies
from clock import Clock
from ledger import Ledger, checksum

from ovstage import OrdinalRange, PathDictionary, Query, ReadGroup, Stage

SHOWN = 600  # bodies, and moments, that the picture can use
GUESTS = 8  # every how many snapshots the other libraries look, too: some take a millisecond for it


@dataclass
class Findings:
    """What the consumer saw."""

    snapshots: int = 0
    torn: int = 0
    held: int = 0
    changed: int = 0
    readers: Counter[str] = field(default_factory=Counter)
    """How many snapshots each library read."""
    ticks: list[int] = field(default_factory=list)
    shown: np.ndarray = field(default_factory=lambda: np.arange(0))
    """The bodies whose positions are kept."""
    positions: list[np.ndarray] = field(default_factory=list)
    """World positions of these at each of ``ticks``."""

    @property
    def faults(self) -> list[str]:
        """What must not happen, one sentence each; empty when all is well."""
        found = []
        if self.torn:
            found.append(f"{self.torn} of {self.snapshots} snapshots were torn: they mix values of several ticks")
        if self.changed:
            found.append(f"{self.changed} of {self.held} held snapshots changed under the reader")
        if not self.snapshots:
            found.append("the consumer saw no snapshot at all")
        return found


class Consumer:
    """Reads poses and stamps of all bodies, snapshot by snapshot."""

    def __init__(
        self,
        stage: Stage,
        query: Query,
        dictionary: PathDictionary,
        ledger: Ledger,
        bodies: Bodies,
        loaded: int,
        ticks: int,
    ) -> None:
        self.clock = Clock()
        self._stage, self._query, self._ledger, self._bodies = stage, query, ledger, bodies
        self._dictionary, self._loaded = dictionary, loaded
        self._poses, self._stamps = dictionary.intern_tokens(["omni:xform", "demo:tick"])
        self._libraries = installed_libraries()
        self._rows: dict[tuple[int, int], np.ndarray] = {}
        self._held: tuple[np.ndarray, np.ndarray, int | None] | None = None
        self._every = max(1, ticks // SHOWN)
        self.findings = Findings(shown=np.arange(0, len(bodies), max(1, len(bodies) // SHOWN)))

    def run(self) -> Findings:
        """Look at every tick that is sealed while it looks; a slow reader skips some and loses nothing by it."""
        seen, closed = self._loaded, False
        while not closed:
            self._ledger.news.wait()
            self._ledger.news.clear()
            closed = self._ledger.closed
            with self._stage.get_attribute_write_floor() as floor:
                sealed = floor.fetch()
            if sealed > seen:
                self.look(sealed)
                seen = sealed
        self._look_again()
        return self.findings

    def look(self, sealed: int) -> None:
        """Read the snapshot of a sealed ordinal and judge it."""
        clock, findings = self.clock, self.findings
        clock.start()
        with ExitStack() as open_until_here:
            read = open_until_here.enter_context(
                self._stage.read_attributes(self._query, [self._poses, self._stamps], OrdinalRange.latest(sealed))
            )
            groups = {group.attribute: open_until_here.enter_context(group) for group in read.groups()}
            clock.lap("read a snapshot")
            poses, stamps = groups[self._poses], groups[self._stamps]
            rows, stamp_rows = self._rows_of(poses), self._rows_of(stamps)
            clock.start()
            column = np.from_dlpack(poses.dlpack(0))
            clock.lap("see it from NumPy")

            tick = int(np.from_dlpack(stamps.dlpack(0))[stamp_rows[0]])
            torn = bool(np.any(np.from_dlpack(stamps.dlpack(0))[stamp_rows] != tick))
            promised = self._ledger.checksums.get(tick)
            for name, from_dlpack in self._libraries.items():
                if name != "NumPy" and findings.snapshots % GUESTS:
                    continue
                torn |= checksum(np.asarray(from_dlpack(poses.dlpack(0)))[rows]) != promised
                findings.readers[name] += 1
        findings.snapshots += 1
        findings.torn += torn
        self._look_again()
        self._held = column, rows, promised
        if findings.snapshots % self._every == 0:
            positions = self._bodies.positions(column[rows].reshape(-1, 4, 4))
            findings.ticks.append(tick)
            findings.positions.append(positions[findings.shown])

    def _look_again(self) -> None:
        """The snapshot kept from last time: later ticks have been written since, it must still say what it said."""
        if self._held is not None:
            column, rows, promised = self._held
            self.findings.held += 1
            self.findings.changed += checksum(column[rows]) != promised

    def _rows_of(self, group: ReadGroup) -> np.ndarray:
        """Where the row of each body is. It stays there until rows join or leave the column, so it is asked once."""
        key = (group.attribute, group.meta.layout_generation)
        if key not in self._rows:
            paths = self._dictionary.get_path_strings(group.prim_list)
            rows = dict(zip((paths[prim] for prim in group.prim_indices()), group.data_rows(), strict=True))
            self._rows[key] = np.array([rows[path] for path in self._bodies.paths])
        return self._rows[key]


def installed_libraries() -> dict[str, Callable[[Any], Any]]:
    """The libraries that can read a DLPack tensor here: NumPy always, torch and JAX where they are installed."""
    libraries: dict[str, Callable[[Any], Any]] = {"NumPy": np.from_dlpack}
    if find_spec("torch"):
        import torch

        libraries["torch"] = torch.from_dlpack
    if find_spec("jax"):
        import jax

        jax.config.update("jax_enable_x64", True)  # JAX narrows float64 otherwise
        libraries["JAX"] = jax.dlpack.from_dlpack
    return libraries
