"""Statistics over repetitions and over time."""

import math
import warnings
from itertools import pairwise

import numpy as np
import pytest
from analysis_tables import CREDIT
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.tsa.stattools import kpss

from qoslab.analysis.kpss import MOST_LAGS_OF, level_probability
from qoslab.analysis.statistics import (
    LEAST_STEADY,
    OUTLIER_DEVIATIONS,
    Estimate,
    WarmUp,
    average,
    difference,
    effect_size,
    estimate,
    is_outlier,
    ratio,
    repetitions_for,
    warm_up,
)

SAMPLES = st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=12)


@given(SAMPLES)
def test_interval_holds_the_median_and_stays_within_the_values(values: list[float]) -> None:
    found = estimate(values)
    rounding = 1e-12 * max(abs(value) for value in values)
    points = [min(values), found.low, found.value, found.high, max(values)]
    assert all(lower <= upper + rounding for lower, upper in pairwise(points))
    assert found.n == len(values)


def test_same_seed_gives_the_same_interval() -> None:
    values = [94.1, 95.0, 91.2, 96.6, 93.9]
    assert estimate(values, seed=7) == estimate(values, seed=7)


def test_one_value_has_no_interval() -> None:
    found = estimate([5.0])
    assert found.value == 5.0
    assert math.isnan(found.low) and math.isnan(found.high) and math.isnan(found.half_width)


def test_interval_covers_the_true_median_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(3)
    hits = 0
    for number in range(100):
        found = estimate(generator.exponential(1.0, size=25), seed=number)
        hits += found.low <= math.log(2) <= found.high
    assert hits >= 88  # of 95 expected; fewer would come by chance once in a thousand times


@pytest.mark.parametrize("values", [[], [1.0, math.nan]])
def test_values_that_are_none_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match=r"no values|not a number"):
        estimate(values)


def test_infinite_values_have_a_median_without_an_interval() -> None:
    found = estimate([1.0, math.inf, math.inf])
    assert found.value == math.inf
    assert math.isnan(found.low)


def test_half_width_is_relative_to_the_median() -> None:
    assert Estimate(100.0, 95.0, 105.0, 5).half_width == pytest.approx(0.05)
    assert Estimate(0.0, -1.0, 1.0, 5).half_width == math.inf
    assert Estimate(0.0, 0.0, 0.0, 5).half_width == 0.0


def test_arms_that_do_not_overlap_differ_wholly() -> None:
    found = difference([10.0, 11.0, 12.0, 13.0, 14.0], [1.0, 2.0, 3.0, 4.0, 5.0])
    assert found.median == 9.0
    assert found.cliff_delta == 1.0
    assert effect_size(found.cliff_delta) == "large"
    assert found.low > 0
    assert found.p_value < 0.05


@given(SAMPLES, SAMPLES)
def test_difference_turns_its_sign_with_the_arms(a: list[float], b: list[float]) -> None:
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
    # Mb/s, second by second: what a bucket of 1.5 s lets pass first, and then the policer's rate.
    series = [2.27, 1.02, 0.88, 1.07, 0.94, 0.92, 1.03, 0.93, 1.01, 0.96, 0.95, 0.97, 0.96, 1.0, 0.96, 0.96, 0.92, 1.01]
    assert warm_up(series).samples == 1


@pytest.mark.parametrize("length", [8, 10, 15, 20])
def test_samples_that_make_up_for_each_other_are_steady(length: int) -> None:
    """What is late in one second comes in the next: a level, though its samples are no independent ones."""
    random = np.random.default_rng(7)
    series = [1.0 + np.diff(random.uniform(0, 0.1, length + 1)) for _ in range(40)]
    assert [each for each in map(warm_up, series) if not each.steady] == []


def test_credit_is_not_told_from_the_scatter_but_may_be_known() -> None:
    assert (warm_up(CREDIT).samples, warm_up(CREDIT, known=1).samples) == (0, 1)
    assert warm_up([*CREDIT[1:], *CREDIT[1:]], known=1).samples == 1
    # More than what is known is still found, and of short series half is left.
    ramp = np.concatenate([np.linspace(0.0, 0.9, 8), np.ones(32)])
    assert warm_up(ramp, known=1).samples == warm_up(ramp).samples > 1
    assert [warm_up([3.0] * length, known=1).samples for length in (1, 2, LEAST_STEADY - 1)] == [0, 1, 1]
    assert warm_up(np.arange(60.0), known=1) == WarmUp(1, steady=False, p_value=pytest.approx(0.01))


@given(st.integers(0, 2**32), st.floats(0.1, 5.0))
def test_what_a_bucket_lets_through_at_once_is_no_steady_goodput(seed: int, credit: float) -> None:
    """Whatever moves from a second to the next, a cumulated count says the rate but for what moves at its ends."""
    moved = np.diff(np.random.default_rng(seed).uniform(0, 0.1, 41))
    series = 1.0 + moved
    series[0] += credit
    start = warm_up(series, known=1).samples
    assert start >= 1
    assert abs(float(series[start:].mean()) - 1.0) <= 0.1 / (40 - start) + 1e-9


def test_steady_series_loses_nothing() -> None:
    found = warm_up(np.random.default_rng(9).normal(10, 0.1, size=60))
    assert found.samples == 0
    assert found.steady


def test_series_that_keeps_growing_is_not_called_steady() -> None:
    found = warm_up(np.arange(60.0))
    assert not found.steady
    assert found.samples == 0


def test_series_of_one_value_is_steady() -> None:
    assert warm_up([3.0] * 20).samples == 0


def test_series_too_short_to_test_is_left_alone() -> None:
    found = warm_up(list(range(LEAST_STEADY - 1)))
    assert found.samples == 0
    assert math.isnan(found.p_value)


def test_advised_repetitions_grow_with_the_spread_and_shrink_with_the_difference() -> None:
    narrow, wide = [10.0, 10.1, 9.9], [10.0, 12.0, 8.0]
    assert repetitions_for(narrow, 1.0) < repetitions_for(wide, 1.0)
    assert repetitions_for(wide, 4.0) < repetitions_for(wide, 1.0)


@pytest.mark.parametrize(
    ("effect", "number"),
    [(0.5, 64), (0.8, 26), (1.0, 17), (5.65, 3), (5.66, 2), (6.0, 2), (8.0, 2), (20.0, 2), (1e6, 2)],
)
def test_advice_is_the_least_number_with_which_a_t_test_has_the_power(effect: float, number: int) -> None:
    """In standard deviations. J. Cohen, "Statistical power analysis", 1988, table 2.4.1 has the first three; with two
    in each arm the power is 0.7996 for 5.65 and 0.8007 for 5.66, by the noncentral t distribution."""
    assert repetitions_for([-1.0, 0.0, 1.0], effect) == number


def test_advice_where_nothing_varies_is_two() -> None:
    assert repetitions_for([10.0, 10.0, 10.0], 1.0) == 2


def test_advice_needs_a_pilot_and_a_difference() -> None:
    with pytest.raises(ValueError, match="at least two"):
        repetitions_for([1.0], 1.0)
    with pytest.raises(ValueError, match="above 0"):
        repetitions_for([1.0, 2.0], 0.0)


def test_average_is_the_mean_of_the_cells_medians() -> None:
    found = average([[1.0, 2.0, 30.0], [4.0, 4.0, 4.0]])
    assert found.value == 3.0
    assert (found.n, found.over) == (6, "repetitions")
    assert 2.5 <= found.low <= 3.0 <= found.high <= 17.0


def test_cells_that_were_not_repeated_vary_by_their_choice() -> None:
    found = average([[90.0], [92.0], [97.0], [85.0]])
    assert (found.value, found.over) == (91.0, "cells")
    assert 85.0 <= found.low < 91.0 < found.high <= 97.0


def test_single_cells_among_repeated_ones_stand_as_they_are() -> None:
    found = average([[10.0], [20.0, 22.0]])
    assert (found.value, found.over) == (15.5, "repetitions")
    assert (found.low, found.high) == (15.0, 16.0)


def test_ratio_of_two_arms() -> None:
    found = ratio([[10.0, 11.0, 12.0]], [[5.0, 5.0, 5.0]])
    assert found.value == pytest.approx(2.2)
    assert 2.0 <= found.low <= 2.2 <= found.high <= 2.4
    assert math.isnan(ratio([[1.0]], [[0.0]]).value)
    assert math.isnan(ratio([[4.0]], [[2.0]]).low)


def test_a_series_whose_autocovariances_add_up_to_nothing_is_judged_too() -> None:
    """A simulated flow's: segments of eight at a time, of which the rule for the number of lags divides by zero."""
    series = [11584.0 * segments for segments in (41, 42, 37, 47, 42, 35, 47, 42, 38, 44)]
    found = warm_up(series)
    assert found.samples == 0 and found.steady


SERIES = st.lists(st.floats(-1e6, 1e6), min_size=LEAST_STEADY, max_size=60)


@given(SERIES)
def test_the_probability_of_a_level_is_that_of_statsmodels(values: list[float]) -> None:
    data = np.array(values)
    assume(np.ptp(data) > 1e-3)
    few = int(len(data) ** (2 / 9))
    with warnings.catch_warnings():
        # Its table ends at 0.01 and 0.1, of which it warns each time.
        warnings.simplefilter("ignore")
        try:
            theirs = kpss(data, regression="c", nlags="auto", result_object=True)
        except (OverflowError, ValueError):
            # Its rule divides by autocovariances that add up to nothing.
            theirs = kpss(data, regression="c", nlags=few, result_object=True)
        if theirs.lags * MOST_LAGS_OF >= len(data):
            theirs = kpss(data, regression="c", nlags=few, result_object=True)
    assert level_probability(data) == pytest.approx(theirs.pvalue, rel=1e-6)


def test_a_series_that_never_changes_is_a_level() -> None:
    assert level_probability(np.full(12, 3.0)) == 1.0


@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=40))
def test_an_outlier_is_told_by_the_deviation_of_scipy(values: list[float]) -> None:
    value, others = values[0], np.array(values[1:])
    limit = OUTLIER_DEVIATIONS * float(stats.median_abs_deviation(others, scale="normal"))
    off = abs(value - float(np.median(others)))
    assume(off != pytest.approx(limit, rel=1e-9))
    assert is_outlier(value, others) == (off > limit)
