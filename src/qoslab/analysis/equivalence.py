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
from qoslab.model.run_figures import NEGLIGIBLE

SIGNIFICANCE = 0.05
"""Significance of each of the two tests: labs that differ by the margin are called equivalent in one case of twenty."""
WIDEST = 0.2
"""A window without a prediction is of what chance may do, and says little of what two labs may differ by: no more than
this share of the figure, as in trials of bioequivalence (80 to 125 %)."""
EXACT_MOST = 10_000
"""Pairs of values up to which the distribution of ranks is counted; with more its limit is as good."""

SAME = "the same"
"""Every repetition of both labs has one and the same value: nothing is left to be tested."""
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
    """The second lab's figure less the first's."""
    p_value: float
    """The greater of the two one-sided tests that the labs differ by the margin or more; nan if none was made."""
    untested: str = ""
    """Reason for the absence of a test."""

    @property
    def contrary(self) -> bool:
        """True if the labs contradict each other."""
        return self.word in CONTRARY


def margin_of(expectation: Expectation | None, metric: str, unit: Unit, figure: float) -> Margin:
    """Return the margin of a value, from its expectation; `figure` is the greater of the two values.

    From a prediction to the nearer end of its window; half of a window without a prediction, at most `WIDEST`; else
    what counts as negligible between runs. No less than what the figure is counted in.
    """
    found = _window(expectation, figure)
    step = _step(metric, unit)
    if found.value < step.value and not (expectation is not None and expectation.equals is not None):
        return step
    return found


def _window(expectation: Expectation | None, figure: float) -> Margin:
    if expectation is not None:
        least, greatest = expectation.bounds
        predicted = expectation.prediction
        if expectation.equals is not None:
            return Margin(0.0, "no chance in it")
        if predicted is not None:
            ends = [abs(end - predicted) for end in (least, greatest) if end is not None]
            if ends:
                return Margin(min(ends), "window around the prediction")
        if least is not None and greatest is not None:
            half, widest = Margin((greatest - least) / 2, "half of the window"), _share(WIDEST, figure)
            return half if half.value <= widest.value else widest
    return _share(NEGLIGIBLE, figure)


def _share(part: float, figure: float) -> Margin:
    return Margin(part * abs(figure), f"{part * 100:g} % of the greater")


def _step(metric: str, unit: Unit) -> Margin:
    """Return the counting unit of a value."""
    name = Reference.parse(metric).metric.name
    if unit == "packets":
        return Margin(1.0, "one packet")
    if unit == "count":
        return Margin(1.0, "one")
    if unit == "ms" and name.startswith(("rtt.", "jitter.")):
        return Margin(1.0, "stamps of whole ms")
    return Margin(0.0, "")


def least_p_value(first: int, second: int) -> float:
    """The least that a rank test of so many values can come to: that all of one lab are above all of the other."""
    return 1 / math.comb(first + second, first)


def agreement(first: Sequence[float], second: Sequence[float], difference: float, margin: float) -> Agreement:
    """Compare the repetitions of a value in two labs, at least one each; `difference` is that of their values."""
    if len({*first, *second}) == 1:
        return Agreement(SAME, difference, math.nan)
    near = abs(difference) <= margin
    if not all(map(math.isfinite, (*first, *second))):
        return Agreement(APART, difference, math.nan, "a value is not finite")
    if margin == 0:
        return Agreement(DIFFERENT, difference, math.nan, "no chance in it")
    if least_p_value(len(first), len(second)) > SIGNIFICANCE:
        counted = f"{len(first)} and {len(second)} repetitions"
        return Agreement(NEAR if near else APART, difference, math.nan, f"{counted} permit no test")
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
    """0 to 1 if both have one sign: the difference as a share of the greater; nan of what is not finite."""
    return 0.0 if first == second else abs(second - first) / max(abs(first), abs(second))
