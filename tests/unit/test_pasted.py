"""Lines that engineers paste: suffixes of rates, `drop`, levels with rates, protocols by port, routes to Null0."""

from __future__ import annotations

from typing import Any

import pytest
from fake_router import class_counters, interface_counters

from qoslab.errors import IosError
from qoslab.genie.policy_map_interface import parse_policy_map_interface
from qoslab.ios.compile import compile_device
from qoslab.ios.model.device import Generation, Hardware
from qoslab.ios.parse import parse_config
from qoslab.ios.running_config import render
from qoslab.ios.show.policy_interface import show_policy_map_interface
from qoslab.verification.requested_policy import policy_differences

PORTS = ("FastEthernet0/0", "FastEthernet0/1")


def hardware(generation: Generation = "hqf") -> Hardware:
    return Hardware("2811", PORTS, generation)


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("police 2m", "police 2000000"),
        ("police cir 512k bc 16000", "police cir 512000 bc 16000"),
        ("police cir 1.5M pir 1g", "police cir 1500000 pir 1000000000"),
        ("shape average 1.544m", "shape average 1544000"),
        ("shape average 64k", "shape average 64000"),
    ],
)
def test_rates_have_suffixes_in_the_later_generation(line: str, printed: str) -> None:
    text = f"policy-map P\n class class-default\n  {line}\n"
    assert printed in render(parse_config(text, hardware()))
    with pytest.raises(IosError, match="Invalid input"):
        parse_config(text, hardware("classic"))


@pytest.mark.parametrize("rate", ["7.9k", "1.5", "1e6", "2t", "0.0000000001m"])
def test_invalid_rate_is_refused(rate: str) -> None:
    with pytest.raises(IosError, match="Invalid input"):
        parse_config(f"policy-map P\n class class-default\n  shape average {rate}\n", hardware())


DROPPING = """class-map JUNK
 match protocol sip
policy-map P
 class JUNK
  drop
interface FastEthernet0/0
 service-policy input P
"""


def test_drop_command_discards_the_packets_of_a_class() -> None:
    device = parse_config(DROPPING, hardware())
    assert " class JUNK\n  drop\n" in render(device)
    config = compile_device(device)
    nothing = {"packets": 0, "bytes": 0, "rate_bps": 0.0}
    police = {"form": "cir", "cir_bps": 8000, "bc_bytes": 1000, "conformed": nothing, "exceeded": nothing}
    counted = {"policy": "P", "classes": [class_counters("JUNK", police=police)], "priority_queues": []}
    counters: Any = {"interfaces": {"FastEthernet0/0": interface_counters(policy_input=counted)}}
    text = show_policy_map_interface(config, counters)
    assert "\n      drop\n" in text
    assert "police" not in text
    shown = parse_policy_map_interface(text)
    assert policy_differences(shown, config) == []
    config["policy_maps"]["P"]["classes"][0]["police"] = None
    again = parse_policy_map_interface(show_policy_map_interface(config, counters))
    assert policy_differences(again, compile_device(device)) == [
        "FastEthernet0/0 input, P, class JUNK: found no drop, expected one"
    ]


def test_drop_command_excludes_other_actions() -> None:
    with pytest.raises(IosError, match="drop can not be configured in a class with other actions"):
        parse_config(DROPPING.replace("  drop\n", "  drop\n  set dscp 1\n"), hardware())


def test_priority_level_has_a_rate() -> None:
    text = "class-map V\n match dscp ef\npolicy-map P\n class V\n  priority level 2 percent 10 4000\n"
    device = parse_config(text, hardware())
    assert "priority level 2 percent 10 4000" in render(device)
    priority = compile_device(device)["policy_maps"]["P"]["classes"][0]["priority"]
    assert priority is not None
    assert priority["level"] == 2


def test_protocols_match_ports_at_either_end() -> None:
    device = parse_config("class-map C\n match protocol telnet\n match not protocol gre\n", hardware())
    config = compile_device(device)
    assert [(each["type"], each.get("name"), each.get("negate")) for each in config["class_maps"]["C"]["criteria"]] == [
        ("access_group", "protocol telnet", False),
        ("access_group", "protocol gre", True),
    ]
    telnet = config["access_lists"]["protocol telnet"]
    assert [(each["protocol"], each["source_port"], each["destination_port"]) for each in telnet] == [
        (6, {"op": "eq", "ports": [23]}, None),
        (6, None, {"op": "eq", "ports": [23]}),
    ]
    assert " match protocol telnet\n match not protocol gre\n" in render(device)


def test_routes_to_null0_and_their_names() -> None:
    text = "ip route 10.9.0.0 255.255.0.0 Null0 250 tag 7 name nowhere\n"
    device = parse_config(text, hardware())
    assert text in render(device)
    assert parse_config(render(device), hardware()) == device


def test_loopback_gets_no_existing_subnet() -> None:
    text = (
        "interface Loopback0\n ip address 10.0.0.1 255.255.255.0\ninterface fa0/0\n ip address 10.0.0.2 255.255.0.0\n"
    )
    with pytest.raises(IosError, match=r"% 10.0.0.0 overlaps with Loopback0"):
        parse_config(text, hardware())
