"""Worker of cells in one virtual lab at a time."""

from __future__ import annotations

import os

from qoslab.model.experiment import Experiment, Topology
from qoslab.platforms import command_line_nodes, kernel_routers, router_names
from qoslab.platforms.kernel_router import kernel_config
from qoslab.run.devices.ansible_inventory import write_inventory
from qoslab.run.task import CellTask
from qoslab.run.workers.base import WorkerSlot
from qoslab.run.workers.measured import MeasuredWorker
from qoslab.run.workers.virtual.access import lab_router_access
from qoslab.run.workers.virtual.nodes import VirtualLab
from qoslab.tc.place import guest_routers
from qoslab.virtual_lab import Lab
from qoslab.virtual_lab.lab import Ssh


class LabWorker(MeasuredWorker):
    """See `MeasuredWorker`. The lab is kept while consecutive cells have the same topology."""

    def __init__(self, slot: WorkerSlot) -> None:
        super().__init__(slot)
        self._wired: tuple[Topology, int, frozenset[str]] | None = None
        """Topology and seed of the current lab, and its routers in user-mode Linux."""
        self._guests: frozenset[str] = frozenset()
        """Routers in user-mode Linux in the next lab."""
        self._labs = 0
        self._lab: Lab | None = None
        self._reached: list[tuple[str, str]] = []
        """Routers that Ansible can reach, with their platforms."""

    @property
    def lab(self) -> VirtualLab | None:
        """See `MeasuredWorker`."""
        return None if self._lab is None else VirtualLab(self._lab)

    def can_run(self, experiment: Experiment) -> bool:
        """See `MeasuredWorker`."""
        same = self._wired == (experiment.topology, experiment.seed, self._guests)
        return same and self._lab is not None and self._lab.is_alive()

    def _expect(self, task: CellTask) -> None:
        """Choose the kernels of routers of platform tc by the kinds that their commands need."""
        topology = task.experiment.topology
        texts = {router: task.configurations.get(router, "") for router in kernel_routers(topology)}
        self._guests = guest_routers(
            {name: kernel_config(topology, name, text).commands for name, text in texts.items()}
        )

    def start(self, experiment: Experiment) -> None:
        """Bring up a lab for cells of this experiment's topology; the previous lab ends.

        Ansible starts only once, since that takes seconds: the next lab has the addresses and logins of the previous
        one.
        """
        routers: list[tuple[str, str]] = [
            (name, experiment.topology.nodes[name].platform) for name in router_names(experiment.topology)
        ]
        if self._lab is not None and (self._reached != routers or not self._lab.is_alive()):
            # Ansible may still be working on routers that are gone.
            self._leave()
        try:
            if self._lab is None:
                self._enter(experiment)
                (self._scratch / "sockets").mkdir()
            self._start(experiment)
            self._reached = routers
        except BaseException:
            self._leave()
            raise

    def _leave(self) -> None:
        super()._leave()
        self._wired, self._reached = None, []

    def _start(self, experiment: Experiment) -> None:
        scratch, topology = self._scratch, experiment.topology
        command_lines = command_line_nodes(topology)
        ssh: dict[str, Ssh] = {}
        if self._lab is not None:
            ssh = {name: self._lab.ssh(name) for name in command_lines}
            # The lab ends, and the configuration of its routers with it.
            self._session.close_connections()
            self._lab.down()
            self._lab, self._wired = None, None
            self._state.recreate()
        if command_lines:
            # Unicon and Genie take seconds to start, and only these routers need them.
            self._shared.get()
        self._labs += 1
        self._tell(self._label, "lab up")
        lab = Lab.up(
            topology,
            name=f"{experiment.name[:20]}-{os.getpid()}-{self._number}-{self._labs}",
            tcp_profile=experiment.arm_tcp_profile(experiment.arms[0]),
            seed=experiment.seed,
            ssh=ssh,
            guests=self._guests,
        )
        self._lab = lab
        for name in command_lines:
            if name not in ssh:
                way = lab.ssh(name)
                self._note(
                    f"log in to {name}: ssh -p {way.port} {way.user}@{way.host}, "
                    f"password {way.password}, enable secret {way.enable}"
                )
        self.lab_description = self.lab_description or lab.describe()
        access = lab_router_access(lab, scratch / "sockets")
        write_inventory(scratch / "inventory.json", access)
        if lab.host_key is not None:
            self._shared.connect(access, known_hosts=lab.known_hosts(), lab=str(self._number))
        self._set_routers(experiment)
        self._wired = (topology, experiment.seed, self._guests)
        self._tell(self._label, "")

    def _give_up(self) -> None:
        """Discard the lab without restoration: the routers end with it."""
        self._wired = None
        super()._give_up()

    def _end_lab(self) -> None:
        """Restore the routers, then end the lab, even if that fails."""
        lab, self._lab = self._lab, None
        if lab is None:
            return
        try:
            if self._wired is not None and lab.is_alive():
                self._tell(self._label, "restore the routers")
                self._routers.restore(None, self._restored / f"{self._number}-{self._labs}")
                self._tell(self._label, "")
        finally:
            lab.down()
