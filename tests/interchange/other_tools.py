"""Programs of other projects, and the table of the tests with them (docs/reference/formats.md)."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
PAGE = TOP / "docs/reference/formats.md"
BEGIN, END = "<!-- written by: tox -e interchange -- --write -->", "<!-- written until here -->"
HEAD = ("| kind | tool | version | what was tried | date |", "|---|---|---|---|---|")
KINDS = (
    *("iperf3 JSON in", "iperf3 text in", "iperf text in", "irtt JSON in", "flent in", "pcap in", "pcapng in"),
    *("gzip in", "CSV in", "containerlab in", "netlab in"),
    *("flent out", "CSV out", "Parquet out", "RO-Crate out", "figures out", "inventory out", "drawings out"),
)
PACKAGES = {
    "chromium": "chromium",
    "flent-gui": "libegl1, libgl1, libxkbcommon0",
    "fping": "fping",
    "irtt": "irtt",
    "pdflatex": "texlive-latex-base, texlive-pictures",
    "pdftotext": "poppler-utils",
    "rsvg-convert": "librsvg2-bin",
    "sqlite3": "sqlite3",
}
"""Debian packages of programs that are not in the environment of the tools, and of their libraries."""
TestedTool = Callable[[str, str, str], None]


class OtherTools:
    """Programs of other projects."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def path(self, name: str) -> str:
        """Return the path of a program; the test is skipped without it."""
        own = None if self._folder is None else shutil.which(name, path=str(self._folder.absolute()))
        found = own or shutil.which(name)
        if found is None:
            pytest.skip(f"no {name} here; Debian has it in {PACKAGES.get(name, name)}")
        return found

    def run(self, name: str, *words: str | Path, folder: Path | None = None, status: int = 0) -> str:
        """Return the standard output of a program, which must end with `status`."""
        argv = [self.path(name), *map(str, words)]
        done = subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
        assert done.returncode == status, f"{argv}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def version(self, name: str, *words: str) -> str:
        """Return the first dotted number in the version output of a program."""
        argv = [self.path(name), *(words or ("--version",))]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        found = re.search(r"\d+(?:\.\d+)+", done.stdout + done.stderr)
        assert found is not None, f"{argv}: {done.stdout}{done.stderr}"
        return found[0]


def qoslab(*words: str | Path, folder: Path) -> str:
    """Return the output of `qoslab`, which must succeed (a run may have values out of tolerance)."""
    argv = [sys.executable, "-m", "qoslab", *map(str, words)]
    done = subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
    assert done.returncode in ((0, 1) if words[0] == "run" else (0,)), f"{argv}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def earlier_table(text: str) -> dict[tuple[str, str], str]:
    """Return the rows that the page has."""
    rows = [line for line in text.splitlines() if line.count("|") == 6 and line not in HEAD]
    cells = [[cell.strip() for cell in row.split("|")] for row in rows]
    return {(cell[1], cell[2]): row for cell, row in zip(cells, rows, strict=True) if cell[1] in KINDS}


def tools_table(rows: dict[tuple[str, str], str]) -> Sequence[str]:
    """Return the lines of the page, in the order of the kinds; untested kinds are named."""
    order = sorted(rows, key=lambda key: (KINDS.index(key[0]), key[1]))
    kinds = {kind for kind, _ in rows}
    missing = [kind for kind in KINDS if kind not in kinds]
    closing = f"{len(kinds)} of {len(KINDS)} kinds" + (f"; not tried: {', '.join(missing)}" if missing else "")
    return [*HEAD, *(rows[key] for key in order), "", f"{closing}."]
