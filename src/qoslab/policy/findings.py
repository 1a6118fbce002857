"""Findings about a policy: settings that a router refuses, that have no effect, or that defeat their own purpose."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Literal

from qoslab.ios.class_shares import candidate_classes, whole_code_points
from qoslab.ios.commands.queueing import SUM_EXCEEDS
from qoslab.ios.model import engine_defaults
from qoslab.ios.model.ios_names import interface_kind
from qoslab.ios.model.policy import CLASS_DEFAULT, PolicyClass
from qoslab.ios.packet_sets import no_match_reason
from qoslab.ios.rules import descendants
from qoslab.policy.class_values import ClassValues, PoliceValues, PolicyValues
from qoslab.policy.composed_rates import primary_port
from qoslab.policy.effective import MTU, has_percentage
from qoslab.policy.matching import complete_device
from qoslab.policy.pasted_configuration import Configuration, is_refusal, policies_below_shaped_ports
from qoslab.policy.rate import Rate, bps_text, format_list, format_number
from qoslab.policy.tunnels import find_encapsulation, find_tunnels, hidden_classes

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
EF = 46
MAX_QUEUE_MS = 1000.0
SHORT_BURST_MS = 100.0
"""Burst of a policer, as a time at its rate, below which it limits TCP at usual Internet round trip times."""
SEGMENT = 1500
"""Bytes of an IP packet with a full TCP segment."""
VIRTUAL = ("Tunnel", "Dialer", "Virtual-Template", "Loopback", "Vlan", "BVI")
"""Interfaces without a transmit queue, where nothing indicates congestion."""
POSSIBLE_EFFECT = ("Dialer", "Virtual-Template")
"""Interfaces with a possible ATM queue."""

SYSTEM = ("system-cpp-", "non-client-")
"""Prefixes of built-in class-maps and policy-maps of a Catalyst 9000."""
ONLY_ON_OUTPUT = "output feature only"
ARITHMETIC = "arithmetic"
RFC_2697 = "RFC 2697, section 2: a bucket holds the largest packet"
RFC_3246 = "RFC 3246, section 2.2: EF leaves at its rate regardless of other traffic"
RFC_7567 = "RFC 7567, section 1.2: long queues delay all traffic in them"
CONGESTION = "Cisco QoS Congestion Management Configuration Guide"
MQC = "Cisco QoS Modular QoS CLI Configuration Guide"
POLICING = "Cisco QoS Policing and Shaping Configuration Guide"
STARVATION = "weights of classic CBWFQ (experiment cbwfq-classic)"
ETHERCHANNEL = "Cisco QoS: Aggregate EtherChannel Quality of Service, IOS XE"
TUNNELS = "Cisco document 10106, Quality of Service Options on GRE Tunnel Interfaces"
SWITCH = "Cisco Catalyst 3750 Software Configuration Guide 12.2(55)SE, Configuring QoS"

_AGGREGATE = re.compile(r"platform qos port-channel-aggregate (\d+)")
_BY_VLAN = re.compile(r"(?:port-channel )?load-balancing vlan")
"""Distribution of the VLANs of a port-channel to its ports, globally or for one port-channel."""


@dataclass(frozen=True)
class PolicyFinding:
    """A finding with its reason, its source and its line of the input."""

    severity: Severity
    code: str
    message: str
    source: str
    line: int = 0
    """Line, from 1; 0 if no single line is the cause."""


@dataclass(frozen=True)
class Subject:
    """A configuration with its values, and the options of the command."""

    configuration: Configuration
    policies: list[PolicyValues]
    rtt_s: float | None = None

    def classes(self) -> Iterator[tuple[PolicyValues, ClassValues]]:
        """Yield each class of each policy."""
        for policy in self.policies:
            for each in policy.classes:
                yield policy, each

    def line_number(self, each: ClassValues, command: str) -> int:
        """Return the line of a command below a class, or that of the class."""
        return self.configuration.line_number(
            each.policy, each.name, command=command
        ) or self.configuration.line_number(each.policy, each.name)

    def configured_class(self, each: ClassValues) -> PolicyClass | None:
        """Return a class as configured."""
        policy = self.configuration.device.policy_maps.get(each.policy)
        return None if policy is None else policy.find(each.name)


def find_policy_problems(subject: Subject) -> list[PolicyFinding]:
    """Return the findings, each once, most severe first."""
    found = dict.fromkeys(each for rule in RULES for each in rule(subject))
    return sorted(found, key=lambda each: (SEVERITIES.index(each.severity), each.line))


def _policy_place(policy: PolicyValues) -> str:
    return f"{policy.interface} {policy.direction}" if policy.interface else f"policy-map {policy.policy}"


def _class_place(each: ClassValues) -> str:
    return f"class {each.name} of policy-map {each.policy}"


# Lines that a router refuses.


def find_refused_lines(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about lines that the rules of the generation refuse, and that therefore have no effect."""
    for unread in subject.configuration.reading.unread:
        if not is_refusal(unread.reason) or not _is_qos(unread.place, unread.text):
            continue
        if SUM_EXCEEDS in unread.reason or "requested bandwidth" in unread.reason:
            continue  # `oversubscribed` has the sum
        if ONLY_ON_OUTPUT in unread.reason:
            continue  # `find_queueing_on_input` names the classes
        where = " in " + ", ".join(unread.place) if unread.place else ""
        message = f"`{unread.text}`{where} is refused: {unread.reason.removeprefix('% ')}"
        yield PolicyFinding("error", "refused", message, "rules of the modelled release", unread.number)


def _is_qos(place: tuple[str, ...], text: str) -> bool:
    return (place[:1] != () and place[0].startswith(("policy-map", "class-map"))) or text.startswith("service-policy")


def find_queueing_on_input(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about policies with shapers or queues on the input of an interface."""
    device = subject.configuration.device
    for at in subject.configuration.attachments:
        policy = device.policy_maps.get(at.policy)
        if at.direction != "input" or policy is None:
            continue
        names = dict.fromkeys(
            f"{each.name} of {part.name}"
            for part in descendants(device, policy)
            for each in part.classes
            if each.queueing
        )
        if names:
            message = f"{at.interface} input: shaping and queueing work on output only (class {', '.join(names)})"
            yield PolicyFinding("error", "queueing-on-input", message, CONGESTION, at.line)


def find_missing_objects(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about class-maps and policy-maps that are referred to and not configured."""
    configuration = subject.configuration
    has_maps = set(configuration.device.class_maps) - configuration.missing_classes
    missing = sorted(configuration.missing_classes)
    if missing and not has_maps:
        names = ", ".join(missing)
        message = f"class-maps not in the input: {names}; the packets that they match are not checked"
        yield PolicyFinding("note", "class-map-missing", message, MQC)
    else:
        for name in missing:
            line = _class_line(configuration, name)
            message = f"class-map {name} is not configured: a router refuses the class"
            yield PolicyFinding("error", "class-map-missing", message, MQC, line)
    for name in sorted(configuration.missing_policies):
        lines = (each.number for each in configuration.reading.executed if each.text.endswith(f" {name}"))
        message = f"policy-map {name} is not configured: a router refuses the line that names it"
        yield PolicyFinding("error", "policy-map-missing", message, MQC, next(lines, 0))


def find_missing_access_lists(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about access lists that class-maps refer to and that are not configured."""
    configuration = subject.configuration
    known = configuration.device.access_lists
    named = {
        each.name: one.name
        for one in configuration.device.class_maps.values()
        for each in one.criteria
        if each.type == "access_group" and each.name and each.name not in known
    }
    relevant = _relevant_class_maps(configuration)
    for name, class_map in named.items():
        message = f"access list {name} is not in the input: some packets of class-map {class_map} are unknown"
        ends = (f"access-group {name}", f"access-group name {name}")
        line = next((each.number for each in configuration.reading.executed if each.text.endswith(ends)), 0)
        severity: Severity = "warning" if known and class_map in relevant else "note"
        yield PolicyFinding(severity, "access-list-missing", message, MQC, line)


def find_port_shapers(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about subinterfaces whose port has a shaper, which limits their values together."""
    configuration = subject.configuration
    for at in policies_below_shaped_ports(configuration):
        port = at.interface.partition(".")[0]
        above = next((each for each in subject.policies if each.interface == port and each.direction == "output"), None)
        rate = next((each.shape.rate for each in above.classes if each.shape), None) if above is not None else None
        message = (
            f"{at.interface} output: the shaper of {port}{f' ({rate})' if rate else ''} is above this policy and not "
            f"part of its values; the subinterfaces share it by `bandwidth remaining ratio`, by default equally"
        )
        yield PolicyFinding("note", "shaper-of-port", message, CONGESTION, at.line)


def find_port_shapers_below_tunnels(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about tunnels whose packets also pass the shaper of the port below."""
    configuration = subject.configuration
    shaped = {
        policy.interface: each.shape.rate
        for policy, each in subject.classes()
        if policy.direction == "output" and each.shape is not None and each.path == (CLASS_DEFAULT,)
    }
    sources = {each.name: each.source for each in find_tunnels(configuration)}
    for at in configuration.attachments:
        port = sources.get(at.interface, "")
        if at.direction != "output" or at.refused or port not in shaped:
            continue
        message = (
            f"{at.name} output: the packets also pass the shaper of {port} ({shaped[port]}), which is not part of "
            "these values"
        )
        yield PolicyFinding("note", "shaper-of-port", message, CONGESTION, at.line)


def find_port_channels_without_aggregate(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about queueing policies of port-channels that IOS-XE accepts only for an aggregate."""
    configuration = subject.configuration
    if not configuration.device.hardware.qos.port_channel_needs_aggregate:
        return
    reading = configuration.reading
    typed = [each.text for each in reading.executed] + [each.text for each in reading.unread]
    aggregates = {found[1] for each in typed if (found := _AGGREGATE.fullmatch(each))}
    by_vlan = any(map(_BY_VLAN.match, typed))
    for policy in subject.policies:
        bundle, dot, _ = policy.interface.partition(".")
        number, below = re.sub(r"\D+", "", bundle), configuration.lines.below
        if interface_kind(bundle) != "Port-channel" or not policy.queues or number in aggregates:
            continue
        if dot and (by_vlan or primary_port(below.get(f"interface {policy.interface}", ()))):
            continue
        others = ", or `load-balancing vlan` for policies of its subinterfaces" if dot else ""
        message = (
            f"{policy.interface} output: IOS-XE accepts queues on a port-channel only after `platform qos "
            f"port-channel-aggregate {number}`, typed before the port-channel is created{others}; the input has no "
            "such line"
        )
        yield PolicyFinding("warning", "port-channel-without-aggregate", message, ETHERCHANNEL, policy.number)


def _class_line(configuration: Configuration, name: str) -> int:
    lines = (
        each.number
        for each in configuration.reading.executed
        if each.text in (f"class {name}", f"match class-map {name}")
    )
    return next(lines, 0)


_PERCENT = re.compile(r"(?:bandwidth|priority(?: level \d)?) percent (\d+)")


def find_oversubscription(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about sums of priority and bandwidth above the share that classes may reserve."""
    added = subject.configuration.device.hardware.qos.reservable_percent
    for unread in subject.configuration.reading.unread:
        found = _PERCENT.match(unread.text)
        if SUM_EXCEEDS in unread.reason and found and len(unread.place) > 1:
            owner, name = (each.partition(" ")[2] for each in unread.place[:2])
            percent = int(found[1]) + _reserved_percents(subject, owner, name)
            message = (
                f"class {name} of policy-map {owner}: with `{unread.text}` the classes reserve {percent} %, but only "
                f"{added or 99} % can be reserved; the line is refused"
            )
            yield PolicyFinding("error", "oversubscribed", message, f"{ARITHMETIC}; {CONGESTION}", unread.number)
    for policy in subject.policies:
        if not policy.queues:
            continue
        part = _classic_percent(subject, policy) if added is None else added
        for above, group in _hierarchy_levels(policy):
            base = _percent_base(policy, above)
            percent = part if added is not None or above is None else 100
            top = base.multiplied_by(percent / 100)
            total = sum((each.guaranteed for each in group if each.guaranteed and each.name != CLASS_DEFAULT), Rate())
            lower = total.lower(top)
            if lower is None or total == lower or (total.bps <= top.bps + 1 and total.is_absolute):
                continue
            message = (
                f"{_policy_place(policy)}: the classes of policy-map {group[0].policy} reserve {total}, but only {top} "
                f"can be reserved ({percent} % of {base})"
            )
            line = policy.number or subject.configuration.line_number(group[0].policy)
            yield PolicyFinding("error", "oversubscribed", message, f"{ARITHMETIC}; {CONGESTION}", line)


def _reserved_percents(subject: Subject, policy: str, name: str) -> int:
    """Return the percentages that the other classes of a policy-map reserve."""
    made = subject.configuration.device.policy_maps.get(policy)
    given = ((each.bandwidth, each.priority) for each in (made.classes if made else ()) if each.name != name)
    return sum(one.number or 0 for pair in given for one in pair if one is not None and one.unit == "percent")


def _classic_percent(subject: Subject, policy: PolicyValues) -> int:
    interface = subject.configuration.device.interfaces.get(policy.interface)
    typed = None if interface is None else interface.max_reserved_bandwidth
    return engine_defaults.CLASSIC_RESERVABLE_PERCENT if typed is None else typed


def _hierarchy_levels(policy: PolicyValues) -> Iterator[tuple[ClassValues | None, list[ClassValues]]]:
    """Yield the classes of each policy-map of a hierarchy with their parent class."""
    for path in dict.fromkeys(each.path[:-1] for each in policy.classes):
        group = [each for each in policy.classes if each.path[:-1] == path]
        yield next((each for each in policy.classes if each.path == path), None), group


def _percent_base(policy: PolicyValues, above: ClassValues | None) -> Rate:
    while above is not None:
        if above.shape is not None:
            return above.shape.rate
        if above.guaranteed is not None:
            return above.guaranteed
        path = above.path[:-1]
        above = next((each for each in policy.classes if each.path == path), None)
    return policy.base


# Policers.


def find_small_bursts(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about policer bursts below one packet, or below rate x RTT."""
    for policy, each in subject.classes():
        police = each.police
        if police is None or police.bc_bytes is None:
            continue
        line = subject.line_number(each, "police")
        frame = MTU + (policy.header_bytes or 0)
        if police.bc_bytes < frame:
            message = (
                f"{_class_place(each)}: the burst of {police.bc_bytes} bytes is smaller than one packet of {frame} "
                "bytes: long packets never conform"
            )
            # 1500 is also the least default burst.
            severity: Severity = "warning" if police.bc_bytes >= MTU else "error"
            yield PolicyFinding(severity, "burst-below-mtu", message, RFC_2697, line)
        typed = police.bc_bytes >= frame and not police.default_burst
        if subject.rtt_s is None and typed and police.cir.is_absolute and "drop" in police.exceed:
            yield from _burst_time_note(subject, each, police)
        if subject.rtt_s is not None and police.cir.is_absolute and "drop" in police.exceed:
            product = police.cir.bps * subject.rtt_s / 8
            if police.bc_bytes < product:
                message = _rtt_message(each, police.bc_bytes, product, police.cir.bps, subject.rtt_s)
                yield PolicyFinding("warning", "burst-below-rtt", message, f"{ARITHMETIC}; docs/policies.md", line)


def _burst_time_note(subject: Subject, each: ClassValues, police: PoliceValues) -> Iterator[PolicyFinding]:
    """Yield a note about a configured burst that is too small for a TCP connection with a usual round trip time."""
    ms = (police.bc_bytes or 0) * 8000 / police.cir.bps if police.cir.bps else SHORT_BURST_MS
    if each.priority or ms >= SHORT_BURST_MS:
        return
    default = max(int(police.cir.bps) // engine_defaults.POLICE_BURST_DIVISOR, engine_defaults.POLICE_LEAST_BURST)
    message = (
        f"{_class_place(each)}: the burst of {police.bc_bytes} bytes is {format_number(ms, 2)} ms "
        f"of {police.cir}: one TCP connection "
        f"with a longer round trip does not reach the rate; the default burst is {default} bytes (check with --rtt)"
    )
    yield PolicyFinding(
        "note", "short-burst", message, f"{ARITHMETIC}; docs/policies.md", subject.line_number(each, "police")
    )


def _rtt_message(each: ClassValues, burst: int, product: float, bps: float, rtt_s: float) -> str:
    segments = product / SEGMENT
    text = (
        f"{_class_place(each)}: the burst of {burst} bytes is below rate x RTT = {bps_text(bps)} x "
        f"{format_number(rtt_s * 1000)} ms = {product:.0f} bytes; one TCP connection does not reach the rate"
    )
    if segments >= 20:
        # One Reno connection: its sawtooth loses tokens that the bucket cannot hold.
        part = min(0.75 * (1 + sqrt(2 * burst / SEGMENT) / segments), 1.0)
        text += f" (about {part * 100:.0f} % with Reno)"
    return text


def find_policer_before_shaper(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about a policer that drops packets which the shaper after it would delay."""
    for policy, each in subject.classes():
        police = each.police
        if police is None or "drop" not in police.exceed or each.priority:
            continue
        shape = each.shape
        if shape is None and any(one.path == each.path[:-1] and one.shape for one in policy.classes):
            message = (
                f"{_class_place(each)}: its policer drops before the shaper of class {each.path[-2]} can delay; "
                "`bandwidth` or `shape` would queue"
            )
            yield PolicyFinding("note", "policer-before-shaper", message, POLICING, subject.line_number(each, "police"))
        elif shape is not None and shape.rate.lower(police.cir) == police.cir:
            message = (
                f"{_class_place(each)}: the policer of {police.cir} comes before the shaper of {shape.rate}, so the "
                "shaper never delays a packet"
            )
            yield PolicyFinding(
                "warning", "policer-before-shaper", message, POLICING, subject.line_number(each, "police")
            )
        elif shape is not None:
            message = (
                f"{_class_place(each)}: packets are policed to {police.cir} before they are shaped to {shape.rate}; "
                "the drops of both add up"
            )
            yield PolicyFinding("note", "policer-before-shaper", message, POLICING, subject.line_number(each, "police"))


# Shapers and queues.


def find_fast_shapers(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about shapers above the line rate or above a parent shaper, which never delay."""
    for policy, each in subject.classes():
        if each.shape is None:
            continue
        limits = [(policy.line, f"the line ({policy.line_source})")]
        limits += [
            (one.shape.rate, f"the shaper of class {one.name} above it")
            for one in policy.classes
            if one.shape is not None and one.path == each.path[: len(one.path)] and len(one.path) < len(each.path)
        ]
        for limit, name in limits:
            if limit.is_absolute and each.shape.rate.is_absolute and each.shape.rate.bps > limit.bps:
                message = (
                    f"{_class_place(each)}: the shaper of {each.shape.rate} is above {limit}, {name}: it never "
                    "delays a packet"
                )
                yield PolicyFinding(
                    "warning", "shaper-above-line", message, ARITHMETIC, subject.line_number(each, "shape")
                )
                break


def find_long_queues(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about queues that delay a packet by more than a second."""
    conversations = not subject.configuration.device.hardware.qos.separate_queues
    for _, each in subject.classes():
        queue = each.queue
        if queue is None or queue.ms is None or queue.ms <= MAX_QUEUE_MS or each.priority or queue.per_flow_packets:
            continue
        if conversations and each.name == CLASS_DEFAULT and each.guaranteed is None and each.shape is None:
            message = (
                f"{_class_place(each)}: without `bandwidth`, a flow gets about {each.busy} by its weight "
                "while the other "
                "classes are busy"
            )
            yield PolicyFinding("warning", "class-default-starves", message, STARVATION, subject.line_number(each, ""))
            continue
        depth = f"{queue.packets} packets" if queue.packets is not None else f"{queue.bytes} bytes"
        message = (
            f"{_class_place(each)}: a full queue of {depth} takes {queue.ms / 1000:.1f} s to drain at "
            f"{each.busy}{' (default queue-limit)' if queue.default else ''}"
        )
        yield PolicyFinding(
            "warning", "long-queue", message, f"{ARITHMETIC}; {RFC_7567}", subject.line_number(each, "queue-limit")
        )


def find_thresholds_above_limit(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about early detection with thresholds above the queue limit: the queue is full first."""
    for _, each in subject.classes():
        red, queue = each.red, each.queue
        if red is None or queue is None or queue.flows is not None:
            continue
        limit = queue.packets if red.unit == "packets" else queue.bytes if red.unit == "bytes" else None
        above = [row for row in red.rows if limit is not None and row.maximum > limit]
        if not above:
            continue
        first = above[0]
        lost = (
            "WRED never drops" if first.minimum >= (limit or 0) else "tail drops start before WRED reaches its maximum"
        )
        message = (
            f"{_class_place(each)}: the queue limit of {limit} {red.unit} is below the thresholds {first.minimum}-"
            f"{first.maximum} of {red.basis} {first.value}: {lost}; raise `queue-limit` or lower the thresholds"
        )
        yield PolicyFinding("warning", "red-above-limit", message, CONGESTION, subject.line_number(each, "queue-limit"))


def find_bandwidth_below_line(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about queues without a shaper on a port whose `bandwidth` is below the line rate."""
    for policy in subject.policies:
        slow = policy.line.is_absolute and policy.base.is_absolute and policy.base.bps < policy.line.bps
        virtual = interface_kind(policy.interface) in VIRTUAL
        if not policy.queues or not slow or virtual or policy.base_source != "bandwidth":
            continue
        if any(each.shape is None and each.queue for each in policy.classes if len(each.path) == 1):
            message = (
                f"{_policy_place(policy)}: `bandwidth` is {policy.base}, but packets wait only if they "
                "exceed the line rate "
                f"of "
                f"{policy.line}; put the classes below a class-default with `shape average {policy.base.bps:.0f}`"
            )
            line = subject.configuration.interface_line(policy.interface, "bandwidth")
            yield PolicyFinding("warning", "bandwidth-below-line", message, CONGESTION, line)


def find_remaining_without_shaper(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about `bandwidth remaining` without a parent shaper and without a known line rate, and about
    queues on virtual interfaces.
    """
    for policy in subject.policies:
        if not policy.queues:
            continue
        virtual = interface_kind(policy.interface) in VIRTUAL
        top = [each for each in policy.classes if len(each.path) == 1]
        if virtual and any(each.queue is not None and each.shape is None and each.busy for each in top):
            message = (
                f"{_policy_place(policy)}: the interface has no queue that can be congested; put the classes below a "
                "class-default with `shape`"
            )
            severity: Severity = "warning" if interface_kind(policy.interface) in POSSIBLE_EFFECT else "error"
            yield PolicyFinding(severity, "queues-without-shaper", message, CONGESTION, policy.number)
        for each in top:
            typed = subject.configured_class(each)
            bandwidth = None if typed is None or typed.shape is not None else typed.bandwidth
            if bandwidth is not None and bandwidth.unit.startswith("remaining") and not policy.base.is_absolute:
                message = (
                    f"{_class_place(each)}: `bandwidth remaining` has no shaper above it, and the line rate is unknown "
                    "(give --rate)"
                )
                yield PolicyFinding(
                    "warning", "remaining-without-base", message, CONGESTION, subject.line_number(each, "bandwidth")
                )
                break


def find_unlimited_priority(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about priority classes that may take the whole line."""
    for policy, each in subject.classes():
        typed = subject.configured_class(each)
        if policy.queues and typed and typed.priority and typed.priority.unit == "strict" and typed.police is None:
            message = f"{_class_place(each)}: priority without a rate or policer can starve the other classes"
            yield PolicyFinding(
                "warning", "priority-without-limit", message, CONGESTION, subject.line_number(each, "priority")
            )


def find_percent_of_default_bandwidth(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about percentages of an interface's default bandwidth that differs from its line rate."""
    for policy in subject.policies:
        interface = subject.configuration.device.interfaces.get(policy.interface)
        tunnel = interface is None and policy.base_source == f"default bandwidth of {interface_kind(policy.interface)}"
        if not tunnel and (interface is None or interface.bandwidth_kbps is not None or interface.circuit is not None):
            continue
        uses = [
            each for each in policy.classes if len(each.path) == 1 and has_percentage(subject.configured_class(each))
        ]
        if not uses or (policy.base == policy.line and interface is not None and not interface.serial):
            continue
        line = "" if policy.base == policy.line else f", and the line is {policy.line} ({policy.line_source})"
        message = (
            f"{_policy_place(policy)}: percentages refer to {policy.base}, the default bandwidth of "
            f"{interface_kind(policy.interface)}{line}; set `bandwidth` on the interface"
        )
        severity: Severity = "note" if policy.base == policy.line else "warning"
        yield PolicyFinding(severity, "percent-of-default-bandwidth", message, CONGESTION, policy.number)


def find_ef_without_priority(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about EF in a class without priority, next to other queues."""
    device = complete_device(subject.configuration)
    for policy in subject.policies:
        if not policy.queues:
            continue
        for above, group in _hierarchy_levels(policy):
            if above is not None and above.priority:
                continue
            for each in group:
                child = any(one.path[:-1] == each.path for one in policy.classes)
                if each.name == CLASS_DEFAULT or each.priority or each.drop or child:
                    continue
                points = whole_code_points(device, each.name, (4, EF))
                if not points or len(points) > 32:
                    continue
                others = {dscp for _, dscp in points} - {EF}
                shared = " shares a queue with other code points and" if others else ""
                shared = " is in the queue of class-default and" if each.joins_default else shared
                message = f"{_class_place(each)}: EF{shared} has no priority: it waits behind other traffic"
                yield PolicyFinding("warning", "ef-without-priority", message, RFC_3246, subject.line_number(each, ""))


# Classes.


def find_classes_without_packets(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about classes that can match no packet, and classes after others that take all their packets."""
    configuration = subject.configuration
    device = complete_device(configuration)
    relevant = _relevant_class_maps(configuration)
    for name, class_map in device.class_maps.items():
        if name.startswith(SYSTEM) or _has_unread_match(configuration, name):
            continue
        if why := no_match_reason(device, class_map):
            message = f"class-map {name} can match no packet: {why}"
            severity: Severity = "error" if name in relevant else "note"
            yield PolicyFinding(severity, "class-matches-nothing", message, MQC, configuration.class_map_line(name))
    for policy in device.policy_maps.values():
        for each in candidate_classes(device, policy):
            name = each.policy_class.name
            if (
                each.matching_boxes.empty
                or not each.remaining_boxes.empty
                or name == CLASS_DEFAULT
                or _has_unread_match(configuration, name)
            ):
                continue
            above = ", ".join(each.covering_classes)
            message = f"class {name} of policy-map {policy.name} gets no packets: {above} above it matches them all"
            line = configuration.line_number(policy.name, name)
            yield PolicyFinding("error", "class-shadowed", message, f"{MQC}: the first class that matches", line)


def _relevant_class_maps(configuration: Configuration) -> Collection[str]:
    """Return the class-maps of classes, and those that other class-maps name; without any, all class-maps."""
    device = configuration.device
    used = {each.name for policy in device.policy_maps.values() for each in policy.classes} - {CLASS_DEFAULT}
    nested = (each.name for one in device.class_maps.values() for each in one.criteria if each.type == "class_map")
    return used.union(name for name in nested if name) or device.class_maps.keys()


def find_classes_behind_tunnels(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about classes on the port below tunnels that match by fields of the inner headers."""
    configuration = subject.configuration
    for at in configuration.attachments:
        found = find_encapsulation(configuration, at)
        if found is None or not found.hides_fields or at.policy not in configuration.device.policy_maps:
            continue
        tunnel = next(each.name for each in found.tunnels if not each.pre_classify)
        for name in hidden_classes(configuration, at.policy):
            message = (
                f"class {name} matches by addresses, ports, protocols or lengths, but {at.interface} sees the packets "
                f"of {tunnel} encapsulated: match DSCP, or add `qos pre-classify` to {tunnel}"
            )
            yield PolicyFinding("warning", "class-behind-tunnel", message, TUNNELS, configuration.class_map_line(name))


def _has_unread_match(configuration: Configuration, name: str) -> bool:
    """Return whether a class-map has an unread line."""
    return any(name in each.place[0].split()[1:] for each in configuration.reading.unread if each.place)


# Switches.


def find_untrusted_ports(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about ports of a switch that reset marks on traffic that is matched by its marks."""
    device = subject.configuration.device
    if device.switch is None:
        return
    matching = [
        name
        for name, each in device.class_maps.items()
        if any(c.type in ("dscp", "precedence", "cos") for c in each.criteria)
    ]
    if not device.switch.enabled:
        if device.policy_maps or any(each.port and each.port.trust for each in device.interfaces.values()):
            message = "`mls qos` is not configured: trust, policy-maps and queues have no effect"
            yield PolicyFinding("error", "mls-qos-off", message, SWITCH)
        return
    for interface in device.interfaces.values():
        port, policy = interface.port, device.policy_maps.get(interface.service_policy_input or "")
        if port is None or port.trust or policy is None:
            continue
        for each in policy.classes:
            if each.name in matching and each.trust is None and not each.marks:
                message = (
                    f"{interface.name} input, class {each.name}: the class has neither `trust` nor `set`, "
                    "so marked packets leave with DSCP 0"
                )
                line = subject.configuration.line_number(policy.name, each.name)
                yield PolicyFinding("error", "untrusted-marks", message, SWITCH, line)
    bare = [
        each.name
        for each in device.interfaces.values()
        if each.port
        and not each.port.trust
        and each.service_policy_input is None
        and not each.shutdown
        and not each.port.vlan_based
    ]
    if bare and (matching or device.interfaces):
        message = f"`mls qos` without trust on {format_list(bare)}: packets from there are reset to DSCP 0"
        yield PolicyFinding("warning", "untrusted-port", message, SWITCH)


def find_unattached_policies(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about policy-maps that are not attached in a configuration that attaches others."""
    configuration = subject.configuration
    device = configuration.device
    if not configuration.attachments:
        return
    used = {
        part.name
        for at in configuration.attachments
        if at.policy in device.policy_maps
        for part in descendants(device, device.policy_maps[at.policy])
    }
    for name in device.policy_maps:
        if name not in used and not name.startswith(SYSTEM) and configuration.attached_elsewhere(name) is None:
            message = f"policy-map {name} is neither attached to an interface nor used in another policy-map"
            yield PolicyFinding("note", "policy-not-attached", message, MQC, configuration.line_number(name))


def find_other_limiters(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about limiters and queues of an interface outside policy-maps, which the values do not include."""
    configuration = subject.configuration
    for interface in configuration.device.interfaces.values():
        commands = {
            "rate-limit": interface.rate_limits,
            "traffic-shape": interface.shapers,
            "priority-group": interface.priority_group,
            "custom-queue-list": interface.custom_queue_list,
        }
        for command, given in commands.items():
            if given:
                message = f"{interface.name} also has `{command}`, which is not part of the values"
                line = configuration.interface_line(interface.name, command)
                yield PolicyFinding("note", "other-limits", message, POLICING, line)


RULES: tuple[Callable[[Subject], Iterator[PolicyFinding]], ...] = (
    find_refused_lines,
    find_queueing_on_input,
    find_missing_objects,
    find_missing_access_lists,
    find_port_shapers,
    find_port_shapers_below_tunnels,
    find_port_channels_without_aggregate,
    find_oversubscription,
    find_small_bursts,
    find_policer_before_shaper,
    find_fast_shapers,
    find_long_queues,
    find_thresholds_above_limit,
    find_bandwidth_below_line,
    find_remaining_without_shaper,
    find_unlimited_priority,
    find_percent_of_default_bandwidth,
    find_ef_without_priority,
    find_classes_without_packets,
    find_classes_behind_tunnels,
    find_untrusted_ports,
    find_unattached_policies,
    find_other_limiters,
)
