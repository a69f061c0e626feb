"""Consumers that follow a stage by range reads for thousands of ordinals: every change reaches them exactly once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_model import GONE, NAMES, PATHS, PRIMS, Model, Play, by_groups

import ovstage
from ovstage import Filter, FilterOp, OrdinalRange, Predicate, PrimMode


class Follower:
    """What somebody knows who read everything once and goes on from there: values by attribute and path."""

    def __init__(self, play: Play, prims: list[int] | None, wanted: Filter | None = None) -> None:
        """For these prims, or for those that a filter matches at this moment."""
        self.stage, self.names, self.cursor = play.stage, play.names, play.model.floor
        self.query = play.stage.query(wanted) if prims is None else play.table(prims).query
        self.prims = self._matched() if prims is None else prims
        found = self._read(OrdinalRange.latest(self.cursor))
        self.known = {key: value for key, value in found.items() if value is not GONE}

    def _matched(self) -> list[int]:
        """The prims of a filter query, which the group of an attribute that each of them has names in order."""
        with self.stage.read_attributes(
            self.query, [self.names.intern_token("usd-path")], OrdinalRange.latest(0)
        ) as read:
            for group in read.groups():
                with group:
                    return [PATHS.index(path) for path in self.names.get_path_strings(group.prim_list)]
        return []

    def _read(self, span: OrdinalRange) -> dict[tuple[str, str], Any]:
        found = by_groups(self, span)
        return {(name, PATHS[self.prims[at]]): value for (name, at), value in found.items()}

    def token(self, name: str) -> int:
        return self.names.intern_token(name)

    def catch_up(self, model: Model) -> None:
        if self.cursor == model.floor:
            return
        found = self._read(OrdinalRange.between(self.cursor + 1, model.floor))
        expected = model.changes(self.prims, self.cursor + 1, model.floor)
        assert found == {(name, PATHS[self.prims[at]]): value for (name, at), value in expected.items()}
        for key, value in found.items():
            if value is GONE:
                self.known.pop(key, None)  # it may have come and gone since
            else:
                self.known[key] = value
        self.cursor = model.floor
        latest = model.latest(self.prims, model.floor)
        assert self.known == {(name, PATHS[self.prims[at]]): value for (name, at), value in latest.items()}


def produce(play: Play, rng: np.random.Generator) -> None:
    """A write, a delete or a map of some prims at one of the next ordinals."""
    prims = rng.permutation(PRIMS)[: rng.integers(1, PRIMS + 1)].tolist()
    names = rng.permutation(NAMES)[: rng.integers(1, 3)].tolist()
    ahead, seed = int(rng.integers(1, 4)), int(rng.integers(2**16))
    match rng.integers(10):
        case 0:
            play.delete(prims, [], ahead)
        case 1 | 2 | 3:
            play.delete(prims, names, ahead)
        case 4:
            play.map(prims, names[0], ahead, PrimMode.UPSERT, "current", seed)
            play.unmap(0)
        case _:
            play.write(prims, names, ahead, PrimMode.UPSERT, seed)


def follow(steps: int, seed: int, keeps: int = 0) -> None:
    rng = np.random.default_rng(seed)
    config = ovstage.StageConfig(history_ordinals=keeps)
    with ovstage.Stage(config=config) as stage, ovstage.PathDictionary(stage) as names:
        play = Play(stage, names, keeps)
        followers = [Follower(play, list(range(PRIMS))), Follower(play, [3, 0, 4])]
        for step in range(steps):
            produce(play, rng)
            if rng.random() < 0.5:
                play.seal(int(rng.integers(1, 3)))
                for follower in followers:
                    if rng.random() < 0.3:
                        follower.catch_up(play.model)
            if step % 50 == 20:
                play.seal(3)  # what the filter matches is sealed: nobody follows from the middle of a change
                wanted = [None, Filter([Predicate("x", FilterOp.HAS)])][step // 50 % 2]
                followers[2:] = [*followers[-3:], Follower(play, None, wanted)]
            if step % 100 == 99:
                forget(play.model, followers)
        play.seal(3)
        for follower in followers:
            follower.catch_up(play.model)


def forget(model: Model, followers: list[Follower]) -> None:
    """Keep the model small: nobody asks for what all have read."""
    oldest = min(model.oldest, *(follower.cursor for follower in followers))
    for known in model.history.values():
        past = sorted(ordinal for ordinal in known if ordinal <= oldest)
        for ordinal in past[:-1]:
            del known[ordinal]


@pytest.mark.parametrize("keeps", [0, 3])
@pytest.mark.parametrize("seed", range(3))
def test_every_change_once(seed, keeps):
    follow(600, seed, keeps)


@pytest.mark.slow
def test_every_change_once_for_long():
    follow(30_000, 100)
