"""`qoslab new experiment`: what it writes runs and holds."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from qoslab.cli import main
from qoslab.cli.new import POLICIES, TRAFFIC


@pytest.mark.parametrize("policy, traffic, routers", list(itertools.product(POLICIES, TRAFFIC, ("1", "2"))))
def test_whatever_is_answered_holds(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    policy: str,
    traffic: str,
    routers: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["new", "experiment", "mine", "--policy", policy, "--traffic", traffic, "--routers", routers]
    made = main([*words, "--delay", "10 ms"])
    if policy == "priority" and traffic == "tcp":
        assert made == 2 and "expected traffic that is marked" in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []
        return
    assert made == 0
    assert sorted(path.name for path in (tmp_path / "experiments").rglob("*")) == [
        "mine.ios.j2",
        "mine.yml",
        "templates",
    ]
    assert main(["validate", "mine"]) == 0


def test_it_runs_and_meets_what_it_expects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for policy in ("police", "priority"):
        assert main(["new", "experiment", policy, "--policy", policy, "--routers", "2", "--duration", "5 s"]) == 0
        capsys.readouterr()
        assert main(["run", policy, "--lab", "simulated", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        verdicts = [row["verdict"] for row in found["comparison"]]
        assert found["valid"] and verdicts.count("within") == (2 if policy == "police" else 3)


@pytest.mark.parametrize(
    "words, said",
    [
        (["Mine"], 'found the name "Mine", expected small letters'),
        (["../mine"], 'found the name "../mine", expected small letters'),
        (["mine", "--rate", "90 Mb/s"], "found --rate 90 Mb/s, expected 256 kb/s to 50 Mb/s"),
        (["mine", "--rate", "fast"], "--rate"),
        (["mine", "--policy", "polic"], "--policy"),
    ],
)
def test_what_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "experiment", *words]) == 2
    assert said in capsys.readouterr().err and list(tmp_path.iterdir()) == []


def test_nothing_is_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    template = tmp_path / "experiments/templates/mine.ios.j2"
    template.parent.mkdir(parents=True)
    template.write_text("mine")
    assert main(["new", "experiment", "mine"]) == 2
    assert "mine.ios.j2: found a file from before" in capsys.readouterr().err
    assert template.read_text() == "mine" and [path.name for path in (tmp_path / "experiments").iterdir()] == [
        "templates"
    ]
