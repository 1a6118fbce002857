"""Queueing of an interface without policy-maps, pasted into a virtual router: throughput of real floods.

Committed access rate, generic traffic shaping, priority and custom queueing. The expected values are arithmetic; the
tolerances cover only the start and end of the traffic (bursts, queues that drain after it), since the data plane
decides in event time. A late sender moves no packet out of the traffic's time: packets that a busy machine could not
send do not count as sent.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from test_ios_queueing import LINE, topology
from test_iosd import session

from qoslab.model.experiment import Flow
from qoslab.model.units import Duration
from qoslab.results import Cell
from qoslab.run.cell.flows import FlowLocation, RunningFlow, run_flows
from qoslab.run.cell.sampling import reset_counters
from qoslab.run.workers.virtual.nodes import VirtualLab
from qoslab.schema import CellIdentity
from qoslab.virtual_lab import Lab

# They count packets, and a sender that is delayed by other processes sends none in its turn.
pytestmark = [pytest.mark.lab, pytest.mark.quiet]

SECONDS = 5
COUNTED = 1000
"""Counted bytes of a packet of 996 bytes of IP on a line with PPP: its header has four."""
ON_WIRE = 1003
"""Bytes of the same packet on the line: in addition a flag and an FCS."""
LINE_BPS = 2_000_000
CAR = f"""\
interface {LINE}
 rate-limit output 512000 8000 16000 conform-action transmit exceed-action drop
"""
GTS = f"""\
interface {LINE}
 traffic-shape rate 512000 8000 8000 50
"""
PRIORITY = f"""\
priority-list 1 protocol ip high udp 6001
priority-list 1 default low
interface {LINE}
 priority-group 1
"""
CUSTOM = f"""\
queue-list 1 protocol ip 1 udp 6001
queue-list 1 protocol ip 2 udp 6002
queue-list 1 queue 1 byte-count 4000
queue-list 1 queue 2 byte-count 2000
interface {LINE}
 custom-queue-list 1
"""

CASES = {
    "car": (CAR, {"load": 190}),
    "gts": (GTS, {"load": 125}),
    "priority": (PRIORITY, {"high": 150, "low": 200}),
    "custom": (CUSTOM, {"first": 220, "second": 220}),
}
"""Configuration lines for R1, and floods in packets per second: a thousand for all cases together."""


@dataclass(frozen=True)
class FloodedLab:
    """Lab after its floods, with the sent and received packets by name."""

    lab: Lab
    counted: dict[str, tuple[int, int]]


@pytest.fixture(scope="module")
def flooded_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, FloodedLab]]:
    """Flood every case in a separate lab in the same seconds; remove its lines one by one at the end.

    They share only the time: a thousand packets use a hundredth of a second of the machine.
    """
    with ExitStack() as up:
        labs = {
            case: up.enter_context(Lab.up(topology("classic"), name=f"test-queueing-{case}-{os.getpid()}"))
            for case in CASES
        }
        for case, (text, _) in CASES.items():
            reset_counters(VirtualLab(labs[case]), ["R1", "R2"])
            output = session(labs[case], "configure terminal", *text.splitlines(), "end")
            assert "%" not in output, output
        with ThreadPoolExecutor(len(CASES)) as pool:
            begun = {
                case: pool.submit(flood, labs[case], tmp_path_factory.mktemp(case), rates)
                for case, (_, rates) in CASES.items()
            }
            found = {case: FloodedLab(labs[case], each.result()) for case, each in begun.items()}
        yield found
        for case, (text, _) in CASES.items():
            lines = text.splitlines()
            below = [f"no {line.strip()}" for line in lines if line.startswith(" ")]
            above = [f"no {line}" for line in lines if not line.startswith((" ", "interface"))]
            interface = ("configure terminal", f"interface {LINE}", *below, "exit", *reversed(above), "end")
            output = session(labs[case], *interface)
            assert "%" not in output, output


def flood(lab: Lab, folder: Path, packets_per_second: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Send floods of packets of 996 bytes, each to a separate port from 6001 on; return sent and received packets by
    name.
    """
    cell = Cell(folder, CellIdentity("flooded", (), 1))
    flows = []
    for number, (name, rate) in enumerate(packets_per_second.items(), 1):
        ends = {"from": "client", "to": "server", "protocol": "udp", "rate": f"{rate * 996 * 8} b/s", "size": "996 B"}
        flow = Flow.model_validate_json(json.dumps({"name": name, "tool": "flood", **ends}))
        place = FlowLocation(lab.topology, port=6000 + number, seed=number, cell=cell)
        flows.append(RunningFlow(VirtualLab(lab), flow, Duration(SECONDS * 10**9), "cubic", place))
    results = run_flows(flows, lambda: None, lambda: None)
    found = {}
    for name, result in results.items():
        (stream,) = result.streams
        assert stream.datagrams is not None and stream.lost is not None
        found[name] = (stream.datagrams, stream.datagrams - stream.lost)
    return found


def show_output(lab: Lab, command: str) -> str:
    return session(lab, command).split(command + "\n", 1)[1].rpartition("R1#")[0]


def test_committed_access_rate_passes_its_rate_and_bursts(flooded_lab: dict[str, FloodedLab]) -> None:
    case = flooded_lab["car"]
    sent, received = case.counted["load"]
    assert sent > 0.9 * 190 * SECONDS
    # Five seconds at the rate, plus at least the normal burst and at most both bursts, to within a packet at either
    # end.
    by_rate = 512_000 / 8 * SECONDS
    assert (by_rate + 8000) / COUNTED - 1 <= received <= (by_rate + 8000 + 16_000) / COUNTED + 1
    # The 2 Mb/s line carries all of that, so each packet that was not received exceeded.
    screen = show_output(case.lab, f"show interfaces {LINE} rate-limit")
    assert "params:  512000 bps, 8000 limit, 16000 extended limit" in screen
    counts = {what: (int(n), int(size)) for what, n, size in re.findall(r"(\w+) (\d+) packets, (\d+) bytes", screen)}
    assert counts == {
        "conformed": (received, received * COUNTED),
        "exceeded": (sent - received, (sent - received) * COUNTED),
    }


def test_generic_traffic_shaping_keeps_its_rate_and_fills_its_buffers(flooded_lab: dict[str, FloodedLab]) -> None:
    case = flooded_lab["gts"]
    sent, received = case.counted["load"]
    assert sent > 0.9 * 125 * SECONDS
    # Five seconds at the rate, the sustained and the excess burst at the start (a packet each), and 50 buffers that
    # drain after the end; a 15.6 ms interval at either end is one packet.
    expected = 512_000 / 8 * SECONDS / COUNTED + 2 + 50
    assert abs(received - expected) <= 3
    text = show_output(case.lab, f"show traffic-shape statistics {LINE}")
    words = text.splitlines()[-1].split()
    assert words[0] == "Se0/1/0"
    depth, packets, size, delayed = (int(word) for word in words[1:5])
    assert (depth, packets, size) == (0, received, received * COUNTED)
    # Two go at once, one more in each interval of 15.6 ms, in which two come: where in an interval the first comes, and
    # how regularly they do, makes the fourth to the seventh the first that waits.
    assert 3 <= received - delayed <= 6


def test_low_priority_queue_gets_the_rate_left_by_the_high_one(flooded_lab: dict[str, FloodedLab]) -> None:
    case = flooded_lab["priority"]
    (high_sent, high_received), (low_sent, low_received) = case.counted["high"], case.counted["low"]
    assert high_received == high_sent, "the high queue drops nothing below the line's rate"
    # The rest of the line's capacity in five seconds after the high queue, plus the low queue's 80 packets and the
    # ring's two.
    left = LINE_BPS / 8 * SECONDS / ON_WIRE - high_sent
    assert low_sent > left + 100, "the low queue is never empty"
    assert left - 3 <= low_received <= left + 80 + 2 + 3
    screen = show_output(case.lab, f"show interfaces {LINE}")
    drops = {name: int(drop) for name, drop in re.findall(r"(high|medium|normal|low): \d+/\d+/(\d+)", screen)}
    assert drops == {"high": 0, "medium": 0, "normal": 0, "low": low_sent - low_received}
    assert "Queueing strategy: priority-list 1" in screen
    listed = [line.split() for line in show_output(case.lab, "show queueing priority").splitlines()]
    assert ["1", "high", "protocol", "ip", "udp", "6001"] in listed


def test_custom_queueing_shares_the_line_by_byte_counts(flooded_lab: dict[str, FloodedLab]) -> None:
    case = flooded_lab["custom"]
    (first_sent, first), (second_sent, second) = case.counted["first"], case.counted["second"]
    carried = LINE_BPS / 8 * SECONDS / ON_WIRE
    # Two thirds and one third of the line's capacity in five seconds; then each queue's 20 packets drain. A turn is
    # four packets and two, and the ring holds two.
    assert min(first_sent, second_sent) > carried * 2 / 3 + 100, "no queue is ever empty"
    assert abs(first - 20 - carried * 2 / 3) <= 6
    assert abs(second - 20 - carried / 3) <= 6
    screen = show_output(case.lab, f"show interfaces {LINE}")
    drops = {int(queue): int(drop) for queue, drop in re.findall(r"(\d+): \d+/\d+/(\d+)", screen)}
    assert (drops[1], drops[2]) == (first_sent - first, second_sent - second)
    assert sum(drops.values()) == drops[1] + drops[2]
    listed = [line.split() for line in show_output(case.lab, "show queueing custom").splitlines()]
    assert ["1", "1", "byte-count", "4000"] in listed
