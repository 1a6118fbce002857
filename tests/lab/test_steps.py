"""Steps of real cells against the plan: each experiment file in virtual time, two in the virtual lab."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from experiment_files import simulated_experiments
from qoslab.lab_kinds import lab_kind
from qoslab.model.units import Duration
from qoslab.plan import Options, make_plan
from qoslab.results import Cell, CellRecord
from qoslab.run.cell.journal import step_keys
from qoslab.run.task import make_task
from qoslab.run.workers import lab_machinery
from qoslab.run.workers.base import WorkerSlot
from qoslab.schema import load_sweep

pytestmark = pytest.mark.lab

EXPERIMENTS = simulated_experiments()


def run_first_cell(lab: str, file: Path, folder: Path) -> tuple[CellRecord, tuple[str, ...]]:
    """Run an experiment's first configured cell with little traffic; return its record and the keys of its plan."""
    kind = lab_kind(lab)
    sweep = load_sweep(file, {}, kind.check)
    # Probes wait until queues are full.
    seconds = 8 if sweep.experiment.probes else 3
    plan = make_plan(sweep, Options(lab=lab, duration=Duration(seconds * 10**9)))
    planned = next((cell for cell in plan.cells if cell.experiment.arms[0].configure), plan.cells[0])
    runs = lab_machinery(kind)
    task = make_task(planned, runs.versions("", planned.experiment))
    notes: list[str] = []
    shared = runs.shared()

    def tell(cell: str, step: str, seconds: float | None = None) -> None:
        notes.append(step)

    slot = WorkerSlot(0, "lab", folder / "restore", shared, tell, print, threading.Event())
    try:
        with runs.worker(slot) as worker:
            record = worker.run(task, Cell(folder / "cell", task.identity))
    finally:
        shared.close()
    assert [step for step in notes if step in step_keys(planned.steps)] == [step.name for step in record.steps]
    return record, step_keys(planned.steps)


@pytest.mark.sample(8)
@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda file: file.stem)
def test_steps_of_simulated_cells_match_the_plan(file: Path, tmp_path: Path) -> None:
    record, planned = run_first_cell("simulated", file, tmp_path)
    assert tuple(step.name for step in record.steps) == planned
    assert all(step.ended is not None for step in record.steps)


@pytest.mark.long
@pytest.mark.parametrize("name", ["srr-3750", "policing-vs-shaping"])
def test_steps_of_virtual_cells_match_the_plan(name: str, tmp_path: Path) -> None:
    """Run cells with captures, and observations at all triggers; the switch lacks some."""
    (file,) = [file for file in EXPERIMENTS if file.stem == name]
    record, planned = run_first_cell("virtual", file, tmp_path)
    assert tuple(step.name for step in record.steps) == planned
    assert all(step.ended is not None for step in record.steps)
