"""Topology files of containerlab and netlab: converted, or refused with the place of an unsupported part."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from qoslab.cli import main
from qoslab.schema.topology import load_topology

CONTAINERLAB = """\
name: three
topology:
  defaults: {kind: linux}
  groups:
    pcs: {kind: linux, image: "multitool:3"}
  nodes:
    r1: {image: "quay.io/frrouting/frr:10.5.1", startup-config: r1.conf}
    r2: {kind: cisco_iol, image: "iol:17"}
    PC1: {group: pcs, exec: [ip link set eth1 up]}
    PC2: {group: pcs}
  links:
    - endpoints: ["r1:eth1", "r2:Ethernet0/1"]
    - endpoints: ["PC1:eth1", "r1:eth2"]
      mtu: 1500
    - type: veth
      endpoints:
        - {node: PC2, interface: eth1, ipv4: 192.168.12.2/24}
        - {node: r2, interface: Ethernet0/2, ipv4: 192.168.12.1/24}
"""
ENDS = CONTAINERLAB[CONTAINERLAB.index("        - {node: PC2") :]
"""Ends of the link with addresses."""
NETLAB = """\
defaults.device: iosv
module: [ospf]
groups:
  end: {members: [a, b], device: linux}
nodes: [a, r-1, r-2, b]
links:
- [a, r-1]
- r-1:
  r-2:
  bandwidth: 2000
  prefix: 10.42.42.0/30
- interfaces:
  - {node: r-2, ipv4: 10.7.0.1/24}
  - {node: b, ipv4: 10.7.0.2/24}
"""


def convert_topology(tmp_path: Path, text: str, *options: str) -> tuple[int, Path]:
    file = tmp_path / "three.clab.yml"
    file.write_text(text)
    to = tmp_path / "made.yml"
    return main(["new", "topology", str(file), "--to", str(to), *options]), to


def test_containerlab_topology_is_converted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, file = convert_topology(tmp_path, CONTAINERLAB)
    out = capsys.readouterr().out
    assert status == 0
    _, topology = load_topology(file)
    platforms = {name: node.platform for name, node in topology.nodes.items()}
    assert platforms == {"r1": "engine", "r2": "ios", "PC1": "host", "PC2": "host"}
    ends = [[(end.node, end.interface, str(end.address)) for end in link.ends] for link in topology.links]
    assert ends == [
        [("r1", "GigabitEthernet0/0", "10.64.0.1/24"), ("r2", "GigabitEthernet0/0", "10.64.0.2/24")],
        [("PC1", "eth0", "10.64.1.1/24"), ("r1", "GigabitEthernet0/1", "10.64.1.2/24")],
        [("PC2", "eth0", "192.168.12.2/24"), ("r2", "GigabitEthernet0/1", "192.168.12.1/24")],
    ]
    assert [(str(each.prefix), str(each.via)) for each in topology.nodes["r1"].routes] == [
        ("192.168.12.0/24", "10.64.0.2")
    ]
    assert topology.nodes["r2"].model == "IOSv"
    assert "nodes of kind cisco_iol are modelled as IOSv with IOS 15.9(3)M6; other models and releases may queue" in out
    for reported in (
        "the nodes' startup-config is left out",
        "the links' mtu is left out",
        "get 100 Mb/s",
        "static routes",
    ):
        assert reported in out


def test_ios_xe_router_becomes_the_closest_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = CONTAINERLAB.replace("cisco_iol", "cisco_c8000v")
    status, file = convert_topology(tmp_path, text)
    assert status == 0
    assert "nodes of kind cisco_c8000v are modelled as C8000V with IOS-XE 17.9.4a" in capsys.readouterr().out
    _, topology = load_topology(file)
    assert (topology.nodes["r2"].model, topology.links[0].ends[1].interface) == ("C8000V", "GigabitEthernet1")
    file.unlink()
    assert convert_topology(tmp_path, text, "--model", "3725")[0] == 0
    assert load_topology(file)[1].nodes["r2"].model == "3725"


@pytest.mark.parametrize(
    ("given", "pool"), [("10.1.1", "172.16.0.0/12"), ("172.16.1", "10.64.0.0/10"), ("192.168.1", "10.64.0.0/10")]
)
def test_addresses_come_from_a_free_pool(
    tmp_path: Path, given: str, pool: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = CONTAINERLAB.replace("192.168.12.2/24", f"{given}.2/8").replace("192.168.12.1/24", f"{given}.1/8")
    status, file = convert_topology(tmp_path, text)
    assert status == 0 and f"links without addresses get addresses from {pool}" in capsys.readouterr().out
    _, topology = load_topology(file)
    assert [str(link.ends[0].address) for link in topology.links] == [
        f"{pool.split('.0.')[0]}.0.1/24",
        f"{pool.split('.0.')[0]}.1.1/24",
        f"{given}.2/8",
    ]


def test_netlab_topology_is_converted(tmp_path: Path) -> None:
    status, file = convert_topology(tmp_path, NETLAB)
    assert status == 0
    _, topology = load_topology(file)
    assert {name: node.platform for name, node in topology.nodes.items()} == {
        "a": "host",
        "r-1": "ios",
        "r-2": "ios",
        "b": "host",
    }
    assert [str(link.rate) for link in topology.links] == ["100 Mb/s", "2 Mb/s", "100 Mb/s"]
    assert [[str(end.address) for end in link.ends] for link in topology.links] == [
        ["10.64.0.1/24", "10.64.0.2/24"],
        ["10.42.42.1/30", "10.42.42.2/30"],
        ["10.7.0.1/24", "10.7.0.2/24"],
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kind: cisco_iol", "kind: bridge", r':8:9: topology\.nodes\.r2: found the kind "bridge"'),
        ("kind: cisco_iol", "kind: cisco_iol, type: L2", r'found the kind "cisco_iol l2"'),
        ("type: veth", "type: vxlan", r":15:7: topology\.links\[2\]: found a link of type 'vxlan', expected veth"),
        ('"PC1:eth1"', '"host:eth1"', r'found an end at "host", expected a node'),
        ('"PC1:eth1", ', "", r"found 1 endpoints, expected two"),
        ('"PC1:eth1"', '"PC9:eth1"', r'found an end at "PC9", expected one of the nodes'),
        ("192.168.12.2/24", "192.168.12.2", r"expected an IPv4 address with its prefix length"),
        ("192.168.12.2/24", "10.9.9.9/24", r"the converted topology is not valid"),
        (
            ENDS,
            ENDS.replace("2/24", "2/32").replace(", ipv4: 192.168.12.1/24", ""),
            r":15:7: .*found 192\.168\.12\.2/32 at",
        ),
        (
            ENDS,
            ENDS.replace("1/24", "1/32").replace(", ipv4: 192.168.12.2/24", ""),
            r":15:7: .*found 192\.168\.12\.1/32 at",
        ),
        ("192.168.12.2/24", "192.168.12.2/0", r":12:7: topology\.links\[0\]: found no address, and no free one"),
        ("  links:", "  wires:", r"found no link, expected at least one"),
        ("topology:", "topologies:", r"found neither topology\.nodes \(containerlab\) nor nodes \(netlab\)"),
        ("{kind: linux}", "{kind: [linux]}", r"found no kind, expected one here"),
        ("name: three", "name: [three", r"three\.clab\.yml:2:"),
    ],
)
def test_features_without_counterpart_are_refused(
    tmp_path: Path, old: str, new: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert old in CONTAINERLAB
    status, file = convert_topology(tmp_path, CONTAINERLAB.replace(old, new, 1))
    errors = capsys.readouterr().err
    assert status == 2 and re.search(message, errors), errors
    assert not file.exists() and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("old", "new", "platform"),
    [
        ('image: "quay.io/frrouting/frr:10.5.1", ', "", "host"),
        ('image: "quay.io/frrouting/frr:10.5.1", ', "kind: vyosnetworks_vyos, ", "engine"),
        ('"quay.io/frrouting/frr:10.5.1"', "frrouting/multitool", "host"),
        ("  groups:\n", "  kinds: {linux: {image: frr}}\n  groups:\n", "engine"),
    ],
)
def test_containerlab_node_is_a_router_or_host_by_its_image(tmp_path: Path, old: str, new: str, platform: str) -> None:
    text = CONTAINERLAB.replace(old, new, 1)
    status, file = convert_topology(tmp_path, text)
    assert status == 0
    assert load_topology(file)[1].nodes["r1"].platform == platform


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("members: [a, b]", "members: 5", "found 5, expected a list of nodes"),
        ("- [a, r-1]", "- [a, r-1, b]", "found a link with 3 nodes (a, r-1, b), expected two"),
        ("- [a, r-1]", "- a-r-1", "found a link with 3 nodes (a, r, 1), expected two"),
        ("- [a, r-1]", "- a", "found a link with 1 nodes (a), expected two"),
        ("bandwidth: 2000", "type: loopback", "found a link of type 'loopback'"),
        ("bandwidth: 2000", "bandwidth: fast", "found 'fast', expected kilobits per second"),
        ("module: [ospf]", "plugin: [fabric]", "found plugin, expected nodes and links listed one by one"),
        ("device: linux", "device: eos", 'found the kind "eos"'),
        ("10.42.42.0/30", "10.42.42.0/99", "expected an IPv4 prefix for two ends"),
    ],
)
def test_unsupported_netlab_features_are_refused(
    tmp_path: Path, old: str, new: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert old in NETLAB
    status, file = convert_topology(tmp_path, NETLAB.replace(old, new, 1))
    errors = capsys.readouterr().err
    assert status == 2 and message in errors, errors
    assert not file.exists()


def test_unconnected_link_is_ignored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = convert_topology(tmp_path, CONTAINERLAB)[1]
    file.unlink()
    file.symlink_to("nowhere")
    assert convert_topology(tmp_path, CONTAINERLAB) == (2, file)
    assert "found an existing file" in capsys.readouterr().err and file.is_symlink()


def test_option_maps_other_node_kinds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = CONTAINERLAB.replace("cisco_iol", "nokia_srlinux")
    status, file = convert_topology(tmp_path, text, "--as", "nokia_srlinux=engine", "--rate", "10 Mb/s")
    assert status == 0
    _, topology = load_topology(file)
    assert topology.nodes["r2"].platform == "engine" and str(topology.links[0].rate) == "10 Mb/s"
    assert convert_topology(tmp_path, text, "--as", "nokia_srlinux=engine")[0] == 2
    assert "found an existing file" in capsys.readouterr().err
    assert convert_topology(tmp_path, text, "--as", "nokia_srlinux=switch")[0] == 2
    assert convert_topology(tmp_path, text, "--model", "9999")[0] == 2
