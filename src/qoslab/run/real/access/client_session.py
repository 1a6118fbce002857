"""Session of a proxy's client: forwarding to and from the device, and its end when the device hangs up."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import asyncssh

from qoslab.run.devices.login_failures import FailureKind
from qoslab.run.real.access.device_logins import DeviceLogin, LoginDevice
from qoslab.run.real.access.login_dialogue import PROMPT
from qoslab.run.real.access.methods import AccessError, AccessFailure
from qoslab.run.real.access.transport import READ

GOODBYE_S = 1.0
"""Time to send the last output to a client, in seconds."""
DEAF = "libssh"
"""Version string of clients that do not detect the end of their connection: Ansible's `network_cli` over libssh."""
_TAIL = 200
"""Greatest number of characters for a prompt."""


class ClientSession:
    """Login of one client."""

    def __init__(
        self, device: LoginDevice, process: asyncssh.SSHServerProcess[bytes], tell: Callable[[AccessFailure], None]
    ) -> None:
        """`tell` receives the reason for a refused login."""
        self._device = device
        self._process = process
        self._tell = tell
        self._deaf = DEAF in str(process.get_extra_info("client_version"))
        self._call: DeviceLogin | None = None
        self._pump: asyncio.Task[None] | None = None
        self._prompt = f"{device.name}#"
        self._tail = ""
        self._lost_mode = False
        """True if the device hung up in configuration mode, unnoticed by the client."""

    async def run(self) -> None:
        """Run until the client disconnects, or until the device does if the client detects that."""
        try:
            with contextlib.suppress(OSError, asyncssh.Error):
                if await self._log_in_to_device():
                    # Without the banner, in which Ansible would search for error patterns.
                    self._send_message(f"\r\n{self._prompt}")
                if self._call is not None or self._deaf:
                    while data := await self._process.stdin.read(READ):
                        await self._forward(data)
        finally:
            if self._pump is not None:
                self._pump.cancel()
                await asyncio.gather(self._pump, return_exceptions=True)
            await self._leave()
            await self._close_client()

    async def _log_in_to_device(self) -> bool:
        """Log in to the device; if that fails, send the client a message."""
        try:
            self._call = await self._device.call()
        except AccessError as error:
            self._tell(error.trouble)
            self._refuse(str(error.trouble))
            return False
        self._prompt = self._tail = self._call.prompt
        self._pump = asyncio.create_task(self._forward_until_hang_up(self._call))
        return True

    async def _forward(self, data: bytes) -> None:
        """Forward input of the client to the device, after a loss to a new login if the client's mode allows it."""
        if self._call is None:
            if self._lost_mode:
                self._lost_mode = False
                self._refuse(_connection_lost_message(self._device.name))
                return
            if not await self._log_in_to_device():
                return
        assert self._call is not None
        self._tail = ""
        self._call.transcript.record_input(data)
        await self._call.line.write(data)

    async def _forward_until_hang_up(self, call: DeviceLogin) -> None:
        """Forward output of the device to the client, until the device hangs up."""
        with contextlib.suppress(OSError, asyncssh.Error):
            while data := await call.line.read():
                call.transcript.record_output(data)
                self._tail = (self._tail + data.decode(errors="replace"))[-_TAIL:]
                self._process.stdout.write(data)
                await self._process.stdout.drain()
        call.transcript.record_event("the device hung up")
        await self._leave()
        if not self._deaf:
            await self._close_client()
            return
        shown = PROMPT.search(self._tail)
        if shown is None:
            # The client waits for an answer that will never arrive.
            self._refuse(_connection_lost_message(self._device.name))
        else:
            self._lost_mode = "(" in shown[1]

    async def _leave(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            await self._device.leave(call)

    def _refuse(self, why: str) -> None:
        """Send the client an error message that Ansible recognises, followed by a prompt, which ends the answer."""
        text = f"\r\n% Error: {why}\r\n" + (self._prompt if self._deaf else "")
        with contextlib.suppress(OSError, asyncssh.Error):
            self._send_message(text)

    def _send_message(self, text: str) -> None:
        self._process.stdout.write(text.encode())

    async def _close_client(self) -> None:
        """End the client's connection with its login, as routers do."""
        with contextlib.suppress(OSError, asyncssh.Error, TimeoutError):
            self._process.exit(0)
            async with asyncio.timeout(GOODBYE_S):
                await self._process.wait_closed()
        self._process.get_extra_info("connection").close()


def _connection_lost_message(name: str) -> str:
    return f"{FailureKind.HUNG_UP}: the connection to {name} was lost; the last commands may not have been executed"
