"""Goodput relative to the rates of policer and path, and RFC 6349's metrics of TCP throughput testing. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from qoslab.analysis.class_lines import Lines
from qoslab.analysis.classes import keys_of
from qoslab.analysis.goodput import total_bps
from qoslab.analysis.metric_functions import metrics_of
from qoslab.analysis.missing import Figure
from qoslab.analysis.paths import FULL_PACKET_BYTES, Path, Paths
from qoslab.model.framing import COUNTED_HEADER

CLASS_DEFAULT = "class-default"


def granted_bps(policed: Mapping[str, Any], lines: Lines) -> float:
    """Return the rate that a policer passes, in IP bytes of full packets; `policed` is a reading of its class.

    A policer counts the layer-2 header too (14 bytes of Ethernet), so its CIR is higher than this rate.
    """
    line = lines.get((str(policed["device"]), str(policed["interface"])))
    header = COUNTED_HEADER["ethernet"] if line is None else line.header_bytes
    return float(policed["police_cir_bps"]) * FULL_PACKET_BYTES / (FULL_PACKET_BYTES + header)


def only_pir(classes: pd.DataFrame, lines: Lines) -> float | None:
    """Return the rate that the only policer of a cell passes; None if it has none, or several."""
    policed = classes[classes["police_cir_bps"].notna()]
    if len(set(keys_of(policed))) != 1:
        return None
    return granted_bps({name: policed[name].iloc[0] for name in ("device", "interface", "police_cir_bps")}, lines)


@metrics_of(
    "flows",
    "goodput.of_pir",
    "goodput.of_pir.ip",
    "goodput.of_bottleneck",
    "tcp.transfer_time_ratio",
    "tcp.efficiency",
    "tcp.buffer_delay",
    "tcp.rtt",
    classes=lambda selection: selection.cell.policed,
    paths=lambda selection: selection.cell.paths,
    lines=lambda selection: selection.cell.lines,
)
def throughput_figures(flows: pd.DataFrame, classes: pd.DataFrame, paths: Paths, lines: Lines) -> Iterator[Figure]:
    """Compute the metrics of one cell's `flows` (all, or those of one traffic) relative to all of its `classes`."""
    if flows.empty:
        return
    goodput = total_bps(flows)
    pir = only_pir(classes, lines)
    mss = segment_size(flows)
    if pir is not None:
        yield "goodput.of_pir", goodput / pir
        if mss is not None:
            yield "goodput.of_pir.ip", goodput / pir * FULL_PACKET_BYTES / mss
    names = [str(name) for name in flows["traffic"].unique()]
    ways = {paths.get(name) for name in names}
    path = ways.pop() if len(ways) == 1 else None
    if path is None:
        return
    bottleneck = path.rate_bps
    if pir is not None and _crosses(path, classes[classes["police_cir_bps"].notna()].iloc[0]):
        bottleneck = min(bottleneck, pir)
    yield "goodput.of_bottleneck", goodput / bottleneck
    if len(names) == 1 and mss is not None:
        yield from rfc6349_figures(flows, bottleneck * mss / FULL_PACKET_BYTES, path.idle_rtt_ms, mss)


def tcp_flows(flows: pd.DataFrame) -> pd.DataFrame:
    """Return the flows with known segments."""
    return flows[flows["protocol"] == "tcp"]


def segment_size(flows: pd.DataFrame) -> float | None:
    """Return the payload of a full segment; None if it differs between flows, or a tool does not report it."""
    sizes = flows["mss_bytes"].astype(float)
    return float(sizes.iloc[0]) if len(sizes) and sizes.notna().all() and sizes.nunique() == 1 else None


def rfc6349_figures(flows: pd.DataFrame, achievable_bps: float, idle_rtt_ms: float, mss: float) -> Iterator[Figure]:
    """Compute the TCP metrics of RFC 6349, section 4, of one traffic. `achievable_bps` is in payload.

    Retransmitted bytes are the tool's number of segments times the size of a full one.
    """
    octets, seconds = float(flows["bytes"].sum()), float(flows["seconds"].max())
    if octets:
        yield "tcp.transfer_time_ratio", seconds / (octets * 8 / achievable_bps)
    if flows["retransmits"].notna().all():
        again = float(flows["retransmits"].sum()) * mss
        if octets + again:
            yield "tcp.efficiency", octets / (octets + again)
    round_trips = flows["rtt_mean_ms"].astype(float)
    if round_trips.notna().all():
        mean = float(round_trips.mean())
        yield "tcp.rtt", mean
        yield "tcp.buffer_delay", (mean - idle_rtt_ms) / idle_rtt_ms


def _crosses(path: Path, policed: pd.Series) -> bool:
    """Return whether all packets of the path cross the policer."""
    ports = path.inputs if policed["direction"] == "input" else path.outputs
    return policed["class"] == CLASS_DEFAULT and (policed["device"], policed["interface"]) in ports
