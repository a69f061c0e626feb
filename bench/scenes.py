"""What prims are to each other: a pass over the transforms of a hundred thousand, and copies of an environment."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

import numpy as np
from measure import Effort, Row, shown, timed, undisturbed

from ovstage import AttributeSemantic, PathDictionary, Stage

ROBOTS, LINKS = 1000, 10
DEPTH = 10  # prims below each link, in a chain


def world_transforms(effort: Effort) -> Iterator[Row]:
    """Against the same products in NumPy, level by level, over parents that were looked up beforehand."""
    paths, parents = scene()
    levels = [np.flatnonzero([path.count("/") == depth for path in paths]) for depth in range(2, 3 + DEPTH)]
    locals_ = np.random.default_rng(1).normal(size=(len(paths), 4, 4))
    world = locals_.copy()

    def plain() -> None:
        world[levels[0]] = locals_[levels[0]]
        for level in levels[1:]:
            world[level] = locals_[level] @ world[parents[level]]

    with Stage("bench") as stage, PathDictionary(stage) as names, undisturbed():
        everyone = stage.query_from_path_list(names.create_path_list_from_strings(paths))
        hand = stage.query_from_path_list(names.create_path_list_from_strings(paths[-1:]))
        ordinal = 0

        def move(query: object, values: np.ndarray) -> float:
            """Seconds of the pass alone."""
            nonlocal ordinal
            ordinal += 1
            stage.write_attribute(
                query, "omni:xform", ordinal, values, is_array=False, semantic=AttributeSemantic.MATRIX
            ).wait()
            stage.advance_write_floor(ordinal).wait()
            return timed(lambda: stage.compute_hierarchy(ordinal, ordinal))

        first = move(everyone, locals_)
        all_of_them, theirs, one = [], [], []
        for repeat in range(effort.repeats):
            all_of_them.append(move(everyone, locals_ * (2 + repeat)))
            theirs.append(timed(plain))
            one.append(move(hand, locals_[-1:] * (2 + repeat)))
        everyone.release().wait()
        hand.release().wait()
    each = median(all_of_them)
    detail = f"{shown(each)}, {shown(median(theirs))}; the first pass {shown(first)}"
    yield Row(f"world transforms, all of {len(paths):.0e} move / NumPy", each / median(theirs), 0.5, detail=detail)
    yield Row("one of them moves / all", median(one) / each, 0.3, detail=shown(median(one)))


def scene() -> tuple[list[str], np.ndarray]:
    """Robots with links that are chains, and the position of each prim's parent."""
    paths, parents = [], []
    for robot in range(ROBOTS):
        top = len(paths)
        paths.append(f"/World/robot_{robot}")
        parents.append(-1)
        for link in range(LINKS):
            above = top
            for _ in range(DEPTH):
                parents.append(above)
                paths.append(f"{paths[above]}/link_{link}")
                above = len(paths) - 1
    return paths, np.array(parents)


def clones(effort: Effort) -> Iterator[Row]:
    """An environment of a hundred prims with ten columns, a thousand times, against copying the bytes alone."""
    prims, columns, times = 100, 10, 100 if effort.quick else 1000
    values = np.random.default_rng(1).normal(size=(prims, 16))
    copies = np.empty((columns, times, prims, 16))

    def plain() -> None:
        copies[...] = values

    ours, theirs = [], []
    for _ in range(3):
        with Stage("bench") as stage, PathDictionary(stage) as names, undisturbed():
            listed = names.create_path_list_from_strings([f"/Env/prim_{i}" for i in range(prims)])
            with stage.query_from_path_list(listed) as query:
                for column in range(columns):
                    stage.write_attribute(query, f"matrix{column}", 1, values, is_array=False).wait()
            targets = [f"/Envs/env_{i}" for i in range(times)]
            ours.append(timed(lambda stage=stage, targets=targets: stage.clone("/Env", targets, 2)))
        theirs.append(timed(plain))
    count = prims * columns * times
    detail = f"{shown(median(ours))}, {shown(median(ours) / count)} a value; {shown(median(theirs))}"
    yield Row(f"clone {count:.0e} values of 128 B / copy", median(ours) / median(theirs), 15, detail=detail)
