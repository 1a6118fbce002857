"""A metric of which a part is not known: it is missing, with the reason. Pure.

Nothing here takes what was not said for nothing: a sum over readings of which one lacks the counter is no sum.
"""

from __future__ import annotations

import pandas as pd


class Missing(str):
    """Why a metric that applies has no figure."""

    __slots__ = ()


Figure = tuple[str, float | Missing]
"""A metric's name, and its figure or why there is none."""


def total(values: pd.Series, what: str) -> float | Missing:
    """The sum; missing where one of them is not known. `what` says what they are, in the plural."""
    if values.isna().any():
        return Missing(f"{what} are not known of {int(values.isna().sum())} of {len(values)}")
    return float(values.astype(float).sum())


def most(values: pd.Series, what: str) -> float | Missing:
    """The greatest; missing where one of them is not known."""
    known = total(values, what)
    return known if isinstance(known, Missing) else float(values.astype(float).max())
