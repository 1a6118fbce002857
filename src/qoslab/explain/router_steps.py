"""Steps of a packet at a router, each with the deciding configuration lines: the simulator's answer as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from qoslab.explain.lines import ConfigurationLine
from qoslab.explain.policies import PolicyDirection, marks_step, policy_steps
from qoslab.explain.queue_steps import queue_steps
from qoslab.explain.simulator_query import RouterPassage
from qoslab.explain.step import Step, format_ms, marks_text
from qoslab.ios.commands.class_map import match_line
from qoslab.ios.model.mtu import ip_mtu, ipv6_mtu
from qoslab.system import program_formats

REASONS = {
    "police": "a policer dropped it",
    "denied": "an access list of the interface denies it",
    "tail": "the queue was full",
    "flow": "the flow's share of the queue was full",
    "priority": "the class is above its priority rate, and there is congestion",
    "random": "random early detection dropped it, between the thresholds",
    "random_tail": "random early detection dropped it, above the maximum threshold",
    "aqm": "active queue management dropped it, since packets wait too long",
    "disabled": "the interface is shut down, or has no subinterface for the VLAN",
    "overrun": "the sender ran too far ahead of its link",
    "lost": "it was lost on the link",
}
"""Text for each drop reason in the counters."""
STEP_OF_REASON = {
    "police": "police",
    "denied": "access_list",
    "tail": "queue",
    "flow": "queue",
    "priority": "priority",
    "random": "random_detect",
    "random_tail": "random_detect",
    "aqm": "queue",
}
"""Kind of the step that drops a packet, by reason."""
FINAL_STEPS = {
    "received": "for the router itself: it goes to the control plane; no output policy applies",
    "no_route": "dropped: no route to the destination",
    "null_route": "dropped: the route leads to Null0",
    "waiting": "still in a queue at the end of the run",
}


@dataclass(frozen=True)
class Trace:
    """The path of one packet through one router."""

    router: str
    title: str
    packet: str
    state: str
    """State of the router at the arrival of the packet."""
    notes: tuple[str, ...]
    steps: tuple[Step, ...]
    result: str
    """`sent`, `dropped`, `received` or `waiting`."""
    reason: str
    """Drop reason, as named in the counters; empty if it was not dropped."""
    at_ns: int
    """Arrival time of the packet from the start of the run."""
    departure_ns: int | None
    """Time from arrival until its last bit is on the wire; None if it was not sent."""
    classes: dict[str, list[str]] = field(default_factory=dict)
    """Classes by direction, outermost first."""

    def as_dict(self) -> dict[str, Any]:
        """Return the trace as plain values, for JSON."""
        return {
            "router": self.router,
            "configuration": self.title,
            "packet": self.packet,
            "state": self.state,
            "notes": list(self.notes),
            "classes": self.classes,
            "steps": [each.as_dict(number) for number, each in enumerate(self.steps, 1)],
            "result": self.result,
            "reason": self.reason,
            "at_ns": self.at_ns,
            "departure_ns": self.departure_ns,
        }


def trace_packet(passage: RouterPassage, state: str) -> Trace:
    """Return the steps of a packet."""
    found = passage.found
    steps = list(_passage_steps(passage))
    steps.append(_verdict_step(passage, {each.name: each for each in _policy_directions(passage)}, steps))
    result, reason = _result_text(found)
    classes = {each.name: each.classes for each in _policy_directions(passage)}
    return Trace(
        passage.subject.label or passage.subject.name,
        passage.subject.title,
        str(passage.packet),
        state,
        (*passage.subject.notes, *_undecided_class_notes(passage), *_mtu_problem(passage)),
        tuple(steps),
        result,
        reason,
        found["at_ns"],
        _departure_time(found),
        {name: each for name, each in classes.items() if each},
    )


def _undecided_class_notes(passage: RouterPassage) -> Iterator[str]:
    """Yield the classes before the packet's class whose match lines are undecided here."""
    device = passage.subject.device
    for direction in _policy_directions(passage):
        for level in direction.levels:
            for each in device.policy_maps[level.policy].classes:
                if each.name == level.name:
                    break
                class_map = device.class_maps.get(each.name)
                criteria = () if class_map is None else class_map.criteria
                open_lines = [match_line(criterion) for criterion in criteria if criterion.is_undecided]
                if open_lines:
                    yield (
                        f"class {each.name} of policy-map {level.policy}: no packet matches "
                        f'"{open_lines[0]}" here; a router may decide otherwise'
                    )


def _mtu_problem(passage: RouterPassage) -> Iterator[str]:
    """Yield the output interface if its MTU is smaller than the packet: the engine does not fragment."""
    packet = passage.packet
    for direction in _policy_directions(passage):
        mtu = (ip_mtu if packet.source.version == 4 else ipv6_mtu)(direction.device, direction.interface)
        if direction.name == "output" and packet.length > mtu:
            yield (
                f"the packet exceeds the MTU of {direction.interface.name}, {mtu} bytes; a router fragments or "
                "drops it, but the simulator does neither"
            )


def _result_text(found: program_formats.Explanation) -> tuple[str, str]:
    input_, output = found["input"], found["output"]
    match found["end"]:
        case "sent":
            return "sent", ""
        case "dropped_at_input":
            return "dropped", (input_ and input_["dropped"]) or ""
        case "dropped_at_output":
            return "dropped", (output and output["dropped"]) or ""
        case "no_route" | "null_route" as end:
            return "dropped", end
        case "received" | "waiting" as end:
            return end, ""


def _departure_time(found: program_formats.Explanation) -> int | None:
    output = found["output"]
    if output is None or found["end"] != "sent":
        return None
    sent = output["sent_ns"] if output["sent_ns"] is not None else output["time_ns"]
    return None if sent is None else sent - found["at_ns"]


def _policy_directions(passage: RouterPassage) -> Iterator[PolicyDirection]:
    found = passage.found
    if found["input"] is not None and passage.input is not None:
        yield PolicyDirection(passage, "input", passage.input, found["input"]["before"], found["input"]["after"])
    route = passage.route
    if found["output"] is not None and route is not None and route.interface is not None:
        yield PolicyDirection(passage, "output", route.interface, found["output"]["before"], found["output"]["after"])


def _passage_steps(passage: RouterPassage) -> Iterator[Step]:
    found = passage.found
    directions = {each.name: each for each in _policy_directions(passage)}
    yield _arrival_step(passage)
    came = found["input"]
    if came is not None and "input" in directions:
        yield from _admission_steps(directions["input"], came["dropped"])
        yield from policy_steps(directions["input"])
        if came["came"] != came["went"]:
            yield marks_step("Marks after input", marks_text(came["came"], came["went"]), came["went"])
    if found["end"] != "dropped_at_input":
        yield _routing_step(passage)
    left = found["output"]
    if left is not None and "output" in directions:
        direction = directions["output"]
        yield from _admission_steps(direction, left["dropped"])
        yield from policy_steps(direction)
        if left["left"] is not None and left["left"] != left["came"]:
            yield marks_step("Marks after output", marks_text(left["came"], left["left"]), left["left"])
        if left["dropped"] not in ("police", "denied", "disabled"):
            yield from queue_steps(direction, left)


def _arrival_step(passage: RouterPassage) -> Step:
    subject, name = passage.subject, passage.input
    if name is None:
        text = f"{passage.input_reason}; no input policy is applied, give --from INTERFACE"
        return Step("input_interface", "Input interface", text)
    version = "ip" if passage.packet.source.version == 4 else "ipv6"
    line = subject.lines.interface_line(name, f"{version} address", "service-policy input")
    return Step(
        "input_interface",
        "Input interface",
        f"{name} ({passage.input_reason})",
        _lines_or_none(line),
        {"interface": name},
    )


def _routing_step(passage: RouterPassage) -> Step:
    route, end = passage.route, passage.found["end"]
    destination = passage.packet.destination
    if end == "received":
        return Step("route", "Route", f"{destination} is an address of the router")
    if route is None:
        hint = "; give --interface" if passage.subject.partial else ""
        return Step("route", "Route", f"no route to {destination} in the configuration{hint}")
    if route.chosen:
        text = f"output interface {route.interface} ({route.chosen})"
    elif route.interface is None:
        text = f"{route.prefix} to Null0"
    elif route.connected:
        text = f"{route.prefix}, connected to {route.interface}"
    else:
        via = "" if route.next_hop is None else f" via {route.next_hop}"
        text = f"{route.prefix}{via}, output interface {route.interface}"
    values = {"prefix": str(route.prefix), "interface": route.interface}
    return Step("route", "Route", text, _lines_or_none(route.line), values)


def _admission_steps(direction: PolicyDirection, dropped: str | None) -> Iterator[Step]:
    """Yield the steps before a policy: access lists that filter the interface, and `rate-limit`."""
    name = direction.name
    word = "in" if name == "input" else "out"
    version = direction.passage.packet.source.version
    interface = direction.interface
    groups = interface.filters if version == 4 else interface.ipv6_filters
    group = groups.input if name == "input" else groups.output
    command = "ip access-group" if version == 4 else "ipv6 traffic-filter"
    if group is not None:
        lines = direction.lines
        applied = [
            line for line in lines.interface_lines(interface.name, command) if line.text.split()[-1].startswith(word)
        ]
        hits = direction.entry_hits(group, filtering=True)
        entry = [line for _, line in hits[:1] if line is not None]
        denied = dropped == "denied"
        text = f"access list {group} {'denies' if denied else 'permits'} it"
        if denied and not hits:
            text += ": no entry matches, so the implicit deny applies"
        elif group not in direction.device.access_lists:
            text = f"access list {group} is not configured and permits everything"
        yield Step("access_list", f"Access list {word}", text, (*applied, *entry), {"access_list": group})
    yield from _rate_limit_steps(direction)


def _rate_limit_steps(direction: PolicyDirection) -> Iterator[Step]:
    key = "rate_limit_input" if direction.name == "input" else "rate_limit_output"
    before = direction.before["interface"]["rate_limit_input" if key == "rate_limit_input" else "rate_limit_output"]
    after = direction.after["interface"]["rate_limit_input" if key == "rate_limit_input" else "rate_limit_output"]
    port = direction.interface.parent or direction.interface.name
    lines = direction.lines.interface_lines(port, f"rate-limit {direction.name}")
    for index, (old, new) in enumerate(zip(before, after, strict=True)):
        conforms = new["conformed"]["packets"] > old["conformed"]["packets"]
        if not conforms and new["exceeded"]["packets"] == old["exceeded"]["packets"]:
            continue
        word = "conforms" if conforms else "exceeds"
        text = f"{word}; debt {old['current_burst_bytes']} -> {new['current_burst_bytes']} bytes"
        yield Step("rate_limit", "Rate limit", text, tuple(lines[index : index + 1]), {"colour": word})


def _verdict_step(passage: RouterPassage, directions: dict[str, PolicyDirection], steps: list[Step]) -> Step:
    found = passage.found
    result, reason = _result_text(found)
    if found["end"] in FINAL_STEPS:
        line = None if passage.route is None else passage.route.line
        return Step(
            "verdict", "Verdict", FINAL_STEPS[found["end"]], _lines_or_none(line), {"result": result, "reason": reason}
        )
    if result == "dropped":
        direction = directions["output" if found["end"] == "dropped_at_output" else "input"]
        text = f"dropped at the {direction.name} of {direction.interface.name}: {REASONS[reason]}"
        deciding = [each for each in steps if each.key == STEP_OF_REASON.get(reason)]
        owner = deciding[-1].values.get("class") if deciding else None
        text += f" (class {owner})" if owner else ""
        lines = deciding[-1].lines if deciding else ()
        return Step("verdict", "Verdict", text, lines, {"result": result, "reason": reason})
    after = _departure_time(found) or 0
    output = found["output"]
    if output is not None and output["sent_ns"] is None:
        text = f"sent; it reaches the other end {format_ms(after)} after arrival (the delay of the link varies)"
    else:
        text = f"sent; its last bit is on the wire {format_ms(after)} after arrival"
    return Step("verdict", "Verdict", text, values={"result": result, "departure_ns": after})


def _lines_or_none(line: ConfigurationLine | None) -> tuple[ConfigurationLine, ...]:
    return () if line is None else (line,)
