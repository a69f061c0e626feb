"""Ants that fall, kick and land: a physics engine and its readers over one stage, and a page to look at.

Newton's XPBD solver moves the ants of a USD scene and publishes every tick through mapped buffers. A reader holds each
snapshot that it sees and checks that none is torn; a judge speaks late and out of order. Then the same loop runs
without the judge, and with a lock and copies in place of the stage. A run is killed, and goes on from its recording.
The page needs no server.

    python main.py [--ants N] [--seconds S] [--out FILE] [--rerun FILE] [--verbose]

The files in the order in which to read them: scene, physics, handover, judge, reader, loop, film, resume,
summary.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path

MADE = Path(__file__).resolve().parents[3] / "build" / "demo"
NEEDS = {
    "ovstage": "ovstage-go",
    "numpy": "numpy",
    "pxr": "usd-core",
    "warp": "warp-lang",
    "newton": "--no-deps newton",
    "newton_usd_schemas": "--no-deps newton-usd-schemas",
    "rich": "rich",
    "pyarrow": "pyarrow",
    "xxhash": "xxhash",
}
MOST_ANTS, MOST_SECONDS = 64, 60
WRONG_RESULT, UNUSABLE_INPUT, INTERRUPTED = 1, 2, 130  # exit codes


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    missing = [package for module, package in NEEDS.items() if find_spec(module) is None]
    if missing:
        wanted = " and ".join(f"pip install {package}" for package in missing)
        return fail(f"this demo needs packages that are not installed: {wanted}", UNUSABLE_INPUT)

    if options.rerun and find_spec("rerun") is None:
        return fail("--rerun needs a package that is not installed: pip install rerun-sdk", UNUSABLE_INPUT)

    # Only now: these modules import the packages that were just looked for.
    import film
    import loop
    import summary
    from handover import Locked, Staged
    from physics import RATE, Ants
    from resume import resume
    from rich.console import Console
    from scene import Scene, SceneError, compose

    import ovstage

    console = Console()
    try:
        layer = compose(MADE / "ants.usda", options.ants)
    except SceneError as error:
        return fail(str(error), UNUSABLE_INPUT)
    with Scene(layer) as scene:
        summary.loaded(scene, console, options.verbose)
        with console.status("Compiling the solver's kernels (half a minute, the first time only)"):
            ants = Ants(layer)
            ants.step(1)
        parents = scene.parents(ants.paths) if options.rerun else None
        with ovstage.view(scene.stage, save=options.rerun, seconds=1 / RATE) if options.rerun else nullcontext():
            shown = loop.run(ants, Staged(scene.stage, ants.paths, parents), options.seconds, judged=True)
        try:
            page = film.save(shown, scene, ants, MADE / "three.js", options.out)
        except OSError as error:
            return fail(f"cannot write {str(options.out)!r}: {error.strerror}", UNUSABLE_INPUT)
    with ovstage.Stage("beside") as stage:
        staged = loop.run(ants, Staged(stage, ants.paths), options.seconds)
    locked = loop.run(ants, Locked(ants.paths), options.seconds)
    summary.shown(shown, console)
    summary.compared(staged, locked, console)
    with console.status("Killing a run, to go on from its recording"):
        resumed = resume(ants, layer, MADE / "killed.ovr", shown.sums)
    summary.resumed(resumed, console)
    summary.page(page, options.out, console)
    faults = loop.faults(shown, staged, locked)
    if resumed.different:
        faults.append(f"{resumed.different} ticks of the run that was resumed differ from the run that was not killed")
    return fail("; ".join(faults), WRONG_RESULT) if faults else 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./build.sh demo", description=__doc__.split("\n", 1)[0])
    ants, seconds = within("ants", MOST_ANTS), within("seconds", MOST_SECONDS)
    parser.add_argument("--ants", metavar="N", type=ants, default=16, help="how many, up to 64 (16)")
    parser.add_argument("--seconds", metavar="S", type=seconds, default=6, help="how long they move, up to 60 (6)")
    parser.add_argument(
        "--out", metavar="FILE", type=page_file, default=MADE / "ants.html", help="the page (build/demo/ants.html)"
    )
    parser.add_argument("--rerun", metavar="FILE", help="write what rerun's viewer shows, too (.rrd)")
    parser.add_argument("--verbose", action="store_true", help="name what of the scene is not represented")
    return parser.parse_args(arguments)


def within(what: str, most: int):
    """A type of argument: a whole number of them, from 1."""

    def number(text: str) -> int:
        if not (text.isdecimal() and 1 <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"expected a number of {what} from 1 to {most}, got {text!r}")
        return int(text)

    return number


def page_file(text: str) -> Path:
    """Looked at before the ants move, not after."""
    file = Path(text)
    if file.suffix != ".html" or file.is_dir():
        raise argparse.ArgumentTypeError(f"expected the name of an .html file, got {text!r}")
    folder = next(parent for parent in file.absolute().parents if parent.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise argparse.ArgumentTypeError(f"cannot write {text!r}: {folder} is not a folder that can be written to")
    return file


def fail(text: str, code: int) -> int:
    print(f"ants: {text}", file=sys.stderr)
    return code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(fail("interrupted", INTERRUPTED))
