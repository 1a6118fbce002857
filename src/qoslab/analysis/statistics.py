"""Statistics over repetitions and over time: medians with intervals, effect sizes, warm-up, repetitions. Pure.

Measurements of this kind are few, skewed and bounded (a goodput cannot pass its line), so nothing here assumes a normal
distribution except the advice on repetitions, which says so.
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from qoslab.analysis.kpss import level_probability

CONFIDENCE = 0.95
"""Of every interval, where nothing else is asked for."""

RESAMPLES = 4_999
"""Of a bootstrap: the interval's ends then move by about 1 % of its width from seed to seed."""

STATIONARY_P = 0.1
"""A series is taken for steady when the KPSS test does not reject a constant level at this probability: the strictest
that its table knows, as a ramp that is left in does more harm than a few good samples that are given up."""

OUTLIER_DEVIATIONS = 3.0
"""Hampel's identifier: how many standard deviations, reckoned from the median absolute deviation, an outlier is off."""

POWER = 0.8
"""With which a difference should be found by the advised number of repetitions; Cohen's convention."""

LEAST_STEADY = 8
"""A series with fewer samples than this is not tested for warm-up: the test would hardly ever reject."""

Values = Sequence[float] | np.ndarray
Groups = Sequence[Values]
"""The repetitions of each cell."""


Over = Literal["", "repetitions", "cells"]
Centre = Literal["mean", "median"]
_CENTRES: dict[Centre, Callable[..., np.ndarray]] = {"mean": np.mean, "median": np.median}


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its interval. `low` and `high` are nan where one value alone tells nothing of its spread."""

    value: float
    low: float
    high: float
    n: int
    """Measurements behind it."""
    over: Over = ""
    """What the interval covers: the chance between repetitions, or, where no cell was repeated, the choice of cells."""
    confidence: float = CONFIDENCE

    @property
    def half_width(self) -> float:
        """Half of the interval's width over the figure's size; nan without an interval, inf for a figure of 0."""
        if math.isnan(self.low):
            return math.nan
        half = (self.high - self.low) / 2
        if self.value == 0:
            return math.inf if half else 0.0
        return half / abs(self.value)


@dataclass(frozen=True, slots=True)
class Difference:
    """How much arm A differs from arm B."""

    median: float
    """Of A minus of B."""
    low: float
    high: float
    """Interval of that difference; nan where an arm has fewer than two values."""
    cliff_delta: float
    """-1 (every value of A below every one of B) to 1 (all above); 0 where neither is larger."""
    p_value: float
    """Of the Mann-Whitney test that neither tends to be larger; nan where an arm has fewer than two values."""


def effect_size(cliff_delta: float) -> str:
    """The size of an effect in a word, by the bounds of Romano et al. (2006): 0.147, 0.33, 0.474."""
    if math.isnan(cliff_delta):
        return "unknown"
    words = ("negligible", "small", "medium", "large")
    return words[sum(abs(cliff_delta) >= bound for bound in (0.147, 0.33, 0.474))]


@dataclass(frozen=True, slots=True)
class WarmUp:
    """How many samples at the start of a series belong to its warm-up."""

    samples: int
    steady: bool
    """False where not even the second half is steady: then no more is trimmed than what is known to belong to the
    warm-up, and the figure deserves doubt."""
    p_value: float
    """Of the KPSS test on what is left; nan where the series is too short to test. It is cut off at 0.01 and 0.1."""


def estimate(values: Values, *, confidence: float = CONFIDENCE, seed: int = 1) -> Estimate:
    """The median of repetitions with a bootstrap interval, the same for the same seed.

    Infinite values, such as the spread of flows of which one got nothing, have no interval. `ValueError` for no values,
    or for any that is no number.
    """
    return average([values], confidence=confidence, seed=seed)


def average(groups: Groups, *, statistic: Centre = "mean", confidence: float = CONFIDENCE, seed: int = 1) -> Estimate:
    """The mean over groups of the median of each, with a bootstrap interval (percentile method; B. Efron, 1979).

    Or the median over groups, as `statistic` says.

    A group holds the repetitions of one cell. They are resampled within the groups; where no group has more than one
    value, the groups themselves are, as a sample of what could have been chosen. `ValueError` as `estimate`.
    """
    return _estimate([_numbers(groups)], lambda means: means[0], confidence, seed, statistic)


def ratio(above: Groups, below: Groups, *, confidence: float = CONFIDENCE, seed: int = 1) -> Estimate:
    """`average` of one arm over that of another, with its interval; nan over 0, and no interval if a resample is.

    `ValueError` as `estimate`.
    """

    def quotient(means: Sequence[np.ndarray]) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            found = means[0] / means[1]
        return np.where(means[1] == 0, math.nan, found)

    return _estimate([_numbers(above), _numbers(below)], quotient, confidence, seed)


def difference(above: Values, below: Values, *, confidence: float = CONFIDENCE, seed: int = 1) -> Difference:
    """The difference of two arms' medians, with its interval, Cliff's delta and the Mann-Whitney test.

    N. Cliff, "Dominance statistics", Psychological Bulletin 114, 1993: delta = 2U/(nm) - 1. `ValueError` as `estimate`.
    """
    a, b = _finite(above), _finite(below)
    median = float(np.median(a) - np.median(b))
    if len(a) < 2 or len(b) < 2:
        return Difference(median, math.nan, math.nan, _delta(a, b), math.nan)
    low, high = _interval((a, b), _median_difference, confidence, seed)
    return Difference(median, low, high, _delta(a, b), float(_scipy().mannwhitneyu(a, b).pvalue))


def warm_up(series: Values, known: int = 0) -> WarmUp:
    """The shortest start of a series without which the rest is steady by the KPSS test and begins with no outlier.

    D. Kwiatkowski et al., "Testing the null hypothesis of stationarity against the alternative of a unit root", Journal
    of Econometrics 54, 1992: it finds a ramp. A single burst at the start, as of a full token bucket, leaves it
    content, and is found by Hampel's identifier unless the samples themselves scatter as much. At most half of the
    series is given up, the `known` samples that belong to the warm-up whatever they are among it. In a series of fewer
    than `LEAST_STEADY` samples no more than those are looked for.
    """
    data = _finite(series)
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
    """Whether a value is one among others, by Hampel's identifier."""
    median = float(np.median(others))
    deviation = float(np.median(np.abs(others - median))) / _NORMAL_QUARTILE
    return abs(value - median) > OUTLIER_DEVIATIONS * deviation


_NORMAL_QUARTILE = NormalDist().inv_cdf(0.75)
"""The median absolute deviation of a normal distribution, in standard deviations."""


def repetitions_for(pilot: Values, least_difference: float) -> int:
    """How many repetitions of each of two arms would show a difference between them.

    `pilot` are repetitions of one arm (at least two) and `least_difference` the difference that matters, in the same
    unit. The number is that of a two-sided t test with the pilot's standard deviation at `CONFIDENCE` and `POWER`, at
    least 2; it takes the values for normally distributed, so treat it as advice. `ValueError` for a difference that is
    not above zero.
    """
    data = _finite(pilot)
    if len(data) < 2:
        raise ValueError("one repetition says nothing of the spread between repetitions: run at least two first")
    if not least_difference > 0:
        raise ValueError(f"a difference of {least_difference:g} cannot be looked for: give one above 0")
    deviation = float(np.std(data, ddof=1))
    if deviation == 0:
        return 2
    from statsmodels.stats.power import TTestIndPower

    effect, test = least_difference / deviation, TTestIndPower()
    # Its own solver fails where two are more than enough. The power is nan where it is all but 1: no less than asked.
    return _NUMBERS.start + bisect_left(_NUMBERS, POWER, key=lambda each: test.power(effect, each, 1 - CONFIDENCE))


_NUMBERS = range(2, 2**60)
"""Of repetitions, among which the least that will do is looked for."""


def _finite(values: Values) -> np.ndarray:
    data = np.asarray(values, dtype=float)
    if data.ndim != 1:
        raise ValueError(f"values of {data.ndim} dimensions: a statistic needs a row of them")
    if len(data) == 0:
        raise ValueError("no values: a statistic needs at least one")
    if not np.isfinite(data).all():
        raise ValueError("a value is not a finite number: leave out what was not measured")
    return data


def _numbers(groups: Groups) -> list[np.ndarray]:
    found = [np.asarray(group, dtype=float) for group in groups]
    if not found or any(len(group) == 0 for group in found):
        raise ValueError("no values: a statistic needs at least one")
    if any(np.isnan(group).any() for group in found):
        raise ValueError("a value is not a number: leave out what was not measured")
    return found


def _estimate(
    arms: list[list[np.ndarray]],
    combine: Callable[[Sequence[np.ndarray]], np.ndarray],
    confidence: float,
    seed: int,
    statistic_of_groups: Centre = "mean",
) -> Estimate:
    """The mean (or median) of the groups' medians of each arm, combined."""
    centre = _CENTRES[statistic_of_groups]
    groups = [group for arm in arms for group in arm]
    value = float(combine([np.asarray(centre([np.median(group) for group in arm])) for arm in arms]))
    n = sum(len(group) for group in groups)
    if not all(np.isfinite(group).all() for group in groups):
        return Estimate(value, math.nan, math.nan, n, confidence=confidence)
    over: Over = ""
    low = high = math.nan
    repeated = tuple(group for group in groups if len(group) > 1)
    if repeated:
        over = "repetitions"

        def statistic(*samples: np.ndarray, axis: int = -1) -> np.ndarray:
            drawn = (np.median(sample, axis=axis) for sample in samples)
            medians = [[next(drawn) if len(group) > 1 else np.median(group) for group in arm] for arm in arms]
            return combine([np.asarray(centre(np.broadcast_arrays(*arm), axis=0)) for arm in medians])

        low, high = _interval(repeated, statistic, confidence, seed)
    elif all(len(arm) > 1 for arm in arms):
        over = "cells"
        samples = tuple(np.concatenate(arm) for arm in arms)

        def over_cells(*samples: np.ndarray, axis: int = -1) -> np.ndarray:
            return combine([np.asarray(centre(sample, axis=axis)) for sample in samples])

        low, high = _interval(samples, over_cells, confidence, seed)
    return Estimate(value, low, high, n, over, confidence)


def _scipy() -> Any:
    """`scipy.stats`: it takes long to import, and a run without repetitions does not need it."""
    from scipy import stats

    return stats


def _median_difference(above: np.ndarray, below: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.asarray(np.median(above, axis=axis) - np.median(below, axis=axis))


def _interval(
    samples: tuple[np.ndarray, ...], statistic: Callable[..., np.ndarray], confidence: float, seed: int
) -> tuple[float, float]:
    # The corrected method (BCa) is undefined for medians of few or equal values; the percentile method is not, but for
    # a ratio of which a resample is over 0. There is no interval then, of which scipy would warn.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", _scipy().DegenerateDataWarning)
        found = _scipy().bootstrap(
            samples,
            statistic,
            n_resamples=RESAMPLES,
            confidence_level=confidence,
            method="percentile",
            rng=np.random.default_rng(seed),
        )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def _delta(above: np.ndarray, below: np.ndarray) -> float:
    u = float(_scipy().mannwhitneyu(above, below).statistic)
    return 2 * u / (len(above) * len(below)) - 1
