"""`hold-queue`: the software queues of an interface."""

from __future__ import annotations

from collections.abc import Iterator

from qoslab.ios.cli.grammar import Args
from qoslab.ios.cli.session import ConfigSession, router_command
from qoslab.ios.cli.undo import Undo
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.registry import ENGINE_INTERFACE, INTERFACE_LINES
from qoslab.system import program_formats


@router_command(
    "interface",
    "hold-queue <packets:0-4096> (in|out)",
    no="hold-queue [<packets:0-4096>] (in|out)",
    undo=Undo(line="hold-queue [<packets:0-4096>] (in|out)"),
    help={"hold-queue": "Set hold queue depth", "packets": "Queue length", "in": "Input queue", "out": "Output queue"},
)
def _configure_hold_queue(session: ConfigSession, args: Args) -> None:
    packets = None if args.unset else args.value("packets", int)
    if "in" in args:
        session.interface.hold_queue_in = packets
    elif packets == 0:
        # The data plane has no interface without a queue.
        raise args.invalid_argument("packets")
    else:
        session.interface.hold_queue_out = packets


@INTERFACE_LINES.register_family(160)
def _config_lines(interface: Interface) -> Iterator[str]:
    if interface.hold_queue_in is not None:
        yield f"hold-queue {interface.hold_queue_in} in"
    if interface.hold_queue_out is not None:
        yield f"hold-queue {interface.hold_queue_out} out"


@ENGINE_INTERFACE.register_family(30)
def _engine_config(device: Device, interface: Interface) -> program_formats.InterfaceConfigPart:
    return {"hold_queue_out": interface.hold_queue_out}
