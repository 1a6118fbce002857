"""Command line: exit status, and the content of stdout and stderr."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from qoslab import cli
from qoslab.__main__ import main as start
from qoslab.cli import SUBCOMMANDS, main
from qoslab.errors import ExitStatus, RunInvalid, UserError, find_shortage

TOP = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def change_to_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TOP)


def pretend_error(monkeypatch: pytest.MonkeyPatch, behaviour: object) -> None:
    """Add a subcommand `pretend` that raises or returns `behaviour`."""

    @click.command()
    def command() -> object:
        if isinstance(behaviour, BaseException):
            raise behaviour
        return behaviour

    module = type(sys)("qoslab.cli.pretend")
    module.command = command  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "qoslab.cli.pretend", module)
    monkeypatch.setitem(SUBCOMMANDS, "pretend", ("qoslab.cli.pretend", "Pretend."))


@pytest.mark.parametrize(
    ("behaviour", "status", "message"),
    [
        (None, ExitStatus.WITHIN, ""),
        (ExitStatus.OUTSIDE, ExitStatus.OUTSIDE, ""),
        (UserError("found a", hint="Write b."), ExitStatus.USER_MISTAKE, "qoslab: found a\n  Write b.\n"),
        (RunInvalid("frames were lost"), ExitStatus.RUN_INVALID, "qoslab: frames were lost\n"),
        (KeyboardInterrupt(), ExitStatus.INTERRUPTED, "qoslab: interrupted\n"),
        (click.UsageError("no such thing"), ExitStatus.USER_MISTAKE, "Error: no such thing\n"),
    ],
)
def test_each_outcome_has_a_distinct_exit_status(
    behaviour: object,
    status: ExitStatus,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pretend_error(monkeypatch, behaviour)
    assert main(["pretend"]) == status
    out, err = capsys.readouterr()
    assert (out, err.endswith(message)) == ("", True)


def test_bug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pretend_error(monkeypatch, ZeroDivisionError("oh"))
    assert main(["pretend"]) == ExitStatus.OUR_FAULT
    error = capsys.readouterr().err
    assert "Traceback" in error
    assert "defect of qoslab, not of your input: ZeroDivisionError: oh" in error


def test_help_imports_no_subcommand(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "importlib", None)
    assert main(["--help"]) == ExitStatus.WITHIN
    text = capsys.readouterr().out
    for name, (_, line) in SUBCOMMANDS.items():
        assert name in text
        assert line in text


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_every_subcommand_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == ExitStatus.WITHIN
    out, err = capsys.readouterr()
    assert out.startswith(f"Usage: qoslab {name} ")
    assert err == ""


def test_misspelt_subcommand_gets_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validat"]) == ExitStatus.USER_MISTAKE
    assert 'did you mean "validate"?' in capsys.readouterr().err


def test_validate_lists_arms_and_cells(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "policing-vs-shaping"]) == ExitStatus.WITHIN
    out, err = capsys.readouterr()
    assert out == ""
    assert "arms: unrestricted, policed, shaped" in err


def test_validate_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "policing-vs-shaping", "--json"]) == ExitStatus.WITHIN
    assert json.loads(capsys.readouterr().out) == {
        "valid": True,
        "message": "",
        "findings": [],
        "remarks": [],
        "warnings": [],
        "fidelity": [],
    }
    status = main(["validate", "policing-vs-shaping", "--json", "--set", "R1.platfrom=linux"])
    assert status == ExitStatus.USER_MISTAKE
    answer = json.loads(capsys.readouterr().out)
    assert answer["valid"] is False
    assert [finding["option"] for finding in answer["findings"]] == ["--set R1.platfrom=linux"]
    assert 'did you mean "platform"?' in answer["findings"][0]["hint"]


def test_errors_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "tests/goldens/errors/tool-unknown.yml"]) == ExitStatus.USER_MISTAKE
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("qoslab: tests/goldens/errors/tool-unknown.yml:21:28: traffic.transfer.tool: found")


def test_plan_lists_the_selected_cells(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "policing-vs-shaping", "--arm", "shaped", "--duration", "5s", "--repetitions", "2"]) == 0
    text = capsys.readouterr().out
    assert "2 cells" in text
    assert "shaped/2" in text
    assert "5 s" in text
    assert "policed" not in text


def test_plan_refuses_a_duration_without_unit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "policing-vs-shaping", "--duration", "5"]) == ExitStatus.USER_MISTAKE
    assert 'did you mean "5 s"?' in capsys.readouterr().err


def test_list_prints_experiments_and_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["list"]) == ExitStatus.WITHIN
    out, err = capsys.readouterr()
    assert (out, err) == ("", "no experiments in experiments/\nno runs in runs/\n")
    for name in ("experiments", "reports"):
        (tmp_path / name).symlink_to(TOP / name)
    done = tmp_path / "runs" / "x" / "20260102T030405Z"
    done.mkdir(parents=True)
    (done / "comparison.json").write_text('[{"verdict": "within"}, {"verdict": "outside"}, {"verdict": "within"}]')
    (done / "report.html").touch()
    (done / "manifest.json").write_text('{"cells": [{"valid": true}, {"valid": true}]}')
    doubtful = done.parent / "20260102T030407Z"
    doubtful.mkdir()
    (doubtful / "comparison.json").write_text('[{"verdict": "within"}]')
    (doubtful / "manifest.json").write_text('{"cells": [{"valid": true}, {"valid": false}]}')
    (done.parent / "20260102T030406Z").mkdir()
    (done.parent / "latest").symlink_to(done.name)
    assert main(["list", "--json"]) == ExitStatus.WITHIN
    found = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in found["experiments"] if row["title"] and row["arms"]] == sorted(
        each.stem for each in (TOP / "experiments").glob("*.yml")
    )
    assert [(row["time"], row["state"]) for row in found["runs"]] == [
        ("20260102T030405Z", "2 within, 1 outside"),
        ("20260102T030406Z", "unfinished"),
        ("20260102T030407Z", "invalid (1 of 2 cells): 1 within, 0 outside"),
    ]


def test_list_names_a_file_that_is_not_yaml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments/broken.yml").write_text("name: [\n")
    (tmp_path / "experiments/no-arms.yml").write_text("title: Without arms\narms: 7\n")
    assert main(["list", "experiments"]) == ExitStatus.WITHIN
    broken, other = capsys.readouterr().out.splitlines()
    assert broken.startswith(
        "experiments/broken.yml  (unreadable, see qoslab validate: experiments/broken.yml: found no"
    )
    assert other == "experiments/no-arms.yml  Without arms  ()"


def test_schema_prints_the_committed_schema_and_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == ExitStatus.WITHIN
    assert capsys.readouterr().out == (TOP / "docs" / "schema" / "experiment.schema.json").read_text()
    assert main(["schema", "--metrics", "--json"]) == ExitStatus.WITHIN
    assert "goodput.sum" in {row["name"] for row in json.loads(capsys.readouterr().out)}


def test_closed_output_pipe_is_not_an_error() -> None:
    command = [sys.executable, "-c", "import sys; from qoslab.cli import main; sys.exit(main(['schema']))"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == cli.BROKEN_PIPE


@pytest.mark.long
@pytest.mark.parametrize("most", [6, 8, 10, 12])
def test_exhausted_file_descriptors_are_reported(most: int, tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "qoslab", "run", "policing-vs-shaping", "--lab", "simulated"]
    ran = subprocess.run(
        ["prlimit", f"--nofile={most}", *command, "--duration", "2s", "--arm", "policed"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2 and "Too many open files" in ran.stderr, ran.stderr
    assert "Traceback" not in ran.stderr and "defect" not in ran.stderr, ran.stderr


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.EMFILE, "Too many open files", "/a"), "Too many open files: /a"),
        (ImportError("libz.so: cannot open shared object file: Too many open files"), "libz.so"),
        (MemoryError(), "memory"),
        (OSError(errno.ENOENT, "No such file or directory", "/a"), ""),
        (ImportError("libz.so: cannot open shared object file: No such file or directory"), ""),
        (ValueError("x"), ""),
    ],
)
def test_exhausted_resources_are_not_a_bug(error: Exception, message: str) -> None:
    assert find_shortage(error).startswith(message) and bool(find_shortage(error)) == bool(message)
    try:
        try:
            raise error
        except Exception as reason:
            raise RuntimeError("in the middle of something") from reason
    except RuntimeError as later:
        assert find_shortage(later) == find_shortage(error)


@pytest.mark.parametrize(
    ("why", "status", "message"),
    [
        (KeyboardInterrupt(), 130, "qoslab: interrupted\n"),
        (OSError(errno.EMFILE, "Too many open files", "/a"), 2, "/a'\n"),
        (MemoryError(), 2, "qoslab: cannot read its own files: out of memory\n"),
    ],
)
def test_load_error_of_the_program_is_reported_in_one_line(
    why: BaseException, status: int, message: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    class Refuses:
        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            if name == "qoslab.cli":
                raise why

    monkeypatch.delitem(sys.modules, "qoslab.cli")
    monkeypatch.setattr(sys, "meta_path", [Refuses(), *sys.meta_path])
    assert start() == status
    printed = capfd.readouterr().err
    assert printed.startswith("qoslab: ") and printed.endswith(message) and printed.count("\n") == 1
