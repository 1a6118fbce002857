"""Existing lab: routers and hosts of an Ansible inventory, reached over SSH."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from qoslab.lab_kinds.measured import MeasuredKind, restore_step
from qoslab.model.experiment import Experiment
from qoslab.model.steps import Step
from qoslab.platforms import host_names, node_platform

if TYPE_CHECKING:
    from qoslab.errors import Finding
    from qoslab.schema.document import Document

REACH_DURATION_S = 4.0
"""Time to read the inventory and to start an agent on each host, in seconds; an estimate, like the next value."""
LEAVE_DURATION_S = 1.0


class ExternalKind(MeasuredKind):
    """Lab that exists before and after the run."""

    name = "external"
    help = "PATH of an Ansible inventory: its routers and hosts, restored after the run"
    title = "the lab of an inventory"
    programs = ("flood", "sla")
    interrupt_message = "routers may still be changed; restore them: qoslab lab rescue PLACE"
    has_place = True
    max_parallel_cells = 1

    def check(self, experiment: Experiment, document: Document, file: Path) -> list[Finding]:
        """Return the unsupported parts of a real lab: captures at a router, routers with the engine.

        `schema.inventory.inventory_obstacles` checks if the inventory has a source of delay, jitter and loss for links.
        """
        found = super().check(experiment, document, file)
        topology = experiment.topology
        for index, point in enumerate(experiment.captures):
            if point.node not in host_names(topology):
                message = f"found a capture at the router {point.node}, expected one at a host"
                hint = "the interface of a router is not visible from outside; capture at the host behind it"
                found.append(document.finding(("captures", index, "node"), message, hint))
        for name, node in topology.nodes.items():
            if not node_platform(node).access.remote:
                message = f"found the platform {node.platform} of {name}, expected ios, tc or host"
                hint = "the engine is a program of a virtual lab on one machine; use --lab virtual"
                found.append(document.finding(("topology", "nodes", name, "platform"), message, hint))
        return found

    def steps_before_cells(self, experiment: Experiment) -> tuple[Step, ...]:
        """Return the steps that reach all nodes and prepare the interfaces of hosts."""
        nodes = tuple(experiment.topology.nodes)
        return (
            Step("reach the lab", "reach", nodes, "an agent on each host, a login to each router", REACH_DURATION_S),
        )

    def steps_after_cells(self, experiment: Experiment) -> tuple[Step, ...]:
        """Return the steps that restore routers, then hosts."""
        hosts = host_names(experiment.topology)
        leave = Step("restore the hosts", "leave", hosts, "their original settings", LEAVE_DURATION_S)
        return (restore_step("restore the routers", experiment), leave)
