"""Measure the duration of each experiment in virtual time; print a Markdown section for docs/internals/performance.md.

    python benches/virtual_time.py [NAME …] [--write]

The whole command (`qoslab run NAME --lab simulated`), from start to report, one experiment after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

import page

ROOT = Path(__file__).resolve().parents[1]
HEADING = "## Virtual time"
GOAL = """\
Time of `qoslab run NAME --lab simulated`, from start to report: wall time, and processor time with child processes. The
goal is two minutes for the nine files of the five articles, marked with a star, one after the other on two cores. Files
that need a kernel as a router cannot be simulated; they are listed below the table.
"""
HINT = "--lab virtual"
"""Hint of the refusal to simulate a router whose queueing is the kernel's."""
NINE = frozenset(
    (
        *("policing-vs-shaping", "hqf-fair-queue", "hqf-classes", "hqf-nested", "wfq-precedence"),
        *("srr-3750", "tx-ring-limit", "tcp-friendly-policer", "tcp-friendly-policer-more"),
    )
)


@dataclass(frozen=True)
class TimeTaken:
    """Duration of a run: its cells, and seconds."""

    cells: int
    wall: float
    processor: float


def simulate_experiment(name: str, folder: Path) -> TimeTaken | None:
    """Run an experiment; byte code is cached, as in an installation. `None` if it cannot be simulated."""
    command = [str(Path(sys.executable).with_name("qoslab")), "run", str(ROOT / f"experiments/{name}.yml")]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [*command, "--lab", "simulated"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode == 2 and HINT in done.stderr:
        return None
    if done.returncode not in (0, 1):
        sys.exit(f"{name}: status {done.returncode}\n{done.stderr}")
    manifest = json.loads((folder / "runs" / name / "latest" / "manifest.json").read_text())
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return TimeTaken(len(manifest["cells"]), wall, processor)


def table(took: dict[str, TimeTaken]) -> list[str]:
    """Return a row for each experiment, and the sums of the nine and of all."""
    lines = ["| experiment | cells | s | processor s |", "|---|---|---|---|"]
    sums = {"the nine": [*NINE & took.keys()], "all": [*took]}
    for name, each in took.items():
        star = "*" if name in NINE else ""
        lines.append(f"| {name}{star} | {each.cells} | {each.wall:.1f} | {each.processor:.1f} |")
    for words, names in sums.items():
        found = [took[name] for name in names]
        wall, processor = sum(each.wall for each in found), sum(each.processor for each in found)
        lines.append(f"| {words} | {sum(each.cells for each in found)} | {wall:.0f} | {processor:.0f} |")
    return lines


def main() -> None:
    """Measure, print and write the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="experiments [default: all]")
    parser.add_argument("--write", action="store_true", help="put the section into docs/internals/performance.md")
    chosen = parser.parse_args()
    if chosen.write and chosen.names:
        parser.error("found names with --write, expected none: the section has all experiments")
    known = sorted(file.stem for file in (ROOT / "experiments").glob("*.yml"))
    head = page.head("Each ran once.")
    took, skipped = {}, []
    with tempfile.TemporaryDirectory() as folder:
        # What was not imported since the installation is compiled now, and not in a run that is measured.
        simulate_experiment("policing-vs-shaping", Path(folder))
        for name in chosen.names or known:
            if each := simulate_experiment(name, Path(folder)):
                took[name] = each
            else:
                skipped.append(name)
    omitted = [f"Not simulated: {', '.join(skipped)}.", ""] if skipped else []
    again = ["To measure again:", "", "    python benches/virtual_time.py --write"]
    lines = [HEADING, "", textwrap.fill(GOAL, page.WIDTH), "", head, "", *table(took), "", *omitted, *again]
    page.print_summary("\n".join(lines) + "\n", write_it=chosen.write)


if __name__ == "__main__":
    main()
