"""Generations of QoS in IOS, described by properties and capabilities.

Commands require a capability and rules use a property; no code compares the name of a generation. To add a generation,
add a description here and one in the engine (`crates/qos-core/src/compile/generation.rs`); properties used by both are
generated from the latter (`engine_rules.PROPERTIES`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from qoslab.ios.model import engine_defaults
from qoslab.ios.model.engine_rules import PROPERTIES
from qoslab.model.generation import Generation


@dataclass(frozen=True, slots=True)
class QosGeneration:
    """A description of a generation."""

    title: str
    """Names of the releases."""
    capabilities: frozenset[str]
    """Forms of commands that this generation has."""
    max_classes: int
    """Greatest number of classes in a policy-map."""
    shape_interval_ms: int
    shape_least_burst_bits: int
    """Committed burst below which the default interval of a shaper is longer."""
    separate_queues: bool
    """True if `show policy-map` shows queues of classes; else conversations with a `Max Threshold`."""
    queueing_indent: str
    """Blanks before queueing actions and `police` in the running configuration."""
    random_detect_indent: str
    """Further blanks before `random-detect`."""
    police_last: bool
    """True if `police` follows the queueing actions in the running configuration."""
    shows_limit_units: bool
    """True if `queue-limit` is printed with its unit."""
    pads_counted_classes: bool
    """True if `show policy-map interface` prints two blanks after a class-map and indents empty lines."""

    # Generated from the engine's description.
    adds_percentages: bool
    """True if percentages of `bandwidth` and `priority` are added up before the policy-map is attached."""
    allowed: frozenset[str]
    """Names in `engine_rules.IMPOSSIBLE` of combinations that this generation allows."""
    class_flow_queues: int
    default_class_reserves: bool
    """True if the bandwidth of class-default counts as reserved."""
    flow_limit_with_random_detect: bool
    """True if each flow also has a limit with early detection."""
    priority_burst_step_kbps: int
    """Step in kb/s to which the rate of a priority class is rounded down for its default burst."""
    priority_queue_limit: int
    random_detect_by_limit: bool
    """True if default thresholds of early detection are derived from the queue limit, also in packets."""
    random_detect_min: tuple[int, ...]
    """Least thresholds of early detection by precedence."""
    random_detect_min_by_dscp: tuple[tuple[int, ...], int]
    """Least thresholds of assured forwarding by drop precedence, and of EF."""
    reservable_percent: int | None
    """Share of the bandwidth that classes may reserve; None: `max-reserved-bandwidth` of the interface."""
    tx_ring: int | None
    """Frames between scheduler and line, if the transmit ring cannot be configured."""

    minimum_and_excess: bool = False
    """True if `bandwidth` is a minimum rate and excess is shared separately; else it is a share of the line."""
    queue_limit_ms: int | None = None
    """Default queue limit in ms of the class's rate; None: `QUEUE_LIMIT` packets."""
    greatest_queue_limit: int = 4096
    """Greatest queue limit in packets."""
    longest_name: int = 40
    """Number of characters of the longest name of a class-map or policy-map; 40 is from memory [R]."""
    genie_os: str = "ios"
    """Operating system in a pyATS testbed, by which Genie selects its parsers."""
    prints_thousands: bool = False
    """True if rates are printed as kb/s followed by three zeros: `0000 bps`."""
    counts_each_match: bool = True
    """True if `show policy-map interface` has counters for each `match` of a match-any class-map."""
    port_channel_needs_aggregate: bool = False
    """True if queues on a port-channel need `platform qos port-channel-aggregate`."""
    parents_without_depth: bool = False
    """True if the output for a class with a queueing child has neither depth nor drop rate."""
    input_hold_queue: int = 75
    """`Input queue: 0/75/...` of `show interfaces`, packets."""
    output_queue_of_fifo: bool = False
    """True if `show interfaces` has `Output queue: 0/40 (size/max)` regardless of the queueing."""
    lists_rate_as_typed: bool = False
    """True if `show policy-map` prints `police rate` without unit, and without a burst that was not configured."""
    exceeded: str = "exceed"
    """The word before the rate of exceeding packets."""
    violated: str = "violate"

    def queue_limit(self, rate_bps: float | None) -> int:
        """Return the default queue limit in packets of a class with a reference rate."""
        if self.queue_limit_ms is None:
            return engine_defaults.QUEUE_LIMIT
        packets = int((rate_bps or 0) * self.queue_limit_ms // (8000 * engine_defaults.XE_QUEUE_LIMIT_PACKET))
        return max(packets, engine_defaults.XE_QUEUE_LIMIT_LEAST)


_CLASSIC = QosGeneration(
    **PROPERTIES["classic"],
    title="classic IOS (up to 12.4(15)T)",
    capabilities=frozenset(
        {
            "fair-queue-conversations",
            "max-reserved-bandwidth",
            "plain-access-lists",
            "plain-rates",
            "priority-narrow",
            "queue-limit-packets",
            "random-detect-packets",
            "remaining-percent",
            "shape-buffers",
        }
    ),
    max_classes=64,
    shape_interval_ms=engine_defaults.CLASSIC_SHAPE_INTERVAL_MS,
    shape_least_burst_bits=engine_defaults.CLASSIC_LOW_RATE_BURST_BITS,
    separate_queues=False,
    queueing_indent="  ",
    random_detect_indent="",
    police_last=False,
    shows_limit_units=False,
    pads_counted_classes=False,
)
_HQF = QosGeneration(
    **PROPERTIES["hqf"],
    title="IOS with HQF (12.4(20)T and later, 15.x)",
    capabilities=frozenset(
        {
            "fair-queue-flows",
            "ip-sla-ipv6",
            "narrow-ranges",
            "object-groups",
            "priority-levels",
            "priority-narrow",
            "queue-limit-units",
            "random-detect-units",
            "rate-suffixes",
            "remaining-ratio",
            "shape-suffixes",
        }
    ),
    max_classes=256,
    shape_interval_ms=engine_defaults.HQF_SHAPE_INTERVAL_MS,
    shape_least_burst_bits=0,
    separate_queues=True,
    queueing_indent="    ",
    random_detect_indent=" ",
    police_last=True,
    shows_limit_units=True,
    pads_counted_classes=True,
)
_IOS_XE = replace(
    _HQF,
    **PROPERTIES["ios-xe"],
    title="IOS-XE 16 and 17 on routers",
    capabilities=frozenset(
        {
            "fair-queue-flows",
            "ip-sla-ipv6",
            "limit-microseconds",
            "object-groups",
            "priority-wide",
            "random-detect-percent",
            "rate-suffixes",
            "remaining-wide",
            "shape-wide",
            "wide-ranges",
        }
    ),
    queueing_indent="  ",
    random_detect_indent="",
    minimum_and_excess=True,
    queue_limit_ms=engine_defaults.XE_QUEUE_LIMIT_MS,
    greatest_queue_limit=8_192_000,
    # Cisco-IOS-XE-policy.yang, revision 2022-07-01.
    longest_name=205,
    genie_os="iosxe",
    prints_thousands=True,
    counts_each_match=False,
    port_channel_needs_aggregate=True,
    parents_without_depth=True,
    input_hold_queue=375,
    output_queue_of_fifo=True,
    lists_rate_as_typed=True,
    exceeded="exceeded",
    violated="violated",
)
GENERATIONS: Mapping[Generation, QosGeneration] = {"classic": _CLASSIC, "hqf": _HQF, "ios-xe": _IOS_XE}
CAPABILITIES = frozenset().union(*(each.capabilities for each in GENERATIONS.values()))
"""All capabilities of generations that a command may require."""


def generations_with_capability(capability: str) -> list[Generation]:
    """Return the generations that have a capability."""
    return [name for name, each in GENERATIONS.items() if capability in each.capabilities]


_RELEASE = re.compile(r"(\d+)\.(\d+)(?:\((\d+)\w*\)([A-Z]*))?")
_MQC = (12, 0, 5)
"""12.0(5)T is the first release with class-maps and policy-maps."""
_FIRST_HQF = (12, 4, 20)
"""12.4(20)T is the first of the T train with HQF."""
_FIRST_XE = 16
"""Releases from 16 on are IOS-XE."""


def release_generation(release: str) -> Generation | None:
    """Return the generation of a router's release; None if it has no class-maps (before 12.0(5)T) or is unknown."""
    parts = _RELEASE.match(release)
    if parts is None:
        return None
    if int(parts[1]) >= _FIRST_XE:
        return "ios-xe"
    number = (int(parts[1]), int(parts[2]), int(parts[3] or 0))
    if number < _MQC or (number[:2] == _MQC[:2] and "T" not in (parts[4] or "")):
        return None
    # 12.4 mainline has equally high numbers, so check for the T train.
    return "hqf" if number[0] >= 15 or (number >= _FIRST_HQF and (parts[4] or "").startswith("T")) else "classic"


def train_generations(version: str) -> tuple[Generation, ...]:
    """Return the possible generations for a `version` line, which has only the train: 12.4 has releases of both."""
    parts = _RELEASE.match(version)
    if parts is None or (train := (int(parts[1]), int(parts[2]))) == _FIRST_HQF[:2]:
        return ("classic", "hqf")
    if train[0] >= _FIRST_XE:
        return ("ios-xe",)
    return ("classic",) if train < _FIRST_HQF[:2] else ("hqf",)
