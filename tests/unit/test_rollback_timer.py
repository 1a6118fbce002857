"""Rollback timer of a router: choice of the method, commands sent, and end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from fake_device import ENABLE, PASSWORD, USER, FakeDevice
from fake_router import FakeRouter, erase_on_copy_router, type_lines

from qoslab.errors import DeviceError, UserError
from qoslab.ios.device_config.restore import unrestored_lines
from qoslab.ios.model.applets import Applet, countdown_applets
from qoslab.ios.model.device import Device
from qoslab.model.inventory import RollbackMethod as Choice
from qoslab.model.inventory import RouterSettings
from qoslab.model.units import Duration
from qoslab.platforms import MODELS
from qoslab.run.real.access.methods import AccessMethod
from qoslab.run.real.access.proxies import AccessProxies
from qoslab.run.real.access.rollback_timer import RollbackTimers, stop, timer_minutes
from qoslab.run.real.access.run_lock import RunLocks, lock_lines, lock_owner

MINUTE = Duration.parse("60 s")


def open_router(device: FakeDevice, transcripts: Path) -> AccessProxies:
    """Return an access proxy to R1."""
    way = AccessMethod("127.0.0.1", device.telnet, "telnet", USER, PASSWORD, ENABLE, pause_s=0.0)
    return AccessProxies({"R1": way}, transcripts=transcripts)


@pytest.fixture(scope="module")
def shared_device(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeDevice]:
    with FakeDevice(tmp_path_factory.mktemp("device")) as device:
        yield device


@pytest.fixture(scope="module")
def proxies(shared_device: FakeDevice, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccessProxies]:
    with open_router(shared_device, tmp_path_factory.mktemp("transcripts")) as proxies:
        yield proxies


@pytest.fixture
def device(shared_device: FakeDevice) -> FakeDevice:
    """Provide a router in its initial state behind the ports of `shared_device`, which stay open, like its logins."""
    vars(shared_device.router).update(vars(FakeRouter()))
    return shared_device


def configured(device: FakeDevice, *lines: str) -> None:
    type_lines(device.router, "".join(f"{line}\r" for line in ("configure terminal", *lines, "end")))


Keep = Callable[[Mapping[str, Choice]], None]


def rollback(proxies: AccessProxies, minutes: int, *ways: Choice | None, keep: Keep = lambda _: None) -> RollbackTimers:
    """Return timers for R1, R2, …, each with its method and a time for a cell of a minute."""
    after = Duration.parse(f"{60 * (minutes - 1)} s")
    routers = {f"R{number}": RouterSettings(rollback=way, rollback_margin=after) for number, way in enumerate(ways, 1)}
    return RollbackTimers(proxies.ask, routers, MINUTE, keep)


def test_confirmed_commit_is_preferred(device: FakeDevice, proxies: AccessProxies) -> None:
    configured(device, "archive", "path flash:saved")
    guard = rollback(proxies, 7, None)
    guard.arm(MINUTE)
    assert guard.armed == {"R1": "archive"}
    router = device.router
    assert router.rollback_time == router.moment + timedelta(minutes=7)
    before = router.reverted_to
    # Renewing it keeps the same configuration, at a later time.
    router.moment += timedelta(minutes=5)
    configured(device, "policy-map P")
    guard.arm(MINUTE)
    assert router.rollback_time == router.moment + timedelta(minutes=7) and router.reverted_to == before
    guard.disarm()
    assert router.rollback_time is None and guard.armed == {} and "P" in router.device.policy_maps


def test_restart_method_is_used_if_no_configuration_is_lost(device: FakeDevice, proxies: AccessProxies) -> None:
    router = device.router
    guard = rollback(proxies, 70, None)
    with pytest.raises(UserError) as found:
        guard.arm(MINUTE)
    assert found.value.message == (
        "R1 cannot roll back by itself if this run is interrupted:\n"
        "  archive: %No archive is configured: the path of `archive` is missing\n"
        "  eem: %Error opening flash:/ (Device not ready)\n"
        "  reload: it has unsaved changes that a reload would remove (write memory)"
    )
    assert "qoslab_rollback: none" in found.value.hint
    assert router.reload_time is None and guard.armed == {}
    type_lines(router, "write memory\r")
    guard.arm(MINUTE)
    assert guard.armed == {"R1": "reload"}
    assert router.reload_time == router.moment + timedelta(minutes=70)
    # Renewing the timer does not save the changes that the run has made in the meantime.
    configured(device, "policy-map P")
    saved = router.startup
    guard.arm(MINUTE)
    assert router.reload_time is not None and router.startup == saved
    guard.disarm()
    assert router.reload_time is None and router.reloads == 0


def test_applet_is_used_as_the_last_method(device: FakeDevice, proxies: AccessProxies) -> None:
    router = device.router
    # No known output gives the flash size of the other model.
    router.device = Device(MODELS["2811"].hardware(), hostname="R1")
    router.chassis = MODELS["2811"]
    (before,) = proxies.ask("R1", "show running-config")
    kept: list[dict[str, str]] = []
    guard = rollback(proxies, 7, None, keep=lambda armed: kept.append(dict(armed)))
    guard.arm(MINUTE)
    # The attempts are known before they can count.
    assert guard.armed == {"R1": "eem"} and kept == [{"R1": "archive"}, {"R1": "eem"}]
    wanted = Applet(420.0, ("enable", "configure replace flash:qoslab-before.cfg force"))
    assert countdown_applets(router.device) == {"qoslab-1": wanted}
    copy = router.flash["qoslab-before.cfg"]
    assert "qoslab" not in copy and "hostname R1" in copy
    configured(device, "policy-map P")
    for name in ("qoslab-2", "qoslab-1", "qoslab-2"):
        guard.arm(MINUTE)
        assert countdown_applets(router.device) == {name: wanted} and router.flash["qoslab-before.cfg"] == copy
    # It is not a change by somebody else.
    (during,) = proxies.ask("R1", "show running-config")
    assert [
        each for each in unrestored_lines(before, during, [], router.device.hardware) if "policy-map" not in each
    ] == []
    guard.disarm()
    configured(device, "no policy-map P")
    assert proxies.ask("R1", "show running-config") == [before] and router.flash == {}
    # Stopping it again is not an error.
    stop(proxies.ask, "R1", "eem")


@pytest.mark.parametrize("known", [True, False])
def test_applet_has_maxrun_if_the_release_supports_it(known: bool, device: FakeDevice, proxies: AccessProxies) -> None:
    router = device.router
    router.device = Device(MODELS["2811"].hardware(), hostname="R1")
    router.chassis = MODELS["2811"]

    def ask(name: str, *lines: str) -> list[str]:
        """Answer like an old release, which lacks the keyword."""
        taken = [line for line in lines if known or "maxrun" not in line]
        reply = dict(zip(taken, proxies.ask(name, *taken), strict=True))
        return [reply.get(line, "% Invalid input detected at '^' marker.") for line in lines]

    guard = RollbackTimers(ask, {"R1": RouterSettings(rollback="eem", rollback_margin=MINUTE)}, MINUTE)
    for name in ("qoslab-1", "qoslab-2"):
        guard.arm(MINUTE)
        (shown,) = proxies.ask("R1", "show running-config")
        assert (" event timer countdown time 120 maxrun 300\n" in shown) == known
        assert {each: applet.seconds for each, applet in countdown_applets(router.device).items()} == {name: 120.0}
    guard.disarm()


def test_flash_keeps_its_files_if_the_router_offers_to_erase_it(device: FakeDevice, proxies: AccessProxies) -> None:
    router = device.router
    erase_on_copy_router(router)
    router.flash["c2600-ik9o3s-mz.124-15.T14.bin"] = "the router's own image"
    guard = rollback(proxies, 5, "eem")
    guard.arm(MINUTE)
    assert set(router.flash) == {"c2600-ik9o3s-mz.124-15.T14.bin", "qoslab-before.cfg"}
    guard.disarm()
    assert set(router.flash) == {"c2600-ik9o3s-mz.124-15.T14.bin"}


def test_applet_without_a_timer_is_not_a_rollback_method(device: FakeDevice, proxies: AccessProxies) -> None:
    with pytest.raises(UserError, match=r"eem: %Error opening flash:/ \(Device not ready\)"):
        rollback(proxies, 5, "eem").arm(MINUTE)
    assert countdown_applets(device.router.device) == {} and device.router.flash == {}


def test_requested_rollback_method_is_used_or_refused(device: FakeDevice, proxies: AccessProxies) -> None:
    type_lines(device.router, "write memory\r")
    with pytest.raises(UserError, match="archive: %No archive is configured"):
        rollback(proxies, 5, "archive").arm(MINUTE)
    assert device.router.reload_time is None
    guard = rollback(proxies, 5, "none")
    guard.arm(MINUTE)
    guard.arm(MINUTE)
    guard.disarm()
    assert device.router.reload_time is None and device.router.rollback_time is None


@pytest.mark.parametrize(
    ("duration", "after", "minutes"),
    [("60 s", "120 s", 3), ("61 s", "120 s", 4), ("0 s", "0 s", 1), ("118 min", "120 s", 120), ("9 h", "120 s", 542)],
)
def test_timer_is_in_whole_minutes_with_a_margin(duration: str, after: str, minutes: int) -> None:
    settings = RouterSettings(rollback_margin=Duration.parse(after))
    assert timer_minutes(settings, Duration.parse(duration)) == minutes


def test_timer_of_a_cell_covers_its_traffic(device: FakeDevice, proxies: AccessProxies) -> None:
    configured(device, "archive", "path flash:saved")
    router = device.router
    longest = Duration.parse("120 min")
    wanted = RouterSettings(rollback="archive", rollback_margin=MINUTE)
    # It is refused at once, because it would expire in the middle of the longest cell.
    with pytest.raises(UserError, match=r"archive: its maximum is 120 min, but the longest cell needs 121 min$"):
        RollbackTimers(proxies.ask, {"R1": wanted}, longest).arm(MINUTE)
    assert router.rollback_time is None
    guard = RollbackTimers(proxies.ask, {"R1": replace(wanted, rollback=None)}, longest)
    type_lines(router, "write memory\r")
    guard.arm(MINUTE)
    assert guard.armed == {"R1": "reload"} and router.reload_time == router.moment + timedelta(minutes=2)
    guard.arm(longest)
    assert router.reload_time == router.moment + timedelta(minutes=121)
    guard.disarm()


def test_scheduled_restart_can_be_days_ahead(device: FakeDevice, proxies: AccessProxies) -> None:
    type_lines(device.router, "write memory\r")
    guard = RollbackTimers(proxies.ask, {"R1": RouterSettings(rollback="reload")}, Duration.parse("40 h"))
    guard.arm(Duration.parse("40 h"))
    assert device.router.reload_time == device.router.moment + timedelta(hours=40, minutes=30)
    with pytest.raises(UserError, match="reload: its maximum is 34560 min"):
        RollbackTimers(proxies.ask, {"R1": RouterSettings(rollback="reload")}, Duration.parse("576 h")).arm(MINUTE)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("way", "denied", "left"),
    [
        ("archive", "configure confirm", "its rollback timer is still running (Command authorization failed.)"),
        (
            "eem",
            "no event manager applet qoslab-1",
            "the applet qoslab-1 is still running (Command authorization failed.)",
        ),
        (
            "eem",
            "delete /force flash:qoslab-before.cfg",
            "flash:qoslab-before.cfg still exists, with all secrets of its configuration "
            "(Command authorization failed.)",
        ),
        ("reload", "reload cancel", "its reload is still scheduled (Command authorization failed.)"),
        ("reload", "show reload", "Command authorization failed."),
    ],
)
def test_timer_that_could_not_be_stopped_is_reported_and_recorded(
    way: Choice, denied: str, left: str, device: FakeDevice, proxies: AccessProxies
) -> None:
    router = device.router
    router.device = Device(MODELS["2811"].hardware(), hostname="R1")
    router.chassis = MODELS["2811"]
    configured(device, "archive", "path flash:saved")
    type_lines(router, "write memory\r")
    forbidden = [denied]

    def ask(name: str, *lines: str) -> list[str]:
        """Answer like a router with command authorization for each line."""
        allowed = [line for line in lines if line not in forbidden]
        reply = dict(zip(allowed, proxies.ask(name, *allowed), strict=True))
        return [reply.get(line, "Command authorization failed.") for line in lines]

    kept: list[dict[str, str]] = []
    routers = {"R1": RouterSettings(rollback=way)}
    guard = RollbackTimers(ask, routers, MINUTE, lambda armed: kept.append(dict(armed)))
    if denied == "show reload":
        forbidden = []
    guard.arm(MINUTE)
    forbidden = [denied]
    marks = RunLocks(guard, proxies.ask, ["R1"], "the run of alice")
    marks.marked = ["R1"]
    proxies.ask("R1", *lock_lines("the run of alice"))
    with pytest.raises(DeviceError) as found:
        marks.disarm()
    assert f"could not cancel the rollback timer:\n  R1: {left}; by hand: " in found.value.message
    assert denied in found.value.message or denied == "show reload"
    # The rescue stops it, and removes the run lock.
    assert kept[-1] == {"R1": way} == guard.armed and lock_owner(proxies.ask, "R1") == "the run of alice"
    forbidden = []
    marks.disarm()
    assert kept[-1] == {} and lock_owner(proxies.ask, "R1") == "" and "qoslab-before.cfg" not in router.flash
    assert stop(ask, "R1", way) == ""


def test_expired_rollback_timer_is_reported_at_the_next_cell(device: FakeDevice, proxies: AccessProxies) -> None:
    configured(device, "archive", "path flash:saved")
    guard = rollback(proxies, 7, None)
    guard.arm(MINUTE)
    device.router.revert_after(None)
    with pytest.raises(
        UserError,
        match=r"R1: the rollback timer could not be restarted \(archive\): %No Rollback Confirmed Change pending",
    ):
        guard.arm(MINUTE)
    # Stopping it nonetheless is not an error: the rescue does not know.
    stop(proxies.ask, "R1", "archive")


def test_show_queries_leave_a_router_unchanged(device: FakeDevice, tmp_path: Path) -> None:
    before = device.asked
    with open_router(device, tmp_path) as proxies:
        clock, version = proxies.ask("R1", "show clock", "show version")
        assert clock == "*10:20:30.123 UTC Mon Mar 2 2026"
        assert version.startswith("Cisco IOS Software") and version.endswith("Configuration register is 0x2102")
        assert proxies.ask("R1", "frobnicate")[0].splitlines()[-1] == "% Invalid input detected at '^' marker."
        # One login sufficed for all of that.
        assert device.asked == before + 1


def test_started_timers_are_stopped_if_another_cannot_start(device: FakeDevice, tmp_path: Path) -> None:
    configured(device, "archive", "path flash:saved")
    (tmp_path / "other").mkdir()
    with FakeDevice(tmp_path / "other") as other:
        each = {"R1": device, "R2": other}
        ways = {
            name: AccessMethod("127.0.0.1", at.telnet, "telnet", USER, PASSWORD, ENABLE, pause_s=0.0)
            for name, at in each.items()
        }
        with AccessProxies(ways, transcripts=tmp_path / "transcripts") as proxies:
            guard = rollback(proxies, 7, None, "reload")
            with pytest.raises(UserError, match="R2 cannot roll back by itself"):
                guard.arm(MINUTE)
            assert guard.armed == {"R1": "archive"} and device.router.rollback_time is not None
            guard.disarm()
    assert guard.armed == {} and device.router.rollback_time is None and other.router.reload_time is None
