"""Dependencies on punctuality: of routers on the routers before them, and of the paced senders."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import Any, TypeAlias

from qoslab.model.experiment import Flow, Probe, Topology
from qoslab.results import SenderRecord
from qoslab.results.records import SENDER_LATE_SHARE
from qoslab.system import program_formats
from qoslab.traffic import FlowResult

HEADER_RATIO = 1.5
"""Ratio of a datagram's size on the line to its payload, an upper limit except for the smallest ones."""


TIMELESS_ACTIONS = frozenset({"name", "set", "trust", "service_policy"})
"""Actions of a class that do not depend on time."""


def depends_on_time(configuration: Mapping[str, Any], interface: str) -> bool:
    """Return whether a router's treatment of frames from an interface depends on their spacing.

    It does if the router polices, shapes or queues them by class. The plain queue of an interface takes all frames of a
    link.
    """
    if configuration.get("switch") is not None:
        return True
    timed = {
        name
        for name, policy in configuration.get("policy_maps", {}).items()
        if any(value for each in policy["classes"] for key, value in each.items() if key not in TIMELESS_ACTIONS)
    }
    # A nested policy counts with its parent.
    for _ in configuration.get("policy_maps", {}):
        timed |= {
            name
            for name, policy in configuration["policy_maps"].items()
            if any(each.get("service_policy") in timed for each in policy["classes"])
        }
    return any(
        own.get(f"service_policy_{side}") in timed
        for name, each in configuration.get("interfaces", {}).items()
        for own in (each, *each.get("subinterfaces", {}).values())
        for side in ("input" if name == interface else "output",)
    )


Pair: TypeAlias = tuple[str, str]
"""Sender and receiver."""


def time_dependent_upstreams(
    topology: Topology, configurations: Mapping[str, Mapping[str, Any]], traffic: Collection[Pair]
) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return, for each router with a data plane and port, the routers with time-dependent policies that it feeds.

    `configurations` are those of the engine. Only links with traffic count: other packets on a link, such as answers to
    ARP requests, are so few that a single late frame is a large share.
    """
    return {
        router: {
            near.interface: (far.node,)
            for _, near, far in topology.node_links(router)
            if far.node in configurations
            and depends_on_time(configurations[far.node], far.interface)
            and any(_may_cross(topology, pair, (router, far.node)) for pair in traffic)
        }
        for router in configurations
    }


def packet_directions(flows: Iterable[Flow], probes: Iterable[Probe]) -> set[Pair]:
    """Return the pairs of sender and receiver; TCP and probes also have answers."""
    there = {(flow.source, flow.destination) for flow in flows}
    answered = {(flow.source, flow.destination) for flow in flows if flow.protocol == "tcp"}
    answered |= {(probe.source, probe.destination) for probe in probes}
    return there | answered | {(destination, source) for source, destination in answered}


def _may_cross(topology: Topology, pair: Pair, link: Pair) -> bool:
    """Return whether packets between two nodes may cross a link in this direction.

    They may if the near end of the link can be reached without the far end, and the destination from the far end
    without going back. If there are several paths, all of them count, since the choice of the routers is not known.
    """
    (source, destination), (near, far) = pair, link
    before = _reachable_nodes(topology, source, without={far, destination})
    return near in before and destination in _reachable_nodes(topology, far, without={near, source})


def _reachable_nodes(topology: Topology, start: str, *, without: Set[str]) -> set[str]:
    """Return the nodes that can be reached; none if `start` is in `without`."""
    found: set[str] = set()
    ahead = [start]
    while ahead:
        node = ahead.pop()
        if node not in found and node not in without:
            found.add(node)
            ahead += [far.node for _, _, far in topology.node_links(node)]
    return found


def sender_precisions(
    topology: Topology, flows: Mapping[str, Flow], results: Mapping[str, FlowResult]
) -> dict[str, SenderRecord]:
    """Return the precision of the senders, by traffic.

    An iperf with a rate above that of its host's link waits for the link, so its pace is unknown.
    """
    found = {}
    for name, result in results.items():
        flow, pace = flows[name], result.pace
        if pace is None or (pace.late_p99_ms is None and _exceeds_link(topology, flow.source, flows.values())):
            continue
        found[name] = SenderRecord(
            shortfall=pace.shortfall,
            late_p99_ms=pace.late_p99_ms,
            late_max_ms=pace.late_max_ms,
            lost=_lost_share(result),
        )
    return found


def _lost_share(result: FlowResult) -> float | None:
    """Return the share of all datagrams that did not arrive; None if unknown for a stream."""
    known = [(each.lost, each.datagrams) for each in result.streams if each.lost is not None and each.datagrams]
    if not known or len(known) < len(result.streams):
        return None
    return sum(lost for lost, _ in known) / sum(datagrams for _, datagrams in known)


def probe_sender(samples: Sequence[program_formats.Sample], interval_ns: int) -> SenderRecord | None:
    """Return how late the packets of a jitter operation left, against the most punctual one; None without packets.

    Packets that returned late or never have no time stamps and are not examined.
    """
    runs: dict[int, list[int]] = {}
    for each in samples:
        runs.setdefault(each["run"], []).append(each["sent_ns"] - each["packet"] * interval_ns)
    late = sorted(offset - min(run) for run in runs.values() for offset in run)
    if not late:
        return None
    p99 = late[math.ceil((1 - SENDER_LATE_SHARE) * len(late)) - 1]
    return SenderRecord(shortfall=0.0, late_p99_ms=p99 / 1e6, late_max_ms=late[-1] / 1e6)


def _exceeds_link(topology: Topology, host: str, flows: Iterable[Flow]) -> bool:
    own = [flow for flow in flows if flow.source == host]
    asked = HEADER_RATIO * sum(flow.rate.bps * flow.streams for flow in own if flow.rate is not None)
    # TCP traffic next to it fills the link.
    shared = any(flow.protocol == "tcp" for flow in own)
    return shared or asked > min((link.rate.bps for link, _, _ in topology.node_links(host)), default=0)
