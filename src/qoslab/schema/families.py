"""IP versions in an experiment: addresses that cannot be assigned to a host, traffic between hosts without a common
version.
"""

from __future__ import annotations

from collections.abc import Iterator

from qoslab.errors import Finding
from qoslab.model.experiment import Address, Family, Flow, Topology
from qoslab.schema.document import Document, Steps
from qoslab.traffic import TOOLS
from qoslab.traffic.endpoints import EXAMPLES, flow_family, node_families

LONGEST_WITH_SPECIAL = {4: 30, 6: 126}
"""Longest prefix with special addresses; links with two addresses have none (RFC 3021, RFC 6164)."""


def special_address_use(address: Address) -> str | None:
    """Return the use of an address that cannot be assigned to a host: `the subnet's own`; None for a host address."""
    if address.version == 6 and (address.ip.is_multicast or address.ip.is_link_local or address.ip.is_unspecified):
        return "a multicast" if address.ip.is_multicast else "a link-local or unspecified"
    if address.network.prefixlen > LONGEST_WITH_SPECIAL[address.version]:
        return None
    if address.ip == address.network.network_address:
        return "the subnet's own"
    # IPv6 has no broadcast: the last address belongs to a host.
    return "its broadcast" if address.version == 4 and address.ip == address.network.broadcast_address else None


def family_findings(document: Document, steps: Steps, flow: Flow, topology: Topology) -> Iterator[Finding]:
    """Yield a finding for hosts without a common IP version, or without the version that the flow requires."""
    ends = (flow.source, flow.destination)
    if not all(node_families(topology, name) for name in ends):
        return  # Missing addresses and unknown hosts are reported elsewhere.
    family = flow_family(topology, flow)
    if flow.tool in TOOLS and family not in TOOLS[flow.tool].families:
        key = "family" if flow.family is not None else "tool"
        spoken = " and ".join(f"IPv{each}" for each in TOOLS[flow.tool].families)
        yield document.finding(
            (*steps, key), f"found IPv{family} with {flow.tool}, expected {spoken}, the only one that it supports"
        )
    yield from unreachable_address_findings(document, steps, "traffic of hosts", ends, flow.family, topology)


def unreachable_address_findings(
    document: Document, steps: Steps, what: str, ends: tuple[str, str], family: Family | None, topology: Topology
) -> Iterator[Finding]:
    """Yield a finding for nodes with addresses but without a common IP version, or without the required version."""
    has = {name: node_families(topology, name) for name in ends}
    if family is None:
        if not frozenset.intersection(*has.values()):
            versions = " and ".join(f"{name} has IPv{min(families)} only" for name, families in has.items())
            hint = "give both an address of the same family"
            yield document.finding(steps, f"found {what} without a common IP version: {versions}", hint)
        return
    for name, families in has.items():
        if family not in families:
            message = f"found {family}, expected the IP version of an address of {name}"
            hint = f"give its end of a link one, such as {EXAMPLES[family]}, or use IPv{min(families)}"
            yield document.finding((*steps, "family"), message, hint)
