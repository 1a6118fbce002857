"""Linux routers whose own kernel forwards and queues, configured by tc(8)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qoslab.platforms.base import CONTROL_SOCKET, AccessMethod, CounterSource, Forwarding, Language, Problem

if TYPE_CHECKING:
    from qoslab.ios.model.device import Hardware
    from qoslab.model.experiment import Node
    from qoslab.model.framing import Framing
    from qoslab.model.generation import Generation

_INTERFACE = re.compile(r"[a-z][a-z0-9]{0,14}")


@dataclass(frozen=True)
class Tc:
    """A Linux router: the kernel's qdiscs, classes and filters, in the lab's namespaces or in user-mode Linux."""

    name: str = "tc"
    is_router: bool = True
    access: AccessMethod = CONTROL_SOCKET
    language: Language | None = "tc"
    forwarding: Forwarding | None = "kernel"
    counters: CounterSource | None = "qdiscs"
    unsimulated: str = "use --lab virtual for the kernel's queueing, or the platform engine for a simulation"
    has_startup_config: bool = False

    def ansible_role(self, node: Node) -> str | None:
        """Return the role of routers with a control socket."""
        return "engine_router"

    def hardware(self, node: Node, interfaces: tuple[str, ...]) -> Hardware:
        """`KeyError`: it is no model of IOS router."""
        raise KeyError(node.model)

    def generation(self, node: Node) -> Generation | None:
        """Return None: generations are those of IOS."""
        return None

    def check(self, node: Node) -> Iterator[Problem]:
        """Yield a problem for a Cisco model and for a QoS generation."""
        for key, value in (("model", node.model), ("generation", node.generation)):
            if value is not None:
                yield Problem(key, f'"{value}" on a router of platform tc', "this key on routers with IOS templates")

    def interfaces(self, node: Node) -> tuple[str, ...] | None:
        """Return None: any number of them."""
        return None

    def interface_problem(self, node: Node, interface: str, framing: Framing) -> str | None:
        """Return a problem unless the interface has a Linux name and is Ethernet."""
        if _INTERFACE.fullmatch(interface) is None:
            return "a Linux interface name such as eth0"
        return None if framing == "ethernet" else "ethernet: a router of platform tc has Ethernet interfaces only"
