"""Comparison of the report of a traffic tool with a capture at the receiver, except for the last read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from analysis_tables import columns
from hypothesis import given, settings
from hypothesis import strategies as st

from levels import example_count
from qoslab.analysis.arrivals import Arrived, Arriving, Report, receiver_reports, report_mismatches
from qoslab.capture.packet_tables import SCHEMA, TCP, UDP, read_packets
from qoslab.model.experiment import Flow
from qoslab.model.units import Duration, Rate, Size
from qoslab.results import CaptureRecord, CellRecord, FlowRecord, tables
from qoslab.schema import load_sweep
from qoslab.traffic import FlowOutput, UncountedBounds, find_tool

RECORDED = Path(__file__).parents[1] / "recorded"
EXPERIMENT = load_sweep(Path(__file__).parents[2] / "experiments/policing-vs-shaping.yml", {}).experiment
ENDS = FlowRecord(
    traffic="transfer",
    source=IPv4Address("192.168.10.2"),
    destination=IPv4Address("192.168.20.2"),
    port=5201,
    started=datetime(2026, 11, 21, tzinfo=UTC),
)
FLOW = Flow.model_validate({"name": "transfer", "tool": "iperf3", "from": "client", "to": "server", "streams": 4})
START_NS = int(ENDS.started.timestamp()) * 10**9


def arrived_bytes(*segments: tuple[int, int], tcp: bool = True, times: Sequence[int] | None = None) -> Arrived:
    """Return segments of (sequence number, bytes of payload), one each nanosecond."""
    sequence, payload = (np.array(column, dtype=np.int64) for column in zip(*segments, strict=True))
    stamps = np.arange(len(segments)) if times is None else np.array(times)
    return Arrived.from_packets({"time_ns": stamps, "sequence": sequence, "payload": payload}, tcp=tcp)


def test_reassembly_counts_bytes_once_and_in_order() -> None:
    twice = arrived_bytes((100, 10), (110, 10), (110, 10), (115, 15))
    assert (twice.payload_bytes, twice.bytes_until(3), twice.bytes_until(1)) == (30, 30, 20)
    gap = arrived_bytes((100, 10), (120, 10), (110, 10))
    assert (gap.payload_bytes, gap.bytes_until(0), gap.bytes_until(1), gap.bytes_until(2)) == (30, 10, 10, 30)
    behind_the_first = arrived_bytes((110, 10), (100, 10))
    assert (behind_the_first.bytes_until(0), behind_the_first.bytes_until(1)) == (0, 20)
    # An acknowledgement has no payload, and that of a truncated packet is unknown.
    assert arrived_bytes((100, 0), (-1, -1), (100, 10)).payload_bytes == 10
    assert (
        arrived_bytes((0, 10), (0, 10), tcp=False).payload_bytes,
        arrived_bytes((0, 10), (0, 10), tcp=False).bytes_until(0),
    ) == (
        20,
        10,
    )


@settings(max_examples=example_count(200), deadline=None)
@given(data=st.data(), first=st.sampled_from([0, 1000, 2**32 - 40, 2**31]), total=st.integers(1, 60))
def test_segments_in_any_order_are_reassembled(data: st.DataObject, first: int, total: int) -> None:
    pieces = data.draw(st.lists(st.tuples(st.integers(0, total - 1), st.integers(1, 20)), min_size=1, max_size=30))
    pieces = [(begin, min(count, total - begin)) for begin, count in pieces]
    stream = arrived_bytes(*(((first + begin) % 2**32, count) for begin, count in pieces))
    lowest = min(begin for begin, _ in pieces)
    seen: set[int] = set()
    for moment, (begin, count) in enumerate(pieces):
        seen |= set(range(begin, begin + count))
        whole = next(n for n in range(lowest, total + 1) if n not in seen) - lowest
        assert stream.bytes_until(moment) == whole
    assert stream.payload_bytes == len(seen)


def packets(*rows: dict[str, int], destination: int = int(ENDS.destination), high: int = 0) -> pa.RecordBatch:
    """Return packets with the values of the rows, by default to port 5201 of the server."""
    usual = dict.fromkeys(SCHEMA.names, 0)
    usual |= {"version": 6 if high else 4, "destination": destination, "destination_high": high}
    usual |= {"protocol": TCP, "destination_port": 5201}
    made = [usual | row for row in rows]
    return pa.RecordBatch.from_pydict({name: pa.array([row[name] for row in made], pa.int64()) for name in usual})


def report(flow: Flow = FLOW, ends: FlowRecord = ENDS, stream_bytes: int = 0, last_s: float = 0.25) -> Report:
    return Report("server", flow, ends, UncountedBounds(stream_bytes, last_s))


def held_bytes(wanted: Report, pieces: Sequence[pa.RecordBatch], *streams: tuple[int | None, int]) -> list[str]:
    """Return the findings on streams of (client's port, bytes) that took 10 s."""
    arriving = Arriving([wanted])
    assert [len(each) for each in arriving.pass_through("server", pieces)] == [len(each) for each in pieces]
    keys = {"arm": "a", "repetition": 1, "cell": "a/1", "traffic": "transfer", "tool": "iperf3", "protocol": "tcp"}
    rows = [
        {**keys, "stream": number, "local_port": port, "seconds": 10.0, "bytes": count, "goodput_bps": count * 0.8}
        for number, (port, count) in enumerate(streams, 1)
    ]
    return list(report_mismatches(columns(tables.frame("flows", rows)), arriving))


def one_segment_per_second(count: int, **row: int) -> pa.RecordBatch:
    """Return a segment of 1000 bytes each second."""
    return packets(
        *({"time_ns": START_NS + n * 10**9, "sequence": n * 1000, "payload": 1000} | row for n in range(count))
    )


def test_mismatch_with_arrivals_names_the_tool() -> None:
    stream = one_segment_per_second(10, source_port=40000)
    assert held_bytes(report(), [stream], (40000, 10_000)) == []
    assert held_bytes(report(stream_bytes=1460), [stream], (40000, 8_540)) == []
    assert held_bytes(report(stream_bytes=1460), [stream], (40000, 8_539)) == [
        'traffic "transfer": iperf3 reports 8539 B received, but capture server saw 10000 B; they may differ by at '
        "most 1460 B"
    ]
    assert held_bytes(report(), [stream], (40000, 10_001)) != []
    assert held_bytes(report(), [stream], (40001, 10_000)) != [], "a stream of which nothing was seen"
    assert held_bytes(report(), [stream], (40001, 0), (None, 0)) == []
    both = [stream, one_segment_per_second(10, source_port=40001)]
    assert held_bytes(report(), both, (40000, 10_000), (40001, 10_000)) == []
    assert held_bytes(report(stream_bytes=100), both, (40000, 10_000), (40001, 9_799)) != []


def test_packets_near_the_end_may_be_uncounted() -> None:
    later = one_segment_per_second(14, source_port=40000)
    # Ten segments arrived in the first ten seconds, and then an eleventh.
    assert held_bytes(report(), [later], (40000, 10_000)) == held_bytes(report(), [later], (40000, 14_000)) == []
    assert held_bytes(report(), [later], (40000, 9_999)) != []
    assert held_bytes(report(last_s=1.5), [later], (40000, 9_000)) == []


def test_tool_that_may_fail_ends_by_time() -> None:
    failing = FLOW.model_copy(update={"may_fail": True})
    late = ENDS.model_copy(update={"started": ENDS.started - timedelta(seconds=5)})
    stream = one_segment_per_second(10, source_port=40000)
    assert held_bytes(report(failing, late), [stream], (40000, 5_000)) == []
    assert held_bytes(report(failing, late), [stream], (40000, 4_999)) != []
    assert held_bytes(report(FLOW, late), [stream], (40000, 5_000)) != []


def test_packets_of_other_flows_are_ignored() -> None:
    stream = one_segment_per_second(10, source_port=40000)
    others = [
        packets({"source_port": 40000, "payload": 700, "time_ns": START_NS}, destination=1),
        one_segment_per_second(3, source_port=40000, destination_port=5202),
        one_segment_per_second(3, source_port=40000, protocol=UDP),
    ]
    assert held_bytes(report(), [stream, *others], (40000, 10_000)) == []
    random = FLOW.model_copy(update={"tool": "flood", "protocol": "udp", "random": ("port",)})
    ports = [one_segment_per_second(3, source_port=40000, destination_port=port, protocol=UDP) for port in (7, 8)]
    assert held_bytes(report(random), ports, (40000, 6_000)) == []
    assert held_bytes(report(random), ports, (40000, 3_000)) != []


def test_ipv6_addresses_are_complete() -> None:
    address = IPv6Address("2001:db8:20::ffff:ffff:ffff:2")
    ends = ENDS.model_copy(update={"destination": address})
    low, high = (int(np.uint64(half).astype(np.int64)) for half in (int(address) & 2**64 - 1, int(address) >> 64))
    here = packets({"source_port": 1, "payload": 9, "time_ns": START_NS}, destination=low, high=high)
    elsewhere = packets({"source_port": 1, "payload": 9, "time_ns": START_NS}, destination=low, high=high + 1)
    assert held_bytes(report(ends=ends), [here], (1, 9)) == [] != held_bytes(report(ends=ends), [elsewhere], (1, 9))


def test_captured_arrivals_agree_with_the_report_of_the_tool() -> None:
    """Compare a recorded capture with the streams that iperf3 reported at the same time."""
    outputs = [
        FlowOutput((RECORDED / f"traffic/iperf3-tcp.{side}.json").read_text(), "", 0) for side in ("client", "server")
    ]
    result = find_tool("iperf3").parse(FLOW, Duration.parse("4 s"), *outputs)
    keys: dict[str, Any] = {"arm": "a", "repetition": 1, "cell": "a/1", "traffic": "transfer", "tool": "iperf3"}
    keys |= {"protocol": "tcp"}
    rows = [{**keys, **vars(each)} for each in result.streams]
    arriving = Arriving([Report("server", FLOW, ENDS, find_tool("iperf3").uncounted_bounds(FLOW))])
    list(arriving.pass_through("server", read_packets(RECORDED / "capture/four-streams.pcapng", piece=100)))
    assert list(report_mismatches(columns(tables.frame("flows", rows)), arriving)) == []
    whole_reads = [row | {"bytes": row["bytes"] // 131_072 * 131_072} for row in rows]
    (output,) = report_mismatches(columns(tables.frame("flows", whole_reads)), arriving)
    assert output.startswith('traffic "transfer": iperf3 reports ') and output.endswith(
        "they may differ by at most 5988 B"
    )


def record(**changes: object) -> CellRecord:
    made = CellRecord(
        arm="policed",
        repetition=1,
        valid=True,
        flows=(ENDS,),
        captures={"server": CaptureRecord(received=9, dropped=0)},
    )
    return made.model_copy(update=changes)


def test_only_a_complete_capture_at_the_end_of_the_flow_is_compared() -> None:
    (found,) = receiver_reports(EXPERIMENT, record())
    assert (found.capture, found.flow.name, found.uncounted) == ("server", "transfer", UncountedBounds(1497))
    assert receiver_reports(EXPERIMENT, record(captures={})) == []
    assert receiver_reports(EXPERIMENT, record(captures={"server": CaptureRecord(received=9, dropped=1)})) == []
    for change in ({"node": "client"}, {"filter": "udp"}, {"filter": "tcp port 80"}, {"interface": "eth1"}):
        (point,) = EXPERIMENT.captures
        other = EXPERIMENT.model_copy(update={"captures": (point.model_copy(update=change),)})
        assert receiver_reports(other, record()) == []
    for filter in ("", "ip"):
        other = EXPERIMENT.model_copy(update={"captures": (point.model_copy(update={"filter": filter}),)})
        assert len(receiver_reports(other, record())) == 1


@pytest.mark.parametrize(
    ("name", "changes", "uncounted"),
    [
        ("iperf3", {"size": Size(8192)}, UncountedBounds(8192 + 37)),
        ("iperf3", {"protocol": "udp", "rate": Rate(1)}, UncountedBounds(1460)),
        ("iperf", {"window": Size(16384)}, UncountedBounds(512)),
        ("iperf", {"may_fail": True}, UncountedBounds(512, 1.95)),
        ("iperf", {"protocol": "udp", "size": Size(100)}, UncountedBounds(1000)),
        ("flood", {"protocol": "udp"}, UncountedBounds(0)),
    ],
)
def test_each_tool_declares_its_uncounted_bytes(
    name: str, changes: dict[str, object], uncounted: UncountedBounds
) -> None:
    assert find_tool(name).uncounted_bounds(FLOW.model_copy(update=changes)) == uncounted
