"""Where the sources refuse something, and with which words: read from the sources, so that no refusal goes untested.

A site is one format string of a call that makes an error. A text that it made has the words of the format, in their
order, with anything where a value was put in.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

GO_CALLS = ("errorf", "refuse", "invalid", "unsupported", "fmt.Errorf")
C_CALLS = (
    "PyErr_Format", "PyErr_SetString", "raise_stage_error", "raise_from_current", "ov_fail", "refuse", "missing",
    "snprintf", "set_error",
)  # fmt: skip

GO_VERB = r"%[-+# 0]*[0-9.]*[a-zA-Z]"
C_VERB = r"%[-+# 0]*[0-9.]*\*?(?:hh|h|ll|l|z|j|t)?[a-zA-Z]"
HOLE = "\0"


@dataclass(frozen=True)
class Site:
    """One format string: the file and line of the call, and the words between its values."""

    place: str
    words: str  # HOLE where a value is put in

    def makes(self, text: str) -> bool:
        """Whether a text has the words of this site, in their order."""
        at = 0
        for piece in self.pieces:
            at = text.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        return True

    @property
    def pieces(self) -> list[str]:
        """The words between the values."""
        return self.words.split(HOLE)

    def __str__(self) -> str:
        return f"{self.place}: {self.words.replace(HOLE, '{}')}"


@cache
def sites() -> list[Site]:
    """Every refusal of the engine, the C interface, the extension and the package."""
    found: list[Site] = []
    for folder in ("gocore", "capi_export"):
        for path in sorted((ROOT / folder).rglob("*.go")):
            if not path.name.endswith("_test.go"):
                found += _calls(path, GO_CALLS, GO_VERB)
    for folder in ("capi_export", "python/native"):
        for path in sorted((ROOT / folder).glob("*.c")):
            found += _calls(path, C_CALLS, C_VERB)
    for path in sorted((ROOT / "python/ovstage").glob("*.py")):
        found += _raises(path)
    return found


# --- Go and C -------------------------------------------------------------------------------------------------------


def _calls(path: Path, names: tuple[str, ...], verb: str) -> Iterator[Site]:
    source = path.read_text()
    call = re.compile(r"(?<![\w.])(func )?(?:" + "|".join(map(re.escape, names)) + r")\(")
    for match in call.finditer(source):
        if match.group(1):
            continue  # its own definition
        line = source.count("\n", 0, match.start()) + 1
        for text in _literals(source, match.end()):
            if " " in text.strip():  # a word alone is a name that is put in
                words = re.sub(verb, HOLE, text.replace("%%", "%"))
                yield Site(f"{path.relative_to(ROOT)}:{line}", words)


def _literals(source: str, at: int) -> Iterator[str]:
    """The strings among the arguments of a call, those joined by ``+`` or adjacency being one."""
    depth, joined, open_run = 1, "", False
    token = re.compile(r'"((?:[^"\\]|\\.)*)"|`([^`]*)`|PRI\w+|/\*.*?\*/|//[^\n]*|[()]|\s+|\+|.', re.DOTALL)
    while depth:
        match = token.match(source, at)
        assert match is not None, "a call that does not end"
        at, text = match.end(), match.group()
        if match.group(1) is not None or match.group(2) is not None:
            joined += match.group(2) if match.group(2) is not None else ast.literal_eval(text)
            open_run = True
        elif text.startswith("PRI"):
            joined += "u"
        elif open_run and not text.isspace() and text != "+":
            yield joined
            joined, open_run = "", False
        depth += {"(": 1, ")": -1}.get(text, 0)


def sentences(path: Path, call: str) -> list[str]:
    """The texts that a test in Go or C hands to a call, every string among its arguments."""
    source = path.read_text()
    starts = re.finditer(rf"(?<!define )\b{call}\(", source)
    return [text for start in starts for text in _literals(source, start.end())]


def strings_of_native(path: Path) -> list[str]:
    """Every string of a file in Go or C."""
    found = re.findall(r'"((?:[^"\\\n]|\\.)*)"|`([^`]*)`', path.read_text())
    return [quoted.replace('\\"', '"') or raw for quoted, raw in found]


def strings_of_python(path: Path) -> list[str]:
    """Every string of a Python file, without the backslashes of regular expressions."""
    nodes = ast.walk(ast.parse(path.read_text()))
    found = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [text.replace("\\", "") for text in found]


# --- Python ---------------------------------------------------------------------------------------------------------


def _raises(path: Path) -> Iterator[Site]:
    for node in ast.walk(ast.parse(path.read_text())):
        made = node.exc if isinstance(node, ast.Raise) else node.value if isinstance(node, ast.Return) else None
        if not isinstance(made, ast.Call) or not _is_error(made.func):
            continue
        for argument in made.args:
            if isinstance(argument, (ast.JoinedStr, ast.Constant)) and (words := _words(argument)):
                yield Site(f"{path.relative_to(ROOT)}:{node.lineno}", words)


def _is_error(function: ast.expr) -> bool:
    return isinstance(function, ast.Name) and function.id.endswith("Error")


def _words(text: ast.JoinedStr | ast.Constant) -> str:
    if isinstance(text, ast.Constant):
        return text.value if isinstance(text.value, str) else ""
    return "".join(part.value if isinstance(part, ast.Constant) else HOLE for part in text.values)
