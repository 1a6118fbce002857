"""Equivalence of two labs, from their repetitions and a margin."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from qoslab.analysis.equivalence import (
    APART,
    DIFFERENT,
    EQUIVALENT,
    EXACT_MOST,
    NEAR,
    OPEN,
    SAME,
    agreement,
    expectation_margin,
    minimum_p_value,
    relative_difference,
)
from qoslab.model.expectations import Expectation


@pytest.mark.parametrize(
    ("first", "second", "margin", "word"),
    [
        ([5.0], [5.0], 0.0, SAME),
        ([5.0, 5.0], [5.0], 1.0, SAME),
        ([5.0], [6.0], 0.0, DIFFERENT),
        ([5.0], [5.5], 1.0, NEAR),
        ([5.0], [6.5], 1.0, APART),
        ([5.0, 5.1], [5.2, 5.0], 1.0, NEAR),
        ([5.0, 5.1, 5.2], [5.3, 5.0, 5.2], 1.0, EQUIVALENT),
        ([5.0, 5.1, 5.2], [7.3, 7.0, 7.2], 1.0, DIFFERENT),
        ([5.0, 6.9, 5.2], [5.3, 5.0, 7.2], 1.0, OPEN),
        ([5.0, math.inf], [5.3, 5.0], 1.0, APART),
    ],
)
def test_two_labs_are_compared_by_equivalence(
    first: list[float], second: list[float], margin: float, word: str
) -> None:
    middle = sorted(second)[len(second) // 2] - sorted(first)[len(first) // 2]
    found = agreement(first, second, middle, margin)
    assert found.word == word
    assert found.difference == middle
    assert math.isnan(found.p_value) == (word in (SAME, NEAR, APART) or margin == 0)
    assert bool(found.untested) == (word in (NEAR, APART) or (margin == 0 and word == DIFFERENT))


def test_test_needs_three_repetitions_each_or_nineteen_and_one() -> None:
    assert minimum_p_value(3, 3) <= 0.05 < minimum_p_value(2, 4)
    assert minimum_p_value(1, 19) <= 0.05 < minimum_p_value(1, 18)


@pytest.mark.parametrize(
    ("bounds", "metric", "unit", "value", "margin", "basis"),
    [
        ({"predicted": "1 Mb/s", "within": "2 %"}, "goodput.sum", "b/s", 1e6, 2e4, "window around the prediction"),
        ({"predicted": 9, "between": [8, 12]}, "fairness.jain", "index", 9, 1, "window around the prediction"),
        ({"between": ["30 %", "34 %"]}, "police.exceed_share", "fraction", 0.32, 0.02, "half the window"),
        ({"between": ["2 %", "50 %"]}, "police.exceed_share", "fraction", 0.3, 0.06, "20 % of the larger value"),
        ({"at_least": "1 Mb/s"}, "goodput.sum", "b/s", 2e6, 1e5, "5 % of the larger value"),
        ({"equals": "31250 B"}, "police.bc", "B", 31250, 0, "no random variation"),
        ({"equals": 0}, "class.drops", "packets", 3, 0, "no random variation"),
        ({"at_most": 5}, "class.drops", "packets", 3, 1, "one packet"),
        # The resolution of a value is no finer than its allowed difference.
        ({"between": [0, 2]}, "class.drops", "packets", 5, 1, "half the window"),
        ({"between": [0, 0.2]}, "class.drops", "packets", 0.5, 1, "one packet"),
        ({"between": [0, 20]}, "class.drops", "packets", 50, 10, "half the window"),
        ({"at_most": 5}, "tcp.timeouts", "count", 3, 1, "one"),
        ({"at_most": "9 ms"}, "rtt.max", "ms", 8, 1, "timestamps in whole ms"),
        ({"at_most": "9 ms"}, "jitter.max", "ms", 8, 1, "timestamps in whole ms"),
        ({"at_most": "9 ms"}, "interface.delay.max", "ms", 8, 0.4, "5 % of the larger value"),
        (None, "goodput.sum", "b/s", 2e6, 1e5, "5 % of the larger value"),
    ],
)
def test_source_of_a_margin_is_reported(
    bounds: dict[str, Any] | None, metric: str, unit: Any, value: float, margin: float, basis: str
) -> None:
    expectation = None
    if bounds is not None:
        expectation = Expectation.model_validate_json(json.dumps({"arm": "a", "metric": metric, **bounds}))
    found = expectation_margin(expectation, metric, unit, value)
    assert (round(found.value, 9), found.basis) == (margin, basis)


def test_relative_difference_is_a_share_of_the_greater() -> None:
    assert (relative_difference(0, 0), relative_difference(0, 5), relative_difference(4, 5)) == (0, 1, 0.2)
    assert math.isnan(relative_difference(1, math.inf))


def test_reason_for_no_test_is_reported() -> None:
    assert agreement([5.0], [math.inf], math.inf, 1.0).untested == "a value is not finite"
    assert agreement([5.0], [6.0], 1.0, 0.0).untested == "no random variation"
    assert agreement([5.0, 5.2], [6.0], 0.9, 1.0).untested == "2 and 1 repetitions are too few for a test"


def test_labs_that_differ_by_exactly_the_margin_are_equivalent() -> None:
    assert agreement([5.0], [6.0], 1.0, 1.0).word == agreement([6.0], [5.0], -1.0, 1.0).word == NEAR


FIVE = [1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize("sign", [1, -1])
def test_lab_beyond_the_margin_differs(sign: int) -> None:
    def agreement_of(difference: float, margin: float, *second: float) -> str:
        return agreement([sign * each for each in FIVE], [sign * each for each in second], difference, margin).word

    assert agreement_of(sign * 10, 5, 11, 12, 13, 14, 15) == DIFFERENT
    # All results are beyond it, but the values are not, because these are not medians.
    assert agreement_of(sign * 5, 5, 11, 12, 13, 14, 15) == OPEN
    # The values are beyond it, but not enough of the results.
    assert agreement_of(sign * 6, 5, 3, 4, 8, 10, 12) == OPEN


def test_probability_equals_that_of_the_rank_test() -> None:
    from scipy.stats import mannwhitneyu

    # In one of 252 orders of five and five values, all of these are below all of those.
    shifted = [each + 0.1 for each in FIVE]
    assert agreement(FIVE, shifted, 0.1, 100.0).p_value == pytest.approx(1 / 252, rel=1e-12)
    # The greater of two p-values: that of the values near one end of the margin.
    for second in (shifted, [each + 3 for each in FIVE]):
        ends = [mannwhitneyu(np.array(second) + 4, FIVE, alternative="greater", method="exact").pvalue]
        ends += [mannwhitneyu(np.array(second) - 4, FIVE, alternative="less", method="exact").pvalue]
        assert agreement(FIVE, second, 0.1, 4.0).p_value == pytest.approx(max(ends), rel=1e-12)
    assert ends[1] > 0.05


@pytest.mark.parametrize(("more", "method"), [(0, "exact"), (1, "asymptotic")])
def test_ranks_of_large_samples_are_approximated(more: int, method: str) -> None:
    from scipy.stats import mannwhitneyu

    count = math.isqrt(EXACT_MOST)
    assert count * count == EXACT_MOST
    first, second = np.arange(count + more) * 1.0, np.arange(count) + 0.3
    found = agreement(list(first), list(second), 0.3, 12.0).p_value
    ends = [mannwhitneyu(second + 12, first, alternative="greater", method=method).pvalue]
    ends += [mannwhitneyu(second - 12, first, alternative="less", method=method).pvalue]
    assert found == pytest.approx(max(ends), rel=1e-9)
