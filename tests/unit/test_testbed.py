"""pyATS testbeds of inventories, read by pyATS itself."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from qoslab.cli import main
from qoslab.genie import OPS, PACKAGE

INVENTORY = """\
all:
  children:
    ios:
      vars:
        ansible_user: kim
        ansible_password: "{{ lookup('ansible.builtin.env', 'TESTBED_PASSWORD') }}"
      hosts:
        R1:
          ansible_host: 192.0.2.1
          ansible_become_password: planted-enable-9
          qoslab_old_ssh: true
          qoslab_known_hosts: keys
          qoslab_console: 192.0.2.250:2003
          qoslab_interfaces: {FastEthernet0/1: GigabitEthernet0/1}
        R9: {ansible_host: 192.0.2.9, qoslab_jump: "kim@192.0.2.254:2200"}
        R8: {ansible_host: 192.0.2.8, qoslab_reach: telnet, qoslab_jump: "kim@192.0.2.254:2200"}
        R7: {ansible_host: 192.0.2.7, qoslab_reach: telnet}
      children:
        ios_switch:
          hosts:
            SW: {ansible_host: 192.0.2.3}
    host:
      vars: {ansible_user: lab, ansible_ssh_private_key_file: /keys/lab}
      hosts:
        client: {ansible_host: 192.0.2.11, ansible_port: 2200, qoslab_interfaces: {eth0: enp3s0}}
        server: {ansible_host: 192.0.2.12}
"""


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide one file for all tests: Ansible takes seconds to read it."""
    file = tmp_path_factory.mktemp("rack") / "rack.yml"
    file.write_text(INVENTORY)
    return file


@pytest.fixture
def inventory(rack: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TESTBED_PASSWORD", "planted-password-9")
    return rack


def loaded_testbed(file: Path, **environment: str) -> Any:
    """Return the testbed loaded by pyATS."""
    from genie.testbed import load

    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        return load(str(file))


SECRETS = {"TESTBED_PASSWORD": "one", "QOSLAB_R1_ENABLE": "two"}


def test_pyats_reads_a_testbed_with_hosts_links_aliases_and_secrets(
    inventory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "testbed.yml"
    argv = ["testbed", "--lab", str(inventory), "--experiment", "policing-vs-shaping", "-o", str(file)]
    assert main(argv) == 0
    output = capsys.readouterr().err
    assert output.endswith("pyATS takes the passwords from the environment: TESTBED_PASSWORD, QOSLAB_R1_ENABLE\n"), (
        output
    )
    assert "planted" not in file.read_text() and "%ENV{TESTBED_PASSWORD}" in file.read_text()
    bed = loaded_testbed(file, **SECRETS)
    r1 = bed.devices["R1"]
    assert (r1.os, r1.type, r1.alias, bed.devices["SW"].type) == ("ios", "router", "R1", "switch")
    assert r1.credentials["default"]["username"] == "kim"
    assert r1.credentials["default"]["password"].plaintext == "one"
    assert r1.credentials["enable"]["password"].plaintext == "two"
    # The device's name and the experiment's name of it.
    port = r1.interfaces["GigabitEthernet0/1"]
    assert (port.alias, port.link.name) == ("FastEthernet0/1", "wan")
    assert r1.interfaces["FastEthernet0/1"] is port
    assert [str(each.device.name) for each in bed.devices["client"].interfaces["enp3s0"].link.interfaces] == [
        "client",
        "R1",
    ]
    console = r1.connections["console"]
    assert (console["protocol"], str(console["ip"]), console["port"]) == ("telnet", "192.0.2.250", 2003)
    cli = r1.connections["cli"]
    assert f"UserKnownHostsFile={inventory.parent}/keys" in cli["ssh_options"]
    assert "-oCiphers=+aes256-cbc" in cli["ssh_options"]
    assert bed.devices["R9"].connections["cli"]["ssh_options"] == "-J kim@192.0.2.254:2200"
    assert bed.devices["R8"].connections["cli"]["command"] == "ssh -W 192.0.2.8:23 -p 2200 kim@192.0.2.254"
    plain = bed.devices["R7"].connections["cli"]
    assert (plain["protocol"], plain["port"]) == ("telnet", 23)
    client = bed.devices["client"]
    assert (client.os, client.type, client.connections["cli"]["port"]) == ("linux", "host", 2200)
    assert client.connections["cli"]["ssh_options"] == "-o IdentityFile=/keys/lab -o IdentitiesOnly=yes"


@pytest.mark.long
def test_pyats_validates_the_testbed(inventory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "testbed.yml"
    assert main(["testbed", "--lab", str(inventory), "--experiment", "policing-vs-shaping", "-o", str(file)]) == 0
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    pyats = str(Path(sys.executable).with_name("pyats"))
    done = subprocess.run(
        [pyats, "validate", "testbed", str(file)], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # A link with one end in the testbed is not a link for pyATS, whose links have two ends.
    assert "Link 'wan' has only one interface" not in done.stdout and "ERROR" not in done.stdout, done.stdout


def test_testbed_has_secrets_only_on_request(inventory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for secrets, word in (("ask", "%ASK{password of R1}"), ("plain", "planted-password-9"), ("env", "%ENV{")):
        assert main(["testbed", "--lab", str(inventory), "--secrets", secrets]) == 0
        printed = capsys.readouterr().out
        assert word in printed
        assert ("planted" in printed) == (secrets == "plain")


@pytest.mark.long
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("192.0.2.250:2003", "192.0.2.250", 'R1 qoslab_console: found "192.0.2.250", expected host:port of a terminal'),
        ("server: {ansible_host", "sever: {ansible_host", "found no server in "),
    ],
)
def test_invalid_inventory_values_are_reported(
    old: str, new: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rack.yml"
    file.write_text(INVENTORY.replace(old, new, 1))
    assert main(["testbed", "--lab", str(file), "--experiment", "policing-vs-shaping"]) == 2
    assert message in capsys.readouterr().err


def test_experiment_links_are_not_added_to_a_virtual_lab(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["testbed", "--experiment", "policing-vs-shaping"]) == 2
    assert "found --experiment for a virtual lab, expected an inventory" in capsys.readouterr().err


def answering(answers: Mapping[str, str], kind: str = "router") -> Any:
    """Device that answers show commands with these texts, and others with nothing."""
    from genie.conf.base import Device

    from qoslab.genie.show_parser import register

    register()
    device = Device("R1", os="ios", type=kind, custom={"abstraction": {"order": ["os"]}})
    device.is_connected = lambda *_, **__: True
    device.execute = lambda command, **_: answers.get(command, "")
    device.cli = SimpleNamespace(execute=device.execute)
    return device


RECORDED = Path(__file__).parents[1] / "recorded/ios"


def test_genie_learns_qos_of_ios_and_compares_it_without_counters() -> None:
    police = (RECORDED / "police.classic.txt").read_text()
    answers = {
        "show policy-map interface": police,
        "show policy-map": (RECORDED / "show_policy-map.txt").read_text(),
        "show class-map": (RECORDED / "show_class-map.txt").read_text(),
    }
    learnt = answering(answers).learn("qos")
    assert set(learnt.info) == {"class_map", "policy_map", "interface"}
    attached = learnt.info["interface"]["FastEthernet0/1"]["service_policy"]["output"]["policy_name"]
    assert attached["Police"]["class_map"]["class-default"]["police"]["cir_bps"] == 1000000

    def difference(text: str) -> str:
        return str(learnt.diff(answering({**answers, "show policy-map interface": text}).learn("qos"), learnt.exclude))

    assert "1394" in police and "cir 1000000" in police
    assert difference(police.replace("1394", "9999").replace("2070", "9998")) == ""
    assert "cir_bps: 2000000" in difference(police.replace("cir 1000000", "cir 2000000"))


def test_installation_registers_parsers_with_genie() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"] == {
        "genie.libs.parser": {"qoslab": PACKAGE},
        "genie.libs.ops": {"qoslab": OPS},
    }


def test_genie_learns_qos_of_a_switch() -> None:
    answers = {"show mls qos": "QoS is enabled\nQoS ip packet dscp rewrite is enabled\n"}
    assert set(answering(answers, "switch").learn("qos").info) == {"mls_qos"}
    assert answering(answers).learn("qos").info == {}


IP_SLA = """\
IPSLAs Latest Operation Statistics

IPSLA operation id: 1
Type of operation: icmp-echo
        Latest RTT: 4 milliseconds
Latest operation start time: 10:00:00 UTC Mon Jan 6 2025
Latest operation return code: OK
Number of successes: 3
Number of failures: 0
Operation time to live: Forever
"""


def test_genie_learns_operations() -> None:
    learnt = answering({"show ip sla statistics": IP_SLA}).learn("ip_sla")
    assert learnt.info["operation"]["1"]["type"] == "icmp-echo"
    assert learnt.info["operation"]["1"]["latest"][0]["latest_rtt_ms"] == 4
    later = answering({"show ip sla statistics": IP_SLA.replace("RTT: 4", "RTT: 9")}).learn("ip_sla")
    assert str(learnt.diff(later, learnt.exclude)) == ""


BEFORE = """\
Building configuration...

Current configuration : 100 bytes
!
! Last configuration change at 10:00:00 UTC
hostname R1
interface FastEthernet0/1
 ip address 192.0.2.1 255.255.255.0
!
ntp clock-period 17179860
end
"""
AFTER = """\
Current configuration : 200 bytes
!
hostname R1
policy-map Police
 class class-default
  police 1000000
interface FastEthernet0/1
 ip address 192.0.2.1 255.255.255.0
 service-policy output Police
!
ntp clock-period 17179861
end
"""


def test_configurations_are_compared_by_their_lines() -> None:
    from qoslab.genie.configuration_diff import configuration_difference
    from qoslab.ios.device_config.restore import VOLATILE

    assert configuration_difference(BEFORE, BEFORE) == []
    assert configuration_difference(BEFORE, AFTER, VOLATILE) == [
        "+policy-map Police",
        "+ class class-default",
        "+  police 1000000",
        " interface FastEthernet0/1",
        "+ service-policy output Police",
    ]
    back = configuration_difference(AFTER, BEFORE, VOLATILE)
    assert "- service-policy output Police" in back and "-policy-map Police" in back
