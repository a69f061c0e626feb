"""Recordings: every ordinal comes back as it was, whatever was written, and whatever became of the files."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import ovstage
from ovstage import AttributeSemantic, OvstageError, Recording, Stage, StageConfig
from ovstage.command import main

pa = pytest.importorskip("pyarrow")
pytest.importorskip("xxhash")

PATHS = [f"/World/P{i}" for i in range(12)]
HISTORY = StageConfig(history_ordinals=200)


def value_of(rng: random.Random, name: str, count: int):
    """Values of one of the attributes of a play, and how they are written."""
    if name == "ragged":
        return [np.arange(rng.randrange(6), dtype="i4") for _ in range(count)], {"is_array": True}
    if name == "points":
        return [np.random.default_rng(rng.randrange(99)).random((rng.randrange(4), 3)) for _ in range(count)], {
            "is_array": True,
            "lanes": 3,
        }
    if name == "label":
        return [rng.choice(["a", "b", ""]) for _ in range(count)], {"type_name": "string"}
    if name == "tags":
        return [[rng.choice("xyz")] * rng.randrange(3) for _ in range(count)], {"type_name": "token[]"}
    if name == "on":
        return np.array([rng.random() < 0.5 for _ in range(count)]), {}
    if name == "frame":
        return np.random.default_rng(rng.randrange(99)).random((count, 16)), {"semantic": AttributeSemantic.MATRIX}
    if name == "either":  # of one type or of another
        values = np.random.default_rng(rng.randrange(99)).random(count)
        return values.astype(rng.choice(["f4", "f8"])), {}
    return np.random.default_rng(rng.randrange(99)).random((count, 3), np.float32), {}


NAMES = ["velocity", "frame", "ragged", "points", "label", "tags", "on", "either"]


def play(stage: Stage, rng: random.Random, first: int, last: int) -> dict[int, ovstage.tree.Tree]:
    """Write, delete and seal at random; what the stage showed at each ordinal."""
    seen = {}
    for ordinal in range(first, last + 1):
        for name in rng.sample(NAMES, rng.randrange(4)):
            prims = rng.sample(PATHS, rng.randrange(1, len(PATHS)))
            values, options = value_of(rng, name, len(prims))
            if rng.random() < 0.2 or name == "either":
                stage.delete(prims, [name], ordinal).wait()
            if name != "either" or rng.random() < 0.7:
                stage.write(prims, name, ordinal, values, **options).wait()
        if rng.random() < 0.1:
            stage.delete([rng.choice(PATHS)], [], ordinal).wait()
        stage.advance_write_floor(ordinal).wait()
        seen[ordinal] = stage.tree()
    return seen


def differences(before, after) -> str:
    found = before.difference(after)
    return repr(found) if found else ""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run.ovr"


@pytest.mark.parametrize("seed", range(6))
def test_every_ordinal_comes_back(run: Path, seed: int) -> None:
    rng = random.Random(seed)
    with Stage("play", HISTORY) as stage:
        seen = play(stage, rng, 1, 5)
        with stage.record(run) as recorder:
            seen.update(play(stage, rng, 6, 80))
        assert recorder.stats.ordinals == 80
        assert recorder.stats.joined == 0
    recording = Recording(run)
    assert not recording.damage
    for ordinal in [n for n in range(5, 81) if n >= min(recording.ordinals)]:
        with recording.at(ordinal) as stage:
            assert differences(seen[ordinal], stage.tree()) == "", ordinal
    with Stage("again") as stage:
        for ordinal in recording.replay(stage):
            assert differences(seen[ordinal], stage.tree()) == "", ordinal


@pytest.mark.parametrize("history", [0, 3, 300])
def test_a_loop_without_a_pause(run: Path, history: int) -> None:
    """The recorder comes late again and again. What it has is right, also where all values are deleted meanwhile."""
    rng, now, truth = random.Random(history), {}, {}
    with Stage("hot", StageConfig(history_ordinals=history)) as stage, stage.record(run):
        for ordinal in range(1, 4001):
            prims = rng.sample(PATHS[:4], rng.randrange(1, 5))
            if rng.random() < 0.3:
                stage.delete(prims, ["v"], ordinal)
                now = {path: value for path, value in now.items() if path not in prims}
            else:
                stage.write(prims, "v", ordinal, np.full(len(prims), ordinal, "f8"))
                now = now | dict.fromkeys(prims, float(ordinal))
            stage.advance_write_floor(ordinal)
            truth[ordinal] = now
    recording = Recording(run)
    for ordinal in recording.ordinals:
        with recording.at(ordinal) as stage:
            found = {path: prim.properties["v"].value for path, prim in stage.tree().items() if "v" in prim.properties}
        assert found == truth[ordinal], ordinal


@pytest.mark.parametrize("level", ["0.2", "0.3"])
def test_a_checkpoint_has_everything_at_both_levels(tmp_path: Path, level: str) -> None:
    with Stage("play", StageConfig(interface=level)) as stage:
        seen = play(stage, random.Random(7), 1, 30)
        stage.save(tmp_path / "checkpoint.ovr")
        with Stage.load(tmp_path / "checkpoint.ovr", StageConfig(interface=level)) as loaded:
            assert differences(seen[30], loaded.tree()) == ""
            assert {a.name: (a.type_name, a.semantic) for a in stage.attributes() if a.prim_count} == {
                a.name: (a.type_name, a.semantic) for a in loaded.attributes()
            }
        play(stage, random.Random(8), 31, 40)
        stage.save(tmp_path / "checkpoint.ovr")  # in the place of the older one
        with Stage.load(tmp_path / "checkpoint.ovr") as loaded:
            assert differences(stage.tree(), loaded.tree()) == ""
    assert os.listdir(tmp_path) == ["checkpoint.ovr"]


def test_relationships_and_their_targets_come_back(tmp_path: Path) -> None:
    with Stage() as stage:
        target = stage._intern_paths(["/World/Target", "/World/Other"])
        stage.write(
            ["/A"],
            "to",
            1,
            [np.array(target, np.uint64)],
            is_array=True,
            semantic=AttributeSemantic.RELATIONSHIP_PATH_ID,
        ).wait()
        stage.advance_write_floor(1).wait()
        stage.save(tmp_path / "a.ovr")
    with Stage.load(tmp_path / "a.ovr") as stage:
        assert stage._path_strings(stage.get("/A", "to").tolist()) == ["/World/Target", "/World/Other"]


def test_only_what_was_chosen_is_recorded(run: Path) -> None:
    with Stage() as stage:
        with stage.record(run, attributes=["mass"], query=["/A"]):
            stage.write(["/A", "/B"], "mass", 1, np.float32([1, 2])).wait()
            stage.write(["/A", "/B"], "drag", 1, np.float32([3, 4])).wait()
            stage.advance_write_floor(1).wait()
    with Recording(run).at(1) as stage:
        assert list(stage.prims()) == ["/A"]
        assert [attribute.name for attribute in stage.attributes()] == ["mass"]


def test_a_recorder_that_is_late_joins_and_says_so(run: Path) -> None:
    with Stage() as stage:
        recorder = stage.record(run, every=1000)
        for ordinal in range(1, 101):
            stage.write(["/A"], "mass", ordinal, np.float32([ordinal])).wait()
            stage.advance_write_floor(ordinal).wait()
        recorder.close()
        assert recorder.stats.ordinals == 100
    recording = Recording(run)
    with recording.at(100) as stage:
        assert stage.get("/A", "mass") == 100
    rows = recording.table("mass").to_pylist()
    assert sum(row["ordinal"] - row["since"] for row in rows if row["kind"] == "change") == recorder.stats.joined


def test_values_over_time(run: Path) -> None:
    with Stage("t", HISTORY) as stage, stage.record(run):
        for ordinal in range(1, 21):
            stage.write(PATHS, "velocity", ordinal, np.full((12, 3), ordinal, "f4")).wait()
            stage.advance_write_floor(ordinal).wait()
    recording = Recording(run)
    ordinals, prims, values = recording.trajectory("velocity", 3, 12)
    assert ordinals.tolist() == list(range(3, 13)) and prims == PATHS
    assert values.shape == (10, 12, 3) and values[:, 0, 0].tolist() == list(range(3, 13))
    rows = recording.table("velocity", 5, 6).to_pylist()
    assert {row["kind"] for row in rows} == {"change", "keyframe"}  # all was written: every other row is a keyframe
    assert [(row["ordinal"], row["prims"], row["value"][0]) for row in rows] == [
        (5, PATHS, [5, 5, 5]),
        (6, PATHS, [6, 6, 6]),
    ]


def test_polars_and_duckdb_read_it(run: Path, tmp_path: Path) -> None:
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    with Stage("t", HISTORY) as stage, stage.record(run):
        for ordinal in range(1, 6):
            stage.write(["/A", "/B"], "mass", ordinal, np.float64([ordinal, -ordinal])).wait()
            stage.advance_write_floor(ordinal).wait()
    (file,) = Recording(run).to_parquet(tmp_path / "parquet")
    frame = polars.read_parquet(file)
    assert frame["ordinal"].to_list() == [1, 2, 3, 4, 5]
    assert frame["value"].to_list() == [[n, -n] for n in range(1, 6)]
    last = duckdb.sql(f"select max(ordinal), max(list_max(value)) from '{file}'").fetchall()
    assert last == [(5, 5.0)]


def test_it_may_be_read_while_it_is_written(run: Path) -> None:
    with Stage("t", HISTORY) as stage, stage.record(run) as recorder:
        for ordinal in range(1, 4):
            stage.write(["/A"], "mass", ordinal, np.float32([ordinal])).wait()
            stage.advance_write_floor(ordinal).wait()
        while Recording(run).reached < 3:  # the test's own limit ends it
            pass
        assert recorder.stats.ordinals == 3
        with Recording(run).at(2) as early:
            assert early.get("/A", "mass") == 2


def recorded(run: Path) -> dict[int, float]:
    with Stage("t", HISTORY) as stage, stage.record(run):
        for ordinal in range(1, 200):
            stage.write(["/A", "/B"], "mass", ordinal, np.float64([ordinal, ordinal / 3])).wait()
            stage.write(["/A"], "label", ordinal, [f"label {ordinal % 7}"], type_name="string").wait()
            stage.advance_write_floor(ordinal).wait()
    return {ordinal: ordinal / 3 for ordinal in range(1, 200)}


def test_damage_is_a_sentence_and_never_a_wrong_value(run: Path, tmp_path: Path) -> None:
    right, rng, refusals = recorded(run), random.Random(3), []
    files = sorted(file for file in run.iterdir() if file.stat().st_size)
    for trial in range(150):
        broken = tmp_path / f"broken{trial}"
        shutil.copytree(run, broken)
        file = broken / rng.choice(files).name
        content = bytearray(file.read_bytes())
        if trial % 2:
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        else:
            del content[rng.randrange(len(content)) :]
        file.write_bytes(content)
        try:
            recording = Recording(broken)
            for ordinal in (1, 60, 130, 199):
                if ordinal <= recording.reached:
                    with recording.at(ordinal) as stage:
                        assert stage.get("/B", "mass") == right[ordinal]
                        assert stage.get("/A", "label") == f"label {ordinal % 7}"
        except OvstageError as error:
            refusals.append(error.message)
        shutil.rmtree(broken)
    assert len(refusals) > 30
    assert all(str(tmp_path) in text for text in refusals)


def test_other_folders_are_refused(tmp_path: Path, run: Path) -> None:
    with pytest.raises(OvstageError, match="it is no recording"):
        Recording(tmp_path)
    with pytest.raises(OvstageError, match="it is no recording"):
        Recording(tmp_path / "nothing")
    with Stage() as stage:
        stage.save(run)
        with pytest.raises(OvstageError, match="is there already: choose another, or delete it"):
            stage.record(run)
        (tmp_path / "mine").mkdir()
        with pytest.raises(OvstageError, match="is there and no recording"):
            stage.save(tmp_path / "mine")
        with pytest.raises(ValueError, match="every must be at least 1, got 0"):
            stage.record(tmp_path / "x", every=0)
        with pytest.raises(OvstageError, match="there is no folder"):
            stage.record(tmp_path / "x" / "y")
    manifest = run / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(OvstageError, match="its format is version 2, this library reads up to 1: use a newer"):
        Recording(run)


def test_ordinals_outside_and_names_that_are_not_there(run: Path) -> None:
    recorded(run)
    recording = Recording(run)
    for ordinal in (200, 2**63):
        with pytest.raises(OvstageError, match=f"ordinal {ordinal} is not in <Recording .* which has 1 to 199"):
            recording.at(ordinal)
    with pytest.raises(KeyError, match="'speed' was not recorded; there are label, mass"):
        recording.table("speed")


KILLED = """
import sys, numpy as np
from ovstage import Stage, StageConfig
stage = Stage("killed", StageConfig(history_ordinals=100))
recorder = stage.record(sys.argv[1])
for ordinal in range(1, 1 << 40):
    stage.write(["/A", "/B"], "mass", ordinal, np.float64([ordinal, ordinal / 3])).wait()
    stage.advance_write_floor(ordinal).wait()
    if ordinal % 50 == 0:
        print(recorder.stats.ordinals, flush=True)
"""


@pytest.mark.parametrize("lines", [1, 7, 40])
def test_a_kill_loses_nothing_that_was_flushed(tmp_path: Path, lines: int) -> None:
    run = tmp_path / "run.ovr"
    child = subprocess.Popen([sys.executable, "-c", KILLED, str(run)], stdout=subprocess.PIPE, text=True)
    assert child.stdout
    for _ in range(lines):
        child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    recording = Recording(run)
    for ordinal in recording.ordinals[-3:]:
        with recording.at(ordinal) as stage:
            assert stage.get("/B", "mass") == ordinal / 3


FULL = """
import resource, signal, sys, numpy as np
from ovstage import OvstageError, Stage
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
stage = Stage()
recorder = stage.record(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
ordinal = 0
while recorder._error is None:
    ordinal += 1
    stage.write(["/A"], "mass", ordinal, [np.random.rand(1000)], is_array=True).wait()
    stage.advance_write_floor(ordinal).wait()
stage.write(["/A"], "drag", ordinal + 1, np.float32([1])).wait()
stage.advance_write_floor(ordinal + 1).wait()
assert stage.get("/A", "drag") == 1
try:
    recorder.close()
except OvstageError as error:
    print(error.message)
"""


def test_a_full_disk_stops_the_recorder_and_not_the_stage(tmp_path: Path) -> None:
    run = tmp_path / "run.ovr"
    done = subprocess.run([sys.executable, "-c", FULL, str(run)], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert "ends at ordinal" in done.stdout and "File too large" in done.stdout
    recording = Recording(run)
    if recording.ordinals:
        recording.at(recording.ordinals[-1]).destroy()


def test_a_stage_that_ends_ends_its_recorder(run: Path) -> None:
    stage = Stage()
    recorder = stage.record(run)
    stage.destroy()
    with pytest.raises(OvstageError, match=r"the recording .* ends at ordinal 0: .* destroyed"):
        recorder.close()
    recorder.close()
    assert Recording(run).ordinals == []


def test_many_writers_and_one_recorder(run: Path) -> None:
    """Writers of attributes of their own, sealed each by itself: the last state is what was written."""
    with Stage("many", HISTORY) as stage:

        def write(name: str) -> None:
            for ordinal in range(1, 120):
                stage.write(PATHS, name, ordinal, np.full(12, ordinal, "f4")).wait()
                stage.advance_write_floor(ordinal, ovstage.Scope.INCLUDE, [name]).wait()

        with stage.record(run):
            writers = [threading.Thread(target=write, args=(f"a{k}",)) for k in range(3)]
            for thread in writers:
                thread.start()
            for thread in writers:
                thread.join()
            stage.advance_write_floor(119).wait()
        with Recording(run).at(119) as again:
            assert differences(stage.tree(), again.tree()) == ""


def test_the_terminal_shows_recordings(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(run)
    assert main(["show", f"{run}@60", "--attributes", "mass"]) == 0
    assert ".mass  float64  60" in capsys.readouterr().out
    assert main(["show", str(run), "--at", "7"]) == 0
    assert ".mass  float64  7" in capsys.readouterr().out
    assert main(["diff", f"{run}@60", f"{run}@67"]) == 1
    assert "~ /A .mass  float64  60 -> 67  (by 7)" in capsys.readouterr().out
    assert main(["diff", str(run), f"{run}@199"]) == 0
    assert main(["record-info", str(run)]) == 0
    said = capsys.readouterr().out
    assert "ordinals 1 to 199, 2 attributes" in said and "string" in said
    for words in (["show", f"{run}@900"], ["record-info", str(run.parent)], ["show", str(run.parent)]):
        assert main(words) == 1
        assert capsys.readouterr().err.count("\n") == 1
