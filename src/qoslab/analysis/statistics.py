"""Statistics over repetitions and over time: medians with intervals, effect sizes, warm-up, number of repetitions.
Pure.

There are few repetitions. A bootstrap of few values does not reach its confidence level (the interval of three
repetitions is at most their range, which contains the median in 75 of 100 cases), so intervals are Student's t
intervals: they assume normally distributed repetitions, and are wide for only two or three.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from qoslab.analysis.kpss import level_probability

CONFIDENCE = 0.95
"""Default confidence level of intervals."""

STATIONARY_P = 0.1
"""Significance level of the KPSS test for a steady series: the highest level in its table, since a remaining ramp does
more harm than the loss of a few good samples.
"""

OUTLIER_DEVIATIONS = 3.0
"""Limit of Hampel's identifier: distance of an outlier in standard deviations, computed from the median absolute
deviation.
"""

POWER = 0.8
"""Probability of detecting a difference with the advised number of repetitions; Cohen's convention."""

LEAST_STEADY = 8
"""Minimum number of samples for a warm-up test of a series; with fewer, the test would hardly ever reject."""

Values = Sequence[float] | np.ndarray
Groups = Sequence[Values]
"""Repetitions of each cell."""


Over = Literal["", "repetitions", "cells"]
Centre = Literal["mean", "median"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval. `low` and `high` are nan for a single value, which has no known spread."""

    value: float
    low: float
    high: float
    n: int
    """Number of measurements behind it."""
    over: Over = ""
    """Source of variation in the interval: repetitions, or the choice of cells if no cell was repeated."""
    confidence: float = CONFIDENCE

    @property
    def half_width(self) -> float:
        """Half of the interval's width, relative to the value; nan without an interval, inf for a value of 0."""
        if math.isnan(self.low):
            return math.nan
        half = (self.high - self.low) / 2
        if self.value == 0:
            return math.inf if half else 0.0
        return half / abs(self.value)


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference of arm A from arm B."""

    median: float
    """Median of A minus that of B."""
    low: float
    high: float
    """Upper end of the interval of the difference; nan if an arm has fewer than two values."""
    cliff_delta: float
    """Cliff's delta: -1 (every value of A below every value of B) to 1 (all above); 0 if neither is larger."""
    p_value: float
    """P value of the Mann-Whitney test that neither tends to be larger; nan if an arm has fewer than two values."""


def effect_size(cliff_delta: float) -> str:
    """Return the size of an effect as a word, with the bounds of Romano et al. (2006): 0.147, 0.33, 0.474."""
    if math.isnan(cliff_delta):
        return "unknown"
    words = ("negligible", "small", "medium", "large")
    return words[sum(abs(cliff_delta) >= bound for bound in (0.147, 0.33, 0.474))]


@dataclass(frozen=True, slots=True)
class WarmUp:
    """Number of samples at the start of a series that belong to its warm-up."""

    samples: int
    steady: bool
    """False if not even the second half is steady: then only samples known to belong to the warm-up are trimmed, and
    the value is doubtful.
    """
    p_value: float
    """P-value of the KPSS test on the rest, limited to 0.01 to 0.1; nan if the series is too short to test."""


def estimate(values: Values, *, confidence: float = CONFIDENCE) -> Estimate:
    """Return the median of repetitions with its interval.

    Infinite values, such as the spread of flows if one received nothing, have no interval. Raise `ValueError` for no
    values, or for nan.
    """
    return average([values], confidence=confidence)


def average(groups: Groups, *, statistic: Centre = "mean", confidence: float = CONFIDENCE) -> Estimate:
    """Return the mean over groups of the median of each, with its interval; or the median over groups, for `statistic`.

    A group holds the repetitions of one cell: the interval is about the variation between them. If no group has more
    than one value, it is about the groups, as a sample of possible cells. A group with a single value is assumed to
    have the average variance of the groups with several. Raise `ValueError` as `estimate` does.
    """
    arm = _numbers(groups)
    n = sum(map(len, arm))
    value = float(_centre([float(np.median(group)) for group in arm], statistic))
    if not _require_finite_groups(arm):
        return Estimate(value, math.nan, math.nan, n, confidence=confidence)
    known, over = _uncertain(arm, statistic)
    half = known.half_width(confidence)
    return Estimate(value, value - half, value + half, n, over, confidence)


def ratio(above: Groups, below: Groups, *, confidence: float = CONFIDENCE) -> Estimate:
    """Return `average` of one arm over that of another, with its interval; nan for a division by 0.

    The interval is that of E. C. Fieller, "Some problems in interval estimation", Journal of the Royal Statistical
    Society B 16, 1954; there is none if the denominator may be 0. Groups without repetitions are paired across arms of
    equal size: the interval is that of a ratio of means of a sample of pairs (W. G. Cochran, "Sampling Techniques",
    1977, 6.3). Raise `ValueError` as `estimate` does.
    """
    arms = _numbers(above), _numbers(below)
    n = sum(len(group) for arm in arms for group in arm)
    a, b = (float(np.mean([np.median(group) for group in arm])) for arm in arms)
    value = math.nan if b == 0 else a / b
    if math.isnan(value) or not all(map(_require_finite_groups, arms)):
        return Estimate(value, math.nan, math.nan, n, confidence=confidence)
    repeated = any(len(group) > 1 for arm in arms for group in arm)
    if not repeated and len(arms[0]) == len(arms[1]) > 1:
        left = np.concatenate(arms[0]) - value * np.concatenate(arms[1])
        half = _mean_uncertainty(left).half_width(confidence) / abs(b)
        return Estimate(value, value - half, value + half, n, "cells", confidence)
    (upper, over), (lower, other) = (_arm_uncertainty(arm, repeated=repeated) for arm in arms)
    free = _Uncertain.sum([upper, lower.times(value**2)]).free
    low, high = _fieller(a, b, upper.variance, lower.variance, lambda: _student_t_quantile(free, confidence))
    return Estimate(value, low, high, n, "" if math.isnan(low) else over or other, confidence)


def difference(above: Values, below: Values, *, confidence: float = CONFIDENCE) -> Difference:
    """Return the difference of two arms' medians, with its interval, Cliff's delta and the Mann-Whitney test.

    The interval is that of B. L. Welch, "The generalization of Student's problem when several different population
    variances are involved", Biometrika 34, 1947. N. Cliff, "Dominance statistics", Psychological Bulletin 114, 1993:
    delta = 2U/(nm) - 1. Raise `ValueError` as `estimate` does.
    """
    a, b = _require_finite(above), _require_finite(below)
    median = float(np.median(a) - np.median(b))
    if len(a) < 2 or len(b) < 2:
        return Difference(median, math.nan, math.nan, _delta(a, b), math.nan)
    half = _Uncertain.sum([_median_uncertainty(a), _median_uncertainty(b)]).half_width(confidence)
    return Difference(median, median - half, median + half, _delta(a, b), float(_scipy().mannwhitneyu(a, b).pvalue))


def warm_up(series: Values, known: int = 0) -> WarmUp:
    """Return the shortest warm-up of a series after which the rest is steady by the KPSS test and begins with no
    outlier.

    D. Kwiatkowski et al., "Testing the null hypothesis of stationarity against the alternative of a unit root", Journal
    of Econometrics 54, 1992: the test detects a ramp. It does not detect a single burst at the start, such as that of a
    full token bucket, which Hampel's identifier finds unless the samples scatter as much. At most half of the series is
    trimmed, including the `known` samples, which always belong to the warm-up. In a series of fewer than `LEAST_STEADY`
    samples, only those are trimmed.
    """
    data = _require_finite(series)
    least = min(known, len(data) // 2)
    if len(data) < LEAST_STEADY:
        return WarmUp(least, steady=True, p_value=math.nan)
    for start in range(least, len(data) // 2 + 1):
        rest = data[start:]
        p_value = level_probability(rest)
        if p_value >= STATIONARY_P and not is_outlier(rest[0], rest[1:]):
            return WarmUp(start, steady=True, p_value=p_value)
    return WarmUp(least, steady=False, p_value=level_probability(data[least:]))


def is_outlier(value: float, others: np.ndarray) -> bool:
    """Return whether a value is an outlier among others, by Hampel's identifier."""
    median = float(np.median(others))
    deviation = float(np.median(np.abs(others - median))) / _NORMAL_QUARTILE
    return abs(value - median) > OUTLIER_DEVIATIONS * deviation


_NORMAL_QUARTILE = NormalDist().inv_cdf(0.75)
"""Median absolute deviation of a normal distribution, in standard deviations."""


def required_repetitions(pilot: Values, least_difference: float) -> int:
    """Return the number of repetitions of each of two arms that would show a difference between them.

    `pilot` are repetitions of one arm (at least two) and `least_difference` is the relevant difference, in the same
    unit. The number is that of a two-sided t test with the pilot's standard deviation at `CONFIDENCE` and `POWER`, at
    least 2; it assumes normally distributed values, so treat it as advice. Raise `ValueError` for a difference that is
    not above zero.
    """
    data = _require_finite(pilot)
    if len(data) < 2:
        raise ValueError("one repetition does not show the spread between repetitions: run at least two first")
    if not least_difference > 0:
        raise ValueError(f"found a difference of {least_difference:g}, expected one above 0")
    deviation = float(np.std(data, ddof=1))
    if deviation == 0:
        return 2
    from statsmodels.stats.power import TTestIndPower

    effect, test = least_difference / deviation, TTestIndPower()
    # Its own solver fails if two repetitions are more than enough. A power of almost 1 is returned as nan: sufficient.
    return _NUMBERS.start + bisect_left(_NUMBERS, POWER, key=lambda each: test.power(effect, each, 1 - CONFIDENCE))


_NUMBERS = range(2, 2**60)
"""Candidates for the number of repetitions; the smallest sufficient one is selected."""


def _require_finite(values: Values) -> np.ndarray:
    data = np.asarray(values, dtype=float)
    if data.ndim != 1:
        raise ValueError(f"found values of {data.ndim} dimensions; a statistic needs one dimension")
    if len(data) == 0:
        raise ValueError("found no values; a statistic needs at least one")
    if not np.isfinite(data).all():
        raise ValueError("a value is not a finite number: leave out values that were not measured")
    return data


def _numbers(groups: Groups) -> list[np.ndarray]:
    found = [np.asarray(group, dtype=float) for group in groups]
    if not found or any(len(group) == 0 for group in found):
        raise ValueError("found no values; a statistic needs at least one")
    if any(np.isnan(group).any() for group in found):
        raise ValueError("a value is not a number: leave out values that were not measured")
    return found


def _require_finite_groups(groups: Sequence[np.ndarray]) -> bool:
    return all(np.isfinite(group).all() for group in groups)


def _centre(values: Values, statistic: Centre) -> float:
    return float(np.mean(values) if statistic == "mean" else np.median(values))


@dataclass(frozen=True, slots=True)
class _Uncertain:
    """Uncertainty of a value."""

    variance: float
    """Variance of the value; nan if unknown."""
    free: float
    """Degrees of freedom of the variance."""

    def half_width(self, confidence: float) -> float:
        """Return half of the width of the value's interval."""
        return (
            _student_t_quantile(self.free, confidence) * math.sqrt(self.variance)
            if self.variance > 0
            else self.variance
        )

    def times(self, factor: float) -> _Uncertain:
        """Return the uncertainty with its variance multiplied by `factor`."""
        return _Uncertain(self.variance * factor, self.free)

    @classmethod
    def sum(cls, parts: Sequence[_Uncertain]) -> _Uncertain:
        """Return the uncertainty of a sum of independent values, with the degrees of freedom of Welch and
        Satterthwaite.
        """
        variance = sum(each.variance for each in parts)
        if not variance > 0:
            return cls(variance, sum(each.free for each in parts))
        return cls(variance, 1 / sum((each.variance / variance) ** 2 / each.free for each in parts if each.free))


_UNKNOWN = _Uncertain(math.nan, 1)


def _student_t_quantile(free: float, confidence: float) -> float:
    """Return the two-sided quantile of Student's t."""
    from scipy import special  # scipy.stats calls the same function and takes four times as long to import

    return float(special.stdtrit(free, (1 + confidence) / 2))


def _median_uncertainty(values: np.ndarray) -> _Uncertain:
    """Return the uncertainty of the median of at least two normally distributed values.

    For many values its variance is pi/2n of theirs; the other terms fit exact variances up to n = 10 (B. C. Arnold, N.
    Balakrishnan, H. N. Nagaraja, "A First Course in Order Statistics", 1992, 4.9), to 1 %.
    """
    n = len(values)
    part = math.pi / 2 / (n + (0.47 if n % 2 else math.pi - 2))
    return _Uncertain(float(np.var(values, ddof=1)) * part, n - 1)


def _mean_uncertainty(values: np.ndarray) -> _Uncertain:
    """Return the uncertainty of the mean of at least two values."""
    return _Uncertain(float(np.var(values, ddof=1)) / len(values), len(values) - 1)


def _arm_uncertainty(
    arm: Sequence[np.ndarray], *, repeated: bool, statistic: Centre = "mean"
) -> tuple[_Uncertain, Over]:
    """Return the uncertainty of an arm's value and its source: repetitions, or the choice of groups if
    there are none.
    """
    if repeated:
        known = [_median_uncertainty(group) for group in arm if len(group) > 1]
        if not known:
            # The other arm was repeated, and this one has a single value.
            return _Uncertain(0.0, math.inf), ""
        mean = float(np.mean([float(np.var(group, ddof=1)) for group in arm if len(group) > 1]))
        free = sum(each.free for each in known)
        each = [_median_uncertainty(group) if len(group) > 1 else _Uncertain(mean, free) for group in arm]
        if statistic == "median":
            # Only of the groups in the middle, which determine the median.
            order = sorted(range(len(arm)), key=lambda place: float(np.median(arm[place])))
            each = [each[place] for place in order[(len(arm) - 1) // 2 : len(arm) // 2 + 1]]
        return _Uncertain.sum(each).times(1 / len(each) ** 2), "repetitions"
    if len(arm) < 2:
        return _UNKNOWN, ""
    values = np.concatenate(arm)
    if statistic == "median":
        return _median_uncertainty(values), "cells"
    return _mean_uncertainty(values), "cells"


def _uncertain(arm: Sequence[np.ndarray], statistic: Centre) -> tuple[_Uncertain, Over]:
    return _arm_uncertainty(arm, repeated=any(len(group) > 1 for group in arm), statistic=statistic)


def _fieller(a: float, b: float, upper: float, lower: float, quantile: Callable[[], float]) -> tuple[float, float]:
    """Return the interval of a/b; `upper` and `lower` are the variances of a and b, `quantile` is Student's t."""
    if upper == lower == 0:
        return a / b, a / b
    if math.isnan(upper) or math.isnan(lower):
        return math.nan, math.nan
    t = quantile()
    g = t**2 * lower / b**2
    if not g < 1:
        return math.nan, math.nan
    quotient = a / b
    half = t / abs(b) * math.sqrt(upper * (1 - g) + quotient**2 * lower)
    return (quotient - half) / (1 - g), (quotient + half) / (1 - g)


def _scipy() -> Any:
    """Return `scipy.stats`, imported on first use: the import takes long, and a run without repetitions does not need
    it.
    """
    from scipy import stats

    return stats


def _delta(above: np.ndarray, below: np.ndarray) -> float:
    u = float(_scipy().mannwhitneyu(above, below).statistic)
    return 2 * u / (len(above) * len(below)) - 1
