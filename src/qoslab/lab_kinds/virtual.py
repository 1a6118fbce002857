"""The virtual lab: namespaces of this machine, real TCP, real time."""

from __future__ import annotations

from qoslab.lab_kinds.measured import Measured, restore_step
from qoslab.model.experiment import Experiment
from qoslab.model.steps import Step

LAB_UP_S = 4.0
"""The lab takes a tenth of it; Ansible and Unicon start in the meantime."""
LAB_DOWN_S = 0.3


class Virtual(Measured):
    """A lab that is built for the run and ends with it."""

    name = "virtual"
    help = "namespaces of this machine, real TCP, real time"
    title = "the virtual lab"
    programs = ("qos-router", "flood", "sla")

    def before(self, experiment: Experiment) -> tuple[Step, ...]:
        """Return the steps that build the lab."""
        nodes, links = tuple(experiment.topology.nodes), experiment.topology.links
        return (Step("lab up", "lab up", nodes, f"{len(nodes)} nodes, {len(links)} links", LAB_UP_S),)

    def after(self, experiment: Experiment) -> tuple[Step, ...]:
        """The routers are restored, which proves that what was pushed can be undone; then it ends."""
        down = Step("lab down", "lab down", tuple(experiment.topology.nodes), "", LAB_DOWN_S)
        return (restore_step("restore the routers", experiment), down)
