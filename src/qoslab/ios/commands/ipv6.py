"""IPv6 of the router and of its interfaces: `ipv6 unicast-routing`, `ipv6 cef`, `ipv6 enable`, `ipv6 address`.

EUI-64 and anycast addresses, and addresses from DHCP or router advertisements are not accepted: the experiment defines
the addresses of a router in a testbed.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv6Address, IPv6Interface

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import ConfigSession, router_command
from qoslab.ios.cli.undo import Undo
from qoslab.ios.commands.interface import SWITCHED
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.model.ios_names import ipv6_text
from qoslab.ios.registry import BLOCKS, INTERFACE_LINES

# The wording of the following refusals is modelled on IOS, not taken from a printout.
NO_UNICAST = "%{interface}: Error: {address} is invalid"
OVERLAPS = "%{interface}: Error: {network} is overlapping with {other} on {where}"
NOT_LINK_LOCAL = "%{interface}: Error: {address} is not a link-local address"
NEEDS_LINK_LOCAL = "%{interface}: Error: {address} is a link-local address, enter it with link-local"

_IPV6 = {"ipv6": "Global IPv6 configuration subcommands"}
_INTERFACE = {"ipv6": "IPv6 interface subcommands"}


@router_command("config", "ipv6 unicast-routing", no=True, help={**_IPV6, "unicast-routing": "Enable unicast routing"})
def _configure_unicast_routing(session: ConfigSession, args: Args) -> None:
    session.device.ipv6_unicast_routing = not args.unset


@router_command("config", "ipv6 cef", no=True, help={**_IPV6, "cef": "Cisco Express Forwarding"})
def _configure_cef(session: ConfigSession, args: Args) -> None:
    session.device.ipv6_cef = not args.unset


@router_command("interface", "ipv6 enable", no=True, help={**_INTERFACE, "enable": "Enable IPv6 on interface"})
def _enable(session: ConfigSession, args: Args) -> None:
    session.interface.ipv6_enable = not args.unset


_ADDRESS = "(<prefix:ipv6-prefix>|<link:ipv6-address> link-local)"


@router_command(
    "interface",
    f"ipv6 address {_ADDRESS}",
    no=f"ipv6 address [{_ADDRESS}]",
    undo=Undo(key=f"ipv6 address {_ADDRESS}", rewrite=True),
    help={
        **_INTERFACE,
        "address": "Configure IPv6 address on interface",
        "prefix": "IPv6 prefix",
        "link": "IPv6 link-local address",
        "link-local": "Use link-local address",
    },
)
def _configure_address(session: ConfigSession, args: Args) -> None:
    interface = session.interface
    given, link = args.optional("prefix", IPv6Interface), args.optional("link", IPv6Address)
    if link is not None:
        if not link.is_link_local:
            raise RejectedError(NOT_LINK_LOCAL.format(interface=interface.name, address=ipv6_text(link)))
        if not args.unset:
            interface.ipv6_link_local = link
        elif interface.ipv6_link_local == link:
            interface.ipv6_link_local = None
    elif given is None:
        interface.ipv6_addresses, interface.ipv6_link_local = (), None
    elif args.unset:
        interface.ipv6_addresses = tuple(each for each in interface.ipv6_addresses if each != given)
    else:
        _check(session, given)
        others = (each for each in interface.ipv6_addresses if each.ip != given.ip)
        interface.ipv6_addresses = tuple(sorted((*others, given)))


def _check(session: ConfigSession, address: IPv6Interface) -> None:
    """Refuse an address that is not a host address, or whose subnet overlaps with that of another interface."""
    here, ip = session.interface, address.ip
    if here.port is not None and here.port.switched:
        raise RejectedError(SWITCHED)
    text = ipv6_text(address)
    if ip.is_link_local:
        raise RejectedError(NEEDS_LINK_LOCAL.format(interface=here.name, address=text))
    # The address of the subnet itself is that of all its routers (RFC 4291, 2.6.1), except for links of two (RFC 6164).
    subnet = address.network.prefixlen < 127 and ip == address.network.network_address
    if subnet or ip.is_multicast or ip.is_unspecified or ip.is_loopback:
        raise RejectedError(NO_UNICAST.format(interface=here.name, address=text))
    for other in session.device.interfaces.values():
        for each in other.ipv6_addresses:
            if other is not here and each.network.overlaps(address.network):
                subnets = {"network": ipv6_text(address.network), "other": ipv6_text(each.network)}
                raise RejectedError(OVERLAPS.format(interface=here.name, where=other.name, **subnets))


@BLOCKS.register_family(65, family="router")
def _config_block(device: Device) -> Iterator[list[str]]:
    yield [
        *(["ipv6 unicast-routing"] if device.ipv6_unicast_routing else []),
        *(["ipv6 cef"] if device.ipv6_cef else []),
    ]


@INTERFACE_LINES.register_family(85, family="router")
def _config_lines(interface: Interface) -> Iterator[str]:
    if interface.ipv6_link_local is not None:
        yield f"ipv6 address {ipv6_text(interface.ipv6_link_local)} link-local"
    for address in interface.ipv6_addresses:
        yield f"ipv6 address {ipv6_text(address)}"
    if interface.ipv6_enable:
        yield "ipv6 enable"
