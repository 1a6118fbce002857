"""Rollback lines between two running configurations given as text."""

from __future__ import annotations

from qoslab.ios.device_config.diff import configuration_lines_between
from qoslab.ios.model.device import Hardware
from qoslab.ios.parse import parse_config


def undo_lines(before: str, after: str, hardware: Hardware) -> list[str]:
    """Return the lines that change a device from `after` back to `before`. IosError if one cannot be parsed."""
    wanted = parse_config(before, hardware, source="the configuration before")
    current = parse_config(after, hardware, source="the configuration after")
    return configuration_lines_between(wanted, current)
