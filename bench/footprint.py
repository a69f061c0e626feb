"""Peak memory of rewriting one column again and again, each case in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from measure import Effort, Row

MEGABYTES = 64
MATRIX = 16 * 8  # bytes


def steady_rewriting(effort: Effort) -> Iterator[Row]:
    """As multiples of the column's bytes, above what the process needs before its first write."""
    rounds = 10 if effort.quick else 40
    for reader, limit in ((False, 2.2), (True, 3.3)):
        command = [sys.executable, __file__, str(rounds), str(int(reader))]
        peak = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
        what = f"peak memory of rewriting {MEGABYTES} MB" + (", a snapshot held" if reader else "")
        yield Row(what, peak / (MEGABYTES << 20), limit, detail=f"{peak / 2**20:,.0f} MB")


def peak_of_rewriting(rounds: int, reader: bool) -> int:
    """Peak resident bytes of ``rounds`` writes, less those before the first."""
    from ovstage import OrdinalRange, PathDictionary, Stage

    rows = (MEGABYTES << 20) // MATRIX
    values = np.ones((rows, 16))
    with (
        Stage("bench") as stage,
        PathDictionary(stage) as dictionary,
        dictionary.create_path_list_from_strings([f"/Prim{i}" for i in range(rows)]) as prims,
        stage.query_from_path_list(prims) as query,
    ):
        token = dictionary.intern_token("value")
        # Another column first: what rows and names cost is not what rewriting costs.
        stage.write_attribute(query, "other", 1, np.ones(rows, np.uint8), is_array=False).wait()
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew, from here
        before = resident()
        held = None
        for ordinal in range(1, rounds + 1):
            stage.write_attribute(query, token, ordinal, values, is_array=False).wait()
            stage.advance_write_floor(ordinal).wait()
            if reader:
                with stage.read_attributes(query, [token], OrdinalRange.latest(ordinal)) as read:
                    now = read.fetch_next()
                if held is not None:
                    held.release()
                held = now
        if held is not None:
            held.release()
        return resident("VmHWM") - before


def resident(field: str = "VmRSS") -> int:
    """Bytes of this process in memory: now, or at most so far (``VmHWM``)."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith(field))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    print(json.dumps(peak_of_rewriting(int(sys.argv[1]), sys.argv[2] == "1")))
