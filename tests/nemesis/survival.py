"""Check of a run after a fault at a random instant: its end and its remains."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

from checker import ARGUMENTS, LABS, UndisturbedRuns, check_cells, find_leftovers, resume_run
from commands import Command
from faults import ASKED, FAULTS, Choice, InjectedFault, inject_fault

from verdicts import newest_run, runs_of, status_of

PATIENCE_S = 90.0
"""Time from the fault to the end of a run, with a retried push and a wait for a router."""
TRIES = 3
"""Attempts to hit a run before its end."""
STATUSES = {0, 1, 2, 3, 130}
"""Permitted exit statuses: all except 4, which is a defect; a signal's if the run itself was killed."""


def assert_survived(
    seed: int,
    clean: Path,
    undisturbed_run: UndisturbedRuns,
    tell: Callable[[str, str], None],
    faults: tuple[Choice, ...] = FAULTS,
) -> None:
    """Check that the run ends in time, with a verdict or a reason, leaves nothing, and can be resumed."""
    lab, command, struck = faults_of(seed, clean, undisturbed_run, faults)
    print(f"seed {seed}, {lab}: {struck or 'no fault'}")
    tell(lab, "no fault" if struck is None else struck.kind)
    try:
        output, errors = command.process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        command.process.kill()
        raise AssertionError(f"it did not end within {PATIENCE_S:.0f} s: {command.process.communicate()}") from None
    printed = f"\n{output}\n{errors}"
    check_exit(command.process.returncode, struck, printed)
    find_leftovers(clean, command.process.pid)
    for each in runs_of(clean):
        check_cells(each, lab, undisturbed_run[lab], printed)
    resume_run(clean, lab, undisturbed_run[lab])


def faults_of(
    seed: int, clean: Path, undisturbed_run: UndisturbedRuns, faults: tuple[Choice, ...]
) -> tuple[str, Command, InjectedFault | None]:
    """Return a run with its lab and the applied fault; if the run was over before, retry with an earlier time."""
    for attempt in range(TRIES):
        draw = random.Random(seed)
        lab = draw.choice(LABS)
        command = Command(clean, *ARGUMENTS, "--lab", lab, started=True)
        struck = inject_fault(command, draw, undisturbed_run[lab].lasts_s / 2**attempt, faults)
        if struck is not None or attempt == TRIES - 1:
            break
        status, output, errors = command.end()
        assert status == status_of(newest_run(clean)), errors + output
    return lab, command, struck


def check_exit(status: int, struck: InjectedFault | None, message: str) -> None:
    assert "Traceback" not in message and "defect" not in message, message
    if struck is not None and struck.main and struck.fault == "kill_process":
        assert status == -9, message
    elif struck is None:
        # A busy machine makes a cell invalid.
        assert status in (0, 1, 3), message
    elif struck.fault == "request_end" and status < 0:
        # Before a run starts, or after its last message, a signal ends it like any process.
        assert -status in ASKED and (not message.strip() or "Report: " in message), message
    else:
        assert status in STATUSES, message
