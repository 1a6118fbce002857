"""Cells in a worker of a Dask cluster or of a pool, in its own labs or in simulation.

All data is plain (JSON texts, bytes), so that a worker of another version can report its version instead of failing to
read the data.
"""

from __future__ import annotations

import atexit
import io
import shutil
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qoslab.results import Cell
    from qoslab.run.scratch import Scratch
    from qoslab.schema import CellIdentity

_LABS = threading.local()
_OPEN: list[Any] = []
_SHARED_DATA: dict[str, Any] = {}
"""Shared data by kind of lab."""
_LOCK = threading.Lock()
_EXIT_STACKS = threading.Event()


def worker_version() -> str:
    """Return the version of qoslab on this worker, with the hash of its sources."""
    from qoslab.run.identity import software_line

    return software_line(())


def run_cell(task: dict[str, Any]) -> dict[str, Any]:
    """Run one attempt at a cell; `task` is from `qoslab.run.cluster.remote.serialise_task`.

    Return `record` (`cell.json`) and `files`: the cell's folder as a zip archive, or None if the task names a cell on
    this machine, whose draft it wrote. If the worker has another version, other sources or programs, return `version`;
    if the user has to fix an error, return `error`.
    """
    from qoslab.lab_kinds import lab_kind
    from qoslab.run.identity import software_line

    own = software_line(lab_kind(task["lab"]).programs)
    if task["version"] != own:
        return {"version": own}
    from qoslab.errors import QoslabError, UserError
    from qoslab.model.experiment import Experiment
    from qoslab.model.instants import MeasurementDemand
    from qoslab.model.matrix import as_values
    from qoslab.run.task import CellTask
    from qoslab.schema import CellIdentity

    identity = CellIdentity(task["arm"], tuple(as_values(task["parameters"]).items()), task["repetition"])
    experiment = Experiment.model_validate_json(task["experiment"])
    demand = MeasurementDemand(**{**task["demand"], "times_s": tuple(task["demand"]["times_s"])})
    local_task = CellTask(
        identity, experiment, task["configurations"], task["key"], task["attempt"], task["lab"], demand=demand
    )
    try:
        worker, place = _thread_worker(local_task.lab)
        with _cell_to_write(task, identity, place) as cell:
            record = worker.run(local_task, cell)
            return {"record": record.model_dump_json(), "files": None if task["cell"] else _pack_folder(cell.path)}
    except UserError as error:
        _forget()
        return {"error": [error.message, error.hint]}
    except QoslabError as error:
        # The lab failed; another worker, or the next lab, may succeed.
        _forget()
        return {"failure": error.message}


@contextmanager
def _cell_to_write(task: dict[str, Any], identity: CellIdentity, place: Path) -> Iterator[Cell]:
    """Yield the draft of the run's cell, which is removed if the block fails, or a cell in a temporary folder in
    `place`.
    """
    from qoslab.results import Cell

    attempt = task["attempt"]
    if task["cell"] is None:
        with TemporaryDirectory(prefix="cell-", dir=place, ignore_cleanup_errors=True) as name:
            yield Cell(Path(name, "cell"), identity, attempt, sent=True)
        return
    saved = Cell(Path(task["cell"]), identity, attempt)
    # Left by a worker or a run that was killed.
    shutil.rmtree(saved.draft, ignore_errors=True)
    try:
        yield Cell(saved.draft, identity, attempt, coming=saved.incoming_folder, sent=True)
    except BaseException:
        shutil.rmtree(saved.draft, ignore_errors=True)
        raise


def _thread_worker(lab: str) -> tuple[Any, Path]:
    """Return this thread's worker for cells of a kind of lab, and its temporary folder; a worker for another kind
    ends.
    """
    from qoslab.lab_kinds import lab_kind
    from qoslab.run.events import ignore_step
    from qoslab.run.scratch import Scratch
    from qoslab.run.workers import lab_machinery
    from qoslab.run.workers.base import WorkerSlot

    if getattr(_LABS, "kind", lab) != lab:
        _forget()
    worker = getattr(_LABS, "worker", None)
    if worker is None:
        runs = lab_machinery(lab_kind(lab))
        with _LOCK:
            number = len(_OPEN)
            scratch = Scratch("worker")
            restored = scratch.path / "restored"
            restored.mkdir()
            if lab not in _SHARED_DATA:
                _SHARED_DATA[lab] = runs.shared()
            # Progress is reported where the run was started.
            worker = runs.worker(
                WorkerSlot(
                    number, f"lab {number}", restored, _SHARED_DATA[lab], ignore_step, lambda text: None, _EXIT_STACKS
                )
            )
            _OPEN.append((worker, scratch))
        _LABS.worker, _LABS.kind, _LABS.place = worker, lab, scratch.path
    return worker, _LABS.place


def _forget() -> None:
    """End this thread's lab; the next cell gets a new lab."""
    worker = getattr(_LABS, "worker", None)
    _LABS.worker = None
    with _LOCK:
        mine = [each for each in _OPEN if each[0] is worker]
        _OPEN[:] = [each for each in _OPEN if each[0] is not worker]
    for each in mine:
        _close(*each)


def close_labs() -> None:
    """End all labs of this worker, at the end of a run and of the worker."""
    with _LOCK:
        mine, _OPEN[:] = list(_OPEN), []
    for each in mine:
        _close(*each)
    for shared in _SHARED_DATA.values():
        shared.close()


def interrupt() -> None:
    """Cancel the running cells."""
    _EXIT_STACKS.set()


def _close(worker: Any, scratch: Scratch) -> None:
    from qoslab.errors import QoslabError

    try:
        worker.__exit__(None, None, None)
    except QoslabError:
        # A virtual router that was not restored ends with its lab.
        return
    finally:
        scratch.close()


atexit.register(close_labs)


def _pack_folder(folder: Path) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))
    return content.getvalue()
