"""Run lock of a router: refused runs, and remains."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from fake_device import ENABLE, PASSWORD, USER, FakeDevice
from fake_router import type_lines
from test_restore_state import begin_state

from qoslab.errors import DeviceError, UserError
from qoslab.ios.device_config.restore import unrestored_lines
from qoslab.model.inventory import RouterSettings
from qoslab.model.units import Duration
from qoslab.platforms import MODELS
from qoslab.run.devices.state import RestoreState
from qoslab.run.real import rescue as rescuing
from qoslab.run.real.access.methods import AccessMethod
from qoslab.run.real.access.proxies import AccessProxies
from qoslab.run.real.access.rollback_methods import ROLLBACK_METHODS
from qoslab.run.real.access.rollback_timer import RollbackTimers
from qoslab.run.real.access.run_lock import UNLOCK_LINES, RunLocks, lock_owner, refuse_locked_routers, remove_lock
from qoslab.run.real.rescue import restore_routers

MINUTE = Duration.parse("60 s")
ALICE = "the run of policing-vs-shaping by alice on box, since 2026-03-02 10:20:30Z"


@pytest.fixture
def device(tmp_path: Path) -> Iterator[FakeDevice]:
    with FakeDevice(tmp_path) as device:
        yield device


@pytest.fixture
def proxies(device: FakeDevice) -> Iterator[AccessProxies]:
    with AccessProxies(
        {"R1": AccessMethod("127.0.0.1", device.telnet, "telnet", USER, PASSWORD, ENABLE, pause_s=0.0)}
    ) as proxies:
        yield proxies


def marks(proxies: AccessProxies, who: str, kept: list[str] | None = None) -> RunLocks:
    keep = (lambda _: None) if kept is None else kept.append
    return RunLocks(
        RollbackTimers(proxies.ask, {"R1": RouterSettings(rollback="reload")}, MINUTE), proxies.ask, ["R1"], who, keep
    )


def test_run_locks_a_router_and_leaves_nothing(device: FakeDevice, proxies: AccessProxies) -> None:
    type_lines(device.router, "enable\ropensesame\rwrite memory\r")
    (before,) = proxies.ask("R1", "show running-config")
    kept: list[str] = []
    guard = marks(proxies, ALICE, kept)
    guard.arm(MINUTE)
    (during,) = proxies.ask("R1", "show running-config")
    assert lock_owner(proxies.ask, "R1") == ALICE and f"\nalias exec qoslab {ALICE}\n" in during
    assert kept == [ALICE] and device.router.reload_time is not None
    # It is not a change by somebody else, and the rollback timer is restarted for the next cell nonetheless.
    assert unrestored_lines(before, during, [], MODELS["3725"].hardware()) == []
    guard.arm(MINUTE)
    assert kept == [ALICE]
    guard.disarm()
    assert proxies.ask("R1", "show running-config") == [before]
    assert device.router.reload_time is None and "alias" not in (device.router.startup or "")


def test_run_lock_stays_until_the_rollback_timer_is_stopped(device: FakeDevice, proxies: AccessProxies) -> None:
    type_lines(device.router, "enable\ropensesame\rwrite memory\r")
    order: list[str] = []

    def ask(router: str, *lines: str) -> Sequence[str]:
        order.extend(line for line in lines if line in ("reload cancel", UNLOCK_LINES[1]))
        return proxies.ask(router, *lines)

    guard = RunLocks(RollbackTimers(ask, {"R1": RouterSettings(rollback="reload")}, MINUTE), ask, ["R1"], ALICE)
    guard.arm(MINUTE)
    guard.disarm()
    # In the meantime no other run begins, whose rollback timer would be stopped.
    assert order == ["reload cancel", "no alias exec qoslab"]


def test_another_run_is_refused_with_the_owner_of_the_lock(device: FakeDevice, proxies: AccessProxies) -> None:
    type_lines(device.router, "enable\ropensesame\rwrite memory\r")
    marks(proxies, ALICE).arm(MINUTE)
    second = marks(proxies, "the run of bob")
    for refused in (lambda: second.arm(MINUTE), lambda: refuse_locked_routers(proxies.ask, ["R1"])):
        with pytest.raises(UserError) as found:
            refused()
        assert found.value.message == f"R1 is locked by another run: {ALICE}"
        assert "qoslab lab rescue" in found.value.hint and "`no alias exec qoslab`" in found.value.hint
    second.disarm()
    remove_lock(proxies.ask, "R1", "the run of bob")
    assert lock_owner(proxies.ask, "R1") == ALICE
    remove_lock(proxies.ask, "R1", ALICE)
    assert lock_owner(proxies.ask, "R1") == ""
    refuse_locked_routers(proxies.ask, ["R1"])


def test_overwritten_run_lock_is_detected_at_the_next_cell(device: FakeDevice, proxies: AccessProxies) -> None:
    type_lines(device.router, "enable\ropensesame\rwrite memory\r")
    guard = marks(proxies, ALICE)
    guard.arm(MINUTE)
    proxies.ask("R1", "configure terminal", "alias exec qoslab the run of bob", "end")
    with pytest.raises(UserError, match="R1 is locked by another run: the run of bob"):
        guard.arm(MINUTE)
    guard.disarm()
    assert lock_owner(proxies.ask, "R1") == "the run of bob"


@pytest.fixture
def killed_run_inventory(
    device: FakeDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, RestoreState]:
    """Provide the inventory of a killed run of Alice's, and its remains."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    inventory = tmp_path / "rack.json"
    reached: dict[str, Any] = {"ansible_host": "127.0.0.1", "ansible_port": device.telnet, "qoslab_reach": "telnet"}
    reached |= {"ansible_user": USER, "ansible_password": PASSWORD, "ansible_become_password": ENABLE}
    inventory.write_text(json.dumps({"all": {"children": {"ios": {"hosts": {"R1": reached}}}}}))
    state = begin_state(inventory)
    state.save_countdowns({"R1": "reload"})
    state.save_run_locks(ALICE)
    state.release()
    return inventory, state


@pytest.mark.long
def test_rescue_keeps_the_files_of_a_running_rollback_timer(
    device: FakeDevice,
    proxies: AccessProxies,
    killed_run_inventory: tuple[Path, RestoreState],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inventory, state = killed_run_inventory
    type_lines(device.router, "enable\ropensesame\rwrite memory\r")
    marks(proxies, ALICE).arm(MINUTE)
    for each in ("AnsibleSession", "Routers"):
        monkeypatch.setattr(rescuing, each, MagicMock())
    stops = ROLLBACK_METHODS["reload"]
    with monkeypatch.context() as patch:
        # Like a router on which nobody may enter the command.
        patch.setattr(type(stops), "stop", lambda _: ("show clock",))
        with pytest.raises(DeviceError, match=r"R1: its reload is still scheduled; by hand: show clock"):
            restore_routers(inventory, pytest.fail)
    assert state.exists() and state.rollback_timers() == {"R1": "reload"} and lock_owner(proxies.ask, "R1") == ALICE
    assert restore_routers(inventory, pytest.fail) is not None
    assert not state.exists() and device.router.reload_time is None and lock_owner(proxies.ask, "R1") == ""


@pytest.mark.long
def test_rescue_leaves_a_router_locked_by_another_run(
    device: FakeDevice, proxies: AccessProxies, killed_run_inventory: tuple[Path, RestoreState]
) -> None:
    inventory, state = killed_run_inventory
    # Alice's run was killed and its rollback timer has expired; then Bob's run began.
    type_lines(device.router, "enable\ropensesame\rwrite memory\r")
    marks(proxies, "the run of bob").arm(MINUTE)
    with pytest.raises(UserError) as found:
        restore_routers(inventory, pytest.fail)
    assert found.value.message == "R1 is locked by another run: the run of bob"
    assert device.router.reload_time is not None and lock_owner(proxies.ask, "R1") == "the run of bob"
    assert state.exists() and state.mark() == ALICE
    state.lock_routers()
