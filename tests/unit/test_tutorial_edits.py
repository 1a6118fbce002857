"""Expectations of the tutorial, `new experiment` and `init` fail if the policy does nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from levels import long_cases
from qoslab.cli import main
from qoslab.errors import ExitStatus

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"
UPLINK = """policy-map Uplink
 class class-default
  shape average {{ rate }}
interface FastEthernet0/1
 service-policy output Uplink
"""


def tutorial_block(language: str, first: str) -> str:
    """Return the code block of the page that begins with this text."""
    found = re.findall(rf"```{language}\n(.*?)```", TUTORIAL.read_text(encoding="utf-8"), re.DOTALL)
    (text,) = (each for each in found if each.startswith(first))
    return str(text)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("interface FastEthernet0/1", "interface FastEthernet0/0"),
        (" match ip dscp ef\n", ""),
        (" match ip dscp ef\n", " match ip dscp ef\n match ip dscp af41\n"),
    ],
    ids=["wrong-interface", "no-match", "two-code-points"],
)
def test_edit_that_makes_the_policy_idle_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], old: str, new: str
) -> None:
    template = tutorial_block("ios", "! experiments/templates/voice.ios.j2").replace("priorty", "priority")
    assert old in template
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "voice.ios.j2").write_text(template.replace(old, new))
    (tmp_path / "templates" / "uplink.ios.j2").write_text(UPLINK)
    (tmp_path / "voice.yml").write_text(tutorial_block("yaml", "# experiments/voice.yml"))
    monkeypatch.chdir(tmp_path)
    assert main(["run", "voice.yml", "--lab", "simulated", "--arm", "priority"]) == ExitStatus.OUTSIDE
    assert "Warning: " in capsys.readouterr().out


def edit_tutorial(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("policy", "old", "new"),
    [
        *((policy, "FastEthernet0/1", "FastEthernet0/0") for policy in ("priority", "shape", "police", "fair")),
        ("priority", " match dscp ef\n", ""),
        ("priority", " match dscp ef\n", " match dscp ef\n match dscp af41\n"),
    ],
)
def test_edit_of_a_new_experiment_that_makes_its_policy_idle_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str, old: str, new: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "experiment", "mine", "--policy", policy, "--traffic", "both", "--duration", "4s"]) == 0
    edit_tutorial(tmp_path / "experiments/templates/mine.ios.j2", old, new)
    assert main(["run", "mine", "--lab", "simulated", "--arm", policy]) == ExitStatus.OUTSIDE


@pytest.mark.parametrize("arm", ["policed", *long_cases("shaped")])
def test_edit_of_the_first_experiment_that_makes_its_policy_idle_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arm: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "mine"]) == 0
    monkeypatch.chdir(tmp_path / "mine")
    edit_tutorial(tmp_path / "mine/experiments/templates/policy.ios.j2", "FastEthernet0/1", "FastEthernet0/0")
    edit_tutorial(tmp_path / "mine/experiments/first-policy.yml", "duration: 10 s", "duration: 4 s")
    assert main(["run", "first-policy", "--lab", "simulated", "--arm", arm]) == ExitStatus.OUTSIDE
