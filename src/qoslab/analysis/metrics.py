"""Metrics of `qoslab.model.metrics`, computed from tables by arm and repetition. Pure.

The functions that compute them register themselves (`qoslab.analysis.metric_functions`); this module divides the tables
into cells and selections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan

import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
from pandas.api.types import is_bool_dtype, is_numeric_dtype

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
from qoslab.analysis.at_instant import instant_error_s, moment_s, until
from qoslab.analysis.class_lines import Lines
from qoslab.analysis.classes import interfaces_of, selected
from qoslab.analysis.estimates import Estimate, error_of, given
from qoslab.analysis.metric_functions import CellFacts, Selection, Whole, functions_of
from qoslab.analysis.missing import Missing
from qoslab.analysis.paths import Paths
from qoslab.analysis.queues import each_of, places_of
from qoslab.model.instants import DURING
from qoslab.model.metrics import (
    METRICS,
    SELECTOR_OF_TABLE,
    CapturesSelector,
    ClassSelector,
    Reference,
    Selector,
    SelectorError,
    TableName,
)
from qoslab.results import tables

_CELL = ["arm", "repetition", "cell"]


@dataclass(frozen=True)
class _Source:
    """A table with rows from which metrics are computed."""

    table: TableName
    known: Callable[[pd.DataFrame], Iterable[str]]
    """Function that returns the selectors of single objects in one cell's rows."""
    choose: Callable[[pd.DataFrame, str | None], pd.DataFrame | None]
    """Function that returns the rows of a selector; None if it has no object in this cell."""
    by_rows: bool = True
    """True if values depend on the selected rows only, not on the selector's text."""

    @property
    def selector(self) -> Selector:
        """Kind of selector of the table's metrics."""
        return SELECTOR_OF_TABLE[self.table]


def _named(column: str) -> Callable[[pd.DataFrame, str | None], pd.DataFrame]:
    return lambda rows, selector: rows if selector is None else rows[rows[column] == selector]


def _hosts(rows: pd.DataFrame, selector: str | None) -> pd.DataFrame:
    """Return the sending hosts, or the named one."""
    return rows[rows["sends"].eq(True) if selector is None else rows["host"] == selector]


def _pairs(rows: pd.DataFrame, selector: str | None) -> pd.DataFrame:
    """Return the rows of a pair of captures; without a selector those of the only pair."""
    return rows if selector is None else rows[_captures(rows) == selector]


def _captures(rows: pd.DataFrame) -> pd.Series:
    """Return the selector of each row."""
    named = (
        str(CapturesSelector(before, after, None if pd.isna(dscp) else int(dscp)))
        for before, after, dscp in zip(rows["before"], rows["after"], rows["dscp"], strict=True)
    )
    return pd.Series(named, rows.index, dtype="object")


def _classes(rows: pd.DataFrame, selector: str | None) -> pd.DataFrame | None:
    try:
        wanted = ClassSelector.parse(selector, interfaces_of(rows))
    except SelectorError:
        # Names a router or interface that has no class in this cell.
        return None
    return rows if selector is None else selected(rows, wanted, nested=True)


_SOURCES = (
    _Source("flows", lambda rows: rows["traffic"].unique(), _named("traffic")),
    _Source("hosts", lambda rows: rows[rows["sends"].eq(True)]["host"].unique(), _hosts),
    _Source("intervals", lambda rows: rows["traffic"].unique(), _named("traffic")),
    _Source("probes", lambda rows: rows["probe"].unique(), _named("probe")),
    _Source("classes", lambda rows: rows[rows["direction"] == "output"]["class"].unique(), _classes, by_rows=False),
    _Source("limiters", lambda rows: _captures(rows).unique(), _pairs),
    _Source("interfaces", lambda rows: each_of("interface", rows), places_of),
    _Source("conversations", lambda rows: rows["traffic"].dropna().unique(), _named("traffic")),
    _Source("queues", lambda rows: each_of("queue", rows), places_of),
)


def _plain(table: pd.DataFrame) -> pd.DataFrame:
    """Return the same with NumPy's types, nan for missing values, since row selection is then much faster."""
    kinds = table.dtypes
    numbers = [name for name, kind in kinds.items() if is_numeric_dtype(kind) and not is_bool_dtype(kind)]
    others = [name for name in kinds.index if name not in numbers]
    # By kind, not by column, so that each kind is a single block for row selection.
    parts = (table[numbers].to_numpy(dtype="float64", na_value=nan), table[others].to_numpy(dtype="object"))
    frames = [pd.DataFrame(part, table.index, names) for part, names in zip(parts, (numbers, others), strict=True)]
    return pd.concat(frames, axis="columns")[list(kinds.index)]


_MADE_PLAIN = ("classes", "interfaces", "queues")


@dataclass(frozen=True)
class Circumstances:
    """Further data of cells for metrics, by the cell's name."""

    traffic_s: Mapping[str, float]
    lines: Mapping[str, Lines]
    """Lines behind the routers' interfaces."""
    paths: Mapping[str, Paths]
    """Paths of the traffic."""

    def of(self, name: str, found: Mapping[str, pd.DataFrame]) -> CellFacts:
        """Return the data of one cell with the tables `found`."""
        return CellFacts(found, self.traffic_s[name], self.lines.get(name, {}), self.paths.get(name, {}))


def metrics(
    found: Mapping[str, pd.DataFrame],
    around: Circumstances,
    wanted: Iterable[Reference] = (),
    most_each: int | None = None,
) -> pd.DataFrame:
    """Return the table `metrics`: every metric of each table in `found`, in total and by object, and those in `wanted`.

    A table without rows of a cell counts as empty. If there are more than `most_each` traffics, probes and so on, there
    are no metrics by object.
    """
    wanted = tuple(wanted)
    given: dict[str, pd.DataFrame] = {}
    for source in _SOURCES:
        given[source.table] = found.get(source.table, tables.frame(source.table, []))
    given |= {name: _plain(given[name]) for name in _MADE_PLAIN}
    parts = {name: dict(iter(table.groupby(_CELL, sort=False, dropna=False))) for name, table in given.items()}
    facts: dict[tuple[object, ...], CellFacts] = {}
    rows: list[dict[str, object]] = []
    for source in _SOURCES:
        for key, rows_of_cell in parts[source.table].items():
            if key not in facts:
                own = {name: parts[name].get(key, given[name].iloc[:0]) for name in given}
                facts[key] = around.of(str(key[2]), own)
            rows += _of_source(source, rows_of_cell, key, facts[key], wanted, most_each)
    return tables.frame("metrics", rows)


def metrics_of_cell(
    key: tuple[object, ...], facts: CellFacts, wanted: Iterable[Reference] = ()
) -> list[dict[str, object]]:
    """Return the rows of `metrics` of one cell, in order; `key` is its arm, repetition and name, and `facts` has all
    its tables.

    The tables must be in the form of `qoslab.results.tables.plain`.
    """
    wanted = tuple(wanted)
    rows: list[dict[str, object]] = []
    for source in _SOURCES:
        if len(facts.tables[source.table]):
            rows += _of_source(source, facts.tables[source.table], key, facts, wanted, None)
    return rows


def _of_source(
    source: _Source,
    table: pd.DataFrame,
    key: tuple[object, ...],
    facts: CellFacts,
    wanted: Sequence[Reference],
    most_each: int | None,
) -> Iterator[dict[str, object]]:
    """Return the rows of `metrics` of one cell that come from one table."""
    whole = Whole(table)
    functions = functions_of(source.table)
    named = (each.selector for each in wanted if each.metric.selector == source.selector)
    known = tuple(source.known(table))
    if most_each is not None and len(known) > most_each:
        known = ()
    # A selector of all rows has the same values as none: most cells have a single traffic.
    of_all: list[tuple[str, float | Missing]] | None = None
    for selector in dict.fromkeys((None, *known, *named)):
        chosen = source.choose(table, selector)
        if chosen is None:
            continue
        selection = Selection(chosen, whole, selector, facts)
        everything = source.by_rows and len(chosen) == len(table)
        if everything and of_all is not None:
            figures = of_all
        else:
            figures = [figure for function in functions for figure in function.figures(selection)]
        if everything:
            of_all = figures
        yield from (_row(key, Reference(METRICS[name], selector), value) for name, value in figures)
        if source.table == "classes":
            asked = [each for each in wanted if each.at is not None and each.selector == selector]
            yield from (_row(key, *figure) for figure in _at_moments(selection, asked))


def of_all_cells(parts: Sequence[pa.Table]) -> pd.DataFrame:
    """Return the `metrics` of single cells as one table, in the order that `metrics` has for many cells."""
    return in_order(tables.joined("metrics", parts))


def in_order(found: pd.DataFrame) -> pd.DataFrame:
    """Return the `metrics` of consecutive cells in the order of `metrics`: by source table, then by cell."""
    order = {name: place for place, source in enumerate(_SOURCES) for name in _names_of(source.table)}
    place = {name: order[Reference.parse(name).metric.name] for name in found["metric"].unique()}
    return found.iloc[found["metric"].map(place).astype(int).argsort(kind="stable")].reset_index(drop=True)


def _names_of(table: TableName) -> list[str]:
    return [name for function in functions_of(table) for name in function.names]


def _at_moments(selection: Selection, wanted: Iterable[Reference]) -> Iterator[tuple[Reference, float | Missing]]:
    """Yield the metrics of classes at the instants in `wanted`."""
    for at in dict.fromkeys(each.at for each in wanted):
        assert at is not None
        moment = moment_s(selection.rows, at)
        names = [each for each in wanted if each.at == at]
        if isinstance(moment, Missing):
            yield from ((each, moment) for each in names)
            continue
        found = _as_of(selection, moment)
        if error := instant_error_s(selection.rows, at, moment):
            of = f"{selection.selector or 'the class counters'} @ {at}"
            around = [_as_of(selection, moment + shift) for shift in (-error, error)]
            found = {name: given(_within(value, name, around), of.__str__) for name, value in found.items()}
        yield from ((each, found[each.metric.name]) for each in names if each.metric.name in found)


def _as_of(selection: Selection, moment: float) -> dict[str, float | Missing]:
    """Return the metrics of classes from the readings up to an instant, in seconds; metrics of `during` are of this
    instant, at any time of the traffic.
    """
    facts = replace(selection.cell, traffic_s=moment / float(DURING))
    rows, whole = until(selection.rows, moment), Whole(until(selection.whole.rows, moment))
    then = replace(selection, rows=rows, whole=whole, cell=facts)
    return {name: value for function in functions_of("classes") for name, value in function.figures(then)}


def _within(value: float | Missing, name: str, around: Iterable[Mapping[str, float | Missing]]) -> float | Missing:
    """Return a value, with its change for a slightly earlier or later instant as an additional error."""
    if isinstance(value, Missing):
        return value
    others = (found.get(name, value) for found in around)
    apart = max((abs(other - value) for other in others if not isinstance(other, Missing)), default=0.0)
    return Estimate(value, error_of(value) + apart) if apart else value


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
