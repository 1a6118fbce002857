"""A parsed pasted configuration: the device, its attached policies, and the unread QoS lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from qoslab.errors import UserError
from qoslab.ios.cli.grammar import RejectedError
from qoslab.ios.cli.session import INERT, Position
from qoslab.ios.commands.interface import interfaces_in_range
from qoslab.ios.device_config.running_config_parser import (
    ConfigurationReading,
    UnreadLine,
    described_hardware,
    possible_generations,
    read_into,
    read_typed_lines,
)
from qoslab.ios.model.device import Device, Family, HostInterface, Interface
from qoslab.ios.model.generations import generations_with_capability
from qoslab.ios.model.ios_names import interface_kind, interface_name
from qoslab.ios.model.policy import CLASS_DEFAULT, ClassMap, PolicyMap
from qoslab.ios.rules import DEFAULT_BANDWIDTH_KBPS, check_attachment
from qoslab.model.generation import Generation
from qoslab.policy.composed_rates import bandwidth_kbps, composed_rate, speed_kbps
from qoslab.policy.other_systems import refuse_other_systems, refuse_unmodelled_switch
from qoslab.policy.pasted_text import blank_banners, extract_commands, is_indented, terminal_lines

_PORT = re.compile(r"(?im)^ *(?:interface|match +(?:not +)?input-interface) +([a-z-]+ ?\d[\d/]*)")
"""Ports, also those that the input only refers to."""
_RANGE = re.compile(r"(?im)^ *interface range +(\S.*?) *$")
_HEADER = re.compile(r"(?im)^ *class-map(?: +match-(all|any))? +(?!type\b|match-)(\S+) *$")
_CLASS = re.compile(r"(?im)^ *class +(?!type\b)(\S+)")
_NESTED = re.compile(r"(?im)^ *match +(?:not +)?class-map +(\S+)")
_POLICY = re.compile(r"(?im)^ *policy-map +(?!type\b)(\S+) *$")
_CHILD = re.compile(r"(?im)^ *service-policy +(?!(?:in|out)(?:put)? |type )(\S+) *$")
_OTHER_TYPE = re.compile(r"(?im)^ *policy-map +type +(\S+) +\S+")
_INTERFACE_QOS = re.compile(
    r"(?m)^ +(rate-limit|traffic-shape|priority-group|custom-queue-list|random-detect|fair-queue(?= \d))\b"
)
_ATTACHED = re.compile(r"(?im)^ *service-policy +(?:input|output) +(\S+) *$")
ATTACHMENT_LINE = re.compile(r"service-policy (input|output) (\S+)")
"""Line that attaches a policy-map to an interface."""
_TUNNEL_GROUPS = re.compile(r"(?:ip )?nhrp map group (\S+) service-policy (output) (\S+)")
"""Policy for each spoke of a group of a DMVPN hub."""
_ELSEWHERE = re.compile(r"(?:^| )service-policy (input|output) (\S+)$")
_WITHOUT_QOS = re.compile(r"(?m)^ip(?:v6)? route .*$")
"""Static routes: frequent in large configurations, and never a part of a policy."""
_INNER_VLAN = re.compile(r"(?:class|match|police|shape|priority|random-detect|service-policy)\b")
"""Commands that are only valid below other commands."""
_OUTER = re.compile(r"(?:policy-map|class-map|interface) ")
"""Commands that are never below other commands."""
_MTU = re.compile(r"mtu (\d+)")
_TAGS = re.compile(r"(?i)encapsulation dot1q (\d+)( second-dot1q | native)?")
_XE = re.compile(
    r"(?im)^(?:platform (?:qfp|console|punt-keepalive|hardware throughput|bfd-debug-trace|sslvpn|ipsec)\b"
    r"|boot system (?!.*-mz\.).*(?:packages\.conf|universalk9\S*\.SPA)"
    r"|license udi pid (?:ISR4|ASR1|C8|C1[01]|CSR)|license boot level \S+"
    r"|sdwan *$|netconf-yang|restconf|interface (?:TwoGigabitEthernet|FiveGigabitEthernet|VirtualPortGroup|Sdwan-))"
)
_XE_PORTS = re.compile(r"(?m)^interface (?:Ten)?GigabitEthernet\d+/\d+/\d+")
"""Ports with three numbers: without a release, IOS-XE is the most likely system."""
_SWITCH = re.compile(r"(?im)^ *(?:mls qos|switchport|srr-queue|spanning-tree|priority-queue out)\b")
_SWITCH_QOS = re.compile(r"(?im)^ *(?:mls qos|srr-queue|priority-queue out|auto qos voip)\b")
_ROUTER_QOS = re.compile(r"(?im)^ *(?:bandwidth (?:percent|remaining)|shape |priority\b(?!-)|fair-queue|random-detect)")
_SHOWN = re.compile(r"(?m)^ *(?:Service-policy (?:input|output)\s*:|Class-map: \S+ \(match-)")
"""Lines of `show policy-map interface`."""
_CONFIGURED = re.compile(
    r"(?:policy-map|class-map|interface|hostname|version|ip|access-list|service|router|Building|Current) \S"
)
"""Beginnings of configuration lines that are not indented."""
_SHOWN_ALONE = (
    (r"(?m)^ *Service-policy (?:input|output)\s*:|^ *Class-map: \S+ \(match-", "output of `show policy-map interface`"),
    (r"(?m)^ *Policy Map \S+ *$", "output of `show policy-map`"),
)
DEFAULT_CIR_BPS = 56_000
"""CIR of a Frame Relay map-class without `frame-relay cir` (Cisco IOS Wide-Area Networking Command Reference)."""
_HOSTNAME = re.compile(r"(?m)^hostname +(\S+)")
_EXPECTED = "expected a configuration with a policy-map of Cisco IOS"


@dataclass(frozen=True)
class CircuitRates:
    """Rates of a Frame Relay circuit with traffic shaping, in b/s.

    The shaper sends at the CIR. Classes divide the minimum CIR, which is half of the CIR by default (QoS Congestion
    Management Configuration Guide, IOS XE 16: total bandwidth of the classes of a map-class).
    """

    cir_bps: int
    min_cir_bps: int
    min_cir_source: str


@dataclass(frozen=True)
class Attachment:
    """A policy-map on an interface."""

    interface: str
    direction: str
    policy: str
    line: int
    """Line of the input, from 1; 0 if unknown."""
    refused: str = ""
    """Reason why the router refuses the line; empty if it accepts the line."""
    bandwidth_kbps: int | None = None
    """`bandwidth` of an interface whose kind is not modelled."""
    bandwidth_source: str = "bandwidth"
    """Source of `bandwidth_kbps`: the line, or member links that add up to it."""
    place: str = ""
    """Another location of the policy-map, such as `control-plane`; empty on an interface."""
    circuit: CircuitRates | None = None
    """Rates of the circuits of a Frame Relay map-class; None elsewhere, and without traffic shaping."""
    part: str = ""
    """Part of the interface with the policy: `group NAME` for each spoke of an NHRP group, `service instance 10`."""

    @property
    def name(self) -> str:
        """Interface and part as text."""
        return f"{self.interface} {self.part}" if self.part else self.interface


@dataclass
class ConfigurationLines:
    """Lines of the input by the line above them."""

    heads: list[str] = field(default_factory=list)
    below: dict[str, list[str]] = field(default_factory=dict)


@dataclass(eq=False)
class Configuration:
    """Parsed input, which does not change after reading. Equal only to itself."""

    reading: ConfigurationReading
    release: str = ""
    """Release in the `version` line; empty without one."""
    missing_classes: frozenset[str] = frozenset()
    """Class-maps that classes refer to and that the input lacks."""
    missing_policies: frozenset[str] = frozenset()
    attachments: list[Attachment] = field(default_factory=list)

    @property
    def device(self) -> Device:
        """The configured device."""
        return self.reading.device

    @cached_property
    def lines(self) -> ConfigurationLines:
        """Lines of interfaces, and all stored and unread lines, by the line above them."""
        lines = self.reading.input_lines()
        rows = [(each.number, each.head, each.text) for each in lines if each.head is not None]
        found = ConfigurationLines()
        for _, place, text in sorted(rows):
            if not place or place == text:
                found.heads.append(text)
            else:
                found.below.setdefault(place, []).append(text)
        return found

    def line_number(self, *names: str, command: str = "") -> int:
        """Return the line of a command; see `ConfigurationReading.line_number`."""
        return self.reading.line_number(*names, command=command)

    def attached_elsewhere(self, policy: str) -> tuple[str, str, int] | None:
        """Return location, direction and line of a policy-map that is not on an interface: control plane, map-class."""
        for each in self.reading.input_lines():
            found = _ELSEWHERE.search(each.text)
            if (
                found is not None
                and found[2] == policy
                and each.head
                and not each.head.startswith(("policy-map ", "interface "))
            ):
                place = each.text.partition(" service-policy")[0] if found.start() else each.head
                return place, found[1], each.number
        return None

    def circuit_rates(self, policy: str) -> CircuitRates | None:
        """Return the rates of the circuits with a policy-map by a map-class; None without traffic shaping."""
        place = (self.attached_elsewhere(policy) or ("",))[0]
        shaped = any("frame-relay traffic-shaping" in lines for lines in self.lines.below.values())
        if not shaped or not place.startswith("map-class frame-relay "):
            return None
        below = self.lines.below.get(place, [])
        cir = _circuit_bps("cir", below) or DEFAULT_CIR_BPS
        typed = _circuit_bps("mincir", below)
        return CircuitRates(cir, typed or cir // 2, "frame-relay mincir" if typed else "half of frame-relay cir")

    def speed_mbps(self, interface: str) -> int | None:
        """Return a forced `speed` of a port, even if the port's model lacks it."""
        kbps = speed_kbps(self._interface_texts(interface))
        return None if kbps is None else kbps // 1000

    def port_mtu(self, interface: str) -> int:
        """Return the `mtu` of a port in bytes, even if the port's model lacks it; 0 without the line."""
        texts = self._interface_texts(interface.partition(".")[0]) if interface else []
        return max((int(found[1]) for each in texts if (found := _MTU.fullmatch(each))), default=0)

    def vlan_tags(self, interface: str) -> int:
        """Return the number of VLAN tags of the frames of a subinterface."""
        found = [_TAGS.match(text) for text in self._interface_texts(interface)]
        return next((0 if each[2] == " native" else 2 if each[2] else 1 for each in found if each), 0)

    def _interface_texts(self, interface: str) -> list[str]:
        """Return the lines of an interface, also of a kind that is not modelled."""
        read = [each.text for each in self.reading.lines_below(interface)]
        return self.lines.below.get(f"interface {interface}", []) + read

    def class_map_line(self, name: str) -> int:
        """Return the line of a class-map; see `Reading.class_map_line`."""
        return self.reading.class_map_line(name)

    def interface_line(self, interface: str, command: str) -> int:
        """Return the line of a command of an interface; see `Reading.interface_line`."""
        return self.reading.interface_line(interface, command)


def _circuit_bps(word: str, lines: Iterable[str]) -> int | None:
    """Return the output rate of a line such as `frame-relay cir 64000`, `frame-relay cir out 64000`."""
    pattern = re.compile(rf"frame-relay {word} (?:out )?(\d+)")
    return next((int(found[1]) for each in lines if (found := pattern.fullmatch(each))), None)


def read_configuration(
    pasted: str,
    *,
    family: Family | None = None,
    generation: Generation | None = None,
    source: str = "input",
    routes: bool = False,
    policy_needed: bool = True,
) -> Configuration:
    """Parse pasted text, static routes only on request. Raise UserError with one sentence if it has no policy.

    Without `policy_needed` a configuration may lack policy-maps.
    """
    shown = blank_banners(terminal_lines(pasted))
    text = _blank_shown_policies(extract_commands(shown))
    if not routes:
        text = _WITHOUT_QOS.sub("", text)
    _refuse_others("\n".join(shown), text, source, policy_needed=policy_needed)
    switch = bool(_SWITCH.search(text)) and not _ROUTER_QOS.search(text) and bool(_SWITCH_QOS.search(text))
    if family == "router" and switch:
        raise UserError(
            f"{source}: found a Catalyst switch configuration (`mls qos`), expected a router configuration",
            hint="omit --model, or give --model 3750G",
        )
    if family == "switch" and not _SWITCH.search(text):
        raise UserError(
            f"{source}: found a router configuration, expected a Catalyst switch configuration",
            hint="omit --model, or give a router model",
        )
    family = family or ("switch" if switch else "router")
    later = tuple(generations_with_capability("remaining-wide"))
    released = re.search(r"(?m)^version", text) is not None
    newer = _XE.search(text) or (not released and family == "router" and _XE_PORTS.search(text))
    generations = (generation,) if generation else later if newer else possible_generations(text)
    if family == "switch":
        generations = generations[:1]
    elif len(generations) > 1 and not released:
        # Without a release: HQF, unless another generation recognises more lines.
        generations = (*generations[::-1], *later)
    indented = is_indented(text)
    best = _read_with_hardware(text, family, generations[0], indented=indented)
    for each in generations[1:]:
        if _count_unknown_lines(best) == 0:
            break
        best = min(best, _read_with_hardware(text, family, each, indented=indented), key=_count_unknown_lines)
    if indented and any(map(_is_misplaced, best.reading.unread)):
        # Some of the indentation is lost: the order of the commands may be more reliable.
        best = min(
            best, _read_with_hardware(text, family, best.device.generation, indented=False), key=_count_unknown_lines
        )
    best.release = "" if (found := re.search(r"(?m)^version +(\S+)", text)) is None else found[1]
    best.attachments = list(_read_attachments(best))
    return best


def _is_misplaced(unread: UnreadLine) -> bool:
    """Return whether an unread line shows that the indentation is wrong."""
    if unread.place:
        return unread.reason.startswith("it is unknown") and _OUTER.match(unread.text) is not None
    return _INNER_VLAN.match(unread.text) is not None


def _blank_shown_policies(text: str) -> str:
    """Empty the lines of `show policy-map interface` in a paste that also has a policy-map."""
    if not _SHOWN.search(text) or not _POLICY.search(text):
        return text
    lines = text.split("\n")
    shown = False
    before = 0
    for number, line in enumerate(lines):
        if _SHOWN.match(line):
            shown = True
            if interface_name(lines[before].strip()) is not None:
                lines[before] = ""
        elif _CONFIGURED.match(line):
            shown = False
        if line.strip():
            before = number
        if shown:
            lines[number] = ""
    return "\n".join(lines)


def _count_unknown_lines(configuration: Configuration) -> int:
    """Return the number of lines that the release does not have. Lines that it has but refuses are not counted."""
    return sum(not is_refusal(each.reason) for each in configuration.reading.unread)


def _refuse_others(shown: str, text: str, source: str, *, policy_needed: bool) -> None:
    """Raise UserError, with one sentence, for text that is not the configuration of one device with Cisco IOS, or that
    lacks a required policy.
    """
    if not text.strip() and not shown.strip():
        raise UserError(f"{source}: found no text, {_EXPECTED}", hint="paste a policy-map or a running configuration")
    refuse_other_systems(shown, source)
    refuse_unmodelled_switch(text, source)
    for pattern, name in _SHOWN_ALONE:
        if re.search(pattern, text):
            raise UserError(f"{source}: found {name}, {_EXPECTED}", hint="paste the output of `show running-config`")
    names = list(dict.fromkeys(_HOSTNAME.findall(text)))
    if len(names) > 1:
        raise UserError(
            f"{source}: found the configurations of {len(names)} devices ({', '.join(names)}), expected one",
            hint="put each configuration into its own file, or make one experiment of all of them with `qoslab import`",
        )
    if policy_needed and not _POLICY.search(text) and not _SWITCH_QOS.search(text):
        attached, other = _ATTACHED.search(text), _OTHER_TYPE.search(text)
        found, hint = "no policy-map", "paste the output of `show running-config`"
        if attached:
            found = f"policy-map {attached[1]} attached but not defined"
        elif other:
            found = f"only policy-maps of type {other[1]}, which no router uses for its queues"
        elif limits := _INTERFACE_QOS.search(text):
            found = f"no policy-map, but `{limits[1]}` on an interface"
            hint = "`qoslab explain` and `qoslab import` read such lines"
        raise UserError(f"{source}: found {found}, {_EXPECTED}", hint=hint)


def _read_with_hardware(text: str, family: Family, generation: Generation, *, indented: bool) -> Configuration:
    hardware = described_hardware(text, family, generation)
    # Interfaces whose kind has no rate (Tunnel, Port-channel) count as unknown.
    named = [interface_name(port) for port in _PORT.findall(text)]
    named += [name for each in _RANGE.findall(text) for name in interfaces_in_range(each)]
    ports = (name for name in named if name and interface_kind(name) in DEFAULT_BANDWIDTH_KBPS)
    device = Device(replace(hardware, interfaces=tuple(dict.fromkeys(ports))))
    headers = {name: match for match, name in _HEADER.findall(text)}
    classes = {*_CLASS.findall(text), *_NESTED.findall(text), *headers} - {CLASS_DEFAULT}
    for name in sorted(classes):
        # A class may precede its class-map, or lack one.
        device.class_maps[name] = ClassMap(name, "any" if headers.get(name, "").lower() == "any" else "all")
    policies = {*_POLICY.findall(text), *_CHILD.findall(text), *_ATTACHED.findall(text)}
    for name in sorted(policies):
        device.policy_maps[name] = PolicyMap(name)
    reading = ConfigurationReading(device)
    if indented:
        reading = read_into(device, text)
    else:
        read_typed_lines(reading, text)
    return _drop_placeholders(Configuration(reading))


def _drop_placeholders(configuration: Configuration) -> Configuration:
    """Remove class-maps and policy-maps that are only referred to; a class keeps an empty class-map."""
    device = configuration.device
    defined = {each.position for each in configuration.reading.executed}
    policies = {name for name in device.policy_maps if Position("policy-map", (name,)) in defined}
    missing_policies = set(device.policy_maps) - policies
    device.policy_maps = {name: each for name, each in device.policy_maps.items() if name in policies}
    attached = {each.service_policy_input for each in device.interfaces.values()}
    attached |= {each.service_policy_output for each in device.interfaces.values()}
    attached |= {each.service_policy_input for each in device.host_interfaces.values()}
    children = _child_policies(device)
    used = {each.name for policy in device.policy_maps.values() for each in policy.classes}
    used |= {each.name or "" for one in device.class_maps.values() for each in one.criteria if each.type == "class_map"}
    maps = {name for name in device.class_maps if Position("class-map", (name,)) in defined}
    device.class_maps = {name: each for name, each in device.class_maps.items() if name in maps | used}
    configuration.missing_classes = frozenset(used - maps - {CLASS_DEFAULT, ""})
    configuration.missing_policies = frozenset(missing_policies & (attached | children))
    return configuration


def outermost_policies(device: Device) -> list[str]:
    """Return the policy-maps that are not a child of another one."""
    return [name for name in device.policy_maps if name not in _child_policies(device)]


def _child_policies(device: Device) -> set[str | None]:
    return {each.service_policy for one in device.policy_maps.values() for each in one.classes}


def _read_attachments(configuration: Configuration) -> Iterator[Attachment]:
    device = configuration.device
    of_device: list[Interface | HostInterface] = [*device.interfaces.values(), *device.host_interfaces.values()]
    for interface in of_device:
        for direction in ("input", "output"):
            policy: str | None = getattr(interface, f"service_policy_{direction}", None)
            if policy is not None:
                line = configuration.interface_line(interface.name, f"service-policy {direction}")
                yield Attachment(interface.name, direction, policy, line)
    yield from _virtual_interface_policies(configuration)
    for unread in configuration.reading.unread:
        found = ATTACHMENT_LINE.fullmatch(unread.text)
        if found is not None and unread.place and unread.place[0].startswith("interface "):
            yield _refused_attachment(unread, found[1], found[2], configuration.reading.unread)


def policies_below_shaped_ports(configuration: Configuration) -> list[Attachment]:
    """Return the accepted policies of subinterfaces whose port has a shaper, which the model does not combine."""
    interfaces = configuration.device.interfaces
    return [
        each
        for each in configuration.attachments
        if each.direction == "output" and not each.refused and each.interface in interfaces and not each.part
        if (own := interfaces[each.interface]).parent is not None and own.service_policy_output is None
    ]


def _virtual_interface_policies(configuration: Configuration) -> Iterator[Attachment]:
    """Yield the policies of interfaces that are stored only as text."""
    below = [
        (each.position.names[0].removeprefix("interface "), each)
        for each in configuration.reading.executed
        if each.position.mode == INERT and each.position.names[0].startswith("interface ")
    ]
    for name, carried in below:
        interface = name.partition(" type ")[0]
        if (spokes := _TUNNEL_GROUPS.fullmatch(carried.text)) is not None:
            # The `bandwidth` of the tunnel is no limit for a spoke.
            yield Attachment(interface, spokes[2], spokes[3], carried.number, part=f"group {spokes[1]}")
        found = ATTACHMENT_LINE.fullmatch(carried.text)
        if found is not None:
            typed = bandwidth_kbps(each.text for other, each in below if other == name)
            rate = composed_rate(configuration.lines.below, interface) if typed is None else (typed, "bandwidth")
            kbps, source = rate or (None, "")
            refused = _refusal_on_any_port(configuration.device, found[1], found[2], kbps)
            yield Attachment(interface, found[1], found[2], carried.number, refused, kbps, source)


def _refusal_on_any_port(device: Device, direction: str, policy: str, kbps: int | None) -> str:
    """Return why an interface of a modelled kind with the same rate refuses a policy-map; empty if it accepts it."""
    if policy not in device.policy_maps:
        return ""
    port = Interface("GigabitEthernet0/0", bandwidth_kbps=kbps or DEFAULT_BANDWIDTH_KBPS["HundredGigE"])
    try:
        check_attachment(device, device.policy_maps[policy], port, direction)
    except RejectedError as error:
        return error.message
    return ""


def _refused_attachment(unread: UnreadLine, direction: str, policy: str, others: list[UnreadLine]) -> Attachment:
    """Return an attachment that the router refuses, or whose interface or part of an interface is not modelled."""
    interface = unread.place[0].removeprefix("interface ")
    bandwidth = bandwidth_kbps(each.text for each in others if each.place[:1] == unread.place[:1])
    known = is_refusal(unread.reason)
    part = unread.place[1].removesuffix(" ethernet") if len(unread.place) > 1 else ""
    reason = unread.reason if known else ""
    return Attachment(interface, direction, policy, unread.number, reason, bandwidth, part=part)


def is_refusal(reason: str) -> bool:
    """Return whether the reason is a refusal by a router that has the command, as opposed to a line that is not
    modelled.
    """
    unknown = ("% Invalid input", "% Incomplete", "% Ambiguous", "% Not supported", "the line above", "it is unknown")
    return not reason.startswith(unknown)
