"""What runs the cells of a kind of lab: what every module of this package has."""

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
from qoslab.run.events import Tell
from qoslab.run.task import CellTask, Demands


class CellWorker(Protocol):
    """Runs cells one after another; a context manager that ends what it has running."""

    @property
    def described(self) -> Mapping[str, Any]:
        """Return how its lab described itself; empty where there is none."""

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
class WorkerSlot:
    """Where a worker works, and whom it tells."""

    number: int
    """From 0, among the workers of its process."""
    label: str
    """For people."""
    restored: Path
    """Folder for what was printed when routers were restored."""
    shared: Shared
    """From `Machinery.shared`."""
    tell: Tell
    note: Callable[[str], None]
    """Takes lines for people."""
    interrupted: threading.Event
    place: str = ""
    """Where the lab is, of kinds that are `placed`."""
    demands: Demands = field(default_factory=Demands)
    """What the run wants of it; of the same kinds."""
    began_in: Mapping[str, Any] = field(default_factory=dict)
    """How the lab described itself when the run was begun that is resumed; of the same kinds."""


@dataclass(frozen=True)
class Checked:
    """What was seen of a lab that is there already, before anything is done in it."""

    seen: Sequence[str]
    """Lines for people: what there is."""
    notes: Sequence[str]
    """What does not keep a run from beginning."""
    refused: UserError | None
    """What a run would be refused with."""


@dataclass(frozen=True)
class Machinery:
    """What a kind of lab needs to run cells."""

    worker: Callable[[WorkerSlot], CellWorker]
    shared: Callable[[], Shared]
    versions: Callable[[str, Experiment], Mapping[str, str]]
    """What measures at a place, and its versions: a result counts for a cell as long as those that the cell uses are
    the same."""
    packages: Callable[[], Mapping[str, str]]
    """Python packages that touch the figures, with their versions."""
    check: Callable[[str, Plan], Checked] | None = None
    """Looks whether a plan can be carried out at a place, and changes nothing there; of kinds that are `placed`."""
    sent: Callable[[str, Plan], Iterator[str]] | None = None
    """What a run sends to the devices of a place, in order, for people: from its inventory alone; of the same kinds."""
