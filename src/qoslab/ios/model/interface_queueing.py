"""Queueing of an interface without a policy-map: `traffic-shape`, and the lists of `priority-group` and
`custom-queue-list`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PRIORITIES = ("high", "medium", "normal", "low")
"""The queues of a priority list, by number."""


@dataclass(frozen=True, slots=True)
class Shaper:
    """`traffic-shape`: rate in b/s, bursts in bits, buffers in packets; a list's number, or None for all packets."""

    access_list: int | None
    rate_bps: int
    bc_bits: int
    be_bits: int
    buffers: int


@dataclass(frozen=True, slots=True)
class QueueRule:
    """A line that assigns packets to a queue, by protocol or by input interface."""

    queue: int
    protocol: str | None
    interface: str | None = None
    kind: Literal["fragments", "gt", "lt", "list", "tcp", "udp"] | None = None
    """Further condition on an IP packet."""
    value: int = 0
    """Size in bytes, number of a list, or port."""


@dataclass(frozen=True, slots=True)
class PriorityList:
    """`priority-list N`."""

    number: int
    rules: tuple[QueueRule, ...] = ()
    default: int | None = None
    """Default queue; None is normal."""
    limits: tuple[int, ...] | None = None
    """Queue limits in packets, from high to low."""


@dataclass(frozen=True, slots=True)
class CustomQueue:
    """Settings of a queue of a custom list; None is the default."""

    number: int
    limit: int | None = None
    byte_count: int | None = None


@dataclass(frozen=True, slots=True)
class CustomList:
    """`queue-list N`."""

    number: int
    rules: tuple[QueueRule, ...] = ()
    default: int | None = None
    """Default queue; None is queue 1."""
    lowest: int | None = None
    """`lowest-custom`: the first queue served round-robin; None is queue 1."""
    queues: tuple[CustomQueue, ...] = ()
    """Queues by number."""
