"""The table of a sweep's cells."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from qoslab.model.expressions import show_value
from qoslab.report import text
from qoslab.results import Manifest

HEADLINE = "goodput.sum"
"""Metric in the table."""


@dataclass(frozen=True)
class CellRow:
    """One cell."""

    arm: str
    values: list[str]
    """Values of each parameter; empty if the cell lacks one."""
    repetition: int
    goodput: str
    remark: str
    """Reason for an invalid cell, or the number of attempts."""
    folder: str


@dataclass(frozen=True)
class CellTable:
    """All cells of a sweep."""

    parameters: list[str]
    rows: list[CellRow]
    note: str


def cell_table(manifest: Manifest, metrics: pd.DataFrame, problems: dict[str, str]) -> CellTable | None:
    """Return the table; None for a run without parameters. `problems` has the reasons of invalid cells, by name."""
    parameters = list(dict.fromkeys(name for cell in manifest.cells for name in cell.parameters))
    if not parameters:
        return None
    chosen = metrics[metrics["metric"] == HEADLINE]
    goodputs = dict(zip(chosen["cell"], chosen["value"], strict=True))
    rows = []
    for cell in manifest.cells:
        values = cell.values
        remark = problems.get(cell.name, "")
        if cell.earlier:
            tried = f"{len(cell.earlier) + 1} attempts"
            remark = f"{remark} ({tried})" if remark else tried
        rows.append(
            CellRow(
                arm=cell.arm,
                values=[text.bind_unit(show_value(values[name])) if name in values else "" for name in parameters],
                repetition=cell.repetition,
                goodput=text.rate(goodputs[cell.name]) if cell.name in goodputs else text.NONE,
                remark=remark,
                folder=cell.folder,
            )
        )
    counted = sum(cell.name not in problems for cell in manifest.cells)
    again = sum(bool(cell.earlier) for cell in manifest.cells)
    note = f"{counted} of {len(rows)} cells are valid."
    if counted < len(rows):
        note += " The rows of the invalid cells give the reason; no mean includes them."
    if again:
        note += f" {again} were run more than once; every attempt is saved in its folder."
    return CellTable(parameters, rows, note)
