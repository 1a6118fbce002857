"""Maximum packet sizes of an interface: `mtu`, `ip mtu` and `ipv6 mtu`.

The lines of a lab carry packets of up to 1500 bytes, so that a greater value is refused even if the hardware allows it.
"""

from __future__ import annotations

from collections.abc import Iterator

from qoslab.ios.cli.grammar import Args
from qoslab.ios.cli.session import ConfigSession, UnsupportedError, router_command
from qoslab.ios.model.device import Interface
from qoslab.ios.model.mtu import DEFAULT_MTU, line_mtu
from qoslab.ios.registry import INTERFACE_LINES

NO_LONGER = f"all lines accept packets of up to {DEFAULT_MTU} bytes"
JUMBO_MTU = 9216
MAX_MTU_BY_TYPE = {"Ethernet": 1500, "FastEthernet": 1600, "Serial": 17940, "ATM": 17940}
"""Maximum value in the answer to `?`, by type of interface [R]; of all faster Ethernet ports `JUMBO_MTU`."""


@router_command(
    "interface",
    "mtu <bytes:64-17940>",
    no="mtu [<bytes:64-17940>]",
    help={"mtu": "Set the interface Maximum Transmission Unit (MTU)", "bytes": "MTU size in bytes"},
)
def _configure_mtu(session: ConfigSession, args: Args) -> None:
    interface = session.interface
    bytes_ = DEFAULT_MTU if args.unset else args.value("bytes", int)
    if bytes_ > MAX_MTU_BY_TYPE.get(interface.kind, JUMBO_MTU):
        raise args.invalid_argument("bytes")
    if bytes_ > DEFAULT_MTU:
        raise UnsupportedError(NO_LONGER)
    before = line_mtu(interface)
    interface.mtu = None if bytes_ == DEFAULT_MTU else bytes_
    # Cisco, "mtu": an equal MTU of a protocol changes with it, and none is ever above it.
    for each in (interface, *session.device.subinterfaces(interface.name)):
        if each.ip_mtu is not None and (each.ip_mtu == before or each.ip_mtu >= bytes_):
            each.ip_mtu = None
        if each.ipv6_mtu is not None and (each.ipv6_mtu == before or each.ipv6_mtu >= bytes_):
            each.ipv6_mtu = None


@router_command(
    ("interface", "subinterface"),
    "ip mtu <bytes:68-1500>",
    no="ip mtu [<bytes:68-1500>]",
    help={"mtu": "Set IP Maximum Transmission Unit", "bytes": "MTU (bytes)"},
)
def _configure_ip_mtu(session: ConfigSession, args: Args) -> None:
    session.interface.ip_mtu = _protocol_mtu(session, args)


@router_command(
    ("interface", "subinterface"),
    "ipv6 mtu <bytes:1280-1500>",
    no="ipv6 mtu [<bytes:1280-1500>]",
    help={"ipv6": "IPv6 interface subcommands", "mtu": "Set IPv6 Maximum Transmission Unit", "bytes": "MTU (bytes)"},
)
def _configure_ipv6_mtu(session: ConfigSession, args: Args) -> None:
    session.interface.ipv6_mtu = _protocol_mtu(session, args)


def _protocol_mtu(session: ConfigSession, args: Args) -> int | None:
    """Return the MTU of a protocol; None if it equals that of the line, which is not printed."""
    if args.unset:
        return None
    interface, bytes_ = session.interface, args.value("bytes", int)
    line = line_mtu(session.device.interfaces[interface.parent or interface.name])
    if bytes_ > line:
        raise args.invalid_argument("bytes")
    return None if bytes_ == line else bytes_


@INTERFACE_LINES.register_family(12, family="router")
def _config_lines(interface: Interface) -> Iterator[str]:
    if interface.mtu is not None:
        yield f"mtu {interface.mtu}"


@INTERFACE_LINES.register_family(32, family="router")
def _ip_lines(interface: Interface) -> Iterator[str]:
    if interface.ip_mtu is not None:
        yield f"ip mtu {interface.ip_mtu}"


@INTERFACE_LINES.register_family(87, family="router")
def _ipv6_lines(interface: Interface) -> Iterator[str]:
    if interface.ipv6_mtu is not None:
        yield f"ipv6 mtu {interface.ipv6_mtu}"
