"""Interface configuration mode."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface

from qoslab.ios.config.session import CONFIG, ConfigSession
from qoslab.ios.device import Interface
from qoslab.ios.grammar import Args, RejectedError

DEFAULT_LOAD_INTERVAL_S = 300


@CONFIG.add(
    "config",
    "interface <name:interface>",
    help={"interface": "Select an interface to configure", "name": "Interface type and number"},
)
def _interface(session: ConfigSession, args: Args) -> None:
    name = args.value("name", str)
    if name not in session.device.interfaces:
        raise args.invalid("name")
    session.enter("interface", name)


@CONFIG.add(
    "interface",
    "description <text:line>",
    no=True,
    help={"description": "Interface specific description", "text": "Up to 240 characters describing this interface"},
)
def _description(session: ConfigSession, args: Args) -> None:
    session.interface.description = None if args.unset else args.value("text", str)


def _interface_address(address: IPv4Address, mask: IPv4Address) -> IPv4Interface:
    """Return the interface address, or refuse a mask with holes and an address that names a network or everybody."""
    bits = int(mask)
    length = bits.bit_count()
    if bits != (0xFFFFFFFF << (32 - length)) & 0xFFFFFFFF or length == 0:
        raise RejectedError(f"Bad mask 0x{bits:X} for address {address}")
    interface = IPv4Interface((address, length))
    network = interface.network
    ends = {network.network_address, network.broadcast_address} if length < 31 else set()
    if address in ends or address.is_multicast or address.is_unspecified:
        raise RejectedError(f"Bad mask /{length} for address {address}")
    return interface


def _remove_address(interface: Interface, address: IPv4Interface, secondary: bool) -> None:
    if secondary:
        if address not in interface.secondary_addresses:
            raise RejectedError("% Address not found on this interface")
        interface.secondary_addresses = tuple(a for a in interface.secondary_addresses if a != address)
    elif interface.address != address:
        raise RejectedError("% Invalid address")
    elif interface.secondary_addresses:
        raise RejectedError("% Must delete secondary before deleting primary")
    else:
        interface.address = None


def _check_overlap(session: ConfigSession, address: IPv4Interface, secondary: bool) -> None:
    here = session.interface
    for other in session.device.interfaces.values():
        for present in (*([other.address] if other.address else []), *other.secondary_addresses):
            if other is here and (present == address or (not secondary and present == here.address)):
                continue
            if present.network.overlaps(address.network):
                where = "secondary" if other is here else other.name
                raise RejectedError(f"% {address.network.network_address} overlaps with {where}")


@CONFIG.add(
    "interface",
    "ip address <address:address> <mask:mask> [secondary]",
    no=True,
    help={
        "address": "Set the IP address of an interface",
        "mask": "IP subnet mask",
        "secondary": "Make this IP address a secondary address",
    },
)
def _ip_address(session: ConfigSession, args: Args) -> None:
    interface = session.interface
    given = args.optional("address", IPv4Address)
    if args.unset and given is None:
        interface.address, interface.secondary_addresses = None, ()
        return
    mask = args.optional("mask", IPv4Address)
    if given is None or mask is None:
        raise args.invalid("address")
    address = _interface_address(given, mask)
    if args.unset:
        _remove_address(interface, address, "secondary" in args)
        return
    _check_overlap(session, address, "secondary" in args)
    if "secondary" not in args:
        interface.address = address
        interface.secondary_addresses = tuple(a for a in interface.secondary_addresses if a.ip != address.ip)
    elif interface.address is None:
        raise RejectedError("% Primary address must be configured first")
    elif address not in interface.secondary_addresses:
        interface.secondary_addresses += (address,)
