"""A column to measure on: one attribute of many prims in a stage of its own."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Self

import numpy as np

from ovstage import Map, OrdinalRange, PathDictionary, Query, ReadGroup, Stage, StageConfig

CHUNK = 10**6  # paths interned at a time: their strings need not all exist at once


class Column:
    """One attribute of ``rows`` prims, written once and sealed; ``values`` is what it was written with."""

    def __init__(
        self, rows: int, lanes: int = 3, dtype: type = np.float32, level: str | None = None, history: int = 0
    ) -> None:
        self._open = ExitStack()
        self.stage = self._open.enter_context(Stage("bench", StageConfig(interface=level, history_ordinals=history)))
        self.dictionary = self._open.enter_context(PathDictionary(self.stage))
        self.token = self.dictionary.intern_token("value")
        self.paths: list[int] = []
        for start in range(0, rows, CHUNK):
            names = [f"/World/Prim{i}" for i in range(start, min(start + CHUNK, rows))]
            self.paths += self.dictionary.intern_paths(names)
        self.query = self.select(slice(None))
        self.values = np.random.default_rng(1).random((rows, lanes)).astype(dtype)
        self.ordinal = 0
        self.write(self.query, self.values)
        self.seal()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def select(self, rows: slice | np.ndarray) -> Query:
        """A query of some of the prims, released with the column."""
        paths = self.paths[rows] if isinstance(rows, slice) else [self.paths[row] for row in rows]
        prims = self._open.enter_context(self.dictionary.create_path_list(paths))
        return self._open.enter_context(self.stage.query_from_path_list(prims))

    def write(self, query: Query, values: np.ndarray) -> None:
        """Write at the ordinal after the sealed ones."""
        self.stage.write_attribute(query, self.token, self.ordinal + 1, values, is_array=False).wait()

    def seal(self) -> None:
        """Seal that ordinal."""
        self.ordinal += 1
        self.stage.advance_write_floor(self.ordinal).wait()

    def map(self) -> Map:
        """A map of the whole column whose old content is not wanted."""
        return self.stage.map_attribute(self.query, self.token, self.ordinal + 1, initial="discard")

    def read(self, query: Query) -> ReadGroup:
        """The group of a latest read; the caller releases it."""
        with self.stage.read_attributes(query, [self.token], OrdinalRange.latest(self.ordinal)) as read:
            return read.fetch_next()

    def look(self, query: Query) -> None:
        """Read, view with NumPy, release."""
        with self.read(query) as group:
            np.from_dlpack(group.dlpack(0))
