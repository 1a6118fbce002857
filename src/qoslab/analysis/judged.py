"""Judgement of a run: its metrics with everything that its experiment expects of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from qoslab.analysis.averages import averages_table, pairs_table, scores_table
from qoslab.analysis.expected_comparison import compare, impossible, unexpected_values
from qoslab.analysis.measured_values import Planned
from qoslab.errors import QoslabError
from qoslab.model.comparison import PublishedValue
from qoslab.model.experiment import Experiment
from qoslab.model.labs import DEFAULT_LAB
from qoslab.model.partial_runs import STRICT
from qoslab.model.units import Duration, QuantityError
from qoslab.results import CellSummary
from qoslab.schema.document import parse_document


@dataclass(frozen=True)
class Judged:
    """Judged metrics of a run's cells; see `qoslab.analysis.Outcome`."""

    comparison: pd.DataFrame
    averages: pd.DataFrame
    pairs: pd.DataFrame
    scores: pd.DataFrame
    """See `qoslab.analysis.averages.scores_table`."""
    impossible: Sequence[str]
    """Descriptions of impossible values."""


def judge(
    experiment: Experiment,
    published: Sequence[PublishedValue],
    metrics: pd.DataFrame,
    cells: Sequence[CellSummary],
    lab: str = DEFAULT_LAB,
    *,
    overrides: Sequence[str] = (),
    experiment_text: str = "",
) -> Judged:
    """Compare the metrics of cells, each with its validity, with published values and expectations.

    If the run had less traffic than the file of the experiment requests, values that it cannot have are not measured.
    """
    shortened = _is_shortened(experiment, overrides, experiment_text)
    wanted = experiment.compare
    planned = Planned(cells)
    arms = {cell.arm for cell in cells}
    valid = metrics.assign(valid=metrics["cell"].isin([cell.name for cell in cells if cell.valid]))
    comparable = [each for each in published if each.metric and planned.has(each.arm.split("/"), each.where)]
    expected = list(planned.expand_expectations_of_cells(wanted, experiment.duration)) if wanted else []
    comparison = compare(
        (wanted.article or "") if wanted else "",
        valid,
        comparable,
        expected,
        arms=[arm.name for arm in experiment.arms],
        show={arm: names for arm, names in wanted.show.items() if arm in arms} if wanted else {},
        lab=lab,
        planned=planned,
        shortened=shortened,
    )
    pairs = wanted.pairs if wanted else ()
    averages = averages_table(wanted.averages if wanted else (), metrics, cells, pairs, shortened=shortened)
    compared = pairs_table(pairs, metrics, cells)
    scores = scores_table(compared)
    errors = impossible(comparison)
    if comparison.empty and averages.empty:
        comparison = unexpected_values(experiment, valid, cells, lab)
    return Judged(comparison, averages, compared, scores, errors)


def _is_shortened(experiment: Experiment, overrides: Sequence[str], experiment_text: str) -> bool:
    """Return whether a run had less traffic than its experiment's file requests, and is not strict about it."""
    # Reading the file takes long; without such an option its duration is that of the run.
    if STRICT in overrides or not any("duration" in option for option in overrides):
        return False
    try:
        data = parse_document(experiment_text, "").data
        return experiment.duration < Duration.parse(str(data["duration"]))
    except (QoslabError, QuantityError, KeyError, TypeError):
        return False
