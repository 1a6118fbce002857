"""`--lab PATH`: refusals before anything is reached."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from experiment_files import experiment_file
from qoslab.cli import main
from qoslab.cli.options import CellChoice, LabType
from qoslab.errors import ExitStatus, ExperimentError, UserError
from qoslab.lab_kinds import LABS, find_kind
from qoslab.results import RunFolder, RunOptions
from qoslab.schema import load_sweep

TOP = Path(__file__).parents[2]
EXPERIMENT = TOP / "experiments/policing-vs-shaping.yml"
RACK = re.sub(r'"{{.*}}"', "kim", (TOP / "inventory/hardware.example.yml").read_text())
"""Example inventory with plain text in place of its templates, which Ansible would render for a second."""
PUBLISHED = TOP / "reports/published/policing-vs-shaping.csv"


@pytest.fixture
def inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provide an inventory that the tests do not read; the working folder is that of the experiments."""
    monkeypatch.chdir(TOP)
    file = tmp_path / "rack.yml"
    file.write_text("all: {}\n")
    return file


def test_lab_word_is_a_kind_and_other_text_a_path() -> None:
    named = [kind.name for kind in LABS.values() if not kind.has_place]
    assert [find_kind(name).name for name in named] == named
    (placed,) = (kind for kind in LABS.values() if kind.has_place)
    # The name of this kind is not a value of `--lab`.
    assert find_kind("inventory/mine.yml") is placed and find_kind(placed.name) is placed


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("virtul", 'found "virtul", expected virtual, simulated or the path of an inventory; did you mean "virtual"?'),
        ("{}/rack.yaml", 'or the path of an inventory; did you mean "{}/rack.yml"?'),
        ("external", 'found "external", expected virtual, simulated or the path of an inventory'),
    ],
)
def test_unknown_lab_has_suggestions(
    inventory: Path, capsys: pytest.CaptureFixture[str], given: str, message: str
) -> None:
    status = main(["run", str(EXPERIMENT), "--lab", given.format(inventory.parent)])
    assert status == ExitStatus.USER_MISTAKE
    assert message.format(inventory.parent) in capsys.readouterr().err


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--jobs", "2"], "found --jobs 2 for the lab of an inventory, expected 1: there is only one such lab"),
        (["--scheduler", "local"], "found --scheduler for the lab of an inventory, expected neither"),
    ],
)
def test_single_lab_runs_one_cell_at_a_time(
    inventory: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    status = main(["run", str(EXPERIMENT), "--lab", str(inventory), *options])
    assert status == ExitStatus.USER_MISTAKE
    assert message in capsys.readouterr().err
    inventory.write_text(RACK)
    assert main(["run", str(EXPERIMENT), "--lab", str(inventory), "--jobs", "auto", "--dry-run"]) == ExitStatus.WITHIN


def test_run_is_resumed_in_its_original_lab(inventory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = CellChoice(lab=str(inventory)).to_record(EXPERIMENT, ())
    assert (
        CellChoice().merge_record(recorded).place
        == CellChoice(lab=str(inventory)).merge_record(recorded).place
        == str(inventory)
    )
    # The absolute path is saved: from another folder it leads to the same lab.
    monkeypatch.chdir(inventory.parent)
    assert LabType().convert("./rack.yml", None, None) == str(inventory)
    other = inventory.with_name("other.yml")
    with pytest.raises(UserError) as caught:
        CellChoice(lab=str(other)).merge_record(recorded)
    assert caught.value.message == f"found --lab {other} for a run with --lab {inventory}, expected the same"


def test_inventory_inside_a_run_folder_is_never_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = RunFolder.create(Path("runs"), "policing-vs-shaping", datetime(2099, 1, 1, tzinfo=UTC)).path.absolute()
    inventory = run / "rack.yml"
    inventory.write_text("#!/bin/sh\ntouch PWNED\n")
    inventory.chmod(0o755)
    (run / "e.yml").write_text(EXPERIMENT.read_text())
    recorded = RunOptions(file=str(run / "e.yml"), lab=str(inventory), sets=("duration=10 s",), duration=None)
    with RunFolder(run).lock_run(recorded):
        pass
    asked = ["--lab", str(inventory), "--set", "duration=10 s"]
    for words in (
        ["--resume"],
        ["--resume", str(run), *asked],
        [str(EXPERIMENT), "--resume", *asked[2:]],
        [str(EXPERIMENT), "--resume", *asked[:2]],
    ):
        assert main(["run", *words]) == ExitStatus.USER_MISTAKE
        output = capsys.readouterr().err
        assert "run.json: found a run in the lab of an inventory, expected EXPERIMENT, --lab and each --set" in output
        assert f"qoslab run {recorded.file} --lab {inventory} --set 'duration=10 s' --resume " in output
    assert not list(tmp_path.rglob("PWNED"))
    # The repeated options are those of the run.
    inventory.chmod(0o644)
    inventory.write_text(RACK)
    assert main(["run", str(EXPERIMENT), *asked, "--resume", "--dry-run"]) == ExitStatus.WITHIN


def test_plan_names_used_and_unused_devices(inventory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inventory.write_text(RACK)
    assert main(["plan", str(EXPERIMENT), "--lab", str(inventory), "--arm", "policed"]) == ExitStatus.WITHIN
    output = capsys.readouterr().out
    assert "1 cell, the lab of an inventory" in output
    assert "reach        client R1 server  an agent on each host, a login to each router" in output
    assert "leave        client server" in output


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{name: server, node: server, interface: eth0,", "{name: r, node: R1, interface: FastEthernet0/0,", "R1"),
        ('platform: ios, model: "3725"', "platform: engine", "found the platform engine of R1"),
    ],
)
def test_settings_impossible_in_a_real_lab_are_reported_with_their_line(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    text = EXPERIMENT.read_text()
    assert old in text
    (placed,) = (kind for kind in LABS.values() if kind.has_place)
    text = text.replace(old, new, 1).replace("../reports/published/", "")
    file = experiment_file(tmp_path, "changed.yml", text)
    shutil.copy(PUBLISHED, tmp_path)
    with pytest.raises(ExperimentError) as caught:
        load_sweep(file, {}, placed.check)
    assert message in caught.value.message and "changed.yml:" in caught.value.message
    assert all(finding.line for finding in caught.value.findings)
    assert all(finding.hint for finding in caught.value.findings)
