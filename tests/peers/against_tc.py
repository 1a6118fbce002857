"""Engine shapers and schedulers against the kernel's queueing disciplines: mean rates of random policies."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from engine_port import INTERFACE, PACKET, departures, router
from kernel import send_frames

SEED = 3649
POLICIES = 50
LINE_BPS = 1_000_000_000
SECOND = 1_000_000_000
MEAN_BYTES = 789
"""Mean packet size: 64 to 1514 bytes."""
WARM_UP_S, WINDOW_S = 5, 40
KERNELS = os.cpu_count() or 1
KINDS = ("TBF", "HTB", "HTB and DRR", "HTB and PRIO", "HTB and SFQ")
QUEUE_LIMIT = 64
BURST_BYTES = 3028
"""Burst of two full frames."""


@dataclass(frozen=True)
class TrafficClass:
    """Class or flow: its weight, and its offered rate of layer-2 bytes (b/s)."""

    weight: int
    offered_bps: float


@dataclass(frozen=True)
class Policy:
    """Policy: a shaper, and below it classes, flows, or a priority class with a policer before a default class."""

    kind: str
    rate_bps: int
    classes: Sequence[TrafficClass]
    priority_bps: int = 0

    def engine(self) -> dict[str, object]:
        """Return the router's configuration."""
        shape: dict[str, object] = {"mode": "average", "rate": {"bps": self.rate_bps}}
        parent: dict[str, object] = {"name": "class-default", "shape": shape}
        policies: dict[str, object] = {"parent": {"classes": [parent]}}
        if child := self._child():
            policies["child"] = {"classes": child}
            parent["service_policy"] = "child"
        names = range(1, len(self.classes) + 1)
        maps = {f"c{n}": {"match": "all", "criteria": [{"type": "dscp", "values": [n]}]} for n in names}
        interface = {"bandwidth_kbps": LINE_BPS // 1000, "service_policy_output": "parent"}
        configuration = router(interface, policy_maps=policies, class_maps=maps)
        assert INTERFACE in str(configuration["interfaces"])
        return configuration

    def _child(self) -> list[dict[str, object]]:
        if self.kind == "HTB and DRR":
            numbered = enumerate(self.classes, 1)
            return [{"name": f"c{n}", "bandwidth": {"remaining_ratio": each.weight}} for n, each in numbered]
        if self.kind == "HTB and PRIO":
            police = {"cir": {"bps": self.priority_bps}, "bc": {"bytes": 10 * BURST_BYTES}}
            return [{"name": "c1", "priority": {"unit": "strict"}, "police": police}, {"name": "class-default"}]
        if self.kind == "HTB and SFQ":
            return [{"name": "class-default", "fair_queue": {}}]
        return []

    def tc(self) -> list[str]:
        """Return the lines of `tc`."""
        add = "add dev out0"
        if self.kind == "TBF":
            return [
                f"qdisc {add} root tbf rate {self.rate_bps}bit burst {BURST_BYTES} limit {QUEUE_LIMIT * MEAN_BYTES}"
            ]
        bursts = f"burst {BURST_BYTES} cburst {BURST_BYTES}"
        lines = [
            f"qdisc {add} root handle 1: htb default 1",
            f"class {add} parent 1: classid 1:1 htb rate {self.rate_bps}bit ceil {self.rate_bps}bit {bursts}",
        ]
        match = f"filter {add} parent 2: protocol all pref 1 u32 match u16"
        numbered = list(enumerate(self.classes, 1))
        if self.kind == "HTB":
            lines.append(f"qdisc {add} parent 1:1 handle 2: pfifo limit {QUEUE_LIMIT}")
        elif self.kind == "HTB and DRR":
            lines.append(f"qdisc {add} parent 1:1 handle 2: drr")
            for n, each in numbered:
                lines.append(f"class {add} parent 2: classid 2:{n} drr quantum {each.weight * 1514}")
                lines.append(f"qdisc {add} parent 2:{n} handle {10 + n}: pfifo limit {QUEUE_LIMIT}")
            lines += [f"{match} {n} 0xffff at 0 flowid 2:{n}" for n, _ in numbered]
        elif self.kind == "HTB and PRIO":
            police = f"action police rate {self.priority_bps}bit burst {10 * BURST_BYTES} conform-exceed drop/ok"
            lines.append(f"qdisc {add} parent 1:1 handle 2: prio bands 2 priomap {' '.join(['1'] * 16)}")
            lines += [f"qdisc {add} parent 2:{n} handle {10 + n}: pfifo limit {QUEUE_LIMIT}" for n in (1, 2)]
            lines.append(f"{match} 1 0xffff at 0 flowid 2:1 {police}")
        else:
            lines.append(f"qdisc {add} parent 1:1 handle 2: sfq quantum 1514 depth 16 limit 1000")
            lines += [f"{match} {n} 0xffff at 0 flowid 2:{n}" for n, _ in numbered]
        return lines


@dataclass(frozen=True)
class TcResult:
    """Mean rates of a class of a policy, in b/s of layer-2 bytes."""

    policy: Policy
    number: int
    engine_bps: float
    kernel_bps: float

    @property
    def difference(self) -> float:
        """Return the relative difference."""
        return self.engine_bps / self.kernel_bps - 1


def random_policy(random: np.random.Generator, number: int) -> Policy:
    """Return a policy of 0.5 to 2 Mb/s; all classes except at most one are offered more than they get."""
    kind = KINDS[number % len(KINDS)]
    rate = int(np.exp(random.uniform(np.log(0.5e6), np.log(2e6)))) // 8 * 8
    if kind in ("TBF", "HTB"):
        return Policy(kind, rate, [TrafficClass(1, rate * random.uniform(1.2, 2))])
    if kind == "HTB and PRIO":
        priority = int(rate * random.uniform(0.1, 0.5)) // 8 * 8
        offered = priority * random.uniform(0.5, 2), rate * random.uniform(1.2, 2)
        return Policy(kind, rate, [TrafficClass(1, each) for each in offered], priority)
    weights = random.integers(1, 6, random.integers(2, 5))
    if kind == "HTB and SFQ":
        weights[:] = 1
    shares = weights / weights.sum() * rate
    classes = [TrafficClass(int(w), float(s * random.uniform(2, 3))) for w, s in zip(weights, shares, strict=True)]
    if random.random() < 0.5:
        # Less than its share: the others share the rest.
        classes[0] = replace(classes[0], offered_bps=float(shares[0] * random.uniform(0.2, 0.6)))
    return Policy(kind, rate, classes)


def random_stream(random: np.random.Generator, policy: Policy) -> npt.NDArray[np.void]:
    """Return the packets of all classes in the order of their times."""
    streams = []
    for number, each in enumerate(policy.classes, 1):
        gap = MEAN_BYTES * 8 / each.offered_bps * SECOND
        packets = np.zeros(int((WARM_UP_S + WINDOW_S) * SECOND / gap), PACKET)
        packets["time"] = (np.arange(len(packets)) * gap + random.uniform(0, gap, len(packets))).astype(np.uint64)
        packets["bytes"] = random.integers(64, 1515, len(packets))
        packets["class"] = number
        streams.append(packets)
    joined = np.concatenate(streams)
    return joined[np.argsort(joined["time"], kind="stable")]


def mean_rates(policy: Policy, packets: npt.NDArray[np.void], times: npt.NDArray[np.uint64]) -> list[float]:
    """Return the rates of the classes after the warm-up.

    A rate is the slope of the least-squares line through the arrived bytes: bursts at the edges of the window hardly
    matter.
    """
    begin, end = WARM_UP_S * SECOND, (WARM_UP_S + WINDOW_S) * SECOND
    rates = []
    for number in range(1, len(policy.classes) + 1):
        mine = np.flatnonzero((times >= begin) & (times < end) & (packets["class"] == number))
        mine = mine[np.argsort(times[mine], kind="stable")]
        seconds = (times[mine] - begin).astype(np.float64) / SECOND
        slope, _ = np.polyfit(seconds, np.cumsum(packets["bytes"][mine], dtype=np.float64), 1)
        rates.append(float(slope) * 8)
    return rates


def compare_rates(policies: int = POLICIES) -> list[TcResult]:
    """Compare the mean rates of all classes of random policies."""
    random = np.random.default_rng(SEED)
    streams = []
    for number in range(policies):
        policy = random_policy(random, number)
        streams.append((policy, random_stream(random, policy)))
    end = (WARM_UP_S + WINDOW_S) * SECOND
    jobs = [(policy.tc(), packets, end) for policy, packets in streams]
    # A guest has one processor.
    shares = [jobs[first::KERNELS] for first in range(KERNELS)]
    with ThreadPoolExecutor(KERNELS) as pool:
        times = list(pool.map(send_frames, shares))
    found = []
    for number, (policy, packets) in enumerate(streams):
        arrived = times[number % KERNELS][number // KERNELS]["arrived"]
        ours = mean_rates(policy, packets, departures(policy.engine(), LINE_BPS, packets))
        theirs = mean_rates(policy, packets, arrived)
        rates = zip(ours, theirs, strict=True)
        found += [TcResult(policy, each, *pair) for each, pair in enumerate(rates, 1)]
    return found
