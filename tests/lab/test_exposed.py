"""Exposed lab: its hosts behind SSH on loopback, used with the system's `ssh`."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from labs import ROUTED, TWO_HOSTS
from ruamel.yaml import YAML

from qoslab.errors import ExperimentError
from qoslab.virtual_lab import Lab
from qoslab.virtual_lab.expose import expose_lab
from waiting import wait_until

pytestmark = pytest.mark.lab


@pytest.fixture
def file(lab: Lab, tmp_path: Path) -> Iterator[Path]:
    """Return the inventory of two hosts."""
    path = tmp_path / "here.yml"
    expose_lab(lab, path)
    yield path


def ssh(file: Path, host: str, command: str, *options: str) -> list[str]:
    """Return the command line of an ordinary ssh, according to the inventory."""
    group = YAML(typ="safe").load(file)["all"]["children"]["host"]
    known, key = group["vars"]["qoslab_known_hosts"], group["vars"]["ansible_ssh_private_key_file"]
    way = group["hosts"][host]
    return [
        *("ssh", "-F", "none", "-o", "BatchMode=yes", "-o", f"UserKnownHostsFile={known}", "-i", key),
        *("-o", "StrictHostKeyChecking=yes", "-p", str(way["ansible_port"]), *options),
        *(f"{group['vars']['ansible_user']}@{way['ansible_host']}", command),
    ]


def done(file: Path, host: str, command: str, *options: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(ssh(file, host, command, *options), input=given, capture_output=True, text=True, timeout=120)


def test_commands_run_in_the_hosts_namespace(file: Path) -> None:
    for host, address in (("client", "10.1.0.1/24"), ("server", "10.1.0.2/24")):
        assert address in done(file, host, "ip -4 -o addr show dev eth0").stdout
    assert done(file, "client", "id -u").stdout == "0\n"


def test_command_returns_output_errors_and_status(file: Path) -> None:
    text = "line\n" * 200_000
    found = done(file, "client", "cat; echo wrong >&2; exit 7", given=text)
    assert (found.returncode, found.stdout, found.stderr) == (7, text, "wrong\n")
    # The client reports a program ended by a signal as status 255 with the signal's name.
    killed = done(file, "client", "kill -TERM $$", "-v")
    assert killed.returncode == 255
    assert "exit-signal" in killed.stderr


def test_lost_connection_ends_the_input_and_not_the_command(file: Path, lab: Lab, tmp_path: Path) -> None:
    mark = tmp_path / "ended"
    command = f"echo begun; cat >/dev/null; sleep 0.3; echo ended >{mark}"
    client = subprocess.Popen(ssh(file, "client", command), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert client.stdout is not None and client.stdin is not None
    assert client.stdout.readline() == b"begun\n"
    assert not mark.exists()
    client.send_signal(signal.SIGKILL)
    client.wait()
    wait_until(mark.exists, "the command has seen the end of its input")
    client.stdin.close()
    client.stdout.close()
    assert lab.is_alive()


def test_other_keys_and_passwords_are_refused(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    command = ssh(file, "client", "true")
    command[command.index("-i") + 1] = str(other)
    refused = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert refused.returncode == 255
    assert "Permission denied (publickey)" in refused.stderr


def test_each_host_has_its_own_key_in_a_private_file(file: Path) -> None:
    known = file.with_suffix(".known_hosts").read_text().split("\n")
    assert len({line.split()[2] for line in known if line}) == 2
    for path in (file, file.with_suffix(".key"), file.with_suffix(".known_hosts")):
        assert path.stat().st_mode & 0o777 == 0o600


def test_ports_close_with_the_lab(name: str, tmp_path: Path) -> None:
    path = tmp_path / "here.yml"
    with Lab.up(TWO_HOSTS, name=name) as lab:
        expose_lab(lab, path)
        hosts = YAML(typ="safe").load(path)["all"]["children"]["host"]["hosts"]
        socket.create_connection(("127.0.0.1", hosts["client"]["ansible_port"])).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", hosts["client"]["ansible_port"]))


def test_engine_router_cannot_be_exposed(name: str, tmp_path: Path) -> None:
    with Lab.up(ROUTED, name=name) as lab, pytest.raises(ExperimentError, match="found the engine router R1"):
        expose_lab(lab, tmp_path / "here.yml")
    assert not (tmp_path / "here.yml").exists()
