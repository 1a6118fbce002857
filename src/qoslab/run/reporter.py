"""Progress messages of a run: on standard error, and in a file of its folder for viewers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qoslab.plan import Plan
from qoslab.results import Cell, CellRecord, RunFolder
from qoslab.results.progress import FAILED, FINISHED, INTERRUPTED, ProgressFile
from qoslab.run.progress_lines import RunProgress


class ProgressReporter:
    """Receiver of progress messages, with the methods of `RunProgress`. Its methods may be called from any thread."""

    def __init__(self, progress: RunProgress, folder: RunFolder, *, steps: bool) -> None:
        """`steps`: if steps are shown to the user; cells that take no time have none to show."""
        self._progress = progress
        self._file = ProgressFile(folder.path)
        self._folder = folder
        self._steps = steps

    def expect(self, plan: Plan, done: int) -> None:
        """Announce the cells to run, and the number of those that are not needed."""
        self._progress.expect(len(plan.cells), done)
        self._file.begin(title=plan.experiment.title, lab=plan.lab, cells=len(plan.cells), done=done)

    def __call__(self, cell: str, step: str, seconds: float | None = None) -> None:
        """See `qoslab.run.events.StepReceiver`."""
        self._file.step(cell, step, seconds)
        if self._steps:
            self._progress(cell, step, seconds)

    def report_start(self, cell: Cell) -> None:
        """Report the start of an attempt at a cell."""
        self._file.cell(cell.name, cell.path.relative_to(self._folder.path).as_posix())

    def report_outcome(self, cell: str, record: CellRecord) -> None:
        """Report the outcome."""
        self._file.done(cell, valid=record.valid, reasons=record.reasons)

    def cell_done(self, cell: str, *, counts: bool = True) -> None:
        """See `qoslab.run.schedule.CellProgress`."""
        self._progress.cell_done(cell, counts=counts)

    def note(self, text: str) -> None:
        """Show a line to people."""
        self._file.note(text)
        self._progress.note(text)

    def report_values(self, rows: Sequence[Mapping[str, object]]) -> None:
        """Report the values so far; do nothing if none are new."""
        if rows:
            self._file.figures(rows)

    def end(self, error: BaseException | None = None) -> None:
        """Report the end of the run, with its error, if any."""
        how = INTERRUPTED if isinstance(error, KeyboardInterrupt) else FINISHED if error is None else FAILED
        self._file.end(how)
