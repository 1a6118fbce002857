"""Comparison of runs of one experiment in several labs: selection, tests and report."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sample_run

from qoslab.analysis.equivalence import APART, EQUIVALENT, SAME
from qoslab.analysis.lab_comparison import LabRun, compare_lab_runs
from qoslab.analysis.run_analysis import analyse
from qoslab.cli import main
from qoslab.errors import ExitStatus, UserError
from qoslab.report.matching_runs import counterparts
from qoslab.results import RunFolder, tables

NAME = "policing-vs-shaping"


def run_in_lab(folder: Path, lab: str, change: Callable[[dict[str, Any]], None] = lambda _: None) -> Path:
    """Return a run whose manifest names another lab."""

    def change_manifest(manifest: dict[str, Any]) -> None:
        manifest["lab"] = lab
        change(manifest)

    sample_run.change_json(folder / "manifest.json", change_manifest)
    return folder


@pytest.fixture(scope="module")
def sample_run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_run.make_run(tmp_path_factory.mktemp("made") / "runs").path


@pytest.fixture
def runs(sample_run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provide a run in the virtual lab and a later one marked as one of real devices."""
    monkeypatch.chdir(tmp_path)
    top = tmp_path / "runs" / NAME
    shutil.copytree(sample_run_folder, top / "20270101T000000Z")
    run_in_lab(Path(shutil.copytree(sample_run_folder, top / "20270102T000000Z")), "external")
    (top / "latest").symlink_to("20270102T000000Z")
    return top


def repeat_run(found: LabRun, factor: float, spread: float) -> LabRun:
    """Return the same run with four repetitions whose values vary by this much."""
    rows = found.metrics
    parts = []
    for number in range(1, 5):
        scale = factor * (1 + spread * (number - 2.5))
        cells = rows["cell"].str.replace("/1", f"/{number}", regex=False)
        parts.append(rows.assign(value=rows["value"] * scale, repetition=number, cell=cells))
    return replace(found, metrics=pd.concat(parts))


def test_repetitions_are_tested_and_cells_that_are_not_valid_are_left_out(sample_run_folder: Path) -> None:
    folder = RunFolder(sample_run_folder)
    outcome = analyse(folder)
    one = LabRun("virtual", folder.manifest(), outcome, tables.read_table(folder, "metrics"))
    found = compare_lab_runs([repeat_run(one, 1.0, 0.001), replace(repeat_run(one, 1.01, 0.001), lab="simulated")])
    rows = {(each.arm, each.metric): each for each in found.values}
    share = rows["policed", "police.exceed_share"]
    assert share.margin is not None and share.margin.basis == "half the window"
    second = share.labs[1].agreement
    assert second is not None and second.word == EQUIVALENT and second.p_value < 0.05
    assert share.labs[0].estimate is not None and share.labs[0].estimate.n == 4
    ratio = rows["shaped/policed", "goodput.sum"].labs[1].agreement
    assert ratio is not None and ratio.word == SAME
    near = {each.metric: round(each.median, 4) for each in found.fidelity}
    assert near["goodput.sum"] == round(1 - 1 / 1.01, 4)

    invalid = replace(outcome, invalid=frozenset({"policed/1", "policed/2", "policed/3"}))
    left = compare_lab_runs(
        [repeat_run(one, 1.0, 0.001), replace(repeat_run(one, 1.2, 0.001), lab="simulated", outcome=invalid)]
    )
    share = next(each for each in left.values if each.metric == "police.exceed_share" and each.expected)
    assert share.labs[1].estimate is not None and share.labs[1].estimate.n == 1
    assert share.labs[1].agreement is not None and share.labs[1].agreement.word == APART
    assert left.contradiction_count >= 1


class _TagBalance(HTMLParser):
    """Parser that checks that every opened tag is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("meta", "link", "br", "rect", "line", "circle"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("rect", "line", "circle"):
            assert self.open.pop() == tag


def test_page_and_tables_are_written(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", NAME, "--compare-labs"]) == ExitStatus.WITHIN
    output = capsys.readouterr().out
    assert "of 5 values with an expectation 5 the same." in output and f"Report: runs/{NAME}/labs.html" in output
    page = (runs / "labs.html").read_text()
    well = _TagBalance()
    well.feed(page)
    assert well.open == [] and "<script" not in page and len(page) < 60_000
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page
    with (runs / "labs.csv").open() as file:
        rows = list(csv.DictReader(file))
    bucket = [row for row in rows if row["metric"] == "police.bc"]
    assert [(row["lab"], row["measured"], row["against"], row["agreement"]) for row in bucket] == [
        ("external", "31250.0", "", ""),
        ("virtual", "31250.0", "external", "the same"),
    ]
    with (runs / "fidelity.csv").open() as file:
        assert {row["median"] for row in csv.DictReader(file)} == {"0.0"}


def test_incomparable_runs_are_reported(runs: Path, tmp_path: Path) -> None:
    virtual, external = sorted(path for path in runs.glob("2027*"))
    root = runs.parent
    assert [each.path.name for each in counterparts(root, [str(virtual), str(external)]).runs] == [
        external.name,
        virtual.name,
    ]
    with pytest.raises(UserError, match=r"found two runs in the virtual lab, expected one run per lab"):
        counterparts(root, [str(virtual), str(virtual)])

    def longer(experiment: dict[str, Any]) -> None:
        experiment["duration"] = "9 s"
        experiment["traffic"][0]["streams"] = 2

    other = Path(shutil.copytree(external, runs / "20270103T000000Z"))
    run_in_lab(other, "external", lambda manifest: manifest.update(started="2027-01-03T00:00:00Z"))
    for arm in ("policed", "shaped"):
        file = other / f"cells/{arm}/1/experiment.json"
        content = json.loads(file.read_text())
        longer(content)
        file.write_text(json.dumps(content))
    found = counterparts(root, [NAME])
    assert [each.path.name for each in found.runs] == [external.name, virtual.name]
    assert found.passed == ("20270103T000000Z: policed: duration: 4 s and 9 s",)
    with pytest.raises(
        UserError, match=r"different settings: policed: duration: 9 s and 4 s; policed: traffic.*streams"
    ):
        counterparts(root, [str(other), str(virtual)])
    with pytest.raises(UserError, match="different settings"):
        counterparts(root, [str(other)])
    shutil.rmtree(external)
    shutil.rmtree(other)
    (runs / "latest").unlink()
    (runs / "latest").symlink_to(virtual.name)
    with pytest.raises(UserError, match="found runs in the virtual lab only, expected runs in a second lab"):
        counterparts(root, [])
    run_in_lab(
        Path(shutil.copytree(virtual, tmp_path / "elsewhere")),
        "external",
        lambda manifest: manifest["experiment"].update(name="another"),
    )
    with pytest.raises(UserError, match=r"is a run of policing-vs-shaping, .*elsewhere of another"):
        counterparts(root, [str(virtual), str(tmp_path / "elsewhere")])


def test_conflicting_options_are_refused(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--compare-labs", "--index"]) == ExitStatus.USER_MISTAKE
    assert main(["report", NAME, NAME]) == ExitStatus.USER_MISTAKE
    assert "--compare-labs takes several" in capsys.readouterr().err
    assert main(["report", NAME, "--compare-labs", "--junit", "x.xml"]) == ExitStatus.USER_MISTAKE
