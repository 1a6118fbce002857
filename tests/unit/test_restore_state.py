"""Saved state for the restoration of routers: it outlives a run, is private, and is not shared by two runs."""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path
from typing import TextIO

import pytest

from qoslab.cli import main
from qoslab.errors import UserError
from qoslab.model.experiment import Topology
from qoslab.run.devices.state import RestoreState

TOPOLOGY = Topology.model_validate_json('{"nodes": {"R1": {"platform": "ios", "model": "3725"}}, "links": []}')


@pytest.fixture
def inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "rack.yml"


def begin_state(inventory: Path) -> RestoreState:
    state = RestoreState.for_inventory(inventory)
    state.begin(inventory=inventory, run=inventory.parent / "runs/a", topology=TOPOLOGY)
    return state


def test_restore_state_is_readable_only_by_its_owner(inventory: Path) -> None:
    state = begin_state(inventory)
    state.push("R1", "enable secret 5 hidden\n")
    assert state.folder.is_relative_to(inventory.parent / "state/qoslab/restore")
    assert stat.S_IMODE(state.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((state.folder / "R1.pushed.1.ios").stat().st_mode) == 0o600


def test_pushed_configurations_are_recorded_in_order(inventory: Path) -> None:
    state = begin_state(inventory)
    for number in range(11):
        state.push("R1", f"hostname a{number}\n")
        state.push("R1.pushed", "another router")
    state.release()
    later = RestoreState.for_inventory(inventory)
    assert later.exists()
    assert later.pushed_configurations("R1") == [f"hostname a{number}\n" for number in range(11)]
    later.forget_earlier_pushes("R1")
    assert later.pushed_configurations("R1") == ["hostname a10\n"]
    assert later.read_owner().topology == TOPOLOGY
    later.remove()
    assert not RestoreState.for_inventory(inventory).exists()


def test_run_is_refused_after_one_that_did_not_restore(inventory: Path) -> None:
    begin_state(inventory).release()
    with pytest.raises(UserError) as found:
        begin_state(inventory)
    assert "were not restored after the run " in found.value.message
    assert found.value.hint == f"Restore them: qoslab lab rescue {inventory}"
    # A refusal leaves the state available.
    RestoreState.for_inventory(inventory).lock_routers()


def test_unfinished_restore_state_is_removed(inventory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inventory.write_text("ios:\n  hosts:\n    R1:\n      ansible_host: 192.0.2.1\n")
    state = RestoreState.for_inventory(inventory)
    state.lock_routers()
    (state.folder / ".about.json.new").touch()
    assert main(["lab", "rescue", str(inventory)]) == 2
    assert "another process is in progress on these routers" in capsys.readouterr().err
    state.release()
    assert main(["lab", "rescue", str(inventory)]) == 0
    assert "nothing to restore" in capsys.readouterr().err
    assert not state.folder.exists()


def test_interrupted_removal_leaves_no_state(inventory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = begin_state(inventory)
    state.push("R1", "hostname a\n")
    state.save_countdowns({"R1": "archive"})
    state.save_run_locks("the run of alice")
    (state.folder / "restore").mkdir()

    def cut_off(folder: Path, **_: object) -> None:
        # Nobody starts in a folder that is being removed.
        with pytest.raises(UserError, match="another process is in progress on these routers"):
            RestoreState.for_inventory(inventory).lock_routers()

    with monkeypatch.context() as patch:
        patch.setattr("qoslab.run.devices.state.shutil.rmtree", cut_off)
        state.remove()
    assert not RestoreState.for_inventory(inventory).exists()
    later = begin_state(inventory)
    assert (later.pushed_configurations("R1"), later.rollback_timers(), later.mark()) == ([], {}, "")
    assert sorted(each.name for each in later.folder.iterdir()) == ["about.json", "lock"]


def test_process_waiting_at_a_removed_lock_takes_the_next(inventory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = begin_state(inventory)
    taken: list[int] = []

    def assert_lock_removed(held: TextIO, operation: int) -> None:
        if not taken:
            state.remove()
        taken.append(os.fstat(held.fileno()).st_nlink)
        flock(held, operation)

    flock = fcntl.flock
    monkeypatch.setattr("qoslab.run.devices.state.fcntl.flock", assert_lock_removed)
    later = RestoreState.for_inventory(inventory)
    later.lock_routers()
    assert taken == [0, 1]
    with pytest.raises(UserError, match="another process is in progress"):
        RestoreState.for_inventory(inventory).lock_routers()


def test_two_simultaneous_runs_are_refused(inventory: Path) -> None:
    state = begin_state(inventory)
    with pytest.raises(UserError, match=r"the run .*/runs/a \(.*\) is in progress on these routers"):
        RestoreState.for_inventory(inventory).lock_routers()
    state.release()
    RestoreState.for_inventory(inventory).lock_routers()


def test_unreadable_state_is_reported_with_its_path(inventory: Path) -> None:
    state = begin_state(inventory)
    (state.folder / "about.json").write_text("{}")
    with pytest.raises(UserError) as found:
        state.read_owner()
    assert found.value.message.startswith(f"{state.folder}/about.json cannot be read")


def test_nothing_to_rescue_is_reported(inventory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inventory.write_text("ios:\n  hosts:\n    R1:\n      ansible_host: 192.0.2.1\n")
    assert main(["lab", "rescue", str(inventory)]) == 0
    assert capsys.readouterr().err == (f"nothing to restore: no run has left changes on the routers of {inventory}\n")
    assert main(["lab", "rescue", str(inventory.parent / "none.yml")]) == 2
    assert "there is no inventory" in capsys.readouterr().err


@pytest.mark.parametrize("typed", ["R1=", "R1=192.0.2.250", "=192.0.2.250:2003", "R1=192.0.2.250:0", "R1=:2003"])
def test_unreadable_console_is_reported(typed: str, inventory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "rescue", str(inventory), "--console", typed]) == 2
    text = f'qoslab: found --console "{typed}", expected ROUTER=HOST:PORT, such as R1=192.0.2.250:2003\n'
    assert capsys.readouterr().err == text
