"""Where the flows of a cell run, and what makes them repeatable: addresses, ports, seeds."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from ipaddress import IPv4Address

from qoslab.errors import ExperimentError
from qoslab.model.experiment import Flow, Topology

FIRST_PORT = 5201
"""iperf3's own; each flow has its own server and so its own port."""


def address_of(topology: Topology, node: str) -> IPv4Address:
    """The address under which a host sends and receives: that of its first link which has one."""
    for _, near, _ in topology.links_of(node):
        if near.address is not None:
            return near.address.ip
    raise ExperimentError(
        f'node "{node}" has traffic but no address', hint="give its end of a link an address, as 192.168.10.2/24"
    )


def flow_seed(seed: int, repetition: int, flow: str) -> int:
    """The seed of a flow: the same in all arms, another for each flow and repetition; at most 48 bits."""
    return int.from_bytes(hashlib.sha256(f"{seed} {repetition} {flow}".encode()).digest()[:6], "big")


def flow_ports(flows: Sequence[Flow], reserved: Collection[int] = ()) -> dict[str, int]:
    """A port for each flow: its own, else the first free one from 5201 that is not reserved."""
    taken: dict[str, int] = {flow.name: flow.port for flow in flows if flow.port is not None}
    free = (port for port in range(FIRST_PORT, 65536) if port not in {*taken.values(), *reserved})
    return {flow.name: taken.get(flow.name) or next(free) for flow in flows}
