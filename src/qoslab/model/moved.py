"""Whether a figure of a run is another one than in a run before."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

NEGLIGIBLE = 0.05
"""Two figures that are nearer to one another than this share of the greater have not moved."""


@dataclass(frozen=True)
class Measured:
    """A figure, and the ends of its 95 % interval; where there is none, both are the figure itself."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, value: float | None, low: float | None, high: float | None) -> Self | None:
        """From what a table has, where None and nan stand for what is not there; None where nothing was measured."""
        if value is None or math.isnan(value):
            return None
        if low is None or high is None or math.isnan(low) or math.isnan(high):
            return cls(value, value, value)
        return cls(value, low, high)


def moved(now: Measured | None, before: Measured | None, negligible: float = NEGLIGIBLE) -> bool:
    """Whether it differs by more than is negligible, and the intervals have nothing in common.

    None is a figure that was not measured.
    """
    if now is None or before is None:
        return now is not before
    apart = now.low > before.high or now.high < before.low
    return apart and abs(now.value - before.value) > negligible * max(abs(now.value), abs(before.value))
