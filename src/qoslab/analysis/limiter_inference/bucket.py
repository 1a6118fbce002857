"""Single token bucket that explains which packets passed and which did not.

Tokens come at `rate` up to `burst`; a packet passes if there are as many as it has bytes, and takes them. The tokens
missing from the bucket, W, depend on the packets that passed and on the rate alone: W is the backlog of a queue that is
emptied at that rate. A packet passes exactly if W plus its size is no more than the burst. So a rate explains every
packet if all packets that passed need less than all that did not, and the difference between the two (`overlap`) is
piecewise linear in the rate: its minima are found by narrowing. The candidate is then replayed forward over the
arrivals, and the packets that it decides differently are its unexplained ones. The bucket is full when the capture
begins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

MOST_UNEXPLAINED = 0.05
"""Greatest share of unexplained packets, of the passed packets or of the others if these are fewer."""
FEWEST = 5
"""Packets of each kind, without which there is nothing to infer."""
LEAST_CERTAIN = 0.5
"""Share of the drops that must not depend on the last digit of time stamps."""
_OUTLIERS = 0.02
"""Share of either kind that a rate need not explain, where none explains all."""
_COARSE, _FINE, _ROUNDS, _VALLEYS = 120, 9, 14, 4
_FARTHEST = 40
"""Steps to the edge of the rates that explain packets: a bucket that is full again before each burst limits few."""
_AT_ONCE = 2_000_000
"""Packets times rates that are processed together, for the memory that they take."""


@dataclass(frozen=True)
class Interval:
    """A value, and the range of values that explain the packets as well."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Bucket:
    """A token bucket, in bytes as they were given."""

    rate_bps: Interval
    burst_bytes: Interval
    unexplained: int
    """Packets that it decides differently when it is replayed forward."""
    buckets: int = 1
    """Number of buckets that share the burst."""


@dataclass(frozen=True)
class Fit:
    """A burst that separates what packets needed."""

    wrong: int
    low: float
    """The least burst that is as good, and the first that is not."""
    high: float


@dataclass(frozen=True)
class Arrivals:
    """Packets in the order of their arrival, and which of them passed."""

    time_s: Array
    size: Array
    passed: Mask

    @property
    def fewer(self) -> int:
        """Packets of the rarer kind: passed or not."""
        return min(int(self.passed.sum()), int((~self.passed).sum()))

    @property
    def stamp_s(self) -> float:
        """Resolution of the time stamps."""
        return stamp_of(self.time_s)

    def slack(self, rate_bps: float) -> float:
        """Error of the tokens, in bytes, that time stamps of this resolution allow."""
        return rate_bps / 8 * self.stamp_s + 1e-6

    def overlaps(self, rates: Array, needed_more: float = 0.0, outliers: float = 0.0) -> Array:
        """Return, by rate, the bytes that passed packets needed more than the other packets.

        A packet that did not pass needs `needed_more` times its size beyond its own size. A share of `outliers` of
        either kind is left out.
        """
        found = np.empty(len(rates))
        passed_bytes = np.where(self.passed, self.size, 0.0)
        step = max(1, _AT_ONCE // len(self.size))
        for first in range(0, len(rates), step):
            part = slice(first, first + step)
            absent = missing_at(self.time_s, passed_bytes, rates[part])
            yes = absent[:, self.passed] + self.size[self.passed]
            no = absent[:, ~self.passed] + (1 + needed_more) * self.size[~self.passed]
            # A full bucket passes what it can hold, however little the rate has to explain then.
            fits = self.size[~self.passed] <= self.size[self.passed].max()
            no[(absent[:, ~self.passed] <= 1e-6) & fits] = 0.0
            if outliers:
                ranks = int(outliers * yes.shape[1]), int(outliers * no.shape[1])
                most = np.partition(yes, yes.shape[1] - 1 - ranks[0], axis=1)[:, yes.shape[1] - 1 - ranks[0]]
                found[part] = most - np.partition(no, ranks[1], axis=1)[:, ranks[1]]
            else:
                found[part] = yes.max(axis=1) - no.min(axis=1)
        return found

    def fit(self, rate: float) -> Fit:
        """The burst that does best with a rate."""
        absent = missing(self.time_s, np.where(self.passed, self.size, 0.0), rate)
        return best_burst(absent + self.size, self.passed)

    def explained(self, wrong: int, certain: int) -> bool:
        """Return whether wrong decisions are few enough, and certain drops numerous enough."""
        dropped = int((~self.passed).sum())
        return wrong <= MOST_UNEXPLAINED * self.fewer and certain >= max(FEWEST, LEAST_CERTAIN * dropped)

    def replay(self, rate: float, burst: float) -> tuple[int, int]:
        """Packets that a bucket decides differently, and drops that it decides for certain.

        The bucket follows the capture only if the tokens differ from the size by less than time stamps can show.
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


def stamp_of(time_s: Array) -> float:
    """The resolution of time stamps: 1 us if none is finer, else 1 ns."""
    return 1e-6 if not (np.rint(time_s * 1e9).astype(np.int64) % 1000).any() else 1e-9


def missing(time_s: Array, passed_bytes: Array, rate_bps: float) -> Array:
    """Bytes missing from a bucket when each packet comes; `passed_bytes` is 0 for a packet that did not pass."""
    found: Array = missing_at(time_s, passed_bytes, np.array([rate_bps]))[0]
    return found


def missing_at(time_s: Array, passed_bytes: Array, rates: Array) -> Array:
    """The same for several rates, of shape (rates, packets)."""
    gone = np.concatenate([[0.0], np.cumsum(passed_bytes)[:-1]])
    level = gone - rates[:, None] / 8 * time_s
    found: Array = level - np.minimum.accumulate(level, axis=1)
    return found


def infer_bucket(time_s: Array, size: Array, passed: Mask) -> Bucket | None:
    """The bucket for packets in the order of their arrival; None if none explains which of them passed."""
    arrivals = Arrivals(time_s - time_s[0], size, passed)
    least = least_rate(arrivals)
    if least is None:
        return None
    rates = least * (1 + np.concatenate([[-1e-3, 0.0], np.geomspace(1e-7, 3, _COARSE)]))
    exact = minima(arrivals.overlaps, rates)
    good = [rate for rate in exact if arrivals.overlaps(np.array([rate]))[0] <= arrivals.slack(rate)]
    if good:
        return _exact(arrivals, good)
    near = minima(lambda each: arrivals.overlaps(each, outliers=_OUTLIERS), rates)
    return _near(arrivals, min(exact + near, key=lambda rate: arrivals.fit(rate).wrong))


def _exact(arrivals: Arrivals, rates: list[float]) -> Bucket | None:
    """The bucket of rates that explain each packet, within the resolution of time stamps."""

    def explains(rate: float) -> bool:
        return bool(arrivals.overlaps(np.array([rate]))[0] <= arrivals.slack(rate))

    edges = [(edge(explains, rate, 1 / 1.5), edge(explains, rate, 1.5)) for rate in rates]
    low, high = min(each[0] for each in edges), max(each[1] for each in edges)
    middle = sum(edges[0]) / 2
    value = middle if high < 1.5 * low and explains(middle) else rates[0]
    bursts = [_needed(arrivals, rate) for rate in (*(each for pair in edges for each in pair), value)]
    burst = Interval(
        (bursts[-1][0] + bursts[-1][1]) / 2,
        min(min(each) for each in bursts) - arrivals.slack(value),
        max(max(each) for each in bursts) + arrivals.slack(value),
    )
    wrong, certain = arrivals.replay(value, burst.value)
    if not arrivals.explained(wrong, certain):
        return None
    return Bucket(Interval(value, low, high), burst, wrong)


def _needed(arrivals: Arrivals, rate: float) -> tuple[float, float]:
    """The most bytes that a packet needed that passed, and the fewest that one needed that did not."""
    absent = missing(arrivals.time_s, np.where(arrivals.passed, arrivals.size, 0.0), rate) + arrivals.size
    return float(absent[arrivals.passed].max()), float(absent[~arrivals.passed].min())


def _near(arrivals: Arrivals, best: float) -> Bucket | None:
    """The bucket of the best rate, which does not explain each packet."""
    found = arrivals.fit(best)
    wrong, certain = arrivals.replay(best, (found.low + found.high) / 2)
    if not arrivals.explained(wrong, certain):
        return None
    allowed = as_good(found.wrong)
    low, high = (edge(lambda rate: arrivals.fit(rate).wrong <= allowed, best, towards) for towards in (1 / 1.5, 1.5))
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


def as_good(wrong: int) -> int:
    """Packets that may be decided differently by a candidate that is no worse than the best, which does so `wrong`."""
    return wrong + int(2 * np.sqrt(wrong))


def least_rate(arrivals: Arrivals, *, buckets: int = 1) -> float | None:
    """The least rate possible: between two drops no more passed than the rate gives, and less than a packet a bucket.

    None if there is nothing to infer: too few packets of a kind, or no such rate.
    """
    if arrivals.fewer < FEWEST:
        return None
    time_s, size = arrivals.time_s, arrivals.size
    dropped = np.flatnonzero(~arrivals.passed)
    gone = np.cumsum(np.where(arrivals.passed, size, 0.0))
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
    """The burst with which most packets are decided as they were; `needed` is what each needs to pass."""
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


def edge(good: Callable[[float], bool], best: float, factor: float, most: int = _FARTHEST) -> float:
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
