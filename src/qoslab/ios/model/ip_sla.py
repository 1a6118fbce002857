"""IP SLA configuration: operations, schedules and responder. `None` is IOS's default."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from typing import Literal

Kind = Literal["icmp-echo", "icmp-jitter", "udp-echo", "udp-jitter"]

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

DEFAULT_FREQUENCY_S = 60
DEFAULT_TIMEOUT_MS = 5000
DEFAULT_THRESHOLD_MS = 5000
DEFAULT_PACKETS = 10
DEFAULT_INTERVAL_MS = 20
DEFAULT_LIFE_S = 3600
DEFAULT_HOURS, DEFAULT_BUCKETS, DEFAULT_BUCKET_MS = 2, 1, 20
REQUEST_SIZES: dict[Kind, tuple[int, int, int] | None] = {
    "icmp-echo": (28, 28, 16384),
    "icmp-jitter": None,
    "udp-echo": (4, 16, 1500),
    "udp-jitter": (16, 32, 1500),
}
"""Least, default and greatest request data size, bytes (CISCO-RTTMON-MIB)."""


@dataclass(frozen=True, slots=True)
class Operation:
    """`ip sla N` with the lines below it."""

    number: int
    kind: Kind | None = None
    """Kind of operation; None until its first line is typed."""
    target: IPv4Address | IPv6Address | None = None
    target_port: int | None = None
    source: IPv4Address | IPv6Address | None = None
    """Source address, of the target's IP version."""
    source_interface: str | None = None
    source_port: int | None = None
    control: bool = True
    packets: int | None = None
    interval_ms: int | None = None
    frequency_s: int | None = None
    timeout_ms: int | None = None
    threshold_ms: int | None = None
    request_data_size: int | None = None
    tos: int | None = None
    """Type-of-service byte, or the traffic class of IPv6."""
    tag: str | None = None
    owner: str | None = None
    hours: int | None = None
    buckets: int | None = None
    bucket_ms: int | None = None

    @property
    def is_udp(self) -> bool:
        """True if it runs over UDP."""
        return self.kind in ("udp-echo", "udp-jitter")

    @property
    def is_ipv6(self) -> bool:
        """True if it runs over IPv6."""
        return isinstance(self.target, IPv6Address)

    @property
    def is_jitter(self) -> bool:
        """True if it sends bursts."""
        return self.kind in ("icmp-jitter", "udp-jitter")


@dataclass(frozen=True, slots=True)
class Start:
    """Start time of a scheduled operation."""

    kind: Literal["now", "pending", "after", "at"] = "pending"
    seconds: int = 0
    """`after`: seconds from now; `at`: seconds of the day."""
    date: tuple[int, int] | None = None
    """`at`: month and day."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """`ip sla schedule N`."""

    number: int
    life_s: int | None = DEFAULT_LIFE_S
    """Life in seconds; None is forever."""
    start: Start = Start()
    ageout_s: int = 0
    recurring: bool = False


@dataclass(slots=True)
class IpSla:
    """IP SLA configuration of a router."""

    operations: dict[int, Operation] = field(default_factory=dict)
    schedules: dict[int, Schedule] = field(default_factory=dict)
    responder: bool = False
    responder_ports: tuple[int, ...] = ()
    """Ports of `ip sla responder udp-echo port N`, answered without a control message."""

    def copy(self) -> IpSla:
        """Return a copy that shares nothing mutable."""
        return IpSla(dict(self.operations), dict(self.schedules), self.responder, self.responder_ports)
