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
    """An applet with a pending countdown."""

    seconds: float
    """Countdown from the registration of the applet."""
    commands: tuple[str, ...]
    """Lines entered at the end of the countdown, in the order of the actions' labels, compared as texts."""


def countdown_applets(device: Device) -> dict[str, Applet]:
    """Return the applets of a configuration with a countdown, by name."""
    found = {}
    for line in device.inert:
        if not line.key.startswith(f"{KEY} "):
            continue
        below = [each.strip() for each in line.below]
        # The last event without a tag applies.
        countdown = next((match for each in below[::-1] if (match := _COUNTDOWN.fullmatch(each))), None)
        actions = sorted((match[1], match[2]) for each in below if (match := _COMMAND.fullmatch(each)))
        if countdown is not None:
            found[line.key.removeprefix(f"{KEY} ")] = Applet(float(countdown[1]), tuple(text for _, text in actions))
    return found
