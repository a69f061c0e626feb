"""What producer and consumer agree on beside the stage."""

from __future__ import annotations

import threading

import numpy as np


class Ledger:
    """What the producer states about each tick before it seals it, for the consumer to compare with what it reads."""

    def __init__(self) -> None:
        self.checksums: dict[int, int] = {}
        self.news = threading.Event()  # set when a tick was sealed, and at the end
        self.closed = False

    def close(self) -> None:
        """No tick follows."""
        self.closed = True
        self.news.set()


def checksum(poses: np.ndarray) -> int:
    """The sum of all bits. Poses that mix the rows of two ticks have another one."""
    return int(np.ascontiguousarray(poses).view(np.uint64).sum())
