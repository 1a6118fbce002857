"""`interface Vlan` of a Catalyst 3750: policies of two levels, their permitted actions, and their show output."""

from __future__ import annotations

import pytest
from ios_configured import running_lines

from qoslab.errors import IosError
from qoslab.genie.show_parser import parse
from qoslab.ios.compile import compile_device
from qoslab.ios.device_config.config_equivalence import configuration_differences
from qoslab.ios.model.device import Device
from qoslab.ios.parse import apply_config, parse_config
from qoslab.ios.running_config import render
from qoslab.ios.show.catalyst.mls_qos import show_vlan
from qoslab.ios.show.catalyst.policy import show_policy_map, show_policy_map_interface
from qoslab.platforms import MODELS
from rollback_lines import undo_lines

HARDWARE = MODELS["3750G"].hardware()
BASE = """\
mls qos
access-list 101 permit udp any any
class-map match-all Voice
 match access-group 101
class-map match-all One
 match input-interface GigabitEthernet1/0/1
class-map match-all Others
 match input-interface Gi1/0/2 - gi 1/0/4 GigabitEthernet1/0/7
policy-map Ports
 class One
  police 1000000 8000 exceed-action drop
 class Others
  police 2000000 8000 exceed-action policed-dscp-transmit
policy-map Marks
 class Voice
  set dscp af41
  service-policy Ports
vlan 10
interface GigabitEthernet1/0/1
 switchport access vlan 10
 mls qos vlan-based
interface Vlan10
 service-policy input Marks
"""


def configured_switch(text: str = BASE) -> Device:
    return parse_config(text, HARDWARE)


def test_running_configuration_has_vlan_interfaces_after_ports() -> None:
    lines = running_lines(configured_switch())
    start = lines.index("interface Vlan10")
    assert lines[start - 2 : start + 3] == [
        "interface GigabitEthernet1/0/28",
        "!",
        "interface Vlan10",
        "no ip address",
        "service-policy input Marks",
    ]
    assert "match input-interface GigabitEthernet1/0/2 - GigabitEthernet1/0/4 GigabitEthernet1/0/7" in lines


def test_data_plane_has_policies_by_vlan_and_port() -> None:
    config = compile_device(configured_switch())
    assert config["switch"]["vlan_policies"] == {"10": "Marks"}
    (criterion,) = config["class_maps"]["Others"]["criteria"]
    names = [f"GigabitEthernet1/0/{number}" for number in (2, 3, 4, 7)]
    assert criterion == {"type": "input_interfaces", "names": names}
    assert config["policy_maps"]["Marks"]["classes"][0]["service_policy"] == "Ports"
    assert config["interfaces"]["GigabitEthernet1/0/1"]["switch"]["vlan_based"] is True


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("policy-map Ports\nclass One\npolice 3000000 8000", "Ports is part of an attached hierarchical policy-map"),
        ("policy-map Ports\nno class One", "Ports is part of an attached hierarchical policy-map"),
        ("policy-map Marks\nno class Voice", "Marks is part of an attached hierarchical policy-map"),
        ("policy-map Marks\nclass class-default", "Marks is part of an attached hierarchical policy-map"),
        ("policy-map Marks\nclass Voice\nno service-policy", "Marks is part of an attached hierarchical policy-map"),
        ("policy-map Marks\nclass Voice\npolice 1000000 8000", "policer, which is not supported at the VLAN level"),
        ("policy-map Marks\nclass Voice\nno set dscp", "neither set nor trust"),
        ("class-map Voice\nmatch input-interface gi1/0/1", "supported at the interface level only"),
        ("class-map One\nmatch ip dscp ef", "has to match input-interface only"),
        ("interface gi1/0/2\nservice-policy input Marks", "can be attached to a VLAN interface only"),
        ("interface gi1/0/1\nservice-policy input Ports", "GigabitEthernet1/0/1 is VLAN-based"),
        ("policy-map Third\nclass Voice\nservice-policy Marks", "has only two levels"),
        ("policy-map Ports\nclass One\nservice-policy Ports", "can not be its own child"),
        ("policy-map Third\nclass Voice\nservice-policy None", "policy map None not configured"),
        ("no policy-map Marks", "is being used"),
        ("interface Vlan10\nip address 10.0.0.1 255.0.0.0", "not between VLANs"),
        ("interface Vlan10\nmls qos trust dscp", "Invalid input"),
        ("interface Loopback0\nservice-policy input Marks", "Invalid input"),
        ("class-map New\nmatch input-interface gi1/0/4 - gi1/0/2", "Invalid input"),
        ("class-map New\nmatch input-interface gi1/0/29", "Invalid input"),
        ("class-map New\nmatch input-interface" + " gi1/0/1" * 7, "Invalid input"),
    ],
)
def test_refused_vlan_line_changes_nothing(text: str, refusal: str) -> None:
    device = configured_switch()
    with pytest.raises(IosError, match=refusal):
        apply_config(device, text)
    for name in ("Ports", "Marks"):
        assert device.policy_maps[name] == configured_switch().policy_maps[name]
    assert device.host_interfaces == configured_switch().host_interfaces | {
        name: each for name, each in device.host_interfaces.items() if name == "Loopback0"
    }


def test_policy_applies_to_ports_or_vlans() -> None:
    plain = "policy-map Plain\n class Voice\n  trust dscp\n"
    device = configured_switch(BASE + plain + "interface gi1/0/9\n service-policy input Plain\n")
    with pytest.raises(IosError, match="Plain is attached to a port"):
        apply_config(device, "interface Vlan10\nno service-policy input\nservice-policy input Plain")
    device = configured_switch(BASE + plain + "interface Vlan20\n service-policy input Plain\n")
    with pytest.raises(IosError, match="Plain is attached to a VLAN interface"):
        apply_config(device, "interface gi1/0/9\nservice-policy input Plain")


def test_port_that_becomes_vlan_based_loses_its_policy() -> None:
    text = BASE + "policy-map Plain\n class Voice\n  trust dscp\ninterface gi1/0/9\n service-policy input Plain\n"
    device = configured_switch(text + " mls qos vlan-based\n")
    assert device.interfaces["GigabitEthernet1/0/9"].service_policy_input is None


def test_vlan_policy_can_be_retyped_and_removed() -> None:
    device = configured_switch(BASE + BASE)
    assert device == configured_switch()
    for other in ("", BASE.replace("police 1000000", "police 5000000"), BASE.replace(" 10\n", " 20\n")):
        aim = configured_switch(other)
        again = configured_switch()
        apply_config(again, "\n".join(undo_lines(render(aim), render(device), HARDWARE)))
        assert again == aim


def test_show_mls_qos_vlan_prints_policies() -> None:
    shown = show_vlan(configured_switch(), 10)
    assert shown == "Vlan10\nAttached policy-map for Ingress:Marks\n"
    assert parse("ios", "show mls qos vlan 10", shown).parsed == {"vlan": {"10": {"policy_map": "Marks"}}}
    assert show_vlan(configured_switch(), 11) == "Vlan11\n"


def test_show_policy_map_has_both_levels() -> None:
    device = configured_switch()
    shown = show_policy_map_interface(device, compile_device(device), "Vlan10").splitlines()
    assert [line for line in shown if "Class-map" in line or "Service-policy" in line] == [
        "  Service-policy input: Marks",
        "    Class-map: Voice (match-all)",
        "      Service-policy : Ports",
        "        Class-map: One (match-all)",
        "        Class-map: Others (match-all)",
        "        Class-map: class-default (match-any)",
        "    Class-map: class-default (match-any)",
    ]
    assert "          Match: input-interface GigabitEthernet1/0/1" in shown
    assert show_policy_map(device, "Marks").splitlines() == [
        "  Policy Map Marks",
        "    Class Voice",
        "     set dscp af41",
        "     service-policy Ports",
    ]


def test_macro_does_not_attach_a_policy_to_a_vlan_based_port() -> None:
    device = configured_switch()
    apply_config(device, "interface gi1/0/1\nauto qos voip cisco-phone")
    assert device.interfaces["GigabitEthernet1/0/1"].service_policy_input is None
    other = configured_switch()
    apply_config(other, "interface gi1/0/1\nno mls qos vlan-based\nauto qos voip cisco-phone\nmls qos vlan-based")
    assert other == device, "in whichever order"


def test_configurations_are_compared_by_meaning() -> None:
    running = render(configured_switch())
    asked = BASE.replace("Gi1/0/2 - gi 1/0/4", "gigabitethernet1/0/2 - GigabitEthernet1/0/4")
    for before in (None, render(configured_switch("")), running):
        assert configuration_differences(asked, running, before=before, family="switch") == []
    other = BASE.replace("police 1000000 8000", "police 3000000 8000")
    found = configuration_differences(other, running, family="switch")
    assert "policy-map Ports, class One: configured `police 3000000 8000 exceed-action drop`" in found[0]


@pytest.mark.parametrize("text", ["ipv6 access-list V6\n permit tcp any any", "class-map Voice\n match protocol ipv6"])
def test_ipv6_is_not_classified(text: str) -> None:
    with pytest.raises(IosError, match="classifies IPv4 only"):
        apply_config(configured_switch(), text)
