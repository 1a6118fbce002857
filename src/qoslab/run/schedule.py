"""Assignment of cells to workers, and the start of their traffic."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Protocol

from qoslab.errors import DeviceError
from qoslab.plan import Cell as PlannedCell
from qoslab.results import Cell, CellRecord
from qoslab.run.attempts import RunCells
from qoslab.run.events import RunInterrupted
from qoslab.run.jobs import LabCount
from qoslab.run.task import CellTask

WINDOW = 16
"""Number of cells at the head of the queue among which a worker may choose one that fits its lab.

A new lab costs logins to all its routers. The number is small so that a random order stays random: no parameter may
correlate with time.
"""
MAX_PASSES = 16
"""Number of times that the first cell may be passed over."""
CHECK_INTERVAL_S = 10.0
"""Time with traffic, since a cell was added, after which the load of the machine shows if another cell fits."""
MAX_CONSECUTIVE_FAULTS = 6
"""Number of consecutive attempts with a failed lab after which the run ends: these failures are not chance."""
POLL_S = 0.2
"""Interval of checks for an interrupt while waiting."""


class CellProgress(Protocol):
    """Receiver of messages about finished cells."""

    def cell_done(self, cell: str, *, counts: bool = True) -> None:
        """Report the end of `cell`, which counts unless it is to be tried again."""

    def note(self, text: str) -> None:
        """Show a line to people."""


class CellSchedule:
    """Queue of waiting cells, the running cells, and the turns of their traffic. All methods are thread-safe.

    Up to `jobs` cells have traffic at the same time. Some additional workers do the work before and after the traffic
    of a cell (configuring, verifying, observing), so that the next cell is configured and verified when one ends.
    """

    def __init__(
        self,
        cells: RunCells,
        jobs: LabCount,
        progress: CellProgress,
        *,
        interrupted: threading.Event,
        attempts: int = 1,
        enough: Callable[[Sequence[Cell]], str] | None = None,
    ) -> None:
        """`enough` returns, before each cell, the reason why it is not needed, or an empty text."""
        self.cells = cells
        self.jobs = jobs
        self.changed = threading.Condition()
        """Lock of the whole object; notified when a cell is done or the number of labs changes."""
        self._progress = progress
        self._interrupted = interrupted
        self._attempts = attempts
        self._enough = enough
        self._waiting = deque(cell.name for cell in cells.unfinished_cells)
        self._passed = Counter[str]()
        self._running = 0
        self._faults = 0
        """Consecutive attempts with a failed lab."""
        self._alone: set[int] = set()
        """Workers whose cells must be the only ones with traffic."""
        self._wired: dict[int, object] = {}
        """Wiring of each worker's lab."""
        self._beginning: set[int] = set()
        """Workers that prepare a cell for its turn."""
        self._ready: deque[int] = deque()
        """Workers whose cells wait for their turn."""
        self._measuring = 0
        self._by_itself = False
        """True if the cell with traffic is to run alone."""
        self._settled = 0.0
        """Time of the last change or check of the number of cells with traffic."""
        self._clock: dict[int, float] = {}
        """Start time of the work of each worker outside its turn."""
        self._overheads: dict[int, float] = {}

    # Cells

    def lease(self, worker: int) -> CellTask | None:
        """Return the next cell for a worker; None if there is no other. Wait while enough labs are in use."""
        with self.changed:
            while True:
                if self._interrupted.is_set():
                    raise RunInterrupted
                # A running cell may have to be run again, so the last worker waits for it.
                if not self._waiting and not self._running:
                    return None
                if self._may_begin(worker) and (task := self._next_cell(worker)) is not None:
                    self._beginning.add(worker)
                    self._clock[worker] = time.monotonic()
                    return task
                self.changed.wait(POLL_S)

    def _may_begin(self, worker: int) -> bool:
        """Return whether a worker may prepare a cell: not if too many do, which would delay the traffic of others."""
        busy = self._measuring and len(self._beginning) >= self.jobs.max_preparing
        return worker < self.jobs.labs + self.jobs.spare_labs and not busy

    def lease_next(self) -> CellTask | None:
        """Return the next cell; None if no cell is waiting now."""
        with self.changed:
            return self._next_cell(None)

    def has_remaining_cells(self) -> bool:
        """Return whether a cell waits or runs."""
        with self.changed:
            return bool(self._waiting or self._running)

    def _next_cell(self, worker: int | None) -> CellTask | None:
        while self._waiting:
            name = self._choose(worker)
            why = "" if self._enough is None else self._enough(self.cells.repetitions(name))
            if not why:
                self._running += 1
                if worker is not None:
                    self._wired[worker] = self._lab_key(name)
                task = self.cells.next_task(name)
                if worker is not None:
                    (self._alone.add if self._is_last_attempt(name) else self._alone.discard)(worker)
                return task
            self.cells.skip(name, why)
            self._progress.cell_done(name)
            self._progress.note(f"{name} is not needed: {why}")
        return None

    def _is_last_attempt(self, name: str) -> bool:
        """Return whether this is the last attempt at a cell while the number of labs is being adjusted.

        The last attempt runs alone, so that other labs cannot be the reason why the cell is invalid.
        """
        return self.jobs.is_learnt and 1 < self._attempts <= self.cells.states[name].tried

    def _choose(self, worker: int | None) -> str:
        """Take a cell from the queue: the first, or a nearby one that fits the lab of the worker."""
        first = self._waiting[0]
        if (
            worker in self._wired
            and self._passed[first] < MAX_PASSES
            and self._planned_cell(first).sweep.is_order_random
        ):
            repetition = self._planned_cell(first).repetition
            for index, name in enumerate(islice(self._waiting, WINDOW)):
                if (
                    self._planned_cell(name).repetition != repetition
                    and self._planned_cell(name).sweep.is_ordered_by_repetition
                ):
                    break  # a block ends before the next begins
                if self._lab_key(name) == self._wired[worker]:
                    if index:
                        self._passed[first] += 1
                    del self._waiting[index]
                    return name
        return self._waiting.popleft()

    def _planned_cell(self, name: str) -> PlannedCell:
        return self.cells.states[name].planned

    def _lab_key(self, name: str) -> object:
        """Return a value that is equal for cells that can share a lab."""
        cell = self._planned_cell(name)
        return tuple(cell.identity.get(each) for each in cell.sweep.parameters_of_keys("topology", "seed"))

    def finish(self, task: CellTask, record: CellRecord, *, lost: bool = False, worker: int | None = None) -> None:
        """Record the outcome of a leased cell; `lost`: its worker returned nothing."""
        with self.changed:
            self._running -= 1
            if worker is not None:
                self._beginning.discard(worker)
            entry = self.cells.record_outcome(task.name, record)
            if worker is not None and worker in self._overheads:
                overhead = self._overheads.pop(worker) + time.monotonic() - self._clock[worker]
                self.jobs.record_pace(overhead)
            change = self.jobs.learn(record, task.experiment)
            passing = record.late or record.fault or record.disagreeing or lost
            again = not entry.valid and passing and entry.tried < self._attempts
            self._faults = self._faults + 1 if record.fault else 0
            faults = self._faults
            if again:
                self._waiting.append(task.name)
            self.changed.notify_all()
        self._progress.cell_done(task.name, counts=not again)
        for reason in record.reasons:
            self._progress.note(f"{task.name} is invalid: {reason}" + ("; re-running it" if again else ""))
        if change:
            self._progress.note(change)
        if faults >= MAX_CONSECUTIVE_FAULTS:
            raise DeviceError(
                f"the lab failed {faults} times in a row, the last time in {task.name}: {'; '.join(record.reasons)}",
                hint="Check free memory and disk space on the machine; `qoslab doctor` lists missing requirements.",
            )

    # Turns

    @contextmanager
    def traffic_turn(self, worker: int) -> Iterator[None]:
        """Wait until the traffic of a worker's cell may start; first come, first served."""
        with self.changed:
            asked = time.monotonic()
            self._overheads[worker] = asked - self._clock.get(worker, asked)
            self._ready.append(worker)
            self._beginning.discard(worker)
            self.changed.notify_all()
            try:
                while self._ready[0] != worker or self._measuring >= self._traffic_limit(worker):
                    if self._interrupted.is_set():
                        raise RunInterrupted
                    if time.monotonic() - self._settled >= CHECK_INTERVAL_S and self._measuring == self.jobs.labs:
                        self._settled = time.monotonic()
                        if change := self.jobs.add_lab_on_idle_machine():
                            self._progress.note(change)
                            continue
                    self.changed.wait(POLL_S)
            except BaseException:
                self._ready.remove(worker)
                raise
            self._ready.popleft()
            self._measuring += 1
            self._by_itself = worker in self._alone
            self._settled = time.monotonic()
            self.changed.notify_all()
        try:
            yield
        finally:
            with self.changed:
                self._measuring -= 1
                self._by_itself = False
                self._clock[worker] = time.monotonic()
                self.changed.notify_all()

    def _traffic_limit(self, worker: int) -> int:
        """Return the number of cells with traffic below which the cell of a worker may start."""
        if self._by_itself:
            return 0
        return 1 if worker in self._alone else self.jobs.labs
