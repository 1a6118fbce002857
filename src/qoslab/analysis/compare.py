"""Measured beside published figures, with a verdict. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from qoslab.model.experiment import Expectation, PublishedFigure
from qoslab.model.expressions import read_value
from qoslab.model.matrix import Parameters, Scalar, as_number, fits
from qoslab.model.metrics import Reference
from qoslab.results import CellSummary, tables

WITHIN, OUTSIDE, INFORMATIVE = "within", "outside", "informative"
COLUMNS = ["article", "arm", "where", "metric", "unit", "published", "measured", "tolerance", "verdict"]

Where = Mapping[str, Scalar | tuple[Scalar, ...]]


class Planned:
    """The cells that a run was to measure."""

    def __init__(self, cells: Iterable[CellSummary]) -> None:
        self._cells: dict[str, list[Parameters]] = {}
        for cell in cells:
            self._cells.setdefault(cell.arm, []).append(cell.values)

    def has(self, arms: Iterable[str], where: Where) -> bool:
        """Whether there is a cell with these parameters of each arm."""
        return all(any(fits(each, where) for each in self._cells.get(arm, ())) for arm in arms)


def selected(table: pd.DataFrame, arm: str, where: Where) -> pd.DataFrame:
    """The rows of an arm's cells with these values (any of a tuple) of these parameters."""
    rows = table[table["arm"] == arm]
    for name, wanted in where.items():
        column = tables.PARAMETER + name
        if column not in rows.columns:
            return rows.iloc[0:0]
        values = [as_number(read_value(each)) for each in (wanted if isinstance(wanted, tuple) else (wanted,))]
        rows = rows[rows[column].isin(values)]
    return rows


def measured_figure(metrics: pd.DataFrame, arm: str, metric: str, where: Where | None = None) -> tuple[float, bool]:
    """The mean over the valid ones of the chosen cells, and whether there is one.

    Without a valid one it is the mean over the others. Of `A/B` it is the ratio of the two means. nan where nothing was
    measured. `metrics` has a column `valid`.
    """
    if "/" in arm:
        (above, one), (below, other) = (measured_figure(metrics, each, metric, where) for each in arm.split("/"))
        return (above / below if below else math.nan), one and other
    rows = selected(metrics, arm, where or {})
    trusted = bool(rows["valid"].any())
    found = rows[(rows["metric"] == metric) & (rows["valid"] | (not trusted))]["value"]
    return (float(found.mean()) if len(found) else math.nan), trusted


def compare(
    article: str,
    metrics: pd.DataFrame,
    published: Sequence[PublishedFigure],
    expectations: Iterable[Expectation],
    *,
    arms: Sequence[str] = (),
    show: Mapping[str, Sequence[str]] | None = None,
) -> pd.DataFrame:
    """One row for each expectation, then one for each other published figure and each of `show`, arm by arm.

    Rows without an expectation are `informative`. `where` says which cells of the arm count; all where it is empty.

    `published` and `measured` are nan where there is none. An expectation whose figure was not measured is not met.
    `arms` is the order of the rows, ratios of arms last. Figures of which no cell is valid are shown and decide
    nothing: they are `informative` too.
    """
    figures = {(figure.arm, figure.metric, figure.selection): figure for figure in published}
    rows: list[dict[str, object]] = []
    expected: set[tuple[str, str, str]] = set()
    for expectation in expectations:
        key = (expectation.arm, expectation.metric, expectation.selection)
        expected.add(key)
        measured, trusted = measured_figure(metrics, expectation.arm, expectation.metric, expectation.where)
        holds = not math.isnan(measured) and expectation.holds(measured)
        verdict = WITHIN if holds else OUTSIDE
        rows.append(
            {
                "article": article,
                "arm": expectation.arm,
                "where": expectation.selection,
                "metric": expectation.metric,
                "unit": expectation.unit,
                "published": figures[key].value if key in figures else math.nan,
                "measured": measured,
                "tolerance": expectation.tolerance,
                "verdict": verdict if trusted else INFORMATIVE,
            }
        )
    informative = [key for key in figures if key not in expected]
    informative += [
        (arm, metric, "")
        for arm, names in (show or {}).items()
        for metric in names
        if (arm, metric, "") not in expected and (arm, metric, "") not in figures
    ]
    for arm, metric, selection in informative:
        figure = figures.get((arm, metric, selection))
        rows.append(
            {
                "article": article,
                "arm": arm,
                "where": selection,
                "metric": metric,
                "unit": Reference.parse(metric).metric.unit if figure is None else figure.unit,
                "published": math.nan if figure is None else figure.value,
                "measured": measured_figure(metrics, arm, metric, None if figure is None else figure.where)[0],
                "tolerance": "",
                "verdict": INFORMATIVE,
            }
        )
    place = {arm: number for number, arm in enumerate(arms)}
    rows.sort(key=lambda row: place.get(str(row["arm"]), len(place)))
    return pd.DataFrame(rows, columns=COLUMNS)


def to_csv(comparison: pd.DataFrame) -> str:
    """`comparison.csv`; empty where there is no figure."""
    return comparison.to_csv(index=False)


def to_json(comparison: pd.DataFrame) -> str:
    """`comparison.json`: a list of objects with the same keys; null where there is no figure."""

    def plain(value: object) -> object:
        return None if isinstance(value, float) and not math.isfinite(value) else value

    rows = [{str(key): plain(value) for key, value in row.items()} for row in comparison.to_dict("records")]
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"
