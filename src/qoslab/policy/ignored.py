"""Unread QoS lines of the input, with the values that they could change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from qoslab.ios.cli.session import INERT
from qoslab.ios.device_config.running_config_parser import UnreadLine, session_place
from qoslab.ios.device_config.secret_lines import remove_secrets
from qoslab.policy.pasted_configuration import ATTACHMENT_LINE, Configuration, is_refusal

_MARKS = "the marks of packets, and the classes that they match later"
_ROUTE_POLICY = re.compile(r"ip policy route-map (\S+)")
_ROUTE_MARK = re.compile(r"set ip (?:precedence|dscp|tos|qos-group)\b")
_EFFECT_PATTERNS = (
    (r"ip nbar (?:port-map|custom|attribute-map)", "the packets of classes with `match protocol`"),
    (r"match\b|class-map\b", "the packets of the class"),
    (r"class\b(?! *type)", "a class and its actions"),
    (r"(?:conform|exceed|violate)-action set-", _MARKS),
    (r"police|conform-action|exceed-action|violate-action", "the rate and the drops of the class"),
    (r"set\b|table-map|mls qos map", _MARKS),
    (
        r"bandwidth|priority|shape|fair-queue|wrr-queue|srr-queue|priority-queue|ip rsvp\b",
        "the share and the delay of the class",
    ),
    (
        r"queue-limit|queue-buffers|hold-queue|tx-ring|random-detect|queue-set|mls qos queue",
        "the length of queues, drops and delay",
    ),
    (r"service-policy|policy-map|(?:ip )?nhrp (?:map )?group", "a policy that is attached or nested"),
    (r"rate-limit|traffic-shape", "the rate of the interface"),
    (r"qos pre-classify|tunnel\b.*qos|qos\b", "the packets of classes behind a tunnel, or the counted bytes"),
    (r"mls qos|auto qos|trust|plim\b", "marks and queues of the port"),
    (r"account|frame-relay|map-class|ppp multilink|compress|ip rtp", "the counted bytes, or the order on the line"),
    (r"drop|estimate|netflow|fragment|compression", "the packets that leave the class"),
    (r"mtu\b", "the bytes of full packets, and the times computed from them"),
)
_ON_THE_LINE = re.compile(
    r"(?:ppp multilink|frame-relay) (?:fragment|interleave|ip rtp)\b|ip (?:rtp|tcp) header-compression|compress\b"
)
"""Lines of an interface of a kind that is not modelled, with an effect on packets and their order."""
_RTP_AUDIO = re.compile(r"match (?:not )?protocol rtp audio")
_OTHER_POLICY_TYPE = re.compile(r"\btype (?!queueing\b|qos\b)\S+")
"""Class-maps and policy-maps of firewalls and similar features."""
_POLICY_MODE = ("policy-map", "class-map")


@dataclass(frozen=True)
class IgnoredLine:
    """An unread line."""

    line: int
    text: str
    place: str
    reason: str
    could_change: str


def ignored_lines(configuration: Configuration) -> list[IgnoredLine]:
    """Return the QoS lines that were not read or have no effect here, in order, with secrets replaced."""
    found = (*_find_ignored(configuration), *_undecided_lines(configuration), *_marks_of_route_maps(configuration))
    return sorted(found, key=lambda each: each.line)


def _marks_of_route_maps(configuration: Configuration) -> Iterator[IgnoredLine]:
    """Yield the lines of route-maps that mark packets, if an interface uses the route-map for its packets."""
    below = configuration.lines.below
    used = {found[1] for lines in below.values() for each in lines if (found := _ROUTE_POLICY.fullmatch(each))}
    for unread in configuration.reading.unread:
        head = unread.place[0].split() if unread.place else []
        if head[:1] == ["route-map"] and head[1] in used and _ROUTE_MARK.match(unread.text):
            reason = "route-maps of interfaces are not modelled"
            yield IgnoredLine(unread.number, unread.text, unread.place[0], reason, _MARKS)


def _undecided_lines(configuration: Configuration) -> Iterator[IgnoredLine]:
    """Yield the lines with an effect on a device that the values do not include."""
    heads = {
        carried.text: next(remark.subject for remark in carried.remarks if remark.undecided)
        for carried in configuration.reading.executed
        if carried.text.startswith("interface ") and any(remark.undecided for remark in carried.remarks)
    }
    for carried in configuration.reading.executed:
        place = (
            ", ".join(session_place(carried.position)) if carried.position.mode != INERT else carried.position.names[0]
        )
        above = heads.get(carried.position.names[0]) if carried.position.mode == INERT else None
        if above and not carried.remarks and _ON_THE_LINE.match(carried.text.removeprefix("no ")):
            effect = "the counted bytes, or the order on the line"
            yield IgnoredLine(carried.number, remove_secrets(carried.text), place, above, effect)
        if _RTP_AUDIO.fullmatch(carried.text):
            reason = "decided by the UDP port alone, 16384 to 32767, and not by the payload"
            yield IgnoredLine(
                carried.number, carried.text, place, reason, "the packets of the class: video matches, too"
            )
        for remark in carried.remarks:
            effect = next((effect for pattern, effect in _EFFECT_PATTERNS if re.match(pattern, carried.text)), "")
            if remark.undecided and effect:
                names = carried.position.names
                about = remark.subject.removeprefix(f"class {names[-1]}: ") if names else remark.subject
                yield IgnoredLine(carried.number, remove_secrets(carried.text), place, about, effect)


def _invalid_reason(reason: str) -> str:
    """Return why a line is invalid: its command, or a word in it."""
    word = reason.partition(" (")[2].removesuffix(")")
    if not word:
        return "the model has no such command"
    return f"the command does not accept {f'the value {word}' if word[0].isdigit() else f'`{word}`'}"


def _find_ignored(configuration: Configuration) -> Iterator[IgnoredLine]:
    refused = {each.text for each in configuration.reading.unread}
    refused |= {each.text for each in configuration.reading.executed if any(one.undecided for one in each.remarks)}
    attached = {(each.interface, each.line) for each in configuration.attachments if not each.refused}
    for unread in configuration.reading.unread:
        if is_refusal(unread.reason) or any(unread.number == line for _, line in attached):
            continue
        effect = _possible_effect(unread)
        if effect:
            reason = unread.reason.removeprefix("% Not supported: ").removeprefix("% ")
            if reason.startswith("Invalid input"):
                above = unread.place[-1] if unread.place else ""
                below = above and any(each.startswith(above) for each in refused)
                reason = f"it is below `{above}`, which is not read" if below else _invalid_reason(reason)
                if ATTACHMENT_LINE.fullmatch(unread.text):
                    reason = "its interface is not in the input"
            yield IgnoredLine(unread.number, remove_secrets(unread.text), ", ".join(unread.place), reason, effect)


def _possible_effect(unread: UnreadLine) -> str:
    """Return the values that a line could change; empty if it is not a QoS line."""
    text = unread.text.removeprefix("no ")
    if any(_OTHER_POLICY_TYPE.search(each) for each in (text, *unread.place)):
        return ""
    if text.startswith("class ") and unread.place and unread.place[-1].startswith("frame-relay interface-dlci"):
        return "a policy that is attached or nested"
    within = bool(unread.place) and unread.place[0].startswith(_POLICY_MODE)
    if unread.place and not within and not unread.place[0].startswith(("interface", "map-class", "table-map")):
        return ""
    if unread.place[:1] and unread.place[0].startswith("interface ") and re.match(r"bandwidth \d", text):
        # A value that the router refuses; kinds of interfaces that are not modelled keep theirs.
        return "the base of percentages" if "(" in unread.reason else ""
    if (
        unread.place
        and not within
        and re.match(
            r"bandwidth|priority\b|description|set\b|match\b|class\b|police\b|account|drop|frag|net|est|comp", text
        )
    ):
        return ""
    if not unread.place and re.match(
        r"description|set\b(?! +(?:ip|dscp|precedence|cos|qos-group))|drop|estimate|netflow", text
    ):
        return ""
    found = next((effect for pattern, effect in _EFFECT_PATTERNS if re.match(pattern, text)), "")
    return found or ("the class" if within and not text.startswith("description") else "")
