"""Steps of a packet after its output policy: priority rate, queue, shapers, transmit ring and line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from qoslab.explain.lines import ConfigurationLine
from qoslab.explain.policies import PolicyDirection, PolicyLevel
from qoslab.explain.step import Step, format_ms
from qoslab.policy.rate import bps_text
from qoslab.system import program_formats

DISCIPLINES = {
    "fifo": "first in, first out",
    "weighted_fair": "weighted fair",
    "fair_queue": "fair queue of flows",
    "managed": "active queue management",
}
STRATEGIES = {
    "fifo": "first in, first out",
    "weighted_fair": "weighted fair",
    "class_based": "class-based",
    "priority": "priority-group",
    "custom": "custom-queue-list",
    "tree": "classes and queues of tc",
}


@dataclass(frozen=True)
class _PacketQueue:
    """A queue before and after the packet."""

    name: str
    policy: str
    owner: str
    """The class with the configuration lines of the queue."""
    before: Mapping[str, Any]
    after: Mapping[str, Any]


QUEUE_COMMANDS = ("queue-limit", "fair-queue", "bandwidth", "priority", "random-detect")


def queue_steps(direction: PolicyDirection, output: program_formats.OutputPassage) -> Iterator[Step]:
    """Yield the steps of a packet that has reached the queues."""
    yield from _priority_step(direction, output)
    yield _queue_step(direction, output)
    yield from _random_detect_step(direction)
    if output["dropped"] is None:
        yield from _shaper_steps(direction)
        yield _ring_step(direction, output)


def _priority_step(direction: PolicyDirection, output: program_formats.OutputPassage) -> Iterator[Step]:
    """Yield the step of the conditional policer of a priority class."""
    for level in direction.levels:
        before, after = direction.tokens(level, "priority")
        priority = level.after["priority"]
        if before is None or after is None or priority is None:
            continue
        line = direction.lines.class_line(level.policy, level.name, "priority")
        rate = f"{priority['kbps']} kb/s"
        metered = before != after or output["dropped"] == "priority"
        if not metered:
            text = f"class {level.name}: no congestion, its limit of {rate} is not applied"
        else:
            word = "is above" if output["dropped"] == "priority" else "is within"
            size = f"{before['committed_bytes']} -> {after['committed_bytes']} of {priority['burst_bytes']} bytes"
            text = f"class {level.name} {word} its limit of {rate}; bucket {size}"
        values = {"class": level.name, "metered": metered, "bucket_before": before, "bucket_after": after}
        yield Step("priority", "Priority", text, () if line is None else (line,), values)


def _queue_step(direction: PolicyDirection, output: program_formats.OutputPassage) -> Step:
    """Return the step of the queue: of the packet's class, of the class-default of its policy, or of the interface."""
    found = _packet_queue(direction)
    if found is None:
        return _interface_queue_step(direction, output)
    before, after = found.before, found.after
    size, limit = _queue_amounts(before)
    joined = after["depth_packets"] > before["depth_packets"]
    flows = "" if before["flows"] is None else f" in {_count_text(before['flows'], 'flow')}"
    text = f"{found.name}, {DISCIPLINES[before['discipline']]}: holds {size}{flows}, limit {limit}"
    if before.get("per_flow_limit") is not None:
        text += f", {before['per_flow_limit']} per flow"
    if output["dropped"] is None:
        text += f"; position {before['depth_packets'] + 1}" if joined else "; it goes straight to the transmit ring"
    lines = [direction.lines.class_line(found.policy, found.owner, each) for each in QUEUE_COMMANDS]
    known = [each for each in lines if each is not None]
    if not any(each.text.startswith("queue-limit") for each in known):
        known.append(ConfigurationLine(0, f"queue limit {limit}"))
    values = {
        "class": found.owner,
        "discipline": before["discipline"],
        "depth_packets": before["depth_packets"],
        "depth_bytes": before["depth_bytes"],
        "limit": limit,
        "position": before["depth_packets"] + 1 if joined else None,
    }
    return Step("queue", "Queue", text, tuple(known), values)


def _packet_queue(direction: PolicyDirection) -> _PacketQueue | None:
    """Return the queue of a packet: the shared queue of priority classes, else that of the innermost class that has one
    or shares the queue of the class-default next to it.
    """
    shared = (_shared_priority_queue(level) for level in reversed(direction.levels))
    if (found := next((each for each in shared if each is not None), None)) is not None:
        return found
    for level in reversed(direction.levels):
        if level.before["queue"] is not None and level.after["queue"] is not None:
            return _PacketQueue(
                f"class {level.name}", level.policy, level.name, level.before["queue"], level.after["queue"]
            )
        before, after = (policy["classes"][-1] for policy in level.policy_counters)
        if before["queue"] is not None and after["queue"] is not None:
            name = f"that of {before['name']}, because class {level.name} has no queue"
            return _PacketQueue(name, level.policy, before["name"], before["queue"], after["queue"])
    return None


def _shared_priority_queue(level: PolicyLevel) -> _PacketQueue | None:
    """Return the queue that the priority classes of a policy-map share, at the level of a class."""
    own = level.before["priority"]
    if own is None:
        return None
    wanted = own["level"]
    before, after = (
        [each for each in policy["priority_queues"] if each["level"] == wanted] for policy in level.policy_counters
    )
    if not before or not after:
        return None
    name = f"priority level {wanted} of policy-map {level.policy}"
    common = {"discipline": "fifo", "flows": None}
    return _PacketQueue(name, level.policy, level.name, {**common, **before[0]}, {**common, **after[0]})


def _count_text(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def _queue_amounts(queue: Mapping[str, Any]) -> tuple[str, str]:
    """Return the depth and the limit of a queue in the unit of the limit."""
    if queue["limit_bytes"] is None or queue["limit_packets"]:
        return _count_text(queue["depth_packets"], "packet"), f"{queue['limit_packets']} packets"
    typed = ""
    if queue["limit_ms"] is not None:
        typed = f" ({queue['limit_ms']} ms)"
    elif queue["limit_us"] is not None:
        typed = f" ({queue['limit_us']} us)"
    return (
        f"{_count_text(queue['depth_packets'], 'packet')} of {queue['depth_bytes']} bytes",
        f"{queue['limit_bytes']} bytes{typed}",
    )


def _interface_queue_step(direction: PolicyDirection, output: program_formats.OutputPassage) -> Step:
    before, after = direction.before["interface"]["queue"], direction.after["interface"]["queue"]
    port = direction.interface.parent or direction.interface.name
    joined = after["depth"] > before["depth"]
    size, limit = _count_text(before["depth"], "packet"), f"{before['limit']} packets"
    text = f"{port}, {STRATEGIES[before['strategy']]}: holds {size}, limit {limit}"
    if output["dropped"] is None:
        text += f"; position {before['depth'] + 1}" if joined else "; it goes straight to the transmit ring"
    commands = ("hold-queue", "fair-queue", "priority-group", "custom-queue-list")
    lines = [direction.lines.interface_line(port, each) for each in commands]
    known = [each for each in lines if each is not None] or [ConfigurationLine(0, f"queue limit {limit}")]
    values = {
        "interface": port,
        "discipline": before["strategy"],
        "depth_packets": before["depth"],
        "limit": limit,
        "position": before["depth"] + 1 if joined else None,
    }
    return Step("queue", "Queue", text, tuple(known), values)


def _random_detect_step(direction: PolicyDirection) -> Iterator[Step]:
    for level in direction.levels:
        red = level.before["random_detect"]
        if red is None:
            continue
        line = direction.lines.class_line(level.policy, level.name, "random-detect")
        unit = "bytes" if red["in_bytes"] else "packets"
        text = f"class {level.name}: mean depth {red['mean_depth']:.1f} {unit}"
        row = _counted_red_row(level)
        if row is not None:
            text += (
                f"; {red['basis']} {row['value']}: minimum {row['min']}, maximum {row['max']}, 1/{row['denominator']}"
            )
        values = {"class": level.name, "mean_depth": red["mean_depth"], "row": row and row["value"]}
        yield Step("random_detect", "WRED", text, () if line is None else (line,), values)


def _counted_red_row(level: PolicyLevel) -> program_formats.RandomDetectRow | None:
    """Return the row of random-detect thresholds that counted the packet."""
    before, after = level.before["random_detect"], level.after["random_detect"]
    if before is None or after is None:
        return None
    known = {each["value"]: each for each in before["classes"]}

    def count(row: program_formats.RandomDetectRow | None) -> int:
        counts = () if row is None else (row["random_drop"], row["tail_drop"], row["transmitted"])
        return sum(each["packets"] for each in counts)

    return next((each for each in after["classes"] if count(each) > count(known.get(each["value"]))), None)


def _shaper_steps(direction: PolicyDirection) -> Iterator[Step]:
    """Yield the steps of the shapers of the classes, and of packets that already wait for them."""
    for level in reversed(direction.levels):
        before, after = level.before["shape"], level.after["shape"]
        if before is None or after is None:
            continue
        line = direction.lines.class_line(level.policy, level.name, "shape")
        rate = bps_text(after["target_bps"])
        passed = after["sent"]["packets"] > before["sent"]["packets"]
        waits = "it passes at once" if passed else "it waits for credit"
        had, has, most = before["credit_bits"], after["credit_bits"], after["credit_limit_bits"]
        text = f"class {level.name}, {rate}: {waits}; credit {had // 8} -> {has // 8} of {most // 8} bytes"
        values = {"class": level.name, "waits": not passed, "credit_before_bits": had, "credit_after_bits": has}
        yield Step("shape", "Shaper", text, () if line is None else (line,), values)


def _ring_step(direction: PolicyDirection, output: program_formats.OutputPassage) -> Step:
    port = direction.interface.parent or direction.interface.name
    ring, interface = direction.before["interface"]["tx_ring"], direction.before["interface"]
    line_ns = -(-output["came"]["line_bytes"] * 8 * 10**9 // interface["line_rate_bps"])
    text = f"{ring['depth']} of {ring['limit']} in the ring; {bps_text(interface['line_rate_bps'])} line: "
    text += f"{output['came']['line_bytes']} bytes take {format_ms(line_ns)}"
    sent = output["sent_ns"]
    if sent is not None and direction.interface.kind != "ATM":
        came = direction.passage.found["at_ns"]
        text += f"; starts {format_ms(max(sent - came - line_ns, 0))} after arrival"
    line = direction.lines.interface_line(port, "tx-ring-limit")
    rate = direction.lines.interface_line(port, "clock rate", "speed")
    known = tuple(each for each in (line, rate) if each is not None)
    values = {"ring_depth": ring["depth"], "ring_limit": ring["limit"], "line_bytes": output["came"]["line_bytes"]}
    return Step("line", "Ring and line", text, known, values)
