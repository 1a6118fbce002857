"""Common part of platforms that are Linux machines: no hardware model, no QoS generation, Linux interface names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from qoslab.platforms.base import InterfaceProblem

if TYPE_CHECKING:
    from qoslab.ios.model.device import Hardware
    from qoslab.model.experiment import Node
    from qoslab.model.framing import Framing
    from qoslab.model.generation import Generation

_INTERFACE = re.compile(r"[a-z][a-z0-9]{0,14}")


class LinuxMachine:
    """A node with any number of Linux network interfaces."""

    node_kind: ClassVar[str]
    """Name of this kind of node in messages about its keys."""
    kinds_with_model_keys: ClassVar[str]
    """Name of the kinds of nodes that have a model and a generation, for messages."""
    ethernet_expectation: ClassVar[str]
    """Expectation that an interface on a link of another framing does not meet."""

    def hardware(self, node: Node, interfaces: tuple[str, ...]) -> Hardware:
        """Raise `KeyError`: a Linux machine is no IOS router model."""
        raise KeyError(node.model)

    def generation(self, node: Node) -> Generation | None:
        """Return None: only IOS has generations."""
        return None

    def check(self, node: Node) -> Iterator[InterfaceProblem]:
        """Yield a problem for a hardware model and for a QoS generation."""
        for key, value in (("model", node.model), ("generation", node.generation)):
            if value is not None:
                yield InterfaceProblem(
                    key, f'"{value}" on {self.node_kind}', f"this key on {self.kinds_with_model_keys}"
                )

    def interfaces(self, node: Node) -> tuple[str, ...] | None:
        """Return None: any interface is accepted."""
        return None

    def interface_problem(self, node: Node, interface: str, framing: Framing) -> str | None:
        """Return a problem unless the interface has a Linux name and is Ethernet."""
        if _INTERFACE.fullmatch(interface) is None:
            return "a Linux interface name such as eth0"
        return None if framing == "ethernet" else self.ethernet_expectation
