"""Ansible inventories, and the pyATS testbed made from them."""

from __future__ import annotations

import json
import os
import stat
import sys
from dataclasses import replace
from ipaddress import IPv4Interface
from pathlib import Path
from typing import Any

import pytest

from levels import long_cases
from qoslab.errors import DeviceError, UserError
from qoslab.model.experiment import Link, LinkEnd, Node, Topology
from qoslab.model.units import Rate
from qoslab.run.devices.ansible_inventory import (
    SWITCH_GROUP,
    EngineAccess,
    IosAccess,
    ansible_inventory,
    parse_inventory,
    read_inventory,
    write_inventory,
)
from qoslab.run.devices.testbed import DEVICE_RETRY_S
from qoslab.run.devices.testbed import build_testbed as make_testbed
from qoslab.run.devices.testbed import testbed_yaml as as_yaml

R1 = IosAccess("127.0.0.1", "lab", "secret", 40022, "enable secret")
R2 = EngineAccess("/proc/1/root/run/qoslab/R2/control.sock", "/opt/qos-router")


def test_inventory_file_is_readable_only_by_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "inventory.json"
    path.touch(0o644)
    write_inventory(path, {"R1": R1})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text()) == ansible_inventory({"R1": R1})


def test_virtual_routers_have_their_connection_variables() -> None:
    children = ansible_inventory({"R1": R1, "R2": R2})["all"]["children"]
    assert children["ios"]["vars"]["ansible_network_os"] == "cisco.ios.ios"
    assert children["ios"]["vars"]["ansible_host_key_checking"] is False
    assert children["ios"]["hosts"]["R1"]["ansible_become_password"] == "enable secret"
    assert children["engine_router"]["hosts"]["R2"] == {
        "engine_router_socket": R2.socket,
        "engine_router_program": "/opt/qos-router",
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
    }


def test_host_keys_are_checked_outside_a_lab() -> None:
    assert "ansible_host_key_checking" not in ansible_inventory({"R1": R1}, lab=False)["all"]["children"]["ios"]["vars"]


def test_login_at_privilege_15_needs_no_enable() -> None:
    access = IosAccess("192.0.2.1", "lab", "secret")
    (variables,) = ansible_inventory({"R1": access})["all"]["children"]["ios"]["hosts"].values()
    assert "ansible_become" not in variables


def test_clients_of_a_fast_device_get_its_timeouts() -> None:
    def timeouts_of(access: IosAccess) -> tuple[object, object]:
        (variables,) = ansible_inventory({"R1": access})["all"]["children"]["ios"]["hosts"].values()
        cli = make_testbed("lab", {"R1": access})["devices"]["R1"]["connections"]["cli"]
        return variables.get("ansible_buffer_read_timeout"), cli["settings"].get("EXECUTE_MATCHED_RETRY_SLEEP")

    proxied = IosAccess("127.0.0.1", "lab", "secret", proxied=True)
    assert timeouts_of(proxied) == (None, DEVICE_RETRY_S), "each as long as by itself"
    assert timeouts_of(replace(proxied, pause_s=0.02)) == (0.02, 0.02)


@pytest.mark.parametrize("lab", [True, *long_cases(False)])
def test_ansible_reads_the_written_inventory(tmp_path: Path, lab: bool) -> None:
    path = tmp_path / "inventory.json"
    switch = IosAccess("192.0.2.4", "u", "p", group=SWITCH_GROUP)
    routers = {
        "R1": R1,
        "R2": R2,
        "SW": switch,
        "R3": EngineAccess("/run/x.sock", "qos-router", "192.0.2.3", "u", None, 2022),
    }
    write_inventory(path, routers, lab=lab)
    # Nobody knows the keys of lab routers in advance.
    assert read_inventory(path) == {
        name: replace(access, check_host_key=not lab) if isinstance(access, IosAccess) else access
        for name, access in routers.items()
    }


@pytest.mark.long
def test_templates_in_an_inventory_are_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    example = Path(__file__).parents[2] / "inventory" / "hardware.example.yml"
    for name, value in (("QOSLAB_USER", "kim"), ("QOSLAB_PASSWORD", "{not a template}"), ("QOSLAB_ENABLE", "")):
        monkeypatch.setenv(name, value)
    routers = read_inventory(example)
    assert routers["R1"] == IosAccess("192.0.2.1", "kim", "{not a template}", 22, None)
    assert isinstance(routers["R2"], EngineAccess)
    assert isinstance(routers["SW"], IosAccess)
    assert routers["SW"].group == SWITCH_GROUP
    assert set(routers) == {"R1", "R2", "SW"}


@pytest.mark.long
def test_password_set_again_replaces_the_earlier_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for password in ("first-9", "second-9"):
        monkeypatch.setenv("RACK_PASSWORD", password)
        file = tmp_path / f"{password}.yml"
        word = "{{ lookup('ansible.builtin.env', 'RACK_PASSWORD') }}"
        file.write_text(f'ios:\n  hosts:\n    R1:\n      ansible_host: 192.0.2.1\n      ansible_password: "{word}"\n')
        access = read_inventory(file)["R1"]
        assert isinstance(access, IosAccess) and access.password == password


def test_no_configuration_in_the_current_folder_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "mine.yml"
    login = "ansible_host: '{{ \"10.0.0.1\" }}', ansible_user: kim, ansible_password: secret"
    mine.write_text(f"all: {{children: {{ios: {{hosts: {{R1: {{{login}}}}}}}}}}}\n")
    received = tmp_path / "received"
    for folder in ("plugins", "group_vars"):
        (received / folder).mkdir(parents=True)
    (received / "ansible.cfg").write_text("[defaults]\ncallback_plugins = plugins\ninventory_plugins = plugins\n")
    code = f"open({str(tmp_path / 'PWNED')!r}, 'w').close()\n"
    for name in ("json", "yaml", "host_list", "ini", "auto"):
        (received / "plugins" / f"{name}.py").write_text(code)
    piped = f"{{{{ lookup('pipe', 'touch {tmp_path / 'PWNED'}; echo 23') }}}}"
    (received / "group_vars" / "all.yml").write_text(f'ansible_port: "{piped}"\n')
    monkeypatch.chdir(received)
    monkeypatch.delenv("ANSIBLE_CONFIG", raising=False)
    assert read_inventory(mine)["R1"] == IosAccess("10.0.0.1", "kim", "secret", 22)
    assert not (tmp_path / "PWNED").exists()


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no inventory"),
        ("all: {hosts: {client: {}}}", "found no router"),
        ("ios: {hosts: {R1: {ansible_port: ssh}}}", "found ansible_port 'ssh', expected a TCP port"),
        ("ios: {hosts: {R1: {}}}\nengine_router: {hosts: {R1: {}}}", "R1 is in both groups"),
        ("ios:\n  hosts: [\n", r"routers.yml:\d+: found no inventory: YAML parsing failed"),
        ("- R1\n- R2\n", "routers.yml: found no inventory: YAML inventory has invalid structure"),
    ],
)
def test_unusable_inventories_are_refused(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "routers.yml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UserError, match=message):
        read_inventory(path)


def test_routers_of_subgroups_count() -> None:
    listed = {"ios": {"children": ["core"]}, "core": {"hosts": ["R9"]}, "_meta": {"hostvars": {"R9": {}}}}
    assert parse_inventory(listed) == {"R9": IosAccess("R9", None, None)}


TOPOLOGY = Topology(
    nodes={"client": Node(platform="host"), "R1": Node(platform="ios", model="3725")},
    links=(
        Link(
            name="lan",
            ends=(
                LinkEnd(node="client", interface="eth0", address=IPv4Interface("192.168.10.2/24")),
                LinkEnd(node="R1", interface="FastEthernet0/0", address=IPv4Interface("192.168.10.1/24")),
            ),
            rate=Rate(100_000_000),
        ),
    ),
)


def test_testbed_changes_nothing_on_the_router() -> None:
    made = make_testbed("x", {"R1": R1, "R2": R2}, TOPOLOGY, known_hosts=Path("/run/known_hosts"))
    cli: dict[str, Any] = made["devices"]["R1"]["connections"]["cli"]
    assert cli["arguments"] == {"init_config_commands": [], "learn_hostname": True}
    assert (cli["ip"], cli["port"]) == ("127.0.0.1", 40022)
    assert cli["ssh_options"].startswith("-F none -o UserKnownHostsFile=/run/known_hosts ")
    assert made["devices"]["R1"]["credentials"]["enable"] == {"password": "enable secret"}
    # Unicon cannot log in to a data plane
    assert set(made["devices"]) == {"R1"}
    assert made["topology"] == {
        "R1": {
            "interfaces": {
                "FastEthernet0/0": {
                    "type": "ethernet",
                    "alias": "FastEthernet0/0",
                    "link": "lan",
                    "ipv4": "192.168.10.1/24",
                }
            }
        }
    }


@pytest.mark.parametrize(
    ("node", "os_name"),
    [
        (Node(platform="ios", model="3725"), "ios"),
        (Node(platform="ios", model="2911"), "ios"),
        (Node(platform="ios", model="3750G"), "ios"),
        (Node(platform="ios", model="ISR4451"), "iosxe"),
        (Node(platform="ios", model="C8000V"), "iosxe"),
    ],
)
def test_testbed_names_the_operating_system_of_the_model(node: Node, os_name: str) -> None:
    made = make_testbed("x", {"R1": R1}, Topology(nodes={"R1": node}, links=()))
    assert made["devices"]["R1"]["os"] == os_name


def test_testbed_needs_an_ios_router() -> None:
    with pytest.raises(DeviceError, match="no IOS router"):
        make_testbed("x", {"R2": R2})


def test_genie_loads_the_testbed() -> None:
    from genie.testbed import load

    loaded = load(as_yaml(make_testbed("x", {"R1": R1}, TOPOLOGY)))
    device = loaded.devices["R1"]
    assert (device.os, device.type) == ("ios", "router")
    assert device.interfaces["FastEthernet0/0"].link.name == "lan"
    assert device.connections["cli"]["arguments"]["init_config_commands"] == []


def test_password_of_the_environment_is_read_once_and_not_inherited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RACK_PASSWORD", "from-outside-9")
    file = tmp_path / "rack.yml"
    word = "{{ lookup('ansible.builtin.env', 'RACK_PASSWORD') }}"
    file.write_text(f'ios:\n  hosts:\n    R1:\n      ansible_host: 192.0.2.1\n      ansible_password: "{word}"\n')
    for _ in range(2):
        access = read_inventory(file)["R1"]
        assert isinstance(access, IosAccess) and access.password == "from-outside-9"
        assert "RACK_PASSWORD" not in os.environ
