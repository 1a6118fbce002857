"""Packets that the classes above leave to a class of a policy-map."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

import pytest

from qoslab.ios.class_shares import candidate_classes, whole_code_points
from qoslab.ios.model.device import Device
from qoslab.ios.packet_sets import ADDRESSES, FULL_PORT_RANGE, Box, class_packets, intersect_boxes
from qoslab.ios.parse import apply_config, parse_config
from qoslab.platforms import MODELS

LISTS = """
access-list 101 permit tcp any any eq 80
access-list 102 permit tcp 10.0.0.0 0.255.255.255 any range 70 90
access-list 102 permit udp any any
access-list 103 permit tcp 10.1.0.0 0.0.127.255 any
access-list 104 permit tcp 10.1.128.0 0.0.127.255 any
access-list 105 permit tcp 10.1.0.0 0.0.255.255 any eq 443
access-list 106 permit tcp any any established
"""


def router(text: str) -> Device:
    device = parse_config("", MODELS["3725"].hardware())
    apply_config(device, LISTS + text)
    return device


def policy(*classes: str) -> Device:
    """Return a router with a policy P whose classes A, B, … have these lines."""
    names = [chr(ord("A") + place) for place in range(len(classes))]
    maps = [f"class-map match-any {name}\n{lines}" for name, lines in zip(names, classes, strict=True)]
    return router("\n".join([*maps, "policy-map P", *(f"class {name}" for name in names)]))


def shadowed_classes(device: Device) -> dict[str, tuple[str, ...]]:
    found = candidate_classes(device, device.policy_maps["P"])
    return {each.policy_class.name: each.covering_classes for each in found if each.remaining_boxes.empty}


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        (("match dscp ef", "match dscp ef"), {"B": ("A",)}),
        (("match ip dscp ef", "match dscp ef"), {}),
        (("match access-group 103", "match access-group 104", "match access-group 105"), {"C": ("A", "B")}),
        (("match access-group 103", "match access-group 105"), {}),
        (("match access-group 101", "match access-group 102"), {}),
        (("match access-group 106", "match access-group 105"), {}),
        (("match ip precedence 5", "match ip dscp ef cs5"), {"B": ("A",)}),
        (("match any", "match access-group 101"), {"B": ("A",)}),
    ],
    ids=["same", "IPv6 is left", "halves", "one half", "ports", "opaque", "precedence", "any"],
)
def test_class_is_shadowed_if_classes_above_take_its_packets(
    classes: tuple[str, ...], expected: dict[str, tuple[str, ...]]
) -> None:
    assert shadowed_classes(policy(*classes)) == expected


def test_whole_code_points_need_all_packets_with_the_code_point() -> None:
    assert whole_code_points(policy("match dscp ef"), "A", (4, 46)) == {(4, 46), (6, 46)}
    assert whole_code_points(policy("match ip dscp ef"), "A", (4, 46)) == {(4, 46)}
    assert whole_code_points(policy("match access-group 101"), "A", (4, 46)) == set()
    device = router(
        "class-map match-all A\nmatch dscp ef\nmatch protocol tcp\nclass-map match-all B\nmatch not dscp ef"
    )
    assert whole_code_points(device, "A", (4, 46)) == set()
    assert {dscp for _, dscp in whole_code_points(device, "B", (4, 0))} == set(range(64)) - {46}


def random_classes(choice: random.Random, count: int) -> list[str]:
    lines = [f"match access-group {number}" for number in range(101, 106)]
    lines += [
        "match dscp ef",
        "match ip dscp ef af41",
        "match precedence 5",
        "match protocol tcp",
        "match protocol udp",
    ]
    return ["\n".join(choice.sample(lines, choice.randint(1, 3))) for _ in range(count)]


def packet_in_class(choice: random.Random, box: Box) -> Box:
    """Return a box with a single packet of a box."""
    found: Box = {}
    for name in ("network", "dscp", "protocol", "source_port", "destination_port"):
        bits = box.get(name, (FULL_PORT_RANGE[name], 0))[0]
        above = bits >> choice.randrange(bits.bit_length()) or 1
        bits &= ~0 << (bits.bit_length() - above.bit_length())
        found[name] = (bits & -bits, 0)
    for name in ADDRESSES:
        bits, care = box.get(name, (0, 0))
        every = (1 << 32) - 1
        found[name] = ((choice.getrandbits(32) & ~care) | bits, every)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_shadowed_class_has_no_packet_outside_classes_above(seed: int) -> None:
    choice = random.Random(seed)
    device = policy(*random_classes(choice, 8))
    above: list[Box] = []
    for each in candidate_classes(device, device.policy_maps["P"]):
        boxes = class_packets(device, each.policy_class.name).boxes
        packets = [packet_in_class(choice, choice.choice(boxes)) for _ in range(10)]
        outside = [one for one in packets if not any(intersect_boxes(one, taken) for taken in above)]
        assert not (outside and each.remaining_boxes.empty)
        above += boxes


FILTERS = """
access-list 110 deny tcp any any eq 80
access-list 110 permit tcp any any
access-list 111 deny udp any any
access-list 111 deny ip 10.0.0.0 0.255.255.255 any
access-list 111 permit ip any any
"""


@dataclass(frozen=True)
class Packet:
    """A packet with a value of each part of the fields that the lists and lines below distinguish."""

    version: int
    """Version of IP; 0 for another protocol."""
    dscp: int
    protocol: int
    source: tuple[int, int, int]
    port: int
    """Destination port."""

    def is_permitted(self, number: int) -> bool:
        """Return whether an access list of IPv4 permits it."""
        ten, tcp, udp = self.source[0] == 10, self.protocol == 6, self.protocol == 17
        near = tcp and self.source[:2] == (10, 1)
        return (
            self.version == 4
            and {
                101: tcp and self.port == 80,
                102: udp or (tcp and ten and 70 <= self.port <= 90),
                103: near and self.source[2] < 128,
                104: near and self.source[2] >= 128,
                105: near and self.port == 443,
                110: tcp and self.port != 80,
                111: not udp and not ten,
            }[number]
        )

    def matches(self, line: str) -> bool:
        """Return whether a line of a class-map matches it, by the text of the line."""
        match line.split()[1:]:
            case ["not", *rest]:
                return not self.matches(" ".join(["match", *rest]))
            case ["access-group", number]:
                return self.is_permitted(int(number))
            case ["protocol", name]:
                numbers = {"tcp": 6, "udp": 17}
                return self.version == 6 if name == "ipv6" else self.version > 0 and self.protocol == numbers[name]
            case [*ip, "dscp", "ef", "af41"]:
                return self.dscp in (46, 34) and (self.version == 4 if ip else self.version > 0)
            case [*ip, "precedence", "5"]:
                return self.dscp >> 3 == 5 and (self.version == 4 if ip else self.version > 0)
        raise AssertionError(line)


PACKETS = [
    Packet(0, 0, 0, (0, 0, 0), 0),
    *itertools.starmap(
        Packet,
        itertools.product(
            (4, 6),
            (0, 34, 40, 46),
            (1, 6, 17),
            ((10, 2, 0), (10, 1, 0), (10, 1, 200), (192, 0, 2)),
            (75, 80, 443, 5000),
        ),
    ),
]
LINES = [
    *(f"match access-group {number}" for number in (101, 102, 103, 104, 105, 110, 111)),
    *("match dscp ef af41", "match ip dscp ef af41", "match precedence 5", "match ip precedence 5"),
    *("match protocol tcp", "match protocol udp", "match protocol ipv6"),
]


@pytest.mark.parametrize("seed", range(12))
def test_class_is_shadowed_exactly_if_every_packet_goes_to_classes_above(seed: int) -> None:
    choice = random.Random(seed)
    maps = []
    for name in "ABCDEF":
        lines = [
            each.replace("match", "match not", 1) if choice.random() < 0.2 else each
            for each in choice.sample(LINES, choice.randint(1, 3))
        ]
        maps.append((name, choice.choice(("any", "all")), lines))
    text = "".join(
        f"class-map match-{kind} {name}\n" + "".join(f"{each}\n" for each in lines) for name, kind, lines in maps
    )
    device = router(FILTERS + text + "policy-map P\n" + "".join(f"class {name}\n" for name, _, _ in maps))
    left = PACKETS
    for (_, kind, lines), found in zip(maps, candidate_classes(device, device.policy_maps["P"]), strict=True):
        combined = any if kind == "any" else all
        own = [each for each in left if combined(map(each.matches, lines))]
        assert (found.policy_class.name, found.remaining_boxes.empty) == (found.policy_class.name, not own), text
        left = [each for each in left if each not in set(own)]
