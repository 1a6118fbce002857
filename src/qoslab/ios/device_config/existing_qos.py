"""Effects of a device's existing configuration on the packets of an interface, in addition to an experiment's."""

from __future__ import annotations

from qoslab.ios.device_config.diff import configuration_tree
from qoslab.ios.device_config.running_config_parser import ConfigurationReading, enter_lines, read_running
from qoslab.ios.model.device import Device, Hardware

QUEUEING = (
    *("service-policy", "rate-limit", "traffic-shape", "priority-group", "custom-queue-list", "fair-queue"),
    "random-detect",
)
"""Beginnings of interface lines that limit, queue or drop packets."""


def existing_queueing(before: str, asked: str, interface: str, hardware: Hardware) -> list[str]:
    """Return lines of the interface that limit or queue packets and stay active next to the configuration `asked`.

    `before` is the running configuration. Lines that `asked` removes, replaces or includes are left out.
    """
    own = read_running(before, hardware)
    alone, together = ConfigurationReading(Device(hardware)), ConfigurationReading(own.device.copy())
    for each in (alone, together):
        enter_lines(each, asked)
    unread, wanted = (
        _unread_lines(own, interface),
        {*_queueing_lines(alone, interface), *_unread_lines(alone, interface)},
    )
    stays = [line for line in _queueing_lines(own, interface) if line in _queueing_lines(together, interface)]
    return [line for line in (*stays, *unread) if line not in wanted and _has_effect(line)]


def _has_effect(line: str) -> bool:
    return line.split()[0] in QUEUEING and not line.startswith("service-policy type ")


def _unread_lines(reading: ConfigurationReading, interface: str) -> list[str]:
    return [line.text for line in reading.unread if line.place == (f"interface {interface}",)]


def _queueing_lines(reading: ConfigurationReading, interface: str) -> list[str]:
    block = configuration_tree(reading.device).children.get(f"interface {interface}")
    return [] if block is None else [child.line for child in block.children.values()]
