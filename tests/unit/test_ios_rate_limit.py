"""Committed access rate on the command line: `rate-limit`, its lists, printed lines and data-plane configuration."""

from __future__ import annotations

from typing import Any

import pytest
from fake_router import FakeRouter, interface_counters, type_lines
from ios_configured import BASE, configured_device, running_lines

from qoslab.errors import IosError
from qoslab.genie.show_parser import parse
from qoslab.ios.compile import compile_device
from qoslab.ios.device_config.config_equivalence import configuration_differences
from qoslab.ios.model.device import Generation
from qoslab.ios.parse import apply_config, parse_config
from qoslab.ios.running_config import render
from qoslab.ios.show.rate_limit import show_rate_limit
from rollback_lines import undo_lines

# Cisco's example of a line to an Internet exchange: web traffic, then file transfers, then the rest.
LINES = """\
access-list 101 permit tcp any any eq www
access-list 102 permit tcp any any eq ftp
access-list rate-limit 25 mask 82
interface Serial0/0
 rate-limit output access-group 101 20000000 24000 32000 conform-action set-prec-transmit 5 \
exceed-action set-prec-transmit 0
 rate-limit output access-group rate-limit 25 10000000 24000 32000 conform-action set-dscp-continue ef \
exceed-action drop
 rate-limit output 8000000 16000 24000 conform-action set-qos-continue 9 exceed-action drop
 rate-limit input dscp af11 64000 8000 8000 conform-action transmit exceed-action continue
"""


@pytest.mark.parametrize("generation", ["classic", "hqf"])
def test_lines_are_printed_in_order_with_input_first(generation: Generation) -> None:
    found = [line for line in running_lines(configured_device(LINES, generation)) if "rate-limit" in line]
    assert found == [
        "rate-limit input dscp af11 64000 8000 8000 conform-action transmit exceed-action continue",
        "rate-limit output access-group 101 20000000 24000 32000 conform-action set-prec-transmit 5"
        " exceed-action set-prec-transmit 0",
        "rate-limit output access-group rate-limit 25 10000000 24000 32000 conform-action set-dscp-continue ef"
        " exceed-action drop",
        "rate-limit output 8000000 16000 24000 conform-action set-qos-continue 9 exceed-action drop",
        "access-list rate-limit 25 mask 82",
    ]


def test_data_plane_gets_each_line() -> None:
    found = compile_device(configured_device(LINES))["interfaces"]["Serial0/0"]
    assert [each["match"] for each in found["rate_limit_output"]] == [
        {"type": "access_group", "name": "101"},
        {"type": "precedence", "values": [1, 7]},
        None,
    ]
    assert found["rate_limit_output"][1] == {
        "match": {"type": "precedence", "values": [1, 7]},
        "rate_bps": 10_000_000,
        "normal_burst_bytes": 24_000,
        "extended_burst_bytes": 32_000,
        "conform": {"then": "continue", "set": {"field": "dscp", "value": 46}},
        "exceed": {"then": "drop"},
    }
    assert [each["match"] for each in found["rate_limit_input"]] == [{"type": "dscp", "values": [10]}]


def test_unconfigured_access_lists_match_nothing() -> None:
    tail = "8000 1000 2000 conform-action transmit exceed-action drop\n"
    text = (
        f"interface Serial0/0\nrate-limit input access-group 7 {tail}rate-limit input access-group rate-limit 7 {tail}"
    )
    config = compile_device(configured_device(text))
    found = config["interfaces"]["Serial0/0"]["rate_limit_input"]
    assert [each["match"] for each in found] == [
        {"type": "access_group", "name": "7"},
        {"type": "any", "negate": True},
    ]
    assert config["access_lists"]["7"] == []


def test_only_the_changed_line_is_removed_and_entered_once() -> None:
    device = configured_device(LINES)
    line = "rate-limit output 8000000 16000 24000 conform-action set-qos-continue 9 exceed-action drop"
    apply_config(device, f"interface Serial0/0\n{line}\n")
    assert len(device.interfaces["Serial0/0"].rate_limits) == 4
    apply_config(device, f"interface Serial0/0\nno {line}\nno access-list rate-limit 25\n")
    assert len(device.interfaces["Serial0/0"].rate_limits) == 3
    assert device.rate_limit_lists == {}


def test_moved_line_is_re_entered_after_the_others() -> None:
    before = configured_device(LINES)
    after = configured_device(LINES)
    first, second, *rest = after.interfaces["Serial0/0"].rate_limits[1:]
    after.interfaces["Serial0/0"].rate_limits = (after.interfaces["Serial0/0"].rate_limits[0], second, first, *rest)
    lines = undo_lines(render(before), render(after), before.hardware)
    apply_config(after, "\n".join(lines))
    assert after == before


def test_configurations_are_compared_by_meaning() -> None:
    running = render(configured_device(LINES))
    assert configuration_differences(LINES.replace("set-dscp-continue ef", "set-dscp-continue 46"), running) == []
    other = LINES.replace("64000 8000 8000", "64000 8000 9000")
    assert configuration_differences(other, running) == [
        "interface Serial0/0: configured `rate-limit input dscp af11 64000 8000 9000 conform-action transmit"
        " exceed-action continue`, but no such line is active"
    ]


def test_burst_below_a_2000th_of_the_rate_is_refused() -> None:
    device = parse_config(BASE, configured_device("").hardware)
    line = "rate-limit input 8000000 3999 8000 conform-action transmit exceed-action drop"
    with pytest.raises(IosError, match="Normal burst must be at least 4000 bytes at 8000000 bps"):
        apply_config(device, f"interface Serial0/0\n{line}\n")


def rate_limit_counters(conformed: int, exceeded: int, burst: int) -> dict[str, Any]:
    return {
        "conformed": {"packets": conformed // 123, "bytes": conformed},
        "exceeded": {"packets": exceeded // 1500, "bytes": exceeded},
        "current_burst_bytes": burst,
        "last_packet_ns": 19_387_000_000,
        "counting_ns": 1_285_000_000_000,
    }


# Output of an access server (public notes on RADIUS and PPPoE), in the layout of a router.
PRINTED = """\
Serial0/0 To the provider
  Input
    matches: all traffic
      params:  512000 bps, 80000 limit, 80000 extended limit
      conformed 23 packets, 2829 bytes; action: transmit
      exceeded 0 packets, 0 bytes; action: drop
      last packet: 19387ms ago, current burst: 0 bytes
      last cleared 00:21:25 ago, conformed 17 bps, exceeded 0 bps
  Output
    matches: access-group 101
      params:  8000 bps, 1500 limit, 3000 extended limit
      conformed 0 packets, 0 bytes; action: set-prec-continue 5
      exceeded 2 packets, 3000 bytes; action: drop
      last packet: 19387ms ago, current burst: 1404 bytes
      last cleared 00:21:25 ago, conformed 0 bps, exceeded 18 bps
"""


def test_show_interfaces_rate_limit_prints_each_line() -> None:
    text = (
        "interface Serial0/0\ndescription To the provider\n"
        "rate-limit input 512000 80000 80000 conform-action transmit exceed-action drop\n"
        "rate-limit output access-group 101 8000 1500 3000 conform-action set-prec-continue 5 exceed-action drop\n"
    )
    counters = interface_counters(
        rate_limit_input=[rate_limit_counters(2829, 0, 0)], rate_limit_output=[rate_limit_counters(0, 3000, 1404)]
    )
    every = {"FastEthernet0/0": interface_counters(), "Serial0/0": counters}
    assert show_rate_limit(configured_device(text), every) == PRINTED
    assert show_rate_limit(configured_device(text), every, interface="FastEthernet0/0") == ""


def test_genie_parses_show_interfaces_rate_limit() -> None:
    found = parse("ios", "show interfaces rate-limit", PRINTED).parsed
    assert found == parse("ios", "show interfaces Serial0/0 rate-limit", PRINTED).parsed
    assert found is not None and list(found) == ["Serial0/0"]
    assert found["Serial0/0"]["input"][0]["conformed"] == {"packets": 23, "bytes": 2829, "action": "transmit"}
    assert found["Serial0/0"]["output"] == [
        {
            "matches": "access-group 101",
            "rate_bps": 8000,
            "normal_burst": 1500,
            "extended_burst": 3000,
            "conformed": {"packets": 0, "bytes": 0, "action": "set-prec-continue 5"},
            "exceeded": {"packets": 2, "bytes": 3000, "action": "drop"},
            "last_packet_ms": 19387,
            "current_burst": 1404,
        }
    ]


def test_router_answers_show_interfaces_rate_limit() -> None:
    router = FakeRouter()
    apply_config(
        router.device,
        "interface FastEthernet0/0\nrate-limit input 8000 1500 3000 conform-action transmit exceed-action drop\n",
    )
    router.interfaces = {"FastEthernet0/0": interface_counters(rate_limit_input=[rate_limit_counters(2829, 0, 0)])}
    assert "conformed 23 packets, 2829 bytes; action: transmit" in type_lines(
        router, "show interfaces fa0/0 rate-limit\r"
    )
