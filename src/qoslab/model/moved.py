"""Whether a figure of a run is another one than in a run before."""

from __future__ import annotations

from dataclasses import dataclass

NEGLIGIBLE = 0.05
"""Two figures that are nearer to one another than this share of the greater have not moved."""


@dataclass(frozen=True)
class Measured:
    """A figure, and the ends of its 95 % interval; where there is none, both are the figure itself."""

    value: float
    low: float
    high: float


def moved(now: Measured | None, before: Measured | None, negligible: float = NEGLIGIBLE) -> bool:
    """Whether it differs by more than is negligible, and the intervals have nothing in common.

    None is a figure that was not measured.
    """
    if now is None or before is None:
        return now is not before
    apart = now.low > before.high or now.high < before.low
    return apart and abs(now.value - before.value) > negligible * max(abs(now.value), abs(before.value))
