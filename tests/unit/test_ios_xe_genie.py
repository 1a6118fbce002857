"""Show commands of IOS-XE: from the configurations behind its recordings, Genie parses the values of the recordings.

Counters and rates are excluded. The reasons of other differences are in `docs/reference/router.md`.
"""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any, Literal

import genie.libs.parser.iosxe
import pytest
from genie.libs.parser.iosxe.show_policy_map import ShowPolicyMapInterface

from qoslab.explain.packet import parse_packet
from qoslab.explain.simulator_query import ask_simulator
from qoslab.explain.subject import pasted_subject
from qoslab.ios.compile import compile_device, engine_config
from qoslab.ios.show.policy_interface import show_policy_map_interface
from qoslab.policy.pasted_configuration import read_configuration

RECORDED = Path(genie.libs.parser.iosxe.__file__).parent / "tests"
COUNTERS = {
    *("packets", "bytes", "rate", "pkts_output", "bytes_output", "queue_depth", "total_drops", "no_buffer_drops"),
    *("drop_rate_bps", "offered_rate_bps", "flowdrops", "bps", "mean_queue_depth", "exceed_drops", "packets_marked"),
    *("marker_statistics", "transmitted_packets", "transmitted_bytes", "random_drop_packets", "random_drop_bytes"),
    *("tail_drop_packets", "tail_drop_bytes", "match_stats"),
}
OTHER_PORT = "interface GigabitEthernet0/9/0\n ip address 10.1.0.1 255.255.255.0\n"
SHORT_PACKETS = f"""\
version 17.9
class-map match-all class1
 match packet length min 100 max 300
policy-map mypolicy
 class class1
  set qos-group 20
interface FastEthernet4/1/1
 ip address 10.0.0.1 255.255.255.0
 service-policy input mypolicy
{OTHER_PORT}"""
NO_ACTION = f"""\
version 17.9
policy-map TEST
 class class-default
interface GigabitEthernet0/0/1
 ip address 10.0.0.1 255.255.255.0
 service-policy input TEST
{OTHER_PORT}"""
POLICED_INPUT = f"""\
version 17.9
policy-map police-in
 class class-default
  police cir 445500 bc 83619 conform-action transmit exceed-action drop
interface GigabitEthernet0/1/4
 ip address 10.0.0.1 255.255.255.0
 service-policy input police-in
{OTHER_PORT}"""
AGGREGATE = """\
version 17.9
ip access-list extended VLAN51_QoS
 permit ip any any
class-map match-all VLAN51_QoS
 match access-group name VLAN51_QoS
policy-map VLAN51_QoS
 class VLAN51_QoS
  police 8000 1000 conform-action transmit exceed-action drop
interface GigabitEthernet0/0/0
 ip address 10.0.0.1 255.255.255.0
 service-policy output VLAN51_QoS
"""

TEN_GIGABIT = """\
version 17.9
class-map match-any cm_dscp_class1
 match ip dscp ef
class-map match-any cm_dscp_att_ncp
 match ip dscp cs6 cs7
class-map match-any cm_dscp_class2
 match ip dscp af31 af32
class-map match-any cm_dscp_class3
 match ip dscp af21 af22
policy-map pm_queuing
 class cm_dscp_class1
  priority
 class cm_dscp_att_ncp
  bandwidth remaining percent 5
 class cm_dscp_class2
  bandwidth remaining percent 25
 class cm_dscp_class3
  bandwidth remaining percent 25
 class class-default
  bandwidth remaining percent 25
interface TenGigabitEthernet0/0/0
 ip address 10.0.0.1 255.255.255.0
 load-interval 60
 service-policy output pm_queuing
"""
SHAPED = """\
version 17.9
policy-map shape-out
 class class-default
  shape average 500000
interface GigabitEthernet0/1/1
 ip address 10.0.0.1 255.255.255.0
 service-policy output shape-out
"""
LEVELS = """\
version 17.9
ip access-list extended sec
 permit ip any any
class-map match-all vlan100
 match vlan 100
class-map match-all vlan101
 match vlan 101
class-map match-all sec
 match access-group name sec
class-map match-all ef
 match dscp ef
policy-map bottom
 class ef
  bandwidth remaining percent 15
 class class-default
  bandwidth remaining percent 85
  fair-queue
  queue-limit 512
  random-detect dscp-based
  random-detect exponential-weighting-constant 4
  random-detect dscp default 34 62
  random-detect dscp af31 32 64
policy-map middle
 class sec
  shape average 8000000
  bandwidth remaining percent 3
  service-policy bottom
 class class-default
  shape average 8000000
policy-map top
 class vlan100
  shape average 8000000
  bandwidth remaining ratio 1000
  service-policy middle
 class vlan101
  shape average 8000000
  bandwidth remaining ratio 1000
  service-policy middle
 class class-default
  shape average 10000000
  bandwidth remaining ratio 1
interface GigabitEthernet0/0/0
 ip address 10.0.0.1 255.255.255.0
 service-policy output top
"""
ACCOUNTED = """\
version 17.9
ip access-list extended accssgroup1
 permit ip any any
class-map match-any cm1
 match access-group name accssgroup1
class-map match-any cm2
 match dscp af41 af42
class-map match-any cm3
 match ip dscp af31 af32
 match dscp af31 af32
class-map match-any cm4
 match ip dscp af21 af22
 match dscp af21 af22
class-map match-any cm5
 match dscp af11 af12
policy-map policy2
 class cm1
  bandwidth remaining percent 1 account user-defined 4
  queue-limit 525000 bytes
  random-detect dscp-based
  random-detect dscp cs6 percent 43 50
  set dscp cs6
 class cm2
  bandwidth remaining percent 25 account user-defined 4
  queue-limit 312500 bytes
  set dscp af41
 class cm3
  bandwidth remaining percent 10 account user-defined 4
  queue-limit 312500 bytes
  random-detect dscp-based
  random-detect dscp af31 percent 43 50
  set dscp af31
 class cm4
  bandwidth remaining percent 40 account user-defined 4
  queue-limit 312500 bytes
  random-detect dscp-based
  random-detect dscp af21 percent 43 50
  set dscp af21
 class cm5
  bandwidth remaining percent 5 account user-defined 4
  queue-limit 312500 bytes
  random-detect dscp-based
  random-detect dscp af11 percent 25 50
  set dscp af11
 class class-default
  bandwidth remaining percent 19 account user-defined 4
  queue-limit 312500 bytes
  random-detect dscp-based
  random-detect dscp default percent 37 50
  set dscp default
policy-map policy1
 class class-default
  shape average 50000000 account user-defined 4
  bandwidth remaining ratio 1 account user-defined 4
  service-policy policy2
interface GigabitEthernet0/0/3
 no shutdown
interface GigabitEthernet0/0/3.3001
 encapsulation dot1Q 3001
 ip address 10.0.0.1 255.255.255.0
 service-policy output policy1
"""
POLICED = """\
version 17.9
ip access-list extended VLAN51_QoS
 permit ip any any
class-map match-all VLAN51_QoS
 match access-group name VLAN51_QoS
policy-map VLAN51_QoS
 class VLAN51_QoS
  shape average 80000 320 0
  police cir 8000000 bc 4000 be 1000 conform-action transmit exceed-action transmit violate-action drop
interface TenGigabitEthernet0/3/0
 ip address 10.0.0.1 255.255.255.0
 service-policy output VLAN51_QoS
"""


def screen(text: str, direction: Literal["input", "output"] = "output") -> str:
    """`show policy-map interface` of a router with this configuration, before a packet comes."""
    subject = pasted_subject(read_configuration(text, routes=True), "input", None)
    ends = "10.0.0.9:4000 > 10.1.0.2:5000" if direction == "input" else "10.0.0.9:4000 > 10.0.0.2:5000"
    passage = ask_simulator(subject, parse_packet(f"udp {ends} 200 B"))
    state = passage.found[direction]
    names = [name for name, each in subject.device.interfaces.items() if getattr(each, f"service_policy_{direction}")]
    assert state is not None and len(names) == 1
    counters: Any = {"interfaces": {names[0].partition(".")[0]: state["before"]["interface"]}}
    return show_policy_map_interface(engine_config(compile_device(subject.device)), counters)


def without_counters(value: Any) -> Any:
    if not isinstance(value, dict):
        # If both shape and bandwidth account, either line may come last.
        return value.lower() if value == "Enabled" else value
    return {key: without_counters(each) for key, each in value.items() if key not in COUNTERS}


def recorded(name: str) -> Any:
    parser, _, number = name.partition(" ")
    made = runpy.run_path(str(RECORDED / parser / f"cli/equal/golden_output{number}_expected.py"))
    return without_counters(made["expected_output"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ShowPolicyMapInterfaceOutput 22", TEN_GIGABIT),
        ("ShowPolicyMapInterfaceOutput 10", SHAPED),
        ("ShowPolicyMapInterface 28", LEVELS),
        ("ShowPolicyMapInterface 25", ACCOUNTED),
        ("ShowPolicyMapInterfaceOutput 11", POLICED),
        ("ShowPolicyMapTargetClass 16", AGGREGATE),
    ],
    ids=["strict", "shaped", "levels", "accounted", "policed", "aggregate"],
)
def test_genie_parses_the_recorded_values(name: str, text: str) -> None:
    found = ShowPolicyMapInterface(device=None).cli(output=screen(text))
    [policies] = without_counters(found).values()
    [expected] = recorded(name).values()
    expected.pop("service_group", None)
    assert policies == expected


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ShowPolicyMapInterface 7", SHORT_PACKETS),
        ("ShowPolicyMapInterfaceInput 13", NO_ACTION),
        ("ShowPolicyMapInterfaceInput 12", POLICED_INPUT),
    ],
    ids=["short packets", "no action", "policed"],
)
def test_genie_reads_the_same_of_input_policies(name: str, text: str) -> None:
    found = ShowPolicyMapInterface(device=None).cli(output=screen(text, "input"))
    [policies] = without_counters(found).values()
    [expected] = recorded(name).values()
    [(policy, shown)] = policies["service_policy"]["input"]["policy_name"].items()
    [(own, classes)] = expected["service_policy"]["input"]["policy_name"].items()
    # The recordings of some policies end before class-default.
    assert policy == own and {key: shown["class_map"][key] for key in classes["class_map"]} == classes["class_map"]


MIXED_LIMITS = """\
version 17.9
class-map match-all prec1
 match precedence 1
class-map match-all prec2
 match precedence 2
class-map match-all prec3
 match precedence 3
policy-map wred
 class prec1
  shape average 1000000000 10000000 10000000
  queue-limit 640 packets
 class prec2
  shape average 20000000
  queue-limit 5120 bytes
 class prec3
  bandwidth 300000
  shape average 1000000000
  queue-limit 10 ms
  random-detect
  random-detect precedence 3 2 ms 5 ms
interface TenGigabitEthernet0/0/15
 ip address 10.0.0.1 255.255.255.0
 service-policy output wred
"""


def test_queue_limits_are_printed_in_packets_bytes_and_ms() -> None:
    """The values are those of `iosxe/rv1` of Genie's sources, which its package lacks."""
    lines = [" ".join(line.split()) for line in screen(MIXED_LIMITS).splitlines()]
    limits = [line for line in lines if line.startswith(("queue limit", "shape", "bandwidth"))]
    assert limits == [
        "queue limit 640 packets",
        "shape (average) cir 1000000000, bc 10000000, be 10000000",
        "queue limit 5120 bytes",
        "shape (average) cir 20000000, bc 80000, be 80000",
        "queue limit 10 ms/ 375000 bytes",
        "shape (average) cir 1000000000, bc 4000000, be 4000000",
        "bandwidth 300000 kbps",
        "queue limit 41666 packets",
    ]
    least = [int(line.split()[4]) for line in lines if line.endswith("187500 1/10")]
    assert least == [93750, 105468, 117187, 75000, 140625, 152343, 164062, 175781]
