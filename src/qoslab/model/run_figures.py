"""A figure of a run, as its comparison has it, and whether it is another one than in a run before."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self, cast

from qoslab.model.metrics import Unit, format_value

NEGLIGIBLE = 0.05
"""Two figures that are nearer to one another than this share of the greater have not moved."""


@dataclass(frozen=True)
class Measured:
    """A figure, and the ends of its 95 % interval; if there is none, both are the figure itself."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, value: float | None, low: float | None, high: float | None) -> Self | None:
        """Build from the values of a table, with None and nan for missing ones; None if nothing was measured."""
        if value is None or math.isnan(value):
            return None
        if low is None or high is None or math.isnan(low) or math.isnan(high):
            return cls(value, value, value)
        return cls(value, low, high)


def moved(now: Measured | None, before: Measured | None, negligible: float = NEGLIGIBLE) -> bool:
    """Return whether it differs by more than is negligible, and the intervals have nothing in common.

    None is a figure that was not measured.
    """
    if now is None or before is None:
        return now is not before
    apart = now.low > before.high or now.high < before.low
    return apart and abs(now.value - before.value) > negligible * max(abs(now.value), abs(before.value))


Key = tuple[str, str, str]
"""Arm, metric, cells in words."""


@dataclass(frozen=True)
class RunFigure:
    """A row of a run's comparison, or an average over its cells, or how often one of two values was better."""

    arm: str
    metric: str
    """Metric, or the title of an average or of two values."""
    where: str
    """Description of the cells of the arm; empty for all."""
    unit: str
    measured: float | None
    low: float | None
    high: float | None
    """Ends of the 95 % interval, if there is one."""
    published: float | None
    tolerance: str
    verdict: str
    """Verdict on the router."""
    predicted: float | None = None
    reproduction: str = ""
    """The verdict on the publication."""
    explanation: str = ""
    """Explanation of a publication that contradicts the prediction, or of a fitted part."""
    about: str = ""
    """Subject of an average."""
    lowest: str = ""
    """The lowest of what it is of, for people."""

    @classmethod
    def of(cls, row: Mapping[str, object]) -> Self:
        """Build from `comparison.json` or `comparison.csv`, also of another version.

        `KeyError` without a verdict, `ValueError` for a number that is none.
        """
        numbers = {name: _number(row.get(name)) for name in ("measured", "low", "high", "published", "predicted")}
        names = ("arm", "metric", "where", "unit", "tolerance", "reproduction", "explanation")
        words = {name: str(row.get(name) or "") for name in names}
        if row["verdict"] is None:
            raise ValueError("a row is cut off")
        return cls(**numbers, **words, verdict=str(row["verdict"]))  # type: ignore[arg-type]

    @classmethod
    def of_average(cls, row: Mapping[str, object]) -> Self:
        """Build from `averages.csv`. Errors as above."""
        words = {name: str(row[name]) for name in ("title", "each", "unit", "metric", "statistic")}
        about = f"{words['statistic']} of {words['metric']}"
        figure = cls.of({**row, "metric": words["title"], "where": words["each"], "measured": row["value"]})
        lowest = _number(row["lowest"])
        shown = "" if lowest is None else format_value(lowest, cast(Unit, words["unit"]))
        where = f" ({row['lowest_cell']})" if row["lowest_cell"] else ""
        return replace(figure, about=about, lowest=f"{shown}{where}" if shown else "")

    @property
    def key(self) -> Key:
        """Return the key of the same value in another run."""
        return self.arm, self.metric, self.where

    @property
    def place(self) -> str:
        """Text of it for display."""
        return " ".join(part for part in (self.arm, f"({self.where})" if self.where else "", self.metric) if part)

    @property
    def figure(self) -> Measured | None:
        """Return the measured value."""
        return Measured.of(self.measured, self.low, self.high)

    def moved_from(self, before: RunFigure, negligible: float = NEGLIGIBLE) -> bool:
        """Return whether its verdict, or the figure itself, is another than before."""
        return self.verdict != before.verdict or moved(self.figure, before.figure, negligible)


def _number(value: object) -> float | None:
    """Parse a number of a text table, or of JSON; None if there is none."""
    if isinstance(value, str):
        return float(value) if value else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


@dataclass(frozen=True)
class Score:
    """Wins of one value of a parameter over another, in pairs of cells that differ in nothing else."""

    title: str
    arm: str
    metric: str
    parameter: str
    first: str
    second: str
    won: int
    """Wins of the first value."""
    equal: int
    lost: int

    @classmethod
    def of(cls, row: Mapping[str, object]) -> Self:
        """Build from `scores.csv`. `KeyError` or `ValueError` if it is no such table."""
        words = {name: str(row[name]) for name in ("title", "arm", "metric", "parameter", "first", "second")}
        won, equal, lost = (int(str(row[name])) for name in ("won", "equal", "lost"))
        return cls(**words, won=won, equal=equal, lost=lost)
