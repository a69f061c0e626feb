"""What belongs to the process and not to one stage: version, counters, log."""

from __future__ import annotations

from collections.abc import Callable

from ovstage import guard
from ovstage._load import native
from ovstage.enums import LogSeverity
from ovstage.guard import TIMEOUT_INFINITE

__all__ = ["flush_log", "library_version", "process_counters", "set_log_callback"]


def library_version() -> tuple[int, int, int]:
    """The interface level of stages for which ``StageConfig`` says none: (0, 2, 1), or (0, 3, 0) by OVSTAGE_INTERFACE.

    The library's file is looked at, not loaded; a wrong one is a ``RuntimeError``. The environment is read once, by the
    first question or the first stage of the process; ``ValueError`` where it names another level.
    """
    return native.library_version()


def process_counters() -> dict[str, int]:
    """What all stages of the process hold together; ``Stage.counters()`` has the same for one of them."""
    return native.process_counters()


def set_log_callback(
    callback: Callable[[LogSeverity, float, str], object] | None,
    severity: LogSeverity | int | None = None,
    channel_filter: str | None = None,
) -> None:
    """Receive log records, or stop receiving them with ``None``, after those that are under way.

    There is one callback in a process. Before the first stage it is kept, and in force from that stage on; it goes with
    the last stage, after which another one needs a stage that is alive.

    It is called as ``callback(severity, seconds_since_epoch, message)``, one record at a time, on a thread of its own;
    what it raises is printed and otherwise ignored. Records below ``severity`` (default ``WARNING``) are dropped,
    except where ``channel_filter``, a comma list of ``channel=level``, says otherwise.
    """
    threshold = guard.member(LogSeverity.WARNING if severity is None else severity, LogSeverity, "severity")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable or None, got {callback!r}")
    native.set_log_callback(_typed(callback) if callback is not None else None, threshold, channel_filter or None)


def flush_log(timeout: int = TIMEOUT_INFINITE) -> bool:
    """Wait until every record from before the call was delivered. False when that took longer than ``timeout`` ns."""
    return native.flush_log(guard.timeout(timeout))


def _typed(callback: Callable[[LogSeverity, float, str], object]) -> Callable[[int, float, str], object]:
    return lambda severity, timestamp, message: callback(LogSeverity(severity), timestamp, message)
