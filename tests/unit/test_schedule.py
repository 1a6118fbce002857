"""Assignment of cells to workers, with workers that run nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from test_sweep import GRID

from experiment_files import experiment_file
from qoslab.cli.run import ATTEMPTS
from qoslab.errors import DeviceError
from qoslab.model.matrix import as_texts
from qoslab.plan import Options, Plan, make_plan
from qoslab.results import CellRecord, RunFolder
from qoslab.run import schedule
from qoslab.run.attempts import RunCells
from qoslab.run.events import RunInterrupted
from qoslab.run.jobs import LabCount
from qoslab.run.schedule import MAX_CONSECUTIVE_FAULTS, MAX_PASSES, WINDOW, CellSchedule
from qoslab.run.task import CellTask
from qoslab.schema import load_sweep
from waiting import wait_until


class Reporter:
    """Recorder of the printed notes of a run."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def cell_done(self, cell: str, *, counts: bool = True) -> None:
        """Ignore the event."""

    def note(self, text: str) -> None:
        self.notes.append(text)


class FakeRun:
    """Sweep with workers whose cells take only the time that a test sets."""

    def __init__(
        self, folder: Path, jobs: int | None, options: Options | None = None, attempts: int = 1, **sets: str
    ) -> None:
        folder.mkdir(exist_ok=True)
        file = experiment_file(folder, "grid.yml", GRID)
        self.plan: Plan = make_plan(load_sweep(file, sets), options or Options())
        self.folder = RunFolder.create(folder / "runs", "grid")
        self.reporter = Reporter()
        self.interrupted = threading.Event()
        self.cells = RunCells(self.folder, self.plan.cells, {})
        self.jobs = LabCount(jobs, len(self.plan.cells))
        self.schedule = CellSchedule(
            self.cells, self.jobs, self.reporter, interrupted=self.interrupted, attempts=attempts
        )
        self.ran: list[tuple[int, str]] = []
        self.with_traffic: set[int] = set()
        self.most = 0
        self.errors: list[BaseException] = []

    def record(self, task: CellTask, **values: Any) -> CellRecord:
        return CellRecord(
            arm=task.identity.arm,
            parameters=as_texts(task.identity.values),
            repetition=task.identity.repetition,
            attempt=task.attempt,
            key=task.key,
            **({"valid": True} | values),
        )

    def work(self, number: int, run: Callable[[CellTask], dict[str, Any]], before_s: float) -> None:
        """Act as a worker, like `qoslab.run.runner`."""
        try:
            while (task := self.schedule.lease(number)) is not None:
                time.sleep(before_s)
                with self.schedule.traffic_turn(number):
                    self.with_traffic.add(number)
                    self.most = max(self.most, len(self.with_traffic))
                    values = run(task)
                    self.with_traffic.remove(number)
                self.ran.append((number, task.name))
                self.schedule.finish(task, self.record(task, **values), worker=number)
        except BaseException as error:
            self.errors.append(error)

    def workers(self, run: Callable[[CellTask], dict[str, Any]], before_s: float = 0.0) -> None:
        threads = [
            threading.Thread(target=self.work, args=(number, run, before_s)) for number in range(self.jobs.workers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()

    def topology(self, name: str) -> tuple[object, object]:
        planned = self.cells.states[name].planned
        return planned.parameters["link"], planned.parameters["rtt"]


def valid_cell(task: CellTask) -> dict[str, Any]:
    time.sleep(0.01)
    return {}


def test_every_cell_runs_once_within_the_parallel_limit(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, 3)
    fake.workers(valid_cell, before_s=0.02)
    assert fake.errors == []
    assert sorted(name for _, name in fake.ran) == sorted(cell.name for cell in fake.plan.cells)
    assert 1 < fake.most <= 3
    assert len({number for number, _ in fake.ran}) > 3, "labs were made ready while others had traffic"
    assert not fake.schedule.has_remaining_cells()


def test_cells_are_prepared_one_by_one_during_other_traffic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeRun(tmp_path, None)
    monkeypatch.setattr(fake.jobs, "labs", 4)
    monkeypatch.setattr(fake.jobs._machine, "processors", 2)
    schedule = fake.schedule
    # Nothing delays the first ones.
    first, second, third = (schedule.lease(number) for number in range(3))
    assert first is not None and second is not None and third is not None
    began: list[int] = []
    more = [
        threading.Thread(target=lambda number=number: schedule.lease(number) and began.append(number))
        for number in (3, 4)
    ]
    with schedule.traffic_turn(0), schedule.traffic_turn(1):
        for thread in more:
            thread.start()
        time.sleep(0.5)
        assert began == []  # the third is still being prepared
        with schedule.traffic_turn(2):
            wait_until(lambda: began, "one of them is being made ready")
            time.sleep(0.2)
            assert len(began) == 1  # not both
            # A cell that fails before its turn also frees its slot.
            schedule.finish(first, fake.record(first), worker=began[0])
            for thread in more:
                thread.join(10)
            assert sorted(began) == [3, 4]


def test_long_cells_get_parallel_labs_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "CHECK_INTERVAL_S", 0.05)
    fake = FakeRun(tmp_path, None)
    monkeypatch.setattr(fake.jobs._machine, "busy_share", lambda: 0.1)
    first = fake.jobs.labs

    def run(task: CellTask) -> dict[str, Any]:
        wait_until(lambda: fake.most > first, "another lab has traffic", 20)
        return {}

    fake.workers(run)
    assert fake.errors == []
    assert f"{first} to {first + 1} labs in parallel: the machine is busy for 10% of the time" in fake.reporter.notes


def test_single_lab_never_becomes_parallel(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, 1)
    assert fake.jobs.workers == 1
    fake.workers(valid_cell)
    assert {number for number, _ in fake.ran} == {0} and fake.errors == []


def test_late_cell_is_invalid_after_all_attempts(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, 2, Options(only=(("connections", "1"),)), attempts=2)
    late = fake.plan.cells[0].name
    fake.workers(
        lambda task: (
            {"valid": False, "late": True, "reasons": ("R1 was late",)} if task.name == late else valid_cell(task)
        )
    )
    assert fake.errors == []
    assert sum(name == late for _, name in fake.ran) == 2
    assert fake.reporter.notes == [
        f"{late} is invalid: R1 was late; re-running it",
        f"{late} is invalid: R1 was late",
    ]
    (summary,) = [each for each in fake.cells.summaries() if not each.valid]
    assert summary.reasons == ("R1 was late",) and len(summary.earlier) == 1
    assert ATTEMPTS == 3, "of a sweep, where nobody says otherwise"


def test_interrupt_wakes_waiting_workers(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, 2)
    begun = threading.Event()

    def run(task: CellTask) -> dict[str, Any]:
        begun.set()
        assert fake.interrupted.wait(20)
        raise RunInterrupted

    threading.Thread(target=lambda: begun.wait(10) and fake.interrupted.set()).start()
    fake.workers(run)
    assert len(fake.errors) == fake.jobs.workers
    assert all(isinstance(error, RunInterrupted) for error in fake.errors)
    assert fake.ran == []


class TestLabReuse:
    """Tests of cells for which a worker can keep its lab."""

    def order(self, tmp_path: Path, workers: int, order: str, repetitions: int = 2) -> tuple[FakeRun, list[str]]:
        fake = FakeRun(tmp_path, workers, Options(order=order, repetitions=repetitions))  # type: ignore[arg-type]
        names = []
        for turn in range(len(fake.plan.cells)):
            task = fake.schedule.lease(turn % workers)
            assert task is not None
            names.append(task.name)
            fake.schedule.finish(task, fake.record(task))
        return fake, names

    def changes(self, fake: FakeRun, names: list[str], workers: int) -> int:
        of = [[fake.topology(name) for name in names[worker::workers]] for worker in range(workers)]
        return sum(one != other for each in of for one, other in pairwise(each))

    def test_random_order_reuses_labs_without_starving_a_cell(self, tmp_path: Path) -> None:
        fake, names = self.order(tmp_path, 2, "random", repetitions=6)
        planned = [cell.name for cell in fake.plan.cells]
        assert sorted(names) == sorted(planned)
        assert self.changes(fake, names, 2) < self.changes(fake, planned, 2) / 2
        for name in names:
            assert abs(names.index(name) - planned.index(name)) <= WINDOW + MAX_PASSES

    def test_blocks_end_before_the_next_begins(self, tmp_path: Path) -> None:
        fake, names = self.order(tmp_path, 2, "blocked", repetitions=3)
        each = len(names) // 3
        assert [name[-1] for name in names] == ["1"] * each + ["2"] * each + ["3"] * each
        assert names != [cell.name for cell in fake.plan.cells]

    def test_order_as_written_is_that_of_the_file(self, tmp_path: Path) -> None:
        fake, names = self.order(tmp_path, 3, "as written")
        assert names == [cell.name for cell in fake.plan.cells]


class TestSpareLabs:
    @pytest.fixture
    def fake(self, tmp_path: Path) -> FakeRun:
        return FakeRun(tmp_path, 4, Options(repetitions=3))

    def test_number_of_labs_keeps_traffic_running(self, fake: FakeRun) -> None:
        task = fake.schedule.lease(0)
        assert task is not None
        assert (fake.jobs.labs, fake.jobs.spare_labs) == (4, 1)
        fake.jobs.learn(fake.record(task), task.experiment)  # 2 s of traffic
        for overhead_s, spare in ((0.1, 1), (0.6, 2), (1.5, 3), (60.0, 4)):
            for _ in range(20):
                fake.jobs.record_pace(overhead_s)
            assert fake.jobs.spare_labs == spare

    def test_no_lab_is_added_without_further_cells(self, tmp_path: Path) -> None:
        assert LabCount(4, 4).spare_labs == 0 and LabCount(4, 5).workers == 5 and LabCount(None, 1).workers == 1


def broken_lab(task: CellTask) -> dict[str, Any]:
    return {"valid": False, "fault": True, "reasons": ("the lab stopped:  R1: its daemon was killed by SIGKILL",)}


def test_cell_of_a_failed_lab_is_retried(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, 1, attempts=3)
    names = [cell.name for cell in fake.plan.cells]
    tried: dict[str, int] = {}

    def fail_once(task: CellTask) -> dict[str, Any]:
        tried[task.name] = tried.get(task.name, 0) + 1
        return broken_lab(task) if task.name == names[1] and tried[task.name] == 1 else {}

    fake.workers(fail_once)
    assert fake.errors == []
    assert tried == {name: 2 if name == names[1] else 1 for name in names}
    assert all(entry.valid for entry in fake.cells.states.values())
    assert any("killed by SIGKILL; re-running it" in note for note in fake.reporter.notes)


def test_cell_with_different_counts_is_retried(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, 1, attempts=2)
    name = fake.plan.cells[1].name
    tried: list[str] = []

    def disagree_once(task: CellTask) -> dict[str, Any]:
        tried.append(task.name)
        if task.name == name and tried.count(name) == 1:
            return {"valid": False, "disagreeing": True, "reasons": ("R1 counts 9 packets that are unaccounted for",)}
        return {}

    fake.workers(disagree_once)
    assert fake.errors == [] and tried.count(name) == 2 and len(tried) == len(fake.plan.cells) + 1
    assert fake.cells.states[name].valid
    assert f"{name} is invalid: R1 counts 9 packets that are unaccounted for; re-running it" in fake.reporter.notes


def test_lab_that_always_fails_ends_the_run(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, 1, attempts=3)
    fake.workers(broken_lab)
    assert len(fake.ran) == MAX_CONSECUTIVE_FAULTS
    (error,) = fake.errors
    assert isinstance(error, DeviceError)
    assert f"the lab failed {MAX_CONSECUTIVE_FAULTS} times in a row" in error.message and "SIGKILL" in error.message


def test_occasional_faults_do_not_end_the_run(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, 1, attempts=2)
    count = 0

    def fail_mostly(task: CellTask) -> dict[str, Any]:
        nonlocal count
        count += 1
        return {} if count % MAX_CONSECUTIVE_FAULTS == 0 else broken_lab(task)

    fake.workers(fail_mostly)
    assert fake.errors == []
    assert all(entry.tried in (1, 2) for entry in fake.cells.states.values())


@pytest.mark.parametrize("jobs", [None, 3], ids=["found out", "asked for"])
def test_last_attempt_of_a_cell_runs_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int | None) -> None:
    """Make every cell late next to others; a request for three labs gets three."""
    fake = FakeRun(tmp_path, jobs, attempts=2)
    fake.jobs.labs = fake.jobs.most = 3
    monkeypatch.setattr(fake.jobs, "learn", lambda record, experiment: "")
    parallel: dict[int, list[int]] = {1: [], 2: []}

    def late_at_first(task: CellTask) -> dict[str, Any]:
        for _ in range(10):
            parallel[task.attempt].append(len(fake.with_traffic))
            time.sleep(0.002)
        return {"valid": False, "late": True, "reasons": ("R1 was late",)} if task.attempt == 1 else {}

    fake.workers(late_at_first)
    assert fake.errors == []
    assert all(entry.valid and entry.tried == 2 for entry in fake.cells.states.values())
    assert max(parallel[1]) > 1, "the first tries are made side by side"
    assert (max(parallel[2]) == 1) == (jobs is None)
