"""Cisco IOS routers and switches; `hardware_models` has their models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qoslab.platforms.base import (
    COMMAND_LINE,
    AccessMethod,
    CounterSource,
    ForwardingKind,
    InterfaceProblem,
    Translation,
)
from qoslab.platforms.hardware_models import MODELS

if TYPE_CHECKING:
    from qoslab.ios.model.device import Hardware
    from qoslab.model.experiment import Node
    from qoslab.model.framing import Framing
    from qoslab.model.generation import Generation


MAX_LISTED_INTERFACES = 8
"""Greatest number of interfaces that a message lists individually."""


@dataclass(frozen=True)
class IosPlatform:
    """A router that is configured over its IOS command line."""

    name: str = "ios"
    is_router: bool = True
    access: AccessMethod = COMMAND_LINE
    translation: Translation | None = None
    forwarding: ForwardingKind | None = "engine"
    counters: CounterSource | None = "data plane"
    simulation_alternative: str = ""
    has_startup_config: bool = True

    def ansible_role(self, node: Node) -> str | None:
        """Return the Ansible role; Catalyst switches have a separate one."""
        return "ios_switch" if MODELS[node.model or ""].family == "switch" else "ios"

    def hardware(self, node: Node, interfaces: tuple[str, ...]) -> Hardware:
        """Return the chassis of the model."""
        return MODELS[node.model or ""].hardware(node.generation)

    def generation(self, node: Node) -> Generation | None:
        """Return the generation of the node, or by default that of its model."""
        model = MODELS[node.model or ""]
        return None if model.default_generation is None else node.generation or model.default_generation

    def check(self, node: Node) -> Iterator[InterfaceProblem]:
        """Yield a problem unless the model is known."""
        if node.model is None:
            yield InterfaceProblem("model", "no model", f"one of {_model_names()}")
        elif node.model not in MODELS:
            yield InterfaceProblem("model", f'"{node.model}"', f"one of {_model_names()}", tuple(MODELS))
        elif node.generation is not None and MODELS[node.model].default_generation is None:
            yield InterfaceProblem("generation", f'"{node.generation}" on a {node.model}', "this key only on routers")
        elif node.generation not in (None, *MODELS[node.model].generations):
            known = " or ".join(f'"{each}"' for each in MODELS[node.model].generations)
            yield InterfaceProblem("generation", f'"{node.generation}" on a {node.model}', f"{known}, or no generation")

    def interfaces(self, node: Node) -> tuple[str, ...] | None:
        """Return the interfaces of the chassis."""
        model = MODELS.get(node.model or "")
        return None if model is None else tuple(interface.name for interface in model.interfaces)

    def interface_problem(self, node: Node, interface: str, framing: Framing) -> str | None:
        """Return a problem unless the model has the interface and the interface supports the link's framing."""
        model = MODELS.get(node.model or "")
        if model is None:
            return None  # the model itself is reported
        hardware = model.interface(interface)
        if hardware is None:
            names = [each.name for each in model.interfaces]
            known = f"{names[0]} to {names[-1]}" if len(names) > MAX_LISTED_INTERFACES else f"one of {', '.join(names)}"
            return f"{known}, which a {model.name} has"
        if framing not in hardware.framings:
            known = _format_framings(hardware.framings)
            return f"another interface or framing: {interface} supports {known}, not {framing}"
        return None


def _format_framings(framings: tuple[str, ...]) -> str:
    return " and ".join(filter(None, (", ".join(framings[:-1]), framings[-1])))


def _model_names() -> str:
    return ", ".join(f'"{name}"' for name in MODELS)
