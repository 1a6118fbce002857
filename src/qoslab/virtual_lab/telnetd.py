"""Telnet port of a virtual IOS router, with `login local` on its vty lines."""

from __future__ import annotations

import asyncio
import contextlib

from qoslab.ios.cli.terminal import ClientDisconnected, InterruptRequested
from qoslab.ios.environment import RouterEnvironment
from qoslab.ios.shell import Shell
from qoslab.system.peer import is_own_peer, open_own_listener
from qoslab.system.telnet import TelnetConnection
from qoslab.virtual_lab.sshd import LAST_WORDS_S, Judge

LOGIN_S = 30
"""Time limit of a login in seconds, as in IOS (`timeout login response`)."""
TRIES = 3
GREETING = "\nUser Access Verification\n\n"
READ = 4096
UNREAD = 2**16
"""Bytes that a client may leave unread before a login waits for it."""


class TelnetPort:
    """Telnet port of one router."""

    def __init__(self, router: RouterEnvironment, judge: Judge) -> None:
        self._router = router
        self._judge = judge
        self._logins: set[Shell] = set()

    async def listen(self, address: str, port: int) -> asyncio.Server:
        """Listen for logins; port 0 is any free port."""
        return await asyncio.start_server(self._serve, sock=open_own_listener(address, port))

    def end(self) -> None:
        """Close all connections."""
        for shell in list(self._logins):
            shell.hang_up()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not is_own_peer(writer.get_extra_info("socket")):
            writer.transport.abort()
            return
        protocol = TelnetConnection.server()

        def write(text: str) -> None:
            if writer.is_closing():
                # The client may be gone while a command still writes output.
                shell.hang_up()
                return
            writer.write(protocol.send(text.encode()))
            if writer.transport.get_write_buffer_size() > UNREAD and not shell.terminal.is_paused:
                shell.terminal.pause_reading()
                drains.add(drain := asyncio.create_task(_drain(writer, shell)))
                drain.add_done_callback(drains.discard)

        drains: set[asyncio.Task[None]] = set()
        shell = Shell(self._router, write)
        self._logins.add(shell)
        writer.write(protocol.initial_options())
        fed = asyncio.create_task(_feed(reader, writer, protocol, shell))
        try:
            async with asyncio.timeout(LOGIN_S):
                privilege = await self._log_in(shell)
            if privilege is not None:
                shell.session.privilege = privilege
                await shell.run()
        except (ClientDisconnected, TimeoutError):
            pass
        finally:
            self._logins.discard(shell)
            fed.cancel()
            for drain in drains:
                drain.cancel()
            await _close_after_output(writer)

    async def _log_in(self, shell: Shell) -> int | None:
        """Ask for user name and password; return the privilege, or None after too many wrong answers."""
        terminal = shell.terminal
        terminal.write(GREETING)
        for _ in range(TRIES):
            with contextlib.suppress(InterruptRequested):
                terminal.write("Username: ")
                name = await terminal.read_answer()
                if not name:
                    continue
                terminal.write("Password: ")
                password = await terminal.read_answer(echo=False)
                if (privilege := self._judge(name, password)) is not None:
                    return privilege
                terminal.write("% Login invalid\n\n")
        terminal.write("% Bad passwords\n")
        return None


async def _close_after_output(writer: asyncio.StreamWriter) -> None:
    """Close the connection, after the client has read the last output."""
    try:
        async with asyncio.timeout(LAST_WORDS_S):
            await writer.drain()
    except (OSError, TimeoutError):
        writer.transport.abort()
    writer.close()


async def _drain(writer: asyncio.StreamWriter, shell: Shell) -> None:
    with contextlib.suppress(OSError):
        await writer.drain()
    shell.terminal.resume_output()


async def _feed(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, protocol: TelnetConnection, shell: Shell
) -> None:
    try:
        while data := await reader.read(READ):
            text, answer = protocol.receive(data)
            if answer:
                writer.write(answer)
            shell.feed(text.decode(errors="replace"))
            if shell.terminal.is_input_full:
                await shell.terminal.wait_until_read()
    except OSError:
        pass
    finally:
        shell.hang_up()
