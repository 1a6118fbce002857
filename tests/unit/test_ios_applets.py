"""Applets of the event manager that wait for the end of a countdown: parsing, show output, and time of action."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from fake_router import FakeRouter, type_lines

from qoslab.ios.model.applets import Applet, countdown_applets
from qoslab.virtual_lab.applet_timers import AppletTimers

CONFIGURED = """\
configure terminal
event manager applet back
 event timer countdown time 90 name soon
 action 2.0 cli command "configure replace flash:before.cfg force"
 action 1.0 cli command enable
event manager applet watch
 event syslog pattern "DOWN"
 action 1.0 cli command "show clock"
end
"""


def router() -> FakeRouter:
    made = FakeRouter("2811")
    type_lines(made, CONFIGURED.replace("\n", "\r"))
    return made


def test_applet_commands_run_in_label_order() -> None:
    found = countdown_applets(router().device)
    assert found == {"back": Applet(90.0, ("enable", "configure replace flash:before.cfg force"))}


def test_last_of_several_untagged_events_counts() -> None:
    made = FakeRouter("2811")
    lines = ("event manager applet back", " event timer countdown time 90", " event timer countdown time 80 maxrun 300")
    type_lines(made, "".join(f"{line}\r" for line in ("configure terminal", *lines, "end")))
    assert countdown_applets(made.device) == {"back": Applet(80.0, ())}


def test_waiting_applets_are_listed() -> None:
    made = router()
    made.applet_registrations = {"back": made.moment}
    printed = type_lines(made, "terminal length 0\rshow event manager policy registered\r").split("registered\n")[1]
    assert printed.splitlines()[:5] == [
        "No.  Class     Type    Event Type          Trap  Time Registered           Name",
        "1    applet    user    timer countdown     Off   Mon Mar 2 10:20:30 2026   back",
        " timer countdown: time 90.000",
        ' action 1.0 cli command "enable"',
        ' action 2.0 cli command "configure replace flash:before.cfg force"',
    ]


def test_applet_acts_once_unless_removed_or_re_entered() -> None:
    done: list[Sequence[str]] = []

    async def act(commands: Sequence[str]) -> None:
        done.append(commands)

    async def run() -> None:
        held = AppletTimers(act)
        held.follow({"one": Applet(0.01, ("first",)), "two": Applet(3600.0, ("never",)), "gone": Applet(0.02, ("no",))})
        held.follow({"one": Applet(0.01, ("first",)), "two": Applet(3600.0, ("never",))})
        while not done:
            await asyncio.sleep(0.005)
        # The applet is still configured after it acted, and does not act again.
        held.follow({"one": Applet(0.01, ("first",)), "two": Applet(0.01, ("changed",))})
        assert set(held.registration_times) == {"one", "two"}
        while len(done) < 2:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.05)
        held.follow({})
        assert held.registration_times == {}

    asyncio.run(asyncio.wait_for(run(), 10))
    assert done == [("first",), ("changed",)]
