"""Recording a stage while it runs: a thread follows what is sealed and writes it out."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ovstage import guard
from ovstage.errors import ErrorCode, OvstageError
from ovstage.recording.writer import Writer
from ovstage.shown import counted

if TYPE_CHECKING:
    from ovstage.changes import Change, Item
    from ovstage.stage import Stage

__all__ = ["Recorder", "RecorderStats", "save"]

MOST_STEPS = 256
"""How many ordinals that it is behind a recorder takes one by one."""

FLUSH = 0.1
"""Seconds after which what was sealed is on file, or sooner where there is much of it."""


@dataclass(frozen=True)
class RecorderStats:
    """What a recorder has done so far."""

    ordinals: int
    """Up to which ordinal it has everything; attributes that are sealed by themselves may be ahead of it."""
    items: int
    """How many times it wrote what had changed."""
    joined: int
    """How many ordinals have no row of their own: the recorder came late, and they are in that of a later one."""
    bytes: int
    """On file."""


class Recorder:
    """What ``stage.record`` gives: it records until it is closed, at the latest by the ``with`` block.

    A thread of its own follows the stage. It never holds up a writer. When it can't go on, for want of disk space for
    instance, it stops, the stage goes on, and ``close`` raises what stopped it.
    """

    def __init__(
        self, stage: Stage, path: Path, attributes: Sequence[str | int] | None, query: object, every: int
    ) -> None:
        self._stage, self._every = stage, every
        self._changes = stage.changes(attributes, query)  # type: ignore[arg-type]  # judged there
        self._writer = Writer(path, stage, time.monotonic())
        self._last: dict[str, tuple[int, int]] = {}  # bytes of an attribute's keyframe, and of what changed since
        self._reached = self._items = self._joined = 0
        self._error: BaseException | None = None
        self._ending = threading.Event()
        self._closed = False
        self.path = path
        """The folder that it writes."""
        try:
            self._poll(None)  # what is sealed now: what comes later is a change
            self._flush()
        except BaseException:
            self._writer.close()
            raise
        self._thread = threading.Thread(target=self._run, name="ovstage recorder", daemon=True)
        self._thread.start()

    @property
    def stats(self) -> RecorderStats:
        """How far it is. May be asked for at any time, from any thread."""
        return RecorderStats(self._reached, self._items, self._joined, self._writer.bytes)

    def close(self) -> None:
        """Write what is sealed, and end. Raises what stopped the recorder, once; later calls do nothing."""
        if self._closed:
            return
        self._closed = True
        self._ending.set()
        while self._thread.is_alive():
            self._thread.join(0.05)  # in slices, so that Ctrl-C is answered
        if self._error is not None:
            raise OvstageError(
                ErrorCode.OP_FAILED,
                f"the recording {str(self.path)!r} ends at ordinal {self._reached}: {self._error}",
            ) from self._error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.close()
        except OvstageError:
            if error is None:  # the block's own error tells more
                raise

    def __repr__(self) -> str:
        how = "closed" if self._closed else "failed" if self._error else "recording"
        return f"<Recorder {str(self.path)!r}, {how}: {counted(self._items, 'item')} up to ordinal {self._reached}>"

    # --- the thread ---

    def _run(self) -> None:
        try:
            flushed = time.monotonic()
            while not self._ending.is_set():
                some = self._take()
                if self._writer.full or (time.monotonic() - flushed >= FLUSH):
                    self._flush()
                    flushed = time.monotonic()
                if not some:
                    self._wait()
            while self._take():
                pass
            self._flush(sync=True)
        except BaseException as error:  # told by close(), on the caller's thread
            self._error = error
        finally:
            self._writer.close()

    def _wait(self) -> None:
        """Until something is sealed, or it is time to look whether to end or to flush."""
        self._stage._floor_moves(self._changes._moves, int(FLUSH / 4 * 1e9))
        if self._every > 1 and self._floor() < self._reached + self._every:
            self._ending.wait(FLUSH / 4)

    def _take(self) -> bool:
        """Record what was sealed, ordinal by ordinal where the stage still knows what was when."""
        some = False
        for limit in self._steps():
            try:
                some = self._poll(limit) or some
            except OvstageError as error:
                if limit is None or error.code != ErrorCode.OUT_OF_RANGE:
                    raise
                # Its values were kept a moment ago: the next step has them too.
        return some

    def _poll(self, limit: int | None) -> bool:
        known = self._floor() if limit is None else limit  # asked for first: what is sealed later may be left out
        item = self._changes._poll(limit)
        if item is not None and self._record(item) and (again := self._changes._poll(limit)) is not None:
            self._record(again)  # keyframes, beside the changes of their ordinal
        self._reached = max(self._reached, known)
        return item is not None

    def _floor(self) -> int:
        with self._stage.get_attribute_write_floor() as floor:
            return floor.fetch()

    def _steps(self) -> list[int | None]:
        """Up to which ordinals to ask, ``None`` at the end: as far as everything is sealed."""
        kept = min(self._stage._history, MOST_STEPS)
        if kept < 2 or self._every > 1:
            return [None]
        ahead = max(self._stage._floors(), default=0)  # of an attribute that is sealed by itself; asked for first
        end = self._floor()
        if end > self._reached:
            return list(range(max(self._reached + 1, end - kept + 1), end + 1))
        return [None] if ahead > end else []

    def _record(self, item: Item) -> bool:
        """Whether keyframes are due: what changed of an attribute since the last one is as much as it."""
        due = False
        seconds = time.monotonic()
        for name, change in item.items():
            before = self._writer_bytes(change)
            kept, since = self._last.get(name, (0, 0))
            self._last[name] = (before, 0) if change.resync else (kept, since + before)
            self._writer.add(change, seconds)
            if change.since is not None:
                self._joined += change.until - change.since - 1
            kept, since = self._last[name]
            if kept and since >= kept and not change.resync:
                self._changes._forget(name)  # its next change is a resync
                due = due or before < kept  # a change of everything is as good: then the next one is the keyframe
        self._items += 1
        return due

    @staticmethod
    def _writer_bytes(change: Change) -> int:
        return sum(part.column.values.nbytes for part in change.parts) + 4 * len(change.parts)

    def _flush(self, *, sync: bool = False) -> None:
        self._writer.flush(self._reached, sync=sync)


def start(
    stage: Stage, path: str | os.PathLike[str], attributes: Sequence[str | int] | None, query: object, every: int
) -> Recorder:
    """See ``Stage.record``."""
    every = guard.integer(every, "every")
    if every < 1:
        raise ValueError(f"every must be at least 1, got {every}")
    return Recorder(stage, _fresh(path), attributes, query, every)


def save(stage: Stage, path: str | os.PathLike[str]) -> None:
    """See ``Stage.save``."""
    target = Path(path)
    if target.exists() and not (target / "manifest.json").exists():
        raise OvstageError(
            ErrorCode.INVALID_ARGUMENT, f"path {str(target)!r} is there and no recording: choose another, or delete it"
        )
    beside = target.with_name(f"{target.name}.{os.getpid()}.partial")
    shutil.rmtree(beside, ignore_errors=True)
    try:
        writer = Writer(beside, stage, time.monotonic())
        try:
            item = stage.changes().poll()
            if item is not None:
                for change in item.values():
                    writer.add(change, time.monotonic())
            writer.flush(_reached(item), sync=True)
        finally:
            writer.close()
        _replace(beside, target)
    except OSError as error:
        raise OvstageError(ErrorCode.OP_FAILED, f"cannot save to {str(target)!r}: {error}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _reached(item: Item | None) -> int:
    """All that was taken is told of, whatever the floors of single attributes are."""
    return 0 if item is None else max(change.until for change in item.values())


def _replace(beside: Path, target: Path) -> None:
    """In the place of what is there, which is whole or gone at every moment."""
    old = target.with_name(f"{target.name}.{os.getpid()}.old")
    if target.exists():
        target.rename(old)
    beside.rename(target)
    shutil.rmtree(old, ignore_errors=True)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _fresh(path: str | os.PathLike[str]) -> Path:
    folder = Path(path)
    if folder.exists():
        raise OvstageError(
            ErrorCode.INVALID_ARGUMENT, f"path {str(folder)!r} is there already: choose another, or delete it"
        )
    if not folder.parent.is_dir():
        raise OvstageError(
            ErrorCode.INVALID_ARGUMENT, f"path {str(folder)!r}: there is no folder {str(folder.parent)!r}"
        )
    return folder
