"""Compare every USD file of the newton wheel: imported through a stage, and read by newton itself.

    survey.py TABLE [NAME ...]    write the table; with names only for files whose path contains one of them, to stdout

One line per file: bodies, joints, shapes and the verdict: `same`, what is different, or by whom it was refused and why.
The seconds of both ways go to stderr.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import coacd
import newton
import ovnewton
import warp
from oracle import differences, through_newton, through_stage

WHEEL = Path(newton.__file__).parent


def main(table: str, *names: str) -> None:
    warnings.simplefilter("ignore")
    warp.config.quiet = True
    coacd.set_log_level("error")
    ovnewton.register_usd_schemas()
    files = sorted(file for file in WHEEL.rglob("*.usd*") if not names or any(name in str(file) for name in names))
    width = max(len(_shown(file)) for file in files)
    lines = [
        "# " + ", ".join(f"{name} {version(name)}" for name in ("newton", "ovnewton", "usd-core")),
        f"{'file':{width}}  bodies joints shapes  verdict",
    ]
    print(*lines, sep="\n")
    for file in files:
        lines.append(f"{_shown(file):{width}}  {verdict(file)}".rstrip())
        print(lines[-1], flush=True)
    counted = sum(line.endswith(" same") for line in lines)
    lines.append(f"{len(files)} files, {counted} the same both ways")
    print(lines[-1])
    if not names:
        Path(table).parent.mkdir(exist_ok=True)
        Path(table).write_text("\n".join(lines) + "\n")


def verdict(file: Path) -> str:
    """What the table says of a file, behind its name."""
    ours, refusal = _tried(through_stage, file)
    theirs, their_refusal = _tried(through_newton, file)
    counts = "     -      -      -"
    if ours is not None:
        counts = f"{ours.body_count:6} {ours.joint_count:6} {ours.shape_count:6}"
    if refusal or their_refusal:
        who = "both" if refusal and their_refusal else "ovnewton" if refusal else "newton"
        return f"{counts}  refused by {who}: {refusal or their_refusal}"
    found = differences(ours, theirs)
    if not found:
        return f"{counts}  same"
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{counts}  {found[0]}{more}"


def _tried(read: Callable[[Path], Any], file: Path) -> tuple[Any, str]:
    started = time.perf_counter()
    try:
        return read(file), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    finally:
        print(f"  {read.__name__}: {time.perf_counter() - started:.2f} s", file=sys.stderr)


def _shown(file: Path) -> str:
    return str(file.relative_to(WHEEL))


if __name__ == "__main__":
    main(*sys.argv[1:])
