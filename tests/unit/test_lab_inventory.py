"""Inventories of labs: settings of nodes, and refusals before anything is reached."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from levels import long_cases
from project_inventory import project_inventory
from qoslab.cli import main
from qoslab.errors import DeviceError, UserError
from qoslab.model.experiment import Experiment
from qoslab.model.inventory import ANSWER_S, HostSettings, RouterSettings
from qoslab.results.redaction import KNOWN
from qoslab.run.devices.ansible_inventory import (
    HostAccess,
    IosAccess,
    ansible_inventory,
    parse_inventory,
    parse_lab,
    read_lab,
)
from qoslab.run.devices.collector_process import DeviceSession
from qoslab.run.devices.testbed import build_testbed as make_testbed
from qoslab.run.real.access.inventory_proxies import access_method
from qoslab.run.real.access.proxies import AccessProxies
from qoslab.run.real.channel import ssh_command
from qoslab.run.real.nodes import HostPlace
from qoslab.schema import load_sweep
from qoslab.schema.inventory import Nodes, inventory_obstacles

EXPERIMENT = load_sweep(Path(__file__).parents[2] / "experiments/policing-vs-shaping.yml", {}).experiment

INVENTORY = """\
all:
  children:
    ios:
      hosts:
        R1: {ansible_host: 192.0.2.1, qoslab_known_hosts: keys}
    host:
      vars:
        ansible_user: lab
        qoslab_isolate: namespace
      hosts:
        client:
          ansible_host: 192.0.2.11
          ansible_port: 2200
          ansible_become: true
          ansible_ssh_private_key_file: /keys/lab
          ansible_ssh_common_args: -o ProxyJump=lab@192.0.2.254
          qoslab_interfaces: {eth0: enp3s0f1}
          qoslab_known_hosts: keys
        server:
          ansible_host: 192.0.2.12
          ansible_python_interpreter: "{{ 'python' ~ '3.8' }}"
          qoslab_isolate: in place
"""


def list_inventory(text: str) -> dict[str, Any]:
    """Return Ansible's output for such an inventory, without the second that it takes; one test calls the real
    `read_lab`.
    """
    groups = YAML(typ="safe").load(text)["all"]["children"]
    hostvars = {
        node: {**group.get("vars", {}), **variables}
        for group in groups.values()
        for node, variables in group["hosts"].items()
    }
    return {name: {"hosts": list(group["hosts"])} for name, group in groups.items()} | {"_meta": {"hostvars": hostvars}}


def write(folder: Path, text: str) -> Path:
    file = folder / "mine.yml"
    file.write_text(text)
    return file


def test_inventory_has_connections_and_settings(tmp_path: Path) -> None:
    file = write(tmp_path, INVENTORY)
    found = read_lab(file)
    keys = str(tmp_path / "keys")
    client = HostAccess(
        *("192.0.2.11", 2200, "lab", "/keys/lab", keys, ("sudo", "-n")), arguments=("-o", "ProxyJump=lab@192.0.2.254")
    )
    assert found.hosts == {"client": client, "server": HostAccess("192.0.2.12", user="lab", python="python3.8")}
    assert found.nodes.hosts == {
        "client": HostSettings(known_hosts="keys", interfaces={"eth0": "enp3s0f1"}, isolate="namespace"),
        "server": HostSettings(isolate="in place"),
    }
    assert found.nodes.routers == {"R1": RouterSettings(known_hosts="keys")}
    assert inventory_obstacles(EXPERIMENT, found.nodes, file) == []


def test_ssh_uses_the_users_settings_and_those_of_the_inventory() -> None:
    assert ssh_command(HostAccess("lab-client"))[-2:] == ["--", "lab-client"]
    command = ssh_command(HostAccess("h", 2200, "u", "/k", "/known", arguments=("-J", "there")))
    text = " ".join(command)
    assert "UserKnownHostsFile=/known -o StrictHostKeyChecking=yes" in text
    assert text.endswith("-o IdentityFile=/k -o IdentitiesOnly=yes -p 2200 -l u -J there -- h")
    # Another session's connection is not used: it would outlive the run, and the host's programs with it.
    assert "ControlMaster=no -o ControlPath=none" in text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "qoslab_isolate: in place",
            "qoslab_isolte: in place",
            ":22:11: server qoslab_isolte: found the variable qoslab_isolte, expected one of qoslab_known_hosts, "
            'qoslab_interfaces, qoslab_isolate; did you mean "qoslab_isolate"?',
        ),
        (
            "qoslab_isolate: in place",
            "qoslab_isolate: inplace",
            ':22:11: server qoslab_isolate: found "inplace", expected one of namespace, in place, as it is',
        ),
        (
            "qoslab_isolate: namespace",
            "qoslab_isolate: 3",
            ":9:9: client qoslab_isolate: found 3, expected one of namespace, in place, as it is",
        ),
        (
            "qoslab_known_hosts: keys}",
            "qoslab_isolate: namespace}",
            ":5:39: R1 qoslab_isolate: found qoslab_isolate on a router, expected one of qoslab_known_hosts, "
            "qoslab_interfaces, qoslab_reach, qoslab_old_ssh, qoslab_jump, qoslab_console, qoslab_rollback, "
            "qoslab_rollback_margin, qoslab_show_every, qoslab_model",
        ),
        (
            "{eth0: enp3s0f1}",
            "{eth0: enp3s0f1, eth1: enp3s0f1}",
            ":17:11: client qoslab_interfaces: found enp3s0f1 for eth0 and for eth1, expected one interface for each",
        ),
        (
            "{eth0: enp3s0f1}",
            "enp3s0f1",
            ':17:11: client qoslab_interfaces: found "enp3s0f1", expected a mapping of the experiment\'s interfaces to '
            "those of the host, such as {eth0: enp3s0}",
        ),
        (
            "qoslab_known_hosts: keys}",
            "ansible_ssh_common_args: -o ProxyJump=lab@192.0.2.254}",
            ':5:39: R1 ansible_ssh_common_args: found "-o ProxyJump=lab@192.0.2.254" on a router, expected it on hosts '
            "only; no ssh program connects to it: qoslab_jump gives a jump host, qoslab_old_ssh old algorithms",
        ),
        (
            "ansible_become: true",
            "ansible_become: true\n          ansible_become_user: kim",
            ':15:11: client ansible_become_user: found "kim" on a host, expected root; leave it out; the host\'s agent '
            "runs behind `sudo -n`",
        ),
        (
            "ansible_become: true",
            "ansible_become: true\n          ansible_become_method: su",
            ':15:11: client ansible_become_method: found "su" on a host, expected sudo; leave it out; the host\'s '
            "agent runs behind `sudo -n`",
        ),
        (
            "ansible_ssh_private_key_file: /keys/lab",
            "ansible_password: secret",
            ": found a password for client, expected a key",
        ),
    ],
)
def test_invalid_entries_are_reported_with_their_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in INVENTORY
    text = INVENTORY.replace(old, new, 1)
    file = write(tmp_path, text)
    with pytest.raises(UserError) as caught:
        parse_lab(list_inventory(text), file)
    assert caught.value.message == f"{file}{message}"
    assert "secret" not in str(caught.value)


def test_inventory_without_hosts_names_their_group(tmp_path: Path) -> None:
    text = INVENTORY.replace("    host:\n", "    hosts:\n")
    with pytest.raises(UserError, match="found no host in ") as caught:
        parse_lab(list_inventory(text), write(tmp_path, text))
    assert "group host" in caught.value.hint


def nodes(**ways: str) -> Nodes:
    hosts = {"client": HostSettings(isolate="namespace"), "server": HostSettings(isolate="namespace")}
    return Nodes(hosts, {"R1": RouterSettings()}, {"client": "a", "server": "b", "R1": "c", **ways})


def test_nodes_on_the_same_device_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path, INVENTORY)
    there = nodes()
    missing = Nodes({"client": HostSettings(), "servr": HostSettings()}, {}, {})
    assert [str(each).removeprefix(str(file)) for each in inventory_obstacles(EXPERIMENT, missing, file)] == [
        ":10:7: found no server in the group host, expected every node of policing-vs-shaping in the inventory; "
        'did you mean "servr"?',
        ":4:7: found no R1 in the group ios, expected every node of policing-vs-shaping in the inventory",
    ]
    assert inventory_obstacles(EXPERIMENT, there, file) == []
    (found,) = inventory_obstacles(EXPERIMENT, nodes(R1="a"), file)
    assert (found.line, found.message) == (5, "found a for client and for R1, expected a device for each")


@pytest.mark.parametrize("as_json", [False, *long_cases(True)])
def test_validate_reads_the_inventory(tmp_path: Path, capsys: pytest.CaptureFixture[str], as_json: bool) -> None:
    file = write(tmp_path, "ios: {hosts: {R1: {ansible_host: 192.0.2.1}}}\n")
    more = ["--json"] if as_json else []
    assert main(["validate", "policing-vs-shaping", "--lab", str(file), *more]) == 2
    printed = capsys.readouterr()
    assert f"found no host in {file}" in (json.loads(printed.out)["message"] if as_json else printed.err)


def test_group_without_the_node_is_reported_with_its_members(tmp_path: Path) -> None:
    def lines(text: str, suffix: str = ".yml") -> list[str]:
        file = (tmp_path / "rack").with_suffix(suffix)
        file.write_text(text)
        missing = Nodes({"client": HostSettings()}, {"R1": RouterSettings()}, {})
        return [each.location.removeprefix(str(file)) for each in inventory_obstacles(EXPERIMENT, missing, file)]

    assert lines("all:\n  children:\n    host:\n      vars: {ansible_user: lab}\n") == [":3:5"]
    assert lines("# mine\nall:\n  children:\n    ios:\n") == [":2:1"]
    assert lines("ios:\n  hosts:\n    R1:\nhost:\n  hosts:\n    client:\n") == [":5:3"]
    # Without a known line, the file is named.
    assert lines("ios:\n  hosts:\n    R1:\n") == lines("[host]\nclient\n", ".ini") == [""]


def test_two_hosts_can_be_one_machine_with_a_nic_each(tmp_path: Path) -> None:
    file = write(tmp_path, INVENTORY)
    there = nodes(client="a", server="a")
    (found,) = inventory_obstacles(EXPERIMENT, there, file)
    assert (found.line, found.message) == (19, "found a for client and for server, expected a device for each")
    apart = {**there.hosts, "server": HostSettings(isolate="namespace", interfaces={"eth0": "eth1"})}
    assert inventory_obstacles(EXPERIMENT, Nodes(apart, there.routers, there.addresses), file) == []
    in_place = {**there.hosts, "server": HostSettings(isolate="in place", interfaces={"eth0": "eth1"})}
    assert len(inventory_obstacles(EXPERIMENT, Nodes(in_place, there.routers, there.addresses), file)) == 1


def test_only_a_namespace_gets_a_default_route() -> None:
    for isolate, prefixes in (
        ("namespace", ["192.168.10.0/24", "0.0.0.0/0"]),
        ("in place", ["192.168.10.0/24", "192.168.20.0/24"]),
    ):
        settings = HostSettings(interfaces={"eth0": "enp3s0"}, isolate=isolate)  # type: ignore[arg-type]
        place = HostPlace(EXPERIMENT.topology, "client", settings)
        assert place.interfaces() == [{"device": "enp3s0", "addresses": ["192.168.10.2/24"]}]
        routes = place.routes({"congctl": "reno"})
        assert [route["prefix"] for route in routes] == prefixes
        assert routes[1] == {
            "prefix": prefixes[1],
            "device": "enp3s0",
            "via": "192.168.10.1",
            "source": "",
            "metrics": {"congctl": "reno"},
        }


@pytest.mark.long
def test_project_inventory_works_for_the_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QOSLAB_PASSWORD", "PLANTED-project")
    there = read_lab(write(tmp_path, project_inventory()))
    ways = {"R1": "clab-policing-R1", "client": "clab-policing-client", "server": "clab-policing-server"}
    assert there.nodes.addresses == {name: f"{host} port 22" for name, host in ways.items()}
    router = there.routers["R1"]
    assert isinstance(router, IosAccess)
    assert (router.host, router.user, router.password) == (ways["R1"], "admin", "PLANTED-project")
    names = {"FastEthernet0/0": "GigabitEthernet0/1", "FastEthernet0/1": "GigabitEthernet0/2"}
    assert there.nodes.routers["R1"] == RouterSettings(model="IOSv", interfaces=names)
    assert {name: (each.host, each.user) for name, each in there.hosts.items()} == {
        name: (ways[name], "root") for name in ("client", "server")
    }
    in_place = HostSettings(isolate="in place", interfaces={"eth0": "eth1"})
    assert there.nodes.hosts == {"client": in_place, "server": in_place}
    assert inventory_obstacles(EXPERIMENT, there.nodes, there.file) == []


def delayed_link() -> Experiment:
    """Return the experiment with a wan of 5 ms."""
    written = json.loads(EXPERIMENT.model_dump_json(by_alias=True))
    written["topology"]["links"][1]["delay"] = "5 ms"
    return Experiment.model_validate_json(json.dumps(written))


def test_link_with_delay_is_refused_without_an_emulator(tmp_path: Path) -> None:
    file = write(tmp_path, INVENTORY)
    (found,) = inventory_obstacles(delayed_link(), nodes(), file)
    assert str(found) == (
        f"{file}:1:1: found delay on the link wan, expected qoslab_emulated_by to name its source; "
        "under all: vars: qoslab_emulated_by: {wan: line}, or a node's name; it is measured"
    )
    text = INVENTORY.replace(
        "qoslab_isolate: namespace", "qoslab_isolate: namespace\n        qoslab_emulated_by: {wan: R1}"
    )
    known = parse_lab(list_inventory(text), write(tmp_path, text))
    assert known.nodes.emulated_by == {"wan": "R1"}
    assert inventory_obstacles(delayed_link(), known.nodes, file) == []


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            "{wan: netm}",
            ':10:9: client qoslab_emulated_by: found "netm" for the link wan, expected line or ',
        ),
        (
            "line",
            ':10:9: client qoslab_emulated_by: found "line", expected a mapping of links to ',
        ),
    ],
)
def test_inventory_names_the_node_that_delays_a_link(tmp_path: Path, value: str, message: str) -> None:
    text = INVENTORY.replace(
        "qoslab_isolate: namespace", f"qoslab_isolate: namespace\n        qoslab_emulated_by: {value}"
    )
    file = write(tmp_path, text)
    with pytest.raises(UserError) as caught:
        parse_lab(list_inventory(text), file)
    assert caught.value.message.startswith(f"{file}{message}")


def test_unknown_lab_variable_gets_a_suggestion(tmp_path: Path) -> None:
    text = INVENTORY.replace("qoslab_isolate: in place", "qoslab_emulate_by: {wan: line}")
    with pytest.raises(UserError, match='did you mean "qoslab_emulated_by"'):
        parse_lab(list_inventory(text), write(tmp_path, text))


def test_router_can_have_other_interface_names(tmp_path: Path) -> None:
    plain = "R1: {ansible_host: 192.0.2.1, qoslab_known_hosts: keys}"
    mapped = "R1: {ansible_host: 192.0.2.1, qoslab_interfaces: {Fa0/0: gi0/1}}"
    text = INVENTORY.replace(plain, mapped)
    file = write(tmp_path, text)
    settings = parse_lab(list_inventory(text), file).nodes.routers["R1"]
    assert settings.device("FastEthernet0/0") == "GigabitEthernet0/1"
    assert settings.device("FastEthernet0/1") == "FastEthernet0/1"
    wrong = text.replace("gi0/1", "eno1")
    with pytest.raises(UserError, match="expected names of a router's interfaces, such as "):
        parse_lab(list_inventory(wrong), write(tmp_path, wrong))


def test_another_model_can_replace_a_router(tmp_path: Path) -> None:
    plain = "R1: {ansible_host: 192.0.2.1, qoslab_known_hosts: keys}"
    for written, found in (("2901", "2901"), ("IOSv", "IOSv")):
        text = INVENTORY.replace(plain, f"R1: {{ansible_host: 192.0.2.1, qoslab_model: {written}}}")
        assert parse_lab(list_inventory(text), write(tmp_path, text)).nodes.routers["R1"].model == found
    text = INVENTORY.replace(plain, "R1: {ansible_host: 192.0.2.1, qoslab_model: []}")
    with pytest.raises(UserError, match="expected the router's model in `show version`, such as IOSv"):
        parse_lab(list_inventory(text), write(tmp_path, text))


def test_two_names_of_one_interface_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path, INVENTORY)
    both = {"R1": RouterSettings(interfaces={"FastEthernet0/0": "FastEthernet0/1"})}
    (found,) = inventory_obstacles(EXPERIMENT, Nodes(nodes().hosts, both, nodes().addresses), file)
    expected = "found FastEthernet0/1 for FastEthernet0/0 and for FastEthernet0/1, expected one interface for each"
    assert found.message == expected


def vault_inventory(folder: Path) -> Path:
    """Provide an inventory with a password in a vault, next to the vault's password."""
    password = folder / "password"
    password.write_text("open-sesame-3\n")
    program = str(Path(sys.executable).parent / "ansible-vault")
    command = [program, "encrypt_string", "--vault-password-file", str(password), "zebra-crossing", "--name", "x"]
    secret = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().removeprefix("x: ")
    secret = secret.replace("\n", "\n      ")
    text = INVENTORY.replace("{ansible_host: 192.0.2.1, qoslab_known_hosts: keys}", "")
    text = text.replace("R1: \n", f"R1:\n          ansible_host: 192.0.2.1\n          ansible_password: {secret}\n")
    return write(folder, text)


KEYRING = """\
from keyring.backend import KeyringBackend

class Known(KeyringBackend):
    priority = 1
    def get_password(self, service, username):
        return {("rack", "admin"): "zebra-crossing"}.get((service, username))
    def set_password(self, service, username, password):
        raise NotImplementedError
"""


def test_all_clients_use_the_timeout_of_a_slow_router(tmp_path: Path) -> None:
    text = INVENTORY.replace("qoslab_known_hosts: keys}", "ansible_command_timeout: 120}", 1)
    router = parse_inventory(list_inventory(text))["R1"]
    assert isinstance(router, IosAccess)
    way = access_method(tmp_path / "mine.yml", router, RouterSettings())
    assert way.answer_s == 120
    with AccessProxies({"R1": way, "R2": replace(way, answer_s=ANSWER_S)}) as proxies:
        access = proxies.access()
    assert (access["R1"].answer_s, access["R2"].answer_s) == (120, None)
    reported = ansible_inventory(access, lab=False)["all"]["children"]["ios"]["hosts"]
    assert reported["R1"]["ansible_command_timeout"] == 120 and "ansible_command_timeout" not in reported["R2"]
    devices = make_testbed("run", access)["devices"]
    settings = devices["R1"]["connections"]["cli"]["settings"]
    assert (settings["EXEC_TIMEOUT"], settings["CONFIG_TIMEOUT"]) == (120, 120)
    assert [DeviceSession(name, device)._command_s for name, device in devices.items()] == [120, 60]
    for wrong in ("0", "soon", "1.5"):
        with pytest.raises(DeviceError, match=r"^R1: found ansible_command_timeout '.*', expected whole seconds"):
            parse_inventory(list_inventory(text.replace("120", wrong)))


def test_login_key_of_a_router_is_read(tmp_path: Path) -> None:
    text = INVENTORY.replace("qoslab_known_hosts: keys}", "ansible_ssh_private_key_file: /keys/rack}", 1)
    # Tasks that a host skips, because it does not become root, are not reported.
    text = text.replace("ansible_become: true", "ansible_become: false\n          ansible_become_method: enable")
    router = parse_lab(list_inventory(text), write(tmp_path, text)).routers["R1"]
    assert isinstance(router, IosAccess) and router.key == "/keys/rack"
    assert access_method(tmp_path / "mine.yml", router, RouterSettings()).key == "/keys/rack"
    reported = ansible_inventory({"R1": router}, lab=False)["all"]["children"]["ios"]["hosts"]["R1"]
    assert reported["ansible_ssh_private_key_file"] == "/keys/rack"
    cli = make_testbed("run", {"R1": router})["devices"]["R1"]["connections"]["cli"]
    assert "-o IdentityFile=/keys/rack -o IdentitiesOnly=yes" in cli["ssh_options"]


def test_passwords_of_hosts_are_hidden_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RACK_SUDO", "grass-hopper-of-hosts")
    given = list_inventory(INVENTORY)
    given["_meta"]["hostvars"]["client"]["ansible_become_password"] = "grass-hopper-of-hosts"
    given["_meta"]["hostvars"]["server"]["ansible_python_interpreter"] = "python3.8"
    parse_lab(given, write(tmp_path, INVENTORY))
    assert KNOWN.hidden("sudo: grass-hopper-of-hosts") == "sudo: <removed>"
    assert "RACK_SUDO" not in os.environ


def inventory_with_keyring(folder: Path, patch: pytest.MonkeyPatch, user: str) -> Path:
    """Provide an inventory with a password in a keyring that has one of `admin`."""
    (folder / "known_keyring.py").write_text(KEYRING)
    patch.setenv("PYTHON_KEYRING_BACKEND", "known_keyring.Known")
    patch.setenv("PYTHONPATH", str(folder))
    word = f"{{{{ lookup('community.general.keyring', 'rack {user}') }}}}"
    text = INVENTORY.replace("qoslab_known_hosts: keys}", f'ansible_password: "{word}"}}', 1)
    assert "keyring" in text
    return write(folder, text)


@pytest.mark.long
def test_password_comes_from_the_keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    router = read_lab(inventory_with_keyring(tmp_path, monkeypatch, "admin")).routers["R1"]
    assert isinstance(router, IosAccess) and router.password == "zebra-crossing"
    assert KNOWN.hidden("it is zebra-crossing") == "it is <removed>"


@pytest.mark.long
def test_keyring_without_the_password_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = inventory_with_keyring(tmp_path, monkeypatch, "nobody")
    with pytest.raises(UserError, match=r"R1: .*servicename: rack for user nobody not found") as caught:
        read_lab(file)
    assert caught.value.hint == "Put it into the keyring: keyring set SERVICE USER."
    # The state without the package.
    (tmp_path / "keyring.py").write_text("raise ImportError\n")
    with pytest.raises(UserError, match="missing required python library 'keyring'") as caught:
        read_lab(file)
    assert caught.value.hint == "pip install 'qoslab-….whl[keyring]'"


@pytest.mark.long
def test_vault_without_its_password_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = vault_inventory(tmp_path)
    monkeypatch.delenv("ANSIBLE_VAULT_PASSWORD_FILE", raising=False)
    with pytest.raises(UserError) as caught:
        read_lab(file)
    first, node = caught.value.message.splitlines()
    assert first == f"ansible cannot read {file}:"
    assert node.startswith("  R1: ") and "no vault secrets found" in node
    assert "ANSIBLE_VAULT_PASSWORD_FILE" in caught.value.hint
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(tmp_path / "password"))
    other = file.rename(file.with_name("other.yml"))
    access = read_lab(other).routers["R1"]
    assert isinstance(access, IosAccess) and access.password == "zebra-crossing"
