"""Running configuration and parser: each is the inverse of the other."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.ansible.netcommon.plugins.module_utils.network.common.config import NetworkConfig
from hypothesis import HealthCheck, given, settings

from ios_strategies import devices, hardware
from levels import example_count
from qoslab.errors import IosError
from qoslab.ios.commands.policy_map import class_lines
from qoslab.ios.device_config.running_config_parser import read_running, unread_as_inert_lines
from qoslab.ios.model.device import Device, Generation, Hardware
from qoslab.ios.parse import apply_config, parse_config
from qoslab.ios.running_config import render, render_interface
from qoslab.virtual_lab.virtual_router import load_configuration

GOLDENS = Path(__file__).parents[1] / "goldens" / "ios"

ARTICLES: dict[str, tuple[Hardware, str]] = {
    "running-config.policed": (
        Hardware("3725", ("FastEthernet0/0", "FastEthernet0/1")),
        "hostname R1\npolicy-map Police\n class class-default\n  police cir 1000000\n"
        "interface FastEthernet0/1\n ip address 192.168.20.1 255.255.255.0\n service-policy output Police\n",
    ),
    "running-config.hqf": (
        Hardware("2811", ("FastEthernet0/0", "Serial0/1/0"), "hqf", "15.0"),
        "hostname a1\nip access-list extended P5001\n permit tcp any any eq 5001\nclass-map match-all P5001\n"
        " match access-group name P5001\nclass-map P5003\n match dscp af31 ef\npolicy-map WAN\n class P5001\n"
        "    bandwidth percent 20\n    fair-queue\n class P5003\n    bandwidth percent 30\n  set dscp cs6\n"
        "class class-default\n    fair-queue\n    random-detect\ninterface Serial0/1/0\n encapsulation ppp\n"
        " load-interval 30\n service-policy output WAN\n",
    ),
    "running-config.tx-ring": (
        Hardware("2811", ("FastEthernet0/0", "Serial0/1/0"), "classic", "12.4"),
        "hostname a2\nclass-map match-all Echo\n match protocol icmp\npolicy-map EchoPriority\n class Echo\n"
        "  priority 64\n class class-default\n  fair-queue\ninterface Serial0/1/0\n bandwidth 512\n"
        " ip address 172.16.1.130 255.255.255.252\n encapsulation ppp\n tx-ring-limit 5\n clock rate 512000\n"
        " service-policy output EchoPriority\nip route 10.0.0.0 255.0.0.0 serial 0/1/0\n",
    ),
}


@pytest.mark.parametrize("name", ARTICLES)
def test_configurations_of_the_articles_are_parsed(name: str) -> None:
    chassis, text = ARTICLES[name]
    device = parse_config(text, chassis)
    printed = render(device)
    assert printed == (GOLDENS / f"{name}.txt").read_text()
    assert parse_config(printed, chassis) == device


@given(devices())
@settings(
    max_examples=example_count(40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_printed_configuration_parses_to_the_same_device(device: Device) -> None:
    text = render(device)
    again = parse_config(text, device.hardware)
    assert again == device
    assert render(again) == text


@given(devices())
@settings(
    max_examples=example_count(15),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_entering_everything_again_changes_nothing(device: Device) -> None:
    again = device.copy()
    apply_config(again, render(device))
    assert again == device


def test_order_of_entry_does_not_affect_the_output() -> None:
    parts = [
        "policy-map A\n class class-default\n  police 8000\n",
        "policy-map B\n class class-default\n  shape average 8000\n",
        "ip route 10.0.0.0 255.0.0.0 Serial0/0\n",
        "ip route 9.0.0.0 255.0.0.0 Serial0/0\n",
        "access-list 101 permit ip any any\n",
        "ip access-list extended Z\n permit ip any any\n",
        "class-map Z\n match any\n",
        "class-map Y\n match any\n",
    ]
    forwards, backwards = Device(hardware()), Device(hardware())
    for part in parts:
        apply_config(forwards, part)
    for part in reversed(parts):
        apply_config(backwards, part)
    assert render(forwards) == render(backwards)


@pytest.mark.parametrize("generation", ["classic", "hqf"])
def test_shape_is_printed_with_the_spacing_of_its_generation(generation: Generation) -> None:
    text = "policy-map P\n class class-default\n  shape average 1000000\n  set dscp ef\n"
    lines = render(parse_config(text, hardware(generation))).splitlines()
    blanks = {"classic": "  ", "hqf": "    "}[generation]
    assert f"{blanks}shape average 1000000" in lines
    assert "  set dscp ef" in lines


@given(devices())
@settings(
    max_examples=example_count(25),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_configuration_blocks_follow_the_indentation(device: Device) -> None:
    # `random-detect` is indented one blank deeper than its neighbours, on routers too; that is all a client needs to
    # know.
    text = re.sub(r"(?m)^ {5}random-detect", "    random-detect", render(replace(device, banner_motd=None)))
    items = NetworkConfig(indent=1, contents=text).items
    below = [item for item in items if len(item.parents) > 1]
    assert len(below) == sum(len(class_lines(device, each)) for p in device.policy_maps.values() for each in p.classes)
    for item in below:
        policy, each, *rest = item.parents
        assert policy.startswith("policy-map ")
        assert each.startswith("class ")
        assert [word.split()[0] for word in rest] == (["police"] if "-action " in item.text else [])


def test_output_of_show_running_config_is_parsed() -> None:
    device = parse_config("hostname R9\nbanner motd @\nhello\n@", hardware())
    text = f"Building configuration...\n\nCurrent configuration : 1234 bytes\n{render(device)}"
    assert parse_config(text, hardware()) == device


def test_configuration_of_one_interface_is_printed() -> None:
    device = parse_config("interface s0/0\n clock rate 64000\n description x  y", hardware())
    assert render_interface(device, "Serial0/0") == (
        "interface Serial0/0\n description x  y\n no ip address\n clock rate 64000\n"
    )


def test_error_names_source_and_line_and_marks_the_token() -> None:
    with pytest.raises(IosError) as caught:
        parse_config("hostname R1\npolicy-map P\n class class-default\n  police cir 7999\n", hardware(), source="x.ios")
    assert caught.value.message == (
        "x.ios:4: the device refuses this line\n"
        "      police cir 7999\n"
        "                 ^\n"
        "    % Invalid input detected at '^' marker."
    )


def test_open_banner_is_an_error() -> None:
    with pytest.raises(IosError, match="x:2: the banner has no closing delimiter"):
        parse_config("banner motd @hello\nmore", hardware(), source="x")


def test_lines_after_end_are_an_error() -> None:
    with pytest.raises(IosError, match="x:3: there is a line after `end`: hostname R2"):
        parse_config("hostname R1\nend\nhostname R2", hardware(), source="x")


CLUTTERED = """\
!
router ospf 7
 network 10.0.0.0 0.255.255.255 area 0
!
version 12.4
!
hostname R1
!
ip cef
!
policy-map Police
 class class-default
  police aggregate S
   police 1000000 31250 31250
     conform-action transmit
     exceed-action drop
!
interface FastEthernet0/0
 ip nat inside
 crypto map TUNNELS
 ip address 10.0.0.1 255.255.255.0
 duplex auto
 speed auto
!
interface FastEthernet0/1
 no ip address
 shutdown
 duplex auto
 speed auto
!
line con 0
line aux 0
line vty 0 4
 login
!
end
"""
"""Configuration with a routing process, sampler, translation and tunnel, which the model lacks."""


def test_unmodelled_lines_keep_their_place() -> None:
    hardware = Hardware("3725", ("FastEthernet0/0", "FastEthernet0/1"))
    blank = Device(hardware)
    blank.clutter = unread_as_inert_lines(read_running(CLUTTERED, hardware))
    device, refused = load_configuration(blank, CLUTTERED)
    assert (refused, render(device)) == ([], CLUTTERED)
    # They are removed with their block.
    apply_config(device, "no policy-map Police\n")
    policy = CLUTTERED[CLUTTERED.index("policy-map") : CLUTTERED.index("interface FastEthernet0/0")]
    without = CLUTTERED.replace(policy, "")
    assert render(device) == without
    assert render_interface(device, "FastEthernet0/0").splitlines()[:2] == [
        "interface FastEthernet0/0",
        " ip nat inside",
    ]
    # A configuration that does not contain them has none.
    again, refused = load_configuration(blank, without.replace(" crypto map TUNNELS\n", ""))
    assert refused == [] and render(again) == without.replace(" crypto map TUNNELS\n", "")
    # Other lines, and the same ones elsewhere, are refused.
    for text in (CLUTTERED.replace("TUNNELS", "OTHERS"), CLUTTERED.replace(" no ip address\n", " ip nat inside\n")):
        assert len(load_configuration(blank, text)[1]) == 1
