"""Active queue management of the engine against the kernel's: CoDel, FQ-CoDel, PIE, CAKE.

The same packets pass through both: two flows that exceed the rate for some seconds, pause, and start again, and a
sparse flow. Each policy is HTB with the discipline below it, or CAKE with its shaper. The comparison covers the drop
ratios and the median delays of the other packets, as means of several runs: PIE and CAKE drop at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from engine_port import INTERFACE, PACKET, departures, router
from intervals import Interval, confidence_interval
from kernel import send_frames

from qoslab.tc.commands import compile_commands, parse

SEED = 8289
SECOND = 1_000_000_000
LINE_BPS = 1_000_000_000
RATES_BPS = (1_000_000, 4_000_000, 20_000_000)
RUNS = 6
FLOWS = 3
"""Two flooding flows, and one with a packet every 20 ms."""
DISCIPLINES = {
    "CoDel": "codel",
    "FQ-CoDel": "fq_codel",
    "PIE": "pie tupdate 30ms",
    "CAKE": "cake",
}
UPDATE_NS = 30_000_000
"""Interval of the updates of PIE."""
KERNEL_DISCIPLINES = DISCIPLINES | {"PIE": "pie tupdate 20ms"}
"""Disciplines with the kernel's parameters.

A timer that its own handler starts again expires a tick after its time, and the guest's kernel has ticks of 10 ms.
"""


@dataclass(frozen=True)
class AqmResult:
    """Differences of a flow of a policy between the engine and the kernel."""

    discipline: str
    rate_bps: int
    flow: int
    """Number of the flow: 1 and 2 flood; 3 is sparse."""
    packets: int
    dropped: Interval
    """Share of dropped packets."""
    p50_ms: Interval
    """Median delay of the packets that left."""


def tc_commands(discipline: str, rate_bps: int, device: str) -> list[str]:
    """Return the commands of a policy."""
    if discipline == "cake":
        return [f"qdisc add dev {device} root handle 10: cake bandwidth {rate_bps}bit besteffort flows"]
    return [
        f"qdisc add dev {device} root handle 1: htb default 1",
        f"class add dev {device} parent 1: classid 1:1 htb rate {rate_bps}bit",
        f"qdisc add dev {device} parent 1:1 handle 10: {discipline}",
    ]


def tc_filters(discipline: str, device: str) -> list[str]:
    """Return the filters that classify packets by flow, since they are not IP."""
    if discipline.split()[0] not in ("fq_codel", "cake"):
        return []
    match = f"filter add dev {device} parent 10: protocol all pref 1 u32 match u16"
    return [f"{match} {flow} 0xffff at 0 flowid 10:{flow}" for flow in range(1, FLOWS + 1)]


def configuration(discipline: str, rate_bps: int) -> dict[str, object]:
    """Return the engine's configuration, compiled from the same commands."""
    text = "\n".join(f"tc {line}" for line in tc_commands(discipline, rate_bps, INTERFACE))
    compiled = compile_commands(parse(text), (INTERFACE,))
    interface = {"bandwidth_kbps": LINE_BPS // 1000, "queueing": compiled.queueing[INTERFACE], "tx_ring_limit": 1}
    return router(interface)


def packet_stream(random: np.random.Generator, rate_bps: int) -> npt.NDArray[np.void]:
    """Return the packets of all flows: 8 s of 1.3 times the rate, 4 s of a tenth, 8 s of twice the rate."""
    flows = []
    for flow, begin, end, part in ((1, 0, 8, 0.8), (2, 1, 8, 0.5), (1, 8, 12, 0.1), (1, 12, 20, 1.2), (2, 12, 20, 0.8)):
        gap = 1514 * 8 / (rate_bps * part) * SECOND
        packets = np.zeros(int((end - begin) * SECOND / gap), PACKET)
        packets["time"] = begin * SECOND + np.arange(len(packets)) * gap + random.uniform(0, gap, len(packets))
        packets["bytes"], packets["class"] = 1514, flow
        flows.append(packets)
    sparse = np.zeros(1000, PACKET)
    sparse["time"] = np.arange(1000) * SECOND // 50 + random.integers(0, 20_000_000, 1000)
    sparse["bytes"], sparse["class"] = 114, FLOWS
    joined = np.concatenate([*flows, sparse])
    return joined[np.argsort(joined["time"], kind="stable")]


def compare_discipline() -> list[AqmResult]:
    """Compare all disciplines at all rates."""
    streams = {rate_bps: packet_stream(np.random.default_rng(SEED), rate_bps) for rate_bps in RATES_BPS}
    cases = [(rate_bps, name) for rate_bps in RATES_BPS for name in DISCIPLINES]
    jobs = []
    for rate_bps, name in cases:
        lines = [
            *tc_commands(KERNEL_DISCIPLINES[name], rate_bps, "out0"),
            *tc_filters(KERNEL_DISCIPLINES[name], "out0"),
        ]
        jobs.append((lines, streams[rate_bps], 30 * SECOND))
    found = []
    # A full packet of Ethernet: CoDel, PIE and CAKE take it from the interface.
    runs = send_frames(jobs * RUNS, mtu=1500)
    for number, (rate_bps, name) in enumerate(cases):
        packets = streams[rate_bps]
        queueing = configuration(DISCIPLINES[name], rate_bps)
        streams_of_runs = [_at_phase(packets, seed) for seed in range(RUNS)]
        ours = [departures(queueing, LINE_BPS, each, seed) for seed, each in enumerate(streams_of_runs)]
        for flow in range(1, FLOWS + 1):
            of = packets["class"] == flow
            engine = [_delays(sent["time"][of], left[of]) for sent, left in zip(streams_of_runs, ours, strict=True)]
            kernel = [_delays(each["sent"][of], each["arrived"][of]) for each in runs[number :: len(cases)]]
            pairs = zip(_results(engine), _results(kernel), strict=True)
            dropped, p50_ms = (confidence_interval(*pair) for pair in pairs)
            found.append(AqmResult(name, rate_bps, flow, int(of.sum()), dropped, p50_ms))
    return found


def _at_phase(packets: npt.NDArray[np.void], seed: int) -> npt.NDArray[np.void]:
    """Return the packets at a random phase of the updates of PIE, as in the kernel."""
    later = packets.copy()
    later["time"] += np.uint64(np.random.default_rng(seed).integers(0, UPDATE_NS))
    return later


def _delays(sent: npt.NDArray[np.uint64], arrived: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Return the delays in ms; not a number for dropped packets."""
    return np.where(arrived > 0, (arrived.astype(np.int64) - sent.astype(np.int64)) / 1e6, np.nan)


def _results(runs: Sequence[npt.NDArray[np.float64]]) -> tuple[list[float], list[float]]:
    """Return the shares of dropped packets and the median delays in ms of runs."""
    return [float(np.isnan(delays).mean()) for delays in runs], [float(np.nanmedian(delays)) for delays in runs]
