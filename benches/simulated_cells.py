"""Measure the cost of a simulated cell and its parts; print a Markdown section for docs/internals/performance.md.

    python benches/simulated_cells.py [--cells 1000] [--write]

Processor time, since the machine may be busy: of `qoslab run --lab simulated` with its child processes, of `qoslab
report` of the same run, and per cell of their parts: a worker, the programs that it starts, and the reading of the cell
with its metrics.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

import page
import sweep

from qoslab.analysis import Readings
from qoslab.model.reference_names import references
from qoslab.plan import Options, make_plan
from qoslab.results import RunFolder
from qoslab.run.cluster import remote_worker
from qoslab.run.cluster.remote import serialise_task
from qoslab.run.task import make_task
from qoslab.schema import load_sweep

ROOT = Path(__file__).resolve().parents[1]
HEADING = "## Simulated cells"
WHY = """\
The targets are 2.5 s for the five arms, 0.8 s for one cell, 15 s and 300 MiB for 1,000 cells, and 3 s for their report.
In each cell, the worker alone takes more than 10 ms: eight files in five folders are written, synced, and compared with
their seals. docs/decisions/simulated-cell.md has the parts. A large part of a run of one cell is imports, mainly those
of pandas and pyarrow for the report (see "Start").
"""
REPETITIONS = ["To measure again:", "", "    python benches/simulated_cells.py --write"]
SAMPLE = 50
"""Number of cells whose parts are measured one by one."""


@dataclass(frozen=True)
class ResourceUse:
    """Processor seconds of a command with its child processes, and the memory of its largest process in MiB."""

    processor_s: float
    memory_mib: float


def resource_use(folder: Path, *arguments: str) -> ResourceUse:
    """Run a `qoslab` command; byte code is cached, as in an installation."""
    script = (
        "import resource, subprocess, sys; status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode;"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN);"
        "print(status, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)"
    )
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", script, sweep.QOSLAB, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    status, processor, memory = done.stdout.split()
    if status not in ("0", "1"):
        sys.exit(done.stderr)
    return ResourceUse(float(processor), float(memory))


def worker_ms(file: Path) -> tuple[float, float]:
    """Return the processor time of a cell in a worker, in ms: of the worker itself, and of the programs that it
    starts.
    """
    plan = make_plan(load_sweep(file), Options(lab="simulated"))
    tasks = [serialise_task(make_task(planned, {})) for planned in list(plan.cells)[:SAMPLE]]
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    remote_worker.run_cell(tasks[0])
    own = time.process_time()
    for task in tasks:
        remote_worker.run_cell(task)
    own = time.process_time() - own
    remote_worker.close_labs()  # The processor time of a process is known when it has ended.
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = after.ru_utime + after.ru_stime - others.ru_utime - others.ru_stime
    return own * 1000 / len(tasks), started * 1000 / (len(tasks) + 1)


def reading_ms(run: RunFolder) -> float:
    """Return the median processor time of reading a cell and computing its metrics, in ms."""
    opened = run.open()
    readings = Readings(references(opened.manifest.experiment, opened.manifest.published))
    each = []
    for cell in opened.cells[: SAMPLE + 1]:
        began = time.process_time()
        readings.cell_content(cell)
        each.append((time.process_time() - began) * 1000)
    return statistics.median(each[1:])


def main() -> None:
    """Measure, print and write the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=1000, help="cells of 1 s; a multiple of 100")
    parser.add_argument("--write", action="store_true", help="put the section into docs/internals/performance.md")
    chosen = parser.parse_args()
    head = page.head("Each ran once; the processor time of a busy machine is longer than that of an idle one.")
    arms = str(ROOT / "experiments/policing-vs-shaping.yml")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = sweep.make_grid(folder, platform="ios", seconds=1, rtts=10, pirs=10, connections=chosen.cells // 100)
        resource_use(folder, "run", arms, "--lab", "simulated")
        five = resource_use(folder, "run", arms, "--lab", "simulated")
        first = ("--only", "rtt=10 ms", "--only", "pir=1 Mb/s", "--only", "connections=1")
        one = resource_use(folder, "run", str(file), "--lab", "simulated", *first)
        many = resource_use(folder, "run", str(file), "--lab", "simulated")
        run = RunFolder((folder / "runs/bench/latest").resolve())
        again = resource_use(folder, "report", str(run.path))
        own, started = worker_ms(file)
        reading = reading_ms(run)
    rows = [
        ("`run policing-vs-shaping`, five arms, second time", five),
        ("`run` of one cell without show commands", one),
        (f"`run` of {chosen.cells:,} cells of 1 s", many),
        ("`report` of these", again),
    ]
    lines = [HEADING, "", head, "", "| `--lab simulated` | processor s | MiB |", "|---|--:|--:|"]
    lines += [f"| {words} | {each.processor_s:.1f} | {each.memory_mib:.0f} |" for words, each in rows]
    lines += ["", "| part of a cell of 1 s | processor ms |", "|---|--:|"]
    lines += [
        f"| worker: scenario, files, conservation, record | {own:.1f} |",
        f"| programs that it starts: `qos-sim` | {started:.1f} |",
        f"| reading it, with its metrics | {reading:.1f} |",
    ]
    lines += ["", textwrap.fill(WHY, page.WIDTH), "", *REPETITIONS]
    page.print_summary("\n".join(lines) + "\n", write_it=chosen.write)


if __name__ == "__main__":
    main()
