"""Test of Kwiatkowski, Phillips, Schmidt and Shin (KPSS) for a constant level of a series. Pure.

Journal of Econometrics 54, 1992, equations 10 and 11 and table 1. statsmodels has the test too, but its import takes
longer than all other analysis of a run (docs/decisions/start.md); a test checks that both give the same results.
"""

from __future__ import annotations

import math

import numpy as np

STATISTIC = (0.347, 0.463, 0.574, 0.739)
PROBABILITY = (0.10, 0.05, 0.025, 0.01)
"""Significance levels of the table: probabilities of a statistic at least as large for a constant level."""

MOST_LAGS_OF = 3
"""Divisor of the number of samples that gives the maximum number of lags: with as many lags as samples, the statistic
is 0.5 for any series, and rejects.
"""


def level_probability(data: np.ndarray) -> float:
    """Return the p-value of the KPSS test for a constant level, between 0.01 and 0.1, the limits of the table.

    Return 1 for samples that are all equal.

    Raise `ValueError` for a series without samples.
    """
    if np.ptp(data) == 0:
        return 1.0
    n = len(data)
    residuals = data - data.mean()
    statistic = np.sum(np.cumsum(residuals) ** 2) / n**2 / _long_run_variance(residuals, _lags(residuals))
    return float(np.interp(statistic, STATISTIC, PROBABILITY))


def _long_run_variance(residuals: np.ndarray, lags: int) -> float:
    """Return the long-run variance with Bartlett's weights (Newey and West, 1987)."""
    total = float(np.sum(residuals**2))
    for lag in range(1, lags + 1):
        total += 2 * (1 - lag / (lags + 1)) * _product(residuals, lag)
    return total / len(residuals)


def _lags(residuals: np.ndarray) -> int:
    """Return the number of lags, selected from the series (Hobijn, Franses and Ooms, Statistica
    Neerlandica 58, 2004).
    """
    n = len(residuals)
    few = int(n ** (2 / 9))
    products = [2 * _product(residuals, lag) / n for lag in range(1, few + 1)]
    variance = float(np.sum(residuals**2)) / n + sum(products)
    if variance == 0:
        # The autocovariances of a very regular series add up to zero.
        return few
    weighted = sum(lag * product for lag, product in enumerate(products, 1))
    wanted = 1.1447 * ((weighted / variance) ** 2 * n) ** (1 / 3)
    if not math.isfinite(wanted):
        return few
    # For samples that compensate each other, the rule requests all lags.
    return int(wanted) if min(int(wanted), n - 1) * MOST_LAGS_OF < n else few


def _product(residuals: np.ndarray, lag: int) -> float:
    return float(np.dot(residuals[lag:], residuals[: len(residuals) - lag]))
