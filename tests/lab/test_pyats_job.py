"""Runs as pyATS jobs: log, results and exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_external import EXPERIMENT_OF_IT
from test_iosd import session

from qoslab.results import RunFolder
from qoslab.results.changes import RouterChanges, read_changes
from qoslab.virtual_lab import Lab
from qoslab.virtual_lab.expose import expose_lab

pytestmark = pytest.mark.lab

BIN = Path(sys.executable).parent
"""Folder that pyATS searches for, like in an activated environment."""


def job(folder: Path, *options: str) -> tuple[int, dict[str, Any], str]:
    """Return exit status, results by testcase (also by step), and output."""
    path = subprocess.run([str(BIN / "qoslab"), "job"], capture_output=True, text=True, check=True).stdout.strip()
    argv = [str(BIN / "pyats"), "run", "job", path, "--no-mail", "--no-archive", "--runinfo-dir", str(folder / "info")]
    done = subprocess.run(
        [*argv, *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"},
    )
    found: dict[str, Any] = {}
    for file in folder.glob("info/*/results.json"):
        for task in json.loads(file.read_text())["report"]["tasks"]:
            for section in task["sections"]:
                found[section["name"]] = section["result"]["value"]
    return done.returncode, found, done.stdout + done.stderr


@pytest.mark.slow
def test_each_cell_is_a_testcase_with_its_result(tmp_path: Path) -> None:
    options = ("--in-lab", "simulated", "--duration", "3s", "--arm", "policed", "--arm", "policed-cubic")
    slow = ("--set", "arms.policed.configure.R1.variables.cir=500000")
    status, found, printed = job(tmp_path, "--experiment", "policing-vs-shaping", *options, *slow)
    assert found == {
        "common_setup": "passed",
        "policed/1": "failed",
        "policed-cubic/1": "passed",
        "Averages": "skipped",
        "common_cleanup": "skipped",
    }, printed
    assert status == 1
    (info,) = tmp_path.glob("info/*")
    run = (tmp_path / "runs/policing-vs-shaping/latest").resolve()
    assert (info / "report.html").read_bytes() == (run / "report.html").read_bytes()
    assert "was not reached: " in (info / "TaskLog.policing-vs-shaping").read_text()


@pytest.mark.long
@pytest.mark.slow
def test_job_in_a_real_lab_reports_restored_routers(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    rack = tmp_path / "rack.yml"
    with Lab.up(EXPERIMENT_OF_IT.topology, name=name) as lab:
        expose_lab(lab, rack)
        before = configured(lab)
        options = ("--in-lab", str(rack), "--duration", "3s", "--arm", "policed")
        status, found, printed = job(tmp_path, "--experiment", "policing-vs-shaping", *options)
        assert configured(lab) == before
    # Values after 3 s are not measured and fail nothing; a busy machine may make the cell invalid.
    result = found.pop("policed/1")
    assert result in ("passed", "errored"), printed
    assert found == {"common_setup": "passed", "Averages": "skipped", "common_cleanup": "passed"}, printed
    assert (status == 0) == (result == "passed")
    (log,) = tmp_path.glob("info/*/TaskLog.policing-vs-shaping")
    assert "The result of STEP 1: R1 is => PASSED" in log.read_text()
    changes = read_changes(RunFolder((tmp_path / "runs/policing-vs-shaping/latest").resolve()))
    assert changes["R1"].left == () and any("policy-map Police" in line for line in changes["R1"].arms["policed"])


def configured(lab: Lab) -> list[str]:
    shown = session(lab, "terminal length 0", "show running-config").splitlines()
    return [line for line in shown if "Current configuration" not in line]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("left", "result"), [((), "passed"), (("+ip host bob 10.9.9.9",), "passx"), (None, "failed")])
def test_remaining_configuration_fails_the_cleanup(
    left: tuple[str, ...] | None, result: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyats.aetest.steps import Steps

    from qoslab.pyats_job import script

    changes = {"R1": RouterChanges(arms={}, left=left, why="R1 was out of reach")}
    monkeypatch.setattr(script, "read_changes", lambda run: changes)
    steps = Steps()
    script.CommonCleanup.check_routers_restored(script.CommonCleanup(), run=object(), steps=steps)
    (step,) = steps.details
    assert (step.name, str(step.result)) == ("R1", result)


@pytest.mark.long
def test_pyats_blocks_cells_without_a_lab(tmp_path: Path) -> None:
    rack = tmp_path / "rack.yml"
    rack.write_text("all: {children: {ios: {hosts: {R1: {}}}, host: {hosts: {client: {}}}}}\n")
    options = ("--in-lab", str(rack), "--arm", "policed")
    status, found, printed = job(tmp_path, "--experiment", "policing-vs-shaping", *options)
    assert (status, found["common_setup"], found["policed/1"]) == (1, "blocked", "blocked"), printed
    assert "found no server in the group host" in printed


@pytest.mark.long
def test_option_that_conflicts_with_pyats_is_refused(tmp_path: Path) -> None:
    _, found, printed = job(tmp_path, "--experiment", "policing-vs-shaping", "--lab", "simulated")
    assert "found --lab (pyATS reads it as --label), expected --in-lab" in printed
    assert not any("/" in name for name in found)


@pytest.mark.long
def test_pyats_errors_invalid_cells_and_skips_unneeded_ones() -> None:
    from pyats.aetest import signals

    from qoslab.pyats_job.cell_results import CellResult
    from qoslab.pyats_job.script import Cell

    results = {
        "a/1": CellResult(True, ("R1: late",), "", ()),
        "a/2": CellResult(False, (), "two are enough", ()),
        "a/3": CellResult(False, ("it was interrupted",), "", ()),
    }
    for name, signal in (
        ("a/1", signals.AEtestErroredSignal),
        ("a/2", signals.AEtestSkippedSignal),
        ("a/3", signals.AEtestBlockedSignal),
    ):
        with pytest.raises(signal):
            Cell.check_validity(Cell(), cell=name, results=results)


@pytest.mark.long
def test_pyats_assigns_expectations_to_their_selected_cells() -> None:
    import pandas as pd

    from qoslab.model.matrix import as_values
    from qoslab.pyats_job.cell_results import cell_results
    from qoslab.results import CellSummary

    row = {"metric": "goodput.sum", "unit": "b/s", "measured": 9e5, "missing": "", "tolerance": "at most 1 Mb/s"}
    rows = [
        {**row, "arm": "a", "where": "rtt = 50 ms or 100 ms", "verdict": "within"},
        {**row, "arm": "a/b", "where": "rtt = 10 ms", "verdict": "outside"},
        {**row, "arm": "a", "where": "", "verdict": "informative", "tolerance": ""},
    ]
    cells = [
        CellSummary(arm=arm, parameters={"rtt": rtt}, repetition=1, valid=True)
        for arm in ("a", "b")
        for rtt in ("50 ms", "10 ms")
    ]
    outcome: Any = SimpleNamespace(comparison=pd.DataFrame(rows), averages=pd.DataFrame(), reasons=())
    found = cell_results(cells, outcome)
    assert as_values({"rtt": "50 ms"})
    assert [[each.verdict for each in found[cell.name].expected] for cell in cells] == [
        ["within"],
        ["outside"],
        [],
        ["outside"],
    ]
    assert found["a/rtt=50ms/1"].expected[0].text == "900 kb/s, expected at most 1 Mb/s"
