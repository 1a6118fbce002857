"""A full disk at any write, or a power loss at any time: saved cells are complete, and the others are run again."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest
from sample_run import cells_of

from levels import every_nth, value_by_level
from qoslab.cli import main
from qoslab.results import RunFolder
from qoslab.results.cell_files import check_cell
from qoslab.results.file_access import Disk
from qoslab.results.progress import PROGRESS
from qoslab.results.sealed_files import CELL_RECORD, seals
from qoslab.results.verify import verify
from qoslab.run.cluster import remote_worker
from qoslab.run.cluster.crew import ClusterRunner
from qoslab.run.cluster.remote import Outcome, parse_outcome, serialise_task
from qoslab.run.task import CellTask
from verdicts import newest_run, runs_of, status_of

EXPERIMENT = Path(__file__).parents[2] / "experiments" / "policing-vs-shaping.yml"
RUN = ["run", str(EXPERIMENT), "--lab", "simulated", "--duration", "1s", "--arm=policed", "--scheduler", "local"]
HERE = [word for word in RUN if word not in ("--scheduler", "local")]
"""Command prefix for this process, which writes the cell in its final place."""
CHANGING = ("create", "append", "sync", "rename")
RESUMED = 13
"""Interval of failures after which the run is resumed (long level); odd, so that it meets each of the four steps of a
file.
"""


class FakeWorkers:
    """Workers that simulate each cell once in this process, and return its outcome as often as needed."""

    known: ClassVar[dict[tuple[str, int], Outcome]] = {}

    def __init__(self) -> None:
        self._tasks: list[CellTask] = []

    def __enter__(self) -> FakeWorkers:
        return self

    def __exit__(self, *_: object) -> None: ...

    def check_workers(self) -> None: ...

    @property
    def has_room(self) -> bool:
        return True

    def submit(self, task: CellTask, coming: Path | None) -> None:
        self._tasks.append(task)

    def finished_cells(self, wait_s: float) -> list[tuple[CellTask, Any, bytes]]:
        tasks, self._tasks = self._tasks, []
        return [(task, *self._outcome(task)) for task in tasks]

    def _outcome(self, task: CellTask) -> Outcome:
        key = (task.key, task.attempt)
        if key not in self.known:
            self.known[key] = parse_outcome(task, remote_worker.run_cell(serialise_task(task)))
        return self.known[key]


@pytest.fixture(autouse=True)
def workers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ClusterRunner, "_open", lambda crew: FakeWorkers())
    yield
    remote_worker.close_labs()


def newest_run_folder(folder: Path) -> Path | None:
    return next(reversed(runs_of(folder)), None)


@pytest.fixture(scope="module")
def complete_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide a run without a fault."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(ClusterRunner, "_open", lambda crew: FakeWorkers())
        status = main(RUN)
    made = newest_run_folder(folder)
    assert made is not None and status == status_of(made) in (0, 1)
    return made


def read_raw(run: Path) -> dict[str, str]:
    """Return the hashes of all measurements of the cells; `cell.json` has times of day and the machine's name."""
    found = {}
    for record in (run / "cells").rglob(CELL_RECORD):
        if record.parent.name.startswith("."):
            continue
        for name, seal in seals(record.parent).items():
            found[f"{record.parent.relative_to(run).as_posix()}/{name}"] = seal.sha256
    return found


def fail_disk_changes_from(monkeypatch: pytest.MonkeyPatch, number: int) -> list[str]:
    """Make the `number`-th change of the disk fail, and all later ones; a file is half written then."""
    made: list[str] = []

    def failing(name: str, own: Callable[..., None]) -> Callable[..., None]:
        def change(self: Disk, path: Path, *rest: Any) -> None:
            made.append(f"{name} {path}")
            if len(made) < number:
                own(self, path, *rest)
                return
            if name in ("create", "append"):
                own(self, path, rest[0][: len(rest[0]) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

        return change

    for name in CHANGING:
        monkeypatch.setattr(Disk, name, failing(name, getattr(Disk, name)))
    return made


def assert_files_are_complete(run: Path | None, complete_run: Path) -> None:
    """Check that every final name has complete content and that no draft is left except after a failed rename."""
    if run is None:
        return
    known = {path.relative_to(complete_run).as_posix(): path for path in complete_run.rglob("*") if path.is_file()}
    for path in (path for path in run.rglob("*") if path.is_file()):
        name = path.relative_to(run).as_posix()
        assert name in known, name
        if name.startswith("cells/") and path.name != CELL_RECORD:
            assert path.read_bytes() == known[name].read_bytes()
        if name == "experiment.yml":
            assert path.read_bytes() == EXPERIMENT.read_bytes()


def disk_changes_of_run(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    with monkeypatch.context() as patch:
        made = fail_disk_changes_from(patch, 10**9)
        status = main(RUN)
        assert status == status_of(newest_run(Path())) in (0, 1)
    shutil.rmtree("runs")
    return made


def test_failure_of_any_write_of_a_run_is_handled(
    complete_run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made = disk_changes_of_run(monkeypatch)
    derived = next(number for number, each in enumerate(made, 1) if "tables" in each)
    assert derived > 60, made
    # A file is written in four steps: with odd distances the sample includes each step. All tables are written alike.
    numbers = [*range(1, derived, every_nth(13)), *range(derived, len(made), every_nth(479))]
    resumed = 0
    for position, number in enumerate(numbers):
        with monkeypatch.context() as patch:
            fail_disk_changes_from(patch, number)
            status = main(RUN)
        output = capsys.readouterr().err
        assert status == 2, (made[number - 1], output)
        assert "cannot be written, the disk is full (No space left on device)" in output, made[number - 1]
        assert "Traceback" not in output
        assert_files_are_complete(run := newest_run_folder(tmp_path), complete_run)
        if run is not None and (run / "run.json").exists():
            assert main(["verify", str(run)]) == 0, (made[number - 1], capsys.readouterr())
            if position % value_by_level(short=4, long=RESUMED) == 0:
                assert main(["run", "--resume", str(run)]) == status_of(run) in (0, 1), made[number - 1]
                assert sorted(read_raw(run).values()) == sorted(read_raw(complete_run).values()), made[number - 1]
                resumed += 1
        shutil.rmtree("runs", ignore_errors=True)
    assert resumed >= value_by_level(short=1, long=5)
    # The last one informs viewers of the end of the run, and decides nothing.
    assert made[-1].endswith(PROGRESS)
    with monkeypatch.context() as patch:
        fail_disk_changes_from(patch, len(made))
        assert main(RUN) == status_of(newest_run(Path())) in (0, 1)
    assert main(["verify", str(newest_run_folder(tmp_path))]) == 0


def test_failure_of_any_write_of_a_cell_is_handled(
    complete_run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Let a write fail: the process that simulates a cell returns the error that the user has to fix, and no cell."""
    (key,) = {key for key in FakeWorkers.known if key[1] == 1}
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(
        FakeWorkers, "_outcome", lambda self, task: sent.append(serialise_task(task)) or FakeWorkers.known[key]
    )
    status = main(RUN)
    assert status == status_of(newest_run(Path())) in (0, 1)
    with monkeypatch.context() as patch:
        made = fail_disk_changes_from(patch, 10**9)
        assert "record" in remote_worker.run_cell(sent[0])
    assert len(made) > 15
    for number in range(1, len(made) + 1, every_nth(5)):
        with monkeypatch.context() as patch:
            fail_disk_changes_from(patch, number)
            reply = remote_worker.run_cell(sent[0])
        assert set(reply) == {"error"}, made[number - 1]
        assert "cannot be written, the disk is full" in reply["error"][0]


@dataclass
class _File:
    content: bytes = b""
    kept: bytes | None = None


@dataclass
class _Folder:
    entries: dict[str, _File | _Folder] = field(default_factory=dict)
    kept: dict[str, _File | _Folder] = field(default_factory=dict)


class PowerLoss:
    """File system that keeps synced data: the content of a file, the names of a folder."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self._tree = _Folder()

    def _folder(self, path: Path) -> _Folder:
        found = self._tree
        for part in path.relative_to(self._top).parts:
            inner = found.entries.setdefault(part, _Folder())
            assert isinstance(inner, _Folder)
            found = inner
        return found

    def create(self, path: Path, content: bytes) -> None:
        self._folder(path.parent).entries[path.name] = _File(content)

    def append(self, path: Path, content: bytes) -> None:
        entry = self._folder(path.parent).entries.setdefault(path.name, _File())
        assert isinstance(entry, _File)
        entry.content += content

    def sync(self, path: Path) -> None:
        entry = self._folder(path.parent).entries.get(path.name) if path != self._top else self._tree
        match entry:
            case _File():
                entry.kept = entry.content
            case _Folder():
                # The test does not see removals and writes by another program.
                there = {each.name: each for each in path.iterdir()}
                entry.entries = {name: inner for name, inner in entry.entries.items() if name in there}
                for name, each in there.items():
                    if name not in entry.entries:
                        entry.entries[name] = _Folder() if each.is_dir() else _File(each.read_bytes())
                entry.kept = dict(entry.entries)

    def rename(self, old: Path, new: Path) -> None:
        self._folder(new.parent).entries[new.name] = self._folder(old.parent).entries.pop(old.name)

    def after(self, folder: Path, *, names: bool) -> None:
        """Write the state after a power loss. `names`: include unsynced names, of empty files."""
        self._write(self._tree, folder, names)

    def _write(self, tree: _Folder, folder: Path, names: bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, entry in (tree.entries if names else tree.kept).items():
            match entry:
                case _Folder():
                    self._write(entry, folder / name, names)
                case _File():
                    if entry.kept is not None or names:
                        (folder / name).write_bytes(entry.kept or b"")


@pytest.mark.long
@pytest.mark.sample(3)
@pytest.mark.parametrize("names", [False, True], ids=["what was synced", "and names of empty files"])
@pytest.mark.parametrize("words", [RUN, HERE], ids=["sent", "here"])
def test_power_loss_at_any_time_leaves_a_readable_run(
    complete_run: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    words: list[str],
    names: bool,
) -> None:
    disk, moments = PowerLoss(tmp_path), itertools.count()
    left = tmp_path / "left"

    def watched_operation(name: str, own: Callable[..., None]) -> Callable[..., None]:
        def change(self: Disk, path: Path, *rest: Path | bytes) -> None:
            own(self, path, *rest)
            getattr(disk, name)(
                path.absolute(), *(each.absolute() if isinstance(each, Path) else each for each in rest)
            )
            if (moment := next(moments)) % every_nth(23) == 0:
                disk.after(left / f"{moment:04}", names=names)

        return change

    with monkeypatch.context() as patch:
        # One sync after another, so that the order is fixed.
        patch.setattr("qoslab.results.file_access.SYNCS", 1)
        for name in CHANGING:
            patch.setattr(Disk, name, watched_operation(name, getattr(Disk, name)))
        status = main(words)
        assert status == status_of(newest_run(Path())) in (0, 1)
    states = sorted(left.iterdir())
    assert len(states) > 100 // every_nth(23)
    complete = 0
    for state in states:
        run = newest_run_folder(state)
        if run is None or not (run / "run.json").exists():
            continue
        assert verify(RunFolder(run)).damage == [], state.name
        kept = read_raw(run)
        assert kept in ({}, read_raw(complete_run)), state.name
        complete += bool(kept)
        if (run / "manifest.json").exists():
            assert kept and RunFolder(run).open().damaged == {}
    # A cell that exists stays.
    assert complete > 50 // every_nth(23)
    capsys.readouterr()
    for state in states[30 // every_nth(23) :: len(states) // value_by_level(short=1, long=4)]:
        run = newest_run_folder(state)
        assert run is not None
        monkeypatch.chdir(state)
        was_there = bool(read_raw(run))
        assert main(["run", "--resume", str(run)]) == status_of(run) in (0, 1)
        assert ("1 of 1 cells are already complete" in capsys.readouterr().err) == was_there
        assert main(["verify", str(run)]) == 0
        assert set(read_raw(run).values()) == set(read_raw(complete_run).values())


def kill_at_each_write(monkeypatch: pytest.MonkeyPatch, left: Path, some: int) -> None:
    """Save the state that a kill would leave at every `some`-th instant, and at all of a cell's record: after a change
    of the disk, synced or not, and in the middle of each write.
    """
    moments, one = itertools.count(), threading.RLock()

    def keep(path: Path) -> None:
        if ((number := next(moments)) % some == 0 or CELL_RECORD in path.name) and Path("runs").exists():
            shutil.copytree("runs", left / f"{number:04}" / "runs", symlinks=True)

    def watched_operation(name: str, own: Callable[..., None]) -> Callable[..., None]:
        def change(self: Disk, path: Path, *rest: Any) -> None:
            with one:
                if name in ("create", "append"):
                    before = path.read_bytes() if path.exists() else None
                    own(self, path, rest[0][: len(rest[0]) // 2])
                    keep(path)
                    path.unlink() if before is None else path.write_bytes(before)
                own(self, path, *rest)
                keep(path)

        return change

    for name in CHANGING:
        monkeypatch.setattr(Disk, name, watched_operation(name, getattr(Disk, name)))


@pytest.mark.long
@pytest.mark.sample(2)
@pytest.mark.parametrize("words", [RUN, HERE], ids=["sent", "here"])
def test_run_may_be_killed_at_any_write(
    complete_run: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    words: list[str],
) -> None:
    """Kill a run at any write: no written data is lost, but a file may be truncated, under its final name."""
    left = tmp_path / "left"
    some = every_nth(61)
    with monkeypatch.context() as patch:
        kill_at_each_write(patch, left, some)
        status = main(words)
        assert status == status_of(newest_run(Path())) in (0, 1)
    states = [
        state for state in sorted(left.iterdir()) if (run := newest_run_folder(state)) and (run / "run.json").exists()
    ]
    assert len(states) > 140 // some
    resumed = max(1, len(states) // value_by_level(short=2, long=30))
    for number, state in enumerate(states):
        run = newest_run_folder(state)
        assert run is not None
        found = verify(RunFolder(run))
        assert found.damage == [], state.name
        kept = read_raw(run)
        # A cell has a complete record or none; cells without a record are reported as such.
        assert kept in ({}, read_raw(complete_run)), state.name
        if number % resumed == 0:
            monkeypatch.chdir(state)
            capsys.readouterr()
            assert main(["run", "--resume", str(run)]) == status_of(run) in (0, 1), state.name
            assert ("1 of 1 cells are already complete" in capsys.readouterr().err) == bool(kept), state.name
            assert verify(RunFolder(run)).damage == [], state.name
            assert set(read_raw(run).values()) == set(read_raw(complete_run).values()), state.name


def test_truncated_record_is_not_a_valid_cell(complete_run: Path, tmp_path: Path) -> None:
    """Truncate a record: counters of a lab in real time are appended to a file that already has its name."""
    run = Path(shutil.copytree(complete_run, tmp_path / complete_run.name))
    (cell,) = cells_of(RunFolder(run))
    cell.append_counters("R1", {"ok": True})
    assert check_cell(cell.path)[1][0].startswith("counters/R1.jsonl: ")
