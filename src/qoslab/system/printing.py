"""Safe terminal output of text from files and devices: control characters are shown, not executed."""

from __future__ import annotations

import io
import re
import sys
from typing import Any

import click

_CONTROL_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # escape sequences begin with these; a carriage return hides the text before it
    "\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # writing direction, and invisible characters
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def printable(text: str) -> str:
    r"""Return the text with control characters replaced by escapes such as `\x1b` or `\u202e`.

    Line ends and tabs remain.
    """
    return _CONTROL_CHARACTERS.sub(_escape_match, text)


def one_line(text: str) -> str:
    r"""Return the text as `printable` does, but with line ends and tabs as `\x0a`, so that a foreign name cannot add a
    line.
    """
    return re.sub(r"[\n\t]", _escape_match, printable(text))


def _escape_match(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def escape_unencodable_output() -> None:
    """Make standard output and standard error print unencodable characters as `\\u2192` instead of failing."""
    for stream in (sys.stdout, sys.stderr):  # None if a descriptor was closed when Python began
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def echo(text: Any = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text that may have foreign parts to standard output or standard error."""
    click.echo(printable(str(text)), err=err, nl=nl)
