"""`qoslab advise`: number of repetitions needed to detect a difference."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from qoslab.cli.completion import complete_metrics, complete_runs
from qoslab.cli.output_options import json_option
from qoslab.cli.places import RUNS
from qoslab.errors import UserError
from qoslab.model.metrics import QUANTITY_BY_UNIT, Reference, Unit, as_float, format_value
from qoslab.model.units import Percent, QuantityError
from qoslab.system.printing import echo

if TYPE_CHECKING:
    import pandas as pd


@click.command()
@click.argument("run", shell_complete=complete_runs)
@click.argument("metric", shell_complete=complete_metrics)
@click.option(
    "--difference",
    required=True,
    metavar="VALUE",
    help="Smallest difference to detect, in the unit of the metric (20 kb/s) or relative to each value (2 %).",
)
@json_option
def command(run: str, metric: str, difference: str, as_json: bool) -> None:
    """Estimate the number of repetitions needed to detect a difference of METRIC between two cells.

    RUN is a run folder or an experiment name (its latest run), with at least two repetitions. METRIC is one of
    `qoslab schema --metrics`. The estimate is printed for each cell and is based on the spread of its valid repetitions
    (docs/reference/statistics.md).
    """
    from qoslab.results import find_run

    try:
        reference = Reference.parse(metric)
    except KeyError:
        raise UserError(
            f'found the unknown metric "{metric}"', hint="`qoslab schema --metrics` lists all metrics"
        ) from None
    unit = reference.metric.unit
    relative, least = _parse_difference(difference, unit)
    folder = find_run(RUNS, run)

    from qoslab.analysis import analyse
    from qoslab.cli.result_table import print_notes
    from qoslab.results.tables import read_table

    print_notes(analyse(folder))
    valid = {cell.name for cell in folder.manifest().cells if cell.valid}
    values = read_table(folder, "metrics")
    values = values[(values["metric"] == str(reference)) & values["cell"].isin(list(valid))]
    values = values[values["value"].notna()]
    rows = _advice_text(values, relative=relative, least=least)
    if not rows:
        raise UserError(
            f"{folder.path} has no cell with two valid repetitions of {reference}",
            hint="run at least two first: `qoslab run EXPERIMENT --repetitions 4`",
        )
    if as_json:
        echo(json.dumps({"metric": str(reference), "unit": unit, "cells": rows}, indent=2))
        return
    for row in rows:
        echo(
            f"{row['cell']}: {row['repetitions']} repetitions for a difference of "
            f"{format_value(row['difference'], unit)} (median {format_value(row['median'], unit)} of {row['n']}, "
            f"standard deviation {format_value(row['deviation'], unit)})"
        )


def _advice_text(metric_values: pd.DataFrame, *, relative: bool, least: float) -> list[dict[str, Any]]:
    from qoslab.analysis.statistics import required_repetitions

    rows: list[dict[str, Any]] = []
    names = metric_values["cell"].str.rsplit("/", n=1).str[0]
    for name, values in metric_values.groupby(names, sort=False)["value"]:
        if len(values) < 2:
            continue
        median = float(values.median())
        wanted = least * abs(median) if relative else least
        if wanted <= 0:
            continue
        rows.append(
            {
                "cell": name,
                "n": len(values),
                "median": median,
                "deviation": float(values.std()),
                "difference": wanted,
                "repetitions": required_repetitions(values.to_numpy(dtype=float), wanted),
            }
        )
    return rows


def _parse_difference(text: str, unit: Unit) -> tuple[bool, float]:
    """Return whether the difference is a share of the value, and its size."""
    if text.rstrip().endswith("%") and unit != "fraction":
        return True, _check_positive(Percent.parse(text).fraction, text)
    try:
        value = as_float(QUANTITY_BY_UNIT[unit].parse(text), unit) if unit in QUANTITY_BY_UNIT else float(text)
    except (QuantityError, ValueError) as error:
        raise UserError(
            f'--difference: found "{text}", expected a value in {unit}, or a share such as "2 %"', hint=str(error)
        ) from None
    return False, _check_positive(value, text)


def _check_positive(value: float, text: str) -> float:
    if not value > 0:
        raise UserError(f'--difference: found "{text}", expected one above 0')
    return value
