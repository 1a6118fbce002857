"""Packets that the classes of a policy-map get: those that match it and no class above it.

The packets of the classes above are not subtracted from all packets, which takes a number of boxes that grows with each
class. A class's own boxes are examined one by one, against the few boxes above that overlap them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from qoslab.ios.model.device import Device
from qoslab.ios.model.policy import Criterion, PolicyClass, PolicyMap
from qoslab.ios.packet_sets import (
    ADDRESSES,
    ALL_PACKETS,
    IPV4,
    IPV6,
    NO_PACKETS,
    Box,
    PacketSet,
    class_packets,
    criterion_packets,
    intersect_boxes,
    subtract_box,
)

MAX_STEPS = 20_000
"""Number of steps after which a box counts as not covered."""


@dataclass
class TakenBoxes:
    """Boxes of packets that classes take, indexed by the field that distinguishes them best."""

    _boxes: list[Box] = field(default_factory=list)
    _groups: dict[tuple[str, int], dict[int, list[int]]] = field(default_factory=dict)
    """Places of boxes by field, with the significant bits of an address, and by value."""
    _others: list[int] = field(default_factory=list)
    """Places of boxes with no such field."""

    def add(self, boxes: Iterable[Box]) -> None:
        """Add boxes."""
        for box in boxes:
            place = len(self._boxes)
            self._boxes.append(box)
            found = _index_key(box)
            if found is None:
                self._others.append(place)
            else:
                group, value = found
                self._groups.setdefault(group, defaultdict(list))[value].append(place)

    def overlapping_boxes(self, box: Box, until: int) -> Iterator[Box]:
        """Yield the boxes with packets of a box, of the first `until` boxes."""
        places = list(self._others)
        for (name, care), values in self._groups.items():
            bits, own = box.get(name, (0, 0))
            if name in ADDRESSES and own & care == care:
                places += values.get(bits & care, ())
            elif name not in ADDRESSES and bits and bits & (bits - 1) == 0:
                places += values.get(bits, ())
            else:
                places += (place for each in values.values() for place in each)
        known = (self._boxes[place] for place in sorted(places) if place < until)
        yield from (other for other in known if intersect_boxes(other, box) is not None)

    def __len__(self) -> int:
        """Return the number of boxes."""
        return len(self._boxes)


def _index_key(box: Box) -> tuple[tuple[str, int], int] | None:
    """Return the group and the value of a box; None without a field that has one value."""
    addresses = [(care.bit_count(), name, care, bits) for name in ADDRESSES for bits, care in [box.get(name, (0, 0))]]
    length, name, care, bits = max(addresses)
    if length:
        return (name, care), bits & care
    single = ((name, bits) for name, (bits, _) in box.items() if name != "network" and bits & (bits - 1) == 0)
    return next((((name, 0), bits) for name, bits in single if name not in ADDRESSES), None)


def _is_covered(box: Box, others: list[Box]) -> bool:
    """Return whether other boxes have all packets of a box; False if that takes too long to find out."""
    parts, steps = [(box, 0)], 0
    while parts:
        part, place = parts.pop()
        while place < len(others) and intersect_boxes(part, others[place]) is None:
            place += 1
        steps += 1
        if place == len(others) or steps > MAX_STEPS:
            return False
        parts += [(each, place + 1) for each in subtract_box(part, others[place])]
    return True


@dataclass(frozen=True)
class ClassShare:
    """Packets without those that other classes take: the first boxes of each of `taken`."""

    packets: PacketSet
    taken: tuple[tuple[TakenBoxes, int], ...] = ()

    @cached_property
    def empty(self) -> bool:
        """True if others take all packets; False if that takes too long to find out."""
        return all(
            _is_covered(box, [other for taken, until in self.taken for other in taken.overlapping_boxes(box, until)])
            for box in self.packets.boxes
        )


@dataclass(frozen=True)
class ClassCandidate:
    """A class of a policy-map with the packets that match it (`met`), and those not taken by a class above (`left`)."""

    policy_class: PolicyClass
    matching_boxes: ClassShare
    remaining_boxes: ClassShare
    covering_classes: tuple[str, ...]
    """Classes above it that take its packets, if none are left."""


def candidate_classes(
    device: Device, policy: PolicyMap, arriving: ClassShare | None = None
) -> Iterator[ClassCandidate]:
    """Yield the classes of a policy-map in order; a packet belongs to the first class that it matches."""
    arriving = ClassShare(ALL_PACKETS) if arriving is None else arriving
    taken, above, lines = TakenBoxes(), dict[str, PacketSet](), _ClassesByLine(device)
    for each in policy.classes:
        packets = class_packets(device, each.name)
        met = ClassShare(packets & arriving.packets, arriving.taken)
        left = replace(met, taken=(*met.taken, (taken, len(taken))))
        takers = lines.containing_classes(each.name)
        if takers:
            left = ClassShare(NO_PACKETS)
        elif left.empty:
            takers = [other for other, its in above.items() if not (its & met.packets).empty]
        yield ClassCandidate(each, met, left, tuple(takers))
        taken.add(_certain_boxes(device, each.name))
        above[each.name] = packets
        lines.add(each.name)


def _certain_boxes(device: Device, name: str) -> Iterator[Box]:
    """Yield boxes of packets that certainly match a class."""
    class_map = device.class_maps.get(name)
    if class_map is None or class_map.match == "all":
        sets = [class_packets(device, name)]
    else:
        sets = [criterion_packets(device, each) for each in class_map.criteria]
    yield from (box for each in sets if each.exact for box in each.boxes)


class _ClassesByLine:
    """Classes of a policy-map so far, by their `match` lines."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._order: dict[str, int] = {}
        self._names: dict[Criterion, list[str]] = defaultdict(list)

    def add(self, name: str) -> None:
        """Add a class."""
        self._order[name] = len(self._order)
        class_map = self._device.class_maps.get(name)
        for each in dict.fromkeys(() if class_map is None else class_map.criteria):
            self._names[each].append(name)

    def containing_classes(self, name: str) -> list[str]:
        """Return the classes that contain a class according to their lines alone."""
        class_map = self._device.class_maps.get(name)
        lines = () if class_map is None else class_map.criteria
        near = {other for each in lines for other in self._names.get(each, ())}
        return [other for other in sorted(near, key=self._order.__getitem__) if _is_subset(self._device, name, other)]


def _is_subset(device: Device, name: str, other: str) -> bool:
    """Return whether a class-map is a subset of another one by their `match` lines alone."""
    inner, outer = device.class_maps[name], device.class_maps[other]
    if outer.match == "any" or len(outer.criteria) == 1:
        if inner.match == "any":
            return set(inner.criteria) <= set(outer.criteria)
        return not set(inner.criteria).isdisjoint(outer.criteria)
    return (inner.match == "all" or len(inner.criteria) == 1) and set(outer.criteria) <= set(inner.criteria)


def whole_code_points(device: Device, name: str, needed: tuple[int, int]) -> frozenset[tuple[int, int]]:
    """Return the pairs of IP version and DSCP that a class-map matches regardless of other fields; none if the needed
    pair is not one of them.
    """
    class_map = device.class_maps.get(name)
    if class_map is None or class_map.match == "any":
        sets = [list(_certain_boxes(device, name))]
    else:
        each_line = [criterion_packets(device, each) for each in class_map.criteria]
        sets = [list(each.boxes) if each.exact else [] for each in each_line] or [[]]
    if not all(_is_covered(_code_point_box(*needed), boxes) for boxes in sets):
        return frozenset()
    # Code points that no box distinguishes have the same result.
    masks = sorted({box["dscp"][0] for boxes in sets for box in boxes if "dscp" in box})
    alike = defaultdict[tuple[int, ...], list[int]](list)
    for dscp in range(64):
        alike[tuple(mask >> dscp & 1 for mask in masks)].append(dscp)
    found = set[tuple[int, int]]()
    for version in (4, 6):
        for points in alike.values():
            if all(_is_covered(_code_point_box(version, points[0]), boxes) for boxes in sets):
                found.update((version, dscp) for dscp in points)
    return frozenset(found)


def _code_point_box(version: int, dscp: int) -> Box:
    return {"network": (IPV4 if version == 4 else IPV6, 0), "dscp": (1 << dscp, 0)}
