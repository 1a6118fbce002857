"""What was seen of the nodes of an experiment before its first packet: values, under the devices' own names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from qoslab.model.experiment import Experiment, Link, LinkEnd
from qoslab.model.generation import Generation
from qoslab.model.inventory import HostSettings, RouterSettings
from qoslab.platforms import platform_of
from qoslab.run.door.countdowns import Kept
from qoslab.units import Duration


@dataclass(frozen=True)
class Card:
    """An interface of a host."""

    up: bool
    carrier: bool
    mac: str
    """As aa:bb:cc:dd:ee:ff; other texts of what is no Ethernet."""
    addresses: tuple[str, ...]
    """With prefix lengths."""
    errors: int
    """Frames, received and sent, since it is up."""
    driver: str = ""
    mbps: int | None = None
    duplex: str | None = None


@dataclass(frozen=True)
class RoundTrips:
    """Requests over a link at rest, one after the other, and what came back."""

    asked: int
    took_ms: tuple[float, ...]
    burst: int = 0
    """Further requests, without a wait between them."""
    answered: int = 0
    """Of these."""
    summed: bool = False
    """True if of the times none is known but the least, the mean and the most, as of a router's."""

    @property
    def median_ms(self) -> float:
        """Of those that were answered; 0 without one."""
        return median(self.took_ms) if self.took_ms else 0.0

    @property
    def sent(self) -> int:
        """All requests."""
        return self.asked + self.burst

    @property
    def lost(self) -> int:
        """Requests without an answer."""
        return self.sent - len(self.took_ms) - self.answered


@dataclass(frozen=True)
class OnCable:
    """Who answers on an interface of a host."""

    macs: Mapping[str, tuple[str, ...]]
    """Hardware addresses by address."""
    round_trips: RoundTrips | None
    """To the far end; None where it does not answer."""
    why: str = ""
    """Why nobody could be asked; empty where somebody could."""


@dataclass(frozen=True)
class HostFacts:
    """Of a host."""

    root: bool
    machine: str
    """What no other machine has; empty where nothing tells."""
    cards: Mapping[str, Card]
    routes: Mapping[str, tuple[str, str]]
    """By which interface it would send, and the prefix that says so (`default`), by far address."""
    management: str
    """The interface of the connection to it; empty where nobody knows."""
    missing: tuple[str, ...]
    """Programs that the experiment needs there, and that are not."""
    congestion: frozenset[str]
    """Congestion control algorithms of its kernel."""
    free: int
    """Bytes on the disk where captures go."""
    clock_ahead_ms: float
    """Against this machine's."""
    clock_error_ms: float
    cables: Mapping[str, OnCable]
    """By the experiment's interface."""
    unfit: Mapping[str, str] = field(default_factory=dict)
    """Why those of our own programs that the experiment sends there cannot be run, by name; without those that can."""
    differences: tuple[tuple[str, str, str], ...] = ()
    """Of a host that is to stay as it is: what is otherwise than in a cell, what it is, what is wanted; that is empty
    where there is no route."""
    no_capture: str = ""
    """Why its user may not capture; empty where he may, or where no capture is wanted there."""


@dataclass(frozen=True)
class Port:
    """An interface of a router."""

    shut_down: bool
    line: bool
    """True if line and protocol are up."""
    mac: str
    """As aa:bb:cc:dd:ee:ff; empty on serial lines."""
    addresses: tuple[str, ...]
    mbps: float | None
    duplex: str | None
    errors: Mapping[str, int]
    """What its counters of damage say, where that is above 0."""
    clock_rate_bps: int | None = None
    """Of a serial port that gives the clock."""


@dataclass(frozen=True)
class RouterFacts:
    """Of a router with a command line."""

    software: str
    """The first line of `show version`."""
    ios: bool
    release: str
    """As 12.4(15)T14; empty where nothing says it."""
    model: str
    """As `show version` has it: 3725, WS-C3750G-24TS."""
    ports: Mapping[str, Port]
    arp: Mapping[str, tuple[str, str]]
    """Hardware address and interface by address."""
    learnt: Mapping[str, str]
    """Port by hardware address, of a switch."""
    neighbours: tuple[tuple[str, str, str], ...]
    """What CDP or LLDP tells: own interface, the other's name, the other's interface."""
    pings: Mapping[str, RoundTrips]
    """By address of the far end."""
    address: str
    """Where its command line is reached."""
    board: str = ""
    """Its serial number, as `show version` has it."""
    running: str = ""
    """Its configuration, as it prints it."""
    kept: Kept | None = None
    """What its ways back need; None where it is not known."""
    refused: str = ""
    """What it said to the command that shows its configuration, where it may not be seen."""
    unread: str = ""
    """Why what it says of its interfaces cannot be read; empty where it can."""


@dataclass(frozen=True)
class Facts:
    """All of them, and what they are to be compared with."""

    experiment: Experiment
    host_settings: Mapping[str, HostSettings]
    router_settings: Mapping[str, RouterSettings]
    hosts: Mapping[str, HostFacts]
    routers: Mapping[str, RouterFacts]
    asked: Mapping[str, Sequence[str]]
    """What is to be put in force on each router, with the experiment's names of interfaces."""
    longest: Duration
    """The traffic time of the longest cell."""

    def device(self, end: LinkEnd) -> str:
        """What the node itself calls the interface of an end."""
        settings = self.host_settings.get(end.node) or self.router_settings[end.node]
        return settings.device(end.interface)

    def port(self, end: LinkEnd) -> Port | None:
        """The router's interface at an end; None of hosts, and where it lacks it."""
        router = self.routers.get(end.node)
        return None if router is None else router.ports.get(self.device(end))

    def card(self, end: LinkEnd) -> Card | None:
        """The host's interface at an end; None of routers, and where it lacks it."""
        host = self.hosts.get(end.node)
        return None if host is None else host.cards.get(self.device(end))

    def mac(self, end: LinkEnd) -> str:
        """The hardware address at an end; empty where nobody knows."""
        there = self.port(end) or self.card(end)
        return "" if there is None else there.mac

    def owner(self, mac: str) -> str:
        """Return whose hardware address it is: node and interface in words; empty where it is none of the lab's."""
        places = [
            *((name, device, card.mac) for name, host in self.hosts.items() for device, card in host.cards.items()),
            *(
                (name, device, port.mac)
                for name, router in self.routers.items()
                for device, port in router.ports.items()
            ),
        ]
        return " and ".join(f"{device} of {name}" for name, device, address in places if address == mac)

    def ends(self) -> Iterator[tuple[Link, LinkEnd, LinkEnd]]:
        """Every link from both of its ends: the link, the near end, the far end."""
        for link in self.experiment.topology.links:
            yield link, *link.ends
            yield link, *link.ends[::-1]

    def generation(self, node: str) -> Generation | None:
        """The QoS generation that the experiment expects of a router."""
        found = self.experiment.topology.nodes[node]
        return platform_of(found).generation(found)


@dataclass(frozen=True)
class Found:
    """One thing that a look has found, for people: where it is, what was found and expected, what to do."""

    where: str
    """A node, or a link."""
    message: str
    """`found …, expected …`."""
    hint: str
    """What to do."""
    grave: bool = True
    """True if no run begins with it; what is not is noted."""

    def __str__(self) -> str:
        return f"{self.where}: {self.message}; {self.hint}"


def plain_mac(text: object) -> str:
    """aa:bb:cc:dd:ee:ff of a hardware address in whatever form; empty where it is none."""
    digits = "".join(each for each in str(text or "").lower() if each in "0123456789abcdef")
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2)) if len(digits) == 12 else ""


def cards_of(told: Mapping[str, Mapping[str, Any]]) -> dict[str, Card]:
    """The interfaces that an agent has told of."""
    return {
        name: Card(**{**card, "addresses": tuple(card["addresses"]), "mac": plain_mac(card["mac"]) or card["mac"]})
        for name, card in told.items()
    }
