"""Counters of interfaces and of a switch's egress queues over time → the metrics `interface.*` and `queue.*`. Pure.

Counters are those of the traffic time: the last reading less the first one, which is taken before traffic starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pandas as pd

from qoslab.analysis.classes import Figure, interfaces_of
from qoslab.model.metrics import QueueSelector, SelectorError

Place = Literal["interface", "queue"]
"""What counts at a place, as selectors name it; its table is called so in the plural."""

_KEYS: dict[Place, list[str]] = {
    "interface": ["device", "interface"],
    "queue": ["device", "interface", "queue", "threshold"],
}
_FIGURES: dict[Place, dict[str, str]] = {
    "interface": {"interface.drops": "output_drops"},
    "queue": {"queue.drops": "dropped", "queue.enqueued": "enqueued"},
}


def each_of(place: Place, table: pd.DataFrame) -> list[str]:
    """The selectors of each interface, or of each queue of each interface, that was used."""
    if place == "interface":
        return [str(name) for name in table["interface"].unique()]
    used = table[(table["enqueued"] > 0) | (table["dropped"] > 0)]
    pairs = used[["interface", "queue"]].drop_duplicates()
    return [f"{interface} {queue}" for interface, queue in pairs.itertuples(index=False)]


QUEUE = _KEYS["queue"]
"""What a threshold of a queue is known by."""


def queue_counts(table: pd.DataFrame) -> pd.DataFrame:
    """Frames of each used queue and threshold of one cell over the traffic time: its keys, enqueued, dropped."""
    counted = table.sort_values("time_s").groupby(QUEUE, sort=True)[["enqueued", "dropped"]]
    found = (counted.last() - counted.first()).reset_index()
    return found[(found["enqueued"] > 0) | (found["dropped"] > 0)].reset_index(drop=True)


def place_figures(place: Place, table: pd.DataFrame, selector: str | None) -> Iterator[Figure]:
    """The metrics of the interfaces or queues that `selector` means, added up, from one cell's table."""
    try:
        meant = QueueSelector.parse(selector, interfaces_of(table))
    except SelectorError:
        # Names a router or interface that counted nothing in this cell.
        return
    mine = table
    for column, value in (
        ("device", meant.router),
        ("interface", meant.interface),
        ("queue", meant.queue),
        ("threshold", meant.threshold),
    ):
        if value is not None:
            mine = mine[mine[column] == value]
    if mine.empty:
        return
    counted = mine.sort_values("time_s").groupby(_KEYS[place], sort=False)
    for name, column in _FIGURES[place].items():
        yield name, float((counted[column].last() - counted[column].first()).sum())
