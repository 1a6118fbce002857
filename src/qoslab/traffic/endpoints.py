"""Endpoints of the flows of a cell, with repeatable addresses, ports and seeds."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from ipaddress import IPv4Address, IPv6Address

from qoslab.errors import ExperimentError
from qoslab.model.experiment import Family, Flow, Topology

FIRST_PORT = 5201
"""Default port of iperf3; each flow has a separate server and therefore a separate port."""


FAMILIES: tuple[Family, ...] = (4, 6)
EXAMPLES: dict[Family, str] = {4: "address: 192.168.10.2/24", 6: "ipv6_address: 2001:db8:10::2/64"}


def node_families(topology: Topology, node: str) -> frozenset[Family]:
    """Return the versions of IP for which a node has an address."""
    ends = [near for _, near, _ in topology.node_links(node)]
    return frozenset(family for family in FAMILIES if any(end.family_address(family) is not None for end in ends))


def flow_family(topology: Topology, flow: Flow) -> Family:
    """Return the IP version of a flow: the configured one, else the first of 4 and 6 that both hosts have, else 4."""
    if flow.family is not None:
        return flow.family
    common = node_families(topology, flow.source) & node_families(topology, flow.destination)
    return min(common, default=4)


def host_address(topology: Topology, node: str, family: Family) -> IPv4Address | IPv6Address:
    """Return the address with which a host sends and receives: the one on its first link with that address family."""
    for _, near, _ in topology.node_links(node):
        found = near.family_address(family)
        if found is not None:
            return found.ip
    raise ExperimentError(
        f'node "{node}" has IPv{family} traffic but no IPv{family} address',
        hint=f"give its end of a link one, such as {EXAMPLES[family]}",
    )


def with_family(topology: Topology, flow: Flow) -> Flow:
    """Return the flow with its IP version filled in."""
    return flow.model_copy(update={"family": flow_family(topology, flow)})


def flow_addresses(topology: Topology, flow: Flow) -> tuple[IPv4Address | IPv6Address, IPv4Address | IPv6Address]:
    """Return the addresses of a flow's source and destination."""
    family = flow_family(topology, flow)
    return host_address(topology, flow.source, family), host_address(topology, flow.destination, family)


def flow_seed(seed: int, repetition: int, flow: str) -> int:
    """Return the seed of a flow, at most 48 bits: the same in all arms, different for each flow and repetition."""
    return int.from_bytes(hashlib.sha256(f"{seed} {repetition} {flow}".encode()).digest()[:6], "big")


def flow_ports(flows: Sequence[Flow], reserved: Collection[int] = ()) -> dict[str, int]:
    """Return a port for each flow: the configured one, else the next free one from 5201 that is not reserved."""
    taken: dict[str, int] = {flow.name: flow.port for flow in flows if flow.port is not None}
    free = (port for port in range(FIRST_PORT, 65536) if port not in {*taken.values(), *reserved})
    return {flow.name: taken.get(flow.name) or next(free) for flow in flows}
