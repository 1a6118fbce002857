"""Metrics `conversation.*`, from counters of classic weighted fair queueing over time. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from qoslab.analysis.classes import common_value, sums_by_time
from qoslab.analysis.estimates import sampled_median
from qoslab.analysis.metric_functions import register_metrics
from qoslab.analysis.missing import MetricValue
from qoslab.model.instants import WINDOW_START
from qoslab.results.columns import Columns


@register_metrics(
    "conversations", "conversation.depth", "conversation.weight", traffic_s=lambda selection: selection.cell.traffic_s
)
def conversation_values(mine: Columns, traffic_s: float) -> Iterator[MetricValue]:
    """Compute the metrics of some conversations of one cell: total queued packets, and the weight if it is the same for
    all.
    """
    running = mine.select((mine["time_s"] > WINDOW_START * traffic_s) & (mine["time_s"] < traffic_s))
    if not len(running):
        return
    yield "conversation.depth", sampled_median(sums_by_time(running, "depth_packets")[1].tolist())
    weight = common_value(running, "weight")
    if weight is not None:
        yield "conversation.weight", weight
