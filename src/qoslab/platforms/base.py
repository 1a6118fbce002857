"""Interface of all platforms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from qoslab.ios.model.device import Hardware
    from qoslab.model.experiment import Node
    from qoslab.model.framing import Framing
    from qoslab.model.generation import Generation


@dataclass(frozen=True)
class InterfaceProblem:
    """An error in the definition of a node."""

    key: str
    """The wrong key of the node: `model`, `generation` or `routes`."""
    found: str
    expected: str
    suggestions: tuple[str, ...] = ()
    """Valid values, for suggestions."""


@dataclass(frozen=True)
class AccessMethod:
    """Method to configure, observe and probe a node."""

    name: str
    command_line: bool = False
    """True if the node has an IOS command line: logins by SSH or telnet, show commands, lines of configuration."""
    remote: bool = False
    """True if the node may be another machine; otherwise it is part of a virtual lab on this machine."""
    group: str = ""
    """Group of the nodes in an inventory; empty if it is the group of their Ansible role."""


COMMAND_LINE = AccessMethod("command line", command_line=True, remote=True)
CONTROL_SOCKET = AccessMethod("control socket")
"""The control protocol of a data plane (docs/internals/control-protocol.md)."""
PROGRAMS = AccessMethod("programs", remote=True, group="host")
"""Programs that are started on the node."""
TC_COMMANDS = AccessMethod("tc commands", remote=True, group="linux_router")
"""Commands tc(8), by a server of the control protocol: that of a virtual lab, or of a run on an inventory."""
ACCESS_METHODS = (COMMAND_LINE, CONTROL_SOCKET, PROGRAMS, TC_COMMANDS)
"""Access methods that have a driver, an inventory entry and, except for tc commands, a prober."""

Translation = Callable[[str, str], str]
"""Function from a template and its router to tc commands, one line for each line of the template.

It raises `TcError` for a refused line.
"""
ForwardingKind = Literal["engine", "kernel"]
"""The part that forwards and queues packets in a virtual lab: the program qos-router, or the kernel."""
CounterSource = Literal["data plane", "qdiscs"]
"""Reader of the counters of a router in a virtual lab: the engine's, or one of `READERS` in `qoslab.tc.daemon`."""


class Platform(Protocol):
    """Interface of a kind of node: name, access method and allowed keys in experiments."""

    @property
    def name(self) -> str:
        """Name in experiment files."""

    @property
    def is_router(self) -> bool:
        """True if the platform forwards packets and accepts templates."""

    @property
    def access(self) -> AccessMethod:
        """Method for configuration, observation and probes."""

    @property
    def translation(self) -> Translation | None:
        """Translation of its templates for the kernel that forwards; None for IOS commands and tc commands."""

    @property
    def forwarding(self) -> ForwardingKind | None:
        """The part that forwards its packets in a virtual lab; None for hosts."""

    @property
    def counters(self) -> CounterSource | None:
        """Reader of its counters in a virtual lab; None for hosts."""

    @property
    def has_startup_config(self) -> bool:
        """True if addresses, routes and logins come from a startup configuration; otherwise the lab sets them."""

    @property
    def simulation_alternative(self) -> str:
        """The alternative to suggest if simulations do not support this platform; empty if they do."""

    def ansible_role(self, node: Node) -> str | None:
        """Ansible role that pushes the node's configuration, also its inventory group; None if nothing is pushed."""

    def hardware(self, node: Node, interfaces: tuple[str, ...]) -> Hardware:
        """Return the chassis of a router with these cabled interfaces. Raise `KeyError` for an unknown model."""

    def generation(self, node: Node) -> Generation | None:
        """Return the QoS generation of the node; None without QoS policies. Raise `KeyError` for an unknown model."""

    def check(self, node: Node) -> Iterator[InterfaceProblem]:
        """Yield the errors in the node's keys, except interfaces."""

    def interfaces(self, node: Node) -> tuple[str, ...] | None:
        """Return the node's interfaces by full name; None if any name of the right form is accepted."""

    def interface_problem(self, node: Node, interface: str, framing: Framing) -> str | None:
        """Return the unmet expectation of this interface on a link with this framing; None if it is correct."""
