"""Cache of the deterministic results of the simulator, by scenario and mistake."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from qoslab.results import Cell
from qoslab.system.programs import SIMULATOR, program_variable

SCENARIO = "config/scenario.json"
"""Name of the scenario's file in the folder of a cell, in which the simulator runs."""
CAPTURES = "captures"
"""Folder of the simulator's captures, if the scenario has some."""
SCRIPT = """#!/bin/sh
# Wrapper of qos-sim that caches its output and captures by the digest of the scenario.
[ "$1" = run ] || exec {program} "$@"
cat >/dev/null
kept={folder}/$(sha256sum < {scenario} | cut -c1-32)
if [ ! -e "$kept.gz" ]; then
    {program} --reached "$kept.reached" {mistake} run {scenario} >"$kept.$$" || {{ rm -f "$kept.$$"; exit 1; }}
    if [ -d {captures} ]; then
        tar --sort=name --mtime=@0 --owner=0 --group=0 --mode=0644 -cf "$kept.$$.tar" {captures}/*
        gzip -n1 "$kept.$$.tar" && mv "$kept.$$.tar.gz" "$kept.captures" || exit 1
    fi
    gzip -n1 "$kept.$$" && mv "$kept.$$.gz" "$kept.gz" || exit 1
elif [ -d {captures} ]; then
    tar -xzf "$kept.captures"
fi
exec gzip -dc "$kept.gz"
"""


@dataclass(frozen=True)
class SimulationCache:
    """Cached results of one simulator, with one mistake or none."""

    program: Path
    folder: Path

    @classmethod
    def of(cls, program: Path, folder: Path, mistake: str = "") -> SimulationCache:
        """Return the cache below `folder`; each build of the simulator has a separate one."""
        build = sha256(program.read_bytes()).hexdigest()[:16]
        found = cls(program, folder / build / (mistake or "none"))
        found.folder.mkdir(parents=True, exist_ok=True)
        script = SCRIPT.format(
            program=program,
            folder=found.folder,
            scenario=SCENARIO,
            captures=CAPTURES,
            mistake=f"--mistake {mistake}" if mistake else "",
        )
        # Replaced atomically: cells simulated at the same time start it.
        written = found.folder / f"{SIMULATOR}.{os.getpid()}"
        written.write_text(script, encoding="utf-8")
        written.chmod(written.stat().st_mode | stat.S_IXUSR)
        written.replace(found.script)
        return found

    @property
    def script(self) -> Path:
        """Path of the caching wrapper of the simulator."""
        return self.folder / SIMULATOR

    @contextmanager
    def used(self) -> Iterator[None]:
        """Simulate cells with the cache inside the `with` block."""
        os.environ[program_variable(SIMULATOR)] = str(self.script)
        try:
            yield
        finally:
            del os.environ[program_variable(SIMULATOR)]

    def _file(self, cell: Cell, suffix: str) -> Path:
        digest = sha256((cell.path / SCENARIO).read_bytes()).hexdigest()[:32]
        return self.folder / f"{digest}.{suffix}"

    def reached(self, cell: Cell) -> frozenset[str]:
        """Return the mistakes whose code the simulation of a cell executed."""
        return frozenset(self._file(cell, "reached").read_text(encoding="utf-8").split())

    def simulate(self, cell: Cell) -> None:
        """Simulate the scenario of a cell unless it is cached; a failed simulation is not cached."""
        if self._file(cell, "gz").exists():
            return
        with tempfile.TemporaryDirectory() as place:
            (Path(place) / SCENARIO).parent.mkdir()
            shutil.copyfile(cell.path / SCENARIO, Path(place) / SCENARIO)
            if (cell.path / CAPTURES).is_dir():
                (Path(place) / CAPTURES).mkdir()
            subprocess.run([self.script, "run"], cwd=place, stdin=subprocess.DEVNULL, capture_output=True, check=False)

    def like(self, other: SimulationCache, cell: Cell) -> bool:
        """Return whether a cell has the same result with both simulators, or none with either.

        Equal results are stored once.
        """
        pairs = [(self._file(cell, suffix), other._file(cell, suffix)) for suffix in ("gz", "captures")]
        alike = all(_content(own) == _content(others) for own, others in pairs)
        for own, others in pairs if alike else ():
            if own.exists() and not own.samefile(others):
                own.unlink()
                own.hardlink_to(others)
        return alike


def _content(file: Path) -> bytes | None:
    return file.read_bytes() if file.exists() else None
