"""Interface of all platforms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from qoslab.ios.model.device import Hardware
    from qoslab.model.experiment import Node
    from qoslab.model.framing import Framing
    from qoslab.model.generation import Generation


@dataclass(frozen=True)
class Problem:
    """Something about a node that does not hold."""

    key: str
    """The node's key that is wrong: `model`, `generation`, `routes`."""
    found: str
    expected: str
    near: tuple[str, ...] = ()
    """Values that could be meant, for near matches."""


@dataclass(frozen=True)
class AccessMethod:
    """Method to configure, observe and probe a node."""

    name: str
    command_line: bool = False
    """True if the node has an IOS command line: logins by SSH or telnet, show commands, lines of configuration."""
    remote: bool = False
    """True if the node may be another machine; otherwise it is part of a virtual lab on this one."""


COMMAND_LINE = AccessMethod("command line", command_line=True, remote=True)
CONTROL_SOCKET = AccessMethod("control socket")
"""The control protocol of a data plane (docs/internals/control-protocol.md)."""
PROGRAMS = AccessMethod("programs", remote=True)
"""Programs that are started on the node."""
ACCESS_METHODS = (COMMAND_LINE, CONTROL_SOCKET, PROGRAMS)
"""Access methods that have a driver, an inventory entry and a prober."""

Language = Literal["ios", "tc"]
"""Language of a platform's templates: IOS commands, which are compiled for the engine, or tc(8) commands.

The checker and the compiler of a language are found by it: `schema.devices`, `run.devices.drivers`.
"""
Forwarding = Literal["engine", "kernel"]
"""The part that forwards and queues packets in a virtual lab: the program qos-router, or the kernel."""
CounterSource = Literal["data plane", "qdiscs"]
"""Reader of the counters of a router in a virtual lab: the engine's, or that of the kernel's qdiscs."""


class Platform(Protocol):
    """A kind of node: its name, its access method, and the keys that an experiment may set."""

    @property
    def name(self) -> str:
        """The word in experiment files."""

    @property
    def is_router(self) -> bool:
        """True if the platform forwards packets and accepts templates."""

    @property
    def access(self) -> AccessMethod:
        """Method for configuration, observation and probes."""

    @property
    def language(self) -> Language | None:
        """Language of its templates; None for hosts, which have none."""

    @property
    def forwarding(self) -> Forwarding | None:
        """The part that forwards its packets in a virtual lab; None for hosts."""

    @property
    def counters(self) -> CounterSource | None:
        """Reader of its counters in a virtual lab; None for hosts."""

    @property
    def has_startup_config(self) -> bool:
        """True if addresses, routes and logins come from a startup configuration; otherwise the lab sets them."""

    @property
    def unsimulated(self) -> str:
        """The alternative to name in a simulation that cannot have this platform; empty if it can."""

    def ansible_role(self, node: Node) -> str | None:
        """The role that pushes its configuration, also its inventory group; None if nothing is pushed."""

    def hardware(self, node: Node, interfaces: tuple[str, ...]) -> Hardware:
        """The chassis of a router with these cabled interfaces. `KeyError` for an unknown model."""

    def generation(self, node: Node) -> Generation | None:
        """The QoS generation in force; None for what has no QoS policy. `KeyError` for an unknown model."""

    def check(self, node: Node) -> Iterator[Problem]:
        """Yield the problems of the node's keys, except interfaces."""

    def interfaces(self, node: Node) -> tuple[str, ...] | None:
        """The node's interfaces by full name, or None if any name of the right form will do."""

    def interface_problem(self, node: Node, interface: str, framing: Framing) -> str | None:
        """Return the expectation that this interface on a link of this framing does not meet; None if it is correct."""
