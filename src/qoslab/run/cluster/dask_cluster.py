"""Execution of a run's cells on a Dask cluster, in labs of its workers or in simulation."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qoslab import __version__
from qoslab.errors import MachineError, UserError
from qoslab.results import Cell, CellRecord
from qoslab.run.cluster import remote_worker as cluster_worker
from qoslab.run.cluster.remote import (
    CellFolder,
    VersionError,
    check_version,
    failed_record,
    parse_outcome,
    serialise_task,
)
from qoslab.run.identity import software_line
from qoslab.run.task import CellTask
from qoslab.system.extras import require_extra

CONNECT_S = 5
"""Time limit for the scheduler's answer, in seconds."""
WORKERS_S = 60.0
"""Time that a run waits while the cluster has no worker, in seconds."""
CHECK_INTERVAL_S = 1.0
"""Interval of counting the workers, in seconds."""
SPARE_CELLS = 1
"""Number of cells that wait at the cluster, so that no worker is idle while a result is fetched."""


def _import_distributed() -> Any:
    require_extra("cluster")
    import distributed  # Slow to load, and only needed here.

    return distributed


@dataclass(frozen=True)
class Tls:
    """Certificates of a cluster and this client, as PEM files; None: Dask's configuration applies."""

    ca_file: Path | None = None
    """The authority that signed the certificates of scheduler and workers."""
    cert: Path | None = None
    """This client's certificate."""
    key: Path | None = None
    """Key of the certificate."""


UNENCRYPTED_SCHEMES = (
    "is neither encrypted nor authenticated: anyone with access to it can run programs as its workers' user, and as "
    "you; docs/sweeps.md describes certificates (tls://)"
)


def _security_settings(distributed: Any, address: str, tls: Tls) -> Any:
    """Return the security settings for Dask's client.

    Raise `UserError` if certificates are missing for a `tls://` address, or are not files.
    """
    files = {"tls_ca_file": tls.ca_file, "tls_client_cert": tls.cert, "tls_client_key": tls.key}
    given = {name: path for name, path in files.items() if path is not None}
    if not address.startswith("tls://"):
        if given:
            raise UserError(
                f"found certificates for {address}, expected an address that begins with tls://",
                hint="Start the scheduler and its workers with --tls-ca-file, --tls-cert and --tls-key.",
            )
        return None
    for name, path in given.items():
        try:
            path.open("rb").close()
        except OSError as error:
            raise UserError(f"{_OPTIONS[name]}: {error}", hint="Give the path of a file in PEM form.") from error
    security = distributed.Security(require_encryption=True, **{name: str(path) for name, path in given.items()})
    missing = [name for name in ("tls_ca_file", "tls_client_cert", "tls_client_key") if not getattr(security, name)]
    if missing:
        options = ", ".join(_OPTIONS[name] for name in missing)
        raise UserError(
            f"found no certificates for {address}",
            hint=f"Give {options}, or set distributed.comm.tls in Dask's configuration.",
        )
    return security


_OPTIONS = {"tls_ca_file": "--tls-ca-file", "tls_client_cert": "--tls-cert", "tls_client_key": "--tls-key"}


class DaskCluster:
    """Connection to a cluster; a context manager that ends the workers' labs, not the workers.

    `note` takes lines for people.
    """

    def __init__(self, address: str, note: Callable[[str], None], tls: Tls = Tls()) -> None:
        """Raise `MachineError` if there is no scheduler, `VersionError` if a worker has another version."""
        self._address = address
        self._note = note
        distributed = _import_distributed()
        security = _security_settings(distributed, address, tls)
        if security is None:
            note(f"the cluster at {address} {UNENCRYPTED_SCHEMES}")
        try:
            self._client: Any = distributed.Client(
                address, timeout=CONNECT_S, set_as_default=False, name="qoslab", security=security
            )
        except (OSError, TimeoutError, ValueError) as error:
            raise MachineError(
                f"the Dask scheduler at {address} cannot be reached: {error}",
                hint="Is it running, and is the address right? `dask scheduler` prints it, such as tcp://192.0.2.1:8786.",
            ) from error
        self._running: dict[Any, CellTask] = {}
        self._known: dict[str, int] = {}
        self._looked = 0.0
        self._alone_since = time.monotonic()

    def __enter__(self) -> DaskCluster:
        try:
            self.check_workers()
        except BaseException:
            self._client.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            # If the cluster is gone, its labs end with its workers.
            if self._client.status == "running":
                self._client.cancel(list(self._running), force=True)
                self._client.run(cluster_worker.close_labs, on_error="ignore")
        except (OSError, TimeoutError):
            self._note(f"the Dask scheduler at {self._address} is gone")
        finally:
            self._client.close(timeout=CONNECT_S)

    def check_workers(self) -> None:
        """Count the workers and check new ones.

        Raise `VersionError`, with both versions, or `UserError` if there has been no worker for too long.
        """
        if time.monotonic() - self._looked < CHECK_INTERVAL_S:
            return
        if self._client.status != "running":
            raise self._cluster_lost_error()
        info = self._client.scheduler_info(n_workers=-1)
        workers = {address: int(worker["nthreads"]) for address, worker in info["workers"].items()}
        new = [address for address in workers if address not in self._known]
        for address in self._known.keys() - workers.keys():
            self._note(f"worker {address} has left")
        if new:
            self._check(new)
            self._note(
                f"{_format_count(len(workers), 'worker')}, {_format_count(sum(workers.values()), 'cell')} at a time"
            )
        self._known = workers
        self._looked = time.monotonic()
        if workers:
            self._alone_since = self._looked
        elif self._looked - self._alone_since > WORKERS_S:
            raise UserError(
                f"the Dask cluster at {self._address} has had no worker for {WORKERS_S:.0f} s",
                hint="Start workers: dask worker ADDRESS --nthreads 1; --resume continues the run.",
            )

    def _cluster_lost_error(self) -> UserError:
        return UserError(
            f"the Dask scheduler at {self._address} is gone", hint="Start it again; --resume continues the run."
        )

    def _check(self, workers: list[str]) -> None:
        reply = self._client.run(cluster_worker.worker_version, workers=workers, on_error="return")
        for address, found in reply.items():
            if isinstance(found, ImportError | AttributeError):
                raise VersionError(
                    f"worker {address} has no qoslab of version {__version__}: {found}",
                    hint="Install the same version on every machine.",
                )
            if isinstance(found, OSError):
                continue  # It has left since then.
            if isinstance(found, BaseException):
                raise MachineError(f"worker {address} does not answer: {found}")
            check_version(address, found, software_line(()))

    @property
    def has_room(self) -> bool:
        """True if the cluster has room for another cell."""
        labs = sum(self._known.values())
        return bool(labs) and len(self._running) < labs + SPARE_CELLS

    def submit(self, task: CellTask, cell: Cell | None = None) -> None:
        """Submit a cell. If its worker dies, Dask runs it elsewhere, as often as its configuration allows.

        `cell` is not used, since the worker may be on any machine.
        """
        name = f"{task.name}#{task.attempt} {time.time_ns()}"
        future = self._client.submit(cluster_worker.run_cell, serialise_task(task), pure=False, retries=0, key=name)
        self._running[future] = task

    def finished_cells(self, wait_s: float) -> list[tuple[CellTask, CellRecord, CellFolder]]:
        """Return the finished cells with their records and folders.

        Raise errors that the user has to fix.
        """
        deadline = time.monotonic() + wait_s
        while not (done := [future for future in self._running if future.done()]) and time.monotonic() < deadline:
            time.sleep(0.05)
        found = []
        for future in done:
            task = self._running.pop(future)
            found.append(self._future_result(future, task))
            future.release()
        return found

    def _future_result(self, future: Any, task: CellTask) -> tuple[CellTask, CellRecord, CellFolder]:
        from distributed import KilledWorker

        try:
            reply = future.result()
        except CancelledError as error:
            # Cells are never cancelled: the scheduler ended, and the cell with it.
            raise self._cluster_lost_error() from error
        except KilledWorker as error:
            reason = f"the workers that ran it died, the last was {error.last_worker.address}"
            return task, failed_record(task, reason), b""
        except Exception as error:
            return task, failed_record(task, f"its worker failed: {type(error).__name__}: {error}"), b""
        record, files = parse_outcome(task, reply)
        return task, record, files or b""


def _format_count(count: int, unit: str) -> str:
    return f"{count} {unit}" + ("" if count == 1 else "s")
