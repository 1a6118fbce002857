"""Packets that the classes above leave to a class of a policy-map."""

from __future__ import annotations

import random

import pytest

from qoslab.ios.class_shares import candidates, whole_code_points
from qoslab.ios.model.device import Device
from qoslab.ios.packet_sets import ADDRESSES, FULL, Box, class_packets, common_box
from qoslab.ios.parse import apply, parse_config
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
    apply(device, LISTS + text)
    return device


def policy(*classes: str) -> Device:
    """Return a router with a policy P whose classes A, B, … have these lines."""
    names = [chr(ord("A") + place) for place in range(len(classes))]
    maps = [f"class-map match-any {name}\n{lines}" for name, lines in zip(names, classes, strict=True)]
    return router("\n".join([*maps, "policy-map P", *(f"class {name}" for name in names)]))


def shadowed(device: Device) -> dict[str, tuple[str, ...]]:
    found = candidates(device, device.policy_maps["P"])
    return {each.policy_class.name: each.above for each in found if each.left.empty}


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
def test_a_class_is_shadowed_if_classes_above_take_its_packets(
    classes: tuple[str, ...], expected: dict[str, tuple[str, ...]]
) -> None:
    assert shadowed(policy(*classes)) == expected


def test_whole_code_points_need_all_packets_with_the_code_point() -> None:
    assert whole_code_points(policy("match dscp ef"), "A") == {(4, 46), (6, 46)}
    assert whole_code_points(policy("match ip dscp ef"), "A") == {(4, 46)}
    assert whole_code_points(policy("match access-group 101"), "A") == set()
    device = router(
        "class-map match-all A\nmatch dscp ef\nmatch protocol tcp\nclass-map match-all B\nmatch not dscp ef"
    )
    assert whole_code_points(device, "A") == set()
    assert {dscp for _, dscp in whole_code_points(device, "B")} == set(range(64)) - {46}


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


def packet_of(choice: random.Random, box: Box) -> Box:
    """Return a box with a single packet of a box."""
    found: Box = {}
    for name in ("network", "dscp", "protocol", "source_port", "destination_port"):
        bits = box.get(name, (FULL[name], 0))[0]
        above = bits >> choice.randrange(bits.bit_length()) or 1
        bits &= ~0 << (bits.bit_length() - above.bit_length())
        found[name] = (bits & -bits, 0)
    for name in ADDRESSES:
        bits, care = box.get(name, (0, 0))
        every = (1 << 32) - 1
        found[name] = ((choice.getrandbits(32) & ~care) | bits, every)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_a_shadowed_class_has_no_packet_outside_classes_above(seed: int) -> None:
    choice = random.Random(seed)
    device = policy(*random_classes(choice, 8))
    above: list[Box] = []
    for each in candidates(device, device.policy_maps["P"]):
        boxes = class_packets(device, each.policy_class.name).boxes
        packets = [packet_of(choice, choice.choice(boxes)) for _ in range(10)]
        outside = [one for one in packets if not any(common_box(one, taken) for taken in above)]
        assert not (outside and each.left.empty)
        above += boxes
