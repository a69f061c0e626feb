"""Docstrings: every public name has one, help() and an editor show the same, and their examples run.

What comes after `Example::` is run over a stage with a few prims. An expression with a comment behind it has the value
that the comment shows.
"""

from __future__ import annotations

import ast
import faulthandler
import inspect
import re
import textwrap
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import ovstage
from ovstage import PathDictionary, Stage, _native

PACKAGE = Path(ovstage.__file__).parent
STUB = PACKAGE / "_native.pyi"
NATIVE = PACKAGE.parent / "native"
EXAMPLE = re.compile(r"[Ee]xample[^\n]*::\n\n((?: {4}[^\n]*\n|\n)+)")
EVERYBODYS = {
    "Stage.write", "Stage.read", "Stage.get", "Stage.map", "Stage.delete", "Stage.attributes", "Stage.prims",
    "Stage.query", "Stage.query_from_path_list", "Stage.write_attribute", "Stage.write_attributes",
    "Stage.read_attributes", "Stage.map_attribute", "Stage.advance_write_floor", "Operation.wait", "Group.dlpack",
}  # fmt: skip


class Documented(NamedTuple):
    name: str
    text: str | None


def documented(path: Path) -> Iterator[Documented]:
    """The functions and classes of a file, with their docstrings."""

    def within(body: list[ast.stmt], prefix: str) -> Iterator[Documented]:
        for node in body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                yield Documented(prefix + node.name, ast.get_docstring(node))
            if isinstance(node, ast.ClassDef):
                yield from within(node.body, f"{prefix}{node.name}.")

    return within(ast.parse(path.read_text()).body, "")


EXAMPLES = [
    pytest.param(example[1], id=f"{path.stem}:{name}")
    for path in [STUB, *sorted(PACKAGE.glob("*.py"))]
    for name, text in documented(path)
    for example in EXAMPLE.finditer((text or "") + "\n")
    if "arrow" not in example[1] or find_spec("pyarrow")  # tests/interop has it
]


def runtime(name: str) -> Any:
    """What the extension has under a name of the stub."""
    found: Any = _native
    for part in name.split("."):
        found = inspect.getattr_static(found, part)
    return found


@pytest.mark.parametrize("name", [name for name, text in documented(STUB) if text])
def test_help_says_what_the_editor_shows(name):
    assert inspect.getdoc(runtime(name)) == dict(documented(STUB))[name]


def test_every_name_of_the_extension_is_documented_in_its_stub():
    special = re.compile(r".*\.__\w+__")
    assert [name for name, text in documented(STUB) if not text and not special.fullmatch(name)] == []


def test_no_docstring_is_written_in_c():
    for path in NATIVE.glob("*.c"):
        assert "\\n--\\n" not in path.read_text(), path.name


@pytest.mark.parametrize("kind", [Stage, ovstage.Operation, ovstage.ReadGroup, ovstage.MapGroup, ovstage.Query])
def test_every_public_member_is_documented(kind):
    public = [name for name in dir(kind) if not name.startswith("_")]
    assert [name for name in public if not inspect.getdoc(inspect.getattr_static(kind, name))] == []


def test_what_everybody_calls_has_an_example():
    with_example = {
        name
        for path in [STUB, *PACKAGE.glob("*.py")]
        for name, text in documented(path)
        if text and EXAMPLE.search(text + "\n")
    }
    assert with_example >= EVERYBODYS


@pytest.fixture(autouse=True)
def stacks_of_an_example_that_waits():
    faulthandler.dump_traceback_later(60, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.mark.parametrize("example", EXAMPLES)
def test_example(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Stage("examples") as stage, Stage("another") as other:
        paths = PathDictionary(stage).create_path_list_from_strings(["/A", "/B"])
        stage.write(["/A", "/B"], "velocity", 1, np.zeros((2, 3), np.float32)).wait()
        stage.write(["/A", "/B", "/World", "/World/Robot1"], "mass", 1, np.float32([1, 2, 0, 70])).wait()
        stage.write(["/World", "/World/Robot1"], "physics:mass", 1, np.float32([0, 70])).wait()
        stage.advance_write_floor(1).wait()
        scope = {"np": np, "ovstage": ovstage, "PathDictionary": PathDictionary, "stage": stage, "other": other}
        with stage.query_from_path_list(paths) as query:
            run(textwrap.dedent(example), scope | {"query": query})
        paths.release()


def run(example: str, scope: dict[str, Any]) -> None:
    lines = example.splitlines()
    for statement in ast.parse(example).body:
        shown = re.search(r"  # (.+)", lines[statement.lineno - 1])
        if isinstance(statement, ast.Expr) and shown:
            assert repr(eval(compile(ast.Expression(statement.value), "example", "eval"), scope)) == shown[1].strip()
        else:
            exec(compile(ast.Module([statement], []), "example", "exec"), scope)
