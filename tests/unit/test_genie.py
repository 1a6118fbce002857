"""Parsers of IOS output, on the article's output and against Genie's parser for IOS XE."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qoslab.genie import own_parsers
from qoslab.genie import show_parser as parsing
from qoslab.genie.policy_map_interface import parse_policy_map_interface
from qoslab.genie.policy_parsers import parse_policy_map
from qoslab.genie.show_parser import ParsedOutput, parse

RECORDED = Path(__file__).parent.parent / "recorded" / "ios"


def read(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text()


def find_class(parsed: dict[str, Any], interface: str, direction: str, policy: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = parsed[interface]["service_policy"][direction]["policy_name"][policy]["class_map"][name]
    return found


@pytest.mark.parametrize("form", ["classic", "flattened"])
def test_policer_of_the_article_is_reproduced(form: str) -> None:
    found = find_class(
        parse_policy_map_interface(read(f"police.{form}")), "FastEthernet0/1", "output", "Police", "class-default"
    )
    assert found == {
        "match_evaluation": "match-any",
        "packets": 2070,
        "bytes": 2998927,
        "rate": {"interval": 300, "offered_rate_bps": 83000, "drop_rate_bps": 0},
        "match": ["any"],
        "police": {
            "cir_bps": 1000000,
            "cir_bc_bytes": 31250,
            "conformed": {"packets": 1394, "bytes": 1992832, "bps": 57000, "actions": {"transmit": True}},
            "exceeded": {"packets": 673, "bytes": 1005594, "bps": 30000, "actions": {"drop": True}},
        },
    }


@pytest.mark.parametrize("form", ["classic", "flattened"])
def test_shaper_of_the_article_is_reproduced(form: str) -> None:
    found = find_class(
        parse_policy_map_interface(read(f"shape.{form}")), "FastEthernet0/1", "output", "Shape", "class-default"
    )
    assert found["traffic_shaping"] == {
        "target_rate_bps": 1000000,
        "average_rate_bps": 1000000,
        "byte_limit": 6250,
        "sustain_bits_per_interval": 25000,
        "excess_bits_per_interval": 25000,
        "interval_ms": 25,
        "increment_bytes": 3125,
        "adapt_active": "-",
        "queue_depth": 69,
        "packets": 554,
        "bytes": 715690,
        "packets_delayed": 491,
        "bytes_delayed": 708722,
        "shaping_active": True,
    }
    # the keys that Genie's parser gives for the shaper of later releases
    assert found["shape_type"] == "average"
    assert (found["shape_cir_bps"], found["shape_bc_bps"], found["shape_be_bps"]) == (1000000, 25000, 25000)
    assert (found["target_shape_rate"], found["queue_depth"]) == (1000000, 69)
    assert "unrecognised" not in found


def test_peak_shaper_is_recognised_by_its_two_rates() -> None:
    text = read("shape.classic").replace("1000000/1000000", "2000000/1000000")
    found = find_class(parse_policy_map_interface(text), "FastEthernet0/1", "output", "Shape", "class-default")
    assert (found["shape_type"], found["target_shape_rate"], found["shape_cir_bps"]) == ("peak", 2000000, 1000000)


def test_policy_of_a_circuit_belongs_to_its_interface() -> None:
    text = read("police.classic").replace(" FastEthernet0/1 ", " ATM1/0.1: VC 0/33 - ")
    assert list(parse_policy_map_interface(text)) == ["ATM1/0.1"]


def test_overhead_accounting_is_read_below_shape_and_bandwidth() -> None:
    text = """ FastEthernet0/1

  Service-policy output: Shape

    Class-map: class-default (match-any)
      3 packets, 300 bytes
      shape (average) cir 1000000, bc 4000, be 4000
      target shape rate 1000000
       Overhead Accounting Enabled
      bandwidth remaining ratio 1
      Overhead Accounting enabled
"""
    found = find_class(parse_policy_map_interface(text), "FastEthernet0/1", "output", "Shape", "class-default")
    assert found["overhead_accounting"] == "enabled"
    assert "unrecognised" not in found


def test_nested_policies_are_parsed_in_both_directions() -> None:
    parsed = parse_policy_map_interface(read("nested.classic"))
    voice = find_class(parsed, "Serial0/1/0", "input", "Mark", "Voice")
    assert voice["match_stats"]["access-group 101"] == {
        "packets": 3,
        "bytes": 600,
        "rate": {"interval": 30, "offered_rate_bps": 0},
    }
    assert voice["packets"] == 12
    assert voice["qos_set"] == {"ip precedence": {"5": {"packets_marked": 12}}}

    bulk = find_class(parsed, "Serial0/1/0", "output", "Parent", "Bulk")
    assert bulk["police"]["violated"] == {"packets": 500, "bytes": 300000, "bps": 56000, "actions": {"drop": True}}
    assert bulk["police"]["conformed"]["actions"] == {"set_prec_transmit": "1"}
    assert (bulk["police"]["pir_bps"], bulk["police"]["pir_be_bytes"]) == (512000, 16000)
    child = bulk["child_policy_name"]["Child"]["class_map"]
    assert (child["Inner"]["bandwidth_kbps"], child["Inner"]["queue_depth"]) == (128, 4)
    assert (child["class-default"]["maximum_hashed_queues"], child["class-default"]["total_drops"]) == (256, 400)
    # the class after the nested policy belongs to the outer one again
    assert find_class(parsed, "Serial0/1/0", "output", "Parent", "class-default")["packets"] == 7
    assert "unrecognised" not in str(parsed)


def test_unknown_line_is_shown_not_dropped() -> None:
    text = read("police.classic") + "      weighing of anchors 17\n"
    found = find_class(parse_policy_map_interface(text), "FastEthernet0/1", "output", "Police", "class-default")
    assert found["unrecognised"] == ["weighing of anchors 17"]


def test_output_without_its_interface_line_is_parsed() -> None:
    text = "\n".join(read("police.classic").splitlines()[1:])
    assert parse_policy_map_interface(text) == {}
    parsed = parse_policy_map_interface(text, "FastEthernet0/1")
    assert parsed == parse_policy_map_interface(read("police.classic"))


LINES = (read("nested.classic") + read("shape.classic") + read("queueing.hqf")).splitlines()
HEADINGS = [line for line in LINES if ":" in line or line.startswith(" Serial")]


@given(st.lists(st.sampled_from(LINES) | st.sampled_from(HEADINGS), max_size=60))
def test_lines_in_any_order_never_raise(lines: list[str]) -> None:
    parse_policy_map_interface("\n".join(lines))


def subset(part: Any, whole: Any, path: str = "") -> None:
    """Return whether everything in `part` is in `whole`, with the same value."""
    if isinstance(part, dict):
        for name, value in part.items():
            assert name in whole, f"{path}/{name} is missing"
            subset(value, whole[name], f"{path}/{name}")
    else:
        assert part == whole, path


@pytest.mark.parametrize("name", ["queueing.hqf", "police.classic"])
def test_qoslab_parser_returns_everything_that_genie_returns(name: str) -> None:
    theirs = parse("iosxe", "show policy-map interface", read(name))
    ours = parse("ios", "show policy-map interface", read(name))
    assert theirs.parsed is not None
    subset(theirs.parsed, ours.parsed)


def test_genie_accepts_and_checks_the_parsed_structure() -> None:
    for name in ("police.classic", "shape.classic", "nested.classic", "queueing.hqf"):
        assert parse("ios", "show policy-map interface", read(name)).parsed == parse_policy_map_interface(read(name))


def test_parser_accepts_all_forms_of_the_command() -> None:
    for command in ("show policy-map interface FastEthernet0/1", "show policy-map interface FastEthernet0/1 output"):
        parsed = parse("ios", command, read("shape.classic")).parsed
        assert parsed is not None
        assert find_class(parsed, "FastEthernet0/1", "output", "Shape", "class-default")["queue_depth"] == 69


def test_unparsed_output_has_a_reason() -> None:
    assert parse("ios", "show tides", "high\n") == ParsedOutput(None, "there is no parser for 'show tides' on ios")
    assert parse("ios", "show policy-map interface", "\n") == ParsedOutput(None, "the parser recognised nothing in it")


def test_commands_known_to_genie_for_ios_xe_only_are_parsed() -> None:
    text = " Class Map match-any class-default (id 0)\n   Match any \n"
    assert parse("ios", "show class-map", text).parsed is not None
    text = "  Policy Map Shape\n    Class class-default\n      Average Rate Traffic Shaping\n      cir 1000000 (bps)\n"
    parsed = parse("ios", "show policy-map", text).parsed
    assert parsed is not None
    assert parsed["policy_map"]["Shape"]["class"]["class-default"]["cir_bps"] == 1000000


@pytest.mark.parametrize("name", ["show_policy-map", "show_class-map"])
def test_configuration_is_parsed_like_genie_for_ios_xe(name: str) -> None:
    command = name.replace("_", " ")
    theirs, ours = parse("iosxe", command, read(name)), parse("ios", command, read(name))
    assert theirs.parsed is not None
    subset(theirs.parsed, ours.parsed)
    assert "unrecognised" not in str(ours.parsed)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("police 1000000", {"cir_bps": 1000000}),
        ("police cir percent 20 bc 10 ms", {"cir_percent": 20, "bc_ms": 10}),
        ("police cir 8000 bc 1500 be 3000", {"cir_bps": 8000, "cir_bc_bytes": 1500, "cir_be_bytes": 3000}),
        (
            "police rate 8000 bps burst 1500 bytes peak-rate 16000 bps peak-burst 3000 bytes",
            {"rate": 8000, "cir_bc_bytes": 1500, "pir": 16000, "pir_be_bytes": 3000},
        ),
        (
            "police cir 8000 bc 1500 conform-action set-prec-transmit 1 exceed-action drop",
            {
                "cir_bps": 8000,
                "cir_bc_bytes": 1500,
                "conform_action": ["set-prec-transmit 1"],
                "exceed_action": ["drop"],
            },
        ),
    ],
)
def test_all_forms_of_a_policer_are_parsed(line: str, expected: dict[str, Any]) -> None:
    # Genie's parser raises for most of these
    parsed = parse_policy_map(f"  Policy Map P\n    Class class-default\n     {line}\n")
    assert parsed == {"policy_map": {"P": {"class": {"class-default": {"police": expected}}}}}


def test_bandwidth_in_percent_belongs_to_the_class() -> None:
    parsed = parse_policy_map("  Policy Map P\n    Class C\n      bandwidth 20 (%)\n")
    assert parsed["policy_map"]["P"]["class"]["C"] == {"bandwidth_percent": 20}


def test_match_criteria_unknown_to_genie_are_parsed() -> None:
    criteria = ("access-group  101", "not protocol icmp", "packet length min 5")
    text = " Class Map match-all C (id 7)\n" + "".join(f"   Match {criterion}\n" for criterion in criteria)
    assert parse("ios", "show class-map", text).parsed == {
        "class_maps": {
            "C": {
                "match_criteria": "match-all",
                "cm_id": 7,
                "index": {
                    "1": {"match": {"access_group": ["101"]}},
                    "2": {"match": {"not protocol": ["icmp"]}},
                    "3": {"match": {"packet_length": ["min", "5"]}},
                },
            }
        }
    }


def test_running_configuration_is_parsed_by_indentation() -> None:
    text = (
        "Building configuration...\n\nCurrent configuration : 9 bytes\n!\nhostname R1\n!\n"
        "policy-map P\n class class-default\n  police cir 8000\n!\n"
        "interface FastEthernet0/1\n service-policy output P\n!\nend\n"
    )
    assert parse("ios", "show running-config", text).parsed == {
        "hostname R1": {},
        "policy-map P": {"class class-default": {"police cir 8000": {}}},
        "interface FastEthernet0/1": {"service-policy output P": {}},
    }


GOLDENS = RECORDED.parents[1] / "goldens" / "ios"
VLANS = """\
Virtual LAN ID:  100 (IEEE 802.1Q Encapsulation)

   vLAN Trunk Interface:   FastEthernet0/0.100

   Protocols Configured:   Address:              Received:        Transmitted:
           IP              10.0.100.1                    0                   0

   0 packets, 0 bytes input
   0 packets, 0 bytes output
"""
QUEUE = """\
  Input queue: 0/75/0/0 (size/max/drops/flushes); Total output drops: 0
  Queueing strategy: Class-based queueing
  Output queue: 10/1000/64/0 (size/max total/threshold/drops)
     Conversations  1/1/64 (active/max active/max total)
     Reserved Conversations 1/1 (allocated/max allocated)
     Available Bandwidth 64 kilobits/sec

  (depth/weight/total drops/no-buffer drops/interleaves) 10/114/0/0/0
  Conversation 73, linktype: ip, length: 1304
  source: 10.0.0.10, destination: 10.0.3.1, id: 0x0000, ttl: 63,
  TOS: 0 prot: 6, source port 32768, destination port 5001
"""


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("show policy-map interface", (GOLDENS / "show_policy-map_interface.hqf.txt").read_text()),
        ("show policy-map interface", (GOLDENS / "show_policy-map_interface.policed.txt").read_text()),
        ("show queue Serial0/1/0", QUEUE),
        ("show vlans", VLANS),
    ],
)
def test_output_parsed_without_genie_equals_that_of_genie(command: str, text: str) -> None:
    found = own_parsers.parse(command, text)
    assert own_parsers.supports_command(command) and found == parse("ios", command, text)
    assert found is not None and found.parsed
    assert own_parsers.parse(command, "") == parse("ios", command, "")


def test_parser_of_interfaces_is_the_one_in_genies_table() -> None:
    for command in ("show interfaces", "show interfaces FastEthernet0/1"):
        looked_up = parsing._find_parser("ios", command, None)
        assert looked_up is not None
        named = command.partition("interfaces ")[2] or None
        assert parsing._interface_parser(named) == looked_up[:2]
