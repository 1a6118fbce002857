"""Paths of packets through a topology by the routing tables of its nodes, hop by hop."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Literal

from qoslab.ios.model.catalyst import SwitchPort
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.model.routes import NULL, installable_routes
from qoslab.model.experiment import Address, Family, LinkEnd, Topology
from qoslab.platforms import node_platform
from qoslab.platforms.startup import static_routes

IpAddress = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Direction = Literal["input", "output"]


@dataclass(frozen=True)
class InterfacePassage:
    """An interface by which packets enter or leave a node."""

    node: str
    interface: str
    direction: Direction


@dataclass(frozen=True)
class Fault:
    """Routing fault that loses packets."""

    node: str
    """The node that does not forward them."""
    destination: IpAddress
    reason: str
    """Reason: `no route from R1 to 192.168.3.2`."""
    prefix: Network | None = None
    via: IpAddress | None = None
    """Proposed next hop for a missing route, if there is one."""


@dataclass
class PacketPath:
    """Path of packets to a destination."""

    crossings: list[InterfacePassage] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    """Faults on the path; empty if packets arrive. After a missing route the path continues as if the route existed."""
    first: Port | None = None
    """The interface by which packets leave their source."""


@dataclass(frozen=True)
class Port:
    """An interface with addresses and a cable."""

    node: str
    name: str
    port: str
    """The end of the link; for a subinterface, the end of its physical interface."""
    tag: int | None
    """The VLAN tag of its frames; None if they are untagged."""
    addresses: tuple[Address, ...]

    def containing_network(self, address: IpAddress) -> Network | None:
        """Return the network of the interface that contains an address."""
        return next((each.network for each in self.addresses if address in each.network), None)

    def passages(self, direction: Direction) -> Iterator[InterfacePassage]:
        """Yield the interface, and its physical interface."""
        for name in dict.fromkeys((self.name, self.port)):
            yield InterfacePassage(self.node, name, direction)


@dataclass(frozen=True)
class _Hop:
    """Output interface of a packet at a node, and the address of the next hop; None for any neighbour."""

    port: Port
    next_hop: IpAddress | None


@dataclass(frozen=True)
class _Route:
    prefix: Network
    via: IpAddress | None
    interface: str | None
    distance: int


class RoutedNetwork:
    """A topology with its routers as configured; `devices` has all of them."""

    def __init__(self, topology: Topology, devices: Mapping[str, Device]) -> None:
        self._topology = topology
        self._devices = devices
        self._ports = {name: tuple(self._node_ports(name)) for name in topology.nodes}
        self._routes = {name: tuple(self._node_routes(name)) for name in topology.nodes}
        self._neighbours: dict[Port, list[tuple[Port, tuple[InterfacePassage, ...]]]] = {}

    def find_path(self, source: str, destination: IpAddress) -> PacketPath:
        """Return the path from a node to an address."""
        way = PacketPath()
        node, visited = source, [source]
        while not self._has_address(node, destination):
            hop = self._next_hop(node, destination)
            if isinstance(hop, str):
                way.faults.append(Fault(node, destination, hop))
                return way
            if hop is None:
                hop = self._record_missing_route(node, destination, way)
                if hop is None:
                    return way
            if way.first is None:
                way.first = hop.port
            found = self._find_neighbour(hop, destination)
            if found is None:
                sought = destination if hop.next_hop is None else hop.next_hop
                reason = f"no neighbour with the address {sought} behind {hop.port.name} of {node}"
                way.faults.append(Fault(node, destination, reason))
                return way
            port, between = found
            way.crossings += [*hop.port.passages("output"), *between, *port.passages("input")]
            node = port.node
            if node in visited:
                circle = ", ".join((*visited[visited.index(node) :], node))
                way.faults.append(Fault(node, destination, f"a routing loop to {destination}: {circle}"))
                return way
            visited.append(node)
        return way

    def source_address(self, way: PacketPath, family: Family) -> IpAddress | None:
        """Return the source address that a node gives its own packets on this path."""
        addresses = () if way.first is None else way.first.addresses
        return next((each.ip for each in addresses if each.version == family), None)

    def _record_missing_route(self, node: str, destination: IpAddress, way: PacketPath) -> _Hop | None:
        """Record a missing route, and return the proposed hop if there is one."""
        proposed = self._proposed_route(node, destination)
        prefix, via = (None, None) if proposed is None else (proposed[0], proposed[1].next_hop)
        way.faults.append(Fault(node, destination, f"no route from {node} to {destination}", prefix, via))
        return None if proposed is None else proposed[1]

    def _node_ports(self, node: str) -> Iterator[Port]:
        links = self._topology.node_links(node)
        device = self._devices.get(node)
        if device is None:
            for _, near, _ in links:
                if near.addresses:
                    yield Port(node, near.interface, near.interface, None, near.addresses)
            return
        wired = {near.interface for _, near, _ in links}
        for interface in device.interfaces.values():
            port = interface.parent or interface.name
            switched = interface.port is not None and interface.port.switched
            if (
                port in wired
                and not switched
                and not device.is_shut_down(interface)
                and _interface_addresses(interface)
            ):
                tag = None if interface.native else interface.vlan
                yield Port(node, interface.name, port, tag, _interface_addresses(interface))

    def _node_routes(self, node: str) -> Iterator[_Route]:
        for port in self._ports[node]:
            for address in port.addresses:
                yield _Route(address.network, None, port.name, 0)
        device = self._devices.get(node)
        if device is None:
            for route in static_routes(self._topology, node):
                yield _Route(route.prefix, route.via, None, 1)
            return
        for prefix, via, interface, distance in installable_routes(device):
            yield _Route(prefix, via, interface, distance)

    def _has_address(self, node: str, address: IpAddress) -> bool:
        if any(each.ip == address for port in self._ports[node] for each in port.addresses):
            return True
        device = self._devices.get(node)
        own = () if device is None else device.host_interfaces.values()
        return any(each.address is not None and each.address.ip == address and not each.shutdown for each in own)

    def _next_hop(self, node: str, destination: IpAddress) -> _Hop | str | None:
        """Return the next hop of a packet by the node's table: None without a route, a reason if the route is
        unusable.
        """
        fitting = [route for route in self._routes[node] if destination in route.prefix]
        if not fitting:
            return None
        best = min(fitting, key=lambda route: (-route.prefix.prefixlen, route.distance))
        ports = {port.name: port for port in self._ports[node]}
        if best.interface == NULL:
            return f"a route of {node} that discards packets to {destination}"
        if best.via is None or best.interface is not None:
            port = ports.get(best.interface or "")
            if port is None:
                return f"a route from {node} to {destination} through {best.interface}, which has no cable or address"
            return _Hop(port, destination if best.distance == 0 else best.via)
        via = best.via
        found = next((port for port in ports.values() if port.containing_network(via) is not None), None)
        return (
            f"a route from {node} to {destination} via {via}, an address in none of its networks"
            if (found is None)
            else _Hop(found, via)
        )

    def _find_neighbour(self, hop: _Hop, destination: IpAddress) -> tuple[Port, tuple[InterfacePassage, ...]] | None:
        """Return the neighbour's interface, and the switch ports on the path to it."""
        neighbours = self.neighbours(hop.port)
        for port, between in neighbours:
            sought = destination if hop.next_hop is None else hop.next_hop
            link_local = isinstance(sought, IPv6Address) and sought.is_link_local
            if link_local or any(each.ip == sought for each in port.addresses):
                return port, between
        # A route with only an interface: the far end of the line, or a router that answers ARP for the address.
        return neighbours[0] if hop.next_hop is None and len(neighbours) == 1 else None

    def neighbours(self, port: Port) -> list[tuple[Port, tuple[InterfacePassage, ...]]]:
        """Return the interfaces that frames of an interface reach, each with the switch ports on the path."""
        if port not in self._neighbours:
            self._neighbours[port] = list(self._reached_interfaces(port))
        return self._neighbours[port]

    def _reached_interfaces(self, start: Port) -> Iterator[tuple[Port, tuple[InterfacePassage, ...]]]:
        queue: deque[tuple[str, str, int | None, tuple[InterfacePassage, ...]]] = deque(
            [(start.node, start.port, start.tag, ())]
        )
        seen: set[tuple[str, int]] = set()
        while queue:
            node, interface, tag, between = queue.popleft()
            for _, near, far in self._topology.node_links(node):
                if near.interface != interface:
                    continue
                switched = self._switched_port(far)
                if switched is None:
                    yield from (
                        (each, between)
                        for each in self._ports[far.node]
                        if (each.port, each.tag) == (far.interface, tag)
                    )
                    continue
                vlan = _accepted_vlan(switched, tag)
                if vlan is None or (far.node, vlan) in seen:
                    continue
                seen.add((far.node, vlan))
                entered = (*between, InterfacePassage(far.node, far.interface, "input"))
                for port, sent in self._outgoing_switch_ports(far, vlan):
                    queue.append((far.node, port, sent, (*entered, InterfacePassage(far.node, port, "output"))))

    def _outgoing_switch_ports(self, entered: LinkEnd, vlan: int) -> Iterator[tuple[str, int | None]]:
        """Yield the other ports of a switch by which a frame of a VLAN leaves, each with its tag there."""
        for _, near, _ in self._topology.node_links(entered.node):
            switched = self._switched_port(near)
            if near.interface == entered.interface or switched is None:
                continue
            if vlan == switched.vlan:
                yield near.interface, None
            elif switched.mode == "trunk":
                yield near.interface, vlan

    def _switched_port(self, end: LinkEnd) -> SwitchPort | None:
        """Return the port at that end if it is a switched port and up."""
        device = self._devices.get(end.node)
        interface = None if device is None else device.interfaces.get(end.interface)
        if interface is None or interface.port is None or interface.shutdown or not interface.port.switched:
            return None
        return interface.port

    def _proposed_route(self, node: str, destination: IpAddress) -> tuple[Network, _Hop] | None:
        """Return the route that a node needs, by the fewest hops: its prefix and first hop."""
        queue: deque[tuple[str, _Hop | None]] = deque([(node, None)])
        seen = {node}
        while queue:
            at, first = queue.popleft()
            for port in self._ports[at]:
                network = port.containing_network(destination)
                if network is not None and first is not None:
                    return network, first
                for far, _ in self.neighbours(port):
                    address = next((each.ip for each in far.addresses if each.version == destination.version), None)
                    if far.node in seen or address is None:
                        continue
                    seen.add(far.node)
                    forwards = node_platform(self._topology.nodes[far.node]).is_router
                    if forwards or self._has_address(far.node, destination):
                        queue.append((far.node, first or _Hop(port, address)))
        return None


def _interface_addresses(interface: Interface) -> tuple[Address, ...]:
    own = () if interface.address is None else (interface.address,)
    return (*own, *interface.secondary_addresses, *interface.ipv6_addresses)


def _accepted_vlan(port: SwitchPort, tag: int | None) -> int | None:
    """Return the VLAN of a frame that a switch port accepts; None if it accepts none."""
    if tag is None:
        return port.vlan
    return tag if port.mode == "trunk" or tag == port.vlan else None


def path_faults(ways: Iterable[PacketPath]) -> list[Fault]:
    """Return the faults of some paths, each once."""
    return list(dict.fromkeys(fault for way in ways for fault in way.faults))
