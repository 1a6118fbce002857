"""Findings about classes: settings that defeat their own purpose, and classes without packets."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from math import sqrt

from qoslab.ios.class_shares import candidate_classes, whole_code_points
from qoslab.ios.commands.queueing import SUM_EXCEEDS
from qoslab.ios.model import engine_defaults
from qoslab.ios.model.policy import CLASS_DEFAULT
from qoslab.ios.packet_sets import no_match_reason
from qoslab.policy.class_values import ClassValues, PoliceValues, PolicyValues
from qoslab.policy.effective import MTU
from qoslab.policy.matching import complete_device
from qoslab.policy.pasted_configuration import Configuration
from qoslab.policy.policy_finding import (
    ARITHMETIC,
    CONGESTION,
    MQC,
    POLICING,
    RFC_2697,
    RFC_3246,
    RFC_7567,
    STARVATION,
    SYSTEM,
    TUNNELS,
    PolicyFinding,
    Severity,
    Subject,
    class_place,
    policy_place,
)
from qoslab.policy.rate import Rate, bps_text, format_number
from qoslab.policy.tunnels import find_encapsulation, hidden_classes

EF = 46
MAX_QUEUE_MS = 1000.0
SHORT_BURST_MS = 100.0
"""Burst of a policer, as a time at its rate, below which it limits TCP at usual Internet round trip times."""
SEGMENT = 1500
"""Bytes of an IP packet with a full TCP segment."""


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
                f"{policy_place(policy)}: the classes of policy-map {group[0].policy} reserve {total}, but only {top} "
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
                f"{class_place(each)}: the burst of {police.bc_bytes} bytes is smaller than one packet of {frame} "
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
        f"{class_place(each)}: the burst of {police.bc_bytes} bytes is {format_number(ms, 2)} ms "
        f"of {police.cir}: one TCP connection "
        f"with a longer round trip does not reach the rate; the default burst is {default} bytes (check with --rtt)"
    )
    yield PolicyFinding(
        "note", "short-burst", message, f"{ARITHMETIC}; docs/policies.md", subject.line_number(each, "police")
    )


def _rtt_message(each: ClassValues, burst: int, product: float, bps: float, rtt_s: float) -> str:
    segments = product / SEGMENT
    text = (
        f"{class_place(each)}: the burst of {burst} bytes is below rate x RTT = {bps_text(bps)} x "
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
                f"{class_place(each)}: its policer drops before the shaper of class {each.path[-2]} can delay; "
                "`bandwidth` or `shape` would queue"
            )
            yield PolicyFinding("note", "policer-before-shaper", message, POLICING, subject.line_number(each, "police"))
        elif shape is not None and shape.rate.lower(police.cir) == police.cir:
            message = (
                f"{class_place(each)}: the policer of {police.cir} comes before the shaper of {shape.rate}, so the "
                "shaper never delays a packet"
            )
            yield PolicyFinding(
                "warning", "policer-before-shaper", message, POLICING, subject.line_number(each, "police")
            )
        elif shape is not None:
            message = (
                f"{class_place(each)}: packets are policed to {police.cir} before they are shaped to {shape.rate}; "
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
                    f"{class_place(each)}: the shaper of {each.shape.rate} is above {limit}, {name}: it never "
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
                f"{class_place(each)}: without `bandwidth`, a flow gets about {each.busy} by its weight "
                "while the other "
                "classes are busy"
            )
            yield PolicyFinding("warning", "class-default-starves", message, STARVATION, subject.line_number(each, ""))
            continue
        depth = f"{queue.packets} packets" if queue.packets is not None else f"{queue.bytes} bytes"
        message = (
            f"{class_place(each)}: a full queue of {depth} takes {queue.ms / 1000:.1f} s to drain at "
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
            f"{class_place(each)}: the queue limit of {limit} {red.unit} is below the thresholds {first.minimum}-"
            f"{first.maximum} of {red.basis} {first.value}: {lost}; raise `queue-limit` or lower the thresholds"
        )
        yield PolicyFinding("warning", "red-above-limit", message, CONGESTION, subject.line_number(each, "queue-limit"))


def find_policers_of_other_base(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about percentages of a nested policer whose parent class has a rate, but no shaper."""
    classes = {(policy.number, each.path): each for policy, each in subject.classes()}
    for policy, each in subject.classes():
        typed = subject.configured_class(each)
        parent = classes.get((policy.number, each.path[:-1]))
        above = None if parent is None else subject.configured_class(parent)
        if each.police is None or typed is None or typed.police is None or typed.police.cir.unit != "percent":
            continue
        if parent is None or above is None or above.shape is not None or not (above.police or above.bandwidth):
            continue
        share = typed.police.cir.number
        message = (
            f"{class_place(each)}: `police cir percent {share}` is of the rate above the parent, {each.police.cir}"
        )
        severity: Severity = "note"
        if parent.police is not None:
            other = parent.police.cir.multiplied_by(share / 100)
            message += f", or of the policer of class {parent.name}, {other}: the documents differ; type a rate"
            severity = "warning"
        else:
            message += f": `bandwidth` of class {parent.name} is no maximum; type a rate"
        yield PolicyFinding(severity, "base-of-nested-policer", message, POLICING, subject.line_number(each, "police"))


def find_unlimited_priority(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about priority classes that may take the whole line."""
    for policy, each in subject.classes():
        typed = subject.configured_class(each)
        if policy.queues and typed and typed.priority and typed.priority.unit == "strict" and typed.police is None:
            message = f"{class_place(each)}: priority without a rate or policer can starve the other classes"
            yield PolicyFinding(
                "warning", "priority-without-limit", message, CONGESTION, subject.line_number(each, "priority")
            )


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
                message = f"{class_place(each)}: EF{shared} has no priority: it waits behind other traffic"
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
