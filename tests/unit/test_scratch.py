"""Temporary folders with passwords end with the process that made them."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from qoslab.errors import MachineError
from qoslab.run import scratch
from qoslab.run.devices.ansible.leftovers import CONNECTIONS
from qoslab.run.scratch import (
    OWNER_FILE,
    Scratch,
    own_temporary_folder,
    remove_leftovers,
    temporary_folder,
    write_owner,
)
from waiting import wait_until

MAKER = (
    "import sys, time; from qoslab.run.scratch import Scratch; s = Scratch('run'); "
    "(s.path / 'inventory.json').write_text('secret'); print(s.path, s._guard.pid, flush=True); time.sleep(60)"
)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    remove_leftovers.cache_clear()
    return tmp_path


def test_scratch_folder_is_private_and_removed_by_its_block() -> None:
    with Scratch("run") as made:
        assert stat.S_IMODE(made.path.stat().st_mode) == 0o700
        (made.path / "inventory.json").write_text("secret")
    assert not made.path.exists()
    assert made._guard.returncode is not None


def test_scratch_folder_is_removed_after_a_kill() -> None:
    with subprocess.Popen([sys.executable, "-c", MAKER], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().split()[0])
        assert (folder / "inventory.json").exists()
        process.kill()
    wait_until(lambda: not folder.exists(), "the scratch folder is removed")


def test_scratch_folder_stays_if_the_helper_of_its_guard_is_killed() -> None:
    with Scratch("run") as made:
        guard = made._guard.pid
        children = Path(f"/proc/{guard}/task/{guard}/children")

        def waits_by(others: str) -> str:
            wait_until(lambda: children.read_text().strip() not in ("", others), "the guard has another helper")
            return children.read_text().strip()

        first = waits_by("")
        os.kill(int(first), 9)
        waits_by(first)
        assert made.path.exists()


def test_next_run_removes_abandoned_folders() -> None:
    with subprocess.Popen([sys.executable, "-c", MAKER], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        path, guard = process.stdout.readline().split()
        os.kill(int(guard), 9)
        process.kill()
    assert (Path(path) / "inventory.json").exists()
    remove_leftovers()
    assert not Path(path).exists()


def test_folders_in_use_or_of_other_users_stay(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, unknown, reused = (temporary / f"qoslab-{name}" for name in ("mine", "unknown", "reused"))
    for folder in (mine, unknown, reused):
        folder.mkdir()
    write_owner(mine)
    (unknown / "notes").write_text("mine")
    # Process numbers are reused, start times are not.
    owner = scratch._process_identity(os.getpid()) | {"started": 1}
    (reused / OWNER_FILE).write_text(json.dumps(owner))
    (temporary / "qoslab-link").symlink_to(reused)
    remove_leftovers()
    assert mine.exists() and unknown.exists() and not reused.exists()


def test_folders_of_another_pid_namespace_stay(temporary: Path) -> None:
    folder = temporary / "qoslab-elsewhere"
    folder.mkdir()
    # Its number belongs to another process here.
    (folder / OWNER_FILE).write_text(
        json.dumps(scratch._process_identity(os.getpid()) | {"started": 1, "pids": "pid:[1]"})
    )
    remove_leftovers()
    assert folder.exists()


@pytest.fixture
def long_parent_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a temporary folder whose path is too long for sockets."""
    folder = tmp_path / ("t" * 120)
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


def test_sockets_fit_in_a_temporary_folder_with_a_long_path(long_parent_folder: Path) -> None:
    folder = own_temporary_folder("ansible")
    try:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / CONNECTIONS).mkdir()
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(folder / CONNECTIONS / "0123456789"))
    finally:
        shutil.rmtree(folder)
    assert list(long_parent_folder.iterdir()) == []


def test_leftovers_in_a_long_path_are_found(long_parent_folder: Path) -> None:
    folder = own_temporary_folder("run")
    (folder / OWNER_FILE).write_text(json.dumps({"pid": 1, "started": -1, "boot": "another"}))
    remove_leftovers.cache_clear()
    remove_leftovers()
    assert not folder.exists()


def test_lack_of_space_is_reported_with_the_variable_to_set(
    long_parent_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(MachineError, match=r"too long for a socket") as caught:
        temporary_folder()
    assert "TMPDIR" in caught.value.hint
