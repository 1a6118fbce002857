"""Remaining cells of a sweep, the number of its labs, and the cells of a value."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest
from test_sweep import CALM_GRID, GRID

from experiment_files import experiment_file
from qoslab.analysis import expected_comparison
from qoslab.analysis.measured_values import Planned, measured_value
from qoslab.errors import UserError
from qoslab.model.comparison import PublishedValue
from qoslab.model.expectations import Expectation
from qoslab.model.matrix import as_texts
from qoslab.model.steps import TRAFFIC
from qoslab.plan import Options, Plan, make_plan
from qoslab.results import (
    CellRecord,
    CellSummary,
    Health,
    RunFolder,
    RunOptions,
    SenderRecord,
    Step,
    find_run_to_resume,
    tables,
)
from qoslab.run.attempts import RunCells
from qoslab.run.jobs import PATIENCE, LabCount
from qoslab.run.task import cell_key, make_task
from qoslab.schema import load_published, load_sweep

TOOLS = {"iperf3": "iperf 3.12", "iperf": "iperf 2.1"}
ASKED = RunOptions(file="grid.yml")


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    return experiment_file(tmp_path, "grid.yml", GRID + CALM_GRID)


def plan_cells(file: Path, sets: dict[str, str] | None = None) -> Plan:
    return make_plan(load_sweep(file, sets), Options(only=(("rtt", "10 ms"),)))


def run_cells(folder: RunFolder, plan: Plan) -> RunCells:
    return RunCells(folder, plan.cells, TOOLS)


def run_cell(found: RunCells, folder: RunFolder, name: str, *, valid: bool = True, late: bool = False) -> None:
    """Record an outcome like a worker."""
    task = found.next_task(name)
    cell = folder.cell_folder(task.identity, task.attempt)
    record = CellRecord(
        arm=task.identity.arm,
        parameters=as_texts(task.identity.values),
        repetition=task.identity.repetition,
        attempt=task.attempt,
        key=task.key,
        valid=valid,
        late=late,
        reasons=() if valid else ("it was late",),
    )
    cell.write_experiment(task.experiment)
    cell.write_record(record)
    found.record_outcome(name, record)


def test_resumed_run_measures_only_missing_or_invalid_cells(grid: Path, tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "runs", "grid")
    plan = plan_cells(grid)
    first = run_cells(folder, plan)
    names = list(first.states)
    assert first.find_results() == 0 and [cell.name for cell in first.unfinished_cells] == names
    run_cell(first, folder, names[0])
    run_cell(first, folder, names[1], valid=False, late=True)
    first.next_task(names[2])
    folder.cell_folder(first.states[names[2]].planned.identity).path.mkdir(parents=True)  # and the machine stopped

    again = run_cells(folder, plan)
    assert again.find_results() == 1
    assert [cell.name for cell in again.unfinished_cells] == names[1:]
    run_cell(again, folder, names[1])
    run_cell(again, folder, names[2])
    by_name = {summary.name: summary for summary in again.summaries()}
    assert by_name[names[0]].folder == f"cells/{names[0]}" and by_name[names[0]].earlier == ()
    for name, reason in ((names[1], "it was late"), (names[2], "it was interrupted")):
        assert by_name[name].valid and by_name[name].folder == f"cells/{name}.2"
        assert [(each.folder, each.reasons) for each in by_name[name].earlier] == [(f"cells/{name}", (reason,))]
    assert not by_name[names[3]].valid and by_name[names[3]].folder == ""


def test_changed_template_invalidates_only_its_cells(grid: Path, tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "runs", "grid")
    found = run_cells(folder, plan_cells(grid))
    for name in found.states:
        run_cell(found, folder, name)
    same = run_cells(folder, plan_cells(grid))
    assert same.find_results() == len(same.states) and same.unfinished_cells == []
    template = grid.parent / "templates/police.ios.j2"
    before = template.read_text()
    template.write_text(before + "!\n")
    changed = run_cells(folder, plan_cells(grid))
    assert changed.find_results() == 1
    assert {cell.arm for cell in changed.unfinished_cells} == {"policed"}
    for cell in changed.unfinished_cells:
        run_cell(changed, folder, cell.name)
    summary = next(each for each in changed.summaries() if each.arm == "policed")
    assert summary.folder.endswith("/1.2")
    assert summary.earlier[0].reasons == ("the definition of the cell has changed since",)
    template.write_text(before)
    back = run_cells(folder, plan_cells(grid))
    assert back.find_results() == len(back.states), "the first attempts are results again"
    wider = run_cells(folder, plan_cells(grid, {"matrix.pir": "[1 Mb/s, 2 Mb/s, 5 Mb/s]"}))
    wider.find_results()
    assert {str(cell.parameters["pir"]) for cell in wider.unfinished_cells} == {"2 Mb/s"}


def test_key_of_a_cell_depends_on_its_tools(grid: Path) -> None:
    cell = plan_cells(grid).cells[0]
    key = cell_key(cell, TOOLS)
    assert key == make_task(cell, TOOLS).key == cell_key(cell, TOOLS | {"iperf": "iperf 3000"})
    assert key != cell_key(cell, TOOLS | {"iperf3": "iperf 3.13"})


def test_run_is_locked_against_a_second_process(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "grid")
    with folder.lock_run(ASKED):
        assert folder.options().file == "grid.yml"
        with pytest.raises(UserError, match="another process is working on this run"), folder.lock_run(ASKED):
            pass
    with folder.lock_run(RunOptions(file="other.yml")):
        assert folder.options().file == "other.yml"


def test_run_lock_works_on_nfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lock a regular file that is open for writing: Linux asks an NFS server for such a lock; one on a folder is local.

    No such server is available here: the test examines the locked file, and the message for a server without locks.
    """
    folder = RunFolder.create(tmp_path, "grid")
    held: list[int] = []
    own = fcntl.flock
    monkeypatch.setattr(fcntl, "flock", lambda file, how: held.append(file) or own(file, how))
    with folder.lock_run(ASKED):
        (file,) = held
        assert stat.S_ISREG(os.fstat(file).st_mode)
        assert fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR

    def refuse(file: int, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(UserError, match=r"\.lock: cannot be locked: No locks available"), folder.lock_run(ASKED):
        pass
    monkeypatch.setattr(fcntl, "flock", own)
    (folder.path / ".lock").unlink()
    (folder.path / ".lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=r"\.lock: cannot be written"), folder.lock_run(ASKED):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_run_to_resume_is_found(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="found no run"):
        find_run_to_resume(tmp_path)
    one = RunFolder.create(tmp_path, "grid")
    with one.lock_run(ASKED):
        pass
    two = RunFolder.create(tmp_path, "grid")
    assert find_run_to_resume(tmp_path).path == find_run_to_resume(tmp_path, "grid").path == two.path
    assert find_run_to_resume(tmp_path, str(one.path)).path == one.path
    with pytest.raises(UserError, match=r"found no run\.json"):
        two.options()
    with pytest.raises(UserError, match="found no run 'none'"):
        find_run_to_resume(tmp_path, "none")


class IdleMachine:
    """Idle machine with two processors."""

    processors = 2
    load = 0.2

    def busy_share(self) -> float:
        return self.load


def cell_record(
    cpu_s: float, *, late: bool = False, behind_ns: int = 0, began: datetime | None = None, sent_late_ms: float = 0.1
) -> CellRecord:
    health = Health.model_validate(
        {
            "received": 1,
            "transmitted": 1,
            "lost_input": 0,
            "malformed": 0,
            "unsent": 0,
            "late_over_budget": 0,
            "behind_ns": behind_ns,
            "lateness_ns": {"max": 0, "p50": 0, "p99": 0, "p999": 0, "count": 1},
            "budget_ns": 5_000_000,
        }
    )
    steps = () if began is None else (Step(name=TRAFFIC, started=began),)
    return CellRecord(
        arm="policed",
        repetition=1,
        valid=not late,
        late=late,
        cpu_s=cpu_s,
        health={"R1": health},
        senders={"noise": SenderRecord(shortfall=0.0, late_p99_ms=sent_late_ms)},
        steps=steps,
    )


class TestJobs:
    def jobs(self, grid: Path, fixed: int | None = None) -> tuple[LabCount, object]:
        machine = IdleMachine()
        jobs = LabCount(fixed, 100, machine)  # type: ignore[arg-type]
        experiment = plan_cells(grid).cells[0].experiment  # 2 s of traffic
        return jobs, experiment

    def test_fixed_number_of_labs_never_changes(self, grid: Path) -> None:
        jobs, experiment = self.jobs(grid, 3)
        assert jobs.learn(cell_record(9.0, late=True), experiment) == "" and jobs.labs == jobs.most == 3  # type: ignore[arg-type]

    def test_only_cheap_cells_run_in_parallel(self, grid: Path) -> None:
        jobs, experiment = self.jobs(grid)
        assert (jobs.labs, jobs.most) == (2, 8)
        assert "2 to 3 labs" in jobs.learn(cell_record(0.8), experiment)  # type: ignore[arg-type]
        for _ in range(3):
            jobs.learn(cell_record(0.8), experiment)  # type: ignore[arg-type]
        assert jobs.labs == 4
        jobs.learn(cell_record(3.0), experiment)  # type: ignore[arg-type]
        assert jobs.labs == 1

    def test_late_cells_remove_labs_and_punctual_ones_add_them(self, grid: Path) -> None:
        jobs, experiment = self.jobs(grid)
        for _ in range(7):
            jobs.learn(cell_record(0.4), experiment)  # type: ignore[arg-type]
        assert jobs.labs == 8
        overheads = datetime.now(UTC)
        assert "a router or a sender was late" in jobs.learn(cell_record(0.4, late=True), experiment)  # type: ignore[arg-type]
        assert jobs.labs == 6
        # Late cells that ran in parallel prove nothing about six labs.
        assert jobs.learn(cell_record(0.4, late=True, began=overheads), experiment) == ""  # type: ignore[arg-type]
        assert jobs.labs == 6
        jobs.learn(cell_record(0.4, behind_ns=15_000_000), experiment)  # type: ignore[arg-type]
        for _ in range(PATIENCE * 6 - 1):
            assert jobs.learn(cell_record(0.4), experiment) == ""  # type: ignore[arg-type]
        jobs.learn(cell_record(0.4), experiment)  # type: ignore[arg-type]
        assert jobs.labs == 7

    def test_labs_are_at_least_one_and_none_is_added_on_a_busy_machine(self, grid: Path) -> None:
        jobs, experiment = self.jobs(grid)
        jobs._machine.load = 0.95  # type: ignore[attr-defined]
        jobs.learn(cell_record(0.1), experiment)  # type: ignore[arg-type]
        assert jobs.labs == 2
        for _ in range(5):
            jobs.learn(cell_record(0.1, late=True), experiment)  # type: ignore[arg-type]
        assert jobs.labs == 1

    def test_no_lab_is_added_to_a_nearly_late_machine(self, grid: Path) -> None:
        for nearly in (cell_record(0.1, behind_ns=15_000_000), cell_record(0.1, sent_late_ms=0.6)):
            jobs, experiment = self.jobs(grid)
            assert "2 to 3 labs" in jobs.learn(cell_record(0.1), experiment)  # type: ignore[arg-type]
            assert jobs.learn(nearly, experiment) == "" and jobs.labs == 3  # type: ignore[arg-type]
            assert jobs.learn(cell_record(0.1), experiment) == jobs.add_lab_on_idle_machine() == "" and jobs.labs == 3  # type: ignore[arg-type]

    def test_only_a_cell_run_in_parallel_to_the_last_lab_adds_another(self, grid: Path) -> None:
        jobs, experiment = self.jobs(grid)
        before = datetime.now(UTC)
        assert "2 to 3 labs" in jobs.add_lab_on_idle_machine()
        assert jobs.learn(cell_record(0.1, began=before), experiment) == "" and jobs.labs == 3  # type: ignore[arg-type]
        after = datetime.now(UTC)
        assert "3 to 4 labs" in jobs.learn(cell_record(0.1, began=after), experiment)  # type: ignore[arg-type]
        assert jobs.learn(cell_record(0.1, began=after), experiment) == "" and jobs.labs == 4  # type: ignore[arg-type]
        # It may report fewer at once.
        jobs.learn(cell_record(3.0, began=after), experiment)  # type: ignore[arg-type]
        assert jobs.labs == 1

    def test_check_during_the_run_adds_a_lab_if_processors_are_idle(self, grid: Path) -> None:
        jobs, experiment = self.jobs(grid)
        assert jobs.add_lab_on_idle_machine() == "2 to 3 labs in parallel: the machine is busy for 20% of the time"
        jobs._machine.load = 0.38  # type: ignore[attr-defined]
        assert jobs.add_lab_on_idle_machine() == "" and jobs.labs == 3, (
            "four would make it 51 %, and nobody knows how punctual they are"
        )
        jobs.learn(cell_record(9.0), experiment)  # type: ignore[arg-type]
        assert jobs.labs == 1
        jobs._machine.load = 0.39  # type: ignore[attr-defined]
        assert jobs.add_lab_on_idle_machine() == "1 to 2 labs in parallel: the machine is busy for 39% of the time"
        jobs._machine.load = 0.61  # type: ignore[attr-defined]
        assert jobs.add_lab_on_idle_machine() == "" and jobs.labs == 2  # three would make it 92 %
        fixed, _ = self.jobs(grid, 3)
        assert fixed.add_lab_on_idle_machine() == "" and fixed.labs == 3


class TestWhere:
    def metrics(self) -> pd.DataFrame:
        rows: list[dict[str, object]] = []
        for number, (pir, goodput) in enumerate((("1 Mb/s", 9e5), ("1 Mb/s", 7e5), ("2 Mb/s", 1.8e6)), 1):
            rows.append(
                {
                    "arm": "policed",
                    "repetition": 1,
                    "cell": f"{number}",
                    "metric": "goodput.sum",
                    "unit": "b/s",
                    "value": goodput,
                    "pir": pir,
                }
            )
        table = tables.frame("metrics", rows)
        cells = {str(row["cell"]): {"pir": load_value(str(row["pir"]))} for row in rows}
        return tables.with_parameters(table, cells).assign(valid=[True, False, True])

    def test_value_uses_the_selected_valid_cells(self) -> None:
        metrics = self.metrics()
        assert list(metrics["matrix.pir"]) == [1e6, 1e6, 2e6]

        def figure(table: pd.DataFrame, where: dict[str, object]) -> tuple[float, bool]:
            found = measured_value(table, "policed", "goodput.sum", where)  # type: ignore[arg-type]
            return (found.estimate.value if found.estimate else 0.0), found.trusted

        assert figure(metrics, {"pir": "1 Mb/s"}) == (9e5, True)
        assert figure(metrics, {"pir": ("1 Mb/s", "2 Mb/s")}) == (1.35e6, True)
        assert figure(metrics[1:2], {"pir": "1 Mb/s"}) == (7e5, False)
        assert figure(metrics, {"bucket": 1})[1] is False

    def test_rows_of_a_comparison_name_their_cells(self) -> None:
        expectation = Expectation.model_validate_json(
            '{"arm": "policed", "metric": "goodput.sum", "where": {"pir": "1 Mb/s"}, "at_least": "800 kb/s"}'
        )
        published = (
            PublishedValue("policed", "goodput.sum", "b/s", 850_000.0, "", {"pir": "1 Mb/s"}),
            PublishedValue("policed", "goodput.sum", "b/s", 1_900_000.0, "", {"pir": "2 Mb/s"}),
        )
        table = expected_comparison.compare("An article", self.metrics(), published, [expectation])
        assert table[["where", "published", "measured", "verdict"]].values.tolist() == [
            ["pir = 1 Mb/s", 850_000, 9e5, "within"],
            ["pir = 2 Mb/s", 1_900_000, 1.8e6, "informative"],
        ]

    def test_only_planned_cells_are_compared(self) -> None:
        cells = [CellSummary(arm="policed", parameters={"pir": "1 Mb/s"}, repetition=1, valid=True)]
        assert Planned(cells).has(["policed"], {"pir": "1 Mb/s"}) and Planned(cells).has(["policed"], {})
        assert not Planned(cells).has(["policed"], {"pir": "2 Mb/s"})
        assert not Planned(cells).has(["policed", "shaped"], {})

    def test_published_table_applies_by_parameters(self, tmp_path: Path) -> None:
        file = tmp_path / "figures.csv"
        file.write_text(
            "arm,metric,unit,value,source,pir\na,goodput.sum,b/s,1,text,1 Mb/s\na,goodput.sum,b/s,2,text,\n"
        )
        found = load_published(tmp_path / "e.yml", file.name, ["a"], parameters=["pir", "rtt"])
        assert [dict(each.where) for each in found] == [{"pir": "1 Mb/s"}, {}]
        with pytest.raises(
            UserError,
            match=r"value,source, then any of resolution, kind, moment, place, remark, compared$",
        ):
            load_published(tmp_path / "e.yml", file.name, ["a"])
        file.write_text("arm,metric,unit,value,source,pir\na,goodput.sum,b/s,1,text,1 mb/s\n")
        with pytest.raises(UserError, match='did you mean "1 Mb/s"'):
            load_published(tmp_path / "e.yml", file.name, ["a"], parameters=["pir"])


def load_value(text: str) -> object:
    from qoslab.model.expressions import read_value

    return read_value(text)
