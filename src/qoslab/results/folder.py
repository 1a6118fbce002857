"""The run folder: paths, writing each file once, and reading."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Self

from qoslab.errors import UserError
from qoslab.model.expressions import Value
from qoslab.model.matrix import as_number
from qoslab.results.cell import Cell
from qoslab.results.cell_files import CellFiles, check_cell
from qoslab.results.file_access import convert_write_errors, replace, sync_names
from qoslab.results.records import CellSummary, Manifest, RunOptions
from qoslab.results.sealed_files import (
    CELL_RECORD,
    CRATE,
    MANIFEST_MOST,
    RECORD_MOST,
    TEXT_MOST,
    FileSeal,
    add_seal,
    as_text,
    check_experiment,
    compute_seal,
    parse_record,
    read_bytes,
    read_record,
    read_whole,
    record_json,
    seals,
)
from qoslab.schema import CellIdentity
from qoslab.system.printing import one_line

LATEST = "latest"
MANIFEST = "manifest.json"
SAVED_CELLS = "tables/cells.json"
"""Record of the cells in the saved tables; see `qoslab.analysis.saved_cells`."""
LOCK = ".lock"
"""Lock file, held by the process that works on a run."""
_TIME = "%Y%m%dT%H%M%SZ"
_RUN_NAME = re.compile(r"\d{8}T\d{6}Z(?:-\d+)?")

FILES_MOST = 1_000_000
"""Maximum number of files and folders of a run; a sweep of 2000 cells has 16,000."""
NAME_MOST = 3000
"""Maximum length of a path in bytes: the system allows 4096, and names are appended to those of a run."""


@dataclass(frozen=True)
class OpenRun:
    """A run after the comparison of its files with their seals: everything that readers need from its folder."""

    manifest: Manifest
    manifest_sha256: str
    cells: tuple[CellFiles, ...]
    """Content of the cells of the manifest that have an undamaged `cell.json` and files, by arm, then parameters, then
    repetition. Of each cell it is the attempt that counts.
    """
    damaged: Mapping[str, tuple[str, ...]]
    """Differences of the other cells from their seals, by name. An attempt without a record is not damaged."""
    experiment_text: str
    """Text of the latest experiment file; empty if none can be read."""


class RunFolder:
    """Folder of a run: `runs/EXPERIMENT/TIME`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._manifest: tuple[object, Manifest, str] | None = None
        """State of `manifest.json` when it was read, its content, and its SHA-256."""

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"

    @classmethod
    def create(cls, root: Path, experiment: str, now: datetime | None = None, *, private: bool = False) -> Self:
        """Create the folder of a new run. Of two runs in the same second the later one gets `-2` appended.

        A `private` folder, for configurations of real routers, is accessible to its owner only, regardless of the
        umask.
        """
        parent = root / experiment
        stamp = (now or datetime.now(UTC)).astimezone(UTC).strftime(_TIME)
        with convert_write_errors(parent / stamp):
            parent.mkdir(parents=True, exist_ok=True)
            for number in range(1, 1000):
                path = parent / (stamp if number == 1 else f"{stamp}-{number}")
                try:
                    path.mkdir(0o700 if private else 0o777)
                except FileExistsError:
                    continue
                return cls(path)
            raise FileExistsError(errno.EEXIST, "a thousand runs in one second")

    @contextmanager
    def lock_run(self, options: RunOptions) -> Iterator[None]:
        """Lock this run against other processes, and save the options in `run.json`.

        Raise `UserError` if another process works on it.
        """
        path = self.path / "run.json"
        lock = self.path / LOCK
        with convert_write_errors(lock):
            # A file rather than a folder: a network file system does not show locks on folders to other machines.
            held = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
        try:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UserError(
                    f"{self.path}: another process is working on this run", hint="wait until it ends, or interrupt it"
                ) from error
            except OSError as error:
                raise UserError(
                    f"{lock}: cannot be locked: {error.strerror}",
                    hint="enable locks on the file server, or run on a local disk",
                ) from error
            replace(path, add_seal(record_json(options)))
            sync_names(self.path, 3)  # the folders above it may be new, too
            yield
        finally:
            os.close(held)

    def is_in_progress(self) -> bool:
        """Return whether a process works on this run now. A process that starts during the check is refused the lock,
        so check seldom.
        """
        try:
            looked = os.open(self.path / LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(looked, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(looked)
        return False

    def options(self) -> RunOptions:
        """Return the content of `run.json`. Raise `UserError` if it is missing, damaged or of another format."""
        path = self.path / "run.json"
        if not path.exists():
            if self.is_finished:
                self.manifest()  # refuses another format
            raise UserError(f"{self.path}: found no run.json, expected a run", hint="`qoslab list` shows the runs")
        return read_record(RunOptions, path, RECORD_MOST, versioned=True)

    @property
    def is_finished(self) -> bool:
        """True if the run has a manifest."""
        return (self.path / MANIFEST).exists()

    def cell(
        self, arm: str, repetition: int = 1, parameters: Mapping[str, Value] | None = None, attempt: int = 1
    ) -> Cell:
        """Return a cell's folder, which need not exist."""
        return self.cell_folder(CellIdentity(arm, tuple((parameters or {}).items()), repetition), attempt)

    def cell_folder(self, identity: CellIdentity, attempt: int = 1) -> Cell:
        """Return the folder of an attempt at a cell, which need not exist."""
        folder = identity.folder + ("" if attempt == 1 else f".{attempt}")
        return Cell(self.path / "cells" / folder, identity, attempt)

    def attempts(self, identity: CellIdentity) -> list[Cell]:
        """Return the existing attempts at a cell in order, finished or not."""
        found: list[Cell] = []
        for attempt in count(1):
            cell = self.cell_folder(identity, attempt)
            if not cell.path.exists():
                return found
            found.append(cell)
        raise AssertionError("numbers do not end")

    def open(self) -> OpenRun:
        """Compare a run with its seals, once, for readers of its values.

        Raise `UserError` if its manifest is missing, damaged or of another format.
        """
        manifest = self.manifest()
        assert self._manifest is not None
        sha256 = self._manifest[2]
        found: list[CellFiles] = []
        damaged = {}
        for summary in manifest.cells:
            cell = self.counted_cell_files(summary)
            there = cell.has(CELL_RECORD)
            if not there and summary.record is None:
                continue
            record, damage = check_cell(cell.path, summary.record)
            if damage:
                damaged[summary.name] = damage
            elif there:
                found.append(CellFiles(cell.path, cell.identity, record))
        order = {arm.name: number for number, arm in enumerate(manifest.experiment.arms)}
        found.sort(
            key=lambda cell: (
                order.get(cell.arm, len(order)),
                cell.arm,
                [(name, as_number(value)) for name, value in cell.identity.parameters],
                cell.repetition,
            )
        )
        try:
            text = self.experiment_text()
        except UserError:
            text = ""
        return OpenRun(manifest, sha256, tuple(found), damaged, text)

    def counted_cell_files(self, summary: CellSummary) -> CellFiles:
        """Return the content of the attempt that counts for a cell, without comparing it with its seals."""
        return CellFiles(self.path / summary.place, summary.identity)

    def seals(self) -> dict[str, FileSeal]:
        """Return the seals of all files in their present state, sorted by name, without those of an RO-Crate."""
        return {name: seal for name, seal in seals(self.path).items() if name not in (CRATE, LOCK)}

    def write_experiment(self, text: str) -> None:
        """Save the experiment file unchanged; a version that differs from earlier ones becomes `experiment.2.yml`, …"""
        for number in count(1):
            path = self.path / ("experiment.yml" if number == 1 else f"experiment.{number}.yml")
            if not path.exists():
                replace(path, text.encode())
                return
            if read_whole(path) == text:
                return

    def experiment_text(self) -> str:
        """Return the text of the latest experiment file; empty if there is none.

        For a finished run, only files that the manifest names are considered.
        """
        named = self.manifest().files if self.is_finished else None
        files = [each for each in self.experiment_files() if named is None or each.name in named]
        return as_text(read_bytes(files[-1], TEXT_MOST)) if files else ""

    def experiment_files(self) -> list[Path]:
        """Return the saved experiment files, in order."""
        return sorted(self.path.glob("experiment*.yml"), key=lambda path: (len(path.name), path.name))

    def write_manifest(self, manifest: Manifest) -> None:
        """Write `manifest.json`, the last file of a run; a resumed run replaces it."""
        path = self.path / MANIFEST
        with convert_write_errors(path):
            files = {each.name: compute_seal(each) for each in self.experiment_files()}
        replace(path, add_seal(record_json(manifest.model_copy(update={"files": files}))))

    def manifest(self) -> Manifest:
        """Read `manifest.json`. Raise `UserError` if it is missing, damaged or of another format."""
        path = self.path / MANIFEST
        if not path.exists():
            raise UserError(
                f"{self.path}: found no manifest.json, expected a finished run",
                hint="the run was interrupted or is still in progress; `qoslab list` shows the runs",
            )
        stat = path.stat()
        state = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        if self._manifest is None or self._manifest[0] != state:
            content = read_bytes(path, MANIFEST_MOST)
            found = parse_record(Manifest, str(path), content, versioned=True)
            check_experiment(str(path), found.experiment, found.published)
            self._manifest = (state, found, hashlib.sha256(content).hexdigest())
        return self._manifest[1]

    @property
    def tables(self) -> Path:
        """Folder of the Parquet tables; see `qoslab.results.tables`."""
        return self.path / "tables"

    @property
    def report(self) -> Path:
        """Path of the report."""
        return self.path / "report.html"

    def replace(self, name: str, content: str | bytes) -> Path:
        """Write a derived file such as `comparison.csv`, replacing an existing one."""
        path = self.path / name
        # Text from others may have lone surrogates, which UTF-8 cannot encode.
        replace(path, content.encode(errors="backslashreplace") if isinstance(content, str) else content)
        return path

    def publish(self) -> None:
        """Point `latest` to this run, unless it names a newer one. Safe while other runs do the same."""
        parent = self.path.parent
        link = parent / LATEST
        with convert_write_errors(link):
            directory = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(directory, fcntl.LOCK_EX)
                if link.is_symlink() and _order(link.readlink().name) > _order(self.path.name):
                    return
                draft = parent / f".{LATEST}.{os.getpid()}"
                draft.unlink(missing_ok=True)
                draft.symlink_to(self.path.name)
                draft.replace(link)
            finally:
                os.close(directory)


def _order(name: str) -> tuple[str, int]:
    stamp, _, number = name.partition("-")
    return stamp, int(number) if number.isdigit() else 1


def runs(root: Path, experiment: str) -> list[RunFolder]:
    """Return the runs of an experiment, oldest first, including unfinished ones."""
    found = [path for path in (root / experiment).glob("*Z*") if path.is_dir() and _RUN_NAME.fullmatch(path.name)]
    return [RunFolder(path) for path in sorted(found, key=lambda path: _order(path.name))]


def _check_run_folder(path: Path) -> RunFolder:
    """Return the run after a check that its folder has only valid names, and no links that lead out of it.

    Otherwise a report on a received run could disclose other files of its reader. Raise `UserError` if the check fails.
    """
    count = 0
    for around, folders, files in os.walk(str(path)):
        count += len(folders) + len(files)
        if count > FILES_MOST:
            raise UserError(f"{path}: found more than {FILES_MOST} files and folders, expected at most that number")
        for name in (*folders, *files):
            inner = f"{around}/{name}"
            _check_name(inner, name)
            mode = os.lstat(inner).st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                kind = "a symbolic link" if stat.S_ISLNK(mode) else "neither a file nor a folder"
                raise UserError(
                    f"{inner}: found {kind}, expected the files of a run",
                    hint="a run never writes this; remove it, or ask the sender of the run",
                )
    return RunFolder(path)


def _check_name(path: str, name: str) -> None:
    """Raise `UserError` for a name that no run has, and that cannot be recorded or printed unchanged."""
    shown = one_line(path)
    hint = "no run has such a file; remove it, or ask the sender of the run"
    if len(os.fsencode(path)) > NAME_MOST:
        raise UserError(f"{shown[:200]}...: the path is too long, expected at most {NAME_MOST} bytes", hint=hint)
    if one_line(name) != name:
        raise UserError(f"{shown}: found a name with other characters, expected printable text in UTF-8", hint=hint)


def find_run_to_resume(root: Path, text: str | None = None) -> RunFolder:
    """Return the run to resume: a run's folder, an experiment's newest run by its name, or the newest of all runs for
    None.
    """
    if text is not None:
        for given in (Path(text), root / text):
            if any((given / name).exists() for name in ("run.json", MANIFEST)):
                return _check_run_folder(given.resolve())
        found = runs(root, text)
    else:
        found = [run for parent in sorted(root.glob("*")) for run in runs(root, parent.name)]
    if not found:
        raise UserError(
            f"found no run{'' if text is None else f' {text!r}'} in {root}, expected the folder of a run, or an "
            "experiment with a run",
            hint="`qoslab list` shows the runs",
        )
    return _check_run_folder(max(found, key=lambda run: _order(run.path.name)).path)


def find_run(root: Path, text: str | None = None) -> RunFolder:
    """Return the run that a user names: a run's folder, an experiment's latest run by its name, or the latest of all
    for None.
    """
    if text is not None:
        given = Path(text)
        if (given / MANIFEST).exists():
            return _check_run_folder(given.resolve())
        inside = root / text
        if (inside / MANIFEST).exists():
            return _check_run_folder(inside.resolve())
        if (latest := _latest_run(root, text)) is not None:
            return _check_run_folder(latest)
        known = ", ".join(sorted(path.name for path in root.glob("*") if _latest_run(root, path.name))) or "none"
        raise UserError(
            f'found "{text}", expected the folder of a finished run, or an experiment with a finished run ({known})',
            hint="`qoslab list` shows the runs",
        )
    newest = [run for path in root.glob("*") if (run := _latest_run(root, path.name)) is not None]
    if not newest:
        raise UserError(f"{root}: found no finished run", hint="run an experiment, such as `qoslab run first-policy`")
    return _check_run_folder(max(newest, key=lambda path: _order(path.name)))


def _latest_run(root: Path, experiment: str) -> Path | None:
    """Return the folder of an experiment's latest finished run; the newest one left if the user has deleted it."""
    link = root / experiment / LATEST
    if link.exists():
        return link.resolve()
    finished = [run.path for run in runs(root, experiment) if (run.path / MANIFEST).exists()]
    return finished[-1].resolve() if finished else None
