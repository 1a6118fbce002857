"""What a command writes where it is told to is there whole, or as it was before, and the fault is named."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest
import sample_run

from qoslab.analysis import analyse
from qoslab.cli import main
from qoslab.errors import UserError
from qoslab.report import gate
from qoslab.results import RunFolder

FULL = Path("/dev/full")
NOTHING = Path("/proc/nothing")
"""As everybody, root too: no file can be made there."""
LIMITED = (
    "import resource, sys\n"
    "resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))\n"
    "from qoslab.cli import main\n"
    "sys.exit(main(sys.argv[1:]))\n"
)
"""qoslab, whose files have room for 200 bytes: what it writes breaks off amid a file, as on a full disk."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    folder = sample_run.make_run(tmp_path_factory.mktemp("run"))
    analyse(folder)
    return folder


def words(command: str, run: RunFolder, target: Path) -> list[str]:
    """A command that writes to `target`."""
    return {
        "junit": ["report", str(run.path), "--junit", str(target)],
        "summary": ["report", str(run.path), "--summary", str(target)],
        "man": ["man", "--to", str(target)],
        "draw": ["draw", "cbwfq-classic", "--to", str(target)],
        "figure": ["figure", str(run.path), "goodput.sum", "--to", f"{target}.svg"],
        "export": ["export", str(run.path), "--format", "csv", "--to", str(target)],
        "init": ["init", str(target)],
    }[command]


@pytest.mark.parametrize("target", [NOTHING, Path("file/below")], ids=str)
@pytest.mark.parametrize("command", ["junit", "summary", "man", "draw", "figure", "export", "init"])
def test_a_place_where_nothing_can_be_written_is_named(
    run: RunFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    target: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    assert main(words(command, run, target)) == 2
    told = capsys.readouterr().err
    assert str(target) in told and ("cannot be written" in told or "to write in, expected one" in told)
    assert [path.name for path in tmp_path.iterdir()] == ["file"] and (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("command", ["junit", "summary"])
def test_a_device_is_written_to_and_not_replaced(
    run: RunFolder, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert main(words(command, run, FULL)) == 2
    assert "/dev/full: cannot be written, the disk is full" in capsys.readouterr().err
    assert stat.S_ISCHR(FULL.stat().st_mode)


def limited(folder: Path, *argv: str) -> str:
    """What qoslab says where it must not write more than a little; it ends with status 2."""
    done = subprocess.run([sys.executable, "-c", LIMITED, *argv], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "cannot be written, the disk is full" in done.stderr and "Traceback" not in done.stderr
    return done.stderr


def test_pages_of_a_manual_stay_where_there_is_no_room_for_new_ones(tmp_path: Path) -> None:
    old = {"qoslab.1": "old", "qoslab-gone.1": "older", "other.1": "of others"}
    for name, text in old.items():
        (tmp_path / name).write_text(text)
    assert str(tmp_path) in limited(tmp_path, "man", "--to", str(tmp_path))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == old


def test_half_a_notebook_is_not_left_for_a_whole_one(tmp_path: Path) -> None:
    assert "analysis/srr-3750.ipynb" in limited(tmp_path, "notebook", "srr-3750")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_half_a_picture_is_not_left(tmp_path: Path) -> None:
    assert "topology.svg" in limited(tmp_path, "draw", "cbwfq-classic", "--to", "topology.svg")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("more", [False, True])
def test_a_file_for_a_forge_is_whole_or_as_before(tmp_path: Path, more: bool) -> None:
    file = tmp_path / "out.md"
    file.write_text("before\n")
    script = (
        "import resource, sys\nfrom pathlib import Path\nfrom qoslab.report import gate\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))\n"
        f"gate.saved(Path({str(file)!r}), b'x' * 1000, more={more})\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert f"UserError: {file}: cannot be written, the disk is full" in done.stderr
    assert file.read_text() == "before\n" and [path.name for path in tmp_path.iterdir()] == ["out.md"]
    gate.saved(file, b"after\n", more=more)
    assert file.read_text() == ("before\nafter\n" if more else "after\n")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written: Is a directory"):
        gate.saved(tmp_path, b"x", more=False)
