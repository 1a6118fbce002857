"""Interface of traffic tools: commands to start, and a parser of their output."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Literal, Protocol

from qoslab.errors import RunInvalid, UserError
from qoslab.model.experiment import Family, Flow
from qoslab.model.units import Duration

if TYPE_CHECKING:
    from qoslab.system import program_formats

DRAIN_S = 30.0
"""Seconds after the end of the traffic in which a tool has to be done: the last packets leave a shaper's queue and
retransmissions with a backed-off timer arrive."""

READ_S = 0.25
"""Seconds within which a receiver reads what has arrived, and within which its end of a test is known."""


class TrafficError(RunInvalid):
    """A traffic tool failed, or what it printed cannot be used; the message names tool, flow and side."""


@dataclass(frozen=True)
class Endpoints:
    """Ends of a flow. `client_port` is the first stream's source port, chosen by the kernel where None."""

    source: IPv4Address | IPv6Address
    destination: IPv4Address | IPv6Address
    port: int
    client_port: int | None = None
    seed: int = 1
    """Seed of the tool's random values."""


@dataclass(frozen=True)
class Problem:
    """Something about a flow that its tool cannot do."""

    key: str
    """The flow's key that is wrong or missing."""
    message: str
    """`found …, expected …`"""


@dataclass(frozen=True)
class Listener:
    """Socket that shows whether the server is ready; see `is_listening`.

    Connecting is no way to find out: a one-off iperf3 server takes the probe for its client.
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
    """The server ends by itself after its client; otherwise it gets SIGINT once `TrafficTool.finished` is true."""
    deadline_s: float
    """Seconds after the client's start when both sides must be done; later is an error, or cut off if it may fail."""
    connections: int = 0
    """TCP connections that the server has when the traffic begins, its own included; 0 if it waits for none."""
    cut_off: bool = False
    """A server that still receives at the deadline is no error: it gets SIGINT, and what comes later counts as lost."""


@dataclass(frozen=True)
class Output:
    """Output of one side. `status` is None if it is not known (a killed process, a stored file)."""

    stdout: str
    stderr: str = ""
    status: int | None = None


@dataclass(frozen=True)
class StreamResult:
    """One stream (connection, datagram flood) of a flow, over the whole test.

    `goodput_bps` is what the receiver got: payload bits divided by `seconds`, the receiver's own time from the start
    of its test to the end. What the sender believes to have sent includes its unsent buffer and is only informative.
    """

    stream: int
    local_port: int | None
    """The client's port; None if the receiver knows nothing of the stream."""
    seconds: float
    bytes: int
    goodput_bps: float
    sender_bytes: int | None = None
    sender_bps: float | None = None
    retransmits: int | None = None
    """Segments that the sender's TCP sent again."""
    mss_bytes: int | None = None
    """Payload of a full segment."""
    rtt_mean_ms: float | None = None
    """Mean of the round trips that the sender's TCP had smoothed, at each report of the tool."""
    datagrams: int | None = None
    """UDP: datagrams that the receiver knows of, lost ones included."""
    lost: int | None = None
    jitter_ms: float | None = None
    delay_p50_ms: float | None = None
    """Median one-way delay; None if the clocks of the two ends differ."""
    delay_p99_ms: float | None = None
    delay_max_ms: float | None = None
    voice_r: float | None = None
    """Rating R of a call (ITU-T G.107); None if delay or codec is not known."""


@dataclass(frozen=True)
class IntervalResult:
    """Received data of one stream between two times, in seconds of its own test time."""

    stream: int
    start_s: float
    end_s: float
    bytes: int
    bps: float


@dataclass(frozen=True)
class Pace:
    """Precision of a paced sender relative to its requested pace."""

    shortfall: float
    """Share of what it was asked to send that it left out; 0 if it sent all, or more."""
    late_p99_ms: float | None = None
    """Lateness of its datagrams (99th percentile); None if the tool does not report it."""
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
    pace: Pace | None = None
    """None if the sender has no pace of its own (TCP), or does not report what it sent."""


@dataclass(frozen=True)
class Uncounted:
    """Data of a flow that may have arrived uncounted by its tool."""

    stream_bytes: int
    """Uncounted bytes of each stream: an incomplete read, and data other than the test's payload."""
    last_s: float = READ_S
    """Data that arrived within this time before the end of the test, or later."""


class TrafficTool(Protocol):
    """One traffic generator. Implementations are stateless: they build commands and parse text, nothing more."""

    name: str
    suffix: str
    """Ending of the files that keep its output: json, txt."""
    programs: tuple[str, ...]
    """Programs that must be installed on both hosts; each says its version with --version."""
    families: tuple[Family, ...]
    """The versions of IP that it speaks."""

    def largest_datagram(self, family: Family) -> int:
        """Return the greatest `size` of a UDP flow without fragmentation, in bytes."""
        ...

    def check(self, flow: Flow) -> Iterator[Problem]:
        """Yield the requests of the flow that the tool cannot meet."""
        ...

    def commands(self, flow: Flow, duration: Duration, ends: Endpoints, congestion_control: str) -> Commands:
        """The commands for a flow. `UserError` if the tool cannot do what the flow asks."""
        ...

    def datagrams(self, flow: Flow) -> program_formats.FlowPart:
        """Return the sending of a UDP flow's datagrams, as in a scenario of `qos-sim` (internals/simulator.md)."""
        ...

    def uncounted(self, flow: Flow) -> Uncounted:
        """Return the tolerated difference between the bytes that its server reports and those received, for the
        comparison with captures."""
        ...

    def finished(self, flow: Flow, server_stdout: str) -> bool:
        """Return whether the server has reported every stream to the end, so that it may be stopped."""
        ...

    def parse(self, flow: Flow, duration: Duration, client: Output, server: Output) -> FlowResult:
        """The figures that count. `TrafficError` when a side failed or its output is broken."""
        ...


MTU = 1500
"""Bytes of the IP packet that fits into an Ethernet frame."""
IP_AND_UDP_HEADER: dict[Family, int] = {4: 28, 6: 48}
"""Bytes above the payload of a datagram, by version of IP."""


def largest_payload(family: Family) -> int:
    """Payload of the largest datagram that is not fragmented, in bytes."""
    return MTU - IP_AND_UDP_HEADER[family]


def check_iperf(flow: Flow) -> Iterator[Problem]:
    """Check the common limits of both iperfs."""
    if flow.protocol == "udp":
        if flow.rate is None:
            yield Problem("rate", 'found no key "rate", required for a UDP flow')
        if flow.congestion_control is not None:
            yield Problem(
                "congestion_control",
                f'found "{flow.congestion_control}" on a UDP flow, expected this key on TCP flows only',
            )
    if flow.delay is not None:
        yield Problem("delay", f'found "{flow.delay}" with the tool {flow.tool}, expected this key with flood only')
    if flow.random:
        yield Problem("random", f"found {', '.join(flow.random)}, expected this key with the tool flood only")


def datagram_rate(flow: Flow) -> int:
    """The payload rate of a UDP flow in bit/s; `UserError` if the experiment does not say."""
    if flow.rate is None:
        raise UserError(
            f'traffic "{flow.name}": a UDP flow needs a rate',
            hint="the tools' own default of 1 Mb/s is not assumed; add e.g. rate: 1 Mb/s",
        )
    return flow.rate.bps


def datagram_pace(flow: Flow, streams: Sequence[StreamResult]) -> Pace | None:
    """Return the pace of a UDP flow of iperf (only its rate); None for others, or if a stream's is unknown."""
    if flow.protocol != "udp" or flow.rate is None or not streams:
        return None
    sent = [stream.sender_bps for stream in streams]
    asked = flow.rate.bps * len(streams)
    known = [rate for rate in sent if rate is not None]
    return Pace(max(0.0, 1 - sum(known) / asked)) if len(known) == len(sent) else None


def check_streams(tool: str, flow: Flow, found: int) -> None:
    """`TrafficError` unless the receiver reported as many streams as the flow has."""
    if found != flow.streams:
        raise TrafficError(
            f'{tool} server, traffic "{flow.name}": found results of {found} streams, expected {flow.streams}',
            hint="the raw output in the run folder's traffic/ shows which connections came up",
        )


def number_of(value: object) -> float:
    """A number of a tool's JSON; `ValueError` for anything else, also for what is not finite."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"found {value!r}, expected a number")
    return float(value)


_LISTEN_STATE = {"tcp": "0A", "udp": "07", "raw": "07"}  # TCP_LISTEN; an unconnected UDP or raw socket
_ESTABLISHED = "01"


def is_listening(proc_net: Sequence[str], listener: Listener) -> bool:
    """Return whether the port is open, according to the text of `/proc/net/tcp` and `tcp6` (or `udp`, `raw`)."""
    return _sockets(proc_net, listener.port, _LISTEN_STATE[listener.protocol]) > 0


def connected(proc_net: Sequence[str], port: int) -> int:
    """Return the number of connections of a server at its port, according to the text of `/proc/net/tcp` and `tcp6`."""
    return _sockets(proc_net, port, _ESTABLISHED)


def _sockets(proc_net: Sequence[str], port: int, state: str) -> int:
    lines = (line.split() for table in proc_net for line in table.splitlines()[1:])
    return sum(len(line) > 3 and line[1].endswith(f":{port:04X}") and line[3] == state for line in lines)
