"""Random early detection of the engine against that of ns-3, on the same packets.

The engine drops each packet with the probability p of the mean queue. ns-3 counts the packets since the last drop
(Floyd and Jacobson, 1993, section VII): the distance between drops is uniform from 1 to 1/p, its mean (1/p + 1)/2, so
that it drops 2p/(1 + p) of all packets. Unresponsive traffic loses the same share, but with a shorter queue.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from engine_port import LINE_OVERHEAD_BYTES, PACKET, departures, router, times_of
from intervals import Interval, paired_differences
from ns3_fifo import MEAN_BYTES, ns3_libraries
from peer_programs import compile_program

SEED = 1993
PATHS = 20
SEEDS = 8
PACKETS = 40_000
WARM_UP = PACKETS // 10
RING = 1
SECOND = 1_000_000_000
DENOMINATOR = 10


@dataclass(frozen=True)
class RedResult:
    """Result of a path, and the differences of loss and of the mean wait, in s, from unmodified ns-3 and with its rule
    applied to p.
    """

    rate_bps: int
    thresholds: tuple[int, int]
    exponent: int
    load: float
    loss: Interval
    wait: Interval
    loss_corrected: Interval
    wait_corrected: Interval


def _measured_values(
    packets: npt.NDArray[np.void], times: npt.NDArray[np.uint64], rate_bps: int
) -> tuple[float, float]:
    """Return loss and mean wait after the warm-up; the wait excludes the time on the line."""
    packets, times = packets[WARM_UP:], times[WARM_UP:]
    passed = times > 0
    on_line = (packets["bytes"][passed] + LINE_OVERHEAD_BYTES) * 8 / rate_bps
    waits = (times[passed] - packets["time"][passed]) / SECOND - on_line
    return float(1 - passed.mean()), float(waits.mean())


def compare_red() -> list[RedResult]:
    """Compare random paths whose loss is below the greatest drop probability."""
    program = compile_program("ns3_red.cc", "g++", ns3_libraries("core", "network", "traffic-control"))
    random = np.random.default_rng(SEED)
    found = []
    for _ in range(PATHS):
        rate = int(np.exp(random.uniform(np.log(1e6), np.log(1e8))))
        least = int(random.integers(10, 40))
        thresholds = least, least + int(random.integers(20, 80))
        exponent, load = int(random.integers(6, 10)), float(random.uniform(1.02, 1.07))
        runs: list[list[tuple[float, float]]] = [[], [], []]
        for seed in range(1, SEEDS + 1):
            packets = np.zeros(PACKETS, PACKET)
            packets["bytes"] = random.integers(64, 1519, PACKETS)
            mean = (MEAN_BYTES + LINE_OVERHEAD_BYTES) * 8 / rate * SECOND / load
            packets["time"] = np.cumsum(random.exponential(mean, PACKETS).astype(np.uint64) + 1)
            on_line = packets.copy()
            on_line["bytes"] += LINE_OVERHEAD_BYTES
            ours = departures(_engine_config(rate, thresholds, exponent), rate, packets, seed)
            runs[0].append(_measured_values(packets, ours, rate))
            loss = 1 - 1 / load
            for number, denominator in ((1, DENOMINATOR), (2, DENOMINATOR * (2 - loss))):
                words = (rate, 1000, RING, *thresholds, denominator, 2.0**-exponent, seed)
                theirs = times_of([program, *map(str, words)], on_line)
                runs[number].append(_measured_values(packets, theirs, rate))
        pairs = [
            paired_differences([run[value] for run in runs[0]], [run[value] for run in runs[peer]])
            for peer in (1, 2)
            for value in (0, 1)
        ]
        found.append(RedResult(rate, thresholds, exponent, load, *pairs))
    return found


def _engine_config(rate_bps: int, thresholds: tuple[int, int], exponent: int) -> dict[str, object]:
    threshold = {"value": 0, "min": thresholds[0], "max": thresholds[1], "denominator": DENOMINATOR}
    red = {"basis": "precedence", "exponential_weight": exponent, "thresholds": [threshold]}
    default = {"name": "class-default", "random_detect": red, "queue_limit": {"packets": 1000}}
    interface = {"bandwidth_kbps": rate_bps // 1000, "tx_ring_limit": RING, "service_policy_output": "red"}
    return router(interface | {"hold_queue_out": 4096}, policy_maps={"red": {"classes": [default]}})
