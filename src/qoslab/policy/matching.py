"""Packets that class-maps can match, by code point: classes that match nothing, and classes that others take all of.

A code point is counted once for IPv4 and once for IPv6, since `match ip dscp` is for IPv4 alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from qoslab.ios.model.device import Device
from qoslab.ios.model.ios_names import dscp_text
from qoslab.ios.model.policy import CLASS_DEFAULT, ClassMap, Criterion, PolicyMap

Points = frozenset[tuple[int, int]]
EVERY: Points = frozenset((version, dscp) for version in (4, 6) for dscp in range(64))
NONE: Points = frozenset()
_NUMBERS = ("cos", "qos_group", "discard_class")
_TRANSPORTS = frozenset({"tcp", "udp", "icmp", "ospf", "eigrp"})
MAX_NESTED = 16


@dataclass(frozen=True)
class Matched:
    """Code points that a class-map can match, and those of which it matches every packet."""

    some: Points
    all: Points


def matched(device: Device, class_map: ClassMap, nested: int = 0) -> Matched:
    """Return what a class-map matches. One without criteria matches nothing."""
    if not class_map.criteria:
        return Matched(NONE, NONE)
    each = [_criterion(device, criterion, nested) for criterion in class_map.criteria]
    if class_map.match == "any":
        return Matched(frozenset().union(*(one.some for one in each)), frozenset().union(*(one.all for one in each)))
    some, every = EVERY, EVERY
    for one in each:
        some, every = some & one.some, every & one.all
    return Matched(some, every)


def _criterion(device: Device, criterion: Criterion, nested: int) -> Matched:
    versions = (4,) if criterion.ip_only else (4, 6)
    if criterion.type == "any":
        found = Matched(EVERY, EVERY)
    elif criterion.type in ("dscp", "precedence"):
        by_dscp = criterion.type == "dscp"
        points = frozenset(
            (version, dscp)
            for version, dscp in EVERY
            if version in versions and (dscp if by_dscp else dscp >> 3) in criterion.values
        )
        found = Matched(points, points)
    elif criterion.type == "class_map":
        other = device.class_maps.get(criterion.name or "")
        found = Matched(EVERY, NONE) if other is None or nested >= MAX_NESTED else matched(device, other, nested + 1)
    else:
        found = Matched(EVERY, NONE)
    return Matched(EVERY - found.all, EVERY - found.some) if criterion.negate else found


def never_matches(device: Device, class_map: ClassMap) -> str:
    """Return why a class-map can match no packet; empty where it can match one."""
    if not class_map.criteria:
        return "it has no match line"
    if class_map.match == "all":
        for one, other in combinations(class_map.criteria, 2):
            if why := _exclude(device, one, other):
                return why
    if not matched(device, class_map).some:
        return "its match lines exclude each other"
    return ""


def _exclude(device: Device, one: Criterion, other: Criterion) -> str:
    both = f"match-all needs both `{criterion_text(one)}` and `{criterion_text(other)}`"
    if one.negate or other.negate:
        return "" if _criterion(device, one, 0).some & _criterion(device, other, 0).some else both
    if {one.type, other.type} <= {"dscp", "precedence"}:
        meet = bool(_criterion(device, one, 0).some & _criterion(device, other, 0).some)
    elif one.type == other.type and one.type in _NUMBERS:
        meet = bool(set(one.values) & set(other.values))
    elif one.type == other.type == "input_interface":
        meet = one.name == other.name
    elif one.type == other.type == "protocol":
        meet = one.name == other.name or not {one.name, other.name} <= _TRANSPORTS
    else:
        meet = True
    return "" if meet else f"{both}, and no packet has both"


def criterion_text(criterion: Criterion) -> str:
    """Return a criterion as it is typed."""
    words = ["match", *(["not"] if criterion.negate else []), *(["ip"] if criterion.ip_only else [])]
    words.append(criterion.type.replace("_", "-"))
    text = dscp_text if criterion.type == "dscp" else str
    return " ".join([*words, *map(text, criterion.values), *([criterion.name] if criterion.name else [])])


def shadowed(device: Device, policy: PolicyMap) -> Iterator[tuple[str, str]]:
    """Yield each class of a policy-map that gets no packet, with the classes above it that take them all."""
    taken = NONE
    above: list[ClassMap] = []
    for each in policy.classes:
        class_map = device.class_maps.get(each.name)
        if each.name == CLASS_DEFAULT or class_map is None or not class_map.criteria:
            continue
        own = matched(device, class_map)
        same = next((other.name for other in above if _within(class_map, other)), "")
        if own.some and own.some <= taken:
            yield each.name, ", ".join(other.name for other in above if matched(device, other).all & own.some)
        elif same and own.some:
            yield each.name, same
        taken |= own.all
        above.append(class_map)


def _within(inner: ClassMap, outer: ClassMap) -> bool:
    """Return whether each packet of a class-map is one of the other, by their match lines alone."""
    if outer.match == "any" or len(outer.criteria) == 1:
        if inner.match == "any":
            return set(inner.criteria) <= set(outer.criteria)
        return not set(inner.criteria).isdisjoint(outer.criteria)
    return (inner.match == "all" or len(inner.criteria) == 1) and set(outer.criteria) <= set(inner.criteria)
