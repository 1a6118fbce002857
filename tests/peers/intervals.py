"""Confidence intervals of the differences from a peer. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, variance

from scipy import stats

MIN_LISTED_DIFFERENCE = 0.01
"""Relative difference from a peer from which on it is a finding."""


@dataclass(frozen=True)
class Interval:
    """Difference of means, ours minus the peer's, with its 95 % confidence interval."""

    ours: float
    theirs: float
    half_width: float

    @property
    def difference(self) -> float:
        return self.ours - self.theirs

    @property
    def relative_difference(self) -> float:
        return self.difference / self.theirs

    @property
    def relative_half_width(self) -> float:
        return self.half_width / self.theirs

    @property
    def contains_zero(self) -> bool:
        return abs(self.difference) <= self.half_width

    @property
    def excess(self) -> float:
        """Return the part of the difference outside the interval."""
        return max(0.0, abs(self.difference) - self.half_width)

    @property
    def is_finding(self) -> bool:
        """True if the difference is at least `MIN_LISTED_DIFFERENCE`, and zero outside its interval."""
        return not self.contains_zero and abs(self.difference) >= MIN_LISTED_DIFFERENCE * self.theirs


def paired_differences(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """Return the mean difference of pairs with its interval (Student)."""
    differences = [mine - other for mine, other in zip(ours, theirs, strict=True)]
    error = sqrt(variance(differences) / len(differences))
    return Interval(fmean(ours), fmean(theirs), float(stats.t.ppf(0.975, len(differences) - 1)) * error)


def confidence_interval(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """Return the difference of two means with its interval (Welch)."""
    shares = [variance(each) / len(each) for each in (ours, theirs)]
    error = sqrt(sum(shares))
    if error == 0:
        return Interval(fmean(ours), fmean(theirs), 0.0)
    degrees = sum(shares) ** 2 / sum(share**2 / (len(ours) - 1) for share in shares)
    return Interval(fmean(ours), fmean(theirs), float(stats.t.ppf(0.975, degrees)) * error)
