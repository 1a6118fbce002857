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
"""Variable of the whole lab with the source of delay, jitter and loss of links, such as `{wan: line}`."""
LINE = "line"
"""Word for the line itself, in place of the name of an inventory node."""
ANSWER_S = 30
"""Default time in seconds that a router may be silent; as in `ansible.cfg`."""
ROLLBACK_MARGIN = Duration.parse("30 min")
"""Margin for configuring, observing, and attempts to reconnect to the router."""


@dataclass(frozen=True, kw_only=True)
class NodeSettings:
    """Settings of a node of any kind."""

    known_hosts: str | None = None
    """A known_hosts file with its host key, relative to the inventory's folder; the user's own by default."""
    interfaces: Mapping[str, str] = field(default_factory=dict)
    """The node's full interface names by those of the experiment; equal names may be omitted."""

    def device(self, interface: str) -> str:
        """Return the node's name of an interface of the experiment."""
        return self.interfaces.get(interface, interface)


@dataclass(frozen=True, kw_only=True)
class RouterSettings(NodeSettings):
    """Settings of a router."""

    reach: Reach = "ssh"
    """Access method to its command line."""
    old_ssh: bool = False
    """SSH also with SHA-1 and CBC, as routers of IOS 12 need it."""
    jump: str | None = None
    """A jump host, `user@host` or `user@host:port`, with login by the user's keys."""
    console: str | None = None
    """Console `host:port` of a terminal server, reached by telnet; for rollback, and in pyATS testbeds."""
    rollback: RollbackMethod | None = None
    """Rollback method if the run is interrupted; default: the first that the router supports.

    `archive`: changes must be confirmed. `eem`: an applet of the event manager restores a copy of the configuration.
    `reload`: the router restarts with its startup configuration, which must equal its running configuration. `none`: no
    rollback.
    """
    rollback_margin: Duration = ROLLBACK_MARGIN
    """Margin of the rollback timer above the traffic time of a cell."""
    show_every: Duration | None = None
    """Longest interval between readings of its counters by show commands during traffic; 0 s reads only before and
    after. The default is 10 s, or 2 s if a value is expected at a counter trigger.
    """
    model: str | None = None
    """Model name in `show version`, if it represents another model of the experiment."""


@dataclass(frozen=True, kw_only=True)
class LinuxRouterSettings(NodeSettings):
    """Settings of a Linux router, which is reached like a host."""


@dataclass(frozen=True, kw_only=True)
class HostSettings(NodeSettings):
    """Settings of a host."""

    isolate: Isolation = "as it is"
    """Method to apply the experiment's settings on the host.

    `namespace` moves the interfaces into a network namespace that ends with the run; `in place` changes the host and
    restores everything; `as it is` changes nothing, and a host that differs is refused. The first two need root.
    """
