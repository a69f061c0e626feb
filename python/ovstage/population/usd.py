"""Fill a stage from USD, change the scene, and let the stage follow.

Every call comes twice: the plain one blocks and raises ``OvstageError``; the one with ``_async`` returns an
``Operation`` at once. The calls of one stage run in the order in which they were made. Values are written at the
ordinal that the caller chooses and not sealed: queries see the prims at once, reads once the write floor has reached
it.
"""

from __future__ import annotations

import math
import os
import reprlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from ovstage import guard
from ovstage.enums import PopulationDomain
from ovstage.errors import ErrorCode, OvstageError
from ovstage.population import operations
from ovstage.population.background import Job
from ovstage.population.operations import Call, Operation
from ovstage.population.origin import Origin
from ovstage.population.predicates import Desc
from ovstage.population.report import Progress, Report
from ovstage.population.requirements import available, require

if TYPE_CHECKING:
    from ovstage.population.session import Session
    from ovstage.population.source import Source
    from ovstage.stage import Stage

__all__ = [
    "DEFAULT_TIME",
    "add_usd_reference",
    "add_usd_reference_async",
    "add_usd_reference_from_string",
    "add_usd_reference_from_string_async",
    "apply_usd_changes",
    "apply_usd_changes_async",
    "available",
    "last_error",
    "open_usd",
    "open_usd_async",
    "open_usd_from_file",
    "open_usd_from_string",
    "open_usd_from_string_async",
    "open_usd_from_string_with_desc",
    "open_usd_from_string_with_desc_async",
    "open_usd_with_desc",
    "open_usd_with_desc_async",
    "register_usd_schemas",
    "remove_usd",
    "remove_usd_async",
    "reset_usd",
    "reset_usd_async",
    "update_from_usd_time",
    "update_from_usd_time_async",
]

Path = str | os.PathLike[str]
Descs = Desc | Iterable[Desc]
Domains = PopulationDomain | int
Result = TypeVar("Result")

DEFAULT_TIME = math.nan
"""USD's default time: the values that hold where no time sample does."""
RENDERING = PopulationDomain.RENDERING
_UNSAID = float("nan")  # a time that was left out; a caller's DEFAULT_TIME is another object


# --- opening ----------------------------------------------------------------------------------------------------------


def open_usd(
    stage: Stage,
    path: Path,
    ordinal: int = 1,
    time_code: float = _UNSAID,
    domains: Domains = RENDERING,
    *,
    time: float | None = None,
    progress: Progress | None = None,
) -> Report:
    """Populate ``stage`` at ``ordinal`` with the scene in the USD file ``path``, instead of the scene opened before.

    ``time_code`` is in seconds; ``DEFAULT_TIME`` stands for USD's default time. In all calls it may be called ``time``
    instead, by keyword. Every active, defined prim becomes a row, prims inside instances included, with its authored
    values and the fallbacks of its schemas. ``domains`` chooses: RENDERING leaves out physics, PHYSICS everything but
    physics and what is above it.

    Raises ``OvstageError`` when usd-core is missing, the file cannot be opened, or the ordinal is sealed already; then
    nothing has been written. A call that is interrupted has written nothing or everything.

    ``progress(done, total, label)`` is called now and then, on the thread that populates. What it raises ends the call,
    which has written nothing. Its last call, ``(1, 1, "writing columns")``, says that everything is written: what it
    raises then goes to ``threading.excepthook``, and the report is returned.
    """
    return _open("open_usd", stage, _file(path), ordinal, _seconds(time_code, time), _domain(domains), progress).run()


open_usd_from_file = open_usd


def open_usd_async(
    stage: Stage,
    path: Path,
    ordinal: int = 1,
    time_code: float = _UNSAID,
    domains: Domains = RENDERING,
    *,
    time: float | None = None,
    progress: Progress | None = None,
) -> Operation:
    """``open_usd``; ``wait()`` returns the ``Report``."""
    return _open("open_usd", stage, _file(path), ordinal, _seconds(time_code, time), _domain(domains), progress).start()


def open_usd_from_string(
    stage: Stage,
    usda: str,
    ordinal: int = 1,
    time_code: float = _UNSAID,
    domains: Domains = RENDERING,
    *,
    time: float | None = None,
    progress: Progress | None = None,
) -> Report:
    """``open_usd`` with the text of a USDA layer."""
    return _open(
        "open_usd_from_string", stage, _text(usda), ordinal, _seconds(time_code, time), _domain(domains), progress
    ).run()


def open_usd_from_string_async(
    stage: Stage,
    usda: str,
    ordinal: int = 1,
    time_code: float = _UNSAID,
    domains: Domains = RENDERING,
    *,
    time: float | None = None,
    progress: Progress | None = None,
) -> Operation:
    """``open_usd_from_string``; ``wait()`` returns the ``Report``."""
    return _open(
        "open_usd_from_string", stage, _text(usda), ordinal, _seconds(time_code, time), _domain(domains), progress
    ).start()


def open_usd_with_desc(
    stage: Stage,
    path: Path,
    ordinal: int,
    time_code: float | None = None,
    descs: Descs | None = None,
    *,
    time: float | None = None,
    progress: Progress | None = None,
) -> Report:
    """``open_usd`` with what ``descs``, one ``Desc`` or several, describe; they add up."""
    return _open(
        "open_usd_with_desc", stage, _file(path), ordinal, _seconds(time_code, time), _descs(descs), progress
    ).run()


def open_usd_with_desc_async(
    stage: Stage,
    path: Path,
    ordinal: int,
    time_code: float | None = None,
    descs: Descs | None = None,
    *,
    time: float | None = None,
    progress: Progress | None = None,
) -> Operation:
    """``open_usd_with_desc``; ``wait()`` returns the ``Report``."""
    return _open(
        "open_usd_with_desc", stage, _file(path), ordinal, _seconds(time_code, time), _descs(descs), progress
    ).start()


def open_usd_from_string_with_desc(
    stage: Stage,
    usda: str,
    ordinal: int,
    time_code: float | None = None,
    descs: Descs | None = None,
    *,
    time: float | None = None,
    progress: Progress | None = None,
) -> Report:
    """``open_usd_with_desc`` with the text of a USDA layer."""
    name = "open_usd_from_string_with_desc"
    return _open(name, stage, _text(usda), ordinal, _seconds(time_code, time), _descs(descs), progress).run()


def open_usd_from_string_with_desc_async(
    stage: Stage,
    usda: str,
    ordinal: int,
    time_code: float | None = None,
    descs: Descs | None = None,
    *,
    time: float | None = None,
    progress: Progress | None = None,
) -> Operation:
    """``open_usd_from_string_with_desc``; ``wait()`` returns the ``Report``."""
    name = "open_usd_from_string_with_desc"
    return _open(name, stage, _text(usda), ordinal, _seconds(time_code, time), _descs(descs), progress).start()


# --- editing ----------------------------------------------------------------------------------------------------------


def add_usd_reference(stage: Stage, ref_file_path: Path, target_path: str) -> int:
    """Reference a USD file at ``target_path``; the handle with which to remove it again.

    An existing prim gets the reference added, a new one is defined, ``/`` merges the top-level prims of the file. Only
    the scene is edited: the stage follows with ``apply_usd_changes``.
    """
    return _add("add_usd_reference", stage, _file(ref_file_path, "ref_file_path"), target_path).run()


def add_usd_reference_async(stage: Stage, ref_file_path: Path, target_path: str) -> Operation:
    """``add_usd_reference``; ``wait()`` returns the handle."""
    return _add("add_usd_reference", stage, _file(ref_file_path, "ref_file_path"), target_path).start()


def add_usd_reference_from_string(stage: Stage, ref_str: str, target_path: str) -> int:
    """``add_usd_reference`` with the text of a USDA layer."""
    return _add("add_usd_reference_from_string", stage, _text(ref_str, "ref_str"), target_path).run()


def add_usd_reference_from_string_async(stage: Stage, ref_str: str, target_path: str) -> Operation:
    """``add_usd_reference_from_string``; ``wait()`` returns the handle."""
    return _add("add_usd_reference_from_string", stage, _text(ref_str, "ref_str"), target_path).start()


def remove_usd(stage: Stage, handle: int) -> None:
    """Undo one ``add_usd_reference``. A handle is good once; an open or a reset ends all of them."""
    _edit("remove_usd", stage, _removal(handle)).run()


def remove_usd_async(stage: Stage, handle: int) -> Operation:
    """``remove_usd``; ``wait()`` returns True."""
    return _edit("remove_usd", stage, _removal(handle)).start()


def reset_usd(stage: Stage) -> None:
    """Empty the scene. What it published goes with the next ``apply_usd_changes``."""
    _call("reset_usd", stage, lambda session, job: session.reset(job)).run()


def reset_usd_async(stage: Stage) -> Operation:
    """``reset_usd``; ``wait()`` returns True."""
    return _call("reset_usd", stage, lambda session, job: session.reset(job)).start()


# --- following --------------------------------------------------------------------------------------------------------


def apply_usd_changes(
    stage: Stage, ordinal: int = 1, *, reload: bool = False, progress: Progress | None = None
) -> Report:
    """Publish at ``ordinal`` what the scene says differently than when it was published last.

    Edits in this process are followed; ``reload`` reads files again, too, that other programs have saved since. A layer
    with edits that are not saved keeps them, and ``report.warnings`` says so.

    Afterwards the stage holds what opening the scene afresh would give, except where values were written by others and
    the scene did not change: those stay. Where only properties were edited, only their prims are read again, and the
    report is about those; with selectors, whose tests may look anywhere, and after any other edit, all are.
    """
    return _apply(stage, ordinal, reload, progress).run()


def apply_usd_changes_async(
    stage: Stage, ordinal: int = 1, *, reload: bool = False, progress: Progress | None = None
) -> Operation:
    """``apply_usd_changes``; ``wait()`` returns the ``Report``."""
    return _apply(stage, ordinal, reload, progress).start()


def update_from_usd_time(
    stage: Stage, ordinal: int, time_code: float | None = None, *, time: float | None = None
) -> Report:
    """Read the scene at another time, in seconds, and publish at ``ordinal`` what is different then.

    Edits of the scene that are still pending are published with it. Later calls read at this time too. From one time to
    another only the prims that have several samples are read again, unless there are selectors.
    """
    return _retime(stage, ordinal, _seconds(time_code, time)).run()


def update_from_usd_time_async(
    stage: Stage, ordinal: int, time_code: float | None = None, *, time: float | None = None
) -> Operation:
    """``update_from_usd_time``; ``wait()`` returns the ``Report``."""
    return _retime(stage, ordinal, _seconds(time_code, time)).start()


# --- what is there ----------------------------------------------------------------------------------------------------


def descs_available() -> bool:
    """Whether the calls with descriptions can be made: the same as ``available()``."""
    return available()


def last_error() -> str:
    """Why the last call that this thread made failed; empty when it did not."""
    return operations.last_error()


def register_usd_schemas(paths: str | bytes | os.PathLike[str] | Iterable[str | bytes | os.PathLike[str]]) -> None:
    """Make schemas known that usd-core does not bring, so that their fallbacks are published.

    Each path is a ``plugInfo.json`` or a directory that has one; what it includes is followed, no code is loaded. It
    holds for the process and cannot be undone; registering again does nothing. Must come before the first population,
    else ``OvstageError(OP_FAILED)``; ``NOT_FOUND`` for a path without a descriptor, before anything is registered.
    """
    if isinstance(paths, (str, bytes, os.PathLike)):
        paths = [paths]
    entries = enumerate(guard.entries(paths, "paths", "a list of paths", ordered=False))
    texts = [os.fsdecode(path) if isinstance(path, bytes) else guard.path(path, f"paths[{at}]") for at, path in entries]
    if not all(texts):
        text = f"paths[{texts.index('')}] is empty; pass the path of a plugInfo.json"
        raise OvstageError(ErrorCode.INVALID_ARGUMENT, text)
    if not texts:
        return
    require("register_usd_schemas")
    from ovstage.population.schemas import register

    register(texts)


# --- calls ------------------------------------------------------------------------------------------------------------


def _call(name: str, stage: Stage, work: Callable[[Session, Job], Result]) -> Call[Result]:
    """A call that needs a scene."""
    guard.stage(stage)._begin(name)
    require(name)
    from ovstage.population.session import never_opened, session

    found = session(stage)
    if not found.opened:
        raise never_opened(name)
    return Call(stage, name, lambda job: work(found, job))


def _open(
    name: str,
    stage: Stage,
    origin: Origin,
    ordinal: int,
    seconds: float,
    descs: tuple[Desc, ...],
    progress: Progress | None,
) -> Call[Report]:
    guard.stage(stage)
    ordinal = guard.ordinal(ordinal)
    _require_callable(progress)
    stage._begin(name)
    require(name)
    from ovstage.population.scope import Scope
    from ovstage.population.session import session

    scope = Scope(descs)
    found = session(stage)
    found.opened = True
    return Call(stage, name, lambda job: found.open(stage, job, origin, scope, seconds, ordinal, progress))


def _add(name: str, stage: Stage, origin: Origin, target: str) -> Call[int]:
    target = guard.string(target, "target_path")

    def work(session: Session, job: Job) -> int:
        handle = next(session.handles)
        session.edit(job, lambda source: source.add(handle, origin, target))
        return handle

    return _call(name, stage, work)


def _removal(handle: int) -> Callable[[Source], None]:
    number = guard.uint64(handle, "handle")
    return lambda source: source.remove(number)


def _edit(name: str, stage: Stage, change: Callable[[Source], None]) -> Call[None]:
    return _call(name, stage, lambda session, job: session.edit(job, change))


def _apply(stage: Stage, ordinal: int, reload: bool, progress: Progress | None) -> Call[Report]:
    ordinal, reload = guard.ordinal(ordinal), _flag(reload, "reload")
    _require_callable(progress)
    return _call("apply_usd_changes", stage, lambda session, job: session.apply(stage, job, ordinal, reload, progress))


def _retime(stage: Stage, ordinal: int, seconds: float) -> Call[Report]:
    ordinal = guard.ordinal(ordinal)
    return _call("update_from_usd_time", stage, lambda session, job: session.retime(stage, job, ordinal, seconds))


# --- arguments --------------------------------------------------------------------------------------------------------


def _file(path: Path, name: str = "path") -> Origin:
    return Origin(guard.path(path, name), is_file=True)


def _text(usda: str, name: str = "usda") -> Origin:
    return Origin(guard.string(usda, name), is_file=False)


def _require_callable(progress: object) -> None:
    if progress is not None and not callable(progress):
        raise TypeError(f"progress must be a function of (done, total, label) or None, got {progress!r}")


def _flag(value: bool, name: str) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {reprlib.repr(value)}")
    return value


def _seconds(time_code: float | None, time: float | None) -> float:
    """The time, by the name it has at interface level 0.2 or at 0.3."""
    if time is not None and time_code is not None and time_code is not _UNSAID:
        raise TypeError(f"time is given twice, as time_code={time_code!r} and as time={time!r}: give one of them")
    name, given = ("time_code", time_code) if time is None else ("time", time)
    if given is None:
        name = "time_code, or time by keyword,"
    try:
        if isinstance(given, str | bytes | bytearray) or guard.is_truth(given):
            raise TypeError  # float() takes both
        seconds = float(given)  # type: ignore[arg-type]  # None is refused like all else that is no number
    except (TypeError, ValueError, OverflowError):
        expected = "a number of seconds, or nan for USD's default time"
        raise TypeError(f"{name} must be {expected}, got {reprlib.repr(given)}") from None
    if math.isinf(seconds):
        raise ValueError(f"{name} must be finite, or nan for USD's default time, got {seconds}")
    return seconds


def _domain(domains: Domains) -> tuple[Desc, ...]:
    return (Desc(domains),)


def _descs(descs: Descs | None) -> tuple[Desc, ...]:
    if isinstance(descs, Desc):
        return (descs,)
    found = tuple(guard.entries(descs, "descs", "a Desc or a list of Descs"))  # type: ignore[arg-type]  # None is refused
    for position, desc in enumerate(found):
        if not isinstance(desc, Desc):
            raise TypeError(f"descs[{position}] must be a Desc, got {desc!r}")
    return found
