"""The kinds of labs: how each runs a cell, and what it cannot run. The one place that maps `--lab` to that.

What a kind needs is imported when it is used: a simulation starts no Ansible, and `qoslab validate` nothing at all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from qoslab.model.experiment import Experiment
from qoslab.model.labs import SIMULATED, VIRTUAL
from qoslab.programs import SIMULATOR

if TYPE_CHECKING:
    from qoslab.errors import Finding
    from qoslab.results import Cell, CellRecord
    from qoslab.run.progress import Tell
    from qoslab.run.task import CellTask
    from qoslab.schema import Check
    from qoslab.schema.document import Document


class CellWorker(Protocol):
    """Runs cells one after another; a context manager that ends what it has running."""

    @property
    def described(self) -> Mapping[str, Any]:
        """How its lab described itself; empty where there is none."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

    def run(self, task: CellTask, cell: Cell, *, turn: AbstractContextManager[None] | None = None) -> CellRecord:
        """Run one cell into its folder and return its record. `turn` is entered for the time of its traffic."""


class Shared(Protocol):
    """What the workers of a process have in common."""

    def close(self) -> None:
        """End it."""


@dataclass(frozen=True)
class Place:
    """Where a worker works."""

    number: int
    """From 0, among the workers of its process."""
    label: str
    """For people."""
    restored: Path
    """Folder for what was printed when routers were restored."""
    shared: Shared
    """From `LabKind.shared`."""
    tell: Tell
    note: Callable[[str], None]
    """Takes lines for people."""
    interrupted: threading.Event


@dataclass(frozen=True)
class LabKind:
    """A kind of lab."""

    name: str
    """As `--lab` has it."""
    worker: Callable[[Place], CellWorker]
    shared: Callable[[], Shared]
    versions: Callable[[], Mapping[str, str]]
    """What measures, and its versions: a result counts for a cell as long as those that the cell uses are the same."""
    used: Callable[[Experiment], tuple[str, ...]]
    """Which of them a cell uses; it has its only arm."""
    packages: Callable[[], Mapping[str, str]]
    """Python packages that touch the figures, with their versions."""
    check: Check | None = None
    """What of an experiment it cannot run."""
    scheduler: str | None = None
    """Where cells run unless something else is asked for; see `qoslab.run.runner.Request.scheduler`."""
    ending: str = "restoring the routers (Ctrl-C again leaves them as they are)"
    """What it does when it is interrupted."""


def _virtual_worker(place: Place) -> CellWorker:
    from qoslab.run.devices.collector import SharedCollector
    from qoslab.run.labs.virtual import LabWorker

    assert isinstance(place.shared, SharedCollector)
    return LabWorker(
        place.number, place.label, place.restored, collector=place.shared, tell=place.tell, note=place.note,
        interrupted=place.interrupted,
    )  # fmt: skip


def _collector() -> Shared:
    from qoslab.run.devices.collector import SharedCollector

    return SharedCollector()


def _tools() -> Mapping[str, str]:
    from qoslab.run.provenance import tool_versions

    return tool_versions()


def _packages() -> Mapping[str, str]:
    from qoslab.run.provenance import package_versions

    return package_versions()


def _tools_used(experiment: Experiment) -> tuple[str, ...]:
    from qoslab.traffic import TOOLS

    return tuple(sorted({flow.tool for flow in experiment.flows_of(experiment.arms[0])} & TOOLS.keys()))


def _simulated_worker(place: Place) -> CellWorker:
    from qoslab.run.labs.simulated import SimulatedWorker

    return SimulatedWorker(tell=place.tell, interrupted=place.interrupted)


class _Nothing:
    def close(self) -> None:
        """There is nothing."""


def _simulator() -> Mapping[str, str]:
    from qoslab.run.labs.simulated import version

    return {SIMULATOR: version()}


def _few_packages() -> Mapping[str, str]:
    from qoslab.run.provenance import package_versions

    return package_versions(("pandas",))


def _not_simulated(experiment: Experiment, document: Document, file: Path) -> list[Finding]:
    from qoslab.simulation.check import problems

    return problems(experiment, document, file)


_KINDS = {
    VIRTUAL: LabKind(VIRTUAL, _virtual_worker, _collector, _tools, _tools_used, _packages),
    SIMULATED: LabKind(
        SIMULATED, _simulated_worker, _Nothing, _simulator, lambda experiment: (SIMULATOR,),
        _few_packages, check=_not_simulated, scheduler="local", ending="ending the simulations",
    ),
}  # fmt: skip


def lab_kind(name: str) -> LabKind:
    """The kind of that name; one of `qoslab.model.labs.LABS`."""
    return _KINDS[name]
