"""Check that the probes of an experiment can run: sender, responder, values within IP SLA's limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from qoslab.errors import Finding, did_you_mean, format_alternatives
from qoslab.ios.model.ip_sla import REQUEST_SIZES
from qoslab.model.experiment import Experiment, Probe, probe_family, probe_number
from qoslab.model.units import Duration
from qoslab.platforms import host_names, is_switch
from qoslab.schema.document import Document, Steps
from qoslab.schema.families import unreachable_address_findings
from qoslab.traffic.endpoints import node_families

CONTROL_PORT = 1967
"""UDP port of the responder's control messages."""
LIMITS_MS = {"timeout": (0, 604_800_000), "threshold": (0, 2_147_483_647), "interval": (4, 60_000)}
FREQUENCY_S = (1, 604_800)
"""Minimum and maximum in CISCO-RTTMON-MIB."""


def check_probes(experiment: Experiment, document: Document) -> Iterator[Finding]:
    """Yield the errors of the probes. Unique names are checked elsewhere."""
    numbers: dict[tuple[str, int], int] = {}
    for index, probe in enumerate(experiment.probes):
        checked = _ProbeChecker(experiment, document, probe, ("probes", index))
        yield from checked.check_ends()
        yield from checked.check_family()
        yield from checked.check_operation()
        yield from checked.check_times()
        if probe.source in host_names(experiment.topology):
            continue
        number = probe_number(experiment, probe)
        if numbers.setdefault((probe.source, number), index) != index:
            yield document.finding(
                checked.steps, f"found operation {number} a second time, expected a different number"
            )


@dataclass
class _ProbeChecker:
    experiment: Experiment
    document: Document
    probe: Probe
    steps: Steps

    def finding(self, key: str, message: str, hint: str = "") -> Finding:
        """Return a finding about one of the probe's keys, or about the probe if the key is not in the file."""
        steps = (*self.steps, key)
        return self.document.finding(steps if steps in self.document.values else self.steps, message, hint)

    def check_ends(self) -> Iterator[Finding]:
        """Check the sender and the responder."""
        probe, nodes = self.probe, self.experiment.topology.nodes
        for key, name in (("from", probe.source), ("to", probe.destination)):
            if name not in nodes:
                yield self.finding(
                    key, f'found "{name}", expected {format_alternatives(nodes)}', did_you_mean(name, nodes)
                )
            elif is_switch(nodes[name]) and (key == "from" or probe.is_udp):
                does = "runs" if key == "from" else "answers"
                expected = f"a router or a host that {does} {probe.type}"
                yield self.finding(key, f"found the switch {name}, expected {expected}")
        has = {name: node_families(self.experiment.topology, name) for name in (probe.source, probe.destination)}
        for key, name in (("from", probe.source), ("to", probe.destination)):
            if name in nodes and not has[name]:
                yield self.finding(key, f"found {name}, a node without an address")
        if probe.source == probe.destination:
            yield self.finding("to", f"found {probe.destination}, the sender of the probe, expected another node")
        if probe.number is not None and probe.source in host_names(self.experiment.topology):
            message = f"found {probe.number} on the host {probe.source}, expected this key on probes of routers only"
            yield self.finding("number", message)
        if probe.is_udp and probe.destination in host_names(self.experiment.topology):
            yield from self.check_ports()

    def check_family(self) -> Iterator[Finding]:
        """Check the nodes' IP version, and refuse IPv6 for a type that supports only IPv4."""
        probe, topology = self.probe, self.experiment.topology
        ends = (probe.source, probe.destination)
        if probe.type == "icmp-jitter" and probe_family(self.experiment, probe) == 6:
            message = "found icmp-jitter over IPv6 (ICMPv6 has no timestamps), expected udp-jitter or icmp-echo"
            yield self.finding("family" if probe.family is not None else "type", message)
        if probe.source != probe.destination and all(node_families(topology, name) for name in ends):
            yield from unreachable_address_findings(
                self.document, self.steps, "a probe of nodes", ends, probe.family, topology
            )

    def check_ports(self) -> Iterator[Finding]:
        """Check that no traffic uses a port of the host's responder."""
        probe = self.probe
        for arm in self.experiment.arms:
            for flow in self.experiment.arm_flows(arm):
                if flow.destination != probe.destination or flow.protocol != "udp" or flow.port is None:
                    continue
                if flow.port in (CONTROL_PORT, probe.port):
                    message = (
                        f'found traffic "{flow.name}" with UDP port {flow.port} of {probe.destination}, '
                        "which the probe's responder needs, expected another port of the traffic"
                    )
                    yield self.document.finding(self.steps, message)
                    return

    def check_operation(self) -> Iterator[Finding]:
        """Check the keys that belong to some types only."""
        probe = self.probe
        if probe.is_udp != (probe.port is not None):
            found, expected = "a port", "none, because ICMP has no ports"
            if probe.is_udp:
                found, expected = 'no key "port"', "the responder's port"
            yield self.finding("port", f"found {found}, expected {expected}")
        elif probe.port == CONTROL_PORT:
            yield self.finding("port", f"found {CONTROL_PORT}, the responder's control port, expected another port")
        for key in ("packets", "interval"):
            if not probe.is_jitter and getattr(probe, key) is not None:
                yield self.finding(key, f'found "{key}" of {probe.type}, an operation with a single packet')
        limits = REQUEST_SIZES[probe.type]
        if probe.size is not None and limits is None:
            yield self.finding("size", f"found {probe.size}, expected no size: {probe.type} carries no data")
        elif probe.size is not None and limits is not None and not limits[0] <= probe.size.bytes <= limits[2]:
            expected = f"{limits[0]} B to {limits[2]} B of request data"
            yield self.finding("size", f"found {probe.size}, expected {expected}")

    def check_times(self) -> Iterator[Finding]:
        """Check the probe's times, and that it ends before the traffic does."""
        probe, experiment = self.probe, self.experiment
        for key, (least, greatest) in LIMITS_MS.items():
            value: Duration | None = getattr(probe, key)
            if value is not None and (value.ns % 10**6 or not least <= value.ns // 10**6 <= greatest):
                yield self.finding(key, f"found {value}, expected whole milliseconds, {least} ms to {greatest} ms")
        frequency, timeout = probe.frequency_or_default, probe.timeout_or_default
        if frequency.ns % 10**9 or not FREQUENCY_S[0] <= frequency.ns // 10**9 <= FREQUENCY_S[1]:
            message = f"found {frequency}, expected whole seconds, {FREQUENCY_S[0]} s to {FREQUENCY_S[1]} s"
            yield self.finding("frequency", message)
        elif timeout.ns > frequency.ns:
            given = "" if probe.timeout is not None else ", IOS's default"
            message = f"found the frequency {frequency} and the timeout {timeout}{given}, expected no longer timeout"
            yield self.finding("timeout" if probe.timeout is not None else "frequency", message)
        if not experiment.has_time_for(probe):
            message = (
                f"found a start after {probe.start_after} and a run time of {experiment.duration_of_probe(probe)}, "
                f"expected an end within the {experiment.duration} of traffic"
            )
            yield self.document.finding(self.steps, message)
