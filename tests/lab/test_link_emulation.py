"""Delay, jitter and loss of links, from end to end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from labs import topology

from qoslab.model.experiment import Topology
from qoslab.run.cell.sampling import read_health
from qoslab.run.workers.virtual.nodes import VirtualLab
from qoslab.virtual_lab import Lab
from waiting import PATIENCE_S

pytestmark = pytest.mark.lab

PING = str(Path(__file__).with_name("ping.py"))
FLOOD = (
    "import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
    "[(s.sendto(bytes(100), (to, 9)), time.sleep(0.0005)) for _ in range(400) for to in ('10.2.0.2', '10.3.0.2')]"
)


def impaired_lab() -> Topology:
    """Yield two hosts with a router between them and an impaired link."""
    client = {"platform": "host", "routes": [{"prefix": "10.2.0.0/24", "via": "10.1.0.1"}]}
    server = {"platform": "host", "routes": [{"prefix": "10.1.0.0/24", "via": "10.2.0.1"}]}
    plain = topology(client=client, R1="engine", server=server)(
        "client eth0 10.1.0.2/24 - R1 FastEthernet0/0 10.1.0.1/24",
        "R1 FastEthernet0/1 10.2.0.1/24 - server eth0 10.2.0.2/24",
        "client eth1 10.3.0.1/24 - server eth1 10.3.0.2/24",
    ).model_dump(mode="json")
    plain["links"][0] |= {"delay": "20 ms", "jitter": {"size": "2 ms", "distribution": "exponential"}}
    plain["links"][1] |= {"delay": "5 ms", "loss": {"model": "random", "probability": "0 %"}}
    plain["links"][2] |= {"delay": "15 ms", "loss": {"model": "random", "probability": "0 %"}}
    return Topology.model_validate(plain, strict=False)


def test_link_delays_both_directions_and_counts_losses(name: str) -> None:
    wired = impaired_lab()
    with Lab.up(wired, name=name) as lab:
        answered, *times = lab.run("client", ["python3", PING, "10.2.0.2", "8", "0", "1"], check=True).stdout.split()
        assert int(answered) == 8
        # No upper bound, because the machine may be busy; but no packet may be early.
        assert min(map(float, times)) >= 2 * (0.020 + 0.005)
        answered, *times = lab.run("client", ["python3", PING, "10.3.0.2", "8", "0", "1"], check=True).stdout.split()
        assert int(answered) == 8
        assert min(map(float, times)) >= 2 * 0.015
        health = read_health(VirtualLab(lab), ["l2.line"])["l2.line"]
        assert health.transmitted >= 16 and health.lateness_ns.count >= 16
    lossy = wired.model_dump(mode="json")
    for number in (1, 2):
        lossy["links"][number]["loss"]["probability"] = "50 %"
    with Lab.up(Topology.model_validate(lossy, strict=False), name=name, seed=7) as lab:
        lab.run("client", ["python3", "-c", FLOOD], check=True)
        interfaces = asyncio.run(_counters(lab, "R1", lambda found: found["FastEthernet0/1"]["output"]["packets"]))
        sent, link = interfaces["FastEthernet0/1"]["output"], interfaces["FastEthernet0/1"]["link"]
        # In addition to the datagrams, an ARP request may go out.
        assert 400 <= sent["packets"] <= 405
        assert sent["drops"] == 0
        # Five standard deviations of 400 tosses.
        assert abs(link["output"]["lost"]["packets"] - 200) < 50
        assert interfaces["FastEthernet0/0"]["link"]["input"]["lost"]["packets"] == 0
        line = asyncio.run(_counters(lab, "l2.line", lambda found: _passed_frames(found["near"])))
        assert 400 <= _passed_frames(line["near"]) <= 405
        assert abs(line["near"]["link"]["input"]["lost"]["packets"] - 200) < 50
        assert line["far"]["link"]["input"]["lost"]["packets"] <= 5


def _passed_frames(interface: dict[str, Any]) -> int:
    """Return the frames of the link, including those that it lost."""
    return int(interface["input"]["packets"] + interface["link"]["input"]["lost"]["packets"])


async def _counters(lab: Lab, name: str, sent: Callable[[dict[str, Any]], int]) -> dict[str, Any]:
    """Return the counters of a node after it has sent 400 packets."""
    async with lab.control(name) as client, asyncio.timeout(PATIENCE_S):
        while sent(interfaces := (await client.counters())["interfaces"]) < 400:
            await asyncio.sleep(0.02)
        return interfaces
