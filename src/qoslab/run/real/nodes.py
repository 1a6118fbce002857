"""Nodes of an inventory for a run."""

from __future__ import annotations

import platform
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qoslab.errors import MachineError
from qoslab.model.experiment import TcpProfile, Topology
from qoslab.model.inventory import HostSettings
from qoslab.platforms import host_names, tcp
from qoslab.platforms.startup import EVERYWHERE, static_routes
from qoslab.results import StallRecord
from qoslab.run.protocols import ClockReading
from qoslab.run.real.channel import AgentChannel, HostLostFault, ProgramOutput
from qoslab.system.programs import OWN_PROGRAMS, find_own_program

FETCH_S = 600.0
"""Time limit for the transfer of a capture, in seconds."""
MIN_CLOCK_READINGS, MAX_CLOCK_READINGS = 8, 64
CLOCK_S = 0.2
"""Time for reading a clock, in seconds; a distant host answers the least number of times."""
REQUEST_MARGIN_S = 0.05
"""Margin between a request and its action, in seconds, in addition to the fastest round trip."""


class ExternalProcess:
    """See `run.protocols.RemoteProcess`. It ends with the connection to its host, which `Lab.death` then reports."""

    def __init__(self, channel: AgentChannel, number: int, output: ProgramOutput, ahead_ns: int = 0) -> None:
        """`ahead_ns` is the offset of its host's CLOCK_MONOTONIC from this machine's."""
        self._channel = channel
        self._number = number
        self._output = output
        self._ahead_ns = ahead_ns

    def poll(self) -> int | None:
        """See `run.protocols.RemoteProcess`."""
        return self._output.status

    def began_ns(self) -> int | None:
        """See `run.protocols.RemoteProcess`. As accurate as the reading of the host's clock."""
        return None if self._output.began_ns is None else self._output.began_ns - self._ahead_ns

    def signal(self, number: signal.Signals) -> None:
        """See `run.protocols.RemoteProcess`."""
        if self._output.status is None:
            self._channel.ask("signal", process=self._number, number=int(number))

    def wait(self, timeout_s: float | None = None) -> int:
        """See `run.protocols.RemoteProcess`. Raise `HostLostFault` if its host is out of reach."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._output.ended.wait(0.1):
            if self._channel.lost:
                raise HostLostFault(f"{self._channel.name} is unreachable: {self._channel.lost}")
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"still running after {timeout_s:g} s")
        assert self._output.status is not None
        return self._output.status

    def end(self, grace_s: float = 0.0) -> None:
        """See `run.protocols.RemoteProcess`."""
        # If the host is out of reach, it ends its programs itself.
        with suppress(HostLostFault):
            if grace_s and self.poll() is None:
                self.signal(signal.SIGTERM)
                with suppress(TimeoutError):
                    self.wait(grace_s)
            if self.poll() is None:
                self.signal(signal.SIGKILL)
                self.wait(grace_s or None)


@dataclass(frozen=True)
class HostPlace:
    """Place of a host in an experiment."""

    topology: Topology
    name: str
    settings: HostSettings
    fixed_ports: bool = False
    """A flow has fixed client ports."""

    def interfaces(self) -> list[dict[str, Any]]:
        """Return its interfaces in the agent's form."""
        return [
            {"device": self.settings.device(near.interface), "addresses": [str(each) for each in near.addresses]}
            for _, near, _ in self.topology.node_links(self.name)
        ]

    def routes(self, metrics: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return all routes, with these attributes. A host with its own routes keeps its default route."""
        found: dict[str, dict[str, Any]] = {}
        near_ends = [near for _, near, _ in self.topology.node_links(self.name)]
        for near in near_ends:
            for address in near.addresses:
                found[str(address.network)] = self._route_entry(near.interface, metrics, source=str(address.ip))
        for route in static_routes(self.topology, self.name):
            interface = next(
                near.interface for near in near_ends for address in near.addresses if route.via in address.network
            )
            prefixes = [str(route.prefix)]
            if route.prefix == EVERYWHERE[route.prefix.version] and self.settings.isolate != "namespace":
                prefixes = self._experiment_prefixes(route.prefix.version)
            for prefix in prefixes:
                found.setdefault(prefix, self._route_entry(interface, metrics, via=str(route.via)))
        return [{"prefix": prefix, **route} for prefix, route in found.items()]

    def sysctls(self, profile: TcpProfile, answers: bool) -> dict[str, str]:
        """Return the wanted sysctls."""
        settings = tcp.SYSCTLS | tcp.tcp_sysctls(profile) | tcp.answer_sysctls(answers)
        if self.fixed_ports:
            settings |= tcp.FIXED_PORTS_SYSCTLS
        return {key: str(value) for key, value in settings.items()}

    def connection_settings(self, metrics: Mapping[str, str]) -> dict[str, dict[str, str]]:
        """Return the wanted connection settings to each address of another host."""
        own = {each.version for _, near, _ in self.topology.node_links(self.name) for each in near.addresses}
        others = [name for name in host_names(self.topology) if name != self.name]
        ends = [near for name in others for _, near, _ in self.topology.node_links(name)]
        return {str(each.ip): dict(metrics) for end in ends for each in end.addresses if each.version in own}

    def _route_entry(
        self, interface: str, metrics: Mapping[str, str], via: str = "", source: str = ""
    ) -> dict[str, Any]:
        return {"device": self.settings.device(interface), "via": via, "source": source, "metrics": dict(metrics)}

    def _experiment_prefixes(self, version: int) -> list[str]:
        """Return the prefixes of the experiment."""
        ends = [end for link in self.topology.links for end in link.ends]
        return sorted({str(each.network) for end in ends for each in end.addresses if each.version == version})


class ExternalHost:
    """See `run.protocols.LabHost`."""

    def __init__(self, channel: AgentChannel, place: HostPlace) -> None:
        self._channel = channel
        self._place = place
        self._sent: set[str] = set()
        """qoslab's own programs that were sent there."""
        self._steady: tuple[int, int] | None = None
        """Offset of its CLOCK_MONOTONIC from this machine's, and duration of the query, at the last reading.

        Neither clock is ever set.
        """
        self.described: dict[str, Any] = {}

    @property
    def lost_reason(self) -> str:
        """Reason why it is out of reach; empty while it is reachable."""
        return self._channel.lost

    @property
    def name(self) -> str:
        """Name in the experiment."""
        return self._place.name

    @property
    def reply(self) -> Mapping[str, Any]:
        """First message of its agent."""
        return self._channel.facts

    def ask(self, op: str, **keys: Any) -> dict[str, Any]:
        """Return the reply of its agent; see `Channel.ask`."""
        return self._channel.ask(op, **keys)

    @property
    def settings(self) -> HostSettings:
        """Settings in the inventory."""
        return self._place.settings

    def locked_interfaces(self) -> Mapping[str, str]:
        """Interfaces in use by another run, with that run."""
        devices = [each["device"] for each in self._place.interfaces()]
        found: Mapping[str, str] = self._channel.ask("held", devices=devices)["held"]
        return found

    def isolate(self) -> list[str]:
        """Prepare its interfaces. Return descriptions of settings of an earlier run that could not be restored."""
        interfaces = self._place.interfaces()
        failed = self._channel.ask("isolate", way=self._place.settings.isolate, interfaces=interfaces)["failed"]
        clock = self.read_clock()
        self.described = {
            **{key: self._channel.facts[key] for key in ("kernel", "boot", "root", "python")},
            "isolate": self._place.settings.isolate,
            "clock_ahead_ms": round(clock.offset_ns / 1e6, 3),
            "clock_error_ms": round(clock.error_ns / 1e6, 3),
        }
        return list(failed)

    def read_clock(self) -> ClockReading:
        """See `run.protocols.LabHost`: the fastest of many answers counts."""
        found: list[tuple[int, int, int, int, Mapping[str, Any]]] = []
        deadline = time.monotonic() + CLOCK_S
        while len(found) < MIN_CLOCK_READINGS or (len(found) < MAX_CLOCK_READINGS and time.monotonic() < deadline):
            steady, before = time.monotonic_ns(), time.time_ns()
            reply = self._channel.ask("clock")
            after = time.time_ns()
            took, middle = after - before, (before + after) // 2
            found.append((took, middle, int(reply["wall_ns"]) - middle, steady + took // 2, reply))
        took, at, ahead, steady, there = min(found, key=lambda each: each[:3])
        self._steady = int(there["wall_ns"]) - int(there["wall_ahead_ns"]) - steady, took
        return ClockReading(at, ahead, took // 2, int(there["wall_ahead_ns"]), int(there["boot_ahead_ns"]))

    @property
    def notice_s(self) -> float:
        """See `run.protocols.RunningLab.notice_s`."""
        return REQUEST_MARGIN_S + 2 * self._monotonic_now()[1] / 1e9

    def _monotonic_now(self) -> tuple[int, int]:
        if self._steady is None:
            self.read_clock()
        assert self._steady is not None
        return self._steady

    def read_stalls(self) -> StallRecord:
        """See `run.protocols.LabHost`."""
        return StallRecord(**self._channel.ask("watched")["stalls"])

    def start(
        self, argv: Sequence[str], *, stdout: Path | None, stderr: Path, at_ns: int | None = None
    ) -> ExternalProcess:
        """See `run.protocols.LabHost`: the host waits for the start time by its own clock."""
        if argv[0] in OWN_PROGRAMS and argv[0] not in self._sent:
            self._send(argv[0])
        out = None if stdout is None else stdout.open("xb", buffering=0)
        ahead_ns = self._monotonic_now()[0]
        there_ns = None if at_ns is None else at_ns + ahead_ns
        number, output = self._channel.start(list(argv), out, stderr.open("xb", buffering=0), there_ns)
        return ExternalProcess(self._channel, number, output, ahead_ns)

    def run_obstacle(self, program: str) -> str:
        """Send one of qoslab's own programs and return why it cannot run there; empty if it can."""
        if program not in self._sent:
            try:
                self._send(program)
            except MachineError as error:
                return error.message
        return str(self._channel.ask("try", name=program)["why"])

    def _send(self, program: str) -> None:
        machine = str(self._channel.facts["kernel"]).split()[-1]
        if machine != platform.machine():
            raise MachineError(f"{self._place.name} is {machine}, but {program} is built for {platform.machine()}")
        self._channel.ask("put", find_own_program(program).read_bytes(), name=program)
        self._sent.add(program)

    def read(self, *paths: str) -> str:
        """See `run.protocols.LabHost`."""
        return self._channel.read(*paths).decode(errors="replace")

    def device(self, interface: str) -> str:
        """See `run.protocols.LabHost`."""
        return self._place.settings.device(interface)

    def scratch_path(self, to: Path) -> str:
        """See `run.protocols.LabHost`: a path in the agent's folder."""
        return f"{self._channel.facts['folder']}/{to.name}"

    def fetch(self, to: Path) -> None:
        """See `run.protocols.LabHost`."""
        with to.open("xb") as file:
            self._channel.fetch(to.name, file, FETCH_S)

    def apply_tcp(self, profile: TcpProfile, *, answers: bool = True) -> None:
        """See `run.protocols.LabHost`."""
        metrics = tcp.route_words(profile)
        if self._place.settings.isolate == "as it is":
            self._channel.ask(
                "apply",
                sysctls=self._place.sysctls(profile, answers),
                routes=[],
                far=self._place.connection_settings(metrics),
            )
        else:
            self._channel.ask(
                "apply", sysctls=self._place.sysctls(profile, answers), routes=self._place.routes(metrics), far={}
            )

    def differences(self, profile: TcpProfile, *, answers: bool = True) -> list[tuple[str, str, str]]:
        """Return differing settings of the kernel or of the path to another host, with actual and required value.

        The required value is empty if there is no route.
        """
        far = self._place.connection_settings(tcp.route_words(profile))
        reply_facts = self._channel.ask("compare", sysctls=self._place.sysctls(profile, answers), far=far)[
            "differences"
        ]
        return [(what, there, wanted) for what, there, wanted in reply_facts]

    def cpu_s(self) -> float:
        """Return the processor time of its programs so far, in seconds."""
        return float(self._channel.ask("load")["seconds"])

    def give_up(self, reason: str) -> None:
        """See `Channel.give_up`."""
        self._channel.give_up(reason)

    def close(self) -> list[str]:
        """Restore it; return the settings that could not be restored."""
        return [f"{self._place.name}: {each}" for each in self._channel.close()]
