"""Results of a run by cell, in place of the report's by arm."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qoslab.analysis import Outcome
from qoslab.model.expressions import Value, show_value
from qoslab.model.metrics import format_value
from qoslab.results import CellSummary

AVERAGES = "averages over cells"
"""The name under which averages are."""


@dataclass(frozen=True)
class ExpectedResult:
    """An expectation of some cells, and its result."""

    name: str
    text: str
    """Measured and expected value."""
    verdict: str
    """See `qoslab.analysis.verdicts`."""


@dataclass(frozen=True)
class CellResult:
    """Result of a cell."""

    was_run: bool
    reasons: tuple[str, ...]
    """Reasons why a cell is invalid or was not run; empty for a valid cell."""
    skip_reason: str
    """Reason why the cell was not needed; empty if it was."""
    expected: tuple[ExpectedResult, ...]
    """Expectations of its arm, over all cells that each expectation covers."""


def cell_results(cells: Sequence[CellSummary], outcome: Outcome) -> dict[str, CellResult]:
    """Return the results by name of the cell; under `AVERAGES` the expectations of averages."""
    rows = [row for row in outcome.comparison.to_dict("records") if row["tolerance"]]
    found = {cell.name: _cell_result(cell, outcome, rows) for cell in cells}
    averages = tuple(
        ExpectedResult(f"{row['title']} {row['each']}".strip(), _result_text(row, row["value"]), row["verdict"])
        for row in outcome.averages.to_dict("records")
        if row["tolerance"]
    )
    return {**found, AVERAGES: CellResult(True, (), "", averages)}


def _cell_result(cell: CellSummary, outcome: Outcome, rows: Sequence[Mapping[Any, Any]]) -> CellResult:
    invalid = [each.removeprefix(f"{cell.name}: ") for each in outcome.reasons if each.startswith(f"{cell.name}: ")]
    reasons = tuple(invalid) or (() if cell.valid or cell.spared else cell.reasons or ("it is not valid",))
    expected = tuple(
        ExpectedResult(
            f"{row['metric']} ({row['where']})" if row["where"] else row["metric"], _result_text(row), row["verdict"]
        )
        for row in rows
        if cell.arm in row["arm"].split("/") and _selects(row["where"], cell.values)
    )
    return CellResult(cell.record is not None, reasons, cell.spared, expected)


def _result_text(row: Mapping[Any, Any], measured: float | None = None) -> str:
    value = row["measured"] if measured is None else measured
    metric_value = "not measured" if value is None or math.isnan(value) else format_value(value, row["unit"])
    why = f" ({row['missing']})" if row.get("missing") else ""
    return f"{metric_value}{why}, expected {row['tolerance']}"


def _selects(where: str, values: Mapping[str, Value]) -> bool:
    """Return whether a selection, as the comparison has it (`rtt = 50 ms or 100 ms, pir = 1 Mb/s`), has such a cell in
    it.
    """
    known = {name: show_value(value) for name, value in values.items()}
    for part in filter(None, where.split(", ")):
        name, _, wanted = part.partition(" = ")
        if known.get(name) not in wanted.split(" or "):
            return False
    return True
