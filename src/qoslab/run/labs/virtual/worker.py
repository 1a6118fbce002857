"""One lab at a time, with Ansible and the observer beside it, in which cells are run one after another."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from typing import Any, Self

from qoslab.errors import DeviceError, QoslabError
from qoslab.lab import Lab
from qoslab.lab.lab import Ssh
from qoslab.labs.measured import CONFIGURE
from qoslab.model.experiment import Experiment, Topology
from qoslab.platforms import reached_by, routers_of
from qoslab.platforms.startup import startup_config
from qoslab.results import Cell, CellRecord
from qoslab.run.cell.journal import Journal
from qoslab.run.cell.measure import CellRun, CommandLines
from qoslab.run.devices.ansible.session import IOS_MODULES, AnsibleSession, Outcome
from qoslab.run.devices.collector import Observed, SharedCollector
from qoslab.run.devices.inventory import write_inventory
from qoslab.run.devices.routers import Routers
from qoslab.run.devices.state import RestoreState
from qoslab.run.faults import LabDied, PassingFault, death_of
from qoslab.run.labs.virtual.access import lab_routers
from qoslab.run.labs.virtual.lab import VirtualLab
from qoslab.run.labs.worker import WorkerSlot
from qoslab.run.scratch import Scratch
from qoslab.run.task import CellTask
from qoslab.verification.policy import policy_differences

VERIFY_COMMANDS = ("show policy-map interface",)
"""What `verify` reads of an IOS router beside its configuration."""


class LabWorker:
    """A context manager. The lab is kept while consecutive cells have the same topology."""

    def __init__(self, slot: WorkerSlot) -> None:
        assert isinstance(slot.shared, SharedCollector)
        self._number = slot.number
        self._label = slot.label
        self._restored = slot.restored
        self._tell = slot.tell
        self._note = slot.note
        self._interrupted = slot.interrupted
        self._shared = slot.shared
        self._exit = ExitStack()
        self._wired: tuple[Topology, int] | None = None
        """Topology and seed of the lab that is up."""
        self._labs = 0
        self._lab: Lab | None = None
        self._reached: list[tuple[str, str]] = []
        """The routers that Ansible knows, with their platforms."""
        self.described: dict[str, Any] = {}
        """How the first lab described itself."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self._exit.close()
        except QoslabError as failure:
            if error is None:
                raise
            # What ended the run comes first; this may follow from it.
            self._note(f"{self._label}: while it ended: {failure.message}")

    def start(self, experiment: Experiment) -> None:
        """Bring a lab up for cells of this experiment's topology; the one from before ends.

        Ansible starts once, since that takes seconds: the next lab has the addresses and logins of the one before.
        """
        routers: list[tuple[str, str]] = [
            (name, experiment.topology.nodes[name].platform) for name in routers_of(experiment.topology)
        ]
        if self._lab is not None and (self._reached != routers or not self._lab.alive()):
            # Ansible may be in the middle of something with routers that are gone.
            self._leave()
        try:
            if self._lab is None:
                self._enter(experiment)
            self._start(experiment)
            self._reached = routers
        except BaseException:
            self._leave()
            raise

    def _enter(self, experiment: Experiment) -> None:
        """Start what outlasts a lab: Ansible and the observer, both of which take seconds, so while it is built."""
        folder = self._exit.enter_context(Scratch("run"))
        scratch = self._scratch = folder.path
        (scratch / "sockets").mkdir()
        modules = IOS_MODULES if reached_by(experiment.topology, "command line") else ()
        self._session = AnsibleSession(
            scratch / "inventory.json", before=scratch / "before", check=self._check, modules=modules
        )
        self._exit.callback(self._session.close)
        if self._session.note:
            self._note(self._session.note)
        self._session.start()
        self._exit.callback(self._end_lab)

    def _leave(self) -> None:
        self._exit.close()
        self._wired, self._reached = None, []

    def _start(self, experiment: Experiment) -> None:
        scratch, topology = self._scratch, experiment.topology
        command_lines = reached_by(topology, "command line")
        ssh: dict[str, Ssh] = {}
        if self._lab is not None:
            ssh = {name: self._lab.ssh(name) for name in command_lines}
            # The lab goes down with whatever is configured on its routers.
            self._session.hang_up()
            self._lab.down()
            self._lab, self._wired = None, None
            RestoreState(scratch / "before").afresh()
        if command_lines:
            # Unicon and Genie take seconds to start; nobody else needs them.
            self._shared.get()
        self._labs += 1
        self._tell(self._label, "lab up")
        lab = Lab.up(
            topology,
            name=f"{experiment.name[:20]}-{os.getpid()}-{self._number}-{self._labs}",
            tcp_profile=experiment.tcp_of(experiment.arms[0]),
            seed=experiment.seed,
            ssh=ssh,
        )
        self._lab = lab
        for name in command_lines:
            if name not in ssh:
                way = lab.ssh(name)
                self._note(
                    f"look around in {name}: ssh -p {way.port} {way.user}@{way.host}, "
                    f"password {way.password}, enable secret {way.enable}"
                )
        self.described = self.described or lab.describe()
        access = lab_routers(lab, scratch / "sockets")
        write_inventory(scratch / "inventory.json", access)
        if lab.host_key is not None:
            self._shared.connect(access, known_hosts=lab.known_hosts(), lab=str(self._number))
        # A Linux router boots with what an IOS router of the same topology has in its startup configuration.
        login = {"user": "lab", "password": "unused", "enable": "unused"}
        self._routers = Routers(
            topology,
            self._session,
            RestoreState(scratch / "before"),
            lambda router: startup_config(topology, router, login),
            self._note,
        )
        self._wired = (topology, experiment.seed)
        self._tell(self._label, "")

    def run(self, task: CellTask, cell: Cell, *, turn: AbstractContextManager[None] | None = None) -> CellRecord:
        """Run one cell into its folder and return its record. `turn` is entered for the time of its traffic.

        What makes its figures worthless is in the record. Raises what the user has to mend; the folder keeps what there
        was.
        """
        if (
            self._wired != (task.experiment.topology, task.experiment.seed)
            or self._lab is None
            or not self._lab.alive()
        ):
            self.start(task.experiment)
        assert self._lab is not None
        journal = Journal(task, cell, self._tell)
        commands = CommandLines(self._observe, self._enter_lines)
        run = CellRun(VirtualLab(self._lab), journal, commands, self._interrupted)
        try:
            cell.write_experiment(task.experiment)
            with journal.step(CONFIGURE):
                outcome = self._routers.configure(cell, task.configurations, VERIFY_COMMANDS)
            self._verify(task, outcome)
            run.measure(turn or nullcontext())
        except BaseException as error:
            fault = self._fault(error)
            if fault:
                journal.fail(fault)
            # Also of a cell that broke off: what there is stays readable.
            # The disk may be full, which is what the first error says.
            with suppress(QoslabError):
                journal.write(broken=True)
            if not fault:
                raise
            self._give_up()
            return journal.record(broken=True)
        return journal.write()

    def _verify(self, task: CellTask, outcome: Outcome) -> None:
        """Compare what routers show of their policies with what was asked for. `DeviceError` where it differs."""
        for router, text in task.configurations.items():
            answers = outcome.answers(router)
            if not answers:
                continue
            config = self._routers.compiled(router, text, source=f"{router}.ios")
            shown = self._shared.get().parse(VERIFY_COMMANDS[0], answers[VERIFY_COMMANDS[0]])
            for difference in policy_differences(shown.parsed or {}, config):
                raise DeviceError(f"{router} took the configuration and shows something else: {difference}")

    def _fault(self, error: BaseException) -> str:
        """Why a cell failed, where its lab did, and not what was asked of it; else empty."""
        if self._lab is None or not isinstance(error, Exception) or self._interrupted.is_set():
            return ""
        # Whatever was under way when it died: a dead lab is the reason, and not what it made others say.
        if death := death_of(VirtualLab(self._lab), wait=True):
            return death
        return error.message if isinstance(error, PassingFault) else ""

    def _give_up(self) -> None:
        """Leave a lab that failed, with all that talks to it. Nothing is restored: its routers end with it."""
        self._wired = None
        try:
            self._leave()
        except QoslabError as failure:
            self._note(f"{self._label}: while it ended: {failure.message}")

    def _check(self) -> None:
        """Raise where the lab has died."""
        if self._lab is not None and (death := death_of(VirtualLab(self._lab))):
            raise LabDied(death)

    def _enter_lines(self, device: str, lines: list[str]) -> str:
        """Enter configuration lines in a router of this lab."""
        return self._shared.get().configure(device, lines, lab=str(self._number))

    def _observe(self, device: str, command: str) -> Observed:
        return self._shared.get().observe(device, command, lab=str(self._number))

    def _end_lab(self) -> None:
        """Restore the routers, then end the lab; also where that fails."""
        lab, self._lab = self._lab, None
        if lab is None:
            return
        try:
            if self._wired is not None and lab.alive():
                self._tell(self._label, "restore the routers")
                self._routers.restore(None, self._restored / f"{self._number}-{self._labs}")
                self._tell(self._label, "")
        finally:
            lab.down()
