"""Measurement of one cell after its routers are configured: hosts, captures, observations, traffic, counters."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from qoslab.capture import CaptureError
from qoslab.errors import QoslabError, RunInvalid
from qoslab.lab_kinds.measured import CAPTURE_OFF, CAPTURE_ON, OBSERVE_AFTER, OBSERVE_BEFORE, SET_HOSTS, WAIT_FOR_TURN
from qoslab.model.experiment import Stage
from qoslab.model.instants import counter_reading_times, traffic_time
from qoslab.model.steps import TRAFFIC
from qoslab.platforms import has_kernel, host_names, router_names
from qoslab.platforms.tcp import settings_without_effect
from qoslab.run.cell.captures import RunningCapture, start_capture
from qoslab.run.cell.clock_checks import HostClocks, MachineClocks
from qoslab.run.cell.flows import FlowLocation, RunningFlow, run_flows
from qoslab.run.cell.journal import CellJournal
from qoslab.run.cell.nic_counters import NicCounters
from qoslab.run.cell.observing import Observe, observe_all
from qoslab.run.cell.pace import packet_directions, sender_precisions, time_dependent_upstreams
from qoslab.run.cell.periodic_show import ShowSampler
from qoslab.run.cell.probes import CellProbes, Enter, Setting, reserved_ports
from qoslab.run.cell.sampling import CounterSampler, read_engine_configuration, read_health, reset_counters
from qoslab.run.cell.triggers import TriggerThreads
from qoslab.run.devices.collector import RouterAnswer
from qoslab.run.events import RunInterrupted
from qoslab.run.faults import LabDiedFault, describe_death
from qoslab.run.protocols import RunningLab
from qoslab.run.task import host_tcp_settings
from qoslab.traffic import FlowResult, TrafficError
from qoslab.traffic.endpoints import flow_ports, flow_seed


class Parse(Protocol):
    """Parser of router output."""

    def __call__(self, device: str, command: str, text: str) -> RouterAnswer:
        """Parse `text`, the answer of the router to `command`."""


@dataclass(frozen=True)
class CommandLines:
    """Functions that run show commands on routers and enter configuration lines."""

    observe: Observe
    enter: Enter
    show: Observe
    """Run a show command without parsing."""
    parse: Parse


class CellRun:
    """One running cell; its journal has the result at the end."""

    def __init__(
        self, lab: RunningLab, journal: CellJournal, routers: CommandLines, interrupted: threading.Event
    ) -> None:
        self._lab = lab
        self._journal = journal
        self._commands = routers
        self._interrupted = interrupted
        self.cell = journal.cell
        self._experiment = journal.task.experiment
        self._arm = journal.task.arm
        self._demand = journal.task.demand
        self._data_planes = tuple(name for name in router_names(self._experiment.topology) if name in lab.data_planes)
        self._kernels = tuple(name for name, node in self._experiment.topology.nodes.items() if has_kernel(node))
        """Routers whose kernel forwards, with queues that are emptied before the traffic."""
        self._traffic_s = traffic_time(self._experiment, self._arm).seconds

    def check(self) -> None:
        """Raise when the cell must end now: interrupted, or a daemon of the lab died."""
        if self._interrupted.is_set():
            raise RunInterrupted
        if death := describe_death(self._lab):
            raise LabDiedFault(death)

    def measure(self, turn: AbstractContextManager[None]) -> None:
        """Measure a cell, from the hosts' settings to the last counter; `turn` ends with the traffic.

        Reasons why the values are invalid are recorded and not raised. Everything that was started has ended when this
        returns or raises.
        """
        with ExitStack() as turns:
            with self._journal.step(WAIT_FOR_TURN):
                turns.enter_context(turn)
            with self._journal.step(SET_HOSTS):
                self._prepare()
            moments_s = [each.seconds for each in counter_reading_times(self._experiment, self._demand)]
            sampler = CounterSampler(self._lab, (*self._data_planes, *self._kernels), self.cell, moments_s)
            readings = self._start_readings()
            with ExitStack() as running:
                try:
                    self._measure(running, sampler, readings, turns.close)
                except (TrafficError, CaptureError, RunInvalid) as error:
                    self._record_failure(error)
        self._check_punctuality(sampler.error or readings.error)

    def _start_readings(self) -> ShowSampler:
        return ShowSampler(
            self._commands,
            self._experiment.topology,
            self._lab.show_every,
            self.cell,
            self._demand,
            length_s=self._experiment.duration.seconds,
            traffic_s=self._traffic_s,
        )

    def _prepare(self) -> None:
        """Apply the settings of hosts, and reset counters to zero."""
        self.check()
        for host, (profile, answers) in host_tcp_settings(self._experiment).items():
            self._lab.host(host).apply_tcp(profile, answers=answers)
        for router in self._data_planes:
            self._keep_engine_configuration(router)
        reset_counters(self._lab, (*self._data_planes, *self._lab.lines), self._kernels)

    def _measure(
        self, running: ExitStack, sampler: CounterSampler, readings: ShowSampler, traffic_is_over: Callable[[], None]
    ) -> None:
        """Measure from the first capture to the last; `running` ends the remaining processes."""
        with self._journal.step(CAPTURE_ON):
            captures = self._start_captures(running)
        with self._journal.step(OBSERVE_BEFORE):
            self._observe("before")
        flows = self._prepare_flows(running)
        probes = self._prepare_probes(running)
        self._keep_host_counters(0)
        hosts = host_names(self._experiment.topology)
        cards = NicCounters(self._lab, self._experiment.topology, hosts)
        triggered = TriggerThreads(self._lab, self._data_planes, self._journal, self._commands.observe)

        def started(zero: float) -> None:
            readings.start(zero)
            if probes is not None:
                probes.start(zero)

        def began(zero: float) -> None:
            sampler.start(zero)  # The times of tables have the same zero.
            triggered.start(zero)

        # Routers are read while hosts are examined, both before and after the traffic.
        with readings:
            clocks, host_clocks = MachineClocks.read(), HostClocks(self._lab, hosts)
            for host in hosts:
                self._lab.host(host).read_stalls()
            with (
                self._journal.step(TRAFFIC, self._traffic_s),
                sampler,
                self._lab.load() as load,
                _probe_during(probes),
                triggered,
            ):
                during = partial(self._observe, "during")
                results = run_flows(flows, self.check, during, ready=readings.ready, started=started, began=began)
        over = time.monotonic()
        traffic_is_over()
        found = self._journal.findings
        stalls = {host: self._lab.host(host).read_stalls() for host in hosts}
        found.stalls = {host: each for host, each in stalls.items() if each is not None}
        self._keep_host_counters(1)
        self._warn_of_ignored_settings()
        cards.keep(self.cell)
        found.cpu_s = load.seconds
        self._record_results(results)
        found.host_clocks = host_clocks.changes_until_now()
        found.polling = readings.save_readings()
        triggered.keep()
        with self._journal.step(OBSERVE_AFTER):
            self._observe("after")
        with self._journal.step(CAPTURE_OFF):
            self._end_captures(captures, over)
        found.clock = clocks.changes_until_now()

    def _start_captures(self, running: ExitStack) -> list[RunningCapture]:
        captures = []
        for point in self._experiment.captures:
            comment = f"{self._experiment.name} {self.cell.name}: {point.node} {point.interface}"
            captures.append(start_capture(self._lab, point, self.cell.capture(point.name), comment))
            running.callback(captures[-1].kill)
        for capture in captures:
            capture.wait_running()
        return captures

    def _end_captures(self, captures: list[RunningCapture], over: float) -> None:
        for capture in captures:
            ended = capture.stop(over)
            self._journal.findings.captures[capture.point.name] = ended
            for warning in ended.reasons(capture.point.name):
                self._journal.warn(warning)

    def _prepare_flows(self, running: ExitStack) -> list[RunningFlow]:
        """Return the flows, not yet started; `running` records their places and times at the end."""
        experiment, arm = self._experiment, self._arm
        ports = flow_ports(experiment.arm_flows(arm), reserved_ports(experiment))
        control = experiment.arm_tcp_profile(arm).congestion_control
        flows: list[RunningFlow] = []
        running.callback(self._save_flows, flows)
        for flow in experiment.arm_flows(arm):
            seed = flow_seed(experiment.seed, self.cell.repetition, flow.name)
            place = FlowLocation(experiment.topology, ports[flow.name], seed, self.cell)
            flows.append(RunningFlow(self._lab, flow, experiment.flow_duration(arm, flow), control, place))
        return flows

    def _save_flows(self, flows: list[RunningFlow]) -> None:
        records = (flow.record() for flow in flows)
        self._journal.findings.flows = tuple(record for record in records if record is not None)

    def _prepare_probes(self, running: ExitStack) -> CellProbes | None:
        """Return the probes, ready to start; None if the experiment has none."""
        if not self._experiment.probes:
            return None
        setting = Setting(
            self._lab,
            self._experiment,
            self.cell,
            observe=lambda *words: self._commands.observe(*words).raw,
            enter=self._commands.enter,
        )
        probes = CellProbes(setting)
        running.callback(self._close, probes)
        probes.prepare()
        return probes

    def _close(self, probes: CellProbes) -> None:
        self._journal.findings.probe_senders = probes.senders
        for warning in probes.warnings:
            self._journal.warn(warning)
        try:
            probes.close()
        except RunInvalid as error:
            self._journal.record_invalid(error.message)

    def _record_results(self, results: Mapping[str, FlowResult]) -> None:
        """Record the pacing of the senders and the warnings of the tools."""
        named = {flow.name: flow for flow in self._experiment.arm_flows(self._arm)}
        self._journal.findings.senders = sender_precisions(self._experiment.topology, named, results)
        for name, result in results.items():
            if result.failure:
                self._journal.warn(f'traffic "{name}" did not get through: {result.failure}')
            for warning in result.warnings:
                self._journal.warn(f'traffic "{name}": {warning}')

    def _record_failure(self, error: QoslabError) -> None:
        """Record why the traffic ended early; a dead router also makes the tools fail, so its death is the reason."""
        if death := describe_death(self._lab, wait=True):
            raise LabDiedFault(death) from error
        if self._journal.is_valid:
            self._journal.record_invalid(error.message + (f" ({error.hint})" if error.hint else ""))

    def _check_punctuality(self, unread: Exception | None) -> None:
        """Check that machine, routers and senders were as punctual as the values require."""
        journal, found, traffic_s = self._journal, self._journal.findings, self._traffic_s
        if unread is not None:
            journal.record_invalid(f"the counters could not be read to the end: {unread}")
        try:
            found.health = read_health(self._lab, (*self._data_planes, *self._lab.lines))
        except QoslabError as error:
            if journal.is_valid:
                journal.record_invalid(f"the lateness statistics of the data planes cannot be read: {error}")
        configurations = {router: self._engine_configuration(router) for router in self._data_planes}
        traffic = packet_directions(self._experiment.arm_flows(self._arm), self._experiment.probes)
        feeds = time_dependent_upstreams(self._experiment.topology, configurations, traffic)
        one_decides = self._demand.depends_on_one_packet
        for router, health in found.health.items():
            fed = feeds.get(router, {})
            journal.record_lateness(health.lateness(router, traffic_s, fed, one_decides=one_decides))
            for reason in health.reasons(router):
                journal.record_invalid(reason)
            for warning in health.warnings(router, traffic_s):
                journal.warn(warning)
        paced = {f'traffic "{name}"': sender for name, sender in found.senders.items()}
        paced |= {f'probe "{name}"': sender for name, sender in found.probe_senders.items()}
        for what, sender in paced.items():
            journal.record_lateness(sender.lateness(what, one_decides=one_decides))
        for reason in () if found.clock is None else found.clock.reasons():
            journal.record_invalid(reason)
        for host, stall in found.stalls.items():
            journal.record_lateness(stall.lateness(host))
            for warning in stall.warnings(host):
                journal.warn(warning)
        for host, clock in found.host_clocks.items():
            for reason in clock.reasons(host):
                journal.record_invalid(reason)
            for warning in clock.warnings(host):
                journal.warn(warning)

    def _observe(self, moment: Stage) -> None:
        wanted = list(self._journal.observations(moment))
        for observation, taken in zip(wanted, observe_all(wanted, self._commands.observe), strict=True):
            between = (taken.before_ns, taken.after_ns)
            self._journal.save_observation(observation, moment, taken.raw, taken.data, between)

    def _keep_host_counters(self, moment: int) -> None:
        """Save the kernel TCP counters of sending and receiving hosts: 0 before the traffic, 1 after it."""
        flows = self._experiment.arm_flows(self._arm)
        for host in dict.fromkeys(name for flow in flows for name in (flow.source, flow.destination)):
            shown = self._lab.host(host).read("/proc/net/snmp", "/proc/net/netstat")
            self.cell.write(self.cell.host_counters(host)[moment], shown)

    def _warn_of_ignored_settings(self) -> None:
        """Warn of settings of the arm's TCP profile that the senders' kernels ignore."""
        profile = self._experiment.arm_tcp_profile(self._arm)
        flows = self._experiment.arm_flows(self._arm)
        for host in dict.fromkeys(flow.source for flow in flows if flow.protocol == "tcp"):
            release = self._lab.host(host).read("/proc/sys/kernel/osrelease").strip()
            if text := settings_without_effect(profile, release):
                self._journal.warn(f"{host}: {text}")

    def _keep_engine_configuration(self, router: str) -> None:
        path = self.cell.configuration(f"{router}.engine.json")
        if path.exists():
            return  # the configuration pushed to an engine router; `verify` has compared it with the active one
        self.cell.write_json(path, read_engine_configuration(self._lab, router))

    def _engine_configuration(self, router: str) -> Mapping[str, Any]:
        path = self.cell.configuration(f"{router}.engine.json")
        found: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return found


@contextmanager
def _probe_during(probes: CellProbes | None) -> Iterator[None]:
    """Wait for the probes; cancel them if the traffic ends early."""
    try:
        yield
    except BaseException:
        if probes is not None:
            probes.cancel()
        raise
    if probes is not None:
        probes.finish()
