"""Plan of a cell: the steps that open in a cell are the planned ones, in the same order.

`tests/lab/test_steps.py` compares with real cells.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from levels import every_nth
from qoslab.errors import ExperimentError
from qoslab.lab_kinds import LABS, LabKind
from qoslab.model.instants import DURING, observation_time
from qoslab.model.units import Duration
from qoslab.plan import Cell as PlannedCell
from qoslab.plan import Options, make_plan
from qoslab.results import Cell
from qoslab.run.cell.journal import CellJournal, step_keys
from qoslab.run.task import CellTask
from qoslab.schema import load_sweep

EXPERIMENTS = sorted((Path(__file__).parents[2] / "experiments").glob("*.yml"))
DEFAULT = next(kind for kind in LABS.values() if kind.is_default)
ROOMS = ("qoslab.run.workers.", "qoslab.run.cell.")
"""Places that open steps."""


def steps_opened_by(name: str) -> list[ModuleType]:
    """Modules that open the steps of a cell in a kind of lab, in their order."""
    found = [import_module(f"{ROOMS[0]}{name}")]
    for module in found:
        statements = (node for node in ast.walk(syntax(module)) if isinstance(node, ast.ImportFrom) and node.module)
        names = (str(node.module) for node in statements)
        found += [each for each in map(import_module, filter(is_in_module, names)) if each not in found]
    return [module for module in found if list(opened_steps(module))]


def is_in_module(name: str) -> bool:
    return name.startswith(ROOMS)


def syntax(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


@cache
def cells(kind: LabKind, file: Path) -> list[PlannedCell]:
    """Return the first cell of each arm of an experiment file, in a kind of lab; none if that cannot run it."""
    try:
        sweep = load_sweep(file, {}, kind.check)
    except ExperimentError:
        assert not kind.is_default, "every experiment file can be run"
        return []
    return list({cell.arm: cell for cell in reversed(make_plan(sweep, Options(lab=kind.name)).cells)}.values())


def cells_of(kind: LabKind) -> list[PlannedCell]:
    return [cell for file in EXPERIMENTS[:: every_nth(6)] for cell in cells(kind, file)]


def opened_steps(module: ModuleType) -> Iterator[str]:
    """Return the keys that a module opens, in the order of its lines: `journal.step(KEY)`."""
    calls = [
        node
        for node in ast.walk(syntax(module))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "step"
    ]
    for call in sorted(calls, key=lambda call: call.lineno):
        assert isinstance(call.args[0], ast.Name), "a step is opened by the name of its key"
        yield str(getattr(module, call.args[0].id))


def journal_of(cell: PlannedCell, folder: Path) -> CellJournal:
    task = CellTask(cell.identity, cell.experiment, {}, key="", lab=cell.lab)
    return CellJournal(task, Cell(folder, cell.identity), lambda *_: None)


@pytest.mark.parametrize("kind", LABS.values(), ids=lambda kind: kind.name)
def test_executed_steps_equal_the_planned_steps(kind: LabKind, tmp_path: Path) -> None:
    everything = [key for module in steps_opened_by(kind.name) for key in opened_steps(module)]
    planned_somewhere: set[str] = set()
    planned_cells = cells_of(kind)
    assert len(planned_cells) > 1
    for cell in planned_cells:
        journal = journal_of(cell, tmp_path)
        for key in everything:
            with journal.step(key):
                pass
        planned = step_keys(cell.steps)
        assert tuple(step.name for step in journal.steps) == planned, cell.name
        assert kind.turn & set(planned), "something of it keeps others from having traffic"
        assert [step.key for step in cell.steps] == sorted((step.key for step in cell.steps), key=planned.index)
        planned_somewhere |= {step.key for step in cell.steps}
    assert planned_somewhere == set(everything)


def test_modules_that_open_steps_are_found() -> None:
    names = [module.__name__ for module in steps_opened_by("virtual")]
    assert names == [f"{ROOMS[0]}measured", f"{ROOMS[1]}measure"]
    assert [module.__name__ for module in steps_opened_by("simulated")] == [f"{ROOMS[0]}simulated"]


def test_steps_out_of_order_are_refused(tmp_path: Path) -> None:
    cell = cells(DEFAULT, EXPERIMENTS[0])[0]
    first, second, *_ = step_keys(cell.steps)
    journal = journal_of(cell, tmp_path)
    with journal.step(second):
        pass
    refused = pytest.raises(ValueError, match=f'"{first}" comes after "{second}", but precedes it in the plan')
    with refused, journal.step(first):
        pass


def test_interrupted_step_has_no_end(tmp_path: Path) -> None:
    cell = cells(DEFAULT, EXPERIMENTS[0])[0]
    journal = journal_of(cell, tmp_path)
    with pytest.raises(KeyError), journal.step(step_keys(cell.steps)[0]):
        raise KeyError
    (step,) = journal.write(broken=True).steps
    assert step.ended is None
    assert (tmp_path / "cell.json").exists()


def test_trigger_during_is_two_thirds_into_the_traffic() -> None:
    assert observation_time(Duration(30 * 10**9)) == Duration(20 * 10**9)
    assert observation_time(Duration(10)) == Duration(6)
    assert 3 * DURING == 2


def test_observations_are_planned_at_the_triggers_of_the_experiment() -> None:
    def observation_names(cell: PlannedCell) -> list[tuple[str, str]]:
        wanted = [each for each in cell.experiment.observe if not each.arms or cell.arm in each.arms]
        return sorted((each.node, str(moment)) for each in wanted for moment in each.moments)

    for cell in (cell for kind in LABS.values() if kind.real_time for cell in cells_of(kind)):
        planned = [(step.nodes[0], step.moment) for step in cell.steps if step.kind == "observe"]
        assert sorted(planned) == observation_names(cell)
