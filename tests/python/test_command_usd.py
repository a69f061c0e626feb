"""``python -m ovstage usd FILE``: a scene is loaded, and what came of it is said."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from children import run_child

from ovstage import population
from ovstage.command import main

SCENE = """#usda 1.0
def Xform "World"
{
    def Sphere "Ball"
    {
        double radius = 2
    }
}
"""


@pytest.fixture
def scene(tmp_path: Path) -> str:
    file = tmp_path / "scene.usda"
    file.write_text(SCENE)
    return str(file)


def test_a_pipe_whose_reader_has_ended_is_no_fault(scene):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = run_child([sys.executable, "-m", "ovstage", "usd", scene], stdout=writer)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


def test_what_came_of_a_scene(scene, capsys):
    assert main(["usd", scene]) == 0
    path, *lines = capsys.readouterr().out.splitlines()
    said = dict(line.split(maxsplit=1) for line in lines)
    assert path == scene
    assert said["prims"] == "3"  # the root that carries the units, World and Ball
    assert int(said["columns"]) > 3 and int(said["values"]) >= int(said["columns"])
    assert int(said["bytes"].replace(",", "")) > 100
    assert "compose" in said["seconds"] and said["skipped"] == "0"


def test_what_cannot_be_loaded(tmp_path, capsys):
    assert main(["usd", str(tmp_path / "none.usda")]) == 1
    said = capsys.readouterr()
    assert said.out == "" and "there is no such file" in said.err


def test_a_time_without_end(scene, capsys):
    assert main(["usd", scene, "--time", "inf"]) == 1
    assert "time_code must be finite" in capsys.readouterr().err


def test_no_usd(scene, monkeypatch, capsys):
    monkeypatch.setattr("ovstage.population.requirements.find_spec", lambda name: None)
    assert main(["usd", scene]) == 1
    assert "pip install" in capsys.readouterr().err


def test_ctrl_c(scene, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(population, "open_usd", interrupted)
    assert main(["usd", scene]) == 130
    assert "nothing was loaded" in capsys.readouterr().err


def test_an_unknown_domain(scene, capsys):
    with pytest.raises(SystemExit):
        main(["usd", scene, "--domains", "sound"])
    assert "sound" in capsys.readouterr().err


def test_a_bar_for_whoever_looks(scene):
    pytest.importorskip("rich")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "ovstage", "usd", scene], stdout=subprocess.PIPE, stderr=theirs
    ) as run:
        os.close(theirs)
        seen = b""
        while True:
            try:
                block = os.read(ours, 4096)
            except OSError:  # the other side has closed the terminal
                break
            if not block:
                break
            seen += block
        said = run.stdout.read().decode()
    os.close(ours)
    assert run.returncode == 0 and "prims" in said
    assert b"reading prims" in seen or b"writing columns" in seen


def test_a_scene_is_shown(scene, capsys):
    assert main(["show", scene, "--attributes", "radius"]) == 0
    assert capsys.readouterr().out == (
        "/\n/World  Xform\n  Ball  Sphere\n    .radius  double  2\n3 prims, 1 value, as of ordinal 1\n"
    )
    assert main(["show", scene, "--prims", "*/Ball", "--attributes", "rad*", "--json"]) == 0
    (prim,) = json.loads(capsys.readouterr().out)["prims"]
    assert (prim["path"], prim["type"], prim["properties"][0]["value"]) == ("/World/Ball", "Sphere", 2.0)


def test_two_scenes_are_compared(scene, tmp_path, capsys):
    other = tmp_path / "other.usda"
    other.write_text(SCENE.replace("radius = 2", "radius = 2.5"))
    assert main(["diff", scene, scene]) == 0
    assert capsys.readouterr().out == "no difference\n"
    assert main(["diff", scene, str(other), "--attributes", "radius"]) == 1
    assert capsys.readouterr().out == (
        "~ /World/Ball .radius  double  2 -> 2.5  (by 0.5)\n0 prims added, 0 removed, 1 value changed, by at most 0.5\n"
    )
    assert main(["diff", scene, str(other), "--json"]) == 1
    assert {change["name"] for change in json.loads(capsys.readouterr().out)["changed"]} == {"radius"}


@pytest.mark.parametrize("command", [["show"], ["diff", "{scene}"]])
def test_what_is_no_scene_is_said(command, scene, tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("nothing")
    (tmp_path / "broken.usda").write_text("#usda 1.0\ndef {")
    for name, reason in (("none.usda", "no such file"), ("notes.txt", "no USD format"), ("broken.usda", "broken.usda")):
        arguments = [word.format(scene=scene) for word in command]
        assert main([*arguments, str(tmp_path / name)]) == (1 if command == ["show"] else 2)
        said = capsys.readouterr()
        assert said.out == "" and reason in said.err and "Traceback" not in said.err
