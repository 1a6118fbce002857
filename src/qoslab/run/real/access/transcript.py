"""Transcript of a login: the lines between a device and its client, with times, without secrets."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from qoslab.results.redaction import Redaction

FROM_DEVICE, TO_DEVICE, REMARK = "<", ">", "="
MAX_LINE_CHARACTERS, MAX_BYTES = 2**16, 64 * 2**20
"""Greatest length of a line in characters, and of a transcript in bytes."""


class LoginTranscript:
    """Transcript of one login. Lines are written when they are complete, so that a secret is never split."""

    def __init__(self, file: TextIO | None, redaction: Redaction) -> None:
        self._file = file
        self._redaction = redaction
        self._received = ""
        self._sent = ""
        self._left = MAX_BYTES

    @classmethod
    def open_next(cls, folder: Path | None, device: str, redaction: Redaction) -> LoginTranscript:
        """Open the next transcript of a device in the folder: `R1.1.txt`, `R1.2.txt`, …"""
        if folder is None:
            return cls(None, redaction)
        folder.mkdir(parents=True, exist_ok=True)
        number = 1
        while True:
            try:
                return cls((folder / f"{device}.{number}.txt").open("x", encoding="utf-8"), redaction)
            except FileExistsError:
                number += 1

    def record_output(self, data: bytes) -> None:
        """Record output of the device."""
        *lines, self._received = (self._received + data.decode(errors="replace")).split("\n")
        for line in lines:
            self._write(FROM_DEVICE, line.replace("\r", ""))
        if len(self._received) > MAX_LINE_CHARACTERS:
            # Not in pieces, which could split a secret.
            self._write(REMARK, f"{MAX_LINE_CHARACTERS} characters of a line without an end are left out")
            self._received = ""

    def record_input(self, data: bytes) -> None:
        """Record input for the device."""
        *lines, self._sent = (self._sent + data.decode(errors="replace").replace("\n", "\r")).split("\r")
        for line in lines:
            self._end_prompt()
            self._write(TO_DEVICE, line)

    def record_secret(self, what: str) -> None:
        """Record that a secret was sent to the device."""
        self._end_prompt()
        self._write(TO_DEVICE, f"<{what}>")

    def record_event(self, text: str) -> None:
        """Record another event."""
        self._end_prompt()
        self._write(REMARK, text)

    def close(self) -> None:
        """Write the remaining text."""
        self._end_prompt()
        if self._sent:
            self._write(TO_DEVICE, self._sent)
        if self._file is not None:
            self._file.close()
            self._file = None

    def _end_prompt(self) -> None:
        """End the line of a prompt, which has no line end before the next input."""
        line, self._received = self._received, ""
        if line.strip():
            self._write(FROM_DEVICE, line.replace("\r", ""))

    def _write(self, who: str, line: str) -> None:
        if self._file is not None and self._left > 0:
            now = datetime.now(UTC).strftime("%H:%M:%S.%f")[:-3]
            text = f"{now} {who} {self._redaction.mask(line)}\n"
            self._left -= len(text.encode())
            if self._left <= 0:
                text = f"{now} {REMARK} the rest is left out: more than {MAX_BYTES // 2**20} MiB\n"
            self._file.write(text)
            self._file.flush()
