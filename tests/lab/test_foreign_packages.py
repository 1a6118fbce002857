"""Emulated devices of other projects, from the package index, each in a separate environment.

fakenos has answers and no state: a login works, and its show version is refused. fake-switches has switches with a
state, by SSH and by telnet. Neither implements QoS. Their dependencies conflict with the locked ones: fakenos needs an
older paramiko, fake-switches a Twisted of 2016. simnos needs Python 3.13.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import uv
from commands import run
from test_external import EXPERIMENT_OF_IT, hosts
from test_run import EXPERIMENT

from qoslab.ios.device_config.restore import find_collisions, plan_restoration, unrestored_lines
from qoslab.ios.model.device import Hardware
from qoslab.run.real.access.methods import AccessMethod
from qoslab.run.real.access.proxies import AccessProxies
from qoslab.virtual_lab import Lab
from qoslab.virtual_lab.expose import expose_lab

# One worker builds the environments.
pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.slow, pytest.mark.xdist_group("foreign packages")]

TOP = Path(__file__).parents[2]
KEPT = TOP / ".tox/foreign"
USER, PASSWORD, ENABLE = "lab", "zebra-crossing-47", "opensesame-11"

FAKENOS = f"""
import sys
from fakenos import FakeNOS
there = {{"username": "{USER}", "password": "{PASSWORD}", "port": int(sys.argv[1]), "platform": "cisco_ios"}}
with FakeNOS({{"hosts": {{"R1": there}}}}):
    print("ready", flush=True)
    sys.stdin.read()
"""
FAKE_SWITCHES = f"""
import sys
from fake_switches.cisco.cisco_core import CiscoSwitchCore
from fake_switches.switch_configuration import Port, SwitchConfiguration, Vlan
from fake_switches.transports import SwitchSshService, SwitchTelnetService
from twisted.internet import reactor
ports = [Port(f"FastEthernet0/{{number}}") for number in (1, 2)]
there = SwitchConfiguration("127.0.0.1", "R1", privileged_passwords=["{ENABLE}"], ports=ports, vlans=[Vlan(10)])
core = CiscoSwitchCore(there)
ssh, telnet = map(int, sys.argv[1:])
SwitchSshService("127.0.0.1", ssh, core, {{"{USER}": b"{PASSWORD}"}}).hook_to_reactor(reactor)
SwitchTelnetService("127.0.0.1", telnet, core).hook_to_reactor(reactor)
reactor.callWhenRunning(print, "ready", flush=True)
reactor.run()
"""
PUSHED = """\
interface FastEthernet0/2
 description set by the test
 switchport access vlan 10
"""


def python(package: str) -> Path:
    """Return the interpreter of an environment with this package and its locked dependencies."""
    lock = TOP / f"requirements/{package}.txt"
    kept = KEPT / f"{package}-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    if not (kept / "whole").exists():
        call("venv", "-q", "--clear", "--python", sys.executable, str(kept))
        build = ("--build-constraints", str(TOP / "requirements/build.txt"))
        call("pip", "install", "-q", "--python", str(kept / "bin/python"), "--no-deps", *build, "-r", str(lock))
        (kept / "whole").touch()
    return kept / "bin/python"


def call(*words: str) -> None:
    # The build leaves locks among the temporary files, where tests look for leftovers of a run.
    with tempfile.TemporaryDirectory(prefix="uv", dir="/tmp") as folder:
        done = subprocess.run(
            [uv.find_uv_bin(), *words],
            env=os.environ | {"TMPDIR": folder},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    assert done.returncode == 0, f"the package index must be in reach, once: {done.stderr}"


def free_ports(number: int) -> list[int]:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    try:
        return [listener.getsockname()[1] for listener in listeners]
    finally:
        for listener in listeners:
            listener.close()


@contextmanager
def serve_device(package: str, program: str, ports: int) -> Iterator[list[int]]:
    """Yield the ports of a device while the block runs."""
    chosen = free_ports(ports)
    argv = [str(python(package)), "-W", "ignore", "-c", program, *map(str, chosen)]
    device = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/"
    )
    try:
        assert device.stdout is not None
        notes = []
        while (line := device.stdout.readline()) != "ready\n":
            notes.append(line)
            assert line, "".join(notes)
        yield chosen
    finally:
        device.kill()
        device.communicate()


def test_fakenos_is_refused_by_its_show_version(
    clean: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file = tmp_path / "here.yml"
    with serve_device("fakenos", FAKENOS, 1) as (port,), Lab.up(EXPERIMENT_OF_IT.topology, name=name) as lab:
        words = {"user": USER, "password": PASSWORD, "enable": ENABLE, "check_host_key": False}
        with AccessProxies({"R1": AccessMethod("127.0.0.1", port, **words)}) as proxies:
            version, before, unknown = proxies.ask(
                "R1", "show version", "show running-config", "show policy-map interface"
            )
        assert version.startswith("Cisco IOS XE Software, Version 17.03.01a")
        assert unknown == "% Invalid input detected at '^' marker."
        expose_lab(lab, file)
        kept = hosts(lab)
        scan = ["ssh-keyscan", "-t", "rsa", "-p", str(port), "127.0.0.1"]
        key = subprocess.run(scan, capture_output=True, text=True, check=True)
        assert key.stdout, key.stderr
        with file.with_suffix(".known_hosts").open("a") as listed:
            listed.write(key.stdout)
        answer = {"host": "127.0.0.1", "port": port, "user": USER, "password": PASSWORD, "become_password": ENABLE}
        router = "".join(f"          ansible_{word}: {value}\n" for word, value in answer.items())
        text, found = re.subn(r"R1:\n(?: +ansible_\w+: .*\n)+", f"R1:\n{router}", file.read_text())
        assert found == 1
        file.write_text(text)
        for argv in (("lab", "check", str(file), str(EXPERIMENT)), ("run", str(EXPERIMENT), "--lab", str(file))):
            status, _, errors = run(clean, *argv)
            assert status == 2 and "Traceback" not in errors, errors
            assert "R1: found release 17.03.01 with hqf queueing, expected classic" in errors, errors
            assert "R1: found no interface FastEthernet0/0 for the link lan, expected one of Fast" in errors, errors
        assert hosts(lab) == kept
        with AccessProxies({"R1": AccessMethod("127.0.0.1", port, **words)}) as proxies:
            assert proxies.ask("R1", "show running-config") == [before]


@pytest.mark.parametrize("by", ["ssh", "telnet"])
def test_third_party_switch_is_configured_and_restored(by: str, tmp_path: Path) -> None:
    with serve_device("fake-switches", FAKE_SWITCHES, 2) as (ssh, telnet):
        words = {"user": USER, "password": PASSWORD, "enable": ENABLE}
        ways = {
            # The package contains its host key, which needs SHA-1.
            "ssh": AccessMethod("127.0.0.1", ssh, old_ssh=True, check_host_key=False, **words),
            "telnet": AccessMethod("127.0.0.1", telnet, protocol="telnet", **words),
        }
        with AccessProxies({"R1": ways[by]}, transcripts=tmp_path / "transcripts") as proxies:
            proxies.open()
            version, before = proxies.ask("R1", "show version", "show running-config")
            assert "C3750 Software" in version and "% " not in before
            running = configure_device(proxies, PUSHED.splitlines())
            assert " description set by the test\n switchport access vlan 10\n" in running
            hardware = Hardware("3750", ("FastEthernet0/1", "FastEthernet0/2"), version="12.2", family="switch")
            assert find_collisions(before, PUSHED, hardware) == []
            found = plan_restoration(before, running, [PUSHED], hardware)
            assert found.left == () and " no switchport access vlan" in found.lines
            after = configure_device(proxies, found.lines)
        assert significant(after) == significant(before) != significant(running)
        assert unrestored_lines(before, after, [PUSHED], hardware) == []
    kept = "".join(file.read_text() for file in (tmp_path / "transcripts").iterdir())
    assert ">  description set by the test" in kept and PASSWORD not in kept and ENABLE not in kept


def configure_device(proxies: AccessProxies, lines: Sequence[str]) -> str:
    """Return the running configuration after these lines. The switch has no `end`; without it Ansible never returns."""
    *reply, running = proxies.ask("R1", "configure terminal", *lines, "exit", "exit", "show running-config")
    assert not [each for each in reply if "No such command" in each or "% " in each], reply
    return running


def significant(text: str) -> list[str]:
    lines = (line.rstrip() for line in text.splitlines() if line.strip(" !"))
    return [line for line in lines if not line.startswith(("Current", "Building"))]
