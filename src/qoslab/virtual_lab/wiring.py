"""Kernel objects of a topology: namespaces, pairs of interfaces, addresses, routes. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TYPE_CHECKING

from qoslab.errors import ExperimentError
from qoslab.model.framing import COUNTED_HEADER, ETHERNET_EXTRA, line_bytes
from qoslab.platforms import has_engine, has_kernel, node_platform, tcp
from qoslab.platforms.emulation import link_configuration
from qoslab.platforms.startup import static_routes
from qoslab.system import program_formats
from qoslab.virtual_lab.linux_names import linux_interface

if TYPE_CHECKING:
    from qoslab.model.experiment import Address, Link, LinkEnd, Topology

MTU = 1500
"""Greatest size of an IP packet on every interface, in bytes."""
TXQUEUELEN = 1000
"""Queue length in packets: Linux' default for Ethernet, set so that it does not depend on the machine."""

BURST_NS = 5_000_000
"""Depth of the hosts' token buckets in line time, in nanoseconds.

A bucket refills only up to its depth while the machine delays the kernel's timer, so a shallow bucket makes the line
slower than its rate. A burst at once does no harm: the data plane at the other end serialises it by the link's own
clock. Five milliseconds is also the data plane's budget for lateness.
"""

ARP_TIMEOUT_MS = 4 * 3600 * 1000
"""Lifetime of an ARP entry: IOS' default (`arp timeout 14400`).

Linux would repeat the request after half a minute. A router's request and the answer wait in the queues of the
interface like every other packet, so behind a saturated interface they are lost, and the neighbour is unreachable for
as long.
"""
ARP_REACHABLE_MS = 2 * ARP_TIMEOUT_MS
"""`base_reachable_time_ms` of the interfaces.

The kernel draws a value between half and one and a half times of it (RFC 4861, 6.3.2): twice the timeout, so that no
value is below the timeout.
"""

DATA_PLANE_SUFFIX = ".dp"
"""Suffix of a router's second namespace, such as R1.dp, which holds the ports and runs `qos-router`."""

LINE_SUFFIX = ".line"
"""Suffix of the namespace in the middle of a link between two hosts with delay, jitter or loss: `LINK.line`.

Its `qos-router` forwards frames between the sides; `near` and `far` are its interfaces, in the order of the link's
ends.
"""
LINE_ENDS = ("near", "far")

COMMON_SYSCTLS: dict[str, str | int] = {
    # In all and default before any interface exists. For an interface with IPv6 addresses, `disable_ipv6` becomes 0.
    "net.ipv6.conf.all.disable_ipv6": 1,
    "net.ipv6.conf.default.disable_ipv6": 1,
    **{
        # No router advertisements, no duplicate address detection: no packets except the experiment's.
        f"net.ipv6.conf.{scope}.{name}": 0
        for name in ("accept_ra", "accept_dad", "autoconf", "router_solicitations", "use_tempaddr", "accept_redirects")
        for scope in ("all", "default")
    },
    "net.ipv6.conf.all.forwarding": 0,
    "net.ipv4.conf.all.rp_filter": 0,
    "net.ipv4.conf.default.rp_filter": 0,
    "net.ipv4.conf.all.accept_redirects": 0,
    "net.ipv4.conf.default.accept_redirects": 0,
}
ROUTER_SYSCTLS: dict[str, str | int] = {
    **COMMON_SYSCTLS,
    "net.ipv4.ip_forward": 1,
    # An IOS router sets it with `ipv6 unicast-routing`.
    "net.ipv6.conf.all.forwarding": 1,
    "net.ipv4.conf.all.send_redirects": 0,
    "net.ipv4.conf.default.send_redirects": 0,
}
HOST_SYSCTLS: dict[str, str | int] = {**COMMON_SYSCTLS, **tcp.SYSCTLS, **tcp.FIXED_PORTS_SYSCTLS}


@dataclass(frozen=True)
class TokenBucket:
    """TBF qdisc on a host's interface, which limits it to the link's rate."""

    rate_bps: int
    burst_bytes: int
    limit_bytes: int
    overhead_bytes: int
    """Bytes on the wire minus bytes of the frame in the kernel (Ethernet header included)."""
    minimum_bytes: int

    @classmethod
    def for_link(cls, rate_bps: int) -> TokenBucket:
        """Return the bucket for an Ethernet link; its queue holds `TXQUEUELEN` frames of full size."""
        frame = line_bytes("ethernet", MTU)
        return cls(
            rate_bps=rate_bps,
            burst_bytes=max(rate_bps * BURST_NS // 8 // 10**9, 2 * frame),
            limit_bytes=TXQUEUELEN * (MTU + COUNTED_HEADER["ethernet"]),
            overhead_bytes=ETHERNET_EXTRA,
            minimum_bytes=line_bytes("ethernet", 0),
        )


@dataclass(frozen=True)
class Interface:
    """One end of a veth pair."""

    namespace: str
    name: str
    index: int
    mac: str
    up: bool = True
    addresses: tuple[Address, ...] = ()
    shaper: TokenBucket | None = None
    arp: bool = True
    """True if hardware addresses are resolved by ARP; false on a serial line, which has none (RFC 1661, RFC 1547)."""
    ipv6: bool = False
    """True if it has an IPv6 address, possibly from the startup configuration of its router."""


@dataclass(frozen=True)
class Neighbour:
    """Initial entry of the ARP table or of the IPv6 neighbours, so that the first packet does not wait."""

    namespace: str
    index: int
    address: IPv4Address | IPv6Address
    mac: str
    booted: bool = False
    """True for an entry to create after the router has booted and the interface is up."""


@dataclass(frozen=True)
class GuestNeighbour:
    """Neighbour's address in a router in user-mode Linux, which has its own ARP table."""

    node: str
    interface: str
    address: IPv4Address | IPv6Address
    mac: str


@dataclass(frozen=True)
class StaticRoute:
    """Route by next hop."""

    namespace: str
    prefix: IPv4Network | IPv6Network
    via: IPv4Address | IPv6Address


@dataclass(frozen=True)
class Wiring:
    """All objects that are created before a daemon starts."""

    namespaces: dict[str, dict[str, str | int]]
    """Settings by namespace."""
    pairs: tuple[tuple[Interface, Interface], ...]
    routes: tuple[StaticRoute, ...]
    neighbours: tuple[Neighbour, ...]
    ports: dict[str, dict[str, program_formats.PortConfig]] = field(default_factory=dict)
    """Ports of internals/control-protocol.md by router and by the interface's own name; also those of `lines`."""
    memory: tuple[program_formats.MemoryLink, ...] = ()
    """Links between two routers, whose frames bypass the kernel's interfaces (docs/internals/qos-router.md)."""
    lines: tuple[str, ...] = ()
    """Data planes that are not routers, in the middle of a link between two hosts."""
    guests: frozenset[str] = frozenset()
    """Routers in user-mode Linux: their namespaces have the ends of their links, but no addresses."""
    guest_neighbours: tuple[GuestNeighbour, ...] = ()

    def interfaces(self) -> Iterator[Interface]:
        """Yield both ends of every pair."""
        for pair in self.pairs:
            yield from pair

    def ipv6_settings(self, namespace: str) -> dict[str, str | int]:
        """Return the settings of a namespace whose existing interfaces have IPv6 addresses; empty if none has."""
        own = [each for each in self.interfaces() if each.namespace == namespace and each.ipv6]
        return {f"net.ipv6.conf.{each.name.replace('.', '/')}.disable_ipv6": 0 for each in own}


class _MacNumbers:
    """Source of interface indices per namespace and of hardware addresses per lab."""

    def __init__(self) -> None:
        self._index: dict[str, int] = {}
        self._mac = 0

    def index(self, namespace: str) -> int:
        # 1 is the loopback interface.
        self._index[namespace] = self._index.get(namespace, 1) + 1
        return self._index[namespace]

    def mac(self) -> str:
        # Locally administered, unicast (IEEE 802: second least significant bit of the first octet).
        self._mac += 1
        return "02:00:5e:" + ":".join(f"{self._mac >> shift & 0xFF:02x}" for shift in (16, 8, 0))


def wire(topology: Topology, seed: int = 1, guests: Collection[str] = ()) -> Wiring:
    """Return the wiring of a topology; `seed` decides jitter and loss, `guests` are routers in user-mode Linux.

    Raise `ExperimentError` if the virtual lab does not support it: name conflicts, or an interface used twice.
    """
    namespaces = _node_namespaces(topology, guests)
    lines: list[str] = []
    numbers = _MacNumbers()
    pairs: list[tuple[Interface, Interface]] = []
    neighbours: list[Neighbour] = []
    inside: list[GuestNeighbour] = []
    ports: dict[str, dict[str, program_formats.PortConfig]]
    ports = {name: {} for name, node in topology.nodes.items() if has_engine(node)}
    used: set[tuple[str, str]] = set()
    for link in topology.links:
        _check(topology, link, used)
        # Without ARP, the kernel addresses frames with the interface's own address.
        line = None if link.framing == "ethernet" else numbers.mac()
        ends = [_end(topology, link, end, numbers, line, guests) for end in link.ends]
        if link.emulated_keys and all(each.port is None for each in ends):
            name = link.name + LINE_SUFFIX
            if name in namespaces:
                raise ExperimentError(
                    f"link {link.name} needs a network namespace {name}, already used by a node",
                    hint=f'Rename the node whose name ends in "{LINE_SUFFIX}".',
                )
            namespaces[name] = COMMON_SYSCTLS
            lines.append(name)
            ports[name] = _line_data_plane_ports(link, seed)
            for each, host in zip(LINE_ENDS, ends, strict=True):
                pairs.append((host.wire, Interface(name, each, numbers.index(name), numbers.mac())))
        else:
            pairs.append((ends[0].wire, ends[1].wire))
        for side in (0, 1):
            near, far, end, far_end = ends[side], ends[1 - side], link.ends[side], link.ends[1 - side]
            if near.port is not None:
                pairs.append(near.port)
                ports[end.node][end.interface] = {
                    "inside": near.port[1].name,
                    "wire": near.wire.name,
                    "link": link_configuration(link, end.node, seed),
                    "paced_by_peer": far.port is not None,
                }
            found = _far_addresses(near.layer3, far.layer3.mac, end, far_end)
            if end.node in guests:
                inside += [GuestNeighbour(end.node, end.interface, each.address, each.mac) for each in found]
            else:
                neighbours += found
    routes, memory = tuple(_node_routes(topology, guests)), tuple(_memory_links(topology))
    return Wiring(
        namespaces,
        tuple(pairs),
        routes,
        tuple(neighbours),
        ports,
        memory,
        tuple(lines),
        frozenset(guests),
        tuple(inside),
    )


def _node_namespaces(topology: Topology, guests: Collection[str]) -> dict[str, dict[str, str | int]]:
    """Return the network namespaces of the nodes, with their settings."""
    found: dict[str, dict[str, str | int]] = {}
    for name, node in topology.nodes.items():
        settings = ROUTER_SYSCTLS if node_platform(node).is_router else HOST_SYSCTLS
        own = [(name, COMMON_SYSCTLS if name in guests else settings)]
        if has_engine(node):
            own.append((name + DATA_PLANE_SUFFIX, COMMON_SYSCTLS))
        for namespace, sysctls in own:
            if namespace in found:
                raise ExperimentError(
                    f"node {name} needs a network namespace {namespace}, already used by another node",
                    hint=f'Rename the node whose name ends in "{DATA_PLANE_SUFFIX}".',
                )
            found[namespace] = sysctls
    return found


def _memory_links(topology: Topology) -> Iterator[program_formats.MemoryLink]:
    for link in topology.links:
        nodes = {end.node for end in link.ends}
        if len(nodes) == len(link.ends) and all(has_engine(topology.nodes[node]) for node in nodes):
            yield {"ends": [{"router": end.node, "port": end.interface} for end in link.ends]}


def _far_addresses(here: Interface, mac: str, end: LinkEnd, far_end: LinkEnd) -> Iterator[Neighbour]:
    """Return the far end's addresses of the families that this end has; none without hardware addresses."""
    versions = {each.version for each in end.addresses if here.arp}
    for address in far_end.addresses:
        if address.version in versions:
            yield Neighbour(here.namespace, here.index, address.ip, mac, booted=not here.up)


def _line_data_plane_ports(link: Link, seed: int) -> dict[str, program_formats.PortConfig]:
    """Return the ports of a data plane in the middle of a link, which forwards frames between them."""
    near, far = LINE_ENDS
    return {
        here: {"inside": there, "wire": here, "link": link_configuration(link, end.node, seed), "paced_by_peer": False}
        for here, there, end in ((near, far, link.ends[0]), (far, near, link.ends[1]))
    }


@dataclass(frozen=True)
class _End:
    wire: Interface
    """End of the link's pair."""
    port: tuple[Interface, Interface] | None
    """A router's second pair: the kernel's side, the data plane's side."""

    @property
    def layer3(self) -> Interface:
        """Interface with the addresses."""
        return self.wire if self.port is None else self.port[0]


def _check(topology: Topology, link: Link, used: set[tuple[str, str]]) -> None:
    for end in link.ends:
        if end.node not in topology.nodes:
            raise ExperimentError(f"link {link.name} ends at {end.node}, not a node of the topology")
        if (end.node, end.interface) in used:
            raise ExperimentError(
                f"interface {end.interface} of {end.node} is used by two links, {link.name} the second"
            )
        used.add((end.node, end.interface))
    hosts = [end.node for end in link.ends if not has_engine(topology.nodes[end.node])]
    if hosts and link.framing != "ethernet":
        raise ExperimentError(
            f"link {link.name} has {link.framing} framing and ends at the host {hosts[0]}",
            hint="Hosts have Ethernet interfaces only: put a router there.",
        )


def _kernel_interface(end: LinkEnd, numbers: _MacNumbers, *, in_guest: bool, ipv6: bool) -> Interface:
    """Return the interface of a router whose kernel queues packets; its daemon sets the line rate.

    A guest's address is inside the guest: this end only forwards frames.
    """
    addresses = () if in_guest else end.addresses
    index = numbers.index(end.node)
    return Interface(end.node, end.interface, index, numbers.mac(), True, addresses, ipv6=ipv6 and not in_guest)


def _end(
    topology: Topology, link: Link, end: LinkEnd, numbers: _MacNumbers, line: str | None, guests: Collection[str]
) -> _End:
    """`line` is the hardware address of both ends of a serial line."""
    node, ipv6 = topology.nodes[end.node], end.ipv6_address is not None
    if has_kernel(node):
        return _End(_kernel_interface(end, numbers, in_guest=end.node in guests, ipv6=ipv6), None)
    if not node_platform(node).is_router:
        index = numbers.index(end.node)
        shaper = TokenBucket.for_link(link.rate.bps)
        return _End(
            Interface(end.node, end.interface, index, numbers.mac(), True, end.addresses, shaper, ipv6=ipv6), None
        )
    plane = end.node + DATA_PLANE_SUFFIX
    name, inside = linux_interface(end.interface), linux_interface(end.interface, ".in")
    # A startup configuration brings the interfaces up.
    configured = not node_platform(node).has_startup_config
    kernel = Interface(
        end.node,
        name,
        numbers.index(end.node),
        line or numbers.mac(),
        configured,
        end.addresses if configured else (),
        arp=line is None,
        ipv6=ipv6,
    )
    return _End(
        Interface(plane, name, numbers.index(plane), numbers.mac()),
        (kernel, Interface(plane, inside, numbers.index(plane), numbers.mac())),
    )


def _node_routes(topology: Topology, guests: Collection[str]) -> Iterator[StaticRoute]:
    for name, node in topology.nodes.items():
        if name not in guests and not node_platform(node).has_startup_config:
            for route in static_routes(topology, name):
                yield StaticRoute(name, route.prefix, route.via)
