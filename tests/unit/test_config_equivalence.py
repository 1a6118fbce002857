"""Active against requested configuration, compared by meaning."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_router import FakeRouter, type_lines
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject, DrawFn

from ios_strategies import devices
from levels import every_nth, value_by_level
from qoslab.errors import IosError
from qoslab.ios.commands.access_list import access_list_block
from qoslab.ios.commands.class_map import class_map_block
from qoslab.ios.commands.ipv6_access_list import ipv6_access_list_block
from qoslab.ios.commands.policy_map import policy_map_block, policy_order
from qoslab.ios.device_config.config_equivalence import configuration_differences
from qoslab.ios.device_config.normalise import fill_in_defaults
from qoslab.ios.model.device import Device
from qoslab.ios.model.policy import Amount, PolicyClass, PolicyMap, QueueLimit
from qoslab.ios.parse import apply_config, parse_config
from qoslab.ios.running_config import render
from qoslab.model.experiment import Topology
from qoslab.plan import Options, make_plan
from qoslab.platforms import MODELS
from qoslab.platforms.startup import router_hardware, startup_config
from qoslab.run.task import make_task
from qoslab.schema import load_sweep

ASKED = """\
class-map match-any Voice
 match dscp ef
 match access-group 101
policy-map Child
 class Voice
  police 2000000 10000 conform-action transmit exceed-action drop
policy-map Edge
 class class-default
  shape average 4000000
  service-policy Child
access-list 101 permit udp any any range 16384 32767
access-list 101 permit tcp any any eq 5001
interface FastEthernet0/1
 service-policy output Edge
"""
RUNNING = """\
Building configuration...

Current configuration : 1783 bytes
!
! Last configuration change at 09:12:01 UTC Mon Mar 2 2026 by lab
version 12.4
no service pad
service timestamps log datetime msec
service password-encryption
!
hostname edge-7
!
boot-start-marker
boot-end-marker
!
aaa new-model
aaa authentication login default local
!
class-map match-any Voice
 match dscp ef
 match access-group 101
class-map match-any Other
 match protocol rtp audio
!
policy-map Child
 class Voice
   police 2000000 10000
     conform-action transmit
     exceed-action drop
policy-map Edge
 class class-default
  shape average 4000000
  service-policy Child
policy-map Elsewhere
 class Other
  bandwidth 64
  compression header ip rtp
!
crypto pki certificate chain TP-self-signed-1
 certificate self-signed 01
  3082024B 308201B4 A0030201
  \tquit
!
interface FastEthernet0/0
 ip address 10.0.0.1 255.255.255.0
 ip nat inside
 service-policy output Elsewhere
!
interface FastEthernet0/1
 ip address 10.0.1.1 255.255.255.0
 ip virtual-reassembly
 service-policy output Edge
!
interface Dialer1
 no ip address
!
router ospf 1
 network 10.0.0.0 0.0.255.255 area 0
!
access-list 101 permit udp any any range 16384 32767
access-list 101 permit tcp any any eq 5001
access-list 199 permit icmp any any packet-too-big log-input
banner login ^C
interface FastEthernet0/1
 service-policy output Banner
^C
line vty 0 4
 transport preferred none
!
ntp clock-period 17180234
end
"""
"""Configuration of a router in service: most lines are not requested, and many are unknown to the model."""


def test_router_in_service_with_the_requested_configuration_verifies() -> None:
    assert configuration_differences(ASKED, RUNNING) == []


SHORT = """\
policy-m Edge
class class-default
shape av 4000000
class-m match-any Voice
mat acc 101
mat ip dscp 46
no match ip dscp ef
mat dscp ef
policy-m Child
desc two megabits
no desc
class Voice
pol cir 2000000 bc 10000
conf trans
exc drop
policy-m Edge
class class-default
service-p Child
int fa0/1
service-p out Edge
"""


@pytest.mark.parametrize(
    "asked",
    [
        SHORT,
        ASKED.replace("exceed-action drop", ""),
        ASKED.replace("police 2000000 10000", "police rate 2000000 burst 10000"),
        ASKED.replace("average 4000000", "average 4000000 100000 100000"),
        "interface fa 0/1\n ip virtual-reassembly\nrouter ospf 1\n  network 10.0.0.0   0.0.255.255 area 0\n",
        "no policy-map Gone\nno ip cef distributed\ninterface f0/0\n no service-policy input\n",
        "",
    ],
    ids=["short", "default action", "other form", "bursts spelled out", "unknown lines", "nothing there", "nothing"],
)
def test_equivalent_spellings_pass_verification(asked: str) -> None:
    assert configuration_differences(asked, RUNNING) == []


@pytest.mark.parametrize(
    ("now", "instead", "message"),
    [
        (
            "police 2000000 10000",
            "police 2000001 10000",
            "policy-map Child, class Voice: configured `police 2000000 10000`, but `police 2000001 10000` is active",
        ),
        (
            "police 2000000 10000",
            "police 2000000 10001",
            "policy-map Child, class Voice: configured `police 2000000 10000`, but `police 2000000 10001` is active",
        ),
        (
            "police 2000000 10000",
            "police 2000000 10000 pps",
            "policy-map Child, class Voice: configured `police 2000000 10000`, but `police 2000000 10000 pps` is "
            "active",
        ),
        (
            "exceed-action drop",
            "exceed-action transmit",
            "policy-map Child, class Voice, police: `exceed-action transmit` is active, but was not configured",
        ),
        (
            " service-policy output Edge\n",
            "",
            "interface FastEthernet0/1: configured `service-policy output Edge`, but no such line is active",
        ),
        (
            " service-policy output Edge\n",
            " service-policy output Elsewhere\n",
            "interface FastEthernet0/1: configured `service-policy output Edge`, "
            "but `service-policy output Elsewhere` is active",
        ),
        (
            "  service-policy Child\n",
            "",
            "policy-map Edge, class class-default: configured `service-policy Child`, but no such line is active",
        ),
        (
            "  shape average 4000000\n",
            "  shape peak 4000000\n",
            "policy-map Edge, class class-default: configured `shape average 4000000`, but `shape peak 4000000` is "
            "active",
        ),
        (
            "match-any Voice",
            "match-all Voice",
            "configured `class-map match-any Voice`, but `class-map match-all Voice` is active",
        ),
        (
            " match dscp ef\n",
            " match dscp ef\n match cos 5\n",
            "class-map Voice: `match cos 5` is active, but was not configured",
        ),
        (
            "eq 5001\n",
            "eq 5001\naccess-list 101 deny ip any any\n",
            "access-list 101: `access-list 101 deny ip any any` is active, but was not configured",
        ),
        (
            "access-list 101 permit tcp any any eq 5001\n",
            "",
            "access-list 101: configured `access-list 101 permit tcp any any eq 5001`, but no such line is active",
        ),
    ],
)
def test_differences_are_reported_in_ios_syntax(now: str, instead: str, message: str) -> None:
    assert now in RUNNING
    found = configuration_differences(ASKED, RUNNING.replace(now, instead))
    assert message in found, found


def test_order_of_classes_matters() -> None:
    classes = "class-map match-all A\n match dscp ef\nclass-map match-all B\n match cos 1\n"
    asked = classes + "policy-map P\n class B\n  set dscp af11\n class A\n  set dscp af12\n"
    running = f"version 12.4\n{classes}policy-map P\n class A\n  set dscp af12\n class B\n  set dscp af11\nend\n"
    assert configuration_differences(asked, running) == [
        "policy-map P: configured in the order `class B`, `class A`, active in the order `class A`, `class B`"
    ]


def test_verification_permits_earlier_configuration() -> None:
    before = "version 12.4\naccess-list 10 permit 10.0.0.1\npolicy-map P\n class class-default\n  set dscp ef\nend\n"
    asked = "access-list 10 permit 10.0.0.2\npolicy-map P\n class class-default\n  set cos 1\n"
    now = before.replace("0.1\n", "0.1\naccess-list 10 permit 10.0.0.2\n").replace("ef\n", "ef\n  set cos 1\n")
    assert configuration_differences(asked, now, before=before) == []
    assert configuration_differences(asked, now) == [
        "policy-map P, class class-default: `set dscp ef` is active, but was not configured",
        "access-list 10: `access-list 10 permit 10.0.0.1` is active, but was not configured",
    ]
    assert configuration_differences(asked, before, before=before) == [
        "policy-map P, class class-default: configured `set cos 1`, but no such line is active",
        "access-list 10: configured `access-list 10 permit 10.0.0.2`, but no such line is active",
    ]


def test_removals_are_compared_with_the_running_configuration() -> None:
    asked = "interface FastEthernet0/0\n no ip nat inside\n no service-policy output Elsewhere\nno ip cef\n"
    assert configuration_differences(asked, RUNNING) == [
        "interface FastEthernet0/0: configured `no ip nat inside`, but `ip nat inside` is active",
        "configured `no ip cef`, but `ip cef` is active",
        "interface FastEthernet0/0: `service-policy output Elsewhere` is active, but was not configured",
    ]


def test_missing_interface_is_reported() -> None:
    (found, _) = configuration_differences("interface FastEthernet0/7\n description spare\n", RUNNING)
    assert found.startswith("configured `interface FastEthernet0/7`, but no such line is active")


SWITCH = """\
mls qos
mls qos map policed-dscp 46 to 0
mls qos srr-queue output dscp-map queue 2 threshold 3 48 49
mls qos queue-set output 2 buffers 30 50 10 10
interface gi1/0/15
 srr-queue bandwidth share 30 70 1 1
 queue-set 2
 priority-queue out
"""


@pytest.mark.sample(4)
@pytest.mark.parametrize("made", ["Loopback0", "Null0", "Vlan1", "Tunnel0", "Port-channel1", "Dialer1", "BVI1"])
def test_interface_created_by_a_configuration_causes_no_conflict(made: str) -> None:
    there = RUNNING.replace("interface Dialer1\n", f"interface {made}\n", 1)
    assert f"interface {made}\n" in there
    assert configuration_differences(ASKED, there) == []
    other = ASKED.replace("shape average 4000000", "shape average 5000000")
    assert configuration_differences(other, there) == configuration_differences(other, RUNNING) != []


def test_switch_configuration_is_verified() -> None:
    router = FakeRouter("3750G")
    apply_config(router.device, SWITCH)
    printed = type_lines(router, "terminal length 0\nshow running-config\n")
    printed = printed.partition("show running-config\n")[2].rpartition("R1#")[0]
    printed = printed.replace("!\ninterface", "!\nspanning-tree mode pvst\n!\ninterface", 1)
    assert configuration_differences(SWITCH, printed, family="switch") == []
    other = printed.replace("share 30 70 1 1", "share 30 60 1 1").replace("46 to 0", "46 to 8")
    assert configuration_differences(SWITCH, other, family="switch") == [
        "mls qos map policed-dscp: configured `mls qos map policed-dscp 46 to 0`, but no such line is active",
        "mls qos map policed-dscp: `mls qos map policed-dscp 46 to 8` is active, but was not configured",
        "interface GigabitEthernet1/0/15: configured `srr-queue bandwidth share 30 70 1 1`, "
        "but `srr-queue bandwidth share 30 60 1 1` is active",
    ]


def shipped_configurations() -> list[tuple[str, str, Topology, str]]:
    """Return every configuration of the experiments, once for each arm: name, router, topology, text."""
    found = []
    for file in sorted((Path(__file__).parents[2] / "experiments").glob("*.yml"))[:: every_nth(9)]:
        arms = {cell.arm: cell for cell in make_plan(load_sweep(file, {}), Options()).cells}
        for arm, cell in arms.items():
            task = make_task(cell, {}, 1)
            for router, text in task.configurations.items():
                found.append((f"{file.stem} {arm}", router, task.experiment.topology, text))
    return found


def test_shipped_configurations_are_missing_before_and_verify_after() -> None:
    configurations = shipped_configurations()
    assert len(configurations) > 30 // every_nth(5)
    login = {"user": "lab", "password": "lab", "enable": "lab"}
    for name, router, topology, text in configurations:
        device = parse_config(startup_config(topology, router, login), router_hardware(topology, router))
        before = render(device)
        apply_config(device, text)
        family = device.hardware.family
        assert configuration_differences(text, render(device), before=before, family=family) == [], name
        if render(device) != before:
            assert configuration_differences(text, before, before=before, family=family) != [], name


# Any policy.


def policy_text(device: Device, classes: Sequence[str] = ()) -> str:
    """Return the lines of a device that define its policies, in the form of the running configuration.

    `classes` are the class-maps in a different order.
    """
    blocks = [
        ipv6_access_list_block(each) if each.kind == "ipv6" else access_list_block(each)
        for each in device.access_lists.values()
    ]
    blocks += [class_map_block(device.class_maps[name]) for name in classes or device.class_maps]
    blocks += [policy_map_block(device, device.policy_maps[name]) for name in policy_order(device)]
    for interface in device.interfaces.values():
        lines = [f"interface {interface.name}"]
        if interface.service_policy_input is not None:
            lines.append(f" service-policy input {interface.service_policy_input}")
        if interface.service_policy_output is not None:
            lines.append(f" service-policy output {interface.service_policy_output}")
        if len(lines) > 1:
            blocks.append(lines)
    return "".join(f"{line}\n" for block in blocks for line in block)


ABBREVIATED = (
    (r"^class-map match-all ", "class-map "),
    (r"^class-map ", "class-m "),
    (r"^policy-map ", "policy-m "),
    (r"^interface FastEthernet", "int fa"),
    (r"^interface Serial", "int s "),
    (r"^( *)service-policy ", r"\1service-p "),
    (r"^( *)match ", r"\1mat "),
    (r"^( *)police cir (\d+) bc (\d+)$", r"\1pol \2 \3"),
    (r"^( *)police cir (\d+)$", r"\1police rate \2 bps"),
    (r"^( *)conform-action ", r"\1conf "),
    (r"^( *)shape average ", r"\1shap av "),
    (r"^( *)bandwidth percent ", r"\1band per "),
    (r"^( *)priority (\d+)$", r"\1prio \2"),
    (r"^( *)random-detect$", r"\1random-det prec"),
    (r"^ +", ""),
    (r"^( *)(\S+) ", r"\1\2    "),
)
"""Abbreviations of lines, and other spellings."""


@st.composite
def respell_lines(draw: DrawFn, device: Device) -> str:
    """Return the policies of a device as an engineer types them: any abbreviations, class-maps in any order."""
    text = policy_text(device, draw(st.permutations(list(device.class_maps))))
    if draw(st.booleans()):
        # The actions of a policer on its own line.
        text = re.sub(
            r"\n {5}(conform|exceed|violate)-action (transmit|drop|set-\S+ \S+)$(?!\n {5}\1)",
            r" \1-action \2",
            text,
            flags=re.MULTILINE,
        )
    chosen = draw(st.sets(st.sampled_from(ABBREVIATED)))
    lines = []
    for line in text.splitlines():
        for pattern, other in ABBREVIATED:
            if (pattern, other) in chosen and "description" not in line and "remark" not in line:
                line = re.sub(pattern, other, line)
        lines.append(line)
    return "".join(f"{line}\n" for line in lines)


CLUTTER = ("no service pad\n", "router ospf 1\n network 10.0.0.0 0.0.0.255 area 0\n", "ip nat pool x 10.0.0.1\n")


@given(st.data())
@settings(
    max_examples=value_by_level(short=3, long=40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_any_accepted_spelling_passes_verification(data: DataObject) -> None:
    device = replace(data.draw(devices()), banner_motd=None)
    asked = data.draw(respell_lines(device))
    router = Device(device.hardware)
    try:
        apply_config(router, asked)
    except IosError:
        assume(False)
    clutter = "".join(data.draw(st.lists(st.sampled_from(CLUTTER))))
    running = render(router).replace("!\nhostname", f"!\n{clutter}hostname")
    assert configuration_differences(asked, running) == []
    # As in the output of a router that fills in omitted values. The 4 ms burst of a slow shaper is less than the
    # minimum that can be typed.
    printed = render(fill_in_defaults(router))
    try:
        parse_config(printed, router.hardware)
    except IosError:
        return
    assert configuration_differences(asked, printed) == []


def changes(policy: PolicyMap, each: PolicyClass) -> list[PolicyClass | None]:
    """Yield the class with each possible change of one value; None: without the class."""
    found: list[PolicyClass | None] = [None]
    if each.police is not None:
        police = each.police
        found.append(replace(each, police=replace(police, cir=Amount(police.cir.number + 1, police.cir.unit))))
        found.append(replace(each, police=None))
        if police.bc is not None:
            found.append(replace(each, police=replace(police, bc=Amount(police.bc.number + 1, police.bc.unit))))
        for colour in ("conform", "exceed"):
            actions = police.actions(colour)  # type: ignore[arg-type]
            name = "drop" if actions and actions[0].action == "transmit" else "transmit"
            if actions is not None:
                changed = (replace(actions[0], action=name, value=None),)  # type: ignore[arg-type]
                found.append(replace(each, police=police.with_actions(colour, changed)))  # type: ignore[arg-type]
    if each.shape is not None:
        rate = Amount(each.shape.rate.number + 1, each.shape.rate.unit)
        found.append(replace(each, shape=replace(each.shape, rate=rate)))
    if each.shape_buffers is not None:
        found.append(replace(each, shape_buffers=each.shape_buffers + 1))
    if each.bandwidth is not None:
        found.append(replace(each, bandwidth=replace(each.bandwidth, number=each.bandwidth.number + 1)))
    if each.queue_limit is not None:
        found.append(replace(each, queue_limit=QueueLimit(each.queue_limit.number + 1)))
    if each.marks:
        mark = each.marks[0]
        found.append(replace(each, marks=(replace(mark, value=(mark.value + 1) % 8), *each.marks[1:])))
    if each.service_policy is not None:
        found.append(replace(each, service_policy=None))
    return found


def changed_devices(device: Device) -> list[Device]:
    """Yield a device with each possible change of one value."""
    found = []
    for policy in device.policy_maps.values():
        for each in policy.classes:
            for other in changes(policy, each):
                classes = (other if one is each else one for one in policy.classes)
                made = device.copy()
                kept = tuple(one for one in classes if one is not None)
                made.policy_maps[policy.name] = replace(policy, classes=kept)
                found.append(made)
    for name in device.interfaces:
        for field in ("service_policy_input", "service_policy_output"):
            if getattr(device.interfaces[name], field) is not None:
                made = device.copy()
                setattr(made.interfaces[name], field, None)
                found.append(made)
    for class_map in device.class_maps.values():
        made = device.copy()
        match: Any = "any" if class_map.match == "all" else "all"
        made.class_maps[class_map.name] = replace(class_map, match=match)
        found.append(made)
        if class_map.criteria:
            made = device.copy()
            made.class_maps[class_map.name] = replace(class_map, criteria=class_map.criteria[1:])
            found.append(made)
    return [made for made in found if fill_in_defaults(made) != fill_in_defaults(device)]


@given(st.data())
@settings(
    max_examples=value_by_level(short=3, long=40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_any_single_change_is_found(data: DataObject) -> None:
    device = replace(data.draw(devices()), banner_motd=None)
    asked = policy_text(device)
    assert configuration_differences(asked, render(device)) == []
    others = changed_devices(device)
    assume(others)
    other = data.draw(st.sampled_from(others))
    assert configuration_differences(asked, render(other)) != []


def test_configurations_of_all_virtual_models_pass_verification() -> None:
    for name in ("3725", "2811"):
        running = render(parse_config(ASKED, MODELS[name].hardware()))
        assert configuration_differences(ASKED, running) == []
