"""Terminal lines: `line`, and the settings of logins on them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Literal

from qoslab.ios.cli.grammar import Args
from qoslab.ios.cli.session import CONFIG, ConfigSession, router_command
from qoslab.ios.cli.undo import Undo
from qoslab.ios.model.device import EXEC_TIMEOUT, Device, Line
from qoslab.ios.model.ios_names import join_with_blanks
from qoslab.ios.registry import BLOCKS

MAX_VTY = 15


def _split_line_range(args: Args) -> list[str]:
    """Return `line vty 0 4` as one line for each terminal line."""
    if "console" in args:
        return ["line con 0"]
    first, last = args.value("first", int), args.optional("last", int)
    return [f"line vty {number}" for number in range(first, (first if last is None else last) + 1)]


@CONFIG.add(
    "config",
    "line (console <number:0-0>|vty <first:0-15> [<last:1-15>])",
    undo=Undo(split=_split_line_range),
    help={
        "line": "Configure a terminal line",
        "console": "Primary terminal line",
        "vty": "Virtual terminal",
        "number": "Line number",
        "first": "First Line number",
        "last": "Last Line number",
    },
)
def _configure_line(session: ConfigSession, args: Args) -> None:
    lines = session.device.lines
    if "console" in args:
        session.enter("line", "con 0")
        return
    first = args.value("first", int)
    last = args.optional("last", int)
    last = first if last is None else last
    if last < first:
        raise args.invalid_argument("last")
    for number in range(last + 1):
        lines.setdefault(f"vty {number}", Line("vty", number))
    session.enter("line", ",".join(f"vty {number}" for number in range(first, last + 1)))


@router_command(
    "config",
    "line aux <number:0-0>",
    undo=Undo(split=lambda args: ["line aux 0"]),
    help={"line": "Configure a terminal line", "aux": "Auxiliary line", "number": "Line number"},
)
def _configure_auxiliary_line(session: ConfigSession, args: Args) -> None:
    session.enter("line", "aux 0")


@CONFIG.add_no(
    "config",
    "line vty <first:5-15> [<last:6-15>]",
    help={"line": "Configure a terminal line", "vty": "Virtual terminal", "first": "First Line number", "last": "Last"},
)
def _configure_no_line(session: ConfigSession, args: Args) -> None:
    # IOS removes the line and all later ones; the first five always exist.
    for number in range(args.value("first", int), MAX_VTY + 1):
        session.device.lines.pop(f"vty {number}", None)


@CONFIG.add(
    "line",
    "exec-timeout <minutes:0-35791> [<seconds:0-2147483>]",
    no=True,
    undo=Undo(line="default exec-timeout"),
    help={"exec-timeout": "Set the EXEC timeout", "minutes": "Timeout in minutes", "seconds": "Timeout in seconds"},
)
def _exec_timeout(session: ConfigSession, args: Args) -> None:
    timeout: tuple[int, int] | None = None
    if args.is_negated:
        timeout = (0, 0)
    elif not args.unset:
        timeout = (args.value("minutes", int), args.optional("seconds", int) or 0)
    for line in session.terminal_lines:
        line.exec_timeout = None if timeout == EXEC_TIMEOUT else timeout


@CONFIG.add(
    "line",
    "logging synchronous",
    no=True,
    help={"logging": "Modify message logging facilities", "synchronous": "Synchronized message output"},
)
def _configure_logging_synchronous(session: ConfigSession, args: Args) -> None:
    for line in session.terminal_lines:
        line.logging_synchronous = not args.unset


@CONFIG.add(
    "line",
    "login [local]",
    no=True,
    undo=Undo(line="default login"),
    help={"login": "Enable password checking", "local": "Local password checking"},
)
def _configure_login(session: ConfigSession, args: Args) -> None:
    for line in session.terminal_lines:
        default: Literal["none", "password"] = "password" if line.kind == "vty" else "none"
        login: Literal["none", "password", "local"] = "local" if "local" in args else "password"
        if args.form == "default":
            login = default
        elif args.is_negated:
            login = "none"
        line.login = None if login == default else login


@CONFIG.add(
    "line",
    "password [0] <text:line>",
    no=True,
    help={
        "password": "Set a password",
        "0": "Specifies an UNENCRYPTED password will follow",
        "text": "The UNENCRYPTED line password",
    },
)
def _configure_password(session: ConfigSession, args: Args) -> None:
    for line in session.terminal_lines:
        line.password = None if args.unset else args.value("text", str)


@CONFIG.add(
    "line",
    "transport input (all|none|(ssh|telnet)+)",
    no=True,
    help={
        "transport": "Define transport protocols for line",
        "input": "Define which protocols to use when connecting to the terminal server",
        "all": "All protocols",
        "none": "No protocols",
        "ssh": "TCP/IP SSH protocol",
        "telnet": "TCP/IP Telnet protocol",
    },
)
def _configure_transport(session: ConfigSession, args: Args) -> None:
    protocols = tuple(word for word in ("all", "none", "telnet", "ssh") if word in args)
    for line in session.terminal_lines:
        line.transport_input = None if args.unset else protocols


@CONFIG.add(
    "line",
    "privilege level <level:0-15>",
    no=True,
    help={"privilege": "Change privilege level for line", "level": "Assign default privilege level for line"},
)
def _configure_privilege(session: ConfigSession, args: Args) -> None:
    for line in session.terminal_lines:
        line.privilege = None if args.unset else args.value("level", int)


@BLOCKS.register_family(140)
def _config_blocks(device: Device) -> Iterator[list[str]]:
    yield [text for lines in line_groups(device) for text in line_block(lines)]


def line_groups(device: Device) -> list[list[Line]]:
    """Return the terminal lines in order, grouped by printed block."""
    rank = {"con": 0, "aux": 1, "vty": 2}
    ordered = sorted(device.lines.values(), key=lambda line: (rank[line.kind], line.number))
    return [list(group) for _, group in groupby(ordered, key=lambda line: (line.kind, line_settings(line)))]


def line_block(lines: list[Line]) -> list[str]:
    """Return the block of a group of lines."""
    first, last = lines[0], lines[-1]
    heading = f"line {first.name}" if len(lines) == 1 else f"line {first.name} {last.number}"
    return [heading, *(f" {text}" for text in line_settings(first))]


def line_settings(line: Line) -> tuple[str, ...]:
    """Return the lines below `line ...`, without indentation."""
    login = line.login or ("password" if line.kind == "vty" else "none")
    texts = [] if line.exec_timeout is None else [f"exec-timeout {line.exec_timeout[0]} {line.exec_timeout[1]}"]
    if line.privilege is not None:
        texts.append(f"privilege level {line.privilege}")
    if line.password is not None:
        texts.append(f"password {line.password}")
    if line.logging_synchronous:
        texts.append("logging synchronous")
    if login == "local":
        texts.append("login local")
    elif login == "password":
        texts.append("login")
    elif line.kind == "vty":
        texts.append("no login")
    if line.transport_input is not None:
        texts.append(f"transport input {join_with_blanks(line.transport_input)}")
    return (*texts, *(inert.text for inert in line.inert))
