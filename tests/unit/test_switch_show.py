"""Show commands of a virtual Catalyst 3750 against the article and goldens; and the parsers, on both."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fake_router import FakeRouter, interface_counters, type_lines
from genie.libs.parser.ios.show_interface import ShowInterfaces
from genie.libs.parser.ios.show_platform import ShowVersion
from genie.libs.parser.iosxe.show_interface import ShowInterfacesCounters
from genie.libs.parser.iosxe.show_interface_counters import ShowInterfacesCountersErrors

from qoslab.genie.show_parser import parse
from qoslab.ios.compile import compile_device
from qoslab.ios.parse import apply_config
from qoslab.ios.show.catalyst import counters as switch_counters
from qoslab.ios.show.catalyst.mls_qos import operational_text
from qoslab.system import program_formats

TESTS = Path(__file__).parents[1]
RECORDED = TESTS / "recorded" / "ios"
GOLDENS = TESTS / "goldens" / "ios"
PORT = "GigabitEthernet1/0/15"

THE_FIX = """\
mls qos
interface gi1/0/15
 speed 100
 srr-queue bandwidth shape 0 0 0 0
 srr-queue bandwidth share 30 70 1 1
 srr-queue bandwidth limit 70
"""
FURTHER = """\
mls qos map policed-dscp 10 12 14 to 8
mls qos map dscp-mutation Campus 46 to 40
mls qos srr-queue output dscp-map queue 2 threshold 3 48 49
mls qos srr-queue input priority-queue 1 bandwidth 20
mls qos queue-set output 2 threshold 1 150 160 70 300
mls qos aggregate-policer Shared 1000000 8000 exceed-action drop
mls qos aggregate-policer Unused 2000000 8000 exceed-action policed-dscp-transmit
class-map Voice
 match ip dscp ef
policy-map Marked
 class Voice
  trust dscp
  police aggregate Shared
 class class-default
  set dscp af11
  police 5000000 16000 exceed-action policed-dscp-transmit
interface gi1/0/16
 service-policy input Marked
 mls qos dscp-mutation Campus
 queue-set 2
 priority-queue out
interface gi1/0/17
 mls qos trust cos
 mls qos trust device cisco-phone
 mls qos cos 3
 mls qos cos override
 mls qos vlan-based
"""


def possible_counters() -> program_formats.SwitchPortCounters:
    """Return possible counters after the article's last step: EF without loss, best effort with 276 drops."""
    counters = switch_counters.idle_counters()
    counters["dscp_in"][0], counters["dscp_in"][46] = 363949, 5532
    counters["dscp_out"][0], counters["dscp_out"][46] = 363673, 5532
    counters["cos_in"][0] = 369481
    counters["cos_out"][0], counters["cos_out"][5] = 363673, 5532
    counters["enqueued"][0][0], counters["enqueued"][1][0] = 5532, 363673
    counters["dropped"][1][0] = 276
    counters["policer"] = {"in_profile": 900, "out_of_profile": 12}
    return counters


@pytest.fixture
def switch() -> FakeRouter:
    router = FakeRouter("3750G")
    apply_config(router.device, THE_FIX + FURTHER)
    router.config = compile_device(router.device)
    output = {"packets": 369205, "bytes": 555123456, "rate_bps": 0.0, "rate_pps": 0.0, "drops": 276}
    received = {"packets": 10, "bytes": 640, "rate_bps": 0.0, "rate_pps": 0.0, "drops": 0}
    router.interfaces[PORT] = interface_counters(switch=possible_counters(), output=output, input=received)
    return router


def show_output(router: FakeRouter, command: str) -> str:
    """Return the output of a command, without prompts and echo."""
    text = type_lines(router, f"terminal length 0\n{command}\n")
    return text.partition(f"{command}\n")[2].rpartition("R1#")[0].removesuffix("\n") + "\n"


def stripped(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


@pytest.mark.parametrize(
    ("command", "recorded"),
    [
        ("sh mls qos maps dscp-output-q", "show_mls_qos_maps_dscp-output-q"),
        ("sh mls qos interface gi1/0/15 queueing", "show_mls_qos_interface_queueing.srr"),
    ],
)
def test_output_of_the_article_is_reproduced(command: str, recorded: str) -> None:
    router = FakeRouter("3750G")
    apply_config(router.device, THE_FIX)
    assert stripped(show_output(router, command)) == stripped((RECORDED / f"{recorded}.txt").read_text())


def test_default_queueing_of_the_article_is_reproduced() -> None:
    recorded = (RECORDED / "show_mls_qos_interface_queueing.default.txt").read_text()
    assert stripped(show_output(FakeRouter("3750G"), "show mls qos int gi 1/0/15 queueing")) == stripped(recorded)


def test_drops_of_the_article_are_reproduced(switch: FakeRouter) -> None:
    recorded = stripped((RECORDED / "show_platform_port-asic_stats_drop.txt").read_text())
    printed = show_output(switch, "sh platform port-asic stats drop gi1/0/15")
    assert printed.startswith("\n")
    # The article shows the first two queues only.
    assert stripped(printed)[: len(recorded)] == recorded
    assert show_output(switch, "sh int gi1/0/15 | include drops") == (
        "  Input queue: 0/75/0/0 (size/max/drops/flushes); Total output drops: 276\n"
    )


SCREENS = (
    "show mls qos",
    "show mls qos interface GigabitEthernet1/0/16",
    "show mls qos interface GigabitEthernet1/0/17",
    "show mls qos interface GigabitEthernet1/0/16 queueing",
    "show mls qos interface GigabitEthernet1/0/16 buffers",
    "show mls qos interface GigabitEthernet1/0/15 statistics",
    "show mls qos queue-set",
    "show mls qos queue-set 2",
    "show mls qos input-queue",
    "show mls qos maps",
    "show mls qos maps dscp-mutation Campus",
    "show mls qos aggregate-policer",
    "show platform port-asic stats drop GigabitEthernet1/0/15",
    "show interfaces GigabitEthernet1/0/15",
    "show interfaces GigabitEthernet1/0/15 counters",
    "show interfaces GigabitEthernet1/0/15 counters errors",
    "show policy-map",
    "show policy-map interface",
    "show version",
)


def test_all_show_commands_equal_their_goldens(switch: FakeRouter, golden: Callable[[Path, str], None]) -> None:
    golden(GOLDENS / "switch-screens.txt", "".join(f"R1#{each}\n{show_output(switch, each)}" for each in SCREENS))


def test_settings_are_marked_as_inert_while_qos_is_off(switch: FakeRouter) -> None:
    apply_config(switch.device, "no mls qos")
    text = show_output(switch, "show mls qos interface gi1/0/15")
    assert "QoS is disabled. When QoS is enabled, following settings will be applied\n" in text
    assert show_output(switch, "show mls qos").startswith("QoS is disabled\n")


def test_clear_commands_reset_their_counters(switch: FakeRouter) -> None:
    assert show_output(switch, "clear mls qos interface gi1/0/15 statistics") == "\n"
    assert show_output(switch, "clear mls qos interface statistics") == "\n"
    assert switch.cleared_statistics == [PORT, None]
    type_lines(switch, "clear counters gi1/0/15\n\n")
    assert switch.cleared_interfaces == [PORT]


def test_statistics_count_since_they_were_cleared() -> None:
    before, now = possible_counters(), possible_counters()
    now["dscp_in"][46] += 7
    now["dropped"][1][0] += 3
    now["policer"] = {"in_profile": 1000, "out_of_profile": 12}
    since = switch_counters.subtract_counters(now, before)
    assert (sum(since["dscp_in"]), sum(map(sum, since["dropped"])), sum(map(sum, since["enqueued"]))) == (7, 3, 0)
    assert since["policer"] == {"in_profile": 100, "out_of_profile": 0}


def test_router_has_no_switch_show_commands() -> None:
    for command in ("show mls qos", "show interfaces counters", "show platform port-asic stats drop", "clear mls qos"):
        assert "% Invalid input detected" in show_output(FakeRouter(), command)


# Parsers.


def parse_output(command: str, text: str) -> dict[str, Any]:
    result = parse("ios", command, text)
    assert result.parsed is not None, f"{command}: {result.reason}"
    assert "unrecognised" not in str(result.parsed)
    return result.parsed


@pytest.mark.parametrize("screen", [each for each in SCREENS if "mls qos" in each or "port-asic" in each])
def test_genie_parses_every_show_command(switch: FakeRouter, screen: str) -> None:
    assert parse_output(screen, show_output(switch, screen))


def test_printed_limit_equals_the_port_rate() -> None:
    """Compare the limits of the data plane with those of the show command: the same values from two tables."""
    constants = (TESTS.parent / "crates/qos-core/src/config/catalyst_constants.rs").read_text(encoding="utf-8")
    (table,) = re.findall(r"OPERATIONAL_BANDWIDTH: \[\(u32, u32\); \d+\] = \[(.*)\];", constants)
    sent = {int(limit): int(part.replace("_", "")) for limit, part in re.findall(r"\((\d+), ([\d_]+)\)", table)}
    assert sent == {70: 7038}
    for limit in range(10, 91):
        assert float(operational_text(limit)) * 100 == pytest.approx(sent.get(limit, limit * 100)), limit


QUEUEING = {"priority_queue": False, "queue_set": 1}


@pytest.mark.parametrize(
    ("recorded", "values"),
    [
        (
            "default",
            {"shape": [25, 0, 0, 0], "share": [25, 25, 25, 25], "limit_percent": 100, "operational_percent": 100.0},
        ),
        ("srr", {"shape": [0, 0, 0, 0], "share": [30, 70, 1, 1], "limit_percent": 70, "operational_percent": 70.38}),
    ],
)
def test_genie_parses_article_queueing(recorded: str, values: dict[str, Any]) -> None:
    text = (RECORDED / f"show_mls_qos_interface_queueing.{recorded}.txt").read_text()
    assert parse_output("show mls qos interface gi1/0/15 queueing", text) == {"interface": {PORT: QUEUEING | values}}


def test_genie_parses_article_map(switch: FakeRouter) -> None:
    text = (RECORDED / "show_mls_qos_maps_dscp-output-q.txt").read_text()
    found = parse_output("show mls qos maps dscp-output-q", text)["map"]["dscp-output-q"]
    assert len(found) == 64
    assert found["46"] == {"queue": 1, "threshold": 1}
    assert found["0"] == {"queue": 2, "threshold": 1}
    assert found["63"] == {"queue": 4, "threshold": 1}


def test_genie_parses_article_drops() -> None:
    text = (RECORDED / "show_platform_port-asic_stats_drop.txt").read_text()
    found = parse_output("show platform port-asic stats drop gi1/0/15", text)["interface"][PORT]["queue"]
    assert found == {
        "0": {"weight": {"0": 0, "1": 0, "2": 0}},
        "1": {"weight": {"0": 276, "1": 0, "2": 0}},
    }


def parse_shown(switch: FakeRouter, command: str) -> dict[str, Any]:
    return parse_output(command, show_output(switch, command))


def test_parsers_read_port_settings(switch: FakeRouter) -> None:
    of = partial(parse_shown, switch)
    assert of("show mls qos") == {"enabled": True, "rewrite_ip_dscp": True}
    port = of("show mls qos interface GigabitEthernet1/0/17")["interface"]["GigabitEthernet1/0/17"]
    assert port == {
        "trust_state": "not trusted",
        "trust_mode": "trust cos",
        "trust_enabled": False,
        "cos_override": True,
        "default_cos": 3,
        "dscp_mutation_map": "Default DSCP Mutation Map",
        "trust_device": "cisco-phone",
        "qos_mode": "vlan-based",
    }
    port = of("show mls qos interface GigabitEthernet1/0/16")["interface"]["GigabitEthernet1/0/16"]
    assert (port["policy_map"], port["dscp_mutation_map"]) == ("Marked", "Campus")
    buffers = of("show mls qos interface GigabitEthernet1/0/16 buffers")["interface"]["GigabitEthernet1/0/16"]
    assert buffers == {"queue_set": 2, "buffers_percent": [25, 25, 25, 25]}
    sets = of("show mls qos queue-set")["queue_set"]
    assert sets["2"]["queue"]["1"] == {
        "buffers": 25,
        "threshold1": 150,
        "threshold2": 160,
        "reserved": 70,
        "maximum": 300,
    }
    assert sets["1"]["queue"]["2"]["threshold1"] == 200
    assert of("show mls qos input-queue")["queue"]["1"]["priority"] == 20


def test_parsers_read_maps_and_counters(switch: FakeRouter) -> None:
    of = partial(parse_shown, switch)
    maps = of("show mls qos maps")["map"]
    assert set(maps) == {
        "policed-dscp",
        "dscp-cos",
        "cos-dscp",
        "ip-prec-dscp",
        "dscp-output-q",
        "dscp-input-q",
        "cos-output-q",
        "cos-input-q",
        "dscp-mutation",
    }
    assert (maps["policed-dscp"]["12"], maps["dscp-cos"]["46"], maps["cos-dscp"]["5"]) == (8, 5, 40)
    assert maps["dscp-output-q"]["49"] == {"queue": 2, "threshold": 3}
    assert maps["cos-output-q"]["5"] == {"queue": 1, "threshold": 1}
    assert maps["dscp-mutation"]["Campus"]["46"] == 40
    assert len(maps["dscp-mutation"]["Default DSCP Mutation Map"]) == 64
    statistics = of(f"show mls qos interface {PORT} statistics")["interface"][PORT]
    assert (statistics["dscp"]["incoming"]["46"], statistics["dscp"]["outgoing"]["0"]) == (5532, 363673)
    assert len(statistics["dscp"]["incoming"]) == 64
    assert len(statistics["cos"]["outgoing"]) == 8
    assert statistics["output_queues"]["dropped"]["queue"]["1"]["threshold"] == {"1": 276, "2": 0, "3": 0}
    assert statistics["policer"] == {"in_profile": 900, "out_of_profile": 12}
    policers = of("show mls qos aggregate-policer")["aggregate_policer"]
    assert policers["Shared"]["policy_maps"] == ["Marked"]
    assert policers["Unused"] == {
        "rate_bps": 2_000_000,
        "burst_bytes": 8000,
        "exceed_action": "policed-dscp-transmit",
        "policy_maps": [],
    }


def test_genie_parses_the_other_show_commands(switch: FakeRouter) -> None:
    device = type("Device", (), {"os": "ios"})()
    text = show_output(switch, f"show interfaces {PORT}")
    found = ShowInterfaces(device).parse(output=text)[PORT]
    assert found["queues"]["total_output_drop"] == 276
    assert found["bandwidth"] == 100_000
    counters = ShowInterfacesCounters(device).parse(
        interface=PORT, output=show_output(switch, f"show interfaces {PORT} counters")
    )["interface"][PORT]
    assert (counters["in"]["octets"], counters["out"]["ucast_pkts"]) == (640, 369205)
    errors = ShowInterfacesCountersErrors(device).parse(
        output=show_output(switch, f"show interfaces {PORT} counters errors")
    )
    assert errors["ports"]["Gi1/0/15"]["out_discards"] == 276
    version = ShowVersion(device).parse(output=show_output(switch, "show version"))["version"]
    assert (version["version"], version["hostname"]) == ("12.2(55)SE3", "R1")
