"""Data between a run and a remote process: the cell, its record and its files."""

from __future__ import annotations

import dataclasses
import io
import os
import shutil
import zipfile
import zlib
from pathlib import Path
from typing import Any

from qoslab.errors import QoslabError, UserError
from qoslab.lab_kinds import lab_kind
from qoslab.model.matrix import as_texts
from qoslab.results import Cell, CellRecord
from qoslab.results.file_access import DISK, convert_write_errors, sync_folder
from qoslab.run.identity import software_line
from qoslab.run.task import CellTask

MAX_FILES = 10_000
"""Greatest number of files of a cell from a worker."""
MAX_BYTES = 4 * 2**30
"""Greatest unpacked size of all files of a cell."""

CellFolder = bytes | None
"""Folder of a cell as an archive, empty if nothing was returned; None if a worker of this machine wrote the draft."""
Outcome = tuple[CellRecord, CellFolder]


class VersionError(UserError):
    """Error for a worker with another version of qoslab."""


class ArchiveError(QoslabError):
    """Error for data from a worker that is not the folder of a cell."""


def serialise_task(task: CellTask, cell: Cell | None = None) -> dict[str, Any]:
    """Return a task in the form for a worker.

    A worker of this machine writes the draft of `cell`, and the progress for viewers; others send an archive.
    """
    return {
        "version": software_line(lab_kind(task.lab).programs),
        "arm": task.identity.arm,
        "parameters": as_texts(task.identity.values),
        "repetition": task.identity.repetition,
        "attempt": task.attempt,
        "experiment": task.experiment.model_dump_json(),
        "configurations": dict(task.configurations),
        "key": task.key,
        "lab": task.lab,
        "demand": dataclasses.asdict(task.demand),
        "cell": None if cell is None else str(cell.path.resolve()),
    }


def check_version(worker: str, found: str, own: str) -> None:
    """Raise `VersionError` if version, sources or programs of a worker differ (`qoslab.run.identity.software_line`)."""
    if found != own:
        raise VersionError(
            f"worker {worker} has qoslab {found}, this is qoslab {own}",
            hint="Install the same version on every machine, with the same programs: the same wheel, or a copy of this "
            "working copy with its target/release.",
        )


def parse_outcome(task: CellTask, reply: dict[str, Any]) -> Outcome:
    """Convert the result of `remote_worker.run_cell`. Raise errors that the user has to fix."""
    if "version" in reply:
        check_version("that took the cell", reply["version"], software_line(lab_kind(task.lab).programs))
    if "error" in reply:
        message, hint = reply["error"]
        raise UserError(message, hint=hint)
    if "failure" in reply:
        return failed_record(task, reply["failure"]), b""
    return CellRecord.model_validate_json(reply["record"]), reply["files"]


def failed_record(task: CellTask, reason: str) -> CellRecord:
    """Return the record of an attempt without a result."""
    return CellRecord(
        arm=task.identity.arm,
        parameters=as_texts(task.identity.values),
        repetition=task.identity.repetition,
        attempt=task.attempt,
        key=task.key,
        lab=task.lab,
        valid=False,
        reasons=(reason,),
    )


def store(files: CellFolder, record: CellRecord, cell: Cell) -> None:
    """Store the files of a cell in the folder of a run: all of them, or none.

    Raise `UserError` if there is no room, `ArchiveError` if the data is not an archive, or larger than a cell can be.
    """
    draft = cell.draft
    try:
        with convert_write_errors(cell.path):
            if files is not None:
                # Left by a worker or a run that was killed.
                shutil.rmtree(draft, ignore_errors=True)
                draft.mkdir(parents=True)
                if files:
                    _extract(files, draft)
                else:
                    Cell(draft, cell.identity, cell.attempt, sent=True).write_record(record)
            sync_folder(draft)
            DISK.rename(draft, cell.path)
        cell.sync_place()
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _extract(files: bytes, folder: Path) -> None:
    """Unpack an archive within the limits for files and bytes; sizes must be declared in advance."""
    # Links below it are not followed: nothing here creates any.
    top = folder.resolve()
    try:
        with zipfile.ZipFile(io.BytesIO(files)) as archive:
            entries = archive.infolist()
            if len(entries) > MAX_FILES:
                raise ArchiveError(f"its worker sent {len(entries)} files, expected at most {MAX_FILES}")
            if (size := sum(entry.file_size for entry in entries)) > MAX_BYTES:
                raise ArchiveError(f"its worker sent {size} bytes of files, expected at most {MAX_BYTES}")
            for entry in entries:
                place = Path(os.path.normpath(top / entry.filename))
                if not place.is_relative_to(top):
                    raise ArchiveError(f'its worker sent the file "{entry.filename}", a path outside its cell')
                if entry.is_dir():
                    place.mkdir(parents=True, exist_ok=True)
                else:
                    place.parent.mkdir(parents=True, exist_ok=True)
                    # Read no more bytes of a member than it declares.
                    DISK.create(place, archive.read(entry))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise ArchiveError(f"its worker sent files that cannot be unpacked: {error}") from error
