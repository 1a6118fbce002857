"""What an experiment is compared with, and what its report shows of it.

The docstrings of classes and fields are the descriptions in the JSON Schema: they speak to the file's author.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field

from qoslab.model.expectations import Bound, Expectation, Predicted, plain, selection_text
from qoslab.model.frozen import Frozen, Name
from qoslab.model.matrix import ParameterName, Scalar
from qoslab.model.metrics import Reference, Unit, as_float
from qoslab.units import Percent


class Least(Frozen):
    """The least value of a parameter, of another arm's cells, that is as good."""

    arm: Name
    """Whose cells."""
    parameter: ParameterName
    """Of which the least value is looked for."""
    metric: str
    """In which the other arm's cell has to be as good."""
    same: tuple[ParameterName, ...] = Field(min_length=1)
    """Parameters in which both cells agree."""
    better: Literal["higher", "lower"] = "higher"
    """Which figure is good."""
    equal_within: Percent = Percent(10_000)
    """A figure that is worse by no more than this part of it is as good."""


class Average(Frozen):
    """The average of a metric over some cells of an arm, beside a published one. Its bounds decide the verdict."""

    title: str
    """Which cells these are, in the report."""
    arm: Name
    """Whose cells."""
    metric: str
    """A metric's name; docs/reference/metrics.md lists them."""
    condition: str = ""
    """Expression of the parameters that must hold for a cell, as `pir <= link`; all cells where absent."""
    each: tuple[ParameterName, ...] = ()
    """An average of its own for each combination of values of these parameters that was run."""
    statistic: Literal["mean", "median"] = "mean"
    """Over the cells; of a cell's repetitions it is the median."""
    least: Least | None = None
    """Not the figure counts, but how many times what would have done as well: a ratio."""
    published: Bound | None = None
    """As the publication has it."""
    at_least: Bound | None = None
    """Least average."""
    at_most: Bound | None = None
    """Greatest average."""
    worst_at_least: Bound | None = None
    """Least figure of any single cell."""
    worst_at_most: Bound | None = None
    """Greatest figure of any single cell."""
    reason: str = ""
    """Where these bounds or the published figure come from; for the report."""
    explained: str = ""
    """What would explain that the publication is not within the bounds; for the report."""
    fitted: str = ""
    """What of the model was chosen in the light of this publication, or is no more than ours: the figure does not count
    as reproduced."""

    @property
    def unit(self) -> Unit:
        """The metric's, or of a ratio. `KeyError` for an unknown metric."""
        return Reference.parse(self.metric).metric.unit if self.least is None else "ratio"

    @property
    def of(self) -> str:
        """What it is the average of, for people."""
        least = self.least
        return self.metric if least is None else f"{self.metric} / least {least.parameter} of {least.arm}"

    def figure(self, bound: Bound | None) -> float | None:
        """A bound or the published figure in `unit`. `QuantityError` where its kind does not fit."""
        return None if bound is None else as_float(bound, self.unit)

    def holds(self, average: float, lowest: float, highest: float) -> bool | None:
        """Whether the figures are within the bounds; None where there is no bound."""
        checks = [
            (self.figure(self.at_least), average, 1),
            (self.figure(self.at_most), average, -1),
            (self.figure(self.worst_at_least), lowest, 1),
            (self.figure(self.worst_at_most), highest, -1),
        ]
        asked = [(bound, found, sign) for bound, found, sign in checks if bound is not None]
        return all((found - bound) * sign >= 0 for bound, found, sign in asked) if asked else None

    @property
    def tolerance(self) -> str:
        """The bounds for people: `at least 92 %, each cell at least 85 %`."""
        words = (
            ("at least", self.at_least),
            ("at most", self.at_most),
            ("each cell at least", self.worst_at_least),
            ("each cell at most", self.worst_at_most),
        )
        return ", ".join(f"{text} {plain(bound, self.unit)}" for text, bound in words if bound is not None)


class Pair(Frozen):
    """Two values of a parameter against each other, cell by cell."""

    title: str
    """Its heading."""
    arm: Name
    """Whose cells."""
    metric: str
    """A metric's name; docs/reference/metrics.md lists them."""
    parameter: ParameterName
    """Cells that differ in nothing else are compared."""
    values: tuple[Scalar, Scalar]
    """The first is what may win or lose."""
    condition: str = ""
    """Expression of the parameters that must hold for a cell, as `pir < link`; all cells where absent."""
    better: Literal["higher", "lower"] = "higher"
    """Which figure wins."""
    fitted: str = ""
    """What of the model was chosen in the light of the publication, or is no more than ours, and decides who wins."""
    equal_within: Percent = Percent(10_000)
    """Of the second's figure: a lesser difference is a draw, as is one whose 95 % interval has 0 in it."""
    not_worse_at_least: Percent | None = None
    """Least part of the pairs of cells that the first wins or that are equal. It decides a verdict."""
    better_at_least: Percent | None = None
    """Least part of the pairs of cells that the first wins. It decides a verdict."""
    published: Literal["first", "second", "equal"] | None = None
    """Which is the better one by the publication."""
    reason: str = ""
    """Where the bounds come from; for the report."""


class FigureColumn(Frozen):
    """A column of a table: figures of one arm."""

    title: str
    """Its head."""
    arm: Name
    """Whose figures."""
    metrics: tuple[str, ...] = Field(min_length=1)
    """Shown in one place with strokes between them, as 9/11/13."""


class FigureTable(Frozen):
    """Published and measured figures laid out as in the publication: a row for each value of a parameter."""

    title: str
    """Above the table."""
    by: str
    """The parameter of the rows; it heads their column."""
    values: tuple[Scalar, ...] = Field(min_length=1)
    """One row each."""
    where: dict[ParameterName, Scalar | tuple[Scalar, ...]] = Field(default={})
    """Other parameters of all the cells, in the order of the matrix before `by`."""
    columns: tuple[FigureColumn, ...] = Field(min_length=1)
    """From left to right."""

    def selection(self, value: Scalar) -> str:
        """The cells of a row, as the comparison names them."""
        return selection_text({**self.where, self.by: value})


class Comparison(Frozen):
    """What the results are compared with."""

    article: str | None = None
    """The publication's title. Left out with `published` where expectations are the author's own."""
    published: str | None = None
    """A CSV file, relative to the experiment file: arm, metric, unit, value, source, and any of the parameters."""
    quantities: dict[ParameterName, Predicted] = Field(default={})
    """What the expectations' expressions name besides the parameters; each may take those before it."""
    expectations: tuple[Expectation, ...] = ()
    """Which figures decide the verdict; a published figure without an expectation is informative."""
    show: dict[Name, tuple[str, ...]] = Field(default={})
    """By arm: metrics that are listed too although nothing is expected of them and nothing was published."""

    averages: tuple[Average, ...] = ()
    """Averages over some of a sweep's cells, beside published ones."""
    pairs: tuple[Pair, ...] = ()
    """Two values of a parameter against each other, cell by cell: which won, where."""
    tables: tuple[FigureTable, ...] = ()
    """Tables for the report, laid out as in the publication."""


class NoteTable(Frozen):
    """Measured figures of several arms side by side."""

    arms: tuple[Name, ...] = Field(min_length=1)
    """One row each."""
    metrics: tuple[str, ...] = Field(min_length=1)
    """One column each."""
    each: tuple[ParameterName, ...] = ()
    """A row for each combination of values of these parameters that was run."""


class SweepGraph(Frozen):
    """A metric over the parameters of a sweep: curves (`over`) or a heat map (`rows` and `columns`)."""

    title: str
    """Its heading."""
    metric: str
    """A metric's name; docs/reference/metrics.md lists them."""
    arms: tuple[Name, ...] = Field(min_length=1)
    """Curves: of all of these. Heat map: one map for each."""
    where: dict[str, Scalar | tuple[Scalar, ...]] = Field(default={})
    """Only cells with these values (any of a list) of these parameters."""
    over: str | None = None
    """The parameter along the x axis; each combination of the others is a curve."""
    scale: Literal["linear", "log"] = "linear"
    """Of the x axis."""
    rows: tuple[str, ...] = ()
    """Parameters down the side, outermost first."""
    columns: tuple[str, ...] = ()
    """Parameters along the top, outermost first."""
    worst: Literal["lowest", "highest"] = "lowest"
    """Which end is bad: those cells are listed with their captures."""


class Trace(Frozen):
    """Cells of which the report shows what happened over time: throughput, and what the policies did."""

    title: str
    """Its heading."""
    arm: Name
    """Whose cells."""
    where: dict[ParameterName, Scalar | tuple[Scalar, ...]] = Field(default={})
    """Only cells with these values (any of a list) of these parameters; the first valid repetition of each."""


class Note(Frozen):
    """A text of the report, with figures as they were measured."""

    title: str
    """Its heading."""
    text: str = ""
    """Paragraphs, with an empty line between them; `{ARM METRIC}` is replaced by the measured figure."""
    table: NoteTable | None = None
    """Stands after the text."""

    @property
    def figures(self) -> tuple[NoteFigure, ...]:
        """Every figure that it shows."""
        named = [NoteFigure.of(match) for match in NOTE_FIGURE.finditer(self.text)]
        if self.table is not None:
            named += [NoteFigure(arm, metric) for arm in self.table.arms for metric in self.table.metrics]
        return tuple(dict.fromkeys(named))


class Answer(Frozen):
    """The answer to the title's question, at the top of the report."""

    text: str
    """A sentence or two; `{ARM METRIC}` is replaced by the measured value, as in notes."""
    streams: tuple[Name, ...] = ()
    """Arms to draw side by side: the throughput of each stream, each arm with a linear axis of its own."""
    bars: str | None = None
    """A metric to draw as bars, published and measured, of each arm with a published value."""

    @property
    def figures(self) -> tuple[NoteFigure, ...]:
        """Every value that its text shows."""
        return tuple(dict.fromkeys(NoteFigure.of(match) for match in NOTE_FIGURE.finditer(self.text)))


NOTE_FIGURE = re.compile(r"\{(?P<arm>[^\s{}]+) +(?P<what>[^\s{}][^{}]*)\}")
"""A figure in the text of a note: an arm, a metric, perhaps `where` and parameters. A text matches in one way only."""


@dataclass(frozen=True)
class NoteFigure:
    """A figure that a note shows."""

    arm: str
    metric: str
    where: tuple[tuple[str, str], ...] = ()
    """Names and values of parameters as written: the cells that count; all of the arm where empty."""

    @classmethod
    def of(cls, match: re.Match[str]) -> NoteFigure:
        """What `NOTE_FIGURE` found: `{cost interface.drops where policer = large, connections = 5}`."""
        metric, _, where = match["what"].partition(" where ")
        pairs = (part.partition("=") for part in where.split(",") if part.strip())
        return cls(match["arm"], metric.strip(), tuple((name.strip(), value.strip()) for name, _, value in pairs))


OWN_REFERENCE = "own reference"
KINDS = ("printed", "derived", "other post", OWN_REFERENCE)
"""What a published figure can be: printed in the publication, or by a device in it; calculated from what is; of another
text of the same author; not published at all, but measured for this project by other means."""


@dataclass(frozen=True)
class PublishedFigure:
    """One row of a published table."""

    arm: str
    """An arm, or `A/B` for a ratio of two arms."""
    metric: str
    """Empty where nothing like it is measured; `remark` says why."""
    unit: str
    """The metric's; of a figure without one whatever the publication has."""
    value: float
    """In `unit`."""
    source: str
    """Where in the publication it stands."""
    where: Mapping[str, Scalar] = field(default_factory=dict)
    """The parameters of the cells that it is about; all cells of the arm where empty."""
    resolution: float = 0.0
    """What its last digit stands for, in `unit`: a print of 841 kb/s is of something between 840.5 and 841.5."""
    kind: str = ""
    """One of `KINDS`; empty where the table does not say."""
    moment: str = ""
    """When it was taken, as the publication says; empty where the table does not tell."""
    place: str = ""
    """Where it was taken: a host, a router, a text."""
    remark: str = ""
    """Why nothing is expected of it as it stands."""
    compared: str = ""
    """With what it is compared nevertheless: expectations of other figures, or tests."""

    @property
    def is_published(self) -> bool:
        """Whether somebody else published it."""
        return self.kind != OWN_REFERENCE

    @property
    def origin(self) -> str:
        """Where it stands, of what moment it is and where it was taken, for people."""
        return "; ".join(filter(None, (self.source, self.moment and f"moment: {self.moment}", self.place)))

    @property
    def selection(self) -> str:
        """`where` for people."""
        return selection_text(self.where)
