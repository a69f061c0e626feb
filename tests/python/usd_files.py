"""The USD files of open packages, one line each: what becomes of them in a stage. Each package has its golden table.

``python tests/python/usd_files.py`` writes the tables anew, and prints every line with the seconds that the file took.
"""

from __future__ import annotations

import importlib.metadata
import sys
import time
from collections.abc import Iterator
from pathlib import Path

GOLDEN = Path(__file__).parent.parent / "golden" / "usd_files"
PACKAGES = ("newton", "usd-validation-nvidia", "warp-lang")
COLUMNS = "file\tprims\tcolumns\tvalues\tbytes\tskipped"


def golden(package: str) -> Path:
    return GOLDEN / f"{package}.txt"


def versions(package: str) -> str | None:
    """What the table of a package depends on; None where the package is not installed."""
    try:
        return "# " + ", ".join(f"{name} {importlib.metadata.version(name)}" for name in (package, "usd-core"))
    except importlib.metadata.PackageNotFoundError:
        return None


def files(package: str) -> Iterator[tuple[str, Path]]:
    """Every USD file, by its name inside the site-packages directory."""
    for file in sorted(importlib.metadata.files(package) or [], key=str):
        if file.suffix in (".usd", ".usda", ".usdc", ".usdz"):
            yield str(file), Path(str(file.locate()))


def table(package: str) -> Iterator[tuple[str, float]]:
    """One line for each file, and the seconds that it took. All domains are populated."""
    from ovstage import Stage

    for name, path in files(package):
        with Stage() as stage:
            start = time.perf_counter()
            became = opened(stage, path)
            here = str(path).removesuffix(name)  # what is said of a layer names its file
            yield f"{name}\t{became.replace(here, '')}", time.perf_counter() - start


def opened(stage: object, path: Path) -> str:
    """What became of a file: numbers and what was skipped, or why it was refused."""
    from ovstage import OvstageError, PopulationDomain
    from ovstage.population import open_usd

    try:
        report = open_usd(stage, path, domains=PopulationDomain.ALL)
    except OvstageError as error:
        return f"refused: {error.message}"
    skipped = "; ".join(map(str, report.skipped)) or "-"
    return f"{len(report.paths)}\t{report.columns}\t{report.values}\t{report.bytes}\t{skipped}"


def write(package: str) -> None:
    stamp = versions(package)
    if stamp is None:
        sys.exit(f"needs the packages {', '.join(PACKAGES)} and usd-core; {package} or usd-core is not installed")
    lines = [stamp, COLUMNS]
    print(f"{stamp}\nseconds\t{COLUMNS}")
    for line, seconds in table(package):
        lines.append(line)
        print(f"{seconds:.3f}\t{line}")
    golden(package).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for each in PACKAGES:
        write(each)
