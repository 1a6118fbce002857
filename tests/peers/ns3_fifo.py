"""FIFO queue and line of the engine against a network device of ns-3, packet by packet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from engine_port import LINE_OVERHEAD_BYTES, PACKET, departures, router, times_of
from peer_programs import compile_program, package_version, pkg_config

SEED = 1538
PATHS = 20
PACKETS = 50_000
RING = 1
SECOND = 1_000_000_000
BYTE_TIMES_NS = [each for each in range(80, 8001) if 8 * SECOND % each == 0]
"""Byte times at 1 to 100 Mb/s in whole nanoseconds: exact in both programs."""
MEAN_BYTES = 791


@dataclass(frozen=True)
class FifoResult:
    """Result of a path: its line, its queue, its load, and the differences."""

    rate_bps: int
    hold_queue: int
    load: float
    packets: int
    dropped: int
    different_drops: int
    different_times: int


def ns3_libraries(*names: str) -> list[str]:
    """Return the compiler's arguments for parts of ns-3; raise `MissingPeerError` if it is not installed."""
    package_version("libns3-dev")
    packages = [f"ns3-{name}" for name in names]
    # Further files named by pkg-config belong to packages that a program does not need.
    needed = [word for word in pkg_config("--libs", *packages) if word.startswith(("-l", "-L"))]
    return ["-std=c++17", "-O1", *pkg_config("--cflags", *packages), *needed]


def compare_fifo() -> list[FifoResult]:
    """Compare drops and departures on random lines, queues and loads."""
    program = compile_program("ns3_queue.cc", "g++", ns3_libraries("core", "network", "point-to-point"))
    random = np.random.default_rng(SEED)
    found = []
    for _ in range(PATHS):
        byte_ns = int(random.choice(BYTE_TIMES_NS))
        rate, limit, load = 8 * SECOND // byte_ns, int(random.integers(4, 200)), float(random.uniform(0.6, 1.6))
        packets = np.zeros(PACKETS, PACKET)
        packets["bytes"] = random.integers(64, 1519, PACKETS)
        gaps = random.exponential((MEAN_BYTES + LINE_OVERHEAD_BYTES) * byte_ns / load, PACKETS)
        packets["time"] = np.cumsum(gaps.astype(np.uint64) + 1)
        on_line = packets.copy()
        on_line["bytes"] += LINE_OVERHEAD_BYTES
        interface = {"bandwidth_kbps": rate // 1000, "hold_queue_out": limit, "tx_ring_limit": RING}
        ours = departures(router(interface), rate, packets)
        theirs = times_of([program, str(rate), str(limit + RING)], on_line)
        drops = (ours == 0) != (theirs == 0)
        times = (ours != theirs) & ~drops
        counts = (int(np.count_nonzero(each)) for each in (ours == 0, drops, times))
        found.append(FifoResult(rate, limit, load, PACKETS, *counts))
    return found
