"""A scene in motion: one thread moves every body of a robot scene, another one reads what it moves.

The producer writes poses straight into mapped stage memory with a Warp kernel and seals a tick; the consumer reads
sealed snapshots through DLPack while the next tick is being written, and checks that it never sees half of one.

    python main.py [--scene FILE] [--ticks N] [--out FILE] [--verbose]
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib.util import find_spec
from pathlib import Path

PICTURE = Path(__file__).resolve().parents[3] / "build" / "demo" / "paths.png"
NEEDS = {
    "ovstage": "ovstage-go",
    "numpy": "numpy",
    "pxr": "usd-core",
    "warp": "warp-lang",
    "rich": "rich",
    "matplotlib": "matplotlib",
}
WRONG_RESULT, UNUSABLE_INPUT, INTERRUPTED = 1, 2, 130  # exit codes


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    missing = [package for module, package in NEEDS.items() if find_spec(module) is None]
    if missing:
        return fail(f"this demo needs packages that are not installed: pip install {' '.join(missing)}", UNUSABLE_INPUT)

    # Only now: these modules import the packages that were just looked for.
    from loop import run
    from picture import draw
    from rich.console import Console
    from scene import SceneError, load, shipped_scene
    from summary import show

    console = Console()
    try:
        scene = load(options.scene or shipped_scene(), console)
    except SceneError as error:
        return fail(str(error), UNUSABLE_INPUT)
    with scene.stage:
        outcome = run(scene, options.ticks, console)
        show(scene, outcome, console, options.verbose)
    if outcome.findings.positions:
        try:
            draw(scene, outcome.findings, options.out)
        except OSError as error:
            return fail(f"cannot write {str(options.out)!r}: {error.strerror}", UNUSABLE_INPUT)
        console.print(f"The paths they took: [bold]{options.out}[/]", soft_wrap=True)
    if outcome.findings.faults:
        return fail("; ".join(outcome.findings.faults), WRONG_RESULT)
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./build.sh demo", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--scene", metavar="FILE", help="a USD file (default: ant_multi.usda of the newton package)")
    parser.add_argument("--ticks", metavar="N", type=positive, default=600, help="how many ticks to run (600)")
    parser.add_argument(
        "--out", metavar="FILE", type=picture_file, default=PICTURE, help="the picture (build/demo/paths.png)"
    )
    parser.add_argument("--verbose", action="store_true", help="name what of the scene is not represented")
    return parser.parse_args(arguments)


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number of ticks from 1, got {text!r}")
    return int(text)


def picture_file(text: str) -> Path:
    """Looked at before the ticks are run, not after."""
    file = Path(text)
    if file.suffix != ".png" or file.is_dir():
        raise argparse.ArgumentTypeError(f"expected the name of a .png file, got {text!r}")
    folder = next(parent for parent in file.absolute().parents if parent.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise argparse.ArgumentTypeError(f"cannot write {text!r}: {folder} is not a folder that can be written to")
    return file


def fail(text: str, code: int) -> int:
    print(f"scene_loop: {text}", file=sys.stderr)
    return code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(fail("interrupted", INTERRUPTED))
