"""Printed results: a table of measured (or simulated) and expected values, warnings and the verdict."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from qoslab.analysis import Outcome
from qoslab.analysis.averages import cell_count_text, claim_text, score
from qoslab.analysis.expected_comparison import reproduction_sentence
from qoslab.analysis.verdicts import INFORMATIVE
from qoslab.lab_kinds import lab_kind
from qoslab.model.metrics import format_value
from qoslab.results import RunFolder
from qoslab.system.printing import echo, one_line, printable

WIDTH = 200
"""Columns of output that is not a terminal, unless COLUMNS is set."""
METRIC_WIDTH, VALUE_WIDTH = 22, 12
"""Minimum columns for the name of a metric, and for a value ("not measured")."""
MIN_COLUMNS_FOR_PUBLISHED, MIN_COLUMNS_FOR_ALL = 110, 150
"""Minimum columns of the output to show the published values and their difference, and to show all columns."""
_SAME_UNIT = re.compile(r"^(\S+) (\S+) to (\S+) \2$")
"""A range with the same unit at both ends."""
MAX_NAMED_METRICS = 3
"""Maximum number of metrics listed with the reason for missing values."""
_NOT_VALID = "not valid"
"""Shown in place of the verdict on an expected value without a valid cell, as in the report."""

_STYLE = {
    "within": "green",
    "outside": "bold red",
    "impossible": "bold red",
    "undecided": "bold yellow",
    "not measured": "yellow",
    _NOT_VALID: "yellow",
    "loose bounds": "dim green",
    "informative": "dim",
}


def print_notes(outcome: Outcome) -> None:
    """Print the saved results that were not used to standard error."""
    for note in outcome.notes:
        echo(one_line(f"qoslab: {note}"), err=True)


def print_outcome(outcome: Outcome, folder: RunFolder, *, as_json: bool, verbose: bool = False) -> None:
    """Print the comparison and the path of the report: as tables, or as one JSON object.

    Columns beyond metric, measured and expected value and verdict are shown if the width allows, or if `verbose`.
    """
    print_notes(outcome)
    if as_json:
        echo(json.dumps(_outcome_json(outcome, folder), indent=2))
        return
    kind = lab_kind(outcome.lab)
    if kind.remark:
        echo(kind.remark)
    redirected = not Console().is_terminal and "COLUMNS" not in os.environ
    console = Console(width=WIDTH) if redirected else Console()
    width = MIN_COLUMNS_FOR_ALL if verbose else console.width
    if len(outcome.comparison):
        console.print(_comparison_table(outcome.comparison, kind.value_label, width))
        for reason in _missing_reasons(outcome.comparison):
            echo(reason)
    for _, averages in outcome.averages.groupby("title", sort=False):
        _print_averages(console, averages, kind.value_label, width)
    for _, pairs in outcome.pairs.groupby("title", sort=False):
        echo(_score_text(pairs))
    for warning in outcome.warnings:
        echo(one_line(f"Warning: {warning}"))
    echo(_verdict_text(outcome))
    if sentence := reproduction_sentence(outcome.comparison):
        echo(sentence)
    echo(f"Report: {_relative_path(folder.report)}")


def _verdict_text(outcome: Outcome) -> str:
    """Return the meaning of the exit status as text."""
    if not outcome.valid:
        return "\n  ".join(("The run is invalid; its values must not be trusted:", *map(one_line, outcome.reasons)))
    loose = f"; {outcome.loose} more within loose bounds, not counted" if outcome.loose else ""
    if not outcome.expected:
        none = "All its expectations have loose bounds" if outcome.loose else "It has no expectations"
        return f"The run is valid. {none}, so there is no verdict."
    late = outcome.not_measured
    left = f"; {late} not measured because the traffic was shortened (with --strict they fail)" if late else ""
    failed = (
        f"{outcome.outside} of {outcome.expected} expected values {_count_and_verb(outcome.outside)} out of tolerance"
    )
    if outcome.undecided:
        also = f"; {failed}" if outcome.outside else ""
        return (
            f"The run is valid, but {outcome.undecided} of {outcome.expected} expected values "
            f"{_count_and_verb(outcome.undecided)} undecided: most of their cells are invalid or lack "
            f"the value{also}{left}."
        )
    if outcome.outside:
        return f"The run is valid; {failed}{left}."
    return f"The run is valid; all {'measured ' if late else ''}values are within their tolerance{left}{loose}."


def _count_and_verb(count: int) -> str:
    return "is" if count == 1 else "are"


def _outcome_json(outcome: Outcome, folder: RunFolder) -> dict[str, Any]:
    return {
        "run": str(folder.path),
        "report": str(folder.report),
        "lab": outcome.lab,
        "valid": outcome.valid,
        "reasons": list(outcome.reasons),
        "warnings": list(outcome.warnings),
        "comparison": json.loads((folder.path / "comparison.json").read_text(encoding="utf-8")),
        "averages": json.loads(outcome.averages.to_json(orient="records")),
        "pairs": json.loads(outcome.pairs.to_json(orient="records")),
    }


def _comparison_table(comparison: pd.DataFrame, found: str, width: int) -> Table:
    """Return a table with a row for each metric, below its arm. `found` is the heading of measured or simulated
    values.
    """
    rows = comparison.to_dict("records")
    # Without expectations there is no verdict; without a publication its columns would be empty.
    judged = bool((comparison["tolerance"] != "").any())
    published = width >= MIN_COLUMNS_FOR_PUBLISHED and not comparison["published"].isna().all()
    predicted = width >= MIN_COLUMNS_FOR_ALL and not comparison["predicted"].isna().all()
    numbers = [found, *(["published", "difference"] if published else []), *(["predicted"] if predicted else [])]
    names = [numbers[0], *(["expected", "verdict"] if judged else []), *numbers[1:]]
    names += ["reproduction"] if published and width >= MIN_COLUMNS_FOR_ALL else []
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("metric", min_width=METRIC_WIDTH)
    for name in names:
        justify: JustifyMethod = "right" if name in numbers else "left"
        least = VALUE_WIDTH if name == found else None
        table.add_column(name, justify=justify, min_width=least, no_wrap=name == "verdict")
    arm = None
    for row in rows:
        if row["arm"] != arm:
            if arm is not None:
                table.add_section()
            arm = row["arm"]
            add_row(table, arm, *("" for _ in names), style="bold")
        cells = {
            found: (_row_value(row, "measured") or "not measured") + _interval_text(row) + _source_text(row),
            "expected": _SAME_UNIT.sub(r"\1 to \3 \2", row["tolerance"]),
            "verdict": _verdict(row),
            "published": _row_value(row, "published"),
            "difference": _difference_text(row["published"], row["measured"]),
            "predicted": _row_value(row, "predicted"),
            "reproduction": row["reproduction"],
        }
        metric = "  " + row["metric"] + (f" ({row['where']})" if row["where"] else "")
        add_row(table, metric, *(cells[name] for name in names), style=_STYLE[cells["verdict"]] if judged else "")
    return table


def _verdict(row: Mapping[Any, Any]) -> str:
    return _NOT_VALID if row["tolerance"] and row["verdict"] == INFORMATIVE else row["verdict"]


def _row_value(row: Mapping[Any, Any], key: str) -> str:
    return "" if math.isnan(row[key]) else format_value(row[key], row["unit"])


def _missing_reasons(comparison: pd.DataFrame) -> Iterator[str]:
    """Yield each reason for missing values once, with the affected metrics."""
    metrics: dict[str, list[str]] = {}
    for row in comparison.to_dict("records"):
        if row["missing"]:
            metrics.setdefault(row["missing"], []).append(f"{row['arm']} {row['metric']}")
    for reason, names in metrics.items():
        more = f" and {len(names) - MAX_NAMED_METRICS} more" if len(names) > MAX_NAMED_METRICS else ""
        yield f"Missing: {reason} ({', '.join(names[:MAX_NAMED_METRICS])}{more})"


def _print_averages(console: Console, averages: pd.DataFrame, found: str, width: int) -> None:
    """Print a table for each average, with a row for each combination of its `each`."""
    row = averages.iloc[0].to_dict()
    about = f"{row['statistic']} of {row['metric']} over cells of {row['arm']}"
    about += f" with {row['condition']}" if row["condition"] else ""
    about += "" if pd.isna(row["published"]) else f", published {format_value(row['published'], row['unit'])}"
    about += f", expected {row['tolerance']}" if row["tolerance"] else ""
    echo(f"{row['title']}: {about}")
    names = ["", found, "verdict"]
    names += ["cells", "difference"] if width >= MIN_COLUMNS_FOR_PUBLISHED else []
    names += ["lowest cell", "reproduction"] if width >= MIN_COLUMNS_FOR_ALL else []
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in names:
        table.add_column(name, justify="right" if name in ("cells", found, "difference") else "left")
    for each in averages.to_dict("records"):
        measured = "not measured" if pd.isna(each["value"]) else format_value(each["value"], each["unit"])
        lowest = "" if pd.isna(each["lowest"]) else format_value(each["lowest"], each["unit"])
        cells = {
            "": each["each"],
            found: measured + _interval_text(each),
            "verdict": _verdict(each),
            "cells": cell_count_text(each),
            "difference": _difference_text(each["published"], each["value"]),
            "lowest cell": lowest + (f" ({each['lowest_cell']})" if lowest and each["lowest_cell"] else ""),
            "reproduction": each["reproduction"] or "",
        }
        add_row(table, *(cells[name] for name in names), style=_STYLE[cells["verdict"]])
    console.print(table)


def add_row(table: Table, *cells: str, style: str) -> None:
    """Add a row. Names in the cells are from a file and not markup; long texts are folded, never truncated."""
    table.add_row(*(Text(printable(cell), overflow="fold") for cell in cells), style=style)


def _score_text(pairs: pd.DataFrame) -> str:
    """Return the score of pairs: `Title: dynamic against default, goodput.of_pir: won 40, equal 90, lost 26 of 156
    pairs of cells`.

    The published result follows, if there is one.
    """
    won, equal, lost = score(pairs)
    row = pairs.iloc[0]
    return (
        f"{row['title']}: {row['first']} against {row['second']}, {row['metric']}: "
        f"won {won}, equal {equal}, lost {lost} of {len(pairs)} pairs of cells"
        f"{f'; {statement}' if (statement := claim_text(pairs)) else ''}"
    )


def _source_text(row: dict[Any, Any]) -> str:
    """Return the number of pairs of cells in a ratio of two arms, or of cells with different parameters in a mean."""
    if "/" in row["arm"]:
        return f" ({row['n']} pair{'' if row['n'] == 1 else 's'})"
    return f" (mean of {row['n']} cells)" if row["over"] == "cells" else ""


def _interval_text(row: dict[Any, Any]) -> str:
    """Return the 95 % interval, or an empty text if there is none."""
    if pd.isna(row["low"]):
        return ""
    low, high = (format_value(row[key], row["unit"]) for key in ("low", "high"))
    return f" [{low} to {high}]"


def _difference_text(published: float, measured: float) -> str:
    if pd.isna(published) or pd.isna(measured) or published == 0:
        return ""
    return f"{(measured - published) / published:+.1%}"


def _relative_path(path: Path) -> str:
    """Return the path relative to the working directory, if that is shorter."""
    return min(str(path), os.path.relpath(path), key=len)
