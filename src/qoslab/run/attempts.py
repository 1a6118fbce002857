"""State of a run's cells and the valid attempt of each, read from the run folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from qoslab.model.expressions import Value
from qoslab.model.matrix import as_texts
from qoslab.plan import Cell as PlannedCell
from qoslab.results import Attempt, Cell, CellRecord, CellSummary, FileSeal, RunFolder
from qoslab.results.cell_files import check_cell
from qoslab.run.task import CellTask, cell_key, make_task

NOT_RUN = "it did not run to completion"


@dataclass
class CellState:
    """State of a planned cell."""

    planned: PlannedCell
    key: str = ""
    """See `qoslab.run.task.cell_key`; empty until first used."""
    folder: str = ""
    """Folder of the valid attempt."""
    record: FileSeal | None = None
    """Seal of its `cell.json`."""
    valid: bool = False
    reasons: tuple[str, ...] = (NOT_RUN,)
    skip_reason: str = ""
    """Reason why the cell is not needed."""
    attempts: int = 0
    """Number of attempt folders, from this call and earlier ones."""
    tried: int = 0
    """Number of attempts in this call."""
    earlier: list[Attempt] = field(default_factory=list)


_Combination = tuple[str, tuple[tuple[str, Value], ...]]


def _combination_key(state: CellState) -> _Combination:
    """Return the common key of a cell's repetitions: arm and parameters."""
    identity = state.planned.identity
    return identity.arm, identity.parameters


class RunCells:
    """Cells of a run, by name. Not thread-safe."""

    def __init__(self, folder: RunFolder, cells: Iterable[PlannedCell], tools: Mapping[str, str]) -> None:
        self.folder = folder
        self._tools = tools
        self.states = {cell.name: CellState(cell) for cell in cells}
        self._alike: dict[_Combination, list[CellState]] = {}
        for state in self.states.values():
            self._alike.setdefault(_combination_key(state), []).append(state)

    def find_results(self) -> int:
        """Search for results of earlier calls; return the number of cells that need not be run again.

        A result counts if it is valid, its files are unchanged, and its key equals that of the planned cell, so that
        nothing that defines the cell has changed.
        """
        for state in self.states.values():
            attempts = self.folder.attempts(state.planned.identity)
            if not attempts:
                continue
            state.attempts = len(attempts)
            state.key = cell_key(state.planned, self._tools)
            for cell in attempts:
                folder = str(cell.path.relative_to(self.folder.path))
                self._remove_waiting(state)
                state.folder, state.record = folder, cell.files().seal
                state.valid, state.reasons = _cell_verdict(cell, state.key)
                if state.valid:
                    break
        return sum(state.valid for state in self.states.values())

    @property
    def unfinished_cells(self) -> list[PlannedCell]:
        """Cells without a valid result, in the order of the plan."""
        return [state.planned for state in self.states.values() if not state.valid]

    @property
    def has_results(self) -> bool:
        """Return whether an attempt at a cell has ended, valid or not."""
        return any(state.folder for state in self.states.values())

    def next_task(self, name: str) -> CellTask:
        """Return the next attempt at a cell."""
        state = self.states[name]
        state.attempts += 1
        state.tried += 1
        task = make_task(state.planned, self._tools, state.attempts)
        state.key = task.key
        return task

    def record_outcome(self, name: str, record: CellRecord) -> CellState:
        """Record the outcome of an attempt."""
        state = self.states[name]
        self._remove_waiting(state)
        cell = self.folder.cell_folder(state.planned.identity, record.attempt)
        state.folder, state.record = str(cell.path.relative_to(self.folder.path)), cell.files().seal
        state.valid, state.reasons = record.valid, record.reasons
        return state

    def repetitions(self, name: str) -> list[Cell]:
        """Return the valid results of the same arm with the same parameters."""
        same = self._alike[_combination_key(self.states[name])]
        return [Cell(self.folder.path / state.folder, state.planned.identity) for state in same if state.valid]

    def skip(self, name: str, why: str) -> None:
        """Mark a cell as not needed; `why` is the reason."""
        self.states[name].skip_reason = why

    def _remove_waiting(self, state: CellState) -> None:
        if state.folder:
            state.earlier.append(Attempt(folder=state.folder, reasons=state.reasons, record=state.record))
            state.folder, state.record, state.valid, state.reasons = "", None, False, (NOT_RUN,)

    def summaries(self) -> tuple[CellSummary, ...]:
        """Return the summaries of all cells, for the manifest."""
        return tuple(
            CellSummary(
                arm=state.planned.arm,
                parameters=as_texts(state.planned.parameters),
                repetition=state.planned.repetition,
                key=state.key,
                folder=state.folder,
                record=state.record,
                valid=state.valid,
                reasons=() if state.valid or state.skip_reason else state.reasons,
                spared=state.skip_reason,
                earlier=tuple(state.earlier),
            )
            for state in self.states.values()
        )


def _cell_verdict(cell: Cell, key: str) -> tuple[bool, tuple[str, ...]]:
    if not cell.record_file.exists():
        return False, ("it was interrupted",)
    record, damage = check_cell(cell.path)
    if record is None or damage:
        return False, damage
    if record.key != key:
        return False, ("the definition of the cell has changed since",)
    return record.valid, record.reasons
