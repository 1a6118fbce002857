"""The test of Kwiatkowski, Phillips, Schmidt and Shin: whether a series keeps a level. Pure.

Journal of Econometrics 54, 1992, equations 10 and 11 and table 1. statsmodels has it too; importing that takes longer
than all other analysis of a run (docs/decisions/start.md), and a test holds that both say the same.
"""

from __future__ import annotations

import math

import numpy as np

STATISTIC = (0.347, 0.463, 0.574, 0.739)
PROBABILITY = (0.10, 0.05, 0.025, 0.01)
"""Probability of a statistic at least as large for a constant level; the table has no others."""

MOST_LAGS_OF = 3
"""The rule may choose fewer lags than a third of the samples: with all of them the statistic is 0.5, regardless of the
series, and rejects."""


def level_probability(data: np.ndarray) -> float:
    """Return the p-value of the KPSS test for a constant level, between 0.01 and 0.1, the limits of the table.

    1 for samples that are all equal.

    `ValueError` for a series without samples.
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
    """Return how many lags count, by the series itself (Hobijn, Franses and Ooms, Statistica Neerlandica 58, 2004)."""
    n = len(residuals)
    few = int(n ** (2 / 9))
    products = [2 * _product(residuals, lag) / n for lag in range(1, few + 1)]
    variance = float(np.sum(residuals**2)) / n + sum(products)
    if variance == 0:
        # A very regular series: its autocovariances add up to nothing.
        return few
    weighted = sum(lag * product for lag, product in enumerate(products, 1))
    wanted = 1.1447 * ((weighted / variance) ** 2 * n) ** (1 / 3)
    if not math.isfinite(wanted):
        return few
    # It asks for all the lags that there are where samples make up for each other.
    return int(wanted) if min(int(wanted), n - 1) * MOST_LAGS_OF < n else few


def _product(residuals: np.ndarray, lag: int) -> float:
    return float(np.dot(residuals[lag:], residuals[: len(residuals) - lag]))
