"""Access lists that filter interfaces on the command line: printed lines, data-plane configuration and show output."""

from __future__ import annotations

from typing import Any

import pytest
from fake_router import FakeRouter, type_lines
from genie.libs.parser.iosxe.show_interface import ShowIpInterface, ShowIpv6Interface
from ios_configured import configured_device, running_lines

from qoslab.errors import IosError
from qoslab.ios.compile import compile_device
from qoslab.ios.device_config.config_equivalence import configuration_differences
from qoslab.ios.device_config.diff import configuration_lines_between
from qoslab.ios.model.device import AccessGroups, Device, Generation
from qoslab.ios.parse import apply_config, parse_config
from qoslab.ios.running_config import render
from switch_strategies import switch_hardware

LISTS = """\
ip access-list extended EDGE
 permit tcp any any eq www
ipv6 access-list EDGE6
 permit tcp any any eq www
access-list 7 deny host 10.0.0.9
access-list 7 permit any
"""
FILTERS = f"""\
{LISTS}interface Serial0/0
 ip access-group EDGE in
 ip access-group 7 out
 ipv6 address 2001:DB8::1/64
 ipv6 traffic-filter EDGE6 in
"""


def interface_lines(device: Device, name: str) -> list[str]:
    lines = render(device).split(f"interface {name}\n", 1)[1].split("!", 1)[0].splitlines()
    return [line.strip() for line in lines]


@pytest.mark.parametrize("generation", ["classic", "hqf"])
def test_filters_are_printed_after_the_address(generation: Generation) -> None:
    device = configured_device(FILTERS, generation)
    assert interface_lines(device, "Serial0/0")[:3] == [
        "no ip address",
        "ip access-group EDGE in",
        "ip access-group 7 out",
    ]
    assert running_lines(device).count("ipv6 traffic-filter EDGE6 in") == 1
    assert parse_config(render(device), device.hardware) == device


def test_data_plane_gets_the_lists_by_direction() -> None:
    found = compile_device(configured_device(FILTERS))["interfaces"]["Serial0/0"]
    assert (found["access_groups_input"], found["access_groups_output"]) == (["EDGE", "EDGE6"], ["7"])


def test_unconfigured_access_list_filters_nothing() -> None:
    device = configured_device("interface Serial0/0\nip access-group NONE in\nipv6 traffic-filter NONE out\n")
    assert "access_groups_input" not in compile_device(device)["interfaces"]["Serial0/0"]
    # Nor does a later one of the other IP version.
    apply_config(device, "ipv6 access-list NONE\n permit ipv6 any any\n")
    found = compile_device(device)["interfaces"]["Serial0/0"]
    assert ("access_groups_input" not in found, found["access_groups_output"]) == (True, ["NONE"])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("ip access-group 200 in", "% Invalid input detected"),
        ("ip access-group EDGE", "% Incomplete command"),
    ],
)
def test_access_group_that_cannot_filter_is_refused(line: str, reason: str) -> None:
    with pytest.raises(IosError, match=reason):
        apply_config(configured_device(LISTS), f"interface Serial0/0\n{line}\n")


def test_list_of_the_other_ip_version_is_reported() -> None:
    router = FakeRouter()
    apply_config(router.device, LISTS)
    text = type_lines(router, "configure terminal\ninterface FastEthernet0/0\nip access-group EDGE6 in\n")
    assert "\nAccess list EDGE6 is an IPv6 list: no IPv4 packets are filtered\n" in text
    assert "access_groups_input" not in compile_device(router.device)["interfaces"]["FastEthernet0/0"]


def test_subinterface_has_its_own_access_group() -> None:
    text = f"{LISTS}interface FastEthernet0/1.10\n encapsulation dot1Q 10\n ip access-group 7 in\n"
    part = compile_device(configured_device(text))["interfaces"]["FastEthernet0/1"]["subinterfaces"][
        "FastEthernet0/1.10"
    ]
    assert part["access_groups_input"] == ["7"]


def test_filters_are_replaced_and_removed() -> None:
    device = configured_device(FILTERS)
    apply_config(device, "interface Serial0/0\nip access-group 8 in\nno ip access-group 7 out\n")
    assert device.interfaces["Serial0/0"].filters == AccessGroups(input="8")
    for wanted, present in (
        (configured_device(""), configured_device(FILTERS)),
        (configured_device(FILTERS), configured_device("")),
    ):
        apply_config(present, "\n".join(configuration_lines_between(wanted, present)))
        assert render(present) == render(wanted)


def test_configurations_are_compared_by_meaning() -> None:
    running = render(configured_device(FILTERS))
    assert configuration_differences(FILTERS, running) == []
    found = configuration_differences(FILTERS.replace("access-group 7 out", "access-group EDGE out"), running)
    assert found == [
        "interface Serial0/0: configured `ip access-group EDGE out`, but `ip access-group 7 out` is active"
    ]


def test_show_ip_interface_names_the_lists() -> None:
    router = FakeRouter()
    apply_config(router.device, FILTERS.replace("Serial0/0", "FastEthernet0/1"))

    def output_of(command: str) -> str:
        printed = type_lines(router, f"terminal length 0\n{command}\n")
        return printed.split(f"#{command}\n")[1].rpartition("R1#")[0]

    parsed = ShowIpInterface(device=None).cli(output=output_of("show ip interface"))
    assert set(parsed) == set(router.device.interfaces)
    found: dict[str, Any] = parsed["FastEthernet0/1"]
    assert (found["inbound_access_list"], found["outbound_access_list"], found["mtu"]) == ("EDGE", "7", 1500)
    assert found["ipv4"]["192.168.20.1/24"]["broadcast_address"] == "255.255.255.255"
    assert "outbound_access_list" not in parsed["FastEthernet0/0"]
    six = output_of("show ipv6 interface FastEthernet0/1")
    assert ("  Inbound access list EDGE6\n" in six, "Outgoing" in six) == (True, False)
    addresses = ShowIpv6Interface(device=None).cli(output=six)["FastEthernet0/1"]["ipv6"]
    assert "2001:DB8::1/64" in addresses


def test_switch_gives_the_reason_of_a_refusal() -> None:
    device = Device(switch_hardware())
    with pytest.raises(IosError, match="packets are not filtered"):
        apply_config(device, "interface GigabitEthernet1/0/1\nip access-group 7 in\n")
