"""Paths of all declared traffic and probes of an arm, in both directions, and the traffic that does not arrive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from qoslab.errors import Finding
from qoslab.ios.model.device import Device
from qoslab.model.experiment import Arm, Experiment, Topology, probe_family, probe_target
from qoslab.schema.document import Document
from qoslab.schema.packet_routes import Fault, InterfacePassage, PacketPath, RoutedNetwork, path_faults
from qoslab.traffic.endpoints import flow_addresses


@dataclass(frozen=True)
class TrafficPath:
    """Paths of the packets of a flow or probe."""

    description: str
    """Description of the traffic: `traffic "voice"`, `probe "rtt"`."""
    forward: PacketPath
    back: PacketPath | None
    """Path of the answers; None if their destination is unknown because the forward path is unknown."""
    has_answers: bool
    """True if packets are sent back."""
    has_only_acknowledgements: bool = False
    """True if only acknowledgements are sent back."""

    @property
    def paths(self) -> list[PacketPath]:
        """Paths in both directions."""
        return [self.forward] if self.back is None else [self.forward, self.back]


def traffic_paths(experiment: Experiment, arm: Arm, devices: Mapping[str, Device]) -> list[TrafficPath]:
    """Return the paths of an arm's flows and probes. `devices` are all routers as the arm configures them."""
    network = RoutedNetwork(experiment.topology, devices)
    found = []
    for flow in experiment.arm_flows(arm):
        source, destination = flow_addresses(experiment.topology, flow)
        forward, back = network.find_path(flow.source, destination), network.find_path(flow.destination, source)
        tcp = flow.protocol == "tcp"
        found.append(TrafficPath(f'traffic "{flow.name}"', forward, back, tcp, tcp))
    for probe in experiment.probes:
        target = probe_target(experiment, probe)
        if target is None:
            continue  # reported by the check of probes
        forward = network.find_path(probe.source, target)
        address = network.source_address(forward, probe_family(experiment, probe))
        answer = None if address is None else network.find_path(probe.destination, address)
        found.append(TrafficPath(f'probe "{probe.name}"', forward, answer, has_answers=True))
    return found


def used_interfaces(ways: list[TrafficPath], *, by_acknowledgements: bool = True) -> set[InterfacePassage]:
    """Return the interfaces by which packets on these paths enter and leave."""
    passed = [
        way
        for each in ways
        for way in (
            each.paths
            if each.has_answers and (by_acknowledgements or not each.has_only_acknowledgements)
            else [each.forward]
        )
    ]
    return {crossing for way in passed for crossing in way.crossings}


def unrouted_traffic(
    experiment: Experiment, document: Document, devices: Mapping[str, Mapping[str, Device]]
) -> list[Finding]:
    """Return each routing obstacle for declared traffic or its answers once. `devices` are the devices of each arm."""
    found: dict[tuple[str, str], tuple[Fault, list[str], list[str]]] = {}
    for arm in experiment.arms:
        for each in traffic_paths(experiment, arm, devices[arm.name]):
            for fault in path_faults(each.paths):
                key = (fault.node, str(fault.prefix or fault.destination))
                _, arms, whose = found.setdefault(key, (fault, [], []))
                arms += [arm.name] if arm.name not in arms else []
                whose += [each.description] if each.description not in whose else []
    return list(_route_findings(experiment, document, found.values()))


def _route_findings(
    experiment: Experiment, document: Document, found: Iterable[tuple[Fault, list[str], list[str]]]
) -> Iterator[Finding]:
    for fault, arms, whose in found:
        where = "" if len(arms) == len(experiment.arms) else f" in arm {', '.join(arms)}"
        message = (
            f"found {fault.reason} for {', '.join(whose)}{where}, expected its packets to arrive in both directions"
        )
        yield document.finding(
            ("topology", "nodes", fault.node), message, _proposed_line(experiment.topology, fault), at_key=True
        )


def _proposed_line(topology: Topology, fault: Fault) -> str:
    if fault.prefix is None:
        return ""
    route = f"{{prefix: {fault.prefix}, via: {fault.via}}}"
    if topology.nodes[fault.node].routes:
        return f"add {route} to the routes of {fault.node}"
    return f"add to {fault.node}: routes: [{route}]"
