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
"""Additional report time of each cell. Both are estimates from runs on a machine with two cores."""


class LabKind(ABC):
    """A kind of lab: its words, what it cannot run, its steps, and how its output is read.

    What runs its cells is in the module of the same name in `qoslab.run.workers`.
    """

    name: str
    """Name for `--lab`."""
    help: str
    """Help text of `--lab`."""
    title: str
    """Title for sentences: run in …."""
    found: str
    """Word for its values next to published ones."""
    remark: str = ""
    """Remark for readers of its values."""
    worker: str
    """Noun for the workers of parallel cells."""
    real_time: bool
    """True if its cells must be punctual: they disturb each other, and take as long as their traffic."""
    processes_from: int | None = None
    """Number of cells from which processes run them, fewer run in the run's own process; None: always there."""
    placed: bool = False
    """True if `--lab` says where it is, and not what kind it is."""
    most: int | None = None
    """Cells that it can have at the same time; None: as many as this machine bears."""
    programs: tuple[str, ...]
    """Our own programs that its cells are run with; results of others are not mixed with theirs."""
    ending: str
    """Activity after an interrupt."""
    ended: str = ""
    """Message for an interrupt of that activity; `PLACE` is the place of the lab."""
    configured: str
    """Title of a router's rendered configuration, after the router's name."""
    nothing_late: str
    """Statement of trust for a run without a fault, if no router reported lateness."""
    turn: frozenset[str]
    """Keys of the steps during which a cell keeps others from having traffic."""

    @property
    def is_default(self) -> bool:
        """True if it goes without saying."""
        return self.name == DEFAULT_LAB

    def check(self, experiment: Experiment, document: Document, file: Path) -> list[Finding]:
        """Return the parts of an experiment that it cannot run."""
        return []

    def scheduler(self, cells: int) -> str | None:
        """Return the default scheduler for this number of cells; see
        `qoslab.run.request.Request.scheduler`.
        """
        return "local" if self.processes_from is not None and cells >= self.processes_from else None

    @abstractmethod
    def tools_used(self, experiment: Experiment) -> tuple[str, ...]:
        """The programs whose versions count for a cell; it has its only arm."""

    @abstractmethod
    def generated_by(self, flow: Flow) -> str:
        """Describe the source of the traffic of a flow."""

    @abstractmethod
    def steps(self, experiment: Experiment, cost: float | None = None) -> tuple[Step, ...]:
        """Return the steps of a cell, in order; the experiment has only the cell's arm.

        `cost` is the seconds that a second of its traffic takes in virtual time; None if nobody knows.
        """

    @abstractmethod
    def before(self, experiment: Experiment) -> tuple[Step, ...]:
        """Return the steps before the first cell."""

    @abstractmethod
    def after(self, experiment: Experiment) -> tuple[Step, ...]:
        """Return the steps after the last cell, before the report."""

    @abstractmethod
    def flow(self, files: CellFiles, flow: Flow, duration: Duration) -> FlowResult | None:
        """The figures of a flow; None if it left nothing. `TrafficError` if they cannot be used."""

    @abstractmethod
    def hosts(self, files: CellFiles, senders: set[str]) -> Iterator[dict[str, object]]:
        """Rows of `hosts`; `senders` are those that send TCP. `QoslabError` if they cannot be read."""


def report_step(cells: int) -> Step:
    """Return the last step of every lab."""
    seconds = REPORT_S + REPORT_CELL_S * cells
    return Step("analysis and report", "report", (), "tables, comparison, report.html", seconds)


def flow_words(flow: Flow, duration: Duration) -> str:
    """A flow in one line of a plan."""
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


def probe_words(experiment: Experiment, probe: Probe) -> str:
    """A probe in one line of a plan."""
    return f"{probe.name}: {probe.type} every {probe.frequency_or_default}, {experiment.duration_of_probe(probe)}"


def traffic_words(experiment: Experiment) -> str:
    """All flows of a cell."""
    arm = experiment.arms[0]
    return "; ".join(flow_words(flow, experiment.duration_of(arm, flow)) for flow in experiment.flows_of(arm))
