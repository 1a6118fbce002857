"""Report sections for a sweep: curves, heat maps, tables by parameter, and the worst cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from qoslab.analysis import averages, charts
from qoslab.analysis.averages import Point
from qoslab.analysis.statistics import Estimate
from qoslab.model.comparison import SweepGraph
from qoslab.model.experiment import Experiment
from qoslab.model.expressions import read_value
from qoslab.model.matrix import Scalar, as_number
from qoslab.model.metrics import QUANTITY_BY_UNIT, Reference, Unit
from qoslab.report import sweep_points, text
from qoslab.report.arms import Graph
from qoslab.results import CellFiles, Manifest

Captures = Mapping[str, Callable[[], dict[str, str]]]
"""`CellFiles.captures` by the name of the cell."""

WORST = 5
"""Number of cells that are listed as the worst."""


@dataclass(frozen=True)
class HeatCell:
    """A value of a heat map."""

    text: str
    """Empty if no cell has these parameters."""
    shade: float
    """Rank of the value: 0 for the worst to 1 for the best of the map."""
    title: str
    """Interval and number of measurements."""
    short: str = ""
    """Value without the unit (shown above the map)."""

    @property
    def colour(self) -> str:
        """Return the colour of the rank."""
        return charts.scale_colour(self.shade)

    @property
    def ink(self) -> str:
        """Return a readable text colour."""
        return charts.contrasting_ink(self.colour)


_LETTER_EM = 0.62
"""Width of a letter in em, estimated rather too large than too small."""


@dataclass(frozen=True)
class HeatMap:
    """A table with cells coloured by value."""

    caption: str
    head: list[list[tuple[str, int]]]
    """Lines of column headings, each with the columns that it spans."""
    row_names: list[str]
    column_names: list[str]
    rows: list[tuple[list[str], list[HeatCell]]]
    unit: str
    """Unit of the short values; empty for plain numbers."""
    legend: list[HeatCell]
    """Sample cells from the worst to the best, at even steps of rank."""

    @property
    def width(self) -> int:
        """Number of columns with values."""
        return max((len(cells) for _, cells in self.rows), default=0)

    @property
    def width_em(self) -> float:
        """Width of the map with its row names, in em."""
        columns = [[name, *(names[at] for names, _ in self.rows)] for at, name in enumerate(self.row_names)]
        columns[-1] += self.column_names
        names_em = sum(1 + _LETTER_EM * max(map(len, each)) for each in columns)
        letters = max((len(cell.short) for _, cells in self.rows for cell in cells), default=0)
        return round(names_em + self.width * max(2.6, 0.7 + _LETTER_EM * letters), 1)


@dataclass(frozen=True)
class Listed:
    """A cell with its folder and captures."""

    figure: str
    parameters: str
    folder: str
    captures: list[tuple[str, str]]


@dataclass(frozen=True)
class SweepSection:
    """One graph of a sweep with its maps and tables."""

    anchor: str
    title: str
    sentence: str
    curves: list[Graph] = field(default_factory=list)
    maps: list[HeatMap] = field(default_factory=list)
    tables: list[tuple[str, list[tuple[str, str, str, int]]]] = field(default_factory=list)
    """Tables by parameter: its values with the mean, its interval, and the number of combinations."""
    worst: list[Listed] = field(default_factory=list)
    worst_title: str = ""


def sweep_sections(manifest: Manifest, cells: Iterable[CellFiles], metrics: pd.DataFrame) -> list[SweepSection]:
    """Return a section for each graph of the experiment with arms that were run; `metrics` are those of `cells`."""
    captures = {cell.name: cell.captures for cell in cells}
    sections = []
    for number, wanted in enumerate(manifest.experiment.graphs, start=1):
        found = {arm: averages.points(metrics, manifest.cells, arm, wanted.metric, wanted.where) for arm in wanted.arms}
        every = [point for each in found.values() for point in each]
        if every:
            sections.append(_section(captures, manifest.experiment, wanted, found, every, f"sweep-{number}"))
    return sections


def _section(
    captures: Captures,
    experiment: Experiment,
    wanted: SweepGraph,
    found: dict[str, list[Point]],
    every: list[Point],
    anchor: str,
) -> SweepSection:
    reference = Reference.parse(wanted.metric)
    unit = reference.metric.unit
    titles = {arm.name: arm.title or arm.name for arm in experiment.arms}
    means = [
        f"{titles[arm]}: {_value_with_interval(sweep_points.overall(each), unit)} over {len(each)} combinations"
        for arm, each in found.items()
        if each
    ]
    lowest = wanted.worst == "lowest"
    worst = averages.extremes(every, WORST, lowest=lowest)
    names = averages.varied_parameters(every)
    return SweepSection(
        anchor=anchor,
        title=wanted.title,
        sentence=f"{_sentence(reference.description)} Mean of all: {'; '.join(means)}.",
        curves=[_curves(wanted, every, unit, anchor)] if wanted.over is not None else [],
        maps=[
            _heat_map(wanted, each, unit, titles[arm] if len(found) > 1 else "", lowest=lowest)
            for arm, each in found.items()
            if wanted.rows and each
        ],
        tables=list(_tables(wanted, every, unit)),
        worst=[_listed_cell(captures, point, unit, names, several=len(found) > 1) for point in worst],
        worst_title=f"The {len(worst)} {wanted.worst}",
    )


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def _value_with_interval(estimate: Estimate, unit: Unit) -> str:
    value = text.value_text(estimate.value, unit)
    return value if math.isnan(estimate.low) else f"{value} ({_ends(estimate, unit)})"


def _ends(estimate: Estimate, unit: Unit) -> str:
    if math.isnan(estimate.low):
        return ""
    return f"{text.value_text(estimate.low, unit)} to {text.value_text(estimate.high, unit)}"


def _curves(wanted: SweepGraph, every: Sequence[Point], unit: Unit, anchor: str) -> Graph:
    assert wanted.over is not None
    lines = {
        name: [(_position(point.parameters[wanted.over]), point.estimate) for point in points]
        for name, points in sweep_points.curves(every, wanted.over).items()
    }
    title = f"{wanted.over}{_axis_unit_suffix(every, wanted.over)}"
    value, shown = charts.curve_graph(lines, title, unit, log=wanted.scale == "log")
    best = {name: max(points, key=lambda point: point[1].value) for name, points in lines.items()}
    summary = "Highest: " + "; ".join(
        f"{name} {text.value_text(estimate.value, unit)} at {position:g}" for name, (position, estimate) in best.items()
    )
    repeated = any(not math.isnan(estimate.low) for points in lines.values() for _, estimate in points)
    return Graph(
        f"{anchor}-curves",
        wanted.title,
        f"{summary}."
        + (" Bars are 95 % intervals over repetitions." if repeated else " One repetition each, so no intervals."),
        shown,
        value,
    )


def _position(value: Scalar) -> float | str:
    number = as_number(read_value(value))
    return number if isinstance(number, str) else float(number)


def _axis_unit_suffix(every: Sequence[Point], name: str) -> str:
    """Return the unit of a parameter's axis, after a comma; empty for shares and plain numbers."""
    kinds = {type(read_value(point.parameters[name])) for point in every if name in point.parameters}
    units = (unit for unit, kind in QUANTITY_BY_UNIT.items() if kinds == {kind} and unit != "fraction")
    return "".join(f", {unit}" for unit in units)


def _heat_map(wanted: SweepGraph, points: Sequence[Point], unit: Unit, caption: str, *, lowest: bool) -> HeatMap:
    grid = sweep_points.grid(points, wanted.rows, wanted.columns)
    found = {key: _overall_estimate(each) for key, each in grid.cells.items()}
    values = [estimate.value for estimate in found.values() if math.isfinite(estimate.value)]
    factor, shown = _short_unit(unit, max(values, default=0.0))
    shades = _ranks(values, factor, lowest=lowest)

    def cell(estimate: Estimate | None) -> HeatCell:
        if estimate is None:
            return HeatCell("", 0.0, "")
        short = _short(estimate.value, factor)
        note = "; ".join(filter(None, [_ends(estimate, unit), f"{estimate.n} measured"]))
        return HeatCell(text.value_text(estimate.value, unit), shades.get(short, 1.0), note, short)

    rows = [
        ([str(value) for value in row], [cell(found.get((row, column))) for column in grid.columns])
        for row in grid.rows
    ]
    head = []
    for depth, name in enumerate(wanted.columns):
        line: list[tuple[str, int]] = []
        above: tuple[Scalar, ...] | None = None
        for column in grid.columns:
            if column[: depth + 1] == above:
                line[-1] = (line[-1][0], line[-1][1] + 1)
            else:
                line.append((f"{name} {column[depth]}", 1))
            above = column[: depth + 1]
        head.append(line)
    plain = "" if shown in _PLAIN else shown
    return HeatMap(caption, head, list(wanted.rows), list(wanted.columns), rows, plain, _legend(rows))


_PLAIN = ("ratio", "index", "flag", "count")
"""Units that are not printed."""
_PREFIXED = ((1e6, "MB"), (1e3, "kB"))
"""Prefixes for sizes from ten on: a table of twenty columns with six digits each is wider than a screen."""
_LEGEND = 5
"""Number of cells in the colour legend of a map."""


def _short_unit(unit: Unit, greatest: float) -> tuple[float, str]:
    """Return the divisor and the unit for the values of a map with this maximum."""
    prefixed = ((factor, name) for factor, name in _PREFIXED if unit == "B" and greatest >= 10 * factor)
    return next(prefixed, charts.axis_divisor_and_unit(unit, greatest))


def _short(value: float, factor: float) -> str:
    """Format a value with three digits, or as a whole number from 1000 on."""
    if not math.isfinite(value):
        return text.value_text(value, "ratio")
    scaled = value / factor
    return f"{scaled:.0f}" if abs(scaled) >= 1000 else f"{scaled:.3g}"


def _ranks(values: Sequence[float], factor: float, *, lowest: bool) -> dict[str, float]:
    """Return the shade of each printed value: its rank, so that values close to each other can be distinguished."""
    distinct = {_short(value, factor): value for value in values}
    ordered = sorted(distinct, key=lambda short: distinct[short], reverse=not lowest)
    return {short: round(rank / max(len(ordered) - 1, 1), 3) for rank, short in enumerate(ordered)}


def _legend(rows: Sequence[tuple[list[str], list[HeatCell]]]) -> list[HeatCell]:
    """Return cells at even steps of the scale; none if all values are equal."""
    ordered = sorted({cell.shade: cell for _, cells in rows for cell in cells if cell.text}.values(), key=_shade)
    if len(ordered) < 2:
        return []
    last = len(ordered) - 1
    places = dict.fromkeys(round(step * last / (_LEGEND - 1)) for step in range(_LEGEND))
    return [ordered[place] for place in places]


def _shade(cell: HeatCell) -> float:
    return cell.shade


def _overall_estimate(points: Sequence[Point]) -> Estimate:
    return points[0].estimate if len(points) == 1 else sweep_points.overall(points)


def _tables(
    wanted: SweepGraph, every: Sequence[Point], unit: Unit
) -> Iterator[tuple[str, list[tuple[str, str, str, int]]]]:
    for name, values in sweep_points.means_by_parameter(every).items():
        if name == wanted.over:
            continue  # the graph shows it
        yield (
            name,
            [
                (str(value), text.value_text(estimate.value, unit), _ends(estimate, unit), estimate.n)
                for value, estimate in values
            ],
        )


def _listed_cell(captures: Captures, point: Point, unit: Unit, names: Sequence[str], *, several: bool) -> Listed:
    words = [point.arm] if several else []
    words += [f"{name} {value}" for name, value in point.parameters.items() if name in names]
    files = [(name, f"{each.place}/{file}") for each in point.cells for name, file in captures[each.name]().items()]
    return Listed(text.value_text(point.estimate.value, unit), ", ".join(words), point.cells[0].place, files)
