"""Metrics of IP SLA operations, from rows of the table `probes`. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from qoslab.analysis.metric_functions import metrics_of
from qoslab.analysis.missing import Figure


@metrics_of(
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
def probe_figures(probes: pd.DataFrame) -> Iterator[Figure]:
    """Compute the metrics of one probe; none for several together, since their paths differ."""
    if len(probes) != 1:
        return
    row = probes.iloc[0]
    yield "rtt.count", float(row["rtt_count"])
    if pd.notna(row["rtt_p50_ms"]):
        yield "rtt.p50", float(row["rtt_p50_ms"])
    for name in ("rtt", "jitter", "jitter.back"):
        column = name.replace(".", "_")
        for part in ("min", "avg", "max"):
            # An echo operation has no jitter.
            if pd.notna(row[f"{column}_{part}_ms"]):
                yield f"{name}.{part}", float(row[f"{column}_{part}_ms"])
