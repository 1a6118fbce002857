"""Equivalence test of two labs within a margin, and the source of the margin. Pure.

Two one-sided tests (D. J. Schuirmann, "A comparison of the two one-sided tests procedure and the power approach for
assessing the equivalence of average bioavailability", Journal of Pharmacokinetics and Biopharmaceutics 15, 1987), here
of ranks (U. Meier, "Nonparametric equivalence testing with respect to the median difference", Pharmaceutical Statistics
9, 2010): repetitions are few and not normally distributed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qoslab.model.expectations import Expectation
from qoslab.model.metrics import Reference, Unit
from qoslab.model.run_values import NEGLIGIBLE

SIGNIFICANCE = 0.05
"""Significance of each of the two tests: labs that differ by exactly the margin are called equivalent in one case of
twenty.
"""
WIDEST = 0.2
"""Maximum margin from a window without a prediction, as a share of the value: such a window reflects random variation
and not the difference between labs. The share is that of bioequivalence trials (80 to 125 %).
"""
EXACT_MOST = 10_000
"""Number of pairs of values up to which the distribution of ranks is computed exactly; for more, the normal
approximation is as good.
"""

SAME = "the same"
"""All repetitions of both labs have the same value, so no test is needed."""
EQUIVALENT = "equivalent"
"""The test refutes a difference greater than the margin."""
OPEN = "open"
"""Open result: the test refutes neither a difference above the margin nor one below it."""
DIFFERENT = "different"
"""The labs differ by more than the margin."""
NEAR = "near"
"""Too few repetitions for a test; the values differ by no more than the margin."""
APART = "apart"
"""Too few repetitions for a test; the values differ by more than the margin."""
CONTRARY = (DIFFERENT, APART)


@dataclass(frozen=True, slots=True)
class Margin:
    """Allowed difference of two labs in a value."""

    value: float
    """Margin in the metric's unit; 0 for values that are equal in every lab."""
    basis: str
    """Source of the margin, as text."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of two labs in a value."""

    word: str
    """`SAME`, `EQUIVALENT`, `OPEN`, `DIFFERENT`, `NEAR` or `APART`."""
    difference: float
    """Value of the second lab minus that of the first."""
    p_value: float
    """Greater p-value of the two one-sided tests that the labs differ by the margin or more; nan without a test."""
    untested: str = ""
    """Reason for the absence of a test."""

    @property
    def is_contradiction(self) -> bool:
        """True if the labs contradict each other."""
        return self.word in CONTRARY


def expectation_margin(expectation: Expectation | None, metric: str, unit: Unit, value: float) -> Margin:
    """Return the margin of a value from its expectation; `value` is the greater of the two values.

    With a prediction, the margin is its distance to the nearer end of its window; for a window without a prediction
    half of its width, at most `WIDEST`; otherwise the difference that is negligible between runs. It is at least the
    counting unit of the value.
    """
    found = _window(expectation, value)
    step = _step(metric, unit)
    if found.value < step.value and not (expectation is not None and expectation.equals is not None):
        return step
    return found


def _window(expectation: Expectation | None, value: float) -> Margin:
    if expectation is not None:
        least, greatest = expectation.bounds
        predicted = expectation.prediction
        if expectation.equals is not None:
            return Margin(0.0, "no random variation")
        if predicted is not None:
            ends = [abs(end - predicted) for end in (least, greatest) if end is not None]
            if ends:
                return Margin(min(ends), "window around the prediction")
        if least is not None and greatest is not None:
            half, widest = Margin((greatest - least) / 2, "half the window"), _share(WIDEST, value)
            return half if half.value <= widest.value else widest
    return _share(NEGLIGIBLE, value)


def _share(part: float, value: float) -> Margin:
    return Margin(part * abs(value), f"{part * 100:g} % of the larger value")


def _step(metric: str, unit: Unit) -> Margin:
    """Return the counting unit of a value."""
    name = Reference.parse(metric).metric.name
    if unit == "packets":
        return Margin(1.0, "one packet")
    if unit == "count":
        return Margin(1.0, "one")
    if unit == "ms" and name.startswith(("rtt.", "jitter.")):
        return Margin(1.0, "timestamps in whole ms")
    return Margin(0.0, "")


def minimum_p_value(first: int, second: int) -> float:
    """Return the least possible p-value of a rank test of this many values, if all of one lab are above all of the
    other.
    """
    return 1 / math.comb(first + second, first)


def agreement(first: Sequence[float], second: Sequence[float], difference: float, margin: float) -> Agreement:
    """Compare the repetitions of a value in two labs, at least one each; `difference` is the difference of their
    values.
    """
    if len({*first, *second}) == 1:
        return Agreement(SAME, difference, math.nan)
    near = abs(difference) <= margin
    if not all(map(math.isfinite, (*first, *second))):
        return Agreement(APART, difference, math.nan, "a value is not finite")
    if margin == 0:
        return Agreement(DIFFERENT, difference, math.nan, "no random variation")
    if minimum_p_value(len(first), len(second)) > SIGNIFICANCE:
        counted = f"{len(first)} and {len(second)} repetitions"
        return Agreement(NEAR if near else APART, difference, math.nan, f"{counted} are too few for a test")
    a, b = np.asarray(first), np.asarray(second)
    p_value = max(_p_value(b + margin, a, "greater"), _p_value(b - margin, a, "less"))
    if p_value <= SIGNIFICANCE:
        return Agreement(EQUIVALENT, difference, p_value)
    beyond = min(_p_value(b - margin, a, "greater"), _p_value(b + margin, a, "less"))
    return Agreement(DIFFERENT if beyond <= SIGNIFICANCE and not near else OPEN, difference, p_value)


def _p_value(above: np.ndarray, below: np.ndarray, alternative: str) -> float:
    from scipy import stats  # takes long to import, and runs without repetitions do not need it

    method = "exact" if len(above) * len(below) <= EXACT_MOST else "asymptotic"
    return float(stats.mannwhitneyu(above, below, alternative=alternative, method=method).pvalue)


def relative_difference(first: float, second: float) -> float:
    """Return the difference as a share of the greater value, 0 to 1 for values of the same sign; nan if one is not
    finite.
    """
    return 0.0 if first == second else abs(second - first) / max(abs(first), abs(second))
