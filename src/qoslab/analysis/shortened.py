"""Runs with less traffic than their experiment file requests, and expected values that they cannot reach."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from qoslab.analysis.averages import averages_table
from qoslab.analysis.missing import too_short
from qoslab.analysis.verdicts import NOT_MEASURED, OUTSIDE, UNDECIDED
from qoslab.errors import QoslabError
from qoslab.model.comparison import Average, Comparison, Pair
from qoslab.model.units import Duration, QuantityError
from qoslab.results import CellSummary, Manifest
from qoslab.schema.document import parse_document

_FAILED = (OUTSIDE, UNDECIDED)


def shortened(manifest: Manifest, experiment_text: str) -> bool:
    """Return whether there was less traffic than the experiment's file requests."""
    # Reading the file takes long; without such an option its duration is that of the run.
    if not any("duration" in option for option in manifest.overrides):
        return False
    try:
        data = parse_document(experiment_text, "").data
        return manifest.experiment.duration < Duration.parse(str(data["duration"]))
    except (QoslabError, QuantityError, KeyError, TypeError):
        return False


def comparison_of_shortened(comparison: pd.DataFrame) -> pd.DataFrame:
    """Return the comparison, with `not measured` as the verdict of values for which the traffic was too short."""
    late = comparison["missing"].map(too_short).astype(bool) & comparison["measured"].isna()
    verdicts = comparison["verdict"].mask(late & comparison["verdict"].isin(_FAILED), NOT_MEASURED)
    return comparison.assign(verdict=verdicts)


def averages_of_shortened(
    averages: pd.DataFrame, wanted: Comparison, metrics: pd.DataFrame, cells: Sequence[CellSummary]
) -> pd.DataFrame:
    """Return the averages, with `not measured` for those that fail only due to values for which the traffic was too
    short.

    An average still fails if it is out of tolerance over the cells that have their value.
    """
    key = ["title", "arm", "each", "metric"]
    late = metrics[metrics["missing"].fillna("").map(too_short).astype(bool)]
    failed: list[pd.DataFrame] = []
    unmeasured = False
    judged: list[Average | Pair] = [*wanted.averages, *wanted.pairs]
    for each in judged:
        without = set(late.loc[late["metric"] == each.metric, "cell"])
        unmeasured = unmeasured or any(cell.name in without for cell in cells)
        rest = _table(each, metrics, [cell for cell in cells if cell.name not in without])
        failed.append(rest.loc[rest["verdict"].isin(_FAILED), key])
    if not unmeasured:
        return averages
    still = set(pd.concat(failed).itertuples(index=False, name=None))
    late_rows = [
        verdict in _FAILED and row not in still
        for verdict, row in zip(averages["verdict"], averages[key].itertuples(index=False, name=None), strict=True)
    ]
    return averages.assign(verdict=averages["verdict"].mask(pd.Series(late_rows, averages.index), NOT_MEASURED))


def _table(wanted: Average | Pair, metrics: pd.DataFrame, cells: Sequence[CellSummary]) -> pd.DataFrame:
    if isinstance(wanted, Pair):
        return averages_table((), metrics, cells, (wanted,))
    return averages_table((wanted,), metrics, cells)
