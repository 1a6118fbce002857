"""ATM line between two IOS routers in the virtual lab: its circuit on the port, and moved to a subinterface."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest
from labs import ping
from test_iosd import session

from qoslab.model.experiment import Topology
from qoslab.virtual_lab import Lab

pytestmark = pytest.mark.lab


def end(node: str, interface: str, subnet: int, host: int) -> dict[str, str]:
    return {"node": node, "interface": interface, "address": f"10.{subnet}.0.{host}/24"}


def router(prefix: str, via: str) -> dict[str, object]:
    return {"platform": "ios", "model": "7206VXR", "routes": [{"prefix": prefix, "via": via}]}


LINE = Topology.model_validate_json(
    json.dumps(
        {
            "nodes": {
                "client": {"platform": "host"},
                "R1": router("10.3.0.0/24", "10.2.0.2"),
                "R2": router("10.1.0.0/24", "10.2.0.1"),
                "server": {"platform": "host"},
            },
            "links": [
                {
                    "name": "near",
                    "rate": "100 Mb/s",
                    "ends": [end("client", "eth0", 1, 2), end("R1", "FastEthernet0/0", 1, 1)],
                },
                {
                    "name": "line",
                    "rate": "2 Mb/s",
                    "framing": "aal5snap",
                    "ends": [end("R1", "ATM1/0", 2, 1), end("R2", "ATM1/0", 2, 2)],
                },
                {
                    "name": "far",
                    "rate": "100 Mb/s",
                    "ends": [end("R2", "FastEthernet0/0", 3, 1), end("server", "eth0", 3, 2)],
                },
            ],
        }
    )
)


@pytest.fixture(scope="module")
def line() -> Iterator[Lab]:
    with Lab.up(LINE, name=f"test-atm-{os.getpid()}") as lab:
        yield lab


def test_circuit_carries_packets_on_port_and_subinterface(line: Lab) -> None:
    assert ping(line, "client", "10.3.0.2") == 62
    off = session(line, "configure terminal", "interface ATM1/0", "no pvc 0/33", "no ip address", "end")
    assert "%" not in off
    assert ping(line, "client", "10.3.0.2", 0.5) is None
    output = session(
        line,
        *("configure terminal", "interface ATM1/0.1 point-to-point", "ip address 10.2.0.1 255.255.255.0"),
        *("pvc 0/33", "ubr 1500", "encapsulation aal5snap", "end", "show ip route", "show atm pvc 0/33"),
    )
    assert "C       10.2.0.0 is directly connected, ATM1/0.1" in output
    assert "ATM1/0.1: VCD: 1, VPI: 0, VCI: 33" in output
    assert "UBR, PeakRate: 1500" in output
    assert ping(line, "client", "10.3.0.2") == 62


def test_encapsulation_that_the_link_lacks_is_refused(line: Lab) -> None:
    owner = "interface ATM1/0.1" if "ATM1/0.1" in session(line, "show ip interface brief") else "interface ATM1/0"
    output = session(line, "configure terminal", owner, "pvc 0/33", "encapsulation aal5mux ip", "end")
    assert "does not fit the port's Aal5snap link" in output
    assert ping(line, "client", "10.3.0.2") == 62
