"""Measured beside published figures, with a verdict. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import pandas as pd

from qoslab.model.experiment import Expectation, PublishedFigure
from qoslab.model.metrics import Reference

WITHIN, OUTSIDE, INFORMATIVE = "within", "outside", "informative"
COLUMNS = ["article", "arm", "metric", "unit", "published", "measured", "tolerance", "verdict"]


def measured_figure(metrics: pd.DataFrame, arm: str, metric: str) -> float:
    """The mean over an arm's repetitions; of `A/B` the ratio of the two means. nan where it was not measured."""
    if "/" in arm:
        above, below = (measured_figure(metrics, each, metric) for each in arm.split("/"))
        return above / below if below else math.nan
    found = metrics[(metrics["arm"] == arm) & (metrics["metric"] == metric)]["value"]
    return float(found.mean()) if len(found) else math.nan


def compare(
    article: str,
    metrics: pd.DataFrame,
    published: Sequence[PublishedFigure],
    expectations: Iterable[Expectation],
    *,
    arms: Sequence[str] = (),
    untrusted: Collection[str] = (),
    show: Mapping[str, Sequence[str]] | None = None,
) -> pd.DataFrame:
    """One row for each expectation, then one for each other published figure and each of `show`, arm by arm.

    Rows without an expectation are `informative`.

    `published` and `measured` are nan where there is none. An expectation whose figure was not measured is not met.
    `arms` is the order of the rows, ratios of arms last. Figures of `untrusted` arms, of which no cell is valid, are
    shown and decide nothing: they are `informative` too.
    """
    figures = {(figure.arm, figure.metric): figure for figure in published}
    rows: list[dict[str, object]] = []
    expected: set[tuple[str, str]] = set()
    for expectation in expectations:
        key = (expectation.arm, expectation.metric)
        expected.add(key)
        measured = measured_figure(metrics, *key)
        holds = not math.isnan(measured) and expectation.holds(measured)
        verdict = WITHIN if holds else OUTSIDE
        rows.append(
            {
                "article": article,
                "arm": expectation.arm,
                "metric": expectation.metric,
                "unit": expectation.unit,
                "published": figures[key].value if key in figures else math.nan,
                "measured": measured,
                "tolerance": expectation.tolerance,
                "verdict": INFORMATIVE if set(untrusted).intersection(expectation.arms) else verdict,
            }
        )
    informative = [key for key in figures if key not in expected]
    informative += [
        (arm, metric)
        for arm, names in (show or {}).items()
        for metric in names
        if (arm, metric) not in expected and (arm, metric) not in figures
    ]
    for arm, metric in informative:
        figure = figures.get((arm, metric))
        rows.append(
            {
                "article": article,
                "arm": arm,
                "metric": metric,
                "unit": Reference.parse(metric).metric.unit if figure is None else figure.unit,
                "published": math.nan if figure is None else figure.value,
                "measured": measured_figure(metrics, arm, metric),
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
