"""A value of a run in its comparison, and its change from an earlier run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self, cast

from qoslab.model.metrics import Unit, format_value

NEGLIGIBLE = 0.05
"""Share of the greater of two values; a smaller difference between them does not count as a change."""


@dataclass(frozen=True)
class MeasuredValue:
    """A measured value, and the ends of its 95 % interval; without an interval, both ends are the value itself."""

    value: float
    low: float
    high: float

    @classmethod
    def from_values(cls, value: float | None, low: float | None, high: float | None) -> Self | None:
        """Build from the values of a table, with None or nan for missing ones. Return None if nothing was measured."""
        if value is None or math.isnan(value):
            return None
        if low is None or high is None or math.isnan(low) or math.isnan(high):
            return cls(value, value, value)
        return cls(value, low, high)


def has_changed(now: MeasuredValue | None, before: MeasuredValue | None, negligible: float = NEGLIGIBLE) -> bool:
    """Return whether a value changed by more than a negligible amount, and the intervals do not overlap.

    None is a value that was not measured.
    """
    if now is None or before is None:
        return now is not before
    apart = now.low > before.high or now.high < before.low
    return apart and abs(now.value - before.value) > negligible * max(abs(now.value), abs(before.value))


Key = tuple[str, str, str]
"""Key of a value: arm, metric, description of the cells."""


@dataclass(frozen=True)
class RunValue:
    """A value of a run's comparison: a row, an average over its cells, or the frequency of one of two values being
    better.
    """

    arm: str
    metric: str
    """Metric, or the title of an average or of a pair of values."""
    where: str
    """Description of the cells of the arm; empty for all."""
    unit: str
    measured: float | None
    low: float | None
    high: float | None
    """Upper end of the 95 % interval; None, as `low`, if there is none."""
    published: float | None
    tolerance: str
    verdict: str
    """Verdict on the router."""
    predicted: float | None = None
    reproduction: str = ""
    """The verdict on the publication."""
    explanation: str = ""
    """Explanation of a published value that contradicts the prediction, or of a fitted part."""
    subject: str = ""
    """Statistic and metric of an average; empty for other values."""
    lowest: str = ""
    """Lowest of the averaged values, formatted for display."""

    @classmethod
    def from_row(cls, row: Mapping[str, object]) -> Self:
        """Build from a row of `comparison.json` or `comparison.csv`, also of another version.

        Raise `KeyError` for a missing verdict, `ValueError` for an invalid number.
        """
        numbers = {name: _parse_number(row.get(name)) for name in ("measured", "low", "high", "published", "predicted")}
        names = ("arm", "metric", "where", "unit", "tolerance", "reproduction", "explanation")
        words = {name: str(row.get(name) or "") for name in names}
        if row["verdict"] is None:
            raise ValueError("a row is truncated")
        return cls(**numbers, **words, verdict=str(row["verdict"]))  # type: ignore[arg-type]

    @classmethod
    def from_average_row(cls, row: Mapping[str, object]) -> Self:
        """Build from a row of `averages.csv`. Raise the same errors as `of`."""
        words = {name: str(row[name]) for name in ("title", "each", "unit", "metric", "statistic")}
        about = f"{words['statistic']} of {words['metric']}"
        value = cls.from_row({**row, "metric": words["title"], "where": words["each"], "measured": row["value"]})
        lowest = _parse_number(row["lowest"])
        shown = "" if lowest is None else format_value(lowest, cast(Unit, words["unit"]))
        where = f" ({row['lowest_cell']})" if row["lowest_cell"] else ""
        return replace(value, subject=about, lowest=f"{shown}{where}" if shown else "")

    @property
    def key(self) -> Key:
        """Key of the same value in another run."""
        return self.arm, self.metric, self.where

    @property
    def place(self) -> str:
        """Arm, cells and metric for display."""
        return " ".join(part for part in (self.arm, f"({self.where})" if self.where else "", self.metric) if part)

    @property
    def measured_value(self) -> MeasuredValue | None:
        """The measured value with its interval."""
        return MeasuredValue.from_values(self.measured, self.low, self.high)

    def has_changed_from(self, before: RunValue, negligible: float = NEGLIGIBLE) -> bool:
        """Return whether the verdict or the value differs from `before`."""
        return self.verdict != before.verdict or has_changed(self.measured_value, before.measured_value, negligible)


def _parse_number(value: object) -> float | None:
    """Parse a number of a text table or of JSON; return None if there is none."""
    if isinstance(value, str):
        return float(value) if value else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


@dataclass(frozen=True)
class Score:
    """Wins of one value of a parameter over another, in pairs of cells that are otherwise equal."""

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
    def from_row(cls, row: Mapping[str, object]) -> Self:
        """Build from a row of `scores.csv`. Raise `KeyError` or `ValueError` for another table."""
        words = {name: str(row[name]) for name in ("title", "arm", "metric", "parameter", "first", "second")}
        won, equal, lost = (int(str(row[name])) for name in ("won", "equal", "lost"))
        return cls(**words, won=won, equal=equal, lost=lost)
