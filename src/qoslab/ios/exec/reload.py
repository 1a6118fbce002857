"""Exec commands to reload the router, immediately or at a later time, and to cancel a reload."""

from __future__ import annotations

import re
from datetime import timedelta

from qoslab.ios import running_config
from qoslab.ios.cli.grammar import Args
from qoslab.ios.exec.configuration import save
from qoslab.ios.login import EXEC, PRIVILEGED, ExecSession
from qoslab.ios.show.times import duration_in_words, moment_text

MAX_MINUTES = 24 * 24 * 60
"""Maximum delay of a reload in minutes: 24 days."""

_RELOAD = {
    "reload": "Halt and perform a cold restart",
    "in": "Reload after a time interval",
    "when": "Delay before reload (mmm or hh:mm)",
    "reason": "Reason for reload",
    "cancel": "Cancel pending reload",
}


@EXEC.add(PRIVILEGED, "reload", help=_RELOAD)
async def _reload(session: ExecSession, args: Args) -> None:
    await _offer_to_save(session)
    session.terminal.write("Proceed with reload? [confirm]")
    if await session.terminal.read_confirmation():
        await session.environment.reload()


@EXEC.add(PRIVILEGED, "reload in <when:word> [<reason:line>]", help=_RELOAD)
async def _schedule_reload(session: ExecSession, args: Args) -> None:
    found = re.fullmatch(r"(?:([0-9]{1,3}):)?([0-9]{1,3})", args.value("when", str))
    minutes = 60 * int(found[1] or 0) + int(found[2]) if found else 0
    if not 0 < minutes <= MAX_MINUTES:
        raise args.invalid_argument("when")
    await _offer_to_save(session)
    environment = session.environment
    after = timedelta(minutes=minutes)
    session.terminal.write(
        f"Reload scheduled for {moment_text(environment.current_time() + after)} (in {duration_in_words(after)})\n"
    )
    session.terminal.write("Proceed with reload? [confirm]")
    if await session.terminal.read_confirmation():
        environment.reload_after(60.0 * minutes)


@EXEC.add(PRIVILEGED, "reload cancel", help=_RELOAD)
async def _cancel(session: ExecSession, args: Args) -> str:
    if session.environment.reload_time is None:
        return "%No reload is scheduled\n"
    session.environment.reload_after(None)
    return "\n\n***\n*** --- SHUTDOWN ABORTED ---\n***\n\n"


@EXEC.add(PRIVILEGED, "show reload", help={"reload": "Scheduled reload information"})
async def _show_reload(session: ExecSession, args: Args) -> str:
    at = session.environment.reload_time
    if at is None:
        return "No reload is scheduled.\n"
    return f"Reload scheduled for {moment_text(at)} (in {duration_in_words(at - session.environment.current_time())})\n"


async def _offer_to_save(session: ExecSession) -> None:
    terminal = session.terminal
    if session.environment.startup_config() == running_config.render(session.device):
        return
    while True:
        terminal.write("\nSystem configuration has been modified. Save? [yes/no]: ")
        answer = (await terminal.read_answer()).strip().lower()
        if answer and "yes".startswith(answer):
            save(session)
            return
        if answer and "no".startswith(answer):
            return
        terminal.write("% Please answer 'yes' or 'no'.\n")
