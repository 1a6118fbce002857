"""Several routers in one process: each is independent, and a fault of one leaves the others unaffected."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from labs import LabTraces, data_planes, ping, topology

from qoslab.ios.environment import DataPlaneDownError
from qoslab.run.cell.sampling import read_health
from qoslab.run.workers.virtual.nodes import VirtualLab
from qoslab.virtual_lab import Lab
from waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.lab

NEAR, FAR = "FastEthernet0/0", "FastEthernet0/1"


def router(*routes: str) -> dict[str, Any]:
    """Return an engine router with routes `PREFIX VIA`."""
    pairs = (route.split() for route in routes)
    return {"platform": "engine", "routes": [{"prefix": prefix, "via": via} for prefix, via in pairs]}


CHAIN = topology(
    client="host",
    R1=router("10.4.0.0/24 10.2.0.2", "10.3.0.0/24 10.2.0.2"),
    R2=router("10.1.0.0/24 10.2.0.1", "10.4.0.0/24 10.3.0.2"),
    R3=router("10.1.0.0/24 10.3.0.1", "10.2.0.0/24 10.3.0.1"),
    server="host",
)(
    f"client eth0 10.1.0.2/24 - R1 {NEAR} 10.1.0.1/24",
    f"R1 {FAR} 10.2.0.1/24 - R2 {NEAR} 10.2.0.2/24",
    f"R2 {FAR} 10.3.0.1/24 - R3 {NEAR} 10.3.0.2/24",
    f"R3 {FAR} 10.4.0.1/24 - server eth0 10.4.0.2/24",
)
ROUTERS = ("R1", "R2", "R3")
SERVER = "10.4.0.2"


@pytest.fixture
def chain(name: str) -> Iterator[Lab]:
    with Lab.up(CHAIN, name=name) as lab:
        yield lab


def ask(lab: Lab, node: str, op: str, **keys: Any) -> dict[str, Any]:
    async def request() -> dict[str, Any]:
        async with lab.control(node) as client:
            return await client.request(op, **keys)

    return asyncio.run(request())


def test_routers_in_one_process_are_independent(chain: Lab) -> None:
    assert len(data_planes(chain)) == 1
    assert ping(chain, "client", SERVER) == 61
    assert [ask(chain, each, "hello")["router"] for each in ROUTERS] == list(ROUTERS)
    for each in ROUTERS:
        counters = ask(chain, each, "counters")
        near, far = (counters["interfaces"][name] for name in (NEAR, FAR))
        assert near["input"]["packets"] >= 1 and far["output"]["packets"] >= 1, each
        assert counters["health"]["forwarding"]["through_kernel"] is None
    ask(chain, "R2", "clear")
    counts = {each: ask(chain, each, "counters")["interfaces"][NEAR]["input"]["packets"] for each in ROUTERS}
    assert counts["R2"] == 0 < min(counts["R1"], counts["R3"])
    # Packets that a kernel sends itself take the same path: to a neighbour, and to the sender of a packet whose TTL has
    # expired.
    assert ping(chain, "R1", "10.2.0.2") == 64
    assert ping(chain, "R3", "10.1.0.1") == 63


def test_router_is_configured_while_others_run(chain: Lab) -> None:
    interfaces = {name: {"enabled": True, "bandwidth_kbps": 100_000} for name in (NEAR, FAR)}
    closed = interfaces | {FAR: {"enabled": False, "bandwidth_kbps": 100_000}}
    base = {"format": 1, "router": "R2", "generation": "classic"}
    ask(chain, "R2", "configure", config={**base, "interfaces": closed})
    assert ping(chain, "client", SERVER, 0.3) is None
    assert ping(chain, "client", "10.2.0.2") == 63
    assert ping(chain, "server", "10.3.0.2") == 64
    ask(chain, "R2", "configure", config={**base, "interfaces": interfaces})
    assert ping(chain, "client", SERVER) == 61
    assert ask(chain, "R1", "config")["config"] is None


def test_stopping_a_router_leaves_the_others_running(chain: Lab) -> None:
    ask(chain, "R2", "shutdown")
    failures = wait_until(chain.failures, "the lab reports the end of R2")
    assert [str(failure) for failure in failures] == ["R2: it was asked to stop"]
    with pytest.raises(DataPlaneDownError):
        ask(chain, "R2", "hello")
    assert ping(chain, "client", SERVER, 0.3) is None
    assert ping(chain, "client", "10.1.0.1") == 64 and ping(chain, "server", "10.4.0.1") == 64
    assert read_health(VirtualLab(chain), ["R1"])["R1"].unsent >= 1
    ask(chain, "R1", "shutdown")
    ask(chain, "R3", "shutdown")
    wait_until(lambda: not data_planes(chain), "the process of all routers has ended")


def test_sigkill_of_the_process_is_reported_for_all_its_routers(name: str) -> None:
    lab = Lab.up(CHAIN, name=name)
    traces = LabTraces(lab)
    (pid,) = data_planes(lab)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not lab.is_alive(), "the lab is dead")
    assert [str(failure) for failure in lab.failures()] == ["R1, R2, R3: its daemon was killed by SIGKILL"]
    lab.down()
    traces.wait_until_gone()


def test_unresponsive_data_plane_is_killed_with_its_lab(name: str) -> None:
    lab = Lab.up(CHAIN, name=name)
    traces = LabTraces(lab)
    (pid,) = data_planes(lab)
    os.kill(pid, signal.SIGSTOP)
    lab.down()
    traces.wait_until_gone()


def test_link_in_memory_recovers_from_down(chain: Lab) -> None:
    assert ping(chain, "client", SERVER) == 61
    for node, interface in (("R1.dp", "Fa0-1"), ("R2.dp", "Fa0-0")):
        before = ask(chain, "R1", "health")["unsent"]
        chain.run(node, ["ip", "link", "set", interface, "down"], check=True)
        assert ping(chain, "client", SERVER, 0.3) is None
        assert ask(chain, "R1", "health")["unsent"] > before
        chain.run(node, ["ip", "link", "set", interface, "up"], check=True)
        wait_until(lambda: ping(chain, "client", SERVER, 0.3), "packets pass the link again")


@pytest.mark.skipif(shutil.which("dumpcap") is None, reason="dumpcap, of the package tshark, is not installed")
@pytest.mark.parametrize(
    ("node", "interface", "kind"), [("R2.dp", "Fa0-0", 8), pytest.param("R1.dp", "Fa0-1", 0, marks=pytest.mark.long)]
)
def test_link_in_memory_can_be_captured(chain: Lab, tmp_path: Path, node: str, interface: str, kind: int) -> None:
    """Capture at a link in memory: each end shows its received packets, from the start of the capture to its end."""
    assert ping(chain, "client", SERVER) == 61
    before = count_sent_frames(chain)
    file = tmp_path / "link.pcapng"
    argv = ["dumpcap", "-q", "-i", interface, "-w", str(file), "-c", "3", "-f", f"icmp[icmptype] == {kind}"]
    with chain.popen(node, argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as capture:
        assert capture.stderr is not None
        while "File:" not in capture.stderr.readline():
            assert capture.poll() is None
        for _ in range(3):
            assert ping(chain, "client", SERVER) == 61
        assert capture.wait(PATIENCE_S) == 0
    assert count_sent_frames(chain) >= before + 3

    def copies_nothing() -> bool:
        before = count_sent_frames(chain)
        assert ping(chain, "client", SERVER) == 61
        return count_sent_frames(chain) == before

    wait_until(copies_nothing, "no frame is copied after the end of the capture")


def count_sent_frames(lab: Lab) -> int:
    """Return the frames that have crossed the pair of interfaces between R1 and R2, in both directions."""
    (shown,) = json.loads(lab.run("R1.dp", ["ip", "-j", "-s", "link", "show", "Fa0-1"], check=True).stdout)
    return int(shown["stats64"]["rx"]["packets"]) + int(shown["stats64"]["tx"]["packets"])
