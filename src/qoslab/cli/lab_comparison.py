"""Comparison of one experiment's runs in several labs: the page, the tables as CSV, and the same on the terminal."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from qoslab.cli.result_table import WIDTH, add_row
from qoslab.errors import ExitStatus
from qoslab.system.printing import echo

if TYPE_CHECKING:
    from qoslab.analysis.lab_comparison import LabComparison, LabValue
    from qoslab.model.metrics import Unit
    from qoslab.report.lab_comparison import LabComparisonPage
    from qoslab.report.matching_runs import MatchingRuns

_STYLE = {"within": "green", "outside": "bold red", "informative": "dim"}


def compare_labs(chosen: MatchingRuns, root: Path, *, as_json: bool) -> tuple[ExitStatus, Path]:
    """Analyse the runs, write page and tables to the experiment's folder below `root`, and print them. Return status
    and page.

    The status is `OUTSIDE` if labs contradict each other in a value with an expectation.
    """
    from qoslab.analysis.lab_comparison import LabRun, compare_lab_runs, fidelity_table, values_table
    from qoslab.analysis.parallel import analyse_by_helpers
    from qoslab.cli.result_table import print_notes
    from qoslab.report.html import lab_comparison_html
    from qoslab.report.lab_comparison import build_across
    from qoslab.results import tables
    from qoslab.results.csv_text import csv_text
    from qoslab.results.file_access import replace

    laid = []
    for folder in chosen.runs:
        outcome = analyse_by_helpers(folder)
        print_notes(outcome)
        laid.append(LabRun(outcome.lab, folder.manifest(), outcome, tables.read_table(folder, "metrics")))
    found = compare_lab_runs(laid)
    place = root / laid[0].manifest.experiment.name
    page = build_across(found, chosen.runs, chosen.passed, place)
    values, fidelity = values_table(found), fidelity_table(found)
    written = {
        "report": (place / "labs.html", lab_comparison_html(page)),
        "figures": (place / "labs.csv", csv_text(values)),
        "fidelity": (place / "fidelity.csv", csv_text(fidelity)),
    }
    for file, content in written.values():
        replace(file, content.encode())
    if as_json:
        document = {
            "runs": {run.lab: str(folder.path) for run, folder in zip(found.runs, chosen.runs, strict=True)},
            **{name: str(file) for name, (file, _) in written.items()},
            "passed": list(chosen.passed),
            "contrary": found.contradiction_count,
            "rows": json.loads(values.to_json(orient="records")),
            "by_metric": json.loads(fidelity.to_json(orient="records")),
        }
        echo(json.dumps(document, indent=2))
    else:
        _print(found, page)
        echo(f"Tables: {written['figures'][0]}, {written['fidelity'][0]}")
        echo(f"Report: {written['report'][0]}")
    return ExitStatus.OUTSIDE if found.contradiction_count else ExitStatus.WITHIN, written["report"][0]


def _print(found: LabComparison, page: LabComparisonPage) -> None:
    for run in page.runs:
        echo(f"{run.lab}: {run.when}, {run.cells}, {run.repetitions} repetition{'' if run.repetitions == 1 else 's'}")
        for reason in run.left_out:
            echo(f"  left out: {reason}")
    for reason in page.passed:
        echo(f"skipped: {reason}")
    console = Console() if Console().is_terminal else Console(width=WIDTH)
    console.print(_comparison_table(found))
    if found.fidelity:
        console.print(_fidelity_table(found))
    echo(page.verdict.sentence)


def _comparison_table(found: LabComparison) -> Table:
    from qoslab.model.metrics import format_value
    from qoslab.report import text
    from qoslab.report.lab_comparison import KINDS

    table = _new_table(
        "arm", "figure", "predicted", "published", *(run.lab for run in found.runs), "margin", "agreement"
    )
    arm = None
    for value in found.values:
        if not value.expected:
            continue
        if arm is not None and value.arm != arm:
            table.add_section()
        predicted, published = (
            "" if math.isnan(each) else format_value(each, value.unit) for each in (value.predicted, value.published)
        )
        agreed = [(each.lab, each.agreement) for each in value.labs if each.agreement is not None]
        words = [
            (f"{lab} " if len(found.runs) > 2 else "")
            + each.word
            + (f", {text.signed_difference(each.difference, value.unit)}" if each.difference else "")
            + (f", p = {each.p_value:.2g}" if not math.isnan(each.p_value) else "")
            for lab, each in agreed
        ]
        margin = "" if value.margin is None else f"{text.margin(value.margin.value, value.unit)}"
        worst = next((each.word for _, each in agreed if each.is_contradiction), agreed[0][1].word if agreed else "")
        add_row(
            table,
            value.arm if value.arm != arm else "",
            value.metric + (f" ({value.where})" if value.where else ""),
            predicted or value.tolerance,
            published,
            *(_measured_text(each, value.unit) for each in value.labs),
            margin,
            "; ".join(words) or "not in two labs",
            style=_STYLE[KINDS.get(worst, "informative")],
        )
        arm = value.arm
    return table


def _measured_text(each: LabValue, unit: Unit) -> str:
    from qoslab.model.metrics import format_value

    found = each.estimate
    if found is None:
        return "not measured"
    numbers = [each for each in (found.value, found.low, found.high) if not math.isnan(each)]
    value, *ends = (format_value(each, unit) for each in numbers)
    return f"{value} [{' to '.join(ends)}]" if ends else value


def _fidelity_table(found: LabComparison) -> Table:
    """Return the table of the fidelity of metrics with an expectation; the page has all metrics."""
    from qoslab.report import text

    table = _new_table("metric", "lab", "median difference", "greatest", "of", "figures")
    for each in found.fidelity:
        if each.metric not in found.expected_metrics:
            continue
        shown = (text.share(each.median), text.share(each.greatest), each.greatest_of, str(each.figures))
        add_row(table, each.metric, f"{each.lab} against {each.against}", *shown, style="")
    return table


def _new_table(*names: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in names:
        table.add_column(Text(name, overflow="fold"))
    return table
