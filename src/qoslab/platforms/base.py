"""What every platform answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from qoslab.model.experiment import Generation, Node


@dataclass(frozen=True)
class Problem:
    """Something about a node that does not hold."""

    key: str
    """The node's key that is wrong: `model`, `generation`, `routes`."""
    found: str
    expected: str
    near: tuple[str, ...] = ()
    """Values that could be meant, for near matches."""


class Platform(Protocol):
    """A kind of node: what it is called, how it is reached, what an experiment may say about it."""

    @property
    def name(self) -> str:
        """The word in experiment files."""

    @property
    def is_router(self) -> bool:
        """Whether it forwards packets and takes IOS templates."""

    @property
    def ansible_role(self) -> str | None:
        """The role that pushes its configuration; None where nothing is pushed."""

    def generation(self, node: Node) -> Generation | None:
        """The QoS generation in force; None for what has no QoS policy. `KeyError` for an unknown model."""

    def check(self, node: Node) -> Iterator[Problem]:
        """What is wrong with the node's own keys; interfaces apart."""

    def interfaces(self, node: Node) -> tuple[str, ...] | None:
        """The node's interfaces by full name, or None where any name of the right form will do."""

    def interface_problem(self, node: Node, interface: str, framing: str) -> str | None:
        """What was expected instead of this interface on a link of this framing; None where it is right."""
