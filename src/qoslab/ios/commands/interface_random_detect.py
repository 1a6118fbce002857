"""`random-detect` of an interface: weighted random early detection in the queue of a port without a policy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from qoslab.ios.cli.grammar import Args
from qoslab.ios.cli.session import ConfigSession, router_command
from qoslab.ios.cli.undo import Undo
from qoslab.ios.commands.queue_lists import check_queueing
from qoslab.ios.commands.random_detect import DETAIL, HELP, NO, apply_line, random_detect_syntax, red_config, red_lines
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.registry import ENGINE_INTERFACE, INTERFACE_LINES
from qoslab.system import program_formats


@router_command(
    "interface",
    random_detect_syntax("<minimum:1-4096> <maximum:1-4096> [<denominator:1-65535>]"),
    no=NO,
    undo=Undo(key=DETAIL, parts=True, needs_removal=True),
    help=HELP,
)
def _configure_random_detect(session: ConfigSession, args: Args) -> None:
    interface = session.interface
    changed = apply_line(session, interface.random_detect, args)
    if changed is not None:
        check_queueing(session.device, replace(interface, random_detect=changed), "random-detect")
    interface.random_detect = changed


@INTERFACE_LINES.register_family(101, family="router")
def _config_lines(interface: Interface) -> Iterator[str]:
    if interface.random_detect is not None:
        yield from red_lines(interface.random_detect)


@ENGINE_INTERFACE.register_family(41, family="router")
def _engine_config(device: Device, interface: Interface) -> program_formats.InterfaceConfigPart:
    return {} if interface.random_detect is None else {"random_detect": red_config(interface.random_detect)}
