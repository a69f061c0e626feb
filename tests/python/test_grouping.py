"""How a read is cut into groups: as few as can be, the same in every read until prims join or leave a column."""

from __future__ import annotations

from typing import Any

import numpy as np
from conftest import Table
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ovstage import PathDictionary, Stage, StageConfig, numpy_to_dldatatype

BOTH_LEVELS = True

NAMES = ["x", "a"]
"""One value a prim, of another type from prim 9 on, and an array a prim."""

KEPT = 4
"""States of so many sealed ordinals are kept."""

prims = st.lists(st.integers(0, 11), min_size=1, max_size=12, unique=True)
steps = st.one_of(
    st.tuples(st.sampled_from(["write", "write", "map"]), prims, st.sampled_from(NAMES), st.integers(1, 3)),
    st.tuples(st.just("delete"), prims, st.sampled_from(NAMES), st.integers(1, 3)),
    st.tuples(st.just("seal"), st.just([0]), st.just("x"), st.integers(1, 3)),
)


def path(prim: int) -> str:
    return f"/World/P{prim}"


def groups_of(table: Table, name: str, ordinal: int) -> list[dict[str, Any]]:
    """What a client may cache of a latest read, and its layout generations."""
    found = []
    for group in table.groups(name, ordinal):
        with group:
            assert not group.is_delete
            assert group.data_count == group.prim_count > 0
            assert group.tensor_count == (group.prim_count if group.is_array else 1)
            found.append(
                {
                    "prims": group.prim_indices().tolist(),
                    "rows": group.data_rows().tolist(),
                    "maps": (group.has_prim_index_map, group.has_data_index_map),
                    "transported": () if group.is_array else group.tensor(0).shape_tuple,
                    "generation": group.meta.layout_generation,
                }
            )
    return found


def by_kind(prims: list[int], name: str) -> list[tuple[str, list[int]]]:
    """The element types that an attribute has on some prims, and the prims."""
    if name == "a":
        return [("u4", prims)]
    kinds = {"f4": [prim for prim in prims if prim < 9], "i2": [prim for prim in prims if prim >= 9]}
    return [(kind, part) for kind, part in kinds.items() if part]


class Play:
    """Random structure changes of 12 prims, and readers over fixed lists that watch how they are served."""

    def __init__(self, stage: Stage, names: PathDictionary) -> None:
        self.stage, self.names = stage, names
        self.ordinal = 0  # the floor
        self.looked = 0  # the ordinal of the last look
        for name in NAMES:
            self.write(list(range(6)), name, 1)
        self.seal([], "", 1)
        self.readers = [self.table(p) for p in ([0, 1, 2, 3, 4, 5], [1, 2, 3], [5, 0, 3], list(range(11, -1, -1)))]
        self.dense = self.readers[:2]  # the list that wrote first, and a part of it
        self.seen: dict[tuple[int, str], tuple[Any, int]] = {}
        self.states: dict[tuple[int, str, int], Any] = {}

    def table(self, prims: list[int]) -> Table:
        return Table(self.stage, self.names, [path(prim) for prim in prims])

    def write(self, prims: list[int], name: str, ahead: int) -> None:
        for kind, part in by_kind(prims, name):
            table = self.table(part)
            rows = [np.arange(prim % 3, dtype=kind) for prim in part] if name == "a" else np.array(part, kind)
            table.write(name, rows, self.ordinal + ahead, is_array=name == "a")
            table.close()

    def map(self, prims: list[int], name: str, ahead: int) -> None:
        for kind, part in by_kind(prims, name):
            table, dtype = self.table(part), numpy_to_dldatatype(np.dtype(kind))
            sizes = [prim % 3 for prim in part] if name == "a" else None
            ordinal = self.ordinal + ahead
            self.stage.map_attribute(table.query, name, ordinal, dtype=dtype, element_sizes=sizes).unmap().wait()
            table.close()

    def delete(self, prims: list[int], name: str, ahead: int) -> None:
        table = self.table(prims)
        self.stage.delete_attributes(table.query, [name], self.ordinal + ahead).wait()
        table.close()

    def seal(self, _: list[int], __: str, ahead: int) -> None:
        self.ordinal += ahead
        self.stage.advance_write_floor(self.ordinal).wait()

    def look(self) -> None:
        """At each ordinal that was sealed: rows that go at one and come back at the next are another layout."""
        while self.looked < self.ordinal:
            self.looked += 1
            self.look_at(self.looked)

    def look_at(self, ordinal: int) -> None:
        for name in NAMES:
            everybody = groups_of(self.readers[-1], name, ordinal)
            live = {self.readers[-1].paths[i] for group in everybody for i in group["prims"]}
            for at, reader in enumerate(self.readers):
                found = groups_of(reader, name, ordinal)
                self.states[at, name, ordinal] = found
                assert len(found) <= (2 if name == "x" else 1), "one group for each type"
                if not found:
                    if (at, name) in self.seen:  # its rows are gone: what comes later is another layout
                        self.seen[at, name] = None, self.seen[at, name][1]
                    continue
                (generation,) = {group["generation"] for group in found}
                if reader in self.dense and live >= set(reader.paths):
                    assert len(found) == 1
                    assert found[0]["maps"] == (False, False)
                    assert found[0]["transported"] in ((), (len(reader.paths),))
                layout = live, [{**group, "generation": 0} for group in found]
                then, before = self.seen.get((at, name), (layout, generation))
                assert before <= generation
                assert (then == layout) == (before == generation)
                self.seen[at, name] = layout, generation

    def look_back(self) -> None:
        """A kept state is served as it was when it was the newest."""
        for (at, name, ordinal), found in self.states.items():
            if ordinal > self.ordinal - KEPT:
                assert groups_of(self.readers[at], name, ordinal) == found

    def close(self) -> None:
        for reader in self.readers:
            reader.close()


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(program=st.lists(steps, min_size=5, max_size=30))
@example([("delete", [0, 5, 3], "x", 1), ("seal", [0], "x", 1), ("write", [0, 3, 5], "x", 1), ("seal", [0], "x", 1)])
@example([("delete", [0], "x", 1), ("write", [0], "x", 2), ("seal", [0], "x", 2)])
def test_groups_follow_the_structure_alone(program):
    with Stage(config=StageConfig(history_ordinals=KEPT)) as stage, PathDictionary(stage) as names:
        play = Play(stage, names)
        play.look()
        for what, *arguments in program:
            getattr(play, what)(*arguments)
            if what == "seal":
                play.look()
                play.look_back()
        play.close()
