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
    """Runs cells one after another; a context manager that ends what it has running."""

    @property
    def described(self) -> Mapping[str, Any]:
        """Return how its lab described itself; empty if there is none."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

    def run(self, task: CellTask, cell: Cell, *, turn: AbstractContextManager[None] | None = None) -> CellRecord:
        """Run one cell into its folder and return its record. `turn` is entered for the time of its traffic."""


class Shared(Protocol):
    """Common data of the workers of a process."""

    def close(self) -> None:
        """End it."""


@dataclass(frozen=True)
class WorkerSlot:
    """Place of a worker, and the receiver of its messages."""

    number: int
    """Number from 0, among the workers of its process."""
    label: str
    """Label for people."""
    restored: Path
    """Folder for what was printed when routers were restored."""
    shared: Shared
    """Result of `Machinery.shared`."""
    tell: StepReceiver
    note: Callable[[str], None]
    """Takes lines for people."""
    interrupted: threading.Event
    place: str = ""
    """Place of the lab, for kinds that are `placed`."""
    demands: Demands = field(default_factory=Demands)
    """Requirements of the run, for the same kinds."""
    began_in: Mapping[str, Any] = field(default_factory=dict)
    """Description of the lab at the start of the resumed run, for the same kinds."""


@dataclass(frozen=True)
class Checked:
    """Observations of an existing lab, before anything is done in it."""

    seen: Sequence[str]
    """Lines for people: what there is."""
    notes: Sequence[str]
    """Notes that do not keep a run from starting."""
    refused: UserError | None
    """Reason for refusing a run."""


@dataclass(frozen=True)
class Machinery:
    """Functions of a kind of lab that run cells."""

    worker: Callable[[WorkerSlot], CellWorker]
    shared: Callable[[], Shared]
    versions: Callable[[str, Experiment], Mapping[str, str]]
    """Measuring programs at a place, and their versions: a result counts as long as those of its cell are the same."""
    packages: Callable[[], Mapping[str, str]]
    """Python packages that touch the figures, with their versions."""
    check: Callable[[str, Plan], Checked] | None = None
    """Looks whether a plan can be carried out at a place, and changes nothing there; of kinds that are `placed`."""
    sent: Callable[[str, Plan], Iterator[str]] | None = None
    """Lines that a run sends to the devices of a place, in order, from its inventory alone; for the same kinds."""
