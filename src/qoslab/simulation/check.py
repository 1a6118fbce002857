"""Check for parts of an experiment that cannot be simulated; findings have file and line, as those of the schema."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from qoslab.errors import Finding, format_alternatives
from qoslab.model.experiment import Experiment, Flow, Link, TcpProfile
from qoslab.platforms import node_platform, router_names
from qoslab.schema import configuration_text
from qoslab.schema.document import Document, Steps
from qoslab.simulation.routers import SimulatedRouter, configured_router
from qoslab.simulation.show_answers import NotSimulatedError, answer_show, empty_history
from qoslab.traffic import find_tool
from qoslab.traffic.endpoints import flow_family

CONGESTION_CONTROLS = ("cubic", "reno")
FILTERS = ("", "ip", "ip6", "tcp", "udp", "icmp", "icmp6")
EARLY_RETRANS = (0, 3, 4)
"""Supported values of `tcp_early_retrans`: 1 and 2 (RFC 5827) are not modelled, since Linux has dropped them."""


def simulation_problems(experiment: Experiment, document: Document, file: Path) -> list[Finding]:
    """Return every part of a valid experiment that cannot be simulated, with its place."""
    return list(_SimulationChecker(experiment, document, file).findings())


class _SimulationChecker:
    def __init__(self, experiment: Experiment, document: Document, file: Path) -> None:
        self.experiment = experiment
        self.document = document
        self.file = file

    def add_finding(self, steps: Steps, found: str, expected: str, *, at_key: bool = False) -> Finding:
        return self.document.finding(
            steps, f"found {found}, expected {expected}", "it is not simulated; use --lab virtual", at_key=at_key
        )

    def findings(self) -> Iterator[Finding]:
        yield from self.check_topology()
        for index, point in enumerate(self.experiment.captures):
            if point.filter not in FILTERS:
                wanted = format_alternatives([each for each in FILTERS if each])
                yield self.add_finding(
                    ("captures", index, "filter"), f'the filter "{point.filter}"', f"none, or {wanted}"
                )
        yield from self.check_tcp(("tcp",), self.experiment.tcp)
        for number, arm in enumerate(self.experiment.arms):
            own: Steps = ("arms", number)
            if arm.tcp is not None:
                yield from self.check_tcp((*own, "tcp"), arm.tcp)
            if not self.experiment.arm_flows(arm):
                place: Steps = ("traffic",) if arm.traffic is None else (*own, "traffic")
                yield self.add_finding(place, f"no traffic in arm {arm.name}", "at least one entry")
            if arm.traffic is not None:
                yield from self.check_flows((*own, "traffic"), arm.traffic)
        if any(arm.traffic is None for arm in self.experiment.arms):
            yield from self.check_flows(("traffic",), self.experiment.traffic)
        yield from self.check_routers()

    def check_topology(self) -> Iterator[Finding]:
        for index, link in enumerate(self.experiment.topology.links):
            for side, end in enumerate(link.ends):
                # A link of VLANs between routers has its addresses in their configurations.
                if not end.addresses and self.ends_at_host(link):
                    steps: Steps = ("topology", "links", index, "ends", side)
                    yield self.add_finding(steps, f"{end.interface} of {end.node} without an address", "one")

    def ends_at_host(self, link: Link) -> bool:
        """Return whether one end of the link is a host."""
        nodes = self.experiment.topology.nodes
        return any(not node_platform(nodes[end.node]).is_router for end in link.ends)

    def check_tcp(self, steps: Steps, tcp: str | TcpProfile) -> Iterator[Finding]:
        if isinstance(tcp, str):
            return  # profiles of the package are modelled
        if tcp.congestion_control not in CONGESTION_CONTROLS:
            yield self.check_congestion_control((*steps, "congestion_control"), tcp.congestion_control)
        if tcp.early_retrans not in EARLY_RETRANS:
            yield self.add_finding((*steps, "early_retrans"), f"{tcp.early_retrans}", "0, 3 or 4")

    def check_congestion_control(self, steps: Steps, name: str) -> Finding:
        return self.add_finding(steps, f'"{name}"', format_alternatives(CONGESTION_CONTROLS))

    def check_flows(self, steps: Steps, flows: tuple[Flow, ...]) -> Iterator[Finding]:
        for index, flow in enumerate(flows):
            here: Steps = (*steps, index)
            if flow.congestion_control is not None and flow.congestion_control not in CONGESTION_CONTROLS:
                yield self.check_congestion_control((*here, "congestion_control"), flow.congestion_control)
            if flow.protocol != "udp":
                continue
            if flow.window is not None:
                yield self.add_finding((*here, "window"), f"{flow.window} on a UDP flow", "this key on TCP flows only")
            most = find_tool(flow.tool).largest_datagram(flow_family(self.experiment.topology, flow))
            if flow.size is not None and flow.size.bytes > most:
                yield self.add_finding((*here, "size"), f"{flow.size}", f"at most {most} B, to avoid fragmentation")

    def check_routers(self) -> Iterator[Finding]:
        """Check the routers' configurations, and the show commands."""
        seen: set[tuple[str, str]] = set()
        for number, arm in enumerate(self.experiment.arms):
            texts = configuration_text(self.file, self.experiment, arm)
            for name in router_names(self.experiment.topology):
                router = configured_router(self.experiment.topology, name, texts.get(name, ""))
                steps: Steps = ("arms", number, "configure", name) if name in arm.configure else ("configure", name)
                for problem in router.problems:
                    if (name, problem) not in seen:
                        seen.add((name, problem))
                        yield self.add_finding(steps, f"{problem} in the configuration of {name}", "none", at_key=True)
                if number == 0:
                    yield from self.check_commands(router)

    def check_commands(self, router: SimulatedRouter) -> Iterator[Finding]:
        for index, observation in enumerate(self.experiment.observe):
            node = self.experiment.topology.nodes[observation.node]
            if observation.node != router.name or not node_platform(node).access.command_line:
                continue
            try:
                answer_show(node, router, observation.command, empty_history(node, router))
            except NotSimulatedError as error:
                yield self.add_finding(
                    ("observe", index, "command"),
                    f'"{observation.command}", a command that needs {error.what}',
                    "a command that is answered from a router's counters and configuration",
                )
