"""What an inventory says of nodes besides how Ansible reaches them: variables `qoslab_…`, without that prefix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from qoslab.units import Duration

Isolation = Literal["namespace", "in place", "as it is"]
ISOLATIONS: tuple[str, ...] = get_args(Isolation)
Reach = Literal["ssh", "telnet"]
REACHES: tuple[str, ...] = get_args(Reach)
DeadManChoice = Literal["archive", "eem", "reload", "none"]
DEAD_MAN_CHOICES: tuple[str, ...] = get_args(DeadManChoice)
PREFIX = "qoslab_"
EMULATED_BY = PREFIX + "emulated_by"
"""The variable, of the whole lab, that says what makes delay, jitter and loss of links, as `{wan: line}`."""
LINE = "line"
"""In it: the line itself; else the name of a node in the inventory."""
ANSWER_S = 30
"""How long a router may be silent of which the inventory says nothing else; as in `ansible.cfg`."""
DEAD_MAN_AFTER = Duration.parse("30 min")
"""For configuring, observing, and attempts to reach it again."""


@dataclass(frozen=True)
class RouterSettings:
    """Of a router."""

    known_hosts: str | None = None
    """A known_hosts file with its host key, seen from the inventory's folder; the user's own where absent."""
    reach: Reach = "ssh"
    """How its command line is reached."""
    old_ssh: bool = False
    """SSH with SHA-1 and CBC as well, as routers of IOS 12 want it."""
    jump: str | None = None
    """A jump host, `user@host` or `user@host:port`, logged in to with the user's keys."""
    console: str | None = None
    """Its console: `host:port` of a terminal server, reached by telnet; for restoring, and in pyATS testbeds."""
    dead_man: DeadManChoice | None = None
    """What takes its configuration back if the run is cut off; what it can where absent.

    `archive`: its changes have to be confirmed. `eem`: an applet of its event manager puts a copy in force. `reload`:
    it restarts with its startup configuration, which must be its running one. `none`: nothing.
    """
    dead_man_after: Duration = DEAD_MAN_AFTER
    """How much longer than its traffic a cell may take until that happens."""
    show_every: Duration | None = None
    """How often its counters are read by show commands while traffic runs, at least; 0 s is before and after only.
    Where absent it is each 10 s, or each 2 s where a figure is expected of a moment that a counter says."""
    model: str | None = None
    """What `show version` calls it, where it stands for another model than the experiment's."""
    interfaces: Mapping[str, str] = field(default_factory=dict)
    """What the router calls the experiment's interfaces, both in full; those of the same name may be left out."""

    def device(self, interface: str) -> str:
        """What the router calls an interface of the experiment."""
        return self.interfaces.get(interface, interface)


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
