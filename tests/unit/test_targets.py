"""Output files of commands are complete, or unchanged, and the fault is named."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sample_run

from qoslab.analysis import Outcome, analyse
from qoslab.cli import main
from qoslab.cli.export import FORMATS
from qoslab.errors import UserError
from qoslab.report import gate
from qoslab.results import RunFolder
from qoslab.results.file_access import Disk

FULL = Path("/dev/full")
NOTHING = Path("/proc/nothing")
"""Folder in which not even root can create a file."""
ROOT = Path(__file__).parents[2]
ROOM = 200
"""Space for a file in bytes: a write fails in the middle, like on a full disk."""


@pytest.fixture(scope="module")
def analysed_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, Outcome]:
    folder = sample_run.make_run(tmp_path_factory.mktemp("run"))
    return folder, analyse(folder)


@pytest.fixture
def run(analysed_run: tuple[RunFolder, Outcome], monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """Provide a run with existing files: only the requested files are written next."""
    for name in ("qoslab.analysis.parallel.analyse_by_helpers", "qoslab.report.view.analyse"):
        monkeypatch.setattr(name, lambda folder: analysed_run[1])
    monkeypatch.setattr("qoslab.report.render", lambda folder, outcome: folder.report)
    return analysed_run[0]


def command_words(command: str, run: RunFolder, target: Path) -> list[str]:
    """Return the words of a command that writes to `target`."""
    recorded = sample_run.RECORDED
    capture = str(recorded / "capture" / "four-streams.pcapng")
    return {
        "junit": ["report", str(run.path), "--junit", str(target)],
        "summary": ["report", str(run.path), "--summary", str(target)],
        "man": ["man", "--to", str(target)],
        "draw": ["draw", "cbwfq-classic", "--to", str(target)],
        "figure": ["figure", str(run.path), "goodput.sum", "--to", f"{target}.svg"],
        **{form: ["export", str(run.path), "--format", form, "--to", str(target)] for form in FORMATS},
        "init": ["init", str(target)],
        "import": ["import", str(recorded / "foreign" / "iperf3-tcp.client.txt"), "--to", str(target)],
        "topology": ["new", "topology", "lab.clab.yml", "--to", str(target)],
        "experiment": ["new", "experiment", "mine"],
        "notebook": ["notebook", "srr-3750"],
        "testbed": ["testbed", "--lab", str(ROOT / "inventory/hardware.example.yml"), "--output", str(target)],
        "infer": ["infer", capture, capture, "--table", str(target)],
    }[command]


FIXED = {"experiment": "experiments/mine.yml", "notebook": "analysis/srr-3750.ipynb"}
"""Commands with fixed output files."""
WRITING = ("junit", "summary", "man", "draw", "figure", *FORMATS, "init", "import", "topology", "testbed", "infer")
"""Commands with chosen output files."""


@pytest.fixture
def input_folder(tmp_path: Path) -> Path:
    """Provide a working directory with the input of commands."""
    topology = {"name": "lab", "topology": {"nodes": {"a": {"kind": "linux"}, "b": {"kind": "linux"}}}}
    topology["topology"]["links"] = [{"endpoints": ["a:eth1", "b:eth1"]}]  # type: ignore[index]
    (tmp_path / "lab.clab.yml").write_text(json.dumps(topology))
    (tmp_path / "file").write_text("mine")
    return tmp_path


def leftovers(input_folder: Path) -> dict[str, str]:
    """Return the contents of a folder, including folders."""
    found = sorted(path for path in input_folder.rglob("*"))
    return {path.relative_to(input_folder).as_posix(): path.read_text() if path.is_file() else "" for path in found}


@pytest.mark.sample(7)
@pytest.mark.parametrize("target", [NOTHING, Path("file/below")], ids=str)
@pytest.mark.parametrize("command", WRITING)
def test_unwritable_target_is_reported(
    run: RunFolder,
    input_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    target: Path,
) -> None:
    monkeypatch.chdir(input_folder)
    before = leftovers(input_folder)
    assert main(command_words(command, run, target)) == 2
    output = capsys.readouterr().err
    assert str(target) in output
    assert re.search(
        "cannot be written|found no (folder .*, expected it to exist|permission to write in the folder .*)", output
    )
    assert "None" not in output and leftovers(input_folder) == before


@pytest.mark.parametrize("command", ["junit", "summary"])
def test_device_file_is_written_and_not_replaced(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    # As an ordinary user, who cannot create a file in the folder.
    monkeypatch.setattr(os, "access", lambda path, mode: path != FULL.parent)
    assert main(command_words(command, run, FULL)) == 2
    assert "/dev/full: cannot be written, the disk is full" in capsys.readouterr().err
    assert stat.S_ISCHR(FULL.stat().st_mode)


@pytest.mark.parametrize("command", ["junit", "summary"])
@pytest.mark.parametrize(
    ("target", "held", "message"),
    [
        (FULL, FULL, "found no permission to write to it"),
        (Path("mine/out"), Path("mine"), "found no permission to write in the folder mine"),
    ],
)
def test_forbidden_target_is_refused(
    run: RunFolder,
    input_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    target: Path,
    held: Path,
    message: str,
) -> None:
    monkeypatch.chdir(input_folder)
    Path("mine").mkdir()
    # As an ordinary user; root may write anywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: path != held)
    assert main(command_words(command, run, target)) == 2
    assert f"--{command} {target}: {message}" in capsys.readouterr().err
    assert list(Path("mine").iterdir()) == []


@contextmanager
def limit_space() -> Iterator[None]:
    """Limit files to `ROOM` bytes, except compiled ones of first imports: a truncated one would break later imports."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, hard))
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "dont_write_bytecode", True)
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.sample(5)
@pytest.mark.parametrize("command", [*WRITING, *FIXED])
def test_full_disk_is_reported_and_leaves_no_file(
    run: RunFolder,
    input_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    monkeypatch.chdir(input_folder)
    before = leftovers(input_folder)
    # The folder of a report for a forge must exist.
    target = Path(FIXED.get(command, "made" if command in ("junit", "summary") else "deep/made"))
    with limit_space():
        assert main(command_words(command, run, target)) == 2
    named = {"man": f"{target}/qoslab.1", "figure": f"{target}.svg"}.get(command, str(target))
    assert capsys.readouterr().err.splitlines()[-2:] == [
        f"qoslab: {named}: cannot be written, the disk is full (File too large)",
        "  it is unchanged; free some space and run again",
    ]
    assert leftovers(input_folder) == before


def test_generated_files_are_unchanged_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail_with_full_disk(disk: Disk, path: Path, content: bytes) -> None:
        path.write_bytes(content[:1])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "made.md").write_text("old")
    monkeypatch.setattr("qoslab.cli.generate.find_checkout", lambda: tmp_path)
    monkeypatch.setattr("qoslab.cli.generate._generated_files", lambda top: [("made.md", "new")])
    monkeypatch.setattr(Disk, "create", fail_with_full_disk)
    assert main(["generate"]) == 2
    assert "made.md: cannot be written, the disk is full" in capsys.readouterr().err
    assert leftovers(tmp_path) == {"made.md": "old"}


def test_manual_pages_stay_on_a_full_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = {"qoslab.1": "old", "qoslab-gone.1": "older", "other.1": "of others"}
    for name, text in old.items():
        (tmp_path / name).write_text(text)
    with limit_space():
        assert main(["man", "--to", str(tmp_path)]) == 2
    assert f"{tmp_path}/qoslab.1: cannot be written, the disk is full" in capsys.readouterr().err
    assert leftovers(tmp_path) == old


@pytest.mark.parametrize("more", [False, True])
def test_ci_output_file_is_complete_or_unchanged(tmp_path: Path, more: bool) -> None:
    file = tmp_path / "out.md"
    file.write_text("before\n")
    with limit_space(), pytest.raises(UserError, match=f"^{file}: cannot be written, the disk is full"):
        gate.save_text(file, b"x" * 1000, more=more)
    assert file.read_text() == "before\n" and [path.name for path in tmp_path.iterdir()] == ["out.md"]
    gate.save_text(file, b"after\n", more=more)
    assert file.read_text() == ("before\nafter\n" if more else "after\n")


def test_folder_as_output_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written: Is a directory"):
        gate.save_text(tmp_path, b"x", more=False)
