"""TCP of the simulator against ns-3 and the Linux kernel on random paths."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from math import exp, log
from pathlib import Path
from random import Random
from statistics import fmean

import kernel
from intervals import Interval, confidence_interval, paired_differences
from ns3_fifo import ns3_libraries
from peer_programs import TOP, compile_program

SEED = 5681
PATHS = 20
SEEDS = 4
LINUX_RUNS = 3
SECONDS = 75
LONG_SECONDS = 315
"""Duration of a second comparison, in which it matters less whether the last cycle of a sawtooth is complete."""
WARM_UP_S = 15
START_SPREAD_S = 5
"""Range of the random start times of connections, so that the measurement starts at any phase of a sawtooth."""
MS = 1_000_000
SECOND = 1_000_000_000
RING = 1
"""Packets in the router's transmit ring in addition to the one on the line; ns-3 counts them in its queue."""
LIBRARIES = ("core", "network", "internet", "point-to-point", "applications", "traffic-control")
FRAME, NS3_FRAME = 1538, 1502
"""Bytes on the line of a full packet, here with Ethernet framing, in ns-3 with its PPP header."""
ACKNOWLEDGEMENT, NS3_ACKNOWLEDGEMENT = 90, 54
"""Bytes on the line of an acknowledgement with timestamps."""
LAN_NS = (FRAME + ACKNOWLEDGEMENT) * 8
"""Time of a packet and its acknowledgement on the fast line of 1 Gb/s."""
CONTROLS = {"reno": "TcpLinuxReno", "cubic": "TcpCubic"}
"""Congestion controls of the simulator, and their names in ns-3."""
METRICS = ("goodput_bps", "loss", "delay_s")
TICK_NS = 10 * MS
"""Tick of user-mode Linux (CONFIG_HZ 100)."""
MIN_TIMEOUT_S = 0.2
"""Minimum of the retransmission timeout.

Linux adds it to the round trip; ns-3 (RFC 6298) compares it with the sum, so that ns-3 gets a longer one.
"""


@dataclass(frozen=True)
class PathCase:
    """Path: rate of its slow line (b/s), delay of each direction (ns), packets of its queue, connections.

    `host_delay_ns` is the longest random delay of a packet in the host that sends it.
    """

    rate_bps: int
    delay_ns: int
    hold_queue: int
    connections: int
    control: str
    host_delay_ns: int = 0

    @property
    def packet_ns(self) -> int:
        """Return the time of a full packet on the slow line."""
        return round(FRAME * 8 / self.rate_bps * SECOND)

    @property
    def acknowledgement_ns(self) -> float:
        """Return the time of an acknowledgement on the slow line, which the path of Linux lacks."""
        return ACKNOWLEDGEMENT * 8 / self.rate_bps * SECOND

    @property
    def full_round_trip_s(self) -> float:
        """Return the round trip of a packet that finds a full queue."""
        return 2 * self.delay_ns / SECOND + (self.hold_queue + RING + 1) * FRAME * 8 / self.rate_bps


def random_path(random: Random, number: int) -> PathCase:
    """Return a path of 1 to 20 Mb/s with a queue of 0.4 to 2 times its bandwidth-delay product."""
    rate = round(exp(random.uniform(log(1e6), log(20e6))))
    delay = round(random.uniform(5, 60) * MS)
    product = rate * 2 * delay / SECOND / 8 / FRAME
    packets = max(8, round(product * random.uniform(0.4, 2)))
    return PathCase(rate, delay, packets, random.choice((1, 1, 2, 4, 8)), ("reno", "cubic")[number % 2])


def scenario(case: PathCase, seed: int, duration_s: int = SECONDS) -> dict[str, object]:
    """Return the scenario of a path for `qos-sim`.

    TCP lacks the mechanisms that ns-3 lacks.
    """
    tcp = {"congestion_control": case.control, "recovery": 0, "early_retrans": 0, "frto": 0}
    interface = {"enabled": True, "bandwidth_kbps": case.rate_bps // 1000, "hold_queue_out": case.hold_queue}
    configuration = {
        "format": 1,
        "router": "R1",
        "generation": "hqf",
        "interfaces": {"FastEthernet0/0": interface | {"tx_ring_limit": RING}},
    }
    return {
        "format": 1,
        "seed": seed,
        "host_jitter_ns": case.host_delay_ns,
        "start_jitter_ns": START_SPREAD_S * SECOND,
        "tick_ns": TICK_NS,
        "nodes": {
            "client": {"kind": "host", "routes": [{"prefix": "0.0.0.0/0", "via": "10.0.1.1"}], "tcp": tcp},
            "R1": {"kind": "router", "configuration": configuration},
            "server": {"kind": "host", "routes": [{"prefix": "0.0.0.0/0", "interface": "eth0"}], "tcp": tcp},
        },
        "links": [
            _link("lan", SECOND, 0, ("client", "eth0", "10.0.1.2/24"), ("R1", "GigabitEthernet0/0", "10.0.1.1/24")),
            _link(
                "wan",
                case.rate_bps,
                case.delay_ns,
                ("R1", "FastEthernet0/0", "10.0.2.1/24"),
                ("server", "eth0", "10.0.2.2/24"),
            ),
        ],
        "flows": [
            {
                "name": "transfer",
                "protocol": "tcp",
                "source": "client",
                "destination": "server",
                "port": 5201,
                "streams": case.connections,
                "duration_ns": (duration_s + START_SPREAD_S) * SECOND,
            }
        ],
    }


def _link(name: str, rate_bps: int, delay_ns: int, *ends: tuple[str, str, str]) -> dict[str, object]:
    keys = ("node", "interface", "address")
    listed = [dict(zip(keys, end, strict=True)) for end in ends]
    return {"name": name, "rate_bps": rate_bps, "framing": "ethernet", "delay_ns": delay_ns, "ends": listed}


def simulate_path(case: PathCase, seed: int, duration_s: int = SECONDS) -> dict[str, float]:
    """Return goodput, loss and mean queueing delay from `qos-sim`, without the warm-up."""
    program = TOP / "target/release/qos-sim"
    text = json.dumps(scenario(case, seed, duration_s))
    ended = subprocess.run([program, "run"], input=text, capture_output=True, text=True, check=True)
    result = json.loads(ended.stdout)
    seconds = result["flows"]["transfer"]["intervals"]
    arrived = sum(each["bytes"] for each in seconds if WARM_UP_S <= each["start_s"] < duration_s)
    samples = {round(sample["time_ns"] / SECOND): sample for sample in result["routers"]["R1"]["samples"]}
    begin, end = (samples[at]["interfaces"]["FastEthernet0/0"] for at in (WARM_UP_S, duration_s))
    sent, dropped = (end["output"][key] - begin["output"][key] for key in ("packets", "drops"))
    waits = [each["queueing_delay"]["packets"] * each["queueing_delay"]["mean_ns"] for each in (begin, end)]
    counted = end["queueing_delay"]["packets"] - begin["queueing_delay"]["packets"]
    return {
        "goodput_bps": arrived * 8 / (duration_s - WARM_UP_S),
        "loss": dropped / (sent + dropped),
        "delay_s": (waits[1] - waits[0]) / counted / SECOND,
    }


def ns3_program() -> Path:
    """Build the program with ns-3."""
    return compile_program("ns3_path.cc", "g++", ns3_libraries(*LIBRARIES))


def run_in_ns3(case: PathCase, seed: int, like: Sequence[str] = ()) -> dict[str, float]:
    """Return the same values from ns-3, with these mechanisms of Linux (`ns3_like_linux.h`)."""
    arguments: dict[str, object] = {
        "rate": round(case.rate_bps * NS3_FRAME / FRAME),
        "delay": round(case.delay_ns + case.acknowledgement_ns * (1 - NS3_ACKNOWLEDGEMENT / ACKNOWLEDGEMENT) / 2),
        "packets": case.hold_queue + RING,
        "hostDelay": case.host_delay_ns,
        "control": CONTROLS[case.control],
        "connections": case.connections,
        "seconds": SECONDS,
        "warmUp": WARM_UP_S,
        "leastTimeout": MIN_TIMEOUT_S + case.full_round_trip_s,
        "startSpread": START_SPREAD_S,
        "seed": seed,
    }
    if like:
        arguments["like"] = ",".join(like)
    command = [str(ns3_program()), *(f"--{name}={value}" for name, value in arguments.items())]
    found: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


def run_in_linux(
    case: PathCase, seeds: Sequence[int], *, push: bool = True, duration_s: int = SECONDS
) -> list[dict[str, float]]:
    """Return the same values from the TCP of Linux, in user-mode Linux with virtual time; one kernel does all runs.

    Without `push` the router clears PSH, so that the receiver does not acknowledge single segments because of it.
    """
    kernel.version()
    path = {
        "rate_bps": case.rate_bps,
        "packets": case.hold_queue + RING + 1,
        "round_trip_us": round((2 * case.delay_ns + case.acknowledgement_ns + LAN_NS) / 1000),
        "connections": case.connections,
        "control": case.control,
        "push": push,
        "warm_up_s": WARM_UP_S,
        "seconds": duration_s,
    }
    paths = []
    for seed in seeds:
        random = Random(seed)
        paths.append(path | {"starts_s": [random.uniform(0, START_SPREAD_S) for _ in range(case.connections)]})
    guest = [sys.executable, str(Path(__file__).with_name("linux_path.py"))]
    with kernel.virtual_kernel(kernel.WITHOUT_IPV6) as linux:
        answer = linux.run(guest, input=json.dumps(paths), timeout_s=kernel.TIME_LIMIT_S).check()
    found: list[dict[str, float]] = json.loads(answer)
    # Its queue includes the packet on the line.
    return [each | {"delay_s": each["in_queue_s"] - FRAME * 8 / case.rate_bps} for each in found]


@dataclass(frozen=True)
class PathResult:
    """Values of all runs on a path."""

    case: PathCase
    simulator: Sequence[Mapping[str, float]]
    ns3: Sequence[Mapping[str, float]]
    linux: Sequence[Mapping[str, float]]
    linux_without_push: Sequence[Mapping[str, float]] = ()
    """Linux's values if the router clears PSH; empty if there is no finding in the usual ones."""
    nearby: Sequence[Mapping[str, float]] = ()
    """The simulator's values on nearly the same paths; empty if there is no finding without PSH."""
    simulator_longer: Sequence[Mapping[str, float]] = ()
    """The simulator's values over `LONG_SECONDS`; empty if there is no finding without PSH."""
    linux_longer: Sequence[Mapping[str, float]] = ()
    """Linux's values over `LONG_SECONDS` without PSH; empty if there is no finding without PSH."""

    def against(self, peer: str, metric: str) -> Interval:
        """Return the difference of the simulator's mean from a peer's, by the name of its field."""
        runs = (self.simulator_longer if peer == "linux_longer" else self.simulator, getattr(self, peer))
        ours, theirs = ([run[metric] for run in each] for each in runs)
        return confidence_interval(ours, theirs)

    def findings(self, peer: str) -> list[str]:
        """Return the metrics with a difference from `MIN_LISTED_DIFFERENCE` on, and zero outside their interval."""
        return [metric for metric in METRICS if self.against(peer, metric).is_finding]


def compare_path(case: PathCase) -> PathResult:
    """Run a path in all three; if there are findings, again in Linux without PSH.

    If there still are findings, run it for a longer time in both, and with small changes in the simulator.
    """
    runs = range(1, LINUX_RUNS + 1)
    result = PathResult(
        case,
        [simulate_path(case, seed) for seed in range(1, SEEDS + 1)],
        [run_in_ns3(case, seed) for seed in range(1, SEEDS + 1)],
        run_in_linux(case, runs),
    )
    if not result.findings("linux"):
        return result
    result = replace(result, linux_without_push=run_in_linux(case, runs, push=False))
    if not result.findings("linux_without_push"):
        return result
    return replace(
        result,
        nearby=[simulate_path(each, 1) for each in similar_paths(case)],
        simulator_longer=[simulate_path(case, seed, LONG_SECONDS) for seed in range(1, SEEDS + 1)],
        linux_longer=run_in_linux(case, runs, push=False, duration_s=LONG_SECONDS),
    )


def similar_paths(case: PathCase, steps: Sequence[int] = (-1, 1)) -> list[PathCase]:
    """Return the path with some packets, or milliseconds, more or less."""
    queues = [replace(case, hold_queue=case.hold_queue + more) for more in steps]
    return queues + [replace(case, delay_ns=case.delay_ns + more * MS) for more in steps]


def random_paths() -> list[PathCase]:
    """Return the paths of all comparisons."""
    random = Random(SEED)
    return [random_path(random, number) for number in range(PATHS)]


def compare_all() -> list[PathResult]:
    """Run all paths, four at a time."""
    ns3_program(), kernel.virtual_clock()
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(compare_path, random_paths()))


def compare_similar_paths(case: PathCase, steps: Sequence[int]) -> dict[str, Interval]:
    """Return the mean differences from Linux without PSH over the path and similar ones, two kernels at a time."""
    kernel.virtual_clock()
    cases = [case, *similar_paths(case, steps)]
    runs = range(1, LINUX_RUNS + 1)
    with ThreadPoolExecutor(2) as pool:
        linux = list(pool.map(lambda each: run_in_linux(each, runs, push=False), cases))
    ours = [[simulate_path(each, seed) for seed in runs] for each in cases]
    return {
        metric: paired_differences(*([fmean(run[metric] for run in each) for each in peer] for peer in (ours, linux)))
        for metric in METRICS
    }
