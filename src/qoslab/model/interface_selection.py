"""Selection of the experiment's interfaces from a router's output."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

OWN = "own-"
"""Before the name of an interface of a router's own, where the experiment calls another one so."""
_PORT = re.compile(r"((Fast|Gigabit|TenGigabit)?Ethernet|Serial|ATM)\d")


def of_the_experiment(shown: Mapping[str, Any], ends: Collection[str]) -> dict[str, Any]:
    """Return a router's output by interface, without ports that are no `ends` of the experiment's links.

    These have policies that are not the experiment's. Interfaces that are no ports a configuration has made.
    """
    ports = {_port(end) for end in ends}
    return {
        name: each
        for name, each in shown.items()
        if _port(name) in ports or not (name.startswith(OWN) or _PORT.match(name))
    }


def _port(name: str) -> str:
    return name.partition(".")[0]
