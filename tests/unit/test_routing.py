"""Paths of declared traffic through routing tables: unreachable destinations are found before a run, with the line to
add.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from qoslab.errors import ExperimentError
from qoslab.schema import load_sweep

FIRST = """
name: e
title: t
duration: 10 s
"""


def links(*ends: str) -> str:
    """Return links of `NODE INTERFACE ADDRESS` at both ends, in the order of their numbers."""
    lines = []
    for number, each in enumerate(ends, 1):
        sides = ", ".join(
            f"{{node: {node}, interface: {interface}" + (f", address: {rest[0]}}}" if rest else "}")
            for node, interface, *rest in (side.split() for side in each.split(" - "))
        )
        lines.append(f"    - {{name: l{number}, rate: 100 Mb/s, ends: [{sides}]}}")
    return "\n".join(lines)


def findings(tmp_path: Path, nodes: str, ends: list[str], rest: str = "", template: str = "") -> list[str]:
    arms = "arms: [{name: a}]" if not template else "arms: [{name: a}, {name: b, configure: {R1: {template: t.j2}}}]"
    traffic = "" if "traffic:" in rest else "traffic: [{name: t, tool: iperf3, from: client, to: server}]\n"
    file = tmp_path / "e.yml"
    file.write_text(f"{FIRST}{traffic}{arms}\n{rest}\ntopology:\n  nodes:\n{nodes}\n  links:\n{links(*ends)}\n")
    (tmp_path / "t.j2").write_text(template)
    try:
        load_sweep(file)
    except ExperimentError as error:
        return [f"{each.path}: {each.message}; {each.hint}" for each in error.findings]
    return []


HOSTS = "    client: {platform: host}\n    server: {platform: host}\n"


def node(name: str, *routes: str) -> str:
    listed = f", routes: [{', '.join(f'{{prefix: {p}, via: {v}}}' for p, v in (r.split() for r in routes))}]"
    return f'    {name}: {{platform: ios, model: "3725"{listed if routes else ""}}}\n'


TWO = [
    "client eth0 10.0.1.2/24 - R1 FastEthernet0/0 10.0.1.1/24",
    "R1 FastEthernet0/1 10.0.12.1/24 - R2 FastEthernet0/1 10.0.12.2/24",
    "R2 FastEthernet0/0 10.0.2.1/24 - server eth0 10.0.2.2/24",
]
THERE, BACK = "10.0.2.0/24 10.0.12.2", "10.0.1.0/24 10.0.12.1"


def test_routes_in_both_directions_are_found(tmp_path: Path) -> None:
    assert findings(tmp_path, HOSTS + node("R1", THERE) + node("R2", BACK), TWO) == []
    default = HOSTS + node("R1", "0.0.0.0/0 10.0.12.2") + node("R2", "0.0.0.0/0 10.0.12.1")
    assert findings(tmp_path, default, TWO) == []


def test_missing_route_names_router_destination_and_the_line_to_add(tmp_path: Path) -> None:
    assert findings(tmp_path, HOSTS + node("R1") + node("R2"), TWO) == [
        'topology.nodes.R1: found no route from R1 to 10.0.2.2 for traffic "t", expected its packets to arrive in both '
        "directions; add to R1: routes: [{prefix: 10.0.2.0/24, via: 10.0.12.2}]",
        'topology.nodes.R2: found no route from R2 to 10.0.1.2 for traffic "t", expected its packets to arrive in both '
        "directions; add to R2: routes: [{prefix: 10.0.1.0/24, via: 10.0.12.1}]",
    ]


def test_proposed_route_leads_through_a_tc_router(tmp_path: Path) -> None:
    tail = ["R1 FastEthernet0/1 10.0.12.1/24 - R2 eth1 10.0.12.2/24", "R2 eth0 10.0.2.1/24 - server eth0 10.0.2.2/24"]
    tc = "    R2: {platform: tc, routes: [{prefix: 10.0.1.0/24, via: 10.0.12.1}]}\n"
    (found,) = findings(tmp_path, HOSTS + node("R1") + tc, [TWO[0], *tail])
    assert "no route from R1 to 10.0.2.2" in found
    assert found.endswith("; add to R1: routes: [{prefix: 10.0.2.0/24, via: 10.0.12.2}]")


@pytest.mark.parametrize("prefix, network", [("10.0.2.5/24", "10.0.2.0/24"), ("2001:db8::1/64", "2001:db8::/64")])
def test_prefix_with_host_bits_is_refused_with_the_network(tmp_path: Path, prefix: str, network: str) -> None:
    (found,) = findings(tmp_path, HOSTS + node("R1", f"'{prefix}' 10.0.12.2") + node("R2", BACK), TWO)
    assert f'found "{prefix}", expected a network without host bits; did you mean "{network}"?' in found


def test_missing_return_route_is_found(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, HOSTS + node("R1", THERE) + node("R2"), TWO)
    assert "no route from R2 to 10.0.1.2" in found
    (found,) = findings(tmp_path, HOSTS + node("R1", THERE) + node("R2", "10.9.0.0/16 10.0.12.1"), TWO)
    assert "; add {prefix: 10.0.1.0/24, via: 10.0.12.1} to the routes of R2" in found


def test_all_missing_routes_of_three_routers_are_found_at_once(tmp_path: Path) -> None:
    ends = [
        *TWO[:2],
        "R2 FastEthernet0/0 10.0.23.2/24 - R3 FastEthernet0/0 10.0.23.3/24",
        "R3 FastEthernet0/1 10.0.3.1/24 - server eth0 10.0.3.2/24",
    ]
    found = findings(tmp_path, HOSTS + node("R1") + node("R2") + node("R3"), ends)
    assert {each.partition(" for ")[0].partition("found ")[2] for each in found} == {
        "no route from R1 to 10.0.3.2",
        "no route from R2 to 10.0.3.2",
        "no route from R2 to 10.0.1.2",
        "no route from R3 to 10.0.1.2",
    }


def test_routing_loops_are_found(tmp_path: Path) -> None:
    nodes = (
        HOSTS
        + node("R1", "0.0.0.0/0 10.0.12.2")
        + node("R2", "0.0.0.0/0 10.0.12.1")
        + node("R3", "0.0.0.0/0 10.0.13.1")
    )
    ends = [
        *TWO[:2],
        "R1 FastEthernet0/2 10.0.13.1/24 - R3 FastEthernet0/2 10.0.13.3/24",
        "R3 FastEthernet0/0 10.0.2.1/24 - server eth0 10.0.2.2/24",
    ]
    (found,) = findings(tmp_path, nodes.replace('ios, model: "3725"', "engine"), ends)
    assert "found a routing loop to 10.0.2.2: R1, R2, R1 for" in found


def test_route_of_a_template_counts_only_in_its_arm(tmp_path: Path) -> None:
    nodes = HOSTS + node("R1") + node("R2", BACK)
    (found,) = findings(tmp_path, nodes, TWO, template="ip route 10.0.2.0 255.255.255.0 10.0.12.2\n")
    assert 'for traffic "t" in arm a, expected' in found


def test_interface_that_an_arm_shuts_down_is_found(tmp_path: Path) -> None:
    nodes = HOSTS + node("R1", THERE) + node("R2", BACK)
    found = findings(tmp_path, nodes, TWO, template="interface FastEthernet0/1\n shutdown\n")
    assert found and all("in arm b" in each for each in found)


def test_probe_between_routers_is_traced_both_ways(tmp_path: Path) -> None:
    rest = "probes: [{name: p, type: icmp-echo, from: R1, to: R3, frequency: 1 s, timeout: 500 ms}]"
    ends = [*TWO, "R2 FastEthernet0/2 10.0.23.2/24 - R3 FastEthernet0/2 10.0.23.3/24"]

    def findings_without(*of_r3: str) -> list[str]:
        routers = node("R1", THERE, "10.0.23.0/24 10.0.12.2") + node("R2", BACK) + node("R3", *of_r3)
        return findings(tmp_path, HOSTS + routers.replace('ios, model: "3725"', "engine"), ends, rest)

    assert findings_without("10.0.12.0/24 10.0.23.2") == []
    (missing,) = findings_without()
    assert 'topology.nodes.R3: found no route from R3 to 10.0.12.1 for probe "p", expected' in missing


def test_path_leads_through_switches(tmp_path: Path) -> None:
    nodes = HOSTS + node("R1") + '    SW: {platform: ios, model: "3750G"}\n'
    ends = [
        "client eth0 10.0.1.2/24 - R1 FastEthernet0/0 10.0.1.1/24",
        "R1 FastEthernet0/1 10.0.2.1/24 - SW GigabitEthernet1/0/1",
        "SW GigabitEthernet1/0/2 - server eth0 10.0.2.2/24",
    ]
    found = findings(tmp_path, nodes + "", ends)
    # The server has no gateway of its own behind a switch.
    assert len(found) == 1 and "no route from server to 10.0.1.2" in found[0]
    assert "add to server: routes: [{prefix: 10.0.1.0/24, via: 10.0.2.1}]" in found[0]


@pytest.mark.parametrize(
    ("ports", "message"),
    [
        ("port: 5201|port: 5201", 'found port 5201 of server, in use by traffic "a"'),
        ("port: 5201|port: 5202", ""),
        ("port: 5201|", ""),
        ("client_port: 4000, streams: 2|client_port: 4001", "found ports 4001 to 4001 of client, of which traffic"),
        ("client_port: 4000, streams: 2|client_port: 4002", ""),
        ("client_port: 65535, streams: 2|", "found 65535 as the first of 2 ports"),
    ],
)
def test_two_flows_on_one_port_are_found(tmp_path: Path, ports: str, message: str) -> None:
    flows = ", ".join(
        f"{{name: {name}, tool: iperf3, from: client, to: server{', ' if port else ''}{port}}}"
        for name, port in zip("ab", ports.split("|"), strict=True)
    )
    found = findings(
        tmp_path,
        HOSTS + node("R1"),
        [
            "client eth0 10.0.1.2/24 - R1 FastEthernet0/0 10.0.1.1/24",
            "R1 FastEthernet0/1 10.0.2.1/24 - server eth0 10.0.2.2/24",
        ],
        f"traffic: [{flows}]",
    )
    assert (not found) == (not message)
    assert all(message in each for each in found)


def test_unknown_interface_in_a_template_lists_the_existing_ones(tmp_path: Path) -> None:
    nodes = HOSTS + node("R1", THERE) + node("R2", BACK)
    (found,) = findings(tmp_path, nodes, TWO, template="interface GigabitEthernet0/0/1\n description x\n")
    assert "expected one of FastEthernet0/0, FastEthernet0/1" in found
