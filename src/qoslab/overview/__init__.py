"""Results of the runs of a folder, from plain JSON: listing them needs none of the imports of `qoslab.results`.

Other people's runs are read, too: what is damaged is said, never obeyed.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qoslab.lab_kinds import LABS
from qoslab.model.labs import DEFAULT_LAB
from qoslab.model.partial_runs import LeftOut, asked_of_all, left_out, part_of
from qoslab.model.run_figures import Key, RunFigure
from qoslab.schema.named_files import FileRefusedError, check_values, read_bytes

RECORD_LIMIT = 100 * 2**20
"""Bytes of a run's comparison or manifest; the manifest of 200 000 cells has nearly as many."""
UNFINISHED, DAMAGED, FINISHED = "unfinished", "damaged", "finished"


@dataclass(frozen=True)
class RunSummary:
    """A run in a list of runs."""

    folder: Path
    state: str
    """`finished`, `unfinished` (nothing was computed yet) or `damaged`."""
    name: str = ""
    """Name of its experiment in the manifest; a saved folder may be anywhere."""
    title: str = ""
    lab: str = DEFAULT_LAB
    started: str = ""
    """Start time in the manifest: UTC, ISO 8601."""
    version: str = ""
    """Version of qoslab, and the commit of its working copy."""
    overrides: tuple[str, ...] = ()
    cells: int = 0
    invalid: int = 0
    figures: tuple[RunFigure, ...] = field(default=(), repr=False)
    """Values of its comparison, and its averages."""
    left_out: LeftOut = field(default=lambda figure: False, repr=False, compare=False)
    """Function that is true for values that the run was not asked for, and another run has."""

    @property
    def experiment(self) -> str:
        """The name of the folder around, which of a run is that of its experiment."""
        return self.folder.absolute().parent.name

    @property
    def report(self) -> Path | None:
        """Return the path of its report, if there is one."""
        file = self.folder / "report.html"
        return file if file.exists() else None

    @property
    def by_key(self) -> dict[Key, RunFigure]:
        """The figures by what they are of."""
        return {figure.key: figure for figure in self.figures}

    def moved_since(self, before: RunSummary) -> list[RunFigure]:
        """The figures that are others than in a run before, of those that both have."""
        old = before.by_key
        asked = asked_of_all(self.figures, self.left_out, before.left_out)
        return [each for each in asked if each.key in old and each.moved_from(old[each.key])]

    def lacking_of(self, other: RunSummary) -> list[RunFigure]:
        """The figures of another run that it does not have, although it was asked for them."""
        own = self.by_key
        asked = asked_of_all(other.figures, self.left_out, other.left_out)
        return [each for each in asked if each.key not in own]

    def count(self, verdict: str) -> int:
        """Return how many figures have this verdict."""
        return sum(figure.verdict == verdict for figure in self.figures)

    @property
    def words(self) -> str:
        """Return how many figures are within, of what part of the file, and how many cells must not be trusted."""
        if self.state != FINISHED:
            return self.state
        part = part_of(self.overrides)
        text = f"{self.count('within')} within, {self.count('outside')} outside" + (f" of {part}" if part else "")
        text = f"invalid ({self.invalid} of {self.cells} cells): {text}" if self.invalid else text
        return text if self.lab in LABS and LABS[self.lab].is_default else f"{self.lab}: {text}"


def read_runs(root: Path) -> list[RunSummary]:
    """The runs below `root`, by experiment and time: the folders EXPERIMENT/TIME."""
    return [read_run(folder) for folder in sorted(root.glob("*/*Z*")) if folder.is_dir()]


def read_run(folder: Path) -> RunSummary:
    """Read the results of a run, or of a baseline, from its manifest, its comparison and its averages."""
    try:
        rows, manifest = _rows(folder), _json(folder / "manifest.json")
    except (OSError, ValueError, RecursionError, FileRefusedError):
        return RunSummary(folder, UNFINISHED)
    try:
        return _summary(folder, rows, _averages(folder), manifest)
    except (TypeError, KeyError, AttributeError, ValueError, OSError, FileRefusedError):
        return RunSummary(folder, DAMAGED)


def _rows(folder: Path) -> Any:
    """The rows of a comparison; a baseline has them as a table only."""
    file = folder / "comparison.json"
    if file.exists():
        return _json(file)
    return _table(folder / "comparison.csv")


def _json(path: Path) -> Any:
    """Read a JSON file; `FileRefusedError` if it may have too many values."""
    text = read_bytes(path, RECORD_LIMIT)
    check_values(path, text)
    return json.loads(text)


def _averages(folder: Path) -> list[dict[str, Any]]:
    """Read the averages over cells, which count for the verdict as well; only if the experiment has some."""
    file = folder / "averages.csv"
    return _table(file) if file.exists() else []


def _table(path: Path) -> list[dict[str, Any]]:
    table = read_bytes(path, RECORD_LIMIT).decode("utf-8")
    reader = csv.DictReader(table.splitlines(keepends=True))
    try:
        rows = list(reader)
    except csv.Error as error:
        raise ValueError(f"no table: {error}") from error
    if "verdict" not in (reader.fieldnames or ()):
        raise ValueError("no table of results")
    return rows


def _summary(
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
        # A cell that was not needed is none that must not be trusted.
        invalid=sum(not (cell["valid"] or cell.get("spared")) for cell in cells),
        figures=(*map(RunFigure.of, rows), *map(RunFigure.of_average, averages)),
        left_out=left_out(overrides, ((str(cell["arm"]), cell.get("parameters") or {}) for cell in cells)),
    )
