"""What an inventory says of nodes besides how Ansible reaches them: variables `qoslab_…`, without that prefix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

Isolation = Literal["namespace", "in place", "as it is"]
ISOLATIONS: tuple[str, ...] = get_args(Isolation)
PREFIX = "qoslab_"


@dataclass(frozen=True)
class RouterSettings:
    """Of a router."""

    known_hosts: str | None = None
    """A known_hosts file with its host key, seen from the inventory's folder; the user's own where absent."""


@dataclass(frozen=True)
class HostSettings:
    """Of a host."""

    known_hosts: str | None = None
    """A known_hosts file with its host key, seen from the inventory's folder; the user's own where absent."""
    interfaces: Mapping[str, str] = field(default_factory=dict)
    """What the host calls the experiment's interfaces; those that it calls the same may be left out."""
    isolate: Isolation = "as it is"
    """How the experiment's settings come to be on the host.

    `namespace` moves the interfaces into a network namespace that ends with the run; `in place` changes the host and
    puts everything back; `as it is` changes nothing, and a host that differs is refused. The first two need root.
    """

    def device(self, interface: str) -> str:
        """What the host calls an interface of the experiment."""
        return self.interfaces.get(interface, interface)
