"""Results of the runs in a folder, read from plain JSON, so that listing them needs no import of `qoslab.results`.

The runs may be from other people: damaged or malicious files are reported and have no effect.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qoslab.model.labs import DEFAULT_LAB
from qoslab.model.partial_runs import LeftOutTest, common_values, left_out_test, partial_options
from qoslab.model.run_values import Key, RunValue
from qoslab.schema.named_files import FileRefusedError, check_values, read_bytes

RECORD_LIMIT = 100 * 2**20
"""Maximum size of a run's comparison or manifest, in bytes; the manifest of 200 000 cells is nearly as large."""
UNFINISHED, DAMAGED, FINISHED = "unfinished", "damaged", "finished"


@dataclass(frozen=True)
class RunSummary:
    """A run in a list of runs."""

    folder: Path
    state: str
    """`finished`, `unfinished` (nothing was computed yet) or `damaged`."""
    name: str = ""
    """Name of the experiment in the manifest; the folder of a saved run may have any place."""
    title: str = ""
    lab: str = DEFAULT_LAB
    started: str = ""
    """Start time in the manifest: UTC, ISO 8601."""
    version: str = ""
    """Version of qoslab, and the commit of its working copy."""
    overrides: tuple[str, ...] = ()
    cells: int = 0
    invalid: int = 0
    values: tuple[RunValue, ...] = field(default=(), repr=False)
    """Values of its comparison, and its averages."""
    is_left_out: LeftOutTest = field(default=lambda figure: False, repr=False, compare=False)
    """Predicate for values that the run was not asked for, and another run has."""

    @property
    def experiment(self) -> str:
        """Name of the parent folder, which is the experiment's name for a run."""
        return self.folder.absolute().parent.name

    @property
    def report(self) -> Path | None:
        """Path of the report; None if there is none."""
        file = self.folder / "report.html"
        return file if file.exists() else None

    @property
    def values_by_key(self) -> dict[Key, RunValue]:
        """Values by key."""
        return {value.key: value for value in self.values}

    def changed_values(self, before: RunSummary) -> list[RunValue]:
        """Return the values that have changed since a previous run, of those that both have."""
        old = before.values_by_key
        asked = common_values(self.values, self.is_left_out, before.is_left_out)
        return [each for each in asked if each.key in old and each.has_changed_from(old[each.key])]

    def missing_values(self, other: RunSummary) -> list[RunValue]:
        """Return the values of another run that this run was asked for and does not have."""
        own = self.values_by_key
        asked = common_values(other.values, self.is_left_out, other.is_left_out)
        return [each for each in asked if each.key not in own]

    def count(self, verdict: str) -> int:
        """Return the number of values with this verdict."""
        return sum(value.verdict == verdict for value in self.values)

    @property
    def words(self) -> str:
        """Summary in words: values within tolerance, part of the file that was run, and number of invalid cells."""
        if self.state != FINISHED:
            return self.state
        part = partial_options(self.overrides)
        text = f"{self.count('within')} within, {self.count('outside')} outside" + (f" of {part}" if part else "")
        text = f"invalid ({self.invalid} of {self.cells} cells): {text}" if self.invalid else text
        from qoslab.lab_kinds import LABS  # lists of runs do not need it

        return text if self.lab in LABS and LABS[self.lab].is_default else f"{self.lab}: {text}"


def read_runs(root: Path) -> list[RunSummary]:
    """Read the runs in folders EXPERIMENT/TIME below `root`, in this order."""
    return [read_run(folder) for folder in sorted(root.glob("*/*Z*")) if folder.is_dir()]


def read_run(folder: Path) -> RunSummary:
    """Read the results of a run, or of a baseline, from its manifest, its comparison and its averages."""
    try:
        rows, manifest = _read_rows(folder), _read_json(folder / "manifest.json")
    except (OSError, ValueError, RecursionError, FileRefusedError):
        return RunSummary(folder, UNFINISHED)
    try:
        return _summarise(folder, rows, _read_averages(folder), manifest)
    except (TypeError, KeyError, AttributeError, ValueError, OSError, FileRefusedError):
        return RunSummary(folder, DAMAGED)


def _read_rows(folder: Path) -> Any:
    """Read the rows of a comparison; a baseline has only `comparison.csv`."""
    file = folder / "comparison.json"
    if file.exists():
        return _read_json(file)
    return _read_table(folder / "comparison.csv")


def _read_json(path: Path) -> Any:
    """Read a JSON file; `FileRefusedError` if it may have too many values."""
    text = read_bytes(path, RECORD_LIMIT)
    check_values(path, text)
    return json.loads(text)


def _read_averages(folder: Path) -> list[dict[str, Any]]:
    """Read the averages over cells, which count for the verdict as well; only if the experiment has some."""
    file = folder / "averages.csv"
    return _read_table(file) if file.exists() else []


def _read_table(path: Path) -> list[dict[str, Any]]:
    table = read_bytes(path, RECORD_LIMIT).decode("utf-8")
    reader = csv.DictReader(table.splitlines(keepends=True))
    try:
        rows = list(reader)
    except csv.Error as error:
        raise ValueError(f"no table: {error}") from error
    if "verdict" not in (reader.fieldnames or ()):
        raise ValueError("no table of results")
    return rows


def _summarise(
    folder: Path, rows: list[dict[str, Any]], averages: list[dict[str, Any]], manifest: dict[str, Any]
) -> RunSummary:
    cells = manifest["cells"]
    experiment = manifest.get("experiment") or {}
    overrides = tuple(str(each) for each in manifest.get("overrides") or ())
    commit = manifest.get("commit")
    version = str((manifest.get("versions") or {}).get("qoslab", ""))
    return RunSummary(
        folder=folder,
        state=FINISHED,
        name=str(experiment.get("name") or ""),
        title=str(experiment.get("title") or folder.absolute().parent.name),
        lab=str(manifest.get("lab", DEFAULT_LAB)),
        started=str(manifest.get("started") or ""),
        version=f"{version}, commit {commit}" if commit else version,
        overrides=overrides,
        cells=len(cells),
        # A cell that was not needed does not count as invalid.
        invalid=sum(not (cell["valid"] or cell.get("spared")) for cell in cells),
        values=(*map(RunValue.from_row, rows), *map(RunValue.from_average_row, averages)),
        is_left_out=left_out_test(overrides, ((str(cell["arm"]), cell.get("parameters") or {}) for cell in cells)),
    )
