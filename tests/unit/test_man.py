"""Manual pages."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import click
import pytest

from qoslab.cli import SUBCOMMANDS, command_group, main
from qoslab.cli.man import manual_pages


def _commands(command: click.Command, name: str = "qoslab") -> set[str]:
    found = {name}
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            inner = command.get_command(context, each)
            assert inner is not None
            found |= _commands(inner, f"{name}-{each}")
    return found


def test_every_command_has_a_manual_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "qoslab-gone.1").write_text("of an older version")
    assert main(["man", "--to", str(tmp_path)]) == 0
    assert {file.stem for file in tmp_path.iterdir()} == _commands(command_group)
    assert capsys.readouterr().out.startswith(f"{len(_commands(command_group))} pages written to {tmp_path}")
    program = shutil.which("man")
    assert program is not None, "no man on this machine: sudo apt-get install man-db"
    shown = {
        name: subprocess.run(
            [program, "--warnings", "-l", tmp_path / f"{name}.1"],
            capture_output=True,
            text=True,
            env={"MANWIDTH": "100"},
        )
        for name in ("qoslab", "qoslab-figure", "qoslab-new-experiment")
    }
    assert {name: done.stderr for name, done in shown.items()} == dict.fromkeys(shown, "")
    assert all(f"See qoslab-{name}(1)" in " ".join(shown["qoslab"].stdout.split()) for name in SUBCOMMANDS)
    assert "Draw one figure of a run, for a paper." in shown["qoslab-figure"].stdout


def test_pages_are_the_same_on_another_day(monkeypatch: pytest.MonkeyPatch) -> None:
    before = manual_pages()
    monkeypatch.setattr(time, "strftime", lambda *given: "1999-12-31")
    assert manual_pages() == before


def test_generate_writes_only_outdated_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("qoslab.cli.generate.find_checkout", lambda: tmp_path)
    monkeypatch.setattr("qoslab.generate.FILES", {name: lambda top: "new" for name in ("current", "old", "missing")})
    (tmp_path / "current").write_text("new")
    (tmp_path / "old").write_text("of an older version")
    assert main(["generate", "--check"]) == 1
    assert capsys.readouterr().out.splitlines() == ["old is stale", "missing is stale"]
    assert main(["generate"]) == 0
    assert capsys.readouterr().out.splitlines() == ["old written", "missing written"]
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == dict.fromkeys(
        ("current", "old", "missing"), "new"
    )


def test_manual_pages_are_installed_in_the_path_of_man(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from qoslab.cli.man import user_man_folder

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert user_man_folder() == tmp_path / "man" / "man1"
    assert main(["man"]) == 0
    assert (tmp_path / "man" / "man1" / "qoslab-run.1").is_file()
