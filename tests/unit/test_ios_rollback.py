"""Files on flash, configure replace, and rollback without a confirmation."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from fake_router import FakeRouter, erase_on_copy_router, type_lines

from qoslab.virtual_lab.countdown import ScheduledCall

LONG = "terminal length 0\r"
COPY = "copy running-config flash:before.cfg\r\r"
CHANGE = "configure terminal\rinterface FastEthernet0/0\rdescription to Bob\rno shutdown\rend\r"
ARCHIVE = "configure terminal\rarchive\rpath flash:saved\rend\r"


def answer_prompt(router: FakeRouter, text: str, command: str) -> str:
    """Return the output of the last of these commands."""
    printed = type_lines(router, LONG + text)
    return printed.rsplit(f"#{command}\n", 1)[1].rpartition("\n")[0]


def test_configuration_on_flash_survives_a_change() -> None:
    router = FakeRouter("2811")
    copied = answer_prompt(router, COPY, "copy running-config flash:before.cfg")
    size = len(router.flash["before.cfg"])
    assert copied == f"Destination filename [before.cfg]? \n{size} bytes copied in 0.100 secs ({10 * size} bytes/sec)"
    listed = answer_prompt(router, CHANGE + "dir\r", "dir")
    assert listed.splitlines()[2].split()[-1] == "before.cfg" and f"{size}" in listed.splitlines()[2]
    total = 62720 * 1024
    assert listed.splitlines()[-1] == f"{total} bytes total ({total - size} bytes free)"
    assert answer_prompt(
        router, "more flash:before.cfg | include hostname\r", "more flash:before.cfg | include hostname"
    ) == ("hostname R1")


def test_copy_over_a_file_needs_confirmation() -> None:
    router = FakeRouter("2811")
    type_lines(router, COPY)
    router.flash["before.cfg"] = "old\n"
    type_lines(router, COPY + "n")
    assert router.flash["before.cfg"] == "old\n"
    type_lines(router, COPY + "\r")
    assert router.flash["before.cfg"] != "old\n"


def test_class_b_flash_is_erased_before_a_copy_if_confirmed() -> None:
    router = FakeRouter("2811")
    erase_on_copy_router(router)
    router.flash["image"] = "x"
    kept = answer_prompt(router, COPY + "n", "copy running-config flash:before.cfg").splitlines()
    assert kept[1] == "Erase flash: before copying? [confirm]n" and "bytes copied" in kept[2]
    assert set(router.flash) == {"image", "before.cfg"}
    # A user who declines copies nothing; IOS asks about the existing file first.
    type_lines(router, COPY + "\r\rn")
    assert set(router.flash) == {"image", "before.cfg"}
    erased = answer_prompt(router, COPY + "\r\r\r", "copy running-config flash:before.cfg")
    assert "Erase of flash: complete\n" in erased and set(router.flash) == {"before.cfg"}


def test_copy_of_a_missing_or_too_large_file_is_refused() -> None:
    router = FakeRouter("2811")
    missing = "%Error opening flash:none (No such file or directory)"
    for command in ("more flash:none", "delete /force flash:none", "configure replace flash:none force"):
        assert answer_prompt(router, f"{command}\r", command) == missing
    router.flash["big"] = "x" * 62720 * 1024
    assert answer_prompt(router, COPY, "copy running-config flash:before.cfg").endswith("(No space left on device)")
    # No known output gives the flash size of this one.
    assert answer_prompt(FakeRouter("3725"), COPY, "copy running-config flash:before.cfg").endswith(
        "(Device not ready)"
    )


def test_delete_needs_confirmation() -> None:
    router = FakeRouter("2811")
    router.flash["a"] = "x\n"
    type_lines(router, "delete flash:a\r\rn")
    assert "a" in router.flash
    type_lines(router, "delete flash:a\r\r\r")
    assert "a" not in router.flash


def test_configure_replace_activates_a_file() -> None:
    router = FakeRouter("2811")
    type_lines(router, COPY)
    before = router.device
    type_lines(router, CHANGE + "configure terminal\rpolicy-map P\rend\r")
    # Without an answer nothing happens.
    type_lines(router, "configure replace flash:before.cfg\r\r")
    assert "P" in router.device.policy_maps
    done = answer_prompt(
        router, "configure replace flash:before.cfg force\r", "configure replace flash:before.cfg force"
    )
    assert done == "Total number of passes: 1\nRollback Done\n"
    assert router.device == before


def test_refused_file_changes_nothing() -> None:
    router = FakeRouter("2811")
    router.flash["bad"] = "hostname R9\nfrobnicate\n"
    before = router.device
    done = answer_prompt(router, "configure replace flash:bad force\r", "configure replace flash:bad force")
    assert "frobnicate" in done and done.endswith("Rollback aborted\n")
    assert router.device == before


def test_differences_are_shown_below_their_parent_lines() -> None:
    router = FakeRouter("2811")
    type_lines(router, COPY)
    command = "show archive config differences flash:before.cfg"
    assert answer_prompt(router, f"{command}\r", command) == "!No changes were found"
    change = "configure terminal\rinterface FastEthernet0/0\rdescription to Bob\rno ip address\rend\r"
    assert answer_prompt(router, f"{change}{command}\r", command).splitlines() == [
        "!Contextual Config Diffs:",
        "interface FastEthernet0/0",
        "- ip address 192.168.10.1 255.255.255.0",
        "+ description to Bob",
        "+ no ip address",
    ]
    # Nothing is repeated below a line that is new itself.
    change = "configure terminal\rpolicy-map P\rclass class-default\rshape average 64000\rend\r"
    assert answer_prompt(router, f"{change}{command}\r", command).splitlines()[1:4] == [
        "+policy-map P",
        "+ class class-default",
        "+    shape average 64000",
    ]


def test_timed_change_needs_confirmation() -> None:
    router = FakeRouter()
    command = "configure terminal revert timer 5"
    assert answer_prompt(router, f"{command}\r", command).startswith("%No archive is configured")
    assert router.rollback_time is None
    type_lines(router, ARCHIVE)
    before = router.device
    type_lines(router, f"{command}\rhostname R9\rend\r")
    assert router.rollback_time == router.moment + timedelta(minutes=5)
    left = answer_prompt(router, "show archive config rollback timer\r", "show archive config rollback timer")
    assert left.splitlines()[-1] == "Time left: 5 minutes"
    type_lines(router, "configure revert timer 7\r")
    assert router.rollback_time == router.moment + timedelta(minutes=7)
    type_lines(router, "configure revert now\r")
    assert router.device == before and router.rollback_time is None
    type_lines(router, f"{command}\rhostname R9\rend\rconfigure confirm\r")
    assert router.rollback_time is None and router.device.hostname == "R9"
    assert answer_prompt(router, "configure confirm\r", "configure confirm") == "%No Rollback Confirmed Change pending"


def test_expired_timer_acts_once_and_a_restarted_one_later() -> None:
    happened: list[int] = []

    async def run() -> None:
        done = asyncio.Event()

        async def happen() -> None:
            happened.append(len(happened))
            done.set()

        countdown = ScheduledCall(happen)
        countdown.start(0.0)
        countdown.start(3600.0)
        await asyncio.sleep(0.05)
        assert happened == [] and countdown.at is not None
        countdown.stop()
        assert countdown.at is None
        countdown.start(0.01)
        await asyncio.wait_for(done.wait(), 10)
        assert countdown.at is None

    asyncio.run(run())
    assert happened == [0]


def test_reload_is_scheduled_and_cancelled() -> None:
    router = FakeRouter()
    type_lines(router, "write memory\r")
    at = "Reload scheduled for 11:30:30 UTC Mon Mar 2 2026 (in 1 hour and 10 minutes)"
    assert (
        answer_prompt(router, "reload in 1:10 for a test\r\r", "reload in 1:10 for a test")
        == f"{at}\nProceed with reload? [confirm]"
    )
    assert answer_prompt(router, "show reload\r", "show reload") == at
    assert "*** --- SHUTDOWN ABORTED ---" in answer_prompt(router, "reload cancel\r", "reload cancel")
    assert router.reload_time is None and router.reloads == 0
    assert answer_prompt(router, "show reload\r", "show reload") == "No reload is scheduled."
    assert answer_prompt(router, "reload cancel\r", "reload cancel") == "%No reload is scheduled"
    # IOS asks about unsaved changes first; without a confirmation nothing is scheduled.
    asked = answer_prompt(router, CHANGE + "reload in 5\rno\rn", "reload in 5")
    assert asked.startswith("\nSystem configuration has been modified. Save? [yes/no]: no\n")
    assert router.reload_time is None
    for wrong in ("0", "1:2:3", "soon"):
        assert "Invalid input" in type_lines(router, f"reload in {wrong}\r")
