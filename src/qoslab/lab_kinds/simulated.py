"""Simulation: virtual time, the engine of the routers, modelled hosts and modelled TCP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from qoslab.lab_kinds.base import LabKind, flow_lines, probe_line
from qoslab.model.experiment import Experiment, Flow
from qoslab.model.instants import traffic_time
from qoslab.model.steps import SIMULATION, Step
from qoslab.model.units import Duration
from qoslab.platforms import node_platform
from qoslab.system.programs import SIMULATOR

if TYPE_CHECKING:
    from qoslab.errors import Finding
    from qoslab.results import CellFiles
    from qoslab.schema.document import Document
    from qoslab.traffic import FlowResult

SCENARIO: Final = "scenario"
RESULTS: Final = "results"
"""Keys of the steps before and after `SIMULATION`."""

WORKERS_UP_S = 1.0
"""Start time of the parsers of router output and the simulation processes, in seconds.

Like the next value, an estimate from runs on a machine with two cores.
"""
PROCESS_OVERHEAD_S = 0.05
"""Time to send a simulated cell to a process and to receive its files, in seconds."""


class SimulatedKind(LabKind):
    """Cells computed by the program `qos-sim`."""

    name = "simulated"
    help = "virtual time, modelled TCP"
    title = "simulation"
    value_label = "simulated"
    remark = (
        "Simulated: computed in virtual time with modelled hosts and TCP; "
        "no packet was sent. Routers are the same engine as in the virtual lab."
    )
    worker = "process"
    real_time = False
    programs = (SIMULATOR,)
    # Outside the simulator, the start of a separate process takes as long as ten cells in this process.
    min_cells_for_processes = 16
    interrupt_activity = "ending the simulations"
    configuration_title = "simulated configuration"
    no_lateness_text = "Within the limits of the model: every cell was completed, and nothing is late in virtual time."
    turn = frozenset({SCENARIO, SIMULATION, RESULTS})

    def check(self, experiment: Experiment, document: Document, file: Path) -> list[Finding]:
        """Return the parts without a model."""
        from qoslab.simulation.check import simulation_problems  # Slow to import: it compiles configurations.

        found = []
        for name, node in experiment.topology.nodes.items():
            if alternative := node_platform(node).simulation_alternative:
                message = f"found the platform {node.platform} of {name}, expected one that a simulation has"
                found.append(document.finding(("topology", "nodes", name, "platform"), message, alternative))
        return found or simulation_problems(experiment, document, file)

    def used_tools(self, experiment: Experiment) -> tuple[str, ...]:
        """Return the simulator."""
        return (SIMULATOR,)

    def traffic_source_text(self, flow: Flow) -> str:
        """Return the model of its tool."""
        return f"modelled like {flow.tool}"

    def steps(self, experiment: Experiment, cost: float | None = None) -> tuple[Step, ...]:
        """Return the steps, as `qoslab.run.workers.simulated` performs them."""
        nodes = tuple(experiment.topology.nodes)
        seconds = None if cost is None else cost * traffic_time(experiment, experiment.arms[0]).seconds
        work = [flow_lines(experiment), *(probe_line(experiment, probe) for probe in experiment.probes)]
        return (
            Step(SCENARIO, "scenario", nodes, "input of the simulator", PROCESS_OVERHEAD_S),
            Step(SIMULATION, "simulate", nodes, "; ".join(work), seconds),
            Step(RESULTS, "results", nodes, "captures, counters, show commands", PROCESS_OVERHEAD_S),
        )

    def steps_before_cells(self, experiment: Experiment) -> tuple[Step, ...]:
        """Return the step that starts processes."""
        return (Step("workers up", "workers up", (), "simulation processes", WORKERS_UP_S),)

    def steps_after_cells(self, experiment: Experiment) -> tuple[Step, ...]:
        """Return no steps: nothing takes time."""
        return ()

    def flow(self, files: CellFiles, flow: Flow, duration: Duration) -> FlowResult | None:
        """Read the values of the flow from the simulator."""
        from qoslab.simulation.result import read_flow

        text = files.simulated_flow(flow.name)
        return None if text is None else read_flow(flow, text)

    def hosts(self, files: CellFiles, senders: set[str]) -> Iterator[dict[str, object]]:
        """Read the TCP counters of the hosts from the simulator."""
        from qoslab.simulation.result import read_host

        for host, text, name in files.simulated_hosts():
            yield {"host": host, "sends": host in senders, **read_host(text, name)}
