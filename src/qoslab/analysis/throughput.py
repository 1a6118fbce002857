"""Goodput relative to the rates of policer and path, and RFC 6349's metrics of TCP throughput testing. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qoslab.analysis.class_lines import Lines
from qoslab.analysis.classes import class_keys
from qoslab.analysis.goodput import total_bps
from qoslab.analysis.metric_functions import register_metrics
from qoslab.analysis.missing import MetricValue
from qoslab.analysis.paths import FULL_PACKET_BYTES, Path, Paths
from qoslab.analysis.timeline import greatest
from qoslab.model.framing import COUNTED_HEADER
from qoslab.results.columns import Columns

CLASS_DEFAULT = "class-default"


def granted_bps(policed: Columns, lines: Lines) -> float:
    """Return the rate that a policer passes, in IP bytes of full packets; `policed` are readings of its class.

    A policer counts the layer-2 header too (14 bytes of Ethernet), so its CIR is higher than this rate.
    """
    line = lines.get((str(policed["device"][0]), str(policed["interface"][0])))
    header = COUNTED_HEADER["ethernet"] if line is None else line.header_bytes
    return float(policed["police_cir_bps"][0]) * FULL_PACKET_BYTES / (FULL_PACKET_BYTES + header)


def single_policer_rate(classes: Columns, lines: Lines) -> float | None:
    """Return the rate that the only policer of a cell passes; None if it has none, or several."""
    policed = classes.select(classes.has("police_cir_bps"))
    return granted_bps(policed, lines) if len(set(class_keys(policed))) == 1 else None


@register_metrics(
    "flows",
    "goodput.of_pir",
    "goodput.of_pir.ip",
    "goodput.of_bottleneck",
    "tcp.transfer_time_ratio",
    "tcp.efficiency",
    "tcp.buffer_delay",
    "tcp.rtt",
    classes=lambda selection: selection.cell.policed_readings,
    paths=lambda selection: selection.cell.paths,
    lines=lambda selection: selection.cell.lines,
)
def throughput_values(flows: Columns, classes: Columns, paths: Paths, lines: Lines) -> Iterator[MetricValue]:
    """Compute the metrics of one cell's `flows` (all, or those of one traffic) relative to all of its `classes`."""
    if not len(flows):
        return
    goodput = total_bps(flows)
    pir = single_policer_rate(classes, lines)
    mss = segment_size(flows)
    if pir is not None:
        yield "goodput.of_pir", goodput / pir
        if mss is not None:
            yield "goodput.of_pir.ip", goodput / pir * FULL_PACKET_BYTES / mss
    names = [str(name) for name in flows.distinct("traffic")]
    ways = {paths.get(name) for name in names}
    path = ways.pop() if len(ways) == 1 else None
    if path is None:
        return
    bottleneck = path.rate_bps
    if pir is not None and _crosses(path, classes.select(classes.has("police_cir_bps"))):
        bottleneck = min(bottleneck, pir)
    yield "goodput.of_bottleneck", goodput / bottleneck
    if len(names) == 1 and mss is not None:
        yield from rfc6349_values(flows, bottleneck * mss / FULL_PACKET_BYTES, path.idle_rtt_ms, mss)


def tcp_flows(flows: Columns) -> Columns:
    """Return the flows with known segments."""
    return flows.select(flows["protocol"] == "tcp")


def segment_size(flows: Columns) -> float | None:
    """Return the payload of a full segment; None if it differs between flows, or a tool does not report it."""
    sizes = flows["mss_bytes"]
    return float(sizes[0]) if len(sizes) and (sizes == sizes[0]).all() else None


def rfc6349_values(flows: Columns, achievable_bps: float, idle_rtt_ms: float, mss: float) -> Iterator[MetricValue]:
    """Compute the TCP metrics of RFC 6349, section 4, of one traffic. `achievable_bps` is in payload.

    Retransmitted bytes are the tool's number of segments times the size of a full one.
    """
    octets, seconds = float(np.nansum(flows["bytes"])), greatest(flows["seconds"])
    if octets:
        yield "tcp.transfer_time_ratio", seconds / (octets * 8 / achievable_bps)
    if flows.has("retransmits").all():
        again = float(flows["retransmits"].sum()) * mss
        if octets + again:
            yield "tcp.efficiency", octets / (octets + again)
    if flows.has("rtt_mean_ms").all():
        mean = float(flows["rtt_mean_ms"].mean())
        yield "tcp.rtt", mean
        yield "tcp.buffer_delay", (mean - idle_rtt_ms) / idle_rtt_ms


def _crosses(path: Path, policed: Columns) -> bool:
    """Return whether all packets of the path cross the policer."""
    device, interface, direction, name = (policed[each][0] for each in ("device", "interface", "direction", "class"))
    return name == CLASS_DEFAULT and (device, interface) in (path.inputs if direction == "input" else path.outputs)
