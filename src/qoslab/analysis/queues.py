"""Metrics `interface.*` and `queue.*`, from counters of interfaces and of a switch's egress queues over time. Pure.

Counters are over the traffic time: the last reading minus the first one, which is taken before traffic starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
import pandas as pd

from qoslab.analysis.classes import class_interfaces, group_rows_by_time
from qoslab.analysis.metric_functions import register_metrics
from qoslab.analysis.missing import READ_ONCE, MetricValue, Missing, total
from qoslab.model.metrics import QueueSelector, SelectorError
from qoslab.results.columns import Columns

Place = Literal["interface", "queue"]
"""Object with counters, as in selectors; the name of its table is the plural."""

_KEYS: dict[Place, list[str]] = {
    "interface": ["device", "interface"],
    "queue": ["device", "interface", "queue", "threshold"],
}
_FIGURES: dict[Place, dict[str, str]] = {
    "interface": {"interface.drops": "output_drops"},
    "queue": {"queue.drops": "dropped", "queue.enqueued": "enqueued"},
}


def used_selectors(place: Place, table: Columns) -> list[str]:
    """Return the selectors of each interface, or of each queue of each interface, that was used."""
    if place == "interface":
        return [str(name) for name in table.distinct("interface")]
    used = table.select((table["enqueued"] > 0) | (table["dropped"] > 0))
    pairs = dict.fromkeys(zip(used["interface"], used["queue"].tolist(), strict=True))
    return [f"{interface} {queue:.0f}" for interface, queue in pairs]


QUEUE = _KEYS["queue"]
"""Columns that identify a threshold of a queue."""


def queue_counts(table: pd.DataFrame) -> pd.DataFrame:
    """Return the frames of each used queue and threshold of one cell over the traffic time: its keys, enqueued,
    dropped.
    """
    counted = table.sort_values("time_s").groupby(QUEUE)[["enqueued", "dropped"]]
    found = (counted.last() - counted.first()).reset_index()
    return found[(found["enqueued"] > 0) | (found["dropped"] > 0)].reset_index(drop=True)


def busy_ports(table: pd.DataFrame) -> list[tuple[str, str]]:
    """Return device and interface of the ports of one cell that dropped frames, or of the busiest port if none did."""
    counts = queue_counts(table)
    if counts.empty:
        return []
    ports = counts.groupby(["device", "interface"])[["enqueued", "dropped"]].sum()
    dropping = ports[ports["dropped"] > 0]
    chosen = dropping.sort_values("dropped", ascending=False) if len(dropping) else ports.nlargest(1, "enqueued")
    return [(str(device), str(interface)) for device, interface in chosen.index]


def queue_rates(table: pd.DataFrame, device: str, interface: str) -> pd.DataFrame:
    """Return the frames per second of each used queue between readings: queue, time_s (the later),
    enqueued, dropped.
    """
    mine = table[(table["device"] == device) & (table["interface"] == interface)]
    # Values missing from every threshold of a queue stay missing.
    counted = mine.groupby(["queue", "time_s"], as_index=False)[["enqueued", "dropped"]].sum(min_count=1)
    parts = []
    for _, queue in counted.groupby("queue"):
        seconds = queue["time_s"].astype(float).diff()
        if not (queue[["enqueued", "dropped"]].max() > 0).any():
            continue
        rates = {name: queue[name].astype(float).diff() / seconds for name in ("enqueued", "dropped")}
        # Two readings soon after one another would look like a peak.
        parts.append(queue.assign(**rates)[seconds > seconds.median() / 2])
    columns = ["queue", "time_s", "enqueued", "dropped"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def select_objects(table: Columns, selector: str | None) -> Columns:
    """Return the rows of one cell's table for a selector; none if its object counted nothing in this cell."""
    try:
        wanted = QueueSelector.parse(selector, class_interfaces(table))
    except SelectorError:
        return table.take_rows(np.zeros(0, dtype=int))
    mine = table
    for column, value in (
        ("device", wanted.router),
        ("interface", wanted.interface),
        ("queue", wanted.queue),
        ("threshold", wanted.threshold),
    ):
        if value is not None:
            mine = mine.select(mine[column] == value)
    return mine


_DELAYS = {f"interface.delay.{name}": f"queueing_delay_{name}_ns" for name in ("mean", "p50", "p99", "max")}


@register_metrics("interfaces", *_FIGURES["interface"], *_DELAYS)
def interface_values(mine: Columns) -> Iterator[MetricValue]:
    """Compute the metrics `interface.*`, added up over some interfaces of one cell."""
    if not len(mine):
        return
    for name, column in _FIGURES["interface"].items():
        yield name, _counter_sums(mine, "interface", column)
    # Counted since the counters were cleared, right before the traffic; quantiles of several ports cannot be added. A
    # port without a packet has no delay.
    places = group_rows_by_time(mine, *_KEYS["interface"])
    for name, column in _DELAYS.items():
        values = mine[column]
        known = [finite[-1] for rows in places.values() if len(finite := values[rows][~np.isnan(values[rows])])]
        if known:
            yield name, float(max(known)) / 1e6
        elif mine.has("time_error_s").any():
            yield name, Missing("no show command reports the queueing delay at an interface")


@register_metrics("queues", *_FIGURES["queue"])
def queue_values(mine: Columns) -> Iterator[MetricValue]:
    """Compute the metrics `queue.*`, added up over some egress queues of one cell."""
    if not len(mine):
        return
    for name, column in _FIGURES["queue"].items():
        yield name, _counter_sums(mine, "queue", column)


def _counter_sums(mine: Columns, place: Place, column: str) -> float | Missing:
    """Return the sums of the counters over the traffic time and all selected objects."""
    grown = []
    values = mine[column]
    for key, rows in sorted(group_rows_by_time(mine, *_KEYS[place]).items()):
        readings = values[rows]
        if len(readings) < 2:
            return Missing(f"{key[0]} {key[1]}: {READ_ONCE}")
        if (np.diff(readings) < 0).any():
            return Missing(f"{key[0]} {key[1]}: its counters decreased")
        grown.append(float(readings[-1] - readings[0]))
    return total(np.array(grown), f"the counters ({column})")
