"""Class-maps that can match no packet, and those that can."""

from __future__ import annotations

import pytest

from qoslab.ios.model.device import Device
from qoslab.ios.packet_sets import class_packets, no_match_reason
from qoslab.ios.parse import apply_config, parse_config
from qoslab.platforms import MODELS


def router(text: str) -> Device:
    device = parse_config("", MODELS["3725"].hardware())
    apply_config(device, text)
    return device


def never_matches_text(text: str) -> str:
    device = router(text)
    return no_match_reason(device, device.class_maps["C"])


EF_AND_AF41 = 'no packet matches both "match ip dscp ef" and "match ip dscp af41"'
LISTS = """
access-list 101 permit udp any any range 16384 20000
access-list 102 permit udp any any range 20001 32767
access-list 103 deny udp any any eq 20000
access-list 103 permit udp any any range 16384 20000
access-list 104 permit udp any any eq 20000
access-list 105 permit ip 10.0.0.0 0.255.255.255 any
access-list 106 permit ip 10.1.0.0 0.0.255.255 any
access-list 107 permit ip 192.168.0.0 0.0.255.255 any
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("class-map match-all C", "it has no match statement"),
        ("class-map match-all C\nmatch ip dscp ef\nmatch ip dscp af41", EF_AND_AF41),
        ("class-map match-all C\nmatch dscp ef\nmatch precedence 4", "no packet matches both"),
        ("class-map match-all C\nmatch dscp ef\nmatch not dscp ef", "no packet matches both"),
        ("class-map match-all C\nmatch dscp ef af41\nmatch not dscp ef\nmatch not dscp af41", "no packet matches all"),
        ("class-map match-all C\nmatch protocol tcp\nmatch protocol udp", "no packet matches both"),
        ("class-map match-all C\nmatch packet length max 100\nmatch packet length min 200", "no packet matches both"),
        ("class-map match-all C\nmatch access-group 9", "there is no access list 9"),
        (LISTS + "class-map match-all C\nmatch access-group 101\nmatch access-group 102", "no packet matches both"),
        (LISTS + "class-map match-all C\nmatch access-group 103\nmatch access-group 104", "no packet matches both"),
        (LISTS + "class-map match-all C\nmatch access-group 106\nmatch access-group 107", "no packet matches both"),
        (LISTS + "class-map match-all C\nmatch access-group 106\nmatch not access-group 105", "no packet matches both"),
        (
            "class-map match-all A\nmatch dscp ef\nmatch dscp cs1\nclass-map match-any C\nmatch class-map A",
            "class-map A",
        ),
        ("class-map match-all C\nmatch not any", 'no packet matches "match not any"'),
        (
            "class-map match-any A\nmatch dscp ef\nclass-map match-all C\nmatch class-map A\nmatch dscp af11",
            "no packet matches both",
        ),
    ],
)
def test_class_map_without_matching_packets_has_a_reason(text: str, expected: str) -> None:
    assert expected in never_matches_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "class-map match-any C\nmatch ip dscp ef\nmatch ip dscp af41",
        "class-map match-all C\nmatch ip dscp ef af41",
        "class-map match-all C\nmatch dscp ef\nmatch precedence 5",
        "class-map match-all C\nmatch not dscp ef",
        "class-map match-all C\nmatch protocol http",
        "class-map match-all C\nmatch protocol http\nmatch protocol tcp",
        "class-map match-all C\nmatch access-group 110\naccess-list 110 permit tcp any any established",
        LISTS + "class-map match-all C\nmatch access-group 101\nmatch access-group 103",
        LISTS + "class-map match-all C\nmatch access-group 105\nmatch not access-group 106",
        "class-map match-all A\nmatch dscp ef\nclass-map match-all C\nmatch not class-map A\nmatch precedence 5",
    ],
)
def test_class_map_that_can_match_has_no_finding(text: str) -> None:
    assert never_matches_text(text) == ""


def test_entry_with_fields_that_are_not_modelled_is_not_complemented() -> None:
    device = router(
        "access-list 110 permit tcp any any established\n"
        "class-map match-all C\nmatch protocol tcp\nmatch not access-group 110"
    )
    assert not class_packets(device, "C").empty
