"""A metric over the parameters of a sweep. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from qoslab.analysis.metric_rows import Where
from qoslab.analysis.statistics import Estimate, average
from qoslab.model.comparison import MinimumParameter
from qoslab.model.expressions import read_value
from qoslab.model.matrix import Scalar, as_number, fits
from qoslab.results import CellSummary


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
        if cell.arm == arm and cell.valid and cell.name in values and fits(cell.values, where):
            groups.setdefault(tuple(cell.parameters.items()), []).append(cell)
    return [
        Point(arm, dict(parameters), average([figures]), tuple(each), figures)
        for parameters, each in groups.items()
        for figures in [tuple(values[cell.name] for cell in each)]
    ]


def shared_repetitions(one: Point, other: Point) -> tuple[Point, Point] | None:
    """Return two points restricted to their common repetitions; None if there are none."""
    common = {cell.repetition for cell in one.cells} & {cell.repetition for cell in other.cells}
    return (_with(one, common), _with(other, common)) if common else None


def _with(point: Point, repetitions: set[int]) -> Point:
    pairs = zip(point.cells, point.values, strict=True)
    cells, values = zip(*((cell, value) for cell, value in pairs if cell.repetition in repetitions), strict=True)
    return replace(point, cells=cells, values=values, estimate=average([values]))


def over_least(
    wanted: MinimumParameter, found: Sequence[Point], metrics: pd.DataFrame, cells: Sequence[CellSummary]
) -> list[Point]:
    """Return the points divided by the smallest parameter value at which a cell of the other arm is at least as good.

    Points without such a value are left out: those without the metric, and those that are better than all cells of the
    other arm.
    """
    made = []
    for point in found:
        if (least := min(_as_good(wanted, point, metrics, cells), default=None)) is not None:
            values = tuple(value / least for value in point.values)
            made.append(replace(point, values=values, estimate=average([values])))
    return made


def _as_good(
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
        value = as_number(read_value(other.parameters[wanted.parameter]))
        if worse <= wanted.equal_within.fraction * abs(to_reach) and isinstance(value, int | float) and value > 0:
            yield float(value)


def overall(found: Sequence[Point]) -> Estimate:
    """Return the mean over all points, with its interval over them."""
    return average([[point.estimate.value] for point in found])


def by_parameter(found: Sequence[Point]) -> dict[str, list[tuple[Scalar, Estimate]]]:
    """Return the mean for each value of each parameter with several values, over all values of the other parameters."""
    table: dict[str, list[tuple[Scalar, Estimate]]] = {}
    for name in dict.fromkeys(name for point in found for name in point.parameters):
        groups: dict[Scalar, list[Point]] = {}
        for point in found:
            if name in point.parameters:
                groups.setdefault(point.parameters[name], []).append(point)
        if len(groups) > 1:
            table[name] = [(value, overall(groups[value])) for value in sorted(groups, key=_rank)]
    return table


def extremes(found: Sequence[Point], count: int, *, lowest: bool) -> list[Point]:
    """Return the worst points, worst first."""
    return sorted(found, key=lambda point: point.estimate.value, reverse=not lowest)[:count]


def varied(found: Sequence[Point]) -> list[str]:
    """Return the parameters with several values."""
    names = dict.fromkeys(name for point in found for name in point.parameters)
    return [name for name in names if len({point.parameters.get(name) for point in found}) > 1]


def curves(found: Sequence[Point], over: str) -> dict[str, list[Point]]:
    """Return the points of each curve along the parameter `over`, by name: a curve is a combination of the other
    parameters.

    Parameters with a single value are not in the names.
    """
    named = [point for point in found if over in point.parameters]
    telling = set(varied(named)) - {over}
    arms = len({point.arm for point in named}) > 1
    grouped: dict[str, list[Point]] = {}
    for point in named:
        words = [point.arm] if arms else []
        words += [f"{name} {value}" for name, value in point.parameters.items() if name in telling]
        grouped.setdefault(", ".join(words) or point.arm, []).append(point)
    return {
        name: sorted(grouped[name], key=lambda point: _rank(point.parameters[over]))
        for name in sorted(grouped, key=lambda name: [_rank(value) for value in _others(grouped[name][0], over)])
    }


def _others(point: Point, over: str) -> list[Scalar]:
    return [value for name, value in point.parameters.items() if name != over]


@dataclass(frozen=True)
class Grid:
    """Points in rows and columns."""

    rows: list[tuple[Scalar, ...]]
    columns: list[tuple[Scalar, ...]]
    cells: dict[tuple[tuple[Scalar, ...], tuple[Scalar, ...]], list[Point]]
    """Points by row and column; several if the parameters of rows and columns do not distinguish them."""


def grid(found: Sequence[Point], rows: Sequence[str], columns: Sequence[str]) -> Grid:
    """Return points by the parameters of rows and columns; points without one of these are left out."""
    made = Grid([], [], {})
    for point in found:
        if any(name not in point.parameters for name in (*rows, *columns)):
            continue
        row = tuple(point.parameters[name] for name in rows)
        column = tuple(point.parameters[name] for name in columns)
        made.cells.setdefault((row, column), []).append(point)
    made.rows.extend(sorted({row for row, _ in made.cells}, key=lambda row: [_rank(each) for each in row]))
    made.columns.extend(sorted({column for _, column in made.cells}, key=lambda key: [_rank(each) for each in key]))
    return made


def _rank(value: Scalar) -> tuple[int, float, str]:
    """Return the sort key of a value: quantities and numbers by size, before texts."""
    number = as_number(read_value(value))
    return (1, 0.0, number) if isinstance(number, str) else (0, float(number), "")
