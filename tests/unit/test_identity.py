"""Results are those of the very programs and sources that made them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from test_schedule import GRID

from experiment_files import experiment_file
from qoslab.cli import main
from qoslab.errors import UserError
from qoslab.plan import Cell, Options, make_plan
from qoslab.programs import own_program
from qoslab.results import find_run
from qoslab.run import identity
from qoslab.run.cluster import worker
from qoslab.run.cluster.remote import VersionError, outcome_of, plain_task
from qoslab.run.task import cell_key, make_task
from qoslab.schema import load_sweep
from verdicts import newest_run, status_of

EXPERIMENT = Path(__file__).parents[2] / "experiments" / "policing-vs-shaping.yml"


@pytest.fixture
def planned(tmp_path: Path) -> Cell:
    sweep = load_sweep(experiment_file(tmp_path, "grid.yml", GRID), {})
    return make_plan(sweep, Options(lab="simulated")).cells[0]


@pytest.fixture
def another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A simulator that says the same of its version and has other bytes."""
    program = Path(shutil.copy(own_program("qos-sim"), tmp_path / "qos-sim"))
    with program.open("ab") as handle:
        handle.write(b"\0")
    monkeypatch.setenv("QOSLAB_QOS_SIM", str(program))
    return program


def test_another_program_is_another_result(
    planned: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    before = cell_key(planned, {})
    assert cell_key(planned, {}) == before
    request.getfixturevalue("another")
    assert cell_key(planned, {}) != before
    monkeypatch.delenv("QOSLAB_QOS_SIM")
    assert cell_key(planned, {}) == before
    # The data plane of the virtual lab has no part in it.
    monkeypatch.setenv("QOSLAB_QOS_ROUTER", "/bin/true")
    assert cell_key(planned, {}) == before


def test_other_sources_are_another_result(planned: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, own = cell_key(planned, {}), identity.made_with(("qos-sim",))
    monkeypatch.setattr(identity, "sources", lambda: "0" * 64)
    assert cell_key(planned, {}) != before
    assert identity.made_with(("qos-sim",)) != own


def test_sources_are_those_that_have_a_part_in_results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names = [name for name, _ in identity._sources()]
    assert {"qoslab/run/task.py", "qoslab/simulation/scenario.py", "qoslab/ios/compile.py"} <= set(names)
    assert any(name.startswith("playbooks/") for name in names)
    assert not any("/report/" in name or "__pycache__" in name for name in names)
    copy = tmp_path / "task.py"
    copy.write_text("changed")
    changed = [(name, copy if name == "qoslab/run/task.py" else path) for name, path in identity._sources()]
    before = identity.sources()
    monkeypatch.setattr(identity, "_sources", lambda: iter(changed))
    identity.sources.cache_clear()
    try:
        assert identity.sources() != before
    finally:
        identity.sources.cache_clear()


def test_a_worker_with_another_program_is_refused(planned: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    task = make_task(planned, {})
    sent = plain_task(task)
    ours = sent["version"]
    assert identity.sources()[:16] in ours and "qos-sim " in ours
    monkeypatch.setattr(identity, "program", lambda name: "f" * 64)
    said = worker.run_cell(sent)
    assert said == {"version": ours.rpartition(" ")[0] + " " + "f" * 16}
    monkeypatch.undo()
    with pytest.raises(VersionError, match=rf"has qoslab .* qos-sim f{{16}}, this is qoslab {ours}") as caught:
        outcome_of(task, said)
    assert isinstance(caught.value, UserError) and "same programs" in caught.value.hint


def test_a_run_names_what_made_it_and_resumes_with_that_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], another: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["--lab", "simulated", "--duration", "1s", "--arm=policed"]
    status = main(["run", str(EXPERIMENT), *arguments])
    assert status == status_of(newest_run(tmp_path)) in (0, 1)
    run = find_run(Path("runs"))
    versions = run.manifest().versions
    assert versions["qos-sim, program"] == f"SHA-256 {identity.program('qos-sim')}"
    assert versions["qoslab, sources"] == f"SHA-256 {identity.sources()}"
    assert versions["QOSLAB_QOS_SIM"] == str(another)
    monkeypatch.delenv("QOSLAB_QOS_SIM")
    status = main(["run", "--resume", str(run.path)])
    assert status == status_of(run.path) in (0, 1)
    (cell,) = run.manifest().cells
    assert cell.folder == "cells/policed/1.2"
    assert cell.earlier[0].reasons == ("what defines the cell was another then",)
    assert "QOSLAB_QOS_SIM" not in run.manifest().versions
