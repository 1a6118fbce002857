"""Login dialogue up to the prompt: user name, password, enable secret."""

from __future__ import annotations

import asyncio
import math
import re
import time
from contextlib import suppress

from qoslab.run.devices.login_failures import FailureKind
from qoslab.run.real.access.methods import ANSWER_TIMES, LOGIN_TIMES, AccessError, AccessMethod
from qoslab.run.real.access.transcript import LoginTranscript
from qoslab.run.real.access.transport import DeviceLine

USERNAME = re.compile(r"(?:^|[\r\n])[ \t]*(?:[Uu]sername|[Ll]ogin): ?$")
PASSWORD = re.compile(r"[Pp]assword(?: for \S+)?: ?$")
PROMPT = re.compile(r"(?:^|[\r\n])([A-Za-z0-9][\w.+:/-]*(?:\([^()\r\n]+\))*[>#]) ?$")
"""IOS prompt of any mode; group 1 is the whole prompt."""
LOGIN_REFUSALS = re.compile(r"% ?(?:Login invalid|Bad passwords|Authentication failed|Access denied|Login failed)")
BAD_SECRET = re.compile(r"% ?(?:Bad secrets|Bad passwords|Access denied|Error in authentication|No password set)")

NO_PAGING_COMMANDS = ("terminal length 0", "terminal width 0")
"""Commands after each login: a client enters them only once, and does not notice when a lost login is replaced."""

ANSWERS = {
    re.compile(r"\b(?:eras|format)[^\r\n]*\[confirm\] ?$", re.IGNORECASE): b"n",
    re.compile(r"\[yes/no\]: ?$"): b"no\r",
    re.compile(r"\[confirm\] ?$"): b"\r",
    re.compile(r"\]\? ?$"): b"\r",
}
"""Answers to questions after a line; the first match applies. Nothing is saved or erased.

A single key is the whole answer.
"""

NAME_LENGTH = 20
"""Greatest number of characters of a device's name that all of its prompts contain."""
_CTRL_Z = b"\x1a"
_WAKE_S = 1.0
"""Time for a console to show output after a key, in seconds."""
_WAKES = 5
_BANNER_PAUSE_S = 0.3
"""Greatest time between the lines of a banner, in seconds."""
_LATEST = 2000
"""Number of latest characters of output that are searched for a question."""
MAX_BYTES = 4 * 2**20
"""Greatest size of one answer, or of one login, in bytes. A running configuration of 50,000 lines has 2 MiB."""
_PROMPTS = 10
"""Greatest number of different prompts in one login: banner lines may look like prompts, but a prompt repeats."""


class LoginDialogue:
    """Login on a line; `text` is the device's output since the last input."""

    def __init__(self, line: DeviceLine, way: AccessMethod, transcript: LoginTranscript) -> None:
        self.line = line
        self.transcript = transcript
        self._way = way
        self.text = ""
        self._over_at, self._limit_s, self._bytes = math.inf, 0.0, 0
        self.round_trip_s = 0.0
        """Time between the last line of `NO_PAGING_COMMANDS` and the prompt after it, in seconds."""

    async def enter(self) -> str:
        """Log in and return the prompt, privileged if there is an enable secret. Raise `AccessError` if refused."""
        self._start_limits(LOGIN_TIMES)
        if self._way.console:
            await self._wake_console()
        await self._answer_credentials()
        prompt = await self._confirmed_prompt()
        if "(" in prompt:
            # The console was left in configuration mode.
            prompt = await self._leave_configuration()
        if prompt.endswith(">") and self._way.enable is not None:
            prompt = await self._enable(self._way.enable)
        for line in NO_PAGING_COMMANDS:
            # A device without this command prints an error, and its prompt again.
            self.text = ""
            asked = time.monotonic()
            await self.send(line)
            await self.read_until(re.compile(rf"(?:^|[\r\n]){re.escape(prompt)} ?$"))
            self.round_trip_s = time.monotonic() - asked
        return prompt

    async def read_prompt(self) -> str:
        """Return the prompt after an empty line."""
        self._start_limits(LOGIN_TIMES)
        return await self._read_prompt()

    async def _read_prompt(self) -> str:
        self.text = ""
        await self._write(b"\r")
        return await self._confirmed_prompt()

    async def ask(self, line: str, prompt: str) -> str:
        """Return the device's answer to a line, without echo and prompt; questions get the answers in `ANSWERS`.

        `prompt` is the prompt of the login, whose mode may change.
        """
        name = re.split(r"[(#>]", prompt)[0]
        # In configuration mode, a long name is truncated.
        rest = "[^()\\s]*" if len(name) > NAME_LENGTH else ""
        ends = re.compile(rf"(?:^|[\r\n]){re.escape(name[:NAME_LENGTH])}{rest}(?:\([^()\r\n]+\))?[>#] ?$")
        self._start_limits(ANSWER_TIMES)
        self.text, output = "", ""
        await self.send(line)
        while (found := await self.read_until(*ANSWERS, ends)).re is not ends:
            output, self.text = output + self.text, ""
            await self._write(ANSWERS[found.re])
        output += self.text[: self.text.rindex(found[0])] if found[0] in self.text else ""
        return output.replace("\r", "").removeprefix(line).strip("\n")

    async def send(self, text: str) -> None:
        """Send a line."""
        await self._write(text.encode() + b"\r")
        self.transcript.record_input(text.encode() + b"\r")

    async def read_until(self, *patterns: re.Pattern[str], within_s: float | None = None) -> re.Match[str]:
        """Read until the output matches one of the patterns; return the first match.

        Raise `AccessError` if the device is silent for longer than `within_s` (by default, as long as the access method
        allows), hangs up, or exceeds the limits of time and size that `_limit` has set.
        """
        while True:
            for pattern in patterns:
                if found := pattern.search(self.text[-_LATEST:]):
                    return found
            left_s = self._over_at - time.monotonic()
            try:
                async with asyncio.timeout(max(0.0, min(within_s or self._way.answer_s, left_s))):
                    data = await self.line.read()
            except TimeoutError as error:
                if time.monotonic() >= self._over_at:
                    raise self._endless_output_error(f"for {self._limit_s:g} s") from error
                raise self._silence_error(within_s or self._way.answer_s) from error
            if not data:
                last = self.text.strip().splitlines()[-1:]
                output = f"; its last output: {last[0]}" if last else ""
                hint = "Check that it has a free line, and that this machine may log in (access-class)."
                raise AccessError(
                    FailureKind.HUNG_UP,
                    f"{self._way.address_text} closed the connection during the login{output}",
                    hint,
                )
            self.transcript.record_output(data)
            self.text += data.decode(errors="replace")
            self._bytes += len(data)
            if self._bytes > MAX_BYTES:
                raise self._endless_output_error(f"more than {MAX_BYTES // 2**20} MiB")

    def _start_limits(self, times: int) -> None:
        """Start the limits of a login or a question: `times` the allowed silence of the device."""
        self._limit_s = times * self._way.answer_s
        self._over_at, self._bytes = time.monotonic() + self._limit_s, 0

    async def _wake_console(self) -> None:
        """Press a key until the console shows output."""
        for _ in range(_WAKES):
            await self._write(b"\r")
            try:
                await self.read_until(USERNAME, PASSWORD, PROMPT, within_s=_WAKE_S)
            except AccessError as error:
                if error.trouble.kind is not FailureKind.NO_ANSWER:
                    raise
            else:
                # It may answer the key in addition to an earlier question: the last output counts.
                while await self._has_more_output():
                    pass
                return

    async def _answer_credentials(self) -> None:
        """Answer the questions for user name and password, each only once."""
        answers = {USERNAME: self._way.user, PASSWORD: self._way.password}
        while True:
            found = await self.read_until(USERNAME, PASSWORD, PROMPT)
            if found.re is PROMPT:
                if (
                    self._way.protocol == "telnet"
                    and not answers.keys() < {USERNAME, PASSWORD}
                    and await self._has_more_output()
                ):
                    continue
                return
            what = "user name" if found.re is USERNAME else "password"
            if found.re not in answers:
                raise self._login_refused_error()
            answer = answers.pop(found.re)
            if answer is None:
                hint = f"Give ansible_{'user' if found.re is USERNAME else 'password'} in the inventory."
                raise AccessError(
                    FailureKind.LOGIN_REFUSED,
                    f"{self._way.address_text} asks for a {what}, but the inventory has none",
                    hint,
                )
            self.text = ""
            if found.re is USERNAME:
                await self.send(answer)
            else:
                await self._send_secret(answer, what)
            await self._read_refusal()

    async def _has_more_output(self) -> bool:
        """Return whether more output follows: the apparent prompt was a banner line, or a question follows."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_BANNER_PAUSE_S):
                data = await self.line.read()
            self.transcript.record_output(data)
            self.text += data.decode(errors="replace")
            return bool(data)
        return False

    async def _read_refusal(self) -> None:
        """Read on until the device asks again or shows a prompt; raise `AccessError` if it refuses."""
        found = await self.read_until(LOGIN_REFUSALS, USERNAME, PASSWORD, PROMPT)
        if found.re is LOGIN_REFUSALS:
            raise self._login_refused_error()

    async def _confirmed_prompt(self) -> str:
        """Return the prompt, which an empty line repeats, unlike a banner line that looks like one."""
        before, heard, asked = "", "", 0
        while True:
            found = await self.read_until(PROMPT)
            heard += self.text
            self.text = ""
            # Each empty line brings a prompt: none may be in transit when the next client takes over.
            if found[1] == before and len(re.findall(rf"(?:^|[\r\n]){re.escape(before)}", heard)) > asked:
                return before
            if found[1] != before:
                before, asked = found[1], asked + 1
                await self._write(b"\r")
            if asked > _PROMPTS:
                raise self._endless_output_error(f"{asked} different prompts")

    async def _leave_configuration(self) -> str:
        self.text = ""
        await self._write(_CTRL_Z + b"\r")
        return await self._confirmed_prompt()

    async def _enable(self, secret: str) -> str:
        self.text = ""
        await self.send("enable")
        found = await self.read_until(PASSWORD, PROMPT)
        if found.re is PASSWORD:
            self.text = ""
            await self._send_secret(secret, "enable secret")
            found = await self.read_until(BAD_SECRET, PASSWORD, PROMPT)
        if found.re is not PROMPT or not found[1].endswith("#"):
            message = f"{self._way.address_text} refused the enable secret"
            raise AccessError(FailureKind.ENABLE_REFUSED, message, "Check ansible_become_password in the inventory.")
        return await self._read_prompt()

    async def _send_secret(self, secret: str, what: str) -> None:
        await self._write(secret.encode() + b"\r")
        self.transcript.record_secret(what)

    async def _write(self, data: bytes) -> None:
        await self.line.write(data)

    def _login_refused_error(self) -> AccessError:
        message = f"{self._way.address_text} refused user {self._way.user!r}"
        return AccessError(FailureKind.LOGIN_REFUSED, message, "Check user and password in the inventory.")

    def _endless_output_error(self, what: str) -> AccessError:
        last = self.text[-_LATEST:].strip().splitlines()[-1:]
        output = f"; its last output: {last[0][-80:]}" if last else ""
        hint = "Switch off unsolicited output there (undebug all), and check that its prompt does not change."
        return AccessError(
            FailureKind.ENDLESS, f"{self._way.address_text} printed {what} without ending its answer{output}", hint
        )

    def _silence_error(self, seconds: float) -> AccessError:
        last = self.text.strip().splitlines()[-1:]
        output = f"; its last output: {last[0]}" if last else " at all"
        hint = "Check whether the device is busy, and whether its prompt ends with > or #."
        return AccessError(
            FailureKind.NO_ANSWER, f"{self._way.address_text} did not answer within {seconds:g} s{output}", hint
        )
