"""Functions that compute metrics: each is registered with the names of its metrics, and with the table that it reads.
Pure.

`qoslab.model.metrics` declares a metric (name, unit, meaning), so that experiment files can be checked without pandas;
the decorator `register_metrics` registers the function that computes it. Arguments in addition to its rows are passed
by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from qoslab.analysis.class_lines import Lines
from qoslab.analysis.missing import MetricValue, Missing
from qoslab.analysis.paths import Paths
from qoslab.model.metrics import METRICS, AddedMetric, TableName
from qoslab.results import tables
from qoslab.results.columns import Columns


@dataclass(frozen=True)
class CellFacts:
    """Data of a cell for metric functions, in addition to the rows."""

    tables: Mapping[str, Columns]
    """Rows of the cell by table."""
    traffic_s: float
    lines: Lines
    """Lines behind the cell's router interfaces."""
    paths: Paths
    """Paths of the cell's traffic."""

    @cached_property
    def policed_readings(self) -> Columns:
        """Readings of the cell's classes with a policer."""
        classes = self.tables["classes"]
        return classes.select(classes.has("police_cir_bps"))


@dataclass(frozen=True)
class Selection:
    """Rows of one table of one cell that a selector names, together with all rows."""

    rows: Columns
    whole: Columns
    selector: str | None
    cell: CellFacts


@dataclass(frozen=True)
class MetricFunction:
    """Function that yields values of metrics."""

    table: TableName
    names: frozenset[str]
    """Names of the metrics that the function yields, each at most once."""
    call: Callable[[Selection], Iterator[MetricValue]]
    by_rows: bool = True
    """True if the values depend on the selected rows only, not on the selector's text."""

    def values(self, selection: Selection) -> Iterator[MetricValue]:
        """Yield the function's values. Raise `ValueError` for a metric that it is not registered with."""
        for name, value in self.call(selection):
            if name not in self.names:
                raise ValueError(f"found the metric {name}, expected one of {', '.join(sorted(self.names))}")
            yield name, value


_FUNCTIONS: list[MetricFunction] = []
_ORDER = {name: place for place, name in enumerate(METRICS.own)}
_F = TypeVar("_F", bound=Callable[..., Iterator[MetricValue]])


def register_metrics(table: TableName, *names: str, **needs: Callable[[Selection], Any]) -> Callable[[_F], _F]:
    """Register a generator of metrics. It is called with its rows, and with the results of `needs` by keyword.

    Raise `KeyError` for a name that `qoslab.model.metrics` does not declare.
    """
    for name in names:
        METRICS[name]

    def register(function: _F) -> _F:
        def call(selection: Selection) -> Iterator[MetricValue]:
            return function(selection.rows, **{name: find(selection) for name, find in needs.items()})

        _FUNCTIONS.append(MetricFunction(table, frozenset(names), call, "selector" not in needs))
        return function

    return register


def metric_functions(table: TableName) -> list[MetricFunction]:
    """Return the functions that read a table, in the order of their metrics' declarations; added ones are last."""
    mine = [each for each in _FUNCTIONS if each.table == table]
    added = [each for _, each in METRICS.added_items() if isinstance(each, AddedMetric) and each.table == table]
    return [*sorted(mine, key=lambda each: min(map(_ORDER.__getitem__, each.names))), *map(_wrap_added_metric, added)]


def _wrap_added_metric(metric: AddedMetric) -> MetricFunction:
    """Wrap the function of a metric of another package: if it fails, the value is missing, with the reason."""

    def call(selection: Selection) -> Iterator[MetricValue]:
        try:
            value = metric.figure(tables.make_frame(metric.table, selection.rows))
            if value is not None:
                yield metric.name, float(value)
        # An exception of a plugin's function must not remove all values.
        except Exception as error:
            yield metric.name, Missing(f"its function failed: {type(error).__name__}: {error}")

    return MetricFunction(metric.table, frozenset({metric.name}), call)


def registered_names() -> list[str]:
    """Return the names of all metrics with a registered function."""
    return [name for each in _FUNCTIONS for name in sorted(each.names)]
