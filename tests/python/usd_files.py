"""The USD files of open packages, one line each: what becomes of them in a stage.

``python tests/python/usd_files.py`` writes the golden table anew, and prints how long each file took.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator
from pathlib import Path

GOLDEN = Path(__file__).parent.parent / "golden" / "usd_files.txt"
PACKAGES = ("newton", "warp-lang")
HEADER = "file\tprims\tcolumns\tvalues\tbytes\tskipped"


def versions() -> str | None:
    """What the table depends on; None where a package is missing."""
    try:
        return "# " + ", ".join(f"{name} {importlib.metadata.version(name)}" for name in (*PACKAGES, "usd-core"))
    except importlib.metadata.PackageNotFoundError:
        return None


def files() -> Iterator[tuple[str, Path]]:
    """Every USD file, by its name inside the site-packages directory."""
    for package in PACKAGES:
        for file in sorted(importlib.metadata.files(package) or [], key=str):
            if file.suffix in (".usd", ".usda", ".usdc", ".usdz"):
                yield str(file), Path(str(file.locate()))


def table(show_times: bool = False) -> list[str]:
    """One line for each file. All domains are populated."""
    from ovstage import OvstageError, PopulationDomain, Stage
    from ovstage.population import open_usd

    lines = []
    for name, path in files():
        with Stage() as stage:
            try:
                report = open_usd(stage, path, domains=PopulationDomain.ALL)
            except OvstageError as error:
                lines.append(f"{name}\trefused: {error.message.replace(str(path), name)}")
                continue
            skipped = "; ".join(map(str, report.skipped)) or "-"
            lines.append(f"{name}\t{len(report.paths)}\t{report.columns}\t{report.values}\t{report.bytes}\t{skipped}")
            if show_times:
                print(f"{sum(report.seconds.values()):8.3f} s  {name}")
    return lines


if __name__ == "__main__":
    stamp = versions()
    if stamp is None:
        sys.exit(f"needs the packages {', '.join(PACKAGES)} and usd-core")
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text("\n".join([stamp, HEADER, *table(show_times=True)]) + "\n")
