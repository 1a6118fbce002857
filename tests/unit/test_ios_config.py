"""Configuration commands: what they do, and what they refuse."""

from __future__ import annotations

import re
import runpy
from random import Random

import pytest
from ansible_collections.cisco.ios.plugins.terminal.ios import TerminalModule
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from ios_commands import typed_line
from ios_strategies import hardware
from qoslab.errors import IosError
from qoslab.ios.cli import syntax
from qoslab.ios.cli.grammar import CliError
from qoslab.ios.cli.session import Position
from qoslab.ios.config import CONFIG, ConfigSession
from qoslab.ios.diff import undo_lines
from qoslab.ios.model.device import Device, Generation
from qoslab.ios.model.secrets import md5_crypt, secret_of, verify
from qoslab.ios.parse import apply, parse_config
from qoslab.ios.refusals import REFUSALS as OUR_WORDS
from qoslab.ios.refusals import refusal_in
from qoslab.ios.running_config import render
from qoslab.run.devices.ansible.session import device_message
from qoslab.run.devices.inventory import IosAccess
from qoslab.run.devices.testbed import testbed as make_testbed
from qoslab.shipped import shipped

GROUP_VARIABLES = shipped("playbooks") / "group_vars" / "ios.yml"


def ansible_words() -> list[dict[str, str]]:
    """What the playbooks' lookup gives Ansible."""
    place = shipped("playbooks") / "lookup_plugins" / "ios_refusals.py"
    found: list[dict[str, str]] = runpy.run_path(str(place))["refusals"]()
    return found


CARET = "% Invalid input detected at '^' marker."

BASE = """\
class-map match-any Voice
 match dscp ef
class-map Data
 match class-map Voice
policy-map Child
 class Voice
  set precedence 5
policy-map Edge
 class Data
  police cir 100000
 class class-default
  shape average 1000000
  service-policy Child
policy-map Inner
 class class-default
  shape average 2000000
  service-policy Edge
policy-map Queue
 class Data
  bandwidth 64
interface FastEthernet0/0
 ip address 10.0.0.1 255.255.255.0
 service-policy output Edge
ip access-list extended List
 10 permit ip any any
"""


def configured(text: str, generation: Generation = "classic", base: str = BASE) -> Device:
    device = parse_config(base, hardware(generation))
    apply(device, text)
    return device


def lines_of(device: Device) -> list[str]:
    return [line.strip() for line in render(device).splitlines()]


REFUSALS: list[tuple[str, str]] = [
    # The message, or the column of the marker in the last line.
    ("class-map class-default", "% class-default is a well-known class and is not configurable under class-map"),
    ("class-map " + "x" * 41, "@10"),
    ("no class-map Voice", "% Class-map Voice is being used"),
    ("no class-map match-all Data", "% Class-map Data is being used"),
    ("class-map Data\nmatch class-map Missing", "% class map Missing not configured"),
    ("class-map Voice\nmatch class-map Data", "% Class-map Voice can not match itself"),
    ("class-map Voice\nmatch dscp 1 2 3 4 5 6 7 8 9", "@27"),
    ("class-map Voice\nmatch dscp 64", "@11"),
    ("class-map Voice\nmatch precedence 8", "@17"),
    ("class-map Voice\nmatch vlan 100", "@6"),
    ("class-map Voice\nmatch input-interface Fa0/7", "@22"),
    ("class-map Voice\nmatch packet length min 300 max 200", "@32"),
    ("class-map Voice\nmatch protocol napster", "@15"),
    ("no policy-map Edge", "% Policy-map Edge is being used"),
    ("no policy-map Child", "% Policy-map Child is being used"),
    ("policy-map New\nclass Missing", "% class map Missing not configured"),
    ("policy-map New\nclass class-default\nservice-policy Missing", "% policy map Missing not configured"),
    ("policy-map Child\nclass Voice\nservice-policy Edge", "% Policy-map Child can not be its own child"),
    ("policy-map Child\nclass Voice\nservice-policy Child", "% Policy-map Child can not be its own child"),
    (
        "policy-map Top\nclass class-default\nshape average 9000\nservice-policy Inner",
        "% Policy-map hierarchy exceeds 3 levels",
    ),
    ("policy-map New\nclass Voice insert-before Data", "@26"),
    ("policy-map Edge\nclass Data\npolice 7999", "@7"),
    ("policy-map Edge\nclass Data\npolice cir 64000000001", "@11"),
    ("policy-map Edge\nclass Data\npolice 8000 999", "@12"),
    ("policy-map Edge\nclass Data\npolice cir 9000 pir 8000", "PIR must not be less than CIR"),
    (
        "policy-map Edge\nclass Data\npolice cir 9000 bc 2000\nqoslab-extension police dynamic-bucket",
        "% A dynamic bucket is the only one of its policer: leave out bc, pir, be and violate-action",
    ),
    (
        "policy-map Edge\nclass Data\npolice 9000\nqoslab-extension police dynamic-bucket\npolice cir 9000 pir 10000",
        "% A dynamic bucket is the only one of its policer: leave out bc, pir, be and violate-action",
    ),
    (
        "policy-map Edge\nclass Data\npolice 9000\nqoslab-extension police dynamic-bucket initial 2000",
        "% The size at the start must lie between the least and the greatest size",
    ),
    (
        "policy-map Edge\nclass class-default\nqoslab-extension police dynamic-bucket",
        "% The class has no policer: configure police first",
    ),
    ("policy-map Edge\nclass Data\npolice cir 9000 be 2000 pir 9000 be 3000", "@36"),
    ("policy-map Edge\nclass Data\npolice rate 1000 pps", "@12"),
    ("policy-map Edge\nclass Data\npolice rate 10000 pps", "@18"),
    ("policy-map Edge\nclass Data\npolice cir 9000 conform-action set-mpls-exp-imposition-transmit 3", "@31"),
    ("policy-map Edge\nclass Data\npolice cir 9000\nexceed-action set-dscp-transmit 64", "@32"),
    ("policy-map Edge\nclass Data\nshape average 7999", "@14"),
    ("policy-map Edge\nclass Data\nshape average 154400001", "@14"),
    ("policy-map Edge\nclass Data\nshape average percent 50 9 ms", "@25"),
    ("policy-map Edge\nclass class-default\nfair-queue 17", "Number of dynamic queues must be a power of 2"),
    ("policy-map Edge\nclass Data\nfair-queue", "fair-queue can only be configured in class class-default"),
    (
        "policy-map New\nclass class-default\nbandwidth 64\nfair-queue",
        "bandwidth and fair-queue can not be configured in the same class",
    ),
    ("policy-map Edge\nclass Data\nset dscp ef\nset precedence 5", "set dscp and set precedence can not"),
    ("policy-map Edge\nclass Data\nbandwidth 100\npriority 100", "bandwidth and priority can not be configured"),
    ("policy-map Edge\nclass class-default\npriority", "priority can not be configured in class class-default"),
    ("policy-map Edge\nclass Data\nrandom-detect", "random-detect needs bandwidth or shape"),
    (
        "policy-map New\nclass Data\nbandwidth 100\nclass Voice\nbandwidth percent 10",
        "All classes with bandwidth should have consistent units",
    ),
    (
        "policy-map Edge\nclass Data\nbandwidth 75001",
        "I/f FastEthernet0/0 policy-map Edge requested bandwidth 75001 (kbps), available only 75000 (kbps)",
    ),
    ("interface FastEthernet0/7", "@10"),
    ("interface fa0/1\nip address 10.0.0.9 255.255.255.0", "% 10.0.0.0 overlaps with FastEthernet0/0"),
    ("interface fa0/0\nip address 10.0.0.9 255.255.255.0 secondary", "% 10.0.0.0 overlaps with secondary"),
    ("interface fa0/0\nip address 10.0.0.9 255.0.255.0", "Bad mask 0xFF00FF00 for address 10.0.0.9"),
    ("interface fa0/0\nip address 10.0.0.0 255.255.255.0", "Bad mask /24 for address 10.0.0.0"),
    ("interface fa0/0\nip address 10.0.0.9", "% Incomplete command."),
    ("interface fa0/0\nclock rate 64000", "@0"),
    ("interface fa0/0\nencapsulation ppp", "@0"),
    ("interface s0/0\nduplex full", "@0"),
    ("interface fa0/0\nspeed 1000", "@6"),
    ("interface fa0/0\nspeed 10", "@6"),
    ("interface fa0/0\nduplex half", "@7"),
    ("interface fa0/0\nload-interval 45", "% Load interval must be a multiple of 30 seconds"),
    ("interface fa0/0\nload-interval 601", "@14"),
    ("interface fa0/1\nservice-policy output Missing", "% policy map Missing not configured"),
    ("interface fa0/0\nservice-policy output Child", "Policy map Edge is already attached"),
    ("interface fa0/1\nservice-policy input Edge", "GTS : Can be enabled as an output feature only"),
    ("interface fa0/1\nservice-policy input Inner", "GTS : Can be enabled as an output feature only"),
    ("interface fa0/1\nno service-policy", "% Incomplete command."),
    ("hostname 1R", "% Hostname contains one or more illegal characters."),
    ("ip route 10.1.0.1 255.255.255.0 10.0.0.2", "%Inconsistent address and mask"),
    ("ip route 10.1.0.0 255.255.255.0 10.0.0.1", "%Invalid next hop address (it's this router)"),
    ("ip route 10.1.0.0 255.255.255.0 Fa0/7", "@32"),
    ("ip route 10.1.0.0 255.255.255.0", "% Incomplete command."),
    ("ip access-list standard List", "% A named extended IP access list with this name already exists"),
    ("ip access-list extended 5", "% Invalid access list name."),
    ("ip access-list extended List\n10 deny ip any any", "% Duplicate sequence number"),
    ("access-list 100 permit tcp any eq http any", "@34"),
    ("access-list 200 permit ip any any", "@12"),
    ("access-list 101 permit udp any any eq 53 fragments", "@41"),
    ("interface fa0/0\nhold-queue 0 out", "@11"),
    ("interface s0/0\ntx-ring-limit 0", "@14"),
    ("interface s0/0\ntx-ring-limit 32768", "@14"),
    ("interface s0/0\nclock rate 299", "@11"),
    ("interface s0/0\nfair-queue 65", "Congestive discard threshold must be a power of 2"),
    ("interface s0/0\nfair-queue 64 17", "Number of dynamic queues must be a power of 2"),
    ("interface s0/0\nfair-queue 64 16 1001", "@17"),
    ("interface s0/0\nmax-reserved-bandwidth 101", "@23"),
    ("interface fa0/1\nservice-policy input Queue", "CBWFQ : Can be enabled as an output feature only"),
    ("policy-map Queue\nclass Voice\nbandwidth 7", "@10"),
    ("policy-map Queue\nclass Voice\nbandwidth percent 101", "@18"),
    ("policy-map Queue\nclass Voice\nbandwidth remaining ratio 3", "@20"),
    ("policy-map Queue\nclass Voice\npriority level 1", "@9"),
    ("policy-map Queue\nclass Data\npriority 64 31", "@12"),
    ("policy-map Queue\nclass class-default\nrandom-detect dscp ef 20 40", "@14"),
    ("policy-map Queue\nclass class-default\nrandom-detect precedence 3 40 20", "@30"),
    ("policy-map Queue\nclass class-default\nrandom-detect exponential-weighting-constant 17", "@45"),
    (
        "policy-map Plain\nclass class-default\nservice-policy Queue",
        "CBWFQ : Hierarchy supported only if shaping is configured in this class",
    ),
    (
        "policy-map Queue\nclass Voice\nbandwidth 900\ninterface fa0/0\nno service-policy output Edge\n"
        "policy-map Edge\nclass class-default\nno service-policy\nservice-policy Queue\n"
        "interface fa0/0\nservice-policy output Edge\npolicy-map Queue\nclass Data\nbandwidth 101",
        "I/f FastEthernet0/0 policy-map Queue requested bandwidth 1001 (kbps), available only 1000 (kbps)",
    ),
    ("policy-map Edge\nclass Data\nshape average 1000000 8000 255", "@27"),
    ("banner motd #a ^C b#", "% Error: a banner can not contain ^C"),
    ("enable secret 5 cisco", "ERROR: The secret you entered is not a valid encrypted secret."),
    ("line vty 3 2", "@11"),
    ("ip sla schedule 1 start-time now", "%Entry not configured"),
    ("ip sla 1\nip sla schedule 1 start-time now", "%Entry not configured"),
    (
        "ip sla 1\nicmp-echo 10.0.0.9\nfrequency 4",
        "%Illegal Value: Cannot set Frequency to be less than Timeout",
    ),
    (
        "ip sla 1\nicmp-echo 10.0.0.9\ntimeout 60001",
        "%Illegal Value: Cannot set Timeout to be greater than Frequency",
    ),
    ("ip sla 1\nudp-echo 10.0.0.9 7\nrequest-data-size 3", "%Illegal Value: request data size must be 4 to 1500"),
    ("frobnicate", "@0"),
    ("e", '% Ambiguous command:  "e"'),
]


@pytest.mark.parametrize(("text", "said"), REFUSALS, ids=[text.replace("\n", "; ") for text, _ in REFUSALS])
def test_refusals(text: str, said: str) -> None:
    device = parse_config(BASE, hardware())
    session = ConfigSession(device)
    *before, last = text.split("\n")
    for line in before:
        session.execute(line)
    unchanged, position = device.copy(), session.position
    with pytest.raises(CliError) as caught:
        session.execute(last)
    printed = caught.value.render()
    if said.startswith("@"):
        assert printed[:2] == [" " * int(said[1:]) + "^", CARET]
    else:
        assert printed[0].startswith(said)
    assert device == unchanged
    assert session.position == position


def marked_as_errors(answer: str) -> list[bool]:
    """Whether Ansible takes an answer for a refusal, whether Unicon does, and whether a run finds the words in it."""
    ansible = [re.compile(each["pattern"], getattr(re, each.get("flags", "re.U")[3:])) for each in ansible_words()]
    device = make_testbed("x", {"R1": IosAccess("192.0.2.1", "lab", "lab")})["devices"]["R1"]
    unicon = device["connections"]["cli"]["settings"]["CONFIGURE_ERROR_PATTERN"]
    said = device_message({"msg": f"Task failed: {answer.encode()!r}"})
    return [
        any(pattern.search(answer) for pattern in ansible),
        any(re.search(pattern, answer, re.MULTILINE) for pattern in unicon),
        said.splitlines()[-1] == [line for line in answer.splitlines() if line][-2],
    ]


@pytest.mark.parametrize(("text", "said"), REFUSALS, ids=[text.replace("\n", "; ") for text, _ in REFUSALS])
def test_clients_take_refusals_for_errors(text: str, said: str) -> None:
    session = ConfigSession(parse_config(BASE, hardware()))
    *before, last = text.split("\n")
    for line in before:
        session.execute(line)
    with pytest.raises(CliError) as caught:
        session.execute(last)
    answer = "\r\n".join([last, *caught.value.render(), f"R1{session.prompt}#"])
    assert marked_as_errors(answer) == [True, True, True]


@pytest.mark.parametrize("said", ["Sum total of class bandwidths exceeds 99 percent", "% Error: bad_config: no"])
def test_clients_take_the_later_generations_refusals_for_errors(said: str) -> None:
    assert marked_as_errors(f"bandwidth percent 60\r\n{said}\r\nR1(config-pmap-c)#") == [True, True, True]


def test_clients_take_a_running_operation_for_an_error() -> None:
    session = ConfigSession(parse_config(BASE, hardware()))
    for line in ("ip sla 1", "icmp-echo 10.0.0.9", "ip sla schedule 1 start-time now"):
        session.execute(line)
    with pytest.raises(CliError) as caught:
        session.execute("ip sla 1")
    answer = "\r\n".join(["ip sla 1", *caught.value.render(), "R1(config)#"])
    assert marked_as_errors(answer)[:2] == [True, True]
    assert refusal_in(answer) == "Entry already running and cannot be modified"
    assert "Entry already running" in device_message({"msg": f"Task failed: {answer.encode()!r}"})


def test_clients_take_no_notice_for_an_error() -> None:
    answer = "configure terminal\r\nEnter configuration commands, one per line.  End with CNTL/Z.\r\nR1(config)#"
    assert marked_as_errors(answer)[:2] == [False, False]
    assert refusal_in(answer) is None


def test_ansible_is_given_its_own_words_and_ours() -> None:
    theirs = [(each.pattern.decode(), each.flags & re.I) for each in TerminalModule.terminal_stderr_re]
    given = [(each["pattern"], each.get("flags", "")) for each in ansible_words()]
    assert given == [
        *((word, "re.I" if flags else "") for word, flags in theirs),
        *((word, "re.M") for word in OUR_WORDS),
    ]
    assert YAML(typ="safe").load(GROUP_VARIABLES) == {"ansible_terminal_stderr_re": "{{ query('ios_refusals') }}"}


def test_hqf_keeps_one_percent_for_class_default() -> None:
    text = "policy-map Big\nclass Data\nbandwidth percent 60\nclass Voice\npriority percent {}\n"
    configured(text.format(39), "hqf")
    with pytest.raises(IosError, match="Sum total of class bandwidths exceeds 99 percent"):
        configured(text.format(40), "hqf")


def test_hqf_admission_counts_kilobits_where_attached() -> None:
    text = "policy-map Big\nclass Data\nbandwidth {}\ninterface s0/0\nbandwidth 1000\nservice-policy output Big"
    configured(text.format(990), "hqf")
    with pytest.raises(IosError, match="Sum total of class bandwidths exceeds 99 percent"):
        configured(text.format(991), "hqf")


HQF_REFUSALS: list[tuple[str, str]] = [
    ("policy-map New\nclass Data\npriority\nshape average 9000", "priority and shape can not be configured in the"),
    ("policy-map New\nclass Data\npriority\nservice-policy Queue", "priority can not be configured in a class whose"),
    ("policy-map New\nclass Data\nfair-queue\nservice-policy Queue", "fair-queue can not be configured in a class"),
    (
        "policy-map Leaf\nclass Data\nset cos 1\npolicy-map New\nclass class-default\nrandom-detect\n"
        "service-policy Leaf\npolicy-map Leaf\nclass Data\nbandwidth 64",
        "random-detect can not be configured in a class whose child policy queues",
    ),
    (
        "policy-map New\nclass Data\nbandwidth percent 90\nclass class-default\nbandwidth percent 11",
        "Sum total of class bandwidths exceeds 99 percent",
    ),
    ("policy-map New\nclass Data\nbandwidth percent 60\nclass Voice\nbandwidth percent 40", "Sum total of class"),
    ("policy-map New\nclass Data\nbandwidth remaining percent 60\nclass Voice\nbandwidth remaining ratio 4", "All cl"),
    ("policy-map New\nclass Data\nfair-queue\npriority percent 10", "fair-queue and priority can not be configured"),
    ("policy-map New\nclass Data\npriority\nfair-queue", "fair-queue and priority can not be configured"),
    ("policy-map New\nclass Data\npriority level 3", "@15"),
    ("policy-map New\nclass Data\nrandom-detect", "random-detect needs bandwidth or shape"),
    ("policy-map New\nclass Data\nbandwidth 64\nrandom-detect\nno bandwidth", "random-detect needs bandwidth or"),
    ("interface s0/0\nfair-queue 64", "@11"),
    ("interface s0/0\nmax-reserved-bandwidth 80", "@0"),
    # A sum that only the parent's rate makes too large: of what is attached, and of what is to be attached.
    (
        "policy-map Queue\nclass Data\nbandwidth 900\npolicy-map Edge\nclass class-default\nno service-policy\n"
        "service-policy Queue\npolicy-map Queue\nclass Voice\npriority 91",
        "Sum total of class bandwidths exceeds 99 percent",
    ),
    (
        "policy-map Top\nclass class-default\nservice-policy Queue\npolicy-map Queue\nclass Data\nbandwidth 700\n"
        "interface s0/0\nbandwidth 700\nservice-policy output Top",
        "Sum total of class bandwidths exceeds 99 percent",
    ),
]


@pytest.mark.parametrize(("text", "said"), HQF_REFUSALS, ids=[text.replace("\n", "; ") for text, _ in HQF_REFUSALS])
def test_refusals_of_the_later_generation(text: str, said: str) -> None:
    device = parse_config(BASE, hardware("hqf"))
    session = ConfigSession(device)
    *before, last = text.split("\n")
    for line in before:
        session.execute(line)
    unchanged = device.copy()
    with pytest.raises(CliError) as caught:
        session.execute(last)
    printed = caught.value.render()
    if said.startswith("@"):
        assert printed[:2] == [" " * int(said[1:]) + "^", CARET]
    else:
        assert printed[0].startswith(said)
    assert device == unchanged


def test_three_levels_may_queue() -> None:
    text = (
        "policy-map Leaf\n class Voice\n  priority percent 20\n class Data\n  bandwidth percent 79\n  fair-queue\n"
        "policy-map Middle\n class Data\n  bandwidth 500\n  service-policy Leaf\n"
        "policy-map Outer\n class class-default\n  shape average 1000000\n  service-policy Middle\n"
        "interface s0/0\n service-policy output Outer\n"
    )
    device = configured(text, "hqf")
    assert device.interfaces["Serial0/0"].service_policy_output == "Outer"
    assert parse_config(render(device), device.hardware) == device


def test_bandwidth_of_an_interface_is_not_taken_below_what_is_reserved() -> None:
    device = configured(
        "policy-map P\nclass Data\nbandwidth 700\ninterface s0/0\nbandwidth 1000\nservice-policy output P"
    )
    with pytest.raises(IosError, match="available only 375"):
        apply(device, "interface s0/0\nbandwidth 500")
    assert device.interfaces["Serial0/0"].bandwidth_kbps == 1000


def test_the_reservable_share_is_not_taken_below_what_is_reserved() -> None:
    device = configured(
        "policy-map P\nclass Data\nbandwidth 900\ninterface s0/0\nbandwidth 1000\nmax-reserved-bandwidth 90\n"
        "service-policy output P"
    )
    for line in ("max-reserved-bandwidth 89", "no max-reserved-bandwidth"):
        with pytest.raises(IosError, match=re.escape("requested bandwidth 900 (kbps), available only")):
            apply(device, f"interface s0/0\n{line}")
    assert device.interfaces["Serial0/0"].max_reserved_bandwidth == 90


def test_a_numbered_list_without_entries_is_kept() -> None:
    device = configured("access-list 101 permit ip any any\nip access-list extended 101\nno permit ip any any")
    assert "ip access-list extended 101" in lines_of(device)
    assert parse_config(render(device), device.hardware) == device


@pytest.mark.parametrize(
    ("typed", "printed"),
    [
        ("police 1000000", ["police 1000000"]),
        ("police 8000 2000 3000", ["police 8000 2000 3000"]),
        ("police cir 8000 bc 1500 be 2000", ["police cir 8000 bc 1500 be 2000"]),
        ("police cir 8000 bc 1500 pir 9000 be 2000", ["police cir 8000 bc 1500 pir 9000 be 2000"]),
        ("police cir percent 10 bc 20 ms pir percent 30", ["police cir percent 10 bc 20 ms pir percent 30"]),
        ("police rate 9000 bps burst 2000 peak-rate 10000", ["police rate 9000 burst 2000 peak-rate 10000"]),
        ("police rate percent 50", ["police rate percent 50"]),
        (
            "police cir 8000 conf set-dscp-t af11 exc set-prec-t 1 viol drop",
            [
                "police cir 8000",
                "conform-action set-dscp-transmit af11",
                "exceed-action set-prec-transmit 1",
                "violate-action drop",
            ],
        ),
        (
            "police cir 8000\nconform-action set-cos-transmit 3\nconform-action set-qos-transmit 7",
            ["police cir 8000", "conform-action set-qos-transmit 7", "conform-action set-cos-transmit 3"],
        ),
        (
            "police cir 8000\nconform-action set-cos-transmit 3\nconform-action transmit",
            ["police cir 8000", "conform-action transmit"],
        ),
        ("police cir 8000\nexceed-action drop\nno exceed-action drop", ["police cir 8000"]),
        (
            "police cir 8000\nexceed-action transmit\nexit\npolice cir 8000",
            ["police cir 8000", "exceed-action transmit"],
        ),
        ("police cir 8000\nexceed-action transmit\nexit\npolice cir 9000", ["police cir 9000"]),
        ("shape peak 64000 8000 8000", ["shape peak 64000 8000 8000"]),
        ("shape average percent 20 10 ms 20 ms", ["shape average percent 20 10 ms 20 ms"]),
        ("set ip dscp af41\nset dscp 46", ["set dscp ef"]),
        ("set qos 3\nset ip precedence network", ["set ip precedence 7", "set qos-group 3"]),
        ("bandwidth remaining percent 30", ["bandwidth remaining percent 30"]),
        ("priority 100 2000", ["priority 100 2000"]),
        ("priority percent 10 3000", ["priority percent 10 3000"]),
        ("priority", ["priority"]),
        ("priority 64\nno priority 64", []),
        ("bandwidth percent 20\nno bandwidth percent 20", []),
        (
            "bandwidth 64\nrandom-detect exponential-weighting-constant 5\nrandom-detect precedence 1 10 30",
            [
                "bandwidth 64",
                "random-detect",
                "random-detect exponential-weighting-constant 5",
                "random-detect precedence 1 10 30",
            ],
        ),
        ("bandwidth 64\nrandom-detect dscp-based\nrandom-detect prec-based", ["bandwidth 64", "random-detect"]),
        (
            "shape average 9000\nrandom-detect dscp-based\nrandom-detect dscp ef 20 40 5",
            ["shape average 9000", "random-detect dscp-based", "random-detect dscp ef 20 40 5"],
        ),
        ("shape average 9000\nno shape average 9000", []),
        ("police cir 8000\nexit\nno police cir 8000", []),
        ("queue-limit 20", ["queue-limit 20"]),
    ],
)
def test_actions_as_printed(typed: str, printed: list[str]) -> None:
    device = configured(f"policy-map P\nclass Data\n{typed}", base="class-map Data\nmatch any")
    lines = lines_of(device)
    start = lines.index("class Data") + 1
    assert lines[start : lines.index("!", start)] == printed
    apply(device, f"policy-map P\nclass Data\n{typed}")
    assert lines_of(device)[start : start + len(printed)] == printed


@pytest.mark.parametrize(
    ("typed", "printed"),
    [
        ("access-list 1 permit 10.0.0.7", "access-list 1 permit 10.0.0.7"),
        ("access-list 1 permit host 10.0.0.7", "access-list 1 permit 10.0.0.7"),
        ("access-list 1 deny 10.0.0.7 0.0.0.255 log", "access-list 1 deny 10.0.0.0 0.0.0.255 log"),
        ("access-list 1 permit 10.0.0.7 255.255.255.255", "access-list 1 permit any"),
        ("access-list 101 permit tcp any any eq 80", "access-list 101 permit tcp any any eq www"),
        ("access-list 101 permit 47 any any", "access-list 101 permit gre any any"),
        ("access-list 101 permit udp any range 6000 5000 any", "access-list 101 permit udp any range 5000 6000 any"),
        ("access-list 101 permit udp any any eq 514", "access-list 101 permit udp any any eq syslog"),
        ("access-list 101 permit icmp any any 3 3", "access-list 101 permit icmp any any port-unreachable"),
        (
            "access-list 101 permit tcp host 1.1.1.1 neq telnet www any estab log dscp 46",
            "access-list 101 permit tcp host 1.1.1.1 neq telnet www any established dscp ef log",
        ),
        ("access-list 2000 deny ip any any prec flash", "access-list 2000 deny ip any any precedence flash"),
        ("access-list 101 remark two  blanks", "access-list 101 remark two  blanks"),
    ],
)
def test_access_list_entries_as_printed(typed: str, printed: str) -> None:
    assert printed in lines_of(configured(typed))


def test_access_list_entries_by_sequence() -> None:
    device = configured("ip access-list extended List\n5 deny tcp any any\nremark last\npermit udp any any\nno 10")
    assert device.access_lists["List"].numbers == (5, 10, 20)
    block = lines_of(device)[lines_of(device).index("ip access-list extended List") :]
    assert block[1:4] == ["deny tcp any any", "remark last", "permit udp any any"]


def test_no_of_a_numbered_entry_removes_the_list() -> None:
    device = configured("access-list 7 permit any\naccess-list 7 deny any\nno access-list 7 permit any")
    assert "7" not in device.access_lists


def test_classes_stay_before_class_default() -> None:
    device = configured("policy-map Edge\nclass Voice\nset cos 1\nno class Voice\nclass Voice insert-before Data")
    assert [each.name for each in device.policy_maps["Edge"].classes] == ["Voice", "Data", "class-default"]


def test_class_map_of_another_match_keeps_its_criteria() -> None:
    device = configured("class-map match-all Voice")
    assert device.class_maps["Voice"].match == "all"
    assert len(device.class_maps["Voice"].criteria) == 1


def test_the_lines_that_unicon_types() -> None:
    device = configured("no logging console\nline console 0\nexec-timeout 0\nline vty 0 4\nexec-timeout 0\nend")
    lines = lines_of(device)
    assert "no logging console" in lines
    assert lines[lines.index("line con 0") + 1] == "exec-timeout 0 0"
    assert lines[lines.index("line vty 0 4") + 1] == "exec-timeout 0 0"


def test_vty_lines_of_other_settings_are_printed_apart() -> None:
    device = configured("line vty 0 15\nlogin local\nline vty 2\ntransport input ssh telnet\n")
    lines = lines_of(device)
    assert [line for line in lines if line.startswith("line vty")] == ["line vty 0 1", "line vty 2", "line vty 3 15"]
    assert "transport input telnet ssh" in lines
    apply(device, "no line vty 5")
    assert "line vty 3 4" in lines_of(device)


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("banner motd @\nhello\n there\n@", "\nhello\n there\n"),
        ("banner motd #one line#", "one line"),
        ("banner motd ^C\n! x\nend\n^C", "\n! x\nend\n"),
        ("banner motd \x03a\x03", "a"),
    ],
)
def test_banner(typed: str, kept: str) -> None:
    assert configured(typed).banner_motd == kept


def test_ipv4_routes() -> None:
    device = configured(
        "ip route 10.9.0.0 255.255.0.0 10.0.0.2 1\nip route 10.9.0.0 255.255.0.0 10.0.0.2 20\n"
        "ip route 0.0.0.0 0.0.0.0 serial 0/0\nip route 10.8.0.0 255.255.0.0 s0/0 10.0.0.2\n"
        "no ip route 10.8.0.0 255.255.0.0"
    )
    assert [line for line in lines_of(device) if line.startswith("ip route")] == [
        "ip route 0.0.0.0 0.0.0.0 Serial0/0",
        "ip route 10.9.0.0 255.255.0.0 10.0.0.2 20",
    ]


def test_secrets() -> None:
    # Reference: openssl passwd -1 -salt abcd cisco
    assert md5_crypt("cisco", "abcd") == "$1$abcd$2hDGYdE0UrwK2pqoiF6BB1"
    secret = secret_of("a longer password, more than sixteen")
    assert verify(secret, "a longer password, more than sixteen")
    assert not verify(secret, "a longer password")


def test_a_secret_typed_again_keeps_its_salt() -> None:
    device = configured(f"enable secret 5 {md5_crypt('cisco', 'abcd')}\nusername u privilege 15 secret lab")
    before = device.copy()
    apply(device, "enable secret cisco\nusername u secret 0 lab")
    assert device == before


def test_a_command_further_up_leaves_the_mode() -> None:
    session = ConfigSession(configured(""))
    for line, prompt in [
        ("policy-map Edge", "(config-pmap)"),
        ("class Data", "(config-pmap-c)"),
        ("police cir 100000", "(config-pmap-c-police)"),
        ("shape average 8000", "(config-pmap-c)"),
        ("class Voice", "(config-pmap-c)"),
        ("int f0/1", "(config-if)"),
        ("ip access-list standard S", "(config-std-nacl)"),
        ("ip access-list extended E", "(config-ext-nacl)"),
        ("class-map Voice", "(config-cmap)"),
        ("line con 0", "(config-line)"),
        ("exit", "(config)"),
    ]:
        session.execute(line)
        assert session.prompt == prompt
    session.execute("end")
    assert session.finished


def test_a_policy_that_another_session_removes() -> None:
    device = configured("")
    session = ConfigSession(device)
    for line in ("policy-map Inner", "class class-default"):
        session.execute(line)
    apply(device, "no policy-map Inner")
    with pytest.raises(CliError, match="has been removed"):
        session.execute("shape average 8000")


_WORDS = sorted({word for items in CONFIG._modes.values() for each in items for word in syntax.names(each.node)})
_VALUES = [
    "0",
    "1",
    "5",
    "46",
    "101",
    "8000",
    "1000000",
    "10.0.0.1",
    "255.255.255.0",
    "Fa0/1",
    "Edge",
    "Data",
    "@",
    "é",
    "²",
]
_lines = st.lists(st.sampled_from(_WORDS) | st.sampled_from(_VALUES), max_size=8).map(" ".join) | st.text(max_size=30)


@given(st.lists(_lines, max_size=12))
@settings(max_examples=150, deadline=None)
def test_whatever_is_typed_is_carried_out_or_refused(lines: list[str]) -> None:
    device = parse_config(BASE, hardware())
    session = ConfigSession(device)
    for line in lines:
        before = device.copy()
        try:
            session.execute(line)
        except CliError:
            assert device == before
        if session.finished:
            break
    if not session.collecting:
        assert parse_config(render(device), hardware()) == device


@given(st.randoms(use_true_random=False), st.sampled_from(["classic", "hqf"]))
@settings(max_examples=60, deadline=None)
def test_whatever_the_table_offers_can_be_typed(random: Random, generation: Generation) -> None:
    device = parse_config(BASE, hardware(generation))
    start = render(device)
    session = ConfigSession(device)
    for _ in range(50):
        before = device.copy()
        try:
            session.execute(typed_line(random, session))
        except CliError:
            assert device == before
        if session.finished:
            session = ConfigSession(device)
    printed = render(device)
    again = parse_config(printed, device.hardware)
    assert again == device
    assert render(again) == printed
    undo_lines(start, printed, device.hardware)
    undo_lines(printed, start, device.hardware)


@pytest.mark.parametrize("generation", ["classic", "hqf"])
def test_the_documented_policy_commands_exist(generation: Generation) -> None:
    guide = (shipped("playbooks").parent / "docs" / "virtual-router.md").read_text()
    (block,) = re.findall(r"```ios\n(.*?)```", guide, re.DOTALL)
    session = ConfigSession(parse_config("policy-map WAN", hardware(generation)))
    for line in block.splitlines():
        command, _, remark = line.partition("   ")
        words = command.strip()
        mode = "interface" if words.startswith("interface ") or session.position.mode == "interface" else None
        if words.startswith(("policy-map", "class ", "interface ")):
            session.position = Position(
                {"policy-map": "policy-map", "class": "policy-class", "interface": "interface"}[words.split()[0]]
            )
            continue
        where = mode or "policy-class"
        if generation in remark or "(" not in remark or "three" in remark:
            assert CONFIG.parse(where, words, capabilities=session.capabilities)
        elif "figures" not in remark and "class-default" not in remark:
            with pytest.raises(CliError):
                CONFIG.parse(where, words, capabilities=session.capabilities)


@given(st.text())
@settings(max_examples=50, deadline=None)
def test_any_text_is_a_configuration_or_an_error(text: str) -> None:
    try:
        parse_config(text, hardware())
    except IosError as error:
        assert error.message.startswith("configuration:")


@pytest.mark.parametrize(
    ("typed", "taken_back"),
    [
        ("username lab privilege 15 secret 5 $1$abcd$2hDGYdE0UrwK2pqoiF6BB1", "no username lab privilege 15"),
        ("enable secret cisco", "no enable secret 5 $1$abcd$2hDGYdE0UrwK2pqoiF6BB1"),
        ("line con 0\npassword x y", "line con 0\nno password x y"),
        ("line con 0\ntransport input ssh", "line con 0\nno transport input ssh"),
        ("line con 0\nexec-timeout 5 30", "line con 0\ndefault exec-timeout"),
        ("interface s0/0\nfair-queue", "interface s0/0\ndefault fair-queue"),
        ("access-list 7 permit any", "no access-list 7"),
        ("access-list 107 permit ip any any", "no access-list 107 permit ip any any"),
        ("service timestamps log datetime msec", "no service timestamps log datetime msec"),
        ("ip domain name lab.example", "no ip domain name lab.example"),
        ("banner motd #x#", "no banner motd"),
    ],
)
def test_what_is_printed_can_be_taken_back(typed: str, taken_back: str) -> None:
    device = configured(typed)
    assert device != configured("")
    apply(device, taken_back)
    assert device == configured("")


@pytest.mark.parametrize("line", ["no access-list", "no username", "no ip route", "no line vty", "no class-map"])
def test_no_of_nothing_is_incomplete(line: str) -> None:
    with pytest.raises(IosError, match="% Incomplete command"):
        configured(line)
