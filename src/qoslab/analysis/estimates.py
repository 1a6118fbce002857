"""Estimates: values with a maximum error. Pure.

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
"""Maximum error of an estimate as a share of its value, beyond which it counts as missing: the usual tolerance of
expectations.
"""
IP_LEAST, IP_MOST = 20, 1500
"""Minimum and maximum size in bytes of an IP packet on a line with the usual MTU."""


class Estimate(float):
    """A value with a maximum error."""

    __slots__ = ("error",)

    def __new__(cls, value: float, error: float) -> Self:  # noqa: D102
        return super().__new__(cls, value)

    def __init__(self, value: float, error: float) -> None:
        self.error = error
        """Maximum error in either direction."""


def sampled_median(samples: Sequence[float]) -> Estimate:
    """Return the median of samples at some instants, with its maximum error as the median over the whole time.

    The error holds in 95 of 100 cases, if the instants are independent of the sampled quantity: it follows from the
    order statistics on both sides (Conover, "Practical Nonparametric Statistics", 1999, 3.2), or from the extremes, if
    there are fewer than six samples.
    """
    ordered = sorted(samples)
    count, rank, outside = len(ordered), 0, 0
    # The smallest rank on either side with at most 2.5 % of the cases outside.
    while (outside + math.comb(count, rank)) * 40 <= 2**count:
        outside += math.comb(count, rank)
        rank += 1
    rank = max(rank - 1, 0)
    middle = statistics.median(ordered)
    return Estimate(middle, max(middle - ordered[rank], ordered[count - 1 - rank] - middle))


def estimate_error(value: float) -> float:
    """Return the maximum error of a value; 0 if it is not an estimate."""
    return value.error if isinstance(value, Estimate) else 0.0


def value_if_precise(value: float | Missing, of: Callable[[], str]) -> float | Missing:
    """Return the value, or a reason if it is not precise enough; `of` returns the display name of the class."""
    if isinstance(value, Missing) or estimate_error(value) <= ERROR_MOST * abs(value):
        return value
    low, high = value - estimate_error(value), value + estimate_error(value)
    return Missing(f"{of()}: the readings only show a value between {max(low, 0.0):.4g} and {high:.4g}")


def scale_estimate(value: float, factor: float) -> Estimate:
    """Return a multiple of a value, with its error."""
    return Estimate(value * factor, estimate_error(value) * abs(factor))


@dataclass(frozen=True)
class Interval:
    """Interval that contains a value."""

    low: float
    high: float

    def nearest_value(self, value: float) -> Estimate:
        """Return the nearest number within the interval, with the distance to the farther end as the error."""
        inside = min(max(value, self.low), self.high)
        return Estimate(inside, max(self.high - inside, inside - self.low))


def passed_bytes(packets: float, size: float, passed: float, header: int) -> Estimate:
    """Return the bytes of the packets of a class that passed.

    `packets` with a total of `size` bytes were offered, and `passed` of them were sent (more than offered if a queue
    was drained); each has a layer-2 header of `header` bytes.
    """
    least, most = header + IP_LEAST, header + IP_MOST
    rest = packets - passed
    few, many = sorted((rest * least, rest * most))
    low = max(passed * least, size - many)
    high = min(passed * most, size - few)
    mean = size / packets if packets else (least + most) / 2
    # Counters that are read one after the other need not agree to the last packet.
    return Interval(min(low, high), max(low, high)).nearest_value(passed * mean)
