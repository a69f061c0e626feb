"""Writes what the tests saw of each library into a document, as tables.

    python tests/interop/report.py DOCUMENT MARK RECORD ...

A RECORD is what ``pytest --record`` wrote; several may be of the same library in several versions. The tables replace
what stands between ``<!-- MARK: begin -->`` and ``<!-- MARK: end -->``. The same records give the same text.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

TYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128", "bfloat16", "float8_e4m3fn", "float8_e5m2"),
]
SHAPES = {
    "(N,)": "scalars, `(N,)`",
    "(N, 3)": "points, `(N, 3)`",
    "(N, 16)": "matrices, `(N, 16)`",
    "(N, 4, 4)": "matrices with `shape=(-1, 4, 4)`",
    "one row": "one prim, `(1, 3)`",
    "no rows": "an empty array, `(0,)`",
    "array": "arrays of single prims",
    "part": "prims in the middle of a column",
}
STRIDED = ["transposed", "every second", "reversed", "offset"]
ARROW = {
    "numbers": "one number a prim",
    "lanes": "L lanes: fixed-size lists",
    "arrays": "arrays: lists",
    "truth values": "truth values: bits",
    "reordered": "rows behind an index map",
}

Facts = Mapping[str, str]


def main(document: str, mark: str, *records: str) -> None:
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    seen: list[tuple[str, Facts]] = []
    for record in records:
        for library, facts in json.loads(Path(record).read_text()).items():
            seen.append((f"{library} {facts['version']}", facts))
    seen.sort(key=lambda entry: entry[0].lower())
    path = Path(document)
    head, rest = path.read_text().split(begin)
    _, tail = rest.split(end)
    path.write_text("\n".join([head + begin, *lines(seen), "", end]) + tail)


def lines(seen: Sequence[tuple[str, Facts]]) -> Iterator[str]:
    consumers = [entry for entry in seen if "asks" in entry[1]]
    producers = [entry for entry in seen if any(what.startswith("in ") for what in entry[1])]
    readers = [entry for entry in seen if "arrow numbers" in entry[1]]
    yield from section("How an export is taken")
    heading = ["library", "asks for", "writing to a read group's view", "writing to a map's view", "view outlives all"]
    yield from table(
        heading,
        [
            [name, facts["asks"], facts["writing"], REACHES[facts["maps"]], facts["outlives"]]
            for name, facts in consumers
        ],
    )
    yield from section("Shapes, from the stage to the library")
    yield from matrix("shape", consumers, SHAPES, "shape ")
    yield from section("Element types, from the stage to the library")
    yield from matrix("type", consumers, dict(zip(TYPES, TYPES, strict=True)), "out ")
    yield from section("Element types, from the library to the stage")
    yield from matrix("type", producers, dict(zip(TYPES, TYPES, strict=True)), "in ")
    yield from section("Views with strides, from the library to the stage")
    strided = [entry for entry in producers if any(what.startswith("strided") for what in entry[1])]
    yield from matrix("view", strided, dict(zip(STRIDED, STRIDED, strict=True)), "strided ")
    if readers:
        yield from section("Arrow readers")
        yield from matrix("values", readers, ARROW, "arrow ")


REACHES = {"yes": "is committed", "no": "not possible"}


def section(title: str) -> Iterator[str]:
    yield from ("", f"### {title}", "")


def matrix(corner: str, libraries: Sequence[tuple[str, Facts]], rows: Mapping[str, str], kind: str) -> Iterator[str]:
    yield from table(
        [corner, *(name for name, _ in libraries)],
        [[title, *(facts.get(kind + key, "-") for _, facts in libraries)] for key, title in rows.items()],
    )


def table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[i]) for row in [heading, *rows]) for i in range(len(heading))]
    for row in [heading, ["-" * width for width in widths], *rows]:
        yield "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"


if __name__ == "__main__":
    main(*sys.argv[1:])
