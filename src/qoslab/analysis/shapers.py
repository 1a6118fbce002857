"""Metrics `shape.*`, from counters of shapers over time. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qoslab.analysis.classes import common_value, last_of_class, printed_depth
from qoslab.analysis.metric_functions import register_metrics
from qoslab.analysis.missing import MetricValue, total
from qoslab.model.instants import DURING
from qoslab.results.columns import Columns

_SHAPE = {
    "shape.byte_limit": "shape_byte_limit",
    "shape.sustain_bits": "shape_bc_bits",
    "shape.excess_bits": "shape_be_bits",
    "shape.interval_ms": "shape_interval_ms",
    "shape.increment_bytes": "shape_increment_bytes",
}
_COUNTERS = {
    f"shape.{which}_{unit}": f"shape_{which}_{unit}" for which in ("sent", "delayed") for unit in ("packets", "bytes")
}
"""Counters that are only in the output of the classic generation."""


@register_metrics(
    "classes",
    *_SHAPE,
    *_COUNTERS,
    "shape.queue_depth.during",
    "shape.active.during",
    traffic_s=lambda selection: selection.cell.traffic_s,
)
def shaper_values(classes: Columns, traffic_s: float) -> Iterator[MetricValue]:
    """Compute the metrics of all shapers of one cell; settings only if all have the same, queue depths added up."""
    shaped = classes.select(classes.has("shape_mode"))
    if not len(shaped):
        return
    last = last_of_class(shaped)
    for metric, column in _SHAPE.items():
        value = common_value(last, column)
        if value is not None:
            yield metric, value
    for metric, column in _COUNTERS.items():
        yield metric, total(last[column], "counters of shapers")
    running = shaped.select((shaped["time_s"] > 0) & (shaped["time_s"] < traffic_s))
    if not len(running):
        return
    times = running["time_s"]
    moment = running.select(times == times[np.abs(times - DURING * traffic_s).argmin()])
    queues = moment.select(moment.has("queue_depth_packets") | moment.has("queue_discipline"))
    if len(queues):
        yield "shape.queue_depth.during", total(printed_depth(queues), "depths of queues")
    known = moment.distinct("shape_active")
    if any(known):
        yield "shape.active.during", 1.0
    elif known:
        yield "shape.active.during", total(moment["shape_active"], "states of shapers")
