"""Interface of traffic tools: commands to start, and a parser of their output."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Literal, Protocol

from qoslab.errors import RunInvalid, UserError
from qoslab.model.experiment import Family, Flow
from qoslab.model.units import Duration
from qoslab.system import program_formats

DRAIN_S = 30.0
"""Seconds within which a tool must finish after the end of the traffic: the last packets leave a shaper's queue and
retransmissions with a backed-off timer arrive."""

READ_S = 0.25
"""Greatest delay, in seconds, before a receiver reads arrived data; also the accuracy of the end of its test."""


class TrafficError(RunInvalid):
    """Failure or unusable output of a traffic tool; the message names tool, flow and side."""


@dataclass(frozen=True)
class Endpoints:
    """Ends of a flow. `client_port` is the first stream's source port, None if the kernel chooses it."""

    source: IPv4Address | IPv6Address
    destination: IPv4Address | IPv6Address
    port: int
    client_port: int | None = None
    seed: int = 1
    """Seed of the tool's random values."""


@dataclass(frozen=True)
class FlowProblem:
    """A setting of a flow that its tool does not support."""

    key: str
    """The wrong or missing key of the flow."""
    message: str
    """`found …, expected …`"""


@dataclass(frozen=True)
class Listener:
    """Socket that shows whether the server is ready; see `is_listening`.

    A test connection is no option: a one-off iperf3 server would mistake it for its client.
    """

    protocol: Literal["tcp", "udp", "raw"]
    port: int
    """Port, or IP protocol number of a raw socket."""


@dataclass(frozen=True)
class Commands:
    """Commands of one flow: start `server` on the destination, wait for `listener`, run `client` on the source."""

    server: tuple[str, ...]
    client: tuple[str, ...]
    listener: Listener
    server_exits: bool
    """The server ends by itself after its client; otherwise it gets SIGINT once `TrafficTool.is_finished` is true."""
    deadline_s: float
    """Seconds from the client's start within which both sides must end; a flow that may fail is then cut off."""
    connections: int = 0
    """TCP connections of the server when the traffic begins, with the control connection; 0 if it waits for none."""
    cut_off: bool = False
    """True if a server that still receives at the deadline gets SIGINT, without an error; later data counts as lost."""


@dataclass(frozen=True)
class FlowOutput:
    """Output of one side. `status` is None if it is not known (a killed process, a stored file)."""

    stdout: str
    stderr: str = ""
    status: int | None = None


@dataclass(frozen=True)
class StreamResult:
    """One stream (connection, datagram flood) of a flow, over the whole test.

    `goodput_bps` is the payload received, in bits, divided by `seconds`, the time from start to end of the test at the
    receiver. The sender's own count includes its unsent buffer and is only informative.
    """

    stream: int
    local_port: int | None
    """The client's port; None if the receiver has no record of the stream."""
    seconds: float
    bytes: int
    goodput_bps: float
    sender_bytes: int | None = None
    sender_bps: float | None = None
    retransmits: int | None = None
    """Segments that the sender's TCP retransmitted."""
    mss_bytes: int | None = None
    """Payload of a full segment."""
    rtt_mean_ms: float | None = None
    """Mean of the sender's smoothed TCP round-trip time, sampled at each report of the tool."""
    datagrams: int | None = None
    """UDP: datagrams known to the receiver, including lost ones."""
    lost: int | None = None
    jitter_ms: float | None = None
    delay_p50_ms: float | None = None
    """Median one-way delay; None if the clocks of the two ends differ."""
    delay_p99_ms: float | None = None
    delay_max_ms: float | None = None
    voice_r: float | None = None
    """Rating R of a call (ITU-T G.107); None if delay or codec is not known."""
    pages: int | None = None
    """Complete pages of flood over TCP."""
    pages_unfinished: int | None = None
    """Pages that began and were not complete at the end."""
    page_p50_ms: float | None = None
    """Median time of all pages; None if it is that of an unfinished one, which counts as longer than all others."""
    page_mean_ms: float | None = None
    """Mean time of the complete pages, from the start of a page until its last byte arrives."""
    page_max_ms: float | None = None


@dataclass(frozen=True)
class IntervalResult:
    """Received data of one stream between two times, in seconds since the start of its test."""

    stream: int
    start_s: float
    end_s: float
    bytes: int
    bps: float


@dataclass(frozen=True)
class SendingPace:
    """Precision of a paced sender relative to its requested pace."""

    shortfall: float
    """Share of the requested traffic that was not sent; 0 if all of it, or more, was sent."""
    late_p99_ms: float | None = None
    """Lateness of the datagrams (99th percentile); None if the tool does not report it."""
    late_max_ms: float | None = None


@dataclass(frozen=True)
class FlowResult:
    """All streams of one flow, as the receiver saw them."""

    tool: str
    protocol: Literal["tcp", "udp"]
    version: str
    streams: tuple[StreamResult, ...]
    intervals: tuple[IntervalResult, ...]
    warnings: tuple[str, ...] = ()
    failure: str = ""
    """Reason for the failure of a flow that may fail."""
    pace: SendingPace | None = None
    """Pace of the sender; None for TCP, or if the sender does not report the data that it sent."""


@dataclass(frozen=True)
class UncountedBounds:
    """Bounds of the received data that a flow's tool may not have counted."""

    stream_bytes: int
    """Uncounted bytes of each stream: an incomplete read, and data other than the test's payload."""
    last_s: float = READ_S
    """Data that arrived less than this many seconds before the end of the test, or later, may be uncounted."""


class TrafficTool(Protocol):
    """One traffic generator. Implementations are stateless: they build commands and parse text, nothing more."""

    name: str
    suffix: str
    """Suffix of the files that store its output, such as `json` or `txt`."""
    programs: tuple[str, ...]
    """Programs that must be installed on both hosts; each prints its version with --version."""
    families: tuple[Family, ...]
    """Supported versions of IP."""

    def largest_datagram(self, family: Family) -> int:
        """Return the largest `size` of a UDP flow that is not fragmented, in bytes."""
        ...

    def check(self, flow: Flow) -> Iterator[FlowProblem]:
        """Yield a problem for each setting of the flow that the tool does not support."""
        ...

    def commands(self, flow: Flow, duration: Duration, ends: Endpoints, congestion_control: str) -> Commands:
        """Return the commands for a flow. Raise `UserError` if the tool does not support a setting of the flow."""
        ...

    def sending_pattern(self, flow: Flow) -> program_formats.FlowPart:
        """Return the sending pattern of a UDP flow in the form of a `qos-sim` scenario (internals/simulator.md)."""
        ...

    def uncounted_bounds(self, flow: Flow) -> UncountedBounds:
        """Return the tolerated difference between the bytes that its server reports and those received, for the
        comparison with captures."""
        ...

    def is_finished(self, flow: Flow, server_stdout: str) -> bool:
        """Return whether the server has reported all streams completely, so that it may be stopped."""
        ...

    def parse(self, flow: Flow, duration: Duration, client: FlowOutput, server: FlowOutput) -> FlowResult:
        """Return the results of a flow. Raise `TrafficError` if a side failed or its output is malformed."""
        ...


MTU = 1500
"""Bytes of the largest IP packet in an Ethernet frame."""
IP_AND_UDP_HEADER: dict[Family, int] = {4: 28, 6: 48}
"""Bytes of the IP and UDP headers of a datagram, by version of IP."""


def largest_payload(family: Family) -> int:
    """Return the payload of the largest datagram that is not fragmented, in bytes."""
    return MTU - IP_AND_UDP_HEADER[family]


def check_iperf(flow: Flow) -> Iterator[FlowProblem]:
    """Yield a problem for each setting of a flow that neither iperf supports."""
    if flow.protocol == "udp":
        if flow.rate is None:
            yield FlowProblem("rate", 'found no key "rate", required for a UDP flow')
        if flow.congestion_control is not None:
            yield FlowProblem(
                "congestion_control",
                f'found "{flow.congestion_control}" on a UDP flow, expected this key on TCP flows only',
            )
    if flow.delay is not None:
        yield FlowProblem("delay", f'found "{flow.delay}" with the tool {flow.tool}, expected this key with flood only')
    if flow.random:
        yield FlowProblem("random", f"found {', '.join(flow.random)}, expected this key with the tool flood only")


class Iperf:
    """Common parts of the tools `iperf` and `iperf3`."""

    families: tuple[Family, ...] = (4, 6)
    default_datagram: int
    """Payload of a datagram of a flow without a size, in bytes."""

    def largest_datagram(self, family: Family) -> int:
        """See `TrafficTool`."""
        return largest_payload(family)

    def sending_pattern(self, flow: Flow) -> program_formats.FlowPart:
        """See `TrafficTool`."""
        return {"payload_bytes": self.datagram_bytes(flow, flow.family or 4)}

    def datagram_bytes(self, flow: Flow, family: Family) -> int:
        """Return the payload of the flow's datagrams in bytes; by default the tool's, limited to one packet."""
        return min(self.default_datagram, largest_payload(family)) if flow.size is None else flow.size.bytes


def datagram_rate(flow: Flow) -> int:
    """Return the payload rate of a UDP flow in bit/s. Raise `UserError` if the experiment does not specify it."""
    if flow.rate is None:
        raise UserError(
            f'traffic "{flow.name}": a UDP flow needs a rate',
            hint="the tools' default of 1 Mb/s is not used; add a rate such as rate: 1 Mb/s",
        )
    return flow.rate.bps


def datagram_pace(flow: Flow, streams: Sequence[StreamResult]) -> SendingPace | None:
    """Return the pace of an iperf UDP flow (only its rate); None for other flows, or if the rate of a stream is
    unknown."""
    if flow.protocol != "udp" or flow.rate is None or not streams:
        return None
    sent = [stream.sender_bps for stream in streams]
    asked = flow.rate.bps * len(streams)
    known = [rate for rate in sent if rate is not None]
    return SendingPace(max(0.0, 1 - sum(known) / asked)) if len(known) == len(sent) else None


def check_streams(tool: str, flow: Flow, found: int) -> None:
    """Raise `TrafficError` unless the receiver reported as many streams as the flow has."""
    if found != flow.streams:
        raise TrafficError(
            f'{tool} server, traffic "{flow.name}": found results of {found} streams, expected {flow.streams}',
            hint="the raw output in the run folder's traffic/ shows which connections were established",
        )


def read_number(value: object) -> float:
    """Return a number of a tool's JSON. Raise `ValueError` for any other value, including infinity and NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"found {value!r}, expected a number")
    return float(value)


def read_count(value: object) -> int:
    """Return a count of a tool's JSON. Raise `ValueError` for any other value."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise ValueError(f"found {value!r}, expected a count")
    return value


def decimal_shift(number: int, digits: int) -> str:
    """Return the number divided by 10 to the power of `digits`, exactly."""
    whole, fraction = divmod(number, 10**digits)
    return f"{whole}.{fraction:0{digits}d}".rstrip("0").rstrip(".")


_LISTEN_STATE = {"tcp": "0A", "udp": "07", "raw": "07"}  # TCP_LISTEN; an unconnected UDP or raw socket
_ESTABLISHED = "01"


def is_listening(proc_net: Sequence[str], listener: Listener) -> bool:
    """Return whether the port is open, according to the text of `/proc/net/tcp` and `tcp6` (or `udp`, `raw`)."""
    return (listener.port, _LISTEN_STATE[listener.protocol]) in _sockets(proc_net)


def count_connections(proc_net: Sequence[str], port: int) -> int:
    """Return the number of connections at a server's port, according to the text of `/proc/net/tcp` and `tcp6`."""
    return sum(each == (port, _ESTABLISHED) for each in _sockets(proc_net))


def used_ports(proc_net: Sequence[str], ports: range) -> list[int]:
    """Return the ports in use on a host, in any state, according to the text of `/proc/net/tcp` and `tcp6`."""
    used = {port for port, _ in _sockets(proc_net)}
    return [port for port in ports if port in used]


def _sockets(proc_net: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the local port and the state of each socket; the headers of tables are no sockets."""
    for words in (line.split() for table in proc_net for line in table.splitlines()):
        if len(words) > 3 and ":" in words[1]:
            yield int(words[1].rpartition(":")[2], 16), words[3]
