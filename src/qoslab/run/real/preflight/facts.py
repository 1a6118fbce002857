"""Facts of an experiment's nodes before its first packet: values, under the devices' own names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from qoslab.model.experiment import Experiment, Link, LinkEnd
from qoslab.model.generation import Generation
from qoslab.model.inventory import HostSettings, RouterSettings
from qoslab.model.units import Duration
from qoslab.platforms import node_platform
from qoslab.run.real.access.rollback_methods import RollbackState


@dataclass(frozen=True)
class HostNic:
    """An interface of a host."""

    up: bool
    carrier: bool
    mac: str
    """MAC address as aa:bb:cc:dd:ee:ff; other texts if not Ethernet."""
    addresses: tuple[str, ...]
    """Addresses with prefix lengths."""
    errors: int
    """Frame errors, received and sent, since the interface came up."""
    driver: str = ""
    mbps: int | None = None
    duplex: str | None = None


@dataclass(frozen=True)
class RoundTrips:
    """Round trips over an idle link, one request after the other."""

    answer_requests: int
    took_ms: tuple[float, ...]
    burst: int = 0
    """Number of further requests, sent without waiting."""
    answers: int = 0
    """Number of answers to these."""
    summed: bool = False
    """True if only least, mean and greatest time are known, as for a router."""

    @property
    def median_ms(self) -> float:
        """Median of the round-trip times; 0 without answers."""
        return median(self.took_ms) if self.took_ms else 0.0

    @property
    def sent_count(self) -> int:
        """Number of all requests."""
        return self.answer_requests + self.burst

    @property
    def lost_count(self) -> int:
        """Number of requests without an answer."""
        return self.sent_count - len(self.took_ms) - self.answers


@dataclass(frozen=True)
class CableAnswers:
    """Answers on an interface of a host."""

    macs: Mapping[str, tuple[str, ...]]
    """Hardware addresses by address."""
    round_trips: RoundTrips | None
    """Round trips to the far end; None without an answer."""
    why: str = ""
    """Reason why no request was possible; empty otherwise."""


@dataclass(frozen=True)
class KernelFacts:
    """Facts of the kernel of a Linux router."""

    release: str = ""
    """Release of the kernel; empty if it was not examined."""
    qdiscs: tuple[str, ...] = ()
    """Kinds of its qdiscs."""
    forwards: bool = True
    obstacles: tuple[tuple[str, str], ...] = ()
    """Reasons why the experiment's configurations cannot be used, each with a remedy."""


@dataclass(frozen=True)
class HostFacts:
    """Facts of a host, or of a Linux router."""

    root: bool
    machine: str
    """Unique identity of the machine; empty if unknown."""
    cards: Mapping[str, HostNic]
    routes: Mapping[str, tuple[str, str]]
    """Output interface and matching prefix (`default`), by far address."""
    management: str
    """Interface of the connection to it; empty if unknown."""
    missing: tuple[str, ...]
    """Missing programs that the experiment needs there."""
    congestion: frozenset[str]
    """Congestion control algorithms of its kernel."""
    free: int
    """Free bytes on the disk for captures."""
    clock_ahead_ms: float
    """Offset from this machine's clock."""
    clock_error_ms: float
    cables: Mapping[str, CableAnswers]
    """Answers by the experiment's interface."""
    unfit: Mapping[str, str] = field(default_factory=dict)
    """Reasons why qoslab's programs cannot run there, by name; without usable programs."""
    differences: tuple[tuple[str, str, str], ...] = ()
    """Differing settings of a host `as it is`: setting, actual value, wanted value (empty without a route)."""
    no_capture: str = ""
    """Reason why its user may not capture; empty if allowed or not needed."""
    kernel: KernelFacts | None = None
    """Facts of a Linux router; None for a host."""


@dataclass(frozen=True)
class Port:
    """An interface of a router."""

    shut_down: bool
    line: bool
    """True if the line protocol is up."""
    mac: str
    """MAC address as aa:bb:cc:dd:ee:ff; empty on serial lines."""
    addresses: tuple[str, ...]
    mbps: float | None
    duplex: str | None
    errors: Mapping[str, int]
    """Error counters above 0."""
    clock_rate_bps: int | None = None
    """Clock rate of a serial port that provides the clock."""


@dataclass(frozen=True)
class RouterFacts:
    """Facts of a router with a command line."""

    software: str
    """First line of `show version`."""
    ios: bool
    release: str
    """Release, such as 12.4(15)T14; empty if unknown."""
    model: str
    """Model in `show version`, such as 3725 or WS-C3750G-24TS."""
    ports: Mapping[str, Port]
    arp: Mapping[str, tuple[str, str]]
    """Hardware address and interface by address."""
    learnt: Mapping[str, str]
    """Port by hardware address, of a switch."""
    neighbours: tuple[tuple[str, str, str], ...]
    """Neighbours by CDP or LLDP: own interface, the other's name, the other's interface."""
    pings: Mapping[str, RoundTrips]
    """Pings by address of the far end."""
    address: str
    """Address of the command line."""
    board: str = ""
    """Serial number in `show version`."""
    running: str = ""
    """Running configuration as printed."""
    rollback_state: RollbackState | None = None
    """Data for its rollback methods; None if unknown."""
    refused: str = ""
    """Refusal of the command that shows its configuration."""
    unread: str = ""
    """Reason why its interface output cannot be read; empty otherwise."""


@dataclass(frozen=True)
class PreflightFacts:
    """Facts of all nodes, and the requirements to compare them with."""

    experiment: Experiment
    host_settings: Mapping[str, HostSettings]
    router_settings: Mapping[str, RouterSettings]
    hosts: Mapping[str, HostFacts]
    """Hosts and Linux routers."""
    routers: Mapping[str, RouterFacts]
    asked: Mapping[str, Sequence[str]]
    """Configurations for each router, with the experiment's names of interfaces."""
    longest: Duration
    """Traffic time of the longest cell."""

    def device(self, end: LinkEnd) -> str:
        """Return the node's own name for the interface of an end."""
        settings = self.host_settings.get(end.node) or self.router_settings[end.node]
        return settings.device(end.interface)

    def router_interface(self, end: LinkEnd) -> Port | None:
        """Return the router's interface at an end; None for hosts, and if the router lacks it."""
        router = self.routers.get(end.node)
        return None if router is None else router.ports.get(self.device(end))

    def host_nic(self, end: LinkEnd) -> HostNic | None:
        """Return the host's interface at an end; None for routers, and if the host lacks it."""
        host = self.hosts.get(end.node)
        return None if host is None else host.cards.get(self.device(end))

    def end_mac(self, end: LinkEnd) -> str:
        """Return the hardware address at an end; empty if unknown."""
        there = self.router_interface(end) or self.host_nic(end)
        return "" if there is None else there.mac

    def mac_owner(self, mac: str) -> str:
        """Return the owner of a hardware address, node and interface in words; empty if it is not in the lab."""
        places = [
            *((name, device, card.mac) for name, host in self.hosts.items() for device, card in host.cards.items()),
            *(
                (name, device, port.mac)
                for name, router in self.routers.items()
                for device, port in router.ports.items()
            ),
        ]
        return " and ".join(f"{device} of {name}" for name, device, address in places if address == mac)

    def link_ends(self) -> Iterator[tuple[Link, LinkEnd, LinkEnd]]:
        """Yield every link from both of its ends: the link, the near end, the far end."""
        for link in self.experiment.topology.links:
            yield link, *link.ends
            yield link, *link.ends[::-1]

    def expected_generation(self, node: str) -> Generation | None:
        """Return the QoS generation that the experiment expects of a router."""
        found = self.experiment.topology.nodes[node]
        return node_platform(found).generation(found)


@dataclass(frozen=True)
class PreflightFinding:
    """Finding of a check, for people: place, found and expected value, remedy."""

    where: str
    """Name of a node or a link."""
    message: str
    """`found …, expected …`."""
    hint: str
    """Remedy."""
    is_error: bool = True
    """True if it prevents a run; other findings are noted."""

    def __str__(self) -> str:
        return f"{self.where}: {self.message}; {self.hint}"


def normalise_mac(text: object) -> str:
    """Return a hardware address in any form as aa:bb:cc:dd:ee:ff; empty if it is invalid."""
    digits = "".join(each for each in str(text or "").lower() if each in "0123456789abcdef")
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2)) if len(digits) == 12 else ""


def reported_nics(listed: Mapping[str, Mapping[str, Any]]) -> dict[str, HostNic]:
    """Return the interfaces reported by an agent."""
    return {
        name: HostNic(
            **{**card, "addresses": tuple(card["addresses"]), "mac": normalise_mac(card["mac"]) or card["mac"]}
        )
        for name, card in listed.items()
    }
