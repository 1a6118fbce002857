"""Lines of real configurations: each is accepted, or refused by name with the reason, never as a syntax error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from levels import every_nth
from qoslab.errors import IosError
from qoslab.ios.cli.grammar import CliError
from qoslab.ios.compile import compile_device
from qoslab.ios.config import ConfigSession
from qoslab.ios.model.device import Hardware
from qoslab.ios.parse import apply_config, parse_config
from qoslab.ios.running_config import render
from qoslab.ios.show.match import policy_match
from qoslab.model.generation import Generation
from qoslab.policy.answer import answer_policy

FOLDER = Path(__file__).parent.parent / "config_lines"
BEFORE = (FOLDER / "before.ios").read_text(encoding="utf-8")
OLDER = ("FastEthernet0/0", "FastEthernet0/1", "Serial0/0", "ATM1/0")
XE = ("GigabitEthernet0/0/0", "GigabitEthernet0/0/1", "Serial0/0")
FILES: dict[str, tuple[Generation, ...]] = {
    "ios.txt": ("classic", "hqf"),
    "ios_xe.txt": ("ios-xe",),
    "match_protocol.txt": ("classic", "hqf", "ios-xe"),
}
NOT_SUPPORTED = "% Not supported: "


def hardware(generation: Generation) -> Hardware:
    return Hardware("X", XE if generation == "ios-xe" else OLDER, generation)


def configured_lines(name: str) -> Iterator[tuple[list[str], str, str]]:
    """Yield every line with its blocks and its mark: `-` if refused by name, `~` if also no QoS command."""
    block: list[str] = []
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("=== "):
            block = [each for each in line.removeprefix("=== ").split("/ ") if each != "config"]
        elif not line.startswith("!"):
            mark = line[0] if line[:2] in ("- ", "~ ") else ""
            yield block, line[2:] if mark else line, mark


def refusal_message(block: list[str], line: str, generation: Generation) -> str:
    """Return the router's refusal of the line; empty if it is accepted."""
    session = ConfigSession(parse_config(BEFORE, hardware(generation)))
    try:
        for each in (*block, *line.split(" ;; ")):
            session.execute(each)
    except CliError as error:
        return error.message
    return ""


@pytest.mark.parametrize("name", FILES)
def test_configuration_lines_are_accepted_or_refused_with_their_name(name: str) -> None:
    wrong = []
    for block, line, mark in list(configured_lines(name))[:: every_nth(7)]:
        text = [refusal_message(block, line, generation) for generation in FILES[name]]
        fits = all(each.startswith(NOT_SUPPORTED) for each in text) if mark else "" in text
        if not fits:
            wrong.append((line, text))
    assert wrong == []


@pytest.mark.parametrize(("name", "percent"), [("ios.txt", 95), ("ios_xe.txt", 95), ("match_protocol.txt", 80)])
def test_nearly_all_qos_lines_are_accepted(name: str, percent: int) -> None:
    marks = [mark for _, _, mark in configured_lines(name) if mark != "~"]
    assert 100 * marks.count("") >= percent * len(marks)


@pytest.mark.parametrize(
    ("generation", "lines"),
    [
        ("hqf", ["bandwidth 1000", "queue-limit 100 ms", "no queue-limit 100 ms"]),
        ("hqf", ["bandwidth 1000", "queue-limit dscp af21 40 packets", "no queue-limit dscp af21 40 packets"]),
        ("ios-xe", ["bandwidth 1000", "queue-limit dscp af21 percent 80", "no queue-limit dscp af21 percent 80"]),
    ],
)
def test_limit_is_removed_by_the_whole_line(generation: Generation, lines: list[str]) -> None:
    session = ConfigSession(parse_config(BEFORE, hardware(generation)))
    for line in ("policy-map X", "class VOICE", *lines):
        session.execute(line)
    assert "queue-limit" not in render(session.device)


@pytest.mark.parametrize(
    "line", ["shape average 2000000 account user-defined 4", "bandwidth 64 account user-defined 4"]
)
def test_overhead_accounting_before_hqf_is_refused_by_name(line: str) -> None:
    assert "introduced with HQF" in refusal_message(["policy-map X", "class VOICE"], line, "classic")


def test_removing_a_serial_subinterface_is_refused_by_name() -> None:
    assert refusal_message([], "no interface Serial0/0.16 point-to-point", "hqf").startswith(NOT_SUPPORTED)


CLASS = """\
class-map match-any C
 match protocol ms-teams
 match protocol attribute traffic-class voip-telephony
 match not protocol bittorrent
 match mpls experimental topmost 5
 match none
"""


def test_criterion_that_no_lab_packet_meets_matches_nothing() -> None:
    device = parse_config(CLASS, hardware("ios-xe"))
    config = compile_device(device)
    criteria = config["class_maps"]["C"]["criteria"]
    assert [(each["type"], each.get("negate")) for each in criteria] == [
        ("access_group", False),
        ("access_group", False),
        ("access_group", True),
        ("access_group", False),
        ("access_group", False),
    ]
    assert all(config["access_lists"][each["name"]] == [] for each in criteria if each["type"] == "access_group")
    shown = [f" match {policy_match(each)}" for each in criteria]
    assert shown == CLASS.splitlines()[1:]
    assert CLASS in render(device)
    assert parse_config(render(device), hardware("ios-xe")) == device


def test_undecided_line_is_reported_with_its_class() -> None:
    remarks = apply_config(parse_config("", hardware("hqf")), CLASS)
    assert [each.number for each in remarks if each.line.undecided] == [2, 3, 4, 5]
    assert remarks[0].line.sentence == (
        'undecided: "match protocol ms-teams" has no effect in a lab (class C: depends on the payload, and lab traffic '
        "has no payload that NBAR recognises; no packet matches)"
    )


@pytest.mark.parametrize(
    ("line", "name", "entries"),
    [
        ("match protocol citrix", "protocol citrix", [(6, [1494, 2598]), (17, [1604])]),
        ("match protocol rtp", "protocol rtp", [(17, [16384, 32767])]),
        ("match protocol rtp audio", "protocol rtp audio", [(17, [16384, 32767])]),
        ("match ip rtp 16384 16383", "match ip rtp 16384 16383", [(17, [16384, 32767])]),
    ],
)
def test_port_criteria_match_by_port(line: str, name: str, entries: list[tuple[int, list[int]]]) -> None:
    device = parse_config(f"class-map C\n {line}\n", hardware("hqf"))
    found = compile_device(device)["access_lists"][name]
    to = [(each["protocol"], port["ports"]) for each in found if (port := each.get("destination_port")) is not None]
    assert to == entries
    assert f" {line}\n" in render(device)


def test_ipv6_protocols_have_ipv6_entries() -> None:
    device = parse_config("class-map C\n match protocol ipv6-icmp\n match protocol ripng\n", hardware("ios-xe"))
    lists = compile_device(device)["access_lists"]
    assert [each["source"]["address"] for each in lists["protocol ipv6-icmp"]] == ["::"]
    assert {each["source"]["address"] for each in lists["protocol ripng"]} == {"::"}


TUNNEL = """\
interface Tunnel100
 bandwidth 4000
 ip address 10.9.0.1 255.255.255.0
 tunnel source GigabitEthernet0/0/0
 service-policy output PARENT
"""


@pytest.mark.parametrize("indented", [True, False])
def test_interface_without_a_port_is_stored_with_its_lines(indented: bool) -> None:
    text = TUNNEL if indented else TUNNEL.replace("\n ", "\n")
    device = parse_config(f"{BEFORE}{text}hostname R9\n", hardware("ios-xe"))
    assert TUNNEL in render(device)
    assert device.hostname == "R9"
    assert parse_config(render(device), hardware("ios-xe")) == device
    apply_config(device, "no interface Tunnel100\n")
    assert device == parse_config(f"{BEFORE}hostname R9\n", hardware("ios-xe"))


def test_route_over_an_interface_without_a_port_is_not_used() -> None:
    with pytest.raises(IosError, match="no lab packet uses this kind of interface"):
        parse_config(f"{TUNNEL}ip route 0.0.0.0 0.0.0.0 Tunnel100\n", hardware("hqf"))


def test_class_lines_continue_after_a_policer() -> None:
    text = "policy-map X\n class VOICE\n  police cir 1000000\n  set mpls experimental imposition 5\n  priority\n"
    device = parse_config(BEFORE + text, hardware("ios-xe"))
    printed = [line.strip() for line in render(device).splitlines()]
    assert {"police cir 1000000", "set mpls experimental imposition 5", "priority"} <= set(printed)


def test_mark_without_effect_on_packets_transmits() -> None:
    text = "policy-map X\n class VOICE\n  police cir 1000000\n   exceed-action set-mpls-exp-topmost-transmit 3\n"
    device = parse_config(BEFORE + text, hardware("hqf"))
    [voice] = compile_device(device)["policy_maps"]["X"]["classes"]
    police = voice["police"]
    assert police is not None
    assert police["exceed"] == [{"action": "transmit"}]
    assert "exceed-action set-mpls-exp-topmost-transmit 3" in render(device)


def test_flow_queue_has_its_own_limit() -> None:
    text = "policy-map X\n class VOICE\n  bandwidth 1000\n  fair-queue 64 queue-limit 20\n"
    for generation in ("hqf", "ios-xe"):
        device = parse_config(BEFORE + text, hardware(generation))
        [voice] = compile_device(device)["policy_maps"]["X"]["classes"]
        assert voice["fair_queue"] == {"queues": 64, "queue_limit": 20}
        assert "fair-queue 64 queue-limit 20\n" in render(device)
        [policy] = answer_policy(f"version 17.9\n{text}", rate_bps=10_000_000).policies
        queue = next(each.queue for each in policy.classes if each.name == "VOICE")
        assert queue is not None
        assert queue.per_flow_packets == 20


def test_field_limits_are_percentages_of_the_class_limit() -> None:
    text = "policy-map X\n class VOICE\n  bandwidth 1000\n  queue-limit dscp values af11 cs1 percent 80\n"
    device = parse_config(BEFORE + text, hardware("ios-xe"))
    [voice] = compile_device(device)["policy_maps"]["X"]["classes"]
    assert voice["queue_thresholds"] == [
        {"field": "dscp", "value": value, "limit": {"percent": 80}} for value in (8, 10)
    ]
    assert "queue-limit dscp cs1 percent 80\n  queue-limit dscp af11 percent 80\n" in render(device)


def test_undecided_lines_of_a_pasted_configuration_are_listed() -> None:
    text = f"version 17.9\n{CLASS}policy-map PARENT\n class C\n  shape average 3000000\n{TUNNEL}"
    found = answer_policy(text)
    assert [(each.line, each.text) for each in found.ignored] == [
        (number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if 3 <= number <= 6
    ]
    [policy] = found.policies
    assert (policy.interface, policy.direction, policy.base.bps) == ("Tunnel100", "output", 4_000_000)


def test_priority_queue_time_refers_to_the_class_rate() -> None:
    text = "version 17.9\npolicy-map X\n class VOICE\n  priority 1000\n  queue-limit 20 ms\n"
    [policy] = answer_policy(text, rate_bps=10_000_000).policies
    queue = next(each.queue for each in policy.classes if each.name == "VOICE")
    assert queue is not None
    assert (queue.packets, queue.bytes) == (None, 2500)
