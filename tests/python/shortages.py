"""Calls under shortage: each is made again and again, with memory for one more of its allocations every time.

A program of its own, run with ``tests/c/shortage.c`` loaded before libc; arguments name calls, none stands for all.
With ``--python`` what the interpreter allocates for the extension is scarce as well. A failure must be a MemoryError,
or an error of the package that says "out of memory"; it must change nothing and leave nothing behind, and the same call
must succeed as soon as there is memory.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from conftest import Table
from refusals import Scene
from scenes import contents

import ovstage
from ovstage import ErrorCode, Filter, FilterOp, OrdinalRange, PathDictionary, Predicate, Stage, WriteDesc, population

shortage = ctypes.CDLL(None)
begin, end = shortage.shortage_begin, shortage.shortage_end
begin.argtypes, begin.restype, end.restype = (ctypes.c_long, ctypes.c_long), None, None  # so that they do not allocate
FOR_EVER = 2**62
LAST = 20  # an ordinal above all others


class Prepared(Scene):
    """A scene with one of each thing that a call may be about, and a reader that makes writers copy."""

    def __init__(self) -> None:
        super().__init__(stage := Stage("shortage"), PathDictionary(stage))
        self.write("mass", np.float32([3, 4]), 6, mask=[2], count=2)
        self.write("omni:xform", np.tile(np.eye(4), (2, 1, 1)).reshape(2, 16), 6)
        self.seal(6)
        self.reading = stage.read_attributes(self.query, [self.token("mass")], OrdinalRange.latest(6))
        self.held = self.group("mass", 6)
        self.runs = self.group("runs", 6)
        self.mapping = self.map("point", 9)
        self.mapped = self.mapping.fetch_next()
        self.mapped.array(0)[:] = 7
        self.whole = self.map("mass", 9)
        self.hierarchy = stage.get_hierarchy_async(self.list, 6, ovstage.HierarchyRelation.PARENT)
        self.floor = stage.get_attribute_write_floor("mass")
        self.floor.wait()
        self.all = stage.query()
        self.all.wait()
        self.big = np.arange(2 * 40_000, dtype="f4").reshape(2, -1)
        self.fewer = Table(stage, self.names, ["/Few/A", "/Few/B", "/Few/C"])
        self.fewer.write("few", np.float32([1, 2, 3]), 7)
        self.fewer.seal(7)
        with self.names.create_path_list_from_strings(["/Few/A", "/Few/C"]) as paths:
            with stage.query_from_path_list(paths) as query:
                stage.delete_attributes(query, ["few"], 8).wait()
        self.fewer.seal(8)

    def contents(self) -> object:
        """All values, everything written so far sealed; but for tokens, which differ from stage to stage."""
        self.seal(LAST)
        return {key: value for key, value in contents(self.stage, LAST).items() if key[1] != "link"}

    def close(self) -> None:
        for group in (self.held, self.runs):
            if not group.released:
                group.release()
        for handle in (self.reading, self.hierarchy, self.floor, self.all):
            if handle._open:
                handle.release().wait()
        for mapping in (self.mapping, self.whole):
            if mapping._open:
                mapping.abort()
        self.fewer.close()
        super().close()
        self.names.destroy()
        self.stage.destroy()


def ended(handle: Any) -> None:
    handle.wait()
    handle.release().wait()


def listed(paths: Any) -> None:
    paths.release()


def filtered(scene: Prepared) -> None:
    ended(scene.ask("usd-path", FilterOp.IN, ["/World/Prim0", "/World/Prim1"]))


def condition(scene: Prepared) -> None:
    either = Filter([Predicate("mass", FilterOp.HAS), Predicate("usd-parent", FilterOp.IN, ["/World"])])
    ended(scene.stage.query(either))


def over_the_range(scene: Prepared) -> None:
    with scene.stage.read_attributes(scene.query, [scene.token("mass")], OrdinalRange.between(6, 6)) as read:
        read.wait()
        for group in read.groups():
            group.release()


def deletions(scene: Prepared) -> None:
    few, span = scene.token("few"), OrdinalRange.between(8, 8)
    with scene.stage.read_attributes(scene.fewer.query, [few], span) as read:
        read.wait()
        with read.fetch_next() as group:
            assert group.is_delete and group.prim_indices().tolist() == [0, 2]


def batch(scene: Prepared) -> None:
    writes = [
        WriteDesc("mass", np.float32([5, 6]), is_array=False),
        WriteDesc("fresh", np.float32([5, 6]), is_array=False),
        WriteDesc("runs", [np.int32([1, 2, 3]), np.int32([])], is_array=True),
    ]
    scene.stage.write_attributes(scene.query, writes, 9).wait()


SCENE = """#usda 1.0
def Xform "Root" {
    double mass = 3
    def Scope "Below" {
        int[] runs = [1, 2]
        string text = "a"
    }
}
"""
FILE = str(Path(tempfile.mkdtemp(prefix="shortage-"), "export.usda"))


def populated(scene: Prepared) -> None:
    """In a stage of its own: a scene takes the place of what the stage had of it, and keeps a session."""
    with Stage("populated") as stage:
        population.open_usd_from_string(stage, SCENE, 1)
        stage.advance_write_floor(1).wait()
        assert stage.get("/Root", "mass") == 3


def exported(scene: Prepared) -> None:
    rules = [{"source_attribute_name": "mass", "destination_attribute_name": "mass", "usd_type_name": "float"}]
    population.export_to_usd_file(scene.stage, FILE, 8, attribute_rules=rules)


def interned(scene: Prepared) -> None:
    scene.names.intern_token("of " + "a" * 300)


CALLS: dict[str, Callable[[Prepared], object]] = {
    "Stage()": lambda s: Stage("another").destroy(),
    "Stage(config)": lambda s: Stage("third", ovstage.StageConfig(history_ordinals=3)).destroy(),
    "PathDictionary()": lambda s: PathDictionary(s.stage).destroy(),
    "PathDictionary() of its own": lambda s: PathDictionary().destroy(),
    # writing
    "write": lambda s: s.put(np.float32([8, 9]), ordinal=9).wait(),
    "write strided": lambda s: s.put(np.float32([8, 0, 9, 0])[::2], ordinal=9).wait(),
    "write indexed": lambda s: s.put(np.float32([8, 9]), ordinal=9, index_map=np.uint32([1, 0])).wait(),
    "write masked": lambda s: s.put(np.float32([8, 9]), ordinal=9, mask=[2], count=2).wait(),
    "write a new attribute": lambda s: s.put(np.float32([8, 9]), "unheard of", ordinal=9).wait(),
    "write a large column": lambda s: s.put(s.big, "large", ordinal=9, is_array=True).wait(),
    "write ragged": lambda s: s.put([np.int32([1] * 9), np.int32([2])], "runs", ordinal=9, is_array=True).wait(),
    "write more runs": lambda s: s.put([np.int32([1])] * 2, "more", ordinal=9, is_array=True).wait(),
    "write transferred": lambda s: s.put(np.float32([8, 9]), ordinal=9, transfer=True).wait(),
    "write below the floor": lambda s: refused(lambda: s.put(np.float32([8, 9]), ordinal=2).wait()),
    "write_attributes": batch,
    "delete_attributes": lambda s: s.stage.delete_attributes(s.query, ["mass", "runs"], 9).wait(),
    "delete prims": lambda s: s.stage.delete_attributes(s.query, [], 9).wait(),
    "advance_write_floor": lambda s: s.seal(12),
    "advance_write_floor of some": lambda s: s.stage.advance_write_floor(12, 1, [s.token("mass")]).wait(),
    "get_attribute_write_floor": lambda s: ended(s.stage.get_attribute_write_floor("mass")),
    "get_oldest_preserved_ordinal": lambda s: ended(s.stage.get_oldest_preserved_ordinal()),
    "fetch_ordinal": lambda s: s.floor.fetch(),
    # queries
    "query_from_path_list": lambda s: s.stage.query_from_path_list(s.list).release().wait(),
    "query": filtered,
    "query of two": condition,
    "fetch_query_result": lambda s: s.stage.fetch_query_result(s.all),
    "refresh_query": lambda s: s.all.refresh().wait(),
    "release_query": lambda s: s.all.release().wait(),
    # reading
    "read_attributes": lambda s: ended(s.stage.read_attributes(s.all, [s.token("mass")], OrdinalRange.latest(6))),
    "read a range": over_the_range,
    "read deletions": deletions,
    "fetch_read_next": lambda s: s.reading.fetch_next().release(),
    "read": lambda s: s.stage.read(s.query, ["mass", "runs"]),
    "release_read": lambda s: s.reading.release().wait(),
    "release_group": lambda s: s.held.release(),
    "array": lambda s: s.held.array(0, shaped=True).copy(),
    "prim_indices": lambda s: (s.held.prim_indices(), s.held.data_rows()),
    "tensor": lambda s: s.held.tensor(0).shape[0],
    "dlpack": lambda s: np.from_dlpack(s.held.dlpack(0)).copy(),
    "dlpack, copied": lambda s: s.held.dlpack(0).__dlpack__(max_version=(1, 3), copy=True),
    "dlpack, legacy": lambda s: s.held.dlpack(0).__dlpack__(),
    "dlpack of an axis": lambda s: s.held.dlpack(0, shape=(1, -1)),
    "arrow": lambda s: s.held.__arrow_c_array__(),
    "arrow of runs": lambda s: s.runs.__arrow_c_array__(),
    "consume_dlpack": lambda s: ovstage._native.consume_dlpack(s.held.dlpack(0)),
    # mapping
    "map_attribute": lambda s: given_up(s.map("mass", 9)),
    "map_attribute of runs": lambda s: given_up(s.map("runs", 9, element_sizes=[3, 4])),
    "map_attribute, new": lambda s: given_up(s.map("new", 9, dtype=ovstage.numpy_to_dldatatype(np.float32, 3))),
    "map and fetch": lambda s: fetched(s.map("mass", 9, initial="discard")),
    "fetch_map_next": lambda s: s.whole.fetch_next(),
    "unmap_group": lambda s: s.mapping.unmap_group(s.mapped).wait(),
    "unmap": lambda s: s.mapping.unmap().wait(),
    "unmap unfetched": lambda s: s.whole.unmap().wait(),
    "abort": lambda s: s.whole.abort(),
    # scenes
    "clone": lambda s: s.stage.clone("/World/Prim0", ["/World/Copy1", "/World/Copy2"], 9),
    "compute_hierarchy": lambda s: s.stage.compute_hierarchy(9, 9),
    "get_hierarchy": lambda s: s.stage.get_hierarchy(s.list, 6, ovstage.HierarchyRelation.PARENT),
    "fetch_hierarchy_result": lambda s: s.hierarchy.result(),
    "models": lambda s: s.stage.get_hierarchy_computation_models(),
    # overviews
    "attributes": lambda s: s.stage.attributes(),
    "describe": lambda s: s.stage.describe(),
    "prims": lambda s: listed(s.stage.prims()),
    # files
    "open_usd": populated,
    "export": exported,
    # names
    "intern_token": interned,
    "intern_tokens": lambda s: s.names.intern_tokens(["one", "two"]),
    "token_to_string": lambda s: s.names.token_to_string(s.token("mass")),
    "intern_paths": lambda s: s.names.intern_paths(["/One", "/Two/Three"]),
    "path_to_string": lambda s: s.names.path_to_string(s.names.intern_path("/World/Prim1")),
    "create_path_list": lambda s: listed(s.names.create_path_list(s.names.get_paths(s.list))),
    "create_path_list_from_strings": lambda s: listed(s.names.create_path_list_from_strings(["/A", "/B"])),
    "get_path_strings": lambda s: s.names.get_path_strings(s.list),
    "path_list_count": lambda s: s.names.path_list_count(s.list),
    "unknown token": lambda s: refused(lambda: s.names.token_to_string(12345678)),
    # the process
    "counters": lambda s: s.stage.counters(),
    "process_counters": lambda s: ovstage.process_counters(),
    "trim": lambda s: ovstage._native.trim_memory(),
    "log": lambda s: logged(s),
}


def refused(call: Callable[[], object]) -> None:
    """A call that fails, and not for want of memory: then either reason may be given."""
    try:
        call()
    except (ovstage.OvstageError, ovstage.OvxError) as error:
        if "out of memory" in str(error):
            raise
        return
    raise AssertionError("not refused")


def given_up(mapping: ovstage.Map) -> None:
    mapping.wait()
    mapping.abort()


def fetched(mapping: ovstage.Map) -> None:
    mapping.wait()
    with mapping:
        mapping.fetch_next().array(0)[:] = 3


def logged(scene: Prepared) -> None:
    ovstage.set_log_callback(lambda *record: None, ovstage.LogSeverity.VERBOSE)
    try:
        assert not scene.put(np.float32([8, 9]), ordinal=1).ok  # which is a message
        ovstage.flush_log()
    finally:
        ovstage.set_log_callback(None)


def is_shortage(error: BaseException) -> bool:
    if isinstance(error, MemoryError):
        return True
    if isinstance(error, ovstage.OvstageError):
        return error.code == ErrorCode.OUT_OF_MEMORY
    return isinstance(error, ovstage.OvxError) and "out of memory" in error.message


faults: list[str] = []
untouched: object = None


def attempt(name: str, first: int, last: int) -> tuple[int, BaseException | None]:
    """One call, of whose allocations those from first to last fail: how many did, and the error."""
    scene = Prepared()
    before, error = scene.live(), None
    ovstage._native.trim_memory()  # or the pool would serve what the system refuses
    call = CALLS[name]
    begin(first, last)
    try:
        call(scene)
    except BaseException as raised:
        error = raised
    end()
    failed = shortage.shortage_failed()
    where = f"{name}, allocation {first}{' and all after it' if last > first else ''}"
    if error is not None:
        error.__traceback__ = error.__context__ = error.__cause__ = None  # they hold what the call held
        if not failed or not is_shortage(error):
            faults.append(f"{where}: {type(error).__name__}: {error}")
        gc.collect()
        if scene.live() != before:
            faults.append(f"{where}: of {before} there were then {scene.live()}")
        if last > first and scene.contents() != untouched:
            faults.append(f"{where}: values have changed")
        if last == first:
            try:
                call(scene)
            except BaseException as again:
                faults.append(f"{where}: once there was memory, {type(again).__name__}: {again}")
    scene.close()
    return failed, error


def exhaust(name: str, last: int) -> int:
    """Attempts until one has all the memory that it asks for: how many of them failed."""
    failures = 0
    for first in count(1):
        failed, error = attempt(name, first, max(first, last))
        failures += error is not None
        if not failed:
            return failures
    raise AssertionError


def main() -> None:
    global untouched
    if "--python" in sys.argv:
        sys.argv.remove("--python")
        shortage.shortage_python()
    scene = Prepared()
    untouched = scene.contents()
    scene.close()
    failures = sum(exhaust(name, last) for name in sys.argv[1:] or CALLS for last in (0, FOR_EVER))
    gc.collect()
    left = {name: n for name, n in ovstage.process_counters().items() if name.startswith("live_") and n}
    if left:
        faults.append(f"left at the end: {left}")
    print(*faults, f"{failures} failures", sep="\n")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
