"""Applets of the Embedded Event Manager that run commands at the end of a countdown; no other event happens here.

After Cisco's Embedded Event Manager Command Reference (`event timer`, `action cli`): 12.3(14)T and later.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from qoslab.ios.model.device import Device

KEY = "event manager applet"
_COUNTDOWN = re.compile(r"event(?: \S+)? timer countdown (?:name \S+ )?time (\d+(?:\.\d+)?)(?: .*)?")
_COMMAND = re.compile(r'action (\S+) cli command "?(.*?)"?')


@dataclass(frozen=True, slots=True)
class Applet:
    """One that waits."""

    seconds: float
    """Time from its registration."""
    commands: tuple[str, ...]
    """Lines that it enters then, in the order of the actions' labels, compared as texts."""


def applets(device: Device) -> dict[str, Applet]:
    """The applets of a configuration that wait for the end of a countdown, by name."""
    found = {}
    for line in device.inert:
        if not line.key.startswith(f"{KEY} "):
            continue
        below = [each.strip() for each in line.below]
        # Of events without a tag the last counts.
        countdown = next((match for each in below[::-1] if (match := _COUNTDOWN.fullmatch(each))), None)
        actions = sorted((match[1], match[2]) for each in below if (match := _COMMAND.fullmatch(each)))
        if countdown is not None:
            found[line.key.removeprefix(f"{KEY} ")] = Applet(float(countdown[1]), tuple(text for _, text in actions))
    return found
