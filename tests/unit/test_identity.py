"""Results belong to the exact programs and sources that made them."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from syntax import statements
from test_schedule import GRID

from experiment_files import experiment_file
from qoslab.cli import main
from qoslab.errors import UserError
from qoslab.model.instants import MeasurementDemand
from qoslab.plan import Cell, Options, make_plan
from qoslab.results import find_run
from qoslab.run import identity
from qoslab.run.cluster import remote_worker
from qoslab.run.cluster.remote import VersionError, parse_outcome, serialise_task
from qoslab.run.task import CellTask, cell_key, make_task
from qoslab.schema import load_sweep
from qoslab.system.programs import find_own_program
from verdicts import newest_run, status_of

SOURCES = Path(identity.__file__).parents[2]
EXPERIMENT = Path(__file__).parents[2] / "experiments" / "policing-vs-shaping.yml"


@pytest.fixture
def planned_cell(tmp_path: Path) -> Cell:
    sweep = load_sweep(experiment_file(tmp_path, "grid.yml", GRID), {})
    return make_plan(sweep, Options(lab="simulated")).cells[0]


@pytest.fixture
def other_simulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provide a simulator with the same version and other bytes."""
    program = Path(shutil.copy(find_own_program("qos-sim"), tmp_path / "qos-sim"))
    with program.open("ab") as handle:
        handle.write(b"\0")
    monkeypatch.setenv("QOSLAB_QOS_SIM", str(program))
    return program


def test_changed_program_changes_the_result_key(
    planned_cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    before = cell_key(planned_cell, {})
    assert cell_key(planned_cell, {}) == before
    request.getfixturevalue("other_simulator")
    assert cell_key(planned_cell, {}) != before
    monkeypatch.delenv("QOSLAB_QOS_SIM")
    assert cell_key(planned_cell, {}) == before
    # The data plane of the virtual lab is not involved.
    monkeypatch.setenv("QOSLAB_QOS_ROUTER", "/bin/true")
    assert cell_key(planned_cell, {}) == before


def test_changed_sources_change_the_result_key(
    planned_cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, own = cell_key(planned_cell, {}), identity.software_line(("qos-sim",))
    monkeypatch.setattr(identity, "hash_sources", lambda: "0" * 64)
    assert cell_key(planned_cell, {}) != before
    assert identity.software_line(("qos-sim",)) != own


def test_sources_include_every_module_that_affects_results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names = [name for name, _ in identity._source_files()]
    assert {"qoslab/run/task.py", "qoslab/simulation/scenario.py", "qoslab/ios/compile.py"} <= set(names)
    assert any(name.startswith("playbooks/") for name in names)
    assert not any("/report/" in name or "__pycache__" in name for name in names)
    copy = tmp_path / "task.py"
    copy.write_text("changed")
    changed = [(name, copy if name == "qoslab/run/task.py" else path) for name, path in identity._source_files()]
    before = identity.hash_sources()
    monkeypatch.setattr(identity, "_source_files", lambda: iter(changed))
    identity.hash_sources.cache_clear()
    try:
        assert identity.hash_sources() != before
    finally:
        identity.hash_sources.cache_clear()


def module_file(name: str) -> Path | None:
    """Return the file of a module of qoslab; None for another module."""
    path = SOURCES.joinpath(*name.split("."))
    found = (path / "__init__.py", path.with_suffix(".py"))
    return next((each for each in found if each.exists()), None)


def imported_modules(path: Path) -> Iterator[str]:
    """Return the modules of qoslab that a module imports, except for annotations."""
    for node in statements(path.read_text(encoding="utf-8")):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body.clear()
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module is not None
            inner = ((f"{node.module}.{each.name}") for each in node.names)
            yield from (each if module_file(each) else node.module for each in inner)


def test_sources_include_every_module_that_affects_validity() -> None:
    """Compare the imports of `run` with the sources: those imported only by readers do not belong to them."""
    inner = (path.relative_to(SOURCES).with_suffix("") for path in (SOURCES / "qoslab/run").rglob("*.py"))
    left = {".".join(each.parts).removesuffix(".__init__") for each in inner}
    reached: set[str] = set()
    while left:
        name = left.pop()
        if name not in reached and (path := module_file(name)) is not None:
            reached.add(name)
            left |= set(imported_modules(path))
    assert {"qoslab.run.cell.journal", "qoslab.results.folder", "qoslab.analysis.conservation"} <= reached
    files = {path.relative_to(SOURCES).as_posix() for name in reached if (path := module_file(name)) is not None}
    named = {name for name, _ in identity._source_files()}
    assert sorted(files - named) == []
    readers = {name.removeprefix("qoslab/") for name in named if name.split("/")[1] in identity.READERS}
    assert readers == identity.RESULT_DEFINING_PACKAGES == {each for each in readers if f"qoslab/{each}" in files}


def test_worker_with_another_program_is_refused(planned_cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    task = make_task(planned_cell, {})
    sent = serialise_task(task)
    ours = sent["version"]
    assert identity.hash_sources()[:16] in ours and "qos-sim " in ours
    monkeypatch.setattr(identity, "hash_program", lambda name: "f" * 64)
    reply = remote_worker.run_cell(sent)
    assert reply == {"version": ours.rpartition(" ")[0] + " " + "f" * 16}
    monkeypatch.undo()
    with pytest.raises(VersionError, match=rf"has qoslab .* qos-sim f{{16}}, this is qoslab {ours}") as caught:
        parse_outcome(task, reply)
    assert isinstance(caught.value, UserError) and "same programs" in caught.value.hint


def test_requirements_of_expectations_reach_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the expectations of the experiment, here and at a remote worker."""
    reported: dict[str, MeasurementDemand] = {}

    class Worker:
        def run(self, task: CellTask, cell: object) -> None:
            assert task.experiment.compare is None
            reported[task.identity.arm] = task.demand
            raise UserError("enough")

    monkeypatch.setattr(remote_worker, "_thread_worker", lambda lab: (Worker(), Path()))
    for name, arms in (("policing-vs-shaping", {"unrestricted", "policed", "shaped"}), ("tx-ring-limit", {"cbr"})):
        plan = make_plan(load_sweep(EXPERIMENT.with_name(f"{name}.yml"), {}), Options(lab="simulated"))
        for cell in plan.cells:
            if cell.identity.arm in arms:
                arms.remove(cell.identity.arm)
                assert "enough" in remote_worker.run_cell(serialise_task(make_task(cell, {})))["error"]
    asked = {
        "policed": MeasurementDemand(needs_counter_triggers=True),
        "shaped": MeasurementDemand(times_s=(5.7,)),
        "cbr": MeasurementDemand(depends_on_one_packet=True),
    }
    assert reported == {"unrestricted": MeasurementDemand(), **asked}


def test_changed_trigger_changes_the_result_key(tmp_path: Path) -> None:
    def keys(file: Path) -> dict[str, str]:
        plan = make_plan(load_sweep(file, {}), Options(lab="simulated"))
        return {cell.identity.arm: cell_key(cell, {}) for cell in plan.cells}

    for folder in ("experiments", "reports/published"):
        shutil.copytree(EXPERIMENT.parents[1] / folder, tmp_path / folder)
    for name in ("experiments/policing-vs-shaping.yml", "reports/published/policing-vs-shaping.csv"):
        (tmp_path / name).write_text((tmp_path / name).read_text().replace("@ time 5.7 s", "@ time 5.6 s"))
    before, after = keys(EXPERIMENT), keys(tmp_path / "experiments" / EXPERIMENT.name)
    assert {arm for arm, key in before.items() if after[arm] != key} == {"shaped"}


def test_run_resumes_only_with_its_original_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], other_simulator: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["--lab", "simulated", "--duration", "1s", "--arm=policed"]
    status = main(["run", str(EXPERIMENT), *arguments])
    assert status == status_of(newest_run(tmp_path)) in (0, 1)
    run = find_run(Path("runs"))
    versions = run.manifest().versions
    assert versions["qos-sim, program"] == f"SHA-256 {identity.hash_program('qos-sim')}"
    assert versions["qoslab, sources"] == f"SHA-256 {identity.hash_sources()}"
    assert versions["QOSLAB_QOS_SIM"] == str(other_simulator)
    monkeypatch.delenv("QOSLAB_QOS_SIM")
    status = main(["run", "--resume", str(run.path)])
    assert status == status_of(run.path) in (0, 1)
    (cell,) = run.manifest().cells
    assert cell.folder == "cells/policed/1.2"
    assert cell.earlier[0].reasons == ("the definition of the cell has changed since",)
    assert "QOSLAB_QOS_SIM" not in run.manifest().versions
