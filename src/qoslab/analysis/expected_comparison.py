"""Comparison of measured values with expected and published ones, with a verdict. Pure."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from qoslab.analysis import statistics
from qoslab.analysis.metric_rows import CellKey, MetricRows, Side, Where
from qoslab.analysis.statistics import Estimate
from qoslab.analysis.verdicts import (
    AS_PREDICTED,
    FITTED,
    IMPOSSIBLE,
    INFORMATIVE,
    LOOSE,
    NOT_REPRODUCED,
    OUTSIDE,
    OWN_REFERENCE,
    UNDECIDED,
    WITHIN,
    undecided,
)
from qoslab.model.comparison import Comparison, PublishedFigure
from qoslab.model.expectations import Expectation, resolved
from qoslab.model.expressions import read_value
from qoslab.model.labs import DEFAULT_LAB
from qoslab.model.matrix import Parameters, as_number, fits
from qoslab.model.metrics import Reference, Unit, format_value
from qoslab.model.units import Duration
from qoslab.results import CellSummary, tables

COLUMNS = [
    *("article", "lab", "arm", "where", "metric", "unit", "predicted", "published"),
    *("measured", "low", "high", "n", "over", "excluded", "missing", "effect"),
    *("tolerance", "reason", "verdict", "reproduction", "explanation"),
]

_Key = tuple[str, str, str]
"""Key of a row: arm, metric, and a description of the cells."""


def pairing(sides: Sequence[Iterable[CellKey]]) -> frozenset[str]:
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


def alike(sides: Sequence[Sequence[CellKey]], names: Set[str]) -> list[list[CellKey]]:
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
        sides = [[key for values, key in self._keys.get(arm, ()) if fits(values, where)] for arm in arms]
        return max(map(len, alike(sides, self.pairing(arms))))

    def pairing(self, arms: Sequence[str]) -> frozenset[str]:
        """Return the parameters that pair the cells of these arms."""
        known = tuple(arms)
        if known not in self._pairing:
            self._pairing[known] = pairing([[key for _, key in self._keys.get(arm, ())] for arm in known])
        return self._pairing[known]

    def has(self, arms: Iterable[str], where: Where) -> bool:
        """Return whether each arm has a cell with these parameters."""
        return all(any(fits(each, where) for each in self._cells.get(arm, ())) for arm in arms)

    def expected(self, wanted: Comparison, duration: Duration) -> Iterator[Expectation]:
        """Return the expectations of these cells, one for each combination of the parameters in an expectation."""
        for expectation in wanted.expectations:
            cells = self._cells.get(expectation.arms[0], ())
            for each in resolved(expectation, wanted.quantities, cells, duration):
                if self.has(each.arms, each.where):
                    yield each


def selected(table: pd.DataFrame, arm: str, where: Where) -> pd.DataFrame:
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
    def undecided(self) -> bool:
        """True if most of its cells are not valid or lack the value."""
        return undecided(self.counted, self.planned)

    def columns(self) -> dict[str, object]:
        """Return the columns of the comparison."""
        found = self.estimate
        return {
            "measured": self.value,
            "low": math.nan if found is None else found.low,
            "high": math.nan if found is None else found.high,
            "n": self.counted,
            "over": "" if found is None else found.over,
            "excluded": self.excluded,
            "missing": self.missing,
            "effect": self.effect,
        }


def measured_figure(
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
    names = pairing([side.cells for side in sides]) if planned is None else planned.pairing(arms)
    shared = alike([list(side.values) for side in sides], names)
    counted = max(map(len, shared))
    asked = max(len(side.cells) for side in sides) if planned is None else planned.count(arms, where or {})
    missing = list(dict.fromkeys(reason for side in sides for reason in side.missing))
    excluded = sum(side.excluded for side in sides)
    if len(sides) > 1 and counted < asked:
        missing.append(f"{counted} of {asked} pairs of cells have it")
    elif not missing and 0 < counted < asked - excluded:
        missing.append(f"{asked - excluded - counted} of {asked} cells lack it")
    trusted, words = all(side.trusted for side in sides), "; ".join(missing)
    found = Measured(None, trusted, excluded, words, counted=counted, planned=asked)
    values = [_groups(side, cells) for side, cells in zip(sides, shared, strict=True)]
    return _estimated(found, values) if counted else found


def _estimated(found: Measured, values: Sequence[list[list[float]]]) -> Measured:
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


def compare(
    article: str,
    metrics: pd.DataFrame,
    published: Sequence[PublishedFigure],
    expectations: Iterable[Expectation],
    *,
    arms: Sequence[str] = (),
    show: Mapping[str, Sequence[str]] | None = None,
    lab: str = DEFAULT_LAB,
    planned: Planned | None = None,
) -> pd.DataFrame:
    """Return one row for each expectation, then for each other published value, and for each of `show`, arm by arm.

    `lab` is the kind of lab that the measured values come from.

    Rows without an expectation are `informative`. `where` describes the cells of the arm that count; it is empty for
    all.

    `predicted` is the model's value, for the `reason`. `verdict` shows whether the router behaves accordingly;
    `reproduction` whether the published value is within the same bounds, regardless of the measured value: `as
    predicted`, `not reproduced` with a possible cause as `explanation`, or `fitted` if the bounds depend on it.

    `predicted`, `published` and `measured` are nan if there is none; `low` and `high` are the ends of the 95 %
    interval, `n` the number of cells behind it (for `A/B` of pairs of cells), `excluded` the number of cells that are
    not valid, `missing` the reason why others lack it, and `effect` Cliff's delta of `A/B`. An expectation with a value
    that was not measured is not met. `planned` are the cells of the run: an expectation is `undecided` if most of its
    cells are not valid or lack the value. `arms` is the order of the rows, with ratios of arms last. Values without a
    valid cell are shown as `informative`.
    """
    figures: dict[_Key, PublishedFigure] = {
        (each.arm, each.metric, each.selection): each for each in published if each.metric
    }
    expected: set[_Key] = set()
    known = MetricRows(metrics)
    rows: list[dict[str, object]] = []
    for expectation in expectations:
        key = (expectation.arm, expectation.metric, expectation.selection)
        expected.add(key)
        measured = measured_figure(known, expectation.arm, expectation.metric, expectation.where, planned)
        rows.append(
            _row(key, expectation.unit, figures.get(key), measured)
            | {
                "predicted": math.nan if expectation.prediction is None else expectation.prediction,
                "tolerance": expectation.tolerance,
                "reason": expectation.reason,
                "verdict": _verdict(expectation, measured),
            }
            | _reproduction(expectation, figures.get(key))
        )
    shown: list[_Key] = [(arm, metric, "") for arm, names in (show or {}).items() for metric in names]
    for key in dict.fromkeys(each for each in (*figures, *shown) if each not in expected):
        arm, metric, _ = key
        figure = figures.get(key)
        unit: Unit = "ratio" if "/" in arm else Reference.parse(metric).metric.unit
        measured = measured_figure(known, arm, metric, None if figure is None else figure.where, planned)
        rows.append(_row(key, unit, figure, measured))
    place = {arm: number for number, arm in enumerate(arms)}
    rows.sort(key=lambda row: place.get(str(row["arm"]), len(place)))
    return pd.DataFrame([{"article": article, "lab": lab, **row} for row in rows], columns=COLUMNS)


def _row(key: _Key, unit: str, published: PublishedFigure | None, measured: Measured) -> dict[str, object]:
    """Return an informative row; columns that it lacks become nan."""
    arm, metric, selection = key
    return {
        "arm": arm,
        "where": selection,
        "metric": metric,
        "unit": unit,
        "published": math.nan if published is None or not published.is_published else published.value,
        **measured.columns(),
        "tolerance": "",
        "reason": "",
        "verdict": INFORMATIVE,
        "reproduction": "",
        "explanation": "" if published is None else published.remark,
    }


def _reproduction(expectation: Expectation, published: PublishedFigure | None) -> dict[str, str]:
    """Return whether the publication agrees with the prediction, and if not, the explanation."""
    if published is None:
        return {"explanation": expectation.fitted}
    if not published.is_published:
        reference = format_value(published.value, expectation.unit)
        return {"reproduction": OWN_REFERENCE, "explanation": f"Reference measurement, not published: {reference}."}
    if not expectation.holds(published.value, uncertain=published.resolution / 2):
        return {"reproduction": NOT_REPRODUCED, "explanation": expectation.explained}
    if expectation.fitted:
        return {"reproduction": FITTED, "explanation": expectation.fitted}
    return {"reproduction": AS_PREDICTED, "explanation": ""}


def impossible(comparison: pd.DataFrame) -> list[str]:
    """Return descriptions of impossible values, each of which is a bug of the analysis."""
    rows = comparison[comparison["verdict"] == IMPOSSIBLE].to_dict("records")
    return [
        f"{row['arm']}: {row['metric']}{' with ' + row['where'] if row['where'] else ''} came out as "
        f"{format_value(row['measured'], row['unit'])}, an impossible value: an error in the analysis or in a "
        f"measurement"
        for row in rows
    ]


def reproduced(comparison: pd.DataFrame) -> str:
    """Return a sentence such as `21 of 30 published values reproduced; 5 contradict the prediction.`

    A value is reproduced if prediction, publication and this run agree.
    """
    published = comparison[comparison["published"].notna()]
    if published.empty:
        return ""
    kinds, verdicts = published["reproduction"], published["verdict"]
    agreed = kinds == AS_PREDICTED
    met, failed = (
        int((agreed & verdicts.isin([WITHIN, LOOSE])).sum()),
        int((agreed & verdicts.isin([OUTSIDE, IMPOSSIBLE])).sum()),
    )
    fitted, other, nothing = (int((kinds == kind).sum()) for kind in (FITTED, NOT_REPRODUCED, ""))
    undecided = int(agreed.sum()) - met - failed
    parts = [f"{met} of {len(published)} published values reproduced"]
    parts += [f"{other} contradict{_s(other)} the prediction"] if other else []
    parts += [f"{failed} agree{_s(failed)} with the prediction, but not with this run"] if failed else []
    parts += [f"{undecided} could not be decided by this run"] if undecided else []
    parts += [f"{fitted} depend{_s(fitted)} on a fitted constant"] if fitted else []
    parts += [f"{nothing} without a prediction"] if nothing else []
    return f"{'; '.join(parts)}."


def _s(count: int) -> str:
    """Return the ending of a verb."""
    return "s" if count == 1 else ""


def _verdict(expectation: Expectation, measured: Measured) -> str:
    if not measured.trusted:
        return INFORMATIVE
    if measured.estimate is None:
        return UNDECIDED if measured.excluded else OUTSIDE
    if not expectation.can_be(measured.estimate.value):
        return IMPOSSIBLE
    if measured.undecided:
        return UNDECIDED
    if not expectation.holds(measured.estimate.value):
        return OUTSIDE
    return LOOSE if expectation.loose else WITHIN


def to_csv(comparison: pd.DataFrame) -> str:
    """Return the content of `comparison.csv`; an empty cell stands for a missing value."""
    return comparison.to_csv(index=False)


def to_json(comparison: pd.DataFrame) -> str:
    """Return the content of `comparison.json`: a list of objects with the same keys; null stands for a
    missing value.
    """

    def plain(value: object) -> object:
        return None if isinstance(value, float) and not math.isfinite(value) else value

    rows = [{str(key): plain(value) for key, value in row.items()} for row in comparison.to_dict("records")]
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"
