"""Reader of a growing file of JSON lines."""

from __future__ import annotations

import json
import math
import os
import stat
from pathlib import Path
from typing import Any, NoReturn

MAX_READ_BYTES = 8 * 2**20
"""Greatest number of bytes per read; the rest is read the next time."""
MAX_LINE_BYTES = 4 * 2**20
"""Greatest length of a line in bytes; longer lines are left out."""
GREATEST = 2**64
"""Upper limit of valid counts and times; larger values cannot be drawn."""


def _parse_integer(text: str) -> int:
    if abs(number := int(text)) >= GREATEST:
        raise ValueError(text)
    return number


def _parse_float(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(text)
    return number


def _reject_constant(text: str) -> NoReturn:
    raise ValueError(text)


def _parse_line(line: bytes) -> object:
    found: object = json.loads(
        line, parse_int=_parse_integer, parse_float=_parse_float, parse_constant=_reject_constant
    )
    return found


class FileTail:
    """Reader of the lines added since the last call. A line counts once it is complete."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.left_out = 0
        """Number of lines that are not JSON objects, have impossibly large numbers, or are too long."""
        self._offset = 0
        self._inode = 0
        self._rest = b""
        self._too_long = False

    def read(self) -> list[dict[str, Any]]:
        """Return the new objects; none if the file is missing or not a regular file."""
        try:
            # The file may come from another user: follow no link, and wait for no pipe.
            handle = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return []
        try:
            state = os.fstat(handle)
            if not stat.S_ISREG(state.st_mode):
                return []
            if state.st_ino != self._inode or state.st_size < self._offset:
                self._inode, self._offset, self._rest, self._too_long = state.st_ino, 0, b"", False
            added = os.pread(handle, MAX_READ_BYTES, self._offset)
        except OSError:
            return []
        finally:
            os.close(handle)
        self._offset += len(added)
        return self._parse_added(added)

    def _parse_added(self, added: bytes) -> list[dict[str, Any]]:
        *whole, self._rest = (self._rest + added).split(b"\n")
        found = []
        for line in whole:
            if self._too_long:
                # The end of a line that was left out.
                self._too_long = False
                continue
            try:
                content = _parse_line(line) if len(line) <= MAX_LINE_BYTES else None
            except (ValueError, RecursionError):
                content = None
            if isinstance(content, dict):
                found.append(content)
            else:
                self.left_out += 1
        if len(self._rest) > MAX_LINE_BYTES:
            self.left_out += not self._too_long
            self._rest, self._too_long = b"", True
        return found
