"""Reproducible results: an experiment in virtual time gives the same bytes, on any number of workers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from levels import run_all_cases, value_by_level
from qoslab.cli import main
from qoslab.results import find_run
from qoslab.results.sealed_files import CELL_RECORD, seals
from verdicts import newest_run, status_of

EXPERIMENT = Path(__file__).parents[2] / "experiments" / "policing-vs-shaping.yml"
OF_THE_CALL = {"worker", "cpu_s", "steps", "seal"}
"""Fields of `cell.json` on the machine and the time of day; all others depend on the experiment alone."""


def make_report(folder: Path, monkeypatch: pytest.MonkeyPatch, jobs: int) -> dict[str, object]:
    folder.mkdir()
    monkeypatch.chdir(folder)
    arms = [] if run_all_cases() else ["--arm", "policed", "--arm", "shaped"]
    status = main(["run", str(EXPERIMENT), "--lab", "simulated", "--duration", "1s", "--jobs", str(jobs), *arms])
    assert status == status_of(newest_run(folder)) in (0, 1)
    run = find_run(Path("runs"))
    found: dict[str, object] = {"experiment.yml": run.experiment_text()}
    for record in run.path.rglob(CELL_RECORD):
        name = record.parent.relative_to(run.path).as_posix()
        found |= {f"{name}/{inner}": seal.sha256 for inner, seal in seals(record.parent).items()}
        document = json.loads(record.read_text())
        assert document["valid"] and document["steps"]
        found[f"{name}/{CELL_RECORD}"] = {key: value for key, value in document.items() if key not in OF_THE_CALL}
    found["comparison.csv"] = (run.path / "comparison.csv").read_text()
    return found


@pytest.mark.long
def test_number_of_workers_does_not_change_the_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = make_report(tmp_path / "one", monkeypatch, 1)
    several = make_report(tmp_path / "several", monkeypatch, value_by_level(short=2, long=4))
    assert len([name for name in one if name.endswith(CELL_RECORD)]) == value_by_level(short=2, long=5)
    assert any(name.endswith(".pcapng") for name in one) and any(name.endswith(".jsonl") for name in one)
    assert one == several
