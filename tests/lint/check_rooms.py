"""Holds the Go packages to the order of the house: who may import whom, and where C may be.

    GO=go python tests/lint/check_rooms.py

A room imports rooms of a lower level only. C stays in memory, which owns the column bytes, and in the C ABI.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULE = "ovstage.dev/ovstage/"
LEVEL = {
    "gocore/bitset": 0,
    "gocore/invariants": 0,
    "gocore/tensor": 0,
    "gocore/memory": 0,
    "gocore/pathdict": 1,
    "gocore/column": 2,
    "gocore/prims": 2,
    "gocore/query": 3,
    "gocore/stage": 4,
    "gocore/scene": 5,
    "capi_export": 6,
    "": 6,  # package ovstage, for programs in Go
}
WITH_C = {"gocore/memory", "capi_export"}


def room(package: str) -> str:
    """The room of a package of this module: its own folder or the one it is a closet of."""
    parts = f"{package}/".removeprefix(MODULE).split("/")
    return "/".join(parts[: 2 if parts[0] == "gocore" else 1])


def main() -> int:
    listing = [os.environ.get("GO", "go"), "list", "-f", '{{.ImportPath}} {{join .Imports " "}}']
    done = subprocess.run(
        [*listing, ".", "./gocore/...", "./capi_export/..."], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        return done.returncode
    faults = []
    for line in done.stdout.splitlines():
        package, *imports = line.split()
        here = room(package)
        if here not in LEVEL:
            faults.append(f"{package}: give the room {here} a level in {Path(__file__).relative_to(ROOT)}")
            continue
        if "C" in imports and here not in WITH_C:
            faults.append(f"{package}: imports C, which belongs into {' and '.join(sorted(WITH_C))}")
        for other in {room(name) for name in imports if f"{name}/".startswith(MODULE)} - {here}:
            if other in LEVEL and LEVEL[other] >= LEVEL[here]:
                faults.append(f"{package}: imports {other}, which is not below it")
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
