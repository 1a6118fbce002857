"""Interfaces without hardware: Loopback with an address, Null0, which drops packets, and Vlan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Address

from qoslab.ios.addressing import check_overlap, parse_interface_address
from qoslab.ios.cli.grammar import Args, IncompleteError, RejectedError
from qoslab.ios.cli.session import CONFIG, HOST_INTERFACE, ConfigSession, UnsupportedError
from qoslab.ios.cli.undo import Undo
from qoslab.ios.model.device import Device, HostInterface
from qoslab.ios.model.ios_names import interface_kind
from qoslab.ios.model.routes import NULL
from qoslab.ios.registry import BLOCKS

NO_ADDRESS = "% Invalid address"
NOT_ROUTED = "a switch bridges within VLANs and routes between its routed ports, not between VLANs"


@CONFIG.add(
    "config",
    "interface <name:host-interface>",
    no="interface <name:host-interface>",
    undo=Undo(rewrite=True),
    help={"interface": "Select an interface to configure", "name": "Interface type and number"},
)
def enter_host_interface(session: ConfigSession, args: Args) -> None:
    """Create the interface of the line and enter its mode, or remove it."""
    name = args.value("name", str)
    interfaces = session.device.host_interfaces
    if args.unset:
        interfaces.pop(name, None)
        return
    interfaces.setdefault(name, HostInterface(name))
    session.enter(HOST_INTERFACE, name)


def _change(session: ConfigSession, changed: HostInterface) -> None:
    session.device.host_interfaces[changed.name] = changed


@CONFIG.add(
    HOST_INTERFACE,
    "description <text:line>",
    no=True,
    help={"description": "Interface specific description", "text": "Up to 240 characters describing this interface"},
)
def _configure_description(session: ConfigSession, args: Args) -> None:
    _change(session, replace(session.host_interface, description=None if args.unset else args.value("text", str)))


@CONFIG.add(HOST_INTERFACE, "shutdown", no=True, help={"shutdown": "Shutdown the selected interface"})
def _configure_shutdown(session: ConfigSession, args: Args) -> None:
    _change(session, replace(session.host_interface, shutdown=not args.unset))


@CONFIG.add(
    HOST_INTERFACE,
    "ip address <address:address> <mask:mask>",
    no=True,
    undo=Undo(rewrite=True),
    help={
        "ip": "Interface Internet Protocol config commands",
        "address": "Set the IP address of an interface",
        "mask": "IP subnet mask",
    },
)
def _configure_address(session: ConfigSession, args: Args) -> None:
    present = session.host_interface
    if present.name == NULL:
        raise args.invalid_argument("address")
    if interface_kind(present.name) == "Vlan" and not args.unset:
        raise UnsupportedError(NOT_ROUTED)
    given, mask = args.optional("address", IPv4Address), args.optional("mask", IPv4Address)
    if args.unset and given is None:
        _change(session, replace(present, address=None))
        return
    if given is None or mask is None:
        raise IncompleteError
    address = parse_interface_address(given, mask)
    if args.unset:
        if present.address != address:
            raise RejectedError(NO_ADDRESS)
    else:
        check_overlap(session.device, present.name, address)
    _change(session, replace(present, address=None if args.unset else address))


@BLOCKS.register_family(89)
def _config_blocks(device: Device) -> Iterator[list[str]]:
    for name, interface in sorted(device.host_interfaces.items(), key=lambda each: (len(each[0]), each[0])):
        if interface_kind(name) != "Vlan":
            # Those of VLANs come after the ports.
            yield host_interface_block(interface)


def host_interface_block(interface: HostInterface) -> list[str]:
    """Return the lines of one interface."""
    return [f"interface {interface.name}", *(f" {line}" for line in _config_lines(interface))]


def _config_lines(interface: HostInterface) -> Iterator[str]:
    if interface.description is not None:
        yield f"description {interface.description}"
    if interface.address is not None:
        yield f"ip address {interface.address.ip} {interface.address.netmask}"
    elif interface.name != NULL:
        yield "no ip address"
    yield from (line.text for line in interface.inert)
    if interface.shutdown:
        yield "shutdown"
    if interface.service_policy_input is not None:
        yield f"service-policy input {interface.service_policy_input}"
