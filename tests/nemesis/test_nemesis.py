"""Something goes wrong in a run, at any moment; a checker that trusts nobody looks at what is left.

Whatever happens, the run ends in time and not by a defect of its own; each cell is valid and right, or invalid with a
reason; what was written is told from what is damaged; nothing is left, no process, no lab, no file; and the same run
goes on with `--resume` to a result that is right.

    pytest tests/nemesis --seeds 1-200

A seed decides lab, fault, moment and victim; what the victim is doing then is the machine's.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from clocks import Clocks
from commands import Command, processes, run, temporary_folder
from faults import ASKED, Struck, strike
from trials import NOTHING

from qoslab.lab import Lab
from verdicts import newest_run, runs_of, status_of

pytestmark = pytest.mark.lab

EXPERIMENT = Path(__file__).parents[2] / "experiments" / "policing-vs-shaping.yml"
LABS = ("virtual", "simulated")
ARGUMENTS = ("run", str(EXPERIMENT), "--duration", "2s", "--arm", "policed")
PATIENCE_S = 90.0
"""From the fault to the end of a run: a push that is tried again, and a router that is waited for."""
TRIES = 3
"""To meet a run before its end."""
LEFT_S = 20.0
"""Until what cleans up after a killed process has done so."""
STATUSES = {0, 1, 2, 3, 130}
"""All but 4, which is a defect; a signal's where the run itself was killed."""
BUCKET_B = 31_250
LEAST_BPS, MOST_BPS = 400_000, 1_150_000
"""Goodput of two seconds: the CIR and the credit of a full bucket above (31 250 bytes in 2 s), slow start below."""


@dataclass(frozen=True)
class Undisturbed:
    """A run in whose way nothing came."""

    lasts_s: float
    figures: dict[str, Any]


def figures(newest: Path) -> dict[str, Any]:
    """What a finished run has measured, by metric."""
    rows = json.loads((newest / "comparison.json").read_text())
    return {row["metric"]: row["measured"] for row in rows}


class Undisturbeds(dict[str, Undisturbed]):
    """A run of each kind of lab, made when it is asked for first."""

    def __init__(self, scratch: Path) -> None:
        super().__init__()
        self._scratch = scratch

    def __missing__(self, lab: str) -> Undisturbed:
        folder = self._scratch / lab
        folder.mkdir()
        began = time.monotonic()
        # A machine that is busy with something else makes a cell invalid.
        status, output, errors = run(folder, *ARGUMENTS, "--lab", lab, "--attempts", "5")
        # Valid, whatever the figures of so short a run are.
        assert status == status_of(newest_run(folder)) in (0, 1), errors + output
        self[lab] = Undisturbed(time.monotonic() - began, figures(newest_run(folder)))
        return self[lab]


@pytest.fixture(scope="session")
def undisturbed() -> Iterator[Undisturbeds]:
    with tempfile.TemporaryDirectory() as scratch:
        yield Undisturbeds(Path(scratch))


@pytest.fixture
def clean(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder, with a folder for temporary files beside it, and clocks that can be set."""
    for name, value in Clocks.made(tmp_path_factory.mktemp("clocks")).environment.items():
        monkeypatch.setenv(name, value)
    temporary = temporary_folder(tmp_path, monkeypatch)
    yield tmp_path
    shutil.rmtree(temporary, ignore_errors=True)


def test_whatever_happens(seed: int, clean: Path, undisturbed: Undisturbeds, tell: Callable[[str, str], None]) -> None:
    lab, command, struck = struck_by(seed, clean, undisturbed)
    print(f"seed {seed}, {lab}: {struck or NOTHING}")
    tell(lab, NOTHING if struck is None else struck.kind)
    try:
        output, errors = command.process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        command.process.kill()
        raise AssertionError(f"it did not end within {PATIENCE_S:.0f} s: {command.process.communicate()}") from None
    said = f"\n{output}\n{errors}"
    ended_well(command.process.returncode, struck, said)
    nothing_left(clean, command.process.pid)
    for each in runs_of(clean):
        cells_are_told(each, lab, undisturbed[lab], said)
    resumed(clean, lab, undisturbed[lab])


def struck_by(seed: int, clean: Path, undisturbed: Undisturbeds) -> tuple[str, Command, Struck | None]:
    """A run with its lab, and what was done to it; where it was over before that, another one, and earlier."""
    for attempt in range(TRIES):
        draw = random.Random(seed)
        lab = draw.choice(LABS)
        command = Command(clean, *ARGUMENTS, "--lab", lab, started=True)
        struck = strike(command, draw, undisturbed[lab].lasts_s / 2**attempt)
        if struck is not None or attempt == TRIES - 1:
            break
        status, output, errors = command.end()
        assert status == status_of(newest_run(clean)), errors + output
    return lab, command, struck


def ended_well(status: int, struck: Struck | None, said: str) -> None:
    assert "Traceback" not in said and "defect" not in said, said
    if struck is not None and struck.main and struck.fault == "kill":
        assert status == -9, said
    elif struck is None:
        # A machine that is busy with something else makes a cell invalid.
        assert status in (0, 1, 3), said
    elif struck.fault == "ask_to_end" and status < 0:
        # Of no run yet, or of one whose last words are said, a signal makes what it makes of any process.
        assert -status in ASKED and (not said.strip() or "Report: " in said), said
    else:
        assert status in STATUSES, said


def nothing_left(clean: Path, pid: int) -> None:
    deadline = time.monotonic() + LEFT_S
    while (processes(clean) or any((clean / "tmp").iterdir())) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert processes(clean) == []
    assert [str(each) for each in (clean / "tmp").rglob("*")] == []
    assert [lab.name for lab in Lab.all() if f"-{pid}-" in lab.name] == []
    assert str(clean) not in Path("/proc/self/mountinfo").read_text()


def cells_are_told(folder: Path, lab: str, expected: Undisturbed, said: str) -> None:
    """What there is is what was written, before anything goes on with it; each attempt at a cell is right, or invalid
    with a reason."""
    if (folder / "run.json").exists():
        status, output, errors = run(folder.parents[2], "verify", str(folder))
        assert status == 0, errors + output + said
    for file in folder.glob("cells/policed/*/cell.json"):
        record = json.loads(file.read_text())
        assert record["valid"] or record["reasons"], said
    if not (folder / "comparison.json").exists():
        return
    status, output, errors = run(folder.parents[2], "report", str(folder))
    assert status == status_of(folder), errors + output
    if status != 3:
        assert_right(figures(folder), lab, expected)


def assert_right(found: dict[str, Any], lab: str, expected: Undisturbed) -> None:
    if lab == "simulated":
        assert found == expected.figures
        return
    assert found["police.bc"] == BUCKET_B
    assert LEAST_BPS < found["goodput.sum"] < MOST_BPS


def resumed(clean: Path, lab: str, expected: Undisturbed) -> None:
    """What is missing is run, where a run was begun; what is there is verified."""
    unfinished = [each for each in runs_of(clean) if (each / "manifest.json").exists()]
    arguments = ("run", "--resume") if unfinished else (*ARGUMENTS, "--lab", lab)
    # The kernel's stamps of frames are by its own clock, of which a run that begins anew would be apart.
    Clocks.of_the_environment().move()
    # A machine that is busy with something else makes a cell invalid; that is no fault of going on.
    command = Command(clean, *arguments, "--attempts", "5", started=True)
    status, output, errors = command.end()
    newest = newest_run(clean)
    if not (unfinished and status == 2 and "there is nothing to resume" in errors):
        assert status == status_of(newest) in (0, 1), errors + output
    assert_right(figures(newest), lab, expected)
    status, output, errors = run(clean, "verify", str(newest))
    assert status == 0, errors + output
    nothing_left(clean, command.process.pid)
