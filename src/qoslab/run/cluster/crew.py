"""Runs the cells of a run on a Dask cluster, in labs of its workers or in simulation, and gathers the results."""

from __future__ import annotations

import io
import logging
import shutil
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

from qoslab import __version__
from qoslab.errors import MachineError, UserError
from qoslab.model.matrix import as_texts
from qoslab.results import Cell, CellRecord
from qoslab.results.folder import writing
from qoslab.run.cluster import worker as cluster_worker
from qoslab.run.scratch import Scratch
from qoslab.run.task import CellTask

CONNECT_S = 5
"""Until the scheduler must answer."""
WORKERS_S = 60.0
"""How long a run waits while the cluster has no worker."""
LOOK_S = 1.0
"""How often the workers are counted."""
END_S = 30
"""Until the processes of a local cluster have ended their labs."""
SPARE = 1
"""Cells that wait at the cluster beyond those that run, so that no worker is idle while a result is fetched."""


LOCAL = "local"
"""In place of an address: a cluster of worker processes on this machine, which ends with the run."""


@contextmanager
def local_cluster(workers: int) -> Iterator[str]:
    """A scheduler and `workers` processes, each with one cell at a time, on loopback; yields the address.

    All end with the block. A worker process that dies is started again.
    """
    distributed = _distributed()
    import dask

    with (
        Scratch("dask") as scratch,
        dask.config.set({"temporary-directory": str(scratch.path)}),
    ):
        cluster: Any = distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None,
            worker_dashboard_address=None, silence_logs=logging.CRITICAL,
        )  # fmt: skip
        try:
            yield str(cluster.scheduler_address)
        finally:
            cluster.close(timeout=END_S)


def _distributed() -> Any:
    try:
        import distributed  # slow, and only here
    except ImportError as error:
        raise MachineError("the Python package distributed is not installed", hint="Install it.") from error
    return distributed


class Finish(Protocol):
    """Takes the outcome of a cell."""

    def __call__(self, task: CellTask, record: CellRecord, *, lost: bool) -> None:
        """`lost`: nothing came back from its worker."""


class VersionError(UserError):
    """A worker has another version of qoslab."""


def plain_task(task: CellTask) -> dict[str, Any]:
    """A task as it is sent to a worker."""
    return {
        "version": __version__,
        "arm": task.identity.arm,
        "parameters": as_texts(task.identity.values),
        "repetition": task.identity.repetition,
        "attempt": task.attempt,
        "experiment": task.experiment.model_dump_json(),
        "configurations": dict(task.configurations),
        "key": task.key,
        "lab": task.lab,
    }


class Cluster:
    """A connection to a cluster; a context manager that ends the workers' labs, not the workers.

    `note` takes lines for people.
    """

    def __init__(self, address: str, note: Callable[[str], None]) -> None:
        """`MachineError` where there is no scheduler; `VersionError` where a worker has another version."""
        self._address = address
        self._note = note
        connect = _distributed().Client
        try:
            self._client: Any = connect(address, timeout=CONNECT_S, set_as_default=False, name="qoslab")
        except (OSError, TimeoutError, ValueError) as error:
            raise MachineError(
                f"the Dask scheduler at {address} cannot be reached: {error}",
                hint="Is it running, and is the address right? `dask scheduler` prints it, as tcp://192.0.2.1:8786.",
            ) from error
        self._running: dict[Any, CellTask] = {}
        self._known: dict[str, int] = {}
        self._looked = 0.0
        self._alone_since = time.monotonic()

    def __enter__(self) -> Cluster:
        try:
            self.look()
        except BaseException:
            self._client.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            # Where the cluster is gone, its labs end with its workers.
            if self._client.status == "running":
                self._client.cancel(list(self._running), force=True)
                self._client.run(cluster_worker.close_labs, on_error="ignore")
        except (OSError, TimeoutError):
            self._note(f"the Dask scheduler at {self._address} is gone")
        finally:
            self._client.close(timeout=CONNECT_S)

    def look(self) -> None:
        """Count the workers and check those that are new.

        `VersionError` names both versions; `UserError` where there has been no worker for too long.
        """
        if time.monotonic() - self._looked < LOOK_S:
            return
        if self._client.status != "running":
            raise self._gone()
        info = self._client.scheduler_info(n_workers=-1)
        workers = {address: int(worker["nthreads"]) for address, worker in info["workers"].items()}
        new = [address for address in workers if address not in self._known]
        for address in self._known.keys() - workers.keys():
            self._note(f"worker {address} has left")
        if new:
            self._check(new)
            self._note(f"{_number(len(workers), 'worker')}, {_number(sum(workers.values()), 'cell')} at a time")
        self._known = workers
        self._looked = time.monotonic()
        if workers:
            self._alone_since = self._looked
        elif self._looked - self._alone_since > WORKERS_S:
            raise UserError(
                f"the Dask cluster at {self._address} has had no worker for {WORKERS_S:.0f} s",
                hint="Start workers: dask worker ADDRESS --nthreads 1; --resume continues the run.",
            )

    def _gone(self) -> UserError:
        return UserError(
            f"the Dask scheduler at {self._address} is gone", hint="Start it again; --resume continues the run."
        )

    def _check(self, workers: list[str]) -> None:
        said = self._client.run(cluster_worker.version, workers=workers, on_error="return")
        for address, found in said.items():
            if isinstance(found, ImportError | AttributeError):
                raise VersionError(
                    f"worker {address} has no qoslab of version {__version__}: {found}",
                    hint="Install the same version on every machine.",
                )
            if isinstance(found, OSError):
                continue  # It left meanwhile.
            if isinstance(found, BaseException):
                raise MachineError(f"worker {address} does not answer: {found}")
            self._same(address, found)

    def _same(self, address: str, found: str) -> None:
        if found != __version__:
            raise VersionError(
                f"worker {address} has qoslab {found}, this is qoslab {__version__}",
                hint="Install the same version on every machine.",
            )

    @property
    def room(self) -> bool:
        """Whether the cluster should get another cell."""
        labs = sum(self._known.values())
        return bool(labs) and len(self._running) < labs + SPARE

    def submit(self, task: CellTask) -> None:
        """Have a cell run. Where its worker dies, Dask has it run elsewhere, as often as its configuration says."""
        name = f"{task.name}#{task.attempt} {time.time_ns()}"
        future = self._client.submit(cluster_worker.run_cell, plain_task(task), pure=False, retries=0, key=name)
        self._running[future] = task

    def results(self, wait_s: float) -> list[tuple[CellTask, CellRecord, bytes]]:
        """The cells that are done: their records, and their folders as archives (empty where nothing came back).

        Raises what the user has to mend.
        """
        deadline = time.monotonic() + wait_s
        while not (done := [future for future in self._running if future.done()]) and time.monotonic() < deadline:
            time.sleep(0.05)
        found = []
        for future in done:
            task = self._running.pop(future)
            found.append(self._result(future, task))
            future.release()
        return found

    def _result(self, future: Any, task: CellTask) -> tuple[CellTask, CellRecord, bytes]:
        from distributed import KilledWorker

        try:
            said = future.result()
        except CancelledError as error:
            # Nobody cancels a cell: its scheduler ended, and the cell with it.
            raise self._gone() from error
        except KilledWorker as error:
            reason = f"the workers that ran it died, the last was {error.last_worker.address}"
            return task, _failed(task, reason), b""
        except Exception as error:
            return task, _failed(task, f"its worker failed: {type(error).__name__}: {error}"), b""
        if "version" in said:
            self._same("that took the cell", said["version"])
        if "error" in said:
            message, hint = said["error"]
            raise UserError(message, hint=hint)
        if "failure" in said:
            return task, _failed(task, said["failure"]), b""
        return task, CellRecord.model_validate_json(said["record"]), said["files"]


def _number(count: int, unit: str) -> str:
    return f"{count} {unit}" + ("" if count == 1 else "s")


def _failed(task: CellTask, reason: str) -> CellRecord:
    return CellRecord(
        arm=task.identity.arm, parameters=as_texts(task.identity.values), repetition=task.identity.repetition,
        attempt=task.attempt, key=task.key, lab=task.lab, valid=False, reasons=(reason,),
    )  # fmt: skip


def unpack(files: bytes, record: CellRecord, cell: Cell) -> None:
    """Put what came from a worker into the run folder: all of it, or nothing. `UserError` where it has no room."""
    draft = cell.path.with_name(f".{cell.path.name}.draft")
    try:
        with writing(cell.path):
            draft.mkdir(parents=True)
            if files:
                with zipfile.ZipFile(io.BytesIO(files)) as archive:
                    archive.extractall(draft)
            else:
                (draft / "cell.json").write_text(record.model_dump_json(indent=2) + "\n")
            draft.rename(cell.path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


class ClusterCrew:
    """Does for a cluster what `qoslab.run.runner` does for the labs of this machine."""

    def __init__(
        self, address: str, *, lease: Callable[[], CellTask | None], finish: Finish,
        folder_of: Callable[[CellTask], Cell], interrupted: threading.Event, note: Callable[[str], None],
        workers: int = 1,
    ) -> None:  # fmt: skip
        """`address` is the scheduler's, or `LOCAL` for `workers` processes on this machine.

        `lease` gives a cell without waiting, None where none waits now; `finish` takes a cell's record.
        """
        self._address = address
        self._workers = workers
        self._lease, self._finish, self._folder_of = lease, finish, folder_of
        self._interrupted = interrupted
        self._note = note

    def run(self, more: Callable[[], bool]) -> None:
        """Run cells as long as there are `more`, waiting or running."""
        if not more():
            return
        with ExitStack() as stack:
            address = stack.enter_context(local_cluster(self._workers)) if self._address == LOCAL else self._address
            cluster = stack.enter_context(Cluster(address, self._note))
            while more() and not self._interrupted.is_set():
                cluster.look()
                while cluster.room and (task := self._lease()) is not None:
                    cluster.submit(task)
                for task, record, files in cluster.results(0.2):
                    unpack(files, record, self._folder_of(task))
                    self._finish(task, record, lost=not files)
