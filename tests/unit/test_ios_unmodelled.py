"""Lines of IOS 12.4 and 15.x outside the model: accepted, or refused with a reason, never as syntax errors."""

from __future__ import annotations

import pytest

from qoslab.ios.cli.grammar import CliError
from qoslab.ios.config import ConfigSession
from qoslab.ios.device_config.running_config_parser import described_hardware
from qoslab.ios.model.device import Device, Generation, Hardware
from qoslab.ios.parse import parse_config
from qoslab.ios.running_config import render

ROUTER = """\
class-map match-all A
 match ip dscp ef
class-map match-any B
 match mpls experimental topmost 3
 match fr-dlci 16
 match fr-de
 match atm-clp
 match discard-class 2
 match cos inner 3
 match vlan inner 20
 match source-address mac 0000.0c12.3456
 match packet tunnel length max 100
 match protocol ms-office-365
 match protocol webex-meeting
 match protocol dropbox
 match protocol attribute business-relevance business-relevant
 match protocol attribute traffic-class signaling
 match protocol http content-encoding gzip
 match protocol rtp video
 match not protocol kazaa2
 match ip rtp 16384 16383
policy-map P
 class A
  set mpls experimental imposition 4
  set mpls experimental topmost 4
  set fr-de
  set atm-clp
  set ip tos 8
  set discard-class 1
  set dscp cos
  set dscp cos table T
  set ip dscp qos-group
  set precedence cos
  set cos dscp
  set cos-inner 2
  set qos-group dscp
  set dscp tunnel ef
  police rate 2000000 bps burst 62500 bytes
  police rate 2000000 bps burst 62500 bytes peak-rate 4000000 bps peak-burst 125000 bytes
  police rate 500 pps
  police rate 500 cps
  police 256000 8000 16000 conform-action transmit exceed-action set-frde-transmit
  police cir 256000 conform-action set-mpls-exp-imposition-transmit 3 exceed-action drop
  police 256000 8000 16000
   exceed-action set-clp-transmit
   violate-action set-discard-class-transmit 2
   conform-action set-mpls-exp-topmost-transmit 3
   conform-color A
  random-detect
  random-detect discard-class-based
  random-detect discard-class 2 20 30
  random-detect cos-based
  random-detect ecn
  fair-queue
  shape average 256000
  shape fr-voice-adapt
  estimate bandwidth drop-one-in 100
  netflow-sampler S
  header-compression ip rtp
policy-map type queueing Q
 class class-default
policy-map type inspect Q
policy-map type control-plane Q
policy-map type performance-monitor Q
class-map type inspect match-any Q
class-map type port-filter Q
table-map T
 map from 3 to 24
interface FastEthernet0/0
 full-duplex
 half-duplex
 ip rsvp bandwidth 64 16
 ip rsvp resource-provider none
 auto qos voip trust
 auto discovery qos
 ip nbar protocol-discovery
 service-policy type queueing output Q
 service-policy type inspect Q
 service-policy history
 random-detect dscp-based
 traffic-shape adaptive 32000
 fair-queue tos
 ip rtp reserve 16384 100 200
 multilink-group 1
 priority-queue out
 mls qos trust dscp
 wrr-queue bandwidth 10 20
 bgp-policy destination ip-prec-map
 rate-limit input qos-group 2 64000 8000 8000 conform-action transmit exceed-action drop
 keepalive 5
interface FastEthernet0/0.20
 encapsulation dot1Q 20
 traffic-shape rate 128000
 traffic-shape group 101 128000
 rate-limit output 64000 8000 8000 conform-action transmit exceed-action drop
 fair-queue
interface range FastEthernet0/0 - 1
 load-interval 60
interface range macro USERS
define interface-range USERS FastEthernet0/0 - 1
interface Serial0/0
 service-module t1 timeslots 1-24
 frame-relay de-group 1 16
interface Serial0/0.16 point-to-point
 frame-relay interface-dlci 16
ip sla monitor 3
 type echo protocol ipIcmpEcho 10.1.0.2
 frequency 20
ip sla monitor 4
 type http operation get url http://10.1.0.2
 frequency 60
ip sla monitor reaction-configuration 3 connection-loss-enable
ip sla 5
 udp-jitter 10.1.0.2 20000 codec g729a
 frequency 60
 timeout 1000
ip sla 6
 tcp-connect 10.1.0.2 80
ip sla 7
 icmp-echo 10.1.0.2
 history lives-kept 2
 verify-data
ip sla reaction-configuration 7 react timeout
ip rsvp sender-host 10.0.0.2 10.0.0.1 UDP 16384 16384 100 10
ip nbar protocol-pack flash:pp
mac access-list extended M
access-list 701 permit 0000.0c12.3456
mls qos
auto qos
"""
SWITCH = """\
interface range GigabitEthernet1/0/1 - 2
 mls qos trust dscp
interface GigabitEthernet1/0/1
 mls qos trust cos pass-through dscp
 mls qos trust device ip-camera
 mac access-group M in
 auto qos trust dscp
 auto qos classify police
 service-policy type qos input X
 switchport voice vlan 5
 switchport priority extend cos 1
 wrr-queue cos-map 1 2
mac access-list extended M
 permit any any 0x8137 0x0
class-map match-all A
 match ip dscp ef
 match mpls experimental topmost 3
 match source-address mac 0000.0c12.3456
 match protocol rtp audio
policy-map P
 class A
  set mpls experimental imposition 4
  set discard-class 1
  set ip tos 8
  set dscp cos
  queue-buffers ratio 10
  queue-limit dscp ef percent 80
  priority level 1
  bandwidth 100
policy-map type queueing Q
class-map type control subscriber S
table-map T
 map from 3 to 24
monitor session 1 source interface GigabitEthernet1/0/2
ip sla monitor 3
"""


def session(family: str = "router", generation: Generation = "classic") -> ConfigSession:
    """Return a session on a device with a few interfaces."""
    names = ("FastEthernet0/0", "FastEthernet0/1", "Serial0/0")
    if family == "switch":
        names = ("GigabitEthernet1/0/1", "GigabitEthernet1/0/2", "GigabitEthernet1/0/3")
    hardware = Hardware("", names, generation, family="switch" if family == "switch" else "router")
    return ConfigSession(Device(hardware))


def refusal(at: ConfigSession, line: str) -> str:
    """Return the refusal of a line; empty if it is accepted."""
    try:
        at.execute(line)
    except CliError as error:
        return error.message
    return ""


@pytest.mark.parametrize(
    "family, generation, text",
    [("router", "classic", ROUTER), ("router", "hqf", ROUTER), ("switch", "classic", SWITCH)],
    ids=["classic", "hqf", "switch"],
)
def test_unmodelled_lines_are_not_refused_as_syntax_errors(family: str, generation: Generation, text: str) -> None:
    at = session(family, generation)
    refused = {line: refusal(at, line) for line in text.splitlines()}
    typing_errors = ("% Invalid", "% Incomplete", "% Ambiguous")
    assert [line for line, answer in refused.items() if answer.startswith(typing_errors)] == []
    # Others are rules of IOS: requirements and exclusions of a class or an interface.
    assert sum(bool(answer) and not answer.startswith("% Not supported: ") for answer in refused.values()) <= 6


@pytest.mark.parametrize(
    "family, generation, text",
    [("router", "classic", ROUTER), ("router", "hqf", ROUTER), ("switch", "classic", SWITCH)],
    ids=["classic", "hqf", "switch"],
)
def test_no_form_of_an_unmodelled_line_is_refused_with_its_reason(
    family: str, generation: Generation, text: str
) -> None:
    at = session(family, generation)
    others = ("police ", "interface ")  # Their `no` forms need less than the whole line.
    for line in text.splitlines():
        answer = refusal(at, line)
        if answer.startswith("% Not supported: ") and not line.strip().startswith(others):
            negative = refusal(at, line.replace(line.strip(), f"no {line.strip()}"))
            assert negative == answer or "below a line that was refused" in answer, line


@pytest.mark.parametrize(
    "head, line, reason",
    [
        ("interface FastEthernet0/1", "no ip policy", "packets are routed by destination only"),
        ("interface FastEthernet0/1", "no crypto map", "packets are not encrypted"),
        ("interface FastEthernet0/1", "no ip vrf receive", "there is one routing table"),
        ("", "no router ospf 7", "no routing protocol runs"),
        ("", "default router eigrp 9", "no routing protocol runs"),
    ],
)
def test_no_form_of_an_unmodelled_line_needs_no_values(head: str, line: str, reason: str) -> None:
    at = session()
    at.execute(head)
    assert reason in refusal(at, line)
    assert refusal(at, "hostname R7") == ""


@pytest.mark.parametrize("no", ["", "no "])
@pytest.mark.parametrize(
    "line",
    [
        "priority level 2",
        "queue-limit 40 ms",
        "queue-limit 9000 bytes",
        "queue-limit dscp af21 30 packets",
        "bandwidth remaining ratio 5",
    ],
)
def test_later_queueing_lines_are_refused_on_earlier_releases(no: str, line: str) -> None:
    at = session()
    for each in ("class-map A", "match dscp ef", "policy-map P", "class A"):
        at.execute(each)
    assert "introduced with HQF" in refusal(at, no + line)
    assert not refusal(at, "bandwidth 64")


@pytest.mark.parametrize("no", ["", "no "])
@pytest.mark.parametrize(
    "family, generation, head, line, reason",
    [
        (
            "router",
            "classic",
            "interface FastEthernet0/0",
            "ip rtp priority 16384 99 64",
            "RTP priority in a policy-map",
        ),
        ("router", "classic", "", "vlan 10", "switch modules of routers are not modelled"),
        ("router", "classic", "", "ip wccp web-cache", "not redirected to caches"),
        (
            "switch",
            "classic",
            "interface GigabitEthernet1/0/1",
            "service-policy output P",
            "it has queues and no policies",
        ),
    ],
)
def test_line_and_its_no_form_have_one_reason(
    no: str, family: str, generation: Generation, head: str, line: str, reason: str
) -> None:
    at = session(family, generation)
    if head:
        at.execute(head)
    assert reason in refusal(at, no + line)


@pytest.mark.parametrize("generation", ["classic", "hqf"])
@pytest.mark.parametrize(
    "line, no",
    [
        ("random-detect dscp-based", "no random-detect dscp-based"),
        ("random-detect", "no random-detect prec-based"),
        ("queue-limit 40", "no queue-limit 40"),
        ("queue-limit 40", "no queue-limit 40 packets"),
    ],
)
def test_queue_line_is_removed_with_its_values(generation: Generation, line: str, no: str) -> None:
    at = session(generation=generation)
    for each in ("class-map A", "match dscp ef", "policy-map P", "class A", "bandwidth 64"):
        at.execute(each)
    before = render(at.device)
    at.execute(line)
    assert render(at.device) != before
    at.execute(no)
    assert render(at.device) == before


def test_wred_by_dscp_is_not_removed_as_wred_by_precedence() -> None:
    at = session()
    for each in ("class-map A", "match dscp ef", "policy-map P", "class A", "bandwidth 64", "random-detect dscp-based"):
        at.execute(each)
    before = render(at.device)
    at.execute("no random-detect prec-based")
    assert render(at.device) == before


@pytest.mark.parametrize(
    "head, line, reason",
    [
        ("interface FastEthernet0/0", "ip policy route-map X", "routed by destination only"),
        ("", "policy-map type queueing Q", "belongs to other switches"),
        ("", "zone security INSIDE", "not inspected beyond their headers"),
        ("class-map A", "match ip tos 4", "TOS bits other than the precedence are matched as a DSCP"),
    ],
)
def test_refusal_gives_the_reason_of_the_line(head: str, line: str, reason: str) -> None:
    at = session()
    at.execute(head)
    assert reason in refusal(at, line)


def test_macro_of_a_switch_is_refused_as_a_macro() -> None:
    at = session("switch")
    at.execute("interface GigabitEthernet1/0/1")
    assert "macros are not expanded: enter their lines for trust and queues" in refusal(at, "auto qos trust")


@pytest.mark.parametrize(
    "range_, changed",
    [
        ("FastEthernet0/0 - 1", ["FastEthernet0/0", "FastEthernet0/1"]),
        ("FastEthernet 0/0 -1", ["FastEthernet0/0", "FastEthernet0/1"]),
        ("fa0/0-1", ["FastEthernet0/0", "FastEthernet0/1"]),
        ("FastEthernet0/0 - FastEthernet0/1", ["FastEthernet0/0", "FastEthernet0/1"]),
        ("FastEthernet0/1 , Serial0/0", ["FastEthernet0/1", "Serial0/0"]),
        ("Serial0/0", ["Serial0/0"]),
    ],
)
def test_range_line_applies_to_each_interface(range_: str, changed: list[str]) -> None:
    at = session()
    at.execute(f"interface range {range_}")
    assert at.prompt == ("(config-if-range)" if len(changed) > 1 else "(config-if)")
    at.execute(" load-interval 30")
    at.execute("hostname R9")
    assert [name for name, each in at.device.interfaces.items() if each.load_interval_s == 30] == changed
    at.execute("interface Serial0/0")
    at.execute(" load-interval 60")
    assert [each.load_interval_s for each in at.device.interfaces.values()].count(60) == 1


@pytest.mark.parametrize("range_", ["FastEthernet0/0 - 7", "FastEthernet0/1 - 0", "Serial0/0 - FastEthernet0/1", "x"])
def test_range_with_a_missing_interface_is_refused(range_: str) -> None:
    at = session()
    assert "Invalid input" in refusal(at, f"interface range {range_}")
    assert refusal(at, " shutdown").endswith("below a line that was refused")


def test_line_refused_by_one_interface_of_a_range_changes_none() -> None:
    at = session()
    at.execute("interface range FastEthernet0/1 , Serial0/0")
    assert refusal(at, " duplex full")
    assert at.device.interfaces["FastEthernet0/1"].duplex == "auto"
    at.execute(" load-interval 30")
    assert at.device.interfaces["Serial0/0"].load_interval_s == 30


def test_burst_can_have_the_unit_bytes() -> None:
    lines = "class-map A\n match dscp ef\npolicy-map P\n class A\n  police rate 1000000 bps burst 100000{unit}\n"
    plain, named = (
        parse_config(lines.format(unit=unit), session().device.hardware).policy_maps for unit in ("", " bytes")
    )
    assert plain == named


def test_rtr_is_accepted_as_ip_sla() -> None:
    old = """\
ip sla monitor 8
 type jitter dest-ipaddr 10.0.0.1 dest-port 16384 source-ipaddr 10.0.0.2 num-packets 20 interval 40
 frequency 30
ip sla monitor 9
 type echo protocol ipIcmpEcho 10.0.0.1 source-interface FastEthernet0/0
ip sla monitor 10
 type udpEcho dest-ipaddr 10.0.0.1 dest-port 7
ip sla monitor schedule 8 life forever start-time now
ip sla monitor responder
"""
    new = """\
ip sla 8
 udp-jitter 10.0.0.1 16384 source-ip 10.0.0.2 num-packets 20 interval 40
 frequency 30
ip sla 9
 icmp-echo 10.0.0.1 source-interface FastEthernet0/0
ip sla 10
 udp-echo 10.0.0.1 7
ip sla schedule 8 life forever start-time now
ip sla responder
"""
    hardware = session().device.hardware
    first, second = parse_config(old, hardware), parse_config(new, hardware)
    assert render(first) == render(second)
    assert "ip sla 8\n udp-jitter 10.0.0.1 16384" in render(first)
    at = ConfigSession(first)
    at.execute("no ip sla monitor 8")
    assert 8 not in first.ip_sla.operations and 8 not in first.ip_sla.schedules


def test_full_duplex_is_printed_removed_and_without_effect() -> None:
    at = session()
    at.execute("interface FastEthernet0/0")
    at.execute(" full-duplex")
    assert [line.text for line in at.remarks] == ["full-duplex"]
    assert "\n full-duplex\n" in render(at.device)
    at.execute(" no full-duplex")
    assert "\n full-duplex\n" not in render(at.device)


def test_subinterface_alone_adds_only_its_port() -> None:
    text = "interface FastEthernet0/0.10\n encapsulation dot1Q 10\n"
    assert described_hardware(text, "router", "classic").interfaces == ("FastEthernet0/0",)
