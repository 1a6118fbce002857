"""Pool of other processes that run the cells of a run, on this machine or on a Dask cluster."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Protocol

from qoslab.results import Cell, CellRecord
from qoslab.run.cluster.pool import LOCAL, ProcessPool
from qoslab.run.cluster.remote import ArchiveError, CellFolder, failed_record, store
from qoslab.run.task import CellTask

WAIT_S = 0.2
"""Time to wait for a result between checks for an interrupt, in seconds."""


class Finish(Protocol):
    """Receiver of the outcome of a cell."""

    def __call__(self, task: CellTask, record: CellRecord, *, lost: bool) -> None:
        """Record the outcome; `lost`: the worker returned nothing."""


class WorkerPool(Protocol):
    """`qoslab.run.cluster.pool.ProcessPool` or `qoslab.run.cluster.dask_cluster.DaskCluster`."""

    def check_workers(self) -> None:
        """Check the workers."""

    @property
    def has_room(self) -> bool:
        """True if there is room for another cell."""

    def submit(self, task: CellTask, cell: Cell | None) -> None:
        """Submit a cell; a worker of this machine writes the draft of `cell`, and its counters while it runs."""

    def finished_cells(self, wait_s: float) -> list[tuple[CellTask, CellRecord, CellFolder]]:
        """Return the finished cells with their records and folders."""


class ClusterRunner:
    """Counterpart of `qoslab.run.runner` for workers in other processes."""

    def __init__(
        self,
        address: str,
        *,
        lease: Callable[[], CellTask | None],
        finish: Finish,
        folder_of: Callable[[CellTask], Cell],
        interrupted: threading.Event,
        note: Callable[[str], None],
        workers: int = 1,
        tls: Mapping[str, Path | None] | None = None,
    ) -> None:
        """`address` is that of the scheduler, or `LOCAL` for `workers` processes on this machine.

        `tls` has the fields of `qoslab.run.cluster.dask_cluster.Tls`. `lease` returns a cell without waiting, None if
        none waits now; `finish` receives a cell's record.
        """
        self._address = address
        self._workers = workers
        self._tls = tls or {}
        self._lease, self._finish, self._folder_of = lease, finish, folder_of
        self._interrupted = interrupted
        self._note = note
        self._begun: dict[str, Cell] = {}
        """Running cells on this machine, by name."""

    def run(self, more: Callable[[], bool]) -> None:
        """Run cells while `more` returns true: as long as any wait or run."""
        if not more():
            return
        try:
            with self._open() as workers:
                while more() and not self._interrupted.is_set():
                    workers.check_workers()
                    while workers.has_room and (task := self._lease()) is not None:
                        workers.submit(task, self._local_cell(task))
                    for task, record, files in workers.finished_cells(WAIT_S):
                        self._save_cell(task, record, files)
        finally:
            # Cells that were given up have left nothing else.
            for cell in self._begun.values():
                shutil.rmtree(cell.path, ignore_errors=True)
                shutil.rmtree(cell.draft, ignore_errors=True)

    def _open(self) -> AbstractContextManager[WorkerPool]:
        if self._address == LOCAL:
            return ProcessPool(self._workers, self._note)
        from qoslab.run.cluster.dask_cluster import DaskCluster, Tls  # Dask is slow to load

        return DaskCluster(self._address, self._note, Tls(**self._tls))

    def _local_cell(self, task: CellTask) -> Cell | None:
        """Return the folder that a worker of this machine writes; None for other workers."""
        if self._address != LOCAL:
            return None
        cell = self._begun[task.name] = self._folder_of(task)
        return cell

    def _save_cell(self, task: CellTask, record: CellRecord, files: CellFolder) -> None:
        cell = self._begun.pop(task.name, None) or self._folder_of(task)
        # Its files replace the progress files for viewers.
        cell.remove_incoming()
        with suppress(OSError):
            cell.path.rmdir()
        try:
            store(files, record, cell)
        except ArchiveError as error:
            record, files = failed_record(task, error.message), b""
            store(files, record, cell)
        self._finish(task, record, lost=files == b"")
