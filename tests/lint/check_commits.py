"""Refuses commits whose subject is longer than 72 characters, or which have no body that says why.

    python tests/lint/check_commits.py

Only commits that origin's main does not have yet are read, from the one on that brought this rule. Where there is no
origin, as in an unpacked sdist, there are none.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 72


def git(*arguments: str) -> str:
    """What git says; nothing where it fails: there is no repository, or no such branch."""
    try:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


def new_commits() -> list[str]:
    """Messages, each after its commit's short name."""
    if not git("rev-parse", "--verify", "--quiet", "origin/main"):
        return []
    rule = git("log", "--diff-filter=A", "--format=%H", "--", str(Path(__file__).relative_to(ROOT))).split()
    since = [f"^{rule[-1]}"] if rule else []
    return git("log", "-z", "--no-merges", "--format=%h%n%B", "HEAD", "^origin/main", *since).split("\0")


def faults(message: str) -> list[str]:
    """What is wrong with the message of a commit."""
    subject, _, body = message.strip().partition("\n")
    found = []
    if len(subject) > LONGEST:
        found.append(f"the subject has {len(subject)} characters, at most {LONGEST} are shown everywhere: {subject!r}")
    if body and not body.startswith("\n"):
        found.append("an empty line is missing between the subject and the body")
    if not body.strip():
        found.append("there is no body: say why, in a sentence or two")
    return found


def main() -> int:
    complaints = []
    for commit in filter(None, new_commits()):
        name, _, message = commit.partition("\n")
        complaints += [f"{name}: {fault}" for fault in faults(message)]
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
