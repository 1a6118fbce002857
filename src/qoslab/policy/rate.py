"""Rates that may depend on a line of unknown rate, and texts of numbers and names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

UNITS = ((1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"))
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate: b/s, plus a share of a line of unknown rate."""

    bps: float = 0.0
    line: float = 0.0
    """Share of the line: 0.3 is 30 %."""

    @property
    def is_absolute(self) -> bool:
        """True if the rate does not depend on the line."""
        return abs(self.line) < _TOLERANCE

    def __add__(self, other: Rate) -> Rate:
        return Rate(self.bps + other.bps, self.line + other.line)

    def __sub__(self, other: Rate) -> Rate:
        return Rate(self.bps - other.bps, self.line - other.line)

    def multiplied_by(self, factor: float) -> Rate:
        """Return the rate multiplied by a factor."""
        return Rate(self.bps * factor, self.line * factor)

    def ratio(self, whole: Rate) -> float | None:
        """Return the ratio of this rate to another; None if it depends on the line."""
        if self.is_absolute and whole.is_absolute:
            return self.bps / whole.bps if whole.bps > 0 else None
        if abs(self.bps) < _TOLERANCE and abs(whole.bps) < _TOLERANCE and whole.line > 0:
            return self.line / whole.line
        return 1.0 if self == whole else None

    def lower(self, other: Rate) -> Rate | None:
        """Return the lower of two rates; None if that depends on the line."""
        if self.is_absolute and other.is_absolute:
            return min(self, other, key=lambda each: each.bps)
        if abs(self.bps) < _TOLERANCE and abs(other.bps) < _TOLERANCE:
            return min(self, other, key=lambda each: each.line)
        return None

    def __str__(self) -> str:
        if self.is_absolute:
            return bps_text(self.bps)
        part = f"{format_number(self.line * 100)} % of line"
        if abs(self.line - 1) < _TOLERANCE:
            part = "line"
        if abs(self.bps) < 1:
            return part
        return f"{part} {'+' if self.bps > 0 else '-'} {bps_text(abs(self.bps))}"


def bps_text(bps: float) -> str:
    """Return a number of b/s with at most four significant digits, such as 1.544 Mb/s."""
    for size, unit in UNITS:
        if bps >= size:
            return f"{format_number(bps / size)} {unit}"
    return f"{format_number(bps)} b/s"


def format_number(value: float, digits: int = 4) -> str:
    """Return a number with at most `digits` significant digits, never in scientific notation."""
    if abs(value) >= 10**digits:
        return f"{value:.0f}"
    return f"{float(f'{value:.{digits}g}'):f}".rstrip("0").rstrip(".")


def format_list(names: Sequence[str], most: int = 3) -> str:
    """Return the names as a list, truncated after `most` names."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
