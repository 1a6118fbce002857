"""Selection of the experiment's interfaces from a router's output."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

OWN_INTERFACE_PREFIX = "own-"
"""Prefix of the name of a router's own interface if the experiment uses that name for another interface."""
_PORT = re.compile(r"((Fast|Gigabit|TenGigabit)?Ethernet|Serial|ATM)\d")


def select_experiment_interfaces(shown: Mapping[str, Any], ends: Collection[str]) -> dict[str, Any]:
    """Return a router's output by interface, without physical interfaces that are not in `ends`, the ends of the
    experiment's links.

    Policies on such interfaces do not belong to the experiment. Interfaces that are not physical are part of a
    configuration, and kept.
    """
    ports = {_physical_port(end) for end in ends}
    return {
        name: each
        for name, each in shown.items()
        if _physical_port(name) in ports or not (name.startswith(OWN_INTERFACE_PREFIX) or _PORT.match(name))
    }


def _physical_port(name: str) -> str:
    return name.partition(".")[0]
