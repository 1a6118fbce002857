"""Prints measured (or simulated) beside published figures."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from qoslab.analysis import Outcome
from qoslab.analysis.averages import cells_counted, claim, score
from qoslab.analysis.compare import reproduced
from qoslab.analysis.verdicts import INFORMATIVE
from qoslab.labs import lab_kind
from qoslab.model.metrics import format_value
from qoslab.printing import echo, printable
from qoslab.results import RunFolder

WIDTH = 200
"""Columns, where standard output is no terminal."""

FIGURE_WIDTH = 24
"""Columns at least for the name of a figure."""

_STYLE = {
    "within": "green",
    "outside": "bold red",
    "impossible": "bold red",
    "undecided": "bold yellow",
    "not measured": "yellow",
    "wide": "dim green",
    "informative": "dim",
}


def print_outcome(outcome: Outcome, folder: RunFolder, *, as_json: bool) -> None:
    """Print the comparison and where the report is: a table, or one JSON object with the same."""
    if as_json:
        echo(json.dumps(_as_json(outcome, folder), indent=2))
        return
    kind = lab_kind(outcome.lab)
    if kind.remark:
        echo(kind.remark)
    # A table that is folded to 80 columns is no use in a file or a pipe.
    console = Console() if Console().is_terminal else Console(width=WIDTH)
    if len(outcome.comparison):
        console.print(_comparison(outcome.comparison, kind.found))
    for _, averages in outcome.averages.groupby("title", sort=False):
        _print_averages(console, averages, kind.found)
    for _, pairs in outcome.pairs.groupby("title", sort=False):
        echo(_score(pairs))
    for warning in outcome.warnings:
        echo(f"Warning: {warning}")
    echo(_verdict(outcome))
    if sentence := reproduced(outcome.comparison):
        echo(sentence)
    echo(f"Report: {_near(folder.report)}")


def _verdict(outcome: Outcome) -> str:
    """What the exit status says, in words."""
    if not outcome.valid:
        return "\n  ".join(("The run is invalid; its figures must not be trusted:", *outcome.reasons))
    wide = f"; {outcome.wide} more within wide bounds, not counted" if outcome.wide else ""
    if not outcome.expected:
        none = "All its expectations have wide bounds" if outcome.wide else "It has no expectations"
        return f"The run is valid. {none}, so there is no verdict."
    late = outcome.not_measured
    left = f"; {late} not measured, as the traffic was shortened (with --strict they fail)" if late else ""
    failed = f"{outcome.outside} of {outcome.expected} expected values {_are(outcome.outside)} out of tolerance"
    if outcome.undecided:
        also = f"; {failed}" if outcome.outside else ""
        return (
            f"The run is valid, but {outcome.undecided} of {outcome.expected} expected values "
            f"{_are(outcome.undecided)} undecided: most of their cells are invalid or lack the value{also}{left}."
        )
    if outcome.outside:
        return f"The run is valid; {failed}{left}."
    return f"The run is valid; all {'measured ' if late else ''}values are within their tolerance{left}{wide}."


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _as_json(outcome: Outcome, folder: RunFolder) -> dict[str, Any]:
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


def _comparison(comparison: pd.DataFrame, found: str) -> Table:
    """A row for each figure, in sections by arm; `found` heads what was measured, or simulated."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    # Without a publication its columns would be empty.
    named = not comparison["published"].isna().all()
    names = ("published", found, "difference") if named else (found,)
    predicted = not comparison["predicted"].isna().all()
    names = ("predicted", *names) if predicted else names
    # Where nothing is expected there is no verdict.
    judged = not (comparison["verdict"] == INFORMATIVE).all()
    ends = (*(("tolerance", "verdict") if judged else ()), *(["publication"] if named else []))
    for name in ("arm", "figure", *names, *ends):
        width = FIGURE_WIDTH if name == "figure" else None
        justify: JustifyMethod = "right" if name in names else "left"
        table.add_column(Text(name, overflow="fold"), justify=justify, min_width=width)
    arm = None
    for row in comparison.to_dict("records"):
        if arm is not None and row["arm"] != arm:
            table.add_section()
        name = row["arm"] if row["arm"] != arm else ""
        arm = row["arm"]
        foreseen, published, measured = (
            "" if math.isnan(row[key]) else format_value(row[key], row["unit"])
            for key in ("predicted", "published", "measured")
        )
        _add_row(
            table,
            name,
            row["metric"] + (f" ({row['where']})" if row["where"] else ""),
            *([foreseen] if predicted else []),
            *([published] if named else []),
            (measured or "not measured")
            + _interval(row)
            + _pairs(row)
            + (f" (missing: {row['missing']})" if row["missing"] else ""),
            *([_difference(row["published"], row["measured"])] if named else []),
            *([row["tolerance"], row["verdict"]] if judged else []),
            *([row["publication"]] if named else []),
            style=_STYLE[row["verdict"]] if judged else "",
        )
    return table


def _print_averages(console: Console, averages: pd.DataFrame, found: str) -> None:
    """A table for each average, with a row for each combination of its `each`."""
    row = averages.iloc[0].to_dict()
    about = f"{row['statistic']} of {row['metric']} over cells of {row['arm']}"
    about += f" with {row['condition']}" if row["condition"] else ""
    about += "" if pd.isna(row["published"]) else f", published {format_value(row['published'], row['unit'])}"
    about += f", expected {row['tolerance']}" if row["tolerance"] else ""
    echo(f"{row['title']}: {about}")
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("", "cells", found, "difference", "lowest cell", "verdict", "publication"):
        table.add_column(name, justify="right" if name in ("cells", found, "difference") else "left")
    for each in averages.to_dict("records"):
        measured = "not measured" if pd.isna(each["value"]) else format_value(each["value"], each["unit"])
        lowest = "" if pd.isna(each["lowest"]) else format_value(each["lowest"], each["unit"])
        _add_row(
            table,
            each["each"],
            cells_counted(each),
            measured + _interval(each),
            _difference(each["published"], each["value"]),
            lowest + (f" ({each['lowest_cell']})" if lowest and each["lowest_cell"] else ""),
            each["verdict"],
            each["publication"] or "",
            style=_STYLE[each["verdict"]],
        )
    console.print(table)


def _add_row(table: Table, *cells: str, style: str) -> None:
    """Names in the cells are a file's, and no markup; what is too long for a column is folded, never cut off."""
    table.add_row(*(Text(printable(cell), overflow="fold") for cell in cells), style=style)


def _score(pairs: pd.DataFrame) -> str:
    """`Title: dynamic against default, goodput.of_pir: won 40, equal 90, lost 26 of 156 pairs of cells`.

    Behind it what the publication has, where that is known.
    """
    won, equal, lost = score(pairs)
    row = pairs.iloc[0]
    return (
        f"{row['title']}: {row['first']} against {row['second']}, {row['metric']}: "
        f"won {won}, equal {equal}, lost {lost} of {len(pairs)} pairs of cells"
        f"{f'; {said}' if (said := claim(pairs)) else ''}"
    )


def _pairs(row: dict[Any, Any]) -> str:
    """Of how many pairs of cells a ratio of two arms is."""
    return f" ({row['n']} pair{'' if row['n'] == 1 else 's'})" if "/" in row["arm"] else ""


def _interval(row: dict[Any, Any]) -> str:
    """The 95 % interval, where there is one."""
    if pd.isna(row["low"]):
        return ""
    low, high = (format_value(row[key], row["unit"]) for key in ("low", "high"))
    return f" [{low} to {high}]"


def _difference(published: float, measured: float) -> str:
    if pd.isna(published) or pd.isna(measured) or published == 0:
        return ""
    return f"{(measured - published) / published:+.1%}"


def _near(path: Path) -> str:
    """The path as seen from the working directory, where that is shorter."""
    return min(str(path), os.path.relpath(path), key=len)
