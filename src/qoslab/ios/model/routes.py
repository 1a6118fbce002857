"""Static routes of a configuration that can be installed in a routing table."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from qoslab.ios.model.device import Device

NULL = "Null0"
"""The interface that drops packets routed to it."""
IpAddress = IPv4Address | IPv6Address
InstallableRoute = tuple[IPv4Network | IPv6Network, IpAddress | None, str | None, int]
"""Prefix, next hop on a connected network or None, outgoing interface or None, and distance.

An interface with a next hop belongs to a link-local address, which does not determine one.
"""


def installable_routes(device: Device) -> list[InstallableRoute]:
    """Return the static routes that can be installed in the table.

    A next hop reached through another static route is replaced by that route's next hop, as IOS resolves it.
    """
    connected = [
        address.network
        for interface in device.interfaces.values()
        if not device.is_shut_down(interface)
        for address in (interface.address, *interface.secondary_addresses, *interface.ipv6_addresses)
        if address is not None
    ]

    def resolve(next_hop: IpAddress, seen: frozenset[IpAddress]) -> IpAddress | None:
        if any(next_hop in network for network in connected):
            return next_hop
        via = [r for r in device.routes if r.next_hop is not None and next_hop in r.prefix and r.next_hop not in seen]
        via.sort(key=lambda route: -route.prefix.prefixlen)
        for route in via:
            assert route.next_hop is not None
            found = resolve(route.next_hop, seen | {route.next_hop})
            if found is not None:
                return found
        return None

    found: list[InstallableRoute] = []
    for route in device.routes:
        distance = 1 if route.distance is None else route.distance
        if route.next_hop is None:
            out = None if route.interface is None else device.interfaces.get(route.interface)
            if route.interface == NULL or (out is not None and not device.is_shut_down(out)):
                found.append((route.prefix, None, route.interface, distance))
            continue
        if route.next_hop.is_link_local and isinstance(route.next_hop, IPv6Address):
            # The command line accepts it with an interface only.
            if route.interface is not None and not device.is_shut_down(device.interfaces[route.interface]):
                found.append((route.prefix, route.next_hop, route.interface, distance))
            continue
        gateway = resolve(route.next_hop, frozenset({route.next_hop}))
        if gateway is not None:
            found.append((route.prefix, gateway, None, distance))
    return found
