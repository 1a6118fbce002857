"""Statistics over repetitions and over time."""

import math
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from analysis_tables import CREDIT
from hypothesis import assume, given
from hypothesis import strategies as st

from qoslab.analysis.kpss import MOST_LAGS_OF, level_probability
from qoslab.analysis.statistics import (
    LEAST_STEADY,
    OUTLIER_DEVIATIONS,
    Difference,
    Estimate,
    WarmUp,
    average,
    difference,
    effect_size,
    estimate,
    is_outlier,
    ratio,
    required_repetitions,
    warm_up,
)

SAMPLES = st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=12)
NAN = pytest.approx(math.nan, nan_ok=True)


@given(SAMPLES)
def test_interval_contains_the_median(values: list[float]) -> None:
    found = estimate(values)
    assert found.low <= found.value <= found.high
    assert found.n == len(values)


def test_one_value_has_no_interval() -> None:
    found = estimate([5.0], confidence=0.9)
    assert found == Estimate(5.0, NAN, NAN, 1, "", 0.9)
    assert math.isnan(found.half_width)


SAMPLED = 400
LEAST_COVERED = 0.92
"""Least coverage of nominal 95 %; fewer of 400 would occur by chance once in a hundred times."""


@pytest.mark.long
@pytest.mark.parametrize("count", [2, 3, 4, 6])
def test_intervals_have_nominal_coverage(count: int) -> None:
    generator = np.random.default_rng(3)
    hits = dict.fromkeys(("estimate", "skewed", "average", "cells", "ratio", "cells of both", "difference"), 0)
    for _ in range(SAMPLED):
        samples = [generator.normal(mean, 1.0, count) for mean in (10, 20, 30)]
        common = generator.normal(10, 1.0, count)
        pairs = [[each * 2 + noise] for each, noise in zip(common, generator.normal(0, 0.1, count), strict=True)]
        found: dict[str, tuple[Estimate | Difference, float]] = {
            "estimate": (estimate(samples[0]), 10),
            "skewed": (estimate(generator.lognormal(0.0, 0.5, count)), 1),
            "average": (average(samples), 20),
            "cells": (average([[each] for each in samples[0]]), 10),
            "ratio": (ratio([samples[1]], [samples[2]]), 2 / 3),
            "cells of both": (ratio(pairs, [[each] for each in common]), 2),
            "difference": (difference(samples[2], samples[0]), 20),
        }
        for name, (interval, truth) in found.items():
            hits[name] += math.isnan(interval.low) or interval.low <= truth <= interval.high
    assert {name: each / SAMPLED for name, each in hits.items() if each < LEAST_COVERED * SAMPLED} == {}


NONE = "found no values; a statistic needs at least one"
NOT_MEASURED = "a value is not a number: leave out values that were not measured"
NOT_FINITE = "a value is not a finite number: leave out values that were not measured"


def refused_values(call: Callable[..., object], *values: object) -> str:
    with pytest.raises(ValueError) as caught:
        call(*values)
    return str(caught.value)


def test_non_finite_values_are_refused() -> None:
    assert refused_values(estimate, []) == NONE
    assert refused_values(average, []) == NONE
    assert refused_values(average, [[1.0], []]) == NONE
    assert refused_values(estimate, [1.0, math.nan]) == NOT_MEASURED
    assert refused_values(ratio, [[1.0]], [[2.0], [math.nan]]) == NOT_MEASURED
    assert refused_values(difference, [], [1.0]) == refused_values(difference, [1.0], []) == NONE
    assert (
        refused_values(difference, [1.0, math.nan], [1.0])
        == refused_values(difference, [1.0], [math.inf])
        == NOT_FINITE
    )
    assert refused_values(warm_up, []) == NONE
    assert refused_values(warm_up, [-math.inf]) == NOT_FINITE
    rows = "found values of 2 dimensions; a statistic needs one dimension"
    assert refused_values(difference, [[1.0]], [1.0]) == refused_values(warm_up, [[]]) == rows


def test_integers_of_any_size_are_accepted() -> None:
    assert estimate([2**100, 3 * 2**100]).value == 2.0**101
    assert difference([3 * 2**100], [2**100]).median == 2.0**101


def test_infinite_values_have_a_median_without_an_interval() -> None:
    assert estimate([1.0, math.inf, math.inf], confidence=0.9) == Estimate(math.inf, NAN, NAN, 3, "", 0.9)


def test_half_width_is_relative_to_the_median() -> None:
    assert Estimate(100.0, 95.0, 105.0, 5).half_width == pytest.approx(0.05)
    assert Estimate(0.0, -1.0, 1.0, 5).half_width == math.inf
    assert Estimate(0.0, 0.0, 0.0, 5).half_width == 0.0


def test_arms_without_overlap_have_the_maximum_effect() -> None:
    found = difference([10.0, 11.0, 12.0, 13.0, 14.0], [1.0, 2.0, 3.0, 4.0, 5.0])
    assert found.median == 9.0
    assert found.cliff_delta == 1.0
    assert effect_size(found.cliff_delta) == "large"
    assert found.low > 0
    assert found.p_value < 0.05


def test_interval_of_a_difference_equals_welch() -> None:
    """Compare with Welch's interval from scipy: the median of two values is their mean."""
    from scipy import stats

    theirs = stats.ttest_ind([10.0, 20.0], [1.0, 3.0], equal_var=False).confidence_interval(0.95)
    expected = Difference(13.0, pytest.approx(theirs.low), pytest.approx(theirs.high), 1.0, pytest.approx(1 / 3))
    assert difference([10.0, 20.0], [1.0, 3.0]) == expected
    narrow = difference([10.0, 20.0], [1.0, 3.0], confidence=0.8)
    assert theirs.low < narrow.low < 13.0 < narrow.high < theirs.high


def test_one_value_in_an_arm_has_a_difference_without_an_interval() -> None:
    assert difference([4.0], [1.0, 2.0, 9.0]) == Difference(2.0, NAN, NAN, pytest.approx(1 / 3), NAN)
    assert difference([1.0, 2.0, 9.0], [4.0]) == Difference(-2.0, NAN, NAN, pytest.approx(-1 / 3), NAN)
    assert difference([4.0], [1.0]) == Difference(3.0, NAN, NAN, 1.0, NAN)


@pytest.mark.parametrize(
    ("delta", "size"),
    [
        (0.0, "negligible"),
        (0.1469, "negligible"),
        (0.147, "small"),
        (0.3299, "small"),
        (0.33, "medium"),
        (-0.33, "medium"),
        (0.4739, "medium"),
        (0.474, "large"),
        (-1.0, "large"),
        (math.nan, "unknown"),
    ],
)
def test_effect_size_follows_romano(delta: float, size: str) -> None:
    assert effect_size(delta) == size


@given(SAMPLES, SAMPLES)
def test_difference_changes_sign_with_the_order_of_arms(a: list[float], b: list[float]) -> None:
    there, back = difference(a, b).cliff_delta, difference(b, a).cliff_delta
    assert there == pytest.approx(-back)
    assert -1 <= there <= 1


def test_equal_arms_do_not_differ() -> None:
    found = difference([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert found.median == 0.0
    assert effect_size(found.cliff_delta) == "negligible"
    assert found.p_value == pytest.approx(1.0)


def test_ramp_before_a_steady_series_is_trimmed() -> None:
    noise = np.random.default_rng(5).normal(0, 0.02, size=40)
    series = np.concatenate([np.linspace(0.0, 0.9, 8), np.ones(32)]) + noise
    found = warm_up(series)
    assert found.steady
    assert 4 <= found.samples <= 10


def test_burst_before_a_steady_series_is_trimmed() -> None:
    # Mb/s, second by second: first the contents of a 1.5 s bucket, then the policer's rate.
    series = [2.27, 1.02, 0.88, 1.07, 0.94, 0.92, 1.03, 0.93, 1.01, 0.96, 0.95, 0.97, 0.96, 1.0, 0.96, 0.96, 0.92, 1.01]
    assert warm_up(series).samples == 1


@pytest.mark.parametrize("length", [8, 10, 15, 20])
def test_series_with_compensating_samples_is_steady(length: int) -> None:
    """Judge dependent samples: a packet late in one second arrives in the next, but the level is constant."""
    random = np.random.default_rng(7)
    series = [1.0 + np.diff(random.uniform(0, 0.1, length + 1)) for _ in range(40)]
    assert [each for each in map(warm_up, series) if not each.steady] == []


def test_credit_hidden_by_noise_follows_from_the_bucket() -> None:
    assert (warm_up(CREDIT).samples, warm_up(CREDIT, known=1).samples) == (0, 1)
    assert warm_up([*CREDIT[1:], *CREDIT[1:]], known=1).samples == 1
    # More than the known values is still found, and half of a short series remains.
    ramp = np.concatenate([np.linspace(0.0, 0.9, 8), np.ones(32)])
    assert warm_up(ramp, known=1).samples == warm_up(ramp).samples > 1
    assert [warm_up([3.0] * length, known=1).samples for length in (1, 2, LEAST_STEADY - 1)] == [0, 1, 1]
    assert warm_up(np.arange(60.0), known=1) == WarmUp(1, steady=False, p_value=pytest.approx(0.01))


@given(st.integers(0, 2**32), st.floats(0.1, 5.0))
def test_bucket_burst_is_excluded_from_steady_goodput(seed: int, credit: float) -> None:
    """Judge the burst of a bucket: a cumulated count gives the rate except for movements between seconds at its
    ends.
    """
    moved = np.diff(np.random.default_rng(seed).uniform(0, 0.1, 41))
    series = 1.0 + moved
    series[0] += credit
    start = warm_up(series, known=1).samples
    assert start >= 1
    assert abs(float(series[start:].mean()) - 1.0) <= 0.1 / (40 - start) + 1e-9


def test_steady_series_is_not_trimmed() -> None:
    found = warm_up(np.random.default_rng(9).normal(10, 0.1, size=60))
    assert found.samples == 0
    assert found.steady


def test_series_that_keeps_growing_is_not_called_steady() -> None:
    found = warm_up(np.arange(60.0))
    assert not found.steady
    assert found.samples == 0


def test_constant_series_is_steady() -> None:
    assert warm_up([3.0] * 20) == WarmUp(0, steady=True, p_value=1.0)


def test_series_too_short_to_test_is_unchanged() -> None:
    assert warm_up([9.0] + [1.0] * (LEAST_STEADY - 2)) == WarmUp(0, steady=True, p_value=NAN)
    assert warm_up([9.0] + [1.0] * (LEAST_STEADY - 1)) == WarmUp(1, steady=True, p_value=1.0)


def test_at_most_half_of_a_series_is_trimmed() -> None:
    assert warm_up([9.0, 8.0, 7.0, 6.0, 1.0, 1.0, 1.0, 1.0]) == WarmUp(4, steady=True, p_value=1.0)
    falling = [1e6, 1e5, 1e4, 1e3, 1e2, 10.0, 1.0, 1.0, 1.0, 1.0]
    assert warm_up(falling) == WarmUp(0, steady=False, p_value=level_probability(np.array(falling)))


def test_first_sample_is_compared_with_all_others() -> None:
    # 1 against 2, 2, 1, 1, 2, 1, 2: most are 2. Without the first 2 there would be as many 1s, and the values would
    # scatter.
    assert warm_up([1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 1.0, 2.0]) == WarmUp(1, steady=True, p_value=pytest.approx(0.1))


def test_advised_repetitions_grow_with_the_spread_and_shrink_with_the_difference() -> None:
    narrow, wide = [10.0, 10.1, 9.9], [10.0, 12.0, 8.0]
    assert required_repetitions(narrow, 1.0) < required_repetitions(wide, 1.0)
    assert required_repetitions(wide, 4.0) < required_repetitions(wide, 1.0)


@pytest.mark.parametrize(
    ("effect", "number"),
    [(0.5, 64), (0.8, 26), (1.0, 17), (5.65, 3), (5.66, 2), (6.0, 2), (8.0, 2), (20.0, 2), (1e6, 2)],
)
def test_advice_is_the_least_number_with_the_required_power(effect: float, number: int) -> None:
    """Compare with J.

    Cohen, "Statistical power analysis", 1988, table 2.4.1, for the first three differences in standard deviations; with
    two in each arm the power is 0.7996 for 5.65 and 0.8007 for 5.66, by the noncentral t distribution.
    """
    assert required_repetitions([-1.0, 0.0, 1.0], effect) == number


def test_advice_without_variance_is_two() -> None:
    assert required_repetitions([10.0, 10.0, 10.0], 1.0) == 2


def test_advice_needs_a_pilot_and_a_difference() -> None:
    few = "one repetition does not show the spread between repetitions: run at least two first"
    assert refused_values(required_repetitions, [1.0], 1.0) == few
    none = "found a difference of 0, expected one above 0"
    assert refused_values(required_repetitions, [1.0, 2.0], 0.0) == none


def student_t(degrees_of_freedom: float) -> float:
    """Return the quantile of 97.5 % by scipy."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, 0.975))


def test_average_is_the_mean_of_the_cells_medians() -> None:
    found = average([[1.0, 2.0, 30.0], [4.0, 4.0, 4.0]])
    assert found.value == 3.0
    assert (found.n, found.over) == (6, "repetitions")
    assert found.low < 3.0 < found.high


def test_unrepeated_cells_vary_like_a_sample() -> None:
    """Compute the interval like that of the mean of a sample, with Student's t."""
    found = average([[90.0], [92.0], [97.0], [85.0]])
    half = student_t(3) * float(np.std([90, 92, 97, 85], ddof=1)) / 2
    assert (found.value, found.over) == (91.0, "cells")
    assert (found.low, found.high) == (pytest.approx(91 - half), pytest.approx(91 + half))


def test_average_of_cells_may_be_their_median() -> None:
    found = average([[1.0], [2.0], [9.0]], statistic="median")
    assert (found.value, found.over, found.low < 2.0 < found.high) == (2.0, "cells", True)
    # The cell in the middle was not repeated: its variance is assumed to equal the other's.
    found = average([[1.0], [2.0], [8.0, 9.0]], statistic="median")
    half = student_t(1) * math.sqrt(0.5)
    assert (found.low, found.high, found.over) == (
        pytest.approx(2 - half),
        pytest.approx(2 + half),
        "repetitions",
    )


def test_single_cells_use_the_variance_of_repeated_ones() -> None:
    found = average([[10.0], [20.0, 22.0]])
    assert (found.value, found.over) == (15.5, "repetitions")
    # A variance of 2 of the single value and of 1 of the other's median, with 3²/(2² + 1²) degrees of freedom.
    half = student_t(9 / 5) * math.sqrt(3 / 4)
    assert (found.low, found.high) == (pytest.approx(15.5 - half), pytest.approx(15.5 + half))


def test_ratio_of_two_arms_has_an_interval() -> None:
    found = ratio([[10.0, 11.0, 12.0]], [[5.0, 5.0, 5.0]])
    assert found.value == pytest.approx(2.2)
    assert found.low < 2.2 < found.high
    assert ratio([[4.0]], [[2.0]]) == Estimate(2.0, NAN, NAN, 2)
    assert ratio([[4.0, 4.0]], [[2.0, 2.0]]) == Estimate(2.0, 2.0, 2.0, 4, "repetitions")
    assert ratio([[4.0], [8.0]], [[2.0], [4.0]]) == Estimate(2.0, pytest.approx(2.0), pytest.approx(2.0), 4, "cells")
    assert ratio([[4.0], [8.0]], [[2.0]]) == Estimate(3.0, NAN, NAN, 3)


def test_ratio_over_a_possible_zero_has_no_interval() -> None:
    assert ratio([[4.0, 4.0]], [[1.0, 3.0]]) == Estimate(2.0, NAN, NAN, 4)


@pytest.mark.filterwarnings("error")
def test_ratio_over_zero_is_missing_without_a_warning() -> None:
    for above in (1.0, 0.0):
        assert ratio([[above]], [[0.0]]) == Estimate(NAN, NAN, NAN, 2)
    assert ratio([[1.0, 2.0]], [[0.0]]) == Estimate(NAN, NAN, NAN, 3)
    assert ratio([[1.0, 2.0]], [[0.0, 4.0]]) == Estimate(0.75, NAN, NAN, 4)


def test_series_with_zero_sum_of_autocovariances_is_judged() -> None:
    """Judge a simulated flow's series, with segments of eight at a time: the rule for the number of lags divides by
    zero for it.
    """
    series = [11584.0 * segments for segments in (41, 42, 37, 47, 42, 35, 47, 42, 38, 44)]
    found = warm_up(series)
    assert found.samples == 0 and found.steady


SERIES = st.lists(st.floats(-1e6, 1e6), min_size=LEAST_STEADY, max_size=60)


@given(SERIES)
def test_probability_of_a_level_is_that_of_statsmodels(values: list[float]) -> None:
    from statsmodels.tsa.stattools import kpss

    data = np.array(values)
    assume(np.ptp(data) > 1e-3)
    few = int(len(data) ** (2 / 9))
    with warnings.catch_warnings():
        # Its table ends at 0.01 and 0.1, with a warning each time.
        warnings.simplefilter("ignore")
        try:
            theirs = kpss(data, regression="c", nlags="auto", result_object=True)
        except (OverflowError, ValueError):
            # Its rule divides by autocovariances that add up to zero.
            theirs = kpss(data, regression="c", nlags=few, result_object=True)
        if theirs.lags * MOST_LAGS_OF >= len(data):
            theirs = kpss(data, regression="c", nlags=few, result_object=True)
    assert level_probability(data) == pytest.approx(theirs.pvalue, rel=1e-6)


def test_series_that_never_changes_is_a_level() -> None:
    assert level_probability(np.full(12, 3.0)) == 1.0


@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=40))
def test_outlier_is_recognised_by_the_deviation_of_scipy(values: list[float]) -> None:
    from scipy import stats

    value, others = values[0], np.array(values[1:])
    limit = OUTLIER_DEVIATIONS * float(stats.median_abs_deviation(others, scale="normal"))
    off = abs(value - float(np.median(others)))
    assume(off != pytest.approx(limit, rel=1e-9))
    assert is_outlier(value, others) == (off > limit)
