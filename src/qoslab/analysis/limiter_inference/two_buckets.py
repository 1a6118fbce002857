"""Two token buckets with a common rate that explain which packets passed and which were dropped (RFC 2697).

Tokens are added to the first bucket, and to the second while the first is full; a packet passes if one of them has
enough tokens for its bytes, which are taken from that bucket. Together they lack as many tokens as one bucket with both
bursts would, since tokens are lost only when both are full. So a passed packet found at least its size in both
together, and a dropped packet less than twice its size: this bounds the rate and the sum of the bursts, regardless of
the first bucket. Pairs of a rate and a first bucket are then searched; the best are replayed over the arrivals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qoslab.analysis.limiter_inference.bucket import (
    Array,
    Arrivals,
    Bucket,
    Interval,
    Mask,
    best_burst,
    last_good_edge,
    minima,
    minimum_rate,
)

MOST_PACKETS = 6_000
"""Maximum number of examined packets, from the beginning of the capture."""
MOST_WRONG = 0.35
"""Maximum share of wrong decisions among packets of the rarer kind: a nearly correct candidate sometimes uses the other
bucket, and decides differently until both agree again. Random losses leave at least nine in ten unexplained.
"""
_COARSE, _FINE, _ROUNDS = (64, 24), (16, 16), 4
_REPLAYED = 96
"""Number of candidates that are replayed."""


@dataclass(frozen=True)
class _Bounds:
    """Rates that the packets allow, and the sum of both bursts for each rate."""

    rate: Interval
    both: Interval


def infer_two_buckets(time_s: Array, size: Array, passed: Mask) -> Bucket | None:
    """Return both buckets as one burst, for packets in the order of their arrival; None if no buckets explain them.

    The buckets are full at the start of the capture.
    """
    part = slice(None, MOST_PACKETS)
    arrivals = Arrivals(time_s[part] - time_s[0], size[part], passed[part])
    bounds = _bounds(arrivals)
    if bounds is None:
        return None
    wrong, rate, both = _best(arrivals, bounds)
    if wrong > MOST_WRONG * arrivals.rarer_count:
        return None
    value = min(max(both, bounds.both.low), bounds.both.high)
    return Bucket(
        Interval(rate, bounds.rate.low, bounds.rate.high),
        Interval(value, bounds.both.low, bounds.both.high),
        wrong,
        buckets=2,
    )


def _bounds(arrivals: Arrivals) -> _Bounds | None:
    """Return the bounds that all packets allow; None if there is no such rate."""
    least = minimum_rate(arrivals, buckets=2)
    if least is None:
        return None

    def allowed(rate: float) -> bool:
        return bool(arrivals.overlaps(np.array([rate]), needed_more=1.0)[0] <= arrivals.slack(rate))

    rates = least * (1 + np.concatenate([[-1e-3, 0.0], np.geomspace(1e-6, 3, 80)]))
    found = minima(lambda each: arrivals.overlaps(each, needed_more=1.0), rates)
    good = [rate for rate in found if allowed(rate)]
    if not good:
        return None
    # The search stays close to the bounds from the packets.
    low, high = (
        extreme(last_good_edge(allowed, rate, by, 0) for rate in good) for extreme, by in ((min, 1 / 1.5), (max, 1.5))
    )
    sums = [_sums(arrivals, rate) for rate in (low, *good, high)]
    both = min(each[0] for each in sums), max(each[1] for each in sums)
    # If one of two buckets is too small for a packet, there is effectively a single bucket.
    if both[1] < 2 * arrivals.size.min():
        return None
    return _Bounds(Interval(good[0], low, high), Interval(sum(both) / 2, *both))


def _sums(arrivals: Arrivals, rate: float) -> tuple[float, float]:
    """Return the minimum and maximum sum of both bursts for a rate."""
    absent = arrivals.missing_bytes(rate)
    yes, no = arrivals.passed, ~arrivals.passed
    return float((absent + arrivals.size)[yes].max()), float((absent + 2 * arrivals.size)[no].min())


def _best(arrivals: Arrivals, bounds: _Bounds) -> tuple[int, float, float]:
    """Return the best candidate: its number of wrong decisions, rate, and sum of both bursts."""
    least = float(arrivals.size.min())
    rates = np.linspace(bounds.rate.low, bounds.rate.high, _COARSE[0])
    firsts = np.linspace(least, max(bounds.both.high - least, 2 * least), _COARSE[1])
    tried: list[tuple[int, float, float, float]] = []
    for _ in range(_ROUNDS):
        rate, first = (each.ravel() for each in np.meshgrid(rates, firsts, indexing="ij"))
        tried += _best_pairs(arrivals, rate, first)
        tried.sort()
        good = [each for each in tried if each[0] <= tried[0][0] + int(2 * np.sqrt(tried[0][0]))][:_REPLAYED]
        rates = _values_around(rates, [each[1] for each in good[:8]], _FINE[0])
        firsts = _values_around(firsts, [each[2] for each in good[:8]], _FINE[1])
        if tried[0][0] == 0:
            break
    rate, first, second = (np.array([each[at] for each in tried[:_REPLAYED]]) for at in (1, 2, 3))
    wrong = _replay_errors(arrivals, rate, first, second)
    at = int(wrong.argmin())
    return int(wrong[at]), float(rate[at]), float(first[at] + second[at])


def _values_around(tried: Array, good: list[float], count: int) -> Array:
    """Return values from just below the smallest good value to just above the greatest one."""
    low, high = np.searchsorted(tried, [min(good), max(good)])
    return np.linspace(tried[max(low - 1, 0)], tried[min(high + 1, len(tried) - 1)], count)


def _best_pairs(arrivals: Arrivals, rate: Array, first: Array) -> list[tuple[int, float, float, float]]:
    """Return pairs with the best second bucket: number of wrong decisions, rate, first, second."""
    needed, wrong = _required_second_buckets(arrivals, rate, first)
    found = []
    for at in range(len(rate)):
        fit = best_burst(needed[:, at], arrivals.passed)
        # A second bucket that is too small for a packet has no effect.
        second = max((fit.low + fit.high) / 2, float(arrivals.size.min()))
        found.append((int(wrong[at]) + fit.wrong, float(rate[at]), float(first[at]), second))
    return found


def _required_second_buckets(arrivals: Arrivals, rate: Array, first: Array) -> tuple[Array, Array]:
    """Return the second bucket that each packet needs to pass, by pair, and the drops that the first bucket would have
    passed.

    The paying bucket follows from the observed decisions; a packet that the first bucket pays for needs no second
    bucket.
    """
    needed = np.zeros((len(arrivals.size), len(rate)))
    tokens, lacking, wrong = first.copy(), np.zeros(len(rate)), np.zeros(len(rate))
    gaps = np.diff(arrivals.time_s, prepend=arrivals.time_s[0])
    for at, (gap, size, passes) in enumerate(
        zip(gaps.tolist(), arrivals.size.tolist(), arrivals.passed.tolist(), strict=True)
    ):
        tokens += rate / 8 * gap
        above = np.maximum(tokens - first, 0)
        tokens -= above
        lacking = np.maximum(lacking - above, 0)
        pays = tokens >= size
        if passes:
            needed[at] = np.where(pays, 0, lacking + size)
            tokens -= np.where(pays, size, 0)
            lacking += np.where(pays, 0, size)
        else:
            needed[at] = np.where(pays, np.inf, lacking + size)
            wrong += pays
    return needed, wrong


def _replay_errors(arrivals: Arrivals, rate: Array, first: Array, second: Array) -> Array:
    """Return the number of packets that each candidate decides differently, independently of earlier results."""
    one, other, wrong = first.copy(), second.copy(), np.zeros(len(rate))
    gaps = np.diff(arrivals.time_s, prepend=arrivals.time_s[0])
    for gap, size, passes in zip(gaps.tolist(), arrivals.size.tolist(), arrivals.passed.tolist(), strict=True):
        one += rate / 8 * gap
        above = np.maximum(one - first, 0)
        one -= above
        other = np.minimum(other + above, second)
        from_one = one >= size
        from_other = ~from_one & (other >= size)
        one -= np.where(from_one, size, 0)
        other -= np.where(from_other, size, 0)
        wrong += (from_one | from_other) != passes
    return wrong
