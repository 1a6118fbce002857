"""iperf3: JSON on both sides; results are the server's (https://software.es.net/iperf/).

Known behaviour, observed with 3.12 and 3.18:

- A server serves one client at a time and refuses a second one, so every flow has its own server and port.
- With `-J` the exit status is 0 even if the test failed: only the key `error` shows the failure.
- A server's JSON has 0 for each UDP stream's bytes at the end; the sum of its intervals is right.
- When a side is killed, intervals are repeated or missing, or the JSON just stops.
- UDP leaves in bursts once per pacing timer (1 ms).
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from qoslab.errors import UserError
from qoslab.model.experiment import Flow
from qoslab.model.units import Duration
from qoslab.traffic.base import (
    DRAIN_S,
    Commands,
    Endpoints,
    FlowOutput,
    FlowProblem,
    FlowResult,
    IntervalResult,
    Iperf,
    Listener,
    StreamResult,
    TrafficError,
    UncountedBounds,
    check_iperf,
    check_streams,
    datagram_pace,
    datagram_rate,
    read_number,
)

CONNECT_TIMEOUT_MS = 10_000
MAX_STREAMS = 128
WRITE = 1460
"""Bytes of one TCP write and of one TCP read. From 3.16 on a server counts whole reads only, so that each stream may
lack one at the end: with iperf3's default of 128 KiB, a quarter of the data sent in ten seconds at 250 kb/s."""
COOKIE = 37
"""Length in bytes of the cookie that begins a test's connection and identifies the test."""
PACING_US = (50, 1000)
"""Shortest and longest pacing timer, in microseconds; 1000 is iperf3's default."""

_NAN_WORD = re.compile(r"(?<=[:\[,])\s*-?(?:nan|inf)(?=\s*[,}\]])")
"""printf's spelling of NaN and infinity, which JSON lacks; iperf3 writes them for a rate over zero time."""

Json = dict[str, Any]


class Iperf3(Iperf):
    """The tool `iperf3`."""

    name = "iperf3"
    suffix = "json"
    programs: tuple[str, ...] = ("iperf3",)
    default_datagram = 1460

    def check(self, flow: Flow) -> Iterator[FlowProblem]:
        """See `TrafficTool`."""
        yield from check_iperf(flow)
        if flow.streams > MAX_STREAMS:
            yield FlowProblem("streams", f"found {flow.streams} streams, expected at most {MAX_STREAMS} with iperf3")
        if flow.may_fail:
            # Its control connection passes the same queues, and a server that loses the connection loses its counts.
            yield FlowProblem("may_fail", "found true with the tool iperf3, expected this key with iperf only")

    def commands(self, flow: Flow, duration: Duration, ends: Endpoints, congestion_control: str) -> Commands:
        """See `TrafficTool`."""
        family = ends.destination.version
        server = ["iperf3", f"-{family}", "--server", "--one-off", "--port", str(ends.port), "--json", "--forceflush"]
        client = [
            *("iperf3", f"-{family}", "--client", str(ends.destination), "--port", str(ends.port), "--json"),
            *("--bind", str(ends.source), "--connect-timeout", str(CONNECT_TIMEOUT_MS)),
            *("--time", _whole_seconds(flow, duration), "--parallel", str(flow.streams), "--interval", "1"),
        ]
        if ends.client_port is not None:
            client += ["--cport", str(ends.client_port)]
        if flow.protocol == "udp":
            rate = datagram_rate(flow)
            size = self.datagram_bytes(flow, family)
            gap_us = size * 8 * 1_000_000 / rate if rate else PACING_US[0]
            pacing = int(min(max(gap_us, PACING_US[0]), PACING_US[1]))
            client += ["--udp", "--bitrate", str(rate), "--length", str(size), "--pacing-timer", str(pacing)]
        else:
            client += ["--congestion", flow.congestion_control or congestion_control]
            if flow.rate is not None:
                client += ["--bitrate", str(flow.rate.bps)]
            client += ["--length", str(WRITE if flow.size is None else flow.size.bytes)]
        if flow.window is not None:
            client += ["--window", str(flow.window.bytes)]
        if flow.dscp is not None:
            client += ["--tos", str(flow.dscp << 2)]
        return Commands(
            server=tuple(server),
            client=tuple(client),
            # The control connection is TCP for UDP tests too.
            listener=Listener("tcp", ends.port),
            server_exits=True,
            deadline_s=duration.seconds + DRAIN_S,
            connections=1 if flow.protocol == "udp" else 1 + flow.streams,
        )

    def uncounted_bounds(self, flow: Flow) -> UncountedBounds:
        """See `TrafficTool`: whole reads, which are as long as writes, and the cookie of the test's connections."""
        if flow.protocol == "udp":
            return UncountedBounds(self.datagram_bytes(flow, flow.family or 4))
        return UncountedBounds((WRITE if flow.size is None else flow.size.bytes) + COOKIE)

    def is_finished(self, flow: Flow, server_stdout: str) -> bool:
        """See `TrafficTool`; the JSON is complete."""
        try:
            _load_json(server_stdout, "server", flow)
        except TrafficError:
            return False
        return True

    def parse(self, flow: Flow, duration: Duration, client: FlowOutput, server: FlowOutput) -> FlowResult:
        """See `TrafficTool`."""
        documents: dict[str, Json] = {}
        errors: list[str] = []
        warnings: list[str] = []
        for side, output in (("client", client), ("server", server)):
            warnings += [f"iperf3 {side}: {line}" for line in output.stderr.splitlines() if line.strip()]
            try:
                documents[side], extra = _load_json(output.stdout, side, flow)
            except TrafficError as error:
                errors.append(error.message)
                continue
            warnings += extra
            if "error" in documents[side]:
                errors.append(f'iperf3 {side}, traffic "{flow.name}": {documents[side]["error"]}')
        if errors:
            raise TrafficError("; ".join(errors + warnings), hint=_error_hint(" ".join(errors)))
        try:
            return _flow_result(flow, duration, documents["client"], documents["server"], warnings)
        except (KeyError, TypeError, IndexError, ValueError, AttributeError, ZeroDivisionError, OverflowError) as error:
            raise TrafficError(
                f'iperf3, traffic "{flow.name}": the JSON is not a report of iperf3 ({type(error).__name__}: {error})',
                hint="compare the raw files in traffic/ with the version of the installed iperf3",
            ) from error


def _whole_seconds(flow: Flow, duration: Duration) -> str:
    seconds = duration.seconds
    if seconds != int(seconds) or seconds < 1:
        raise UserError(
            f'traffic "{flow.name}": found a duration of {duration}, expected whole seconds',
            hint="iperf3 counts its test time in seconds",
        )
    return str(int(seconds))


def _error_hint(text: str) -> str:
    if "congestion control" in text:
        return "load the module (tcp_NAME) or name one of /proc/sys/net/ipv4/tcp_available_congestion_control"
    if "busy" in text:
        return "another client connected to this flow's server; give the flow its own port"
    return ""


def _load_json(text: str, side: str, flow: Flow) -> tuple[Json, list[str]]:
    """Return the JSON document in the text, and warnings. Raise `TrafficError` if there is no valid document."""
    where = f'iperf3 {side}, traffic "{flow.name}"'
    start = text.find("{")
    if start < 0:
        detail = f": {text.strip()[:200]}" if text.strip() else ", it was killed or never started"
        raise TrafficError(f"{where}: found no JSON{detail}")
    warnings = [f"{where}: {text[:start].strip()}"] if text[:start].strip() else []
    body, replaced = _NAN_WORD.subn(" null", text[start:])
    if replaced:
        warnings.append(f"{where}: {replaced} values that are not numbers")
    try:
        document, end = json.JSONDecoder().raw_decode(body)
    except (ValueError, RecursionError) as error:
        raise TrafficError(f"{where}: the JSON is malformed or truncated ({error})") from error
    rest = body[end:].strip()
    if rest:
        warnings.append(f"{where}: further output after the result: {rest[:200]}")
    return document, warnings


def _flow_result(flow: Flow, duration: Duration, client: Json, server: Json, warnings: list[str]) -> FlowResult:
    test = server["start"]["test_start"]
    protocol: Literal["tcp", "udp"] = "udp" if test["protocol"] == "UDP" else "tcp"
    if protocol != flow.protocol:
        raise ValueError(f"found protocol {protocol}, expected {flow.protocol}")
    connections = server["start"]["connected"]
    numbers = {entry["socket"]: number for number, entry in enumerate(connections, start=1)}
    ports = {entry["socket"]: int(entry["remote_port"]) for entry in connections}
    check_streams("iperf3", flow, len(numbers))

    received = _received_bytes(server)
    sent = _sent_by_port(client)
    # MSS of the control connection, which has the same path and options; 0 in UDP tests.
    mss = int(read_number(client["start"]["tcp_mss_default"])) if "tcp_mss_default" in client["start"] else None
    if protocol == "tcp" and mss is not None and mss <= 0:
        raise ValueError(f"found segments of {mss} bytes, expected at least 1")
    streams: list[StreamResult] = []
    for ended in server["end"]["streams"]:
        entry = ended["udp"] if protocol == "udp" else ended["receiver"]
        socket = entry["socket"]
        count = received[socket] if protocol == "udp" else int(read_number(entry["bytes"]))
        stream = _stream_result(numbers[socket], ports[socket], entry, count, sent.get(ports[socket], {}))
        streams.append(_add_datagrams(stream, entry) if protocol == "udp" else replace(stream, mss_bytes=mss))
    check_streams("iperf3", flow, len(streams))
    shortest = min(stream.seconds for stream in streams)
    if shortest < duration.seconds * 0.9:
        raise TrafficError(
            f'iperf3 server, traffic "{flow.name}": the test ended after {shortest:.1f} s, expected {duration}'
        )
    return FlowResult(
        tool="iperf3",
        protocol=protocol,
        version=str(server["start"]["version"]),
        streams=tuple(streams),
        intervals=tuple(_server_intervals(server, numbers)),
        warnings=tuple(warnings),
        pace=datagram_pace(flow, streams),
    )


def _received_bytes(server: Json) -> dict[int, int]:
    """Return the bytes that the server received of each stream, by socket."""
    received: dict[int, int] = defaultdict(int)
    for interval in server["intervals"]:
        for entry in interval["streams"]:
            received[entry["socket"]] += int(read_number(entry["bytes"]))
    return received


def _server_intervals(server: Json, numbers: Mapping[int, int]) -> Iterator[IntervalResult]:
    """Yield the server's intervals of each stream; `numbers` are the stream numbers by socket."""
    for interval in server["intervals"]:
        for entry in interval["streams"]:
            count, seconds = int(read_number(entry["bytes"])), read_number(entry["seconds"])
            # The last interval may be empty and take no time.
            if seconds > 0:
                yield IntervalResult(
                    stream=numbers[entry["socket"]],
                    start_s=read_number(entry["start"]),
                    end_s=read_number(entry["end"]),
                    bytes=count,
                    bps=count * 8 / seconds,
                )


def _stream_result(number: int, port: int, received: Json, count: int, sent: Json) -> StreamResult:
    """Return the result of a stream from the final reports of both sides; `count` is the bytes that the server
    received."""
    seconds = read_number(received["seconds"])
    if seconds <= 0:
        raise ValueError(f"stream {number} took {seconds} s")
    return StreamResult(
        stream=number,
        local_port=port,
        seconds=seconds,
        bytes=count,
        goodput_bps=count * 8 / seconds,
        sender_bytes=int(read_number(sent["bytes"])) if "bytes" in sent else None,
        sender_bps=read_number(sent["bits_per_second"]) if "bits_per_second" in sent else None,
        retransmits=int(read_number(sent["retransmits"])) if "retransmits" in sent else None,
        # In microseconds; 0 if the sender's kernel does not report.
        rtt_mean_ms=read_number(sent["mean_rtt"]) / 1000 if sent.get("mean_rtt") else None,
    )


def _add_datagrams(stream: StreamResult, received: Json) -> StreamResult:
    return replace(
        stream,
        datagrams=int(read_number(received["packets"])),
        lost=int(read_number(received["lost_packets"])),
        jitter_ms=read_number(received["jitter_ms"]),
    )


def _sent_by_port(client: Json) -> dict[int, Json]:
    """Return the client's data of each stream, by the client's port."""
    local = {entry["socket"]: int(entry["local_port"]) for entry in client["start"]["connected"]}
    sent: dict[int, Json] = {}
    for ended in client["end"]["streams"]:
        entry = ended["udp"] if "udp" in ended else ended["sender"]
        sent[local[entry["socket"]]] = entry
    return sent
