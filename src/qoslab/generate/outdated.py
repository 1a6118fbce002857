"""Comparison of a baseline with the current experiment file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from qoslab.analysis.judged import judge
from qoslab.analysis.result_files import to_json
from qoslab.lab_kinds import LABS
from qoslab.model.experiment import Experiment
from qoslab.model.matrix import as_texts
from qoslab.model.run_values import Key, RunValue
from qoslab.plan import Options, make_plan
from qoslab.results import CellSummary, tables
from qoslab.results.baselines import Baseline, otherwise
from qoslab.run.provenance import configuration_digest
from qoslab.run.task import make_task
from qoslab.schema import load_sweep, published_values


def find_outdated(baseline: Baseline, file: Path) -> Iterator[str]:
    """Yield the changes of an experiment file since the baseline's run as text; nothing without such a file.

    Changes of the measurement require a new run. Expectations count as changed if they are new or removed, have other
    bounds, or relate differently to the published value. Changed wording does not count: `update_remarks` updates
    it.
    """
    if not file.exists():
        return
    experiment, configurations, expected = _current_state(file, file.read_bytes(), baseline.manifest.lab)
    if parts := list(otherwise(experiment, configurations, baseline.manifest)):
        yield f"settings that changed: {', '.join(parts)}"
    before = _expected_rows(baseline.rows)
    both = [(row, before[key]) for key, row in expected.items() if key in before]
    counts = {
        "new": len(expected) - len(both),
        "gone": len(before) - len(both),
        "with other bounds": sum(now.tolerance != was.tolerance for now, was in both),
        "with another verdict on the published value": sum(now.reproduction != was.reproduction for now, was in both),
    }
    if found := [f"{count} {words}" for words, count in counts.items() if count]:
        yield f"expectations: {', '.join(found)}"


def update_remarks(baseline: Baseline, file: Path) -> Baseline:
    """Return the baseline with the explanations of the current experiment file, if the expectation is unchanged."""
    if not file.exists():
        return baseline
    _, _, expected = _current_state(file, file.read_bytes(), baseline.manifest.lab)

    def present(row: RunValue) -> RunValue:
        now = expected.get(row.key)
        same = now is not None and (now.tolerance, now.reproduction) == (row.tolerance, row.reproduction)
        return replace(row, explanation=now.explanation) if now is not None and same else row

    return replace(baseline, rows=tuple(map(present, baseline.rows)))


@lru_cache(maxsize=64)
def _current_state(
    file: Path, _content: bytes, lab: str
) -> tuple[Experiment, Mapping[str, str], Mapping[Key, RunValue]]:
    """Return the experiment, the digests of its configurations as in a manifest, and its expectations."""
    plan = make_plan(load_sweep(file, {}, LABS[lab].check), Options(lab=lab))
    configurations: dict[str, str] = {}
    cells = []
    for cell in plan.cells:
        task = make_task(cell, {})
        name = task.name.removesuffix(f"/{task.identity.repetition}")
        configurations |= {
            f"{name}/{device}": configuration_digest(text.encode()) for device, text in task.configurations.items()
        }
        texts = as_texts(dict(task.identity.parameters))
        cells.append(CellSummary(arm=cell.arm, parameters=texts, repetition=task.identity.repetition, valid=True))
    judged = judge(plan.experiment, published_values(file, plan.experiment), tables.frame("metrics", []), cells, lab)
    rows = map(RunValue.from_row, json.loads(to_json(judged.comparison)))
    averages = map(RunValue.from_average_row, json.loads(judged.averages.to_json(orient="records")))
    return plan.experiment, configurations, _expected_rows([*rows, *averages])


def _expected_rows(rows: Iterable[RunValue]) -> dict[Key, RunValue]:
    return {row.key: row for row in rows if row.tolerance}
