"""A USD layer that takes several exports before it is stored."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Self, Unpack

from ovstage import guard, leak
from ovstage.errors import ErrorCode, OvstageError
from ovstage.population.background import Job
from ovstage.population.export import rules
from ovstage.population.export.claims import claim, free
from ovstage.population.export.operation import (
    DestinationCreateOperation,
    DestinationOperation,
    ExportOperation,
    named,
)
from ovstage.population.export.report import ExportReport
from ovstage.population.export.rules import ExportDestinationMode, ExportOptions, takes_options
from ovstage.population.requirements import require

if TYPE_CHECKING:
    from ovstage.population.export.storage import Storage
    from ovstage.stage import Stage

__all__ = [
    "ExportDestination",
    "create_export_destination",
    "create_export_destination_async",
    "export_to_destination",
    "export_to_destination_async",
]


class ExportDestination:
    """A USD layer in memory that takes several exports and is stored by ``save()``.

    There is at most one for an identifier in a process. Leaving its ``with`` block closes it without saving. It
    belongs to its stage. A destination that is dropped without ``close()`` is closed with a ``ResourceWarning``.
    """

    _handles = count(1)

    def __init__(self, stage: Stage, identifier: str | os.PathLike[str], mode: ExportDestinationMode | int) -> None:
        self.identifier = str(identifier)
        self.handle = next(self._handles)
        self._closed = True  # until the identifier is claimed: a refused destination has nothing to close
        self._stage = guard.stage(stage)
        self._mode = guard.member(mode, ExportDestinationMode, "mode")
        self._storage: Storage | None = None
        self._pending: Job | None = None
        self._claim = object()  # the owner of the claim: the table of identifiers must not keep the destination alive
        claim(self.identifier, self._claim)
        self._closed = False

    @classmethod
    def create(
        cls,
        stage: Stage,
        identifier: str | os.PathLike[str],
        mode: ExportDestinationMode | int = ExportDestinationMode.EMPTY,
    ) -> Self:
        """A destination that is ready; nothing is stored yet."""
        guard.stage(stage)._begin("create_export_destination")
        made: list[Self] = []

        def work() -> None:
            require("an export")
            made.append(cls(stage, identifier, mode))
            made[0]._open()

        named("create_export_destination", work)
        return made[0]

    @classmethod
    def create_async(
        cls,
        stage: Stage,
        identifier: str | os.PathLike[str],
        mode: ExportDestinationMode | int = ExportDestinationMode.EMPTY,
    ) -> DestinationCreateOperation:
        """``create`` on a thread of its own; a busy identifier is refused at once."""
        guard.stage(stage)._begin("create_export_destination")
        made = named("create_export_destination", lambda: cls(stage, identifier, mode))
        operation = DestinationCreateOperation(
            stage, name="create_export_destination", work=made._open, destination=made
        )
        made._pending = operation._job
        return operation

    @property
    def closed(self) -> bool:
        """Whether it takes nothing any more."""
        return self._closed

    @takes_options
    def export(self, ordinal: int, **options: Unpack[ExportOptions]) -> ExportReport:
        """Add to the layer; the options are those of ``export_to_usd_file``. A failure leaves the layer as it was."""
        return export_to_destination(self._stage, self, ordinal, **options)

    @takes_options
    def export_async(self, ordinal: int, **options: Unpack[ExportOptions]) -> ExportOperation:
        """``export`` on a thread of its own."""
        return export_to_destination_async(self._stage, self, ordinal, **options)

    def save(self) -> None:
        """Store the layer under its identifier, replacing what is there."""
        self._live()
        named("ExportDestination.save", lambda: self._ready().save())

    def save_async(self) -> DestinationOperation:
        """``save`` on a thread of its own."""
        self._live()
        return self._submit("ExportDestination.save", lambda: self._opened().save())

    def close(self) -> None:
        """Close it without saving; what is under way finishes first. May be called again."""
        if self._closed:
            return
        self._settle()
        self._end()

    def close_async(self) -> DestinationOperation:
        """``close`` on a thread of its own."""
        self._live()
        self._closed = True
        return self._submit("ExportDestination.close", self._end)

    def __enter__(self) -> Self:
        self._live()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_closed", True):
            return
        self._end()
        leak.warn(f"ExportDestination was garbage-collected without close(): {self.identifier!r} was not saved")

    def _open(self) -> None:
        from ovstage.population.export.storage import Storage  # loads USD, which takes a while

        try:
            self._storage = Storage(self.identifier, self._mode)
        except BaseException:
            self._end()
            raise

    def _live(self) -> None:
        if self._closed:
            raise RuntimeError(f"the ExportDestination of {self.identifier!r} is closing or closed")

    def _submit(self, name: str, work: Callable[[], None]) -> DestinationOperation:
        operation = DestinationOperation(self._stage, name=name, work=work)
        self._pending = operation._job
        return operation

    def _settle(self) -> None:
        """Wait for what is under way; its outcome belongs to its own operation."""
        if self._pending is not None:
            self._pending.wait()

    def _ready(self) -> Storage:
        self._settle()
        return self._opened()

    def _opened(self) -> Storage:
        if self._storage is None:
            raise OvstageError(ErrorCode.OP_FAILED, f"the destination {self.identifier!r} could not be created")
        return self._storage

    def _end(self) -> None:
        self._closed = True
        self._storage = None
        free(self.identifier, self._claim)


def create_export_destination(
    stage: Stage, identifier: str | os.PathLike[str], mode: ExportDestinationMode | int = ExportDestinationMode.EMPTY
) -> ExportDestination:
    """``ExportDestination.create``."""
    return ExportDestination.create(stage, identifier, mode)


def create_export_destination_async(
    stage: Stage, identifier: str | os.PathLike[str], mode: ExportDestinationMode | int = ExportDestinationMode.EMPTY
) -> DestinationCreateOperation:
    """``ExportDestination.create_async``."""
    return ExportDestination.create_async(stage, identifier, mode)


@takes_options
def export_to_destination(
    stage: Stage, destination: ExportDestination, ordinal: int, **options: Unpack[ExportOptions]
) -> ExportReport:
    """Add to a destination of this stage what ``export_to_usd_file`` would write with the same options."""
    _require_own(stage, destination)
    judged = rules.options(ordinal, options)
    report: ExportReport = named("export_to_destination", lambda: destination._ready().write(stage, judged))
    return report


@takes_options
def export_to_destination_async(
    stage: Stage, destination: ExportDestination, ordinal: int, **options: Unpack[ExportOptions]
) -> ExportOperation:
    """``export_to_destination`` on a thread of its own."""
    _require_own(stage, destination)
    judged = rules.options(ordinal, options)
    operation = ExportOperation(
        stage, name="export_to_destination", work=lambda: destination._opened().write(stage, judged)
    )
    destination._pending = operation._job
    return operation


def _require_own(stage: Stage, destination: ExportDestination) -> None:
    if not isinstance(destination, ExportDestination):
        raise TypeError(f"destination must be an ExportDestination, got {destination!r}")
    if destination._stage is not guard.stage(stage):
        raise ValueError("the ExportDestination belongs to another Stage")
    stage._begin("export_to_destination")
    destination._live()
