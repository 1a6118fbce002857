"""Values of metrics by arm and parameters, from one pass over the `metrics` table. Pure.

A sweep needs thousands of values of a few rows each: selections in a data frame would take most of the time.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import pandas as pd

from qoslab.model.expressions import read_value
from qoslab.model.matrix import Scalar, as_number
from qoslab.results import tables

Where = Mapping[str, Scalar | tuple[Scalar, ...]]
CellKey = tuple[frozenset[tuple[str, object]], int, int]
"""Parameters with their values, the repetition, and a number for cells that these do not distinguish."""


@dataclass(frozen=True)
class Side:
    """Cells of an arm, and their values of a metric."""

    values: dict[CellKey, float]
    """Values of the cells that count, in the order of the table."""
    cells: dict[CellKey, None]
    """All cells with a row of any metric."""
    trusted: bool
    """True if the values are from valid cells."""
    excluded: int
    """Number of cells that are left out since they are not valid."""
    missing: list[str]
    """Reasons of missing values."""


class _Row(NamedTuple):
    """A value of a metric; `place` is its row number in the table."""

    place: int
    repetition: int
    valid: bool
    value: float
    missing: str | None


class _Combination:
    """Rows of an arm with the same parameters."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self.values = values
        """Values of the parameters by column."""
        self.parameters = frozenset((name, each) for name, each in values.items() if each is not None)
        self.cells: dict[CellKey, None] = {}
        self.valid = False
        self.rows: defaultdict[str, list[_Row]] = defaultdict(list)
        """Rows by metric."""

    def add(self, rows: Iterable[tuple[str, _Row]]) -> None:
        """Add rows with their metrics."""
        seen: Counter[tuple[int, str]] = Counter()
        for metric, row in rows:
            # Rows of one metric with the same key belong to different cells.
            self.cells[self.parameters, row.repetition, seen[row.repetition, metric]] = None
            seen[row.repetition, metric] += 1
            self.valid |= row.valid
            self.rows[metric].append(row)


class MetricRows:
    """Rows of a `metrics` table with a column `valid`; a table without the column `missing` gives no reasons."""

    def __init__(self, metrics: pd.DataFrame) -> None:
        self._metrics = metrics
        self._columns = [str(name) for name in metrics.columns if str(name).startswith(tables.PARAMETER)]
        self._known: dict[tuple[str, tuple[object, ...]], _Combination] = {}

    @cached_property
    def _places(self) -> dict[str, dict[tuple[object, ...], list[int]]]:
        """Return the rows of each arm, by the values of the parameters."""
        own = self._metrics[self._columns]
        values = own.astype(object).where(own.notna(), None).itertuples(index=False, name=None)
        found: dict[str, dict[tuple[object, ...], list[int]]] = {}
        for place, (arm, key) in enumerate(zip(self._metrics["arm"].tolist(), values, strict=True)):
            found.setdefault(arm, {}).setdefault(key, []).append(place)
        return found

    @cached_property
    def _rows(self) -> list[list[Any]]:
        """Return columns of the table as plain lists: metric, repetition, valid, value, missing."""
        metrics = self._metrics
        missing = metrics["missing"].tolist() if "missing" in metrics.columns else [None] * len(metrics)
        values = metrics["value"].astype(float).tolist()
        return [*(metrics[name].tolist() for name in ("metric", "repetition", "valid")), values, missing]

    def _combination(self, arm: str, key: tuple[object, ...]) -> _Combination:
        if (arm, key) not in self._known:
            metric, repetition, valid, value, missing = self._rows
            made = self._known[arm, key] = _Combination(dict(zip(self._columns, key, strict=True)))
            made.add(
                (
                    metric[place],
                    _Row(
                        place,
                        int(repetition[place]),
                        bool(valid[place]),
                        value[place],
                        None if pd.isna(missing[place]) else missing[place],
                    ),
                )
                for place in self._places[arm][key]
            )
        return self._known[arm, key]

    def side(self, arm: str, metric: str, where: Where) -> Side:
        """Return the cells of an arm with these values (or any of a tuple) of these parameters, with their values of a
        metric.
        """
        chosen = [self._combination(arm, key) for key in self._selected(arm, where)]
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

    def _selected(self, arm: str, where: Where) -> list[tuple[object, ...]]:
        """Return the values of the parameters of an arm's selected cells."""
        wanted: dict[str, list[object]] = {}
        for name, given in where.items():
            each = given if isinstance(given, tuple) else (given,)
            wanted[tables.PARAMETER + name] = [as_number(read_value(value)) for value in each]
        keys = self._places.get(arm, {})
        if not wanted.keys() <= set(self._columns):
            return []
        if len(wanted) == len(self._columns) and all(len(accepted) == 1 for accepted in wanted.values()):
            key = tuple(wanted[name][0] for name in self._columns)
            return [key] if key in keys else []
        accepted_at = [(self._columns.index(name), accepted) for name, accepted in wanted.items()]
        return [
            key
            for key in keys
            if all(key[place] is not None and key[place] in accepted for place, accepted in accepted_at)
        ]
