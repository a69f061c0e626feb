"""What is measured: how much effort goes into it, and a number beside its limit. How is the package's own timing."""

from __future__ import annotations

from dataclasses import dataclass

from ovstage.command.timing import per_call, shown, side_by_side, timed, undisturbed

__all__ = ["Effort", "Row", "per_call", "shown", "side_by_side", "timed", "undisturbed"]


@dataclass(frozen=True)
class Effort:
    """How much to spend on a measurement."""

    quick: bool

    @property
    def repeats(self) -> int:
        return 5 if self.quick else 15

    @property
    def big(self) -> int:
        """Rows of the largest column: enough that one hidden step per row shows."""
        return 10**6 if self.quick else 10**7


@dataclass(frozen=True)
class Row:
    """One number and the limit that it is to keep, if there is one."""

    what: str
    measured: float
    limit: float | None
    unit: str = "x"
    detail: str = ""
    at_least: bool = False

    @property
    def ok(self) -> bool:
        if self.limit is None:
            return True
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit

    @property
    def text(self) -> str:
        return f"{self.measured:,.2f} {self.unit}"

    @property
    def limit_text(self) -> str:
        if self.limit is None:
            return ""
        return f"{'>=' if self.at_least else '<='} {self.limit:,g} {self.unit}"
