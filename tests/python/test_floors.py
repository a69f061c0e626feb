"""Write floors in their three scopes, against two numbers for each attribute."""

from __future__ import annotations

import numpy as np
from conftest import Table
from hypothesis import given, settings
from hypothesis import strategies as st

from ovstage import ErrorCode, OrdinalRange, PathDictionary, Scope, Stage

NAMES = ["a", "b", "c", "usd-prim-type"]

some = st.lists(st.sampled_from(NAMES), max_size=3)
ordinals = st.integers(0, 12)
steps = st.one_of(
    st.tuples(st.just("advance"), st.sampled_from(Scope), some, ordinals),
    st.tuples(st.just("write"), st.sampled_from(NAMES), ordinals),
    st.tuples(st.just("delete"), st.sampled_from(NAMES), ordinals),
)


class Play:
    """One prim, its attributes, and what the floors must be."""

    def __init__(self, stage: Stage, names: PathDictionary) -> None:
        self.table = Table(stage, names, ["/A"])
        self.everywhere = 0
        self.own = dict.fromkeys(NAMES, 0)
        self.known: set[str] = set()  # EXCLUDE means these: what was ever written or listed by INCLUDE

    def floor(self, name: str) -> int:
        return max(self.everywhere, self.own[name])

    def advance(self, scope: Scope, listed: list[str], ordinal: int) -> None:
        tokens = [self.table.token(name) for name in listed]
        self.table.stage.advance_write_floor(ordinal, scope, tokens).wait()
        if scope == Scope.ALL or (scope == Scope.EXCLUDE and not listed):
            self.everywhere = max(self.everywhere, ordinal)
            return
        if scope == Scope.INCLUDE:
            self.known |= set(listed)
        for name in listed if scope == Scope.INCLUDE else self.known - set(listed):
            self.own[name] = max(self.own[name], ordinal)

    def write(self, name: str, ordinal: int) -> None:
        op = self.table.stage.write_attribute(self.table.query, name, ordinal, np.uint64([0]), is_array=False)
        assert op.status == (ErrorCode.WRITE_FLOOR_VIOLATION if ordinal <= self.floor(name) else 0)
        if op.ok:
            self.known.add(name)
        else:
            assert name in op.error_message() and str(self.floor(name)) in op.error_message()

    def delete(self, name: str, ordinal: int) -> None:
        op = self.table.stage.delete_attributes(self.table.query, [name], ordinal)
        assert op.status == (ErrorCode.WRITE_FLOOR_VIOLATION if ordinal <= self.floor(name) else 0)

    def check(self) -> None:
        stage = self.table.stage
        for name in [None, "nobody's", *NAMES]:
            expected = self.floor(name) if name in self.own else self.everywhere
            with stage.get_attribute_write_floor(name) as floor:
                assert floor.fetch() == expected
        for name in NAMES:
            with stage.read_attributes(self.table.query, [self.table.token(name)], OrdinalRange.latest(0)) as read:
                for group in read.groups():
                    with group:
                        assert group.meta.attribute_write_floor_ordinal == self.floor(name)


@settings(max_examples=60, deadline=None)
@given(program=st.lists(steps, min_size=5, max_size=30))
def test_floors_of_every_scope(program):
    with Stage() as stage, PathDictionary(stage) as names:
        play = Play(stage, names)
        for what, *arguments in program:
            getattr(play, what)(*arguments)
            play.check()
        play.table.close()


def test_a_floor_does_not_wait_and_orders_what_was_submitted_before(table):
    """Nobody waits in between: the last wait answers for all."""
    stage, token = table.stage, table.token("x")
    stage.write_attribute(table.query, token, 1, np.float32([1, 2]), is_array=False)
    stage.advance_write_floor(1)
    later = stage.write_attribute(table.query, token, 2, np.float32([3, 4]), is_array=False)
    late = stage.write_attribute(table.query, token, 1, np.float32([5, 6]), is_array=False)
    with stage.read_attributes(table.query, [token], OrdinalRange.latest(2)) as read, read.fetch_next() as group:
        assert group.array(0).tolist() == [1, 2]
    later.wait()
    assert late.status == ErrorCode.WRITE_FLOOR_VIOLATION
