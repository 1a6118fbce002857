"""Verification of a run folder: differences from its seals."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from qoslab.errors import UserError
from qoslab.results.baselines import AVERAGES, COMPARISON, SCORES
from qoslab.results.cell_files import check_cell
from qoslab.results.changes import damaged_changes
from qoslab.results.folder import LOCK, MANIFEST, NAME_MOST, SAVED_CELLS, RunFolder
from qoslab.results.progress import PROGRESS
from qoslab.results.records import Manifest
from qoslab.results.sealed_files import CELL_RECORD, CRATE, MANIFEST_MOST, FileSeal, compute_seal, difference, read_text
from qoslab.results.tables import SCHEMAS, check_table

_OF_A_RUN = frozenset(
    {"run.json", MANIFEST, PROGRESS, LOCK, CRATE, COMPARISON, "comparison.json", AVERAGES, SCORES, "report.html"}
    | {SAVED_CELLS}
    | {f"tables/{name}.parquet" for name in SCHEMAS}
)
"""Files of a run in addition to its cells and the experiment files."""
_PRINTED = ("transcripts", "restore")
"""Folders for the output of routers and Ansible, with file names that vary."""


@dataclass
class Verification:
    """Checked files and findings."""

    cells: int = 0
    """Number of attempts at cells that have a record."""
    files: int = 0
    bytes: int = 0
    damage: list[str] = field(default_factory=list)
    """Damaged files, each with its path within the run's folder, and its difference."""
    notes: list[str] = field(default_factory=list)
    """Notes for the reader without damage."""


def verify(folder: RunFolder) -> Verification:
    """Compare all sealed content of a run with its seals.

    That is `run.json`, `manifest.json`, the experiment files, every attempt at a cell with its files, the
    configurations with hashes in the manifest, and changes on routers. Tables are only checked for readability.
    `comparison.csv`, `comparison.json` and `report.html` are computed from the rest and have no seals; they are
    compared with the list of an RO-Crate, if the run has one. Files that no run has are reported; files in
    `transcripts` and `restore` may have any name, so that only the list of an RO-Crate reveals added ones.
    """
    found = Verification()
    _run_file(folder, found)
    manifest = _manifest(folder, found)
    written = {} if manifest is None else dict(_records(manifest))
    if manifest is not None:
        _experiment_files(folder, manifest, found)
        _configurations(folder, manifest, found)
    found.damage += [_path_within_run(folder, damage) for damage in damaged_changes(folder)]
    attempts = _attempts(folder, written)
    for path in attempts:
        name = path.relative_to(folder.path).as_posix()
        if not (path / CELL_RECORD).exists() and written.get(name) is None:
            found.notes.append(f"{name}: the cell was interrupted; it has no {CELL_RECORD}")
            continue
        if manifest is not None and name not in written:
            found.notes.append(f"{name}: the manifest does not list it; its command was interrupted")
        _attempt(path, name, written.get(name), found)
    _add_unlisted_files(folder, attempts, _crate(folder, found), found)
    for name in SCHEMAS:
        if (folder.tables / f"{name}.parquet").exists():
            try:
                check_table(folder, name)
            except UserError as error:
                found.damage.append(f"{_path_within_run(folder, error.message)}; {error.hint}")
    return found


def _crate(folder: RunFolder, found: Verification) -> Collection[str] | None:
    """Check the derived files against the list of an RO-Crate, since the records do not name them.

    Return the names in that list; None if there is none.
    """
    path = folder.path / CRATE
    if not path.exists():
        return None
    try:
        graph = json.loads(read_text(path, MANIFEST_MOST))["@graph"]
        listed = {
            unquote(str(each["@id"])): FileSeal(bytes=int(each["contentSize"]), sha256=each["sha256"])
            for each in graph
            if "sha256" in each
        }
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        found.damage.append(f"{CRATE} is not the file list of an RO-Crate: {error}")
        return None
    for name, seal in listed.items():
        # The records cover themselves and the files in cells/; a name must not lead out of the folder.
        inner = Path(name)
        own = inner.parts[:1] != ("cells",) and not inner.is_absolute() and ".." not in inner.parts
        if "\0" in name or len(os.fsencode(name)) > NAME_MOST:
            found.damage.append(f"{name[:60]} ({CRATE}) is not a file name")
            continue
        if own and (damage := difference(folder.path / inner, name, seal)):
            found.damage.append(f"{damage} ({CRATE})")
    return listed.keys()


def _add_unlisted_files(
    folder: RunFolder, attempts: Collection[Path], listed: Collection[str] | None, found: Verification
) -> None:
    """Add files outside of attempts that are missing from the list of an RO-Crate, or that no run has."""
    own = _OF_A_RUN | {file.name for file in folder.experiment_files()}
    for name in sorted(_unknown_files(folder, frozenset(attempts))):
        if listed is not None and name not in listed and name not in _OF_A_RUN:
            found.damage.append(f"{name} is not in {CRATE}, the list of all files of the run")
        elif listed is None and name not in own and not name.startswith(tuple(f"{each}/" for each in _PRINTED)):
            found.notes.append(
                f"{name}: no run has such a file, and reports ignore it; an interrupted command wrote it, or "
                f"somebody else put it there"
            )


def _unknown_files(folder: RunFolder, attempts: Collection[Path]) -> Iterator[str]:
    """Yield the names of all files of a run except those in folders of attempts, finished or not."""
    for around, folders, names in os.walk(folder.path):
        inner = Path(around).relative_to(folder.path)
        yield from ((inner / each).as_posix() for each in names)
        under_way = inner.parts[:1] == ("cells",)
        folders[:] = [
            each for each in folders if Path(around, each) not in attempts and not (under_way and each.startswith("."))
        ]


def _path_within_run(folder: RunFolder, message: str) -> str:
    return message.replace(f"{folder.path}/", "")


def _run_file(folder: RunFolder, found: Verification) -> None:
    try:
        folder.options()
    except UserError as error:
        found.damage.append(_path_within_run(folder, error.message))


def _manifest(folder: RunFolder, found: Verification) -> Manifest | None:
    if not folder.is_finished:
        found.notes.append(f"{MANIFEST} is missing: the run was interrupted, or is still running")
        return None
    try:
        return folder.manifest()
    except UserError as error:
        found.damage.append(_path_within_run(folder, error.message))
        return None


def _records(manifest: Manifest) -> Iterator[tuple[str, FileSeal | None]]:
    for cell in manifest.cells:
        if cell.folder:
            yield cell.folder, cell.record
        yield from ((attempt.folder, attempt.record) for attempt in cell.earlier)


def _experiment_files(folder: RunFolder, manifest: Manifest, found: Verification) -> None:
    for name, seal in manifest.files.items():
        if damage := difference(folder.path / Path(name).name, name, seal):
            found.damage.append(damage)
    for file in folder.experiment_files():
        if file.name not in manifest.files:
            found.notes.append(
                f"{file.name}: the manifest does not list it, and reports ignore it; its command was interrupted, or "
                f"somebody else put it there"
            )


def _configurations(folder: RunFolder, manifest: Manifest, found: Verification) -> None:
    """Check the rendered configurations: a cell with a different file is damaged, regardless of its record."""
    hashes: dict[str, dict[str, str]] = {}
    for key, sha256 in manifest.configurations.items():
        name, _, device = key.rpartition("/")
        hashes.setdefault(name, {})[device] = sha256
    for cell in manifest.cells:
        if not cell.folder or not cell.valid:
            continue
        for device, sha256 in hashes.get(cell.name.removesuffix(f"/{cell.repetition}"), {}).items():
            files = folder.counted_cell_files(cell)
            path = files.path / files.given_file(device)
            if path.is_file() and compute_seal(path).sha256 != sha256:
                inner = path.relative_to(folder.path).as_posix()
                found.damage.append(f"{inner} does not match its hash in {MANIFEST}")


def _attempts(folder: RunFolder, written: dict[str, FileSeal | None]) -> list[Path]:
    """Return the folders of attempts that the manifest names or that exist."""
    there: set[Path] = set()
    for name in ("experiment.json", CELL_RECORD):
        there |= {path.parent for path in (folder.path / "cells").glob(f"**/{name}")}
    # Unfinished folders of a killed run have names that begin with a dot, and are ignored.
    there = {path for path in there if not path.name.startswith(".")}
    return sorted(there | {folder.path / name for name in written})


def _attempt(path: Path, name: str, written: FileSeal | None, found: Verification) -> None:
    found.cells += 1
    found.damage += [f"{name}/{each}" for each in check_cell(path, written)[1]]
    for file in path.rglob("*"):
        if file.is_file():
            found.files += 1
            found.bytes += file.stat().st_size
