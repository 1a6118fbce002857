"""Collection of facts: from agents on hosts and from show commands on routers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from qoslab.errors import DeviceError, MachineError
from qoslab.model.experiment import Experiment, Link
from qoslab.platforms import command_line_nodes, is_switch, node_platform
from qoslab.run.devices.ansible_inventory import LabInventory
from qoslab.run.devices.collector import CollectorProcess
from qoslab.run.real.access.proxies import AccessProxies
from qoslab.run.real.external_lab import ExternalLab
from qoslab.run.real.linux_router import LinuxRouter
from qoslab.run.real.nodes import ExternalHost
from qoslab.run.real.preflight.facts import (
    CableAnswers,
    HostFacts,
    KernelFacts,
    PreflightFacts,
    RoundTrips,
    RouterFacts,
    reported_nics,
)
from qoslab.run.real.preflight.idle_links import required_requests
from qoslab.run.real.preflight.show_facts import INTERFACES, router_facts, show_commands
from qoslab.run.task import Demands
from qoslab.run.threads import start_thread, wait_for_result
from qoslab.system.programs import OWN_PROGRAMS
from qoslab.traffic import find_tool

SAMPLES = 20
"""Number of round trips on a link, to measure delay and loss when idle."""
JITTER_SAMPLES = 40
"""Samples on a link with jitter."""
BURST, LONGEST_BURST = 400, 2000
"""Number of further requests without waiting on a link with loss, and its upper limit if more are needed."""
ANSWER_S = 0.5
"""Time limit of an answer, in seconds, in addition to the delay of the link."""
ROUTER_PINGS = 10
"""Number of pings from router to router."""
ROUTER_JITTER_PINGS = 100
MAX_ROUTER_PINGS = 500
"""Greatest number of pings on a link with loss: a router waits a second for each lost one."""
PINGS_PER_COMMAND = 50
"""Pings per command, which prints nothing until all are answered or lost."""
PROBER = "sla"
"""Program of hosts that sends and answers probes."""
EVERYWHERE = ("ip", "tc", "nsenter")
LINUX_ROUTER_PROGRAMS = ("ethtool", "unshare")
RIGHTS = "Give its login CAP_NET_ADMIN and CAP_SYS_ADMIN, which root of a machine has."
"""Advice if commands cannot be tried on a Linux router."""


@dataclass(frozen=True)
class FactCollector:
    """Sources of the facts."""

    experiment: Experiment
    inventory: LabInventory
    lab: ExternalLab
    proxies: AccessProxies | None
    """Access proxies; None if no router has a command line."""
    collector: CollectorProcess
    """Parser of router output."""
    demands: Demands
    """Requirements of the cells on the lab."""
    check: Callable[[], None] = lambda: None
    """Function that raises an error to end the wait for answers."""

    def collect(self) -> PreflightFacts:
        """Return the facts of hosts and routers, collected in parallel; switches last, since they learn addresses."""
        topology = self.experiment.topology
        hosts = self.lab.machines
        routers = command_line_nodes(topology)
        switches = [name for name in routers if is_switch(topology.nodes[name])]
        asked = {name: start_thread(partial(self._collect_host, name, host)) for name, host in hosts.items()}
        answers = {name: start_thread(partial(self._ask, name)) for name in routers if name not in switches}
        found_hosts = {name: wait_for_result(future, self.check) for name, future in asked.items()}
        answers |= {name: start_thread(partial(self._ask, name)) for name in switches}
        found_routers = {
            name: self._read(name, *wait_for_result(future, self.check)) for name, future in answers.items()
        }
        return PreflightFacts(
            self.experiment,
            {name: each.settings for name, each in hosts.items()},
            {name: self.inventory.nodes.routers[name] for name in routers},
            found_hosts,
            found_routers,
            self.demands.routers,
            self.demands.longest,
        )

    # Hosts

    def _collect_host(self, name: str, host: ExternalHost) -> HostFacts:
        topology = self.experiment.topology
        ends = [end for link in topology.links for end in link.ends if end.node != name]
        addresses = [str(end.address.ip) for end in ends if end.address is not None]
        found = host.ask("facts", programs=self._required_programs(name), far=addresses)["facts"]
        clock = host.read_clock()
        stays = host.settings.isolate == "as it is"
        wanted = self.demands.hosts.get(name, ()) if stays else ()
        differing = [each for profile, answers in wanted for each in host.differences(profile, answers=answers)]
        return HostFacts(
            root=bool(host.reply["root"]),
            machine=host.reply["machine"],
            cards=reported_nics(found["cards"]),
            routes={address: (way[0], way[1]) for address, way in found["routes"].items()},
            management=found["management"]["device"],
            missing=tuple(found["missing"]),
            no_capture=found["no_capture"],
            congestion=frozenset(found["congestion"]),
            free=found["free"],
            unfit={program: why for program in self._sent_programs(name) if (why := host.run_obstacle(program))},
            differences=tuple(dict.fromkeys(differing)),
            clock_ahead_ms=clock.offset_ns / 1e6,
            clock_error_ms=clock.error_ns / 1e6,
            cables={
                near.interface: self._probe_cable(host, link, host.device(near.interface), addresses)
                for link, near, _ in topology.node_links(name)
            },
            kernel=self._collect_kernel(host, found["missing"]) if isinstance(host, LinuxRouter) else None,
        )

    def _collect_kernel(self, router: LinuxRouter, missing: Sequence[str]) -> KernelFacts:
        """Return the facts of a kernel, without trials if its agent lacks programs or rights, which is a finding."""
        if missing or not router.reply["root"]:
            return KernelFacts()
        try:
            kinds = router.kinds()
            found = list(router.obstacles(kinds, self.demands.routers.get(router.name, ())))
        except (DeviceError, MachineError) as error:
            return KernelFacts(obstacles=((error.message, error.hint or RIGHTS),))
        obstacles = dict.fromkeys((each.message, each.hint) for each in found)
        return KernelFacts(kinds.release, tuple(sorted(kinds.qdiscs)), router.forwards(), tuple(obstacles))

    def _probe_cable(self, host: ExternalHost, link: Link, device: str, addresses: Sequence[str]) -> CableAnswers:
        near, far = (end for end in sorted(link.ends, key=lambda end: end.node != host.name))
        target = "" if far.address is None else str(far.address.ip)
        found: Mapping[str, Any] = host.ask(
            "cable",
            device=device,
            sender="" if near.address is None else str(near.address.ip),
            far=target,
            others=[each for each in addresses if each != target],
            count=SAMPLES if link.jitter is None else JITTER_SAMPLES,
            burst=0 if link.loss is None else max(BURST, min(required_requests(link), LONGEST_BURST)),
            within_s=ANSWER_S + 4 * link.delay.seconds,
        )["cable"]
        answers = target in found["macs"] or bool(found["took_ms"])
        trips = RoundTrips(found["asked"], tuple(found["took_ms"]), found["burst"], found["answered"])
        macs = {address: tuple(each) for address, each in found["macs"].items()}
        return CableAnswers(macs, trips if answers else None, found["why"])

    def _required_programs(self, name: str) -> list[str]:
        """Return the programs that the experiment needs on a host, except those that are sent there."""
        linux = LINUX_ROUTER_PROGRAMS if name in self.lab.linux_routers else ()
        found = [*EVERYWHERE, *linux, *(each for each in self._flow_programs(name) if each not in OWN_PROGRAMS)]
        if any(point.node == name for point in self.experiment.captures):
            found.append("dumpcap")
        return list(dict.fromkeys(found))

    def _sent_programs(self, name: str) -> list[str]:
        """Return the programs that are sent there."""
        found = [each for each in self._flow_programs(name) if each in OWN_PROGRAMS]
        if any(
            name == probe.source or (probe.is_udp and name == probe.destination) for probe in self.experiment.probes
        ):
            found.append(PROBER)
        return list(dict.fromkeys(found))

    def _flow_programs(self, name: str) -> list[str]:
        """Return the programs that start and end flows on a host, in any arm."""
        flows = [flow for arm in self.experiment.arms for flow in self.experiment.arm_flows(arm)]
        own = [flow for flow in flows if name in (flow.source, flow.destination)]
        return [program for flow in own for program in find_tool(flow.tool).programs]

    # Routers

    def _ask(self, name: str) -> tuple[dict[str, str], dict[str, list[str]]]:
        """Return a router's answers to commands, and to pings by address."""
        assert self.proxies is not None
        topology = self.experiment.topology
        links = topology.node_links(name)
        own = [self.inventory.nodes.routers[name].device(near.interface) for _, near, _ in links]
        serials = tuple(each for each in own if each.startswith("Serial"))
        # Pings first: a router sends ARP requests, and `show arp` then has the answers.
        pings = [
            (str(far.address.ip), count)
            for link, near, far in links
            if far.address is not None and node_platform(topology.nodes[far.node]).is_router
            for count in _ping_counts(link, first=near == link.ends[0])
        ]
        shows = show_commands(switch=is_switch(topology.nodes[name]), serials=serials)
        answer = self.proxies.ask(
            name, *(f"ping {address} repeat {count} timeout 1" for address, count in pings), *shows
        )
        heard: dict[str, list[str]] = {}
        for (address, _), text in zip(pings, answer, strict=False):
            heard.setdefault(address, []).append(text)
        return dict(zip(shows, answer[len(pings) :], strict=True)), heard

    def _read(self, name: str, answers: Mapping[str, str], pings: Mapping[str, Sequence[str]]) -> RouterFacts:
        unread = {}

        def parse(command: str, text: str) -> Mapping[str, Any]:
            found = self.collector.parse(command, text)
            unread[command] = found.reason
            return found.parsed or {}

        access = self.inventory.routers[name]
        facts = router_facts(answers, parse, pings, access.host or "")
        return replace(facts, unread=unread.get(INTERFACES, ""))


def _ping_counts(link: Link, *, first: bool) -> list[int]:
    """Return the numbers of pings between routers over a link, by command; only the first end sends many."""
    count = ROUTER_PINGS
    if first and link.jitter is not None:
        count = ROUTER_JITTER_PINGS
    if first and link.loss is not None:
        count = max(count, min(required_requests(link), MAX_ROUTER_PINGS))
    whole, rest = divmod(count, PINGS_PER_COMMAND)
    return [PINGS_PER_COMMAND] * whole + ([rest] if rest else [])
