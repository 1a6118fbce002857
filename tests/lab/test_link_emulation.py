"""Delay, jitter and loss of links, from end to end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from labs import topology

from qoslab.lab import Lab
from qoslab.model.experiment import Topology

pytestmark = pytest.mark.lab

PING = str(Path(__file__).with_name("ping.py"))
FLOOD = (
    "import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
    "[(s.sendto(bytes(100), ('10.2.0.2', 9)), time.sleep(0.001)) for _ in range(400)]"
)


def impaired() -> Topology:
    plain = topology(client="host", R1="linux", server="host")(
        "client eth0 10.1.0.2/24 - R1 FastEthernet0/0 10.1.0.1/24",
        "R1 FastEthernet0/1 10.2.0.1/24 - server eth0 10.2.0.2/24",
    ).model_dump(mode="json")
    plain["links"][0] |= {"delay": "20 ms", "jitter": {"size": "2 ms", "distribution": "exponential"}}
    plain["links"][1] |= {"delay": "5 ms", "loss": {"model": "random", "probability": "0 %"}}
    return Topology.model_validate(plain, strict=False)


def test_delay_is_there_both_ways_and_loss_is_counted(name: str) -> None:
    wired = impaired()
    with Lab.up(wired, name=name) as lab:
        answered, *times = lab.run("client", ["python3", PING, "10.2.0.2", "8", "0"], check=True).stdout.split()
        assert int(answered) == 8
        # No upper bound: the machine may be busy. Nothing may be early.
        assert min(map(float, times)) >= 2 * (0.020 + 0.005)
    lossy = wired.model_dump(mode="json")
    lossy["links"][1]["loss"]["probability"] = "50 %"
    with Lab.up(Topology.model_validate(lossy, strict=False), name=name, seed=7) as lab:
        lab.run("client", ["python3", "-c", FLOOD], check=True)
        interfaces = asyncio.run(_counters(lab))
        sent, link = interfaces["FastEthernet0/1"]["output"], interfaces["FastEthernet0/1"]["link"]
        # Beside the datagrams an ARP request may go out.
        assert 400 <= sent["packets"] <= 405
        assert sent["drops"] == 0
        # Five standard deviations of 400 tosses.
        assert abs(link["output"]["lost"]["packets"] - 200) < 50
        assert interfaces["FastEthernet0/0"]["link"]["input"]["lost"]["packets"] == 0


async def _counters(lab: Lab) -> dict[str, Any]:
    async with lab.control("R1") as client:
        interfaces: dict[str, Any] = {}
        for _ in range(100):
            interfaces = (await client.counters())["interfaces"]
            if interfaces["FastEthernet0/1"]["output"]["packets"] >= 400:
                break
            await asyncio.sleep(0.02)
        return interfaces
