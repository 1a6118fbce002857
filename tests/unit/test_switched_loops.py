"""Loops of switched links, without spanning tree: detected exactly if a frame can loop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qoslab.errors import ExperimentError
from qoslab.ios.compile import compile_device
from qoslab.ios.model.device import Device
from qoslab.ios.parse import apply_config, parse_config
from qoslab.model.experiment import Experiment
from qoslab.platforms import MODELS
from qoslab.schema.document import Document
from qoslab.schema.loops import loop_findings
from qoslab.schema.topology import load_topology

Ends = tuple[tuple[str, int], tuple[str, int]]
"""Link: at both ends the switch and the number of the port."""


def topology(links: list[Ends]) -> dict[str, Any]:
    nodes = {name: {"platform": "ios", "model": "3750G"} for ends in links for name, _ in ends}
    return {
        "nodes": nodes,
        "links": [
            {
                "name": f"L{number}",
                "rate": "1 Gb/s",
                "ends": [{"node": name, "interface": f"GigabitEthernet1/0/{port}"} for name, port in ends],
            }
            for number, ends in enumerate(links, 1)
        ],
    }


def find_loops(links: list[Ends], configured: dict[str, str]) -> list[str]:
    rest = {"name": "e", "title": "t", "duration": "1 s", "traffic": [], "arms": [{"name": "a"}]}
    experiment = Experiment.model_validate_json(json.dumps({**rest, "topology": topology(links)}))
    devices = {name: device(configured.get(name, "")) for name in experiment.topology.nodes}
    return [each.message for each in loop_findings(experiment, Document("f"), "a", devices)]


def device(text: str) -> Device:
    switch = parse_config("", MODELS["3750G"].hardware())
    apply_config(switch, text)
    return switch


def port(number: int, *lines: str) -> str:
    return "\n".join([f"interface GigabitEthernet1/0/{number}", *lines, ""])


PAIR: list[Ends] = [(("A", 1), ("B", 1)), (("A", 2), ("B", 2))]
TRUNK = "switchport mode trunk"


def test_parallel_links_are_a_loop() -> None:
    assert find_loops(PAIR, {}) == [
        'found link "L2", closing a loop with L1 in VLAN 1 of A, B in arm a, expected no loop: '
        "spanning tree is not modelled, a broadcast would circulate forever"
    ]


@pytest.mark.parametrize(
    "apart",
    [
        {"A": port(2, "shutdown")},
        {"B": port(1, "no switchport")},
        {"A": port(2, "switchport access vlan 10"), "B": port(2, "switchport access vlan 10")},
        {"A": port(2, TRUNK, "switchport trunk native vlan 7"), "B": port(2, "switchport access vlan 9")},
    ],
)
def test_loop_is_broken_by_the_expected_changes(apart: dict[str, str]) -> None:
    assert find_loops(PAIR, apart) == []


def test_link_that_forwards_in_one_direction_is_no_loop() -> None:
    # B receives the tag of its VLAN 1 at an access port, and the frames that it sends there are in VLAN 7 of A.
    assert len(find_loops(PAIR, {"A": port(2, TRUNK, "switchport trunk native vlan 7")})) == 1


def test_vlans_that_an_untagged_link_joins_are_reported_at_each_switch() -> None:
    crossed = {"A": port(1, "switchport access vlan 10") + port(2, "switchport access vlan 10")}
    assert [text.partition(" in arm")[0] for text in find_loops(PAIR, crossed)] == [
        'found link "L2", closing a loop with L1 in VLAN 1 of B and VLAN 10 of A'
    ]


def test_tree_of_trunks_is_not_a_loop() -> None:
    tree: list[Ends] = [(("A", 1), ("B", 1)), (("B", 2), ("C", 1)), (("B", 3), ("D", 1))]
    trunks = {name: "".join(port(number, TRUNK) for number in (1, 2, 3)) for name in "ABCD"}
    assert find_loops(tree, trunks) == []


def test_topology_file_is_refused_at_the_link(tmp_path: Path) -> None:
    file = tmp_path / "ring.yml"
    file.write_text(
        "nodes:\n  A: {platform: ios, model: '3750G'}\n  B: {platform: ios, model: '3750G'}\nlinks:\n"
        + "".join(
            f"  - name: L{number}\n    rate: 1 Gb/s\n    ends:\n"
            f"      - {{node: A, interface: GigabitEthernet1/0/{number}}}\n"
            f"      - {{node: B, interface: GigabitEthernet1/0/{number}}}\n"
            for number in (1, 2)
        )
    )
    with pytest.raises(ExperimentError) as caught:
        load_topology(file)
    assert [str(each).partition(", expected")[0] for each in caught.value.findings] == [
        f'{file}:10:5: topology.links.L2: found link "L2", closing a loop with L1 in VLAN 1 of A, B'
    ]


PORTS = {
    "as it comes": "no shutdown",
    "other VLAN": "switchport access vlan 2",
    "trunk": TRUNK,
    "trunk, other native VLAN": f"{TRUNK}\n switchport trunk native vlan 2",
    "routed": "no switchport",
    "down": "shutdown",
}


def returns_to_sender(links: list[Ends], devices: dict[str, Device]) -> bool:
    """Return whether a broadcast is still forwarded after more hops than there are links, by the rules of the bridge.

    Uses the data plane's configuration, with tags on the wire.
    """
    ports = {}
    for name, each in devices.items():
        for interface, config in compile_device(each)["interfaces"].items():
            switch = config.get("switch") if config["enabled"] else None
            ports[name, int(interface.rpartition("/")[2])] = switch["switchport"] if switch else None
    over = {near: far for ends in links for near, far in (ends, ends[::-1])}
    on_wire = {(far, tag) for far in over for tag in (None, 1, 2)}
    for _ in range(3 * len(over) + 1):
        after = set()
        for at, tag in on_wire:
            here = ports[at]
            if here is None or (tag not in (None, here["vlan"]) and here["mode"] == "access"):
                continue
            vlan = here["vlan"] if tag is None else tag
            for out, there in over.items():
                leaving = ports[out]
                if out[0] != at[0] or out == at or leaving is None:
                    continue
                if vlan == leaving["vlan"]:
                    after.add((there, None))
                elif leaving["mode"] == "trunk":
                    after.add((there, vlan))
        on_wire = after
    return bool(on_wire)


SOME_TWO = st.tuples(st.sampled_from("ABCD"), st.sampled_from("ABCD")).filter(lambda each: each[0] != each[1])
SOME_KINDS = st.tuples(st.sampled_from(sorted(PORTS)), st.sampled_from(sorted(PORTS)))


@given(ends=st.lists(SOME_TWO, max_size=5), kinds=st.lists(SOME_KINDS, min_size=5, max_size=5))
@example(ends=[("A", "B"), ("B", "C"), ("A", "C")], kinds=[("trunk", "as it comes")] * 5)
def test_loop_is_found_exactly_if_a_broadcast_returns(
    ends: list[tuple[str, str]], kinds: list[tuple[str, str]]
) -> None:
    links: list[Ends] = [((near, number), (far, number)) for number, (near, far) in enumerate(ends, 1)]
    configured: dict[str, str] = {}
    for sides, answer in zip(links, kinds, strict=False):
        for (name, number), kind in zip(sides, answer, strict=True):
            configured[name] = configured.get(name, "") + port(number, PORTS[kind])
    devices = {name: device(text) for name, text in configured.items()}
    assert bool(find_loops(links, configured)) == returns_to_sender(links, devices)
