"""The answer to the title's question, at the top of a report."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from qoslab.model.comparison import Answer
from qoslab.model.experiment import Experiment
from qoslab.report import text
from qoslab.report.arms import Graph, arm_title
from qoslab.report.lead import stream_graphs
from qoslab.report.notes import paragraphs_of, values
from qoslab.results import Cell


@dataclass(frozen=True)
class Bar:
    """An arm's published and measured value as bars."""

    title: str
    values: list[tuple[str, float]]
    """Values in words, and as percent of the greatest of all bars."""


@dataclass(frozen=True)
class AnswerText:
    """The answer to the title's question."""

    paragraphs: list[str]
    graphs: list[Graph]
    """Streams of some arms, side by side."""
    bars: list[Bar]


def answer(
    experiment: Experiment,
    found: Mapping[str, pd.DataFrame],
    invalid: Collection[str],
    cells: Sequence[Cell],
    comparison: pd.DataFrame,
) -> AnswerText | None:
    """The experiment's answer with measured values; None without one, or where no arm of it was run."""
    asked = experiment.answer
    if asked is None:
        return None
    metrics = found["metrics"]
    paragraphs = paragraphs_of(asked.text, set(metrics["arm"]), values(metrics, invalid))
    graphs = list(stream_graphs(experiment, asked.streams, cells, found))
    return AnswerText(paragraphs, graphs, _bars(experiment, asked, comparison)) if paragraphs else None


def _bars(experiment: Experiment, asked: Answer, comparison: pd.DataFrame) -> list[Bar]:
    """A metric of each arm that has a published value; of the arms of the graphs, if there are any."""
    chosen = (comparison["metric"] == asked.bars) & (comparison["where"] == "") & comparison["published"].notna()
    rows = comparison[chosen & (comparison["arm"].isin(asked.streams) if asked.streams else True)]
    greatest = rows[["published", "measured"]].max().max()
    return [
        Bar(
            arm_title(experiment, row["arm"]),
            [
                (text.figure(row[key], row["unit"]), 0.0 if math.isnan(row[key]) else 100 * row[key] / greatest)
                for key in ("published", "measured")
            ],
        )
        for row in rows.to_dict("records")
        if "/" not in row["arm"]
    ]
