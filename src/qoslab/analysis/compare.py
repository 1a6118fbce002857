"""Measured beside published figures, with a verdict. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from qoslab.analysis import statistics
from qoslab.analysis.statistics import Estimate
from qoslab.analysis.verdicts import (
    AS_PREDICTED,
    FITTED,
    IMPOSSIBLE,
    INFORMATIVE,
    NOT_REPRODUCED,
    OUTSIDE,
    OWN_REFERENCE,
    WITHIN,
)
from qoslab.model.comparison import Comparison, PublishedFigure
from qoslab.model.expectations import Expectation, resolved
from qoslab.model.expressions import read_value
from qoslab.model.labs import DEFAULT_LAB
from qoslab.model.matrix import Parameters, Scalar, as_number, fits
from qoslab.model.metrics import Reference, Unit, format_value
from qoslab.results import CellSummary, tables
from qoslab.units import Duration

COLUMNS = [
    *("article", "lab", "arm", "where", "metric", "unit", "predicted", "published"),
    *("measured", "low", "high", "n", "over", "excluded", "missing", "effect"),
    *("tolerance", "reason", "verdict", "publication", "explanation"),
]

Where = Mapping[str, Scalar | tuple[Scalar, ...]]
_Key = tuple[str, str, str]
"""What a row is of: arm, metric, and the cells that count, in words."""


class Planned:
    """The cells that a run was to measure."""

    def __init__(self, cells: Iterable[CellSummary]) -> None:
        self._cells: dict[str, list[Parameters]] = {}
        for cell in cells:
            self._cells.setdefault(cell.arm, []).append(cell.values)

    def has(self, arms: Iterable[str], where: Where) -> bool:
        """Whether there is a cell with these parameters of each arm."""
        return all(any(fits(each, where) for each in self._cells.get(arm, ())) for arm in arms)

    def expected(self, wanted: Comparison, duration: Duration) -> Iterator[Expectation]:
        """What is expected of these cells: one for each combination of the parameters that an expectation takes."""
        for expectation in wanted.expectations:
            cells = self._cells.get(expectation.arms[0], ())
            for each in resolved(expectation, wanted.quantities, cells, duration):
                if self.has(each.arms, each.where):
                    yield each


def selected(table: pd.DataFrame, arm: str, where: Where) -> pd.DataFrame:
    """The rows of an arm's cells with these values (any of a tuple) of these parameters."""
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
    """A figure of an arm, or of `A/B`."""

    estimate: Estimate | None
    """None where nothing was measured."""
    trusted: bool
    """Whether it comes from valid cells; without a valid one it comes from the others."""
    excluded: int
    """Cells that were left out as they are not valid."""
    missing: str = ""
    """Why the figure is missing in cells that count; empty where it is missing in none."""
    effect: float = math.nan
    """Of `A/B`: Cliff's delta, -1 to 1; nan where an arm has fewer than two values."""

    @property
    def value(self) -> float:
        """The figure; nan where nothing was measured."""
        return math.nan if self.estimate is None else self.estimate.value

    def columns(self) -> dict[str, object]:
        """Of the comparison."""
        found = self.estimate
        return {
            "measured": self.value,
            "low": math.nan if found is None else found.low,
            "high": math.nan if found is None else found.high,
            "n": 0 if found is None else found.n,
            "over": "" if found is None else found.over,
            "excluded": self.excluded,
            "missing": self.missing,
            "effect": self.effect,
        }


def measured_figure(metrics: pd.DataFrame, arm: str, metric: str, where: Where | None = None) -> Measured:
    """The mean over the chosen cells of the median of their repetitions, with its interval; of `A/B` the ratio.

    `metrics` has a column `valid`; its columns of parameters tell the cells apart. One without the column `missing`
    gives no reasons.
    """
    if "/" not in arm:
        found = _groups(metrics, arm, metric, where or {})
        estimate = statistics.average(found.values) if found.values else None
        return Measured(estimate, found.trusted, found.excluded, found.missing)
    above, below = (_groups(metrics, each, metric, where or {}) for each in arm.split("/"))
    trusted, excluded = above.trusted and below.trusted, above.excluded + below.excluded
    missing = "; ".join(dict.fromkeys(filter(None, (above.missing, below.missing))))
    if not above.values or not below.values:
        return Measured(None, trusted, excluded, missing)
    estimate = statistics.ratio(above.values, below.values)
    if math.isnan(estimate.value):
        return Measured(None, trusted, excluded, missing)
    values = [[value for group in groups for value in group] for groups in (above.values, below.values)]
    effect = math.nan
    if all(len(each) > 1 and np.isfinite(each).all() for each in values):
        effect = statistics.difference(*values).cliff_delta
    return Measured(estimate, trusted, excluded, missing, effect)


@dataclass(frozen=True)
class _Groups:
    """The values of a metric."""

    values: list[list[float]]
    """By cell the repetitions."""
    trusted: bool
    """Whether they are of valid cells."""
    excluded: int
    """Cells that are left out as they are not valid."""
    missing: str
    """Why others have no value."""


def _groups(metrics: pd.DataFrame, arm: str, metric: str, where: Where) -> _Groups:
    rows = selected(metrics, arm, where)
    trusted = bool(rows["valid"].any())
    rows = rows[rows["metric"] == metric]
    chosen = rows[rows["valid"] | (not trusted)]
    used = chosen[chosen["value"].notna()]
    excluded, missing = len(rows) - len(chosen), ""
    if "missing" in chosen.columns:
        missing = "; ".join(chosen["missing"].dropna().unique())
    parameters = [name for name in rows.columns if name.startswith(tables.PARAMETER)]
    if not parameters:
        return _Groups([list(used["value"])] if len(used) else [], trusted, excluded, missing)
    grouped = used.groupby(parameters, dropna=False, sort=False)["value"]
    return _Groups([list(values) for _, values in grouped], trusted, excluded, missing)


def compare(
    article: str,
    metrics: pd.DataFrame,
    published: Sequence[PublishedFigure],
    expectations: Iterable[Expectation],
    *,
    arms: Sequence[str] = (),
    show: Mapping[str, Sequence[str]] | None = None,
    lab: str = DEFAULT_LAB,
) -> pd.DataFrame:
    """One row for each expectation, then one for each other published figure and each of `show`, arm by arm.

    `lab` is the kind of lab that the measured figures come from.

    Rows without an expectation are `informative`. `where` says which cells of the arm count; all where it is empty.

    `predicted` is what the model says, for the `reason`. `verdict` tells whether the router does that; `publication`
    whether the published figure is within the same bounds, whatever was measured: `as predicted`, `not reproduced` with
    what would explain it as `explanation`, or `fitted` where the bounds are not independent of it.

    `predicted`, `published` and `measured` are nan where there is none; `low` and `high` are the ends of the 95 %
    interval, `n` the measurements behind it, `excluded` those that are not valid, `missing` why others lack it,
    `effect` Cliff's delta of `A/B`. An expectation whose figure was not measured is not met.
    `arms` is the order of the rows, ratios of arms last. Figures of which no cell is valid are shown and decide
    nothing: they are `informative` too.
    """
    figures: dict[_Key, PublishedFigure] = {
        (each.arm, each.metric, each.selection): each for each in published if each.metric
    }
    expected: set[_Key] = set()
    rows: list[dict[str, object]] = []
    for expectation in expectations:
        key = (expectation.arm, expectation.metric, expectation.selection)
        expected.add(key)
        measured = measured_figure(metrics, expectation.arm, expectation.metric, expectation.where)
        rows.append(
            _row(key, expectation.unit, figures.get(key), measured)
            | {
                "predicted": math.nan if expectation.prediction is None else expectation.prediction,
                "tolerance": expectation.tolerance,
                "reason": expectation.reason,
                "verdict": _verdict(expectation, measured),
            }
            | _publication(expectation, figures.get(key))
        )
    shown: list[_Key] = [(arm, metric, "") for arm, names in (show or {}).items() for metric in names]
    for key in dict.fromkeys(each for each in (*figures, *shown) if each not in expected):
        arm, metric, _ = key
        figure = figures.get(key)
        unit: Unit = "ratio" if "/" in arm else Reference.parse(metric).metric.unit
        measured = measured_figure(metrics, arm, metric, None if figure is None else figure.where)
        rows.append(_row(key, unit, figure, measured))
    place = {arm: number for number, arm in enumerate(arms)}
    rows.sort(key=lambda row: place.get(str(row["arm"]), len(place)))
    return pd.DataFrame([{"article": article, "lab": lab, **row} for row in rows], columns=COLUMNS)


def _row(key: _Key, unit: str, published: PublishedFigure | None, measured: Measured) -> dict[str, object]:
    """A row that decides nothing; what it lacks is nan in the end."""
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
        "publication": "",
        "explanation": "" if published is None else published.remark,
    }


def _publication(expectation: Expectation, published: PublishedFigure | None) -> dict[str, str]:
    """Whether the publication agrees with what the router has to do, and if not, why."""
    if published is None:
        return {"explanation": expectation.fitted}
    if not published.is_published:
        reference = format_value(published.value, expectation.unit)
        return {"publication": OWN_REFERENCE, "explanation": f"Reference measurement, not published: {reference}."}
    if not expectation.holds(published.value, uncertain=published.resolution / 2):
        return {"publication": NOT_REPRODUCED, "explanation": expectation.explained}
    if expectation.fitted:
        return {"publication": FITTED, "explanation": expectation.fitted}
    return {"publication": AS_PREDICTED, "explanation": ""}


def impossible(comparison: pd.DataFrame) -> list[str]:
    """Figures that there cannot be, in words; each is a mistake of the analysis."""
    rows = comparison[comparison["verdict"] == IMPOSSIBLE].to_dict("records")
    return [
        f"{row['arm']}: {row['metric']}{' with ' + row['where'] if row['where'] else ''} came out as "
        f"{format_value(row['measured'], row['unit'])}, which cannot be: a mistake of the analysis or of a measurement"
        for row in rows
    ]


def reproduced(comparison: pd.DataFrame) -> str:
    """`Of 30 published figures 21 are reproduced, 5 are not, 4 rest on something chosen in their light.`

    Reproduced is what the model predicts, the publication has and the router did.
    """
    published = comparison[comparison["published"].notna()]
    if published.empty:
        return ""
    kinds, verdicts = published["publication"], published["verdict"]
    agreed = kinds == AS_PREDICTED
    met, failed = int((agreed & (verdicts == WITHIN)).sum()), int((agreed & verdicts.isin([OUTSIDE, IMPOSSIBLE])).sum())
    fitted, other, nothing = (int((kinds == kind).sum()) for kind in (FITTED, NOT_REPRODUCED, ""))
    undecided = int(agreed.sum()) - met - failed
    parts = [f"{met} {_are(met)} reproduced"]
    parts += [f"{other} {_are(other)} not as predicted"] if other else []
    parts += [f"{failed} {_are(failed)} as predicted but not met here"] if failed else []
    parts += [f"{undecided} {_are(undecided)} left undecided by this run"] if undecided else []
    parts += [f"{fitted} {'rests' if fitted == 1 else 'rest'} on something chosen in their light"] if fitted else []
    parts += [f"of {nothing} nothing is predicted"] if nothing else []
    return f"Of {len(published)} published figures {', '.join(parts)}."


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _verdict(expectation: Expectation, measured: Measured) -> str:
    if not measured.trusted:
        return INFORMATIVE
    if measured.estimate is not None and not expectation.can_be(measured.estimate.value):
        return IMPOSSIBLE
    return WITHIN if measured.estimate is not None and expectation.holds(measured.estimate.value) else OUTSIDE


def to_csv(comparison: pd.DataFrame) -> str:
    """`comparison.csv`; empty where there is no figure."""
    return comparison.to_csv(index=False)


def to_json(comparison: pd.DataFrame) -> str:
    """`comparison.json`: a list of objects with the same keys; null where there is no figure."""

    def plain(value: object) -> object:
        return None if isinstance(value, float) and not math.isfinite(value) else value

    rows = [{str(key): plain(value) for key, value in row.items()} for row in comparison.to_dict("records")]
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"
