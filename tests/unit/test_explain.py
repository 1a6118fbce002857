"""Command `explain`: the path of one packet through a router."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levels import value_by_level
from qoslab.cli import main
from qoslab.cli.explain import IDLE
from qoslab.errors import UserError
from qoslab.explain.packet import PacketError, parse_packet
from qoslab.explain.render import WIDTH, trace_text
from qoslab.explain.router_steps import Trace, trace_packet
from qoslab.explain.simulator_query import ask_simulator
from qoslab.explain.subject import Subject, pasted_subject
from qoslab.policy.pasted_configuration import read_configuration

TOP = Path(__file__).parents[2]
VOICE = "udp 10.0.0.1:4000 > 10.9.0.2:20000 dscp ef 200 B"

EDGE = """\
version 15.2
class-map match-any VOICE
 match dscp ef
 match access-group 101
class-map match-all WEB
 match access-group name WEB-LIST
 match dscp af21
class-map match-any BOTH
 match class-map WEB
 match class-map VOICE
policy-map MARK
 class VOICE
  police cir 128000 bc 8000 be 8000
   conform-action set-dscp-transmit ef
   exceed-action set-dscp-transmit af41
   violate-action drop
 class BOTH
  set qos-group 7
policy-map CHILD
 class VOICE
  priority 200
 class WEB
  bandwidth 300
  random-detect dscp-based
 class class-default
  fair-queue
policy-map PARENT
 class class-default
  shape average 1000000
  service-policy CHILD
interface FastEthernet0/0
 ip address 10.0.0.254 255.255.255.0
 ip access-group FILTER in
 service-policy input MARK
interface FastEthernet0/1
 ip address 192.0.2.1 255.255.255.252
 service-policy output PARENT
ip route 0.0.0.0 0.0.0.0 192.0.2.2
ip route 10.99.0.0 255.255.0.0 Null0
ip access-list extended FILTER
 remark no tftp
 deny udp any any eq 69
 permit udp any any
 permit tcp any any
ip access-list extended WEB-LIST
 permit tcp any any eq 80
 permit tcp any any eq 443
access-list 101 deny udp any host 10.9.0.9
access-list 101 permit udp any any range 16384 32767
"""
NO_ROUTE = EDGE.replace("ip route 0.0.0.0 0.0.0.0 192.0.2.2\n", "")


def subject(text: str, rate_bps: int | None = None) -> Subject:
    return pasted_subject(read_configuration(text, routes=True), "input", rate_bps)


def traced_text(text: str, packet: str, **options: Any) -> Trace:
    return trace_packet(
        ask_simulator(subject(text, options.pop("rate_bps", None)), parse_packet(packet), **options), "idle"
    )


def steps(found: Trace, kind: str) -> list[dict[str, Any]]:
    return [each for each in found.as_dict()["steps"] if each["kind"] == kind]


def texts(found: Trace, kind: str) -> list[str]:
    return [line["text"] for each in steps(found, kind) for line in each["lines"]]


def number(text: str, line: str) -> int:
    return text.splitlines().index(line) + 1


def test_match_any_names_the_statement_and_the_entry_that_matched() -> None:
    by_list = traced_text(EDGE, "udp 10.0.0.1:4000 > 10.9.0.2:20000 200 B")
    assert by_list.classes == {"input": ["VOICE"], "output": ["class-default", "VOICE"]}
    lines = steps(by_list, "class")[0]["lines"]
    assert [(each["line"], each["text"]) for each in lines] == [
        (number(EDGE, f" {text}" if not text.startswith("access") else text), text)
        for text in (
            "service-policy input MARK",
            "class VOICE",
            "match access-group 101",
            "access-list 101 permit udp any any range 16384 32767",
        )
    ]
    assert "match dscp ef" in texts(traced_text(EDGE, VOICE), "class")


def test_match_all_lists_every_statement() -> None:
    found = traced_text(EDGE, "tcp 10.0.0.1:4000 > 10.9.0.2:443 dscp af21 1500 B")
    assert found.classes["output"] == ["class-default", "WEB"]
    child = steps(found, "class")[-1]["lines"]
    assert [each["text"] for each in child[2:]] == [
        "match access-group name WEB-LIST",
        "permit tcp any any eq 443",
        "match dscp af21",
    ]


def test_entry_that_denies_a_packet_puts_it_in_no_class() -> None:
    found = traced_text(EDGE, "udp 10.0.0.1:4000 > 10.9.0.9:20000 200 B")
    assert found.classes["input"] == ["class-default"]


def test_access_list_of_the_interface_drops_with_its_entry() -> None:
    found = traced_text(EDGE, "udp 10.0.0.1:4000 > 10.9.0.2:69 dscp ef 200 B")
    assert (found.result, found.reason) == ("dropped", "denied")
    assert texts(found, "access_list") == ["ip access-group FILTER in", "deny udp any any eq 69"]
    implicit = traced_text(EDGE, "gre 10.0.0.1 > 10.9.0.2 200 B")
    assert "implicit deny" in steps(implicit, "access_list")[0]["text"]
    # The same entry in a class does not filter the packet; it only keeps it out of the class.
    classified = EDGE.replace(" ip access-group FILTER in\n", "")
    assert traced_text(classified, "udp 10.0.0.1:4000 > 10.9.0.2:69 200 B").result == "sent"


@pytest.mark.parametrize(
    ("bc", "be", "colour", "result", "dscp"),
    [(8000, 8000, "conform", "sent", 46), (1000, 8000, "exceed", "sent", 34), (1000, 1000, "violate", "dropped", 46)],
)
def test_policer_names_colour_bucket_and_marking(bc: int, be: int, colour: str, result: str, dscp: int) -> None:
    text = EDGE.replace("bc 8000 be 8000", f"bc {bc} be {be}")
    found = traced_text(text, "udp 10.0.0.1:4000 > 10.9.0.2:20000 1486 B")
    (police,) = steps(found, "police")
    assert (police["colour"], found.result) == (colour, result)
    assert police["lines"][-1]["text"].startswith(f"{colour}-action")
    before, after = police["bucket_before"], police["bucket_after"]
    assert (before["committed_bytes"], before["excess_bytes"]) == (bc, be)
    spent = {"conform": (1500, 0), "exceed": (0, 1500), "violate": (0, 0)}[colour]
    assert (after["committed_bytes"], after["excess_bytes"]) == (bc - spent[0], be - spent[1])
    if result == "sent":
        assert steps(found, "marked")[0]["dscp"] == dscp
    else:
        assert (found.reason, steps(found, "verdict")[0]["lines"]) == ("police", police["lines"])


def test_set_of_a_class_is_a_step_with_its_line() -> None:
    found = traced_text(EDGE, "tcp 10.0.0.1:4000 > 10.9.0.2:80 dscp af21 100 B")
    assert found.classes["input"] == ["BOTH"]
    assert texts(found, "marking") == ["set qos-group 7"]
    assert steps(found, "marked")[0]["qos_group"] == 7


def test_nested_policy_has_a_step_for_each_level_and_the_priority_queue() -> None:
    found = traced_text(EDGE, VOICE)
    levels = [(each["policy"], each["class"], each["level"]) for each in steps(found, "class")]
    assert levels == [("MARK", "VOICE", 1), ("PARENT", "class-default", 1), ("CHILD", "VOICE", 2)]
    assert steps(found, "class")[2]["lines"][0]["text"] == "service-policy CHILD"
    assert "priority level 1 of policy-map CHILD" in steps(found, "queue")[0]["text"]
    assert texts(found, "priority") == ["priority 200"]
    assert texts(found, "shape") == ["shape average 1000000"]


def test_class_without_a_queue_shares_that_of_class_default() -> None:
    text = EDGE.replace("  bandwidth 300\n  random-detect dscp-based\n", "  set cos 3\n")
    found = traced_text(text, "tcp 10.0.0.1:4000 > 10.9.0.2:80 dscp af21 100 B")
    (queue,) = steps(found, "queue")
    assert queue["class"] == "class-default"
    assert "because class WEB has no queue" in queue["text"]
    assert "fair-queue" in [line["text"] for line in queue["lines"]]


def test_child_that_only_polices_leaves_the_queue_to_its_parent() -> None:
    child = "policy-map CHILD\n class WEB\n  police cir 8000 bc 1600\n"
    start, end = EDGE.index("policy-map CHILD"), EDGE.index("policy-map PARENT")
    found = traced_text(EDGE[:start] + child + EDGE[end:], "tcp 10.0.0.1:4000 > 10.9.0.2:80 dscp af21 100 B")
    assert found.classes["output"] == ["class-default", "WEB"]
    assert [each["class"] for each in steps(found, "queue")] == ["class-default"]
    assert steps(found, "queue")[0]["position"] is None


def test_interface_without_a_policy_has_its_own_queue() -> None:
    found = traced_text(EDGE.replace(" service-policy output PARENT\n", ""), VOICE)
    assert "output" not in found.classes
    assert steps(found, "queue")[0]["interface"] == "FastEthernet0/1"


VLANS = """\
version 12.3
class-map match-any GOLD
 match cos 5
 match ip precedence 5
policy-map SUBIN
 class GOLD
  set dscp ef
policy-map SUBOUT
 class GOLD
  set cos 5
  police 64000 4000 conform-action transmit exceed-action drop
interface FastEthernet0/0
 no ip address
interface FastEthernet0/0.10
 encapsulation dot1Q 10
 ip address 10.1.10.1 255.255.255.0
 service-policy input SUBIN
interface FastEthernet0/0.20
 encapsulation dot1Q 20
 ip address 10.1.20.1 255.255.255.0
 service-policy output SUBOUT
interface Serial0/0
 ip address 10.9.0.1 255.255.255.252
 encapsulation ppp
 clock rate 512000
 rate-limit output access-group 101 128000 8000 16000 conform-action set-prec-transmit 3 exceed-action drop
 rate-limit output 256000 8000 16000 conform-action transmit exceed-action drop
 fair-queue
ip route 10.50.0.0 255.255.0.0 10.9.0.2
access-list 101 permit udp any any
"""


def test_subinterfaces_have_their_policies_tags_and_routes() -> None:
    found = traced_text(VLANS, "udp 10.1.10.5:1 > 10.1.20.7:2 cos 5 500 B")
    assert found.classes == {"input": ["GOLD"], "output": ["GOLD"]}
    assert [step["interface"] for step in (*steps(found, "input_interface"), *steps(found, "route"))] == [
        "FastEthernet0/0.10",
        "FastEthernet0/0.20",
    ]
    # 14 bytes of Ethernet and 4 of the tag count.
    assert "518 bytes" in steps(found, "police")[0]["text"]
    assert [each["cos"] for each in steps(found, "marked")] == [5, 5]
    assert traced_text(VLANS, "udp 10.1.10.5:1 > 10.1.20.7:2 500 B").classes["input"] == ["class-default"]


def test_rate_limit_names_the_line_that_decides() -> None:
    (limit,) = steps(traced_text(VLANS, "udp 10.1.10.5:1 > 10.50.0.7:2 500 B"), "rate_limit")
    assert limit["colour"] == "conforms"
    assert "access-group 101" in limit["lines"][0]["text"]
    (second,) = steps(traced_text(VLANS, "icmp 10.1.10.5 > 10.50.0.7 500 B"), "rate_limit")
    assert second["lines"][0]["text"].startswith("rate-limit output 256000")


def test_wred_names_its_thresholds() -> None:
    found = traced_text(EDGE, "tcp 10.0.0.1:4000 > 10.9.0.2:80 dscp af21 100 B")
    (red,) = steps(found, "random_detect")
    assert (red["class"], red["row"]) == ("WEB", 18)
    assert red["lines"][0]["text"] == "random-detect dscp-based"


def test_departure_is_the_time_on_the_line() -> None:
    # 238 bytes of line, with preamble, FCS and interframe gap, at 100 Mb/s.
    assert traced_text(EDGE, VOICE).departure_ns == 19_040
    assert traced_text(EDGE, VOICE, rate_bps=1_000_000).departure_ns == 1_904_000


def test_route_decides_the_output() -> None:
    assert steps(traced_text(EDGE, VOICE), "route")[0]["lines"][0]["text"] == "ip route 0.0.0.0 0.0.0.0 192.0.2.2"
    null = traced_text(EDGE, "udp 10.0.0.1:4000 > 10.99.0.2:20000 200 B")
    assert (null.result, null.reason) == ("dropped", "null_route")
    assert traced_text(NO_ROUTE, VOICE).reason == "no_route"
    assert traced_text(EDGE, "udp 10.0.0.1:4000 > 10.0.0.254:20000 200 B").result == "received"
    chosen = traced_text(NO_ROUTE, VOICE, interface="Fa0/1")
    assert (chosen.result, steps(chosen, "route")[0]["interface"]) == ("sent", "FastEthernet0/1")


def test_source_without_a_route_is_reported_and_meets_no_input_policy() -> None:
    found = traced_text(NO_ROUTE, "udp 172.16.0.1:4000 > 192.0.2.2:20000 200 B")
    assert "not known" in steps(found, "input_interface")[0]["text"]
    assert "input" not in found.classes
    given = traced_text(NO_ROUTE, "udp 172.16.0.1:4000 > 192.0.2.2:20000 200 B", source="Fa0/0")
    assert given.classes["input"] == ["VOICE"]


def test_paste_without_routes_uses_the_only_interface_with_a_policy() -> None:
    text = "".join(line for line in EDGE.splitlines(keepends=True) if not line.startswith("ip route"))
    found = traced_text(text, "udp 172.16.0.1:4000 > 10.9.0.2:20000 200 B")
    assert found.classes == {"input": ["VOICE"], "output": ["class-default", "VOICE"]}
    assert "the only interface with an output policy" in steps(found, "route")[0]["text"]
    dynamic = EDGE.replace("ip route 0.0.0.0 0.0.0.0 192.0.2.2", "router ospf 1")
    assert traced_text(dynamic, "udp 172.16.0.1:4000 > 10.9.0.2:20000 200 B").classes == found.classes
    dialer = EDGE.replace("0.0.0.0 192.0.2.2", "0.0.0.0 Dialer1")
    assert traced_text(dialer, "udp 172.16.0.1:4000 > 10.9.0.2:20000 200 B").classes == found.classes


def test_ipv6_packet_finds_its_route_and_list() -> None:
    text = """\
version 15.2
ipv6 unicast-routing
class-map match-all SIX
 match access-group name SIX-LIST
policy-map P
 class SIX
  police cir 8000 bc 1500
interface FastEthernet0/0
 ipv6 address 2001:DB8:1::1/64
interface FastEthernet0/1
 ipv6 address 2001:DB8:2::1/64
 service-policy output P
ipv6 route ::/0 2001:DB8:2::2
ipv6 access-list SIX-LIST
 permit udp any any eq 5004
"""
    found = traced_text(text, "udp [2001:db8:1::9]:4000 > [2001:db8:9::9]:5004 200 B")
    assert found.classes == {"output": ["SIX"]}
    assert texts(found, "route") == ["ipv6 route ::/0 2001:DB8:2::2"]
    assert texts(found, "class")[-1] == "permit udp any any eq 5004"
    assert traced_text(text, "udp [2001:db8:1::9]:4000 > [2001:db8:9::9]:5005 200 B").classes == {
        "output": ["class-default"]
    }


def test_policy_map_alone_is_assumed_to_be_on_an_interface() -> None:
    text = "policy-map P\n class class-default\n  police cir 8000 bc 1500\n"
    found = traced_text(text, "udp 10.0.0.1:1 > 10.0.0.2:2 1500 B")
    assert (found.result, found.reason) == ("dropped", "police")
    assert any("is assumed to be on" in note for note in found.notes)


def test_ignored_lines_are_noted() -> None:
    text = EDGE.replace(" match dscp ef\n", " match dscp ef\n match protocol webex-meeting\n")
    found = traced_text(text, "tcp 10.0.0.1:4000 > 10.9.0.2:443 dscp af21 1500 B")
    assert any("class VOICE" in note and "match protocol webex-meeting" in note for note in found.notes)
    assert any("unread or undecided QoS lines" in note for note in found.notes)


def test_packet_longer_than_the_mtu_is_noted() -> None:
    notes = traced_text(EDGE, "udp 10.0.0.1:4000 > 10.9.0.2:20000 1501 B").notes
    assert any("exceeds the MTU of FastEthernet0/1, 1500 bytes" in note for note in notes)
    assert traced_text(EDGE, "udp 10.0.0.1:4000 > 10.9.0.2:20000 1500 B").notes == ()


def test_page_shows_the_path_through_its_configuration() -> None:
    page = (TOP / "docs" / "policies.md").read_text(encoding="utf-8")
    configuration = re.search(r"```ios\n(.*?)```", page, re.DOTALL)
    shown = re.search(r"## Follow one packet.*?```text\n(.*?)```", page, re.DOTALL)
    typed = re.search(r'qoslab explain configs/wan.txt "(.*?)" --from', page)
    assert configuration and shown and typed
    subject = pasted_subject(read_configuration(configuration[1], routes=True), "configs/wan.txt", None)
    found = trace_packet(ask_simulator(subject, parse_packet(typed[1]), source="Gi0/0"), IDLE)
    assert trace_text(found) == shown[1]


PASTES = sorted((TOP / "tests" / "goldens" / "policy").glob("*.ios"))


@pytest.mark.parametrize("path", PASTES, ids=lambda path: path.stem)
def test_any_paste_has_a_verdict_or_an_error(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["explain", str(path), VOICE])
    printed = capsys.readouterr()
    assert "Verdict" in printed.out if status == 0 else "expected" in printed.err
    assert "Traceback" not in printed.err


def test_text_has_80_columns_and_numbers() -> None:
    for packet in (VOICE, "tcp 10.0.0.1:4000 > 10.9.0.2:443 dscp af21 1500 B", "icmp 10.0.0.1 > 10.9.0.2"):
        text = trace_text(traced_text(EDGE, packet))
        assert max(map(len, text.splitlines())) <= WIDTH
        assert re.search(r"(?m)^ +1  Input interface", text)


@pytest.mark.parametrize(
    ("packet", "found", "expected"),
    [
        ("", "", "a protocol, two addresses and a size"),
        ("upd 10.0.0.1:1 > 10.0.0.2:2", "upd", "a protocol"),
        ("udp 10.0.0.1:1 10.0.0.2:2", "udp 10.0.0.1:1 10.0.0.2:2", '">"'),
        ("udp 10.0.0.1 > 10.0.0.2:2", "10.0.0.1", "a source port"),
        ("udp 10.0.0.300:1 > 10.0.0.2:2", "10.0.0.300:1", "the source"),
        ("udp 10.0.0.1:70000 > 10.0.0.2:2", "70000", "0 to 65535"),
        ("udp 10.0.0.1:1 > 10.0.0.2:2 dscp ee", "ee", "a DSCP"),
        ("udp 10.0.0.1:1 > 10.0.0.2:2 dscp", "the end", "a value of dscp"),
        ("udp 10.0.0.1:1 > 10.0.0.2:2 fast", "fast", "a size"),
        ("udp 10.0.0.1:1 > 10.0.0.2:2 20 B", "20 B", "28 to 65535"),
        ("udp 10.0.0.1:1 > [2001:db8::1]:2", "2001:db8::1", "IPv4"),
        ("icmp 10.0.0.1:1 > 10.0.0.2", "port 1", "no port"),
        ("² 10.0.0.1 > 10.0.0.2", "²", "a protocol"),
        ("udp 10.0.0.1:² > 10.0.0.2:1", "²", "0 to 65535"),
    ],
)
def test_packet_error_names_found_and_expected(packet: str, found: str, expected: str) -> None:
    with pytest.raises(PacketError) as raised:
        parse_packet(packet)
    assert f'found "{found}", expected' in raised.value.message
    assert expected in raised.value.message


@pytest.mark.parametrize(
    "text",
    [
        VOICE,
        "tcp [2001:db8::1]:40 > [2001:db8::2]:80 dscp default syn 60 B",
        "icmp 10.0.0.1 > 10.0.0.2 type 8 dscp cs6 64 B",
        "esp 10.0.0.1 > 10.0.0.2 dscp 3 ecn 1 cos 5 100 B",
    ],
)
def test_printed_packet_parses_to_the_same_packet(text: str) -> None:
    packet = parse_packet(text)
    assert parse_packet(str(packet)) == packet
    assert str(packet) == text


def test_equivalent_packet_forms_are_equal() -> None:
    packet = parse_packet(VOICE)
    assert parse_packet("udp 10.0.0.1:4000->10.9.0.2:20000 DSCP 46 200") == packet
    assert parse_packet("17 10.0.0.1:4000>10.9.0.2:20000 tos 184 200 bytes") == packet
    assert parse_packet("udp 10.0.0.1:4000 > 10.9.0.2:20000 precedence 5 200B") == replace(packet, dscp=40)


WORDS = ("udp", "tcp", "icmp", ">", "->", "10.0.0.1:4000", "10.0.0.2:5004", "[2001:db8::1]:1", "fe80::1", "dscp", "ef")
WORDS += ("precedence", "tos", "ecn", "cos", "type", "syn", "200", "B", "200B", "-1", "999999", "[", ":", "²", "١")


@settings(max_examples=value_by_level(short=50, long=2000))
@given(st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=8)), max_size=12))
def test_any_text_is_a_packet_or_a_packet_error(words: list[str]) -> None:
    try:
        packet = parse_packet(" ".join(words))
    except PacketError:
        return
    assert parse_packet(str(packet)) == packet


def test_missing_interface_is_refused() -> None:
    with pytest.raises(UserError, match="expected one of FastEthernet0/0, FastEthernet0/1"):
        traced_text(EDGE, VOICE, interface="Serial9/9")


def test_command_reads_a_file_and_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "edge.ios"
    file.write_text(EDGE, encoding="utf-8")
    assert main(["explain", str(file), VOICE, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["result"], printed["departure_ns"]) == ("sent", 19_040)
    assert [each["step"] for each in printed["steps"]] == list(range(1, len(printed["steps"]) + 1))
    assert main(["explain", "--config", str(file), VOICE]) == 0
    assert "Verdict" in capsys.readouterr().out
    assert main(["explain", "EDGE", VOICE, "--config", str(file)]) == 0
    assert capsys.readouterr().out.startswith("EDGE: udp")
    for options in (["--in", "hqf-nested"], ["--during", "x"], ["--arm", "x"], ["--set", "a=1"]):
        assert main(["explain", str(file), VOICE, *options]) != 0
        assert f"found {options[0]} with a configuration file" in capsys.readouterr().err
    assert main(["explain", str(file)]) != 0
    assert "expected one" in capsys.readouterr().err
    assert main(["explain", str(file), VOICE, "--at", "1s"]) != 0
    assert "--during" in capsys.readouterr().err


def test_configuration_without_a_policy_has_a_route_and_a_queue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r1.txt").write_text(
        "version 15.2\nhostname R1\ninterface GigabitEthernet0/0\n ip address 10.0.0.254 255.255.255.0\n"
        "interface GigabitEthernet0/1\n ip address 10.9.0.254 255.255.255.0\n"
    )
    assert main(["explain", "--config", str(tmp_path / "r1.txt"), VOICE]) == 0
    output = capsys.readouterr().out
    assert "10.9.0.0/24, connected to GigabitEthernet0/1" in output
    assert "GigabitEthernet0/1, first in, first out" in output
    (tmp_path / "r1.txt").write_text("version 15.2\nhostname R1\n")
    assert main(["explain", "--config", str(tmp_path / "r1.txt"), VOICE]) == 2
    assert "found no interface and no policy-map, expected a configuration" in capsys.readouterr().err


def test_command_takes_a_router_of_an_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    packet = "udp 10.0.0.10:4000 > 10.0.20.10:5003 284 B"
    assert main(["explain", "a1", packet, "--in", "hqf-nested", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["classes"] == {"output": ["P5003", "class-default"]}
    assert main(["explain", "a1", packet, "--in", "hqf-nested", "--rate", "1m"]) != 0
    assert "found --rate with a router of an experiment" in capsys.readouterr().err
    assert main(["explain", "r9", packet, "--in", "hqf-nested"]) != 0
    assert "expected a router of hqf-nested: a1, a2" in capsys.readouterr().err
