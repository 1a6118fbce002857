"""Static routes: `ip route`."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Network

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import CONFIG, ConfigSession, UnsupportedError, router_command
from qoslab.ios.cli.undo import Undo
from qoslab.ios.model.device import Device, StaticRoute
from qoslab.ios.model.ios_names import OTHER_KINDS, interface_kind, join_with_blanks
from qoslab.ios.model.routes import NULL
from qoslab.ios.registry import BLOCKS

INCONSISTENT_MASK = "%Inconsistent address and mask"


NOT_OVER = "no lab packet uses this kind of interface: route over a port"


OWN_ADDRESS = "%Invalid next hop address (it's this router)"


_ROUTE = "ip route <prefix:address> <mask:mask> (<hop:address>|<out:interface> [<hop:address>]) [<distance:1-255>]"
_FURTHER = " [name <name:word>] [tag <tag:1-4294967295>] [permanent] [name <name:word>]"


_IP = {"ip": "Global IP configuration subcommands"}


@CONFIG.add(
    "config",
    _ROUTE + _FURTHER,
    undo=Undo(key=_ROUTE, early=True),
    no="ip route <prefix:address> <mask:mask> [(<hop:address>|<out:interface> [<hop:address>]) [<distance:1-255>]]"
    + _FURTHER,
    help={
        **_IP,
        "route": "Establish static routes",
        "prefix": "Destination prefix",
        "mask": "Destination prefix mask",
        "hop": "Forwarding router's address",
        "out": "Interface type and number",
        "distance": "Distance metric for this route",
        "name": "Specify name of the next hop",
        "tag": "Set tag for this route",
        "permanent": "permanent route",
    },
)
def _configure_route(session: ConfigSession, args: Args) -> None:
    device = session.device
    prefix, mask = args.value("prefix", IPv4Address), args.value("mask", IPv4Address)
    length = int(mask).bit_count()
    if int(mask) != (0xFFFFFFFF << (32 - length)) & 0xFFFFFFFF or int(prefix) & ~int(mask):
        raise RejectedError(INCONSISTENT_MASK)
    out, hop = args.optional("out", str), args.optional("hop", IPv4Address)
    network, distance = IPv4Network((prefix, length)), args.optional("distance", int)
    if args.unset:
        remove_routes(device, network, out, hop)
        return
    if out is not None and out not in device.interfaces and interface_kind(out) in OTHER_KINDS:
        raise UnsupportedError(NOT_OVER)
    if out is not None and out not in device.interfaces and out != NULL:
        raise args.invalid_argument("out")
    addresses = [each.address for each in device.interfaces.values()]
    addresses += [each.address for each in device.host_interfaces.values()]
    own = any(address is not None and address.ip == hop for address in addresses)
    # A route that was there before the address stays in the running configuration.
    if own and not session.restoring:
        raise RejectedError(OWN_ADDRESS)
    further = [f"tag {tag}" for tag in args.values("tag", int)] + ["permanent"] * ("permanent" in args)
    further += [f"name {name}" for name in args.values("name", str)[:1]]
    route = StaticRoute(network, hop, out, None if distance == 1 else distance, join_with_blanks(further))
    add_route(device, route)


def remove_routes(device: Device, network: IPv4Network | IPv6Network, out: str | None, hop: object) -> None:
    """Remove the route through an interface or next hop; all routes to the network if neither is given."""
    way = (out, hop)
    device.routes = [
        route
        for route in device.routes
        if route.prefix != network or (way != (None, None) and (route.interface, route.next_hop) != way)
    ]


def add_route(device: Device, route: StaticRoute) -> None:
    """Add a route, in order; it replaces one with the same destination and way."""
    way = (route.prefix, route.next_hop, route.interface)
    others = [each for each in device.routes if (each.prefix, each.next_hop, each.interface) != way]
    device.routes = sorted([*others, route], key=route_order)


@router_command("config", "ip routing", help={**_IP, "routing": "Enable IP routing"})
def _configure_routing(session: ConfigSession, args: Args) -> None:
    """Accept the command without effect: a router always routes, and its configuration does not print the command."""


def route_order(route: StaticRoute) -> tuple[int, int, int, str, int]:
    """Return the sort key of static routes in a running configuration."""
    hop = 0 if route.next_hop is None else int(route.next_hop)
    return route.prefix.version, int(route.prefix.network_address), route.prefix.prefixlen, route.interface or "", hop


def route_line(route: StaticRoute) -> str:
    """Return the `ip route` line of a static route."""
    parts = [route.prefix.network_address, route.prefix.netmask, route.interface, route.next_hop, route.distance]
    return "ip route " + join_with_blanks(part for part in (*parts, route.further or None) if part is not None)


@BLOCKS.register_family(100)
def _config_block(device: Device) -> Iterator[list[str]]:
    classful = [] if device.ip_classless else ["no ip classless"]
    yield [*classful, *(route_line(route) for route in device.routes if route.prefix.version == 4)]
