"""Cells read by several processes: the same bytes as by one, also if a helper fails."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from multiprocessing.connection import Pipe
from pathlib import Path
from typing import Any

import pytest
import sample_run

from qoslab.analysis import Readings, analyse, parallel
from qoslab.analysis.parallel import analyse_by_helpers, read
from qoslab.model.reference_names import references
from qoslab.results import CellFiles, RunFolder
from qoslab.results.cell_files import EXPERIMENT
from waiting import wait_until


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return sample_run.make_run(tmp_path_factory.mktemp("run"))


@pytest.fixture
def always_use_helper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Return a helper for any number of cells."""
    monkeypatch.setattr(parallel, "FEWEST", 1)


def run_readings(folder: RunFolder) -> Readings:
    manifest = folder.manifest()
    return Readings(references(manifest.experiment, manifest.published))


def results(folder: RunFolder) -> dict[str, bytes]:
    files = [*folder.tables.glob("*.parquet"), *folder.path.glob("comparison.*")]
    return {file.name: file.read_bytes() for file in files}


def of_helper_alone(readings: Readings, cells: Sequence[CellFiles]) -> None:
    """Make a helper read all cells; cells that it skips remain."""
    parallel._have_read(readings, deque(cells))


@pytest.mark.usefixtures("always_use_helper")
def test_helpers_give_the_same_bytes(folder: RunFolder) -> None:
    analyse(folder)
    alone = results(folder)
    assert len(alone) > 10
    readings = run_readings(folder)
    of_helper_alone(readings, folder.open().cells)
    assert not any(readings.is_unread(cell) for cell in folder.open().cells)
    analyse(folder, readings)
    assert results(folder) == alone
    analyse_by_helpers(folder)
    assert results(folder) == alone


@pytest.mark.long
@pytest.mark.usefixtures("always_use_helper")
@pytest.mark.parametrize("most", [0, 1, 3])
def test_every_cell_is_read_with_any_number_of_helpers(folder: RunFolder, most: int) -> None:
    readings = run_readings(folder)
    read(readings, folder.open().cells, most)
    # Without a helper process, nothing is read ahead.
    assert [readings.is_unread(cell) for cell in folder.open().cells] == [most == 0] * len(folder.open().cells)


def test_few_cells_use_no_helper(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        pytest.fail("a helper was started")

    monkeypatch.setattr(parallel, "_helper", refuse)
    cells = folder.open().cells
    read(run_readings(folder), cells * (parallel.FEWEST // len(cells)), 0)
    read(run_readings(folder), cells, 4)


@pytest.mark.long
@pytest.mark.usefixtures("always_use_helper")
@pytest.mark.parametrize("command", [["true"], ["sh", "-c", "kill -9 $$"], ["no-such-program"]])
def test_dead_helper_costs_only_time(folder: RunFolder, monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    analyse(folder)
    alone = results(folder)
    start = subprocess.Popen

    def another(given: list[str], **options: Any) -> subprocess.Popen[bytes]:
        return start(command if "qoslab.analysis.parallel" in given else given, **options)

    monkeypatch.setattr(parallel.subprocess, "Popen", another)
    analyse_by_helpers(folder)
    assert results(folder) == alone


@pytest.mark.long
@pytest.mark.usefixtures("always_use_helper")
def test_errors_of_a_cell_are_reported_as_by_one_process(tmp_path: Path) -> None:
    folder = sample_run.make_run(tmp_path)
    cell = folder.open().cells[0]
    (cell.path / EXPERIMENT).write_text("{")
    with pytest.raises(Exception) as alone:
        run_readings(folder).cell_content(cell)
    readings = run_readings(folder)
    of_helper_alone(readings, [cell])
    assert readings.is_unread(cell)
    # A problem of its cell, reported when the cell is read.
    read(readings, [cell, *folder.open().cells[1:]], 1)
    assert readings.is_unread(cell)
    with pytest.raises(type(alone.value)) as helped:
        readings.cell_content(cell)
    assert str(helped.value) == str(alone.value)


@pytest.mark.long
def test_helper_ends_when_its_connection_closes() -> None:
    ours, theirs = Pipe()
    with theirs:
        command = [sys.executable, "-m", "qoslab.analysis.parallel", str(theirs.fileno())]
        process = subprocess.Popen(command, pass_fds=(theirs.fileno(),))
    ours.close()
    assert process.wait(30) == 0


@pytest.mark.long
def test_helper_ends_with_a_killed_process(tmp_path: Path) -> None:
    """Kill the parent during its work: the helper ends soon after."""
    script = (
        "import time\nfrom qoslab.analysis import parallel\n"
        "with parallel._helper() as connection:\n"
        "    connection.send(((), True))\n"
        "    time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script]) as process:
        try:
            helper = _child(process.pid)
        finally:
            process.send_signal(signal.SIGKILL)
    wait_until(lambda: not _command(helper), "the helper has ended")


def _command(pid: int) -> bytes:
    try:
        found = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
    return found if b"qoslab.analysis.parallel" in found else b""


def _child(parent: int) -> int:
    def no_processors() -> int:
        for each in (entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()):
            try:
                own = int(Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if own == parent and _command(int(each)):
                return int(each)
        return 0

    return wait_until(no_processors, "a helper was started")
