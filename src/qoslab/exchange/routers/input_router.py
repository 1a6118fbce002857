"""A router of the input: its configuration, its counters, and its interfaces in the topology."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Interface

from qoslab.exchange.routers.chassis import Chassis
from qoslab.exchange.routers.configured_interfaces import LINES, ConfiguredPort, InterfaceLayout
from qoslab.exchange.routers.show_values import ClassCounters, InterfaceCounters
from qoslab.model.framing import Framing
from qoslab.model.units import Rate
from qoslab.platforms import MODELS
from qoslab.policy.pasted_configuration import Configuration


@dataclass(frozen=True)
class AttachedInterface:
    """An interface of the input, with the interface of the topology that carries its packets."""

    router: str
    port: str
    """Name in the configuration: Dialer1, GigabitEthernet0/0/1.100."""
    carrier: str
    """Name in the topology."""
    address: IPv4Interface
    rate: Rate
    framing: Framing
    beyond: IPv4Address | None = None
    """Address of a neighbour in the subnet, if the configuration has one."""
    ipv6: IPv6Interface | None = None


@dataclass
class InputRouter:
    """A router of the input."""

    name: str
    file: str
    text: str
    """Configuration, with each line at its line number in the file."""
    layout: InterfaceLayout
    configuration: Configuration
    chassis: Chassis
    interfaces: dict[str, InterfaceCounters] = field(default_factory=dict)
    classes: list[ClassCounters] = field(default_factory=list)
    table: dict[IPv4Network, IPv4Address] = field(default_factory=dict)
    attached: list[AttachedInterface] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    """Reasons by interface that is omitted from the topology."""
    notes: list[str] = field(default_factory=list)

    @property
    def is_model(self) -> bool:
        """True if the model has all interfaces that the topology needs."""
        model = MODELS[self.chassis.model]
        hardware = ((each, model.interface(each.carrier)) for each in self.attached)
        fits = all(port is not None and each.framing in port.framings for each, port in hardware)
        return fits and self.chassis.generation in model.generations

    @property
    def missing_model_reason(self) -> str:
        """Sentence about a router whose model lacks interfaces."""
        model = MODELS[self.chassis.model]
        lacking = [each.carrier for each in self.attached if model.interface(each.carrier) is None]
        reason = (
            f"the modelled {model.name} has no {', '.join(lacking)}"
            if lacking
            else f"the modelled {model.name} has no such lines"
        )
        return f"{reason}: platform engine, with the same rules and interface names"

    def find_attached_interface(self, port: str) -> AttachedInterface | None:
        """Return the interface of the topology that carries the packets of an interface of the configuration."""
        return next((each for each in self.attached if each.port == port), None)

    def linkable_interfaces(self) -> Iterator[ConfiguredPort]:
        """Yield the interfaces with an address that can be the end of a link, in order."""
        for port in self.layout.ports.values():
            if not port.is_management and (port.has_network or self._has_only_policy(port)):
                yield port

    def _has_only_policy(self, port: ConfiguredPort) -> bool:
        """Return whether a port has a policy, no IPv4 address, and no other interface that represents it."""
        if not port.policies or port.shutdown or port.kind not in LINES or port.parent is not None:
            return False
        others = (each for each in self.layout.ports.values() if each.has_network)
        member = port.last_match(
            r"(?:channel-group|multilink-group|ppp multilink|dialer|pppoe-client|switchport access)\b"
        )
        return member is None and not any(each.parent == port.name for each in others)
