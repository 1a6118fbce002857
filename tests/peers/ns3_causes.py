"""Causes of the differences of TCP in the simulator and in ns-3: mechanisms of Linux in place of those of ns-3."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from random import Random

from against_ns3 import (
    METRICS,
    PATHS,
    SEED,
    Interval,
    PathCase,
    confidence_interval,
    ns3_program,
    paired_differences,
    random_path,
    run_in_ns3,
    similar_paths,
    simulate_path,
)

SEEDS = (1, 2, 3)
NEARBY_STEPS = (-3, -2, -1, 1, 2, 3)
"""Packets, and milliseconds, by which nearly the same paths differ."""
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
    nearby: dict[str, Interval]
    """Mean differences from ns-3 with all mechanisms over nearly the same paths; empty if none remains on this one."""

    def remaining(self) -> list[str]:
        """Return the metrics with a difference of at least `MIN_LISTED_DIFFERENCE` from ns-3 with all mechanisms."""
        return [metric for metric, found in self.like_linux.items() if found.is_finding]


def differences(case: PathCase, like: Sequence[str]) -> dict[str, Interval]:
    """Return the differences of the simulator from ns-3 with these mechanisms of Linux."""
    ours = [simulate_path(case, seed) for seed in SEEDS]
    theirs = [run_in_ns3(case, seed, like) for seed in SEEDS]
    return {key: confidence_interval([run[key] for run in ours], [run[key] for run in theirs]) for key in METRICS}


def nearby_differences(case: PathCase) -> dict[str, Interval]:
    """Return the mean differences over the path and nearly the same ones, from ns-3 with all mechanisms of Linux."""
    cases = [case, *similar_paths(case, NEARBY_STEPS)]
    each = [differences(near, list(MECHANISMS)) for near in cases]
    return {
        key: paired_differences([found[key].ours for found in each], [found[key].theirs for found in each])
        for key in METRICS
    }


def compare() -> list[Causes]:
    """Compare all paths, three at a time."""
    random = Random(SEED)
    cases = [random_path(random, number) for number in range(PATHS)]
    ns3_program()

    def run_case(number: int, case: PathCase) -> Causes:
        shown = [name for name, path in SHOWN.items() if path == number]
        without = {name: differences(case, [each for each in MECHANISMS if each != name]) for name in shown}
        like_linux = differences(case, list(MECHANISMS))
        result = Causes(case, differences(case, ()), like_linux, without, {})
        return replace(result, nearby=nearby_differences(case)) if result.remaining() else result

    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(run_case, range(1, PATHS + 1), cases))
