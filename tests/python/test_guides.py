"""The README and the guides say what happens: their blocks are run, in order, and print what stands below them."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDES = [ROOT / "README.md", *sorted(ROOT.glob("docs/guides/*.md"))]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("tests/*/README.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def test_there_are_guides():
    assert {"mapping", "querying", "reading", "scenes", "writing"} <= {guide.stem for guide in GUIDES}


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_guide(guide, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    text = guide.read_text()
    blocks = list(BLOCK.finditer(text))
    assert blocks
    assert text.count("```python") == len(blocks)
    assert text.count("```text") == sum(block[2] is not None for block in blocks)
    scope: dict[str, object] = {"__name__": guide.stem}
    for block in blocks:
        line = text.count("\n", 0, block.start(1)) + 1
        code = compile("\n" * (line - 1) + block[1], str(guide), "exec")  # tracebacks name the line of the guide
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, scope)
        assert printed.getvalue() == (block[2] or ""), f"{guide.name}, the block at line {line}"


def test_the_first_lines_are_typed(tmp_path):
    """Whoever copies them into a program that mypy looks at has nothing to mend."""
    first = BLOCK.search((ROOT / "README.md").read_text())
    (tmp_path / "first.py").write_text(first[1])
    argv = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        f"--cache-dir={ROOT / '.mypy_cache'}",
        "first.py",
    ]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)  # Go calls [types](like this)
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", prose):
        assert (page.parent / target).exists(), target
