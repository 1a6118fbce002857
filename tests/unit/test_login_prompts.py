"""Answers to prompts of a device, and detection of the end of its output."""

from __future__ import annotations

import asyncio
import re

import pytest

from qoslab.results.redaction import Redaction
from qoslab.run.real.access.login_dialogue import LoginDialogue
from qoslab.run.real.access.methods import AccessMethod
from qoslab.run.real.access.transcript import LoginTranscript
from qoslab.run.real.access.transport import DeviceLine


class ScriptedLine(DeviceLine):
    """Device that sends the next of these texts for each input."""

    def __init__(self, *message: str) -> None:
        self._output = list(message)
        self._ready: list[bytes] = []
        self.heard: list[bytes] = []

    async def read(self) -> bytes:
        while not self._ready:
            await asyncio.sleep(3600)
        return self._ready.pop(0)

    async def write(self, data: bytes) -> None:
        self.heard.append(data)
        if self._output:
            self._ready.append(self._output.pop(0).encode())

    def close(self) -> None:
        pass

    @property
    def is_closed(self) -> bool:
        return False


def answers_to_prompts(line: DeviceLine, command: str, prompt: str = "R1#") -> str:
    way = AccessMethod("127.0.0.1", answer_s=2.0)
    return asyncio.run(LoginDialogue(line, way, LoginTranscript(None, Redaction())).ask(command, prompt))


@pytest.mark.parametrize(
    ("name", "prompt"),
    [
        ("R1", "R1(config)#"),
        ("BRANCH-OFFICE-ROUTER", "BRANCH-OFFICE-ROUTER(config)#"),
        ("BRANCH-OFFICE-ROUTER-42", "BRANCH-OFFICE-ROUTER(config)#"),
        ("BRANCH-OFFICE-ROUTER-42", "BRANCH-OFFICE-ROUTER(config-i)#"),
        ("BRANCH-OFFICE-ROUTER-42", "BRANCH-OFFICE-ROUTER-42(config-if)#"),
        ("BRANCH-OFFICE-ROUTER-42", "BRANCH-OFFICE-ROUTER-42#"),
    ],
)
def test_answer_ends_at_a_prompt_with_a_shortened_name(name: str, prompt: str) -> None:
    assert answers_to_prompts(ScriptedLine(f"line\r\nR10#\r\nsaid\r\n{prompt}"), "line", f"{name}#") == "R10#\nsaid"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Erase flash: before copying? [confirm]", b"n"),
        ("Erase flash device before writing? [confirm]", b"n"),
        ("Flash contains files. Are you sure you want to erase? [confirm]", b"n"),
        ("Erasing the flash filesystem will remove all files! Continue? [confirm]", b"n"),
        ('Format operation will destroy all data in "flash:".  Continue? [confirm]', b"n"),
        ("Copy 'a' from server\r\n  as 'a' into Flash WITH erase? [yes/no]: ", b"no\r"),
        ("System configuration has been modified. Save? [yes/no]: ", b"no\r"),
        ("Proceed with reload? [confirm]", b"\r"),
        ("A file was erased here once.\r\nDo you want to over write? [confirm]", b"\r"),
        ("Destination filename [qoslab-before.cfg]? ", b"\r"),
    ],
)
def test_prompts_are_answered_without_saving_or_erasing(question: str, answer: bytes) -> None:
    device = ScriptedLine(f"copy\r\n{question}", "\r\ndone\r\nR1#")
    assert re.sub(r"\s+", " ", answers_to_prompts(device, "copy")).endswith("done")
    assert device.heard == [b"copy\r", answer]
