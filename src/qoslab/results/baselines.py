"""Baselines: what a full run of an experiment file came to in a kind of lab, kept beside the file.

`reports/baselines/NAME/LAB/` has the run's `comparison.csv` and `manifest.json` as they were.
"""

from __future__ import annotations

import csv
import math
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from qoslab.errors import UserError
from qoslab.model.moved import Measured, moved
from qoslab.results.folder import RunFolder
from qoslab.results.records import Manifest

BASELINES = "reports/baselines"
"""Below the top of a checkout."""
COMPARISON = "comparison.csv"
MANIFEST = "manifest.json"

Key = tuple[str, str, str]
"""Arm, cells in words, metric."""


@dataclass(frozen=True)
class Row:
    """A row of `comparison.csv`; figures that it lacks are nan."""

    arm: str
    where: str
    metric: str
    unit: str
    predicted: float
    published: float
    measured: float
    low: float
    high: float
    tolerance: str
    verdict: str
    """On the router."""
    publication: str
    """The verdict on the publication."""
    explanation: str
    """Of a publication that is not as predicted, or of what was chosen in its light."""

    @property
    def key(self) -> Key:
        """What the row is of."""
        return self.arm, self.where, self.metric

    @property
    def place(self) -> str:
        """The same for people."""
        return " ".join(part for part in (self.arm, f"({self.where})" if self.where else "", self.metric) if part)

    @property
    def figure(self) -> Measured | None:
        """What was measured."""
        return Measured.of(self.measured, self.low, self.high)


@dataclass(frozen=True)
class Baseline:
    """One that is kept."""

    manifest: Manifest
    rows: tuple[Row, ...]


def rows_of(comparison: Path) -> tuple[Row, ...]:
    """The rows of a `comparison.csv`. Raises `UserError` where it is missing or is another kind of file."""
    try:
        with comparison.open(encoding="utf-8", newline="") as file:
            return tuple(_rows(file))
    except (OSError, KeyError, ValueError) as error:
        raise UserError(f"{comparison}: found no table of a run's figures ({error})") from error


def _rows(lines: Iterator[str]) -> Iterator[Row]:
    def number(text: str) -> float:
        return float(text) if text else math.nan

    for row in csv.DictReader(lines):
        predicted, published, measured, low, high = (
            number(row[name]) for name in ("predicted", "published", "measured", "low", "high")
        )
        yield Row(
            row["arm"],
            row["where"],
            row["metric"],
            row["unit"],
            predicted,
            published,
            measured,
            low,
            high,
            row["tolerance"],
            row["verdict"],
            row["publication"],
            row["explanation"],
        )


def keep(folder: RunFolder, top: Path) -> Path:
    """Keep a run as the baseline of its experiment and lab, in place of one before; returns the baseline's folder."""
    manifest = folder.manifest()
    kept = top / BASELINES / manifest.experiment.name / manifest.lab
    kept.mkdir(parents=True, exist_ok=True)
    for name in (COMPARISON, MANIFEST):
        shutil.copyfile(folder.path / name, kept / name)
    return kept


def baselines_of(top: Path, name: str) -> dict[str, Baseline]:
    """The baselines of an experiment by kind of lab."""
    folders = sorted(path.parent for path in (top / BASELINES / name).glob(f"*/{COMPARISON}"))
    return {folder.name: read(folder) for folder in folders}


def read(folder: Path) -> Baseline:
    """A baseline, or a run, from its folder."""
    return Baseline(RunFolder(folder).manifest(), rows_of(folder / COMPARISON))


def changes(now: Sequence[Row], then: Sequence[Row], difference: float) -> Iterator[str]:
    """What is not as in a baseline, a sentence each, in the order of the rows.

    A verdict that is another one; a row that is new or gone; a figure that was measured and was not, or the reverse;
    and one that has moved by more than `difference`, a part of the greater of the two.
    """
    before = {row.key: row for row in then}
    for row in now:
        old = before.pop(row.key, None)
        if old is None:
            yield f"{row.place}: is new, {row.verdict}"
        elif row.verdict != old.verdict:
            yield f"{row.place}: {row.verdict}, was {old.verdict} ({_figures(row, old)})"
        elif moved(row.figure, old.figure, difference):
            yield f"{row.place}: {_figures(row, old)}"
    yield from (f"{row.place}: is gone" for row in before.values())


def _figures(row: Row, old: Row) -> str:
    return f"{row.measured:.6g} {row.unit}, was {old.measured:.6g} {old.unit}"
