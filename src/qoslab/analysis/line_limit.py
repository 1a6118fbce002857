"""Check of traffic metrics against the capacity of the links on a path: a higher value is an error of the analysis.
Pure.

All payload that a receiver counts has crossed each link of its path, and each packet used the link for its headers and
framing too. Values are compared with the capacity over the whole time of their flows, since packets in a queue or a
socket buffer arrive later than they were sent, and possibly all at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qoslab.analysis.paths import FULL_PACKET_BYTES, Hop, Paths, first_arm_paths
from qoslab.analysis.steady import simultaneous_span
from qoslab.analysis.timeline import greatest, known_minimum, span, spans, usual_interval
from qoslab.model.experiment import Experiment, Family, Flow
from qoslab.model.framing import CELL, CELL_PAYLOAD, COUNTED_HEADER, MEDIUM, Framing, line_bytes
from qoslab.model.metrics import Reference, format_value
from qoslab.results.columns import Column, Columns
from qoslab.traffic import find_tool
from qoslab.traffic.endpoints import flow_family, with_family

IP_HEADER: dict[Family, int] = {4: 20, 6: 40}
UDP_HEADER, TCP_HEADER = 8, 20
"""Bytes of the headers; TCP's without options."""
HOST_BURST_S = 0.01
"""Time of traffic that a host's interface sends at once from its token bucket: 5 ms of its line time, or two full
frames (docs/labs.md); it also covers test clocks that are read in milliseconds.
"""
SHARES = frozenset({"goodput.share", "fairness.jain", "datagrams.loss", "tcp.efficiency"})
"""Metrics with a maximum of 1, regardless of the links."""
RATES = frozenset(
    {
        "goodput.sum",
        "goodput.of_bottleneck",
        "goodput.steady",
        "goodput.together",
        "goodput.flow.max",
        "goodput.flow.min",
        "goodput.flow.median",
    }
)
"""Metrics that the links of a path limit."""
LIMITED = SHARES | RATES
ROUNDING = 1e-9


@dataclass(frozen=True)
class Carried:
    """Data for the comparison of a cell's values with the capacity of its links."""

    experiment: Experiment
    arm: str
    paths: Paths
    flows: Columns
    intervals: Columns
    policed: bool
    """True if a policer is in the cell."""
    most_bits: dict[tuple[str, ...], float] = field(default_factory=dict)
    """Capacity of the links in bits, by names of traffic; filled on demand."""
    _selected: dict[str | None, Columns] = field(default_factory=dict)

    def select_flows(self, selector: str | None) -> Columns:
        """Return the flows of a traffic, or all."""
        if selector not in self._selected:
            all_flows = self.flows
            self._selected[selector] = all_flows if selector is None else all_flows.select_values("traffic", [selector])
        return self._selected[selector]


def impossible_value_messages(
    experiment: Experiment, arm: str, found: Mapping[str, Columns], computed: Iterable[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield messages on impossibly high values of one cell; `found` are its tables, `computed` its rows of `metrics`.

    For traffic with an unknown path, only shares are checked.
    """
    policed = bool(found["classes"].has("police_cir_bps").any())
    cell = Carried(experiment, arm, first_arm_paths(experiment), found["flows"], found["intervals"], policed)
    known = {row["metric"]: float(row["value"]) for row in computed if row["value"] is not None}
    # A value of nan cannot be checked.
    values = {metric: value for metric, value in known.items() if not math.isnan(value)}
    for metric, value in values.items():
        if metric.partition("(")[0] not in LIMITED:
            continue
        reference = Reference.parse(metric)
        name, unit = reference.metric.name, reference.metric.unit
        most = 1.0 if name in SHARES else _metric_maximum(cell, reference, values)
        if most is not None and value > most * (1 + ROUNDING):
            why = "the whole" if name in SHARES else "the capacity of the links on its path"
            yield (
                f"{metric}: found {format_value(value, unit)}, expected at most {format_value(most, unit)}, {why}: "
                f"an error in the analysis or in a measurement"
            )
    parts = [values.get(f"goodput.share({name})", math.nan) for name in cell.flows.distinct("traffic")]
    if parts and abs(sum(parts) - 1) > ROUNDING:
        whole = f"found {sum(parts):.1%} for all traffic together, expected 100 %"
        yield f"goodput.share: {whole}: an error in the analysis"


def _metric_maximum(cell: Carried, reference: Reference, found: Mapping[str, float]) -> float | None:
    """Return the maximum of a rate metric; None for other metrics, or without a limit."""
    if reference.metric.name not in RATES:
        return None
    flows = cell.select_flows(reference.selector)
    seconds = _counted_s(cell, reference, flows, found)
    if seconds is None:
        return None
    of = tuple(flows.distinct("traffic"))
    if of not in cell.most_bits:
        cell.most_bits[of] = carried_bits(cell, flows)
    bits = cell.most_bits[of]
    if math.isinf(bits):
        return None
    if reference.metric.name == "goodput.of_bottleneck":
        seconds *= cell.paths[str(flows["traffic"][0])].rate_bps
    return bits / seconds


def _counted_s(cell: Carried, reference: Reference, flows: Columns, found: Mapping[str, float]) -> float | None:
    """Return the seconds over which a metric counts received bytes; None if it is not a rate of flows."""
    ran = span(flows)
    if ran is None:
        return None
    match reference.metric.name:
        case "goodput.sum":
            return ran[1] - ran[0]
        case "goodput.of_bottleneck" if not cell.policed:
            # Otherwise the lowest rate on the path may be that of a policer.
            return ran[1] - ran[0]
        case "goodput.steady":
            selector = "" if reference.selector is None else f"({reference.selector})"
            return ran[1] - ran[0] - found.get(f"goodput.warm_up{selector}", 0.0) / 1000
        case "goodput.together":
            shared = simultaneous_span(cell.intervals)
            return None if shared is None else shared[1] - shared[0]
        case "goodput.flow.max" | "goodput.flow.min" | "goodput.flow.median":
            start, end = spans(flows)
            return known_minimum(end - start)
        case _:
            return None


def carried_bits(cell: Carried, flows: Columns) -> float:
    """Return the payload bits of `flows` that the links can carry in their whole time; inf if a path is unknown.

    For flows with different paths it is the sum over several links, chosen so that each flow crosses one of them.
    """
    left = {flow.name: flow for flow in cell.experiment.arm_flows(cell.experiment.arm(cell.arm))}
    names = [str(name) for name in flows.distinct("traffic")]
    if any(name not in left or name not in cell.paths or not cell.paths[name].hops for name in names):
        return math.inf
    bits, remaining = 0.0, set(names)
    while remaining:
        hops = {hop for name in remaining for hop in cell.paths[name].hops}
        crossing = {hop: {name for name in remaining if hop in cell.paths[name].hops} for hop in hops}
        most = max(map(len, crossing.values()))
        limits = []
        for hop, those in crossing.items():
            if len(those) == most:
                rows = flows.select_values("traffic", those)
                limits.append((_link_bits(cell, hop, rows, [left[name] for name in those]), sorted(those)))
        least, done = min(limits)
        bits += least
        remaining -= {*done}
    return bits


def _link_bits(cell: Carried, hop: Hop, rows: Columns, flows: Iterable[Flow]) -> float:
    """Return the payload bits of some flows that a link can carry in their whole time.

    The time extends to the last reported interval if that ends after the flow. It has an error of an interval if
    several tools are started one after the other. A receiver with a clock that starts at the first packet counts one
    additional packet of each stream.
    """
    names = rows.distinct("traffic")
    intervals = cell.intervals.select_values("traffic", names)
    ran = span(rows)
    assert ran is not None
    last = greatest(np.nan_to_num(intervals["offset_s"]) + intervals["end_s"])
    end = max(ran[1], last) if len(intervals) else ran[1]
    started = usual_interval(intervals) if len(names) > 1 else None
    seconds = end - ran[0] + HOST_BURST_S + (started or 0.0)
    part = max(
        payload_share(cell.experiment, flow, hop.framing, rows.select_values("traffic", [flow.name])["mss_bytes"])
        for flow in flows
    )
    return seconds * hop.rate_bps * part + len(rows) * FULL_PACKET_BYTES * 8


def payload_share(experiment: Experiment, flow: Flow, framing: Framing, mss: Column) -> float:
    """Return the maximum share of a link's capacity for payload of a flow: the rest is headers and framing."""
    family = flow_family(experiment.topology, flow)
    header = IP_HEADER[family]
    payload: float | None = None
    if flow.protocol == "udp":
        payload = find_tool(flow.tool).sending_pattern(with_family(experiment.topology, flow)).get("payload_bytes")
        header += UDP_HEADER
    else:
        payload = float(mss.max()) if len(mss) and not np.isnan(mss).any() else None
        header += TCP_HEADER
    most = FULL_PACKET_BYTES - header
    if payload is None or payload > most:
        # In fragments, of which only the first has the UDP header.
        payload = FULL_PACKET_BYTES - IP_HEADER[family] if flow.protocol == "udp" else most
        header = FULL_PACKET_BYTES - int(payload)
    return payload / _line_bytes(framing, int(payload) + header)


def _line_bytes(framing: Framing, ip_bytes: int) -> float:
    """Return `line_bytes` without the padding of the last cell, which may be less for packets of another size."""
    if MEDIUM[framing] == "atm":
        return (ip_bytes + COUNTED_HEADER[framing]) * CELL / CELL_PAYLOAD
    return line_bytes(framing, ip_bytes)
