"""The notebook is run as Jupyter runs it: cell by cell, and each shows what stands below it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from children import run_python

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples").rglob("*.ipynb"))

RUN = """
import ast, contextlib, io, json, sys

scope = {"__name__": "__main__"}
for cell in json.loads(sys.stdin.read()):
    body = ast.parse(cell).body
    shown = body.pop() if isinstance(body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body, []), cell, "exec"), scope)
        value = eval(compile(ast.Expression(shown.value), cell, "eval"), scope) if shown else None
    print(json.dumps([printed.getvalue(), "" if value is None else repr(value)]))
"""


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_every_cell_shows_what_stands_below_it(notebook: Path) -> None:
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    assert cells
    run = run_python(RUN, input=json.dumps(["".join(cell["source"]) for cell in cells]))
    assert run.returncode == 0, run.stderr
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(answers) == len(cells)
    for cell, (printed, value) in zip(cells, answers, strict=True):
        said = {output["output_type"]: output for output in cell["outputs"]}
        assert printed == "".join(said.get("stream", {}).get("text", [])), "".join(cell["source"])
        assert value == "".join(said.get("execute_result", {}).get("data", {}).get("text/plain", [])), cell["source"]


def test_there_is_one() -> None:
    assert [notebook.stem for notebook in NOTEBOOKS] == ["first_steps"]
