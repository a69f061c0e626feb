"""Counts the edges between the files of one folder that run against the reading order which the folder itself gives.

    python tests/lint/arrows.py [FOLDER ...]     prints every edge against the order, then the counts
    python tests/lint/arrows.py --check          prints the folders that have more than LIMIT says, and fails

A Go package gives its order in the comment of `doc.go`, a folder of C in the comment at the head of its main header:
one line for each file, its name first, the ground floor at the top. A file may use what stands in files above it in
that list. One edge is one pair of files, however much the one uses of the other. In Go the compiler says what a name
means (`tests/lint/uses`); in C it is any word that only one file of the folder defines for others.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# The most edges that a folder may have; none where it is not named. A count that falls is written down here.
LIMIT: dict[str, int] = {}

# Folders of C that give their order, and the header in which it stands.
HEADER: dict[str, str] = {"python/native": "native.h"}

LISTED = re.compile(r"^(?://|[ ]?\*)[ \t]+(\w+)\.(go|c|h)\b", re.MULTILINE)

Uses = dict[tuple[str, str], set[str]]  # (the file that uses, the file that defines): the names


def main(arguments: list[str]) -> int:
    check = arguments == ["--check"]
    chosen = folders() if check or not arguments else [Path(name).resolve() for name in arguments]
    uses = uses_in_go([folder for folder in chosen if not is_c(folder)])
    uses |= {folder: uses_in_c(folder) for folder in chosen if is_c(folder)}
    risen = False
    for folder in chosen:
        listed, found = order(folder), against(folder, uses[folder])
        name, above = str(folder.relative_to(ROOT)), len(found) > LIMIT.get(str(folder.relative_to(ROOT)), 0)
        risen |= above
        if above or not check:
            for user, home, names in found:
                print(f"  {user} -> {home}: {', '.join(sorted(names))}")
            print(
                f"{name}: {len(found)} edges against the order of its {len(listed)} files, at most {LIMIT.get(name, 0)}"
            )
    if check and risen:
        print("a file may use what stands in files above it in the list: move the name, or the file's line in the list")
    return int(check and risen)


def folders() -> list[Path]:
    """Every folder that gives an order."""
    return [guide.parent for guide in sorted(ROOT.glob("gocore/*/doc.go"))] + [ROOT / folder for folder in HEADER]


def is_c(folder: Path) -> bool:
    return str(folder.relative_to(ROOT)) in HEADER


def order(folder: Path) -> list[str]:
    """The files that the folder lists, ground floor first. It must list all."""
    text = (folder / HEADER.get(str(folder.relative_to(ROOT)), "doc.go")).read_text()
    head = re.split(r"^(?:#ifndef|package) ", text, maxsplit=1, flags=re.MULTILINE)[0]
    listed = list(dict.fromkeys(f"{name}.{suffix}" for name, suffix in LISTED.findall(head)))
    there = [path.name for path in sources(folder) if path.name != "doc.go"]
    missing = sorted(set(there) - set(listed))
    if missing:
        raise SystemExit(f"{folder.relative_to(ROOT)}: the list of its files lacks {', '.join(missing)}")
    return listed


def sources(folder: Path) -> list[Path]:
    suffix = ".c" if is_c(folder) else ".go"
    return [path for path in sorted(folder.glob(f"*{suffix}")) if not path.name.endswith("_test.go")]


def against(folder: Path, uses: Uses) -> list[tuple[str, str, set[str]]]:
    place = {name: i for i, name in enumerate(order(folder))}
    return sorted(
        (user, home, names)
        for (user, home), names in uses.items()
        if user in place and home in place and place[home] > place[user]
    )


def uses_in_go(chosen: list[Path]) -> dict[Path, Uses]:
    found: dict[Path, Uses] = {folder: defaultdict(set) for folder in chosen}
    if not chosen:
        return {}
    packages = [f"./{folder.relative_to(ROOT)}" for folder in chosen]
    command = [os.environ.get("GO", "go"), "run", "./tests/lint/uses", *packages]
    for line in subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines():
        folder, user, home, name = line.rsplit(" ", 3)
        found[Path(folder)][user, home].add(name)
    return found


def uses_in_c(folder: Path) -> Uses:
    text = {path.name: code(path.read_text()) for path in sources(folder)}
    homes = defaultdict(set)
    for name, body in text.items():
        for word in defined(body):
            homes[word].add(name)
    found: Uses = defaultdict(set)
    for name, body in text.items():
        for word in set(re.findall(r"[A-Za-z_]\w*", body)):
            if len(homes[word]) == 1 and name not in homes[word]:
                found[name, next(iter(homes[word]))].add(word)
    return found


def code(text: str) -> str:
    """Without comments and texts."""
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', " ", text, flags=re.DOTALL)


def defined(text: str) -> set[str]:
    """What a C file defines for others: functions and variables that are not static."""
    start = r"^(?!static\b|typedef\b|extern\b|return\b|else\b)[A-Za-z_][\w \t*]*?\b(\w+)"
    functions = re.findall(start + r"\([^;{}]*\)\s*\{", text, re.MULTILINE)
    return {*functions, *re.findall(start + r"(?:\[[^\]]*\])*\s*(?:=|;)", text, re.MULTILINE)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
