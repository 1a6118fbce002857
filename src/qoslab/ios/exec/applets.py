"""Exec commands about applets of the Embedded Event Manager."""

from __future__ import annotations

from qoslab.ios.cli.grammar import Args
from qoslab.ios.login import EXEC, PRIVILEGED, ExecSession
from qoslab.ios.model.applets import countdown_applets

_HEADING = "No.  Class     Type    Event Type          Trap  Time Registered           Name\n"
"""[R] Columns and the lines below are those of examples in Cisco's command reference."""


@EXEC.add(
    PRIVILEGED,
    "show event manager policy registered",
    help={
        "event": "Event commands",
        "manager": "Embedded Event Manager",
        "policy": "Event Manager policies",
        "registered": "Registered policies",
    },
)
async def _show_registered(session: ExecSession, args: Args) -> str:
    at = session.environment.applet_registrations
    shown = ""
    for number, (name, applet) in enumerate(countdown_applets(session.device).items(), 1):
        when = f"{at[name]:%a %b} {at[name].day} {at[name]:%H:%M:%S %Y}" if name in at else ""
        shown += f"{number:<4} applet    user    timer countdown     Off   {when:<25} {name}\n"
        shown += f" timer countdown: time {applet.seconds:.3f}\n"
        shown += "".join(f' action {index}.0 cli command "{text}"\n' for index, text in enumerate(applet.commands, 1))
    return _HEADING + shown if shown else ""
