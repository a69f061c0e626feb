"""The demo, run as a user runs it."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from children import run_child

MAIN = Path(__file__).resolve().parents[2] / "examples" / "python" / "scene_loop" / "main.py"
NEEDS = {"numpy": "numpy", "pxr": "usd-core", "warp": "warp-lang", "rich": "rich", "matplotlib": "matplotlib"}

SCENE = """#usda 1.0
def Xform "Arm"
{
    double3 xformOp:translate = (1, 0, 0)
    uniform token[] xformOpOrder = ["xformOp:translate"]

    def Cube "Hand"
    {
        double3 xformOp:translate = (0, 2, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
}
"""

missing = [package for module, package in NEEDS.items() if find_spec(module) is None]
pytestmark = pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def demo(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(MAIN), *map(str, arguments)]
    return run_child(command)


def has_newton() -> bool:
    try:
        return bool(importlib.metadata.version("newton"))
    except importlib.metadata.PackageNotFoundError:
        return False


@pytest.mark.skipif(not has_newton(), reason="not installed: newton, whose scene the demo shows")
def test_the_shipped_scene_runs_untorn(tmp_path: Path) -> None:
    picture = tmp_path / "made" / "paths.png"
    run = demo("--ticks", 20, "--out", picture)
    assert run.returncode == 0, run.stderr
    assert "torn" in run.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("ticks", [1, 20])
def test_any_scene_will_do(tmp_path: Path, ticks: int) -> None:
    scene = tmp_path / "arm.usda"
    scene.write_text(SCENE)
    run = demo("--scene", scene, "--ticks", ticks, "--out", tmp_path / "paths.png")
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "paths.png").stat().st_size > 0


@pytest.mark.parametrize("verbose", [False, True])
def test_what_is_not_represented_is_one_line_until_it_is_asked_for(tmp_path: Path, verbose: bool) -> None:
    scene = tmp_path / "arm.usda"
    scene.write_text(SCENE.replace('"Hand"', '"Hand" (prepend apiSchemas = ["OneAPI", "OtherAPI"])'))
    run = demo("--scene", scene, "--ticks", 1, "--out", tmp_path / "paths.png", *["--verbose"] * verbose)
    assert run.returncode == 0, run.stderr
    lines = [line for line in run.stdout.splitlines() if "not represented" in line]
    assert len(lines) == (2 if verbose else 1), run.stdout
    assert ("OneAPI" in run.stdout) == verbose
    assert ("--verbose names them" in run.stdout) != verbose


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "no such file"),
        ("not a scene", "cannot open USD file"),
        ('#usda 1.0\ndef "Nothing"\n{\n}\n', "nothing to move"),
    ],
)
def test_a_bad_scene_is_one_clear_line(tmp_path: Path, content: str | None, reason: str) -> None:
    scene = tmp_path / "scene.usda"
    if content is not None:
        scene.write_text(content)
    run = demo("--scene", scene, "--out", tmp_path / "paths.png")
    assert run.returncode == 2
    line = [line for line in run.stderr.splitlines() if not line.startswith("Warp ")]
    assert len(line) == 1, run.stderr
    assert reason in line[0]
    assert str(scene) in line[0]
    assert not (tmp_path / "paths.png").exists()
