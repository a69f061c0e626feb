"""Interning a million path strings in one call."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from statistics import median

from measure import Effort, Row, shown, timed, undisturbed


def interning(effort: Effort) -> Iterator[Row]:
    """Against constructing ``Sdf.Path`` objects, where usd-core is installed; then the memory that stays."""
    from ovstage import PathDictionary, Stage

    count = 10**5 if effort.quick else 10**6
    repeats = 3 if effort.quick else 5
    with Stage("bench") as stage, PathDictionary(stage) as dictionary:
        ours, theirs = [], []
        for repeat in range(repeats):  # in turn, since machines change their speed
            paths = fresh(f"Ours{repeat}", count)
            with undisturbed():
                ours.append(timed(lambda paths=paths: dictionary.intern_paths(paths)))
            if find_spec("pxr"):
                theirs.append(constructing(fresh(f"Theirs{repeat}", count)))
    if theirs:
        detail = f"{shown(median(ours) / count)} each, {shown(median(theirs) / count)}"
        ratio = median(theirs) / median(ours)
        yield Row(f"intern {count:.0e} paths: Sdf.Path / stage", ratio, 8, detail=detail, at_least=True)
    child = subprocess.run([sys.executable, __file__, str(count)], stdout=subprocess.PIPE, text=True, check=True)
    yield Row(f"memory per path, {count:.0e} paths", json.loads(child.stdout) / count, 150, "B")


def constructing(paths: list[str]) -> float:
    """Seconds that usd-core takes to make path objects."""
    from pxr import Sdf

    kept: list[Sdf.Path] = []
    with undisturbed():
        return timed(lambda: kept.extend(map(Sdf.Path, paths)))


def fresh(group: str, count: int) -> list[str]:
    """Paths that nobody has seen yet, shaped like those of a scene: hundreds of environments of a hundred prims."""
    return [f"/World/{group}/env_{i // 100}/prim_{i % 100}" for i in range(count)]


def kept_bytes(count: int) -> int:
    """What the process grows by, once the strings and the Python integers are gone."""
    from footprint import resident

    from ovstage import PathDictionary, Stage

    with Stage("bench") as stage, PathDictionary(stage) as dictionary:
        paths = fresh("Kept", count)
        dictionary.intern_paths(paths[:1])
        handles = [2**40 + i for i in range(count)]  # Python keeps the room of freed integers: fill it beforehand
        del handles
        before = resident()
        dictionary.intern_paths(paths)
        return resident() - before


if __name__ == "__main__":
    print(json.dumps(kept_bytes(int(sys.argv[1]))))
