"""Computed tables of IOS-XE (defaults by rate, shares under load), row by row, with the screens and the simulator."""

from __future__ import annotations

import re

import pytest
from test_ios_xe_genie import screen

from qoslab.model.traffic_kinds import TrafficKind
from qoslab.policy.pasted_configuration import read_configuration
from qoslab.trial.answer import try_policy
from qoslab.trial.demand import TrafficDemand
from qoslab.trial.edge import find_edge
from qoslab.trial.outcome import ClassResult
from qoslab.trial.simulate import simulate

VERSION = "version 17.9\n"
RATES_BPS = (128_000, 512_000, 1_000_000, 2_000_000, 5_000_000, 8_000_000, 10_000_000, 15_360_000, 20_000_000)
RATES_BPS += (42_500_000, 50_000_000, 100_000_000, 200_000_000, 500_000_000, 1_000_000_000, 2_000_000_000)
PAYLOAD = 1000
COUNTED = PAYLOAD + 28 + 14
"""Counted bytes of a packet on a router: headers of UDP, IP and Ethernet in addition to the payload."""
SECONDS = 10


@pytest.mark.parametrize("rate_bps", RATES_BPS)
def test_output_has_the_defaults_of_the_rate(rate_bps: int) -> None:
    text = (
        f"{VERSION}class-map V\n match dscp ef\nclass-map P\n match dscp 1\npolicy-map X\n"
        f" class V\n  priority {rate_bps // 1000}\n class P\n  police {rate_bps}\n"
        f" class class-default\n  shape average {rate_bps}\n"
        "interface TenGigabitEthernet0/0/0\n ip address 10.0.0.1 255.255.255.0\n service-policy output X\n"
    )
    shown = screen(text)
    # 200 ms in whole kilobytes of rate; 4 ms; 250 ms; 50 ms in packets of 1500 bytes, at least 64.
    assert f"Priority: {rate_bps // 1000} kbps, burst bytes {rate_bps // 1000 // 8 * 200}," in shown
    assert f"shape (average) cir {rate_bps}, bc {rate_bps // 250}, be {rate_bps // 250}" in shown
    assert f"cir {rate_bps} bps, bc {rate_bps // 32} bytes" in shown
    limits = re.findall(r"queue limit (\d+) packets", shown)
    assert limits == ["512", str(max(64, rate_bps // 20 // 8 // 1500))]


def offered_traffic(shares: dict[str, float]) -> list[TrafficDemand]:
    """Return UDP traffic at rates in kb/s as a router counts them, by DSCP."""
    demands = []
    for number, (dscp, kbps) in enumerate(shares.items()):
        interval_s = COUNTED * 8 / (kbps * 1000)
        kind = TrafficKind("imix", "", "", "udp", int(dscp), 0, "", sizes=(PAYLOAD,), interval_s=interval_s)
        demands.append(TrafficDemand(f"class {dscp}", kind, 1, int(dscp), 5000 + number))
    return demands


def send_through_shaper(lines: list[str], rate_kbps: int, shares: dict[str, float]) -> dict[str, ClassResult]:
    """Send UDP of 1000 bytes through a child policy below a shaper; the classes are C1, C2 and so on by DSCP."""
    names = [each for each in shares if each != "0"]
    maps = "".join(f"class-map C{each}\n match dscp {each}\n" for each in names)
    child = "policy-map CHILD\n" + "".join(f" {line}\n" for line in lines)
    text = f"{VERSION}{maps}{child}policy-map PARENT\n class class-default\n  shape average {rate_kbps}000\n"
    text += "  service-policy CHILD\ninterface GigabitEthernet0/0/0\n service-policy output PARENT\n"
    edge = find_edge(read_configuration(text), None, None)
    trial = try_policy(edge, offered_traffic(shares), (), simulate, seconds=SECONDS, rtt_s=0.01)
    return {each.path[-1]: each for each in trial.variants[0].classes if len(each.path) == 2}


WAN_EDGE = [
    *("class C46", " priority", " police 20000000"),
    *(
        line
        for dscp, share in zip(range(1, 9), (15, 15, 4, 3, 3, 15, 6, 1), strict=True)
        for line in (f"class C{dscp}", f" bandwidth remaining percent {share}")
    ),
    *("class class-default", " bandwidth remaining percent 38"),
]


@pytest.mark.parametrize(
    ("rate_kbps", "lines", "shares", "expected_kbps"),
    [
        (
            2000,
            ["class C1", " bandwidth percent 20", "class C2", " bandwidth percent 30"],
            {"1": 3000, "2": 3000, "0": 3000},
            {"C1": 733.3, "C2": 933.3, "class-default": 333.3},
        ),
        (
            2000,
            ["class C1", " bandwidth remaining percent 20", "class C2", " bandwidth remaining percent 30"],
            {"1": 3000, "2": 3000, "0": 3000},
            {"C1": 400, "C2": 600, "class-default": 1000},
        ),
        (
            10_000,
            ["class C1", " bandwidth 6000"],
            {"1": 8000, "0": 8000},
            {"C1": 8000, "class-default": 2000},
        ),
        (
            100_000,
            ["class C46", " priority", " police 30000000", "class C1", " bandwidth 20000"],
            {"46": 25_000, "1": 120_000, "0": 120_000},
            {"C46": 25_000, "C1": 47_500, "class-default": 27_500},
        ),
        (
            10_000,
            ["class C46", " priority", " police 2000000", "class C1", " bandwidth 2000", "class C2", " bandwidth 1000"],
            {"46": 1000, "1": 12_000, "2": 500, "0": 12_000},
            {"C46": 1000, "C1": 5250, "C2": 500, "class-default": 3250},
        ),
        (
            50_000,
            WAN_EDGE,
            {"46": 5000, "1": 60_000, "2": 60_000, "3": 300, "4": 200, "5": 100, "6": 60_000, "7": 60_000, "8": 60_000}
            | {"0": 60_000},
            {"C46": 5000, "C1": 7400, "C2": 7400, "C3": 300, "C4": 200, "C5": 100, "C6": 7400, "C7": 2960, "C8": 493.3}
            | {"class-default": 18_746.7},
        ),
    ],
    ids=["minimum", "remaining", "not all of it", "beside priority", "satisfied", "wan edge"],
)
def test_classes_share_the_excess_of_others(
    rate_kbps: int, lines: list[str], shares: dict[str, float], expected_kbps: dict[str, float]
) -> None:
    found = send_through_shaper(lines, rate_kbps, shares)
    # Queues fill at the start.
    filled = {name: each.sent_bps / 1000 for name, each in found.items()}
    assert filled == pytest.approx(expected_kbps, rel=0.02, abs=5)
