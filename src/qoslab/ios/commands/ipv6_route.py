"""Static routes of IPv6: `ipv6 route`."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv6Address, IPv6Interface

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import ConfigSession, router_command
from qoslab.ios.cli.undo import Undo
from qoslab.ios.commands.routing import add_route, remove_routes
from qoslab.ios.model.device import Device, StaticRoute
from qoslab.ios.model.ios_names import ipv6_text, join_with_blanks
from qoslab.ios.registry import BLOCKS

# The wording of the following refusals is modelled on IOS, not taken from a printout.
LINK_LOCAL_HOP = "% Interface has to be specified for a link-local nexthop"
NO_HOP = "% Invalid next hop address: {address}"
OWN_ADDRESS = "% Invalid next hop address (it's this router)"

_HOP = "(<hop:ipv6-address>|<out:interface> [<hop:ipv6-address>])"
_ROUTE = f"ipv6 route <prefix:ipv6-prefix> {_HOP} [<distance:1-254>]"


@router_command(
    "config",
    _ROUTE,
    undo=Undo(key=_ROUTE, early=True),
    no=f"ipv6 route <prefix:ipv6-prefix> [{_HOP} [<distance:1-254>]]",
    help={
        "ipv6": "Global IPv6 configuration subcommands",
        "route": "Configure static routes",
        "prefix": "IPv6 prefix",
        "hop": "IPv6 address of next-hop",
        "out": "Interface type and number",
        "distance": "Administrative distance",
    },
)
def _configure_route(session: ConfigSession, args: Args) -> None:
    device = session.device
    network = args.value("prefix", IPv6Interface).network
    out, hop, distance = args.optional("out", str), args.optional("hop", IPv6Address), args.optional("distance", int)
    if args.unset:
        remove_routes(device, network, out, hop)
        return
    if out is not None and out not in device.interfaces:
        raise args.invalid_argument("out")
    if hop is not None:
        if hop.is_multicast or hop.is_unspecified or hop.is_loopback:
            raise RejectedError(NO_HOP.format(address=ipv6_text(hop)))
        if hop.is_link_local and out is None:
            raise RejectedError(LINK_LOCAL_HOP)
        own = any(hop == each.ip for interface in device.interfaces.values() for each in interface.ipv6_addresses)
        # A route that was there before the address stays in the running configuration.
        if own and not session.restoring:
            raise RejectedError(OWN_ADDRESS)
    add_route(device, StaticRoute(network, hop, out, None if distance == 1 else distance))


def ipv6_route_line(route: StaticRoute) -> str:
    """Return the `ipv6 route` line of a static route."""
    hop = None if route.next_hop is None else ipv6_text(route.next_hop)
    parts = [ipv6_text(route.prefix), route.interface, hop, route.distance]
    return "ipv6 route " + join_with_blanks(part for part in parts if part is not None)


@BLOCKS.register_family(112)
def _config_block(device: Device) -> Iterator[list[str]]:
    yield [ipv6_route_line(route) for route in device.routes if route.prefix.version == 6]
