"""Metrics of hosts, from rows of the table `hosts`. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from qoslab.analysis.metric_functions import register_metrics
from qoslab.analysis.missing import MetricValue, Missing, total
from qoslab.analysis.throughput import segment_size, tcp_flows
from qoslab.results.columns import Columns


@register_metrics(
    "hosts",
    "tcp.retransmits",
    "tcp.retransmitted",
    "tcp.timeouts",
    mss_bytes=lambda selection: segment_size(tcp_flows(selection.cell.tables["flows"])),
)
def host_values(hosts: Columns, mss_bytes: float | None) -> Iterator[MetricValue]:
    """Compute the metrics of one cell's hosts together. The size of a full segment is None if it is unknown."""
    if not len(hosts):
        return
    again = total(hosts["retransmitted_segments"], "the counters of hosts")
    yield "tcp.retransmits", again
    if mss_bytes is not None:
        yield "tcp.retransmitted", again if isinstance(again, Missing) else again * mss_bytes
    yield "tcp.timeouts", total(hosts["timeouts"], "the counters of hosts")
