"""Metrics `conversation.*`, from counters of classic weighted fair queueing over time. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from qoslab.analysis.classes import only_value
from qoslab.analysis.estimates import sampled_median
from qoslab.analysis.metric_functions import metrics_of
from qoslab.analysis.missing import Figure
from qoslab.model.instants import WINDOW_FROM


@metrics_of(
    "conversations",
    "conversation.depth",
    "conversation.weight",
    traffic_s=lambda selection: selection.cell.traffic_s,
)
def conversation_figures(mine: pd.DataFrame, traffic_s: float) -> Iterator[Figure]:
    """Compute the metrics of some conversations of one cell: total queued packets, and the weight if it is the same for
    all.
    """
    running = mine[(mine["time_s"] > WINDOW_FROM * traffic_s) & (mine["time_s"] < traffic_s)]
    if running.empty:
        return
    yield "conversation.depth", sampled_median(running.groupby("time_s")["depth_packets"].sum().tolist())
    weight = only_value(running["weight"])
    if weight is not None:
        yield "conversation.weight", weight
