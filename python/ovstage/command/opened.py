"""What the commands that look at something open: a file of a scene, or a recording, as a stage."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ovstage.errors import OvstageError

if TYPE_CHECKING:
    from ovstage import Stage
    from ovstage.population import Progress

__all__ = ["Unopened", "bar", "opened"]

ORDINAL = 1
"""Where a scene is published, and sealed."""


class Unopened(Exception):
    """The file cannot be opened; the text says why."""


@contextmanager
def opened(path: str, domains: str = "all", time_code: float = math.nan, at: int | None = None) -> Iterator[Stage]:
    """A stage that holds what the file does, sealed, or what a recording has at an ordinal. Raises ``Unopened``.

    ``run.ovr@120`` is the recording ``run.ovr`` at ordinal 120, which ``at`` says too.
    """
    from ovstage import PopulationDomain, Stage, population

    folder, mark, ordinal = path.rpartition("@")
    if not Path(path).exists() and mark and ordinal.isdecimal() and Path(folder).is_dir():
        path, at = folder, int(ordinal)
    if Path(path).is_dir():
        with recorded(path, at) as stage:
            yield stage
        return
    with Stage(path) as stage:
        try:
            with bar() as progress:
                population.open_usd(
                    stage, path, ORDINAL, time_code, PopulationDomain[domains.upper()], progress=progress
                )
        except (OvstageError, ValueError, ModuleNotFoundError) as error:
            raise Unopened(error.message if isinstance(error, OvstageError) else str(error)) from error
        stage.advance_write_floor(ORDINAL).wait()
        yield stage


@contextmanager
def recorded(path: str, at: int | None) -> Iterator[Stage]:
    """A stage that holds what a recording has at an ordinal, by default at its last. Raises ``Unopened``."""
    from ovstage import Recording

    try:
        recording = Recording(path)
        stage = recording.at(recording.last if at is None else at)
    except (OvstageError, ValueError, ModuleNotFoundError) as error:
        raise Unopened(error.message if isinstance(error, OvstageError) else str(error)) from error
    with stage:
        yield stage


@contextmanager
def bar() -> Iterator[Progress | None]:
    """A progress bar on stderr, where rich is installed and a person looks."""
    if find_spec("rich") is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("")

        def progress(done: int, total: int, label: str) -> None:
            shown.update(task, description=label, completed=done, total=total)

        yield progress
