"""Interface of every kind of lab."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from qoslab.model.experiment import Experiment, Flow, Probe
from qoslab.model.labs import DEFAULT_LAB
from qoslab.model.steps import Step
from qoslab.model.units import Duration

if TYPE_CHECKING:
    from qoslab.errors import Finding
    from qoslab.results import CellFiles
    from qoslab.schema.document import Document
    from qoslab.traffic import FlowResult

REPORT_S = 4.0
REPORT_CELL_S = 0.1
"""Additional report time of each cell, in seconds. Both are estimates from runs on a machine with two cores."""


class LabKind(ABC):
    """Kind of lab: its texts, its unsupported features, its steps, and the readers of its output.

    The code that runs its cells is in the module of the same name in `qoslab.run.workers`.
    """

    name: str
    """Name for `--lab`."""
    help: str
    """Help text of `--lab`."""
    title: str
    """Title for sentences: run in …."""
    value_label: str
    """Word for its values next to published ones."""
    remark: str = ""
    """Remark for readers of its values."""
    worker: str
    """Noun for the workers of parallel cells."""
    real_time: bool
    """True if its cells must be punctual: they disturb each other, and take as long as their traffic."""
    min_cells_for_processes: int | None = None
    """Least number of cells to run in separate processes instead of the run's own; None: never separate."""
    has_place: bool = False
    """True if `--lab` has its place instead of its kind."""
    max_parallel_cells: int | None = None
    """Greatest number of concurrent cells; None: limited by this machine."""
    programs: tuple[str, ...]
    """qoslab's own programs for its cells; results of other builds are not mixed with theirs."""
    interrupt_activity: str
    """Activity after an interrupt."""
    interrupt_message: str = ""
    """Message for an interrupt of that activity; `PLACE` stands for the place of the lab."""
    configuration_title: str
    """Title of a router's rendered configuration, after the router's name."""
    no_lateness_text: str
    """Statement of trust for a run without a fault, if no router reported lateness."""
    turn: frozenset[str]
    """Keys of the steps during which a cell keeps other cells from having traffic."""

    @property
    def is_default(self) -> bool:
        """True if it is the default kind, which texts need not mention."""
        return self.name == DEFAULT_LAB

    def check(self, experiment: Experiment, document: Document, file: Path) -> list[Finding]:
        """Return the unsupported parts of an experiment."""
        return []

    def scheduler(self, cells: int) -> str | None:
        """Return the default scheduler for this number of cells; see `qoslab.run.request.RunRequest.scheduler`."""
        return "local" if self.min_cells_for_processes is not None and cells >= self.min_cells_for_processes else None

    @abstractmethod
    def used_tools(self, experiment: Experiment) -> tuple[str, ...]:
        """Return the programs whose versions count for a cell; `experiment` has only the arm of that cell."""

    @abstractmethod
    def traffic_source_text(self, flow: Flow) -> str:
        """Describe the source of the traffic of a flow."""

    @abstractmethod
    def steps(self, experiment: Experiment, cost: float | None = None) -> tuple[Step, ...]:
        """Return the steps of a cell, in order; the experiment has only the cell's arm.

        `cost` is the time for a second of its traffic in virtual time, in seconds; None if unknown.
        """

    @abstractmethod
    def steps_before_cells(self, experiment: Experiment) -> tuple[Step, ...]:
        """Return the steps before the first cell."""

    @abstractmethod
    def steps_after_cells(self, experiment: Experiment) -> tuple[Step, ...]:
        """Return the steps after the last cell, before the report."""

    @abstractmethod
    def flow(self, files: CellFiles, flow: Flow, duration: Duration) -> FlowResult | None:
        """Return the values of a flow; None if it left no output. Raise `TrafficError` if they are unusable."""

    @abstractmethod
    def hosts(self, files: CellFiles, senders: set[str]) -> Iterator[dict[str, object]]:
        """Yield the rows of `hosts`; `senders` are the TCP senders. Raise `QoslabError` if they cannot be read."""


def report_step(cells: int) -> Step:
    """Return the last step of every lab."""
    seconds = REPORT_S + REPORT_CELL_S * cells
    return Step("analysis and report", "report", (), "tables, comparison, report.html", seconds)


def flow_line(flow: Flow, duration: Duration) -> str:
    """Return the line of a plan for a flow."""
    words = [f"{flow.name}: {flow.tool} {flow.protocol}", f"{flow.source} to {flow.destination}"]
    if flow.streams > 1:
        words.append(f"{flow.streams} streams")
    settings = {"rate": flow.rate, "delay": flow.delay, "size": flow.size, "window": flow.window, "dscp": flow.dscp}
    words.extend(f"{name} {value}" for name, value in settings.items() if value is not None)
    words.extend(f"random {each}" for each in flow.random)
    words.append(f"{duration} as background" if flow.background else str(duration))
    if flow.may_fail:
        words.append("may fail")
    if flow.start_after:
        words.append(f"from {flow.start_after} on")
    return ", ".join(words)


def probe_line(experiment: Experiment, probe: Probe) -> str:
    """Return the line of a plan for a probe."""
    return f"{probe.name}: {probe.type} every {probe.frequency_or_default}, {experiment.duration_of_probe(probe)}"


def flow_lines(experiment: Experiment) -> str:
    """Return the lines for all flows of a cell."""
    arm = experiment.arms[0]
    return "; ".join(flow_line(flow, experiment.flow_duration(arm, flow)) for flow in experiment.arm_flows(arm))
