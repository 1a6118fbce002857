"""Configuration of a Catalyst 3750 beyond a router's: `mls qos`, queue-sets, maps and its ports.

Defaults are filled in: a value equal to the default counts as not configured. Ranges and defaults are those of the
Catalyst 3750 command reference (OL-8552) and software configuration guide (OL-8550); queues and thresholds count from
1, as in the configuration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

TrustState = Literal["cos", "dscp", "ip-precedence"]
"""Field of a packet that gives its internal DSCP."""

Exceed = Literal["drop", "policed-dscp-transmit"]
"""Action of a policer on a packet out of profile."""

AutoQos = Literal["cisco-phone", "cisco-softphone", "trust"]
"""The forms of `auto qos voip`."""

QueuePlace = tuple[int, int]
"""Queue and threshold."""

IDENTITY = tuple(range(64))
DEFAULT_COS_DSCP = tuple(range(0, 64, 8))
DEFAULT_DSCP_COS = tuple(dscp >> 3 for dscp in range(64))
DEFAULT_COS_OUTPUT: tuple[QueuePlace, ...] = ((2, 1), (2, 1), (3, 1), (3, 1), (4, 1), (1, 1), (4, 1), (4, 1))
DEFAULT_DSCP_OUTPUT: tuple[QueuePlace, ...] = tuple(DEFAULT_COS_OUTPUT[dscp >> 3] for dscp in range(64))
DEFAULT_COS_INPUT: tuple[QueuePlace, ...] = tuple((2, 1) if cos == 5 else (1, 1) for cos in range(8))
DEFAULT_DSCP_INPUT: tuple[QueuePlace, ...] = tuple(DEFAULT_COS_INPUT[dscp >> 3] for dscp in range(64))

FULL_LIMIT = 100
"""`srr-queue bandwidth limit` of a port without one, in percent."""
FIRST_VLAN = 1
DEFAULT_MUTATION = "Default DSCP Mutation Map"
"""Name of the mutation map of a port without a configured one in show commands."""


@dataclass(frozen=True, slots=True)
class QueueThresholds:
    """Thresholds of one output queue of a queue-set, in percent of its allocation."""

    first: int = 100
    second: int = 100
    reserved: int = 50
    maximum: int = 400


@dataclass(frozen=True, slots=True)
class QueueSet:
    """Division of a port's buffers between its output queues."""

    buffers: tuple[int, ...] = (25, 25, 25, 25)
    """Percent; they sum to 100."""
    thresholds: tuple[QueueThresholds, ...] = (
        QueueThresholds(),
        QueueThresholds(200, 200),
        QueueThresholds(),
        QueueThresholds(),
    )


@dataclass(frozen=True, slots=True)
class InputQueues:
    """The two queues between the ports and the ring."""

    buffers: tuple[int, ...] = (90, 10)
    bandwidth: tuple[int, ...] = (4, 4)
    """Weights."""
    thresholds: tuple[tuple[int, int], ...] = ((100, 100), (100, 100))
    priority_queue: int = 2
    priority_bandwidth: int = 10
    """Percent of the ring; 0 is none."""


@dataclass(frozen=True, slots=True)
class AggregatePolicer:
    """A policer that classes of a policy-map share."""

    rate_bps: int
    burst_bytes: int
    exceed: Exceed = "drop"


@dataclass(frozen=True, slots=True)
class SwitchQos:
    """Settings of the whole switch."""

    enabled: bool = False
    """`mls qos`."""
    rewrite_ip_dscp: bool = True
    cos_dscp: tuple[int, ...] = DEFAULT_COS_DSCP
    ip_prec_dscp: tuple[int, ...] = DEFAULT_COS_DSCP
    dscp_cos: tuple[int, ...] = DEFAULT_DSCP_COS
    policed_dscp: tuple[int, ...] = IDENTITY
    mutations: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """DSCP mutation maps, sorted by name, without those that change nothing."""
    cos_output: tuple[QueuePlace, ...] = DEFAULT_COS_OUTPUT
    dscp_output: tuple[QueuePlace, ...] = DEFAULT_DSCP_OUTPUT
    cos_input: tuple[QueuePlace, ...] = DEFAULT_COS_INPUT
    dscp_input: tuple[QueuePlace, ...] = DEFAULT_DSCP_INPUT
    queue_sets: tuple[QueueSet, QueueSet] = (QueueSet(), QueueSet())
    input: InputQueues = InputQueues()
    aggregate_policers: tuple[tuple[str, AggregatePolicer], ...] = ()
    """Aggregate policers, sorted by name."""
    vlans: tuple[tuple[int, str | None], ...] = ()
    """VLANs other than the first, with their names."""

    def mutation(self, name: str | None) -> tuple[int, ...]:
        """Return the mutation map of that name; an unknown name is a map that changes nothing."""
        return dict(self.mutations).get(name or "", IDENTITY)

    def with_mutation(self, name: str, values: tuple[int, ...]) -> SwitchQos:
        """Return a copy with a mutation map of that name."""
        maps = {**dict(self.mutations), name: values}
        return replace(self, mutations=tuple(sorted((n, v) for n, v in maps.items() if v != IDENTITY)))

    def with_aggregate(self, name: str, policer: AggregatePolicer | None) -> SwitchQos:
        """Return a copy with an aggregate policer of that name, or without it."""
        policers = {**dict(self.aggregate_policers), name: policer}
        kept = tuple(sorted((n, p) for n, p in policers.items() if p is not None))
        return replace(self, aggregate_policers=kept)

    def with_vlan(self, number: int, name: str | None) -> SwitchQos:
        """Return a copy with an additional VLAN."""
        return replace(self, vlans=tuple(sorted({**dict(self.vlans), number: name}.items())))


@dataclass(frozen=True, slots=True)
class SwitchPort:
    """Settings of a switch's interface beyond a router's."""

    switched: bool = True
    """False for a routed port (`no switchport`)."""
    mode: Literal["access", "trunk"] | None = None
    """None is dynamic, which results in access here: the other end does not negotiate."""
    access_vlan: int = FIRST_VLAN
    dot1q: bool = False
    """`switchport trunk encapsulation dot1q`."""
    native_vlan: int = FIRST_VLAN
    """VLAN of untagged frames on a trunk."""
    trust: TrustState | None = None
    trust_device: bool = False
    """`mls qos trust device cisco-phone`: no trust unless a phone is connected."""
    default_cos: int = 0
    cos_override: bool = False
    dscp_mutation: str | None = None
    vlan_based: bool = False
    share: tuple[int, ...] = (25, 25, 25, 25)
    shape: tuple[int, ...] = (25, 0, 0, 0)
    limit: int = FULL_LIMIT
    """Percent."""
    priority_queue: bool = False
    queue_set: int = 1
    auto_qos: AutoQos | None = None

    @property
    def vlan(self) -> int:
        """The VLAN of frames without a tag."""
        return self.native_vlan if self.mode == "trunk" else self.access_vlan

    @property
    def effective_trust(self) -> TrustState | None:
        """The effective trust: none if it depends on a phone, since a lab has none."""
        return None if self.trust_device else self.trust


DEFAULT_PORT = SwitchPort()
DEFAULT_QOS = SwitchQos()
