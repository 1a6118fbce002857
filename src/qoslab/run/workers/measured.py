"""Worker of cells in a lab of routers and hosts at any place: Ansible, the observer, one cell after another."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

from qoslab.errors import DeviceError, QoslabError
from qoslab.ios.device_config.interface_names import IDENTITY_NAMES, InterfaceNames
from qoslab.ios.environment import DataPlaneDownError
from qoslab.lab_kinds.measured import CONFIGURE
from qoslab.model.experiment import Experiment
from qoslab.model.instants import traffic_time
from qoslab.model.interface_selection import select_experiment_interfaces
from qoslab.platforms import command_line_nodes
from qoslab.platforms.startup import startup_config
from qoslab.results import Cell, CellRecord
from qoslab.run.cell.journal import CellJournal
from qoslab.run.cell.measure import CellRun, CommandLines
from qoslab.run.devices.ansible.playbooks import IOS_MODULES, AnsibleSession, PlaybookOutcome
from qoslab.run.devices.collector import RouterAnswer, SharedCollector
from qoslab.run.devices.pushed_routers import PushedRouters, RollbackGuard
from qoslab.run.devices.state import RestoreState
from qoslab.run.events import RunInterrupted
from qoslab.run.faults import LabDiedFault, TransientFault, describe_death
from qoslab.run.protocols import RunningLab
from qoslab.run.scratch import Scratch
from qoslab.run.task import CellTask
from qoslab.run.workers.base import WorkerSlot
from qoslab.verification.requested_policy import policy_differences, ports_with_policy

PATIENCE_S = 3.0
"""Seconds after Ctrl-C for Ansible to finish its current task, which is faster than starting it again."""
VERIFY_COMMANDS = ("show policy-map interface",)
"""Commands of `verify` on an IOS router in addition to the command for its configuration."""


class MeasuredWorker(ABC):
    """Context manager for one lab, which is kept while consecutive cells fit it."""

    makes_lines: ClassVar[bool] = True
    """True if the lab gives interfaces of Linux routers their line rate."""

    def __init__(self, slot: WorkerSlot) -> None:
        assert isinstance(slot.shared, SharedCollector)
        self._number = slot.number
        self._label = slot.label
        self._restored = slot.restore_folder
        self._tell = slot.tell
        self._note = slot.note
        self._interrupted = slot.interrupted
        self._interrupted_at = math.inf
        self._ending = False
        """True while the routers are being restored, which Ctrl-C does not interrupt."""
        self._shared = slot.shared
        self._exit = ExitStack()
        self._scratch: Path
        self._session: AnsibleSession
        self._routers: PushedRouters
        self._state: RestoreState
        self._names: Mapping[str, InterfaceNames] = {}
        """Interface names of routers that differ from the experiment's."""
        self.lab_description: dict[str, Any] = {}
        """Description of the first lab."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self._exit.close()
        except QoslabError as failure:
            if error is None:
                raise
            # The error that ended the run takes precedence; this one may follow from it.
            self._note(f"{self._label}: while the lab was ending: {failure.message}")

    # Differences between kinds of labs

    @property
    @abstractmethod
    def lab(self) -> RunningLab | None:
        """Return the lab that is up; None without one."""

    @abstractmethod
    def can_run(self, experiment: Experiment) -> bool:
        """Return whether the current lab can run the cells of the experiment without change."""

    @abstractmethod
    def start(self, experiment: Experiment) -> None:
        """Provide a lab for the cells of the experiment."""

    @abstractmethod
    def _end_lab(self) -> None:
        """Restore the routers and release the lab, even if that fails."""

    # Common to all kinds of labs

    def _enter(self, experiment: Experiment, before: Path | None = None) -> None:
        """Start programs that take seconds and outlast a lab: Ansible starts while the lab comes up.

        `before` is the folder for the configurations from before the run; if absent, it ends with the run.
        """
        folder = self._exit.enter_context(Scratch("run"))
        scratch = self._scratch = folder.path
        self._state = RestoreState(before or scratch / "before")
        modules = IOS_MODULES if command_line_nodes(experiment.topology) else ()
        self._session = AnsibleSession(
            scratch / "inventory.json", before=self._state.folder, check=self._check, modules=modules
        )
        self._exit.callback(self._session.close)
        if self._session.note:
            self._note(self._session.note)
        self._session.start()
        self._exit.callback(self._end)

    def _end(self) -> None:
        """End everything; an interrupt does not stop the restoration of the routers."""
        self._ending = True
        try:
            self._end_lab()
        finally:
            self._ending = False

    def _leave(self) -> None:
        self._exit.close()

    def _set_routers(self, experiment: Experiment, guard: RollbackGuard | None = None) -> None:
        """Set the routers of a new lab; nothing is pushed yet."""
        # An engine router boots with the equivalent of an IOS router's startup configuration in the same topology.
        login = {"user": "lab", "password": "unused", "enable": "unused"}
        self._routers = PushedRouters(
            experiment.topology,
            self._session,
            self._state,
            lambda router: startup_config(experiment.topology, router, login),
            self._note,
            guard,
            self._names,
            makes_lines=self.makes_lines,
        )

    def run(self, task: CellTask, cell: Cell, *, turn: AbstractContextManager[None] | None = None) -> CellRecord:
        """Run one cell into its folder and return its record. `turn` is entered for the time of its traffic.

        Reasons why its values are invalid are in the record. Raise errors that the user has to fix; the folder then
        stays.
        """
        self._expect(task)
        if not self.can_run(task.experiment):
            self.start(task.experiment)
        lab = self.lab
        assert lab is not None
        journal = CellJournal(task, cell, self._tell)
        commands = CommandLines(self._observe, self._enter_lines, self._show, self._parse)
        run = CellRun(lab, journal, commands, self._interrupted)
        try:
            cell.write_experiment(task.experiment)
            with journal.step(CONFIGURE):
                outcome = self._routers.configure(
                    cell, task.configurations, VERIFY_COMMANDS, traffic=traffic_time(task.experiment, task.arm)
                )
            self._verify(task, outcome)
            run.measure(turn or nullcontext())
            self._record_lab_notes(task, journal)
        except BaseException as error:
            fault = self._lab_fault(error)
            if fault:
                journal.fail(fault)
            # Also after an interrupt, so that the results so far can be read.
            # The disk may be full, which the first error reports.
            with suppress(QoslabError):
                journal.write(broken=True)
            if not fault:
                raise
            self._give_up()
            return journal.record(broken=True)
        return journal.conclude()

    def _expect(self, task: CellTask) -> None:  # noqa: B027 (most labs are the same for every cell of an experiment)
        """Record the needs of a cell, before `fits` is called."""

    def _record_lab_notes(self, task: CellTask, journal: CellJournal) -> None:  # noqa: B027 (most labs have nothing to note)
        """Record notes on the lab after the traffic of a cell."""

    def _verify(self, task: CellTask, outcome: PlaybookOutcome) -> None:
        """Compare the policies that routers show with the requested ones. Raise `DeviceError` if they differ."""
        for router, text in task.configurations.items():
            answers = outcome.answers(router)
            if not answers:
                continue
            config = self._routers.compile_configuration(router, text, source=f"{router}.ios")
            shown = self._parse(router, VERIFY_COMMANDS[0], answers[VERIFY_COMMANDS[0]])
            # A port without a link of the experiment may have another user's policy.
            ends = [near.interface for _, near, _ in task.experiment.topology.node_links(router)]
            measured = select_experiment_interfaces(shown.parsed or {}, [*ends, *ports_with_policy(config)])
            for difference in policy_differences(measured, config):
                raise DeviceError(f"{router}: the running configuration differs from the pushed one: {difference}")

    def _lab_fault(self, error: BaseException) -> str:
        """Return why a cell failed if the lab was the cause and not the input; else empty."""
        if self.lab is None or not isinstance(error, Exception) or self._interrupted.is_set():
            return ""
        # A dead lab is the reason, not the errors that it caused elsewhere.
        if death := describe_death(self.lab, wait=True):
            return death
        return error.message if isinstance(error, (TransientFault, DataPlaneDownError)) else ""

    def _give_up(self) -> None:
        """Discard a failed lab, with all connections to it."""
        try:
            self._leave()
        except QoslabError as failure:
            self._note(f"{self._label}: while the lab was ending: {failure.message}")

    def _check(self) -> None:
        """Raise if the lab has died, or if the user has been waiting for the end of the run."""
        self._check_user(PATIENCE_S)
        if self.lab is not None and (death := describe_death(self.lab)):
            raise LabDiedFault(death)

    def _check_user(self, patience_s: float = 0.0) -> None:
        """Raise some time after Ctrl-C, unless the routers are being restored."""
        if self._interrupted.is_set() and not self._ending:
            self._interrupted_at = min(self._interrupted_at, time.monotonic())
            if time.monotonic() - self._interrupted_at >= patience_s:
                raise RunInterrupted

    def _enter_lines(self, device: str, lines: list[str]) -> str:
        """Enter configuration lines in a router of this lab."""
        sent = [self._experiment_name(device).to_device(line) for line in lines]
        return self._shared.get().configure(device, sent, lab=str(self._number))

    def _observe(self, device: str, command: str) -> RouterAnswer:
        names = self._experiment_name(device)
        observed = self._shared.get().observe(device, names.to_device(command), lab=str(self._number))
        return replace(observed, parsed=names.from_device(observed.parsed))

    def _show(self, device: str, command: str) -> RouterAnswer:
        return self._shared.get().show(device, self._experiment_name(device).to_device(command), lab=str(self._number))

    def _parse(self, device: str, command: str, text: str) -> RouterAnswer:
        names = self._experiment_name(device)
        observed = self._shared.get().parse(names.to_device(command), text)
        return replace(observed, parsed=names.from_device(observed.parsed))

    def _experiment_name(self, device: str) -> InterfaceNames:
        return self._names.get(device, IDENTITY_NAMES)
