"""The token bucket that explains which packets passed and which did not.

Tokens come at `rate` up to `burst`; a packet passes where there are as many as it has bytes, and takes them. What is
missing in the bucket goes by the packets that passed and the rate alone: it is what would wait in a queue that is
emptied at that rate, W. So a packet passes exactly where W and its size are no more than the burst, and for each rate
the burst that explains most is found by sorting. (Nothing is assumed of how packets come; the bucket is full when the
capture begins.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_MOST_UNEXPLAINED = 0.05
"""Of the packets that passed, or of those that did not, whichever are fewer."""
_FEWEST = 5
"""Packets of each kind, without which there is nothing to infer."""
_COARSE, _FINE, _VALLEYS = 80, 25, 4


@dataclass(frozen=True)
class Interval:
    """A figure, and all values that explain the packets as well."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Bucket:
    """A token bucket, in bytes as they were given."""

    rate_bps: Interval
    burst_bytes: Interval
    unexplained: int
    """Packets that it would have treated otherwise."""
    buckets: int = 1
    """That share the burst."""


@dataclass(frozen=True)
class Fit:
    """A burst for what packets needed."""

    wrong: int
    low: float
    """The least burst that is as good, and the first that is not."""
    high: float


def missing(time_s: Array, passed_bytes: Array, rate_bps: float) -> Array:
    """What is missing in a bucket when each packet comes, in bytes; `passed_bytes` is 0 of one that did not pass."""
    gone = np.concatenate([[0.0], np.cumsum(passed_bytes)[:-1]])
    level = gone - rate_bps / 8 * time_s
    found: Array = level - np.minimum.accumulate(level)
    return found


def infer_bucket(time_s: Array, size: Array, passed: Mask) -> Bucket | None:
    """The bucket for packets in the order of their arrival; None where none explains what became of them."""
    least = least_rate(time_s, size, passed)
    if least is None:
        return None

    def fit(rate: float) -> Fit:
        return best_burst(missing(time_s, np.where(passed, size, 0.0), rate) + size, passed)

    def overlap(rate: float) -> float:
        """By how much what packets needed that passed is above what the others needed; smooth, other than counts."""
        needed = missing(time_s, np.where(passed, size, 0.0), rate) + size
        return float(np.quantile(needed[passed], 0.98) - np.quantile(needed[~passed], 0.02)) / float(needed.max())

    def wrong(rate: float) -> float:
        return fit(rate).wrong

    # Most buckets are empty often enough for the rate to be hardly more than the least.
    rates = least * (1 + np.concatenate([[-1e-3, 0.0], np.geomspace(1e-6, 3, _COARSE)]))
    best = min((_narrowed(around, overlap, wrong) for around in _valleys(rates, overlap)), key=wrong)
    found = fit(best)
    if not explains(found, passed):
        return None
    allowed = as_good(found.wrong)
    low, high = (_edge(lambda rate: fit(rate).wrong <= allowed, best, towards) for towards in (1 / 1.5, 1.5))
    middle = (low + high) / 2 if fit((low + high) / 2).wrong <= allowed else best
    bursts = [fit(rate) for rate in (low, middle, high)]
    here = bursts[1]
    return Bucket(
        Interval(middle, low, high),
        Interval((here.low + here.high) / 2, min(each.low for each in bursts), max(each.high for each in bursts)),
        here.wrong,
    )


def _valleys(rates: Array, cost: Callable[[float], float]) -> list[tuple[float, float]]:
    """Where the cost has its least minima: between the neighbours of each."""
    costs = np.array([cost(float(rate)) for rate in rates])
    walled = np.concatenate([[np.inf], costs, [np.inf]])
    lows = np.flatnonzero((costs <= walled[:-2]) & (costs <= walled[2:]))
    best = lows[np.argsort(costs[lows], kind="stable")][:_VALLEYS]
    return [(float(rates[max(each - 1, 0)]), float(rates[min(each + 1, len(rates) - 1)])) for each in best]


def _narrowed(within: tuple[float, float], *costs: Callable[[float], float]) -> float:
    """The rate of the least cost, by each of the costs twice in turn; in the middle of those that are as good."""
    low, high = within
    for cost in (each for each in costs for _ in range(2)):
        rates = np.linspace(low, high, _FINE)
        found = np.array([cost(float(rate)) for rate in rates])
        good = np.flatnonzero(found == found.min())
        best = float(rates[good[len(good) // 2]])
        low, high = float(rates[max(good[0] - 1, 0)]), float(rates[min(good[-1] + 1, _FINE - 1)])
    return best


def explains(fit: Fit, passed: Mask) -> bool:
    """Whether a burst treats few enough packets otherwise than they were."""
    return fit.wrong <= _MOST_UNEXPLAINED * _fewer(passed)


def as_good(wrong: int) -> int:
    """How many packets may be treated otherwise by what is no worse than the best, which so treats `wrong`."""
    return wrong + int(2 * np.sqrt(wrong))


def _fewer(passed: Mask) -> int:
    return min(int(passed.sum()), int((~passed).sum()))


def least_rate(time_s: Array, size: Array, passed: Mask, *, buckets: int = 1) -> float | None:
    """Between two packets that did not pass no more passed than the rate gives, but for one packet a bucket.

    None where there is nothing to infer: too few packets of a kind, or no such rate.
    """
    if _fewer(passed) < _FEWEST:
        return None
    dropped = np.flatnonzero(~passed)
    gone = np.cumsum(np.where(passed, size, 0.0))
    least = 0.0
    apart = 1
    while apart < len(dropped):
        first, last = dropped[:-apart], dropped[apart:]
        seconds = time_s[last] - time_s[first]
        bytes_ = gone[last] - gone[first] - buckets * size.max()
        known = seconds > 0
        if known.any():
            least = max(least, float((8 * bytes_[known] / seconds[known]).max()))
        apart *= 2
    return least if 0 < least < np.inf else None


def best_burst(needed: Array, passed: Mask) -> Fit:
    """The burst with which most packets are treated as they were; `needed` is what each needs to pass."""
    yes, no = np.sort(needed[passed]), np.sort(needed[~passed])
    # With the burst that the k-th of those that passed needs, the later ones would not pass.
    wrong = len(yes) - 1 - np.arange(len(yes)) + np.searchsorted(no, yes, side="right")
    # Of those that are as good the greatest, behind which the interval ends.
    least = int(wrong.min())
    at = len(yes) - 1 - int(wrong[::-1].argmin())
    low = float(yes[at])
    above = int(np.searchsorted(no, low, side="right"))
    high = float(no[above]) if above < len(no) else low
    if at + 1 < len(yes):
        high = min(high, float(yes[at + 1]))
    return Fit(least, low, high)


def _edge(good: Callable[[float], bool], best: float, factor: float) -> float:
    """How far from the best rate, towards a multiple of it, one is still good."""
    inside, outside = 0.0, 1.0
    for _ in range(30):
        middle = (inside + outside) / 2
        if good(best * factor**middle):
            inside = middle
        else:
            outside = middle
    found: float = best * factor**inside
    return found
