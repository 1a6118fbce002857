"""Measure the time of sweeps in addition to their traffic; print a Markdown section for docs/internals/performance.md.

    python benches/sweep.py [--seconds 20] [--cells 16] [--jobs 1 4] [--write]

Counting cells and the bookkeeping need no lab; the rest runs a grid with two round-trip times (so that labs change) on
this machine. Two values give the time of a cell in addition to its traffic: one of the whole command, from start to
report; and one between the start of the first traffic and the end of the last, which each further cell adds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections import defaultdict
from datetime import datetime
from pathlib import Path

import page

from qoslab.model.matrix import as_texts
from qoslab.plan import make_plan
from qoslab.results import CellRecord, RunFolder
from qoslab.run.attempts import RunCells
from qoslab.run.jobs import LabCount
from qoslab.run.schedule import CellSchedule
from qoslab.schema import load_sweep

ROOT = Path(__file__).resolve().parents[1]
HEADING = "## Sweeps"
QOSLAB = str(Path(sys.executable).with_name("qoslab"))

GRID = """\
name: bench
title: A grid
topology:
  nodes:
    client: {{platform: host}}
    R1: {{platform: {platform}, model: "3725"}}
    server: {{platform: host}}
  links:
    - name: lan
      rate: 100 Mb/s
      ends:
        - {{node: client, interface: eth0, address: 192.168.10.2/24}}
        - {{node: R1, interface: FastEthernet0/0, address: 192.168.10.1/24}}
    - name: wan
      rate: 100 Mb/s
      delay: $(rtt / 2)
      ends:
        - {{node: R1, interface: FastEthernet0/1, address: 192.168.20.1/24}}
        - {{node: server, interface: eth0, address: 192.168.20.2/24}}
duration: {seconds} s
matrix:
  rtt: [{rtts}]
  pir: [{pirs}]
  connections: [{connections}]
traffic:
  - {{name: transfer, tool: iperf3, from: client, to: server, streams: $(connections)}}
arms:
  - name: policed
    configure:
      R1:
        template: templates/police.ios.j2
        variables: {{interface: FastEthernet0/1, cir: $(pir in b/s)}}
"""


def make_grid(folder: Path, *, platform: str, seconds: int, rtts: int, pirs: int, connections: int) -> Path:
    """Return an experiment file with so many values of each parameter."""
    file = folder / f"bench-{platform}-{rtts * pirs * connections}.yml"
    # An experiment has only files below its own folder.
    shutil.copytree(ROOT / "experiments/templates", folder / "templates", dirs_exist_ok=True)
    file.write_text(
        GRID.format(
            platform=platform,
            seconds=seconds,
            rtts=", ".join(f"{10 * number} ms" for number in range(1, rtts + 1)),
            pirs=", ".join(f"{number} Mb/s" for number in range(1, pirs + 1)),
            connections=", ".join(map(str, range(1, connections + 1))),
        )
    )
    return file


def count_cells(folder: Path, pirs: int) -> tuple[int, float]:
    """Return the number of cells, and the seconds of a dry run."""
    file = make_grid(folder, platform="engine", seconds=20, rtts=20, pirs=pirs, connections=100)
    began = time.monotonic()
    done = subprocess.run(
        [QOSLAB, "run", str(file), "--dry-run", "--json"], capture_output=True, text=True, check=True, cwd=folder
    )
    return int(json.loads(done.stdout)["cells"]), time.monotonic() - began


def time_bookkeeping(folder: Path) -> tuple[int, float]:
    """Return the number of cells, and the seconds per cell of the scheduler: leasing it, and creating and writing its
    record.
    """
    file = make_grid(folder, platform="engine", seconds=20, rtts=4, pirs=10, connections=25)
    plan = make_plan(load_sweep(file))
    cells = RunCells(RunFolder.create(folder / "book", "bench"), plan.cells, {})
    schedule = CellSchedule(cells, LabCount(4, len(plan.cells)), _SilentProgress(), interrupted=threading.Event())
    began = time.monotonic()
    while (task := schedule.lease(0)) is not None:
        cell = cells.folder.cell_folder(task.identity, task.attempt)
        with schedule.traffic_turn(0):
            pass
        record = CellRecord(
            arm=task.identity.arm,
            parameters=as_texts(task.identity.values),
            repetition=task.identity.repetition,
            attempt=task.attempt,
            key=task.key,
            valid=True,
        )
        cell.write_experiment(task.experiment)
        cell.write_record(record)
        schedule.finish(task, record, worker=0)
    return len(plan.cells), (time.monotonic() - began) / len(plan.cells)


class _SilentProgress:
    def cell_done(self, cell: str, *, counts: bool = True) -> None:
        """Ignore the event."""

    def note(self, text: str) -> None:
        """Ignore the note."""


def time_sweep(folder: Path, platform: str, seconds: int, cells: int, jobs: int) -> dict[str, float]:
    """Run a grid; return the seconds in addition to the traffic."""
    file = make_grid(folder, platform=platform, seconds=seconds, rtts=2, pirs=max(cells // 2, 1), connections=1)
    command = [QOSLAB, "run", str(file), "--jobs", str(jobs), "--attempts", "1"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode not in (0, 1, 3):
        sys.exit(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = (folder / "runs/bench/latest").resolve()
    manifest = json.loads((run / "manifest.json").read_text())
    session = manifest["sessions"][-1]
    wall = (datetime.fromisoformat(session["ended"]) - datetime.fromisoformat(session["started"])).total_seconds()
    steps: dict[str, list[tuple[datetime, datetime]]] = defaultdict(list)
    for record in run.glob("cells/**/cell.json"):
        for step in json.loads(record.read_text())["steps"]:
            times = datetime.fromisoformat(step["started"]), datetime.fromisoformat(step["ended"])
            steps[step["name"]].append(times)
    traffic = steps["traffic"]
    span = (max(end for _, end in traffic) - min(start for start, _ in traffic)).total_seconds()
    count = len(manifest["cells"])
    return {
        "cells": count,
        "wall": wall,
        "whole": (wall - seconds * count / jobs) / count,
        "each": (span - seconds * count / jobs) / count,
        "configure": statistics.median((end - start).total_seconds() for start, end in steps["configure the routers"]),
        "cpu": (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / count,
        "invalid": sum(not cell["valid"] for cell in manifest["cells"]),
    }


def grids(folder: Path, seconds: int, count: int, jobs: list[int]) -> list[str]:
    """Return the table of the measured grids."""
    lines = [
        "| platform | labs | wall, s | in addition to the traffic, s per cell | first to last traffic, s per cell | "
        "configuring, median s | processor time, s a cell | invalid |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for platform in ("engine", "ios"):
        for labs in jobs:
            found = time_sweep(folder, platform, seconds, count, labs)
            lines.append(
                f"| {platform} | {labs} | {found['wall']:.0f} | {found['whole']:.2f} | {found['each']:.2f} | "
                f"{found['configure']:.2f} | {found['cpu']:.1f} | {found['invalid']:.0f} |"
            )
    return lines


def main() -> None:
    """Measure, print and write the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=20, help="traffic time of each cell")
    parser.add_argument("--cells", type=int, default=16)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--write", action="store_true", help="put the section into docs/internals/performance.md")
    chosen = parser.parse_args()
    lines = [HEADING, "", page.head("Source: `benches/sweep.py`."), ""]
    with tempfile.TemporaryDirectory() as folder:
        lines += ["| cells counted by a dry run | s |", "|---|---|"]
        for pirs in (5, 50):
            cells, seconds = count_cells(Path(folder), pirs)
            lines.append(f"| {cells:,} | {seconds:.1f} |")
        cells, each = time_bookkeeping(Path(folder))
        overhead = f"Bookkeeping of {cells:,} cells (leasing, turns, records on disk): {each * 1000:.1f} ms per cell."
        ran = (
            f"A grid of {chosen.cells} cells of {chosen.seconds} s with two topologies, on {os.cpu_count()} cores, in "
            "one lab or several in parallel. Time of a cell in addition to its traffic: of the whole command, from "
            "start to report; and between the start of the first traffic and the end of the last, which each further "
            "cell adds."
        )
        lines += ["", overhead, "", textwrap.fill(ran, page.WIDTH), ""]
        lines += grids(Path(folder), chosen.seconds, chosen.cells, chosen.jobs)
    section = "\n".join(lines) + "\n"
    page.print_summary(section, write_it=chosen.write)


if __name__ == "__main__":
    main()
