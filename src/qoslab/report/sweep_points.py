"""Points of a sweep by parameter, for the charts and tables of a report. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qoslab.analysis.averages import Point, varied_parameters
from qoslab.analysis.statistics import Estimate, average
from qoslab.model.expressions import read_value
from qoslab.model.matrix import Scalar, as_number


def overall(found: Sequence[Point]) -> Estimate:
    """Return the mean over all points, with its interval over them."""
    return average([[point.estimate.value] for point in found])


def means_by_parameter(found: Sequence[Point]) -> dict[str, list[tuple[Scalar, Estimate]]]:
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


def curves(found: Sequence[Point], over: str) -> dict[str, list[Point]]:
    """Return the points of each curve along the parameter `over`, by name: a curve is a combination of the other
    parameters.

    Parameters with a single value are not in the names.
    """
    named = [point for point in found if over in point.parameters]
    telling = set(varied_parameters(named)) - {over}
    arms = len({point.arm for point in named}) > 1
    grouped: dict[str, list[Point]] = {}
    for point in named:
        words = [point.arm] if arms else []
        words += [f"{name} {value}" for name, value in point.parameters.items() if name in telling]
        grouped.setdefault(", ".join(words) or point.arm, []).append(point)
    return {
        name: sorted(grouped[name], key=lambda point: _rank(point.parameters[over]))
        for name in sorted(
            grouped, key=lambda name: [_rank(value) for value in _other_parameters(grouped[name][0], over)]
        )
    }


def _other_parameters(point: Point, over: str) -> list[Scalar]:
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
