"""Path of a flow's packets through a topology: its rate and its idle round-trip time. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from qoslab.model.experiment import Experiment, Family, Link, LinkEnd, Topology
from qoslab.model.framing import Framing, line_bytes
from qoslab.traffic.endpoints import flow_family

FULL_PACKET_BYTES = 1500
"""Bytes of the IP packet of a full segment: the MTU of every link of a lab."""
ACK_BYTES: dict[Family, int] = {4: 52, 6: 72}
"""Bytes of the IP packet of an acknowledgement, by IP version: IP header, TCP header of 20 bytes, and timestamps
option.
"""

Port = tuple[str, str]
"""Node and interface."""


@dataclass(frozen=True)
class Hop:
    """A link in one direction."""

    node: str
    """Node that sends on the link."""
    interface: str
    rate_bps: float
    """Rate of the link, including framing."""
    framing: Framing


@dataclass(frozen=True)
class Path:
    """Path from a sender to a receiver."""

    rate_bps: float
    """Rate of the slowest link, in IP bytes of full packets."""
    idle_rtt_ms: float
    """Idle round-trip time of a full packet and its acknowledgement: propagation and line time.

    RFC 6349, section 3.2.1, requires the baseline round-trip time without congestion. TCP's minimum round-trip time is
    measured under its own load, and smoothed; the configured path is known exactly.
    """
    inputs: frozenset[Port]
    """Interfaces by which packets enter nodes."""
    outputs: frozenset[Port]
    """Interfaces by which packets leave nodes."""
    hops: tuple[Hop, ...] = ()
    """Links that every path from sender to receiver crosses, regardless of the routes."""


Paths = Mapping[str, Path]
"""Paths by the name of the traffic."""


def first_arm_paths(experiment: Experiment) -> dict[str, Path]:
    """Return the path of each traffic of the experiment's first arm; paths that depend on routes are left out."""
    found = {}
    for flow in experiment.arm_flows(experiment.arms[0]):
        family = flow_family(experiment.topology, flow)
        path = find_path(experiment.topology, flow.source, flow.destination, family)
        if path is not None:
            found[flow.name] = path
    return found


def find_path(topology: Topology, source: str, destination: str, family: Family = 4) -> Path | None:
    """Return the shortest path between two nodes; None if there is none, or more than one."""
    ways: dict[str, list[tuple[tuple[Link, LinkEnd, LinkEnd], ...]]] = {source: [()]}
    while destination not in ways:
        further: dict[str, list[tuple[tuple[Link, LinkEnd, LinkEnd], ...]]] = {}
        for node, known in ways.items():
            for hop in topology.node_links(node):
                if hop[2].node not in ways:
                    further.setdefault(hop[2].node, []).extend((*way, hop) for way in known)
        if not further:
            return None
        # Nodes that were reached before are not expanded again: their paths are shorter, or were expanded already.
        ways = {node: [] for node in ways} | further
    if len(ways[destination]) != 1 or source == destination:
        return None
    hops = ways[destination][0]
    return Path(
        rate_bps=min(_ip_rate(link) for link, _, _ in hops),
        idle_rtt_ms=sum(_round_trip_ms(link, family) for link, _, _ in hops),
        inputs=frozenset((far.node, far.interface) for _, _, far in hops),
        outputs=frozenset((near.node, near.interface) for _, near, _ in hops),
        hops=tuple(
            Hop(near.node, near.interface, link.rate.bps, link.framing)
            for link, near, _ in hops
            if not _are_connected(topology, source, destination, without=link)
        ),
    )


def _are_connected(topology: Topology, source: str, destination: str, *, without: Link) -> bool:
    """Return whether two nodes stay connected without a link."""
    reached, fresh = {source}, {source}
    while fresh:
        ends = {far.node for node in fresh for link, _, far in topology.node_links(node) if link is not without}
        fresh = ends - reached
        reached |= fresh
    return destination in reached


def _ip_rate(link: Link) -> float:
    return link.rate.bps * FULL_PACKET_BYTES / line_bytes(link.framing, FULL_PACKET_BYTES)


def _round_trip_ms(link: Link, family: Family) -> float:
    octets = line_bytes(link.framing, FULL_PACKET_BYTES) + line_bytes(link.framing, ACK_BYTES[family])
    return 2 * link.delay.ns / 10**6 + octets * 8000 / link.rate.bps
