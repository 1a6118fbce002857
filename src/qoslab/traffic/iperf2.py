"""iperf 2: text on both sides; results are the server's (https://sourceforge.net/projects/iperf2/).

Reads the report of 2.0 (shown in the article) and of 2.1 with `-e`. Known behaviour, observed with 2.1.8:

- The exit status is 0 in any case; errors are lines of text.
- If the congestion control does not exist, the client reports that and uses the machine's default.
- The server never exits by itself.
- Over IPv6 the port of `-B` is ignored.
- `[SUM]` lines of a server may mix streams of different tests; sums are computed from the streams.
- KByte and MByte are powers of 1024, also of a rate (`-f M`), Kbits and Mbits powers of 1000.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from qoslab.model.experiment import Flow
from qoslab.model.units import Duration
from qoslab.traffic.base import (
    DRAIN_S,
    READ_S,
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
)

INTERVAL_S = 1
TEST_HEADER = 512
"""Greatest number of bytes of a client's message to its server about the test."""
LAST_DATAGRAMS = 10
"""Number of times that a client without an answer repeats its last datagram; the server counts it once."""
STOP_DELAY_S = 0.7
"""Seconds between the end of a flow that may fail and its stop: its last complete interval is printed by then."""

MAX_DIGITS = 18
"""Greatest number of digits of a whole number in a report."""

_CONNECTED = re.compile(
    r"^\[ *(?P<id>\d+)\] local (?P<local>\S+) port (?P<local_port>\d+) connected with \S+ port (?P<peer_port>\d+)"
)
_REPORT = re.compile(
    r"^\[ *(?P<id>\d+)\] +(?P<start>\d+\.\d+)- *(?P<end>\d+\.\d+) sec +"
    r"(?P<amount>[\d.]+) (?P<unit>[KMGT]?Bytes?) +"
    r"(?P<rate>[\d.]+) (?P<rate_unit>[KMGT]?)(?P<rate_in>bits|Bytes)/sec(?P<rest>.*)$"
)
_DATAGRAMS = re.compile(r"^ +(?P<jitter>[\d.]+) ms +(?P<lost>-?\d+)/ *(?P<total>\d+)")
_WRITES = re.compile(r"^ +\d+/\d+ +(?P<retransmits>\d+) ")
_SERVER_REPORT = re.compile(r"^\[ *\d+\] Server Report:")
_VERSION = re.compile(r"\(peer (?P<version>[\d.]+[\w-]*)\)")
_FATAL = re.compile(
    r"^(?:error:.*|.*\b(?:connect|bind|listen|accept|write|read|socket|recv|send) failed\b.*"
    r"|Attempt to set '.*' congestion control failed.*|iperf: .*|.*\bunrecognized option\b.*)$"
)
_WARNING = re.compile(r"^.*(?:\bWARNING: (?!requested)|\bwarning:|\bfailed\b).*$")

BYTES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
BITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


_DIGITS = 3
"""Significant digits of printed bytes."""


@dataclass(frozen=True)
class ReportLine:
    """One line of a report: bytes of one stream between two times (seconds)."""

    stream: int
    start_s: float
    end_s: float
    bytes: int
    bps: float
    """Rate as printed; rounded in the report of 2.0."""
    jitter_ms: float | None
    lost: int | None
    datagrams: int | None
    retransmits: int | None
    rate_digits: int = 3
    """Significant digits of the printed rate: with `-f G`, a rate of 3 Mb/s is printed as 0.00."""

    @property
    def rate_bps(self) -> float:
        """Rate as printed, or of the bytes if it was printed with fewer digits than these."""
        if self.rate_digits >= _DIGITS or self.end_s <= self.start_s:
            return self.bps
        return self.bytes * 8 / (self.end_s - self.start_s)


@dataclass(frozen=True)
class Report:
    """A whole report: ports by stream and the lines of each stream in order."""

    local_ports: dict[int, int]
    peer_ports: dict[int, int]
    lines: dict[int, tuple[ReportLine, ...]]
    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    version: str
    malformed: tuple[int, ...] = ()
    """Numbers, from 1, of rows in the form of a report line with an invalid number."""

    def totals(self) -> dict[int, ReportLine]:
        """Return the total of each stream: its last line that begins at 0."""
        found = {}
        for stream, lines in self.lines.items():
            whole = [line for line in lines if line.start_s == 0]
            if whole:
                found[stream] = whole[-1]
        return found


def read_report(text: str) -> Report:
    """Return the report in an output of iperf 2; never fails, since other lines are ignored."""
    local: dict[int, int] = {}
    peer: dict[int, int] = {}
    lines: dict[int, list[ReportLine]] = defaultdict(list)
    errors: list[str] = []
    warnings: list[str] = []
    version = ""
    malformed: list[int] = []
    in_server_report = False
    for number, row in enumerate(text.splitlines(), start=1):
        if _SERVER_REPORT.match(row):
            # The report of the server to the client follows, in lines of the same form.
            in_server_report = True
        elif connected := _CONNECTED.match(row):
            if any(len(connected[name]) > MAX_DIGITS for name in ("id", "local_port", "peer_port")):
                malformed.append(number)
            elif connected["local"] not in ("0.0.0.0", "::"):
                local[int(connected["id"])] = int(connected["local_port"])
                peer[int(connected["id"])] = int(connected["peer_port"])
            if match := _VERSION.search(row):
                version = match["version"]
        elif report := _REPORT.match(row):
            if in_server_report:
                continue
            line = _parse_line(report)
            if line is None:
                malformed.append(number)
            else:
                lines[line.stream].append(line)
        elif _FATAL.match(row):
            errors.append(row.strip())
        elif _WARNING.match(row):
            warnings.append(row.strip())
    return Report(
        local_ports=local,
        peer_ports=peer,
        lines={stream: tuple(found) for stream, found in lines.items()},
        errors=tuple(errors),
        warnings=tuple(warnings),
        version=version,
        malformed=tuple(malformed),
    )


def count_digits(number: str) -> int:
    """Return the number of significant digits of a printed number."""
    return len(number.replace(".", "").lstrip("0"))


def _parse_line(report: re.Match[str]) -> ReportLine | None:
    datagrams = _DATAGRAMS.match(report["rest"])
    writes = _WRITES.match(report["rest"])
    unit = report["rate_unit"]
    try:
        line = ReportLine(
            stream=int(report["id"]),
            start_s=float(report["start"]),
            end_s=float(report["end"]),
            bytes=round(float(report["amount"]) * BYTES[report["unit"].split("B")[0]]),
            bps=float(report["rate"]) * (BITS[unit] if report["rate_in"] == "bits" else 8 * BYTES[unit]),
            rate_digits=count_digits(report["rate"]),
            jitter_ms=float(datagrams["jitter"]) if datagrams else None,
            lost=int(datagrams["lost"]) if datagrams else None,
            datagrams=int(datagrams["total"]) if datagrams else None,
            retransmits=int(writes["retransmits"]) if writes else None,
        )
    except (ValueError, OverflowError):
        # Digits and points that do not form a number.
        return None
    measured = (line.start_s, line.end_s, line.bps, line.jitter_ms)
    return line if all(each is None or math.isfinite(each) for each in measured) else None


class Iperf2(Iperf):
    """The tool `iperf`, version 2."""

    name = "iperf"
    suffix = "txt"
    programs: tuple[str, ...] = ("iperf",)
    default_datagram = 1470

    def check(self, flow: Flow) -> Iterator[FlowProblem]:
        """See `TrafficTool`."""
        yield from check_iperf(flow)
        if flow.may_fail and flow.protocol == "udp":
            yield FlowProblem("may_fail", "found true on a UDP flow, expected this key on TCP flows only")
        if flow.client_port is not None and flow.family == 6:
            message = f"found {flow.client_port} with the tool iperf over IPv6, expected this key with IPv4 or iperf3"
            yield FlowProblem("client_port", message)

    def commands(self, flow: Flow, duration: Duration, ends: Endpoints, congestion_control: str) -> Commands:
        """See `TrafficTool`. Bytes are printed exactly (`-f b`)."""
        reports = ("-e", "-i", str(INTERVAL_S), "-f", "b")
        server = ["iperf", "-s", "-p", str(ends.port), "-B", str(ends.destination), *reports]
        client = [
            *("iperf", "-c", str(ends.destination), "-p", str(ends.port), *reports),
            *("-B", str(ends.source) if ends.client_port is None else f"{ends.source}:{ends.client_port}"),
            *("-t", f"{duration.seconds:g}", "-P", str(flow.streams)),
        ]
        if ends.destination.version == 6:
            server.append("-V")
            client.append("-V")
        if flow.protocol == "udp":
            size = self.datagram_bytes(flow, ends.destination.version)
            server += ["-u"]
            client += ["-u", "-b", str(datagram_rate(flow)), "-l", str(size)]
        else:
            client += ["-Z", flow.congestion_control or congestion_control]
            if flow.rate is not None:
                client += ["-b", str(flow.rate.bps)]
            if flow.size is not None:
                client += ["-l", str(flow.size.bytes)]
        if flow.window is not None:
            client += ["-w", str(flow.window.bytes)]
            server += ["-w", str(flow.window.bytes)]
        if flow.dscp is not None:
            client += ["-S", str(flow.dscp << 2)]
        return Commands(
            server=tuple(server),
            client=tuple(client),
            listener=Listener(flow.protocol, ends.port),
            server_exits=False,
            # The server of a flow that may fail waits for a connection that is never made.
            deadline_s=duration.seconds + (STOP_DELAY_S if flow.may_fail else DRAIN_S),
            connections=0 if flow.protocol == "udp" else flow.streams,
        )

    def uncounted_bounds(self, flow: Flow) -> UncountedBounds:
        """See `TrafficTool`: all data read counts; of a flow that was cut off, only whole intervals count."""
        if flow.protocol == "udp":
            return UncountedBounds(LAST_DATAGRAMS * self.datagram_bytes(flow, flow.family or 4))
        return UncountedBounds(TEST_HEADER, READ_S + (INTERVAL_S + STOP_DELAY_S if flow.may_fail else 0))

    def is_finished(self, flow: Flow, server_stdout: str) -> bool:
        """See `TrafficTool`; a total has been printed for every stream: the second line from 0."""
        report = read_report(server_stdout)
        ended = [
            stream
            for stream, lines in report.lines.items()
            if len(lines) > 1 and lines[-1].start_s == 0 and lines[-1].end_s >= lines[-2].end_s
        ]
        return len(ended) >= flow.streams

    def parse(self, flow: Flow, duration: Duration, client: FlowOutput, server: FlowOutput) -> FlowResult:
        """See `TrafficTool`."""
        sent = read_report(client.stdout + "\n" + client.stderr)
        got = read_report(server.stdout + "\n" + server.stderr)
        errors = [
            f'iperf {side}, traffic "{flow.name}": {message}'
            for side, report in (("client", sent), ("server", got))
            for message in report.errors
        ]
        warnings = [
            f"iperf {side}: {message}"
            for side, report in (("client", sent), ("server", got))
            for message in report.warnings
        ]
        if not client.stdout.strip() and not errors:
            errors.append(f'iperf client, traffic "{flow.name}": it printed nothing')
        if flow.may_fail:
            return _partial_result(flow, duration, got, sent, errors, warnings)
        if errors:
            raise TrafficError("; ".join(errors))
        return _complete_result(flow, duration, got, sent, warnings)


def _complete_result(flow: Flow, duration: Duration, got: Report, sent: Report, warnings: list[str]) -> FlowResult:
    """Return the received data of a flow that must complete: the server's total of each stream."""
    totals = got.totals()
    check_streams("iperf", flow, len(totals))
    senders = {sent.local_ports[stream]: line for stream, line in sent.totals().items() if stream in sent.local_ports}
    streams: list[StreamResult] = []
    intervals: list[IntervalResult] = []
    for number, (stream, total) in enumerate(sorted(totals.items()), start=1):
        if stream not in got.peer_ports:
            raise TrafficError(f'iperf server, traffic "{flow.name}": stream [{stream}] has results but no connection')
        early = total.end_s < duration.seconds * 0.9
        if (early and flow.protocol == "tcp") or total.end_s <= 0:
            raise TrafficError(
                f'iperf server, traffic "{flow.name}": stream [{stream}] ended after {total.end_s:.1f} s, '
                f"expected {duration}"
            )
        if early:
            warnings.append(f"iperf server: stream [{stream}] got its last datagram after {total.end_s:.1f} s")
        port = got.peer_ports[stream]
        streams.append(_stream_result(number, port, total, senders.get(port)))
        intervals += [
            _interval_result(number, line)
            for line in got.lines[stream]
            if line is not total and line.end_s > line.start_s
        ]
    return FlowResult(
        tool="iperf",
        protocol=flow.protocol,
        version=got.version or sent.version,
        streams=tuple(streams),
        intervals=tuple(sorted(intervals, key=lambda interval: (interval.stream, interval.start_s))),
        warnings=tuple(warnings),
        pace=datagram_pace(flow, streams),
    )


def _stream_result(number: int, port: int, total: ReportLine, sender: ReportLine | None) -> StreamResult:
    """Return the result of a stream whose total the server printed; `sender` is the client's total, if printed."""
    return StreamResult(
        stream=number,
        local_port=port,
        seconds=total.end_s,
        bytes=total.bytes,
        goodput_bps=total.bytes * 8 / total.end_s,
        sender_bytes=sender.bytes if sender else None,
        sender_bps=sender.rate_bps if sender else None,
        retransmits=sender.retransmits if sender else None,
        datagrams=total.datagrams,
        lost=total.lost,
        jitter_ms=total.jitter_ms,
    )


def _interval_result(number: int, line: ReportLine) -> IntervalResult:
    # The printed rate is rounded.
    return IntervalResult(number, line.start_s, line.end_s, line.bytes, line.bytes * 8 / (line.end_s - line.start_s))


def _partial_result(
    flow: Flow, duration: Duration, got: Report, sent: Report, errors: list[str], warnings: list[str]
) -> FlowResult:
    """Return the received data of a flow that may fail, from its intervals (present in any case)."""
    streams: list[StreamResult] = []
    intervals: list[IntervalResult] = []
    for number, (stream, port) in enumerate(sorted(got.peer_ports.items()), start=1):
        lines = got.lines.get(stream, ())
        whole = lines[-1] if len(lines) > 1 and lines[-1].start_s == 0 else None
        parts = [
            _interval_result(number, line)
            for line in lines
            if line is not whole and line.start_s < line.end_s < duration.seconds + STOP_DELAY_S
        ]
        streams.append(_partial_stream(number, port, duration, sum(part.bytes for part in parts)))
        intervals += parts
    connected = len(streams)
    if connected < flow.streams:
        errors = [*errors, f"{connected} of {flow.streams} connections were established"]
    streams += [_partial_stream(number, None, duration, 0) for number in range(connected + 1, flow.streams + 1)]
    return FlowResult(
        tool="iperf",
        protocol=flow.protocol,
        version=got.version or sent.version,
        streams=tuple(streams),
        intervals=tuple(intervals),
        warnings=tuple(warnings),
        failure="; ".join(errors),
    )


def _partial_stream(number: int, port: int | None, duration: Duration, count: int) -> StreamResult:
    return StreamResult(number, port, duration.seconds, count, count * 8 / duration.seconds)
