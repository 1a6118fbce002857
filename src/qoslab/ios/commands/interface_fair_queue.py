"""`fair-queue` of an interface: weighted fair queueing."""

from __future__ import annotations

from collections.abc import Iterator

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import CONFIG, ConfigSession
from qoslab.ios.cli.undo import Undo
from qoslab.ios.commands.queue_lists import check_queueing
from qoslab.ios.commands.queueing import POWER_OF_TWO
from qoslab.ios.model.device import Device, Interface, InterfaceFairQueue
from qoslab.ios.registry import ENGINE_INTERFACE, INTERFACE_LINES
from qoslab.system import program_formats

THRESHOLD_POWER_OF_TWO = (
    "Congestive discard threshold must be a power of 2 (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)"
)


_FAIR_QUEUE_HELP = {
    "fair-queue": "Enable Fair Queuing on an Interface",
    "threshold": "Congestive Discard Threshold",
    "dynamic": "Number Dynamic Conversation Queues",
    "reservable": "Number Reservable Conversation Queues",
}


_FAIR_QUEUE_UNDO = Undo(line="default fair-queue")
"""Undo of `fair-queue`: `no fair-queue` is a separate value."""


# HQF has no conversations of an interface, so the values exist only before it.
@CONFIG.add(
    "interface",
    "fair-queue [<threshold:16-4096> [<dynamic:16-4096> [<reservable:0-1000>]]]",
    no=True,
    undo=_FAIR_QUEUE_UNDO,
    requires={"fair-queue-conversations"},
    help=_FAIR_QUEUE_HELP,
)
@CONFIG.add(
    "interface", "fair-queue", no=True, undo=_FAIR_QUEUE_UNDO, requires={"fair-queue-flows"}, help=_FAIR_QUEUE_HELP
)
def _configure_fair_queue(session: ConfigSession, args: Args) -> None:
    if args.form == "default" or (args.is_negated and not session.interface.is_serial):
        session.interface.fair_queue = None
        return
    if args.is_negated:
        session.interface.fair_queue = InterfaceFairQueue(enabled=False)
        return
    threshold, dynamic, reservable = (args.optional(name, int) for name in ("threshold", "dynamic", "reservable"))
    if threshold is not None and threshold & (threshold - 1):
        raise RejectedError(THRESHOLD_POWER_OF_TWO)
    if dynamic is not None and dynamic & (dynamic - 1):
        raise RejectedError(POWER_OF_TWO)
    check_queueing(session.device, session.interface, "fair-queue")
    session.interface.fair_queue = InterfaceFairQueue(True, threshold, dynamic, reservable)


def _fair_queue_text(fair_queue: InterfaceFairQueue) -> str:
    if not fair_queue.enabled:
        return "no fair-queue"
    values = (fair_queue.discard_threshold, fair_queue.dynamic_queues, fair_queue.reserved_queues)
    return " ".join(["fair-queue", *(str(value) for value in values if value is not None)])


@INTERFACE_LINES.register_family(100)
def _config_lines(interface: Interface) -> Iterator[str]:
    if interface.fair_queue is not None:
        yield _fair_queue_text(interface.fair_queue)


@ENGINE_INTERFACE.register_family(40)
def _engine_config(device: Device, interface: Interface) -> program_formats.InterfaceConfigPart:
    fair = interface.fair_queue
    if fair is None:
        return {"fair_queue": None}
    return {
        "fair_queue": {
            "enabled": fair.enabled,
            "discard_threshold": fair.discard_threshold,
            "dynamic_queues": fair.dynamic_queues,
            "reserved_queues": fair.reserved_queues,
        }
    }
