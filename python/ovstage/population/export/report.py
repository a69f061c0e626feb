"""What an export says about what it did."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ovstage.population.report import Skipped

__all__ = ["COUNTERS", "ExportReport"]

COUNTERS = tuple(
    f"{what}_{how}"
    for what, ways in {
        "prims": ("examined", "exported", "skipped"),
        "attributes": ("examined", "exported", "skipped", "unsupported"),
        "api_schemas": ("examined", "applied", "skipped"),
        "custom_attributes": ("inferred",),
        "unknown_metadata": ("preserved",),
        "transforms": ("examined", "exported"),
        "property_edges": ("examined", "exported", "skipped", "unsupported"),
        "metadata": ("examined", "exported", "skipped", "unsupported"),
        "source_states": ("unavailable",),
    }.items()
    for how in ways
)
"""What a report counts. ``prims_exported`` counts prims written for themselves and, once more, each value written."""


class ExportReport(dict[str, int]):
    """A dictionary of counters, and by name what the file lacks.

    What the caller asked to leave out, by predicates and policies, is counted and not named.
    """

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(COUNTERS, 0))
        self._left_out: list[_Note] = []
        self._otherwise: list[_Note] = []

    @property
    def skipped(self) -> list[Skipped]:
        """What was not exported: prim, property and reason, an entry for each property of each prim."""
        return [entry for note in self._left_out for entry in note.entries()]

    @property
    def warnings(self) -> list[Skipped]:
        """What was exported, but may not mean the same in the file, in the same form."""
        return [entry for note in self._otherwise for entry in note.entries()]

    def leave_out(self, name: str, paths: Iterable[str], reason: str) -> None:
        """Name a property that these prims have and the file has not; without a name the prims themselves."""
        self._left_out.append(_Note(name, tuple(paths), reason))

    def warn(self, name: str, paths: Iterable[str], reason: str) -> None:
        """Name a property that was written and may mean something else."""
        self._otherwise.append(_Note(name, tuple(paths), reason))

    def settle(self, written: set[tuple[str, str]]) -> None:
        """Forget what one rule had to leave out and another one has written. ``written`` has paths and names."""
        notes = [note.without(written) for note in self._left_out]
        self._left_out = list(dict.fromkeys(note for note in notes if note.paths))


@dataclass(frozen=True)
class _Note:
    """One reason for a property of many prims: a scene of many prims costs a path for each, not a text."""

    name: str
    paths: tuple[str, ...]
    reason: str

    def entries(self) -> list[Skipped]:
        return [Skipped(path, self.name, self.reason) for path in self.paths]

    def without(self, written: set[tuple[str, str]]) -> _Note:
        return _Note(self.name, tuple(path for path in self.paths if (path, self.name) not in written), self.reason)
