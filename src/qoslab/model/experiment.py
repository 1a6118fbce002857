"""Checked content of `experiments/NAME.yml`.

The docstrings of classes and fields are the descriptions in the JSON Schema: they speak to the file's author.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from typing import Annotated, Literal, TypeVar, get_args

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, WithJsonSchema
from pydantic_core import PydanticKnownError

from qoslab.model.comparison import Answer, Comparison, Note, SweepGraph, Trace
from qoslab.model.framing import Framing
from qoslab.model.frozen import Frozen, Name
from qoslab.model.generation import Generation
from qoslab.model.matrix import Matrix
from qoslab.model.metrics import COUNTERS, CounterTrigger
from qoslab.model.traffic_kinds import KindName
from qoslab.model.units import DSCP_NUMBERS, Duration, Percent, Quantity, QuantityError, Rate, Size, dscp_number
from qoslab.system.plugins import installed_plugins

SECOND_NS = 10**9
BACKGROUND_MARGIN_S = 4
"""Seconds for which background load outlasts the flows that it is for: enough for 16 KiB at 33 kb/s."""
Stage = Literal["before", "during", "after"]
Order = Literal["as written", "random", "blocked"]
Family = Literal[4, 6]
"""A version of IP."""
Address = IPv4Interface | IPv6Interface
"""Address of an interface, with its prefix length."""

_Q = TypeVar("_Q", bound=Quantity)


def _check_positive(quantity: _Q) -> _Q:
    if not quantity:
        raise QuantityError(f'found "{quantity}", expected a {quantity.KIND} above zero')
    return quantity


class Route(Frozen):
    """A static route of a router or host."""

    prefix: IPv4Network | IPv6Network
    """Destination, such as 192.168.30.0/24 or 2001:db8:30::/64."""
    via: IPv4Address | IPv6Address
    """Address of the next router, of the same family."""


def _check_platform(word: object) -> object:
    """Ours, or one of another package; as pydantic says it of a literal."""
    own = get_args(OwnPlatform)
    if not isinstance(word, str) or (word not in own and word not in installed_plugins("platforms")):
        raise PydanticKnownError(
            "literal_error", {"expected": " or ".join(map(repr, (*own, *installed_plugins("platforms"))))}
        )
    return word


OwnPlatform = Literal["host", "ios", "engine", "tc"]
PlatformName = Annotated[
    str, BeforeValidator(_check_platform), WithJsonSchema({"enum": list(get_args(OwnPlatform)), "type": "string"})
]


class Node(Frozen):
    """A host or router of the topology."""

    platform: PlatformName
    """`host`: an end system; `ios`: a router with an IOS command line; `engine`: a router with the same queueing
    engine and no command line; `tc`: a Linux router whose own kernel queues, by tc commands or an IOS policy.
    """
    model: str | None = None
    """Router hardware, as "3725" (in quotes): gives interfaces, defaults and QoS generation. Required by `ios`."""
    generation: Generation | None = None
    """QoS of a router: `classic` (up to 12.4(15)T) or `hqf` (from 12.4(20)T); default: that of the model."""
    routes: tuple[Route, ...] = ()
    """Static routes; a host on one link with a router needs none (the router is its gateway)."""


class LinkEnd(Frozen):
    """End of a link: an interface of a node."""

    node: Name
    """A name under `topology.nodes`."""
    interface: str
    """Full name of the interface, such as FastEthernet0/1 on a router or eth0 on a host."""
    address: IPv4Interface | None = None
    """IPv4 address with prefix length, as 192.168.10.1/24; both ends of a link are in one subnet."""
    ipv6_address: IPv6Interface | None = None
    """IPv6 address with prefix length, as 2001:db8:10::1/64, with or without an IPv4 address."""

    @property
    def addresses(self) -> tuple[Address, ...]:
        """Return the end's addresses, IPv4 first."""
        return tuple(each for each in (self.address, self.ipv6_address) if each is not None)

    def family_address(self, family: Family) -> Address | None:
        """Return the address of an IP version."""
        return self.address if family == 4 else self.ipv6_address


class Jitter(Frozen):
    """Variation of a link's delay; directions are independent."""

    size: Annotated[Duration, AfterValidator(_check_positive)]
    """Size of the jitter, as defined by `distribution`."""
    distribution: Literal["uniform", "normal", "exponential"] = "uniform"
    """`uniform`: delay ± size; `normal`: standard deviation, cut at four; `exponential`: mean of the addition."""
    correlation: Percent = Percent(0)
    """Correlation of the delays of successive frames, below 100 %; the distribution does not change."""
    reorder: bool = False
    """True if frames may overtake each other; otherwise a frame waits for its predecessor."""


class RandomLoss(Frozen):
    """Each frame is lost with the same probability."""

    model: Literal["random"]
    """`random`."""
    probability: Percent
    """0 to 100 %."""


class BurstLoss(Frozen):
    """Bursts: the Gilbert-Elliott channel, good or bad (letters as Haßlinger and Hohlfeld, MMB 2008)."""

    model: Literal["gilbert-elliott"]
    """`gilbert-elliott`."""
    p: Percent
    """Probability that the channel turns bad before a frame."""
    r: Percent
    """Probability that it turns good again before a frame; the mean bad period is 1/r frames."""
    loss_good: Percent = Percent(0)
    """Probability of loss while good (1-k)."""
    loss_bad: Percent = Percent(1_000_000)
    """Probability of loss while bad (1-h)."""


class Link(Frozen):
    """A point-to-point link; both directions alike."""

    name: Name
    """Unique among the links."""
    ends: tuple[LinkEnd, LinkEnd]
    """Two ends."""
    rate: Annotated[Rate, AfterValidator(_check_positive)]
    """Rate in bits on the wire, framing overhead included (with Ethernet preamble, FCS and gap)."""
    delay: Duration = Duration(0)
    """Propagation delay, one way."""
    jitter: Jitter | None = None
    """Variation of the delay; default: none."""
    loss: Annotated[RandomLoss | BurstLoss, Discriminator("model")] | None = None
    """Loss of frames; default: none."""
    framing: Framing = "ethernet"
    """Layer 2 on the wire: Ethernet adds 38 bytes to an IP packet, PPP and HDLC 7, PPPoE 46; the others are cells of
    ATM, 53 bytes for each 48 of the packet, its encapsulation and a trailer of 8."""

    @property
    def emulated_keys(self) -> tuple[str, ...]:
        """The keys by which it differs from a plain cable: of `delay`, `jitter`, `loss`."""
        given = {"delay": int(self.delay), "jitter": self.jitter, "loss": self.loss}
        return tuple(key for key, value in given.items() if value)


class Topology(Frozen):
    """Nodes and links."""

    nodes: dict[Name, Node]
    """Hosts and routers, by name."""
    links: tuple[Link, ...]
    """Point-to-point links."""

    def node_links(self, node: str) -> tuple[tuple[Link, LinkEnd, LinkEnd], ...]:
        """The node's links: the link, the node's own end, the far end."""
        return tuple(
            (link, near, far) for link in self.links for near, far in (link.ends, link.ends[::-1]) if near.node == node
        )


class TcpProfile(Frozen):
    """TCP settings of the hosts of one arm; set explicitly, never inherited from the machine."""

    congestion_control: str = "cubic"
    """A congestion control algorithm of Linux: cubic, reno, …"""
    sack: bool = True
    """Selective acknowledgements (sysctl tcp_sack)."""
    timestamps: bool = True
    """TCP timestamps option (sysctl tcp_timestamps); costs 12 bytes a segment."""
    ecn: bool = False
    """Explicit congestion notification (RFC 3168), requested and accepted (sysctl tcp_ecn: 1, or 0)."""
    recovery: int = Field(default=1, ge=0, le=7)
    """sysctl tcp_recovery: 1 is RACK; 0 is the duplicate-ACK counting of older stacks."""
    early_retrans: int = Field(default=3, ge=0, le=4)
    """sysctl tcp_early_retrans: 3 is tail loss probe; 0 is none."""
    frto: int = Field(default=2, ge=0, le=2)
    """sysctl tcp_frto: 2 is the detection of spurious timeouts (RFC 5682); 0 is none."""
    initcwnd: int = Field(default=10, ge=1, le=255)
    """Initial congestion window in segments, a route attribute."""
    rto_min: Annotated[Duration, AfterValidator(_check_positive)] = Duration(200_000_000)
    """Minimum retransmission timeout, a route attribute."""


TCP_PROFILES: dict[str, TcpProfile] = {
    "modern": TcpProfile(),
    # What is documented of Windows 2000 and XP, whose client ports the articles print (1908 to 1935): NewReno with SACK
    # (Microsoft, "SackOpts", on by default), no timestamps unless the peer asks (Tcp1323Opts), an initial window of two
    # segments. RACK, tail loss probes and F-RTO (RFC 5682 of 2009) came later. Not chosen by its results: without
    # SACK it would be nearer to the first article's 841 kb/s.
    "legacy-2008": TcpProfile(
        congestion_control="reno",
        sack=True,
        timestamps=False,
        recovery=0,
        early_retrans=0,
        frto=0,
        initcwnd=2,
        rto_min=Duration(300_000_000),
    ),
}
"""The profiles that an experiment file may name under `tcp`."""


def _tcp_discriminator(value: object) -> str:
    return "name" if isinstance(value, str) else "settings"


Tcp = Annotated[Annotated[str, Tag("name")] | Annotated[TcpProfile, Tag("settings")], Discriminator(_tcp_discriminator)]


Dscp = Annotated[
    int,
    Field(ge=0, le=63),
    BeforeValidator(dscp_number),
    WithJsonSchema(
        {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 63}, {"type": "string", "enum": list(DSCP_NUMBERS)}]}
    ),
]


class Flow(Frozen):
    """One traffic generator run: `streams` parallel connections or a datagram flood."""

    name: Name
    """Unique within an arm."""
    kind: KindName | None = None
    """Kind of traffic of the catalogue, such as voice: sets tool, protocol, delay or rate, size, dscp and port, unless
    the flow has the key."""
    tool: str
    """The traffic generator: iperf3, iperf or flood; given by `kind`, too."""
    source: Name = Field(alias="from")
    """The sending host."""
    destination: Name = Field(alias="to")
    """The receiving host."""
    protocol: Literal["tcp", "udp"] = "tcp"
    """Transport protocol."""
    family: Family | None = None
    """IP version; default: 4 if both hosts have an IPv4 address, else 6."""
    streams: int = Field(default=1, ge=1, le=10_000)
    """Parallel connections; for a flood alternating source ports. At most 128 with iperf3."""
    duration: Annotated[Duration, AfterValidator(_check_positive)] | None = None
    """Duration; default: that of the experiment."""
    background: bool = False
    """Background load: it lasts until all other flows have ended, and has no duration."""
    may_fail: bool = False
    """Stop it at the end of its time and accept any result, even no data. iperf over TCP only."""
    start_after: Duration = Duration(0)
    """Delay after the start of the cell's traffic."""
    rate: Annotated[Rate, AfterValidator(_check_positive)] | None = None
    """UDP: payload bits per second of each stream; flood: IP bits. TCP: pacing by the tool; default: unlimited;
    flood: mean rate of the pages."""
    delay: Annotated[Duration, AfterValidator(_check_positive)] | None = None
    """flood: time between two datagrams or pages of a stream, in place of `rate`."""
    size: Annotated[Size, AfterValidator(_check_positive)] | None = None
    """UDP: payload bytes of a datagram; flood: bytes of the IP packet. TCP: bytes of one write; flood: bytes of
    a page."""
    random: tuple[Literal["size", "port"], ...] = ()
    """flood: random for each datagram: `size` (payloads of 64 to 1023 bytes), `port` (1 to 65500)."""
    window: Annotated[Size, AfterValidator(_check_positive)] | None = None
    """Socket buffer (`-w`); default: sized by the kernel."""
    congestion_control: str | None = None
    """Congestion control algorithm; default: that of the TCP profile."""
    dscp: Dscp | None = None
    """DSCP of every packet, 0 to 63 or a name (ef, af41, cs5, default); default: 0."""
    port: int | None = Field(default=None, ge=1, le=65535)
    """Server port; default: that of the tool."""
    client_port: int | None = Field(default=None, ge=1, le=65535)
    """Source port of the first stream, followed by those of the others; default: chosen by the sending host. A fair
    queue hashes ports: with fixed ports, the same streams share a queue in each run, or none do."""


class Configuration(Frozen):
    """Configuration for one device: an IOS template and its variables."""

    template: str
    """Path of a Jinja2 template, relative to the experiment file."""
    variables: dict[str, str | int | float | bool] = Field(default={})
    """Values of all variables of the template, and of no others."""


class Arm(Frozen):
    """One variant of the experiment: a configuration and its traffic."""

    name: Name
    """Unique among the arms."""
    title: str = ""
    """Title for the report; default: the name."""
    configure: dict[Name, Configuration] = Field(default={})
    """Per device, pushed on top of the experiment's `configure`."""
    tcp: Tcp | None = None
    """Name of a profile, or settings; default: those of the experiment."""
    traffic: tuple[Flow, ...] | None = None
    """Traffic that replaces the experiment's."""
    matrix: Matrix | None = None
    """Matrix that replaces the experiment's."""


class Probe(Frozen):
    """IP SLA operation that a router or host runs during the traffic."""

    name: Name
    """Unique among the probes."""
    type: Literal["icmp-echo", "icmp-jitter", "udp-echo", "udp-jitter"]
    """Type of the operation. UDP needs a responder: `ip sla responder` on a router, a program on a host."""
    source: Name = Field(alias="from")
    """Sending node."""
    destination: Name = Field(alias="to")
    """Answering node, at its address on a link to the sender, else on its first link."""
    family: Family | None = None
    """IP version; default: 4 if both nodes have an IPv4 address, else 6. ICMP jitter runs over 4 only."""
    number: int | None = Field(default=None, ge=1, le=2147483647)
    """Number of a router's operation; default: its position in the list."""
    start_after: Duration = Duration(0)
    """Delay after the start of the cell's traffic; allow time for a steady state."""
    duration: Annotated[Duration, AfterValidator(_check_positive)] | None = None
    """Time until the statistics are read. Default: until half a second before the end of the traffic."""
    frequency: Duration | None = None
    """Time between the starts of two runs, whole seconds; default: 60 s."""
    timeout: Duration | None = None
    """Timeout for answers; default: 5 s."""
    threshold: Duration | None = None
    """Longer round trips are counted separately; default: 5 s."""
    packets: int | None = Field(default=None, ge=1, le=60000)
    """Jitter operations: packets of a run; default: 10."""
    interval: Duration | None = None
    """Jitter operations: time between two packets, whole milliseconds; default: 20 ms."""
    port: int | None = Field(default=None, ge=1, le=65535)
    """UDP: the responder's port."""
    size: Annotated[Size, AfterValidator(_check_positive)] | None = None
    """Request data; default: that of the type."""
    tos: int | None = Field(default=None, ge=0, le=255)
    """Type-of-service byte, or IPv6 traffic class; default: 0."""

    @property
    def is_udp(self) -> bool:
        """True if it runs over UDP, and so needs a responder."""
        return self.type in ("udp-echo", "udp-jitter")

    @property
    def is_jitter(self) -> bool:
        """True if it sends bursts."""
        return self.type in ("icmp-jitter", "udp-jitter")

    @property
    def frequency_or_default(self) -> Duration:
        """Between the starts of two runs."""
        return PROBE_FREQUENCY if self.frequency is None else self.frequency

    @property
    def timeout_or_default(self) -> Duration:
        """Timeout of replies."""
        return PROBE_TIMEOUT if self.timeout is None else self.timeout


PROBE_FREQUENCY, PROBE_TIMEOUT = Duration(60 * SECOND_NS), Duration(5 * SECOND_NS)
"""IOS's defaults (CISCO-RTTMON-MIB)."""
PROBE_MARGIN = Duration(500_000_000)
"""Time before the end of the traffic at which statistics are read, while the load is present."""


class CapturePoint(Frozen):
    """Capture of packets at one interface of a node, as pcapng."""

    name: Name
    """Unique name among the capture points, and name of the file."""
    node: Name
    """A name under `topology.nodes`."""
    interface: str
    """An interface that a link uses."""
    filter: str = ""
    """A pcap filter; default: all packets."""
    snaplen: Annotated[Size, AfterValidator(_check_positive)] = Size(128)
    """Bytes to save of each packet."""


class Trigger(Frozen):
    """A time during the traffic, given by exactly one of the keys."""

    time: Annotated[Duration, AfterValidator(_check_positive)] | None = None
    """Time after the start of the cell's traffic."""
    bytes: Annotated[Size, AfterValidator(_check_positive)] | None = None
    """Bytes offered to the classes of all output policies of the router."""
    conformed_bytes: Annotated[Size, AfterValidator(_check_positive)] | None = None
    """Bytes that conformed to the policers of these classes."""

    @property
    def at(self) -> CounterTrigger:
        """The moment; `ValueError` if there is not exactly one."""
        (given,) = ((name, value) for name in COUNTERS if (value := getattr(self, name)) is not None)
        return CounterTrigger(*given, str(given[1]))

    def __str__(self) -> str:
        return str(self.at)


def _trigger_discriminator(value: object) -> str:
    if isinstance(value, list | tuple):
        return "several"
    return "trigger" if isinstance(value, dict | Trigger) else "stage"


TriggerTime = Annotated[
    Annotated[Stage, Tag("stage")] | Annotated[Trigger, Tag("trigger")], Discriminator(_trigger_discriminator)
]


Triggers = Annotated[
    Annotated[Stage, Tag("stage")]
    | Annotated[Trigger, Tag("trigger")]
    | Annotated[tuple[TriggerTime, ...], Tag("several")],
    Discriminator(_trigger_discriminator),
]


MAX_TRIGGERS = 32
"""Times and values of counters at which a router may be examined in a cell: each has a login's and a thread's work
while traffic runs, and a data plane answers 64 clients."""


class Observation(Frozen):
    """Show command to run at given times of each cell; parsed by Genie if it has a parser."""

    node: Name
    """A router."""
    command: str
    """The show command in full, without abbreviations."""
    when: Triggers = ("before", "after")
    """One time or several: `during` is two thirds into the traffic, a mapping is a time or the value of a counter."""
    arms: tuple[Name, ...] = ()
    """Only in cells of these arms; default: all."""

    @property
    def moments(self) -> tuple[Stage | Trigger, ...]:
        """All of them."""
        return self.when if isinstance(self.when, tuple) else (self.when,)


class StoppingRule(Frozen):
    """Condition for enough repetitions of a cell: a narrow interval of a metric."""

    metric: str
    """A metric's name; docs/reference/metrics.md lists them."""
    interval: Annotated[Percent, AfterValidator(_check_positive)]
    """Maximum half width of the 95 % interval, relative to the value."""
    at_least: int = Field(default=3, ge=2)
    """Minimum number of valid repetitions before the interval is checked."""


class Experiment(Frozen):
    """A whole experiment file."""

    name: Name
    """Name of the folder under `runs/`; preferably the name of the file without `.yml`."""
    title: str
    """One line for the report."""
    description: str = ""
    """Subject and purpose of the experiment."""
    topology: Topology
    """Nodes and links, the same for all arms."""
    duration: Annotated[Duration, AfterValidator(_check_positive)]
    """Traffic time of each cell; `--duration` overrides it."""
    matrix: Matrix | None = None
    """Parameters and their values; each combination is a cell of each arm. `$(NAME)` elsewhere stands for the value."""
    repetitions: int = Field(default=1, ge=1)
    """Number of runs of each arm (with a matrix: of each combination)."""
    enough: StoppingRule | None = None
    """Condition for fewer repetitions; default: all are run."""
    order: Order = "as written"
    """Order of the cells. `random`: all of them, by the seed; `blocked`: each repetition in random order, one after the
    other.
    """
    seed: int = 1
    """Seed of all random numbers."""
    configure: dict[Name, Configuration] = Field(default={})
    """Per device: configuration common to all arms."""
    tcp: Tcp = "modern"
    """TCP settings of the hosts: `modern`, `legacy-2008`, or settings one by one."""
    traffic: tuple[Flow, ...]
    """Flows of each cell, started together (see `start_after`)."""
    arms: tuple[Arm, ...] = Field(min_length=1)
    """Variants, in the order of their runs."""
    probes: tuple[Probe, ...] = ()
    """IP SLA operations of routers and hosts."""
    captures: tuple[CapturePoint, ...] = ()
    """Capture points."""
    observe: tuple[Observation, ...] = ()
    """Show commands to save."""
    allow_idle: tuple[str, ...] = ()
    """Classes and policy-maps that may match no packet without a warning: VOICE, class-default/VOICE, or with the
    policy-map UPLINK/class-default/VOICE."""
    compare: Comparison | None = None
    """Published values and expectations."""
    answer: Answer | None = None
    """The answer to the title's question, at the top of the report."""
    graphs: tuple[SweepGraph, ...] = ()
    """Graphs over the parameters of a sweep, for the report."""
    traces: tuple[Trace, ...] = ()
    """Cells of a sweep that the report shows over time."""
    notes: tuple[Note, ...] = ()
    """Texts of the report, after its table of values."""

    def duration_of_probe(self, probe: Probe) -> Duration:
        """Return how long a probe runs before it is read."""
        if probe.duration is not None:
            return probe.duration
        return Duration(max(0, self.duration.ns - probe.start_after.ns - PROBE_MARGIN.ns))

    def has_time_for(self, probe: Probe) -> bool:
        """Return whether a probe runs and ends within the traffic."""
        length = self.duration_of_probe(probe)
        return bool(length) and probe.start_after.ns + length.ns <= self.duration.ns

    def arm(self, name: str) -> Arm:
        """Return the arm of that name. Raise `KeyError` if there is none."""
        for arm in self.arms:
            if arm.name == name:
                return arm
        raise KeyError(name)

    def arm_matrix(self, arm: Arm) -> Matrix | None:
        """The arm's own matrix, or the experiment's."""
        return self.matrix if arm.matrix is None else arm.matrix

    def arm_observations(self, arm: Arm) -> tuple[Observation, ...]:
        """The show commands that are taken in cells of the arm."""
        return tuple(each for each in self.observe if not each.arms or arm.name in each.arms)

    def arm_flows(self, arm: Arm) -> tuple[Flow, ...]:
        """The arm's own traffic, or the experiment's."""
        return self.traffic if arm.traffic is None else arm.traffic

    def flow_duration(self, arm: Arm, flow: Flow) -> Duration:
        """Return how long a flow of the arm sends: its own duration or the experiment's; as background until the others
        ended.

        Background goes on a little longer, since the others first connect and then send what their buffers hold, and
        for whole seconds.
        """
        if not flow.background:
            return flow.duration or self.duration
        others = [each for each in self.arm_flows(arm) if not each.background]
        end = max((each.start_after + (each.duration or self.duration) for each in others), default=None)
        if end is None:
            return self.duration
        seconds = -((flow.start_after.ns - end.ns) // SECOND_NS) + BACKGROUND_MARGIN_S
        return Duration(max(seconds, 1) * SECOND_NS)

    def arm_tcp_profile(self, arm: Arm) -> TcpProfile:
        """The arm's TCP settings, or the experiment's. `KeyError` for an unknown profile name."""
        tcp = self.tcp if arm.tcp is None else arm.tcp
        return TCP_PROFILES[tcp] if isinstance(tcp, str) else tcp

    def arm_configurations(self, arm: Arm) -> dict[str, tuple[Configuration, ...]]:
        """Return the configurations to push for each device, in order: the experiment's, then the arm's."""
        devices = dict.fromkeys((*self.configure, *arm.configure))
        return {
            device: tuple(layer[device] for layer in (self.configure, arm.configure) if device in layer)
            for device in devices
        }


def probe_number(experiment: Experiment, probe: Probe) -> int:
    """The number of a probe's operation."""
    return experiment.probes.index(probe) + 1 if probe.number is None else probe.number


def probe_family(experiment: Experiment, probe: Probe) -> Family:
    """Return a probe's IP version: its own, or the first of 4 and 6 with addresses of both nodes, or 4."""
    if probe.family is not None:
        return probe.family
    families: tuple[Family, ...] = (4, 6)
    ends = [experiment.topology.node_links(node) for node in (probe.source, probe.destination)]
    common = (
        each
        for each in families
        if all(any(near.family_address(each) is not None for _, near, _ in links) for links in ends)
    )
    return next(common, 4)


def probe_target(experiment: Experiment, probe: Probe) -> IPv4Address | IPv6Address | None:
    """Return the destination address of a probe; None if the node has no address of its IP version."""
    family = probe_family(experiment, probe)
    links = experiment.topology.node_links(probe.destination)
    near = [end.family_address(family) for _, end, far in links if far.node == probe.source]
    others = [end.family_address(family) for _, end, _ in links]
    return next((address.ip for address in (*near, *others) if address is not None), None)
