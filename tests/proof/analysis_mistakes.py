"""Deliberate mistakes of the analysis, made by patches: name, description, patch.

Most of them change the tables from which metrics are computed, like a faulty reader of raw results would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pandas as pd

from qoslab.analysis import readings as analysis
from qoslab.analysis import (
    steady,
)
from qoslab.analysis.arrivals import Arriving
from qoslab.analysis.metric_functions import CellFacts
from qoslab.analysis.statistics import Values, WarmUp
from qoslab.results import tables
from qoslab.results.columns import Columns

Change = Callable[[pd.DataFrame], pd.DataFrame]


def table(name: str, change: Change) -> Callable[[], AbstractContextManager[None]]:
    """Return a patch that replaces a table."""

    @contextmanager
    def made() -> Iterator[None]:
        compute, compare = analysis.metrics_of_cell, analysis.report_mismatches

        def changed_columns(rows: Columns) -> Columns:
            return Columns.from_frame(change(tables.make_frame(name, rows)))

        def mistaken(key: tuple[object, ...], facts: CellFacts, *others: Any) -> list[dict[str, object]]:
            read = {**facts.tables, name: changed_columns(facts.tables[name])}
            return compute(key, replace(facts, tables=read), *others)

        def unlike(flows: Columns, arriving: Arriving) -> Iterator[str]:
            return compare(changed_columns(flows) if name == "flows" else flows, arriving)

        with patch.object(analysis, "metrics_of_cell", mistaken), patch.object(analysis, "report_mismatches", unlike):
            yield

    return made


def flows(factor: float) -> Change:
    """Multiply payload and rates by a factor."""
    return lambda rows: rows.assign(bytes=rows["bytes"] * factor, goodput_bps=rows["goodput_bps"] * factor)


def of_sender(rows: pd.DataFrame) -> pd.DataFrame:
    """Return sent bytes in place of received ones."""
    sent = rows["sender_bps"].where(rows["sender_bps"].notna(), rows["goodput_bps"])
    return rows.assign(goodput_bps=sent, bytes=sent * rows["seconds"] / 8)


def whole_reads(rows: pd.DataFrame) -> pd.DataFrame:
    """Return TCP bytes in whole reads of 128 KiB, as iperf3 3.18 counts them."""
    whole = (rows["bytes"] // 131_072 * 131_072).where(rows["protocol"] == "tcp", rows["bytes"])
    return rows.assign(bytes=whole, goodput_bps=whole * 8 / rows["seconds"])


def longer_flow(rows: pd.DataFrame) -> pd.DataFrame:
    """Make the flow a second longer."""
    seconds = rows["seconds"] + 1
    return rows.assign(seconds=seconds, goodput_bps=rows["goodput_bps"] * rows["seconds"] / seconds)


def other_direction(rows: pd.DataFrame) -> pd.DataFrame:
    """Exchange input and output."""
    prefixes = {"input_": "output_", "output_": "input_"}
    names = {name: other + name[len(own) :] for name in rows for own, other in prefixes.items() if name.startswith(own)}
    return rows.rename(columns=names)


def swap_directions(one: str, other: str) -> Change:
    """Exchange two columns."""
    return lambda rows: rows.rename(columns={one: other, other: one})


@contextmanager
def with_warm_up() -> Iterator[None]:
    """Count the warm-up as measurement."""
    found = steady.warm_up

    def without_samples(series: Values, known: int = 0) -> WarmUp:
        return replace(found(series, known), samples=0)

    with patch.object(steady, "warm_up", without_samples):
        yield


ANALYSIS: list[tuple[str, str, Callable[[], AbstractContextManager[None]]]] = [
    ("payload-with-headers", "goodput counts headers of 40 bytes in 1500", table("flows", flows(1500 / 1460))),
    ("rates-in-1024", "rates are in units of 1024 bits", table("flows", flows(1000 / 1024))),
    ("goodput-of-sender", "goodput counts the sent bytes", table("flows", of_sender)),
    ("whole-reads", "goodput omits a partial read of 128 KiB", table("flows", whole_reads)),
    ("time-longer", "a flow lasts one second longer", table("flows", longer_flow)),
    ("first-stream-lost", "the first stream of a flow is left out", table("flows", lambda r: r[r["stream"] != 1])),
    (
        "first-interval-lost",
        "the first two seconds of a flow are left out",
        table("intervals", lambda rows: rows[rows["start_s"] >= 2]),
    ),
    ("warm-up-kept", "no interval is treated as warm-up", with_warm_up),
    ("interfaces-reversed", "the directions of an interface are swapped", table("interfaces", other_direction)),
    (
        "samples-early",
        "counters are read five seconds before their recorded time",
        table("classes", lambda rows: rows.assign(time_s=rows["time_s"] + 5)),
    ),
    (
        "queues-from-zero",
        "queues of a switch are numbered from 0",
        table("queues", lambda rows: rows.assign(queue=rows["queue"] - 1)),
    ),
    (
        "average-for-greatest",
        "the mean and the greatest round trip are swapped",
        table("probes", swap_directions("rtt_avg_ms", "rtt_max_ms")),
    ),
    (
        "jitter-for-round-trip",
        "mean jitter and mean round trip are swapped",
        table("probes", swap_directions("rtt_avg_ms", "jitter_avg_ms")),
    ),
]
