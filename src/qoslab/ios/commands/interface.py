"""Interface configuration mode."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface
from typing import Literal

from qoslab.ios.addressing import check_overlap, parse_interface_address
from qoslab.ios.cli.grammar import Args, CliError, IncompleteError, RejectedError
from qoslab.ios.cli.session import CONFIG, ConfigSession, UnsupportedError, router_command
from qoslab.ios.cli.undo import Undo
from qoslab.ios.commands.inert_lines import keep_virtual_interface
from qoslab.ios.commands.reservable import check_reserved
from qoslab.ios.model import engine_defaults
from qoslab.ios.model.device import Device, Family, Interface
from qoslab.ios.model.ios_names import OTHER_KINDS, interface_kind, interface_name
from qoslab.ios.registry import BLOCKS, ENGINE_INTERFACE, INTERFACE_LINES
from qoslab.ios.rules import GREATEST_BANDWIDTH_KBPS, XE_GREATEST_BANDWIDTH_KBPS, interface_bandwidth_kbps
from qoslab.system import program_formats

# The wording of the following refusals is modelled on IOS, not taken from a printout.
LOAD_INTERVAL_STEP = "% Load interval must be a multiple of 30 seconds"
SWITCHED = "Command rejected: IP addresses may not be configured on L2 links"
PHYSICAL = "% Removal of physical interfaces is not permitted"
# The wording of IOS, as remembered by many.
NO_VLAN_YET = """% Configuring IP routing on a LAN subinterface is only allowed if that
subinterface is already configured as part of an IEEE 802.10, IEEE 802.1Q,
or ISL vLAN."""
OTHER_KIND = "no interface of this kind is modelled"
MAX_RANGE_INTERFACES = 1000
SERIAL_CIRCUITS = "subinterfaces of serial lines are Frame Relay circuits, which are not modelled"
SECONDARY_FIRST = "% Must delete secondary before deleting primary"


@CONFIG.add(
    "config",
    "interface <name:interface>",
    no="interface <name:interface>",
    help={"interface": "Select an interface to configure", "name": "Interface type and number"},
)
@router_command(
    "config",
    "interface <name:interface> point-to-point",
    no="interface <name:interface> point-to-point",
    undo=Undo(key="interface <name:interface>"),
    help={
        "interface": "Select an interface to configure",
        "name": "Interface type and number",
        "point-to-point": "Treat as a point-to-point link",
    },
)
def _configure_interface(session: ConfigSession, args: Args) -> None:
    device, name = session.device, args.value("name", str)
    if interface_kind(name) in OTHER_KINDS and name not in device.interfaces and device.hardware.family == "router":
        keep_virtual_interface(session, name, args)
        return
    parent = Interface(name).parent
    if parent is not None and Interface(name).is_serial and parent in device.interfaces:
        if not args.unset:
            session.skip_block()
        raise UnsupportedError(SERIAL_CIRCUITS)
    if "point-to-point" in args and (parent is None or not Interface(name).is_atm):
        session.skip_block()
        raise args.invalid_argument("point-to-point")
    if args.unset:
        if name not in device.interfaces:
            raise _missing_interface_error(args, name)
        if parent is None:
            raise RejectedError(PHYSICAL)
        del device.interfaces[name]
        device.routes = [route for route in device.routes if route.interface != name]
    elif parent is None:
        if name not in device.interfaces:
            raise _refuse_interface(session, args, name)
        session.enter("interface", name)
    else:
        port = device.interfaces.get(parent)
        if port is None or port.port is not None:
            raise _refuse_interface(session, args, name)
        if name not in device.interfaces:
            device.add_subinterface(name)
        session.enter("subinterface", name)


_RANGE = re.compile(
    r"(?P<first>[A-Za-z][A-Za-z-]* *[\d/]+(?:\.\d+)?) *(?:- *(?P<last>(?:[A-Za-z][A-Za-z-]* *)?[\d/.]+))?", re.ASCII
)


@CONFIG.add(
    "config",
    "interface range <interfaces:line>",
    help={
        "interface": "Select an interface to configure",
        "range": "interface range command",
        "interfaces": "Such as `FastEthernet0/0 - 1 , Serial0/0`",
    },
)
def _configure_interface_range(session: ConfigSession, args: Args) -> None:
    names = interfaces_in_range(args.value("interfaces", str))
    if not names or any(name not in session.device.interfaces for name in names):
        session.skip_block()
        raise args.invalid_argument("interfaces")
    modes = {"interface" if Interface(name).parent is None else "subinterface" for name in names}
    if len(modes) > 1:
        session.skip_block()
        raise args.invalid_argument("interfaces")
    session.enter_range(modes.pop(), tuple(names))


def interfaces_in_range(text: str) -> list[str]:
    """Return the interfaces of a list such as `Fa0/0 - 1 , Serial0/0`; empty if a part has another form."""
    parts = [_interfaces_between(part.strip()) for part in text.split(",")]
    return list(dict.fromkeys(name for part in parts for name in part)) if all(parts) else []


def _interfaces_between(text: str) -> list[str]:
    """Return the interfaces of `TYPE A/B`, `TYPE A/B - C` or `TYPE A/B - TYPE A/C`; empty for another form."""
    match = _RANGE.fullmatch(text)
    first = None if match is None else interface_name(match["first"].replace(" ", ""))
    if match is None or first is None:
        return []
    stem, number = _split_number(first)
    last = number
    if match["last"] is not None:
        other = match["last"].replace(" ", "")
        name = f"{stem}{other}" if other.isdecimal() else interface_name(other)
        if name is None or _split_number(name)[0] != stem:
            return []
        last = _split_number(name)[1]
    if not number <= last or last - number > MAX_RANGE_INTERFACES:
        return []
    return [f"{stem}{each}" for each in range(number, last + 1)]


def _split_number(name: str) -> tuple[str, int]:
    """Return an interface's name without its last number, and this number."""
    match = re.fullmatch(r"(.*?)([0-9]{1,9})", name)
    return (match[1], int(match[2])) if match else (name, 0)


def _refuse_interface(session: ConfigSession, args: Args, name: str) -> CliError:
    """Return the error for a missing interface, and skip the lines pasted below it."""
    session.skip_block()
    return _missing_interface_error(args, name)


def _missing_interface_error(args: Args, name: str) -> CliError:
    """Return the error for an interface that the device does not have."""
    return UnsupportedError(OTHER_KIND) if interface_kind(name) in OTHER_KINDS else args.invalid_argument("name")


@CONFIG.add(
    ("interface", "subinterface"),
    "description <text:line>",
    no=True,
    help={"description": "Interface specific description", "text": "Up to 240 characters describing this interface"},
)
def _configure_description(session: ConfigSession, args: Args) -> None:
    session.interface.description = None if args.unset else args.value("text", str)


def _remove_address(interface: Interface, address: IPv4Interface, secondary: bool) -> None:
    if secondary:
        if address not in interface.secondary_addresses:
            raise RejectedError("% Address not found on this interface")
        interface.secondary_addresses = tuple(a for a in interface.secondary_addresses if a != address)
    elif interface.address != address:
        raise RejectedError("% Invalid address")
    elif interface.secondary_addresses:
        raise RejectedError(SECONDARY_FIRST)
    else:
        interface.address = None


def _check_overlap(session: ConfigSession, address: IPv4Interface, secondary: bool) -> None:
    """Refuse an address whose subnet overlaps with that of another address, on this interface or another one."""
    here = session.interface
    # The primary address may be replaced by any; a secondary one may be entered again, or become the primary one.
    others = [each for each in here.secondary_addresses if each != address]
    if secondary and here.address is not None:
        others.append(here.address)
    if any(each.network.overlaps(address.network) for each in others):
        raise RejectedError(f"% {address.network.network_address} overlaps with secondary")
    check_overlap(session.device, here.name, address)


@CONFIG.add(
    ("interface", "subinterface"),
    "ip address <address:address> <mask:mask> [secondary]",
    no=True,
    undo=Undo(key="ip address [<address:address> <mask:mask> secondary]", rewrite=True),
    help={
        "address": "Set the IP address of an interface",
        "mask": "IP subnet mask",
        "secondary": "Make this IP address a secondary address",
    },
)
def _configure_ip_address(session: ConfigSession, args: Args) -> None:
    interface = session.interface
    given = args.optional("address", IPv4Address)
    if args.unset and given is None:
        interface.address, interface.secondary_addresses = None, ()
        return
    if interface.port is not None and interface.port.switched:
        raise RejectedError(SWITCHED)
    if interface.parent is not None and interface.vlan is None and not interface.is_atm and not args.unset:
        raise RejectedError(NO_VLAN_YET)
    mask = args.optional("mask", IPv4Address)
    if given is None or mask is None:
        raise IncompleteError
    address = parse_interface_address(given, mask)
    if args.unset:
        _remove_address(interface, address, "secondary" in args)
        return
    _check_overlap(session, address, "secondary" in args)
    if "secondary" not in args:
        interface.address = address
        interface.secondary_addresses = tuple(a for a in interface.secondary_addresses if a.ip != address.ip)
    # The running configuration lists secondary addresses first, so one may come before the primary address.
    elif address not in interface.secondary_addresses:
        interface.secondary_addresses += (address,)


def _configure_bandwidth(session: ConfigSession, args: Args) -> None:
    changed = replace(session.interface, bandwidth_kbps=None if args.unset else args.value("kbps", int))
    check_reserved(session, changed)
    session.interface.bandwidth_kbps = changed.bandwidth_kbps


for _software, _greatest in (
    ("switch", GREATEST_BANDWIDTH_KBPS),
    ("plain-rates", GREATEST_BANDWIDTH_KBPS),
    ("narrow-ranges", GREATEST_BANDWIDTH_KBPS),
    ("wide-ranges", XE_GREATEST_BANDWIDTH_KBPS),
):
    CONFIG.add(
        ("interface", "subinterface"),
        f"bandwidth <kbps:1-{_greatest}>",
        no=True,
        requires={_software},
        help={"bandwidth": "Set bandwidth informational parameter", "kbps": "Bandwidth in kilobits"},
    )(_configure_bandwidth)


@router_command(
    "interface",
    "clock rate <bps:300-8000000>",
    no=True,
    help={
        "clock": "Configure serial interface clock",
        "rate": "Configure serial interface clock speed",
        "bps": "Clock rate in bits per second",
    },
)
def _configure_clock_rate(session: ConfigSession, args: Args) -> None:
    _serial_only(session, args, "clock")
    session.interface.clock_rate_bps = None if args.unset else args.value("bps", int)


@router_command(
    "interface",
    "encapsulation (ppp|hdlc)",
    no=True,
    help={
        "encapsulation": "Set encapsulation type for an interface",
        "ppp": "Point-to-Point protocol",
        "hdlc": "Serial HDLC synchronous",
    },
)
def _configure_encapsulation(session: ConfigSession, args: Args) -> None:
    _serial_only(session, args, "encapsulation")
    session.interface.encapsulation = "ppp" if "ppp" in args and not args.unset else None


def _serial_only(session: ConfigSession, args: Args, keyword: str) -> None:
    if not session.interface.is_serial:
        raise args.invalid_argument(keyword)


def _ethernet_only(session: ConfigSession, args: Args, keyword: str) -> None:
    if session.interface.is_serial or session.interface.is_atm:
        raise args.invalid_argument(keyword)


@CONFIG.add(
    "interface",
    "load-interval <seconds:30-600>",
    no=True,
    help={
        "load-interval": "Specify interval for load calculation for an interface",
        "seconds": "Load interval delay in seconds",
    },
)
def _load_interval(session: ConfigSession, args: Args) -> None:
    if args.unset:
        session.interface.load_interval_s = None
        return
    seconds = args.value("seconds", int)
    if seconds % 30:
        raise RejectedError(LOAD_INTERVAL_STEP)
    # The default is not kept, as IOS does not print it.
    session.interface.load_interval_s = None if seconds == engine_defaults.LOAD_INTERVAL_S else seconds


@CONFIG.add(("interface", "subinterface"), "shutdown", no=True, help={"shutdown": "Shutdown the selected interface"})
def _configure_shutdown(session: ConfigSession, args: Args) -> None:
    session.interface.shutdown = not args.unset


@CONFIG.add("interface", "keepalive", no=True, help={"keepalive": "Enable keepalive"})
def _configure_keepalive(session: ConfigSession, args: Args) -> None:
    session.interface.keepalive = not args.is_negated


@CONFIG.add(
    "interface",
    "duplex (auto|full|half)",
    no=True,
    help={
        "duplex": "Configure duplex operation",
        "auto": "Enable AUTO duplex configuration",
        "full": "Force full duplex operation",
        "half": "Force half-duplex operation",
    },
)
def _configure_duplex(session: ConfigSession, args: Args) -> None:
    """Store the duplex mode for show commands only: a virtual line has no collisions."""
    _ethernet_only(session, args, "duplex")
    forced: tuple[Literal["full", "half"], ...] = ("full", "half")
    session.interface.duplex = next((each for each in forced if each in args and not args.unset), "auto")


@router_command(
    "interface",
    "speed (auto|100|1000)",
    no=True,
    help={
        "speed": "Configure speed operation",
        "auto": "Enable AUTO speed configuration",
        "100": "Force 100 Mbps operation",
        "1000": "Force 1000 Mbps operation",
    },
)
def _configure_speed(session: ConfigSession, args: Args) -> None:
    _ethernet_only(session, args, "speed")
    interface = session.interface
    if args.unset or "auto" in args:
        interface.speed = "auto"
    # Only the wired speed can be forced: the line's rate is hardware here.
    elif interface.kind == "FastEthernet" and "100" in args:
        interface.speed = "100"
    elif interface.kind == "GigabitEthernet" and "1000" in args:
        interface.speed = "1000"
    else:
        raise args.invalid_argument("100" if "100" in args else "1000")


def interface_block(interface: Interface) -> list[str]:
    """Return the lines of one interface."""
    family: Family = "router" if interface.port is None else "switch"
    lines = (line for lines in INTERFACE_LINES.family_functions(family) for line in lines(interface))
    kind = " point-to-point" if interface.is_atm and interface.parent is not None else ""
    return [f"interface {interface.name}{kind}", *(f" {line}" for line in lines)]


@BLOCKS.register_family(90)
def _config_blocks(device: Device) -> Iterator[list[str]]:
    yield from (interface_block(interface) for interface in device.interfaces.values())


@INTERFACE_LINES.register_family(10)
def _description_config_line(interface: Interface) -> Iterator[str]:
    if interface.description is not None:
        yield f"description {interface.description}"


@INTERFACE_LINES.register_family(30)
def _config_lines(interface: Interface) -> Iterator[str]:
    if interface.bandwidth_kbps is not None:
        yield f"bandwidth {interface.bandwidth_kbps}"
    for address in interface.secondary_addresses:
        yield f"ip address {address.ip} {address.netmask} secondary"
    if interface.address is not None:
        yield f"ip address {interface.address.ip} {interface.address.netmask}"
    elif not interface.secondary_addresses and (interface.port is None or not interface.port.switched):
        yield "no ip address"


@INTERFACE_LINES.register_family(34)
def _further_config_lines(interface: Interface) -> Iterator[str]:
    if interface.encapsulation is not None:
        yield f"encapsulation {interface.encapsulation}"
    if interface.load_interval_s is not None:
        yield f"load-interval {interface.load_interval_s}"
    if interface.shutdown:
        yield "shutdown"


@INTERFACE_LINES.register_family(80, family="router")
def _speed_lines(interface: Interface) -> Iterator[str]:
    if not interface.is_serial and not interface.is_atm and interface.parent is None:
        yield f"duplex {interface.duplex}"
        yield f"speed {interface.speed}"


@INTERFACE_LINES.register_family(110)
def _keepalive_line(interface: Interface) -> Iterator[str]:
    if not interface.keepalive:
        yield "no keepalive"
    if interface.clock_rate_bps is not None:
        yield f"clock rate {interface.clock_rate_bps}"


@ENGINE_INTERFACE.register_family(10)
def _engine_config(device: Device, interface: Interface) -> program_formats.InterfaceConfigPart:
    load_interval = interface.load_interval_s
    return {
        "enabled": not interface.shutdown,
        "bandwidth_kbps": interface_bandwidth_kbps(interface),
        "clock_rate_bps": interface.clock_rate_bps,
        "encapsulation": (interface.encapsulation or "hdlc") if interface.is_serial else "ethernet",
        "load_interval_s": engine_defaults.LOAD_INTERVAL_S if load_interval is None else load_interval,
    }
