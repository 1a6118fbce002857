"""Metrics of `qoslab.model.metrics`, computed from the tables of one cell. Pure.

The functions that compute them register themselves (`qoslab.analysis.metric_functions`); this module divides the tables
into selections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

# Imported for the functions that they register.
from qoslab.analysis import (  # noqa: F401
    class_metrics,
    conversations,
    goodput,
    host_metrics,
    limiters,
    policers,
    probes,
    shapers,
    steady,
    throughput,
)
from qoslab.analysis.at_instant import instant_error_s, moment_s, readings_until
from qoslab.analysis.classes import class_interfaces, select_classes
from qoslab.analysis.estimates import Estimate, estimate_error, value_if_precise
from qoslab.analysis.metric_functions import CellFacts, Selection, metric_functions
from qoslab.analysis.missing import MetricValue, Missing
from qoslab.analysis.queues import select_objects, used_selectors
from qoslab.model.instants import DURING
from qoslab.model.metrics import (
    METRICS,
    SELECTOR_BY_TABLE,
    CapturesSelector,
    ClassSelector,
    Reference,
    Selector,
    SelectorError,
    TableName,
)
from qoslab.results import tables
from qoslab.results.columns import Columns

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class _Source:
    """A table with rows from which metrics are computed."""

    table: TableName
    known: Callable[[Columns], Iterable[str]]
    """Function that returns the selectors of single objects in one cell's rows."""
    choose: Callable[[Columns, str | None], Columns | None]
    """Function that returns the rows of a selector; None if it has no object in this cell."""

    @property
    def selector(self) -> Selector:
        """Kind of selector of the table's metrics."""
        return SELECTOR_BY_TABLE[self.table]


def _column_selector(column: str) -> Callable[[Columns, str | None], Columns]:
    return lambda rows, selector: rows if selector is None else rows.select_values(column, [selector])


def _hosts(rows: Columns, selector: str | None) -> Columns:
    """Return the sending hosts, or the named one."""
    return rows.select_values("sends", [True]) if selector is None else rows.select_values("host", [selector])


def _pairs(rows: Columns, selector: str | None) -> Columns:
    """Return the rows of a pair of captures; without a selector those of the only pair."""
    return rows if selector is None else rows.select(np.array([each == selector for each in _captures(rows)]))


def _captures(rows: Columns) -> list[str]:
    """Return the selector of each row."""
    return [
        str(CapturesSelector(before, after, int(dscp) if known else None))
        for before, after, dscp, known in zip(
            rows["before"], rows["after"], rows["dscp"], rows.has("dscp"), strict=True
        )
    ]


def _classes(rows: Columns, selector: str | None) -> Columns | None:
    try:
        wanted = ClassSelector.parse(selector, class_interfaces(rows))
    except SelectorError:
        # Names a router or interface that has no class in this cell.
        return None
    return rows if selector is None else select_classes(rows, wanted, nested=True)


_SOURCES = (
    _Source("flows", lambda rows: rows.distinct("traffic"), _column_selector("traffic")),
    _Source("hosts", lambda rows: _hosts(rows, None).distinct("host"), _hosts),
    _Source("intervals", lambda rows: rows.distinct("traffic"), _column_selector("traffic")),
    _Source("probes", lambda rows: rows.distinct("probe"), _column_selector("probe")),
    _Source("classes", lambda rows: rows.select_values("direction", ["output"]).distinct("class"), _classes),
    _Source("limiters", _captures, _pairs),
    _Source("interfaces", lambda rows: used_selectors("interface", rows), select_objects),
    _Source("conversations", lambda rows: rows.distinct("traffic"), _column_selector("traffic")),
    _Source("queues", lambda rows: used_selectors("queue", rows), select_objects),
)


def metrics_of_cell(
    key: tuple[object, ...], facts: CellFacts, wanted: Iterable[Reference] = (), most_each: int | None = None
) -> list[dict[str, object]]:
    """Return the rows of `metrics` of one cell: every metric in total and by object, and those in `wanted`.

    `key` is the cell's arm, repetition and name, and `facts` has all its tables. If a table has more than `most_each`
    traffics, probes and so on, it has no metrics by object.
    """
    wanted = tuple(wanted)
    rows: list[dict[str, object]] = []
    for source in _SOURCES:
        if len(facts.tables[source.table]):
            rows += _source_metrics(source, facts.tables[source.table], key, facts, wanted, most_each)
    return rows


def _source_metrics(
    source: _Source,
    table: Columns,
    key: tuple[object, ...],
    facts: CellFacts,
    wanted: Sequence[Reference],
    most_each: int | None,
) -> Iterator[dict[str, object]]:
    """Return the rows of `metrics` of one cell that come from one table."""
    functions = metric_functions(source.table)
    named = (each.selector for each in wanted if each.metric.selector == source.selector)
    known = tuple(source.known(table))
    if most_each is not None and len(known) > most_each:
        known = ()
    # A selector that covers all rows gives the same values as no selector: most cells have one traffic entry.
    of_all: dict[int, list[MetricValue]] = {}
    for selector in dict.fromkeys((None, *known, *named)):
        chosen = source.choose(table, selector)
        if chosen is None:
            continue
        selection = Selection(chosen, table, selector, facts)
        for number, function in enumerate(functions):
            if function.by_rows and len(chosen) == len(table):
                if number not in of_all:
                    of_all[number] = list(function.values(selection))
                values: Iterable[MetricValue] = of_all[number]
            else:
                values = function.values(selection)
            yield from (_row(key, Reference(METRICS[name], selector), value) for name, value in values)
        if source.table == "classes":
            asked = [each for each in wanted if each.at is not None and each.selector == selector]
            yield from (_row(key, *metric_value) for metric_value in _metrics_at_instants(selection, asked))


def concatenate_cells(parts: Sequence[pa.Table]) -> pd.DataFrame:
    """Return the `metrics` of consecutive cells as one table, by source table, then by cell."""
    return order_metrics(tables.concatenate_parts("metrics", parts))


def order_metrics(found: pd.DataFrame) -> pd.DataFrame:
    """Return the `metrics` of consecutive cells ordered by source table, then by cell."""
    order = {name: place for place, source in enumerate(_SOURCES) for name in _table_metric_names(source.table)}
    place = {name: order[Reference.parse(name).metric.name] for name in found["metric"].unique()}
    return found.iloc[found["metric"].map(place).astype(int).argsort(kind="stable")].reset_index(drop=True)


def _table_metric_names(table: TableName) -> list[str]:
    return [name for function in metric_functions(table) for name in function.names]


def _metrics_at_instants(
    selection: Selection, wanted: Iterable[Reference]
) -> Iterator[tuple[Reference, float | Missing]]:
    """Yield the metrics of classes at the instants in `wanted`."""
    for at in dict.fromkeys(each.at for each in wanted):
        assert at is not None
        moment = moment_s(selection.rows, at)
        names = [each for each in wanted if each.at == at]
        if isinstance(moment, Missing):
            yield from ((each, moment) for each in names)
            continue
        found = _metrics_until(selection, moment)
        if error := instant_error_s(selection.rows, at, moment):
            of = f"{selection.selector or 'the class counters'} @ {at}"
            around = [_metrics_until(selection, moment + shift) for shift in (-error, error)]
            found = {
                name: value_if_precise(_with_time_error(value, name, around), of.__str__)
                for name, value in found.items()
            }
        yield from ((each, found[each.metric.name]) for each in names if each.metric.name in found)


def _metrics_until(selection: Selection, moment: float) -> dict[str, float | Missing]:
    """Return the metrics of classes from the readings up to an instant, in seconds; metrics of `during` are of this
    instant, at any time of the traffic.
    """
    facts = replace(selection.cell, traffic_s=moment / float(DURING))
    rows, whole = readings_until(selection.rows, moment), readings_until(selection.whole, moment)
    then = replace(selection, rows=rows, whole=whole, cell=facts)
    return {name: value for function in metric_functions("classes") for name, value in function.values(then)}


def _with_time_error(
    value: float | Missing, name: str, around: Iterable[Mapping[str, float | Missing]]
) -> float | Missing:
    """Return a value, with its change for a slightly earlier or later instant as an additional error."""
    if isinstance(value, Missing):
        return value
    others = (found.get(name, value) for found in around)
    apart = max((abs(other - value) for other in others if not isinstance(other, Missing)), default=0.0)
    return Estimate(value, estimate_error(value) + apart) if apart else value


def _row(key: tuple[object, ...], reference: Reference, value: float | Missing) -> dict[str, object]:
    known = not isinstance(value, Missing)
    return {
        "arm": key[0],
        "repetition": key[1],
        "cell": key[2],
        "metric": str(reference),
        "unit": reference.metric.unit,
        "value": value if known else None,
        "error": value.error if isinstance(value, Estimate) else None,
        "missing": None if known else str(value),
    }
