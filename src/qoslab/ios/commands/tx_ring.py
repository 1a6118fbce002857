"""`tx-ring-limit`: the hardware queue of an interface."""

from __future__ import annotations

from collections.abc import Iterator

from qoslab.ios.cli.grammar import Args
from qoslab.ios.cli.session import CIRCUIT_MODES, ConfigSession, router_command
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.registry import ENGINE_INTERFACE, INTERFACE_LINES
from qoslab.system import program_formats


@router_command(
    ("interface", *CIRCUIT_MODES),
    "tx-ring-limit <packets:1-32767>",
    no=True,
    help={"tx-ring-limit": "Configure PA level transmit ring limit", "packets": "Number of packets"},
)
def _configure_tx_ring_limit(session: ConfigSession, args: Args) -> None:
    if session.interface.is_atm and session.position.mode == "interface":
        # The ring is that of a circuit.
        raise args.invalid_argument("tx-ring-limit")
    session.interface.tx_ring_limit = None if args.unset else args.value("packets", int)


@INTERFACE_LINES.register_family(90)
def _config_lines(interface: Interface) -> Iterator[str]:
    if interface.tx_ring_limit is not None and not interface.is_atm:
        yield f"tx-ring-limit {interface.tx_ring_limit}"


@ENGINE_INTERFACE.register_family(20)
def _engine_config(device: Device, interface: Interface) -> program_formats.InterfaceConfigPart:
    return {"tx_ring_limit": interface.tx_ring_limit}
