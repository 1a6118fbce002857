"""Variables `qoslab_…` of an inventory's nodes, in addition to Ansible's, without that prefix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from qoslab.model.units import Duration

Isolation = Literal["namespace", "in place", "as it is"]
ISOLATIONS: tuple[str, ...] = get_args(Isolation)
Reach = Literal["ssh", "telnet"]
REACHES: tuple[str, ...] = get_args(Reach)
RollbackMethod = Literal["archive", "eem", "reload", "none"]
ROLLBACK_METHODS: tuple[str, ...] = get_args(RollbackMethod)
PREFIX = "qoslab_"
EMULATED_BY = PREFIX + "emulated_by"
"""The variable, of the whole lab, that says what makes delay, jitter and loss of links, as `{wan: line}`."""
LINE = "line"
"""Word for the line itself, in place of a node's name in the inventory."""
ANSWER_S = 30
"""Default time that a router may be silent; as in `ansible.cfg`."""
ROLLBACK_MARGIN = Duration.parse("30 min")
"""Margin for configuring, observing, and attempts to reach the router again."""


@dataclass(frozen=True)
class RouterSettings:
    """Settings of a router."""

    known_hosts: str | None = None
    """A known_hosts file with its host key, seen from the inventory's folder; the user's own if absent."""
    reach: Reach = "ssh"
    """Access method to its command line."""
    old_ssh: bool = False
    """SSH with SHA-1 and CBC as well, as routers of IOS 12 want it."""
    jump: str | None = None
    """A jump host, `user@host` or `user@host:port`, logged in to with the user's keys."""
    console: str | None = None
    """Console `host:port` of a terminal server, reached by telnet; for restoring, and in pyATS testbeds."""
    rollback: RollbackMethod | None = None
    """Rollback method if the run is interrupted; default: the first that the router supports.

    `archive`: its changes have to be confirmed. `eem`: an applet of its event manager puts a copy in force. `reload`:
    it restarts with its startup configuration, which must be its running one. `none`: nothing.
    """
    rollback_margin: Duration = ROLLBACK_MARGIN
    """Margin of the rollback timer above the traffic time of a cell."""
    show_every: Duration | None = None
    """Longest interval between readings of its counters by show commands during traffic; 0 s is before and after only.
    Where absent it is each 10 s, or each 2 s where a figure is expected of a moment that a counter says.
    """
    model: str | None = None
    """Model name in `show version`, if it stands for another model than the experiment's."""
    interfaces: Mapping[str, str] = field(default_factory=dict)
    """The router's names of the experiment's interfaces, both in full; equal names may be omitted."""

    def device(self, interface: str) -> str:
        """Return the router's name of an interface of the experiment."""
        return self.interfaces.get(interface, interface)


@dataclass(frozen=True)
class HostSettings:
    """Settings of a host."""

    known_hosts: str | None = None
    """A known_hosts file with its host key, seen from the inventory's folder; the user's own if absent."""
    interfaces: Mapping[str, str] = field(default_factory=dict)
    """The host's names of the experiment's interfaces; equal names may be omitted."""
    isolate: Isolation = "as it is"
    """Method to apply the experiment's settings on the host.

    `namespace` moves the interfaces into a network namespace that ends with the run; `in place` changes the host and
    restores everything; `as it is` changes nothing, and a host that differs is refused. The first two need root.
    """

    def device(self, interface: str) -> str:
        """Return the host's name of an interface of the experiment."""
        return self.interfaces.get(interface, interface)
