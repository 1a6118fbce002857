"""`qoslab draw --format inventory`: the known facts of a lab as an inventory, which is read like any other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from qoslab.cli import main
from qoslab.exchange.inventory_template import inventory_text
from qoslab.run.devices.ansible_inventory import LabInventory, parse_lab, read_lab
from qoslab.schema import load_experiment
from qoslab.schema.inventory import inventory_obstacles
from qoslab.schema.topology import load_topology

EXPERIMENTS = sorted((Path(__file__).parents[2] / "experiments").glob("*.yml"))
SWITCH = EXPERIMENTS[0].with_name("bucket-truth.yml")

INVENTORY = """\
---
# An inventory for policing-vs-shaping. Nodes have the experiment's names and are cabled according to their interfaces.
# Values of your lab are marked "fill in"; docs/real-routers.md lists further variables. Then check it:
#   qoslab lab check inventory/mine.yml policing-vs-shaping
# Passwords come from the environment here; a vault, a keyring or a prompt (--ask) are possible too.
all:
  vars:
    qoslab_emulated_by:
      wan: line  # fill in: the source of its delay: `line` or a node
  children:
    ios:
      vars:
        ansible_connection: ansible.netcommon.network_cli
        ansible_network_os: cisco.ios.ios
        ansible_user: "{{ lookup('ansible.builtin.env', 'QOSLAB_USER') }}"
        ansible_password: "{{ lookup('ansible.builtin.env', 'QOSLAB_PASSWORD') }}"
        # only if a login does not start at privilege level 15
        ansible_become: true
        ansible_become_method: ansible.netcommon.enable
        ansible_become_password: "{{ lookup('ansible.builtin.env', 'QOSLAB_ENABLE') }}"
      hosts:
        R1:  # 3725
          ansible_host: R1.fill-in.invalid  # fill in: its management address
          # qoslab_model: fill in its model in `show version`, if not 3725
          qoslab_interfaces:  # name in the experiment: name on the router
            FastEthernet0/0: FastEthernet0/0  # fill in; 192.168.10.1/24, lan to client eth0, 100 Mb/s
            FastEthernet0/1: FastEthernet0/1  # fill in; 192.168.20.1/24, wan to server eth0, 100 Mb/s
    host:
      vars:
        ansible_user: qoslab  # fill in: a user who can log in with a key
        ansible_become: true
        # namespace, in place or as it is: docs/real-routers.md, Hosts
        qoslab_isolate: namespace
      hosts:
        client:
          ansible_host: client.fill-in.invalid  # fill in: its management address
          qoslab_interfaces:  # name in the experiment: name on the host
            eth0: eth0  # fill in; 192.168.10.2/24, lan to R1 FastEthernet0/0, 100 Mb/s
        server:
          ansible_host: server.fill-in.invalid  # fill in: its management address
          qoslab_interfaces:  # name in the experiment: name on the host
            eth0: eth0  # fill in; 192.168.20.2/24, wan to R1 FastEthernet0/1, 100 Mb/s
"""


def inventory_groups(name: str, group: Mapping[str, Any], above: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Return group, node and variables of all nodes in a group and its subgroups."""
    variables = {**above, **group.get("vars", {})}
    for node, own in group.get("hosts", {}).items():
        yield name, node, {**variables, **own}
    for below, each in group.get("children", {}).items():
        yield from inventory_groups(below, each, variables)


def parsed_inventory(text: str, file: Path) -> LabInventory:
    """Return the parsed inventory without Ansible's part, which takes seconds for each."""
    file.write_text(text, encoding="utf-8")
    nodes = list(inventory_groups("all", YAML(typ="safe").load(text)["all"], {}))
    groups: dict[str, Any] = {}
    for group, node, _ in nodes:
        groups.setdefault(group, {"hosts": []})["hosts"].append(node)
    if "ios_switch" in groups:
        groups.setdefault("ios", {})["children"] = ["ios_switch"]
    return parse_lab(groups | {"_meta": {"hostvars": {node: variables for _, node, variables in nodes}}}, file)


@pytest.mark.sample(6)
@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda file: file.stem)
def test_every_experiment_has_a_complete_inventory_template(file: Path, tmp_path: Path) -> None:
    experiment = load_experiment(file)
    found = parsed_inventory(inventory_text(experiment.topology, experiment.name), tmp_path / "mine.yml")
    assert inventory_obstacles(experiment, found.nodes, found.file) == []
    named = {**found.nodes.hosts, **found.nodes.routers}
    assert {name: dict(settings.interfaces) for name, settings in named.items()} == {
        name: {near.interface: near.interface for _, near, _ in experiment.topology.node_links(name)}
        for name in experiment.topology.nodes
    }


def test_template_has_known_values_and_marks_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["draw", "policing-vs-shaping", "--set", "topology.links.wan.delay=10 ms", "--format", "inventory"]
    assert main(words) == 0
    assert capsys.readouterr().out == INVENTORY


@pytest.mark.long
def test_ansible_reads_a_template_with_a_switch(tmp_path: Path) -> None:
    experiment = load_experiment(SWITCH)
    file = tmp_path / "mine.yml"
    file.write_text(inventory_text(experiment.topology, experiment.name), encoding="utf-8")
    found = read_lab(file)
    assert {name: (access.group, access.host) for name, access in found.routers.items()} == {
        name: (group, f"{name}.fill-in.invalid") for name, group in (("R1", "ios"), ("R2", "ios"), ("SW", "ios_switch"))
    }
    assert inventory_obstacles(experiment, found.nodes, file) == []


def test_ambiguous_yaml_names_are_quoted(tmp_path: Path) -> None:
    file = tmp_path / "pair.yml"
    file.write_text(
        'nodes: {"on": {platform: host}, "No": {platform: engine}}\nlinks:\n  - name: "yes"\n    rate: 10 Mb/s\n'
        "    loss: {model: random, probability: 1 %}\n    ends:\n"
        '      - {node: "on", interface: "off", address: 10.0.0.1/24}\n'
        '      - {node: "No", interface: FastEthernet0/1, address: 10.0.0.2/24}\n'
    )
    name, topology = load_topology(file)
    text = inventory_text(topology, name)
    found = parsed_inventory(text, tmp_path / "mine.yml")
    assert (found.nodes.hosts["on"].interfaces, set(found.routers)) == ({"off": "off"}, {"No"})
    assert found.nodes.emulated_by == {"yes": "line"}
