"""Averages over cells of a sweep, and comparisons of two values of a parameter. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from qoslab.analysis.measured_values import Where
from qoslab.analysis.missing import needs_longer_traffic
from qoslab.analysis.statistics import Estimate, average, difference
from qoslab.analysis.verdicts import (
    AS_PREDICTED,
    FITTED,
    INFORMATIVE,
    NOT_MEASURED,
    NOT_REPRODUCED,
    OUTSIDE,
    UNDECIDED,
    WITHIN,
    is_undecided,
)
from qoslab.model.comparison import Average, MinimumParameter, Pair
from qoslab.model.expressions import parse_expression
from qoslab.model.matrix import Scalar, as_number, matches, parameters_text
from qoslab.results import CellSummary, tables

_FAILED = (OUTSIDE, UNDECIDED)
Winner = Literal["first", "second", "equal"]
Others = tuple[tuple[str, Scalar], ...]
"""Parameters that the cells of a pair have in common, with their values."""


@dataclass(frozen=True)
class Point:
    """One combination of parameters of an arm."""

    arm: str
    parameters: Mapping[str, Scalar]
    """Parameters in the form of the experiment file."""
    estimate: Estimate
    cells: tuple[CellSummary, ...]
    """Valid repetitions."""
    values: tuple[float, ...] = ()
    """Values of the repetitions."""


def points(metrics: pd.DataFrame, cells: Iterable[CellSummary], arm: str, metric: str, where: Where) -> list[Point]:
    """Return the points of an arm's metric, by parameters, in the order of the cells. Invalid cells are left out."""
    rows = metrics[(metrics["arm"] == arm) & (metrics["metric"] == metric) & metrics["value"].notna()]
    values = dict(zip(rows["cell"], rows["value"].astype(float), strict=True))
    groups: dict[tuple[tuple[str, Scalar], ...], list[CellSummary]] = {}
    for cell in cells:
        if cell.arm == arm and cell.valid and cell.name in values and matches(cell.values, where):
            groups.setdefault(tuple(cell.parameters.items()), []).append(cell)
    return [
        Point(arm, dict(parameters), average([metric_values]), tuple(each), metric_values)
        for parameters, each in groups.items()
        for metric_values in [tuple(values[cell.name] for cell in each)]
    ]


def shared_repetitions(one: Point, other: Point) -> tuple[Point, Point] | None:
    """Return two points restricted to their common repetitions; None if there are none."""
    common = {cell.repetition for cell in one.cells} & {cell.repetition for cell in other.cells}
    return (_with_repetitions(one, common), _with_repetitions(other, common)) if common else None


def _with_repetitions(point: Point, repetitions: set[int]) -> Point:
    pairs = zip(point.cells, point.values, strict=True)
    cells, values = zip(*((cell, value) for cell, value in pairs if cell.repetition in repetitions), strict=True)
    return replace(point, cells=cells, values=values, estimate=average([values]))


def divide_by_minimum(
    wanted: MinimumParameter, found: Sequence[Point], metrics: pd.DataFrame, cells: Sequence[CellSummary]
) -> list[Point]:
    """Return the points divided by the smallest parameter value at which a cell of the other arm is at least as good.

    Points without such a value are left out: those without the metric, and those that are better than all cells of the
    other arm.
    """
    made = []
    for point in found:
        if (least := min(_equally_good_values(wanted, point, metrics, cells), default=None)) is not None:
            values = tuple(value / least for value in point.values)
            made.append(replace(point, values=values, estimate=average([values])))
    return made


def _equally_good_values(
    wanted: MinimumParameter, point: Point, metrics: pd.DataFrame, cells: Sequence[CellSummary]
) -> Iterator[float]:
    """Yield parameter values at which the other arm's cells are at least as good as those of a point."""
    own = points(metrics, point.cells, point.arm, wanted.metric, {})
    same = {name: point.parameters[name] for name in wanted.same}
    for other in points(metrics, cells, wanted.arm, wanted.metric, same) if own else []:
        shared = shared_repetitions(own[0], other)
        if shared is None:
            continue
        to_reach, reached = (each.estimate.value for each in shared)
        worse = (to_reach - reached) * (1 if wanted.better == "higher" else -1)
        value = as_number(other.cells[0].values[wanted.parameter])
        if worse <= wanted.equal_within.fraction * abs(to_reach) and isinstance(value, int | float) and value > 0:
            yield float(value)


def extremes(found: Sequence[Point], count: int, *, lowest: bool) -> list[Point]:
    """Return the worst points, worst first."""
    return sorted(found, key=lambda point: point.estimate.value, reverse=not lowest)[:count]


def varied_parameters(found: Sequence[Point]) -> list[str]:
    """Return the parameters with several values."""
    names = dict.fromkeys(name for point in found for name in point.parameters)
    return [name for name in names if len({point.parameters.get(name) for point in found}) > 1]


def meets_condition(condition: str, cell: CellSummary) -> bool:
    """Return whether the cell's parameters meet the condition; an empty condition is always met."""
    return not condition or parse_expression(condition).is_true({**cell.values, "arm": cell.arm})


def averages_table(
    wanted: Sequence[Average],
    metrics: pd.DataFrame,
    cells: Sequence[CellSummary],
    pairs: Sequence[Pair] = (),
    *,
    shortened: bool = False,
) -> pd.DataFrame:
    """Return the table `averages`: a row for each average and each combination of its `each` with planned cells.

    The column `valid` of `cells` selects the cells that count. `excluded` counts combinations without a valid
    repetition, and `unmeasured` valid ones without a value. An average is `outside` if its bounds are not met, or if
    valid cells lack the metric; `undecided` if most of its cells are not valid; and `informative` without bounds, or
    without a valid cell in its arm or in the arm of the comparison. Each bound of an entry of `pairs` has a row, which
    is about the share of its pairs of cells. `reproduction` and `explanation` are as in a comparison. In a `shortened`
    run, rows that fail only due to values that longer traffic may have are not measured.
    """
    late = _late_cells(metrics) if shortened else {}
    rows: list[dict[str, object]] = []
    for each in wanted:
        rest = _cells_except_late(cells, late.get(each.metric))
        rows += _excuse_late_cells(
            _rows(each, metrics, cells), _rows(each, metrics, rest) if rest is not None else None
        )
    for pair in pairs:
        rest = _cells_except_late(cells, late.get(pair.metric))
        rows += _excuse_late_cells(
            _judge_pair(pair, metrics, cells), _judge_pair(pair, metrics, rest) if rest is not None else None
        )
    return tables.frame("averages", rows)


def _late_cells(metrics: pd.DataFrame) -> dict[str, set[str]]:
    """Return the cells for which the traffic was too short, by metric."""
    late = metrics[metrics["missing"].fillna("").map(needs_longer_traffic).astype(bool)]
    return {str(metric): set(rows["cell"]) for metric, rows in late.groupby("metric")}


def _cells_except_late(cells: Sequence[CellSummary], late: Set[str] | None) -> list[CellSummary] | None:
    """Return the cells that are not late; None if no cell is late."""
    return None if late is None else [cell for cell in cells if cell.name not in late]


def _excuse_late_cells(
    rows: Iterable[dict[str, object]], rest: Iterable[dict[str, object]] | None
) -> Iterator[dict[str, object]]:
    """Yield the rows; those that fail, but not over the `rest` of the cells, which had enough traffic, are not
    measured.
    """
    failing = {(row["title"], row["each"]) for row in rest or () if row["verdict"] in _FAILED}
    for row in rows:
        excused = rest is not None and row["verdict"] in _FAILED and (row["title"], row["each"]) not in failing
        yield row | {"verdict": NOT_MEASURED} if excused else row


def _rows(wanted: Average, metrics: pd.DataFrame, cells: Sequence[CellSummary]) -> Iterator[dict[str, object]]:
    chosen = [cell for cell in cells if cell.arm == wanted.arm and meets_condition(wanted.condition, cell)]
    groups: dict[str, list[CellSummary]] = {}
    for cell in chosen:
        values = {name: value for name, value in cell.values.items() if name in wanted.each}
        groups.setdefault(parameters_text(values), []).append(cell)
    for each, group in groups.items():
        yield {
            "title": wanted.title,
            "arm": wanted.arm,
            "each": each,
            "condition": wanted.condition,
            "metric": wanted.value_title,
            "unit": wanted.unit,
            "statistic": wanted.statistic,
            "published": wanted.in_unit(wanted.published),
            "tolerance": wanted.tolerance,
            "reason": wanted.reason,
            **_measured_values(wanted, metrics, group, cells),
            **_reproduction(wanted),
        }


def _reproduction(wanted: Average) -> dict[str, str]:
    """Return whether the published average is within the bounds of the average, with the explanation if it is not, or
    depends on a fitted part.
    """
    published = wanted.in_unit(wanted.published)
    if published is None:
        return {"reproduction": "", "explanation": wanted.fitted}
    agrees = wanted.model_copy(update={"worst_at_least": None, "worst_at_most": None}).is_within_bounds(
        *[published] * 3
    )
    if agrees is False:
        return {"reproduction": NOT_REPRODUCED, "explanation": wanted.explained}
    if wanted.fitted:
        return {"reproduction": FITTED, "explanation": wanted.fitted}
    return {"reproduction": AS_PREDICTED if agrees else "", "explanation": ""}


def _measured_values(
    wanted: Average, metrics: pd.DataFrame, cells: Sequence[CellSummary], every: Sequence[CellSummary]
) -> dict[str, object]:
    """Return the values of some cells; `every` has all cells, which are searched for equally good ones."""
    found = points(metrics, cells, wanted.arm, wanted.metric, {})
    if wanted.least is not None:
        found = divide_by_minimum(wanted.least, found, metrics, every)
    planned = {tuple(cell.parameters.items()) for cell in cells if not cell.spared or cell.valid}
    trusted = {tuple(cell.parameters.items()) for cell in cells if cell.valid}
    counted: dict[str, object] = {
        "cells": len(found),
        "excluded": len(planned) - len(trusted),
        "unmeasured": len(trusted) - len(found),
    }
    bounded = wanted.is_within_bounds(math.nan, math.nan, math.nan) is not None
    if not found:
        # A partial run may lack the cells for the comparison.
        alone = wanted.least is not None and not any(cell.valid for cell in every if cell.arm == wanted.least.arm)
        return counted | {"verdict": OUTSIDE if trusted and bounded and not alone else INFORMATIVE}
    repetitions = [point.values for point in found]
    estimate = average(repetitions, statistic=wanted.statistic)
    names = varied_parameters(found)
    lowest, highest = (extremes(found, 1, lowest=low)[0] for low in (True, False))
    holds = wanted.is_within_bounds(estimate.value, lowest.estimate.value, highest.estimate.value)
    verdict = WITHIN if holds and len(found) == len(trusted) else OUTSIDE
    asked = [cell for cell in cells if not cell.spared or cell.valid]
    if is_undecided(sum(cell.valid for cell in asked), len(asked)):
        verdict = UNDECIDED
    return counted | {
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "over": estimate.over,
        "lowest": lowest.estimate.value,
        "lowest_cell": point_text(lowest, names),
        "highest": highest.estimate.value,
        "highest_cell": point_text(highest, names),
        "verdict": verdict if bounded else INFORMATIVE,
    }


def cell_count_text(row: Mapping[Any, Any]) -> str:
    """Return a text with the number of combinations in a row of `averages`, and the number of excluded ones."""
    left_out = ((row["excluded"], "not valid"), (row["unmeasured"], "without the value"))
    return ", ".join([str(row["cells"]), *(f"{count} {why}" for count, why in left_out if count)])


def point_text(point: Point, names: Collection[str]) -> str:
    """Format these parameters of a combination."""
    return parameters_text({name: value for name, value in point.cells[0].values.items() if name in names})


def pairs_table(wanted: Sequence[Pair], metrics: pd.DataFrame, cells: Sequence[CellSummary]) -> pd.DataFrame:
    """Return the table `pairs`: a row for each two combinations that differ only in the parameter's value.

    `difference` is the difference of the first value from the second, as a share of the second; `low` and `high` are
    its 95 % interval if both were repeated. Only common repetitions count; combinations without any are left out.
    """
    rows = []
    for pair in wanted:
        chosen = [cell for cell in cells if meets_condition(pair.condition, cell)]
        first, second = (_points_by_other_parameters(pair, value, metrics, chosen) for value in pair.values)
        names = varied_parameters(list(first.values()))
        for others, one in first.items():
            both = shared_repetitions(one, second[others]) if others in second else None
            if both is not None:
                rows.append(_pair_row(pair, names, *both))
    return tables.frame("pairs", rows)


def _judge_pair(pair: Pair, metrics: pd.DataFrame, cells: Sequence[CellSummary]) -> Iterator[dict[str, object]]:
    """Yield a row of `averages` for each bound of a pair; none if one of its values was not planned."""
    chosen = [cell for cell in cells if cell.arm == pair.arm and meets_condition(pair.condition, cell)]
    planned: list[Mapping[bool, set[Others]]] = []
    for value in pair.values:
        mine = [cell for cell in chosen if matches(cell.values, {pair.parameter: value})]
        counted = [cell for cell in mine if not cell.spared or cell.valid]
        planned.append(
            {
                valid: {_other_parameters(pair, cell.parameters) for cell in counted if cell.valid or not valid}
                for valid in (False, True)
            }
        )
    asked, trusted = (len(planned[0][valid] & planned[1][valid]) for valid in (False, True))
    if not asked:
        return
    won, equal, lost = score(pairs_table([pair], metrics, cells))
    found = won + equal + lost
    for statistic, bound, count in (
        ("share not worse", pair.not_worse_at_least, won + equal),
        ("share better", pair.better_at_least, won),
    ):
        if bound is None:
            continue
        part = count / found if found else math.nan
        verdict = WITHIN if part >= bound.fraction else OUTSIDE if trusted else INFORMATIVE
        if found and is_undecided(found, asked):
            verdict = UNDECIDED
        yield {
            "title": f"{pair.title}: {statistic}",
            "arm": pair.arm,
            "each": "",
            "condition": pair.condition,
            "metric": pair.metric,
            "unit": "fraction",
            "statistic": statistic,
            "value": part,
            "tolerance": f"at least {bound}",
            "reason": pair.reason,
            "cells": found,
            "excluded": asked - trusted,
            "unmeasured": trusted - found,
            "verdict": verdict,
            "reproduction": "",
            "explanation": pair.fitted,
        }


def _other_parameters(pair: Pair, parameters: Mapping[str, Scalar]) -> Others:
    return tuple((name, value) for name, value in parameters.items() if name != pair.parameter)


def _points_by_other_parameters(
    pair: Pair, value: Scalar, metrics: pd.DataFrame, cells: Sequence[CellSummary]
) -> dict[Others, Point]:
    found = points(metrics, cells, pair.arm, pair.metric, {pair.parameter: value})
    return {_other_parameters(pair, point.parameters): point for point in found}


def _pair_row(pair: Pair, names: Collection[str], one: Point, other: Point) -> dict[str, object]:
    above, below = one.estimate.value, other.estimate.value
    share = (above - below) / below if below else (0.0 if above == below else math.copysign(math.inf, above - below))
    low = high = math.nan
    if len(one.values) > 1 and len(other.values) > 1 and below and np.isfinite([*one.values, *other.values]).all():
        found = difference(one.values, other.values)
        low, high = sorted((found.low / below, found.high / below))
    winner: Winner = "equal"
    if abs(share) > pair.equal_within.fraction and not low <= 0 <= high:
        winner = "first" if (share > 0) == (pair.better == "higher") else "second"
    return {
        "title": pair.title,
        "arm": pair.arm,
        "metric": pair.metric,
        "unit": pair.unit,
        "parameter": pair.parameter,
        "first": pair.names[0],
        "second": pair.names[1],
        "cell": point_text(one, names),
        "first_value": above,
        "second_value": below,
        "difference": share,
        "low": low,
        "high": high,
        "winner": winner,
        "first_folder": one.cells[0].folder,
        "second_folder": other.cells[0].folder,
        "published": pair.published or "",
    }


def scores_table(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the number of comparisons that each value of a pair won, with the columns of
    `qoslab.model.run_values.Score`.
    """
    rows = []
    for title, own in pairs.groupby("title", sort=False):
        won, equal, lost = score(own)
        named = {str(name): own.iloc[0][name] for name in ("arm", "metric", "parameter", "first", "second")}
        rows.append({"title": title, **named, "won": won, "equal": equal, "lost": lost})
    return pd.DataFrame(rows)


def claim_text(pairs: pd.DataFrame) -> str:
    """Return the publication's claim about the pairs of one title, and its verdict; empty without a claim."""
    row = pairs.iloc[0]
    won, equal, lost = score(pairs)
    match row["published"]:
        case "first":
            statement, holds = f"{row['first']} is better", won > lost
        case "second":
            statement, holds = f"{row['second']} is better", lost > won
        case "equal":
            statement, holds = "both are equal", equal > won + lost
        case _:
            return ""
    return f"published: {statement}, {'as found' if holds else NOT_REPRODUCED}"


def score(pairs: pd.DataFrame) -> tuple[int, int, int]:
    """Return the numbers of comparisons that the first value won, tied and lost."""
    counts = pairs["winner"].value_counts()
    won, equal, lost = (int(counts.get(name, 0)) for name in ("first", "equal", "second"))
    return won, equal, lost
