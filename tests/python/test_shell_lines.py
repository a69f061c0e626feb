"""Every shell line of the README and the guides is run: here, or by .ci/run where no test can run it within itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ovstage

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [ROOT / "README.md", *sorted(ROOT.glob("docs/guides/*.md"))]

BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`((?:\./build\.sh|pip|python|cc|cmake|pkg-config|make) [^`]+)`")

# The lines of .ci/run that run them, or more than they do.
CI = {
    "./build.sh build": "lint",
    "./build.sh test": "test",
    "./build.sh wheel": "wheel",
    "./build.sh demo": "demo",
    "./build.sh bench": "bench --quick",
    "python bench/run.py --only filters": "bench --quick",
}

# They install, or take minutes.
SLOW = [
    "pip install '.[numpy]'",
    "pip install '.[usd]'",
    "pip install '.[record]'",
    "pip install 'usd-core>=26.5' numpy",
    "pip install dist/*.whl",
    "python -m ovstage bench",
]

QUICK = [
    "python -m ovstage self-test",
    "python -m ovstage info",
    "python -m ovstage usd FILE",
    "python -m ovstage show FILE",
    "python -m ovstage diff FILE FILE",
    "python -m ovstage record-info run.ovr",
]

NEWER = "OVSTAGE_INTERFACE=0.3 python simulate.py"

NOT_TO_DO = ["pip install ovstage"]  # named to warn of it

PRINTED = "/A 0 0 -9.81\n/B 0 0 0\n"


def blocks() -> list[list[str]]:
    """The lines of each block, without their comments."""
    found = [match[1] for text in TEXTS for match in BLOCK.finditer(text.read_text())]
    return [[re.sub(r"\s+# .*", "", line) for line in block.splitlines()] for block in found]


def test_every_line_is_run() -> None:
    spans = {" ".join(span.split()) for text in TEXTS for span in SPAN.findall(text.read_text())}
    lines = {line for block in blocks() for line in block} - set(c_lines()) | spans
    assert lines == {*CI, *SLOW, *QUICK, NEWER, *NOT_TO_DO}
    for text in TEXTS:
        fences = re.findall(r"^```(.*)$", text.read_text(), re.MULTILINE)[::2]
        assert set(fences) <= {"go", "python", "text", "sh"}, text.name


def test_ci_runs_what_no_test_can() -> None:
    words = re.search(r"^for command in (.*); do$", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    assert words
    assert set(CI.values()) <= {quoted or word for quoted, word in re.findall(r"'(.*?)'|(\S+)", words[1])}


# --- C --------------------------------------------------------------------------------------------------------------


def c_lines() -> list[str]:
    (block,) = (block for block in blocks() if any("first.c" in line for line in block))
    return block


@pytest.mark.parametrize("folder", ["plain", "with a space"])
def test_c_lines(folder: str, tmp_path: Path) -> None:
    """What is built is built already: in the folder lie the example and the prefix of `./build.sh build`."""
    if missing := [tool for tool in ("pkg-config", "cmake") if shutil.which(tool) is None]:
        assert "CI" not in os.environ, f"install {missing}"
        pytest.skip(f"there is no {' and no '.join(missing)} here")
    tree = tmp_path / folder
    shutil.copytree(ROOT / "examples/c", tree / "examples/c")
    shutil.copytree(ROOT / "build/prefix", tree / "build/prefix")
    script = "\n".join(["set -eu", *c_lines()])
    done = subprocess.run(["bash", "-c", script], cwd=tree, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(PRINTED)
    assert done.stdout.endswith(PRINTED)


# --- the package ----------------------------------------------------------------------------------------------------


def run(line: str, cwd: Path, scripts: Path, timeout: int = 300) -> str:
    """A line in a shell whose `python` and `pip` are those of a folder of scripts."""
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    env["PATH"] = f"{scripts}{os.pathsep}{env['PATH']}"
    done = subprocess.run(["bash", "-c", line], cwd=cwd, env=env, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("line", QUICK)
def test_quick_line(line: str, tmp_path: Path) -> None:
    (tmp_path / "scene.usda").write_text('#usda 1.0\ndef Xform "World"\n{\n}\n')
    if "run.ovr" in line:
        with ovstage.Stage() as stage:
            stage.save(tmp_path / "run.ovr")
    assert run(line.replace("FILE", "scene.usda"), tmp_path, Path(sys.executable).parent)


def test_a_client_of_the_newer_level(tmp_path: Path) -> None:
    (tmp_path / "simulate.py").write_text(
        "import ovstage\nprint(ovstage.library_version(), ovstage.Stage().interface)\n"
    )
    assert run(NEWER, tmp_path, Path(sys.executable).parent) == "(0, 3, 0) 0.3\n"


@pytest.mark.slow
def test_slow_lines(tmp_path: Path) -> None:
    """In an environment of its own, of a checkout that holds what git tracks or would add."""
    tree = tmp_path / "checkout"
    files = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in filter(None, subprocess.check_output(files, cwd=ROOT, text=True).split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True, timeout=100)
    scripts = tmp_path / "venv/bin"
    run("pip wheel -q --no-deps -w dist .", tree, scripts)
    for line in SLOW:
        run(line, tree if line.startswith("pip") else tmp_path, scripts, timeout=400)
    shown = run("python -c 'import ovstage; print(ovstage.library_version())'", tmp_path, scripts)
    assert shown == "(0, 2, 1)\n"
