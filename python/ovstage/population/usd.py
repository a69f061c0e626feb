"""Fill a stage from a USD file.

``open_usd`` composes the file with usd-core, reads every prim once, gathers what it finds into columns, and
only then writes: one bulk write per set of prims that carry the same columns. Everything that can go wrong with
the file or with its reading goes wrong before the first write, so a refused file leaves the stage as it was.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ovstage import guard
from ovstage.enums import PopulationDomain
from ovstage.errors import ErrorCode, OvstageError

if TYPE_CHECKING:
    from ovstage.stage import Stage

__all__ = ["Progress", "Report", "available", "open_usd"]

Progress = Callable[[int, int, str], None]
"""``progress(done, total, label)``: called now and then; an exception that it raises ends the population."""


@dataclass(frozen=True)
class Report:
    """What one population put into the stage, and what it left out."""

    path: str
    ordinal: int
    paths: Sequence[str] = ()
    """Every populated prim, in the order of the scene."""
    columns: int = 0
    values: int = 0
    bytes: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Values that this package does not carry yet, counted by USD type (``"token[]"``, ``"relationship"``, ...)."""
    warnings: Sequence[str] = ()
    """What USD had to say while it composed the scene, such as a reference to a missing file."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Wall time of the three phases ``compose``, ``read`` and ``write``."""

    def __str__(self) -> str:
        text = (
            f"{self.path}: {len(self.paths)} prims, {self.values} values in {self.columns} columns at ordinal "
            f"{self.ordinal}"
        )
        if self.skipped:
            kinds = ", ".join(f"{count} {kind}" for kind, count in self.skipped.items())
            text += f"; skipped {sum(self.skipped.values())} values: {kinds}"
        return text


def available() -> bool:
    """Whether usd-core and NumPy are installed; neither is imported to find out."""
    return not _missing()


def _missing() -> list[str]:
    """The packages that ``open_usd`` lacks, by the names under which they are installed."""
    return [package for module, package in (("pxr.Usd", "usd-core"), ("numpy", "numpy")) if not _found(module)]


def _found(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:
        return False


def open_usd(
    stage: Stage,
    path: str | os.PathLike[str],
    ordinal: int = 1,
    time_code: float = math.nan,
    domains: PopulationDomain | int = PopulationDomain.RENDERING,
    *,
    progress: Progress | None = None,
) -> Report:
    """Populate ``stage`` at ``ordinal`` with the scene in the USD file ``path``.

    ``time_code`` is in seconds; nan stands for USD's default time. Every active, defined prim becomes a row, prims
    inside instances included, with its authored values and the fallbacks of its schemas. The ordinal is written,
    not sealed: queries see the prims at once, reads once the write floor has reached it.

    Raises ``OvstageError`` when usd-core is missing, the file cannot be opened, or the ordinal is sealed already.
    """
    if missing := _missing():
        raise OvstageError(
            ErrorCode.NOT_SUPPORTED,
            f"open_usd needs packages that are not installed: pip install {' '.join(missing)} "
            '(the extra "ovstage-go[usd]" brings them)',
        )
    path = os.fspath(path)
    if not isinstance(path, str):
        raise TypeError(f"path must be str or os.PathLike[str], not {type(path).__name__}")
    seconds = float(time_code)
    ordinal = guard.ordinal(ordinal)
    scope = guard.uint64(domains, "domains")
    _require_open_ordinal(stage, ordinal)
    if scope == PopulationDomain.NONE:
        return Report(path, ordinal)

    # They import usd-core, which takes a while and is not there in every installation.
    from ovstage.population.columns import gather
    from ovstage.population.composition import compose
    from ovstage.population.publication import publish

    started = time.perf_counter()
    if progress is not None:
        progress(0, 1, "composing scene")
    composition = compose(path, seconds)
    if progress is not None:
        progress(1, 1, "composing scene")
    composed = time.perf_counter()
    scene = gather(composition, progress)
    gathered = time.perf_counter()
    size = publish(stage, scene, ordinal, progress)
    published = time.perf_counter()
    return Report(
        path=path,
        ordinal=ordinal,
        paths=scene.paths,
        columns=len(scene.columns),
        values=sum(len(column.rows) for column in scene.columns),
        bytes=size,
        skipped=dict(scene.skipped.most_common()),
        warnings=composition.warnings(),
        seconds={"compose": composed - started, "read": gathered - composed, "write": published - gathered},
    )


def _require_open_ordinal(stage: Stage, ordinal: int) -> None:
    """Refuse a sealed ordinal now rather than after seconds of reading."""
    with stage.get_attribute_write_floor() as query:
        floor = query.fetch()
    if ordinal <= floor:
        raise OvstageError(
            ErrorCode.WRITE_FLOOR_VIOLATION,
            f"open_usd cannot write at ordinal {ordinal}: the write floor is {floor}, so the lowest open ordinal is "
            f"{floor + 1}",
        )
