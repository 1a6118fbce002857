"""Interfaces that a device calls otherwise than an experiment does: names in lines, commands and parsed answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from qoslab.ios.model.ios_names import interface_name
from qoslab.model.interface_selection import OWN

_NAMED = re.compile(r"(?<![\w./-])([A-Za-z][A-Za-z-]*) ?(\d+(?:/\d+)*)(\.\d+)?(?![\w/])")
"""Patterns of interface names, abbreviated or not: type, numbers, subinterface."""


class InterfaceNames:
    """Device names of the experiment's interfaces and their subinterfaces; others are unchanged."""

    def __init__(self, devices: Mapping[str, str]) -> None:
        """`devices` has the device's name of each of the experiment's, both in full."""
        self._there = dict(devices)
        own = {name: f"{OWN}{name}" for name in devices}
        self._here = own | {device: name for name, device in devices.items()}

    def device(self, name: str) -> str:
        """The device's name of one of the experiment's, which is in full."""
        return self.to_device(name)

    def to_device(self, text: str) -> str:
        """Lines or a command with the device's names for the experiment's, however those are abbreviated."""
        return _renamed(text, self._there) if self._there else text

    def from_device(self, value: Any) -> Any:
        """A parsed answer with the experiment's names for the device's, in keys and in texts.

        An interface of the device's own that has the name of one of the experiment's is `OWN` and that name.
        """
        if not self._here:
            return value
        if isinstance(value, dict):
            return {self.from_device(key): self.from_device(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.from_device(item) for item in value]
        return _renamed(value, self._here) if isinstance(value, str) else value


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """All at once: two may have changed places."""

    def other(found: re.Match[str]) -> str:
        full = interface_name(found[1] + found[2])
        return found[0] if full is None or full not in names else names[full] + (found[3] or "")

    return _NAMED.sub(other, text)


AS_THEY_ARE = InterfaceNames({})
