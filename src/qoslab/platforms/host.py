"""End systems: network namespaces in the virtual lab, Linux machines otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qoslab.platforms.base import PROGRAMS, AccessMethod, CounterSource, Forwarding, Language, Problem

if TYPE_CHECKING:
    from qoslab.ios.model.device import Hardware
    from qoslab.model.experiment import Node
    from qoslab.model.framing import Framing
    from qoslab.model.generation import Generation

_INTERFACE = re.compile(r"[a-z][a-z0-9]{0,14}")


@dataclass(frozen=True)
class Host:
    """Sends and receives traffic; forwards nothing."""

    name: str = "host"
    is_router: bool = False
    access: AccessMethod = PROGRAMS
    language: Language | None = None
    forwarding: Forwarding | None = None
    counters: CounterSource | None = None
    unsimulated: str = ""
    has_startup_config: bool = False

    def ansible_role(self, node: Node) -> str | None:
        """Return None: no configuration is pushed to a host."""
        return None

    def hardware(self, node: Node, interfaces: tuple[str, ...]) -> Hardware:
        """`KeyError`: a host is no model of router."""
        raise KeyError(node.model)

    def generation(self, node: Node) -> Generation | None:
        """Return None: a host has no QoS policy."""
        return None

    def check(self, node: Node) -> Iterator[Problem]:
        """A host has neither hardware model nor generation."""
        for key, value in (("model", node.model), ("generation", node.generation)):
            if value is not None:
                yield Problem(key, f'"{value}" on a host', "this key on routers only")

    def interfaces(self, node: Node) -> tuple[str, ...] | None:
        """Any number of them."""
        return None

    def interface_problem(self, node: Node, interface: str, framing: Framing) -> str | None:
        """Hosts have Ethernet interfaces, named as Linux does."""
        if _INTERFACE.fullmatch(interface) is None:
            return "a Linux interface name such as eth0"
        return None if framing == "ethernet" else "a router: hosts have Ethernet interfaces only"
