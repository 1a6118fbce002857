"""Configuration lines of the actions of a plan."""

from __future__ import annotations

from collections.abc import Callable

from qoslab.ios.device_config.running_config_parser import ConfigurationReading
from qoslab.tc.objects import Origin

LineFinder = Callable[[Origin, str], int]
"""Function for the input line of an action; 0 if it is not known."""


def unknown_line(_origin: Origin, _action: str) -> int:
    """Return 0: no line is known."""
    return 0


def line_finder(reading: ConfigurationReading) -> LineFinder:
    """Return a function for the line of an action; 0 if it is not known."""

    def line(origin: Origin, action: str) -> int:
        word = action.split()[0]
        if not origin.policy:
            command = action.removesuffix(" in").removesuffix(" out")
            of_device = (each.number for each in reading.executed if each.text.startswith(command))
            return reading.interface_line(origin.interface, command) or max(of_device, default=0)
        if not origin.path:
            return reading.line_number(origin.policy)
        if word == "match":
            return reading.class_map_line(origin.path[-1])
        names = (origin.policy, origin.path[-1])
        return reading.line_number(*names, command=word) or reading.line_number(*names)

    return line
