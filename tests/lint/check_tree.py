"""Refuses what no file of this repository may hold: the paths of one machine and the hosts of package registries.

    python tests/lint/check_tree.py

A tree that names its author's folders or a particular index works only there. Every file that git tracks or would
add is read.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXEMPT = {"go.sum", "LICENSE", "NOTICE"}
MADE = {".venv", "build", "dist", "__pycache__"}  # by build.sh; git leaves them out by itself

# Written in pieces, so that this file does not refuse itself.
HOSTS = "|".join(
    re.escape(".".join(name))
    for name in (
        ("pypi", "org"),
        ("files", "pythonhosted", "org"),
        ("proxy", "golang", "org"),
        ("sum", "golang", "org"),
        ("registry", "npmjs", "org"),
        ("deb", "debian", "org"),
        ("index", "crates", "io"),
    )
)
FAULTS = {
    "a path of one machine": re.compile(r"(?<![\w.~/-])/(?:work|farm|home/\w+|root/\.\w+|Users/\w+)/"),
    "the host of a package registry": re.compile(HOSTS),
}


def files() -> list[Path]:
    """What git tracks or would add; in an unpacked sdist, everything."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listing.returncode:
        return [path for path in ROOT.rglob("*") if path.is_file() and MADE.isdisjoint(path.relative_to(ROOT).parts)]
    return [ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]


def main() -> int:
    complaints = []
    for path in files():
        if path.name in EXEMPT:
            continue
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue  # a picture or a scene file
        for number, line in enumerate(lines, 1):
            for fault, pattern in FAULTS.items():
                if found := pattern.search(line):
                    complaints.append(f"{path.relative_to(ROOT)}:{number}: {fault}: {found[0]}")
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
