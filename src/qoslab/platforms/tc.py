"""Linux routers: their kernel forwards and queues, configured by tc(8) commands or an IOS policy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from qoslab.ios.model.ios_names import interface_name
from qoslab.platforms.base import (
    TC_COMMANDS,
    AccessMethod,
    CounterSource,
    ForwardingKind,
    InterfaceProblem,
    Translation,
)
from qoslab.platforms.engine import DEFAULT_GENERATION
from qoslab.platforms.linux_machine import LinuxMachine

if TYPE_CHECKING:
    from qoslab.ios.model.device import Hardware
    from qoslab.model.experiment import Node
    from qoslab.model.generation import Generation


@dataclass(frozen=True)
class TcPlatform(LinuxMachine):
    """A Linux router: qdiscs, classes and filters of the kernel, in the lab's namespaces, in user-mode Linux,
    or on a Linux machine of an inventory.
    """

    name: str = "tc"
    is_router: bool = True
    access: AccessMethod = TC_COMMANDS
    translation: Translation | None = None
    forwarding: ForwardingKind | None = "kernel"
    counters: CounterSource | None = "qdiscs"
    simulation_alternative: str = "use --lab virtual for the kernel's queueing, or platform: engine for a simulation"
    has_startup_config: bool = False
    node_kind: ClassVar[str] = "a router of platform tc"
    kinds_with_model_keys: ClassVar[str] = "routers with an IOS command line or the engine"
    ethernet_expectation: ClassVar[str] = "ethernet: a tc router has Ethernet interfaces only"

    def ansible_role(self, node: Node) -> str | None:
        """Return the role of routers with a control socket, which this machine has for the router."""
        return "engine_router"

    def hardware(self, node: Node, interfaces: tuple[str, ...]) -> Hardware:
        """Return a chassis with the IOS names of these interfaces, for IOS policies; other names are unchanged."""
        from qoslab.ios.model.device import Hardware  # slow to import, and checking an experiment needs none of it

        names = dict.fromkeys(interface_name(each) or each for each in interfaces)
        return Hardware("Linux", tuple(names), generation=node.generation or DEFAULT_GENERATION)

    def generation(self, node: Node) -> Generation | None:
        """Return the generation of the node's IOS policies: the configured one, or the later one."""
        return node.generation or DEFAULT_GENERATION

    def check(self, node: Node) -> Iterator[InterfaceProblem]:
        """Yield a problem for a hardware model."""
        if node.model is not None:
            yield InterfaceProblem(
                "model", f'"{node.model}" on {self.node_kind}', f"this key on {self.kinds_with_model_keys}"
            )
