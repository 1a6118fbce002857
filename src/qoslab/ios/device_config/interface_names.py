"""Translation of interface names between experiment and device, in lines, commands and parsed answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from qoslab.ios.model.ios_names import interface_name
from qoslab.model.interface_selection import OWN_INTERFACE_PREFIX

_NAMED = re.compile(r"(?<![\w./-])([A-Za-z][A-Za-z-]*) ?(\d+(?:/\d+)*)(\.\d+)?(?![\w/])")
"""Patterns of interface names, abbreviated or not: type, numbers, subinterface."""


class InterfaceNames:
    """Mapping from the experiment's interfaces, and their subinterfaces, to the device's; others are unchanged."""

    def __init__(self, devices: Mapping[str, str]) -> None:
        """`devices` maps each interface name of the experiment to that of the device, both in full."""
        self._there = dict(devices)
        own = {name: f"{OWN_INTERFACE_PREFIX}{name}" for name in devices}
        self._here = own | {device: name for name, device in devices.items()}

    def device(self, name: str) -> str:
        """Return the device's name for a full interface name of the experiment."""
        return self.to_device(name)

    def to_device(self, text: str) -> str:
        """Replace the experiment's interface names, also abbreviated ones, in lines or a command by the device's."""
        return _rename_interfaces(text, self._there) if self._there else text

    def from_device(self, value: Any) -> Any:
        """Replace the device's interface names in a parsed answer, in keys and texts, by the experiment's.

        If another interface of the device has a name that the experiment uses, it becomes `OWN` followed by that name.
        """
        if not self._here:
            return value
        if isinstance(value, dict):
            return {self.from_device(key): self.from_device(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.from_device(item) for item in value]
        return _rename_interfaces(value, self._here) if isinstance(value, str) else value


def _rename_interfaces(text: str, names: Mapping[str, str]) -> str:
    """Replace all names in one pass, since two names may be swapped."""

    def other(found: re.Match[str]) -> str:
        full = interface_name(found[1] + found[2])
        return found[0] if full is None or full not in names else names[full] + (found[3] or "")

    return _NAMED.sub(other, text)


IDENTITY_NAMES = InterfaceNames({})
