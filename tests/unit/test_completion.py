"""What the shell is offered."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import sample_run
from click.shell_completion import ShellComplete

from qoslab.cli import SUBCOMMANDS, group


def offered(*words: str) -> list[str]:
    *before, incomplete = words
    shell = ShellComplete(group, {}, "qoslab", "_QOSLAB_COMPLETE")
    return [item.value for item in shell.get_completions(list(before), incomplete)]


def test_commands() -> None:
    assert offered("ver") == ["verify"]
    assert offered("") == list(SUBCOMMANDS)


def test_experiments_here_and_shipped_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "polka.yml").touch()
    assert offered("run", "pol") == ["polka", "policing-vs-shaping"]
    assert offered("validate", "srr") == ["srr-3750"]
    assert offered("run", "./x") == ["./x"]  # a file, which the shell looks for itself


def test_arms_of_the_experiment() -> None:
    assert offered("run", "policing-vs-shaping", "--arm", "pol") == ["policed", "policed-cubic"]
    assert offered("run", "nothing-like-it", "--arm", "") == []
    assert offered("run", "--arm", "") == []


def test_parameters_and_their_values() -> None:
    assert offered("run", "tcp-friendly-policer", "--only", "r") == ["rtt=", "receiver="]
    assert set(offered("run", "tcp-friendly-policer", "--only", "rtt=")) == {"rtt=10 ms", "rtt=50 ms", "rtt=100 ms"}
    assert offered("run", "tcp-friendly-policer", "--only", "rtt=5") == ["rtt=50 ms"]


def test_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = sample_run.make_run(tmp_path / "runs").path
    monkeypatch.chdir(tmp_path)
    runs = ["policing-vs-shaping", f"runs/policing-vs-shaping/{folder.name}"]
    assert offered("report", "") == runs
    assert offered("run", "--resume", "runs/") == runs[1:]
    assert offered("report", "--compare", "p") == runs[:1]


def test_kinds_of_labs() -> None:
    assert offered("run", "--lab", "si") == ["simulated"]


def test_the_command_answers_a_shell() -> None:
    asked = {"_QOSLAB_COMPLETE": "bash_complete", "COMP_WORDS": "qoslab adv", "COMP_CWORD": "1"}
    done = subprocess.run(
        [Path(sys.executable).with_name("qoslab")], env=os.environ | asked, capture_output=True, text=True, check=False
    )
    assert done.stdout == "plain,advise\n" and done.stderr == ""
