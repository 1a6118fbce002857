"""Token bucket of a policer on a path that loses other packets at random, before or after it.

A packet that is lost before the policer consumes no tokens; one that is lost after it does. For pairs of a rate and a
burst, the arrivals are replayed: a lost packet for which there were enough tokens was lost at random. The replay
tolerates some bytes too few and then corrects its tokens, so that pairs close to the true one stand out. From round to
round, there are more packets, closer pairs and less tolerance. Then the bucket is inferred without the random losses,
as if nothing else lost packets, and replayed once more without tolerance.
"""

from __future__ import annotations

from collections import Counter
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
_SLOWEST, _FASTEST, _COARSE = 0.5, 20.0, (150, 30)
"""Rates of the first round, in rates of the passed packets, and the number of rates and bursts."""
_FIRST_PACKETS, _FIRST_LOSSES, _MORE = 150, 30, 1.6
"""Minimum packets and losses of the first round, and the growth of their number."""
_TOLERANCES, _TIGHTER, _NARROW = (0.5, 0.002), 0.6, 0.2
"""Bytes that a passed packet may lack, in largest packets: first and last ones, and their ratio from round to round.
Rounds have more packets below the last value.
"""
_PAIRS, _PAIRS_OF_RATE, _NEAR = 60, 2, 2
"""Number of pairs around which the next round searches, of those with one rate, and of neighbours in each direction."""
_MOST_COST = 0.7
"""Maximum cost of the best pair, in lost packets."""
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
    random = _replay(arrivals, np.array([rate]), np.array([burst]), _TOLERANCES[1], after=after)[1]
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
    """Return the rate and burst with the fewest random losses and corrections; None if no pair explains some losses.

    The first packets bound the pair loosely. Each round halves the distances between the pairs and adds packets, until
    all packets count with the least tolerance.
    """
    whole = _first(arrivals, MOST_PACKETS)
    largest, passed = float(whole.size.max()), max(whole.passed_bps, 1.0)
    rates = passed * np.geomspace(_SLOWEST, _FASTEST, _COARSE[0])
    least = _SMALL_BURST * largest
    bursts = np.geomspace(least, max(float(whole.size[whole.passed].sum()) / 2, 2 * least), _COARSE[1])
    steps = np.array([np.log(rates[1] / rates[0]), np.log(bursts[1] / bursts[0])])
    pairs = np.stack([each.ravel() for each in np.meshgrid(np.log(rates), np.log(bursts), indexing="ij")])
    lost = np.flatnonzero(~whole.passed)
    count = max(_FIRST_PACKETS, int(lost[min(_FIRST_LOSSES, len(lost)) - 1]) + 1)
    tolerance, near = _TOLERANCES[0], np.arange(-_NEAR, _NEAR + 1)
    while True:
        some = _first(whole, count)
        rate, burst = np.exp(pairs)
        cost = _replay(some, rate, burst, tolerance, after=after)[0]
        best = _best_pairs(pairs, cost, steps[0])
        ended = count >= len(whole.size) and tolerance <= _TOLERANCES[1]
        if cost.min() > _MOST_COST * int((~some.passed).sum()) and tolerance < _NARROW:
            return None
        if ended:
            return float(rate[best[0]]), float(burst[best[0]])
        steps, tolerance = steps / 2, max(tolerance * _TIGHTER, _TOLERANCES[1])
        count = int(count * _MORE) if tolerance < _NARROW else count
        around = np.stack([each.ravel() for each in np.meshgrid(near * steps[0], near * steps[1], indexing="ij")])
        pairs = (pairs[:, best][:, :, None] + around[:, None, :]).reshape(2, -1)
        # Neighbours of two pairs may be the same.
        pairs = pairs[:, np.unique(np.rint(2 * pairs / steps[:, None]), axis=1, return_index=True)[1]]


def _first(arrivals: Arrivals, count: int) -> Arrivals:
    return Arrivals(arrivals.time_s[:count], arrivals.size[:count], arrivals.passed[:count])


def _best_pairs(pairs: Array, cost: Array, step: float) -> list[int]:
    """Return the positions of the pairs with the lowest cost, best first, and few of them with the same rate."""
    found: list[int] = []
    of_rate: Counter[int] = Counter()
    for at in np.argsort(cost, kind="stable").tolist():
        rate = round(float(pairs[0, at]) / step)
        if of_rate[rate] < _PAIRS_OF_RATE:
            of_rate[rate] += 1
            found.append(at)
        if len(found) == _PAIRS:
            break
    return found


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
