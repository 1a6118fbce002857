"""802.1Q subinterfaces on a live router: hosts in two VLANs of a switch, whose trunk leads to the router."""

from __future__ import annotations

import asyncio
import json

import pytest
from labs import ping, topology
from test_iosd import session

from qoslab.run.cell.sampling import read_health
from qoslab.run.workers.virtual.nodes import VirtualLab
from qoslab.virtual_lab import Lab

pytestmark = pytest.mark.lab


def host(router: str) -> dict[str, object]:
    return {"platform": "host", "routes": [{"prefix": "0.0.0.0/0", "via": router}]}


STICK = topology(
    a=host("10.1.0.1"),
    b=host("10.2.0.1"),
    S1={"platform": "ios", "model": "3750G"},
    R1={"platform": "ios", "model": "2811"},
)(
    "a eth0 10.1.0.2/24 - S1 GigabitEthernet1/0/1",
    "b eth0 10.2.0.2/24 - S1 GigabitEthernet1/0/2",
    "S1 GigabitEthernet1/0/24 - R1 FastEthernet0/0",
)
SWITCH = (
    *("mls qos", "interface Gi1/0/1", "switchport mode access", "switchport access vlan 100"),
    *("interface Gi1/0/24", "switchport trunk encapsulation dot1q", "switchport mode trunk", "mls qos trust cos"),
)
"""Switch configuration; Gi1/0/2 is in VLAN 1, the trunk's native one."""
ROUTER = (
    *("policy-map MARK", "class class-default", "set cos 5"),
    *("interface Fa0/0.100", "encapsulation dot1Q 100", "ip address 10.1.0.1 255.255.255.0"),
    *("service-policy output MARK", "interface Fa0/0.1", "encapsulation dot1Q 1 native"),
    "ip address 10.2.0.1 255.255.255.0",
)


def interfaces(lab: Lab, namespace: str) -> set[str]:
    links = json.loads(lab.run(namespace, ["ip", "-j", "link"], check=True).stdout)
    return {each["ifname"] for each in links}


def port_counters(lab: Lab, router: str, port: str) -> dict[str, object]:
    async def ask() -> dict[str, object]:
        control = lab.control(router)
        try:
            return dict((await control.counters())["interfaces"][port])
        finally:
            await control.close()

    return asyncio.run(ask())


def test_hosts_in_two_vlans_reach_each_other_through_one_port(name: str) -> None:
    with Lab.up(STICK, name=name) as lab:
        session(lab, "configure terminal", *SWITCH, "end", router="S1")
        output = session(lab, "configure terminal", *ROUTER, "end", "show ip interface brief")
        assert "%" not in output
        assert "FastEthernet0/0.100        10.1.0.1        YES manual up                    up" in output
        assert interfaces(lab, "R1") == {"lo", "Fa0-0", "Fa0-0.1", "Fa0-0.100"}
        assert interfaces(lab, "R1.dp") == {"lo", "Fa0-0", "Fa0-0.in", "Fa0-0.1", "Fa0-0.100"}
        assert ping(lab, "a", "10.2.0.2") == 63
        assert ping(lab, "b", "10.1.0.2") == 63
        port = port_counters(lab, "R1", "FastEthernet0/0")
        tagged, native = (port["subinterfaces"][f"FastEthernet0/0.{vlan}"] for vlan in (100, 1))
        # The answer to an ARP request is marked too; 28 bytes of IP and ICMP, 8 of payload, 18 or 14 of Ethernet.
        assert tagged["policy_output"]["classes"][0]["packets"] == tagged["output"]["packets"] >= 2
        assert tagged["input"]["packets"] >= 2
        assert native["input"]["packets"] >= 2
        # The switch reads the class of service that the router wrote into the tag.
        at_switch = port_counters(lab, "S1", "GigabitEthernet1/0/24")["switch"]
        assert at_switch["cos_in"][5] == tagged["output"]["packets"]

        session(lab, "configure terminal", "interface Fa0/0.100", "shutdown", "end")
        assert ping(lab, "b", "10.1.0.2", 0.3) is None
        session(lab, "configure terminal", "interface Fa0/0.100", "no shutdown", "end")
        assert ping(lab, "b", "10.1.0.2") == 63
        session(lab, "configure terminal", "no interface Fa0/0.100", "end")
        assert interfaces(lab, "R1") == {"lo", "Fa0-0", "Fa0-0.1"}
        assert interfaces(lab, "R1.dp") == {"lo", "Fa0-0", "Fa0-0.in", "Fa0-0.1"}
        assert ping(lab, "b", "10.2.0.1") == 64
        health = read_health(VirtualLab(lab), ["R1"])["R1"]
        assert (health.malformed, health.unsent) == (0, 0)
