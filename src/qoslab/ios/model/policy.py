"""Class-maps and policy-maps as frozen values.

Units are those of the IOS command line: rates in bit/s (`police`, `shape`) or kbit/s (`bandwidth`, `priority`),
police bursts in bytes, shape bursts in bits. None means not configured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from qoslab.ios.model.catalyst import TrustState
from qoslab.ios.model.engine_rules import QUEUEING
from qoslab.ios.model.inert_lines import NO_INERT_LINES, InertLines
from qoslab.ios.model.nbar import DECIDABLE_PROTOCOLS, MATCH_LIST, PROTOCOL_LIST, PROTOCOLS

CLASS_DEFAULT = "class-default"


NO_PACKET_CRITERION = "none"
"""The criterion that no packet matches."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One `match` line.

    `values` holds numbers (dscp, precedence, cos, qos-group, discard-class); `name` an access list, class-map, protocol
    or interface. `rtp_ports` has its first and last UDP port in `ranges`; `unseen` is a criterion on a property that no
    packet of a lab has, with `name` as typed.
    """

    type: Literal[
        "any",
        "access_group",
        "dscp",
        "precedence",
        "cos",
        "vlan",
        "protocol",
        "packet_length",
        "input_interface",
        "qos_group",
        "discard_class",
        "class_map",
        "rtp_ports",
        "unseen",
    ]
    negate: bool = False
    name: str | None = None
    values: tuple[int, ...] = ()
    ranges: tuple[tuple[int, int], ...] = ()
    """First and last VLAN of each range."""
    interfaces: tuple[tuple[str, str], ...] = ()
    """First and last port of each range of a switch's `match input-interface`."""
    ip_only: bool = False
    minimum: int | None = None
    maximum: int | None = None

    @property
    def is_undecided(self) -> bool:
        """True if the criterion refers to a property that no packet of a lab has, so that no packet matches."""
        return (self.type == "unseen" and self.name != NO_PACKET_CRITERION) or (
            self.type == "protocol" and self.name not in PROTOCOLS and self.name not in DECIDABLE_PROTOCOLS
        )

    @property
    def list_name(self) -> str:
        """Name of the separate access list that represents it in the data plane; empty without one."""
        if self.type == "protocol" and self.name not in PROTOCOLS:
            return f"{PROTOCOL_LIST}{self.name}"
        if self.type == "rtp_ports":
            [(first, last)] = self.ranges
            return f"{MATCH_LIST}ip rtp {first} {last - first}"
        return f"{MATCH_LIST}{self.name}" if self.type == "unseen" else ""


@dataclass(frozen=True, slots=True)
class ClassMap:
    """A class-map; `class-default` is never stored."""

    name: str
    match: Literal["all", "any"] = "all"
    criteria: tuple[Criterion, ...] = ()
    description: str | None = None


SetField = Literal["dscp", "ip_dscp", "precedence", "ip_precedence", "cos", "qos_group", "discard_class"]
ThresholdField = Literal["dscp", "precedence", "cos", "discard_class", "qos_group"]
"""A field of a packet that selects a queue limit, or that another field is set from."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One `set` line."""

    field: SetField
    value: int


@dataclass(frozen=True, slots=True)
class MarkFromField:
    """A `set` line that takes the value from another field, through a table-map or unchanged."""

    field: SetField
    source: ThresholdField
    table: str | None = None
    """Name of a table-map."""


Colour = Literal["conform", "exceed", "violate"]
COLOURS: tuple[Colour, ...] = ("conform", "exceed", "violate")

ActionName = Literal[
    "transmit",
    "drop",
    "set-dscp-transmit",
    "set-prec-transmit",
    "set-qos-transmit",
    "set-cos-transmit",
    "set-discard-class-transmit",
    "policed-dscp-transmit",
    "set-clp-transmit",
    "set-frde-transmit",
    "set-mpls-exp-imposition-transmit",
    "set-mpls-exp-topmost-transmit",
    "set-mpls-experimental-imposition-transmit",
    "set-mpls-experimental-topmost-transmit",
    "set-mpls-exp-transmit",
    "set-cos-inner-transmit",
    "set-dscp-tunnel-transmit",
    "set-prec-tunnel-transmit",
]
"""Actions of a policer: `policed-dscp-transmit` exists on switches only, the actions that set a field on routers only.
The actions after it set fields that no packet of a lab has: the packet passes."""


@dataclass(frozen=True, slots=True)
class PoliceAction:
    """Action on a packet of one colour."""

    action: ActionName
    value: int | None = None


@dataclass(frozen=True, slots=True)
class Amount:
    """A rate or burst as typed: a number of `unit` (bps, percent, bytes, bits, ms)."""

    number: int
    unit: Literal["bps", "percent", "bytes", "bits", "ms"]


@dataclass(frozen=True, slots=True)
class DynamicBucket:
    """`qoslab-extension police dynamic-bucket`: a policer's bucket with adaptive size. IOS has no such command.

    None if left out; docs/internals/control-protocol.md has the defaults. Shares are in percent.
    """

    initial_bytes: int | None = None
    minimum_bytes: int | None = None
    maximum_bytes: int | None = None
    monitoring_ms: int | None = None
    idle_ms: int | None = None
    first_growth_percent: int | None = None
    first_growths: int | None = None
    growth_percent: int | None = None
    shrink_percent: int | None = None
    spare_percent: int | None = None


@dataclass(frozen=True, slots=True)
class Police:
    """`police` as typed: bursts, peak rate and actions are None if left out.

    `form` is the spelling: `bps` is `police 8000 1500`, `cir` is `police cir 8000 bc 1500`, `rate` is
    `police rate 8000 burst 1500`.
    """

    form: Literal["bps", "cir", "rate"]
    cir: Amount
    bc: Amount | None = None
    pir: Amount | None = None
    be: Amount | None = None
    conform: tuple[PoliceAction, ...] | None = None
    exceed: tuple[PoliceAction, ...] | None = None
    violate: tuple[PoliceAction, ...] | None = None
    dynamic: DynamicBucket | None = None
    account: UserDefinedAccount | None = None
    """Metered packet lengths, if they differ from the counted ones."""

    def actions(self, colour: Colour) -> tuple[PoliceAction, ...] | None:
        """Return the actions of a colour as typed; None if they were left out."""
        return {"conform": self.conform, "exceed": self.exceed, "violate": self.violate}[colour]

    def with_actions(self, colour: Colour, actions: tuple[PoliceAction, ...] | None) -> Police:
        """Return the policer with new actions for a colour."""
        if colour == "conform":
            return replace(self, conform=actions)
        return replace(self, exceed=actions) if colour == "exceed" else replace(self, violate=actions)


SubscriberEncapsulation = Literal[
    "snap-1483routed",
    "mux-1483routed",
    "snap-pppoa",
    "mux-pppoa",
    "snap-rbe",
    "mux-rbe",
    "snap-dot1q-rbe",
    "mux-dot1q-rbe",
]
"""ATM encapsulation on a subscriber's line."""


@dataclass(frozen=True, slots=True)
class UserDefinedAccount:
    """`account user-defined N [atm]`."""

    offset: int
    """Bytes."""
    atm: bool = False

    def __str__(self) -> str:
        return f"user-defined {self.offset}{' atm' if self.atm else ''}"


@dataclass(frozen=True, slots=True)
class SubscriberLine:
    """`account dot1q|qinq aal5 ENCAPSULATION`."""

    access: Literal["dot1q", "qinq"]
    subscriber: SubscriberEncapsulation

    def __str__(self) -> str:
        return f"{self.access} aal5 {self.subscriber}"


Account = UserDefinedAccount | SubscriberLine
"""Overhead accounting: packet lengths for a rate, if they differ from the counted ones."""


@dataclass(frozen=True, slots=True)
class Shape:
    """`shape average|peak`."""

    mode: Literal["average", "peak"]
    rate: Amount
    bc: Amount | None = None
    be: Amount | None = None
    account: Account | None = None


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """`bandwidth KBPS`, `bandwidth percent P`, `bandwidth remaining percent P|ratio R`."""

    unit: Literal["kbps", "percent", "remaining_percent", "remaining_ratio"]
    number: int
    account: Account | None = None


@dataclass(frozen=True, slots=True)
class Priority:
    """`priority`, `priority KBPS [BYTES]`, `priority percent P [BYTES]`, `priority level N`."""

    unit: Literal["strict", "kbps", "percent"] = "strict"
    number: int | None = None
    burst_bytes: int | None = None
    level: int | None = None


@dataclass(frozen=True, slots=True)
class FairQueue:
    """`fair-queue [N] [queue-limit PACKETS]`."""

    queues: int | None = None
    queue_limit: int | None = None
    """Limit of each flow queue in packets."""


LimitUnit = Literal["packets", "bytes", "ms", "us", "percent"]
LIMIT_UNITS: dict[LimitUnit, int] = {"packets": 4096, "bytes": 64_000_000, "ms": 3400, "us": 512_000}
"""Units of a queue limit, with the maximum of each; the maximum of packets is higher on IOS-XE."""


@dataclass(frozen=True, slots=True)
class QueueLimit:
    """`queue-limit N [packets|bytes|ms]`."""

    number: int
    unit: LimitUnit = "packets"


@dataclass(frozen=True, slots=True)
class QueueThreshold:
    """`queue-limit FIELD VALUE N [packets|bytes|ms]`, or `percent N` of the class's own."""

    field: ThresholdField
    value: int
    limit: QueueLimit


@dataclass(frozen=True, slots=True)
class RedThresholds:
    """Minimum, maximum and mark probability denominator of one value of a field."""

    minimum: int
    maximum: int
    denominator: int | None = None


RedBasis = Literal["precedence", "dscp", "cos", "discard_class"]


@dataclass(frozen=True, slots=True)
class RandomDetect:
    """`random-detect [dscp-based|prec-based|cos-based|discard-class-based]` with its additional lines."""

    basis: RedBasis = "precedence"
    exponential_weight: int | None = None
    ecn: bool = False
    """True to mark packets of ECN-capable transports instead of dropping them at random."""
    unit: LimitUnit | None = None
    """Unit of the thresholds; None without thresholds or typed unit. `percent` is relative to the queue limit."""
    thresholds: tuple[tuple[int, RedThresholds], ...] = ()
    """Thresholds by value of the field, sorted."""
    aggregate: RedThresholds | None = None
    """`aggregate`: thresholds in packets for the values without explicit ones."""


@dataclass(frozen=True, slots=True)
class PolicyClass:
    """A class of a policy-map with its actions."""

    name: str
    bandwidth: Bandwidth | None = None
    priority: Priority | None = None
    shape: Shape | None = None
    shape_buffers: int | None = None
    """`shape max-buffers`: queue limit of the shaper in packets."""
    police: Police | None = None
    fair_queue: FairQueue | None = None
    queue_limit: QueueLimit | None = None
    queue_thresholds: tuple[QueueThreshold, ...] = ()
    """Queue thresholds of one field, by its values."""
    random_detect: RandomDetect | None = None
    marks: tuple[Mark, ...] = ()
    marks_from: tuple[MarkFromField, ...] = ()
    drop: bool = False
    """True if every packet is dropped."""
    trust: TrustState | None = None
    """Source of the internal DSCP on a switch."""
    aggregate: str | None = None
    """Name of the shared policer on a switch, instead of `police`."""
    service_policy: str | None = None
    inert: InertLines = NO_INERT_LINES
    """Lines without effect."""

    @property
    def queueing(self) -> bool:
        """True if it has an action that is valid in the output direction only."""
        return any(getattr(self, name) not in (None, ()) for name in QUEUEING)


@dataclass(frozen=True, slots=True)
class PolicyMap:
    """A policy-map: classes in configured order, with `class-default` last if configured."""

    name: str
    classes: tuple[PolicyClass, ...] = ()
    description: str | None = None

    def find(self, class_name: str) -> PolicyClass | None:
        """Return the class of that name; None if there is none."""
        return next((each for each in self.classes if each.name == class_name), None)
