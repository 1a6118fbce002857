"""`show ip route` and `show arp`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network

from qoslab.ios.environment import Neighbour, PortState, RouteEntry
from qoslab.ios.model.device import Device
from qoslab.ios.show.interfaces import dotted_mac

# The legend of 12.4.
_CODES = (
    "Codes: C - connected, S - static, R - RIP, M - mobile, B - BGP",
    "       D - EIGRP, EX - EIGRP external, O - OSPF, IA - OSPF inter area ",
    "       N1 - OSPF NSSA external type 1, N2 - OSPF NSSA external type 2",
    "       E1 - OSPF external type 1, E2 - OSPF external type 2",
    "       i - IS-IS, su - IS-IS summary, L1 - IS-IS level-1, L2 - IS-IS level-2",
    "       ia - IS-IS inter area, * - candidate default, U - per-user static route",
    "       o - ODR, P - periodic downloaded static route",
)
_ANYWHERE = IPv4Network("0.0.0.0/0")
_SOURCES = ("connected", "static")


def show_ip_route(routes: Sequence[RouteEntry], source: str | None = None) -> str:
    """Return the IPv4 routing table, or its routes from one source, grouped by classful network as in IOS."""
    routes = [route for route in routes if isinstance(route.prefix, IPv4Network) and source in (None, route.source)]
    default = next((route for route in routes if route.prefix == _ANYWHERE), None)
    if default is None or default.next_hop is None:
        last_resort = "Gateway of last resort is not set"
        if default is not None:
            last_resort = "Gateway of last resort is 0.0.0.0 to network 0.0.0.0"
    else:
        last_resort = f"Gateway of last resort is {default.next_hop} to network 0.0.0.0"
    by_major: dict[IPv4Network, list[RouteEntry]] = {}
    for route in sorted(routes, key=lambda r: (int(r.prefix.network_address), r.prefix.prefixlen)):
        if isinstance(route.prefix, IPv4Network) and route.prefix != _ANYWHERE:
            by_major.setdefault(_classful_network(route.prefix), []).append(route)
    lines: list[str] = []
    for major, group in by_major.items():
        lines += _group(major, group)
    if default is not None:
        lines.append("S*   0.0.0.0/0" + _route_target(default))
    return "".join(line + "\n" for line in [*_CODES, "", last_resort, "", *lines])


def _group(major: IPv4Network, group: list[RouteEntry]) -> list[str]:
    if all(route.prefix.prefixlen <= major.prefixlen for route in group):
        return [f"{_route_code(route)}    {route.prefix}{_route_target(route)}" for route in group]
    prefixes = {route.prefix for route in group}
    lengths = {prefix.prefixlen for prefix in prefixes}
    if len(lengths) == 1:
        lines = [f"     {major.network_address}/{lengths.pop()} is subnetted, {len(prefixes)} subnets"]
        return lines + [f"{_route_code(r)}       {r.prefix.network_address}{_route_target(r)}" for r in group]
    lines = [f"     {major} is variably subnetted, {len(prefixes)} subnets, {len(lengths)} masks"]
    return lines + [f"{_route_code(r)}       {r.prefix}{_route_target(r)}" for r in group]


def _route_code(route: RouteEntry) -> str:
    return {"connected": "C", "local": "L", "static": "S"}[route.source]


def _route_target(route: RouteEntry) -> str:
    if route.next_hop is None:
        return f" is directly connected, {route.interface}"
    return f" [{route.distance}/0] via {route.next_hop}"


def _classful_network(prefix: IPv4Network) -> IPv4Network:
    """Return the classful network of a prefix; a supernet is returned unchanged."""
    first = int(prefix.network_address) >> 24
    length = 8 if first < 128 else 16 if first < 192 else 24
    return prefix if prefix.prefixlen <= length else prefix.supernet(new_prefix=length)


def show_ip_route_address(routes: Sequence[RouteEntry], address: IPv4Address) -> str:
    """Return `show ip route A.B.C.D`: the route for an address; the default route does not count."""
    fits = [each for each in routes if isinstance(each.prefix, IPv4Network) and address in each.prefix]
    found = [each for each in fits if each.prefix != _ANYWHERE]
    if not found:
        return "% Network not in table\n"
    best = max(found, key=lambda each: each.prefix.prefixlen)
    distance = best.distance if best.source == "static" else 0
    lines = [f"Routing entry for {best.prefix}"]
    if best.next_hop is None:
        via = f'  Known via "{best.source}", distance {distance}, metric 0 (connected, via interface)'
        lines += [via, "  Routing Descriptor Blocks:", f"  * directly connected, via {best.interface}"]
    else:
        via = f'  Known via "{best.source}", distance {distance}, metric 0'
        lines += [via, "  Routing Descriptor Blocks:", f"  * {best.next_hop}"]
    lines.append("      Route metric is 0, traffic share count is 1")
    return "".join(line + "\n" for line in lines)


def show_ip_route_summary(routes: Sequence[RouteEntry]) -> str:
    """Return `show ip route summary`: the number of entries by source, as networks and subnets."""
    prefixes = {
        source: [each.prefix for each in routes if each.source == source and isinstance(each.prefix, IPv4Network)]
        for source in _SOURCES
    }
    lines = [
        "IP routing table name is Default-IP-Routing-Table(0)",
        "IP routing table maximum-paths is 16",
        "Route Source    Networks    Subnets     Overhead    Memory (bytes)",
    ]
    totals = [0, 0]
    for source in _SOURCES:
        whole = sum(each.prefixlen <= _classful_network(each).prefixlen for each in prefixes[source])
        parts = len(prefixes[source]) - whole
        totals = [totals[0] + whole, totals[1] + parts]
        lines.append(f"{source:<16}{whole:<12}{parts:<12}0           0")
    lines.append(f"{'Total':<16}{totals[0]:<12}{totals[1]:<12}0           0")
    return "".join(line + "\n" for line in lines)


def show_arp(
    device: Device, ports: Mapping[str, PortState], neighbours: Sequence[Neighbour], wanted: str | None = None
) -> str:
    """Return the addresses of the router (age `-`) and its neighbours, or those of one interface or address."""
    rows: list[tuple[str, str, str, str]] = []
    for name, interface in device.interfaces.items():
        port = ports.get(name)
        if (
            interface.address is None
            or port is None
            or port.mac is None
            or interface.is_serial
            or interface.is_atm
            or interface.shutdown
        ):
            continue
        for address in (interface.address, *interface.secondary_addresses):
            rows.append((str(address.ip), "-", dotted_mac(port.mac), name))
    rows += [
        (str(n.address), str(n.age_minutes), dotted_mac(n.mac), n.interface)
        for n in neighbours
        if n.address.version == 4
    ]
    rows = [row for row in rows if wanted in (None, row[0], row[3])]
    lines = ["Protocol  Address          Age (min)  Hardware Addr   Type   Interface"]
    lines += [f"Internet  {address:<15}  {age:>8}   {mac}  ARPA   {name}" for address, age, mac, name in rows]
    return "".join(line + "\n" for line in lines)
