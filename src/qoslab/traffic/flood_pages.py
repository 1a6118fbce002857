"""Pages over TCP by the tool flood: commands, and a parser of its output (crates/flood).

Each stream is a connection on which a page is sent at regular intervals; kinds of traffic with pauses over TCP, such as
web, are sent so. The sender measures the time of each page; `crates/flood/src/page_sender.rs` defines it. Bytes and
intervals are those of the receiver.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qoslab.model.experiment import Flow
from qoslab.model.traffic_kinds import KINDS, SPREAD_SHARE
from qoslab.model.units import Duration
from qoslab.traffic.base import (
    DRAIN_S,
    Commands,
    Endpoints,
    FlowProblem,
    FlowResult,
    IntervalResult,
    Listener,
    StreamResult,
    check_streams,
    decimal_shift,
    read_count,
    read_number,
)
from qoslab.traffic.page_times import PageTimes

INTERVAL_S = 1
LARGEST = 10**9
"""Maximum bytes of a page."""
LONGEST_S = 3600
"""Maximum time between two pages."""

Json = dict[str, Any]


def check(flow: Flow) -> Iterator[FlowProblem]:
    """Yield a problem for each setting of a TCP flow that flood does not support."""
    if (flow.rate is None) == (flow.delay is None):
        found = "neither" if flow.rate is None else "both"
        yield FlowProblem("delay", f'found {found} of the keys "rate" and "delay", expected exactly one of them')
    if flow.size is None:
        yield FlowProblem("size", 'found no key "size", required for pages of flood over TCP')
    elif flow.size.bytes > LARGEST:
        yield FlowProblem("size", f"found {flow.size}, expected a page of at most {LARGEST} B")
    elif flow.rate is not None and page_gap_ns(flow) > LONGEST_S * 10**9:
        yield FlowProblem("rate", f"found {flow.rate} with a size of {flow.size}, expected at least one page an hour")
    if flow.delay is not None and flow.delay.seconds > LONGEST_S:
        yield FlowProblem("delay", f"found {flow.delay}, expected at most {LONGEST_S} s between two pages")
    if flow.random:
        yield FlowProblem(
            "random", f"found {', '.join(flow.random)} on a TCP flow, expected this key on UDP flows only"
        )
    if flow.window is not None:
        yield FlowProblem("window", f'found "{flow.window}" on a flood, expected this key on flows of iperf only')


def page_gap_ns(flow: Flow) -> int:
    """Return the time between the starts of two pages of a connection; the flow passes `check`."""
    assert flow.size is not None
    if flow.delay is not None:
        return flow.delay.ns
    assert flow.rate is not None
    return round(flow.size.bytes * 8 * 10**9 / flow.rate.bps)


def start_spread_ns(flow: Flow, duration_ns: int) -> int:
    """Return the time within which the streams of a flow start: that of its kind, for pages the time between two of
    them; 0 without a kind with bursts.
    """
    kind = None if flow.kind is None else KINDS[flow.kind]
    if kind is None or not kind.sends_bursts or flow.background:
        return 0
    if flow.protocol == "tcp":
        return min(page_gap_ns(flow), round(SPREAD_SHARE * duration_ns))
    return kind.spread_ns(duration_ns, None if flow.rate is None else flow.rate.bps)


def page_commands(flow: Flow, duration: Duration, ends: Endpoints, congestion_control: str) -> Commands:
    """Return the commands for a TCP flow; the receiver ends after all connections."""
    assert flow.size is not None
    pages = ["--port", str(ends.port), "--size", str(flow.size.bytes), "--streams", str(flow.streams)]
    server = ["flood", "receive-pages", "--address", str(ends.destination), *pages, "--interval", str(INTERVAL_S)]
    client = [
        *("flood", "send-pages", str(ends.destination), "--source", str(ends.source), *pages),
        *(
            "--delay",
            decimal_shift(page_gap_ns(flow), 6),
            "--duration",
            decimal_shift(duration.ns, 9),
            "--seed",
            str(ends.seed),
        ),
        *("--congestion", flow.congestion_control or congestion_control),
    ]
    if ends.client_port is not None:
        client += ["--source-port", str(ends.client_port)]
    if spread := start_spread_ns(flow, duration.ns):
        client += ["--spread", decimal_shift(spread, 9)]
    if flow.dscp is not None:
        client += ["--dscp", str(flow.dscp)]
    return Commands(
        server=tuple(server),
        client=tuple(client),
        listener=Listener("tcp", ends.port),
        server_exits=True,
        deadline_s=duration.seconds + DRAIN_S,
    )


def page_result(flow: Flow, sent: Json, received: Json) -> FlowResult:
    """Return the values of a flow. Raise `ValueError`, `KeyError` or `TypeError` if the reports are malformed, and
    `TrafficError` if a connection is missing."""
    got = {int(str(each["source"]).rpartition(":")[2]): each for each in received["streams"]}
    numbered = [(number, each) for number, each in enumerate(sent["streams"], start=1) if each["source_port"] in got]
    check_streams("flood", flow, len(numbered))
    step = read_number(received["interval_s"])
    streams = []
    intervals = []
    for number, each in numbered:
        report = got[each["source_port"]]
        seconds = max(read_number(each["seconds"]), read_number(report["seconds"]))
        streams.append(_stream_result(number, seconds, each, report))
        for place, count in enumerate(report["intervals"]):
            start, end = place * step, min((place + 1) * step, read_number(each["seconds"]))
            # Later data comes from queues and from the sender's buffer.
            if end > start:
                intervals.append(
                    IntervalResult(number, start, end, read_count(count), read_count(count) * 8 / (end - start))
                )
    return FlowResult("flood", "tcp", str(sent["version"]), tuple(streams), tuple(intervals))


def _stream_result(number: int, seconds: float, sent: Json, received: Json) -> StreamResult:
    if seconds <= 0:
        raise ValueError(f"stream {number} took {seconds} s")
    times = [read_number(page["time_ms"]) for page in sent["pages"] if page["time_ms"] is not None]
    unfinished = len(sent["pages"]) - len(times)
    found = PageTimes.from_histogram([(round(1e6 * each), 1) for each in sorted(times)], unfinished)
    count, accepted, rtt = read_count(received["bytes"]), read_count(sent["bytes"]), sent["rtt_mean_ms"]
    return StreamResult(
        stream=number,
        local_port=read_count(sent["source_port"]),
        seconds=seconds,
        bytes=count,
        goodput_bps=count * 8 / seconds,
        sender_bytes=accepted,
        sender_bps=accepted * 8 / seconds,
        retransmits=read_count(sent["retransmits"]),
        mss_bytes=read_count(sent["mss_bytes"]),
        rtt_mean_ms=None if rtt is None else read_number(rtt),
        pages=len(times),
        pages_unfinished=unfinished,
        page_p50_ms=None if found is None else found.p50_ms,
        page_mean_ms=sum(times) / len(times) if times else None,
        page_max_ms=max(times, default=None),
    )
