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


Reach = Literal["command line", "control socket", "programs"]
"""Access to a node: an IOS command line, the control socket of its data plane, or programs on it."""


class Platform(Protocol):
    """A kind of node: what it is called, how it is reached, what an experiment may say about it."""

    @property
    def name(self) -> str:
        """The word in experiment files."""

    @property
    def is_router(self) -> bool:
        """True if the platform forwards packets and accepts IOS templates."""

    @property
    def reached_by(self) -> Reach:
        """Access for configuration, observation and probes."""

    @property
    def has_startup_config(self) -> bool:
        """True if addresses, routes and logins come from a startup configuration; otherwise the lab sets them."""

    def ansible_role(self, node: Node) -> str | None:
        """The role that pushes its configuration, also its inventory group; None where nothing is pushed."""

    def hardware(self, node: Node, interfaces: tuple[str, ...]) -> Hardware:
        """The chassis of a router with these cabled interfaces. `KeyError` for an unknown model."""

    def generation(self, node: Node) -> Generation | None:
        """The QoS generation in force; None for what has no QoS policy. `KeyError` for an unknown model."""

    def check(self, node: Node) -> Iterator[Problem]:
        """Yield the problems of the node's keys, except interfaces."""

    def interfaces(self, node: Node) -> tuple[str, ...] | None:
        """The node's interfaces by full name, or None where any name of the right form will do."""

    def interface_problem(self, node: Node, interface: str, framing: Framing) -> str | None:
        """Return the expectation that this interface on a link of this framing does not meet; None if it is correct."""
