"""Renderers of `show` output: functions from configuration, counters and clock to text, without I/O.

Each returns lines joined by a newline, with a trailing newline (or the empty string if IOS prints nothing).
"""

from __future__ import annotations

from collections.abc import Iterable


def join_lines(lines: Iterable[str]) -> str:
    """Return lines as text, each with a line end."""
    return "".join(f"{line}\n" for line in lines)
