"""Logins on one device, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from qoslab.results.redaction import Redaction
from qoslab.run.devices.login_failures import FailureKind
from qoslab.run.real.access.login_dialogue import LoginDialogue
from qoslab.run.real.access.methods import FINAL, AccessError, AccessFailure, AccessMethod
from qoslab.run.real.access.transcript import LoginTranscript
from qoslab.run.real.access.transport import connect_device


class DeviceLogin:
    """Login on a device: its line, and its prompt."""

    def __init__(self, login: LoginDialogue, prompt: str, transcript: LoginTranscript, *, console: bool) -> None:
        self.login = login
        self.line = login.line
        self.prompt = prompt
        self.transcript = transcript
        self._console = console

    async def close(self) -> None:
        """Close the login; on a console, leave the current mode first, for the next user."""
        if self._console and not self.line.is_closed:
            await self.line.write(b"\x1aexit\r")
        self.transcript.close()
        self.line.close()


class LoginDevice:
    """Device with its logins, which are made one after the other."""

    def __init__(self, name: str, way: AccessMethod, transcripts: Path | None, redaction: Redaction) -> None:
        self.name = name
        self._way = way
        self._transcripts = transcripts
        self._redaction = redaction
        self._turn = asyncio.Lock()
        self._free_at = 0.0
        self._call: DeviceLogin | None = None
        self._calls = 0
        self._refused: AccessFailure | None = None

    async def lend(self) -> DeviceLogin:
        """Return a login that is kept for the next client. Raise `AccessError` if it fails."""
        if self._call is None or self._call.line.is_closed:
            self._call = await self._log_in()
        return self._call

    async def call(self) -> DeviceLogin:
        """Return a new or the kept login, at its current prompt. Raise `AccessError` if it fails."""
        call, self._call = self._call, None
        if call is None:
            return await self._log_in()
        try:
            # The device's name, and so its prompt, may have changed since.
            call.prompt = await call.login.read_prompt()
        except BaseException as error:
            await self.leave(call)
            if isinstance(error, AccessError) and error.trouble.kind is FailureKind.HUNG_UP:
                return await self._log_in()
            raise
        return call

    async def ask(self, lines: Sequence[str]) -> list[str]:
        """Return the device's answer to each line. Raise `AccessError` if it refuses the login or does not answer."""
        call = await self.call()
        try:
            answers = [await call.login.ask(line, call.prompt) for line in lines]
        except BaseException:
            await self.leave(call)
            raise
        if self._call is None:
            self._call = call
        else:
            await self.leave(call)
        return answers

    async def leave(self, call: DeviceLogin) -> None:
        """Close a login."""
        self._calls -= 1
        await call.close()

    async def close(self) -> None:
        """Close the kept login."""
        if self._call is not None:
            await self.leave(self._call)

    async def _log_in(self) -> DeviceLogin:
        async with self._turn:
            if self._refused is not None:
                raise AccessError(self._refused.kind, self._refused.message, self._refused.hint)
            if self._way.console and self._calls:
                message = f"{self._way.address_text} has one line, which this run already uses"
                raise AccessError(
                    FailureKind.BUSY, message, "The console is used for restoring only; connect by SSH or telnet."
                )
            loop = asyncio.get_running_loop()
            await asyncio.sleep(max(0.0, self._free_at - loop.time()))
            transcript = LoginTranscript.open_next(self._transcripts, self.name, self._redaction)
            try:
                return await self._attempt(transcript)
            except AccessError as error:
                transcript.record_event(str(error.trouble))
                transcript.close()
                if error.trouble.kind in FINAL:
                    self._refused = error.trouble
                raise
            finally:
                self._free_at = loop.time() + self._way.pause_s

    async def _attempt(self, transcript: LoginTranscript) -> DeviceLogin:
        transcript.record_event(f"to {self._way.address_text}")
        line = await connect_device(self._way)
        try:
            login = LoginDialogue(line, self._way, transcript)
            prompt = await login.enter()
        except BaseException:
            line.close()
            raise
        self._calls += 1
        return DeviceLogin(login, prompt, transcript, console=self._way.console)
