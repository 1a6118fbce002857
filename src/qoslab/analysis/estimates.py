"""A figure that is not known exactly: its value and how wrong that may be. Pure.

If an output shows packets and not bytes, the bytes are bounded by the possible sizes of packets and by other values of
the output; the estimate uses the mean size of their class.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from qoslab.analysis.missing import Missing

ERROR_MOST = 0.05
"""Share of a figure that it may be wrong by to be given at all: what tolerances of expectations usually are."""
IP_LEAST, IP_MOST = 20, 1500
"""Bytes of an IP packet on a line with the usual MTU."""


class Estimate(float):
    """A figure that may be wrong."""

    __slots__ = ("error",)

    def __new__(cls, value: float, error: float) -> Self:  # noqa: D102
        return super().__new__(cls, value)

    def __init__(self, value: float, error: float) -> None:
        self.error = error
        """Greatest error in either direction."""


def sampled_median(samples: Sequence[float]) -> Estimate:
    """The median of what was examined at some instants; of what was there all the time it is wrong by so much at most.

    In 95 of 100 cases, where the instants have nothing to do with what is examined: by the order statistics on both
    sides (Conover, "Practical Nonparametric Statistics", 1999, 3.2); by the ends, if there are fewer than six.
    """
    ordered = sorted(samples)
    count, rank, outside = len(ordered), 0, 0
    # The least rank on either side at which no more than 2.5 % of the cases are outside.
    while (outside + math.comb(count, rank)) * 40 <= 2**count:
        outside += math.comb(count, rank)
        rank += 1
    rank = max(rank - 1, 0)
    middle = statistics.median(ordered)
    return Estimate(middle, max(middle - ordered[rank], ordered[count - 1 - rank] - middle))


def error_of(value: float) -> float:
    """Return how wrong a figure may be; 0 of a plain one."""
    return value.error if isinstance(value, Estimate) else 0.0


def given(value: float | Missing, of: Callable[[], str]) -> float | Missing:
    """The value, if it is precise enough; `of` returns the display name of the class."""
    if isinstance(value, Missing) or error_of(value) <= ERROR_MOST * abs(value):
        return value
    low, high = value - error_of(value), value + error_of(value)
    return Missing(f"{of()}: its readings only show that it is between {max(low, 0.0):.4g} and {high:.4g}")


def scaled(value: float, factor: float) -> Estimate:
    """A multiple of a figure, and of how wrong it may be."""
    return Estimate(value * factor, error_of(value) * abs(factor))


@dataclass(frozen=True)
class Interval:
    """Interval that contains a number."""

    low: float
    high: float

    def near(self, value: float) -> Estimate:
        """The value, or the end that is next to it, with how far the farther end is."""
        inside = min(max(value, self.low), self.high)
        return Estimate(inside, max(self.high - inside, inside - self.low))


def passed_bytes(packets: float, size: float, passed: float, header: int) -> Estimate:
    """Bytes of those of a class's packets that passed.

    `packets` of `size` bytes in all were offered, `passed` of them went on (more than were offered where a queue was
    drained); each has a header of layer 2 of `header` bytes.
    """
    least, most = header + IP_LEAST, header + IP_MOST
    rest = packets - passed
    few, many = sorted((rest * least, rest * most))
    low = max(passed * least, size - many)
    high = min(passed * most, size - few)
    mean = size / packets if packets else (least + most) / 2
    # Counters that are read one after the other need not agree to the last packet.
    return Interval(min(low, high), max(low, high)).near(passed * mean)
