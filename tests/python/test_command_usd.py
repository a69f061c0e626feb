"""``python -m ovstage usd FILE``: a scene is loaded, and what came of it is said."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

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
