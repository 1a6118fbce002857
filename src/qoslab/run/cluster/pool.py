"""Worker processes on this machine, which end with the run.

They are reached over socket pairs, each known only to this process and one worker. Nothing listens, so no other user of
the machine can connect.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, Self

from qoslab.results import Cell, CellRecord
from qoslab.run.cluster.remote import CellFolder, failed_record, parse_outcome, serialise_task
from qoslab.run.events import parallel_cells_text
from qoslab.run.task import CellTask
from qoslab.system.programs import python_module_command

LOCAL = "local"
"""Value in place of a scheduler's address, for a pool on this machine."""
WORKER = python_module_command("qoslab.run.cluster.pool_worker")
"""Command of a worker; the number of its descriptor follows."""
END_S = 30.0
"""Time limit for the processes to end their labs, in seconds."""


@dataclass(eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    connection: Connection[dict[str, Any], dict[str, Any]]
    task: CellTask | None = None

    @classmethod
    def start(cls) -> Self:
        ours, theirs = Pipe()
        with theirs:
            # In its own session: Ctrl-C is for the run, which ends the process.
            process = subprocess.Popen(
                [*WORKER, str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        return cls(process, ours)

    def end(self, deadline: float) -> None:
        """Wait for its end after a request; kill it at the deadline."""
        try:
            self.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class ProcessPool:
    """Pool of processes, each with one cell at a time; a context manager ends them and their labs.

    A process that dies loses only its cell, and another replaces it. `note` takes lines for people.
    """

    def __init__(self, most: int, note: Callable[[str], None]) -> None:
        self._most = most
        self._note = note
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        self._note(parallel_cells_text(self._most))
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.connection.close()
        deadline = time.monotonic() + END_S
        for worker in self._workers:
            worker.end(deadline)

    def check_workers(self) -> None:
        """Do nothing: a process is started when a cell needs it."""

    @property
    def has_room(self) -> bool:
        """True if there is room for another cell."""
        return sum(worker.task is not None for worker in self._workers) < self._most

    def submit(self, task: CellTask, cell: Cell | None) -> None:
        """Submit a cell if a worker is free."""
        worker = next((each for each in self._workers if each.task is None), None)
        if worker is None:
            worker = _Worker.start()
            self._workers.append(worker)
        worker.task = task
        with suppress(OSError):  # It has died, which reading will detect.
            worker.connection.send(serialise_task(task, cell))

    def finished_cells(self, wait_s: float) -> list[tuple[CellTask, CellRecord, CellFolder]]:
        """Return the finished cells with their records and folders.

        Raise errors that the user has to fix.
        """
        busy = {worker.connection: worker for worker in self._workers if worker.task is not None}
        found: list[tuple[CellTask, CellRecord, CellFolder]] = []
        for connection in wait(list(busy), wait_s):
            worker = busy[connection]  # type: ignore[index]
            task, worker.task = worker.task, None
            assert task is not None
            try:
                reply = worker.connection.recv()
            except (EOFError, OSError):
                found.append((task, failed_record(task, self._remove_dead(worker)), b""))
            else:
                found.append((task, *parse_outcome(task, reply)))
        return found

    def _remove_dead(self, worker: _Worker) -> str:
        """Remove a process that has died; return the reason for its cell."""
        self._workers.remove(worker)
        worker.connection.close()
        worker.end(time.monotonic() + END_S)
        status = worker.process.returncode
        how = f"with status {status}" if status >= 0 else f"by {signal.Signals(-status).name}"
        self._note(f"worker process {worker.process.pid} ended {how}")
        return f"the worker process that ran it ended {how}"
