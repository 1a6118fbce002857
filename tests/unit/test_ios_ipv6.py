"""IPv6 on the command line: accepted, printed, refused, removed, compiled and shown; Genie reads the show output."""

from __future__ import annotations

from ipaddress import IPv6Address, IPv6Network
from unittest.mock import Mock

import pytest
from fake_router import FakeRouter, type_lines
from genie.libs.parser.ios.show_acl import ShowAccessLists
from genie.libs.parser.iosxe.show_acl import ShowIpv6AccessLists
from genie.libs.parser.iosxe.show_ipv6 import ShowIpv6InterfaceBrief
from genie.libs.parser.iosxe.show_routing import ShowIpv6RouteDistributor

from qoslab.errors import IosError
from qoslab.ios.compile import compile_device
from qoslab.ios.device_config.config_equivalence import configuration_differences
from qoslab.ios.environment import PortState, RouteEntry
from qoslab.ios.model.device import Device, Hardware
from qoslab.ios.model.routes import installable_routes
from qoslab.ios.parse import apply_config, parse_config
from qoslab.ios.running_config import render
from qoslab.ios.show.access_lists import show_access_lists
from qoslab.ios.show.ipv6 import show_ipv6_interface_brief, show_ipv6_route
from rollback_lines import undo_lines

PORTS = ("FastEthernet0/0", "FastEthernet0/1", "Serial0/1/0")
CONFIGURATION = """\
ipv6 unicast-routing
interface FastEthernet0/0
 ip address 10.0.0.1 255.255.255.0
 ipv6 address 2001:db8:0:10::1/64
 ipv6 address fe80::1 link-local
interface Serial0/1/0
 ipv6 address 2001:db8:0:20::1/64
 ipv6 enable
interface FastEthernet0/1
 ipv6 enable
ipv6 route ::/0 2001:db8:0:20::2
ipv6 route 2001:db8:1::5/48 Serial0/1/0 fe80::2 200
ipv6 access-list Voice
 remark calls
 permit udp 2001:db8::/32 any range 32767 16384 dscp ef
 sequence 15 deny tcp any host 2001:db8::5 eq www
 permit icmp any any echo-request sequence 99
 permit 89 any any
 deny ipv6 any any log
"""
PRINTED = """\
ipv6 access-list Voice
 remark calls
 permit udp 2001:DB8::/32 any range 16384 32767 dscp ef
 deny tcp any host 2001:DB8::5 eq www
 permit icmp any any echo-request
 permit 89 any any
 deny ipv6 any any log
"""


def device(version: str = "15.1") -> Device:
    return Device(Hardware("2811", PORTS, "classic" if version.startswith("12") else "hqf", version))


def configured_device(text: str = CONFIGURATION, version: str = "15.1") -> Device:
    made = device(version)
    apply_config(made, text)
    return made


def test_running_configuration_prints_and_parses_typed_lines() -> None:
    made = configured_device()
    text = render(made)
    assert PRINTED in text
    assert "\n!\nipv6 unicast-routing\n!\n" in text
    assert "\nipv6 route ::/0 2001:DB8:0:20::2\nipv6 route 2001:DB8:1::/48 Serial0/1/0 FE80::2 200\n" in text
    block = text[text.index("interface FastEthernet0/0") : text.index("interface FastEthernet0/1")]
    assert " ipv6 address FE80::1 link-local\n ipv6 address 2001:DB8:0:10::1/64\n" in block
    assert parse_config(text, made.hardware) == made
    assert made.access_lists["Voice"].numbers == (0, 10, 15, 99, 109, 119)


REFUSED = [
    ("ipv6 route ::/0 fe80::1", "% Interface has to be specified for a link-local nexthop"),
    ("ipv6 route ::/0 ff02::1", "% Invalid next hop address: FF02::1"),
    ("ipv6 route ::/0 2001:db8:0:10::1", "% Invalid next hop address (it's this router)"),
    ("ipv6 route ::/0 10.0.0.2", "% Invalid input detected at '^' marker."),
    ("ip route 10.9.0.0 255.255.0.0 2001:db8::1", "% Invalid input detected at '^' marker."),
    ("ipv6 access-list 110", "% Invalid access list name."),
    ("ipv6 access-list Old", "% A named extended IP access list with this name already exists"),
    ("ip access-list extended Voice", "% A named IPv6 access list with this name already exists"),
    ("ipv6 access-list Voice\npermit tcp any 10.0.0.0 0.0.0.255", "% Invalid input detected at '^' marker."),
    ("ip access-list extended Old\npermit ip 2001:db8::/32 any", "% Invalid input detected at '^' marker."),
    ("ipv6 access-list Voice\npermit tcp any any eq 80 fragments", "% Invalid input detected at '^' marker."),
    ("ipv6 access-list Voice\npermit ipv6 any any flow-label 5", "% Invalid input detected at '^' marker."),
    ("ipv6 access-list Voice\nsequence 15 permit udp any any", "% Duplicate sequence number"),
    (
        "interface fa0/1\nipv6 address 2001:db8:0:20::5/64",
        "%FastEthernet0/1: Error: 2001:DB8:0:20::/64 is overlapping with 2001:DB8:0:20::/64 on Serial0/1/0",
    ),
    ("interface fa0/1\nipv6 address 2001:db8:0:30::/64", "%FastEthernet0/1: Error: 2001:DB8:0:30::/64 is invalid"),
    ("interface fa0/1\nipv6 address ff02::1/64", "%FastEthernet0/1: Error: FF02::1/64 is invalid"),
    ("interface fa0/1\nipv6 address 2001:db8::1", "% Incomplete command."),
    (
        "interface fa0/1\nipv6 address 2001:db8::1 link-local",
        "%FastEthernet0/1: Error: 2001:DB8::1 is not a link-local address",
    ),
    (
        "interface fa0/1\nipv6 address fe80::5/64",
        "%FastEthernet0/1: Error: FE80::5/64 is a link-local address, enter it with link-local",
    ),
    ("interface fa0/1\nipv6 address 2001:db8:0:30::/64 eui-64", "% Invalid input detected at '^' marker."),
    ("interface fa0/1\nipv6 address autoconfig", "% Invalid input detected at '^' marker."),
]


@pytest.mark.parametrize(("line", "message"), REFUSED)
def test_refusal_has_a_reason_and_changes_nothing(line: str, message: str) -> None:
    made = configured_device(CONFIGURATION + "ip access-list extended Old\n permit ip any any\n")
    before = made.copy()
    with pytest.raises(IosError) as caught:
        apply_config(made, line)
    assert message in str(caught.value)
    assert made == before


def test_point_to_point_prefix_can_have_a_zero_host_part() -> None:
    # RFC 6164: /127 has no address for all routers.
    made = configured_device("interface s0/1/0\nipv6 address 2001:db8::/127")
    assert "ipv6 address 2001:DB8::/127" in render(made)


def test_rollback_lines_restore_ipv6() -> None:
    chassis = device().hardware
    plain, full = render(device()), render(configured_device())
    for before, after in ((plain, full), (full, plain)):
        made = parse_config(after, chassis)
        apply_config(made, "\n".join(undo_lines(before, after, chassis)))
        assert render(made) == before


def test_list_of_one_family_is_replaced_by_one_of_the_other() -> None:
    chassis = device().hardware
    old = render(configured_device("ip access-list extended L\npermit ip any any"))
    new = render(configured_device("ipv6 access-list L\npermit ipv6 any any"))
    assert undo_lines(old, new, chassis) == [
        "no ipv6 access-list L",
        "ip access-list extended L",
        " permit ip any any",
    ]


def test_configurations_are_compared_by_meaning() -> None:
    running = render(configured_device())
    assert configuration_differences(CONFIGURATION, running) == []
    asked = "ipv6 access-list Voice\n permit udp 2001:db8:0:0::7/32 any range 16384 32767 dscp 46\n"
    found = configuration_differences(asked, running)
    assert len(found) == 5 and all(each.endswith("is active, but was not configured") for each in found), found


def test_access_list_is_compiled_with_wildcard_bits() -> None:
    class_map = "class-map match-all V\nmatch access-group name Voice\nmatch protocol ipv6\n"
    config = compile_device(configured_device(CONFIGURATION + class_map))
    first, second, third, *_ = config["access_lists"]["Voice"]
    assert first["source"] == {"address": "2001:db8::", "wildcard": "::ffff:ffff:ffff:ffff:ffff:ffff"}
    assert (first["protocol"], first["dscp"]) == (17, 46)
    assert second["destination"] == {"address": "2001:db8::5", "wildcard": "::"}
    assert (third["protocol"], third["icmp_type"], third["icmp_code"]) == (58, 128, None)
    assert config["class_maps"]["V"]["criteria"] == [
        {"type": "access_group", "negate": False, "name": "Voice"},
        {"type": "protocol", "negate": False, "name": "ipv6"},
    ]


def test_routes_are_compiled_by_family_and_link_local_ones_by_interface() -> None:
    routes = installable_routes(configured_device())
    assert routes == [
        (IPv6Network("::/0"), IPv6Address("2001:db8:0:20::2"), None, 1),
        (IPv6Network("2001:db8:1::/48"), IPv6Address("fe80::2"), "Serial0/1/0", 200),
    ]


COUNTERS = {"access_lists": {"Voice": [{"packets": each} for each in (0, 1, 7, 0, 0)]}}


def genie(parser: type, text: str) -> dict[str, object]:
    found: dict[str, object] = parser(device=Mock()).cli(output=text)
    return found


def test_show_ipv6_access_list_prints_entries() -> None:
    made = configured_device(CONFIGURATION + "access-list 1 permit any\n")
    text = show_access_lists(made, COUNTERS, version=6)  # type: ignore[arg-type]
    assert text == (
        "IPv6 access list Voice\n"
        "    permit udp 2001:DB8::/32 any range 16384 32767 dscp ef sequence 10\n"
        "    deny tcp any host 2001:DB8::5 eq www (1 match) sequence 15\n"
        "    permit icmp any any echo-request (7 matches) sequence 99\n"
        "    permit 89 any any sequence 109\n"
        "    deny ipv6 any any log sequence 119\n"
    )
    both = show_access_lists(made, COUNTERS)  # type: ignore[arg-type]
    assert both == f"Standard IP access list 1\n    10 permit any\n{text}"
    parsed = genie(ShowIpv6AccessLists, text.replace("    permit 89 any any sequence 109\n", ""))
    assert genie(ShowAccessLists, text.replace("    permit 89 any any sequence 109\n", "")) == parsed
    aces = parsed["Voice"]["aces"]  # type: ignore[index]
    assert parsed["Voice"]["type"] == "ipv6-acl-type"  # type: ignore[index]
    assert set(aces) == {"10", "15", "99", "119"}
    assert aces["15"]["matches"]["l3"]["ipv6"]["destination_network"] == {
        "host 2001:DB8::5": {"destination_network": "host 2001:DB8::5"}
    }


def port(link_local: str | None) -> PortState:
    return PortState("02:00:00:00:00:01", True, 1500, None if link_local is None else IPv6Address(link_local))


def test_show_ipv6_interface_brief_prints_addresses() -> None:
    made = configured_device()
    text = show_ipv6_interface_brief(made, {"FastEthernet0/0": port("fe80::1"), "Serial0/1/0": port("fe80::5")})
    assert text == (
        "FastEthernet0/0            [up/up]\n    FE80::1\n    2001:DB8:0:10::1\n"
        "FastEthernet0/1            [down/down]\n    unassigned\n"
        "Serial0/1/0                [up/up]\n    FE80::5\n    2001:DB8:0:20::1\n"
    )
    parsed = genie(ShowIpv6InterfaceBrief, text)["interface"]
    assert parsed["Serial0/1/0"]["ipv6_addresses"] == ["2001:DB8:0:20::1"]  # type: ignore[index]


ROUTES = [
    RouteEntry(IPv6Network("2001:db8:0:10::/64"), "connected", None, "FastEthernet0/0"),
    RouteEntry(IPv6Network("2001:db8:0:20::/64"), "connected", None, "Serial0/1/0"),
    RouteEntry(IPv6Network("::/0"), "static", IPv6Address("2001:db8:0:20::2"), "Serial0/1/0"),
    RouteEntry(IPv6Network("2001:db8:1::/48"), "static", IPv6Address("fe80::2"), "Serial0/1/0", 200),
]


def test_show_ipv6_route_prints_routes() -> None:
    lines = show_ipv6_route(configured_device(), ROUTES).splitlines()
    assert lines[0] == "IPv6 Routing Table - default - 7 entries"
    assert lines[6:] == [
        "S   ::/0 [1/0]",
        "     via 2001:DB8:0:20::2",
        "C   2001:DB8:0:10::/64 [0/0]",
        "     via FastEthernet0/0, directly connected",
        "L   2001:DB8:0:10::1/128 [0/0]",
        "     via FastEthernet0/0, receive",
        "C   2001:DB8:0:20::/64 [0/0]",
        "     via Serial0/1/0, directly connected",
        "L   2001:DB8:0:20::1/128 [0/0]",
        "     via Serial0/1/0, receive",
        "S   2001:DB8:1::/48 [200/0]",
        "     via FE80::2, Serial0/1/0",
        "L   FF00::/8 [0/0]",
        "     via Null0, receive",
    ]
    parsed = genie(ShowIpv6RouteDistributor, "\n".join(lines))
    found = parsed["vrf"]["default"]["address_family"]["ipv6"]["routes"]  # type: ignore[index]
    assert set(found) == {
        *("::/0", "2001:DB8:0:10::/64", "2001:DB8:0:10::1/128", "2001:DB8:0:20::/64"),
        *("2001:DB8:0:20::1/128", "2001:DB8:1::/48", "FF00::/8"),
    }
    # 12.4 names no table, and prints a route via the unspecified address.
    early = show_ipv6_route(configured_device(version="12.4"), ROUTES).splitlines()
    assert early[0] == "IPv6 Routing Table - 7 entries"
    assert early[8:10] == ["C   2001:DB8:0:10::/64 [0/0]", "     via ::, FastEthernet0/0"]


def test_ipv6_show_commands_work_on_the_command_line() -> None:
    router = FakeRouter("2811")
    router.device = configured_device()
    text = type_lines(router, "show ipv6 interface brief\nshow ipv6 route\nshow ipv6 access-list Voice\n")
    assert "2001:DB8:0:20::1" in text
    assert "IPv6 Routing Table" in text
    assert "IPv6 access list Voice" in text
