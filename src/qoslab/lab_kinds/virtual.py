"""Virtual lab: namespaces of this machine, real TCP, real time."""

from __future__ import annotations

from qoslab.lab_kinds.measured import MeasuredKind, restore_step
from qoslab.model.experiment import Experiment
from qoslab.model.steps import Step

LAB_UP_S = 4.0
"""Time to start a lab, in seconds, most of it for Ansible and Unicon; the lab itself takes a tenth of it."""
LAB_DOWN_S = 0.3


class VirtualKind(MeasuredKind):
    """Lab that is built for the run and ends with it."""

    name = "virtual"
    help = "namespaces of this machine, real TCP, real time"
    title = "the virtual lab"
    programs = ("qos-router", "flood", "sla")

    def steps_before_cells(self, experiment: Experiment) -> tuple[Step, ...]:
        """Return the steps that build the lab."""
        nodes, links = tuple(experiment.topology.nodes), experiment.topology.links
        return (Step("lab up", "lab up", nodes, f"{len(nodes)} nodes, {len(links)} links", LAB_UP_S),)

    def steps_after_cells(self, experiment: Experiment) -> tuple[Step, ...]:
        """Return the steps that restore the routers, as proof that the configuration can be undone, and end the lab."""
        down = Step("lab down", "lab down", tuple(experiment.topology.nodes), "", LAB_DOWN_S)
        return (restore_step("restore the routers", experiment), down)
