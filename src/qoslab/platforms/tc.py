"""Linux routers whose own kernel forwards and queues, configured by tc(8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from qoslab.platforms.base import CONTROL_SOCKET, AccessMethod, CounterSource, Forwarding, Language
from qoslab.platforms.linux_machine import LinuxMachine

if TYPE_CHECKING:
    from qoslab.model.experiment import Node


@dataclass(frozen=True)
class Tc(LinuxMachine):
    """A Linux router: the kernel's qdiscs, classes and filters, in the lab's namespaces or in user-mode Linux."""

    name: str = "tc"
    is_router: bool = True
    access: AccessMethod = CONTROL_SOCKET
    language: Language | None = "tc"
    forwarding: Forwarding | None = "kernel"
    counters: CounterSource | None = "qdiscs"
    unsimulated: str = "use --lab virtual for the kernel's queueing, or the platform engine for a simulation"
    has_startup_config: bool = False
    called: ClassVar[str] = "a router of platform tc"
    keys_of: ClassVar[str] = "routers with IOS templates"
    only_ethernet: ClassVar[str] = "ethernet: a router of platform tc has Ethernet interfaces only"

    def ansible_role(self, node: Node) -> str | None:
        """Return the role of routers with a control socket."""
        return "engine_router"
