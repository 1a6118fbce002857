"""Runs a cell in virtual time: scenario, the program `qos-sim`, results.

Nothing else is started: no lab, no Ansible, no observer.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import timedelta
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Self

from qoslab.errors import QoslabError, RunInvalid, UserError
from qoslab.lab_kinds.simulated import RESULTS, SCENARIO
from qoslab.model.experiment import Experiment, Flow, Observation, Probe, Stage, Trigger, probe_number
from qoslab.model.instants import traffic_time, triggers
from qoslab.model.steps import SIMULATION
from qoslab.platforms import node_platform
from qoslab.results import CaptureRecord, Cell, CellRecord, FlowRecord
from qoslab.run.cell.journal import CellJournal
from qoslab.run.cell.probes.results import unanswered_error, values_from_output, values_from_report, values_from_runs
from qoslab.run.events import RunInterrupted
from qoslab.run.provenance import package_versions
from qoslab.run.task import CellTask
from qoslab.run.workers.base import LabMachinery, WorkerSlot
from qoslab.run.workers.genie_parser import GenieParser
from qoslab.simulation.history import SampleHistory
from qoslab.simulation.result import SimulationError, SimulationResult, read_flow, read_result
from qoslab.simulation.routers import SimulatedRouter
from qoslab.simulation.scenario import (
    EPOCH,
    EPOCH_NS,
    build_scenario,
    configured_routers,
    observation_time_ns,
    probe_end_ns,
)
from qoslab.simulation.show_answers import answer_show
from qoslab.system import program_formats
from qoslab.system.programs import SIMULATOR as PROGRAM
from qoslab.system.programs import describe_exit, find_own_program, kill_with_thread_prefix
from qoslab.traffic.endpoints import flow_addresses

ERROR = '{"error":'
"""Start of a reply of `qos-sim` with an error in place of a result."""
SCENARIO_REFUSED = "scenario: "
"""Prefix of an error for an invalid scenario; the path and the reason follow."""
MIN_TIME_LIMIT_S = 600.0
LIMIT_FACTOR = 60.0
"""Time limit of a cell, as a multiple of its traffic time; at least `MIN_TIME_LIMIT_S`."""
POLL_S = 0.2
READ_BYTES = 2**20


class SimulatedWorker:
    """Runs cells one after another, in one process of the simulator, which a context manager ends."""

    lab_description: Mapping[str, Any] = {}
    """Empty description: a simulation has no lab."""

    def __init__(self, slot: WorkerSlot) -> None:
        self._tell = slot.tell
        self._interrupted = slot.interrupted
        self._simulator = _Simulator()
        assert isinstance(slot.shared, GenieParser)  # Created by `MACHINERY`.
        self._prints = slot.shared

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._simulator.end()

    def run(self, task: CellTask, cell: Cell, *, turn: AbstractContextManager[None] | None = None) -> CellRecord:
        """Run one cell into its folder and return its record. It disturbs no other cell, so it waits for no turn.

        Reasons why its values are invalid are in the record. Raise errors that the user has to fix; the folder then
        stays.
        """
        journal = CellJournal(task, cell, self._tell)
        try:
            _SimulatedCell(journal, self._check, self._simulator, self._prints).simulate()
        except BaseException:
            with suppress(QoslabError):
                journal.write(broken=True)
            raise
        return journal.conclude()

    def _check(self) -> None:
        if self._interrupted.is_set():
            raise RunInterrupted


class _Simulator:
    """Process of `qos-sim` that runs the cells of this worker; it is started when a cell needs it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._state: tuple[Path, int] | None = None
        """Program of the process, with the time of its last change."""

    def run(self, request: Mapping[str, object], check: Callable[[], None]) -> bytes:
        """Return the reply to a request, a line of JSON. Raise `SimulationError` if the process ends before, and the
        errors of `check`, which is called regularly; the process has then ended.
        """
        process = self._start()
        assert process.stdin is not None and process.stdout is not None
        try:
            with suppress(BrokenPipeError):  # It has ended, which reading detects.
                process.stdin.write(json.dumps(request).encode() + b"\n")
                process.stdin.flush()
            parts = [b""]
            while not parts[-1].endswith(b"\n"):
                if not wait([process.stdout.fileno()], POLL_S):
                    check()
                elif part := os.read(process.stdout.fileno(), READ_BYTES):
                    parts.append(part)
                else:
                    assert process.stderr is not None
                    reason = process.stderr.read().decode(errors="replace").strip().splitlines()
                    why = f"{PROGRAM} {describe_exit(process.wait())}: {(reason or ['it printed nothing'])[-1]}"
                    raise SimulationError(why)
        except BaseException:
            self.end()
            raise
        return b"".join(parts)

    def _start(self) -> subprocess.Popen[bytes]:
        """Return the process, which is replaced if its program has changed, since a cell names the present one."""
        program = find_own_program(PROGRAM)
        state = (program, program.stat().st_mtime_ns)
        if self._state != state:
            self.end()
        with self._lock:
            if self._process is None:
                # In its own session: Ctrl-C is for the run, which ends the program.
                self._process = subprocess.Popen(
                    [*kill_with_thread_prefix(), str(program), "serve"],
                    start_new_session=True,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
                self._state = state
            return self._process

    def end(self) -> None:
        """Kill the process, if it runs; a thread that waits for a reply gets an error."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            # Its pipes stay open: the other thread may read from them.
            process.wait()


class _SimulatedCell:
    """One running cell."""

    def __init__(
        self, journal: CellJournal, check: Callable[[], None], simulator: _Simulator, prints: GenieParser
    ) -> None:
        self._journal = journal
        self._task = journal.task
        self._cell = journal.cell
        self._check = check
        self._simulator = simulator
        self._prints = prints

    @property
    def _experiment(self) -> Experiment:
        return self._task.experiment

    def simulate(self) -> None:
        """Simulate the cell, and write the results."""
        if self._experiment.observe:
            self._prints.expect(each.command for each in self._experiment.arm_observations(self._task.arm))
        self._cell.write_experiment(self._experiment)
        with self._journal.step(SCENARIO):
            routers, scenario = self._prepare()
        try:
            with self._journal.step(SIMULATION):
                result = read_result(self._simulate())
            with self._journal.step(RESULTS):
                self._keep(result, scenario, routers)
        except RunInvalid as error:
            self._journal.record_invalid(error.message + (f" ({error.hint})" if error.hint else ""))

    def _prepare(self) -> tuple[dict[str, SimulatedRouter], program_formats.Scenario]:
        """Write the input of the simulator; return the routers and the scenario."""
        task, cell = self._task, self._cell
        for name, configuration in task.configurations.items():
            cell.write(cell.configuration(f"{name}.ios"), configuration)
        routers = configured_routers(task.experiment, task.configurations)
        for name, router in routers.items():
            cell.write_json(cell.configuration(f"{name}.engine.json"), router.config)
        scenario = build_scenario(task.experiment, routers, task.identity.repetition, task.demand)
        cell.write_json(cell.configuration("scenario.json"), scenario)
        for point in self._experiment.captures:
            cell.capture(point.name)  # Creates the folder.
        return routers, scenario

    def _simulate(self) -> str:
        """Return the output of `qos-sim`. Raise if it fails, is too slow, or the user interrupts it."""
        limit = max(MIN_TIME_LIMIT_S, LIMIT_FACTOR * traffic_time(self._experiment, self._task.arm).seconds)
        deadline = time.monotonic() + limit

        def check() -> None:
            self._check()
            if time.monotonic() > deadline:
                raise SimulationError(
                    f"{PROGRAM} did not finish within {limit:.0f} s",
                    hint="The scenario is in the cell's config/scenario.json.",
                )

        check()
        request = {
            "folder": str(self._cell.path.resolve()),
            "scenario": "config/scenario.json",
            "watch": str(self._cell.coming_counters()),
            "watch_after_s": POLL_S,
        }
        output = self._simulator.run(request, check).decode(errors="replace")
        if not output.startswith(ERROR):
            return output
        reason = json.loads(output)["error"]
        if reason.startswith(SCENARIO_REFUSED):
            raise UserError(f"{self._cell.name}: {PROGRAM} rejects it: {reason.removeprefix(SCENARIO_REFUSED)}")
        raise SimulationError(f"{PROGRAM} failed: {reason}")

    def _keep(
        self, result: SimulationResult, scenario: program_formats.Scenario, routers: Mapping[str, SimulatedRouter]
    ) -> None:
        """Write the files of the run folder."""
        cell, experiment = self._cell, self._experiment
        self._journal.findings.virtual_s = result.virtual_ns / 1e9
        for flow in experiment.arm_flows(self._task.arm):
            text = result.flow_text(flow.name)
            cell.write(cell.simulated_traffic(flow.name), text)
            if failure := read_flow(flow, text).failure:
                self._journal.warn(f'traffic "{flow.name}" did not get through: {failure}')
        for host in sorted({node for flow in scenario["flows"] for node in (flow["source"], flow["destination"])}):
            cell.write(cell.simulated_host(host), result.host_text(host))
        for name in routers:
            cell.write_counters(name, ({"ok": True, **sample} for sample in result.routers[name].samples))
        cell.remove_incoming()
        for point in experiment.captures:
            from qoslab.capture.packet_tables import read_packets  # It imports NumPy and PyArrow.

            received = sum(map(len, read_packets(cell.capture(point.name))))
            self._journal.findings.captures[point.name] = CaptureRecord(received=received, dropped=0)
        ports = {flow["name"]: flow["port"] for flow in scenario["flows"]}
        self._journal.findings.flows = tuple(
            self._flow_record(flow, ports[flow.name] or 0) for flow in experiment.arm_flows(self._task.arm)
        )
        self._observe(result, routers)
        failed = []
        for probe in experiment.probes:
            try:
                self._keep_probe(probe, result, routers)
            except RunInvalid as error:
                failed.append(f'probe "{probe.name}": {error.message}')
        if failed:
            raise RunInvalid("; ".join(failed))

    def _flow_record(self, flow: Flow, port: int) -> FlowRecord:
        source, destination = flow_addresses(self._experiment.topology, flow)
        return FlowRecord(
            traffic=flow.name,
            source=source,
            destination=destination,
            port=port,
            started=EPOCH + timedelta(microseconds=flow.start_after.ns / 1000),
            start_after_s=flow.start_after.seconds,
        )

    def _observe(self, result: SimulationResult, routers: Mapping[str, SimulatedRouter]) -> None:
        moments: dict[Stage, int] = {
            "before": 0,
            "during": observation_time_ns(self._experiment),
            "after": result.virtual_ns,
        }
        for moment, virtual_ns in moments.items():
            for each in self._journal.observations(moment):
                self._print(each, moment, result.routers[each.node].history_until(virtual_ns), routers[each.node])
        for trigger in triggers(self._experiment):
            for each in self._journal.observations(trigger):
                history = result.routers[each.node]
                if isinstance(came := history.history_until_trigger(trigger, result.virtual_ns), str):
                    self._journal.record_unobserved(each, trigger, came)
                else:
                    self._print(each, trigger, came, routers[each.node])

    def _print(
        self, observation: Observation, moment: Stage | Trigger, history: SampleHistory, router: SimulatedRouter
    ) -> None:
        """Save the output of a router at a trigger; `history` reaches up to that time."""
        output = answer_show(self._experiment.topology.nodes[observation.node], router, observation.command, history)
        self._journal.save_observation(observation, moment, output, self._prints.parse(observation.command, output))

    def _keep_probe(self, probe: Probe, result: SimulationResult, routers: Mapping[str, SimulatedRouter]) -> None:
        """Write the results of a probe; those of an IOS router come from its output, as in a real-time lab."""
        experiment, report = self._experiment, result.probes[probe.name]
        file = self._cell.path / "probes" / probe.name
        self._cell.write_json(file.with_name(f"{probe.name}.samples.json"), report)
        node = experiment.topology.nodes[probe.source]
        if not node_platform(node).access.command_line:
            values = values_from_report(report, jitter=probe.is_jitter)
        else:
            number = probe_number(experiment, probe)
            output = self._probe_output(probe, number, result, routers[probe.source])
            self._cell.write(file.with_name(f"{probe.name}.txt"), output)
            runs = [sample["rtt_ms"] for sample in report["samples"]]
            values = values_from_output(output, number) if probe.is_jitter else values_from_runs(runs)
        if values is None:
            raise unanswered_error(probe, report["latest"]["return_code"])
        self._cell.write_json(file.with_name(f"{probe.name}.json"), values)

    def _probe_output(self, probe: Probe, number: int, result: SimulationResult, router: SimulatedRouter) -> str:
        """Return the statistics of a probe as its router prints them at the time of reading."""
        end_ns = probe_end_ns(self._experiment, probe)
        history = result.routers[probe.source].history_until(end_ns)
        output: program_formats.IpSlaReport = {
            "time_ns": EPOCH_NS + end_ns,
            "operations": {str(number): result.probes[probe.name]},
            "responder": None,
        }
        node = self._experiment.topology.nodes[probe.source]
        command = f"show ip sla statistics {'aggregated ' if probe.is_jitter else ''}{number}"
        return answer_show(node, router, command, replace(history, ip_sla=(output,)))


def simulator_version() -> str:
    """Return the first line of the simulator's version output. Raise `MachineError` if there is none."""
    program: Path = find_own_program(PROGRAM)
    try:
        done = subprocess.run(
            [str(program), "--version"],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"not usable: {error}"
    return next((line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()), "unknown")


PACKAGES = ("pandas", "genie")
"""Packages that influence the values."""
MACHINERY = LabMachinery(
    SimulatedWorker,
    GenieParser,
    lambda place, experiment: {PROGRAM: simulator_version()},
    lambda: package_versions(PACKAGES),
)
