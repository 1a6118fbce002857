"""References for the results of an experiment, and the contents of its report.

The docstrings of classes and fields are the descriptions in the JSON Schema: they speak to the file's author.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field

from qoslab.model.expectations import Bound, Expectation, Predicted, format_bound, selection_text
from qoslab.model.expressions import read_value, show_value
from qoslab.model.frozen import Frozen, Name
from qoslab.model.matrix import ParameterName, Scalar
from qoslab.model.metrics import Reference, Unit, as_float
from qoslab.model.units import Percent


class MinimumParameter(Frozen):
    """Smallest value of a parameter in the cells of another arm that is equally good."""

    arm: Name
    """Arm of the cells."""
    parameter: ParameterName
    """Parameter that is minimised."""
    metric: str
    """Metric for the comparison with the other arm's cell."""
    same: tuple[ParameterName, ...] = Field(min_length=1)
    """Parameters in which both cells agree."""
    better: Literal["higher", "lower"] = "higher"
    """Direction of better values."""
    equal_within: Percent = Percent(10_000)
    """Values that are worse by at most this share count as equally good."""


class Average(Frozen):
    """Average of a metric over some cells of an arm, next to a published one. Its bounds decide the verdict."""

    title: str
    """Name of these cells in the report."""
    arm: Name
    """Arm of the cells."""
    metric: str
    """A metric's name; docs/reference/metrics.md lists them."""
    condition: str = ""
    """Condition on the parameters that selects cells, such as `pir <= link`; default: all cells."""
    each: tuple[ParameterName, ...] = ()
    """One average for each combination of values of these parameters in the run."""
    statistic: Literal["mean", "median"] = "mean"
    """Statistic over the cells; a cell's value is the median of its repetitions."""
    least: MinimumParameter | None = None
    """Use the ratio of the parameter to the smallest equally good value instead of the metric."""
    published: Bound | None = None
    """Published value."""
    at_least: Bound | None = None
    """Lower bound of the average."""
    at_most: Bound | None = None
    """Upper bound of the average."""
    worst_at_least: Bound | None = None
    """Lower bound of every single cell."""
    worst_at_most: Bound | None = None
    """Upper bound of every single cell."""
    reason: str = ""
    """Source of these bounds or of the published value, for the report."""
    explained: str = ""
    """Possible reason for a published value outside the bounds, for the report."""
    fitted: str = ""
    """Parts of the model that were fitted to this publication, or are assumptions: the value does not count as
    reproduced.
    """

    @property
    def unit(self) -> Unit:
        """Unit of the metric, or `ratio`. Raise `KeyError` for an unknown metric."""
        return Reference.parse(self.metric).metric.unit if self.least is None else "ratio"

    @property
    def value_title(self) -> str:
        """Title of the averaged values for display."""
        least = self.least
        return self.metric if least is None else f"{self.metric} / least {least.parameter} of {least.arm}"

    def in_unit(self, bound: Bound | None) -> float | None:
        """Return a bound or the published value in `unit`. Raise `QuantityError` if its kind does not fit."""
        return None if bound is None else as_float(bound, self.unit)

    def is_within_bounds(self, average: float, lowest: float, highest: float) -> bool | None:
        """Return whether the values are within the bounds; None if there is no bound."""
        checks = [
            (self.in_unit(self.at_least), average, 1),
            (self.in_unit(self.at_most), average, -1),
            (self.in_unit(self.worst_at_least), lowest, 1),
            (self.in_unit(self.worst_at_most), highest, -1),
        ]
        asked = [(bound, found, sign) for bound, found, sign in checks if bound is not None]
        return all((found - bound) * sign >= 0 for bound, found, sign in asked) if asked else None

    @property
    def tolerance(self) -> str:
        """The bounds for display: `at least 92 %, each cell at least 85 %`."""
        words = (
            ("at least", self.at_least),
            ("at most", self.at_most),
            ("each cell at least", self.worst_at_least),
            ("each cell at most", self.worst_at_most),
        )
        return ", ".join(f"{text} {format_bound(bound, self.unit)}" for text, bound in words if bound is not None)


class Pair(Frozen):
    """Comparison of two values of a parameter, cell by cell."""

    title: str
    """Heading."""
    arm: Name
    """Arm of the cells."""
    metric: str
    """A metric's name; docs/reference/metrics.md lists them."""
    parameter: ParameterName
    """Parameter under comparison: the paired cells are equal in all others."""
    values: tuple[Scalar, Scalar]
    """Two values; the first one wins or loses."""
    condition: str = ""
    """Condition on the parameters that selects cells, such as `pir < link`; default: all cells."""
    better: Literal["higher", "lower"] = "higher"
    """Direction of better values."""
    fitted: str = ""
    """Parts of the model that were fitted to the publication, or are assumptions, and decide the winner."""
    equal_within: Percent = Percent(10_000)
    """Share of the second value: smaller differences are a draw, and so are those with 0 in the 95 % interval."""
    not_worse_at_least: Percent | None = None
    """Minimum share of pairs of cells that the first value wins or draws. It decides a verdict."""
    better_at_least: Percent | None = None
    """Minimum share of pairs of cells that the first value wins. It decides a verdict."""
    published: Literal["first", "second", "equal"] | None = None
    """Better value according to the publication."""
    reason: str = ""
    """Source of the bounds, for the report."""

    @property
    def unit(self) -> Unit:
        """Unit of the metric. Raise `KeyError` for an unknown metric."""
        return Reference.parse(self.metric).metric.unit

    @property
    def names(self) -> tuple[str, str]:
        """Both values for display."""
        first, second = (show_value(read_value(each)) for each in self.values)
        return first, second


class ValueColumn(Frozen):
    """Column of a table: values of one arm."""

    title: str
    """Heading of the column."""
    arm: Name
    """Arm of the values."""
    metrics: tuple[str, ...] = Field(min_length=1)
    """Metrics shown in one field, separated by slashes, such as 9/11/13."""


class ValueTable(Frozen):
    """Published and measured values, arranged as in the publication: a row for each value of a parameter."""

    title: str
    """Heading of the table."""
    by: str
    """Parameter of the rows, and heading of their column."""
    values: tuple[Scalar, ...] = Field(min_length=1)
    """Values, one row each."""
    where: dict[ParameterName, Scalar | tuple[Scalar, ...]] = Field(default={})
    """Other parameters of all cells, in the order of the matrix before `by`."""
    columns: tuple[ValueColumn, ...] = Field(min_length=1)
    """Columns, from left to right."""

    def selection(self, value: Scalar) -> str:
        """Return the cells of a row as in the comparison."""
        return selection_text({**self.where, self.by: value})


class Comparison(Frozen):
    """Published values and expectations for the results."""

    article: str | None = None
    """The publication's title. Omit it and `published` if there is no publication."""
    published: str | None = None
    """A CSV file, relative to the experiment file: arm, metric, unit, value, source, and any of the parameters."""
    quantities: dict[ParameterName, Predicted] = Field(default={})
    """Named values for the expressions of expectations, in addition to the parameters; each may use earlier ones."""
    expectations: tuple[Expectation, ...] = ()
    """Expectations that decide the verdict; a published value without an expectation is informative."""
    show: dict[Name, tuple[str, ...]] = Field(default={})
    """Further metrics to list by arm, without an expectation or a published value."""

    averages: tuple[Average, ...] = ()
    """Averages over some cells of a sweep, next to published ones."""
    pairs: tuple[Pair, ...] = ()
    """Comparisons of two values of a parameter, cell by cell."""
    tables: tuple[ValueTable, ...] = ()
    """Tables for the report, arranged as in the publication."""


class NoteTable(Frozen):
    """Measured values of several arms side by side."""

    arms: tuple[Name, ...] = Field(min_length=1)
    """Arms, one row each."""
    metrics: tuple[str, ...] = Field(min_length=1)
    """Metrics, one column each."""
    each: tuple[ParameterName, ...] = ()
    """Parameters; one row for each combination of their values in the run."""


class SweepGraph(Frozen):
    """A metric over the parameters of a sweep: curves (`over`) or a heat map (`rows` and `columns`)."""

    title: str
    """Heading."""
    metric: str
    """A metric's name; docs/reference/metrics.md lists them."""
    arms: tuple[Name, ...] = Field(min_length=1)
    """Arms: all of them as curves, or one heat map for each."""
    where: dict[str, Scalar | tuple[Scalar, ...]] = Field(default={})
    """Selects cells with these values (or any value of a list) of these parameters."""
    over: str | None = None
    """Parameter of the x axis; each combination of the others is a curve."""
    scale: Literal["linear", "log"] = "linear"
    """Scale of the x axis."""
    rows: tuple[str, ...] = ()
    """Parameters down the side, outermost first."""
    columns: tuple[str, ...] = ()
    """Parameters along the top, outermost first."""
    worst: Literal["lowest", "highest"] = "lowest"
    """Worst direction: the worst cells are listed with their captures."""


class Trace(Frozen):
    """Cells shown over time in the report: throughput, and the counters of the policies."""

    title: str
    """Heading."""
    arm: Name
    """Arm of the cells."""
    where: dict[ParameterName, Scalar | tuple[Scalar, ...]] = Field(default={})
    """Selects cells with these values (or any value of a list) of parameters; the first valid repetition of each."""


class Note(Frozen):
    """Text of the report, with measured values."""

    title: str
    """Heading."""
    text: str = ""
    """Paragraphs, separated by empty lines; `{ARM METRIC}` is replaced by the measured value."""
    table: NoteTable | None = None
    """Table after the text."""

    @property
    def text_values(self) -> tuple[NoteValue, ...]:
        """Every value in the text."""
        return NoteValue.in_text(self.text)

    @property
    def values(self) -> tuple[NoteValue, ...]:
        """Every value that the note shows."""
        named = [*self.text_values]
        if self.table is not None:
            named += [NoteValue(arm, metric) for arm in self.table.arms for metric in self.table.metrics]
        return tuple(dict.fromkeys(named))


class Answer(Frozen):
    """The answer to the title's question, at the top of the report."""

    text: str
    """A sentence or two; `{ARM METRIC}` is replaced by the measured value, as in notes."""
    streams: tuple[Name, ...] = ()
    """Arms to draw side by side: the throughput of each stream, each arm with its own linear axis."""
    bars: str | tuple[str, ...] = ()
    """Metrics to draw as bars for each arm with an expectation: published (or else predicted), and measured."""

    @property
    def bar_metrics(self) -> tuple[str, ...]:
        """Metrics of the bars, in the order of the file."""
        return (self.bars,) if isinstance(self.bars, str) else self.bars

    @property
    def values(self) -> tuple[NoteValue, ...]:
        """Every value that its text shows."""
        return NoteValue.in_text(self.text)


NOTE_VALUE = re.compile(r"\{(?P<arm>[^\s{}]+) +(?P<what>[^\s{}][^{}]*)\}")
"""A value in the text of a note: an arm, a metric, and optionally `where` and parameters. The match is unambiguous."""


@dataclass(frozen=True)
class NoteValue:
    """A value that a note shows."""

    arm: str
    metric: str
    where: tuple[tuple[str, str], ...] = ()
    """Names and values of parameters as written: the selected cells; all of the arm if empty."""

    @classmethod
    def in_text(cls, text: str) -> tuple[NoteValue, ...]:
        """Return each value of a text once."""
        return tuple(dict.fromkeys(map(cls.from_match, NOTE_VALUE.finditer(text))))

    @classmethod
    def from_match(cls, match: re.Match[str]) -> NoteValue:
        """Parse a match of `NOTE_VALUE`: `{cost interface.drops where policer = large, connections = 5}`."""
        metric, _, where = match["what"].partition(" where ")
        pairs = (part.partition("=") for part in where.split(",") if part.strip())
        return cls(match["arm"], metric.strip(), tuple((name.strip(), value.strip()) for name, _, value in pairs))


OWN_REFERENCE = "own reference"
KINDS = ("printed", "derived", "other post", OWN_REFERENCE)
"""Kinds of published values: printed in the publication or by a device in it; calculated from such values; from another
text of the same author; not published, but measured for this project by other means.
"""


@dataclass(frozen=True)
class PublishedValue:
    """One row of a published table."""

    arm: str
    """An arm, or `A/B` for a ratio of two arms."""
    metric: str
    """Metric; empty if qoslab has no such metric; `remark` has the reason."""
    unit: str
    """Unit of the metric; without a metric, the unit in the publication."""
    value: float
    """Value in `unit`."""
    source: str
    """Place in the publication."""
    where: Mapping[str, Scalar] = field(default_factory=dict)
    """Parameters that select the cells of the value; all cells of the arm if empty."""
    resolution: float = 0.0
    """Resolution of its last digit in `unit`: a printed 841 kb/s is between 840.5 and 841.5."""
    kind: str = ""
    """One of `KINDS`; empty if it is missing in the table."""
    moment: str = ""
    """Time of the measurement according to the publication; empty if unknown."""
    place: str = ""
    """Place of the measurement: a host, a router, a text."""
    remark: str = ""
    """Reason for the absence of an expectation."""
    compared: str = ""
    """Other comparisons of the value: expectations of other values, or tests."""

    @property
    def is_published(self) -> bool:
        """True if it was published, False for a measurement for this project."""
        return self.kind != OWN_REFERENCE

    @property
    def origin(self) -> str:
        """Source, time and place of the value, for display."""
        return "; ".join(filter(None, (self.source, self.moment and f"moment: {self.moment}", self.place)))

    @property
    def selection(self) -> str:
        """`where` for display."""
        return selection_text(self.where)
