"""Reading without interruptions by the garbage collector.

Prims and values are many small objects that live for a while and form no cycles. The collector looks at them again and
again, which costs a tenth of the time.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["paused"]

_lock = threading.RLock()  # a signal handler, which may run under it, may read, too
_pauses = 0
_was_enabled = False


@contextmanager
def paused() -> Iterator[None]:
    """Collect no cycles in this process meanwhile. Threads may overlap: the last one to leave ends the pause."""
    global _pauses, _was_enabled
    with _lock:
        if not _pauses:
            _was_enabled = gc.isenabled()
            gc.disable()
        _pauses += 1
    try:
        yield
    finally:
        with _lock:
            _pauses -= 1
            if not _pauses and _was_enabled:
                gc.enable()
