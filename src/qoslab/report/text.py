"""Formatting of values and times in the report."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime
from typing import cast, get_args

from qoslab.model.metrics import Unit, format_prefixed, format_value
from qoslab.model.partial_runs import partial_options
from qoslab.model.run_values import RunValue

NONE = "–"
"""Text in place of a missing value."""


def value_text(value: float, unit: Unit) -> str:
    """Format a measured or published value; `–` if it is missing."""
    if math.isnan(value):
        return NONE
    if math.isinf(value):
        return "∞"
    return bind_unit(format_value(value, unit))


def difference(measured: float, published: float, unit: Unit) -> str:
    """Format the difference of measured from published: in percentage points for shares, else in percent of the
    published value.
    """
    if not (math.isfinite(measured) and math.isfinite(published)) or unit == "flag":
        return ""
    if measured == published:
        return "0"
    if unit == "fraction":
        return _signed_number((measured - published) * 100, " points")
    if published == 0:
        return ""
    percent = (measured / published - 1) * 100
    return _signed_number(percent, " %") if abs(percent) >= 0.05 else "below 0.1 %"


def signed_difference(value: float, unit: Unit) -> str:
    """Format a difference of two values in their unit, with its sign; of shares in percentage points."""
    if not math.isfinite(value):
        return NONE
    sign = "+" if value > 0 else "\N{MINUS SIGN}" if value < 0 else ""
    return sign + margin(abs(value), unit)


def margin(value: float, unit: Unit) -> str:
    """Format the allowed or actual difference of two values."""
    if unit == "fraction":
        return f"{value * 100:.3g}\N{NO-BREAK SPACE}points"
    return f"{value:.3g}" if unit == "flag" else value_text(value, unit)


def share(value: float) -> str:
    """Format a relative difference: `0`, or percent with at least two digits."""
    if value == 0:
        return "0"
    percent = value * 100
    return (f"{percent:.0f}" if percent >= 10 else f"{percent:.2g}") + "\N{NO-BREAK SPACE}%"


def _signed_number(value: float, unit: str) -> str:
    return f"{value:+.1f}".replace("-", "\N{MINUS SIGN}") + unit.replace(" ", "\N{NO-BREAK SPACE}")


def run_value_text(figure_of_run: RunValue) -> str:
    """Format a value of a run, possibly of another version with an unknown unit."""
    measured, unit = figure_of_run.measured, figure_of_run.unit
    if measured is None:
        return NONE
    if unit in get_args(Unit):
        return value_text(measured, cast(Unit, unit))
    return f"{measured:.4g} {unit}".strip()


def bind_unit(words: str) -> str:
    """Replace the blank between a number and its unit by a no-break space."""
    return re.sub(r"(?<=\d) (?=[^\W\d]|%)(?!to\b)", "\N{NO-BREAK SPACE}", words)


def rate(bps: float) -> str:
    """Format a rate in bits per second."""
    return value_text(float(bps), "b/s")


def count(number: object) -> str:
    """Format an integer with thousands separators; `–` if it is missing."""
    return (
        f"{int(number):,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
        if isinstance(number, int | float) and number == number
        else NONE
    )


def size(octets: float) -> str:
    """Format bytes with decimal prefixes and four digits."""
    return bind_unit(format_prefixed(octets, "B")) if octets >= 1e3 else f"{octets:.0f} B"


def lateness(nanoseconds: float) -> str:
    """Format a short time given in nanoseconds."""
    if nanoseconds >= 1e6:
        return f"{nanoseconds / 1e6:.3g} ms"
    return f"{nanoseconds / 1e3:.3g} µs" if nanoseconds >= 1e3 else f"{nanoseconds:.0f} ns"


def moment(at: datetime | None) -> str:
    """Format a date and time in UTC."""
    return at.strftime("%Y-%m-%d %H:%M:%S UTC") if at is not None else NONE


def part(overrides: Sequence[str]) -> str:
    """Return a sentence on the part of the file that a run covers; empty for the whole file."""
    part_text = partial_options(overrides)
    return f"Part of the experiment: {part_text}." if part_text else ""


def join_items(items: list[str]) -> str:
    """Join items: `a`, `a and b`, `a, b and c`."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""
