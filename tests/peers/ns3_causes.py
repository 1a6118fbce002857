"""Causes of the differences of TCP in the simulator and in ns-3: mechanisms of Linux in place of those of ns-3."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from against_ns3 import (
    METRICS,
    PATHS,
    PathCase,
    ns3_program,
    random_paths,
    run_in_ns3,
    simulate_path,
)
from intervals import Interval, confidence_interval

SEEDS = (1, 2, 3)
RUNS_WITH_DELAYS = 40
"""Runs of a path with random delays in the hosts."""
MECHANISMS = {
    "growth": "After fast recovery ns-3 counts the whole acknowledged window for the growth, although SACK had reported"
    " most of it, and a reduction does not reset the count; Linux counts newly delivered segments",
    "disorder": "ns-3 does not grow the window on the acknowledgement that advances and brings the first SACK",
    "reduction": "ns-3 reduces the window in bytes, in proportion to the unacknowledged data (RecoverFS of RFC 6937),"
    " and counts an acknowledgement twice that advances and has a SACK; Linux reduces it in segments, in proportion to"
    " the window",
    "curve": "`TcpCubic` rounds the curve of CUBIC down to whole segments; Linux rounds the distance from its turning"
    " point down, and so reaches this window up to 1.4 s earlier",
    "timer": "In Linux a retransmission of the first segment sets the retransmission timer again; in ns-3 only an"
    " acknowledgement that advances does, so that a timeout comes before the retransmission can be acknowledged, and"
    " segments that have arrived are sent again",
    "start": "In slow start, an acknowledgement raises the window of `TcpCubic` beyond the slow start threshold, and"
    " ns-3 counts segments that SACK had reported; Linux ends slow start at the threshold and counts newly delivered"
    " segments",
    "friendly": "`TcpCubic` has no Reno-friendly region (RFC 9438, section 4.3)",
}
"""Mechanisms of `ns3_like_linux.h`: the difference."""
SHOWN = {"growth": 9, "disorder": 9, "reduction": 9, "curve": 12, "timer": 18, "start": 18, "friendly": 2}
"""Number of a path on which a mechanism is left out."""


@dataclass(frozen=True)
class Causes:
    """Differences of a path by metric: from ns-3, from ns-3 with all mechanisms, and without one of them each."""

    case: PathCase
    usual: dict[str, Interval]
    like_linux: dict[str, Interval]
    without: dict[str, dict[str, Interval]]
    with_delays: dict[str, Interval]
    """Differences from ns-3 with all mechanisms if packets have random delays; empty if no difference remains."""

    def remaining(self) -> list[str]:
        """Return the metrics with a difference of at least `MIN_LISTED_DIFFERENCE` from ns-3 with all mechanisms."""
        return [metric for metric, found in self.like_linux.items() if found.is_finding]


def differences(case: PathCase, like: Sequence[str], seeds: Sequence[int] = SEEDS) -> dict[str, Interval]:
    """Return the differences of the simulator from ns-3 with these mechanisms of Linux."""
    ours = [simulate_path(case, seed) for seed in seeds]
    theirs = [run_in_ns3(case, seed, like) for seed in seeds]
    return {key: confidence_interval([run[key] for run in ours], [run[key] for run in theirs]) for key in METRICS}


def differences_with_delays(case: PathCase) -> dict[str, Interval]:
    """Return the differences from ns-3 with all mechanisms if hosts delay packets at random, up to a packet time.

    Without them connections can settle in a common cycle, and which of them loses a packet depends on its phase. Floyd
    and Jacobson, On Traffic Phase Effects in Packet-Switched Gateways, 1992, propose delays of this size.
    """
    delayed = replace(case, host_delay_ns=case.packet_ns)
    return differences(delayed, list(MECHANISMS), range(1, RUNS_WITH_DELAYS + 1))


def compare() -> list[Causes]:
    """Compare all paths, three at a time."""
    ns3_program()

    def run_case(number: int, case: PathCase) -> Causes:
        shown = [name for name, path in SHOWN.items() if path == number]
        without = {name: differences(case, [each for each in MECHANISMS if each != name]) for name in shown}
        like_linux = differences(case, list(MECHANISMS))
        result = Causes(case, differences(case, ()), like_linux, without, {})
        return replace(result, with_delays=differences_with_delays(case)) if result.remaining() else result

    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(run_case, range(1, PATHS + 1), random_paths()))
