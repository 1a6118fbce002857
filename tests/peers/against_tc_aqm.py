"""Active queue management of the engine against the kernel's: CoDel, FQ-CoDel, PIE, CAKE.

The same packets pass through both: two flows that exceed the rate for some seconds, pause, and start again, and a
sparse flow. Each policy is HTB with the discipline below it, or CAKE with its shaper. The kernel computes 1/√n by
Newton's method and counts the times of CoDel in units of 1024 ns, and PIE drops at random; single decisions therefore
differ. The comparison covers the drop ratios and the delays of the other packets.

Remaining difference: after a restart the probability of PIE grows more slowly in the kernel, with its timer in steps of
10 ms, so that the 95th percentile of its delays is up to a third longer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from engine_port import INTERFACE, PACKET, departures, router
from kernel import send

from qoslab.tc.commands import compile_commands, parse

SEED = 8289
SECOND = 1_000_000_000
LINE_BPS = 1_000_000_000
RATES_BPS = (1_000_000, 4_000_000, 20_000_000)
FLOWS = 3
"""Two flooding flows, and one with a packet every 20 ms."""
DISCIPLINES = {
    "CoDel": "codel",
    "FQ-CoDel": "fq_codel",
    # The timer of the guest's kernel has steps of 10 ms, so that the default of 15 ms would be 20 ms there.
    "PIE": "pie tupdate 20ms",
    "CAKE": "cake",
}


@dataclass(frozen=True)
class AqmResult:
    """Results of a flow of a policy, in the engine and in the kernel."""

    discipline: str
    rate_bps: int
    flow: int
    """Number of the flow: 1 and 2 flood; 3 is sparse."""
    packets: int
    engine_dropped: float
    """Share of dropped packets."""
    kernel_dropped: float
    engine_p50_ms: float
    """Median delay of the packets that left."""
    kernel_p50_ms: float
    engine_p95_ms: float
    kernel_p95_ms: float


def commands(discipline: str, rate_bps: int, device: str) -> list[str]:
    """Return the commands of a policy."""
    if discipline == "cake":
        return [f"qdisc add dev {device} root handle 10: cake bandwidth {rate_bps}bit besteffort flows"]
    return [
        f"qdisc add dev {device} root handle 1: htb default 1",
        f"class add dev {device} parent 1: classid 1:1 htb rate {rate_bps}bit",
        f"qdisc add dev {device} parent 1:1 handle 10: {discipline}",
    ]


def filters(discipline: str, device: str) -> list[str]:
    """Return the filters that classify packets by flow, since they are not IP."""
    if discipline.split()[0] not in ("fq_codel", "cake"):
        return []
    match = f"filter add dev {device} parent 10: protocol all pref 1 u32 match u16"
    return [f"{match} {flow} 0xffff at 0 flowid 10:{flow}" for flow in range(1, FLOWS + 1)]


def configuration(discipline: str, rate_bps: int) -> dict[str, object]:
    """Return the engine's configuration, compiled from the same commands."""
    text = "\n".join(f"tc {line}" for line in commands(discipline, rate_bps, INTERFACE))
    compiled = compile_commands(parse(text), (INTERFACE,))
    interface = {"bandwidth_kbps": LINE_BPS // 1000, "queueing": compiled.queueing[INTERFACE], "tx_ring_limit": 1}
    return router(interface)


def stream(random: np.random.Generator, rate_bps: int) -> npt.NDArray[np.void]:
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


def compare() -> list[AqmResult]:
    """Compare all disciplines at all rates."""
    streams = {rate_bps: stream(np.random.default_rng(SEED), rate_bps) for rate_bps in RATES_BPS}
    cases = [(rate_bps, name) for rate_bps in RATES_BPS for name in DISCIPLINES]
    jobs = []
    for rate_bps, name in cases:
        lines = [*commands(DISCIPLINES[name], rate_bps, "out0"), *filters(DISCIPLINES[name], "out0")]
        jobs.append((lines, streams[rate_bps], 30 * SECOND))
    found = []
    # A full packet of Ethernet: CoDel, PIE and CAKE take it from the interface.
    for (rate_bps, name), times in zip(cases, send(jobs, mtu=1500), strict=True):
        packets = streams[rate_bps]
        ours = departures(configuration(DISCIPLINES[name], rate_bps), LINE_BPS, packets)
        for flow in range(1, FLOWS + 1):
            of = packets["class"] == flow
            own = _delays(packets["time"][of], ours[of])
            theirs = _delays(times["sent"][of], times["arrived"][of])
            found.append(AqmResult(name, rate_bps, flow, int(of.sum()), *_pairs(own, theirs)))
    return found


def _delays(sent: npt.NDArray[np.uint64], arrived: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Return the delays in ms; not a number for dropped packets."""
    return np.where(arrived > 0, (arrived.astype(np.int64) - sent.astype(np.int64)) / 1e6, np.nan)


def _pairs(own: npt.NDArray[np.float64], theirs: npt.NDArray[np.float64]) -> list[float]:
    """Return the drop ratio, and the median and 95th percentile of the delay (ms), of the engine and the kernel."""
    dropped = [float(np.isnan(each).mean()) for each in (own, theirs)]
    delays = [np.nanpercentile(each, (50, 95)) for each in (own, theirs)]
    return [*dropped, *(float(each[0]) for each in delays), *(float(each[1]) for each in delays)]


if __name__ == "__main__":
    for each in compare():
        print(
            f"{each.discipline:9} {each.rate_bps / 1e6:4.0f} Mb/s flow {each.flow} {each.packets:6} packets: dropped"
            f" {each.engine_dropped:6.2%} {each.kernel_dropped:6.2%}, p50 {each.engine_p50_ms:7.2f}"
            f" {each.kernel_p50_ms:7.2f} ms, p95 {each.engine_p95_ms:7.2f} {each.kernel_p95_ms:7.2f} ms"
        )
