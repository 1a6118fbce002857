"""The two token buckets of one rate that explain which packets passed and which did not (RFC 2697).

Tokens come to the first bucket, and to the second what the first has no room for; a packet passes where one of them has
as many as it has bytes, and that one pays. Who pays is not seen. So all pairs of a rate and a first bucket are gone
through side by side, packet by packet: the first pays where it can, and for what it cannot the second must do. What the
second has to hold is found as of one bucket. Where packets come without a pause longer than the first bucket lasts,
only the sum of both can be told.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median_high

import numpy as np

from qoslab.analysis.limiter_inference.bucket import (
    Array,
    Bucket,
    Fit,
    Interval,
    Mask,
    as_good,
    best_burst,
    explains,
    least_rate,
    missing,
)

MOST_PACKETS = 20_000
"""That are looked at, from the begin of the capture."""
_COARSE, _FINE, _ROUNDS = (100, 8), 24, 4
_ABOVE = 0.1
"""By how much the rate may be above the least that it can be, where both buckets are empty often."""
_LATE = 0.02
"""Of the least packet, in tokens: what clocks and rates that are nearly right may be off by."""


def infer_two_buckets(time_s: Array, size: Array, passed: Mask) -> Bucket | None:
    """Both buckets as one burst, for packets in the order of their arrival; None where none explain them.

    The buckets are full when the capture begins.
    """
    time_s, size, passed = time_s[:MOST_PACKETS], size[:MOST_PACKETS], passed[:MOST_PACKETS]
    least = least_rate(time_s, size, passed, buckets=2)
    if least is None:
        return None
    rates = least * (1 + np.concatenate([[0.0], np.geomspace(1e-5, _ABOVE, _COARSE[0])]))
    firsts = np.linspace(size.min(), _gone(time_s, size, passed, least) + 2 * size.max(), _COARSE[1])
    tried: list[_Pair] = []
    for _ in range(_ROUNDS):
        now = _tried(time_s, size, passed, rates, firsts)
        if not now:
            break
        tried += now
        good = _as_good(now)
        rates = _around(rates, [each.rate for each in good])
        firsts = _around(firsts, [each.first for each in good])
    if not tried:
        return None
    wrong = min(each.fit.wrong for each in tried)
    best = [each for each in tried if each.fit.wrong == wrong]
    if not explains(best[0].fit, passed):
        return None
    good = _as_good(tried)
    return Bucket(
        Interval(
            median_high(each.rate for each in best), min(each.rate for each in good), max(each.rate for each in good)
        ),
        Interval(
            median_high(each.together for each in best),
            min(each.first + each.fit.low for each in good),
            max(each.first + each.fit.high for each in good),
        ),
        wrong,
        buckets=2,
    )


@dataclass(frozen=True)
class _Pair:
    """A rate and a first bucket, and the second that does best with them."""

    rate: float
    first: float
    fit: Fit

    @property
    def together(self) -> float:
        return self.first + (self.fit.low + self.fit.high) / 2


def _as_good(tried: list[_Pair]) -> list[_Pair]:
    allowed = as_good(min(each.fit.wrong for each in tried))
    return [each for each in tried if each.fit.wrong <= allowed]


def _around(tried: Array, good: list[float]) -> Array:
    """Values from the one before those that are good to the one behind them."""
    low, high = np.searchsorted(tried, [min(good), max(good)])
    return np.linspace(tried[max(low - 1, 0)], tried[min(high + 1, len(tried) - 1)], _FINE)


def _gone(time_s: Array, size: Array, passed: Mask, rate: float) -> float:
    """What both buckets have given when the first packet is lost, for which neither has enough."""
    return float(missing(time_s, np.where(passed, size, 0.0), rate)[np.argmin(passed)])


def _tried(time_s: Array, size: Array, passed: Mask, rates: Array, firsts: Array) -> list[_Pair]:
    """The pairs of both that the first lost packet allows, in the order of rates."""
    rate, first = (each.ravel() for each in np.meshgrid(rates, firsts, indexing="ij"))
    needed = _needed(time_s, size, passed, rate, first)
    fits = [best_burst(needed[:, each], passed) for each in range(len(rate))]
    gone = np.repeat([_gone(time_s, size, passed, float(each)) for each in rates], len(firsts))
    pairs = [_Pair(float(one), float(other), fit) for one, other, fit in zip(rate, first, fits, strict=True)]
    most = 2 * size.max()
    return [each for each, least in zip(pairs, gone, strict=True) if least - most <= each.together <= least + most]


def _needed(time_s: Array, size: Array, passed: Mask, rate: Array, first: Array) -> Array:
    """What the second bucket has to hold for each packet to pass, by pair; 0 where the first pays."""
    slack = _LATE * float(size.min())
    needed = np.zeros((len(size), len(rate)))
    tokens, lacking = first.copy(), np.zeros(len(rate))
    gaps = np.diff(time_s, prepend=time_s[0])
    for at, (gap, each, passes) in enumerate(zip(gaps, size, passed, strict=True)):
        tokens += rate / 8 * gap
        above = np.maximum(tokens - first, 0)
        tokens -= above
        lacking = np.maximum(lacking - above, 0)
        if passes:
            pays = tokens >= each - slack
            needed[at] = np.where(pays, 0, lacking + each)
            tokens = np.where(pays, np.maximum(tokens - each, 0), tokens)
            lacking = np.where(pays, lacking, lacking + each)
        else:
            needed[at] = np.where(tokens < each + slack, lacking + each, 0)
            # There cannot have been more.
            tokens = np.minimum(tokens, each)
    return needed
