"""Values of metrics by arm and parameters, from one pass over the `metrics` table. Pure.

A sweep needs thousands of values of a few rows each: selections in a data frame would take most of the time.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from qoslab.analysis import statistics
from qoslab.analysis.statistics import Estimate
from qoslab.analysis.verdicts import is_undecided
from qoslab.model.comparison import Comparison
from qoslab.model.expectations import Expectation, resolve_expectation
from qoslab.model.expressions import read_value
from qoslab.model.matrix import Parameters, Scalar, as_number, matches
from qoslab.model.units import Duration
from qoslab.results import CellSummary, tables

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
        chosen = [self._combination(arm, key) for key in self._selected_parameters(arm, where)]
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

    def _selected_parameters(self, arm: str, where: Where) -> list[tuple[object, ...]]:
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


def pairing_parameters(sides: Sequence[Iterable[CellKey]]) -> frozenset[str]:
    """Return the parameters that pair cells of several arms, from all cells of each arm.

    All arms have these parameters. One with a single value in each arm does not distinguish cells of an arm: if these
    values differ, they are the difference between the arms.
    """
    values: list[dict[str, set[object]]] = []
    for side in sides:
        found: dict[str, set[object]] = {}
        for parameters, _, _ in side:
            for name, value in parameters:
                found.setdefault(name, set()).add(value)
        values.append(found)
    shared = set.intersection(*map(set, values))
    return frozenset(name for name in shared if any(len(found[name]) > 1 for found in values))


def matched_cells(sides: Sequence[Sequence[CellKey]], names: Set[str]) -> list[list[CellKey]]:
    """Return the cells of each side with a counterpart on every other side, by these parameters and repetition."""

    def common(cell: CellKey) -> CellKey:
        return (frozenset(each for each in cell[0] if each[0] in names), *cell[1:])

    everywhere = set.intersection(*({common(cell) for cell in side} for side in sides))
    return [[cell for cell in side if common(cell) in everywhere] for side in sides]


class Planned:
    """Planned cells of a run."""

    def __init__(self, cells: Iterable[CellSummary]) -> None:
        self._cells: dict[str, list[Parameters]] = {}
        self._keys: dict[str, list[tuple[Parameters, CellKey]]] = {}
        self._pairing: dict[tuple[str, ...], frozenset[str]] = {}
        for cell in cells:
            self._cells.setdefault(cell.arm, []).append(cell.values)
            if cell.valid or not cell.spared:
                values = {tables.PARAMETER + name: as_number(value) for name, value in cell.values.items()}
                key = frozenset(values.items()), cell.repetition, 0
                self._keys.setdefault(cell.arm, []).append((cell.values, key))

    def count(self, arms: Sequence[str], where: Where) -> int:
        """Return the number of cells of an arm, or of pairs of cells of two arms, with these parameters, without spared
        cells.
        """
        sides = [[key for values, key in self._keys.get(arm, ()) if matches(values, where)] for arm in arms]
        return max(map(len, matched_cells(sides, self.pairing_parameters(arms))))

    def pairing_parameters(self, arms: Sequence[str]) -> frozenset[str]:
        """Return the parameters that pair the cells of these arms."""
        known = tuple(arms)
        if known not in self._pairing:
            self._pairing[known] = pairing_parameters([[key for _, key in self._keys.get(arm, ())] for arm in known])
        return self._pairing[known]

    def has(self, arms: Iterable[str], where: Where) -> bool:
        """Return whether each arm has a cell with these parameters."""
        return all(any(matches(each, where) for each in self._cells.get(arm, ())) for arm in arms)

    def expand_expectations_of_cells(self, wanted: Comparison, duration: Duration) -> Iterator[Expectation]:
        """Return the expectations of these cells, one for each combination of the parameters in an expectation."""
        for expectation in wanted.expectations:
            cells = self._cells.get(expectation.arms[0], ())
            for each in resolve_expectation(expectation, wanted.quantities, cells, duration):
                if self.has(each.arms, each.where):
                    yield each


def select_rows(table: pd.DataFrame, arm: str, where: Where) -> pd.DataFrame:
    """Return the rows of an arm's cells with these values (or any of a tuple) of these parameters."""
    rows = table[table["arm"] == arm]
    for name, wanted in where.items():
        column = tables.PARAMETER + name
        if column not in rows.columns:
            return rows.head(0)
        values = [as_number(read_value(each)) for each in (wanted if isinstance(wanted, tuple) else (wanted,))]
        rows = rows[rows[column].isin(values)]
    return rows


@dataclass(frozen=True)
class Measured:
    """A measured value of an arm, or of `A/B`."""

    estimate: Estimate | None
    """Measured value; None if there is none."""
    trusted: bool
    """True if it comes from valid cells; otherwise no cell is valid, and it comes from the others."""
    excluded: int
    """Number of cells that were left out since they are not valid."""
    missing: str = ""
    """Reason of a missing value in cells that count; empty if none is missing."""
    effect: float = math.nan
    """Cliff's delta of `A/B`, -1 to 1; nan if an arm has fewer than two values."""
    counted: int = field(default=0, compare=False, repr=False)
    """Number of cells behind it, each repetition by itself; for `A/B` of pairs."""
    planned: int = field(default=0, compare=False, repr=False)
    """Planned number of cells or pairs."""

    @property
    def value(self) -> float:
        """Measured value; nan if there is none."""
        return math.nan if self.estimate is None else self.estimate.value

    @property
    def is_undecided(self) -> bool:
        """True if most of its cells are not valid or lack the value."""
        return is_undecided(self.counted, self.planned)


def measured_value(
    metrics: pd.DataFrame | MetricRows,
    arm: str,
    metric: str,
    where: Where | None = None,
    planned: Planned | None = None,
) -> Measured:
    """Return the mean over the chosen cells of the median of their repetitions, with its interval; for `A/B` the ratio.

    `metrics` has a column `valid`; its parameter columns distinguish the cells. Without a column `missing` there are no
    reasons. A ratio is over the cells that both arms have, by parameters and repetition. `planned` are the cells of the
    run; without them all cells with any row count as planned.
    """
    arms = arm.split("/")
    rows = metrics if isinstance(metrics, MetricRows) else MetricRows(metrics)
    sides = [rows.side(each, metric, where or {}) for each in arms]
    names = pairing_parameters([side.cells for side in sides]) if planned is None else planned.pairing_parameters(arms)
    shared = matched_cells([list(side.values) for side in sides], names)
    counted = max(map(len, shared))
    asked = max(len(side.cells) for side in sides) if planned is None else planned.count(arms, where or {})
    missing = list(dict.fromkeys(reason for side in sides for reason in side.missing))
    excluded = sum(side.excluded for side in sides)
    if len(sides) > 1 and counted < asked:
        missing.append(f"only {counted} of {asked} pairs of cells have this value")
    elif not missing and 0 < counted < asked - excluded:
        missing.append(f"{asked - excluded - counted} of {asked} cells lack this value")
    trusted, words = all(side.trusted for side in sides), "; ".join(missing)
    found = Measured(None, trusted, excluded, words, counted=counted, planned=asked)
    values = [_groups(side, cells) for side, cells in zip(sides, shared, strict=True)]
    return _add_estimate(found, values) if counted else found


def _add_estimate(found: Measured, values: Sequence[list[list[float]]]) -> Measured:
    """Add the value of one arm, or the ratio of two; `values` are by cell, of the same cells in both arms."""
    if len(values) == 1:
        return replace(found, estimate=statistics.average(values[0]))
    estimate = statistics.ratio(*values)
    if math.isnan(estimate.value):
        return replace(found, counted=0)
    every = [[value for group in groups for value in group] for groups in values]
    effect = math.nan
    if all(len(each) > 1 and np.isfinite(each).all() for each in every):
        effect = statistics.difference(*every).cliff_delta
    return replace(found, estimate=estimate, effect=effect)


def cell_keys(rows: pd.DataFrame) -> list[CellKey]:
    """Return the cell of each row."""
    names = [name for name in rows.columns if name.startswith(tables.PARAMETER)]
    values = rows[names].astype(object).where(rows[names].notna(), None).itertuples(index=False, name=None)
    found: list[CellKey] = []
    seen: Counter[object] = Counter()
    sets: dict[tuple[object, ...], frozenset[tuple[str, object]]] = {}
    for parameters, repetition, metric in zip(values, rows["repetition"], rows["metric"], strict=True):
        if (known := sets.get(parameters)) is None:
            pairs = zip(names, parameters, strict=True)
            known = sets[parameters] = frozenset((name, value) for name, value in pairs if value is not None)
        # Otherwise equal rows of one metric belong to different cells.
        number = seen[known, repetition, metric]
        seen[known, repetition, metric] += 1
        found.append((known, int(repetition), number))
    return found


def _groups(side: Side, cells: Iterable[CellKey]) -> list[list[float]]:
    """Return the values of some cells, with the repetitions of each combination of parameters grouped."""
    groups: dict[object, list[float]] = {}
    for cell in cells:
        groups.setdefault(cell[0], []).append(side.values[cell])
    return list(groups.values())
