"""What a population call says about what it did."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["Progress", "Report", "Skipped"]

Progress = Callable[[int, int, str], None]
"""``progress(done, total, label)``: called now and then, on the thread that populates. An exception that it raises ends
the population before anything is written; one of the last call, ``(1, 1, "writing columns")``, comes too late for that
and goes to ``threading.excepthook``. While one population is ``reading prims``, those of other stages wait: a callback
must not wait for them, and a wait by the callback itself is refused."""


@dataclass(frozen=True)
class Skipped:
    """What could not be represented, or not exactly, said once for an attribute and a reason: the first prim, how many
    prims have it, and all of these."""

    path: str
    attribute: str
    reason: str
    count: int = 1
    paths: Sequence[str] = field(default=(), repr=False, compare=False)

    def __str__(self) -> str:
        where = f"{self.path}.{self.attribute}" if self.attribute else self.path
        more = f" (and {self.count - 1} more)" if self.count > 1 else ""
        return f"{where}{more}: {self.reason}"


_SHOWN = 3  # entries of a list that a printed report quotes


@dataclass(frozen=True, repr=False)
class Report:
    """What one population put into the stage, and what it left out.

    Printed, it is a few lines whatever the scene; its attributes are complete.
    """

    path: str
    """The file that was opened; empty where it was a text, or nothing."""
    ordinal: int
    paths: Sequence[str] = ()
    """The prims that something was written for, or that lost a value, in the order of the scene: of an open all that
    the scene has in the stage, of an update those that changed."""
    columns: int = 0
    """Columns that were written to, and so on: an update counts what changed."""
    values: int = 0
    bytes: int = 0
    removed: int = 0
    """Prims that left the scene, and values that prims which stayed have lost."""
    removed_paths: Sequence[str] = ()
    """The prims that left the scene."""
    skipped: Sequence[Skipped] = ()
    """What could not be represented, or not exactly: prim, attribute, reason, and how many more prims the same holds
    for."""
    warnings: Sequence[str] = ()
    """What USD had to say while it composed the scene, such as a reference to a missing file; which files were not read
    again, though that was asked for."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Wall time of the phases ``compose``, ``read`` and ``write``."""

    def __repr__(self) -> str:
        counts = {"skipped": len(self.skipped), "warnings": len(self.warnings)}
        return f"<Report {self._summary()}{''.join(f', {n} {what}' for what, n in counts.items() if n)}>"

    def __str__(self) -> str:
        text = self._summary()
        if self.skipped:
            text += f"; not as the scene has it: {_some(self.skipped, 'skipped')}"
        if self.warnings:
            text += f"; warnings: {_some(self.warnings, 'warnings')}"
        return text

    def _summary(self) -> str:
        text = (
            f"{self.path or 'scene'}: {len(self.paths)} prims, {self.values} values in {self.columns} columns "
            f"at ordinal {self.ordinal}"
        )
        return f"{text}, {self.removed} removed" if self.removed else text


def _some(entries: Sequence[object], name: str) -> str:
    """The first entries, and where the others are."""
    more = len(entries) - _SHOWN
    return "; ".join(map(str, entries[:_SHOWN])) + (f"; and {more} more in .{name}" if more > 0 else "")
