"""Shell completions."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest
import sample_run
from click.shell_completion import ShellComplete

from qoslab.analysis import analyse
from qoslab.cli import SUBCOMMANDS, command_group
from qoslab.cli.bash import split_line
from qoslab.report import render
from qoslab.schema import sweep


def offered_completions(*words: str) -> list[str]:
    *before, incomplete = words
    shell = ShellComplete(command_group, {}, "qoslab", "_QOSLAB_COMPLETE")
    return [item.value for item in shell.get_completions(list(before), incomplete)]


def test_commands_are_completed() -> None:
    assert offered_completions("ver") == ["verify"]
    assert offered_completions("") == list(SUBCOMMANDS)


def test_local_and_shipped_experiments_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "polka.yml").touch()
    assert offered_completions("run", "pol") == ["polka", "policing-vs-shaping"]
    assert offered_completions("validate", "srr") == ["srr-3750"]
    assert offered_completions("run", "./x") == ["./x"]  # a file, which the shell completes itself


def test_arms_of_the_experiment_are_completed() -> None:
    assert offered_completions("run", "policing-vs-shaping", "--arm", "pol") == ["policed", "policed-cubic"]
    assert offered_completions("run", "nothing-like-it", "--arm", "") == []
    assert offered_completions("run", "--arm", "") == []


def test_parameters_and_their_values_are_completed() -> None:
    assert offered_completions("run", "tcp-friendly-policer", "--only", "r") == ["rtt=", "receiver="]
    assert set(offered_completions("run", "tcp-friendly-policer", "--only", "rtt=")) == {
        "rtt=10 ms",
        "rtt=50 ms",
        "rtt=100 ms",
    }
    assert offered_completions("run", "tcp-friendly-policer", "--only", "rtt=5") == ["rtt=50 ms"]


def test_runs_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = sample_run.make_run(tmp_path / "runs").path
    monkeypatch.chdir(tmp_path)
    runs = ["policing-vs-shaping", f"runs/policing-vs-shaping/{folder.name}"]
    assert offered_completions("report", "") == runs
    assert offered_completions("run", "--resume", "runs/") == runs[1:]
    assert offered_completions("report", "--compare", "p") == runs[:1]


def test_kinds_of_labs_are_completed() -> None:
    assert offered_completions("run", "--lab", "si") == ["simulated"]


@pytest.mark.long
def test_figures_and_metrics_of_the_run_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = sample_run.make_run(tmp_path / "runs")
    render(folder, analyse(folder))
    monkeypatch.chdir(tmp_path)
    assert offered_completions("figure", "policing-vs-shaping", "le") == ["lead"]
    for run in ("policing-vs-shaping", f"runs/policing-vs-shaping/{folder.path.name}"):
        assert offered_completions("figure", run, "goodput.su") == ["goodput.sum", "goodput.sum(transfer)"]
        assert offered_completions("advise", run, "goodput.su") == ["goodput.sum", "goodput.sum(transfer)"]
    assert offered_completions("figure", "nothing-like-it", "") == []


def test_runs_and_experiments_are_completed_for_every_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample_run.make_run(tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    assert (
        offered_completions("compare", "pol") == offered_completions("compare", "x", "pol") == ["policing-vs-shaping"]
    )
    assert offered_completions("lab", "up", "srr") == ["srr-3750"]


def test_arms_and_parameters_are_completed_from_invalid_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Complete names from unchecked files: a check takes seconds for a sweep."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sweep, "make_sweep", None)
    assert offered_completions("run", "tcp-friendly-policer", "--arm", "") == ["size", "grid"]
    file = tmp_path / "mine.yml"
    file.write_text(
        "matrix: {rtt: [10 ms, 10ms, 1 s], n: 5}\narms: [{name: a}, 7, {title: t}, {name: b, matrix: {x: [1]}}]\n"
    )
    assert offered_completions("run", "mine.yml", "--arm", "") == ["a", "b"]
    assert offered_completions("run", "mine.yml", "--only", "") == ["x="]
    file.write_text("- 1\n")
    assert (
        offered_completions("run", "mine.yml", "--arm", "")
        == offered_completions("run", "mine.yml", "--only", "x=")
        == []
    )


@pytest.mark.parametrize(
    "line, words, rest",
    [
        ("qoslab run a --only rt", ("qoslab", "run", "a", "--only"), ("rtt=", "rtt=")),
        ("qoslab run a --only rtt=", ("qoslab", "run", "a", "--only"), ("rtt=10 ms", r"10\ ms")),
        (r"q --only rtt=10\ ", ("q", "--only"), ("rtt=10 ms", r"10\ ms")),
        ("q --only 'rtt=1", ("q", "--only"), ("rtt=10 ms", "rtt=10 ms")),
        ('q --only rtt="1', ("q", "--only"), ("rtt=10 $", r"10 \$")),
        ("q --set a.b=c 'd e' ", ("q", "--set", "a.b=c", "d e"), ("it's", r"it\'s")),
        ("q f goodput.su", ("q", "f"), ("goodput.sum(x)", r"goodput.sum\(x\)")),
    ],
)
def test_line_is_split_as_in_bash(line: str, words: tuple[str, ...], rest: tuple[str, str]) -> None:
    found = split_line(line, " \t\n\"'@><=;|&(:")
    assert found.words == words and found.completion_suffix(rest[0]) == rest[1]


class BashTerminal:
    """Interactive bash with a key that prints the current line."""

    def __init__(self, folder: Path) -> None:
        self._end, follower = pty.openpty()
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._bash = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-i"],
            env=os.environ | {"PATH": path, "PS1": "@ ", "TERM": "dumb", "INPUTRC": "/dev/null", "COLUMNS": "2000"},
            cwd=folder,
            stdin=follower,
            stdout=follower,
            stderr=follower,
            start_new_session=True,
        )
        os.close(follower)
        self._shown = ""
        self._type('bind "set show-all-if-ambiguous on"; bind "set enable-bracketed-paste off"\n')
        self._type("""bind -x '"\\C-g": printf "\\n<%s>\\n" "$READLINE_LINE"'\n""")
        self._type('eval "$(_QOSLAB_COMPLETE=bash_source qoslab)"; echo "<"rea"dy>"\n')
        # Before that, the terminal receives the typed characters.
        self._until("<ready>\r\n@ ")
        self._shown = ""

    def tab(self, line: str) -> tuple[str, list[str]]:
        """Type a line and a tab; return the line, and the choices if there are several."""
        self._type(f"{line}\t\x07\x15")
        found = re.search(r"\n<(.*)>\r\n", self._until(">\r\n"))
        assert found is not None
        others = [each for each in self._shown[: found.start()].split("\r\n") if each.strip() and "qoslab" not in each]
        self._shown = ""
        return found[1], [each for line in others for each in re.split("  +", line.strip())]

    def close(self) -> None:
        self._bash.kill()
        self._bash.wait()
        os.close(self._end)

    def _type(self, text: str) -> None:
        os.write(self._end, text.encode())

    def _until(self, text: str) -> str:
        while text not in self._shown:
            ready, _, _ = select.select([self._end], [], [], 60)
            assert ready, self._shown
            self._shown += os.read(self._end, 4096).decode()
        return self._shown


@pytest.mark.long
def test_bash_completes_values_after_an_equals_sign(tmp_path: Path) -> None:
    """Use a real bash, which splits words at `=` and adds a blank after the completion."""
    bash = BashTerminal(tmp_path)
    try:
        run = "qoslab run tcp-friendly-policer --only"
        assert bash.tab(f"{run} rt") == (f"{run} rtt=", [])
        assert bash.tab(f"{run} rtt=") == (f"{run} rtt=", [r"50\ ms", r"10\ ms", r"100\ ms"])
        assert bash.tab(f"{run} rtt=5") == (rf"{run} rtt=50\ ms ", [])
        assert bash.tab(f"{run} 'rtt=5") == (f"{run} 'rtt=50 ms' ", [])
        assert bash.tab("qoslab run --set a=b policing-vs-shaping --lab=si")[0].endswith(" --lab=simulated ")
        assert bash.tab("qoslab run --set a=b policing-vs-shaping --arm policed-")[0].endswith(" policed-cubic ")
    finally:
        bash.close()


def test_command_answers_a_shell() -> None:
    asked = {"_QOSLAB_COMPLETE": "bash_complete", "COMP_LINE": "qoslab adv"}
    done = subprocess.run(
        [Path(sys.executable).with_name("qoslab")], env=os.environ | asked, capture_output=True, text=True, check=False
    )
    assert done.stdout == "plain,advise\n" and done.stderr == ""
