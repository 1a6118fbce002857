"""Comparison of one experiment in several labs: each value of each lab next to prediction and publication, and the
agreement of the labs. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd

from qoslab.analysis import statistics
from qoslab.analysis.equivalence import Agreement, Margin, agreement, expectation_margin, relative_difference
from qoslab.analysis.measured_values import (
    CellKey,
    Planned,
    Where,
    cell_keys,
    matched_cells,
    pairing_parameters,
    select_rows,
)
from qoslab.analysis.run_analysis import Outcome
from qoslab.analysis.statistics import Estimate
from qoslab.analysis.verdicts import INFORMATIVE, OUTSIDE, WITHIN
from qoslab.model.expectations import Expectation
from qoslab.model.metrics import Reference, Unit
from qoslab.results import Manifest

COLUMNS = [
    *("arm", "where", "metric", "unit", "predicted", "published", "tolerance", "expected"),
    *("lab", "measured", "low", "high", "n", "verdict"),
    *("against", "difference", "margin", "basis", "p", "agreement", "untested"),
]
FIDELITY_COLUMNS = ["metric", "unit", "lab", "against", "median", "greatest", "greatest_of", "figures"]

Key = tuple[str, str, str]
"""Arm, metric, and description of the cells."""
Repetitions = dict[int, float]


@dataclass(frozen=True)
class LabRun:
    """An analysed run in one lab."""

    lab: str
    """Kind of the lab; see `qoslab.lab_kinds`."""
    manifest: Manifest
    outcome: Outcome
    metrics: pd.DataFrame
    """The lab's table `metrics`."""

    @property
    def valid(self) -> pd.DataFrame:
        """Rows of valid cells with a value."""
        cells, found = self.metrics["cell"], self.metrics
        return found[~cells.isin(list(self.outcome.invalid)) & found["value"].notna()]


@dataclass(frozen=True)
class LabValue:
    """A value in one lab."""

    lab: str
    estimate: Estimate | None
    """Estimate over the valid cells; None if no valid cell has the value."""
    verdict: str
    """Verdict on the value; `INFORMATIVE` without an expectation or without a value."""
    agreement: Agreement | None = None
    """Agreement with the first lab; None for the first lab itself, and if one of the two has no value."""


@dataclass(frozen=True)
class ComparedValue:
    """A value of the experiment in all labs."""

    arm: str
    metric: str
    where: str
    """Description of the cells of the arm; empty for all."""
    unit: Unit
    predicted: float
    published: float
    tolerance: str
    reason: str
    expected: bool
    """True if the value has an expectation; otherwise it decides nothing."""
    margin: Margin | None
    """Margin of equivalence; None if fewer than two labs have the value."""
    labs: tuple[LabValue, ...]
    """Labs in the order of the runs; the others are compared with the first."""

    @property
    def is_contradiction(self) -> bool:
        """True if a lab contradicts the first."""
        return any(each.agreement is not None and each.agreement.is_contradiction for each in self.labs)


@dataclass(frozen=True)
class Fidelity:
    """Closeness of a lab to the first one in a metric."""

    metric: str
    """Name of the metric, without selector."""
    unit: Unit
    lab: str
    against: str
    median: float
    """Median of the relative differences of all values, cell by cell."""
    greatest: float
    greatest_of: str
    """Place of the greatest difference: cell and value."""
    figures: int


@dataclass(frozen=True)
class LabComparison:
    """Results of several labs for one experiment."""

    runs: tuple[LabRun, ...]
    """Runs; the others are compared with the first."""
    values: tuple[ComparedValue, ...]
    fidelity: tuple[Fidelity, ...]

    @property
    def contradiction_count(self) -> int:
        """Return the number of values with an expectation on which the labs contradict each other."""
        return sum(each.is_contradiction for each in self.values if each.expected)

    @property
    def expected_metrics(self) -> frozenset[str]:
        """Names of the metrics with an expectation, without selectors."""
        return frozenset(Reference.parse(each.metric).metric.name for each in self.values if each.expected)

    @property
    def single_lab_count(self) -> int:
        """Return the number of values with an expectation that fewer than two labs have."""
        return sum(each.expected and each.margin is None for each in self.values)

    def count(self, word: str) -> int:
        """Return the number of comparisons with this result, of values with an expectation."""
        found = (each.agreement for value in self.values if value.expected for each in value.labs)
        return sum(each is not None and each.word == word for each in found)


def compare_lab_runs(runs: Sequence[LabRun]) -> LabComparison:
    """Compare runs of different labs; expectations and published values are those of the newest run."""
    newest = sorted(runs, key=lambda run: run.manifest.started, reverse=True)
    rows: dict[Key, tuple[dict[str, Any], Expectation | None, Where]] = {}
    for run in newest:
        for key, row in _rows(run):
            rows.setdefault(key, row)
    order = {arm.name: number for number, arm in enumerate(newest[0].manifest.experiment.arms)}
    ordered = sorted(rows.values(), key=lambda each: order.get(str(each[0]["arm"]), len(order)))
    valid = [run.valid for run in runs]
    values = tuple(_figure(runs, valid, *each) for each in ordered)
    return LabComparison(tuple(runs), values, tuple(_fidelity(runs, valid)))


def _rows(run: LabRun) -> Iterator[tuple[Key, tuple[dict[str, Any], Expectation | None, Where]]]:
    """Yield the rows of a run's comparison, each with its expectation and the description of its cells."""
    experiment = run.manifest.experiment
    expected: dict[Key, Expectation] = {}
    if experiment.compare is not None:
        for each in Planned(run.manifest.cells).expand_expectations_of_cells(experiment.compare, experiment.duration):
            expected[each.arm, each.metric, each.selection] = each
    published = {(each.arm, each.metric, each.selection): each.where for each in run.manifest.published}
    for row in run.outcome.comparison.to_dict("records"):
        key = (row["arm"], row["metric"], row["where"])
        expectation = expected.get(key)
        where = expectation.where if expectation is not None else published.get(key, {})
        yield key, ({str(name): value for name, value in row.items()}, expectation, where)


def _figure(
    runs: Sequence[LabRun],
    valid: Sequence[pd.DataFrame],
    row: Mapping[str, Any],
    expectation: Expectation | None,
    where: Where,
) -> ComparedValue:
    arm, metric, unit = row["arm"], row["metric"], cast(Unit, row["unit"])
    found = [_Values.from_metrics(metrics, arm, metric, where) for metrics in valid]
    shared = _common_cells(found)
    estimates = [each.estimate(shared) for each in found]
    first = estimates[0]
    known = [abs(each.value) for each in estimates if each is not None]
    margin = expectation_margin(expectation, metric, unit, max(known)) if len(known) > 1 else None
    labs = []
    for run, values, estimate in zip(runs, found, estimates, strict=True):
        agreed = None
        if estimate is not None and first is not None and values is not found[0] and margin is not None:
            pairs = found[0].repetitions(shared), values.repetitions(shared)
            agreed = agreement(*pairs, estimate.value - first.value, margin.value)
        labs.append(LabValue(run.lab, estimate, _verdict(expectation, estimate), agreed))
    return ComparedValue(
        arm,
        metric,
        row["where"],
        unit,
        row["predicted"],
        row["published"],
        row["tolerance"],
        row["reason"],
        expectation is not None,
        margin,
        tuple(labs),
    )


def _verdict(expectation: Expectation | None, estimate: Estimate | None) -> str:
    if expectation is None or estimate is None:
        return INFORMATIVE
    return WITHIN if expectation.is_within_bounds(estimate.value) else OUTSIDE


class _Values:
    """Values of a metric in one lab, for an arm or a ratio of two arms."""

    def __init__(self, sides: tuple[dict[str, Repetitions], ...]) -> None:
        self._sides = sides
        """Values of the repetitions, by cell without its repetition."""

    @classmethod
    def from_metrics(cls, metrics: pd.DataFrame, arm: str, metric: str, where: Where) -> _Values:
        """Return the values of an arm; for `A/B` those of the common cells of both, by parameters and repetition."""
        sides = [_group_by_cell(metrics, each, metric, where) for each in arm.split("/")]
        keys = [[key for repetitions in side.values() for key in repetitions] for side in sides]
        every = [cell_keys(metrics[metrics["arm"] == each]) for each in arm.split("/")]
        shared = matched_cells(keys, pairing_parameters(every))
        return cls(
            tuple(
                {
                    place: {key[1]: value for key, value in repetitions.items() if key in kept}
                    for place, repetitions in side.items()
                    if any(key in kept for key in repetitions)
                }
                for side, kept in zip(sides, map(set, shared), strict=True)
            )
        )

    @property
    def cells(self) -> tuple[set[str], ...]:
        return tuple(set(side) for side in self._sides)

    def estimate(self, shared: tuple[set[str], ...]) -> Estimate | None:
        """Return the estimate over these cells, as in a run's comparison; None if there are no values, or if the
        denominator is 0.
        """
        groups = [
            [list(side[cell].values()) for cell in side if cell in kept] for side, kept in self._pair_with_sides(shared)
        ]
        if not all(groups):
            return None
        estimate = statistics.average(groups[0]) if len(groups) == 1 else statistics.ratio(groups[0], groups[1])
        return None if math.isnan(estimate.value) else estimate

    def repetitions(self, shared: tuple[set[str], ...]) -> list[float]:
        """Return the value of each repetition that all cells have; if there is none, that of the medians."""
        sides = [[side[cell] for cell in side if cell in kept] for side, kept in self._pair_with_sides(shared)]
        common = set.intersection(*(set(cell) for side in sides for cell in side))
        means = [[float(np.mean([cell[number] for cell in side])) for number in sorted(common)] for side in sides]
        found = means[0] if len(means) == 1 else [a / b if b else math.inf for a, b in zip(*means, strict=True)]
        estimate = self.estimate(shared)
        return found or ([estimate.value] if estimate is not None else [])

    def _pair_with_sides(self, shared: tuple[set[str], ...]) -> Iterable[tuple[dict[str, Repetitions], set[str]]]:
        return zip(self._sides, shared, strict=True)


def _group_by_cell(metrics: pd.DataFrame, arm: str, metric: str, where: Where) -> dict[str, dict[CellKey, float]]:
    """Group the values of repetitions by cell without its repetition."""
    rows = select_rows(metrics, arm, where)
    rows = rows[rows["metric"] == metric]
    found: dict[str, dict[CellKey, float]] = {}
    for cell, key, value in zip(rows["cell"], cell_keys(rows), rows["value"], strict=True):
        found.setdefault(_place(cell), {})[key] = float(value)
    return found


def _place(cell: str) -> str:
    """Return the name of a cell without the repetition."""
    return cell.rpartition("/")[0]


def _common_cells(found: Sequence[_Values]) -> tuple[set[str], ...]:
    """Return the cells that all labs with any cells have, so that values are from the same cells in each lab."""
    some = [each.cells for each in found if all(each.cells)]
    if not some:
        return tuple(set() for _ in found[0].cells)
    return tuple(set.intersection(*(cells[side] for cells in some)) for side in range(len(some[0])))


def _fidelity(runs: Sequence[LabRun], valid: Sequence[pd.DataFrame]) -> Iterator[Fidelity]:
    """Yield the fidelity of each further lab and each metric."""
    medians = [_medians(metrics) for metrics in valid]
    for run, found in zip(runs[1:], medians[1:], strict=True):
        by_metric: dict[str, dict[tuple[str, float, float], tuple[float, str]]] = {}
        for (place, metric), value in found.items():
            other = medians[0].get((place, metric))
            if other is None or math.isnan(apart := relative_difference(other, value)):
                continue
            # With a single traffic entry, its value and the total are the same value with two names.
            named = by_metric.setdefault(Reference.parse(metric).metric.name, {})
            named.setdefault((place, other, value), (apart, f"{place}: {metric}"))
        for name, differences in by_metric.items():
            greatest, of = max(differences.values())
            yield Fidelity(
                name,
                Reference.parse(name).metric.unit,
                run.lab,
                runs[0].lab,
                float(np.median([each for each, _ in differences.values()])),
                greatest,
                of if greatest else "",
                len(differences),
            )


def _medians(metrics: pd.DataFrame) -> dict[tuple[str, str], float]:
    """Return the median of the repetitions, by cell without its repetition and by metric."""
    values: dict[tuple[str, str], list[float]] = {}
    for cell, metric, value in zip(metrics["cell"], metrics["metric"], metrics["value"], strict=True):
        values.setdefault((_place(cell), metric), []).append(float(value))
    return {key: float(np.median(each)) for key, each in values.items()}


def values_table(found: LabComparison) -> pd.DataFrame:
    """Return a row for each value and lab, with `COLUMNS`; missing values are empty."""
    rows = []
    for value in found.values:
        for each in value.labs:
            estimate, agreed = each.estimate, each.agreement
            rows.append(
                {
                    "arm": value.arm,
                    "where": value.where,
                    "metric": value.metric,
                    "unit": value.unit,
                    "predicted": value.predicted,
                    "published": value.published,
                    "tolerance": value.tolerance,
                    "expected": value.expected,
                    "lab": each.lab,
                    "measured": math.nan if estimate is None else estimate.value,
                    "low": math.nan if estimate is None else estimate.low,
                    "high": math.nan if estimate is None else estimate.high,
                    "n": 0 if estimate is None else estimate.n,
                    "verdict": each.verdict,
                    "against": "" if agreed is None else value.labs[0].lab,
                    "difference": math.nan if agreed is None else agreed.difference,
                    "margin": math.nan if agreed is None or value.margin is None else value.margin.value,
                    "basis": "" if agreed is None or value.margin is None else value.margin.basis,
                    "p": math.nan if agreed is None else agreed.p_value,
                    "agreement": "" if agreed is None else agreed.word,
                    "untested": "" if agreed is None else agreed.untested,
                }
            )
    return pd.DataFrame(rows, columns=COLUMNS)


def fidelity_table(found: LabComparison) -> pd.DataFrame:
    """Return a row for each metric and each lab but the first, with `FIDELITY_COLUMNS`."""
    rows = [{name: getattr(each, name) for name in FIDELITY_COLUMNS} for each in found.fidelity]
    return pd.DataFrame(rows, columns=FIDELITY_COLUMNS)
