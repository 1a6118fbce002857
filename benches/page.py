"""Sections of the benchmark page, and the line that names the machine."""

from __future__ import annotations

import datetime
import os
import platform
import re
import textwrap
from pathlib import Path

WIDTH = 120
"""Greatest width of a line of a document."""
PAGE = Path(__file__).resolve().parents[1] / "docs" / "internals" / "performance.md"


def machine() -> str:
    """Return date, processor, kernel and load: the first line of a section."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = re.search(r"model name\s*:\s*(.*)", text)
    name = model[1] if model else platform.machine()
    return (
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}, {name}, {os.cpu_count()} cores, Linux {platform.release()}; "
        f"load average before the start {os.getloadavg()[0]:.1f}"
    )


def head(made: str) -> str:
    """Return the paragraph below a heading: the machine, and the command that made the section."""
    return textwrap.fill(f"{machine()}. {made}", WIDTH)


def print_summary(section: str, *, write_it: bool, to: Path = PAGE) -> None:
    """Print a section; write it if requested."""
    print(section)
    if write_it:
        write(section, to)


def write(section: str, to: Path = PAGE) -> None:
    """Replace the section with the same heading (the first line); append a new one."""
    heading = section.partition("\n")[0]
    level = heading.partition(" ")[0]
    text = to.read_text(encoding="utf-8")
    found = re.search(rf"^{re.escape(heading)}\n.*?(?=^#{{2,{len(level)}}} |\Z)", text, re.MULTILINE | re.DOTALL)
    start, end = found.span() if found else (len(text), len(text))
    parts = (text[:start].rstrip("\n"), section.strip("\n"), text[end:].strip("\n"))
    to.write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")
