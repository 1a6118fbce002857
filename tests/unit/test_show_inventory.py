"""Commands of inventory and automation tools on every device, parsed by Genie if it has a parser."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from typing import Any

import pytest
from fake_router import FakeRouter, type_lines
from genie.libs.parser.iosxe.show_ipv6 import ShowIpv6Neighbors

from qoslab.genie.show_parser import parse
from qoslab.ios.environment import Neighbour
from qoslab.ios.parse import apply_config
from qoslab.ios.show.ip import show_arp
from qoslab.ios.show.services import show_ipv6_neighbors

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


def show_output(command: str, model: str = "2811") -> str:
    """Return the output of a router or switch that was configured just before."""
    router = FakeRouter(model)
    apply_config(router.device, SWITCH if model == "3750G" else ROUTER)
    router.startup = "hostname R1\n"
    type_lines(router, "conf t\rsnmp-server location X\rend\r")
    return type_lines(router, f"terminal length 0\r{command}\r").split(f"{command}\n", 1)[1].rpartition("\n")[0] + "\n"


def parsed_output(command: str, model: str = "2811") -> dict[str, Any]:
    found = parse("ios", command, show_output(command, model))
    assert found.parsed is not None, found.reason
    return found.parsed


def test_show_inventory_lists_the_hardware() -> None:
    assert parsed_output("show inventory")["main"]["chassis"]["CISCO2811"]["sn"] == "FTX1001C14X"
    assert parsed_output("show inventory", "3750G")["slot"]["1"]["rp"]["WS-C3750G-24TS"]["sn"] == "CAT1017R0AB"


def test_show_interfaces_description_lists_interfaces() -> None:
    interfaces = parsed_output("show interfaces description")["interfaces"]
    assert interfaces["FastEthernet0/0"] == {"status": "up", "protocol": "up", "description": "lan"}
    assert interfaces["FastEthernet0/1"]["status"] == "admin down"


def test_show_interfaces_status_lists_switch_ports() -> None:
    port = parsed_output("show interfaces status", "3750G")["interfaces"]["GigabitEthernet1/0/3"]
    assert (port["name"], port["status"], port["vlan"], port["port_speed"]) == ("uplink", "connected", "7", "a-1000")
    vlan = parsed_output("show vlan", "3750G")["vlans"]["7"]
    assert (vlan["name"], vlan["interfaces"]) == ("USERS", ["GigabitEthernet1/0/3"])
    assert show_output("show vlan brief", "3750G") == show_output("show vlan", "3750G")


def test_loopback_interface_has_an_address() -> None:
    address = parsed_output("show ip interface brief")["interface"]["Loopback0"]
    assert (address["ip_address"], address["status"], address["protocol"]) == ("10.9.9.9", "up", "up")


def test_show_neighbours_is_empty() -> None:
    assert parsed_output("show lldp neighbors") == {"total_entries": 0}
    assert show_output("show lldp neighbors", "3750G") == "% LLDP is not enabled\n"
    assert show_output("show cdp neighbors").endswith("Capability  Platform  Port ID\n")
    router = FakeRouter()
    assert "% CDP is not enabled\n" in type_lines(router, "conf t\rno cdp run\rend\rshow cdp neighbors\r")


def test_log_names_inert_lines() -> None:
    log = parsed_output("show logging")
    assert log["logging"]["buffer"]["messages_logged"] == 2
    assert log["logs"] == [
        '*Mar  2 10:20:30.123: %QOSLAB-5-NOEFFECT: "snmp-server location X" is accepted without effect: network '
        "management",
        "*Mar  2 10:20:30.123: %SYS-5-CONFIG_I: Configured from console by vty0",
    ]


def test_show_memory_and_files_are_answered() -> None:
    processor = parsed_output("show memory statistics")["name"]["processor"]
    assert (processor["total"], processor["used"]) == (249_856 * 1024, 20_000_000)
    assert parsed_output("dir")["dir"]["flash:/"]["bytes_total"] == str(62_720 * 1024)
    assert parsed_output("dir nvram:")["dir"]["nvram:/"]["files"]["startup-config"]["size"] == "12"
    assert show_output("show flash:", "3725").startswith("%Error opening flash:/")


@pytest.mark.parametrize("command", ["show users", "show boot", "show version", "show clock", "show ip route"])
def test_genie_parses_further_show_commands(command: str) -> None:
    assert parsed_output(command)


def test_show_ip_route_prints_one_entry() -> None:
    entry = parsed_output("show ip route 192.168.10.7")["entry"]["192.168.10.0/24"]
    assert entry["known_via"] == "connected"
    assert [path["interface"] for path in entry["paths"].values()] == ["FastEthernet0/0"]
    assert show_output("show ip route 10.77.0.1") == "% Network not in table\n"


def test_show_ip_route_filters_by_source() -> None:
    (table,) = parsed_output("show ip route summary")["vrf"].values()
    # 192.168.10.0/24 and 192.168.20.0/24 are networks of their class.
    assert table["route_source"]["connected"]["networks"] == 2
    assert "192.168.10.0" in show_output("show ip route connected")
    assert "192.168.10.0" not in show_output("show ip route static")


def test_show_file_systems_lists_flash() -> None:
    rows = [line.split() for line in show_output("show file systems").splitlines()]
    assert ["56320", str(56320 - len("hostname R1\n")), "nvram", "rw", "nvram:"] in rows


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("show hosts", "Default domain is not set"),
        ("show cdp", "Global CDP information:"),
        ("show lldp", "    Status: ACTIVE"),
        ("show ntp status", "%NTP is not enabled."),
        ("show snmp", "%SNMP agent not enabled"),
        ("show ip ssh", "Authentication timeout: 30 secs; Authentication retries: 3"),
        ("show protocols", "  Internet address is 192.168.10.1/24"),
        ("show ip protocols", "*** IP Routing is NSF aware ***"),
        ("show arp FastEthernet0/0", "Protocol  Address          Age (min)  Hardware Addr   Type   Interface"),
        ("show clock detail", "No time source"),
    ],
)
def test_show_commands_list_running_services(command: str, line: str) -> None:
    assert line in show_output(command).splitlines()


def test_neighbours_of_both_ip_versions_are_shown() -> None:
    four = Neighbour(IPv4Address("192.168.10.2"), "02:00:00:00:00:02", "FastEthernet0/0", 1)
    six = Neighbour(IPv6Address("2001:db8::2"), "02:00:00:00:00:02", "FastEthernet0/0", 0, "STALE")
    parser = ShowIpv6Neighbors(device=None).cli(output=show_ipv6_neighbors([four, six]))
    found = parser["interface"]["FastEthernet0/0"]["neighbors"]
    assert list(found) == ["2001:DB8::2"]
    assert (found["2001:DB8::2"]["link_layer_address"], found["2001:DB8::2"]["neighbor_state"]) == (
        "0200.0000.0002",
        "STALE",
    )
    assert "2001:" not in show_arp(FakeRouter().device, {}, [four, six])
