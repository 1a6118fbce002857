"""What pages that are written by checks share: of which commit and day they tell, and where in a page they stand."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def commit() -> str:
    """The commit that is checked out, with a mark where files differ from it."""
    command = ["git", "describe", "--always", "--dirty=x", "--exclude=*"]
    return subprocess.run(command, cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def today() -> str:
    """Of a table's row."""
    return f"{datetime.now(UTC):%Y-%m-%d}"


def write_below(mark: str, page: Path, text: str) -> None:
    """Put a text in the place of all that stands below the line `mark` of a page."""
    before, _, _ = page.read_text(encoding="utf-8").partition(mark)
    page.write_text(before + mark + "\n" + text, encoding="utf-8")
