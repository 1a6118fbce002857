"""Units of tc(8), section "UNITS": rates, sizes and times. They differ from those of experiment files.

Case is ignored. A rate without a unit is in bits per second, and `bps` is bytes per second; `k` in a size is 1024
bytes; a time without a unit is in microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)([A-Za-z%]*)")
_PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
RATES = {
    "": 1,
    **{f"{prefix}bit": factor for prefix, factor in (_PREFIXES | _BINARY).items()},
    **{f"{prefix}bps": 8 * factor for prefix, factor in (_PREFIXES | _BINARY).items()},
}
"""Bits per second by unit."""
SIZES: dict[str, Fraction] = {
    "": Fraction(1),
    "b": Fraction(1),
    **{
        unit: Fraction(2 ** (10 * power))
        for power, units in ((1, "k kb"), (2, "m mb"), (3, "g gb"))
        for unit in units.split()
    },
    **{f"{unit}bit": Fraction(2 ** (10 * power), 8) for power, unit in ((1, "k"), (2, "m"), (3, "g"))},
}
"""Bytes by unit."""
TIMES = {
    "": 1,
    **dict.fromkeys(("us", "usec", "usecs"), 1),
    **dict.fromkeys(("ms", "msec", "msecs"), 10**3),
    **dict.fromkeys(("s", "sec", "secs"), 10**6),
}
"""Microseconds by unit."""


class UnitError(ValueError):
    """Error for a text that is not a quantity; `str` is the expected form."""


def _parse_quantity(text: str, units: Mapping[str, int | Fraction], expected: str) -> int:
    match = _NUMBER.fullmatch(text)
    factor = units.get(match[2].lower()) if match else None
    if match is None or factor is None:
        raise UnitError(expected)
    return int(Fraction(match[1]) * factor)


def parse_rate(text: str) -> int:
    """Return the bits per second of a rate such as `20mbit` or `2.5mbps` (bytes)."""
    return _parse_quantity(text, RATES, "a rate such as 20mbit or 512kbit (bits), 64kbps (bytes per second)")


def parse_size(text: str) -> int:
    """Return the bytes of a size such as `1514`, `32kb` (1024) or `10mb`."""
    return _parse_quantity(text, SIZES, "a size such as 1514 or 1600b (bytes), 32k (times 1024), 4mb")


def parse_time(text: str) -> int:
    """Return the microseconds of a time such as `5ms`."""
    return _parse_quantity(text, TIMES, "a time such as 5ms, 100us or 1s (a bare number is in microseconds)")


def count(text: str) -> int:
    """Return a whole number."""
    if not text.isascii() or not text.isdigit():
        raise UnitError("a whole number")
    return int(text)


def parse_signed(text: str) -> int:
    """Return a whole number with an optional sign."""
    try:
        return int(text)
    except ValueError:
        raise UnitError("a whole number such as 44 or -4") from None


def parse_probability(text: str) -> float:
    """Return a probability from 0 to 1."""
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 < found <= 1:
        raise UnitError("a probability above 0 and at most 1, such as 0.02")
    return found
