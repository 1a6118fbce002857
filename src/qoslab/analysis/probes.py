"""Metrics of IP SLA operations, from rows of the table `probes`. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from qoslab.analysis.metric_functions import register_metrics
from qoslab.analysis.missing import MetricValue
from qoslab.results.columns import Columns


@register_metrics(
    "probes",
    "rtt.min",
    "rtt.avg",
    "rtt.p50",
    "rtt.max",
    "rtt.count",
    "jitter.min",
    "jitter.avg",
    "jitter.max",
    "jitter.back.min",
    "jitter.back.avg",
    "jitter.back.max",
)
def probe_values(probes: Columns) -> Iterator[MetricValue]:
    """Compute the metrics of one probe; none for several together, since their paths differ."""
    if len(probes) != 1:
        return
    yield "rtt.count", float(probes["rtt_count"][0])
    if probes.has("rtt_p50_ms")[0]:
        yield "rtt.p50", float(probes["rtt_p50_ms"][0])
    for name in ("rtt", "jitter", "jitter.back"):
        column = name.replace(".", "_")
        for part in ("min", "avg", "max"):
            # An echo operation has no jitter.
            if probes.has(f"{column}_{part}_ms")[0]:
                yield f"{name}.{part}", float(probes[f"{column}_{part}_ms"][0])
