"""Output of a router against the requested configuration."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from qoslab.genie.policy_map_interface import parse_policy_map_interface
from qoslab.verification.requested_policy import policy_differences

RECORDED = Path(__file__).parent.parent / "recorded" / "ios"
INTERFACE = "FastEthernet0/1"
PLAIN_CLASS: dict[str, Any] = {
    "name": "class-default",
    "set": [],
    "police": None,
    "shape": None,
    "shape_buffers": None,
    "queue_limit": None,
    "queue_thresholds": [],
    "service_policy": None,
    "bandwidth": None,
    "priority": None,
}


def config(policy: str, **actions: Any) -> dict[str, Any]:
    return {
        "policy_maps": {policy: {"classes": [PLAIN_CLASS | actions]}},
        "interfaces": {INTERFACE: {"service_policy_input": None, "service_policy_output": policy}},
    }


POLICE = config("Police", police={"cir": {"bps": 1000000}, "bc": None, "pir": None, "be": None})
SHAPE = config("Shape", shape={"mode": "average", "rate": {"bps": 1000000}, "bc": None, "be": None})


def parsed_recording(name: str) -> dict[str, Any]:
    return parse_policy_map_interface((RECORDED / f"{name}.classic.txt").read_text())


def changed_output(base: dict[str, Any], part: str, **values: Any) -> dict[str, Any]:
    made = deepcopy(base)
    (policy,) = made["policy_maps"].values()
    policy["classes"][0][part].update(values)
    return made


@pytest.mark.parametrize(
    ("name", "intended"),
    [
        ("police", POLICE),
        ("police", changed_output(POLICE, "police", bc={"bytes": 31250})),
        ("police", changed_output(POLICE, "police", bc={"ms": 250})),
        ("shape", SHAPE),
        ("shape", changed_output(SHAPE, "shape", bc={"bits": 25000}, be={"ms": 25})),
    ],
)
def test_active_configuration_as_requested_verifies(name: str, intended: dict[str, Any]) -> None:
    assert policy_differences(parsed_recording(name), intended) == []


@pytest.mark.parametrize(
    ("name", "intended", "expected"),
    [
        ("police", SHAPE, ["FastEthernet0/1 output: found policy-map Police, expected Shape"]),
        (
            "police",
            changed_output(POLICE, "police", cir={"bps": 2000000}),
            ["FastEthernet0/1 output, Police, class class-default: found police cir 1000000 bps, expected 2000000 bps"],
        ),
        (
            "police",
            changed_output(POLICE, "police", bc={"bytes": 8000}, pir={"bps": 3000000}),
            [
                "FastEthernet0/1 output, Police, class class-default: found police bc 31250 bytes, expected 8000 bytes",
                "FastEthernet0/1 output, Police, class class-default: found police pir none, expected 3000000 bps",
            ],
        ),
        (
            "shape",
            changed_output(SHAPE, "shape", mode="peak", be={"bits": 0}),
            [
                "FastEthernet0/1 output, Shape, class class-default: found shape average, expected shape peak",
                "FastEthernet0/1 output, Shape, class class-default: found shape be 25000 bits, expected 0 bits",
            ],
        ),
        (
            "shape",
            config("Shape", police={"cir": {"bps": 8000}}),
            [
                "FastEthernet0/1 output, Shape, class class-default: found no policer, expected one",
                "FastEthernet0/1 output, Shape, class class-default: found a shaper, expected none",
            ],
        ),
        (
            "shape",
            {"policy_maps": {}, "interfaces": {INTERFACE: {}}},
            ["FastEthernet0/1 output: found policy-map Shape, expected none"],
        ),
    ],
)
def test_every_difference_is_reported(name: str, intended: dict[str, Any], expected: list[str]) -> None:
    assert policy_differences(parsed_recording(name), intended) == expected


def test_missing_output_is_reported() -> None:
    assert policy_differences({}, POLICE) == ["FastEthernet0/1 output: found no policy-map, expected Police"]


def test_nested_policies_are_compared() -> None:
    police = {"cir": {"bps": 256000}, "bc": {"bytes": 8000}, "pir": {"bps": 512000}, "be": {"bytes": 16000}}
    intended = {
        "policy_maps": {
            "Parent": {"classes": [PLAIN_CLASS | {"name": "Bulk", "service_policy": "Child", "police": police}]},
            "Child": {
                "classes": [
                    PLAIN_CLASS | {"name": "Inner", "bandwidth": {"kbps": 128}},
                    PLAIN_CLASS | {"name": "Missing"},
                ]
            },
            "Mark": {"classes": [PLAIN_CLASS | {"name": "Voice"}]},
        },
        "interfaces": {"Serial0/1/0": {"service_policy_input": "Mark", "service_policy_output": "Parent"}},
    }
    assert policy_differences(parsed_recording("nested"), intended) == [
        "Serial0/1/0 output, Parent, class Bulk, Child, class Missing: missing in the output"
    ]


PRIORITY = {"unit": "percent", "number": 10, "burst_bytes": None, "level": None}


def queueing(echo: dict[str, Any], web: dict[str, Any]) -> list[str]:
    """Return the differences of the recorded output from a policy with these two classes, without places."""
    classes = [PLAIN_CLASS | {"name": "Echo"} | echo, PLAIN_CLASS | {"name": "Web"} | web]
    intended = {
        "policy_maps": {"WAN": {"classes": classes}},
        "interfaces": {"Serial0/1/0": {"service_policy_output": "WAN"}},
    }
    parsed = parse_policy_map_interface((RECORDED / "queueing.hqf.txt").read_text())
    return [each.partition("class ")[2] for each in policy_differences(parsed, intended)]


def test_bandwidth_and_priority_are_compared() -> None:
    asked = ({"priority": PRIORITY}, {"bandwidth": {"percent": 20}})
    assert queueing(*asked) == []
    assert queueing({"priority": PRIORITY | {"number": 20}}, {"bandwidth": {"kbps": 500}}) == [
        "Echo: found priority 10 %, expected 20 %",
        "Web: found bandwidth 400 kbps, expected 500 kbps",
    ]
    assert queueing({}, {"priority": PRIORITY}) == [
        "Echo: found a priority, expected none",
        "Web: found no priority, expected one",
        "Web: found a bandwidth, expected none",
    ]


def test_priority_in_percent_of_the_earlier_output_is_compared() -> None:
    text = (RECORDED / "nested.classic.txt").read_text()
    text = text.replace("Bandwidth 128 (kbps)Max Threshold 64 (packets)", "Bandwidth 10 (%)")
    text = text.replace("Output Queue", "Strict Priority\n            Output Queue")
    child = {"classes": [PLAIN_CLASS | {"name": "Inner", "priority": PRIORITY}]}
    parent = {"classes": [PLAIN_CLASS | {"service_policy": "Child", "name": "Bulk", "police": {"cir": {}}}]}
    intended = {
        "policy_maps": {"Parent": parent, "Child": child},
        "interfaces": {"Serial0/1/0": {"service_policy_output": "Parent"}},
    }
    found = policy_differences(parse_policy_map_interface(text), intended)
    assert found == ["Serial0/1/0 input: found policy-map Mark, expected none"]
