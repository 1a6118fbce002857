"""Notes of an experiment, with measured values filled in."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pandas as pd

from qoslab.analysis.measured_values import measured_value
from qoslab.model.comparison import NOTE_VALUE, NoteValue
from qoslab.model.expectations import selection_text
from qoslab.model.experiment import Experiment
from qoslab.model.matrix import Scalar, as_scalar
from qoslab.model.metrics import Reference
from qoslab.report import text
from qoslab.report.arms import arm_title
from qoslab.results import CellSummary


@dataclass(frozen=True)
class NoteText:
    """Text of the experiment with its values filled in."""

    title: str
    paragraphs: list[str]
    columns: list[str]
    rows: list[tuple[str, list[str]]]
    """Title of the arm and its values."""


class Shown(Protocol):
    """Function that returns the measured value of an arm's metric in words."""

    def __call__(self, arm: str, metric: str, where: Mapping[str, Scalar] | None = None) -> str:
        """Return the value; `where` restricts it to cells with these parameter values."""


def notes(
    experiment: Experiment, metrics: pd.DataFrame, invalid: Collection[str] = (), cells: Sequence[CellSummary] = ()
) -> list[NoteText]:
    """Return the experiment's notes with measured values; cells in `invalid` count only if an arm has no other.

    Paragraphs and rows about arms that were not run are left out, and so are notes without any others.
    """
    run = set(metrics["arm"])
    shown = values(metrics, invalid)
    found = []
    for note in experiment.notes:
        table = note.table
        found.append(
            NoteText(
                title=note.title,
                paragraphs=fill_paragraphs(note.text, run, shown),
                columns=list(table.metrics) if table else [],
                rows=[
                    (
                        ", ".join(filter(None, (arm_title(experiment, arm), text.bind_unit(selection_text(where))))),
                        [shown(arm, metric, where) for metric in table.metrics],
                    )
                    for arm in (table.arms if table else ())
                    if table and arm in run
                    for where in (_combinations(cells, arm, table.each) if table.each else [{}])
                ],
            )
        )
    return [note for note in found if note.paragraphs or note.rows]


def values(metrics: pd.DataFrame, invalid: Collection[str]) -> Shown:
    """Return a function that returns the measured value of an arm's metric in words."""
    metrics = metrics.assign(valid=~metrics["cell"].isin(list(invalid)))

    def value_text_of(arm: str, metric: str, where: Mapping[str, Scalar] | None = None) -> str:
        return text.value_text(measured_value(metrics, arm, metric, where).value, Reference.parse(metric).metric.unit)

    return value_text_of


def fill_paragraphs(written: str, run: Collection[str], shown: Shown) -> list[str]:
    """Return the paragraphs of a text about arms that were run, with measured values."""

    def figure(match: re.Match[str]) -> str:
        wanted = NoteValue.from_match(match)
        return shown(wanted.arm, wanted.metric, {name: as_scalar(value) for name, value in wanted.where})

    paragraphs = [
        " ".join(each.split())
        for each in written.strip().split("\n\n")
        if each.strip() and set(run).issuperset(match["arm"] for match in NOTE_VALUE.finditer(each))
    ]
    return [NOTE_VALUE.sub(figure, each) for each in paragraphs]


def _combinations(cells: Iterable[CellSummary], arm: str, names: Sequence[str]) -> list[dict[str, Scalar]]:
    """Return the distinct values of these parameters in the arm's cells."""
    found: list[dict[str, Scalar]] = []
    for cell in cells:
        values = {name: value for name, value in cell.parameters.items() if name in names}
        if cell.arm == arm and values not in found:
            found.append(values)
    return found
