"""What the simulator printed of each scenario with each mistake, which is kept: it is always the same."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from qoslab.programs import SIMULATOR, variable_of
from qoslab.results import Cell

SCENARIO = "config/scenario.json"
"""In a cell's folder, in which the simulator is started."""
SCRIPT = """#!/bin/sh
# qos-sim in place of itself: what it prints is kept by its scenario's digest.
[ "$1" = run ] || exec {program} "$@"
cat >/dev/null
kept={folder}/$(sha256sum < {scenario} | cut -c1-32)
if [ ! -e "$kept.gz" ]; then
    {program} --reached "$kept.reached" {mistake} run {scenario} >"$kept.$$" || {{ rm -f "$kept.$$"; exit 1; }}
    gzip -n1 "$kept.$$" && mv "$kept.$$.gz" "$kept.gz" || exit 1
fi
exec gzip -dc "$kept.gz"
"""
SCRIPT_WITH_FILES = """#!/bin/sh
# qos-sim, which writes captures beside what it prints: nothing of it is kept but what it has come by.
[ "$1" = run ] || exec {program} "$@"
cat >/dev/null
kept={folder}/$(sha256sum < {scenario} | cut -c1-32)
exec {program} --reached "$kept.reached" {mistake} run {scenario}
"""


@dataclass(frozen=True)
class Kept:
    """The results of one simulator with one mistake, or without any."""

    program: Path
    folder: Path
    mistake: str = ""
    captures: bool = False
    """It writes captures too, so that no cell is spared."""

    @classmethod
    def of(cls, program: Path, folder: Path, mistake: str = "", *, captures: bool = False) -> Kept:
        """Those below `folder`. Another build of the simulator has others."""
        build = sha256(program.read_bytes()).hexdigest()[:16]
        name = (mistake or "none") + ("-captured" if captures else "")
        found = cls(program, folder / build / name, mistake, captures)
        found.folder.mkdir(parents=True, exist_ok=True)
        script = (SCRIPT_WITH_FILES if captures else SCRIPT).format(
            program=program,
            folder=found.folder,
            scenario=SCENARIO,
            mistake=f"--mistake {mistake}" if mistake else "",
        )
        found.script.write_text(script, encoding="utf-8")
        found.script.chmod(found.script.stat().st_mode | stat.S_IXUSR)
        return found

    @property
    def script(self) -> Path:
        """The simulator that keeps its results."""
        return self.folder / SIMULATOR

    @contextmanager
    def used(self) -> Iterator[None]:
        """Cells are simulated by it."""
        os.environ[variable_of(SIMULATOR)] = str(self.script)
        try:
            yield
        finally:
            del os.environ[variable_of(SIMULATOR)]

    def _file(self, cell: Cell, suffix: str) -> Path:
        digest = sha256((cell.path / SCENARIO).read_bytes()).hexdigest()[:32]
        return self.folder / f"{digest}.{suffix}"

    def reached(self, cell: Cell) -> frozenset[str]:
        """The mistakes by whose switches the simulation of a cell has come."""
        return frozenset(self._file(cell, "reached").read_text(encoding="utf-8").split())

    def result(self, cell: Cell) -> bytes | None:
        """What the simulator prints of a cell that was simulated before, maybe by another one; None where it fails."""
        file = self._file(cell, "gz")
        if not file.exists():
            subprocess.run(
                [self.script, "run"], cwd=cell.path, stdin=subprocess.DEVNULL, capture_output=True, check=False
            )
        return file.read_bytes() if file.exists() else None
