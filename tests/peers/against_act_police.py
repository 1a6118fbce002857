"""Engine policers against the kernel's `act_police`, packet by packet, on layer-2 bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from against_dpdk import BITS, EXACT_PERIODS_NS, SECOND
from kernel import PACKET, send_frames
from meters import PACKET as METERED
from meters import Colours, Meter, Packets, engine_colours

SEED = 4115
METERS = 100
PACKETS = 1_000_000
MEAN_BYTES = 791
"""Mean packet size: 64 to 1518 bytes."""
ETHERNET_HEADER_BYTES = 14
TICK_NS = 64
MICROSECOND_NS = 1000
"""`tc` rounds the time of a burst down to a microsecond, then to ticks of 64 ns."""
WHOLE_BURST_NS = 8000
"""Least common multiple of both periods."""
BATCH_PACKETS = 20
"""Number of packets that are sent at the same time."""
GAP_NS = 1_000_000
"""Mean time between those groups."""


def _exact_burst(random: np.random.Generator, period_ns: int) -> int:
    """Return a burst of 1,518 to 200,000 bytes whose time at the rate is exact in `tc` and in the kernel."""
    step = WHOLE_BURST_NS // np.gcd(WHOLE_BURST_NS, period_ns)
    while True:
        burst = int(np.exp(random.uniform(np.log(1518), np.log(200_000)))) // step * step
        # As `tc` calculates it, in floating point.
        shown_us = int(1_000_000 * (float(burst) / float(SECOND // period_ns)))
        if burst >= 1518 and shown_us * MICROSECOND_NS == burst * period_ns:
            return burst


def random_policers(random: np.random.Generator, shares: np.ndarray) -> list[Meter]:
    """Return policers; each gets a share of all packets, which offer 0.4 to 4 times its rate."""
    meters = []
    for share in shares:
        offered = share * BATCH_PACKETS / (GAP_NS / SECOND) * MEAN_BYTES
        wanted_ns = SECOND / offered * random.uniform(0.4, 4)
        period = min(EXACT_PERIODS_NS, key=lambda each: abs(np.log(each / wanted_ns)))
        meters.append(Meter(SECOND // period, _exact_burst(random, period)))
    return meters


def random_stream(random: np.random.Generator, shares: np.ndarray, count: int) -> np.ndarray:
    """Return packets of all policers in the order of their times."""
    packets = np.zeros(count, PACKET)
    gaps = random.exponential(GAP_NS, -(-count // BATCH_PACKETS)).astype(np.uint64)
    packets["time"] = np.repeat(np.cumsum(gaps), BATCH_PACKETS)[:count]
    packets["bytes"] = random.integers(64, 1519, count)
    packets["class"] = random.choice(len(shares), count, p=shares)
    return packets


def tc_lines(meters: Sequence[Meter]) -> list[str]:
    """Return the lines of `tc`: a filter and a policer for each class."""
    lines = ["qdisc add dev out0 clsact"]
    for number, meter in enumerate(meters):
        lines.append(
            f"filter add dev out0 egress protocol all pref 1 u32 match u16 {number} 0xffff at 0 "
            f"action police rate {meter.cir_bytes * BITS}bit burst {meter.bc_bytes} conform-exceed drop/ok"
        )
    return lines


@dataclass(frozen=True)
class PoliceResult:
    """Decisions of all policers, and the differing ones."""

    policers: int
    packets: int
    conformed: int
    different: int
    different_with_ip_bytes: int
    """Decisions that differ if the engine gets IP bytes: without the 14 bytes of the Ethernet header."""
    least_bps: int
    greatest_bps: int
    seconds: float
    """Virtual time."""


def compare_policers(count: int = PACKETS, policers: int = METERS) -> PoliceResult:
    """Compare all decisions."""
    random = np.random.default_rng(SEED)
    shares = np.exp(random.uniform(np.log(0.1), np.log(10), policers))
    shares /= shares.sum()
    meters = random_policers(random, shares)
    packets = random_stream(random, shares, count)
    (times,) = send_frames([(tc_lines(meters), packets, int(packets["time"][-1]) + SECOND)])
    streams: list[Packets] = []
    kernel: list[Colours] = []
    for number in range(policers):
        chosen = packets["class"] == number
        stream = np.zeros(int(chosen.sum()), METERED)
        stream["arrival"], stream["bytes"] = times["sent"][chosen], packets["bytes"][chosen]
        streams.append(stream)
        kernel.append(np.where(times["arrived"][chosen] > 0, 1, 2).astype(np.uint8))
    limits = [(meter.cir_bytes * BITS, meter.bc_bytes, 0, 0) for meter in meters]
    engine, theirs = engine_colours("act-police", limits, streams), np.concatenate(kernel)
    for stream in streams:
        stream["bytes"] -= ETHERNET_HEADER_BYTES
    shorter = engine_colours("act-police", limits, streams)
    rates = [limit[0] for limit in limits]
    counts = (int(np.count_nonzero(each)) for each in (engine == 1, engine != theirs, shorter != theirs))
    return PoliceResult(policers, count, *counts, min(rates), max(rates), float(times["sent"][-1]) / SECOND)
