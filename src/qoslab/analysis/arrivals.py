"""Comparison of the traffic tools' reports with the arrivals in a capture at the receiver. Pure.

A prompt receiver counts everything that has arrived in order, except for less than one read of each stream, and
possibly except for arrivals near the end of the test: each tool declares these amounts
(`TrafficTool.uncounted_bounds`). A connection's bytes are counted by their sequence numbers, so that duplicates count
once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]

from qoslab.capture.packet_tables import TCP, UDP, Array, column_array
from qoslab.model.experiment import CapturePoint, Experiment, Flow, Topology
from qoslab.results import CellRecord, FlowRecord
from qoslab.results.columns import Columns
from qoslab.traffic import UncountedBounds, find_tool

_NUMBERS = 1 << 32
"""Size of TCP's sequence number space."""
_COLUMNS = ("time_ns", "source_port", "destination_port", "protocol", "sequence", "payload")


@dataclass(frozen=True)
class Arrived:
    """Packets of one stream in the order of their arrival."""

    time_ns: Array
    begin: Array
    """Number of the first payload byte, continued after a wrap of TCP's sequence numbers; all 0 for UDP."""
    payload: Array
    in_order: bool
    """True if data is delivered in order and without gaps, as by TCP."""

    @classmethod
    def from_packets(cls, packets: Mapping[str, Array], *, tcp: bool) -> Arrived:
        """Build from columns of `qoslab.capture.packet_tables.SCHEMA`."""
        numbers = packets["sequence"]
        if tcp and len(numbers):
            steps = (np.diff(numbers) + _NUMBERS // 2) % _NUMBERS - _NUMBERS // 2
            numbers = numbers[0] + np.concatenate(([0], np.cumsum(steps)))
        return cls(packets["time_ns"], numbers, np.maximum(packets["payload"], 0), tcp)

    @property
    def payload_bytes(self) -> int:
        """Bytes of payload, without duplicates."""
        if not self.in_order:
            return int(self.payload.sum())
        begin, reach = self._merge_pieces(self.payload > 0)
        before = np.concatenate((begin[:1], reach[:-1]))
        return int(np.maximum(reach - np.maximum(begin, before), 0).sum())

    def bytes_until(self, moment_ns: float) -> int:
        """Return the bytes received by a time if the reader reads at once."""
        there = (self.time_ns <= moment_ns) & (self.payload > 0)
        if not self.in_order:
            return int(self.payload[there].sum())
        begin, reach = self._merge_pieces(there)
        if not len(begin) or begin[0] > self.begin[self.payload > 0].min():
            return 0
        gaps = np.flatnonzero(begin[1:] > reach[:-1])
        return int(reach[gaps[0] if len(gaps) else -1] - begin[0])

    def _merge_pieces(self, which: npt.NDArray[np.bool_]) -> tuple[Array, Array]:
        """Return the starts of pieces of payload, ordered by number, and the greatest end of the pieces up to each."""
        begin = self.begin[which]
        order = np.argsort(begin, kind="stable")
        return begin[order], np.maximum.accumulate((begin + self.payload[which])[order])


@dataclass(frozen=True)
class Report:
    """A flow with values that can be compared with a capture, and the amounts that a tool may leave out of them."""

    capture: str
    flow: Flow
    ends: FlowRecord
    uncounted: UncountedBounds

    def stream(self, arriving: Mapping[str, Array], port: int) -> Arrived:
        """Return the arrivals from a client's port."""
        found = (arriving["source_port"] == port) & (arriving["protocol"] == (UDP if self._udp else TCP))
        if "port" not in self.flow.random:
            found &= arriving["destination_port"] == self.ends.port
        return Arrived.from_packets({name: values[found] for name, values in arriving.items()}, tcp=not self._udp)

    @property
    def _udp(self) -> bool:
        return self.flow.protocol == "udp"


@dataclass
class Arriving:
    """Arrivals at receivers, from captures there."""

    reports: Sequence[Report]
    _seen: dict[str, list[dict[str, Array]]] = field(default_factory=dict)
    """Columns of packets, by capture."""

    def pass_through(self, capture: str, pieces: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pass pieces of a capture on unchanged, and keep the columns of interest."""
        addresses = {each.ends.destination for each in self.reports if each.capture == capture}
        for piece in pieces:
            if addresses:
                here = np.zeros(len(piece), dtype=np.bool_)
                for address in addresses:
                    here |= _address_mask(piece, address)
                self._seen.setdefault(capture, []).append({name: column_array(piece, name)[here] for name in _COLUMNS})
            yield piece

    def packets(self, capture: str) -> dict[str, Array] | None:
        """Return the columns of a capture's packets; None if it was not read."""
        parts = self._seen.get(capture)
        if parts is None:
            return None
        return {name: np.concatenate([part[name] for part in parts]) for name in _COLUMNS}


def receiver_reports(experiment: Experiment, record: CellRecord) -> list[Report]:
    """Return the flows of a cell with a complete capture at their receiver."""
    flows = {flow.name: flow for flow in experiment.arm_flows(experiment.arm(record.arm))}
    found = []
    for ends in record.flows:
        flow = flows[ends.traffic]
        for point in experiment.captures:
            kept = record.captures.get(point.name)
            if kept and not kept.dropped and _captures_flow(experiment.topology, point, flow, ends):
                found.append(Report(point.name, flow, ends, find_tool(flow.tool).uncounted_bounds(flow)))
                break
    return found


def _captures_flow(topology: Topology, point: CapturePoint, flow: Flow, ends: FlowRecord) -> bool:
    """Return whether every packet of the flow passes the capture point. Only filters for whole protocols are
    understood.
    """
    if point.node != flow.destination:
        return False
    ports = (near for _, near, _ in topology.node_links(point.node))
    there = any(
        near.interface == point.interface and ends.destination in [each.ip for each in near.addresses] for near in ports
    )
    family = "ip" if ends.destination.version == 4 else "ip6"
    return there and point.filter in ("", family, flow.protocol)


def report_mismatches(flows: Columns, arriving: Arriving) -> Iterator[str]:
    """Yield a message for each tool with a report that does not match the arrivals in one cell; `flows` is the cell's
    table `flows`.
    """
    for report in arriving.reports:
        packets = arriving.packets(report.capture)
        rows = flows.select((flows["traffic"] == report.flow.name) & flows.has("local_port"))
        if packets is None or not len(rows):
            continue
        stated, least, most = int(np.nansum(rows["bytes"])), 0, 0
        for port, seconds in zip(rows["local_port"].astype(int), rows["seconds"], strict=True):
            stream = report.stream(packets, port)
            least += stream.bytes_until(_end_ns(report, stream, seconds) - report.uncounted.last_s * 1e9)
            most += stream.payload_bytes
        within = report.uncounted.stream_bytes * len(rows)
        if not least - within <= stated <= most + within:
            counted = f"{least} to {most}" if least < most else str(most)
            yield (
                f'traffic "{report.flow.name}": {rows["tool"][0]} reports {stated} B received, but capture '
                f"{report.capture} saw {counted} B; they may differ by at most {within} B"
            )


def _end_ns(report: Report, stream: Arrived, seconds: float) -> float:
    """Return the time when the receiver's test was over: it began with the first packet, or later.

    A flow that may fail is stopped at a fixed time, regardless of its first packet.
    """
    if not len(stream.time_ns):
        return 0.0
    first = float(stream.time_ns.min())
    started = report.ends.started.timestamp() * 1e9
    return (min(first, started) if report.flow.may_fail else first) + seconds * 1e9


def _address_mask(piece: pa.RecordBatch, address: IPv4Address | IPv6Address) -> npt.NDArray[np.bool_]:
    """Return the mask of packets for an address."""
    number = int(address)
    low, high = (number, 0) if address.version == 4 else (number & (1 << 64) - 1, number >> 64)
    halves = (("destination", low), ("destination_high", high))
    same = [column_array(piece, name) == np.uint64(half).astype(np.int64) for name, half in halves]
    found: npt.NDArray[np.bool_] = (column_array(piece, "version") == address.version) & same[0] & same[1]
    return found
