"""`qoslab new experiment`: the written experiment runs and passes."""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import pty
import select
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from levels import every_nth
from qoslab.cli import main
from qoslab.cli.new import POLICIES, TRAFFIC
from waiting import wait_until


@pytest.mark.sample(7)
@pytest.mark.parametrize("policy, traffic, routers", list(itertools.product(POLICIES, TRAFFIC, ("1", "2"))))
def test_any_answers_give_a_valid_experiment(
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


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("model", "port"), [("ISR4451", "GigabitEthernet0/0/1"), ("C8000V", "GigabitEthernet2")])
def test_routers_can_have_another_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, port: str, policy: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "experiment", "mine", "--policy", policy, "--routers", "2", "--model", model]) == 0
    assert f"interface {port}\n" in (tmp_path / "experiments" / "templates" / "mine.ios.j2").read_text()
    assert main(["validate", "mine"]) == 0


@pytest.mark.parametrize("model", ["3750G", "ISR9999"])
def test_model_of_no_router_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], model: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "experiment", "mine", "--model", model]) == 2
    assert f'found --model "{model}", expected one of 3725, ' in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_new_experiment_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for policy in ("police", "priority")[:: every_nth(2)]:
        assert main(["new", "experiment", policy, "--policy", policy, "--routers", "2", "--duration", "5 s"]) == 0
        capsys.readouterr()
        assert main(["run", policy, "--lab", "simulated", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        verdicts = [row["verdict"] for row in found["comparison"]]
        assert found["valid"] and verdicts.count("within") == (2 if policy == "police" else 4)


@pytest.mark.sample(4)
@pytest.mark.parametrize("policy", POLICIES)
def test_voice_expectation_depends_on_the_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], policy: str
) -> None:
    """Check the voice expectation: it passes at the least rate, and fails if the policy is too slow for the voice, or
    missing.
    """
    monkeypatch.chdir(tmp_path)
    words = ["--policy", policy, "--traffic", "voice", "--rate", "256 kb/s", "--delay", "5 ms", "--duration", "5 s"]
    assert main(["new", "experiment", "mine", *words]) == 0
    assert main(["run", "mine", "--lab", "simulated"]) == 0
    capsys.readouterr()
    if policy != "priority":  # a class with more than the rate, which IOS would refuse
        slow = ["--set", f"arms.{policy}.configure.R1.variables.rate=64000"]
        assert main(["run", "mine", "--lab", "simulated", "--json", *slow]) == 1
        rows = json.loads(capsys.readouterr().out)["comparison"]
        assert [row["verdict"] for row in rows if row["tolerance"]] == ["within", "outside", "within", "outside"]
    template = tmp_path / "experiments/templates/mine.ios.j2"
    template.write_text(template.read_text().replace(" service-policy output Uplink\n", ""))
    assert main(["run", "mine", "--lab", "simulated", "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)["comparison"]
    assert [row["verdict"] for row in rows if row["tolerance"]] == ["within", "within", "outside", "outside"]


def _until_it_waits(pid: int) -> None:
    """Wait until `input` reads: it loses a Ctrl-C that arrives while it still writes the question, faster than a person
    types.
    """
    stat = Path(f"/proc/{pid}/stat")
    wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "S", "the command waits for an answer")


def dialogue(folder: Path, *answers: str) -> tuple[int, str]:
    """Answer questions on a terminal one after another; return the status and the whole screen text."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "qoslab", "new", "experiment", "mine"]
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C is a signal
    )
    os.close(follower)
    shown, left = "", list(answers)
    with os.fdopen(leader, "r+b", buffering=0) as terminal:
        while True:
            ready, _, _ = select.select([terminal], [], [], 60)
            assert ready, f"it waits for something else: {shown}"
            try:
                more = terminal.read(4096).decode()
            except OSError:  # its other end is closed
                break
            if not more:
                break
            shown += more
            if left and shown.endswith("]: "):
                _until_it_waits(process.pid)
                terminal.write(left.pop(0).encode() + b"\n")
    assert not left, shown
    return process.wait(60), shown.replace("\r\n", "\n")


def test_missing_options_are_requested_on_a_terminal(tmp_path: Path) -> None:
    # The third answer is not one of the choices, and is asked for again; an empty answer takes the default.
    status, shown = dialogue(tmp_path, "2", "police", "fast", "3 Mb/s", "tcp", "4", "20ms", "")
    assert status == 0, shown
    asked = [
        "Routers between client and server (2: with a WAN between them)",
        "Policy of R1 towards the server (police, shape, fair, priority)",
        "Rate",
        "Rate",
        "Traffic (tcp, voice, both)",
        "TCP connections",
        "One-way delay of the WAN",
        "Duration",
    ]
    assert [line.partition(" [")[0] for line in shown.splitlines() if "]: " in line] == asked
    assert "Error: " in shown and "fast" in shown
    text = (tmp_path / "experiments/mine.yml").read_text()
    assert "streams: 4" in text and "R2:" in text and "delay: 20 ms" in text and "duration: 10 s" in text
    assert "police cir {{ rate }}" in (tmp_path / "experiments/templates/mine.ios.j2").read_text()


@pytest.mark.long
def test_only_relevant_options_are_requested(tmp_path: Path) -> None:
    """Answer the questions: voice needs no number of connections; a priority queue is not offered traffic without
    marks.
    """
    status, shown = dialogue(tmp_path, "", "priority", "", "voice", "", "")
    assert status == 0, shown
    assert "TCP connections" not in shown and "Traffic (voice, both)" in shown
    text = (tmp_path / "experiments/mine.yml").read_text()
    assert "iperf3" not in text and " delay:" not in text


def test_aborted_dialogue_writes_nothing(tmp_path: Path) -> None:
    status, shown = dialogue(tmp_path, "1", "\x03")
    assert status == 130, shown
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words, message",
    [
        (["Mine"], 'found the name "Mine", expected lowercase letters'),
        (["../mine"], 'found the name "../mine", expected lowercase letters'),
        (["mine", "--rate", "90 Mb/s"], "found --rate 90 Mb/s, expected 256 kb/s to 50 Mb/s"),
        (["mine", "--rate", "fast"], "--rate"),
        (["mine", "--policy", "polic"], "--policy"),
        (
            ["mine", "--traffic", "voice", "--streams", "4"],
            "found --streams with --traffic voice, expected traffic with",
        ),
    ],
)
def test_impossible_options_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "experiment", *words]) == 2
    assert message in capsys.readouterr().err and list(tmp_path.iterdir()) == []


def test_new_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    template = tmp_path / "experiments/templates/mine.ios.j2"
    template.parent.mkdir(parents=True)
    template.write_text("mine")
    assert main(["new", "experiment", "mine"]) == 2
    assert "mine.ios.j2: found an existing file" in capsys.readouterr().err
    assert template.read_text() == "mine" and [path.name for path in (tmp_path / "experiments").iterdir()] == [
        "templates"
    ]
    link = tmp_path / "experiments/other.yml"
    link.symlink_to("nowhere")
    assert main(["new", "experiment", "other"]) == 2
    assert "other.yml: found an existing file" in capsys.readouterr().err and link.is_symlink()


def test_template_is_not_left_without_its_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rename = Path.rename

    def fail_to_rename(path: Path, target: Path) -> Path:
        if target.name == "mine.yml":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return rename(path, target)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "rename", fail_to_rename)
    assert main(["new", "experiment", "mine", "--policy", "police"]) == 2
    assert "mine.yml: cannot be written, the disk is full" in capsys.readouterr().err
    assert list(tmp_path.rglob("*")) == []
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert main(["new", "experiment", "mine", "--policy", "police"]) == 0
