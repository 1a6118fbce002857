"""Baselines: results of a complete run of an experiment file in a kind of lab, saved next to the file.

`reports/baselines/NAME/LAB/` has the run's `comparison.csv`, if present its `averages.csv` and `scores.csv`, and a
`manifest.json` reduced to the settings that a comparison reads: one line for the cells of each arm.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from qoslab.errors import UserError
from qoslab.model.experiment import Experiment
from qoslab.model.partial_runs import LeftOutTest, common_values, left_out_test
from qoslab.model.run_values import RunValue, Score
from qoslab.results.file_access import replace
from qoslab.results.folder import RunFolder
from qoslab.results.records import Manifest, Session
from qoslab.results.sealed_files import add_seal

_Row = TypeVar("_Row")

BASELINES = "reports/baselines"
"""Folder of baselines in a checkout."""
SAVED = "reports/saved"
"""Folder of saved runs in a project, by kind of lab, for the comparison of its workflow."""
COMPARISON = "comparison.csv"
AVERAGES = "averages.csv"
"""File of the table `averages`; only if the experiment has averages."""
SCORES = "scores.csv"
"""File of the scores of value pairs; only if the experiment compares some."""
MANIFEST = "manifest.json"


TEXTS = frozenset(
    {"name", "title", "description", "compare", "answer", "graphs", "traces", "notes", "captures", "observe"}
    | {"allow_idle", "order", "repetitions", "enough"}
)
"""Keys of an experiment without an effect on the values of a cell: texts, graphs, expectations, and repetitions."""


@dataclass(frozen=True)
class Baseline:
    """A saved baseline, or a run to compare."""

    manifest: Manifest
    rows: tuple[RunValue, ...]
    """Rows of the run's comparison, and its averages."""
    scores: tuple[Score, ...] = ()

    def requested_rows(self, other: Baseline) -> tuple[RunValue, ...]:
        """Return the run's rows except those that it or the other one, a partial run, was not asked for."""
        return common_values(self.rows, self.left_out, other.left_out)

    @cached_property
    def left_out(self) -> LeftOutTest:
        """Return a function that is true for values that the run was not asked for."""
        cells = ((cell.arm, cell.parameters) for cell in self.manifest.cells)
        return left_out_test(self.manifest.overrides, cells)


def read_comparison_rows(comparison: Path) -> tuple[RunValue, ...]:
    """Return the rows of a `comparison.csv`. Raise `UserError` if it is missing or is another kind of file."""
    return _table(comparison, RunValue.from_row)


def _table(path: Path, of: Callable[[Mapping[str, object]], _Row]) -> tuple[_Row, ...]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return tuple(map(of, csv.DictReader(file)))
    except (OSError, KeyError, ValueError, ArithmeticError, csv.Error) as error:
        raise UserError(f"{path}: found no table of a run's results ({error})") from error


def save_baseline(folder: RunFolder, top: Path) -> Path:
    """Save a run as the baseline of its experiment and lab, replacing an earlier one; return the baseline folder."""
    manifest = folder.manifest()
    kept = top / BASELINES / manifest.experiment.name / manifest.lab
    replace(kept / COMPARISON, (folder.path / COMPARISON).read_bytes())
    replace(kept / MANIFEST, reduce_manifest(manifest))
    for name in (AVERAGES, SCORES):
        if (folder.path / name).exists():
            replace(kept / name, (folder.path / name).read_bytes())
        else:
            (kept / name).unlink(missing_ok=True)
    return kept


def reduce_manifest(manifest: Manifest) -> bytes:
    """Return the content of a manifest with only the settings that a comparison reads.

    The cells of an arm are in one line.

    Omitted are defaults, parts of the experiment in `TEXTS`, and the provenance of the run except time and version.
    """
    experiment = manifest.experiment.model_dump(
        mode="json", exclude_defaults=True, exclude=set(TEXTS) - {"name", "title"}
    )
    span = Session(started=manifest.started, ended=manifest.started + timedelta(seconds=manifest.took_s or 0))
    run: dict[str, object] = {
        "format": manifest.format,
        "lab": manifest.lab,
        "started": manifest.started.isoformat(),
        "ended": None if manifest.ended is None else manifest.ended.isoformat(),
        "sessions": [span.model_dump(mode="json", exclude_defaults=True)],
        "commit": manifest.commit,
        "versions": {"qoslab": manifest.versions.get("qoslab", "")},
        "overrides": list(manifest.overrides),
    }
    lines = [_members(run), _members({"experiment": experiment}), _members({"configurations": manifest.configurations})]
    cells: dict[str, list[str]] = {}
    for cell in manifest.cells:
        read = {"arm": cell.arm, "parameters": cell.parameters, "repetition": cell.repetition, "valid": cell.valid}
        read |= {"spared": cell.spared} if cell.spared else {}
        cells.setdefault(cell.arm, []).append(json.dumps(read, ensure_ascii=False))
    listed = ",\n    ".join(map(", ".join, cells.values()))
    text = "{\n  " + ",\n  ".join([*lines, f'"cells": [\n    {listed}']) + "\n]}\n"
    return add_seal(text.encode())


def _members(values: Mapping[str, object]) -> str:
    """Return the members of a JSON object in one line, without its braces."""
    return json.dumps(values, ensure_ascii=False)[1:-1]


def experiment_baselines(top: Path, name: str) -> dict[str, Baseline]:
    """Return the baselines of an experiment by kind of lab."""
    folders = sorted(path.parent for path in (top / BASELINES / name).glob(f"*/{COMPARISON}"))
    return {folder.name: read(folder) for folder in folders}


def read(folder: Path) -> Baseline:
    """Read a baseline or a run from its folder."""
    averages, scores = folder / AVERAGES, folder / SCORES
    return Baseline(
        RunFolder(folder).manifest(),
        read_comparison_rows(folder / COMPARISON)
        + (_table(averages, RunValue.from_average_row) if averages.exists() else ()),
        _table(scores, Score.from_row) if scores.exists() else (),
    )


def otherwise(experiment: Experiment, configurations: Mapping[str, str], then: Manifest) -> Iterator[str]:
    """Yield the places in the experiment file of the measurements that have changed since a run, as text.

    `configurations` are the digests of all rendered configurations, by cell and device, as in a manifest. Changes of
    texts, charts and expectations are ignored, since they do not affect measured values.
    """
    now, before = (
        each.model_dump(mode="json", exclude=set(TEXTS) | {"arms"}) for each in (experiment, then.experiment)
    )
    yield from (name for name in now if now[name] != before[name])
    arms, earlier = (
        {arm.name: arm.model_dump(mode="json", exclude={"title"}) for arm in each.arms}
        for each in (experiment, then.experiment)
    )
    yield from (f"arms.{name}" for name in arms if name in earlier and arms[name] != earlier[name])
    yield from (f"arms.{name} (new)" for name in arms if name not in earlier)
    yield from (f"arms.{name} (gone)" for name in earlier if name not in arms)
    other = [name for name, digest in configurations.items() if then.configurations.get(name, digest) != digest]
    yield from dict.fromkeys(f"configuration of {name.split('/')[-1]} in {name.split('/')[0]}" for name in other)


def changes(now: Sequence[RunValue], then: Sequence[RunValue], difference: float) -> Iterator[str]:
    """Yield the differences from a baseline, one sentence each, in the order of the rows.

    Differences are a different verdict, a new or missing row, a value that is measured in only one of the two runs, and
    a value that has moved by more than `difference`, a share of the greater value.
    """
    before = {row.key: row for row in then}
    for row in now:
        old = before.pop(row.key, None)
        if old is None:
            yield f"{row.place}: new row, {row.verdict}"
        elif row.verdict != old.verdict:
            yield f"{row.place}: {row.verdict}, was {old.verdict} ({_change_text(row, old)})"
        elif row.has_changed_from(old, difference):
            yield f"{row.place}: {_change_text(row, old)}"
    yield from (f"{row.place}: is gone" for row in before.values())


def _change_text(row: RunValue, old: RunValue) -> str:
    return f"{_measured_text(row)}, was {_measured_text(old)}"


def _measured_text(row: RunValue) -> str:
    return "not measured" if row.measured is None else f"{row.measured:.6g} {row.unit}"
