"""Values of metrics by arm and parameters, from one pass over the `metrics` table. Pure.

A sweep asks for thousands of values, each of a few rows: a selection in a data frame costs more than all else of it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import pandas as pd

from qoslab.model.expressions import read_value
from qoslab.model.matrix import Scalar, as_number
from qoslab.results import tables

Where = Mapping[str, Scalar | tuple[Scalar, ...]]
CellKey = tuple[frozenset[tuple[str, object]], int, int]
"""Parameters with their values, the repetition, and a number where these tell no cells apart."""


@dataclass(frozen=True)
class Side:
    """The cells of an arm, and their values of a metric."""

    values: dict[CellKey, float]
    """Values of the cells that count and have one, in the order of the table."""
    cells: dict[CellKey, None]
    """All that have a row of any metric."""
    trusted: bool
    """True if they are of valid cells."""
    excluded: int
    """Cells that are left out as they are not valid."""
    missing: list[str]
    """Reason of the missing values."""


class _Row(NamedTuple):
    """A value of a metric; `place` is its row in the table."""

    place: int
    repetition: int
    valid: bool
    value: float
    missing: str | None


@dataclass
class _Combination:
    """Rows of an arm with the same parameters."""

    parameters: frozenset[tuple[str, object]]
    values: dict[str, object]
    """Values of the parameters by column."""
    cells: dict[CellKey, None] = field(default_factory=dict)
    valid: bool = False
    rows: defaultdict[str, list[_Row]] = field(default_factory=lambda: defaultdict(list))
    """Rows by metric."""
    _seen: Counter[tuple[int, str]] = field(default_factory=Counter)

    def add(self, metric: str, row: _Row) -> None:
        # Rows of one metric that nothing tells apart are of different cells.
        number = self._seen[row.repetition, metric]
        self._seen[row.repetition, metric] += 1
        self.cells[self.parameters, row.repetition, number] = None
        self.valid |= row.valid
        self.rows[metric].append(row)


class MetricRows:
    """The rows of a `metrics` table with a column `valid`; one without the column `missing` gives no reasons."""

    def __init__(self, metrics: pd.DataFrame) -> None:
        self._columns = [str(name) for name in metrics.columns if str(name).startswith(tables.PARAMETER)]
        self._arms: defaultdict[str, dict[object, _Combination]] = defaultdict(dict)
        own = metrics[self._columns]
        parameters = own.astype(object).where(own.notna(), None).itertuples(index=False, name=None)
        missing: list[object] = metrics["missing"].tolist() if "missing" in metrics.columns else [None] * len(metrics)
        columns = (metrics[name].tolist() for name in ("arm", "repetition", "metric", "valid"))
        rows = zip(parameters, *columns, metrics["value"].astype(float).tolist(), missing, strict=True)
        for place, (values, arm, repetition, metric, valid, value, reason) in enumerate(rows):
            combinations = self._arms[arm]
            if (known := combinations.get(values)) is None:
                pairs = dict(zip(self._columns, values, strict=True))
                given = frozenset((name, each) for name, each in pairs.items() if each is not None)
                known = combinations[values] = _Combination(given, pairs)
            known.add(metric, _Row(place, int(repetition), bool(valid), value, None if pd.isna(reason) else reason))

    def side(self, arm: str, metric: str, where: Where) -> Side:
        """The cells of an arm with these values (any of a tuple) of these parameters, and their values of a metric."""
        chosen = list(self._selected(arm, where))
        trusted = any(each.valid for each in chosen)
        rows = [(each.parameters, row) for each in chosen for row in each.rows.get(metric, ())]
        if len(chosen) > 1:
            rows.sort(key=lambda row: row[1].place)
        counted = [row for row in rows if row[1].valid or not trusted]
        values: dict[CellKey, float] = {}
        seen: Counter[object] = Counter()
        for parameters, row in counted:
            if not math.isnan(row.value):
                number = seen[parameters, row.repetition]
                seen[parameters, row.repetition] += 1
                values[parameters, row.repetition, number] = row.value
        missing = list(dict.fromkeys(row.missing for _, row in counted if row.missing is not None))
        cells = {cell: None for each in chosen for cell in each.cells}
        return Side(values, cells, trusted, len(rows) - len(counted), missing)

    def _selected(self, arm: str, where: Where) -> Iterator[_Combination]:
        wanted: dict[str, list[object]] = {}
        for name, given in where.items():
            each = given if isinstance(given, tuple) else (given,)
            wanted[tables.PARAMETER + name] = [as_number(read_value(value)) for value in each]
        for combination in self._arms.get(arm, {}).values():
            values = combination.values
            if all(values.get(name) is not None and values[name] in accepted for name, accepted in wanted.items()):
                yield combination
