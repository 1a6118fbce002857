"""Carries out one cell once its routers are configured: hosts, captures, observations, traffic, counters."""

from __future__ import annotations

import json
import platform
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime
from typing import Any, Protocol

from qoslab import plan
from qoslab.capture import CaptureError
from qoslab.errors import RunInvalid
from qoslab.lab import Lab, LabError
from qoslab.lab.control import ControlError
from qoslab.model.experiment import Arm, Experiment, Moment
from qoslab.model.matrix import as_texts
from qoslab.platforms import hosts_of, reached_by, routers_of
from qoslab.results import (
    CaptureRecord,
    Cell,
    CellRecord,
    ClockRecord,
    FlowRecord,
    Health,
    ObservedCommand,
    SenderRecord,
    Step,
)
from qoslab.results.records import TRAFFIC
from qoslab.run.cell.captures import RunningCapture
from qoslab.run.cell.clocks import Clocks
from qoslab.run.cell.cpu import CpuMeter
from qoslab.run.cell.flows import RunningFlow, run_flows
from qoslab.run.cell.pace import fed_routers, senders
from qoslab.run.cell.probes import Enter, Probes, Setting, reserved_ports
from qoslab.run.cell.sampling import CounterSampler, read_engine_configuration, read_health, start_afresh
from qoslab.run.devices.collector import Observed
from qoslab.run.events import Interrupted
from qoslab.run.faults import LabDied, death_of
from qoslab.run.progress import Tell
from qoslab.traffic import TrafficError
from qoslab.traffic.endpoints import flow_ports, flow_seed


class Observe(Protocol):
    """Takes a show command of a router."""

    def __call__(self, device: str, command: str) -> Observed:
        """Take it now. `DeviceError` where the router does not answer."""


class CellRun:
    """One cell while it runs; `record` tells in the end how it went."""

    def __init__(
        self, lab: Lab, experiment: Experiment, arm: Arm, cell: Cell, *,
        observe: Observe, tell: Tell, interrupted: threading.Event, key: str = "", enter: Enter | None = None,
        data_planes: Collection[str] | None = None,
    ) -> None:  # fmt: skip
        """`data_planes` are the routers whose data plane can be asked for counters, health and stamps (None: all of
        them); a real router has only its command line.
        """
        self._lab = lab
        self._experiment = experiment
        self._arm = arm
        self.cell = cell
        self.name = cell.name
        self._observe_command = observe
        self._tell = tell
        self._interrupted = interrupted
        self._key = key
        self._enter = enter
        routers = routers_of(experiment.topology)
        self._data_planes = tuple(name for name in routers if data_planes is None or name in data_planes)
        self._steps: list[Step] = []
        self._reasons: list[str] = []
        self._warnings: list[str] = []
        self._observed: list[ObservedCommand] = []
        self._captures: dict[str, CaptureRecord] = {}
        self._flows: tuple[FlowRecord, ...] = ()
        self._health: dict[str, Health] = {}
        self._senders: dict[str, SenderRecord] = {}
        self._clock: ClockRecord | None = None
        self._late = False
        self._fault = False
        self._cpu_s: float | None = None
        self._traffic_s = plan.traffic_time(experiment, arm).seconds

    @contextmanager
    def step(self, name: str, seconds: float | None = None) -> Iterator[None]:
        """Announce a step and keep when it was."""
        self._tell(self.name, name, seconds)
        started = datetime.now(UTC)
        ended = None
        try:
            yield
            ended = datetime.now(UTC)
        finally:
            self._steps.append(Step(name=name, started=started, ended=ended))

    def check(self) -> None:
        """Raise when the cell must end now: interrupted, or a daemon of the lab died."""
        if self._interrupted.is_set():
            raise Interrupted
        if death := death_of(self._lab):
            raise LabDied(death)

    def fail(self, fault: str) -> None:
        """Note that the lab failed, in which step, and that the cell may be tried again."""
        under_way = next((step.name for step in reversed(self._steps) if step.ended is None), "")
        self._reasons = [f"{fault} (in the step: {under_way})" if under_way else fault]
        self._fault = True

    def invalid(self, reason: str) -> None:
        """Note why the figures must not be trusted."""
        if reason not in self._reasons:
            self._reasons.append(reason)

    def _warn(self, text: str) -> None:
        if text not in self._warnings:
            self._warnings.append(text)

    def measure(self, turn: AbstractContextManager[None]) -> None:
        """From the hosts' settings to the last counter; `turn` is entered first and left when the traffic is over.

        What makes the figures worthless is kept as a reason and not raised. Everything that was started has ended when
        this returns or raises.
        """
        with ExitStack() as turns:
            with self.step("wait for the turn"):
                turns.enter_context(turn)
            self._measure(turns.close)

    def _measure(self, traffic_is_over: Callable[[], None]) -> None:
        experiment, routers = self._experiment, self._data_planes
        profile = experiment.tcp_of(self._arm)
        with self.step("settings of the hosts"):
            self.check()
            for host in hosts_of(experiment.topology):
                self._lab.apply_tcp_profile(host, profile)
            for router in routers:
                self._keep_engine_configuration(router)
            start_afresh(self._lab, (*routers, *self._lab.lines))
        captures: list[RunningCapture] = []
        sampler = CounterSampler(self._lab, routers, self.cell)
        flows: list[RunningFlow] = []
        probes: Probes | None = None
        try:
            with self.step("capture on"):
                for point in experiment.captures:
                    comment = f"{experiment.name} {self.name}: {point.node} {point.interface}"
                    captures.append(RunningCapture(self._lab, point, self.cell.capture(point.name), comment))
                for capture in captures:
                    capture.wait_running()
            with self.step("observe before"):
                self._observe("before")
            ports = flow_ports(experiment.flows_of(self._arm), reserved_ports(experiment))
            flows = [
                RunningFlow(
                    self._lab, flow, experiment.topology, experiment.duration_of(self._arm, flow),
                    profile.congestion_control, port=ports[flow.name],
                    seed=flow_seed(experiment.seed, self.cell.repetition, flow.name), cell=self.cell,
                )
                for flow in experiment.flows_of(self._arm)
            ]  # fmt: skip
            if experiment.probes:
                assert self._enter is not None
                probes = Probes(
                    Setting(
                        self._lab, experiment, self.cell, observe=lambda *words: self._observe_command(*words).raw,
                        enter=self._enter, data_planes=routers,
                    )
                )  # fmt: skip
                probes.prepare()
            sampler.start()
            cpu = CpuMeter(self._lab.pid)
            started = None if probes is None else probes.start
            measuring = self.step(TRAFFIC, self._traffic_s)
            self._keep_host_counters(0)
            clocks = Clocks.read()
            with measuring, self._ending(sampler.stop), cpu, self._probing(probes):
                results = run_flows(flows, self.check, lambda: self._observe("during"), started=started)
            traffic_is_over()
            self._keep_host_counters(1)
            self._cpu_s = cpu.seconds
            named = {flow.name: flow for flow in experiment.flows_of(self._arm)}
            self._senders = senders(experiment.topology, named, results)
            for name, result in results.items():
                if result.failure:
                    self._warn(f'traffic "{name}" did not get through: {result.failure}')
                for warning in result.warnings:
                    self._warn(f'traffic "{name}": {warning}')
            with self.step("observe after"):
                self._observe("after")
            with self.step("capture off"):
                for capture in captures:
                    ended = capture.stop()
                    self._captures[capture.point.name] = ended
                    self._warnings += ended.reasons(capture.point.name)
            self._clock = clocks.until_now()
        except (TrafficError, CaptureError, RunInvalid) as error:
            # A dead router makes the tools fail too: its end is the reason, theirs follows from it.
            if death := death_of(self._lab, wait=True):
                raise LabDied(death) from error
            if not self._reasons:
                self.invalid(error.message + (f" ({error.hint})" if error.hint else ""))
        finally:
            for capture in captures:
                capture.kill()
            if probes is not None:
                self._close(probes)
            self._flows = tuple(record for flow in flows if (record := flow.record()) is not None)
        if sampler.error is not None:
            self.invalid(f"the counters could not be read to the end: {sampler.error}")
        self._judge()

    def _judge(self) -> None:
        """Whether machine, routers and senders were as punctual as the figures need."""
        routers = self._data_planes
        try:
            self._health = read_health(self._lab, (*routers, *self._lab.lines))
        except (ControlError, LabError) as error:
            if not self._reasons:
                self.invalid(f"how punctual the data planes were cannot be read: {error}")
        configurations = {router: self._engine_configuration(router) for router in routers}
        feeds = fed_routers(self._experiment.topology, configurations)
        for router, health in self._health.items():
            fed = feeds.get(router, ())
            self._late |= health.late(self._traffic_s, fed)
            for reason in health.reasons(router, self._traffic_s, fed):
                self.invalid(reason)
            self._warnings += health.warnings(router, self._traffic_s)
        for name, sender in self._senders.items():
            self._late |= sender.late
            for reason in sender.reasons(name):
                self.invalid(reason)
        for reason in () if self._clock is None else self._clock.reasons():
            self.invalid(reason)

    @contextmanager
    def _ending(self, stop: Callable[[], None]) -> Iterator[None]:
        try:
            yield
        finally:
            stop()

    @contextmanager
    def _probing(self, probes: Probes | None) -> Iterator[None]:
        """Wait for the probes; end them where the traffic breaks off."""
        try:
            yield
        except BaseException:
            if probes is not None:
                probes.cancel()
            raise
        if probes is not None:
            probes.finish()

    def _close(self, probes: Probes) -> None:
        for warning in probes.warnings:
            self._warn(warning)
        try:
            probes.close()
        except RunInvalid as error:
            self.invalid(error.message)

    def _observe(self, moment: Moment) -> None:
        for observation in self._experiment.observe:
            if moment not in observation.when:
                continue
            if observation.node not in reached_by(self._experiment.topology, "command line"):
                self._warn(
                    f"{observation.node} has no IOS command line, so its show commands were not taken; "
                    f"its counters are in counters/{observation.node}.jsonl"
                )
                continue
            taken = self._observe_command(observation.node, observation.command)
            base = self.cell.observation(observation.node, moment, observation.command)
            self.cell.write(base.with_name(base.name + ".txt"), taken.raw)
            self.cell.write(base.with_name(base.name + ".json"), json.dumps(taken.data, indent=1) + "\n")
            self._observed.append(
                ObservedCommand(
                    device=observation.node, moment=moment, command=observation.command,
                    file=str(base.relative_to(self.cell.path)),
                )
            )  # fmt: skip

    def _keep_host_counters(self, moment: int) -> None:
        """What the kernels of the hosts that send or receive count of their TCP: 0 before the traffic, 1 after it."""
        flows = self._experiment.flows_of(self._arm)
        for host in dict.fromkeys(name for flow in flows for name in (flow.source, flow.destination)):
            shown = self._lab.run(host, ["cat", "/proc/net/snmp", "/proc/net/netstat"])
            if shown.returncode:
                raise RunInvalid(f"the TCP counters of {host} cannot be read: {shown.stderr.strip()}")
            self.cell.write(self.cell.host_counters(host)[moment], shown.stdout)

    def _keep_engine_configuration(self, router: str) -> None:
        path = self.cell.configuration(f"{router}.engine.json")
        if path.exists():
            return  # what was pushed to a Linux router; `verify` has compared it with what is in force
        self.cell.write(path, json.dumps(read_engine_configuration(self._lab, router), indent=1) + "\n")

    def _engine_configuration(self, router: str) -> Mapping[str, Any]:
        path = self.cell.configuration(f"{router}.engine.json")
        found: Mapping[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return found

    def record(self, *, broken: bool = False) -> CellRecord:
        """How it went; `broken`: it did not come to its end."""
        if broken and not self._reasons:
            self.invalid("it broke off")
        return CellRecord(
            arm=self.cell.arm,
            parameters=as_texts(self.cell.parameters),
            repetition=self.cell.repetition,
            attempt=self.cell.attempt,
            key=self._key,
            valid=not self._reasons,
            reasons=tuple(self._reasons),
            late=self._late,
            fault=self._fault,
            worker=f"{platform.node()}, {platform.system()} {platform.release()}",
            cpu_s=self._cpu_s,
            warnings=tuple(self._warnings),
            steps=tuple(self._steps),
            flows=self._flows,
            observed=tuple(self._observed),
            captures=self._captures,
            health=self._health,
            senders=self._senders,
            clock=self._clock,
        )
