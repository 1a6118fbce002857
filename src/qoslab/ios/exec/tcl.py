"""Exec command `tclsh`: exec commands, and `puts [open FILE w+] {TEXT}`, used by Netmiko and NAPALM to write files.

Other Tcl statements are not supported.
"""

from __future__ import annotations

import re

from qoslab.ios.cli.grammar import Args, CliError
from qoslab.ios.cli.session import device_capabilities
from qoslab.ios.exec.automation_tools import file_name
from qoslab.ios.login import EXEC, PRIVILEGED, ExecSession

_PUTS = re.compile(r'\s*puts \[open "?(?P<url>[^"\s]+)"? w\+?\] \{(?P<text>.*)')
_QUIT = ("tclquit", "exit", "quit")


@EXEC.add(PRIVILEGED, "tclsh", requires={"router"}, help={"tclsh": "Tool Command Language shell"})
async def _execute_tclsh(session: ExecSession, args: Args) -> None:
    while True:
        session.terminal.write(f"{session.device.hostname}(tcl)#")
        line = await session.terminal.read_answer()
        if line.strip() in _QUIT:
            return
        if (puts := _PUTS.fullmatch(line)) is not None:
            await _write(session, puts["url"], puts["text"])
        elif line.strip():
            await _exec(session, line)


async def _write(session: ExecSession, url: str, text: str) -> None:
    """Write the text up to a closing brace at the end of a line to a file."""
    lines = [text]
    while not lines[-1].endswith("}"):
        lines.append(await session.terminal.read_answer())
    name = file_name(session, url)
    if name is None:
        session.terminal.write(f'couldn\'t open "{url}": no such file or directory\n')
        return
    session.environment.flash[name] = "\n".join(lines).removesuffix("}") + "\n"


async def _exec(session: ExecSession, line: str) -> None:
    try:
        match = EXEC.parse(session.mode, line, capabilities=device_capabilities(session.device.hardware))
        session.terminal.write(await match.command.handler(session, match.args) or "")
    except CliError as error:
        session.terminal.write("\n".join(error.render()) + "\n")
