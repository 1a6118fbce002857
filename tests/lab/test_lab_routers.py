"""Labs with routers: their daemons start, are supervised, and end with the lab."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from labs import ROUTED, LabTraces, ping, topology
from test_iosd import session

from qoslab.errors import ExperimentError, MachineError, UserError
from qoslab.ios.environment import DataPlaneRefusedError
from qoslab.model.experiment import Topology
from qoslab.run.cell.sampling import read_health
from qoslab.run.workers.virtual.nodes import VirtualLab
from qoslab.tc.user_mode_linux import find
from qoslab.virtual_lab import Lab, LabError
from waiting import wait_until

pytestmark = pytest.mark.lab
NEEDS_UML = pytest.mark.skipif(find() is None, reason="needs the Debian package user-mode-linux or QOSLAB_UML")

IOS = topology(client="host", R1={"platform": "ios", "model": "3725"}, server="host")(
    "client eth0 10.1.0.2/24 - R1 FastEthernet0/0 10.1.0.1/24",
    "R1 FastEthernet0/1 10.2.0.1/24 - server eth0 10.2.0.2/24",
    rate="50 Mb/s",
)


def wait_for_failure(lab: Lab) -> str:
    return str(wait_until(lab.failures, "the lab reports a failure")[0])


def test_engine_router_routes_and_is_supervised(name: str) -> None:
    with Lab.up(ROUTED, name=name) as lab:
        assert ping(lab, "client", "10.2.0.2") == 63
        assert ping(lab, "server", "10.1.0.2") == 63
        health = read_health(VirtualLab(lab), ["R1"])["R1"]
        assert health.received >= 4
        assert health.lost_input == health.malformed == 0
        # Inside its namespace the router's kernel sees both ports, and the links end in the other one.
        assert lab.interface("R1", "FastEthernet0/1") == ("R1.dp", "Fa0-1")
        for namespace, names in (
            ("R1", {"lo", "Fa0-0", "Fa0-1"}),
            ("R1.dp", {"lo", "Fa0-0", "Fa0-0.in", "Fa0-1", "Fa0-1.in"}),
        ):
            links = json.loads(lab.run(namespace, ["ip", "-j", "link"], check=True).stdout)
            assert {each["ifname"] for each in links} == names
        assert lab.describe()["sysctls"]["R1"]["net.ipv4.ip_forward"] == "1"
        assert not any(lab.describe()["offloads_on"].values())
        assert lab.is_alive()

        killed = lab.run(
            None, ["sh", "-c", "kill -KILL $(cat /proc/[0-9]*/stat | grep '(qos-router)' | cut -d' ' -f1)"]
        )
        assert killed.returncode == 0, killed.stderr
        assert wait_for_failure(lab) == "R1: its daemon was killed by SIGKILL"
        assert not lab.is_alive()
        assert ping(lab, "client", "10.2.0.2", 0.2) is None


@pytest.mark.parametrize("guests", [(), pytest.param(("R1",), marks=[pytest.mark.long, NEEDS_UML])], ids=["own", "uml"])
def test_tc_router_routes_counts_and_is_supervised(name: str, guests: tuple[str, ...]) -> None:
    wires = ("client eth0 10.1.0.2/24 - R1 eth0 10.1.0.1/24", "R1 eth1 10.2.0.1/24 - server eth0 10.2.0.2/24")
    described = topology(client="host", R1="tc", server="host")(*wires, rate="10 Mb/s")
    qdisc = ["cake", "bandwidth", "8mbit"] if guests else ["pfifo", "limit", "20"]
    with Lab.up(described, name=name, guests=guests) as lab:
        assert ping(lab, "client", "10.2.0.2") == 63
        assert lab.interface("R1", "eth1") == ("R1", "eth1")

        async def talk() -> tuple[Any, Any]:
            words = ["qdisc", "add", "dev", "eth1", "root", *qdisc]
            config: Any = {"format": 1, "router": "R1", "commands": [{"line": 1, "words": words}]}
            async with lab.control("R1") as client:
                await client.configure(config)
                assert ping(lab, "client", "10.2.0.2") == 63
                with pytest.raises(
                    DataPlaneRefusedError, match=r'^R1\.tc line 7: tc refused "tc qdisc add dev eth1 root .*nonesuch"'
                ):
                    wrong = {"line": 7, "words": [*words, "nonesuch"]}
                    await client.configure({**config, "commands": [wrong]})
                return await client.config() == config, await client.counters()

        same, counters = asyncio.run(talk())
        assert same
        found = {each["kind"]: each["packets"] for each in counters["tc"]["eth1"]["qdiscs"]}
        assert set(found) == {"htb", qdisc[0]}
        assert found[qdisc[0]] >= 1
        own = lab.run("R1", ["tc", "qdisc", "show", "dev", "eth1"], check=True).stdout
        assert ("htb" in own) == (not guests), "the qdiscs are those of the kernel that forwards"
        lab.run(None, ["sh", "-c", "kill -KILL $(pgrep -f qoslab.tc.daemon)"])
        assert "R1 tc: its daemon was killed by SIGKILL" in wait_for_failure(lab)


def test_sigkill_of_the_supervisor_ends_the_router(name: str) -> None:
    lab = Lab.up(ROUTED, name=name)
    traces = LabTraces(lab)
    assert any("qos-router" in each for each in traces.found())
    os.kill(lab.pid, signal.SIGKILL)
    traces.wait_until_gone()
    lab.down()


def test_ios_router_routes_accepts_logins_and_ends_with_the_lab(name: str) -> None:
    lab = Lab.up(IOS, name=name)
    try:
        traces = LabTraces(lab)
        assert ping(lab, "client", "10.2.0.2") == 63
        login = lab.ssh("R1")
        with pytest.raises(UserError, match="not an IOS router"):
            lab.ssh("client")

        async def look() -> str:
            options = {"username": login.user, "password": login.password, "known_hosts": str(lab.known_hosts())}
            async with asyncssh.connect(login.host, login.port, **options) as connection:
                return str((await connection.run("show interfaces FastEthernet0/0")).stdout)

        shown = asyncio.run(look())
        assert "FastEthernet0/0 is up, line protocol is up" in shown
        # The link is slower than the interface could be.
        assert re.search(r"BW 50000 Kbit", shown)
    finally:
        lab.down()
    traces.wait_until_gone()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((login.host, login.port), 1)


def test_router_named_like_a_file_of_the_lab_is_refused(name: str) -> None:
    with pytest.raises(ExperimentError, match="cannot be called iosd"):
        Lab.up(topology(iosd="engine")(), name=name)


def test_lab_without_a_data_plane_is_refused(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("QOSLAB_QOS_ROUTER", str(tmp_path / "absent"))
    with pytest.raises(MachineError, match="not an executable file"):
        Lab.up(ROUTED, name=name)
    # A router that fails gives the reason, and the lab is stopped.
    program = tmp_path / "failing"
    program.write_text("#!/bin/sh\necho port Fa0-0 is on fire >&2\nexit 7\n")
    program.chmod(0o755)
    monkeypatch.setenv("QOSLAB_QOS_ROUTER", str(program))
    with pytest.raises(LabError, match="R1: its daemon ended with status 7; its last output: port Fa0-0 is on fire"):
        Lab.up(ROUTED, name=name)
    assert name not in [lab.name for lab in Lab.running_labs()]


ARP_TIMEOUT_MS = 14_400_000
"""Default of IOS: `arp timeout 14400`."""


def neighbours(lab: Lab, node: str) -> dict[str, tuple[str, list[str], float]]:
    """Return the neighbour, the state and the age of the ARP entry of each interface."""
    entries = json.loads(lab.run(node, ["ip", "-j", "neigh"], check=True).stdout)
    tables = json.loads(lab.run(node, ["ip", "-j", "-s", "ntable", "show", "name", "arp_cache"], check=True).stdout)
    drawn = {each["dev"]: float(each["reachable"]) for each in tables if "dev" in each}
    return {each["dev"]: (each["dst"], each["state"], drawn[each["dev"]]) for each in entries}


@pytest.mark.parametrize("described", [ROUTED, pytest.param(IOS, marks=pytest.mark.long)], ids=["engine", "ios"])
def test_arp_entries_last_as_long_as_on_a_router(described: Topology, name: str) -> None:
    with Lab.up(described, name=name) as lab:
        assert ping(lab, "client", "10.2.0.2") == 63
        found = {
            (node, interface): entry
            for node in ("client", "R1", "server")
            for interface, entry in neighbours(lab, node).items()
        }
        assert {place: address for place, (address, *_) in found.items()} == {
            ("client", "eth0"): "10.1.0.1",
            ("R1", "Fa0-0"): "10.1.0.2",
            ("R1", "Fa0-1"): "10.2.0.2",
            ("server", "eth0"): "10.2.0.1",
        }
        for place, (_, state, reachable_ms) in found.items():
            assert state == ["REACHABLE"], place
            # The kernel chooses a new random value every five minutes, and no possible value may be below the timeout.
            assert reachable_ms >= ARP_TIMEOUT_MS, place
            node, interface = place
            base = lab.describe()["sysctls"][node][f"net.ipv4.neigh.{interface}.base_reachable_time_ms"]
            assert int(base) // 2 >= ARP_TIMEOUT_MS


def test_later_arp_entries_have_the_same_lifetime(name: str) -> None:
    with Lab.up(IOS, name=name) as lab:
        session(lab, "configure terminal", "interface fa0/1", "shutdown", "no shutdown", "end")
        assert "Fa0-1" not in neighbours(lab, "R1")
        assert ping(lab, "client", "10.2.0.2") == 63
        address, state, reachable_ms = neighbours(lab, "R1")["Fa0-1"]
        assert (address, state) == ("10.2.0.2", ["REACHABLE"])
        assert reachable_ms >= ARP_TIMEOUT_MS
