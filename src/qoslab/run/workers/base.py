"""Interface of the modules of this package: workers of a kind of lab."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from qoslab.errors import UserError
from qoslab.model.experiment import Experiment
from qoslab.plan import Plan
from qoslab.results import Cell, CellRecord
from qoslab.run.events import StepReceiver
from qoslab.run.task import CellTask, Demands


class CellWorker(Protocol):
    """Worker that runs cells one after another; a context manager that ends its running programs."""

    @property
    def lab_description(self) -> Mapping[str, Any]:
        """Return the description of its lab; empty if there is none."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

    def run(self, task: CellTask, cell: Cell, *, turn: AbstractContextManager[None] | None = None) -> CellRecord:
        """Run one cell into its folder and return its record. `turn` is entered for the time of its traffic."""


class SharedLabData(Protocol):
    """Common data of the workers of a process."""

    def close(self) -> None:
        """End everything that is shared."""


@dataclass(frozen=True)
class WorkerSlot:
    """Context of a worker: its number, and the receiver of its messages."""

    number: int
    """Number from 0, among the workers of its process."""
    label: str
    """Label for people."""
    restore_folder: Path
    """Folder for output from restoring the routers."""
    shared: SharedLabData
    """Result of `LabMachinery.shared`."""
    tell: StepReceiver
    note: Callable[[str], None]
    """Receives lines for people."""
    interrupted: threading.Event
    place: str = ""
    """Place of the lab, for kinds that are `placed`."""
    demands: Demands = field(default_factory=Demands)
    """Requirements of the run, for the same kinds."""
    initial_lab: Mapping[str, Any] = field(default_factory=dict)
    """Description of the lab at the start of the resumed run, for the same kinds."""


@dataclass(frozen=True)
class LabCheck:
    """Result of examining an existing lab, before any change."""

    description: Sequence[str]
    """Description of the lab, in lines for people."""
    notes: Sequence[str]
    """Notes that do not prevent a run."""
    refusal: UserError | None
    """Reason to refuse a run; None without one."""


@dataclass(frozen=True)
class LabMachinery:
    """Functions of a kind of lab for running cells."""

    worker: Callable[[WorkerSlot], CellWorker]
    shared: Callable[[], SharedLabData]
    versions: Callable[[str, Experiment], Mapping[str, str]]
    """Function that returns the measuring programs at a place, with versions.

    A result counts as long as the versions for its cell stay the same.
    """
    packages: Callable[[], Mapping[str, str]]
    """Python packages that influence the values, with their versions."""
    check: Callable[[str, Plan], LabCheck] | None = None
    """Check if a plan can run at a place, without changes there; for `placed` kinds."""
    device_lines: Callable[[str, Plan], Iterator[str]] | None = None
    """Lines that a run sends to the devices of a place, in order, from its inventory alone; for the same kinds."""
