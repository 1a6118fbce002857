"""Exec commands about the login itself and about the router as a whole."""

from __future__ import annotations

from qoslab.ios.cli.grammar import Args
from qoslab.ios.config import ConfigSession
from qoslab.ios.login import ANY_MODE, EXEC, PRIVILEGED, PRIVILEGED_LEVEL, USER_LEVEL, ExecSession

ENABLE_TRIES = 3


@EXEC.add(ANY_MODE, "enable", help={"enable": "Turn on privileged commands"})
async def _enable(session: ExecSession, args: Args) -> None:
    if session.privilege == PRIVILEGED_LEVEL:
        return
    for _ in range(ENABLE_TRIES):
        session.terminal.write("Password: ")
        if session.environment.opens_privileged_mode(await session.terminal.read_answer(echo=False)):
            session.privilege = PRIVILEGED_LEVEL
            return
    session.terminal.write("% Bad secrets\n\n")


@EXEC.add(ANY_MODE, "disable", help={"disable": "Turn off privileged commands"})
async def _disable(session: ExecSession, args: Args) -> None:
    session.privilege = USER_LEVEL


@EXEC.add(
    ANY_MODE,
    "(exit|logout|quit)",
    help={"exit": "Exit from the EXEC", "logout": "Exit from the EXEC", "quit": "Exit from the EXEC"},
)
async def _exit(session: ExecSession, args: Args) -> None:
    session.closed = True


@EXEC.add(
    PRIVILEGED,
    "configure terminal",
    help={"configure": "Enter configuration mode", "terminal": "Configure from the terminal"},
)
async def _configure(session: ExecSession, args: Args) -> None:
    session.terminal.write("Enter configuration commands, one per line.  End with CNTL/Z.\n")
    session.config = ConfigSession(session.device)


@EXEC.add(
    ANY_MODE,
    "terminal length <lines:0-512>",
    help={
        "terminal": "Set terminal line parameters",
        "length": "Set number of lines on a screen",
        "lines": "Number of lines on screen (0 for no pausing)",
    },
)
async def _set_terminal_length(session: ExecSession, args: Args) -> None:
    session.terminal.length = args.value("lines", int)


@EXEC.add(
    ANY_MODE,
    "terminal width <columns:0-512>",
    help={
        "terminal": "Set terminal line parameters",
        "width": "Set width of the display terminal",
        "columns": "Number of characters on a screen line",
    },
)
async def _set_terminal_width(session: ExecSession, args: Args) -> None:
    session.terminal.width = args.value("columns", int)


@EXEC.add(ANY_MODE, "show privilege", help={"privilege": "Show current privilege level"})
async def _show_privilege(session: ExecSession, args: Args) -> str:
    return f"Current privilege level is {session.privilege}\n"


@EXEC.add(ANY_MODE, "show history", help={"history": "Display the session command history"})
async def _show_history(session: ExecSession, args: Args) -> str:
    return "".join(f"  {line}\n" for line in session.terminal.history)


@EXEC.add(
    PRIVILEGED,
    "clear counters [<name:interface>]",
    help={"clear": "Reset functions", "counters": "Clear counters on one or all interfaces"},
)
async def _clear_counters(session: ExecSession, args: Args) -> None:
    interface = session.known_interface(args)
    if interface is not None and "." in interface:
        # The packets of a subinterface are counted with those of the port.
        raise args.invalid_argument("name")
    which = "all interfaces" if interface is None else "this interface"
    session.terminal.write(f'Clear "show interface" counters on {which} [confirm]')
    if await session.terminal.read_confirmation():
        await session.environment.clear(interface)
