"""The data plane's counters as typed values: the reply to `counters` of docs/control-protocol.md.

Rates are load-interval averages in bits (or packets) per second, unrounded; bytes are IP length plus layer-2 header.
`None` where a thing does not apply.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class Volume(TypedDict):
    """Packets and bytes."""

    packets: int
    bytes: int


class RatedVolume(Volume):
    """Packets and bytes, and their present rate in bit/s."""

    rate_bps: float


class Traffic(RatedVolume):
    """What an interface received or sent."""

    rate_pps: float
    drops: int


class InterfaceQueue(TypedDict):
    """The queue of an interface as a whole."""

    strategy: str
    depth: int
    limit: int
    drops: int
    conversations: int | None
    max_conversations: int | None
    threshold: int | None
    max_active_conversations: int | None
    reserved_conversations: ReservedConversations | None
    available_bandwidth_kbps: int | None


class ReservedConversations(TypedDict):
    """Conversations of classes with a bandwidth."""

    allocated: int
    max: int


class TxRing(TypedDict):
    """The hardware queue, in packets."""

    limit: int
    depth: int


class QueueingDelay(TypedDict):
    """How long output packets waited, in ns: from arrival at the interface to the start on the line."""

    packets: int
    mean_ns: int
    p50_ns: int
    p99_ns: int
    max_ns: int


class Propagation(TypedDict):
    """One direction of a link: frames that it lost, and frames on their way."""

    lost: Volume
    in_flight: int


class LinkCounters(TypedDict):
    """The link of an interface: what no router knows of."""

    input: Propagation
    output: Propagation


class Drops(TypedDict):
    """Dropped by a class, by reason."""

    police: Volume
    tail: Volume
    flow: Volume
    purged: Volume
    priority: Volume
    random: Volume
    random_tail: Volume


class Marked(TypedDict):
    """One `set` action."""

    field: str
    value: int
    packets: int


class BucketChange(TypedDict):
    """A change of a dynamic bucket's size."""

    number: int
    time_ns: int
    bucket_bytes: int


class TokensLost(TypedDict):
    """Tokens of the committed rate for which there was no room although packets came; the longest such time in ns."""

    bytes: int
    longest_ns: int


class DynamicBucketCounters(TypedDict):
    """A policer's bucket that finds its own size; its last changes."""

    bucket_bytes: int
    level_bytes: int
    mean_bucket_bytes: int
    initial_bytes: int
    minimum_bytes: int
    maximum_bytes: int
    monitoring_ms: int
    watching: bool
    growths: int
    shrinks: int
    overflow_bytes: int
    most_overflow_bytes: int
    changes: list[BucketChange]


class Police(TypedDict):
    """A policer with its figures in force."""

    form: str
    cir_bps: int
    cir_percent: float | None
    bc_bytes: int
    pir_bps: int | None
    pir_percent: float | None
    be_bytes: int | None
    conformed: RatedVolume
    exceeded: RatedVolume
    violated: RatedVolume | None
    tokens_lost: TokensLost
    dynamic: DynamicBucketCounters | None


class Shape(TypedDict):
    """A shaper with its figures in force."""

    mode: str
    cir_bps: int
    percent: float | None
    target_bps: int
    bc_bits: int
    be_bits: int
    interval_ms: float
    byte_limit: int
    increment_bytes: int
    active: bool
    sent: Volume
    delayed: Volume


class ClassQueue(TypedDict):
    """The queue of a class."""

    discipline: str
    limit_packets: int
    depth_packets: int
    depth_bytes: int
    per_flow_limit: int | None
    flows: int | None
    max_flows: int | None
    output: Volume
    conversation: int | None
    congested: Volume


class Bandwidth(TypedDict):
    """The bandwidth of a class: one of the four as configured, and what it gives."""

    kbps: int | None
    percent: int | None
    remaining_percent: int | None
    remaining_ratio: int | None


class Priority(TypedDict):
    """A priority class."""

    unit: str
    kbps: int | None
    percent: int | None
    burst_bytes: int | None
    level: int
    conversation: int | None
    exceed_drops: Volume


class RandomDetectRow(TypedDict):
    """Random early detection of one precedence or code point."""

    value: int
    transmitted: Volume
    random_drop: Volume
    tail_drop: Volume
    min: int
    max: int
    denominator: int


class RandomDetect(TypedDict):
    """Random early detection of a class."""

    basis: str
    exponential_weight: int
    mean_depth: float
    classes: list[RandomDetectRow]


class PriorityQueue(TypedDict):
    """A queue that priority classes share."""

    level: int
    limit_packets: int
    depth_packets: int
    drops: Volume
    output: Volume


class ClassCounters(TypedDict):
    """One class of an attached policy."""

    name: str
    match: str
    criteria: list[RatedVolume]
    packets: int
    bytes: int
    offered_rate_bps: float
    drop_rate_bps: float
    drops: Drops
    set: list[Marked]
    police: Police | None
    shape: Shape | None
    queue: ClassQueue | None
    bandwidth: Bandwidth | None
    priority: Priority | None
    random_detect: RandomDetect | None
    child: PolicyCounters | None


class PolicyCounters(TypedDict):
    """An attached policy."""

    policy: str
    classes: list[ClassCounters]
    priority_queues: list[PriorityQueue]


class Profile(TypedDict):
    """Frames that passed a port's ingress policers."""

    in_profile: int
    out_of_profile: int


class SwitchPortCounters(TypedDict):
    """A switch port, in frames. Lists by queue and threshold count from 0."""

    dscp_in: list[int]
    dscp_out: list[int]
    cos_in: list[int]
    cos_out: list[int]
    input_enqueued: NotRequired[list[list[int]]]
    enqueued: list[list[int]]
    dropped: list[list[int]]
    policer: Profile
    depth_cells: list[int]
    depth_packets: list[int]
    operational_bandwidth_percent: float


class SwitchCounters(TypedDict):
    """The buffer memory that all ports of a switch share, in cells."""

    cells_total: int
    cells_reserved: int
    cells_common: int
    cells_common_free: int


class InterfaceCounters(TypedDict):
    """One interface."""

    enabled: bool
    load_interval_s: int
    line_rate_bps: int
    input: Traffic
    output: Traffic
    queue: InterfaceQueue
    tx_ring: TxRing
    queueing_delay: QueueingDelay | None
    link: LinkCounters
    access_list_hits: Any
    policy_input: PolicyCounters | None
    policy_output: PolicyCounters | None
    switch: NotRequired[SwitchPortCounters | None]


class AccessListHits(TypedDict):
    """Packets that matched one entry of an access list."""

    packets: int


class Counters(TypedDict):
    """All that the data plane counts, at one moment."""

    ok: bool
    time_ns: int
    uptime_ns: int
    interfaces: dict[str, InterfaceCounters]
    access_lists: dict[str, list[AccessListHits]]
    switch: NotRequired[SwitchCounters | None]
    health: dict[str, Any]
