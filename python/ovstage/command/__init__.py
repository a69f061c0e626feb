"""``python -m ovstage``: what is installed, whether it works here, how fast it is, and what a scene has.

``info``, ``self-test`` and ``bench`` need nothing but the package; what an installed library adds they use. ``usd``,
``show`` and ``diff`` need the extra ``usd`` for scenes; for recordings they and ``record-info`` need ``record``.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the commands and return the exit status: 0, or 1 when something does not work."""
    try:
        try:
            return _run(arguments)
        finally:
            sys.stdout.flush()  # here, where a pipe that has ended can be told from a fault
    except BrokenPipeError:
        _drop_output()
        return 128 + signal.SIGPIPE
    except OSError as error:  # commands report what befalls files themselves: what is left is the output's own
        _drop_output()
        print(f"cannot write to the output: {error.strerror or error}", file=sys.stderr)
        return 1


def _drop_output() -> None:
    """What is still buffered goes nowhere: Python flushes it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(arguments: Sequence[str] | None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    match options.command:
        case "info":
            from ovstage.command import info

            return info.run()
        case "self-test":
            from ovstage.command import self_test

            return self_test.run(quick=options.quick)
        case "bench":
            from ovstage.command import bench

            return bench.run(quick=options.quick)
        case "usd":
            from ovstage.command import usd

            return usd.run(options.file, options.domains, options.time)
        case "show":
            from ovstage.command import show

            return show.show(
                options.file, options.prims, options.attributes, options.at, options.domains, as_json=options.json
            )
        case "diff":
            from ovstage.command import show

            return show.diff(
                options.before,
                options.after,
                options.prims,
                options.attributes,
                options.domains,
                as_json=options.json,
            )
        case "record-info":
            from ovstage.command import show

            return show.record_info(options.path)
        case _:
            parser.print_help()
            return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m ovstage", description="An in-process attribute stage.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("info", help="versions, where the library is, CUDA, and what else is installed")
    test = commands.add_parser("self-test", help="about ten seconds that say what works on this machine")
    bench = commands.add_parser("bench", help="the numbers that matter, as ratios against NumPy within one run")
    for command in (test, bench):
        command.add_argument("--quick", action="store_true", help="a few seconds, for a rough answer")
    scene = commands.add_parser("usd", help="load a USD file and say what came of it")
    scene.add_argument("file", help="a .usd, .usda, .usdc or .usdz file")
    scene.add_argument("--time", type=float, default=math.nan, help="seconds; the default is USD's default time")
    show = commands.add_parser("show", help="print a scene as a tree of prims with properties and values")
    show.add_argument("file", help="a .usd, .usda, .usdc or .usdz file, or a recording, run.ovr or run.ovr@120")
    show.add_argument("--at", type=int, metavar="ORDINAL", help="the newest change to contain; by default all")
    diff = commands.add_parser("diff", help="say what two scenes differ in; the exit status is 1 if they do")
    diff.add_argument("before", help="a file, as show takes it")
    diff.add_argument("after", help="another one")
    recording = commands.add_parser("record-info", help="say what a recording has")
    recording.add_argument("path", help="the folder that stage.record or stage.save has made")
    for command in (show, diff):
        command.add_argument("--prims", metavar="GLOB", default="*", help="only prims whose path this fits: '/World/*'")
        command.add_argument("--attributes", metavar="GLOB", default="*", help="only attributes whose name this fits")
        command.add_argument("--json", action="store_true", help="for programs, with values in full")
    for command in (scene, show, diff):
        command.add_argument("--domains", choices=("all", "rendering", "physics"), default="all", help="what to load")
    return parser
