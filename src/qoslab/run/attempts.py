"""Which cells of a run are done, and which attempt at each counts. The run folder itself is the book."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from qoslab.errors import UserError
from qoslab.model.expressions import Value
from qoslab.model.matrix import as_texts
from qoslab.plan import Cell as PlannedCell
from qoslab.results import Attempt, Cell, CellRecord, CellSummary, RunFolder
from qoslab.run.task import CellTask, cell_key, make_task

NOT_RUN = "it was not run to the end"


@dataclass
class Entry:
    """A planned cell and what there is of it."""

    planned: PlannedCell
    key: str = ""
    """See `qoslab.run.task.cell_key`; empty as long as nobody needed it."""
    folder: str = ""
    """Of the attempt that counts."""
    valid: bool = False
    reasons: tuple[str, ...] = (NOT_RUN,)
    spared: str = ""
    """Why it is not needed."""
    attempts: int = 0
    """Folders that there are, of this call and of those before."""
    tried: int = 0
    """Attempts of this call."""
    earlier: list[Attempt] = field(default_factory=list)


_Combination = tuple[str, tuple[tuple[str, Value], ...]]


def _combination(entry: Entry) -> _Combination:
    """What the repetitions of a cell have in common: arm and parameters."""
    identity = entry.planned.identity
    return identity.arm, identity.parameters


class Ledger:
    """The cells of a run, by name. Not safe for threads by itself."""

    def __init__(self, folder: RunFolder, cells: Iterable[PlannedCell], tools: Mapping[str, str]) -> None:
        self.folder = folder
        self._tools = tools
        self.entries = {cell.name: Entry(cell) for cell in cells}
        self._alike: dict[_Combination, list[Entry]] = {}
        for entry in self.entries.values():
            self._alike.setdefault(_combination(entry), []).append(entry)

    def find_results(self) -> int:
        """Look for results of earlier calls; returns how many cells need not be run again.

        A result counts where it is valid and its key is the planned cell's: nothing that defines it has changed.
        """
        for entry in self.entries.values():
            attempts = self.folder.attempts(entry.planned.identity)
            if not attempts:
                continue
            entry.attempts = len(attempts)
            entry.key = cell_key(entry.planned, self._tools)
            for cell in attempts:
                folder = str(cell.path.relative_to(self.folder.path))
                try:
                    record = cell.record() if (cell.path / "cell.json").exists() else None
                except UserError:
                    record = None  # half a record: the disk was full, or the machine stopped
                self._retire(entry)
                entry.folder = folder
                entry.valid, entry.reasons = _verdict(record, entry.key)
                if entry.valid:
                    break
        return sum(entry.valid for entry in self.entries.values())

    @property
    def missing(self) -> list[PlannedCell]:
        """The cells that have no valid result, in the plan's order."""
        return [entry.planned for entry in self.entries.values() if not entry.valid]

    @property
    def has_results(self) -> bool:
        """Whether an attempt at a cell came to its end, valid or not."""
        return any(entry.folder for entry in self.entries.values())

    def next_task(self, name: str) -> CellTask:
        """The next attempt at a cell."""
        entry = self.entries[name]
        entry.attempts += 1
        entry.tried += 1
        task = make_task(entry.planned, self._tools, entry.attempts)
        entry.key = task.key
        return task

    def done(self, name: str, record: CellRecord) -> Entry:
        """Enter the outcome of an attempt."""
        entry = self.entries[name]
        self._retire(entry)
        place = self.folder.cell_of(entry.planned.identity, record.attempt).path
        entry.folder = str(place.relative_to(self.folder.path))
        entry.valid, entry.reasons = record.valid, record.reasons
        return entry

    def repetitions(self, name: str) -> list[Cell]:
        """The valid results of the same arm with the same parameters."""
        same = self._alike[_combination(self.entries[name])]
        return [Cell(self.folder.path / entry.folder, entry.planned.identity) for entry in same if entry.valid]

    def spare(self, name: str, why: str) -> None:
        """A cell is not needed."""
        self.entries[name].spared = why

    def _retire(self, entry: Entry) -> None:
        if entry.folder:
            entry.earlier.append(Attempt(folder=entry.folder, reasons=entry.reasons))
            entry.folder, entry.valid, entry.reasons = "", False, (NOT_RUN,)

    def summaries(self) -> tuple[CellSummary, ...]:
        """All cells, for the manifest."""
        return tuple(
            CellSummary(
                arm=entry.planned.arm,
                parameters=as_texts(entry.planned.parameters),
                repetition=entry.planned.repetition,
                key=entry.key,
                folder=entry.folder,
                valid=entry.valid,
                reasons=() if entry.valid or entry.spared else entry.reasons,
                spared=entry.spared,
                earlier=tuple(entry.earlier),
            )
            for entry in self.entries.values()
        )


def _verdict(record: CellRecord | None, key: str) -> tuple[bool, tuple[str, ...]]:
    if record is None:
        return False, ("it broke off",)
    if record.key != key:
        return False, ("what defines the cell was another then",)
    return record.valid, record.reasons
