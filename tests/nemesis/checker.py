"""Independent checker of the remains of a run with a fault."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clocks import Clocks
from commands import Command, run, wait_until_no_process_remains

from qoslab.virtual_lab import Lab
from verdicts import INVALID, newest_run, runs_of, status_of

EXPERIMENT = Path(__file__).parents[2] / "experiments" / "policing-vs-shaping.yml"
LABS = ("virtual", "simulated")
ARGUMENTS = ("run", str(EXPERIMENT), "--duration", "2s", "--arm", "policed")
BUCKET_B = 31_250
MIN_BPS, MAX_BPS = 400_000, 1_150_000
"""Bounds of goodput over two seconds: at most the CIR plus the credit of a full bucket (31 250 bytes in 2 s), at least
slow start.
"""
PAGE_B = 4096
"""Size of a file of one byte on a file system in memory."""


@dataclass(frozen=True)
class UndisturbedRun:
    """Run without a fault."""

    lasts_s: float
    figures: dict[str, Any]
    pages: int
    """Pages of its files on a file system in memory."""


def figures(newest: Path) -> dict[str, Any]:
    """Return the values of a finished run, by metric."""
    rows = json.loads((newest / "comparison.json").read_text())
    return {row["metric"]: row["measured"] for row in rows}


class UndisturbedRuns(dict[str, UndisturbedRun]):
    """Runs without a fault in each kind of lab, made on the first request."""

    def __init__(self, scratch: Path) -> None:
        super().__init__()
        self._scratch = scratch

    def __missing__(self, lab: str) -> UndisturbedRun:
        folder = self._scratch / lab
        folder.mkdir()
        began = time.monotonic()
        # A busy machine makes a cell invalid.
        status, output, errors = run(folder, *ARGUMENTS, "--lab", lab, "--attempts", "5")
        # Valid, regardless of the values of such a short run.
        assert status == status_of(newest_run(folder)) in (0, 1), errors + output
        lasted_s = time.monotonic() - began
        newest = newest_run(folder)
        pages = sum(-(-file.lstat().st_size // PAGE_B) for file in newest.rglob("*"))
        self[lab] = UndisturbedRun(lasted_s, figures(newest), pages)
        return self[lab]


def find_leftovers(clean: Path, pid: int) -> None:
    wait_until_no_process_remains(clean)
    assert [lab.name for lab in Lab.running_labs() if f"-{pid}-" in lab.name] == []
    assert str(clean) not in Path("/proc/self/mountinfo").read_text()


def check_cells(folder: Path, lab: str, expected: UndisturbedRun, message: str) -> None:
    """Check the folder before it is resumed: only written files, and each attempt at a cell is right, or invalid with a
    reason.
    """
    if (folder / "run.json").exists():
        status, output, errors = run(folder.parents[2], "verify", str(folder))
        assert status == 0, errors + output + message
    for file in folder.glob("cells/policed/*/cell.json"):
        record = json.loads(file.read_text())
        assert record["valid"] or record["reasons"], message
    if not (folder / "comparison.json").exists():
        return
    status, output, errors = run(folder.parents[2], "report", str(folder))
    # The analysis refuses a cell whose record is valid if its outputs contradict each other, and prints the reason.
    assert status == status_of(folder) or (status == INVALID and "The run is invalid" in output), errors + output
    if status != INVALID:
        assert_correct(figures(folder), lab, expected)


def assert_correct(found: dict[str, Any], lab: str, expected: UndisturbedRun) -> None:
    if lab == "simulated":
        assert found == expected.figures
        return
    assert found["police.bc"] == BUCKET_B
    assert MIN_BPS < found["goodput.sum"] < MAX_BPS


def resume_run(clean: Path, lab: str, expected: UndisturbedRun) -> None:
    """Resume an interrupted run; verify the existing cells."""
    unfinished = [each for each in runs_of(clean) if (each / "manifest.json").exists()]
    arguments = ("run", "--resume") if unfinished else (*ARGUMENTS, "--lab", lab)
    # The kernel stamps frames by its own clock, and a resumed run would have another zero.
    Clocks.of_the_environment().move()
    # A busy machine makes a cell invalid, which is not a fault of resuming.
    command = Command(clean, *arguments, "--attempts", "5", started=True)
    status, output, errors = command.end()
    newest = newest_run(clean)
    if not (unfinished and status == 2 and "there is nothing to resume" in errors):
        assert status == status_of(newest) in (0, 1), errors + output
    assert_correct(figures(newest), lab, expected)
    status, output, errors = run(clean, "verify", str(newest))
    assert status == 0, errors + output
    find_leftovers(clean, command.process.pid)
