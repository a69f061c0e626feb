"""What a stage remembers of the scene that was opened into it, and the steps of every population call.

All steps run on the thread of the stage's queue, one call after the other. Everything that can go wrong with a scene
goes wrong before the first write.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Set
from dataclasses import replace
from typing import TYPE_CHECKING

from ovstage.errors import ErrorCode, OvstageError
from ovstage.population.collector import paused
from ovstage.population.complaints import refusing
from ovstage.population.edits import Edited
from ovstage.population.operations import telling
from ovstage.population.publication import difference, publish
from ovstage.population.reading import gather
from ovstage.population.report import Progress, Report
from ovstage.population.scope import Scope
from ovstage.population.snapshot import Snapshot
from ovstage.population.source import Source, listening

if TYPE_CHECKING:
    from ovstage.population.background import Job
    from ovstage.population.origin import Origin
    from ovstage.stage import Stage

__all__ = ["Session", "session"]


class Session:
    """The scene of one stage: its source, what of it is in scope, and what was published last."""

    def __init__(self) -> None:
        self.opened = False
        """Whether a scene was ever asked for. Set when a call is queued, so that calls can be queued behind it."""
        self.handles = itertools.count(1)
        self._source: Source | None = None
        self._scope: Scope | None = None
        self._published = Snapshot()
        self._ordinal = 0  # at which it was published
        self._varying: set[str] = (
            set()
        )  # the prims that may be different at another time, if the scene was read at a time

    # --- calls ---

    def open(
        self,
        stage: Stage,
        job: Job,
        origin: Origin,
        scope: Scope,
        seconds: float,
        ordinal: int,
        progress: Progress | None,
    ) -> Report:
        """Replace the scene of the stage. A scene that cannot be opened leaves the earlier one as it was."""
        self._require_ordinal(stage, job.name, ordinal)
        clock = _Clock(job, progress)
        clock.step(0, 1, "composing scene")
        with listening(job.check) as heard:
            source = Source.of(origin)
        source.seconds = seconds
        clock.step(1, 1, "composing scene")
        clock.lap("compose")
        report = self._publish(stage, source, scope, ordinal, clock, rewrite=True)
        return replace(report, path=origin.path, warnings=tuple(dict.fromkeys([*heard, *report.warnings])))

    def apply(self, stage: Stage, job: Job, ordinal: int, reload: bool, progress: Progress | None) -> Report:
        """Publish what USD says differently than last time; with ``reload`` it reads its files again before."""
        self._require_ordinal(stage, job.name, ordinal)
        source, scope = self._scene(job.name)
        with listening(job.check) as heard, refusing("cannot read the files of the scene again"):
            kept = source.read_files_again() if reload else []
        report = Report("", ordinal)
        if source.edits:
            report = self._publish(stage, source, scope, ordinal, _Clock(job, progress), also=frozenset())
        return replace(report, warnings=tuple(dict.fromkeys([*kept, *heard, *report.warnings])))

    def retime(self, stage: Stage, job: Job, ordinal: int, seconds: float) -> Report:
        """Read the scene at another time, and publish what is different then."""
        self._require_ordinal(stage, job.name, ordinal)
        source, scope = self._scene(job.name)
        before, source.seconds = source.seconds, seconds
        also = self._varying if math.isfinite(seconds) and math.isfinite(before) else None
        try:
            return self._publish(stage, source, scope, ordinal, _Clock(job, None), also=also)
        except BaseException:
            source.seconds = before
            raise

    def reset(self, job: Job) -> None:
        """Empty the scene; what it published goes with the next apply."""
        source, _ = self._scene(job.name)
        with listening(job.check):
            empty = Source.empty()
        empty.seconds = source.seconds
        self._source = empty

    def edit(self, job: Job, change: Callable[[Source], None]) -> None:
        """Change the scene; the stage follows with the next apply."""
        source, _ = self._scene(job.name)
        with listening(job.check):
            change(source)

    # --- steps ---

    def _scene(self, call: str) -> tuple[Source, Scope]:
        if self._source is None or self._scope is None:
            raise never_opened(call)
        return self._source, self._scope

    def _require_ordinal(self, stage: Stage, call: str, ordinal: int) -> None:
        """Refuse now, rather than after seconds of reading, an ordinal that is sealed or lies below what is published:
        its values would be hidden, in part, by those of the scene that was published above it."""
        with stage.get_attribute_write_floor() as query:
            floor = query.fetch()
        if ordinal <= floor:
            raise OvstageError(
                ErrorCode.WRITE_FLOOR_VIOLATION,
                f"{call} cannot write at ordinal {ordinal}: the write floor is {floor}, so the lowest open ordinal is "
                f"{floor + 1}",
            )
        if ordinal < self._ordinal:
            raise OvstageError(
                ErrorCode.INVALID_ARGUMENT,
                f"{call} cannot write at ordinal {ordinal}: the scene was published at {self._ordinal}, which would "
                f"hide it; publish at {self._ordinal} or above",
            )

    def _stale_prims(self, scope: Scope, edited: Edited, also: Set[str] | None) -> list[str] | None:
        """The prims to read again, in the order of their rows; None for all of them."""
        if edited.everything or also is None or not scope.is_local:
            return None
        rows = self._published.prims.rows
        return sorted(rows.keys() & (edited.prims | also), key=rows.__getitem__)  # others are and stay out of scope

    def _publish(
        self,
        stage: Stage,
        source: Source,
        scope: Scope,
        ordinal: int,
        clock: _Clock,
        *,
        also: Set[str] | None = None,
        rewrite: bool = False,
    ) -> Report:
        """Read what was edited, and the prims of ``also``, or all of them without it; write what is different."""
        edited = Edited(False, set())
        try:
            with listening(clock.check) as heard, refusing("cannot read the scene"), paused():
                edited = source.edits.take()  # what is edited while it is read is for the next time
                only = self._stale_prims(scope, edited, also)
                scene = gather(source.stage, source.time, scope, clock.step, only)
                source.require_whole()
                clock.lap("read")
                snapshot = Snapshot.of(stage, scene)
                snapshot = snapshot.with_worlds() if only is None else self._published.updated(snapshot)
            changes = difference(self._published, snapshot, rewrite=rewrite)
            clock.step(0, 1, "writing columns")
            publish(stage, changes, snapshot.prims.paths, ordinal)
        except BaseException:
            source.edits.put(edited)
            raise
        self._published, self._source, self._scope, self._ordinal = snapshot, source, scope, ordinal
        self._varying = (set() if only is None else self._varying.difference(only)).union(scene.varying)
        clock.lap("write")
        clock.written()
        return Report(
            path="",
            ordinal=ordinal,
            paths=changes.paths(snapshot.prims),
            columns=len(changes.writes),
            values=changes.values,
            bytes=changes.nbytes,
            removed=len(changes.removed_prims) + sum(map(len, changes.removed_values.values())),
            removed_paths=changes.removed_prims,
            skipped=scene.skipped,
            warnings=tuple(heard),
            seconds=clock.seconds,
        )


class _Clock:
    """The progress of one call: the callback to tell, how long the phases took, whether the call is still wanted."""

    def __init__(self, job: Job, progress: Progress | None) -> None:
        self.seconds: dict[str, float] = {}
        self.check = job.check
        self._progress = progress
        self._started = time.perf_counter()

    def step(self, done: int, total: int, label: str) -> None:
        """Tell how far it is; ends the call here if it is not wanted any more."""
        self.check()
        if self._progress is not None:
            with telling():
                self._progress(done, total, label)

    def written(self) -> None:
        """Tell that everything is written. Neither an interruption nor the callback can change that any more: the call
        must not end as if nothing had happened."""
        if self._progress is None:
            return
        try:
            with telling():
                self._progress(1, 1, "writing columns")
        except BaseException as error:
            told = (type(error), error, error.__traceback__, threading.current_thread())
            threading.excepthook(threading.ExceptHookArgs(told))

    def lap(self, phase: str) -> None:
        """A phase has ended."""
        now = time.perf_counter()
        self.seconds[phase] = now - self._started
        self._started = now


_lock = threading.RLock()  # a finaliser, which may run under it, may ask for one, too


def session(stage: Stage) -> Session:
    """The session of a stage, made when it is asked for first. The stage keeps it, and ``destroy`` ends it."""
    stage._refuse_fork("population")
    with _lock:
        found = stage._scene
        if found is None:
            found = stage._scene = Session()
    assert isinstance(found, Session)
    return found


def never_opened(call: str) -> OvstageError:
    """The answer of a call that edits or reads a scene where there is none."""
    return OvstageError(
        ErrorCode.NOT_FOUND,
        f"{call}: no USD scene was opened in this stage; call open_usd or open_usd_from_string first",
    )
