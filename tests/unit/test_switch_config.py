"""Configuration of a Catalyst 3750: commands, refusals, running configuration, rollback, the compiler."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ios_commands import typed_line
from ios_strategies import hardware
from levels import example_count
from qoslab.errors import IosError
from qoslab.ios.cli.grammar import CliError, InvalidInputError
from qoslab.ios.compile import compile_device
from qoslab.ios.config import ConfigSession
from qoslab.ios.model.device import Device
from qoslab.ios.parse import apply_config, parse_config
from qoslab.ios.running_config import render, render_interface
from rollback_lines import undo_lines
from switch_strategies import switch_hardware, switches

GOLDENS = Path(__file__).parents[1] / "goldens" / "ios"
QUIET = settings(
    max_examples=example_count(40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

PORT = "GigabitEthernet1/0/15"
THE_FIX = """\
mls qos
interface gi1/0/1
 no switchport
 ip address 10.0.0.1 255.255.255.0
 mls qos trust dscp
int gigabitethernet1/0/15
 no switchport
 ip address 37.46.204.1 255.255.255.252
 speed 100
 duplex full
 srr-queue bandwidth shape 0 0 0 0
 srr-queue  bandwidth share  30  70 1 1
 srr-queue bandwidth limit 70
"""
"""Configuration of the article."""


def configured_switch(text: str, base: str = "") -> Device:
    device = parse_config(base, switch_hardware())
    apply_config(device, text)
    return device


def test_article_configuration_is_accepted_and_printed(golden: Callable[[Path, str], None]) -> None:
    device = configured_switch(THE_FIX)
    printed = render(device)
    golden(GOLDENS / "running-config.srr.txt", printed)
    assert parse_config(printed, switch_hardware()) == device


@given(switches(macros=True))
@QUIET
def test_printed_configuration_parses_to_the_same_switch(device: Device) -> None:
    text = render(device)
    again = parse_config(text, device.hardware)
    assert again == device
    assert render(again) == text
    # Ansible sends the lines again: nothing changes.
    apply_config(again, text)
    assert again == device


@given(switches(), switches())
@QUIET
def test_rollback_lines_restore_the_configuration(before: Device, after: Device) -> None:
    lines = undo_lines(render(before), render(after), before.hardware)
    device = after.copy()
    apply_config(device, "\n".join(lines))
    assert device == before
    assert bool(lines) == (before != after)


@given(st.integers(0, 2**32))
@settings(max_examples=example_count(60), deadline=None)
def test_any_typed_line_is_accepted_completely_or_refused(seed: int) -> None:
    random = Random(seed)
    session = ConfigSession(
        configured_switch("class-map Voice\npolicy-map Edge\nmls qos aggregate-policer Voice 8000 8000 exc drop")
    )
    for _ in range(25):
        before = session.device.copy()
        try:
            session.execute(typed_line(random, session))
        except CliError:
            assert session.device == before
        session.finished = False
    text = render(session.device)
    assert parse_config(text, session.device.hardware) == session.device


REFUSALS = [
    # The message, or the column of the marker in the last line.
    ("mls qos queue-set output 1 buffers 25 25 25 24", "Command rejected: buffers sum to 99 percent, they must sum"),
    ("mls qos queue-set output 1 buffers 25 0 50 25", "@38"),
    ("mls qos queue-set output 3 buffers 25 25 25 25", "@25"),
    ("mls qos queue-set output 1 threshold 5 100 100 50 400", "@37"),
    ("mls qos queue-set output 1 threshold 1 0 100 50 400", "@39"),
    ("mls qos queue-set output 1 threshold 1 100 3201 50 400", "@43"),
    ("mls qos queue-set output 1 threshold 1 100 100 0 400", "@47"),
    ("mls qos queue-set output 1 threshold 1 100 100 101 400", "@47"),
    ("mls qos queue-set output 1 threshold 1 100 100 50 3201", "@50"),
    ("mls qos queue-set output 1 threshold 1 100 100 50", "% Incomplete command."),
    ("mls qos map cos-dscp 0 8 16 24 32 46 48", "% Incomplete command."),
    ("mls qos map cos-dscp 0 8 16 24 32 46 48 56 63", "@43"),
    ("mls qos map cos-dscp 0 8 16 24 32 46 48 64", "@40"),
    ("mls qos map dscp-cos 64 to 1", "@21"),
    ("mls qos map dscp-cos 1 2 3 4 5 6 7 8 9 to 1", "@37"),
    ("mls qos map policed-dscp 10 to 64", "@31"),
    ("mls qos map dscp-mutation M 10 to", "% Incomplete command."),
    ("mls qos srr-queue output dscp-map queue 5 threshold 1 46", "@40"),
    ("mls qos srr-queue output dscp-map queue 1 threshold 4 46", "@52"),
    ("mls qos srr-queue output dscp-map queue 1 threshold 1 64", "@54"),
    ("mls qos srr-queue output cos-map queue 1 threshold 1 8", "@53"),
    ("mls qos srr-queue input cos-map queue 3 5", "@38"),
    ("mls qos srr-queue input buffers 60 50", "Command rejected: buffers sum to 110 percent"),
    ("mls qos srr-queue input priority-queue 2 bandwidth 41", "@51"),
    ("mls qos aggregate-policer A 7999 8000 exceed-action drop", "@28"),
    ("mls qos aggregate-policer A 8000 7999 exceed-action drop", "@33"),
    ("no mls qos aggregate-policer Used", "Command rejected: aggregate policer Used is used by policy-map Marked"),
    ("interface gi1/0/15\nsrr-queue bandwidth limit 9", "@26"),
    ("interface gi1/0/15\nsrr-queue bandwidth limit 91", "@26"),
    ("interface gi1/0/15\nsrr-queue bandwidth share 0 70 1 1", "@26"),
    ("interface gi1/0/15\nsrr-queue bandwidth share 30 70 1", "% Incomplete command."),
    ("interface gi1/0/15\nsrr-queue bandwidth share 30 70 1 256", "@34"),
    ("interface gi1/0/15\nsrr-queue bandwidth shape 65536 0 0 0", "@26"),
    ("interface gi1/0/15\nqueue-set 3", "@10"),
    ("interface gi1/0/15\nmls qos cos 8", "@12"),
    ("interface gi1/0/15\nswitchport access vlan 4095", "@23"),
    ("interface gi1/0/15\nip address 10.0.0.1 255.0.0.0", "Command rejected: IP addresses may not be configured on L2"),
    ("interface gi1/0/15\nservice-policy input Missing", "% policy map Missing not configured"),
    ("interface gi1/0/15\nservice-policy output Marked", "% Not supported: a port of this switch polices"),
    ("interface gi1/0/29", "@10"),
    ("interface Fa0/1", "@10"),
    ("no vlan 1", "Command rejected: VLAN 1 is a default VLAN"),
    ("no vlan 40", "Command rejected: VLAN 40 is the access VLAN of GigabitEthernet1/0/2"),
    (
        "class-map Voice\nmatch access-group 1\nmatch access-group 2",
        "Command rejected: class-map Voice already has an access",
    ),
    ("policy-map Marked\nclass Voice\npolice 7999 8000", "@7"),
    ("policy-map Marked\nclass Voice\npolice 8000 1000001", "@12"),
    ("policy-map Marked\nclass Voice\npolice aggregate Missing", "Command rejected: aggregate policer Missing is not"),
    ("policy-map Other\nclass Voice\npolice aggregate Used", "Command rejected: aggregate policer Used is used by"),
    ("policy-map Marked\nclass Voice\ntrust dscp\nset dscp ef", "Command rejected: trust and set can not"),
    ("policy-map Marked\nclass Voice\nset dscp ef\ntrust dscp", "Command rejected: trust and set can not"),
    ("policy-map Marked\nclass Voice\nset dscp 64", "@9"),
]
BASE = """\
mls qos aggregate-policer Used 1000000 8000 exceed-action drop
class-map Voice
 match ip dscp ef
policy-map Marked
 class Voice
  police aggregate Used
policy-map Other
 class Voice
interface gi1/0/2
 switchport access vlan 40
"""


@pytest.mark.parametrize(("text", "refusal"), REFUSALS)
def test_refused_switch_lines_leave_no_configuration(text: str, refusal: str) -> None:
    session = ConfigSession(configured_switch(BASE))
    *lines, last = text.splitlines()
    for line in lines:
        session.execute(line)
    before = session.device.copy()
    with pytest.raises(CliError) as caught:
        session.execute(last)
    if refusal.startswith("@"):
        assert isinstance(caught.value, InvalidInputError)
        assert caught.value.column == int(refusal[1:])
    else:
        assert caught.value.message.startswith(refusal)
    assert session.device == before


@pytest.mark.parametrize(
    "text",
    [
        "policy-map P\nclass class-default\nshape average 1000000",
        "policy-map P\nclass class-default\nbandwidth 100",
        "policy-map P\nclass class-default\npriority",
        "policy-map P\nclass class-default\nqueue-limit 10",
        "policy-map P\nclass class-default\nfair-queue",
        "policy-map P\nclass class-default\nservice-policy Q",
        "policy-map P\nclass class-default\npolice cir 1000000",
        "class-map C\nmatch protocol icmp",
        "class-map C\nmatch not ip dscp ef",
        "interface gi1/0/1\ntx-ring-limit 3",
        "interface gi1/0/1\nfair-queue",
        "interface gi1/0/1\nencapsulation ppp",
        "interface gi1/0/1\nmax-reserved-bandwidth 90",
        "ip cef",
        "line aux 0",
    ],
)
def test_switch_has_no_router_commands(text: str) -> None:
    with pytest.raises(IosError):
        configured_switch(text)


@pytest.mark.parametrize(
    "text",
    ["interface Fa0/0\nno switchport", "vlan 10"],
)
def test_router_has_no_switch_commands(text: str) -> None:
    with pytest.raises(IosError):
        parse_config(text, hardware())


def port_lines(text: str) -> list[str]:
    device = configured_switch("interface gi1/0/15\n" + text)
    return [line.strip() for line in render_interface(device, "GigabitEthernet1/0/15").splitlines()[1:]]


def test_interface_commands_are_stored_while_qos_is_off() -> None:
    lines = port_lines("srr-queue bandwidth limit 70\nqueue-set 2\nmls qos trust dscp\npriority-queue out")
    assert lines == ["srr-queue bandwidth limit 70", "queue-set 2", "priority-queue out", "mls qos trust dscp"]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("mls qos trust", ["mls qos trust dscp"]),
        ("mls qos trust cos\nmls qos trust dscp", ["mls qos trust dscp"]),
        ("mls qos trust cos\nno mls qos trust", []),
        (
            "mls qos trust device cisco-phone\nmls qos trust cos",
            ["mls qos trust device cisco-phone", "mls qos trust cos"],
        ),
        ("mls qos trust device cisco-phone\nmls qos trust cos\nno mls qos trust device", ["mls qos trust cos"]),
        ("mls qos cos 3\nmls qos cos override", ["mls qos cos 3", "mls qos cos override"]),
        ("mls qos cos 3\nmls qos cos override\nno mls qos cos override", ["mls qos cos 3"]),
        ("srr-queue bandwidth shape 0 0 0 0", ["srr-queue bandwidth shape  0  0  0  0"]),
        ("srr-queue bandwidth shape 0 0 0 0\nno srr-queue bandwidth shape", []),
        ("srr-queue bandwidth shape 25 0 0 0\nsrr-queue bandwidth share 25 25 25 25", []),
        ("srr-queue bandwidth limit 70\nno srr-queue bandwidth limit", []),
        ("speed 100\nduplex full\nno switchport", ["no switchport", "no ip address", "speed 100", "duplex full"]),
        ("no switchport\nip address 10.0.0.1 255.0.0.0\nswitchport", []),
        (
            "switchport mode trunk\nswitchport trunk encapsulation dot1q",
            ["switchport trunk encapsulation dot1q", "switchport mode trunk"],
        ),
    ],
)
def test_port_keeps_its_commands_across_modes(text: str, lines: list[str]) -> None:
    assert port_lines(text) == lines


def test_trust_and_policy_exclude_each_other_and_the_last_one_counts() -> None:
    base = BASE + "interface gi1/0/15\n mls qos trust dscp\n service-policy input Marked\n"
    device = configured_switch(base)
    port = device.interfaces["GigabitEthernet1/0/15"]
    assert port.port is not None
    assert (port.port.trust, port.service_policy_input) == (None, "Marked")
    apply_config(device, "interface gi1/0/15\nmls qos trust cos")
    port = device.interfaces["GigabitEthernet1/0/15"]
    assert port.port is not None
    assert (port.port.trust, port.service_policy_input) == ("cos", None)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "mls qos srr-queue output dscp-map threshold 3 46",
            ["mls qos srr-queue output dscp-map queue 1 threshold 3 46"],
        ),
        ("mls qos srr-queue output dscp-map queue 2 46", ["mls qos srr-queue output dscp-map queue 2 threshold 1 46"]),
        ("mls qos srr-queue output dscp-map queue 2 46\nno mls qos srr-queue output dscp-map", []),
        (
            "mls qos srr-queue output dscp-map queue 2 threshold 3 48 49 50 51 52 53 54 55\n"
            "mls qos srr-queue output dscp-map queue 2 threshold 3 56 57",
            [
                "mls qos srr-queue output dscp-map queue 2 threshold 3 48 49 50 51 52 53 54 55",
                "mls qos srr-queue output dscp-map queue 2 threshold 3 56 57",
            ],
        ),
        ("mls qos map cos-dscp 0 8 16 24 32 46 48 56", ["mls qos map cos-dscp 0 8 16 24 32 46 48 56"]),
        ("mls qos map cos-dscp 0 8 16 24 32 40 48 56", []),
        (
            "mls qos map policed-dscp 26 46 to 0\nmls qos map policed-dscp 10 to 8",
            ["mls qos map policed-dscp 26 46 to 0", "mls qos map policed-dscp 10 to 8"],
        ),
        (
            "mls qos map policed-dscp 26 46 to 0\nno mls qos map policed-dscp 26 to 0",
            ["mls qos map policed-dscp 46 to 0"],
        ),
        ("mls qos map dscp-mutation M 0 to 8\nno mls qos map dscp-mutation M", []),
        ("mls qos queue-set output 2 threshold 1 138 138 92 138\nno mls qos queue-set output 2 threshold", []),
        ("mls qos queue-set output 1 buffers 10 10 26 54\nno mls qos queue-set output 1 buffers", []),
        ("mls qos srr-queue input priority-queue 1 bandwidth 20\nno mls qos srr-queue input priority-queue 1", []),
    ],
)
def test_global_lines_are_stored(text: str, lines: list[str]) -> None:
    printed = [line for line in render(configured_switch(text)).splitlines() if line.startswith(("mls", "no mls"))]
    assert printed == lines


AUTO_QOS = "interface gi1/0/15\nauto qos voip {}\n"


def test_auto_qos_writes_the_lines_of_published_configurations() -> None:
    device = configured_switch(AUTO_QOS.format("trust"))
    lines = [line.strip() for line in render(device).splitlines()]
    for line in (
        "mls qos map cos-dscp 0 8 16 24 32 46 48 56",
        "mls qos srr-queue output cos-map queue 1 threshold 3 5",
        "mls qos srr-queue output cos-map queue 2 threshold 3 3 6 7",
        "mls qos srr-queue output cos-map queue 3 threshold 3 2 4",
        "mls qos srr-queue output cos-map queue 4 threshold 2 1",
        "mls qos srr-queue output cos-map queue 4 threshold 3 0",
        "mls qos srr-queue output dscp-map queue 1 threshold 3 40 41 42 43 44 45 46 47",
        "mls qos srr-queue output dscp-map queue 4 threshold 1 8",
        "mls qos queue-set output 1 threshold 3 36 77 100 318",
        "mls qos queue-set output 2 buffers 16 6 17 61",
        "mls qos",
        "srr-queue bandwidth share 10 10 60 20",
        "queue-set 2",
        "priority-queue out",
        "mls qos trust cos",
        "auto qos voip trust",
    ):
        assert line in lines
    assert parse_config(render(device), device.hardware) == device
    apply_config(device, "interface gi1/0/15\nno auto qos voip")
    assert port_lines("") == [line.strip() for line in render_interface(device, PORT).splitlines()[1:]]
    assert "mls qos" in render(device).splitlines()


def test_auto_qos_for_a_phone_polices_it_and_keeps_earlier_lines() -> None:
    device = configured_switch(
        "mls qos queue-set output 2 buffers 25 25 25 25\nmls qos map cos-dscp 0 8 16 24 32 40 48 57\n"
        + AUTO_QOS.format("cisco-phone")
    )
    text = render(device)
    assert "mls qos map cos-dscp 0 8 16 24 32 40 48 57\n" in text
    assert " service-policy input AutoQoS-Police-CiscoPhone\n" in text
    assert "  police 320000 8000 exceed-action policed-dscp-transmit\n" in text
    assert "  police 32000 8000 exceed-action policed-dscp-transmit\n" in text
    assert "mls qos map policed-dscp 24 26 46 to 0\n" in text
    assert " mls qos trust device cisco-phone\n" in text
    assert parse_config(text, device.hardware) == device
    lines = undo_lines(render(configured_switch("")), text, device.hardware)
    apply_config(device, "\n".join(lines))
    assert device == configured_switch("")


def test_global_line_below_an_interface_leaves_interface_mode() -> None:
    device = configured_switch("interface gi1/0/15\nqueue-set 2\nmls qos\nmls qos rewrite ip dscp\n")
    assert device.switch is not None
    assert device.switch.enabled
    with pytest.raises(IosError, match="Incomplete"):
        configured_switch("interface gi1/0/15\nmls qos cos\n")


def test_new_vlan_of_a_port_is_created() -> None:
    session = ConfigSession(configured_switch(""))
    for line in ("interface gi1/0/1", "switchport access vlan 77"):
        session.execute(line)
    assert session.notices == ["% Access VLAN does not exist. Creating vlan 77"]
    assert "vlan 77" in render(session.device).splitlines()


def test_configuration_sent_to_the_data_plane() -> None:
    compiled = compile_device(
        configured_switch(
            THE_FIX + "mls qos map dscp-mutation M 0 to 8\ninterface gi1/0/2\nmls qos dscp-mutation Other\n"
        )
    )
    switch = compiled["switch"]
    assert (switch["qos"], switch["rewrite_ip_dscp"]) == (True, True)
    assert switch["maps"]["dscp_output_q"][46] == [1, 1]
    assert switch["maps"]["dscp_output_q"][0] == [2, 1]
    assert switch["queue_sets"][0]["thresholds"][1] == {"t1": 200, "t2": 200, "reserved": 50, "maximum": 400}
    assert switch["maps"]["dscp_mutation"]["M"][:2] == [8, 1]
    assert compiled["interfaces"]["GigabitEthernet1/0/15"]["switch"] == {
        "trust": None,
        "default_cos": 0,
        "cos_override": False,
        "dscp_mutation": None,
        "shape": [0, 0, 0, 0],
        "share": [30, 70, 1, 1],
        "limit": 70,
        "priority_queue": False,
        "queue_set": 1,
        "vlan_based": False,
        "switchport": None,
        "speed_bps": 100_000_000,
    }
    assert compiled["interfaces"]["GigabitEthernet1/0/1"]["switch"]["trust"] == "dscp"
    # A name without a map changes nothing.
    assert compiled["interfaces"]["GigabitEthernet1/0/2"]["switch"]["dscp_mutation"] is None
    assert compiled["interfaces"]["GigabitEthernet1/0/2"]["switch"]["switchport"] == {"mode": "access", "vlan": 1}


def test_policers_are_compiled() -> None:
    text = BASE + "policy-map Other\nclass Voice\npolice 1000000 8000 exceed-action policed-dscp-transmit\n"
    policies = compile_device(configured_switch(text))["policy_maps"]
    (own,) = policies["Other"]["classes"]
    assert (own["police"]["cir"], own["police"]["bc"]) == ({"bps": 1_000_000}, {"bytes": 8000})
    assert own["police"]["exceed"] == [{"action": "policed-dscp-transmit"}]
    (shared,) = policies["Marked"]["classes"]
    assert (shared["police"], shared["police_aggregate"], shared["trust"]) == (None, "Used", None)
