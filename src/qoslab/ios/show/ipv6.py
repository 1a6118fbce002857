"""`show ipv6 interface brief` and `show ipv6 route`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv6Network

from qoslab.ios.environment import PortState, RouteEntry
from qoslab.ios.model.device import Device
from qoslab.ios.model.ios_names import ipv6_text
from qoslab.ios.show.interfaces import interface_states

_MULTICAST = "FF00::/8"
_CODES = (
    "Codes: C - Connected, L - Local, S - Static, R - RIP, B - BGP",
    "       U - Per-user Static route",
    "       I1 - ISIS L1, I2 - ISIS L2, IA - ISIS interarea, IS - ISIS summary",
    "       O - OSPF intra, OI - OSPF inter, OE1 - OSPF ext 1, OE2 - OSPF ext 2",
    "       ON1 - OSPF NSSA ext 1, ON2 - OSPF NSSA ext 2",
)


def show_ipv6_interface_brief(device: Device, ports: Mapping[str, PortState]) -> str:
    """Return all interfaces with state, link-local and global addresses."""
    lines: list[str] = []
    for name, interface in device.interfaces.items():
        port = ports.get(name)
        status, protocol = interface_states(interface, port)
        lines.append(f"{name:<27}[{status}/{protocol}]")
        addresses = [ipv6_text(each.ip) for each in interface.ipv6_addresses]
        if port is not None and port.link_local is not None:
            addresses.insert(0, ipv6_text(port.link_local))
        lines += [f"    {address}" for address in addresses or ["unassigned"]]
    return "".join(line + "\n" for line in lines)


def show_ipv6_route(device: Device, routes: Sequence[RouteEntry]) -> str:
    """Return the IPv6 routing table: that of the kernel, with the router's own addresses as local routes."""
    connected = {
        route.prefix: route.interface
        for route in routes
        if isinstance(route.prefix, IPv6Network) and route.source == "connected"
    }
    entries: list[tuple[IPv6Network, str, list[str]]] = []
    for route in routes:
        if isinstance(route.prefix, IPv6Network):
            code = "C" if route.source == "connected" else "S"
            distance = 0 if route.source == "connected" else route.distance
            entries.append(
                (route.prefix, f"{code}   {ipv6_text(route.prefix)} [{distance}/0]", [_next_hop_text(device, route)])
            )
    for name, interface in device.interfaces.items():
        for address in interface.ipv6_addresses:
            if connected.get(address.network) == name:
                own = IPv6Network(address.ip)
                entries.append((own, f"L   {ipv6_text(own)} [0/0]", [_interface_text(device, name, "receive")]))
    entries.sort(key=lambda entry: (int(entry[0].network_address), entry[0].prefixlen))
    everywhere = [f"L   {_MULTICAST} [0/0]", f"     {_interface_text(device, 'Null0', 'receive')}"] if entries else []
    table = "" if _has_early_format(device) else "default - "
    count = len(entries) + bool(entries)
    lines = [f"IPv6 Routing Table - {table}{count} entries", *_CODES, *_indented_list(entries), *everywhere]
    return "".join(line + "\n" for line in lines)


def _indented_list(entries: Sequence[tuple[IPv6Network, str, list[str]]]) -> Iterator[str]:
    for _, head, ways in entries:
        yield head
        yield from (f"     {way}" for way in ways)


def _has_early_format(device: Device) -> bool:
    """Return whether the release has the output of 12.4; from 15.0 on, the table has a name and a next hop its kind."""
    return device.hardware.version.startswith("12.")


def _next_hop_text(device: Device, route: RouteEntry) -> str:
    if route.next_hop is None:
        return _interface_text(device, route.interface or "", "directly connected")
    hop = f"via {ipv6_text(route.next_hop)}"
    # A link-local address does not determine an interface.
    return f"{hop}, {route.interface}" if route.next_hop.is_link_local else hop


def _interface_text(device: Device, interface: str, how: str) -> str:
    return f"via ::, {interface}" if _has_early_format(device) else f"via {interface}, {how}"
