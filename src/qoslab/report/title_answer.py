"""Answer to the title's question, at the top of a report."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from qoslab.model.comparison import Answer
from qoslab.model.experiment import Experiment
from qoslab.model.metrics import Reference
from qoslab.report import text
from qoslab.report.arms import Graph, arm_title
from qoslab.report.headline_chart import stream_graphs
from qoslab.report.notes import fill_paragraphs, values
from qoslab.results import CellFiles

_KINDS = ("published", "predicted", "measured")
"""Columns of a comparison with a bar each."""


@dataclass(frozen=True)
class Bar:
    """Bars of one value: published or predicted, and measured."""

    title: str
    values: list[tuple[str, str, float]]
    """Kind (`published`, `predicted` or `measured`), value as text, and percent of the greatest bar."""


@dataclass(frozen=True)
class AnswerText:
    """Answer to the title's question."""

    paragraphs: list[str]
    graphs: list[Graph]
    """Streams of some arms, side by side."""
    bars: list[Bar]
    heading: str = ""
    """Description of the common metric of all bars; empty for several metrics."""


def answer(
    experiment: Experiment,
    found: Mapping[str, pd.DataFrame],
    invalid: Collection[str],
    cells: Sequence[CellFiles],
    comparison: pd.DataFrame,
) -> AnswerText | None:
    """Return the experiment's answer with measured values; None if it has none, or if none of its arms was run."""
    asked = experiment.answer
    if asked is None:
        return None
    metrics = found["metrics"]
    paragraphs = fill_paragraphs(asked.text, set(metrics["arm"]), values(metrics, invalid))
    if not paragraphs:
        return None
    graphs = list(stream_graphs(experiment, asked.streams, cells, found))
    references = [Reference.parse(name) for name in asked.bar_metrics]
    descriptions = list(dict.fromkeys(each.metric.description for each in references))
    # The rest of a description is a detail of the measurement.
    heading = re.split(r"[:;(]", descriptions[0])[0].strip() if len(descriptions) == 1 else ""
    return AnswerText(paragraphs, graphs, _bars(experiment, asked, comparison), heading[:1].upper() + heading[1:])


def _bars(experiment: Experiment, asked: Answer, comparison: pd.DataFrame) -> list[Bar]:
    """Return the bars of each arm with an expectation of the metrics, or only of the arms in the graphs, if there are
    any.

    All bars share one scale, so their metrics have the same unit.
    """
    rows = [
        row
        for metric in asked.bar_metrics
        for row in comparison[comparison["metric"] == metric].to_dict("records")
        if "/" not in row["arm"] and (not asked.streams or row["arm"] in asked.streams)
    ]
    order = [arm.name for arm in experiment.arms]
    rows.sort(key=lambda row: order.index(row["arm"]))
    arms = {row["arm"] for row in rows}
    several = len({(row["arm"], row["where"]) for row in rows}) < len(rows)
    greatest = max((row[key] for row in rows for key in _KINDS if not math.isnan(row[key])), default=0.0)
    bars = []
    for row in rows:
        parts = [
            arm_title(experiment, row["arm"]) if len(arms) > 1 or not (several or row["where"]) else "",
            _name(row["metric"]) if several else "",
            text.bind_unit(row["where"]),
        ]
        left_out = "predicted" if not math.isnan(row["published"]) else "published"
        values = [
            (kind, text.value_text(row[kind], row["unit"]), 100 * row[kind] / greatest if greatest else 0.0)
            for kind in _KINDS
            if kind != left_out and not math.isnan(row[kind])
        ]
        bars.append(Bar(", ".join(filter(None, parts)), values))
    return bars


def _name(metric: str) -> str:
    """Return the selector of a metric, or its description if it has none."""
    reference = Reference.parse(metric)
    return reference.selector or reference.description
