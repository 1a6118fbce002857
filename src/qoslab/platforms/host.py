"""End systems: network namespaces in the virtual lab, Linux machines otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from qoslab.platforms.base import PROGRAMS, AccessMethod, CounterSource, ForwardingKind, Translation
from qoslab.platforms.linux_machine import LinuxMachine

if TYPE_CHECKING:
    from qoslab.model.experiment import Node


@dataclass(frozen=True)
class HostPlatform(LinuxMachine):
    """Sends and receives traffic; forwards nothing."""

    name: str = "host"
    is_router: bool = False
    access: AccessMethod = PROGRAMS
    translation: Translation | None = None
    forwarding: ForwardingKind | None = None
    counters: CounterSource | None = None
    simulation_alternative: str = ""
    has_startup_config: bool = False
    node_kind: ClassVar[str] = "a host"
    kinds_with_model_keys: ClassVar[str] = "routers only"
    ethernet_expectation: ClassVar[str] = "a router: hosts have Ethernet interfaces only"

    def ansible_role(self, node: Node) -> str | None:
        """Return None: no configuration is pushed to a host."""
        return None
