"""Ansible and Unicon through proxies, against virtual routers with old SSH, and with telnet."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from labs import IOS_ROUTED, POLICE

from misbehaving import MisbehavingRelay
from qoslab.cli import main
from qoslab.cli.lab import _ssh_argv
from qoslab.ios.device_config.restore import plan_restoration
from qoslab.platforms import MODELS
from qoslab.run.devices.ansible.playbooks import AnsibleSession, RouterError
from qoslab.run.devices.ansible_inventory import write_inventory
from qoslab.run.devices.collector import CollectorProcess
from qoslab.run.real.access.methods import AccessMethod
from qoslab.run.real.access.proxies import AccessProxies
from qoslab.run.workers.virtual.access import lab_router_access
from qoslab.virtual_lab import Lab
from qoslab.virtual_lab.ios_routers import RouterLogins

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("proxy")]

SHOW = "show policy-map interface"


@pytest.fixture(scope="module")
def old_ssh_lab() -> Iterator[Lab]:
    with Lab.up(IOS_ROUTED, name=f"test-proxy-{os.getpid()}", ways=RouterLogins(old_ssh=True, telnet=True)) as lab:
        yield lab


@pytest.fixture(scope="module")
def collector() -> Iterator[CollectorProcess]:
    """Provide one collector: it takes seconds to start, and connects to a router again in each test, as in each lab of
    a run.
    """
    with CollectorProcess() as collector:
        yield collector


def access_method_of(lab: Lab, by: str, port: int | None = None) -> AccessMethod:
    login = lab.ssh("R1")
    port = port or (login.port if by == "ssh" else login.telnet)
    known = f"[{login.host}]:{port} {login.host_key}\n"
    words = {"user": login.user, "password": login.password, "enable": login.enable}
    if by == "ssh":
        return AccessMethod(login.host, port, old_ssh=True, known_hosts=known, **words)
    return AccessMethod(login.host, port, protocol="telnet", **words)


def significant(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not line.startswith(("!", "Current", "Building"))]


def execute_intents(proxies: AccessProxies, collector: CollectorProcess, folder: Path) -> None:
    """Prepare, apply, verify, observe and restore, with the connections that the proxy gives Ansible and Unicon."""
    inventory = folder / "inventory.json"
    (folder / "config").mkdir()
    (folder / "config/R1.ios").write_text(POLICE)
    with AnsibleSession(inventory, before=folder / "before") as session:
        session.start()
        write_inventory(inventory, proxies.access(), lab=False)
        session.execute(["prepare"])
        before = (folder / "before/R1.before.ios").read_text()
        outcome = session.execute(["apply", "verify"], intended=folder / "config", commands=[SHOW])
        assert outcome.changed_routers == {"R1"}
        collector.connect(proxies.access(), known_hosts=proxies.known_hosts())
        observed = collector.observe("R1", SHOW)
        assert observed.parsed is not None
        assert "Police" in str(observed.parsed["FastEthernet0/1"]["service_policy"]["output"])
        running = outcome.answers("R1")["show running-config"]
        lines = plan_restoration(before, running, [POLICE], MODELS["3725"].hardware()).lines
        (folder / "undo").mkdir()
        (folder / "undo/R1.restore.ios").write_text("\n".join(lines) + "\n")
        (folder / "undo/R1.pushed.ios").write_text(POLICE)
        session.execute(["restore"], restore=folder / "undo")
        after = collector.observe("R1", "show running-config").raw
        assert significant(after) == significant(before)


@pytest.mark.long
def test_without_a_proxy_ansible_cannot_log_in(old_ssh_lab: Lab, tmp_path: Path) -> None:
    inventory = tmp_path / "inventory.json"
    with AnsibleSession(inventory, before=tmp_path / "before") as session:
        session.start()
        write_inventory(inventory, lab_router_access(old_ssh_lab))
        with pytest.raises(RouterError, match="kex error"):
            session.execute(["prepare"])


@pytest.mark.long
@pytest.mark.parametrize("by", ["ssh", "telnet"])
def test_ansible_and_unicon_log_in_through_a_proxy(
    old_ssh_lab: Lab, collector: CollectorProcess, by: str, tmp_path: Path
) -> None:
    login = old_ssh_lab.ssh("R1")
    with AccessProxies({"R1": access_method_of(old_ssh_lab, by)}, transcripts=tmp_path / "transcripts") as proxies:
        proxies.open()
        execute_intents(proxies, collector, tmp_path)
    kept = "".join(file.read_text() for file in (tmp_path / "transcripts").iterdir())
    assert re.search(r"> +service-policy output Police\n", kept)
    assert login.password not in kept and login.enable not in kept
    # The configuration that was read contains the user's password and the enable secret.
    assert "enable secret 5 <removed>" in kept and "$1$" not in kept


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("delay_s", "piece"), [(0.3, None), (0.0, 1)])
def test_ansible_and_unicon_work_over_a_slow_line(
    old_ssh_lab: Lab, collector: CollectorProcess, delay_s: float, piece: int | None, tmp_path: Path
) -> None:
    telnet = old_ssh_lab.ssh("R1").telnet
    assert telnet is not None
    with (
        MisbehavingRelay(telnet, delay_s=delay_s, piece=piece) as line,
        AccessProxies({"R1": access_method_of(old_ssh_lab, "telnet", line.port)}) as proxies,
    ):
        execute_intents(proxies, collector, tmp_path)


@pytest.mark.long
def test_ansible_logs_in_again_after_a_lost_connection(old_ssh_lab: Lab, tmp_path: Path) -> None:
    inventory = tmp_path / "inventory.json"
    (tmp_path / "config").mkdir()
    (tmp_path / "config/R1.ios").write_text("interface FastEthernet0/0\n description set by the test\n")
    telnet = old_ssh_lab.ssh("R1").telnet
    assert telnet is not None
    with (
        MisbehavingRelay(telnet) as line,
        AccessProxies(
            {"R1": access_method_of(old_ssh_lab, "telnet", line.port)}, transcripts=tmp_path / "transcripts"
        ) as proxies,
        AnsibleSession(inventory, before=tmp_path / "before") as session,
    ):
        session.start()
        write_inventory(inventory, proxies.access(), lab=False)
        session.execute(["prepare"])
        line.cut()
        outcome = session.execute(["apply", "verify"], intended=tmp_path / "config")
        assert " description set by the test\n" in outcome.answers("R1")["show running-config"]
        assert line.connections >= 2


def test_lab_up_makes_routers_of_the_given_release(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "one.yml"
    file.write_text(
        "nodes: {client: {platform: host}, R1: {platform: ios, model: '3725'}}\nlinks:\n  - {name: l0, rate: 10 Mb/s, "
        "ends: [{node: client, interface: eth0, address: 10.1.0.2/24}, "
        "{node: R1, interface: FastEthernet0/0, address: 10.1.0.1/24}]}\n"
    )
    assert main(["lab", "up", str(file), "--name", name, "--old-ssh", "--telnet"]) == 0
    lab = Lab.find(name)
    try:
        login = lab.ssh("R1")
        assert f"  telnet 127.0.0.1 {login.telnet}\n" in capsys.readouterr().out
        with AccessProxies({"R1": access_method_of(lab, "ssh")}) as proxies:
            proxies.open()
        # With a type of key that the router does not support, only the host key is requested.
        asked = subprocess.run(
            [*_ssh_argv(lab, "R1"), "-o", "BatchMode=yes"], capture_output=True, text=True, check=False
        )
        assert "Permission denied (password)" in asked.stderr
    finally:
        lab.down()
