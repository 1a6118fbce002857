"""The experiment as it stands in `experiments/NAME.yml`, once checked."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from qoslab.units import Duration, Percent, Rate, Size

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]*$", max_length=40)]
Generation = Literal["classic", "hqf"]


class Frozen(BaseModel):
    """Immutable; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Route(Frozen):
    """A static route of a router or host."""

    prefix: IPv4Network
    via: IPv4Address


class Node(Frozen):
    """A host or router of the topology."""

    platform: Literal["host", "ios", "linux"]
    model: str | None = None
    """Hardware model, `ios` only: for example "3725"; `platforms/ios.py` knows them."""
    generation: Generation | None = None
    """QoS behaviour, routers only; the model's own generation where absent."""
    routes: tuple[Route, ...] = ()
    """Static routes; a host on one link with a router needs none (the router is its gateway)."""


class LinkEnd(Frozen):
    """Where a link ends: a node's interface, in the node's own spelling (FastEthernet0/1, eth0)."""

    node: Name
    interface: str
    address: IPv4Interface | None = None


class Link(Frozen):
    """A point-to-point link; both directions alike."""

    name: Name
    ends: tuple[LinkEnd, LinkEnd]
    rate: Rate
    """Bits on the wire per second, framing overhead included (Ethernet: preamble, FCS and gap count)."""
    delay: Duration = Duration(0)
    """Propagation delay, one way."""
    framing: Literal["ethernet", "ppp", "hdlc"] = "ethernet"


class Topology(Frozen):
    """Nodes and links."""

    nodes: dict[Name, Node]
    links: tuple[Link, ...]


class TcpProfile(Frozen):
    """TCP settings of the hosts of one arm; set explicitly, never inherited from the machine."""

    congestion_control: str = "cubic"
    sack: bool = True
    timestamps: bool = True
    recovery: int = 1
    """sysctl tcp_recovery (RACK); 0 is the duplicate-ACK counting of older stacks."""
    early_retrans: int = 3
    """sysctl tcp_early_retrans (tail loss probe)."""
    initcwnd: int = 10
    rto_min: Duration = Duration(200_000_000)


class Flow(Frozen):
    """One traffic generator run: `streams` parallel connections or a datagram flood."""

    name: Name
    tool: str
    """A name of the registry in `qoslab.traffic`: iperf3, iperf."""
    source: Name = Field(alias="from")
    destination: Name = Field(alias="to")
    protocol: Literal["tcp", "udp"] = "tcp"
    streams: int = Field(default=1, ge=1, le=128)
    duration: Duration | None = None
    """The experiment's duration where absent."""
    start_after: Duration = Duration(0)
    rate: Rate | None = None
    """UDP: payload bits per second of each stream. TCP: pacing by the tool; unlimited where absent."""
    size: Size | None = None
    """UDP: payload bytes of a datagram. TCP: bytes of one write."""
    window: Size | None = None
    """Socket buffer (`-w`); the kernel's own sizing where absent."""
    congestion_control: str | None = None
    """The TCP profile's where absent."""
    dscp: int | None = Field(default=None, ge=0, le=63)
    port: int | None = Field(default=None, ge=1, le=65535)


class Configuration(Frozen):
    """Configuration for one device: an IOS template and its variables."""

    template: str
    """Path of a Jinja2 template, relative to the experiment file."""
    variables: dict[str, str | int | float | bool] = {}


class Arm(Frozen):
    """One variant of the experiment: a configuration and its traffic."""

    name: Name
    title: str = ""
    configure: dict[Name, Configuration] = {}
    """Per device, pushed on top of the experiment's own `configure`."""
    tcp: str | TcpProfile | None = None
    """A profile's name or settings; the experiment's where absent."""
    traffic: tuple[Flow, ...] | None = None
    """Replaces the experiment's traffic where present."""


class CapturePoint(Frozen):
    """Packets kept as pcapng, seen at one interface of a node."""

    name: Name
    node: Name
    interface: str
    filter: str = ""
    """A pcap filter; all packets where absent."""
    snaplen: Size = Size(128)


Moment = Literal["before", "during", "after"]


class Observation(Frozen):
    """A show command, taken at some moments of each cell; parsed by Genie where it has a parser."""

    node: Name
    command: str
    when: tuple[Moment, ...] = ("before", "after")
    """`during` is two thirds into the traffic."""


class Expectation(Frozen):
    """A bound for one metric of one arm. Exactly one form is used; the bounds are inclusive."""

    metric: str
    arm: Name
    between: tuple[Rate | Percent | float, Rate | Percent | float] | None = None
    at_least: Rate | Percent | float | None = None
    at_most: Rate | Percent | float | None = None
    equals: Rate | Percent | float | str | None = None
    reason: str = ""


class Comparison(Frozen):
    """What the results are compared with."""

    article: str
    published: str
    """A CSV file, relative to the experiment file, with the columns arm, metric, unit, value, source."""
    expectations: tuple[Expectation, ...] = ()


class Experiment(Frozen):
    """A whole experiment file."""

    name: Name
    title: str
    description: str = ""
    topology: Topology
    duration: Duration
    """Traffic time of each cell; `--duration` overrides it."""
    repetitions: int = Field(default=1, ge=1)
    seed: int = 1
    configure: dict[Name, Configuration] = {}
    tcp: str | TcpProfile = "modern"
    traffic: tuple[Flow, ...]
    arms: tuple[Arm, ...]
    captures: tuple[CapturePoint, ...] = ()
    observe: tuple[Observation, ...] = ()
    compare: Comparison | None = None
