"""Token bucket of a policer on a path that loses other packets at random, before or after it.

A packet that is lost before the policer consumes no tokens; one that is lost after it does. For pairs of a rate and a
burst, the arrivals are replayed: a lost packet for which there were enough tokens was lost at random. The replay
tolerates some bytes too few and then corrects its tokens, so that pairs close to the true one stand out; the tolerance
decreases from round to round. Then the bucket is inferred without the random losses, as if nothing else lost packets,
and replayed once more without tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from qoslab.analysis.limiter_inference.bucket import Array, Arrivals, Bucket, Interval, Mask, infer_bucket

MOST_PACKETS = 4_000
"""Maximum number of packets by which rate and burst are searched, from the beginning of the capture."""
FEWEST_DROPS = 20
"""Minimum number of drops by the policer."""
LEAST_EVIDENCE = 30.0
"""Minimum of the drops times -ln of the share of lost packets: the probability that as many random losses coincide with
the drops of a bucket by chance is e to the power of minus this.
"""
_MOST_RANDOM = 1.0
"""Maximum ratio of random losses to drops."""
_SMALL_BURST = 2
"""Minimum burst in largest packets: with a smaller one, regular losses look the same."""
_NOT_RANDOM = 4.0
"""Minimum deviation, in standard errors, of losses that are not random."""
_SLOWEST, _FASTEST, _COARSE, _FINE, _NEXT = 0.5, 20.0, (80, 14), 13, 1.5
_ROUNDS = ((0.5, 10, 0.9), (0.25, 5, 0.8), (0.1, 3, 0.7), (0.03, 2, 0.6), (0.01, 1, 0.6), (0.003, 1, 0.6))
"""Rounds of the search: bytes that a passed packet may lack, in largest packets; number of pairs around which the next
round searches; and maximum cost of the best pair, in lost packets.
"""
_UNCERTAIN = 0.5
"""Cost of a drop for which nearly enough tokens were there."""
_EXACT = 3
"""Maximum number of exact inferences, each with the random losses of the one before."""

Place = Literal["before", "after", "unknown"]


@dataclass(frozen=True)
class BucketWithLosses:
    """A policer's bucket, and the losses that it does not explain."""

    bucket: Bucket
    random: int
    """Number of packets lost at random."""
    reached: int
    """Number of packets that the policer passed, including random losses."""
    place: Place
    """Position of the random losses relative to the policer, if the packets show it."""


def infer_bucket_with_losses(time_s: Array, size: Array, passed: Mask) -> BucketWithLosses | None:
    """Return the policer and the random losses, for packets in the order of their arrival; None if these do not explain
    which packets passed.
    """
    arrivals = Arrivals(time_s - time_s[0], size, passed)
    if int((~passed).sum()) < FEWEST_DROPS or int(passed.sum()) < FEWEST_DROPS:
        return None
    found = [each for after in (False, True) if (each := _infer(arrivals, after=after)) is not None]
    if not found:
        return None
    best = min(found, key=lambda each: each.random)
    if len(found) == 1:
        return best
    rates, bursts = zip(*((each.bucket.rate_bps, each.bucket.burst_bytes) for each in found), strict=True)
    bucket = replace(
        best.bucket, rate_bps=_widen(best.bucket.rate_bps, rates), burst_bytes=_widen(best.bucket.burst_bytes, bursts)
    )
    return BucketWithLosses(bucket, best.random, best.reached, "unknown")


def _widen(value: Interval, of: tuple[Interval, ...]) -> Interval:
    return Interval(value.value, min(each.low for each in of), max(each.high for each in of))


def _infer(arrivals: Arrivals, *, after: bool) -> BucketWithLosses | None:
    """Return the policer with random losses at one place."""
    found = _search(arrivals, after=after)
    if found is None:
        return None
    rate, burst = found
    random = _replay(arrivals, np.array([rate]), np.array([burst]), _ROUNDS[-1][0], after=after)[1]
    for _ in range(_EXACT):
        reached = ~random if not after else np.ones(len(random), dtype=np.bool_)
        consumed = (arrivals.passed | random)[reached]
        bucket = infer_bucket(arrivals.time_s[reached], arrivals.size[reached], consumed)
        if bucket is None:
            return None
        value = np.array([bucket.rate_bps.value]), np.array([bucket.burst_bytes.value])
        again = _replay(arrivals, *value, 0.0, after=after)[1]
        if not bucket.unexplained and (again == random).all():
            break
        random = again
    else:
        return None
    return _check(arrivals, random, bucket, after=after)


def _search(arrivals: Arrivals, *, after: bool) -> tuple[float, float] | None:
    """Return the rate and burst with the fewest random losses and corrections; None if no pair explains some losses."""
    part = slice(None, MOST_PACKETS)
    some = Arrivals(arrivals.time_s[part], arrivals.size[part], arrivals.passed[part])
    largest, passed = float(some.size.max()), max(some.passed_bps, 1.0)
    rates = passed * np.geomspace(_SLOWEST, _FASTEST, _COARSE[0])
    least = _SMALL_BURST * largest
    bursts = np.geomspace(least, max(float(some.size[some.passed].sum()) / 2, 2 * least), _COARSE[1])
    steps = [np.log(rates[1] / rates[0]), np.log(bursts[1] / bursts[0])]
    rate, burst = np.meshgrid(rates, bursts, indexing="ij")
    for tolerance, most, most_cost in _ROUNDS:
        cost = _replay(some, rate.ravel(), burst.ravel(), tolerance, after=after)[0].reshape(rate.shape)
        if cost.min() > most_cost * int((~some.passed).sum()):
            return None
        best = cost.argmin(axis=1)
        rows = np.argsort(cost.min(axis=1), kind="stable")[:most]
        centres = rate[rows, best[rows]], burst[rows, best[rows]]
        # Each row of the next round has the surroundings of one centre.
        near = np.meshgrid(*(np.exp(np.linspace(-step, step, _FINE)) for step in steps), indexing="ij")
        rate, burst = (middle[:, None] * each.ravel() for middle, each in zip(centres, near, strict=True))
        steps = [_NEXT * 2 * step / (_FINE - 1) for step in steps]
    return float(centres[0][0]), float(centres[1][0])


def _replay(arrivals: Arrivals, rate: Array, burst: Array, tolerance: float, *, after: bool) -> tuple[Array, Mask]:
    """Return the cost of each pair, in packets, and the mask of the random losses of the last pair.

    A passed packet without enough tokens costs one, or its share of a packet within the tolerance; so does a random
    loss. Tokens within the tolerance are corrected.
    """
    slack = tolerance * float(arrivals.size.max()) + arrivals.slack(float(rate.max()))
    tokens, cost = burst.copy(), np.zeros(len(rate))
    random = np.zeros(len(arrivals.size), dtype=np.bool_)
    gaps = np.diff(arrivals.time_s, prepend=arrivals.time_s[0]) / 8
    for at, (gap, size, passes) in enumerate(
        zip(gaps.tolist(), arrivals.size.tolist(), arrivals.passed.tolist(), strict=True)
    ):
        tokens += rate * gap
        np.minimum(tokens, burst, out=tokens)
        if passes:
            lacking = np.maximum(size - tokens, 0)
            cost += np.where(lacking > slack, 1.0, lacking / (slack + size))
            tokens += lacking - size
        else:
            lacking = size - tokens
            enough = lacking <= -slack
            excess = np.where(enough, 0, np.maximum(-lacking, 0))
            # Tokens for nearly a whole packet at each drop show a rate that follows the arrivals.
            cost += np.where(enough, 1.0, np.where(lacking < slack, _UNCERTAIN, 0.0))
            tokens -= excess
            if after:
                tokens -= np.where(enough, size, 0)
            random[at] = enough[-1]
    return cost, random


def _check(arrivals: Arrivals, random: Mask, bucket: Bucket, *, after: bool) -> BucketWithLosses | None:
    """Return the policer if its drops are certain and the other losses are random."""
    lost = int((~arrivals.passed).sum())
    count = int(random.sum())
    drops = lost - count
    evidence = -drops * float(np.log(lost / len(random)))
    if drops < FEWEST_DROPS or evidence < LEAST_EVIDENCE or count > _MOST_RANDOM * drops:
        return None
    if bucket.burst_bytes.high < _SMALL_BURST * float(arrivals.size.max()):
        return None
    reached = arrivals.passed | random
    if not _are_random(random[reached]):
        return None
    return BucketWithLosses(bucket, count, int(reached.sum()), "after" if after else "before")


def _are_random(lost: Mask) -> bool:
    """Return whether losses are as independent of each other as random ones, and spread over the capture."""
    count, share = int(lost.sum()), float(lost.mean())
    pairs, expected = int((lost[1:] & lost[:-1]).sum()), share**2 * (len(lost) - 1)
    if pairs - expected > _NOT_RANDOM * np.sqrt(max(1.0, expected)):
        return False
    middle = float(np.flatnonzero(lost).mean() / len(lost)) if count else 0.5
    return bool(abs(middle - 0.5) <= _NOT_RANDOM / np.sqrt(12 * max(1, count)))
