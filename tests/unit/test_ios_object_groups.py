"""Object groups: printed lines, data-plane configuration, refusals."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from fake_router import FakeRouter, type_lines
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from ios_configured import configured_device, running_lines

from ios_strategies import access_lists, grouped_lists, hardware, ipv6_access_lists, object_groups
from qoslab.errors import IosError
from qoslab.genie.show_parser import parse
from qoslab.ios.commands.access_list import expand_entry
from qoslab.ios.compile import compile_device
from qoslab.ios.device_config.diff import configuration_lines_between
from qoslab.ios.model.device import Device
from qoslab.ios.parse import apply_config, parse_config
from qoslab.ios.running_config import render
from qoslab.ios.show.access_lists import show_access_lists, show_object_groups

GROUPS = """\
object-group network INSIDE
 host 10.0.0.1
 10.1.0.0 255.255.0.0
 group-object OTHERS
object-group service APPS
 icmp echo
 tcp smtp
 tcp source gt 1023 eq 443
 tcp-udp range 2000 2005
"""
TEXT = f"""\
object-group network OTHERS
 range 10.2.0.0 10.2.0.2
{GROUPS}ip access-list extended EDGE
 permit object-group APPS any object-group INSIDE
 deny tcp object-group INSIDE eq www any log
 permit ip any any
"""


def groups(text: str = TEXT) -> Device:
    return configured_device(text, "hqf")


def test_object_groups_are_printed_after_their_members() -> None:
    device = groups()
    lines = running_lines(device)
    start = lines.index("object-group service APPS")
    assert [line for line in lines[start : start + 14] if line != "!"] == [
        "object-group service APPS",
        "icmp echo",
        "tcp eq smtp",
        "tcp source gt 1023 eq 443",
        "tcp-udp range 2000 2005",
        "object-group network OTHERS",
        "range 10.2.0.0 10.2.0.2",
        "object-group network INSIDE",
        "host 10.0.0.1",
        "10.1.0.0 255.255.0.0",
        "group-object OTHERS",
    ]
    assert "permit object-group APPS any object-group INSIDE" in lines
    assert "deny tcp object-group INSIDE eq www any log" in lines
    assert parse_config(render(device), device.hardware) == device


def test_entry_expands_to_each_combination() -> None:
    entries = compile_device(groups())["access_lists"]["EDGE"]
    inside = [("10.0.0.1", "0.0.0.0"), ("10.1.0.0", "0.0.255.255"), ("10.2.0.0", "0.0.0.1"), ("10.2.0.2", "0.0.0.0")]
    services = [(1, None, None), (6, None, [25]), (6, [1023], [443]), (6, None, [2000, 2005]), (17, None, [2000, 2005])]
    found = [
        (
            each["action"],
            each["protocol"],
            *(None if each[port] is None else each[port]["ports"] for port in ("source_port", "destination_port")),
            (each["destination"]["address"], each["destination"]["wildcard"]),
        )
        for each in entries[:20]
    ]
    assert found == [("permit", *service, place) for service, place in product(services, inside)]
    denied = [(each["action"], each["source"]["address"], each["source_port"]) for each in entries[20:24]]
    assert denied == [("deny", address, {"op": "eq", "ports": [80]}) for address, _ in inside]
    assert len(entries) == 25


def test_entry_counts_all_combinations_of_its_groups() -> None:
    counters: Any = {"access_lists": {"EDGE": [{"packets": number} for number in range(25)]}}
    shown = show_access_lists(groups(), counters, name="EDGE")
    assert shown.splitlines()[1:] == [
        f"    10 permit object-group APPS any object-group INSIDE ({sum(range(20))} matches)",
        f"    20 deny tcp object-group INSIDE eq www any log ({sum(range(20, 24))} matches)",
        "    30 permit ip any any (24 matches)",
    ]


def test_show_object_group_lists_the_groups() -> None:
    router = FakeRouter()
    router.device = groups()
    one = type_lines(router, "show object-group OTHERS\n")
    assert "Network object group OTHERS\n range 10.2.0.0 10.2.0.2\n" in one
    parsed = parse("ios", "show object-group", show_object_groups(router.device)).parsed
    assert parsed is not None and parsed.keys() == router.device.object_groups.keys()
    assert parsed["OTHERS"] == {"kind": "network", "objects": ["range 10.2.0.0 10.2.0.2"]}


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("no object-group network INSIDE", "% Object group INSIDE is in use, it can not be removed"),
        ("no object-group network OTHERS", "% Object group OTHERS is in use, it can not be removed"),
        ("object-group network OTHERS\nno range 10.2.0.0 10.2.0.2", "its last object can not be removed"),
        ("object-group service INSIDE", "% Object group INSIDE is a network object group"),
        ("object-group network OTHERS\ngroup-object INSIDE", "% Object group OTHERS can not contain itself"),
        ("object-group network OTHERS\ngroup-object APPS", "% Object group APPS is a service object group"),
        ("object-group network OTHERS\ngroup-object NONE", "% Object group NONE is not configured"),
        ("object-group network OTHERS\n10.0.0.0 255.0.255.0", "Bad mask 0xFF00FF00 for address 10.0.0.0"),
        ("object-group network OTHERS\nrange 10.0.0.9 10.0.0.1", "% Invalid input"),
        ("access-list 101 permit ip object-group NONE any", "% There is no network object group NONE"),
        ("access-list 101 permit object-group INSIDE any any", "% There is no service object group INSIDE"),
        ("object-group network NEW\naccess-list 101 permit ip any object-group NEW", "% Object group NEW is empty"),
    ],
)
def test_invalid_object_groups_are_refused(lines: str, reason: str) -> None:
    with pytest.raises(IosError, match=reason):
        apply_config(groups(), lines)


def test_oversized_object_groups_are_refused() -> None:
    hosts = "".join(f" host 10.7.{number}.1\n" for number in range(64))
    text = f"object-group network MANY\n{hosts}access-list 101 permit ip object-group MANY object-group "
    with pytest.raises(IosError, match="% Object groups of access list 101 expand to 4096 entries, at most 2048"):
        configured_device(f"{text}MANY\n", "hqf")
    device = configured_device(f"{text}INSIDE\n".replace("access-list", f"{TEXT}access-list"), "hqf")
    with pytest.raises(IosError, match="at most 2048"):
        apply_config(device, "object-group network OTHERS\n range 10.9.0.1 10.9.255.254\n")
    assert len(device.object_groups["OTHERS"].networks) == 1


def test_classic_router_and_a_switch_know_no_groups() -> None:
    with pytest.raises(IosError, match="% Invalid input"):
        configured_device("object-group network A\n")
    with pytest.raises(IosError, match="% Invalid input"):
        configured_device("access-list 101 permit ip object-group A any\n")


def test_group_in_use_is_changed_in_place() -> None:
    before, after = groups(), groups(TEXT.replace("range 10.2.0.0 10.2.0.2", "host 10.3.0.1"))
    for wanted, device in (
        (before, after.copy()),
        (after, before.copy()),
        (configured_device("", "hqf"), after.copy()),
    ):
        apply_config(device, "\n".join(configuration_lines_between(wanted, device)))
        assert device == wanted


def test_lines_leave_a_group_before_lines_that_would_exceed_its_limit() -> None:
    hosts = "".join(f" host 10.0.1.{n}\n" for n in range(1, 21))
    both = "ip access-list extended Both\n permit ip object-group Net object-group Hosts"
    rest = f"object-group network Hosts\n{hosts}{both}"
    wide, other = (
        groups(f"object-group network Net\n host 10.0.0.1\n range 0.0.0.{first} 255.255.255.254\n{rest}")
        for first in (1, 2)
    )
    assert configuration_lines_between(other, wide) == [
        "object-group network Net",
        " no range 0.0.0.1 255.255.255.254",
        " range 0.0.0.2 255.255.255.254",
    ]


@st.composite
def grouped_devices(draw: DrawFn) -> Device:
    """Return the groups and lists of a device that expand an entry, with defaults for everything else."""
    groups = draw(object_groups())
    lists = draw(access_lists()) | draw(ipv6_access_lists()) | draw(grouped_lists(groups))
    return Device(hardware("hqf"), object_groups=groups, access_lists=lists)


@given(grouped_devices())
def test_expanded_lists_have_no_groups(device: Device) -> None:
    for each in device.access_lists.values():
        for entry in each.entries:
            found = expand_entry(device, entry)
            assert found == [entry] if not entry.object_groups else len(found) > 0
            assert not any(one.object_groups for one in found)
