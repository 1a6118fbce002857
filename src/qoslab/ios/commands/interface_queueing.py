"""Data plane configuration of an interface's queueing: shapers, a priority list or a custom queue list."""

from __future__ import annotations

from qoslab.ios.commands.queue_lists import engine_custom, engine_priority
from qoslab.ios.commands.traffic_shape import engine_shapers
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.registry import ENGINE_INTERFACE
from qoslab.system import program_formats

TREE_TX_RING = 1
"""Packets between the queues of tc commands and the line, in addition to the packet on the line: Linux's byte queue
limits let a driver hold hardly more."""


@ENGINE_INTERFACE.register_family(54, family="router")
def _engine_config(device: Device, interface: Interface) -> program_formats.InterfaceConfigPart:
    if interface.tree is not None:
        return {"queueing": interface.tree, "tx_ring_limit": TREE_TX_RING}
    if interface.priority_group is not None:
        return {"queueing": engine_priority(device, interface.priority_group)}
    if interface.custom_queue_list is not None:
        return {"queueing": engine_custom(device, interface.custom_queue_list)}
    return {"queueing": engine_shapers(interface)} if interface.shapers else {}
