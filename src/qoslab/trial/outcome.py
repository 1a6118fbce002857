"""Results of a trial: values of each kind of traffic and of each class, from the result of `qos-sim`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from qoslab.model.traffic_kinds import IP_AND_UDP
from qoslab.model.voice import VoiceScore, best_voice_score
from qoslab.system import program_formats
from qoslab.traffic.page_times import PageTimes, ranked_value
from qoslab.trial.demand import PolicyDirection, TrafficDemand
from qoslab.trial.edge import TrialEdge
from qoslab.trial.scenario import ROUTER

Path = tuple[str, ...]
"""Names of the parent classes of a class, and its own name."""


@dataclass(frozen=True)
class Delays:
    """One-way delays in milliseconds, from the sending host to the receiving one."""

    p50_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True)
class KindResult:
    """Values of one kind of traffic."""

    name: str
    summary: str
    count: int
    dscp: int
    way: PolicyDirection
    """Direction at the tried interface; "" if all traffic has the direction of the tried policy."""
    reverse: bool
    """True if it goes against the direction of the tried policy."""
    path: Path
    """Class of the output policy for this traffic; empty without a class."""
    input_path: Path
    """Class of the input policy for this traffic."""
    sent_bps: float
    """UDP: rate of IP packets sent. TCP: payload sent, without retransmissions."""
    received_bps: float
    """UDP: rate of IP packets received. TCP: payload received."""
    loss: float | None
    """Share of the datagrams that did not arrive; None for TCP."""
    retransmits: int | None
    """Number of retransmitted TCP segments."""
    delay: Delays | None
    jitter_ms: float | None
    """Interarrival jitter of RFC 3550, maximum over the sources."""
    voice: VoiceScore | None
    voice_assumed: bool
    """True if the score is based on assumed values of the codec."""
    pages: PageTimes | None
    """Only for TCP with pauses."""
    histogram: tuple[tuple[int, int], ...] = field(repr=False, default=())
    """Delays in nanoseconds, each with its number of packets."""


@dataclass(frozen=True)
class ClassResult:
    """Values of a class during the traffic time, in bytes as the router counts them."""

    path: Path
    offered_bps: float
    sent_bps: float
    offered_packets: int
    dropped_packets: int
    drops: Mapping[str, int]
    """Dropped packets by reason."""
    delay: Delays | None
    """Delays of the packets of all kinds of traffic in the class."""

    @property
    def loss(self) -> float:
        """Share of the packets that were dropped."""
        return self.dropped_packets / self.offered_packets if self.offered_packets else 0.0


@dataclass(frozen=True)
class PolicyResult:
    """Classes of a policy other than the tried one that handled traffic."""

    interface: str
    direction: str
    policy: str
    reverse: bool
    """True if it applies to the traffic against the direction of the tried policy."""
    classes: tuple[ClassResult, ...]


@dataclass(frozen=True)
class TrialOutcome:
    """Results of one variant."""

    label: str
    kinds: tuple[KindResult, ...]
    classes: tuple[ClassResult, ...]
    others: tuple[PolicyResult, ...]
    """Other policies that handled the traffic."""
    line_bps: float
    """Bits per second sent by the interface, as the router counts them."""
    line_in_bps: float
    """Bits per second received by the interface, as the router counts them."""
    events: int


def traffic_class_paths(
    report: program_formats.SimulationReport, edge: TrialEdge, demands: Sequence[TrafficDemand]
) -> list[tuple[Path, Path]]:
    """Return the classes of the output and the input policy that each kind of traffic passed when sent alone."""
    samples = report["routers"][ROUTER]["samples"]
    found = []
    for number, demand in enumerate(demands):
        before, after = samples[2 * number + 1], samples[2 * number + 2]
        entered, left = (edge.wan, edge.lan) if demand.is_reverse(edge.direction) else (edge.lan, edge.wan)
        output = _increased_class(*(_policy_counters(each, edge, left, "output") for each in (before, after)))
        input_ = _increased_class(*(_policy_counters(each, edge, entered, "input") for each in (before, after)))
        found.append((output, input_))
    return found


def _policy_counters(
    sample: program_formats.Counters, edge: TrialEdge, name: str, direction: Literal["input", "output"]
) -> program_formats.PolicyCounters | None:
    """Return the counters of the policy of an interface, or of the tried subinterface of the WAN interface."""
    port = sample["interfaces"][name]
    if name == edge.wan and edge.subinterface is not None:
        sub = port["subinterfaces"][edge.subinterface]
        return sub["policy_output"] if direction == "output" else sub["policy_input"]
    return port["policy_output"] if direction == "output" else port["policy_input"]


def _increased_class(
    before: program_formats.PolicyCounters | None, after: program_formats.PolicyCounters | None
) -> Path:
    """Return the path of the innermost class whose packet counter increased."""
    if before is None or after is None:
        return ()
    for one, other in zip(before["classes"], after["classes"], strict=True):
        if other["packets"] > one["packets"]:
            return (other["name"], *_increased_class(one["child"], other["child"]))
    return ()


def trial_outcome(
    label: str,
    report: program_formats.SimulationReport,
    edge: TrialEdge,
    demands: Sequence[TrafficDemand],
    paths: Sequence[tuple[Path, Path]],
    seconds: float,
) -> TrialOutcome:
    """Return the values of a variant."""
    kinds = tuple(
        _kind_result(demand, edge, path, report["flows"][demand.name], seconds)
        for demand, path in zip(demands, paths, strict=True)
    )
    samples = report["routers"][ROUTER]["samples"]
    end = next(each for each in samples if each["time_ns"] - samples[0]["time_ns"] >= round(seconds * 1e9))
    results = {}
    for interface, direction, reverse in passed_policies(edge):
        met: dict[Path, list[KindResult]] = {}
        for each in kinds:
            if each.reverse == reverse:
                met.setdefault(each.path if direction == "output" else each.input_path, []).append(each)
        counters = _policy_counters(end, edge, interface, direction)
        classes = () if counters is None else tuple(_class_results(counters, (), met, seconds))
        name = "" if counters is None else counters["policy"]
        results[interface, direction] = PolicyResult(interface, direction, name, reverse, classes)
    tried = results.pop((edge.wan, "output") if edge.direction == "output" else (edge.lan, "input"))
    others = tuple(each for each in results.values() if each.classes)
    port = end["interfaces"][edge.wan]
    sent_bps, received_bps = (port[way]["bytes"] * 8 / seconds for way in ("output", "input"))
    return TrialOutcome(label, kinds, tried.classes, others, sent_bps, received_bps, report["events"])


def passed_policies(edge: TrialEdge) -> Iterator[tuple[str, Literal["input", "output"], bool]]:
    """Yield interface and direction of the policies that traffic can pass, and whether it is the reverse traffic.

    If an input policy is tried in one direction, the path ends at it: it is simulated without queues after it.
    """
    yield edge.lan, "input", False
    if edge.direction == "output" or edge.two_way:
        yield edge.wan, "output", False
    if edge.two_way:
        yield edge.wan, "input", True
        yield edge.lan, "output", True


def _kind_result(
    demand: TrafficDemand, edge: TrialEdge, paths: tuple[Path, Path], flow: program_formats.FlowReport, seconds: float
) -> KindResult:
    streams, kind = flow["streams"], demand.kind
    datagrams = sum(each["datagrams"] or 0 for each in streams)
    lost = sum(each["lost"] or 0 for each in streams)
    udp = kind.protocol == "udp"
    header = IP_AND_UDP if udp else 0
    received = sum(each["bytes"] for each in streams) + header * (datagrams - lost)
    sent = sum(each["sender_bytes"] for each in streams) + header * datagrams
    histogram = tuple((delay, packets) for delay, packets in (flow["delay"] or {"histogram": []})["histogram"])
    jitters = [each["jitter_ms"] for each in streams if each["jitter_ms"] is not None]
    return KindResult(
        name=demand.name,
        summary=kind.summary,
        count=demand.count,
        dscp=demand.dscp,
        way=demand.way,
        reverse=demand.is_reverse(edge.direction),
        path=paths[0],
        input_path=paths[1],
        sent_bps=sent * 8 / seconds,
        received_bps=received * 8 / seconds,
        loss=lost / datagrams if udp and datagrams else None,
        retransmits=None if udp else sum(each["retransmits"] or 0 for each in streams),
        delay=_delay_summary(flow["delay"]),
        jitter_ms=max(jitters, default=None),
        voice=None if kind.codec is None else best_voice_score(kind.codec, histogram, datagrams),
        voice_assumed=kind.codec is not None and kind.codec.assumed,
        pages=_page_times(flow) if kind.sizes else None,
        histogram=histogram,
    )


def _page_times(flow: program_formats.FlowReport) -> PageTimes | None:
    writes = flow["writes"]
    return PageTimes.from_histogram(writes["histogram"] if writes else (), flow.get("unfinished_writes", 0))


def _delay_summary(report: program_formats.DelayReport | None) -> Delays | None:
    if report is None:
        return None
    return Delays(report["p50_ns"] / 1e6, report["p99_ns"] / 1e6, report["max_ns"] / 1e6)


def _class_results(
    policy: program_formats.PolicyCounters, above: Path, kinds: Mapping[Path, Sequence[KindResult]], seconds: float
) -> Iterator[ClassResult]:
    for each in policy["classes"]:
        path = (*above, each["name"])
        inner = () if each["child"] is None else tuple(_class_results(each["child"], path, kinds, seconds))
        counts = cast("dict[str, program_formats.Count]", each["drops"])
        drops = {reason: count["packets"] for reason, count in counts.items() if count["packets"]}
        dropped_bytes = sum(count["bytes"] for count in counts.values())
        queued = 0 if each["queue"] is None else each["queue"]["depth_bytes"]
        sent = each["bytes"] - dropped_bytes - queued
        # Drops and queue of a class include those of its children.
        dropped = sum(drops.values())
        yield ClassResult(
            path,
            each["bytes"] * 8 / seconds,
            sent * 8 / seconds,
            each["packets"],
            dropped,
            drops,
            merge_delays([one for found, ones in kinds.items() if found[: len(path)] == path for one in ones]),
        )
        yield from inner


def merge_delays(kinds: Sequence[KindResult]) -> Delays | None:
    """Return the combined delays of several kinds of traffic."""
    counts: dict[int, int] = {}
    for each in kinds:
        for delay, packets in each.histogram:
            counts[delay] = counts.get(delay, 0) + packets
    if not counts:
        return None
    ordered = sorted(counts.items())
    total = sum(counts.values())
    p50_ns, p99_ns = (ranked_value(ordered, share * total) for share in (0.5, 0.99))
    return Delays(p50_ns / 1e6, p99_ns / 1e6, ordered[-1][0] / 1e6)
