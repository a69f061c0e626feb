"""Packages that say in which order to read their files: all are listed, and a file uses what stands above it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PYTHON = Path(__file__).parents[2] / "python"
PACKAGES = ("ovstage.population", "ovstage.population.export")


def folder(package: str) -> Path:
    return PYTHON.joinpath(*package.split("."))


def listed(package: str) -> list[str]:
    text = ast.get_docstring(ast.parse((folder(package) / "__init__.py").read_text()))
    assert text is not None
    return re.findall(r"^- (\w+): ", text, re.MULTILINE)


def imports(tree: ast.AST) -> Iterator[str]:
    """The modules that a file imports when it runs, at its top or inside a function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)
        yield from imports(node)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_file_is_listed_once(package: str) -> None:
    there = {path.stem for path in folder(package).glob("*.py")} - {"__init__"}
    assert sorted(listed(package)) == sorted(there)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_file_uses_what_stands_above_it(package: str) -> None:
    order = listed(package)
    against = {
        f"{name} uses {used}"
        for at, name in enumerate(order)
        for module in imports(ast.parse((folder(package) / f"{name}.py").read_text()))
        if module.startswith(f"{package}.") and (used := module.removeprefix(f"{package}.").split(".")[0]) in order[at:]
    }
    assert not against
