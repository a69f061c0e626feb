"""Filters over a million prims, what it costs to make them possible, and what they cost those who write.

Times are those that the calling thread, on which the engine runs, spends on a processor: a busy machine hardly changes
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from statistics import median
from time import thread_time

import numpy as np
from measure import Effort, Row, shown, undisturbed

from ovstage import Filter, FilterOp, PathDictionary, Predicate, Stage

FLAT = "/World/particle_{:07}"
DEEP = "/World/envs/env_{}/robot_{}/link_{}"
LIMIT = 10.0  # ms


def timed(call: Callable[[], object]) -> float:
    """Processor seconds of one call."""
    start = thread_time()
    call()
    return thread_time() - start


class Scene:
    """Half of the prims in one flat family, half in environments of a thousand, each with a type and two schemas."""

    def __init__(self, stack: ExitStack, count: int) -> None:
        self.stage = stack.enter_context(Stage("bench"))
        self.names = stack.enter_context(PathDictionary(self.stage))
        self.stack, self.count = stack, count
        self.paths = [FLAT.format(i) for i in range(count // 2)]
        self.paths += [DEEP.format(i // 1000, i // 10 % 100, i % 10) for i in range(count // 2)]
        self.everything = self.select(self.paths)
        self.write(self.everything, "mass", np.arange(count, dtype=np.float32))
        types = np.uint64(self.names.intern_tokens(["Mesh", "Xform", "Cube", "Sphere", "PhysicsScene"]))
        chosen = types[np.arange(count) * 7 % 4]
        chosen[-1] = types[4]
        self.write(self.everything, "usd-prim-type", chosen)
        schemas = np.uint64(self.names.intern_tokens(["RigidBodyAPI", "MaterialAPI", "RootAPI"]))
        rows = schemas[np.tile([0, 1], count).reshape(count, 2)]
        rows[-1, 1] = schemas[2]
        self.stage.write_attribute(self.everything, "usd-schemas", 1, rows, is_array=True).wait()
        self.one = self.select(self.paths[:1])

    def select(self, paths: list[str]):
        listed = self.stack.enter_context(self.names.create_path_list_from_strings(paths))
        return self.stack.enter_context(self.stage.query_from_path_list(listed))

    def write(self, query, name: str, values: np.ndarray) -> None:
        self.stage.write_attribute(query, name, 1, values, is_array=False).wait()

    def ask(self, chosen: Filter | None) -> None:
        query = self.stage.query(chosen)
        query.wait()
        query.release().wait()


def answers(effort: Effort) -> Iterator[Row]:
    """Each kind of filter: the first time, when it makes what it needs, and from then on."""
    count = 10**5 if effort.quick else 10**6
    with ExitStack() as stack:
        scene = Scene(stack, count)
        for what, chosen in kinds(count).items():
            with undisturbed():
                first = timed(lambda chosen=chosen: scene.ask(chosen))
                times = [timed(lambda chosen=chosen: scene.ask(chosen)) for _ in range(effort.repeats)]
            limit = LIMIT if "mass" not in what else None
            yield Row(f"{count:.0e} prims: {what}", 1e3 * median(times), limit, "ms", f"first time {shown(first)}")
        yield from after_writes(scene, effort)
        yield from objects(scene, effort)


def kinds(count: int) -> dict[str, Filter | None]:
    def where(attribute: str, op: FilterOp, *values: str) -> Filter:
        return Filter([Predicate(attribute, op, values)])

    near = where("usd-path", FilterOp.PREFIX, "/World/envs/env_17/")
    cube = where("usd-prim-type", FilterOp.IN, "Cube")
    return {
        "every prim": None,
        "PREFIX, one environment": near,
        "PREFIX, the beginning of a name": where("usd-path", FilterOp.PREFIX, FLAT.format(1)[:-1]),
        "PREFIX, half of them": where("usd-path", FilterOp.PREFIX, "/World/envs/"),
        "parent IN, ten": where("usd-parent", FilterOp.IN, "/World/envs/env_3/robot_4"),
        "parent IN, half of them": where("usd-parent", FilterOp.IN, "/World"),
        "children CONTAINS": where("usd-children", FilterOp.CONTAINS, "/World/envs/env_3/robot_4/link_1"),
        "type IN, one": where("usd-prim-type", FilterOp.IN, "PhysicsScene"),
        "type IN, a quarter": cube,
        "schemas CONTAINS, one": where("usd-schemas", FilterOp.CONTAINS, "RootAPI"),
        "schemas CONTAINS, all": where("usd-schemas", FilterOp.CONTAINS, "RigidBodyAPI"),
        "type, prefix and not schema": Filter(
            [cube, near, Filter.none_of([where("usd-schemas", FilterOp.CONTAINS, "RootAPI")])]
        ),
        "type or prefix": Filter.any_of([cube, near]),
        "mass LT": where("mass", FilterOp.LT, str(count // 100)),
    }


def after_writes(scene: Scene, effort: Effort) -> Iterator[Row]:
    """A filter right after a write that it has to look at."""
    stage, names, count = scene.stage, scene.names, scene.count
    types = np.uint64(names.intern_tokens(["Mesh", "Cube"]))
    one = Filter([Predicate("usd-prim-type", FilterOp.IN, ["PhysicsScene"])])

    def retyped(turn: int) -> float:
        scene.write(scene.one, "usd-prim-type", types[turn % 2 :][:1])
        return timed(lambda: scene.ask(one))

    with undisturbed():
        times = [retyped(turn) for turn in range(effort.repeats)]
    yield Row(f"{count:.0e} prims: type IN, after one was retyped", 1e3 * median(times), LIMIT, "ms")

    fresh = scene.select([f"/World/spawned/p{i}" for i in range(1000)])
    below = Filter([Predicate("usd-path", FilterOp.PREFIX, ["/World/spawned/"])])

    def spawned() -> float:
        scene.write(fresh, "mass", np.zeros(1000, np.float32))
        took = timed(lambda: scene.ask(below))
        stage.delete_attributes(fresh, [], 1).wait()
        return took + timed(lambda: scene.ask(below))

    with undisturbed():
        spawned()
        times = [spawned() for _ in range(effort.repeats)]
    yield Row(f"{count:.0e} prims: PREFIX, after 1,000 came and went", 1e3 * median(times) / 2, LIMIT, "ms")


def objects(scene: Scene, effort: Effort) -> Iterator[Row]:
    """Asking again, and asking what the prims carry where they carry little of what there is."""
    for number in range(50):
        scene.write(scene.one, f"rare{number}", np.float32([1]))
    chosen = Filter([Predicate("usd-path", FilterOp.PREFIX, ["/World/envs/"])])
    with scene.stage.query(chosen) as query, undisturbed():
        refresh = [timed(lambda: query.refresh().wait()) for _ in range(effort.repeats)]
        result = [timed(query.result) for _ in range(effort.repeats)]
    yield Row("refresh, half of them", 1e3 * median(refresh), LIMIT, "ms")
    yield Row("result, half of them, 50 attributes that none has", 1e3 * median(result), LIMIT, "ms")


def upkeep(effort: Effort) -> Iterator[Row]:
    """The first write of fresh prims, with and without anybody who filters."""
    count = 10**5 if effort.quick else 10**6
    paths = [DEEP.format(i // 1000, i // 10 % 100, i % 10) for i in range(count)]
    times = [(creating(paths, asked=False), creating(paths, asked=True)) for _ in range(3 if effort.quick else 5)]
    interning = median(intern for pair in times for intern, _ in pair)
    plain, kept = (median(write for _, write in turn) for turn in zip(*times, strict=True))
    detail = f"{shown(plain)} without, {shown(kept)} with; interning them {shown(interning)}"
    ratio = (interning + kept) / (interning + plain)
    yield Row(f"intern and first write of {count:.0e} prims: filters kept up / not", ratio, 1.25, detail=detail)


def creating(paths: list[str], asked: bool) -> tuple[float, float]:
    """Interning paths, and the first write to them, on a stage that was asked for the tree of its prims or not."""
    with ExitStack() as stack:
        stage = stack.enter_context(Stage("bench"))
        names = stack.enter_context(PathDictionary(stage))
        if asked:  # from now on every new prim enters the tree
            stage.query(Filter([Predicate("usd-path", FilterOp.PREFIX, ["/World/envs/"])])).release().wait()
        values = np.zeros(len(paths), np.float32)
        with undisturbed():
            interning = timed(lambda: names.intern_paths(paths))
            listed = stack.enter_context(names.create_path_list_from_strings(paths))
            query = stack.enter_context(stage.query_from_path_list(listed))
            return interning, timed(lambda: stage.write_attribute(query, "mass", 1, values, is_array=False).wait())
