"""What a stage holds, as a table of its attributes, for a person who looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ovstage.shown import counted
from ovstage.values import Attribute

__all__ = ["Description"]

_HEADER = ("attribute", "type", "elements", "role", "prims", "bytes", "newest", "sealed up to")


@dataclass(frozen=True)
class Description:
    """A stage in a few numbers, and its attributes. ``repr`` is the table."""

    name: str
    """The stage's name, for diagnostics."""
    floor: int
    """The write floor: up to which ordinal everything is sealed."""
    prims: int
    """How many prims there are, sealed or not."""
    attributes: Sequence[Attribute]
    """By name and type, as ``stage.attributes()`` has them."""

    def __repr__(self) -> str:
        title = f"{self.name or 'stage'}: {counted(self.prims, 'prim')}, sealed up to {self.floor}"
        return "\n".join([title, *table(_HEADER, [_row(attribute) for attribute in self.attributes])])


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table: columns as wide as they need, numbers to the right."""
    wide = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    right = [bool(rows) and all(_is_number(row[at]) for row in rows) for at in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        placed = (cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(cells, wide, right, strict=True))
        return "  ".join(placed).rstrip()

    return [line(header), *map(line, rows)]


def _is_number(text: str) -> bool:
    return text.replace(",", "").isdigit()


def _row(attribute: Attribute) -> list[str]:
    lanes = f" x {attribute.lanes}" if attribute.lanes != 1 else ""
    elements = f"{attribute.dtype}{lanes}{' []' if attribute.is_array else ''}"
    role = attribute.semantic.name.lower().replace("none", "")
    return [
        attribute.name,
        attribute.type_name,
        elements,
        role,
        f"{attribute.prim_count:,}",
        f"{attribute.bytes:,}",
        str(attribute.last_ordinal),
        str(attribute.write_floor),
    ]
