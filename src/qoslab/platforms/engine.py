"""Routers without a command line: the queueing engine, configured over its control socket."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from qoslab.model.framing import MEDIUM, Medium
from qoslab.platforms.base import (
    CONTROL_SOCKET,
    AccessMethod,
    CounterSource,
    ForwardingKind,
    InterfaceProblem,
    Translation,
)
from qoslab.platforms.hardware_models import MODELS
from qoslab.platforms.ios import IosPlatform

if TYPE_CHECKING:
    from qoslab.ios.model.device import Hardware
    from qoslab.model.experiment import Node
    from qoslab.model.framing import Framing
    from qoslab.model.generation import Generation

_INTERFACE = re.compile(
    r"((?:|Fast|Gigabit|TwoGigabit|FiveGigabit|TenGigabit|FortyGigabit)Ethernet|(?:TwentyFive|Hundred)GigE|Serial|ATM)"
    r"[0-9]+(/[0-9]+){0,2}"
)

MEDIUM_OF_TYPE: dict[str, Medium] = {"Serial": "serial", "ATM": "atm"}
"""Media of interface types other than Ethernet."""

DEFAULT_GENERATION: Generation = "hqf"


@dataclass(frozen=True)
class EnginePlatform:
    """A router without a command line that accepts IOS templates, compiled to the data plane's configuration.

    It imitates the defaults of a hardware model if the node names one, so that one experiment file serves both
    platforms; interfaces keep their IOS names, since templates use them.
    """

    name: str = "engine"
    is_router: bool = True
    access: AccessMethod = CONTROL_SOCKET
    translation: Translation | None = None
    forwarding: ForwardingKind | None = "engine"
    counters: CounterSource | None = "data plane"
    simulation_alternative: str = ""
    has_startup_config: bool = False
    _ios: IosPlatform = field(default_factory=IosPlatform, repr=False)

    def ansible_role(self, node: Node) -> str | None:
        """Return the Ansible role, the same for every model."""
        return "engine_router"

    def hardware(self, node: Node, interfaces: tuple[str, ...]) -> Hardware:
        """Return the chassis of the model without its processor; without a model, a chassis with these interfaces."""
        from qoslab.ios.model.device import Hardware  # slow to import, and checking an experiment needs none of it

        if node.model is not None:
            return replace(self._ios.hardware(node, interfaces), process_ns=None)
        return Hardware("Linux", interfaces, generation=node.generation or DEFAULT_GENERATION)

    def generation(self, node: Node) -> Generation | None:
        """Return the generation of the node, else that of its model, else the later one."""
        if node.model is not None:
            return self._ios.generation(node)
        return node.generation or DEFAULT_GENERATION

    def check(self, node: Node) -> Iterator[InterfaceProblem]:
        """Yield a problem for an unknown model; a model is optional."""
        if node.model is not None:
            yield from self._ios.check(node)
            if node.model in MODELS and MODELS[node.model].family == "switch":
                # A switch needs a switch data plane from the start; that of this platform starts as a router.
                yield InterfaceProblem(
                    "model", f'"{node.model}" on an engine router', "a router's model, or platform: ios"
                )

    def interfaces(self, node: Node) -> tuple[str, ...] | None:
        """Return the interfaces of the model; None (any) without a model."""
        return self._ios.interfaces(node)

    def interface_problem(self, node: Node, interface: str, framing: Framing) -> str | None:
        """Return a problem by the model; without one, accept any IOS name with a type for the link's framing."""
        if node.model is not None:
            return self._ios.interface_problem(node, interface, framing)
        match = _INTERFACE.fullmatch(interface)
        if match is None:
            return "an IOS interface name in full, such as FastEthernet0/1 or Serial0/1/0"
        if MEDIUM_OF_TYPE.get(match[1], "ethernet") != MEDIUM[framing]:
            return f"an interface with {framing} framing"
        return None
