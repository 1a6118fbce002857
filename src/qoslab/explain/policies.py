"""Steps of a packet in a policy: class, match lines, marking and policer of each level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from qoslab.explain.lines import ConfigurationLine, ConfigurationLines
from qoslab.explain.packet import dscp_name
from qoslab.explain.simulator_query import RouterPassage
from qoslab.explain.step import Step
from qoslab.ios.commands.access_list import expand_entry
from qoslab.ios.device_config.normalise import fill_in_defaults
from qoslab.ios.model.device import AccessEntry, Device, Interface
from qoslab.ios.model.policy import CLASS_DEFAULT, ClassMap, Colour, Criterion, PoliceAction
from qoslab.ios.packet_sets import IPV4, IPV6, PORTS, Box, PacketSet, criterion_packets
from qoslab.system import program_formats

COLOURS: tuple[tuple[Colour, str, str], ...] = (
    ("conform", "conformed", "conforms"),
    ("exceed", "exceeded", "exceeds"),
    ("violate", "violated", "violates"),
)
"""Colour, key of its counter, and verb."""
SET_WORDS = {
    "dscp": ("set dscp", "set ip dscp"),
    "precedence": ("set precedence", "set ip precedence"),
    "cos": ("set cos",),
    "qos_group": ("set qos-group",),
    "discard_class": ("set discard-class",),
}


@dataclass(frozen=True)
class PolicyLevel:
    """A class that matches the packet, at one level of a policy, with its counters before and after."""

    policy: str
    path: tuple[str, ...]
    before: program_formats.ClassCounters
    after: program_formats.ClassCounters
    policy_counters: tuple[program_formats.PolicyCounters, program_formats.PolicyCounters]
    """Counters of the policy-map before and after."""

    @property
    def name(self) -> str:
        """Name of the class."""
        return self.path[-1]


@dataclass(frozen=True)
class PolicyDirection:
    """A packet at an interface, in or out, with the state before and after."""

    passage: RouterPassage
    name: Literal["input", "output"]
    interface_name: str
    before: program_formats.InterfaceState
    after: program_formats.InterfaceState

    @property
    def device(self) -> Device:
        """The router."""
        return self.passage.subject.device

    @property
    def lines(self) -> ConfigurationLines:
        """Lines of the router's configuration."""
        return self.passage.subject.lines

    @property
    def interface(self) -> Interface:
        """The interface, or subinterface."""
        return self.device.interfaces[self.interface_name]

    @cached_property
    def policy_interface(self) -> str:
        """Interface with the policy: the subinterface or its port."""
        own = self.interface.service_policy_input if self.name == "input" else self.interface.service_policy_output
        return self.interface_name if own is not None else self.interface.parent or self.interface_name

    def _policy_levels(self) -> tuple[program_formats.PolicyCounters | None, program_formats.PolicyCounters | None]:
        found = []
        for state in (self.before, self.after):
            port: Mapping[str, Any] = state["interface"]
            part = port["subinterfaces"].get(self.policy_interface, port)
            found.append(part[f"policy_{self.name}"])
        return found[0], found[1]

    @cached_property
    def arriving_packet(self) -> Box:
        """The packet before the policies of this direction, as a set."""
        packet, part = self.passage.packet, self.passage.found[self.name]
        assert part is not None
        marks = part["came"]
        fields = {
            "network": IPV4 if packet.source.version == 4 else IPV6,
            "protocol": 1 << packet.protocol,
            "dscp": 1 << marks["dscp"],
            "cos": 1 << marks["cos"],
            "qos_group": 1 << marks["qos_group"],
            "discard_class": 1 << marks["discard_class"],
            "vlan": 1 << (marks["vlan"] or 0),
            "length": 1 << packet.length,
            "source_port": 1 << (PORTS if packet.source_port is None else packet.source_port),
            "destination_port": 1 << (PORTS if packet.destination_port is None else packet.destination_port),
        }
        box: Box = {name: (bits, 0) for name, bits in fields.items()}
        for name, address in (("source", packet.source), ("destination", packet.destination)):
            box[name] = (int(address), (1 << address.max_prefixlen) - 1)
        return box

    @cached_property
    def levels(self) -> list[PolicyLevel]:
        """The classes that match the packet, outermost first."""
        before, after = self._policy_levels()
        levels: list[PolicyLevel] = []
        path: tuple[str, ...] = ()
        while before is not None and after is not None:
            pairs = zip(before["classes"], after["classes"], strict=True)
            hit = next(((old, new) for old, new in pairs if new["packets"] > old["packets"]), None)
            if hit is None:
                break
            path = (*path, hit[1]["name"])
            levels.append(PolicyLevel(after["policy"], path, *hit, (before, after)))
            before, after = hit[0]["child"], hit[1]["child"]
        return levels

    @property
    def classes(self) -> list[str]:
        """Names of the classes, outermost first."""
        return [each.name for each in self.levels]

    def tokens(self, level: PolicyLevel, kind: Literal["police", "priority"]) -> list[program_formats.Tokens | None]:
        """Return the tokens of a class before and after."""
        found: list[program_formats.Tokens | None] = []
        for state in (self.before, self.after):
            wanted = [list(level.path), [self.policy_interface, *level.path]]
            buckets = next((each for each in state["buckets"] if each["path"] in wanted), None)
            found.append(None if buckets is None else buckets[kind])
        return found

    def entry_hits(self, name: str, *, filtering: bool = False) -> list[tuple[AccessEntry, ConfigurationLine | None]]:
        """Return the entries of an access list that the packet hit, with their lines.

        If a list both filters the interface and classifies, its first hit is from the filter.
        """
        before, after = (state["access_lists"].get(name, []) for state in (self.before, self.after))
        access_list = self.device.access_lists.get(name)
        if access_list is None:
            return []
        own = [entry for entry in access_list.entries for _ in expand_entry(self.device, entry)]
        found = []
        for entry, old, new in zip(own, before, after, strict=False):
            if new["packets"] > old["packets"]:
                found.append((entry, self.lines.entry_line(name, entry)))
        return found[:1] if filtering else found


def marks_step(title: str, text: str, marks: program_formats.Marks) -> Step:
    """Return a step about the marks of the packet."""
    return Step(
        "marked", title, text, values={"dscp": marks["dscp"], "cos": marks["cos"], "qos_group": marks["qos_group"]}
    )


def policy_steps(direction: PolicyDirection) -> Iterator[Step]:
    """Yield the steps of the packet in a policy, in the order of the engine."""
    if direction.levels:
        yield from _level_steps(direction, 0)


def _level_steps(direction: PolicyDirection, depth: int) -> Iterator[Step]:
    level = direction.levels[depth]
    yield _class_step(direction, level, depth)
    yield from _marking_step(direction, level)
    if depth + 1 < len(direction.levels):
        yield from _level_steps(direction, depth + 1)
    yield from _policing_step(direction, level)


def _class_step(direction: PolicyDirection, level: PolicyLevel, depth: int) -> Step:
    lines = direction.lines
    if depth == 0:
        attached = lines.interface_line(direction.policy_interface, f"service-policy {direction.name}")
    else:
        parent = direction.levels[depth - 1]
        attached = lines.class_line(parent.policy, parent.name, "service-policy")
    header = lines.class_header(level.policy, level.name)
    matched = list(_match_step(direction, level)) if level.name != CLASS_DEFAULT else []
    below = "" if depth == 0 else f", below class {direction.levels[depth - 1].name}"
    text = f"class {level.name} of policy-map {level.policy}{below}"
    if level.name == CLASS_DEFAULT:
        text += ": no other class matches" if len(direction.device.policy_maps[level.policy].classes) > 1 else ""
    chosen = [each for each in (attached, header) if each is not None]
    title = f"{direction.name.capitalize()} class" if depth == 0 else "Child class"
    values = {"direction": direction.name, "policy": level.policy, "class": level.name, "level": depth + 1}
    return Step("class", title, text, tuple(dict.fromkeys((*chosen, *matched))), values)


def _match_step(direction: PolicyDirection, level: PolicyLevel) -> Iterator[ConfigurationLine]:
    class_map = direction.device.class_maps.get(level.name)
    if class_map is None:
        return
    counts = [
        new["packets"] - old["packets"]
        for old, new in zip(level.before["criteria"], level.after["criteria"], strict=True)
    ]
    chosen = [each for each, count in zip(class_map.criteria, counts, strict=False) if count]
    yield from _criteria_lines(direction, class_map, chosen if class_map.match == "any" else class_map.criteria)


def _criteria_lines(
    direction: PolicyDirection, class_map: ClassMap, criteria: tuple[Criterion, ...] | list[Criterion]
) -> Iterator[ConfigurationLine]:
    for criterion in criteria:
        line = direction.lines.criterion_line(class_map.name, criterion)
        if line is not None:
            yield line
        if criterion.type == "access_group" and criterion.name is not None:
            yield from (line for _, line in direction.entry_hits(criterion.name) if line is not None)
        nested = direction.device.class_maps.get(criterion.name or "") if criterion.type == "class_map" else None
        if nested is not None and not criterion.negate:
            inner = nested.criteria if nested.match == "all" else _first_matching_criterion(direction, nested)
            yield from _criteria_lines(direction, nested, inner)


def _first_matching_criterion(direction: PolicyDirection, class_map: ClassMap) -> list[Criterion]:
    """Return the criterion of a nested match-any class-map that the packet matches, if it is known.

    The engine only counts the matches of the outermost class-map.
    """
    came = direction.arriving_packet
    for criterion in class_map.criteria:
        found = criterion_packets(direction.device, criterion) & PacketSet((came,))
        if not found.empty:
            return [criterion] if found.exact else []
    return []


def _marking_step(direction: PolicyDirection, level: PolicyLevel) -> Iterator[Step]:
    for old, new in zip(level.before["set"], level.after["set"], strict=True):
        if new["packets"] == old["packets"]:
            continue
        name = str(new["field"]).removeprefix("ip_")
        line = direction.lines.class_line(level.policy, level.name, *SET_WORDS.get(name, (f"set {name}",)))
        shown = dscp_name(new["value"]) if name == "dscp" else str(new["value"])
        text = f"class {level.name} sets {name.replace('_', '-')} {shown}"
        values = {"class": level.name, "field": name, "value": new["value"]}
        yield Step("marking", "Marking", text, () if line is None else (line,), values)
    for was, now in zip(level.before["map"], level.after["map"], strict=True):
        if now["packets"] == was["packets"]:
            continue
        name, source = (str(each).removeprefix("ip_").replace("_", "-") for each in (now["field"], now["source"]))
        line = direction.lines.class_line(level.policy, level.name, f"set {name} {source}", f"set ip {name} {source}")
        text = f"class {level.name} sets {name} from {source}"
        taken = {"class": level.name, "field": name, "source": source}
        yield Step("marking", "Marking", text, () if line is None else (line,), taken)


def _policing_step(direction: PolicyDirection, level: PolicyLevel) -> Iterator[Step]:
    old, new = level.before["police"], level.after["police"]
    if old is None or new is None:
        return
    before: Mapping[str, Any] = old
    after: Mapping[str, Any] = new
    hit = [each for each in COLOURS if after[each[1]] and after[each[1]]["packets"] > before[each[1]]["packets"]]
    for colour, key, verb in hit:
        size = after[key]["bytes"] - before[key]["bytes"]
        actions = _action_texts(direction, level, colour)
        verdict = " and ".join(_action_text(each) for each in actions) or "transmit"
        text = f"class {level.name}: the packet of {size} bytes {verb} ({verdict}); "
        text += _bucket_text(direction, level, after)
        line = direction.lines.class_line(level.policy, level.name, "police", "drop")
        own = direction.lines.class_line(level.policy, level.name, f"{colour}-action")
        values = {
            "class": level.name,
            "colour": colour,
            "actions": [_action_text(each) for each in actions],
            "bucket_before": direction.tokens(level, "police")[0],
            "bucket_after": direction.tokens(level, "police")[1],
        }
        lines = tuple(dict.fromkeys(each for each in (line, own) if each is not None))
        yield Step("police", "Policer", text, lines, values)


def _bucket_text(direction: PolicyDirection, level: PolicyLevel, police: Mapping[str, Any]) -> str:
    before, after = direction.tokens(level, "police")
    if before is None or after is None:
        return "bucket not known"
    text = f"bucket {before['committed_bytes']} -> {after['committed_bytes']} of {police['bc_bytes']} bytes"
    if police["be_bytes"]:
        text += f", excess {before['excess_bytes']} -> {after['excess_bytes']} of {police['be_bytes']} bytes"
    return text


def _action_texts(direction: PolicyDirection, level: PolicyLevel, colour: Colour) -> tuple[PoliceAction, ...]:
    device = fill_in_defaults(direction.device)
    policy = device.policy_maps.get(level.policy)
    found = None if policy is None else policy.find(level.name)
    if found is None or found.police is None:
        # `drop` in a class is a policer that drops everything.
        return (PoliceAction("drop"),) if found is not None and found.drop else ()
    return found.police.actions(colour) or ()


def _action_text(action: PoliceAction) -> str:
    if action.value is None:
        return action.action
    return f"{action.action} {dscp_name(action.value) if 'dscp' in action.action else action.value}"
