"""Transcript of the lines between a device and its client, with times, without secrets."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from qoslab.results.redaction import Redaction

FROM_DEVICE, TO_DEVICE, REMARK = "<", ">", "="
MOST_OF_LINE, MOST_BYTES = 2**16, 64 * 2**20
"""Characters of a line, bytes of a transcript."""


class Transcript:
    """One login's. Lines are written when they are complete, so that a secret is never cut in two."""

    def __init__(self, file: TextIO | None, redaction: Redaction) -> None:
        self._file = file
        self._redaction = redaction
        self._received = ""
        self._sent = ""
        self._left = MOST_BYTES

    @classmethod
    def opened(cls, folder: Path | None, device: str, redaction: Redaction) -> Transcript:
        """The next one of a device: `R1.1.txt`, `R1.2.txt`, … in the folder."""
        if folder is None:
            return cls(None, redaction)
        folder.mkdir(parents=True, exist_ok=True)
        number = 1
        while True:
            try:
                return cls((folder / f"{device}.{number}.txt").open("x", encoding="utf-8"), redaction)
            except FileExistsError:
                number += 1

    def received(self, data: bytes) -> None:
        """The device printed this."""
        *lines, self._received = (self._received + data.decode(errors="replace")).split("\n")
        for line in lines:
            self._write(FROM_DEVICE, line.replace("\r", ""))
        if len(self._received) > MOST_OF_LINE:
            # Not in pieces: a secret could be cut in two.
            self._write(REMARK, f"{MOST_OF_LINE} characters of a line without an end are left out")
            self._received = ""

    def sent(self, data: bytes) -> None:
        """This was sent to the device."""
        *lines, self._sent = (self._sent + data.decode(errors="replace").replace("\n", "\r")).split("\r")
        for line in lines:
            self._end_prompt()
            self._write(TO_DEVICE, line)

    def sent_secret(self, what: str) -> None:
        """A secret was sent to the device."""
        self._end_prompt()
        self._write(TO_DEVICE, f"<{what}>")

    def remark(self, text: str) -> None:
        """Something else happened."""
        self._end_prompt()
        self._write(REMARK, text)

    def close(self) -> None:
        """Write what is left."""
        self._end_prompt()
        if self._sent:
            self._write(TO_DEVICE, self._sent)
        if self._file is not None:
            self._file.close()
            self._file = None

    def _end_prompt(self) -> None:
        """A prompt has no end of line: what is sent after it ends it."""
        line, self._received = self._received, ""
        if line.strip():
            self._write(FROM_DEVICE, line.replace("\r", ""))

    def _write(self, who: str, line: str) -> None:
        if self._file is not None and self._left > 0:
            now = datetime.now(UTC).strftime("%H:%M:%S.%f")[:-3]
            text = f"{now} {who} {self._redaction.masked(line)}\n"
            self._left -= len(text.encode())
            if self._left <= 0:
                text = f"{now} {REMARK} the rest is left out: more than {MOST_BYTES // 2**20} MiB\n"
            self._file.write(text)
            self._file.flush()
