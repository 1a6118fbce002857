"""Routers connected by their subnets, with hosts in subnets without another router."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from itertools import islice

from qoslab.exchange.routers.configured_interfaces import (
    BRIDGED_INTERFACES,
    CELLULAR,
    ETHERNETS,
    INTERFACES_WITHOUT_LINE,
    LINES,
    ConfiguredPort,
)
from qoslab.exchange.routers.input_router import AttachedInterface, InputRouter
from qoslab.exchange.shortest_paths import NodeInterface, shortest_routes
from qoslab.ios.model.ios_names import interface_kind, short_name
from qoslab.ios.rules import DEFAULT_BANDWIDTH_KBPS, VIRTUAL_BANDWIDTH_KBPS
from qoslab.model.framing import Framing
from qoslab.model.units import Rate
from qoslab.platforms import MODELS
from qoslab.policy.composed_rates import primary_port

POOL = [
    each
    for block in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "198.18.0.0/16")
    for each in IPv4Network(block).subnets(new_prefix=30)
]
"""Subnets for interfaces whose address is missing in the input (RFC 5737, RFC 2544)."""
MAX_PLAIN_INTERFACES = 4
"""Maximum number of subinterfaces of one port, or of VLAN interfaces, without a policy in a topology."""
MAX_ATTACHED_INTERFACES = 24
"""Maximum number of interfaces of one router in a topology."""
DEFAULT_PREFIX = IPv4Network("0.0.0.0/0")
SPARE_NETWORK = "GigabitEthernet0/{}"
_LINKED = re.compile(rf"(?:{'|'.join(LINES)})\d+(?:/\d+){{0,2}}")


@dataclass(frozen=True)
class FarRouter:
    """The router at the other end of a line that hosts do not support: serial, ATM, PPPoE."""

    name: str
    address: IPv4Interface
    """Address on the line."""
    port: str
    """Port towards the host."""
    gateway: IPv4Interface
    """Address of the port towards the host."""


@dataclass(frozen=True)
class Host:
    """An end system behind an interface of a router."""

    name: str
    address: IPv4Interface
    at: AttachedInterface
    far: FarRouter | None = None
    """Router between the line and the host; None if the host is directly on the line."""
    ipv6: IPv6Interface | None = None


@dataclass(frozen=True)
class JoinedLink:
    """A link between two routers."""

    ends: tuple[AttachedInterface, AttachedInterface]


@dataclass
class ImportedNetwork:
    """Nodes and links."""

    routers: dict[str, InputRouter]
    hosts: list[Host] = field(default_factory=list)
    joined: list[JoinedLink] = field(default_factory=list)
    routes: dict[str, dict[IPv4Network, IPv4Address]] = field(default_factory=dict)
    ipv6_routes: dict[str, dict[IPv6Network, IPv6Address]] = field(default_factory=dict)

    def neighbours(self, router: str) -> Iterator[tuple[AttachedInterface, AttachedInterface]]:
        """Yield the router's own ends of links to other routers, with the far ends."""
        for link in self.joined:
            for near, far in (link.ends, link.ends[::-1]):
                if near.router == router:
                    yield near, far

    def path(self, source: Host, destination: Host) -> list[tuple[AttachedInterface, AttachedInterface]]:
        """Return the routers between two hosts, each with its input and output end."""
        at, entered = source.at.router, source.at
        found: list[tuple[AttachedInterface, AttachedInterface]] = []
        while at != destination.at.router and len(found) <= len(self.routers):
            via = self.routes.get(at, {}).get(destination.at.address.network)
            step = next(((near, far) for near, far in self.neighbours(at) if far.address.ip == via), None)
            if step is None:
                return []
            found.append((entered, step[0]))
            entered, at = step[1], step[1].router
        return [*found, (entered, destination.at)]


def join_routers(routers: Sequence[InputRouter]) -> ImportedNetwork:
    """Attach the interfaces of the routers, connect them by subnet, and add hosts and routes."""
    free = _free_prefixes(routers)
    for router in routers:
        _attach_interface(router, free)
    network = ImportedNetwork({each.name: each for each in routers})
    _link(network, free)
    for router in routers:
        reached = {router.name, *_sort_links(network, router.name)}
        # Each group of connected routers has at least two hosts, so that traffic has a source and a destination.
        while sum(each.at.router in reached for each in network.hosts) < 2:
            _add_spare(router, network, free)
    _fill_routes(network)
    return network


def _free_prefixes(routers: Iterable[InputRouter]) -> Iterator[IPv4Network]:
    addresses = (port.address for each in routers for port in each.linkable_interfaces())
    used = [each.network for each in addresses if each is not None and _is_usable_address(each)]
    return (each for each in POOL if not any(each.overlaps(other) for other in used))


def _attach_interface(router: InputRouter, free: Iterator[IPv4Network]) -> None:
    """Choose the interfaces of a router for the topology, those with policies first."""
    uplinks = {each.port for each in router.layout.routes if each.prefix == DEFAULT_PREFIX}
    gateways = {each.via for each in router.layout.routes if each.prefix == DEFAULT_PREFIX}

    def rank(port: ConfiguredPort) -> tuple[bool, bool, bool]:
        own = port.address
        default = port.name in uplinks or (own is not None and any(via in own.network for via in gateways if via))
        return (not port.policies, not default, port.parent is not None)

    ports = list(router.linkable_interfaces())
    chosen: list[AttachedInterface] = []
    for port in sorted(ports, key=rank):
        reason = "" if len(chosen) < MAX_ATTACHED_INTERFACES else f"more than {MAX_ATTACHED_INTERFACES} interfaces"
        carrier, members, why = _carrier_port(router, port, chosen)
        reason = reason or why
        sharing = next((each for each in chosen if each.carrier == carrier), None)
        if not reason and sharing is not None:
            carrier, reason = _separate_port(router, port, sharing, chosen)
        address = _interface_address(port, free) if not reason else None
        if address is not None and (other := _overlapping_interface(address, chosen)) is not None:
            if router.layout.ports[other.port].vrf != port.vrf:
                address = _interface_address(None, free)
            else:
                reason = f"its subnet {address.network} overlaps with that of {other.port}"
        if reason or address is None:
            router.left_out[port.name] = reason
            continue
        if address != port.address:
            why = port.dynamic or (f"address {port.address}" if port.address else "no IPv4 address")
            if port.address and _overlapping_interface(port.address, chosen) is not None:
                why += f" of VRF {port.vrf or 'global'}, used in another VRF"
            router.notes.append(f"{port.name}: {why}: the topology uses {address} instead, a documentation address")
        bundled = port.kind in ("Multilink", "Port-channel") and primary_port(port.lines.values()) is None
        if bundled and len(members) > 1:
            router.notes.append(
                f"{port.name}: one line with the rate of its {len(members)} members; the device distributes the "
                f"packets among them"
            )
        if port.kind == "Dialer" and port.policies and port.last_match(r"bandwidth (\d+)$") is None:
            router.notes.append(
                f"{port.name}: percentages refer to the rate of {carrier} here, but to the default `bandwidth` of "
                f"{port.name} on the device"
            )
        if port.kind == CELLULAR:
            router.notes.append(_cellular_note(port, carrier))
        chosen.append(
            AttachedInterface(
                router.name,
                port.name,
                carrier,
                address,
                _carried_rate(router, port, members),
                _line_framing(port, members, carrier),
                _subnet_neighbour(router, address),
                _interface_ipv6(port, chosen),
            )
        )
    order = [each.name for each in ports]
    router.attached = sorted(chosen, key=lambda each: order.index(each.port))


def _cellular_note(port: ConfiguredPort, carrier: str) -> str:
    """Return a sentence on the port and rate that stand for an interface to a mobile network."""
    kbps = port.last_match(r"bandwidth (\d+)$")
    source = "its `bandwidth`" if kbps else "the default `bandwidth`, from memory"
    rate = Rate(int(kbps or VIRTUAL_BANDWIDTH_KBPS[CELLULAR]) * 1000)
    return f"{port.name} is {carrier} here, with an assumed line rate of {rate}: {source}; mobile networks vary"


def _overlapping_interface(address: IPv4Interface, chosen: Sequence[AttachedInterface]) -> AttachedInterface | None:
    """Return the interface of the topology whose subnet overlaps that of an address."""
    return next((each for each in chosen if each.address.network.overlaps(address.network)), None)


def _interface_ipv6(port: ConfiguredPort, chosen: Sequence[AttachedInterface]) -> IPv6Interface | None:
    """Return the IPv6 address of an interface, unless another interface has its subnet."""
    address = port.ipv6_address
    taken = (each.ipv6.network for each in chosen if each.ipv6 is not None)
    return None if address is None or any(each.overlaps(address.network) for each in taken) else address


def _separate_port(
    router: InputRouter, port: ConfiguredPort, sharing: AttachedInterface, chosen: Sequence[AttachedInterface]
) -> tuple[str, str]:
    """Return a separate port for an interface that shares one, or an empty name and the reason."""
    main = router.layout.ports.get(sharing.carrier)
    if interface_kind(sharing.carrier) not in ETHERNETS or not (port.parent or port.kind in BRIDGED_INTERFACES):
        return "", f"{sharing.carrier} represents {sharing.port} already"
    if main is not None and main.policies:
        return "", f"{main.name} has a policy for the packets of all its subinterfaces, and represents {sharing.port}"
    plain = [
        each
        for each in chosen
        if each.port.startswith((f"{sharing.carrier}.", port.kind)) and not _has_policies(router, each)
    ]
    if not port.policies and len(plain) >= MAX_PLAIN_INTERFACES:
        return "", f"it is like {MAX_PLAIN_INTERFACES} other interfaces without a policy that are included"
    carrier = _spare_port(router, chosen)
    router.notes.append(
        f"{port.name} has the separate port {carrier}: on the device it shares the rate of {sharing.carrier} with "
        f"{sharing.port}"
    )
    return carrier, ""


def _has_policies(router: InputRouter, attached: AttachedInterface) -> bool:
    port = router.layout.ports.get(attached.port)
    return port is not None and bool(port.policies)


def _carrier_port(
    router: InputRouter, port: ConfiguredPort, chosen: Sequence[AttachedInterface]
) -> tuple[str, list[ConfiguredPort], str]:
    """Return the port that carries an interface's packets and the ports that share them, or the reason why there is
    none.
    """
    if port.kind in INTERFACES_WITHOUT_LINE:
        return "", [], f"{port.kind} interfaces have no physical line"
    if port.kind in (*BRIDGED_INTERFACES, "Dialer", "Multilink", "Port-channel"):
        main = router.layout.ports.get(port.parent or "", port)
        members = router.layout.member_interfaces(main)
        if not members and port.kind in BRIDGED_INTERFACES:
            return _spare_port(router, chosen), [], ""
        if not members:
            return "", [], "no interface is a member of it"
        inner = members[0]
        below = router.layout.member_interfaces(inner) if inner.kind in BRIDGED_INTERFACES else [inner]
        name = (below or [inner])[0].name.partition(".")[0]
        return (name, members, "") if _LINKED.fullmatch(name) else ("", [], f"{name} is not modelled")
    if port.kind == CELLULAR:
        return _spare_port(router, chosen), [port], ""
    name = port.name.partition(".")[0]
    if not _LINKED.fullmatch(name):
        return "", [], f"{port.kind} interfaces are not modelled"
    return name, [port], ""


def _interface_address(port: ConfiguredPort | None, free: Iterator[IPv4Network]) -> IPv4Interface | None:
    """Return the address of an interface, or a substitute if the input has none."""
    if (
        port is not None
        and port.address is not None
        and port.address.network.prefixlen < 32
        and _is_usable_address(port.address)
    ):
        return port.address
    network = next(free, None)
    return None if network is None else IPv4Interface(f"{network[1]}/{network.prefixlen}")


def _is_usable_address(address: IPv4Interface) -> bool:
    network = address.network
    ends = (network.network_address, network.broadcast_address)
    special = address.ip.is_loopback or address.ip.is_multicast or address.ip.is_unspecified or address.ip.is_reserved
    return not special and (network.prefixlen == 31 or address.ip not in ends) and network.prefixlen > 0


def _carried_rate(router: InputRouter, port: ConfiguredPort, members: Sequence[ConfiguredPort]) -> Rate:
    """Return the rate of the lines that carry an interface's packets; for a bundle, the sum of its members."""
    if (name := primary_port(port.lines.values())) in router.layout.ports:
        return Rate(_line_bps(router, router.layout.ports[name]))
    if port.kind in ("Multilink", "Port-channel"):
        return Rate(sum(_line_bps(router, each) for each in members))
    if members:
        return Rate(_line_bps(router, members[0]))
    return Rate(DEFAULT_BANDWIDTH_KBPS["GigabitEthernet"] * 1000)


def _line_bps(router: InputRouter, port: ConfiguredPort) -> int:
    main = router.layout.ports.get(port.name.partition(".")[0], port)
    counters = router.interfaces.get(main.name)
    speed = main.last_match(r"speed (\d+)$")
    if port.kind in ETHERNETS:
        if counters is not None and counters.line_bps:
            return counters.line_bps
        return int(speed) * 10**6 if speed else DEFAULT_BANDWIDTH_KBPS[port.kind] * 1000
    if port.kind in BRIDGED_INTERFACES:
        return DEFAULT_BANDWIDTH_KBPS["GigabitEthernet"] * 1000
    clock = main.last_match(r"clock ?rate (\d+)$")
    cells = port.last_match(r"(?:vbr-nrt|vbr-rt|cbr|ubr) (\d+)")
    bandwidth = port.last_match(r"bandwidth (\d+)$") or main.last_match(r"bandwidth (\d+)$")
    kbps = cells or bandwidth
    if clock:
        return int(clock)
    if kbps:
        return int(kbps) * 1000
    if counters is not None and counters.bandwidth_kbps:
        return counters.bandwidth_kbps * 1000
    return (DEFAULT_BANDWIDTH_KBPS | VIRTUAL_BANDWIDTH_KBPS).get(port.kind, 100_000) * 1000


def _line_framing(port: ConfiguredPort, members: Sequence[ConfiguredPort], carrier: str) -> Framing:
    kind = interface_kind(carrier)
    if kind == "ATM":
        inner = members[0] if members else port
        if inner.last_match(r"pppoe-client"):
            return "pppoeoa-snap"
        if inner.last_match(r"encapsulation aal5mux ppp"):
            return "pppoa-mux"
        if inner.last_match(r"encapsulation aal5snap") and port.kind == "Dialer":
            return "pppoa-snap"
        return "aal5mux" if inner.last_match(r"encapsulation aal5mux ip") else "aal5snap"
    if kind == "Serial":
        bundled = port.kind in ("Multilink", "Dialer")
        return "ppp" if bundled or any(each.last_match(r"encapsulation ppp") for each in (port, *members)) else "hdlc"
    return "pppoe" if port.kind == "Dialer" else "ethernet"


def _subnet_neighbour(router: InputRouter, address: IPv4Interface) -> IPv4Address | None:
    """Return a neighbour in a subnet: the next hop of a route, or a BGP neighbour."""
    hops = [each.via for each in router.layout.routes if each.via is not None]
    hops += list(router.table.values())
    hops += [
        IPv4Address(each)
        for each in re.findall(r"(?m)^ *neighbor (\d+\.\d+\.\d+\.\d+) ", router.text)
        if _is_same_end(each)
    ]
    usable = (each for each in hops if each in address.network and each != address.ip)
    return next(
        (each for each in usable if _is_usable_address(IPv4Interface(f"{each}/{address.network.prefixlen}"))), None
    )


def _is_same_end(text: str) -> bool:
    return all(part.isdecimal() and int(part) < 256 for part in text.split("."))


def _spare_port(router: InputRouter, chosen: Sequence[AttachedInterface]) -> str:
    """Return the name of a port that the configuration does not use, preferably one of the model."""
    used = {each.carrier for each in chosen} | set(router.layout.ports)
    own = [each.name for each in MODELS[router.chassis.model].interfaces if each.kind == "ethernet"]
    names = [*own, *(SPARE_NETWORK.format(number) for number in range(10, 10 + 2 * MAX_ATTACHED_INTERFACES))]
    return next(name for name in names if name not in used)


def _link(network: ImportedNetwork, free: Iterator[IPv4Network]) -> None:
    """Connect the routers of each subnet in pairs; the other interfaces get a host."""
    groups: dict[IPv4Network, list[AttachedInterface]] = {}
    for router in network.routers.values():
        for each in router.attached:
            groups.setdefault(each.address.network, []).append(each)
    taken: list[IPv4Network] = []
    for prefix, ends in groups.items():
        different = {each.address.ip: each for each in ends}
        ends = list(different.values())
        for extra in ends[2:]:
            _omit_interface(
                network, extra, f"{prefix} joins {ends[0].router} and {ends[1].router} already: a link has two ends"
            )
        if any(prefix.overlaps(other) for other in taken):
            for each in groups[prefix]:
                _omit_interface(network, each, f"its subnet {prefix} overlaps with one of another router")
            continue
        taken.append(prefix)
        for each in groups[prefix]:
            if each not in ends:
                _omit_interface(network, each, f"another router has its address {each.address.ip}")
        if len(ends) >= 2:
            first, second = _match_line_rates(ends[0], ends[1])
            if first.ipv6 is None or second.ipv6 is None or first.ipv6.network != second.ipv6.network:
                first, second = replace(first, ipv6=None), replace(second, ipv6=None)
            network.joined.append(JoinedLink((first, second)))
            for old, new in ((ends[0], first), (ends[1], second)):
                own = network.routers[old.router].attached
                own[own.index(old)] = new
        else:
            at = ends[0]
            if at.framing != "ethernet" and at.ipv6 is not None:
                # The router at the other end of the line only has IPv4.
                own = network.routers[at.router].attached
                own[own.index(at)] = at = replace(at, ipv6=None)
            network.hosts.append(_add_host(network, at, free))


def _match_line_rates(one: AttachedInterface, other: AttachedInterface) -> tuple[AttachedInterface, AttachedInterface]:
    """Give both ends of a link the lower rate, and one framing."""
    rate = min(one.rate, other.rate)
    if interface_kind(one.carrier) == interface_kind(other.carrier) or one.framing == other.framing:
        return replace(one, rate=rate, framing=one.framing), replace(other, rate=rate, framing=one.framing)
    # Different media at the two ends, such as with a provider between them.
    ethernet = one if one.framing == "ethernet" else other
    spare = re.sub(r"^[A-Za-z-]+", "GigabitEthernet", (other if ethernet is one else one).carrier)
    fixed = [each if each is ethernet else replace(each, carrier=spare) for each in (one, other)]
    return replace(fixed[0], rate=rate, framing="ethernet"), replace(fixed[1], rate=rate, framing="ethernet")


def _omit_interface(network: ImportedNetwork, each: AttachedInterface, reason: str) -> None:
    router = network.routers[each.router]
    router.attached.remove(each)
    router.left_out[each.port] = reason


def _add_host(network: ImportedNetwork, at: AttachedInterface, free: Iterator[IPv4Network]) -> Host:
    prefix = at.address.network
    own = (each for each in islice(prefix.hosts(), 3) if each != at.address.ip)
    address = at.beyond or next(own)
    name = re.sub(r"[^A-Za-z0-9.-]", "-", f"{at.router[:24]}-{short_name(at.port)}")[:36]
    taken = {each.name for each in network.hosts} | set(network.routers)
    name = next(each for each in (name, *(f"{name}-{number}" for number in range(2, 99))) if each not in taken)
    there = IPv4Interface(f"{address}/{prefix.prefixlen}")
    if at.framing == "ethernet":
        return Host(name, there, at, ipv6=None if at.ipv6 is None else _neighbour_address(at.ipv6))
    behind = next(free)
    port = next(each for each in ("GigabitEthernet0/0", "GigabitEthernet0/1") if each != at.carrier)
    gateway, own_address = (IPv4Interface(f"{behind[number]}/{behind.prefixlen}") for number in (1, 2))
    network.routers[at.router].notes.append(
        f"{at.port}: the router {name}-far is the other end of the line, with the host {name} behind it"
    )
    return Host(name, own_address, at, FarRouter(f"{name}-far", there, port, gateway))


def _neighbour_address(address: IPv6Interface) -> IPv6Interface:
    """Return another address of a subnet."""
    network = address.network
    first = network[0] if network.prefixlen == 127 else network[2]
    return IPv6Interface((network[1] if first == address.ip else first, network.prefixlen))


def _add_spare(router: InputRouter, network: ImportedNetwork, free: Iterator[IPv4Network]) -> None:
    """Add a host at a port that is not in the input, so that traffic has two ends."""
    prefix = next(free)
    port = _spare_port(router, router.attached)
    rate = Rate(DEFAULT_BANDWIDTH_KBPS[interface_kind(port)] * 1000)
    at = AttachedInterface(router.name, port, port, IPv4Interface(f"{prefix[1]}/{prefix.prefixlen}"), rate, "ethernet")
    router.attached.append(at)
    network.hosts.append(_add_host(network, at, free))
    router.notes.append(f"{port} with {at.address} is added, so that traffic has two ends")


def _fill_routes(network: ImportedNetwork) -> None:
    """Fill in the routes: the routers' own next hops if they are neighbours, else shortest paths."""
    shortest = shortest_routes(network.routers, {name: _router_networks(network, name) for name in network.routers})
    network.routes = {name: dict(routes) for name, routes in shortest.items()}
    for name, router in network.routers.items():
        neighbours = {far.address.ip for _, far in network.neighbours(name)}
        table = router.table or {each.prefix: each.via for each in router.layout.routes if each.via is not None}
        for prefix in shortest[name]:
            fitting = [each for each in table if prefix.subnet_of(each)]
            via = table[max(fitting, key=lambda each: each.prefixlen)] if fitting else None
            if via in neighbours:
                network.routes[name][prefix] = via
    whole = all(
        network.path(one, two) for one in network.hosts for two in network.hosts if _are_reachable(network, one, two)
    )
    if not whole:
        network.routes = shortest
    network.ipv6_routes = shortest_routes(
        network.routers, {name: _router_ipv6_networks(network, name) for name in network.routers}
    )
    for host in network.hosts:
        if host.far is not None:
            line, behind = host.at.address.network, host.address.network
            for name, routes in network.routes.items():
                via = host.far.address.ip if name == host.at.router else routes.get(line)
                if via is not None:
                    routes[behind] = via


def _are_reachable(network: ImportedNetwork, one: Host, two: Host) -> bool:
    return one is not two and two.at.router in {one.at.router, *_sort_links(network, one.at.router)}


def _sort_links(network: ImportedNetwork, start: str) -> list[str]:
    """Return the reachable routers, nearest first."""
    found: list[str] = []
    waiting = deque([start])
    while waiting:
        name = waiting.popleft()
        if name not in found:
            found.append(name)
            waiting.extend(far.router for _, far in network.neighbours(name))
    return found[1:]


def _router_networks(network: ImportedNetwork, name: str) -> list[NodeInterface[IPv4Address, IPv4Network]]:
    """Return the networks of a router, followed by its neighbours."""
    attached = network.routers[name].attached
    found = [NodeInterface("", each.address.ip, each.address.network) for each in attached]
    return found + [
        NodeInterface(far.router, far.address.ip, near.address.network) for near, far in network.neighbours(name)
    ]


def _router_ipv6_networks(network: ImportedNetwork, name: str) -> list[NodeInterface[IPv6Address, IPv6Network]]:
    """Return the IPv6 networks of a router, followed by its neighbours with IPv6."""
    attached = (each.ipv6 for each in network.routers[name].attached)
    found = [NodeInterface("", each.ip, each.network) for each in attached if each is not None]
    ends = ((far.router, far.ipv6) for _, far in network.neighbours(name))
    return found + [NodeInterface(router, each.ip, each.network) for router, each in ends if each is not None]
