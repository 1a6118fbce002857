"""Single token bucket that explains which packets passed and which were dropped.

Tokens are added at `rate` up to `burst`; a packet passes if there are enough tokens for its bytes, and consumes them.
The tokens missing from the bucket, W, depend only on the packets that passed and on the rate: W is the backlog of a
queue that is served at that rate. A packet passes exactly if W plus its size is at most the burst. So a rate explains
every packet if all passed packets need less than all others, and the difference between the two (`overlap`) is
piecewise linear in the rate: its minima are found by narrowing. The candidate is then replayed over the arrivals, and
packets with a different decision are unexplained. The bucket is assumed to be full at the start of the capture; if no
such bucket explains the packets, one that was never full is tried: its tokens are a straight line less passed bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

BurstSource = Literal["full", "start", "least"]
"""Evidence of a burst: `full`, the bucket was full after the first drop, too; `start`, only at the start of the
capture, which is assumed; `least`, at no time, so that the burst is only a lower bound.
"""
MOST_UNEXPLAINED = 0.05
"""Maximum share of unexplained packets, among passed packets or among the others, whichever are fewer."""
FEWEST = 5
"""Minimum number of packets of each kind for an inference."""
LEAST_CERTAIN = 0.5
"""Minimum share of the drops that must not depend on the last digit of time stamps."""
_OUTLIERS = 0.02
"""Share of either kind of packets that a rate need not explain, if no rate explains all of them."""
_SMALL_BURST, _ABOVE_PASSED = 2, 1.1
"""Packets of a small burst, and minimum ratio of its rate to that of the passed packets. If it does not explain all
packets, its rate is uncertain: a slower bucket with later losses passes the same constant-rate packets.
"""
_COARSE, _FINE, _ROUNDS, _VALLEYS = 120, 9, 14, 4
_FARTHEST = 40
"""Maximum number of steps to the edge of the rates that explain the packets: a bucket that refills before each burst
hardly bounds the rate.
"""
_AT_ONCE = 2_000_000
"""Maximum product of packets and rates that are processed together, to limit memory."""


@dataclass(frozen=True)
class Interval:
    """A value, and the range of values that explain the packets equally well."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Bucket:
    """A token bucket, in the same bytes as the packets."""

    rate_bps: Interval
    burst_bytes: Interval
    unexplained: int
    """Number of packets with a different decision in the replay."""
    buckets: int = 1
    """Number of buckets that share the burst."""
    burst_from: BurstSource = "full"
    """Evidence of the burst."""


@dataclass(frozen=True)
class Fit:
    """Burst that best separates passed packets from others."""

    wrong: int
    low: float
    """Smallest burst that is equally good, and the first larger one that is not."""
    high: float


@dataclass(frozen=True)
class Arrivals:
    """Packets in the order of their arrival, with the mask of those that passed."""

    time_s: Array
    size: Array
    passed: Mask

    @property
    def passed_size(self) -> Array:
        """Sizes of the packets, with 0 for those that did not pass."""
        return np.where(self.passed, self.size, 0.0)

    @property
    def rarer_count(self) -> int:
        """Number of packets of the rarer kind: passed or dropped."""
        return min(int(self.passed.sum()), int((~self.passed).sum()))

    @property
    def passed_bps(self) -> float:
        """Rate of the passed packets from the first drop to the last one."""
        dropped = np.flatnonzero(~self.passed)
        within = slice(dropped[0], dropped[-1] + 1)
        seconds = float(self.time_s[dropped[-1]] - self.time_s[dropped[0]])
        return float(8 * self.size[within][self.passed[within]].sum() / seconds) if seconds > 0 else 0.0

    @property
    def stamp_s(self) -> float:
        """Resolution of the time stamps."""
        return timestamp_resolution(self.time_s)

    def slack(self, rate_bps: float) -> float:
        """Error of the tokens in bytes, due to the resolution of the time stamps."""
        return rate_bps / 8 * self.stamp_s + 1e-6

    def overlaps(self, rates: Array, needed_more: float = 0.0, outliers: float = 0.0) -> Array:
        """Return, by rate, the bytes by which passed packets needed more than the others.

        A dropped packet needs `needed_more` times its size in addition to its size. A share of `outliers` of either
        kind is ignored.
        """
        found = np.empty(len(rates))
        passed_bytes = self.passed_size
        step = max(1, _AT_ONCE // len(self.size))
        for first in range(0, len(rates), step):
            part = slice(first, first + step)
            absent = missing_bytes_by_rate(self.time_s, passed_bytes, rates[part])
            yes = absent[:, self.passed] + self.size[self.passed]
            no = absent[:, ~self.passed] + (1 + needed_more) * self.size[~self.passed]
            # A full bucket passes any packet that it can hold, regardless of the rate.
            fits = self.size[~self.passed] <= self.size[self.passed].max()
            no[(absent[:, ~self.passed] <= 1e-6) & fits] = 0.0
            if outliers:
                ranks = int(outliers * yes.shape[1]), int(outliers * no.shape[1])
                most = np.partition(yes, yes.shape[1] - 1 - ranks[0], axis=1)[:, yes.shape[1] - 1 - ranks[0]]
                found[part] = most - np.partition(no, ranks[1], axis=1)[:, ranks[1]]
            else:
                found[part] = yes.max(axis=1) - no.min(axis=1)
        return found

    def missing_bytes(self, rate: float) -> Array:
        """Return the bytes missing from the bucket at each arrival."""
        return missing_bytes(self.time_s, self.passed_size, rate)

    def fit(self, rate: float) -> Fit:
        """Return the best burst for a rate."""
        return best_burst(self.missing_bytes(rate) + self.size, self.passed)

    def are_explained(self, wrong: int, certain: int) -> bool:
        """Return whether wrong decisions are few enough, and certain drops numerous enough."""
        dropped = int((~self.passed).sum())
        return wrong <= MOST_UNEXPLAINED * self.rarer_count and certain >= max(FEWEST, LEAST_CERTAIN * dropped)

    def replay(self, rate: float, burst: float) -> tuple[int, int]:
        """Return the number of packets that a bucket decides differently, and the number of its certain drops.

        The observed decision is used only if tokens and size differ by less than the resolution of the time stamps.
        """
        slack, tokens, last = self.slack(rate), burst, float(self.time_s[0])
        wrong = certain = 0
        for now, size, observed in zip(self.time_s.tolist(), self.size.tolist(), self.passed.tolist(), strict=True):
            tokens, last = min(burst, tokens + rate / 8 * (now - last)), now
            passes = tokens >= size
            if abs(tokens - size) <= slack:
                passes = observed
            elif not passes:
                certain += 1
            wrong += passes != observed
            if passes:
                tokens -= size
        return wrong, certain


def timestamp_resolution(time_s: Array) -> float:
    """Return the resolution of time stamps: 1 us if none is finer, else 1 ns."""
    return 1e-6 if not (np.rint(time_s * 1e9).astype(np.int64) % 1000).any() else 1e-9


def missing_bytes(time_s: Array, passed_bytes: Array, rate_bps: float) -> Array:
    """Return the bytes missing from a bucket at each arrival; `passed_bytes` is 0 for a dropped packet."""
    found: Array = missing_bytes_by_rate(time_s, passed_bytes, np.array([rate_bps]))[0]
    return found


def missing_bytes_by_rate(time_s: Array, passed_bytes: Array, rates: Array) -> Array:
    """Return the missing bytes for several rates, with shape (rates, packets)."""
    gone = np.concatenate([[0.0], np.cumsum(passed_bytes)[:-1]])
    level = gone - rates[:, None] / 8 * time_s
    found: Array = level - np.minimum.accumulate(level, axis=1)
    return found


def infer_bucket(time_s: Array, size: Array, passed: Mask) -> Bucket | None:
    """Return the bucket for packets in the order of their arrival; None if none explains which of them passed."""
    arrivals = Arrivals(time_s - time_s[0], size, passed)
    least = minimum_rate(arrivals)
    if least is None:
        return None
    rates = least * (1 + np.concatenate([[-1e-3, 0.0], np.geomspace(1e-7, 3, _COARSE)]))
    exact = minima(arrivals.overlaps, rates)
    good = [rate for rate in exact if arrivals.overlaps(np.array([rate]))[0] <= arrivals.slack(rate)]
    if good:
        return _fit_exactly(arrivals, good)
    if (never_full := _fit_without_full_bucket(arrivals)) is not None:
        return never_full
    near = minima(lambda each: arrivals.overlaps(each, outliers=_OUTLIERS), rates)
    return _fit_approximately(arrivals, min(exact + near, key=lambda rate: arrivals.fit(rate).wrong))


def _fit_exactly(arrivals: Arrivals, rates: list[float]) -> Bucket | None:
    """Return the bucket for the rates that explain each packet, within the resolution of time stamps."""
    # At the offered rate of constant-rate traffic, every decision depends on the last digit.
    rates = [
        rate for rate in rates if arrivals.are_explained(*arrivals.replay(rate, sum(_needed_bytes(arrivals, rate)) / 2))
    ]
    if not rates:
        return None

    def explains(rate: float) -> bool:
        return bool(arrivals.overlaps(np.array([rate]))[0] <= arrivals.slack(rate))

    edges = [(last_good_edge(explains, rate, 1 / 1.5), last_good_edge(explains, rate, 1.5)) for rate in rates]
    low, high = min(each[0] for each in edges), max(each[1] for each in edges)
    middle = sum(edges[0]) / 2
    value = middle if high < 1.5 * low and explains(middle) else rates[0]
    bursts = [_needed_bytes(arrivals, rate) for rate in (*(each for pair in edges for each in pair), value)]
    burst = Interval(
        (bursts[-1][0] + bursts[-1][1]) / 2,
        min(min(each) for each in bursts) - arrivals.slack(value),
        max(max(each) for each in bursts) + arrivals.slack(value),
    )
    wrong, certain = arrivals.replay(value, burst.value)
    if not arrivals.are_explained(wrong, certain):
        return None
    absent = arrivals.missing_bytes(value)
    full_later = bool((absent[int((~arrivals.passed).argmax()) :] <= arrivals.slack(value)).any())
    return Bucket(Interval(value, low, high), burst, wrong, burst_from="full" if full_later else "start")


def _fit_without_full_bucket(arrivals: Arrivals) -> Bucket | None:
    """Return the bucket for a capture in which it was never full, not even at the start; None if there is none.

    Without a full bucket, tokens are those at the start, plus rate times time, less the passed bytes: a straight line
    over time separates the bytes needed by passed packets from those needed by dropped ones.
    """
    from scipy.optimize import linprog

    consumed = arrivals.passed_size
    needed = arrivals.size + np.cumsum(consumed) - consumed
    above, below = (
        _hull(arrivals.time_s[each], sign * needed[each])
        for each, sign in ((arrivals.passed, 1), (~arrivals.passed, -1))
    )
    slack = arrivals.slack(arrivals.passed_bps)
    rows = np.array([[-time, -1.0] for time, _ in above] + [[time, 1.0] for time, _ in below])
    limits = np.array([slack - value for _, value in above] + [slack - value for _, value in below])
    edges = [linprog([sign, 0.0], A_ub=rows, b_ub=limits, bounds=[(0, None), (0, None)]) for sign in (1, -1)]
    if not all(each.success for each in edges):
        return None
    (low, first), (high, last) = (each.x for each in edges)
    rate, start = (low + high) / 2, (first + last) / 2
    tokens = start + rate * arrivals.time_s - needed
    passes = tokens >= 0
    wrong = int(((passes != arrivals.passed) & (np.abs(tokens) > slack)).sum())
    if not arrivals.are_explained(wrong, int((tokens < -slack).sum())):
        return None
    least = float((tokens + arrivals.size).max())
    return Bucket(Interval(8 * rate, 8 * low, 8 * high), Interval(least, least, least), wrong, burst_from="least")


def _hull(time_s: Array, value: Array) -> list[tuple[float, float]]:
    """Return the corners of the upper convex hull of points that are ordered by time."""
    corners: list[tuple[float, float]] = []
    for point in zip(time_s.tolist(), value.tolist(), strict=True):
        while len(corners) > 1:
            (x0, y0), (x1, y1) = corners[-2:]
            if (x1 - x0) * (point[1] - y0) < (point[0] - x0) * (y1 - y0):
                break
            corners.pop()
        corners.append(point)
    return corners


def _needed_bytes(arrivals: Arrivals, rate: float) -> tuple[float, float]:
    """Return the most bytes that any passed packet needed, and the fewest that any dropped packet needed."""
    absent = arrivals.missing_bytes(rate) + arrivals.size
    return float(absent[arrivals.passed].max()), float(absent[~arrivals.passed].min())


def _fit_approximately(arrivals: Arrivals, best: float) -> Bucket | None:
    """Return the bucket with the best rate if no rate explains each packet."""
    found = arrivals.fit(best)
    if found.high < _SMALL_BURST * arrivals.size.max() and best > _ABOVE_PASSED * arrivals.passed_bps:
        return None
    wrong, certain = arrivals.replay(best, (found.low + found.high) / 2)
    if not arrivals.are_explained(wrong, certain):
        return None
    allowed = tolerated_wrong_decisions(found.wrong)
    low, high = (
        last_good_edge(lambda rate: arrivals.fit(rate).wrong <= allowed, best, towards) for towards in (1 / 1.5, 1.5)
    )
    bursts = [arrivals.fit(rate) for rate in (low, best, high)]
    burst = Interval(
        (bursts[1].low + bursts[1].high) / 2, min(each.low for each in bursts), max(each.high for each in bursts)
    )
    return Bucket(Interval(best, low, high), burst, wrong)


def minima(cost: Callable[[Array], Array], values: Array) -> list[float]:
    """Return the positions of the lowest minima of a cost that is piecewise linear in sorted values."""
    costs = cost(values)
    walled = np.concatenate([[np.inf], costs, [np.inf]])
    lows = np.flatnonzero((costs <= walled[:-2]) & (costs <= walled[2:]))
    found = []
    for at in lows[np.argsort(costs[lows], kind="stable")][:_VALLEYS]:
        low, high = values[max(at - 1, 0)], values[min(at + 1, len(values) - 1)]
        for _ in range(_ROUNDS):
            tried = np.linspace(low, high, _FINE)
            costs_here = cost(tried)
            good = np.flatnonzero(costs_here == costs_here.min())
            low, high = tried[max(good[0] - 1, 0)], tried[min(good[-1] + 1, _FINE - 1)]
        found.append(float(tried[good[len(good) // 2]]))
    return found


def tolerated_wrong_decisions(wrong: int) -> int:
    """Return the number of wrong decisions up to which a candidate is no worse than the best one, which has `wrong`."""
    return wrong + int(2 * np.sqrt(wrong))


def minimum_rate(arrivals: Arrivals, *, buckets: int = 1) -> float | None:
    """Return a lower bound of the rate: the packets passed between two drops, less one packet for each bucket, over
    their time.

    Return None if nothing can be inferred: there are too few packets of a kind, or there is no such rate.
    """
    if arrivals.rarer_count < FEWEST:
        return None
    time_s, size = arrivals.time_s, arrivals.size
    dropped = np.flatnonzero(~arrivals.passed)
    gone = np.cumsum(arrivals.passed_size)
    least = 0.0
    apart = 1
    while apart < len(dropped):
        first, last = dropped[:-apart], dropped[apart:]
        seconds = time_s[last] - time_s[first]
        bytes_ = gone[last] - gone[first] - buckets * size[first]
        known = seconds > 0
        if known.any():
            least = max(least, float((8 * bytes_[known] / seconds[known]).max()))
        apart *= 2
    return least if 0 < least < np.inf else None


def best_burst(needed: Array, passed: Mask) -> Fit:
    """Return the burst with the fewest wrong decisions; `needed` is the number of bytes that each packet
    needs to pass.
    """
    yes, no = np.sort(needed[passed]), np.sort(needed[~passed])
    # With the burst that the k-th passed packet needs, the later passed packets would be dropped.
    wrong = len(yes) - 1 - np.arange(len(yes)) + np.searchsorted(no, yes, side="right")
    # The greatest of equally good bursts, after which the interval ends.
    least = int(wrong.min())
    at = len(yes) - 1 - int(wrong[::-1].argmin())
    low = float(yes[at])
    above = int(np.searchsorted(no, low, side="right"))
    high = float(no[above]) if above < len(no) else low
    if at + 1 < len(yes):
        high = min(high, float(yes[at + 1]))
    return Fit(least, low, high)


def last_good_edge(good: Callable[[float], bool], best: float, factor: float, most: int = _FARTHEST) -> float:
    """Return the first rate that is not good, in at most `most` steps of a factor from the best rate."""
    steps = 0
    while steps < most and good(best * factor ** (steps + 1)):
        steps += 1
    inside, outside = float(steps), float(steps + 1)
    for _ in range(40):
        middle = (inside + outside) / 2
        if good(best * factor**middle):
            inside = middle
        else:
            outside = middle
    found: float = best * factor**outside
    return found
