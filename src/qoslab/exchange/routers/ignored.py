"""Input lines that are not in the topology or the policies, with the results that they could change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from qoslab.exchange.routers.configured_interfaces import INTERFACES_WITHOUT_LINE, ConfiguredPort
from qoslab.exchange.routers.effects import (
    DEVICE,
    ENCRYPTED,
    FILTERS,
    GENERAL_EFFECTS,
    NAT,
    NO_EFFECT,
    PATH,
    UNKNOWN_EFFECT,
    effect_of_block,
    effect_of_line,
)
from qoslab.exchange.routers.input_router import AttachedInterface, InputRouter
from qoslab.exchange.routers.policy_template import PolicyTemplate
from qoslab.ios.device_config.secret_lines import remove_secrets
from qoslab.ios.parse import HEADING
from qoslab.policy.ignored import IgnoredLine, ignored_lines
from qoslab.policy.pasted_text import is_indented

_BANNER = re.compile(r"banner \S+ +(\^.|\S)(.*)")
_LIST = re.compile(r"(?:ip access-list (?:standard|extended)|ipv6 access-list|access-list) (\S+)")
_TOPOLOGY_LINES = re.compile(
    r"ip address|ip unnumbered|no shutdown|speed|clock ?rate|encapsulation (?:ppp|aal5)|no ip address|bandwidth \d|pvc "
    r"|vbr|cbr|ubr|pppoe|dialer pool|ppp multilink$|ppp multilink group|multilink-group|channel-group|switchport access"
)
"""Lines of an interface that the topology includes."""


@dataclass(frozen=True)
class OmittedLines:
    """Omitted lines; several if all lines of a block have the same reason."""

    file: str
    first: int
    last: int
    text: str
    place: str
    reason: str
    could_change: str

    @property
    def count(self) -> int:
        """Number of lines."""
        return self.last - self.first + 1

    @property
    def could_change_result(self) -> bool:
        """True if the lines could change a result."""
        return not self.could_change.startswith("nothing")


@dataclass
class _ConfigurationBlock:
    head: str
    number: int
    lines: list[tuple[int, str]]

    @property
    def rows(self) -> list[tuple[int, str]]:
        """All lines with their numbers."""
        return [(self.number, self.head), *self.lines]


class _OmissionLister:
    def __init__(self, router: InputRouter, template: PolicyTemplate) -> None:
        self.router = router
        self.template = template
        self.shown = remove_secrets(router.text).splitlines()
        self.own: dict[int, IgnoredLine] = {each.line: each for each in ignored_lines(router.configuration)}
        self.unread = {each.number: each.reason for each in router.configuration.reading.unread}
        self.used = template.used | _used_lines(router)

    def list_block(self, block: _ConfigurationBlock) -> Iterator[OmittedLines]:
        rows = [row for row in block.rows if row[0] not in self.used]
        if not rows:
            return
        if block.head.startswith("interface ") and not block.head.startswith(
            tuple(f"interface {x}" for x in INTERFACES_WITHOUT_LINE)
        ):
            yield from self.list_interface(block, rows)
            return
        effect = self.access_list_effect(block.head) or effect_of_block(block.head)
        if effect == NO_EFFECT and block.head == "redundancy" and len(block.rows) > 1:
            effect = DEVICE
        listed = [row for row in rows if row[0] in self.own or row[0] in self.template.refused]
        for number, text in listed:
            known = self.own.get(number)
            change = known.could_change if known is not None else "the queueing of the interface"
            reason = self.template.refused.get(number) or (known.reason if known is not None else "")
            yield self.omit((number, number), text, block.head, reason, change)
        if rest := [row for row in rows if row not in listed]:
            reason = self.unread.get(rest[0][0], "")
            yield self.omit((rest[0][0], rest[-1][0]), rest[0][1], "", reason, effect)

    def access_list_effect(self, head: str) -> str:
        """Return the effect of an access list by the lines that refer to it; empty for other blocks."""
        found = _LIST.match(head)
        if found is None:
            return ""
        name = re.escape(found[1])
        ports = [self.router.layout.ports.get(name) for at in self.router.attached for name in (at.port, at.carrier)]
        lines = [text for port in ports if port is not None for text in port.lines.values()]
        if any(re.match(rf"(?:ip access-group|ipv6 traffic-filter) {name} ", text) for text in lines):
            return FILTERS
        text = self.router.text
        if re.search(rf"(?m)^ip nat .*\blist {name}\b", text):
            return NAT
        if re.search(rf"(?m)^ +match address {name}\b", text):
            return ENCRYPTED
        if re.search(rf"(?m)^ +match access-group (?:name )?{name} *$", text) and "class-map type inspect" in text:
            return FILTERS
        routed = rf"(?m)^ +(?:match ip address .*\b{name}\b|.*\b(?:distribute|offset)-list (?:name )?{name}\b)"
        return PATH if re.search(routed, text) else NO_EFFECT

    def list_interface(self, block: _ConfigurationBlock, rows: list[tuple[int, str]]) -> Iterator[OmittedLines]:
        port = next((each for each in self.router.layout.ports.values() if each.line == block.number), None)
        policies = any(text.startswith(("service-policy", "rate-limit", "traffic-shape")) for _, text in rows)
        if port is not None and port.shutdown and not policies:
            yield self.omit((rows[0][0], rows[-1][0]), block.head, "", "the interface is shut down", NO_EFFECT)
            return
        name = "" if port is None else port.name
        why = self.router.left_out.get(name, "")
        for number, text in rows:
            if number == block.number and len(rows) > 1:
                continue
            known = self.own.get(number)
            effect = known.could_change if known is not None else effect_of_line(text)
            if number == block.number:
                effect = "a subnet that the topology does not have" if why else NO_EFFECT
            reason = self.template.refused.get(number) or why or (known.reason if known is not None else "not modelled")
            yield self.omit((number, number), text, block.head, reason, effect)

    def omit(self, span: tuple[int, int], text: str, place: str, reason: str, effect: str) -> OmittedLines:
        number = span[0]
        shown = " ".join(self.shown[number - 1].split()) if number <= len(self.shown) else text
        reason = reason.removeprefix("% Not supported: ").removeprefix("% ")
        if not reason or reason.startswith(("Invalid", "it is unknown", "the line above", "Incomplete", "Ambiguous")):
            reason = "not modelled"
        return OmittedLines(
            self.router.file, *span, shown, place, "without effect here" if effect == NO_EFFECT else reason, effect
        )


def group_by_effect(omitted: Sequence[OmittedLines]) -> dict[tuple[str, str], list[OmittedLines]]:
    """Return the omitted lines by effect and reason; those that only concern QoS first."""
    groups: dict[tuple[str, str], list[OmittedLines]] = {}
    for each in sorted(omitted, key=lambda each: each.could_change in GENERAL_EFFECTS):
        groups.setdefault((each.could_change, each.reason), []).append(each)
    return groups


def omitted_lines(router: InputRouter, template: PolicyTemplate) -> list[OmittedLines]:
    """Return the omitted lines of a router, without secrets."""
    lister = _OmissionLister(router, template)
    found = [each for block in _split_blocks(router) for each in lister.list_block(block)]
    return sorted(found, key=lambda each: each.first)


def _used_lines(router: InputRouter) -> set[int]:
    """Return the numbers of the lines that the topology includes."""
    found: set[int] = set()
    for attached in router.attached:
        port = router.layout.ports.get(attached.port)
        members = [] if port is None else router.layout.member_interfaces(port)
        for each in (port, router.layout.ports.get(attached.carrier), *members):
            if each is not None:
                found.add(each.line)
                found |= _ipv6_lines(each, attached)
                found |= {number for number, text in each.lines.items() if _TOPOLOGY_LINES.match(text)}
    beyond = {str(each.beyond) for each in router.attached if each.beyond is not None}
    lines = list(enumerate(router.text.splitlines(), 1))
    found |= {number for number, line in lines if line.startswith("ip route ") and beyond & set(line.split())}
    return found | {number for number, line in lines if re.match(r"(?:hostname|version) \S", line)}


def _ipv6_lines(port: ConfiguredPort, attached: AttachedInterface) -> set[int]:
    """Return the numbers of the lines with the IPv6 address of the topology."""
    found = port.ipv6_line
    if attached.ipv6 is None or found is None or found[1] != attached.ipv6:
        return set()
    return {found[0], *(number for number, text in port.lines.items() if text == "ipv6 enable")}


def _split_blocks(router: InputRouter) -> Iterator[_ConfigurationBlock]:
    """Yield the blocks of a configuration: a line and the lines below it; a banner is one block.

    Without indentation, lines of interfaces and unknown lines before the next `!` belong to the line above.
    """
    inside = {number for port in router.layout.ports.values() for number in port.lines}
    indented = is_indented(router.text)
    current: _ConfigurationBlock | None = None
    delimiter, ended = "", False
    for number, line in enumerate(router.text.splitlines(), 1):
        words = " ".join(line.split())
        if delimiter and current is not None:
            current.lines.append((number, words))
            delimiter = "" if delimiter in line else delimiter
        elif not words or words.startswith("!") or words == "end" or HEADING.fullmatch(words):
            ended = ended or words.startswith("!")
        elif current is not None and (
            line.startswith(" ")
            or (not indented and (number in inside or (not ended and effect_of_block(words) == UNKNOWN_EFFECT)))
        ):
            current.lines.append((number, words))
        else:
            if current is not None:
                yield current
            current, ended = _ConfigurationBlock(words, number, []), False
            if banner := _BANNER.match(words):
                delimiter = "" if banner[1] in banner[2] else banner[1]
    if current is not None:
        yield current
