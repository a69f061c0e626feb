"""A stage as rerun sees it: a thread of its own follows what is sealed, and never holds up a writer.

It looks some thirty times a second. Ordinals that come faster are not waited for: the newest is shown, those between
are left out.
"""

from __future__ import annotations

import atexit
import ctypes
import itertools
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ovstage.errors import ErrorCode, OvstageError
from ovstage.recording import Recording
from ovstage.stage import Stage
from ovstage.tables import package
from ovstage.viewer.poses import poses
from ovstage.viewer.scene import LOCAL, SHAPE, WORLD, Cloud, Entity, clouds, entities, placed

if TYPE_CHECKING:
    import numpy.typing as npt

    from ovstage.changes import Item
    from ovstage.tree import Tree

    Array = npt.NDArray[Any]

Clock = Callable[[int], float]
"""The seconds of an ordinal."""
EXAMPLE = '{"mass": ["/World/A"]}'
LOOPBACK = "127.0.0.1"
UP = "usd-metadata:upAxis"
PATIENCE = 3.0
"""Seconds that ``close`` gives rerun to write what it has."""
_numbers = itertools.count(1)


def view(
    stage: Stage | Recording,
    *,
    save: str | os.PathLike[str] | None = None,
    port: int | None = None,
    plots: Mapping[str, Sequence[str]] | None = None,
    rate: float = 30.0,
    seconds: float | None = None,
) -> View:
    """Show a stage or a recording in rerun's viewer. Takes the package ``rerun-sdk``, which the extra ``view`` brings.

    ``save`` names a file to write, which ``rerun run.rrd`` opens. ``port`` has viewers of this machine follow live: it
    listens on the loopback only, 0 chooses a free port, and the answer's ``url`` is what ``rerun URL`` takes. No window
    is opened. Cubes, spheres, capsules, cylinders, meshes, points and point instancers are shown with their colours,
    where ``omni:fabric:worldMatrix`` says they are, or ``omni:xform`` where a prim has no other. ``plots`` draws
    numbers as curves: ``{"mass": ["/World/A", "/World/B"]}``.

    A thread follows what is sealed, ``rate`` times a second at most; with a rate of 0 there is none, and each
    ``update()`` shows what is new. The time lines are ``ordinal`` and ``seconds``: ``seconds`` long is one ordinal,
    without it they are those since the call. Of a recording every ordinal is shown before the call returns, without
    ``seconds`` at the time when it was recorded. Raises ``ModuleNotFoundError`` without rerun-sdk, ``OSError`` where
    the file or the port cannot be had, ``ValueError`` where neither is named. Example::

        with ovstage.view(stage, save="run.rrd"):
            simulate(stage)
    """
    if isinstance(stage, Stage):
        stage._begin("view")
    elif not isinstance(stage, Recording):
        raise TypeError(f"stage must be a Stage or a Recording, got {type(stage).__name__}")
    if save is None and port is None:
        raise ValueError("view needs to know where to: give save=, a file to write, or port=, where viewers may ask")
    if isinstance(rate, bool) or not (isinstance(rate, (int, float)) and 0 <= rate <= 1000):
        raise ValueError(f"rate must be a number of looks per second from 0 to 1000, got {rate!r}")
    if seconds is not None and not (isinstance(seconds, (int, float)) and 0 < seconds < math.inf):
        raise ValueError(f"seconds must be how long an ordinal is, a number above 0, got {seconds!r}")
    if port is not None and not (type(port) is int and 0 <= port <= 65535):
        raise ValueError(f"port must be a number from 0 to 65535, where 0 chooses a free one, got {port!r}")
    if plots is not None and not (isinstance(plots, Mapping) and not any(isinstance(p, str) for p in plots.values())):
        raise ValueError(f"plots must name attributes with a list of prims each, as {EXAMPLE}, got {plots!r}")
    rerun, clock = package("rerun", "view", "rerun-sdk"), _clock(stage, seconds)
    if isinstance(stage, Stage):
        return View(stage, rerun, save, port, plots or {}, rate, clock)
    return _replayed(stage, rerun, save, port, plots or {}, clock)


def _clock(source: Stage | Recording, seconds: float | None) -> Clock:
    began = time.monotonic()
    if seconds is not None:
        return lambda ordinal: ordinal * seconds
    if isinstance(source, Recording):
        return source._seconds
    return lambda _: time.monotonic() - began


def _replayed(
    recording: Recording,
    rerun: Any,
    save: str | os.PathLike[str] | None,
    port: int | None,
    plots: Mapping[str, Sequence[str]],
    clock: Clock,
) -> View:
    """A view of a stage that goes through the recording, and stays at its end."""
    stage = Stage("recording")
    try:
        shown = View(stage, rerun, save, port, plots, 0, clock)
        try:
            for _ in recording.replay(stage):
                shown.update()
        except BaseException:
            shown.close()
            raise
    except BaseException:
        stage.destroy()
        raise
    shown._own = stage
    return shown


class View:
    """What follows a stage, until it is closed. A context manager; at the end of the program it closes itself."""

    url: str | None = None
    """Where a viewer of this machine finds it; ``None`` if no port was asked for."""
    ordinal: int = 0
    """The newest ordinal that was shown."""
    trouble: str | None = None
    """Why it shows no more, in a sentence; ``None`` as long as it does."""

    def __init__(
        self,
        stage: Stage,
        rerun: Any,
        save: str | os.PathLike[str] | None,
        port: int | None,
        plots: Mapping[str, Sequence[str]],
        rate: float,
        clock: Clock,
    ) -> None:
        self._stage, self._rerun, self._rate, self._clock = stage, rerun, rate, clock
        self._own: Stage | None = None  # one that ends with the view
        self._fault: Exception | None = None
        self._plots = {name: list(prims) for name, prims in plots.items()}
        self._changes = stage.changes([WORLD, LOCAL, *SHAPE, *(name for name in plots if name not in SHAPE)])
        self._entities: list[Entity] = []
        self._clouds: list[Cloud] = []
        self._carriers: list[str] = []
        self._placed: set[str] = set()
        self._shown: dict[str, dict[str, Array]] = {}  # by entity; copies, so that no buffer of the stage is held
        self._named: set[str] = set()  # curves that have their names
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._recording: Any = rerun.RecordingStream("ovstage", recording_id=f"{os.getpid()}-{next(_numbers)}")
        try:
            self._recording.set_sinks(*self._sinks(save, port))
        except RuntimeError as error:
            raise OSError(f"rerun cannot write {save!r}: {error}") from None
        self._thread = threading.Thread(target=self._follow, name="ovstage view", daemon=True) if rate else None
        atexit.register(self.close)
        if self._thread:
            self._thread.start()

    def update(self) -> int | None:
        """Show what was sealed since the last time: the ordinal that is shown now, or ``None`` if nothing was."""
        with self._lock:
            if self._recording is None or not (item := self._changes.poll()):
                return None
            return self._show(item)

    def close(self) -> None:
        """Show what is left, and end: the file is complete. Closing again does nothing.

        Raises what ended the thread early, and ``OSError`` where rerun could not write, such as to a full disk.
        """
        self._ending.set()
        if self._thread:
            self._thread.join()
        atexit.unregister(self.close)
        if self.trouble is None:
            try:
                self.update()
            except Exception as error:
                self._end_by(error)
        with self._lock:
            recording, self._recording = self._recording, None
            if recording is None:
                return
            try:
                recording.flush(timeout_sec=PATIENCE)
                recording.disconnect()
            except RuntimeError as error:
                self._rerun.unregister_shutdown()
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(recording))  # its end, and rerun's, may wait for ever
                self._end_by(OSError(f"rerun did not write all that was shown: {error}"))
        if self._own:
            self._own.destroy()
        if self._fault:
            raise self._fault

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        where = f" at {self.url}" if self.url else ""
        return f"<View of {self._stage!r}{where}, up to ordinal {self.ordinal}>"

    # --- steps ---

    def _sinks(self, save: str | os.PathLike[str] | None, port: int | None) -> list[Any]:
        sinks = []
        if save is not None:
            Path(save).open("wb").close()  # so that what stands in the way is said here, and by name
            sinks.append(self._rerun.FileSink(os.fspath(save)))
        if port is not None:
            free = _free(port)
            sinks.append(self._rerun.GrpcServerSink(bind_ip=LOOPBACK, port=free))
            self.url = f"rerun+http://{LOOPBACK}:{free}/proxy"
        return sinks

    def _follow(self) -> None:
        """The thread: look, show, wait for the next look."""
        pause = 1 / self._rate
        try:
            while not self._ending.is_set():
                began = time.monotonic()
                self.update()
                self._ending.wait(max(0.0, began + pause - time.monotonic()))
        except Exception as error:
            self._end_by(error)

    def _end_by(self, error: Exception) -> None:
        """It ends. That the stage is gone is no fault; all else is raised by ``close``."""
        if isinstance(error, OvstageError) and error.code == ErrorCode.INVALID_HANDLE:
            self.trouble = "the stage was destroyed"
        else:
            self.trouble, self._fault = str(error), error

    def _show(self, item: Item) -> int:
        """Log what an item says is new. What moves is read anew, all of one moment; it may be later than the item."""
        until = max(item.positions[name] for name in item)
        changed = not set(item).isdisjoint(SHAPE) or any(change.deleted for change in item.values())
        moved = [path for name in (WORLD, LOCAL) if name in item for path in item[name].prims]
        if anew := changed or not self._placed.issuperset(moved):  # a new prim with a transform is something to draw
            tree = self._stage.tree()
            until = max(until, tree.ordinal)
            self._entities, self._clouds, self._placed = entities(tree), clouds(tree), placed(tree)
            self._carriers = [path for entity in self._entities for path in entity.carriers]
            self._carriers += [cloud.carrier for cloud in self._clouds]
            self._upright(tree)
        places, until = self._places(until)
        self._time(until)
        if anew:
            self._log_shapes()
        self._log_poses(places)
        for name in self._plots:
            if name in item:
                self._log_curves(name)
        self.ordinal = until
        return until

    def _upright(self, tree: Tree) -> None:
        """Which way is up, where the scene says so."""
        root = tree["/"].properties if "/" in tree else {}
        axis = root[UP].value if UP in root else None
        if axis in ("Y", "Z"):
            up = getattr(self._rerun.ViewCoordinates, f"RIGHT_HAND_{axis}_UP")
            self._recording.log("world", up, static=True)

    def _log_shapes(self) -> None:
        """The shapes of everything, and which prims they are; what is no more is cleared."""
        now = {entity.name for entity in self._entities} | ({"Points"} if self._clouds else set())
        for name in set(self._shown) - now:
            self._recording.log(f"world/{name}", self._rerun.Clear(recursive=False))
        self._shown.clear()
        for entity in self._entities:
            named = self._rerun.AnyValues(prims=entity.prims)
            self._recording.log(f"world/{entity.name}", entity.shape(self._rerun), named)

    def _log_poses(self, places: Array) -> None:
        """Where everything is that is not where it was."""
        at = 0
        for entity in self._entities:
            here = places[at : at + len(entity.carriers)]
            at += len(entity.carriers)
            moved = poses(here if entity.offset is None else entity.offset @ here)
            if not _same(self._shown.get(entity.name), moved):
                self._shown[entity.name] = moved
                self._recording.log(f"world/{entity.name}", self._rerun.InstancePoses3D(**moved))
        if self._clouds:
            there = {"places": places[at:].copy()}
            if not _same(self._shown.get("Points"), there):
                self._shown["Points"] = there
                self._recording.log("world/Points", self._points(places[at:]))

    def _places(self, until: int) -> tuple[Array, int]:
        """The transform of every carrier, of one read, and the ordinal of these."""
        if not self._carriers:
            return np.zeros((0, 4, 4)), until
        read = self._stage.read(self._carriers, [WORLD, LOCAL])
        places = None
        for name in (LOCAL, WORLD):  # the second wins
            if (column := read.get(name)) is None:
                continue
            until = max(until, column.ordinal)
            values = column.values.reshape(-1, 4, 4)
            if column.valid.all():
                places = values
            else:
                places = np.tile(np.eye(4), (len(values), 1, 1)) if places is None else places.copy()
                places[column.valid] = values[column.valid]
        return np.tile(np.eye(4), (len(self._carriers), 1, 1)) if places is None else places, until

    def _points(self, places: Array) -> Any:
        """All clouds of points as one, where they are in the world."""
        parts, radii, colours = [], [], []
        for cloud, place in zip(self._clouds, places, strict=True):
            parts.append((cloud.points @ place[:3, :3] + place[3, :3]).astype(np.float32))
            radii.append(np.full(len(cloud.points), 0.02, np.float32) if cloud.radii is None else cloud.radii)
            colours.append(np.tile(cloud.colour, (len(cloud.points), 1)))
        return self._rerun.Points3D(np.concatenate(parts), radii=np.concatenate(radii), colors=np.concatenate(colours))

    def _log_curves(self, name: str) -> None:
        """One more point of each curve of an attribute; an entity for all of its curves."""
        prims = self._plots[name]
        if (column := self._stage.read(prims, [name]).get(name)) is None:
            return
        values = column.values.reshape(len(prims), -1).astype(float)
        if name not in self._named:
            lanes = [f".{lane}" for lane in range(values.shape[1])] if values.shape[1] > 1 else [""]
            names = [f"{prim}{lane}" for prim in prims for lane in lanes]
            self._recording.log(f"plots/{name}", self._rerun.SeriesLines(names=names), static=True)
            self._named.add(name)
        self._recording.log(f"plots/{name}", self._rerun.Scalars(values.ravel()))

    def _time(self, ordinal: int) -> None:
        """What is logged from here on is of this ordinal."""
        self._recording.set_time("ordinal", sequence=ordinal)
        self._recording.set_time("seconds", duration=self._clock(ordinal))


def _same(before: dict[str, Array] | None, now: dict[str, Array]) -> bool:
    return before is not None and before.keys() == now.keys() and all(np.array_equal(before[k], now[k]) for k in now)


def _free(port: int) -> int:
    """The port, or a free one for 0. Raises ``OSError`` where it is taken."""
    with socket.socket() as trial:
        try:
            trial.bind((LOOPBACK, port))
        except OSError as error:
            told = f"view cannot listen on port {port} of {LOOPBACK}: {error.strerror}; port=0 chooses a free one"
            raise OSError(told) from None
        return int(trial.getsockname()[1])
