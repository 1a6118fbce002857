"""Linux routers that are reached by SSH alone: their qdiscs before, during and after a run."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Command, run

from qoslab.model.inventory import HostSettings
from qoslab.platforms.kernel_router import kernel_config
from qoslab.run.devices.ansible_inventory import read_lab
from qoslab.run.real.channel import AgentChannel
from qoslab.run.real.linux_router import LinuxRouter
from qoslab.run.real.nodes import HostPlace
from qoslab.schema import load_sweep
from qoslab.tc.kernel_kinds import QDISCS, probe_machine
from qoslab.virtual_lab import Lab
from qoslab.virtual_lab.control import ControlClient
from qoslab.virtual_lab.expose import expose_lab
from verdicts import newest_run, reasons_except_lateness, status_of
from waiting import wait_until

pytestmark = pytest.mark.lab

CLEAN_S = 60.0
"""Time until a router is restored after its connection is lost: seconds, and far more on a busy machine."""
EXPERIMENT = """\
name: gateway
title: A Linux gateway
topology:
  nodes: {client: {platform: host}, gw: {platform: tc}, server: {platform: host}}
  links:
    - name: lan
      rate: 100 Mb/s
      ends:
        - {node: client, interface: eth0, address: 10.1.0.10/24}
        - {node: gw, interface: eth0, address: 10.1.0.1/24}
    - name: wan
      rate: 10 Mb/s
      ends:
        - {node: gw, interface: eth1, address: 10.1.1.1/24}
        - {node: server, interface: eth0, address: 10.1.1.10/24}
duration: 5 s
tcp: modern
traffic:
  - {name: data, tool: flood, from: client, to: server, protocol: udp, rate: 3 Mb/s, size: 1000 B}
arms:
  - {name: fast, configure: {gw: {template: gw.tc.j2, variables: {rate: 2mbit}}}}
  - {name: slow, configure: {gw: {template: gw.tc.j2, variables: {rate: 1mbit}}}}
compare:
  expectations:
    - arm: slow
      metric: class.passed(gw eth1 1:1)
      predicted: 1 Mb/s
      within: 3 %
      reason: HTB counts frames with their Ethernet header.
"""
TEMPLATE = """\
tc qdisc add dev eth1 root handle 1: htb default 1
tc class add dev eth1 parent 1: classid 1:1 htb rate {{ rate }} ceil {{ rate }}
tc qdisc add dev eth1 parent 1:1 handle 10: pfifo limit 20
"""
WAN = "enp3s0"
"""Name of the router's second interface in the lab, which the inventory maps to eth1."""


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    """The experiment, with its template."""
    (tmp_path / "gw.tc.j2").write_text(TEMPLATE)
    (tmp_path / "gateway.yml").write_text(EXPERIMENT)
    return tmp_path / "gateway.yml"


@pytest.fixture
def gateway(experiment: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Lab, Path]]:
    """The lab of the experiment, and its inventory; the WAN interface of the router has a name of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file = tmp_path / "here.yml"
    with Lab.up(load_sweep(experiment, {}).experiment.topology, name=name) as lab:
        expose_lab(lab, file)
        rename = f"ip link set eth1 down; ip link set eth1 name {WAN}; ip link set {WAN} up"
        lab.run("gw", ["sh", "-e", "-c", rename], check=True)
        text = file.read_text()
        assert text.count("    linux_router:\n      vars:\n") == 1
        file.write_text(
            text.replace(
                "    linux_router:\n      vars:\n",
                f"    linux_router:\n      vars:\n        qoslab_interfaces: {{eth1: {WAN}}}\n",
            )
        )
        yield lab, file


def qdiscs(lab: Lab) -> str:
    """Return the qdiscs and filters of the router."""
    look = f"tc qdisc show; tc class show dev {WAN}; tc filter show dev eth0 ingress"
    return lab.run("gw", ["sh", "-c", look], check=True).stdout


def router(experiment: Path, file: Path) -> LinuxRouter:
    """Return the router, reached by an agent."""
    topology = load_sweep(experiment, {}).experiment.topology
    settings = HostSettings(interfaces={"eth1": WAN})
    return LinuxRouter(
        AgentChannel("gw", read_lab(file).linux_routers["gw"], "a test"), HostPlace(topology, "gw", settings)
    )


def ask(socket: Path, op: str, **keys: Any) -> dict[str, Any]:
    async def request() -> dict[str, Any]:
        async with ControlClient(socket, timeout=60.0) as client:
            return await client.request(op, **keys)

    return asyncio.run(request())


def configured_router(experiment: Path, file: Path, socket: Path) -> LinuxRouter:
    """Return the router with the configuration of the slow arm."""
    there = router(experiment, file)
    assert there.isolate() == []
    there.serve(socket)
    topology = load_sweep(experiment, {}).experiment.topology
    made = kernel_config(topology, "gw", TEMPLATE.replace("{{ rate }}", "1mbit"), lab=False)
    ask(socket, "configure", config=made.as_config())
    return there


@pytest.mark.long
def test_run_configures_measures_and_restores_a_linux_router(
    clean: Path, experiment: Path, gateway: tuple[Lab, Path]
) -> None:
    lab, file = gateway
    before = qdiscs(lab)
    assert "htb" not in before
    status, output, errors = run(clean, "run", str(experiment), "--lab", str(file), "--attempts", "1")
    assert status == status_of(newest_run(clean)), errors + output
    passed = {}
    for arm in ("fast", "slow"):
        cell = newest_run(clean) / f"cells/{arm}/1"
        assert not reasons_except_lateness(json.loads((cell / "cell.json").read_text())), errors
        assert (
            f"tc class add dev eth1 parent 1: classid 1:1 htb rate {'2' if arm == 'fast' else '1'}mbit"
            in (cell / "config/gw.tc").read_text()
        )
        counters = [json.loads(line) for line in (cell / "counters/gw.jsonl").read_text().splitlines()]
        assert len(counters) >= 5, "once a second"
        (one,) = counters[-1]["tc"]["eth1"]["classes"]
        passed[arm] = one["bytes"]
    assert 1.8 < passed["fast"] / passed["slow"] < 2.2
    assert qdiscs(lab) == before


def test_router_restores_itself_when_the_connection_is_cut(
    experiment: Path, gateway: tuple[Lab, Path], tmp_path: Path
) -> None:
    lab, file = gateway
    before = qdiscs(lab)
    there = configured_router(experiment, file, tmp_path / "gw.sock")
    assert f"htb 1: dev {WAN} root" in qdiscs(lab) and there.is_as_configured()
    assert set(ask(tmp_path / "gw.sock", "counters")["tc"]) == {"eth0", "eth1"}
    lab.run("gw", ["tc", "qdisc", "change", "dev", WAN, "parent", "1:1", "handle", "10:", "pfifo", "limit", "5"])
    assert not there.is_as_configured(), "another user has changed a limit"
    os.killpg(there._channel._process.pid, signal.SIGKILL)
    wait_until(lambda: qdiscs(lab) == before, "the router is as it was", CLEAN_S, lambda: qdiscs(lab))
    # The state that a run would restore is already restored.
    wait_until(lambda: there.lost_reason, "the loss is known", CLEAN_S)
    assert ask(tmp_path / "gw.sock", "config")["config"]["commands"] == []
    there.close()


@pytest.mark.long
def test_killed_run_leaves_no_qdiscs_and_blocks_no_further_run(
    clean: Path, experiment: Path, gateway: tuple[Lab, Path]
) -> None:
    lab, file = gateway
    before = qdiscs(lab)
    command = Command(clean, "run", str(experiment), "--lab", str(file), "--arm", "slow", "--duration", "60s")
    wait_until(lambda: "htb" in qdiscs(lab), "the run has configured the router", 600.0, lambda: command.stderr)
    command.process.kill()
    command.process.wait()
    wait_until(lambda: qdiscs(lab) == before, "the router is as it was", CLEAN_S, lambda: qdiscs(lab))
    status, output, errors = run(clean, "lab", "check", str(file), str(experiment))
    assert status == 0, errors + output


def test_check_names_obstacles_before_the_first_change(
    clean: Path, experiment: Path, gateway: tuple[Lab, Path]
) -> None:
    lab, file = gateway
    status, output, errors = run(clean, "lab", "check", str(file), str(experiment))
    assert status == 0 and "gw: Linux " in output and "htb" in output, errors + output
    spoil = [
        f"tc qdisc add dev {WAN} root handle 5: tbf rate 1mbit burst 10000 limit 10000",
        "tc qdisc add dev eth0 clsact",
        "ethtool -K eth0 gro on tso on gso on",
        "sysctl -q net.ipv4.ip_forward=0",
    ]
    lab.run("gw", ["sh", "-e", "-c", "; ".join(spoil)], check=True)
    before = qdiscs(lab)
    lacking = next((kind for kind in QDISCS if kind not in probe_machine().qdiscs), None)
    lines = [*TEMPLATE.splitlines(), "tc qdisc add dev eth0 root pfifo limit -1"]
    if lacking is not None:
        lines.append(f"tc qdisc add dev eth0 root {lacking} {QDISCS[lacking]}")
    (experiment.parent / "gw.tc.j2").write_text("\n".join([*lines[:3], lines[-1], ""]))
    status, output, errors = run(clean, "lab", "check", str(file), str(experiment))
    assert status == 2
    for found in (
        f"gw: {WAN} has the qdisc tbf 5:, expected only the default; remove it if it is not needed: tc qdisc del "
        f"dev {WAN} root",
        "gw: eth0 has the qdisc clsact ffff:, expected only the default; remove it if it is not needed: tc qdisc "
        "del dev eth0 clsact",
        "gw: eth0 has tcp-segmentation-offload, ",
        "gw: found net.ipv4.ip_forward 0, expected 1",
    ):
        assert found in errors, errors
    if lacking is not None:
        assert "gw.tc line 4: the kernel " in errors and f"lacks the qdisc {lacking}" in errors, errors
    (experiment.parent / "gw.tc.j2").write_text("\n".join([*lines[:4], ""]))
    status, output, errors = run(clean, "lab", "check", str(file), str(experiment))
    refused = 'gw: gw.tc line 4: tc refused "tc qdisc add dev eth0 root pfifo limit -1": '
    assert refused in errors and 'Illegal value for "limit"' in errors, errors
    assert qdiscs(lab) == before, "a check changes nothing"
