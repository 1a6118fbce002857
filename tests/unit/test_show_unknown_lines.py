"""Unknown lines in `show policy-map interface` and its relatives: each is stored, and everything else is parsed."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from qoslab.genie.policy_map_interface import parse_policy_map_interface
from qoslab.genie.show_parser import parse

PRINT = """\
 Serial0/0

  Service-policy output: WAN

    queue stats for all priority classes:
      Queueing
      queue limit 64 packets
      (queue depth/total drops/no-buffer drops) 0/3/0
      (pkts output/bytes output) 40/8000

    Class-map: VOICE (match-all)
      40 packets, 8000 bytes
      5 minute offered rate 4000 bps, drop rate 0 bps
      Match: ip dscp ef (46)
      Priority: 30% (300 kbps), burst bytes 7500, b/w exceed drops: 3

      QoS Set
        dscp ef
          Packets marked 40
      police:
          cir 300000 bps, bc 9375 bytes
        conformed 37 packets, 7400 bytes; actions:
          transmit
        exceeded 3 packets, 600 bytes; actions:
          drop
        conformed 3000 bps, exceed 0 bps

    Class-map: class-default (match-any)
      10 packets, 1000 bytes
      5 minute offered rate 0 bps, drop rate 0 bps
      Match: any
      Queueing
      queue limit 64 packets
      (queue depth/total drops/no-buffer drops) 0/0/0
      (pkts output/bytes output) 10/1000
 Serial0/1

  Service-policy input: IN

    Class-map: class-default (match-any)
      7 packets, 700 bytes
      5 minute offered rate 0 bps, drop rate 0 bps
      Match: any
"""
INDENTED = "        frobnication 7 of 9"


def parsed_output(text: str, command: str = "show policy-map interface") -> dict[str, Any]:
    found = parse("ios", command, text)
    assert found.parsed is not None, found.reason
    return found.parsed


def without_unrecognised(values: Any) -> tuple[Any, list[str]]:
    """Return the values without `unrecognised`, and all its lines."""
    lines: list[str] = []

    def strip(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        lines.extend(value.get("unrecognised", []))
        return {name: strip(each) for name, each in value.items() if name != "unrecognised"}

    return strip(copy.deepcopy(values)), lines


LINES = PRINT.splitlines()
PLACES = [place for place in range(1, len(LINES) + 1) if LINES[place - 1].strip()]
# An unknown mark's counter is unknown, too.
PLACES.remove(LINES.index("        dscp ef") + 1)


@pytest.mark.parametrize("unknown", [INDENTED, INDENTED.strip()], ids=["indented", "at the margin"])
def test_unknown_line_anywhere_does_not_affect_others(unknown: str) -> None:
    whole = parse_policy_map_interface(PRINT)
    for place in PLACES:
        text = "\n".join((*LINES[:place], unknown, *LINES[place:]))
        found, lines = without_unrecognised(parse_policy_map_interface(text))
        assert found == whole, LINES[place - 1]
        in_head = LINES[place - 1].strip() in ("Serial0/0", "Serial0/1")
        assert lines == ([] if in_head else ["frobnication 7 of 9"]), LINES[place - 1]


def test_schema_accepts_unknown_lines_everywhere() -> None:
    text = "\n".join(line for place, known in enumerate(LINES, 1) for line in (known, *[INDENTED][: place in PLACES]))
    found, lines = without_unrecognised(parsed_output(text))
    assert found == parsed_output(PRINT)
    assert len(lines) == len(PLACES) - 2


@pytest.mark.parametrize("marking", ["mpls experimental imposition 1", "fr-de", "atm-clp"])
def test_unmodelled_mark_has_its_counter(marking: str) -> None:
    text = PRINT.replace(
        "        dscp ef\n          Packets marked 40\n", f"        {marking}\n          Packets marked 40\n"
    )
    voice = parsed_output(text)["Serial0/0"]["service_policy"]["output"]["policy_name"]["WAN"]["class_map"]["VOICE"]
    assert voice["unrecognised"] == [marking, "Packets marked 40"]
    assert "qos_set" not in voice
    assert voice["police"]["conformed"]["packets"] == 37


def test_counter_of_an_unknown_mark_does_not_replace_that_of_a_known_one() -> None:
    text = PRINT.replace("Packets marked 40\n", "Packets marked 40\n        fr-de\n          Packets marked 2\n")
    voice = parsed_output(text)["Serial0/0"]["service_policy"]["output"]["policy_name"]["WAN"]["class_map"]["VOICE"]
    assert voice["qos_set"] == {"dscp": {"ef": {"packets_marked": 40}}}
    assert voice["unrecognised"] == ["fr-de", "Packets marked 2"]


def test_unknown_lines_before_the_level_of_a_priority_queue_stay_with_it() -> None:
    text = PRINT.replace(
        "      Queueing\n      queue limit", "      Queueing\n      odd 1\n      priority level 1\n      queue limit", 1
    )
    wan = parsed_output(text)["Serial0/0"]["service_policy"]["output"]["policy_name"]["WAN"]
    assert wan["queue_stats_for_all_priority_classes"]["priority_level"] == {
        "1": {
            "queueing": True,
            "unrecognised": ["odd 1"],
            "queue_limit_packets": "64",
            "queue_depth": 0,
            "total_drops": 3,
            "no_buffer_drops": 0,
            "pkts_output": 40,
            "bytes_output": 8000,
        }
    }


def test_changed_known_line_does_not_affect_others() -> None:
    changed = "\n".join(f"{line[:6]}~{line[6:]}" if line.startswith("      ") else line for line in LINES)
    found, lines = without_unrecognised(parsed_output(changed))
    assert set(found) == {"Serial0/0", "Serial0/1"}
    assert set(found["Serial0/0"]["service_policy"]["output"]["policy_name"]["WAN"]["class_map"]) == {
        "VOICE",
        "class-default",
    }
    assert len(lines) == sum(line.startswith("      ") for line in LINES)


CONTROL_PLANE = PRINT.partition(" Serial0/1\n")[2]


@pytest.mark.parametrize(
    "head, name",
    [
        ("Control Plane ", "Control Plane"),
        ("Control Plane Host", "Control Plane Host"),
        ("Serial4/1: DLCI 16 -", "Serial4/1: DLCI 16"),
        ("Serial4/1.7: DLCI 107 -", "Serial4/1.7: DLCI 107"),
        ("ATM0/1: VC 0/33 -", "ATM0/1"),
        ("Virtual-Access3: owner PPP", "Virtual-Access3"),
    ],
)
def test_interface_blocks_have_several_headings(head: str, name: str) -> None:
    found = parsed_output(f" {head}\n{CONTROL_PLANE}{PRINT}")
    assert set(found) == {name, "Serial0/0", "Serial0/1"}
    assert found[name]["service_policy"]["input"]["policy_name"]["IN"]["class_map"]["class-default"]["packets"] == 7


def test_policy_of_the_control_plane_is_parsed() -> None:
    found = parsed_output(f" Control Plane \n{CONTROL_PLANE}", "show policy-map control-plane")
    assert list(found) == ["Control Plane"]


def test_counts_of_thousands_of_digits_are_unknown() -> None:
    line = f"{'9' * 5000} packets, 1 bytes"
    text = PRINT.replace("7 packets, 700 bytes", line)
    default = parsed_output(text)["Serial0/1"]["service_policy"]["input"]["policy_name"]["IN"]["class_map"][
        "class-default"
    ]
    assert default["unrecognised"] == [line]
