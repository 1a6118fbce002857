"""Cells on a Dask cluster: several workers, one of them killed during the run; and a cluster that the run starts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from commands import Command
from test_sweep import GRID, manifest

from experiment_files import experiment_file
from verdicts import newest_run, status_of
from waiting import wait_until

pytestmark = pytest.mark.lab

START_S = 60.0


class Cluster:
    """Cluster of a scheduler and workers, each a process."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self._file = folder / "scheduler.json"
        self._start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(self._file))
        log = folder / "dask_scheduler.log"
        # The scheduler creates the file before it writes the address.
        self.address: str = wait_until(
            lambda: json.loads(self._file.read_text())["address"], "the scheduler has its address", report=log.read_text
        )

    def _start(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        log = self._stack.enter_context((self.folder / f"{program}.log").open("ab"))
        process = subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{program}", *arguments, "--no-dashboard"],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        self._stack.callback(process.wait)
        self._stack.callback(process.terminate)
        return process

    def worker(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a worker with one lab."""
        return self._start(
            "dask_worker",
            self.address,
            "--nthreads",
            "1",
            "--no-nanny",
            "--host",
            "127.0.0.1",
            "--local-directory",
            str(self.folder / "tmp"),
            *arguments,
        )


@pytest.fixture
def cluster(clean: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield Cluster(clean, stack)


@pytest.fixture
def grid(clean: Path) -> Path:
    return experiment_file(clean, "grid.yml", GRID)


@pytest.mark.long
@pytest.mark.slow
def test_run_survives_a_killed_worker(grid: Path, clean: Path, cluster: Cluster) -> None:
    workers = [cluster.worker(), cluster.worker()]
    # One cell for each worker, and one second attempt.
    some = ("--only", "rtt=10 ms", "--duration", "3s", "--attempts", "1")
    command = Command(clean, "run", str(grid), "--scheduler", cluster.address, *some)
    command.wait_for("at a time")

    def sends() -> bool:
        assert command.process.poll() is None, "the run has ended"
        return any("iperf3" in line for line in children(workers[0].pid))

    wait_until(sends, "the lab of the first worker has traffic", START_S)
    workers[0].kill()
    status, output, errors = command.end()
    assert status == status_of(newest_run(clean)) in (0, 3), errors + output
    assert "has left" in errors
    cells = manifest(clean)["cells"]
    assert len(cells) == 2 and all(cell["folder"] for cell in cells)
    assert not any("died" in reason for cell in cells for reason in cell["reasons"]), "it was run by the other worker"
    for name in (clean / "tmp").iterdir():
        if name.name.startswith("qoslab-"):  # files that a killed process cannot remove
            subprocess.run(["rm", "-r", str(name)], check=True)
    workers[1].terminate()
    workers[1].wait()
    subprocess.run(["rm", "-rf", *map(str, (clean / "tmp").glob("dask-*"))], check=True)


def children(pid: int) -> list[str]:
    """Return the command lines of the child processes of a run."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                fields = (process / "stat").read_text().rpartition(")")[2].split()
                line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found += [line, *children(int(process.name))]
    return found
