"""Engine policers against DPDK's `rte_meter`, packet by packet."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

import numpy as np
from meters import Meter, Packets, Quantum, engine_colours, random_burst, random_packets, rte_colours, rte_quantum

SECOND = 1_000_000_000
SEED = 2697
METERS = 100
PACKETS_A_METER = 100_000
BITS = 8

EXACT_PERIODS_NS = [
    2**twos * 5**fives for twos in range(10) for fives in range(10) if 100 <= 2**twos * 5**fives <= 10**6
]
"""Byte times in whole nanoseconds that divide a second: such rates are exact in both programs."""

ONE_BYTE_A_TICK_BPS = BITS * SECOND
"""Rate of the engine at which one byte arrives per tick, if arrivals are given in ticks instead of nanoseconds."""
TICK_CYCLES = 100
"""Shortest period of `rte_meter` (RTE_METER_TB_PERIOD_MIN), in cycles."""


@dataclass(frozen=True)
class Difference:
    """Differing decisions of meters of one algorithm."""

    algorithm: str
    meters: int
    packets: int
    conformed: int
    exceeded: int
    violated: int
    different: int


def _differences(meters: list[Meter], streams: list[Packets], ours: np.ndarray, theirs: np.ndarray) -> list[Difference]:
    ends = np.cumsum([len(packets) for packets in streams])
    found = []
    for algorithm in dict.fromkeys(meter.algorithm for meter in meters):
        mine = [number for number, meter in enumerate(meters) if meter.algorithm == algorithm]
        chosen = np.concatenate([np.arange(ends[number] - len(streams[number]), ends[number]) for number in mine])
        engine, peer = ours[chosen], theirs[chosen]
        # Without an excess bucket, nonconforming packets exceed here and violate there.
        peer = np.where(peer == 3, 2, peer) if algorithm == "one bucket" else peer
        counts = [int(np.count_nonzero(engine == colour)) for colour in (1, 2, 3)]
        found.append(Difference(algorithm, len(mine), len(chosen), *counts, int(np.count_nonzero(engine != peer))))
    return found


def exact_rates(count: int = METERS, packets: int = PACKETS_A_METER) -> list[Difference]:
    """Compare the decisions on arrivals and rates that are exact in both programs.

    A byte takes a whole number of nanoseconds, and arrivals are whole byte times of each rate.
    """
    random = np.random.default_rng(SEED)
    meters, streams = [], []
    for number in range(count):
        period = int(random.choice(EXACT_PERIODS_NS))
        faster = [each for each in EXACT_PERIODS_NS if period % each == 0]
        peak = int(random.choice(faster))
        meter = Meter(
            SECOND // period,
            random_burst(random),
            SECOND // peak if number % 3 == 2 else 0,
            random_burst(random) if number % 3 else 0,
        )
        quantum = rte_quantum(SECOND, meter)
        _require_exact(meter, quantum)
        grid = lcm(quantum.cir_period, quantum.pir_period or 1)
        meters.append(meter)
        rate = max(meter.cir_bytes, min(meter.pir_bytes, 4 * meter.cir_bytes))
        streams.append(random_packets(random, packets, rate, grid, SECOND))
    theirs = rte_colours("exact", [(SECOND, meter) for meter in meters], streams)
    ours = engine_colours("exact", [_to_bits(meter) for meter in meters], streams)
    return _differences(meters, streams, ours, theirs)


def _require_exact(meter: Meter, quantum: Quantum) -> None:
    rates = [(meter.cir_bytes, quantum.cir_period, quantum.cir_bytes)]
    rates += [(meter.pir_bytes, quantum.pir_period, quantum.pir_bytes)] if meter.pir_bytes else []
    for rate, period, brought in rates:
        if brought * SECOND != rate * period:
            raise ValueError(f"{rate} B/s is not {brought} bytes each {period} ns")


def _to_bits(meter: Meter) -> tuple[int, int, int, int]:
    return meter.cir_bytes * BITS, meter.bc_bytes, meter.pir_bytes * BITS, meter.be_bytes


def any_rates(count: int = METERS, packets: int = PACKETS_A_METER) -> tuple[list[Difference], list[Difference]]:
    """Compare the decisions on any rates and arrivals: unchanged, and with the peer's quantum in the engine.

    `rte_meter` adds tokens in whole periods. With its quantum the engine gets arrivals in whole periods, and the bytes
    of a period as its rate.
    """
    random = np.random.default_rng(SEED + 1)
    clocks, meters, streams, quantised, with_quantum, in_ns = [], [], [], [], [], []
    for number in range(count):
        hertz = int(random.integers(15, 40)) * 100_000_000 + int(random.integers(0, 10**6)) * 100
        meter = _with_two_rates(random, hertz) if number % 3 == 2 else _with_one_rate(random, number % 3 == 1)
        quantum = rte_quantum(hertz, meter)
        if quantum.pir_period not in (0, quantum.cir_period):
            raise ValueError(f"{meter} has periods of {quantum.cir_period} and {quantum.pir_period} cycles")
        arriving = random_packets(random, packets, max(meter.cir_bytes, meter.pir_bytes), 1, hertz)
        in_periods, nanoseconds = arriving.copy(), arriving.copy()
        in_periods["arrival"] //= quantum.cir_period
        nanoseconds["arrival"] = (arriving["arrival"].astype(np.float64) * (SECOND / hertz)).astype(np.uint64)
        rates = quantum.cir_bytes * ONE_BYTE_A_TICK_BPS, quantum.pir_bytes * ONE_BYTE_A_TICK_BPS
        clocks.append(hertz)
        meters.append(meter)
        streams.append(arriving)
        quantised.append(in_periods)
        in_ns.append(nanoseconds)
        with_quantum.append((rates[0], meter.bc_bytes, rates[1], meter.be_bytes))
    theirs = rte_colours("any", list(zip(clocks, meters, strict=True)), streams)
    as_they_are = engine_colours("any", [_to_bits(meter) for meter in meters], in_ns)
    rounded = engine_colours("quantum", with_quantum, quantised)
    return _differences(meters, streams, as_they_are, theirs), _differences(meters, streams, rounded, theirs)


def _with_one_rate(random: np.random.Generator, excess: bool) -> Meter:
    """Return a meter of 1 kB/s to 10 MB/s: `rte_meter` adds its tokens byte by byte."""
    rate = int(np.exp(random.uniform(np.log(1_000), np.log(10_000_000))))
    return Meter(rate, random_burst(random), 0, random_burst(random) if excess else 0)


def _with_two_rates(random: np.random.Generator, hertz: int) -> Meter:
    """Return a meter whose rates both have periods of `TICK_CYCLES`: one to eight bytes each."""
    committed, peak = sorted(int(each) for each in random.choice([1, 2, 4, 5, 8], 2))
    rates = committed * hertz // TICK_CYCLES, peak * hertz // TICK_CYCLES
    return Meter(rates[0], random_burst(random), rates[1], random_burst(random))
