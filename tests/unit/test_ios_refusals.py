"""Refusals of configuration commands, and their detection by clients."""

from __future__ import annotations

import re
import runpy

import pytest
from ios_configured import BASE, CARET, configured_device
from ruamel.yaml import YAML

from ios_strategies import hardware
from qoslab.errors import IosError
from qoslab.ios.cli.grammar import CliError
from qoslab.ios.config import ConfigSession
from qoslab.ios.model.device import Device
from qoslab.ios.parse import apply_config, parse_config
from qoslab.ios.refusals import REFUSALS as OUR_WORDS
from qoslab.ios.refusals import find_refusal
from qoslab.run.devices.ansible.playbooks import failure_message
from qoslab.run.devices.ansible_inventory import IosAccess
from qoslab.run.devices.testbed import build_testbed as make_testbed
from qoslab.system.shipped import shipped_path

GROUP_VARIABLES = shipped_path("playbooks") / "group_vars" / "ios.yml"


def ansible_words() -> list[dict[str, str]]:
    """Return the error patterns that the playbooks' lookup gives Ansible."""
    place = shipped_path("playbooks") / "lookup_plugins" / "ios_refusals.py"
    found: list[dict[str, str]] = runpy.run_path(str(place))["refusals"]()
    return found


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
    ("class-map Voice\nmatch mpls 100", "@11"),
    ("class-map Voice\nmatch input-interface Fa0/7", "@22"),
    ("class-map Voice\nmatch packet length min 300 max 200", "@32"),
    ("interface Fa0/1\ntraffic-shape rate 8000 1", "% Bits per interval must be at least 256, or 0"),
    ("interface Fa0/1\ntraffic-shape rate 8000 8000 255", "% Bits per interval must be at least 256, or 0"),
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
        "% A policer with a dynamic bucket has no other bucket: leave out bc, pir, be and violate-action",
    ),
    (
        "policy-map Edge\nclass Data\npolice 9000\nqoslab-extension police dynamic-bucket\npolice cir 9000 pir 10000",
        "% A policer with a dynamic bucket has no other bucket: leave out bc, pir, be and violate-action",
    ),
    (
        "policy-map Edge\nclass Data\npolice 9000\nqoslab-extension police dynamic-bucket initial 2000",
        "% The initial size must be between the minimum and the maximum size",
    ),
    (
        "policy-map Edge\nclass class-default\nqoslab-extension police dynamic-bucket",
        "% The class has no policer: configure police first",
    ),
    ("policy-map Edge\nclass Data\npolice cir 9000 be 2000 pir 9000 be 3000", "@36"),
    ("policy-map Edge\nclass Data\npolice rate 10000 cps", "% Not supported: a policer meters the packet bytes"),
    (
        "policy-map Edge\nclass Data\npolice cir 9000 conform-action set-dscp-transmit dscp table T",
        "% Not supported: tables that map marks are not supported",
    ),
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
    ("interface fa0/0\nduplex quarter", "@7"),
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
    ("policy-map Queue\nclass Voice\nbandwidth remaining ratio 3", "% Not supported: introduced with HQF"),
    ("policy-map Queue\nclass Voice\npriority level 1", "% Not supported: introduced with HQF"),
    ("policy-map Queue\nclass Data\npriority 64 31", "@12"),
    (
        "policy-map Queue\nclass class-default\nrandom-detect\nrandom-detect dscp ef 20 40",
        "random-detect dscp can not be configured in a class with random-detect prec-based",
    ),
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


@pytest.mark.parametrize(("text", "message"), REFUSALS, ids=[text.replace("\n", "; ") for text, _ in REFUSALS])
def test_refused_commands_name_the_reason(text: str, message: str) -> None:
    check_refusal(parse_config(BASE, hardware()), text, message)


def check_refusal(device: Device, text: str, message: str) -> None:
    """Check that the last line of `text` is refused with these words, or at this column, without effect."""
    session = ConfigSession(device)
    *before, last = text.split("\n")
    for line in before:
        session.execute(line)
    unchanged, position = device.copy(), session.position
    with pytest.raises(CliError) as caught:
        session.execute(last)
    printed = caught.value.render()
    if message.startswith("@"):
        assert printed[:2] == [" " * int(message[1:]) + "^", CARET]
    else:
        assert printed[0].startswith(message)
    assert device == unchanged
    assert session.position == position


def marked_as_errors(answer: str) -> list[bool]:
    """Return whether Ansible, Unicon and a run detect a refusal in an answer."""
    ansible = [re.compile(each["pattern"], getattr(re, each.get("flags", "re.U")[3:])) for each in ansible_words()]
    device = make_testbed("x", {"R1": IosAccess("192.0.2.1", "lab", "lab")})["devices"]["R1"]
    unicon = device["connections"]["cli"]["settings"]["CONFIGURE_ERROR_PATTERN"]
    text = failure_message({"msg": f"Task failed: {answer.encode()!r}"})
    return [
        any(pattern.search(answer) for pattern in ansible),
        any(re.search(pattern, answer, re.MULTILINE) for pattern in unicon),
        text.splitlines()[-1] == [line for line in answer.splitlines() if line][-2],
    ]


@pytest.mark.parametrize(("text", "message"), REFUSALS, ids=[text.replace("\n", "; ") for text, _ in REFUSALS])
def test_clients_detect_refusals(text: str, message: str) -> None:
    session = ConfigSession(parse_config(BASE, hardware()))
    *before, last = text.split("\n")
    for line in before:
        session.execute(line)
    with pytest.raises(CliError) as caught:
        session.execute(last)
    answer = "\r\n".join([last, *caught.value.render(), f"R1{session.prompt}#"])
    assert marked_as_errors(answer) == [True, True, True]


LIMITS = "policy-map P\nclass class-default\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("queue-limit 4097", "@12"),
        ("queue-limit 3401 ms", "@12"),
        ("queue-limit 64000001 bytes", "@12"),
        ("queue-limit dscp af11 4097 packets", "@22"),
        ("queue-limit cos 8 5", "@16"),
        ("queue-limit 9 ms\nqueue-limit dscp af11 5", "queue-limit and random-detect in different units"),
        ("queue-limit 9 ms\nrandom-detect\nrandom-detect precedence 1 5 9", "queue-limit and random-detect in"),
        ("random-detect\nrandom-detect precedence 1 5 bytes 9", "% Incomplete command."),
        ("random-detect\nrandom-detect precedence 1 5 bytes 9 ms", "@35"),
        ("random-detect\nrandom-detect precedence 1 9 ms 3401 ms", "@32"),
        ("random-detect\nrandom-detect precedence 1 9 ms 11 ms\nrandom-detect precedence 2 9 11", "queue-limit and r"),
        ("queue-limit dscp af11 5\nqueue-limit cos 1 5", "queue-limit by dscp and by cos can not be configured in"),
        ("fair-queue\nqueue-limit 9 ms", "queue-limit in bytes or ms, or by a field, can not be configured in"),
        ("queue-limit dscp 1 9\nfair-queue", "queue-limit in bytes or ms, or by a field, can not be configured in"),
    ],
)
def test_impossible_queue_limits_are_refused(text: str, message: str) -> None:
    check_refusal(parse_config("", hardware("hqf")), LIMITS + text, message)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("queue-limit 9 ms", "% Not supported: introduced with HQF"),
        ("queue-limit dscp af11 9", "% Not supported: introduced with HQF"),
        ("random-detect dscp 1 5 ms 9 ms", CARET),
    ],
)
def test_classic_generation_limits_queues_in_packets(line: str, message: str) -> None:
    device = parse_config("policy-map P\nclass class-default\nrandom-detect dscp-based", hardware("classic"))
    session = ConfigSession(device)
    for each in LIMITS.splitlines():
        session.execute(each)
    with pytest.raises(CliError) as caught:
        session.execute(line)
    assert any(each.startswith(message) for each in caught.value.render())


@pytest.mark.parametrize("message", ["Sum total of class bandwidths exceeds 99 percent", "% Error: bad_config: no"])
def test_clients_detect_refusals_of_the_later_generation(message: str) -> None:
    assert marked_as_errors(f"bandwidth percent 60\r\n{message}\r\nR1(config-pmap-c)#") == [True, True, True]


def test_clients_detect_a_refused_running_operation() -> None:
    session = ConfigSession(parse_config(BASE, hardware()))
    for line in ("ip sla 1", "icmp-echo 10.0.0.9", "ip sla schedule 1 start-time now"):
        session.execute(line)
    with pytest.raises(CliError) as caught:
        session.execute("ip sla 1")
    answer = "\r\n".join(["ip sla 1", *caught.value.render(), "R1(config)#"])
    assert marked_as_errors(answer)[:2] == [True, True]
    assert find_refusal(answer) == "Entry already running and cannot be modified"
    assert "Entry already running" in failure_message({"msg": f"Task failed: {answer.encode()!r}"})


def test_clients_detect_no_error_in_notices() -> None:
    answer = "configure terminal\r\nEnter configuration commands, one per line.  End with CNTL/Z.\r\nR1(config)#"
    assert marked_as_errors(answer)[:2] == [False, False]
    assert find_refusal(answer) is None


def test_ansible_matches_error_patterns_of_cisco_and_qoslab() -> None:
    from ansible_collections.cisco.ios.plugins.terminal.ios import TerminalModule

    theirs = [(each.pattern.decode(), each.flags & re.I) for each in TerminalModule.terminal_stderr_re]
    given = [(each["pattern"], each.get("flags", "")) for each in ansible_words()]
    assert given == [
        *((word, "re.I" if flags else "") for word, flags in theirs),
        *((word, "re.M") for word in OUR_WORDS),
    ]
    assert YAML(typ="safe").load(GROUP_VARIABLES) == {"ansible_terminal_stderr_re": "{{ query('ios_refusals') }}"}


def test_hqf_keeps_one_percent_for_class_default() -> None:
    text = "policy-map Big\nclass Data\nbandwidth percent 60\nclass Voice\npriority percent {}\n"
    configured_device(text.format(39), "hqf")
    with pytest.raises(IosError, match="Sum total of class bandwidths exceeds 99 percent"):
        configured_device(text.format(40), "hqf")


def test_hqf_admission_uses_the_interface_bandwidth_in_kilobits() -> None:
    text = "policy-map Big\nclass Data\nbandwidth {}\ninterface s0/0\nbandwidth 1000\nservice-policy output Big"
    configured_device(text.format(990), "hqf")
    with pytest.raises(IosError, match="Sum total of class bandwidths exceeds 99 percent"):
        configured_device(text.format(991), "hqf")


HQF_REFUSALS: list[tuple[str, str]] = [
    ("policy-map New\nclass Data\npriority\nshape average 9000", "priority and shape can not be configured in the"),
    ("policy-map New\nclass Data\npriority\nservice-policy Queue", "priority can not be configured in a class with"),
    ("policy-map New\nclass Data\nfair-queue\nservice-policy Queue", "fair-queue can not be configured in a class"),
    (
        "policy-map Leaf\nclass Data\nset cos 1\npolicy-map New\nclass class-default\nrandom-detect\n"
        "service-policy Leaf\npolicy-map Leaf\nclass Data\nbandwidth 64",
        "random-detect can not be configured in a class with a queueing child policy",
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
    # A sum that only the parent's rate makes too large: for an attached policy, and for one to be attached.
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


@pytest.mark.parametrize(("text", "message"), HQF_REFUSALS, ids=[text.replace("\n", "; ") for text, _ in HQF_REFUSALS])
def test_later_generation_refuses_with_its_messages(text: str, message: str) -> None:
    check_refusal(parse_config(BASE, hardware("hqf")), text, message)


def test_bandwidth_of_an_interface_cannot_go_below_the_reserved_rate() -> None:
    device = configured_device(
        "policy-map P\nclass Data\nbandwidth 700\ninterface s0/0\nbandwidth 1000\nservice-policy output P"
    )
    with pytest.raises(IosError, match="available only 375"):
        apply_config(device, "interface s0/0\nbandwidth 500")
    assert device.interfaces["Serial0/0"].bandwidth_kbps == 1000


def test_reservable_share_cannot_go_below_the_reserved_rate() -> None:
    device = configured_device(
        "policy-map P\nclass Data\nbandwidth 900\ninterface s0/0\nbandwidth 1000\nmax-reserved-bandwidth 90\n"
        "service-policy output P"
    )
    for line in ("max-reserved-bandwidth 89", "no max-reserved-bandwidth"):
        with pytest.raises(IosError, match=re.escape("requested bandwidth 900 (kbps), available only")):
            apply_config(device, f"interface s0/0\n{line}")
    assert device.interfaces["Serial0/0"].max_reserved_bandwidth == 90
