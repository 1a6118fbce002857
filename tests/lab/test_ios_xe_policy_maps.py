"""`show policy-map` of a virtual IOS-XE router, as Genie reads it, next to Genie's recordings of devices.

The reasons of recordings that are not compared are in `docs/reference/router.md`.
"""

from __future__ import annotations

import os
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from labs import topology
from test_iosd import session

from qoslab.virtual_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("iosd")]

CLASSES = [
    f"class-map match-all {name}\nmatch dscp {value}"
    for value, name in enumerate(
        ("voice", "video", "class1", "cm_0", "cm_1", "high-priority", "low-priority", "band-policy", "test-cir", "cs1")
    )
]
POLICE = "conform-action transmit exceed-action drop"
TYPED = {
    1: "policy-map shape-out\nclass class-default\nshape average 1000000",
    2: f"policy-map police-in\nclass class-default\npolice rate percent 10 {POLICE}",
    6: f"policy-map child\nclass voice\npriority\npolice 8000 9216 0 {POLICE} violate-action drop\n"
    "class video\nbandwidth remaining percent 80",
    7: "policy-map child\npolicy-map parent\nclass class-default\nshape average 10000000\nservice-policy child",
    8: "policy-map policy1\nclass class1\n"
    f"police cir percent 20 bc 300 ms pir percent 40 be 400 ms {POLICE} violate-action drop",
    11: "policy-map pm_hier2_child_0_2\nclass cm_0\npriority level 1\nqueue-limit 77\n"
    "class cm_1\nshape average percent 80\nbandwidth remaining ratio 80\n"
    "class class-default\nshape average percent 50\nbandwidth remaining ratio 20",
    12: "policy-map child-policy\nclass high-priority\npriority 2000000\nclass low-priority\npriority 2000000\n"
    "class band-policy\nbandwidth 150000\nclass test-cir\nbandwidth 800000\n"
    "class class-default\nqueue-limit 100 packets\nrandom-detect\nrandom-detect exponential-weighting-constant 4\n"
    "random-detect precedence 0 25 50\nrandom-detect precedence 1 50 70\n"
    + "\n".join(f"random-detect precedence {value} 80 100" for value in range(2, 7))
    + "\nrandom-detect precedence 7 25 50",
    13: "policy-map parent-policy2\nclass class-default\nshape average 1000000 2000000 300000",
    15: f"class-map match-all cs2\nmatch dscp cs2\npolicy-map map1\nclass cs1\npolice rate 10000000000 {POLICE}\n"
    f"class cs2\npolice rate 10000000000 {POLICE}",
    16: "policy-map map1\nclass cs1\npriority percent 9",
}
"""Lines behind a recording, by its number."""


def without_older_forms(expected: dict[str, Any]) -> dict[str, Any]:
    """Leave out policers of `police percent` on one line with its actions, which later releases print otherwise."""
    for policy in expected["policy_map"].values():
        for each in policy["class"].values():
            if "cir_percent" in each.get("police", {}) and "pir_percent" not in each["police"]:
                del each["police"]
    return expected


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    described = topology(client="host", R1={"platform": "ios", "model": "ISR4451"}, server="host")(
        "client eth0 10.1.0.2/24 - R1 GigabitEthernet0/0/0 10.1.0.1/24",
        "R1 GigabitEthernet0/0/1 10.2.0.1/24 - server eth0 10.2.0.2/24",
    )
    with Lab.up(described, name=f"test-xe-{os.getpid()}") as made:
        session(made, "configure terminal", *"\n".join(CLASSES).split("\n"), "end")
        yield made


@pytest.mark.parametrize("number", TYPED)
def test_genie_parses_the_recorded_policy_map(lab: Lab, number: int) -> None:
    from genie.libs.parser.iosxe import show_policy_map

    recorded = Path(show_policy_map.__file__).parent / "tests/ShowPolicyMap/cli/equal"
    lines = TYPED[number].split("\n")
    names = [line.removeprefix("policy-map ") for line in lines if line.startswith("policy-map ")]
    typed = session(lab, "configure terminal", *lines, "end")
    try:
        assert "%" not in typed.replace("percent", ""), typed
        shown = session(lab, f"show policy-map {names[-1]}")
        found: Any = show_policy_map.ShowPolicyMap(device=None).cli(output=shown)
        made = runpy.run_path(str(recorded / f"golden_output{number}_expected.py"))
        assert found == without_older_forms(made["expected_output"])
    finally:
        session(lab, "configure terminal", *(f"no policy-map {name}" for name in reversed(names)), "end")
