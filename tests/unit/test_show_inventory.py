"""What inventory and automation tools ask every device for, read by Genie where it has a parser."""

from __future__ import annotations

from typing import Any

import pytest
from fake_router import FakeRouter, typed

from qoslab.genie.parse import parse
from qoslab.ios.parse import apply

ROUTER = """interface FastEthernet0/0
 description lan
interface FastEthernet0/1
 shutdown
interface Loopback0
 ip address 10.9.9.9 255.255.255.255
lldp run
"""
SWITCH = """vlan 7
 name USERS
interface GigabitEthernet1/0/3
 switchport access vlan 7
 description uplink
 spanning-tree portfast
"""


def shown(command: str, model: str = "2811") -> str:
    """What a router or switch prints, which was configured a moment ago."""
    router = FakeRouter(model)
    apply(router.device, SWITCH if model == "3750G" else ROUTER)
    router.startup = "hostname R1\n"
    typed(router, "conf t\rsnmp-server location X\rend\r")
    return typed(router, f"terminal length 0\r{command}\r").split(f"{command}\n", 1)[1].rpartition("\n")[0] + "\n"


def parsed(command: str, model: str = "2811") -> dict[str, Any]:
    found = parse("ios", command, shown(command, model))
    assert found.parsed is not None, found.reason
    return found.parsed


def test_inventory() -> None:
    assert parsed("show inventory")["main"]["chassis"]["CISCO2811"]["sn"] == "FTX1001C14X"
    assert parsed("show inventory", "3750G")["slot"]["1"]["rp"]["WS-C3750G-24TS"]["sn"] == "CAT1017R0AB"


def test_interfaces_by_their_descriptions() -> None:
    interfaces = parsed("show interfaces description")["interfaces"]
    assert interfaces["FastEthernet0/0"] == {"status": "up", "protocol": "up", "description": "lan"}
    assert interfaces["FastEthernet0/1"]["status"] == "admin down"


def test_ports_of_a_switch() -> None:
    port = parsed("show interfaces status", "3750G")["interfaces"]["GigabitEthernet1/0/3"]
    assert (port["name"], port["status"], port["vlan"], port["port_speed"]) == ("uplink", "connected", "7", "a-1000")
    vlan = parsed("show vlan", "3750G")["vlans"]["7"]
    assert (vlan["name"], vlan["interfaces"]) == ("USERS", ["GigabitEthernet1/0/3"])
    assert shown("show vlan brief", "3750G") == shown("show vlan", "3750G")


def test_a_loopback_interface_has_an_address() -> None:
    address = parsed("show ip interface brief")["interface"]["Loopback0"]
    assert (address["ip_address"], address["status"], address["protocol"]) == ("10.9.9.9", "up", "up")


def test_no_neighbour_answers() -> None:
    assert parsed("show lldp neighbors") == {"total_entries": 0}
    assert shown("show lldp neighbors", "3750G") == "% LLDP is not enabled\n"
    assert shown("show cdp neighbors").endswith("Capability  Platform  Port ID\n")
    router = FakeRouter()
    assert "% CDP is not enabled\n" in typed(router, "conf t\rno cdp run\rend\rshow cdp neighbors\r")


def test_the_log_tells_what_has_no_effect() -> None:
    log = parsed("show logging")
    assert log["logging"]["buffer"]["messages_logged"] == 2
    assert log["logs"] == [
        '*Mar  2 10:20:30.123: %QOSLAB-5-NOEFFECT: "snmp-server location X" is kept without effect: network management',
        "*Mar  2 10:20:30.123: %SYS-5-CONFIG_I: Configured from console by vty0",
    ]


def test_memory_and_files() -> None:
    processor = parsed("show memory statistics")["name"]["processor"]
    assert (processor["total"], processor["used"]) == (249_856 * 1024, 20_000_000)
    assert parsed("dir")["dir"]["flash:/"]["bytes_total"] == str(62_720 * 1024)
    assert parsed("dir nvram:")["dir"]["nvram:/"]["files"]["startup-config"]["size"] == "12"
    assert shown("show flash:", "3725").startswith("%Error opening flash:/")


@pytest.mark.parametrize("command", ["show users", "show boot", "show version", "show clock", "show ip route"])
def test_what_else_genie_reads(command: str) -> None:
    assert parsed(command)
