"""`ip tcp adjust-mss`: maximum MSS of TCP SYNs that pass the interface in either direction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from qoslab.ios.cli.grammar import Args
from qoslab.ios.cli.session import ConfigSession, router_command
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.registry import ENGINE_INTERFACE, INTERFACE_LINES
from qoslab.system import program_formats


@router_command(
    ("interface", "subinterface"),
    "ip tcp adjust-mss <bytes:500-1460>",
    no="ip tcp adjust-mss [<bytes:500-1460>]",
    help={
        "tcp": "TCP header compression and other parameters",
        "adjust-mss": "Adjust the mss of transit packets",
        "bytes": "Maximum segment size in bytes",
    },
)
def _configure_adjust_mss(session: ConfigSession, args: Args) -> None:
    session.interface.tcp_adjust_mss = None if args.unset else args.value("bytes", int)


@INTERFACE_LINES.register_family(33, family="router")
def _config_lines(interface: Interface) -> Iterator[str]:
    if interface.tcp_adjust_mss is not None:
        yield f"ip tcp adjust-mss {interface.tcp_adjust_mss}"


def engine_adjust_mss(interface: Interface) -> dict[str, int]:
    """Return the data plane's key of an interface or a subinterface."""
    return {} if interface.tcp_adjust_mss is None else {"tcp_adjust_mss": interface.tcp_adjust_mss}


@ENGINE_INTERFACE.register_family(53, family="router")
def _engine_config(device: Device, interface: Interface) -> program_formats.InterfaceConfigPart:
    return cast("program_formats.InterfaceConfigPart", engine_adjust_mss(interface))
